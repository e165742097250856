"""A picture of the fan, against the definition of each of its points."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from problems import random_stream

import normalfan as nf
from normalfan.battery.ercot import ercot_prices
from normalfan.battery.model import Battery
from normalfan.report.fan import COLOURS, Plane, draw_fan


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
