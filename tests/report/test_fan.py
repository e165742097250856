"""A picture of the fan, against the definition of each of its points."""

from __future__ import annotations

import numpy as np
import pytest
from problems import random_stream

import normalfan as nf
from normalfan.battery import Battery, ercot_prices
from normalfan.report.fan import COLOURS, FanPicture, Plane, draw_fan


def contains(polygon: np.ndarray, point: np.ndarray, slack: float = 0.0) -> bool:
    """Whether a point is inside a convex polygon, or outside of it by at most `slack`."""
    sides = np.roll(polygon, -1, axis=0) - polygon
    away = point - polygon
    turns = sides[:, 0] * away[:, 1] - sides[:, 1] * away[:, 0]
    return bool((turns >= -slack * np.hypot(*sides.T)).all())


def test_losses_beyond_the_range_of_floats_are_refused() -> None:
    mdp, loss = nf.MDP([[0, 0]], 0, horizon=2), np.full((2, 1, 2), 1e308)
    with pytest.raises(nf.InputError, match="beyond the range"):
        draw_fan(mdp, Plane(loss, 0.1 * loss, np.eye(2).reshape(2, 1, 2)))


def test_a_plane_through_zero_is_one_plan() -> None:
    mdp = nf.MDP([[0, 1], [1, 0]], 0, horizon=2)
    zero = np.zeros(mdp.shape)
    fan = draw_fan(mdp, Plane(zero, zero, zero), window=1)
    assert len(fan.colours) == 1
    assert fan.free_share == 1.0
    assert fan.corner_price == 0.0


def test_bad_losses_and_windows_are_named() -> None:
    mdp, loss = nf.MDP([[0, 0]], 0, horizon=1), np.zeros((1, 1, 2))
    with pytest.raises(nf.InputError, match="up has shape"):
        draw_fan(mdp, Plane(loss, loss, loss[0]))
    with pytest.raises(nf.InputError, match="window"):
        draw_fan(mdp, Plane(loss, loss, loss), window=(0, 1))
    with pytest.raises(nf.InputError, match="window"):
        draw_fan(mdp, Plane(loss, loss, loss), window=np.nan)
    with pytest.raises(nf.InputError, match="most"):
        draw_fan(mdp, Plane(loss, loss, loss), most=0)


def test_a_picture_of_the_fan_is_that_of_its_points() -> None:
    """Prices are those of the origin's whole face, also where several plans are optimal at the origin."""
    rng = np.random.default_rng(9)
    crowded = degenerate = 0
    for seed in range(40):
        mdp, losses = random_stream(seed)
        plane = Plane(*losses[:3])
        window = ((-1.0, 1.0), (-0.5, 2.0))
        inside, outside = plane.origin + 2 * plane.right - plane.up, rng.normal(size=mdp.shape)
        fan = draw_fan(mdp, plane, window, [inside, outside])
        home = nf.optimal_face(mdp, plane.origin)
        assert fan.regions.areas.sum() == pytest.approx(5.0)
        free = 0
        for x, y in rng.uniform(*np.transpose(window), size=(60, 2)):
            loss = plane.origin + x * plane.right + y * plane.up
            price = nf.price(home, loss).price
            assert fan.regions.price(x, y) == pytest.approx(price, abs=1e-9)
            within = [i for i, one in enumerate(fan.regions.polygons) if contains(one, np.array([x, y]))]
            assert len(within) == 1
            value, along = fan.regions.values[within[0]], fan.regions.exposures[within[0]]
            best = float((nf.occupancy(mdp, fan.regions.policy(within[0])) * loss).sum())
            assert value + along @ [x, y] == pytest.approx(best, abs=1e-9)
            assert best == pytest.approx(nf.optimal_face(mdp, loss).minimise(loss)[0], abs=1e-9)
            free += price == 0.0
        assert abs(fan.free_share - free / 60) < 0.25
        crowded += len(fan.colours) > 3
        degenerate += not home.is_vertex and len(fan.regions.kept) > 1
        if not plane.is_flat:
            assert fan.path[0] == pytest.approx([2, -1])
            assert fan.in_plane[0]
            away = outside - plane.origin - fan.path[1, 0] * plane.right - fan.path[1, 1] * plane.up
            assert [(away * plane.right).sum(), (away * plane.up).sum()] == pytest.approx([0, 0], abs=1e-9)
            assert fan.in_plane[1] == np.allclose(away, 0)
    assert crowded > 10
    assert degenerate > 3


@pytest.fixture(scope="module")
def storm() -> FanPicture:
    battery = Battery()
    mdp = battery.mdp()
    days = next(battery.losses(ercot_prices().prices[30:60]).blocks(mdp.shape, 30))
    return draw_fan(mdp, Plane(days[15], days[16] - days[15], days[17] - days[16]))


def test_neighbours_on_the_map_have_different_colours(storm: FanPicture) -> None:
    """Points to either side of the middle of every longer edge."""
    found = storm.regions
    assert found.complete
    assert len(found.polygons) > 20 * len(COLOURS)
    assert found.areas.sum() == pytest.approx(4.0)
    large = np.flatnonzero(found.areas > 1e-3)
    checked = 0
    for i in large:
        polygon = found.polygons[i]
        for start, end in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
            side = end - start
            if np.hypot(*side) < 1e-2:
                continue
            beyond = (start + end) / 2 + 1e-7 * np.array([side[1], -side[0]]) / np.hypot(*side)
            for j in large:
                if j != i and contains(found.polygons[j], beyond):
                    assert storm.colours[i] != storm.colours[j]
                    checked += 1
    assert checked > 50


def test_a_search_that_is_stopped_says_so(storm: FanPicture) -> None:
    found = storm.regions
    mdp, loss = found.today.mdp, found.today.loss
    axes = found.today.features.toarray().reshape(2, *loss.shape)
    few = nf.regions(mdp, loss, directions=axes, window=found.window, most=50)
    assert not few.complete
    assert 0 < len(few.polygons) <= 50
    assert few.areas.sum() == pytest.approx(4.0)
    for x, y in np.random.default_rng(1).uniform(-0.5, 1.5, size=(200, 2)):
        assert few.price(x, y) <= found.price(x, y) * (1 + 1e-9) + 1e-6  # plans are missing, none is too many
