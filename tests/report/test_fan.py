"""A picture of the fan, against the definition of each of its points."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from listed_policies import instance, suboptimality
from problems import random_problem, random_stream

import normalfan as nf
from normalfan.battery import Battery, ercot_prices
from normalfan.report.fan import COLOURS, Plane, draw_fan, label_faces


def test_labels_tell_the_faces_of_the_listed_policies_apart() -> None:
    rng = np.random.default_rng(5)
    for seed in range(20):
        problem, visits = instance(seed)
        origin, right, up = rng.integers(-1, 2, size=(3, *problem.loss.shape)).astype(float)
        xs, ys = np.array([-1.0, 0.0, 1.0, 2.0]), np.array([-1.0, 0.0, 0.5])
        labels, faces = label_faces(problem.mdp, Plane(origin, right, up), xs, ys)
        optima: dict[bytes, set[int]] = {}
        for (row, y), (column, x) in product(enumerate(ys), enumerate(xs)):
            loss = origin + x * right + y * up
            label = int(labels[row, column])
            support = (visits[suboptimality(visits, loss) == 0] > 0).any(axis=0)
            assert np.array_equal(faces[label].mask, support)
            optima.setdefault(support.tobytes(), set()).add(label)
        assert all(len(same) == 1 for same in optima.values())
        assert len(optima) == len(faces)
    assert not labels.flags.writeable


@pytest.mark.parametrize("kind", ["dense", "sparse", "deterministic"])
def test_many_points_have_the_faces_of_each_alone(kind: str) -> None:
    rng = np.random.default_rng(11)
    met = 0
    for _ in range(40):
        problem = random_problem(rng, rounds=3)
        if kind not in problem.kinds():
            continue
        mdp, plane = problem.mdp(kind), Plane(*problem.losses.astype(float))
        xs, ys = np.linspace(-1, 2, 9), np.linspace(-1, 1, 7)  # two batches, ties on the walls among them
        labels, faces = label_faces(mdp, plane, xs, ys)
        for (j, y), (i, x) in product(enumerate(ys), enumerate(xs)):
            alone = nf.optimal_face(mdp, plane.origin + x * plane.right + y * plane.up)
            assert faces[labels[j, i]] == alone
        met += len(faces)
    assert met > 40


def test_losses_beyond_the_range_of_floats_are_refused() -> None:
    mdp, loss = nf.MDP([[0, 0]], 0, horizon=2), np.full((2, 1, 2), 1e308)
    with pytest.raises(nf.InputError, match="beyond the range"):
        draw_fan(mdp, Plane(loss, 0.1 * loss, np.eye(2).reshape(2, 1, 2)), [0.0], [0.0])


def test_a_plane_through_zero_is_one_face() -> None:
    mdp = nf.MDP([[0, 1], [1, 0]], 0, horizon=2)
    zero = np.zeros(mdp.shape)
    labels, faces = label_faces(mdp, Plane(zero, zero, zero), np.arange(2.0), np.arange(3.0))
    assert labels.shape == (3, 2)
    assert faces == (nf.whole_polytope(mdp),)


def test_bad_losses_and_grids_are_named() -> None:
    mdp, loss = nf.MDP([[0, 0]], 0, horizon=1), np.zeros((1, 1, 2))
    with pytest.raises(nf.InputError, match="up has shape"):
        draw_fan(mdp, Plane(loss, loss, loss[0]), [0], [0])
    with pytest.raises(nf.InputError, match="xs has shape"):
        draw_fan(mdp, Plane(loss, loss, loss), [[0]], [0])
    with pytest.raises(nf.InputError, match=r"ys.* finite"):
        draw_fan(mdp, Plane(loss, loss, loss), [0], [np.nan])


def test_a_picture_of_the_fan_is_that_of_its_points() -> None:
    rng = np.random.default_rng(9)
    crowded = 0
    for seed in range(12):
        mdp, losses = random_stream(seed)
        plane = Plane(*losses[:3])
        xs, ys = np.linspace(-1, 1, 5), np.linspace(-0.5, 2, 4)
        inside, outside = plane.origin + 2 * plane.right - plane.up, rng.normal(size=mdp.shape)
        fan = draw_fan(mdp, plane, xs, ys, [inside, outside])
        home = nf.optimal_face(mdp, plane.origin)
        faces = {}
        for (j, y), (i, x) in product(enumerate(ys), enumerate(xs)):
            loss = plane.origin + x * plane.right + y * plane.up
            assert fan.prices[j, i] == pytest.approx(nf.price(home, loss).price, abs=1e-12)
            faces.setdefault(int(fan.labels[j, i]), set()).add(nf.optimal_face(mdp, loss).mask.tobytes())
        assert all(len(masks) == 1 for masks in faces.values())
        assert len({next(iter(masks)) for masks in faces.values()}) == fan.n_faces == len(faces)
        differing = (fan.labels[:, 1:] != fan.labels[:, :-1]).sum() + (
            fan.labels[1:] != fan.labels[:-1]
        ).sum()
        assert len(fan.walls()) == differing
        crowded += fan.n_faces > 3
        if not plane.is_flat:
            assert fan.path[0] == pytest.approx([2, -1])
            assert fan.in_plane[0]
            away = outside - plane.origin - fan.path[1, 0] * plane.right - fan.path[1, 1] * plane.up
            assert [(away * plane.right).sum(), (away * plane.up).sum()] == pytest.approx([0, 0], abs=1e-9)
            assert fan.in_plane[1] == np.allclose(away, 0)
    assert crowded > 3


def test_neighbours_on_the_map_have_different_colours() -> None:
    battery = Battery()
    mdp = battery.mdp()
    days = next(battery.losses(ercot_prices().prices[30:60]).blocks(mdp.shape, 30))
    grid = np.linspace(-0.5, 1.5, 15)
    fan = draw_fan(mdp, Plane(days[15], days[16] - days[15], days[17] - days[16]), grid, grid)
    colours = fan.colours[fan.labels]
    for one, other in ((np.s_[:, 1:], np.s_[:, :-1]), (np.s_[1:], np.s_[:-1])):
        assert ((fan.labels[one] == fan.labels[other]) == (colours[one] == colours[other])).all()
    assert fan.n_faces > 2 * len(COLOURS)
    (left, bottom), (right, top) = fan.walls().min(axis=(0, 1)), fan.walls().max(axis=(0, 1))
    step = grid[1] - grid[0]
    assert min(left, bottom) >= grid[0] - step / 2 - 1e-12
    assert max(right, top) <= grid[-1] + step / 2 + 1e-12
