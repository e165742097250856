"""Slices of the fan against a list of all deterministic policies."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from listed_policies import instance, suboptimality

from normalfan.errors import InputError
from normalfan.geometry.face import whole_polytope
from normalfan.geometry.fan_slice import fan_slice
from normalfan.problem.mdp import MDP


def test_a_slice_tells_faces_apart():
    rng = np.random.default_rng(5)
    for seed in range(20):
        problem, visits = instance(seed)
        origin, right, up = rng.integers(-1, 2, size=(3, *problem.loss.shape)).astype(float)
        xs, ys = np.array([-1.0, 0.0, 1.0, 2.0]), np.array([-1.0, 0.0, 0.5])
        fan = fan_slice(problem.mdp, origin, right, up, xs, ys)
        optima = {}
        for (row, y), (column, x) in product(enumerate(ys), enumerate(xs)):
            loss = origin + x * right + y * up
            label = int(fan.labels[row, column])
            support = (visits[suboptimality(visits, loss) == 0] > 0).any(axis=0)
            assert np.array_equal(fan.faces[label].mask, support)
            optima.setdefault(support.tobytes(), set()).add(label)
        assert all(len(labels) == 1 for labels in optima.values())
        assert len(optima) == len(fan.faces)
    assert not fan.labels.flags.writeable


def test_a_slice_through_zero_is_one_face():
    mdp = MDP(np.array([[0, 1], [1, 0]]), 0, horizon=2)
    zero = np.zeros((2, 2, 2))
    fan = fan_slice(mdp, zero, zero, zero, [0, 1], [0, 1, 2])
    assert fan.labels.shape == (3, 2)
    assert fan.faces == (whole_polytope(mdp),)


def test_bad_losses_and_grids_are_named():
    mdp, loss = MDP(np.array([[0, 0]]), 0, horizon=1), np.zeros((1, 1, 2))
    with pytest.raises(InputError, match="along_y has shape"):
        fan_slice(mdp, loss, loss, loss[0], [0], [0])
    with pytest.raises(InputError, match="xs has shape"):
        fan_slice(mdp, loss, loss, loss, [[0]], [0])
    with pytest.raises(InputError, match=r"ys.* finite"):
        fan_slice(mdp, loss, loss, loss, [0], [np.nan])


def test_the_picture_shows_every_face():
    mdp = MDP(np.zeros((1, 30), dtype=int), 0, horizon=1)
    right, up = np.random.default_rng(1).normal(size=(2, 1, 1, 30))
    grid = np.linspace(-1, 1, 40)
    plane = fan_slice(mdp, 0 * right, right, up, grid, grid[:30])
    figure = plane.plot()
    (mesh,) = figure.axes[0].collections
    np.testing.assert_array_equal(mesh.get_array(), plane.labels % 20)
    assert figure.axes[0].get_title().endswith(f"{len(plane.faces)} faces")
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert len(repr(plane)) < 80
