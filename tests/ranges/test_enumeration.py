"""Ranges, breakpoints, polygons and radii against the list of all plans, in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from listed_ranges import Factored, area, bends, cell, end, factored_problem, interval
from soaking import repeated

import normalfan as nf

BATCHES, BATCH = repeated(4, 20), 60  # 240 problems, or 1,200


def seeds(batch: int) -> range:
    return range(batch * BATCH, (batch + 1) * BATCH)


def kept_exposures(problem: Factored) -> tuple[Fraction, ...]:
    """Those of today's plan where one is meant: the first of tied actions."""
    policy = nf.ranging(problem.mdp, problem.losses, tolerance=0).today.policy
    visits = nf.occupancy(problem.mdp, policy)
    return tuple(Fraction(float(np.vdot(visits, feature))) for feature in problem.features)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_ends(batch: int) -> None:
    for seed in seeds(batch):
        problem = factored_problem(seed)
        tolerance = Fraction(seed % 7, 4)
        found = nf.ranging(problem.mdp, problem.losses, tolerance=float(tolerance))
        plans = problem.optimal()
        for k in range(len(problem.theta)):
            for ends, amount in ((found.optimal, Fraction(0)), (found.within, tolerance)):
                np.testing.assert_allclose(ends[k], interval(problem, k, amount), rtol=1e-9, atol=1e-9)
            taken = [x[k] for x in plans]
            np.testing.assert_allclose(found.exposures[k], (float(min(taken)), float(max(taken))), atol=1e-12)
            assert found.matters[k] == (len({x[k] for x in problem.exposures}) > 1)
            for side, sign in (("low", -1), ("high", 1)):
                check_beyond(problem, found, k, side, sign)


def check_beyond(problem: Factored, found: nf.Ranging, k: int, side: str, sign: int) -> None:
    """The plan beyond an end is the best just after it."""
    beyond = found.beyond(k, side)
    edge = max(end(problem, x, k, sign, Fraction(0)) for x in problem.optimal())
    if edge == float("inf"):
        assert beyond is None
        return
    cost = {x: problem.cost(x) + sign * edge * x[k] for x in problem.exposures}
    best = [x for x in problem.exposures if cost[x] == min(cost.values())]
    np.testing.assert_allclose(beyond.exposures[k], float(sign * min(sign * x[k] for x in best)), atol=1e-12)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_breakpoints(batch: int) -> None:
    for seed in seeds(batch):
        problem = factored_problem(seed)
        k = seed % len(problem.theta)
        now = problem.theta[k]
        found = nf.breakpoints(problem.mdp, problem.losses, direction=str(k), within=(now - 9, now + 9))
        expected = bends(problem, k, Fraction(-9), Fraction(9))
        np.testing.assert_allclose(found.edges - now, [-9, *map(float, expected), 9], atol=1e-9)
        for t in (-8.5, -1.0, 0.0, 0.25, 7.0):
            costs = [problem.cost(x) + Fraction(t) * x[k] for x in problem.exposures]
            kept = min(problem.cost(x) + Fraction(t) * x[k] for x in problem.optimal())
            np.testing.assert_allclose(found.price(now + t), float(kept - min(costs)), atol=1e-9)
        for i, exposure in enumerate(found.exposures):
            visits = nf.occupancy(problem.mdp, found.policy(i))
            np.testing.assert_allclose(np.vdot(visits, problem.features[k]), exposure, atol=1e-12)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_polygons(batch: int) -> None:
    for seed in seeds(batch):
        problem = factored_problem(seed)
        if len(problem.theta) < 2:
            continue
        tolerance = Fraction(seed % 3, 4)
        options = {"directions": ("0", "1"), "window": 5.0}
        one = nf.region(problem.mdp, problem.losses, tolerance=float(tolerance), **options)
        expected = cell(problem, kept_exposures(problem), (0, 1), 5, tolerance)
        check_polygon(one.polygons[0] - one.now, expected)
        every = nf.regions(problem.mdp, problem.losses, **options)
        planes = {(problem.cost(x), *x[:2]): x for x in problem.exposures}
        cells = {plane: cell(problem, x, (0, 1), 5, Fraction(0)) for plane, x in planes.items()}
        cells = {plane: polygon for plane, polygon in cells.items() if polygon and area(polygon) > 0}
        assert len(every.polygons) == len(cells)
        for polygon, value, exposures in zip(every.polygons, every.values, every.exposures, strict=True):
            near = min(cells, key=lambda p: np.abs(np.array(p, float) - (value, *exposures)).sum())
            check_polygon(polygon - every.now, cells[near])
            np.testing.assert_allclose((value, *exposures), np.array(near, dtype=float), atol=1e-9)


def check_polygon(polygon: np.ndarray, expected: list[tuple[Fraction, Fraction]]) -> None:
    """Every corner of each is a corner of the other; corners on a side count as none."""
    exact = np.array(expected, dtype=float).reshape(-1, 2)
    assert len(polygon)
    apart = np.abs(polygon[:, None] - exact[None]).max(axis=2)
    assert apart.min(axis=1).max() < 1e-8
    assert apart.min(axis=0).max() < 1e-8


@pytest.mark.parametrize("batch", range(BATCHES))
def test_radius(batch: int) -> None:
    """The dual form, over the list of all plans."""
    for seed in seeds(batch):
        problem = factored_problem(seed)
        tolerance = Fraction(seed % 4, 4)
        kept = kept_exposures(problem)
        for relative in (False, True):
            units = [abs(Fraction(t)) if relative else Fraction(1) for t in problem.theta.tolist()]
            options = {"tolerance": float(tolerance), "relative": relative}
            distance = {
                x: [w * abs(a - b) for w, a, b in zip(units, kept, x, strict=True)] for x in problem.exposures
            }
            room = {x: tolerance + problem.cost(x) - problem.cost(kept) for x in problem.exposures}
            both = nf.radius(problem.mdp, problem.losses, norm="linf", **options)
            true = float(min((room[x] / sum(d) for x, d in distance.items() if any(d)), default=np.inf))
            assert both.lower <= true * (1 + 1e-9) + 1e-12
            assert both.upper >= true * (1 - 1e-9)
            one_step = (problem.features.any(axis=(2, 3)).sum(axis=1) <= 1).all()
            if problem.mdp.is_certain and one_step:
                np.testing.assert_allclose((both.lower, both.upper), true, rtol=1e-9)
                assert both.exact
            single = nf.radius(problem.mdp, problem.losses, norm="l1", **options)
            nearest = min((room[x] / max(d) for x, d in distance.items() if any(d)), default=np.inf)
            np.testing.assert_allclose((single.lower, single.upper), float(nearest), rtol=1e-9, atol=1e-12)
            for found in (both, single):
                if np.isfinite(found.upper):
                    error = [Fraction(e) for e in found.worst.tolist()]
                    paid = max(
                        problem.cost(kept)
                        - problem.cost(x)
                        + sum(e * (a - b) for e, a, b in zip(error, kept, x, strict=True))
                        for x in problem.exposures
                    )
                    np.testing.assert_allclose(float(paid), float(tolerance), atol=1e-9)
