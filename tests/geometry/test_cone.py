"""Margins, errors and the detector against a list of all deterministic policies."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from listed_policies import SEEDS, instance, least_positive_reach, suboptimality, totals
from scipy import sparse

from normalfan.errors import InputError
from normalfan.geometry import reach as reach_module
from normalfan.geometry.change import value_error
from normalfan.geometry.cone import cone_margin, detect
from normalfan.geometry.face import optimal_face
from normalfan.geometry.ties import TieRule
from normalfan.problem.mdp import MDP


def listed_margin(visits, loss):
    lost = suboptimality(visits, loss)
    return lost[lost > 0].min(initial=np.inf)


def advantages(problem):
    H, S, A = problem.loss.shape
    value, table = np.zeros(S), np.empty((H, S, A))
    for h in reversed(range(H)):
        q = problem.loss[h] + problem.kernel[h] @ value
        value = q.min(axis=1)
        table[h] = q - value[:, None]
    return table


def path_probabilities(problem, table):
    """Of the least probable path of optimal actions to each (h, s), by following every path."""
    least = np.full(table.shape[:2], np.inf)
    paths = {(s, float(weight)) for s, weight in enumerate(problem.start) if weight > 0}
    for h in range(len(table)):
        for s, weight in paths:
            least[h, s] = min(least[h, s], weight)
        paths = {
            (t, weight * float(problem.kernel[h, s, a, t]))
            for s, weight in paths
            for a in np.flatnonzero(table[h, s] == 0)
            for t in np.flatnonzero(problem.kernel[h, s, a])
        }
    return least


def path_margin(problem):
    table = advantages(problem)
    gaps = np.where(table > 0, table, np.inf).min(axis=2)
    least = path_probabilities(problem, table)
    left = np.isfinite(gaps) & np.isfinite(least)
    return (gaps[left] * least[left]).min(initial=np.inf)


def test_the_margin_is_that_of_the_list_and_bounds_are_below_it():
    kinds, better = Counter(), 0
    for seed in SEEDS:
        problem, visits = instance(seed)
        expected = listed_margin(visits, problem.loss)
        exact = cone_margin(problem.mdp, problem.loss)
        assert exact.kind == "exact"
        assert exact.value == pytest.approx(expected, rel=1e-9), seed
        bound = cone_margin(problem.mdp, problem.loss, enumerate_up_to=0)
        assert bound.value <= expected * (1 + 1e-9), seed
        if bound.kind == "exact":
            assert bound.value == pytest.approx(expected, rel=1e-9), seed
        least_path = path_margin(problem)
        assert bound.value >= least_path * (1 - 1e-9), seed
        infinite = "whole polytope" if np.isinf(expected) else ""
        kinds[bound.kind, problem.mdp.has_certain_start, infinite] += 1
        better += least_path * (1 + 1e-9) < bound.value < np.inf
    assert kinds["exact", True, ""] > 80
    assert kinds["exact", False, ""] > 30
    assert kinds["exact", True, "whole polytope"] > 10
    assert min(kinds["lower bound", True, ""], kinds["lower bound", False, ""]) > 1
    assert better > 30


def test_what_is_reported_beside_the_value():
    for seed in SEEDS:
        problem, visits = instance(seed)
        margin = cone_margin(problem.mdp, problem.loss)
        on_face = np.isfinite(least_positive_reach(visits, problem.loss))
        table = advantages(problem)[on_face]
        assert margin.advantage_gap == table[table > 0].min(initial=np.inf)
        if margin.where is None:
            assert margin.value == np.inf
            continue
        lost = suboptimality(visits, problem.loss)
        attaining = np.isclose(lost, margin.value, rtol=1e-9, atol=0)
        assert visits[(attaining, *margin.where)].max() > 0


def first_departures(visits, loss):
    """[N, H, S]: how probably a policy leaves the face where, on the first step where it does."""
    kept = (visits[suboptimality(visits, loss) == 0] > 0).any(axis=0)
    leaving = np.where(kept, 0.0, visits).sum(axis=3)
    leaves = leaving.sum(axis=2) > 0
    first = leaves & (leaves.cumsum(axis=1) == 1)
    return leaving * first[:, :, None]


@pytest.mark.parametrize("floor", [1 / 16, 1 / 4, 1 / 2, 1.0])
def test_a_floor_disregards_rare_departures_and_nothing_else(floor):
    vertices = disregarded = 0
    for seed in range(200):
        problem, visits = instance(seed)
        counted = first_departures(visits, problem.loss).max(axis=(1, 2)) >= floor
        expected = suboptimality(visits, problem.loss)[counted].min(initial=np.inf)
        margin = cone_margin(problem.mdp, problem.loss, floor=floor)
        assert margin.kind == "floored"
        assert margin.value <= expected * (1 + 1e-9), seed
        if np.isfinite(margin.value):
            assert margin.value >= floor * margin.advantage_gap * (1 - 1e-9)
        else:
            assert margin.where is None
        if optimal_face(problem.mdp, problem.loss).is_vertex:
            vertices += 1
            assert margin.value == pytest.approx(expected, rel=1e-9)
        disregarded += margin.value > listed_margin(visits, problem.loss) * (1 + 1e-9)
    assert vertices > 20
    assert disregarded > 10


@pytest.mark.parametrize("backups", [0, 1])
def test_when_targets_are_too_many_the_forward_bound_stands_in(monkeypatch, backups):
    monkeypatch.setattr(reach_module, "BACKUPS", backups)
    weaker = 0
    for seed in SEEDS:
        problem, visits = instance(seed)
        full = listed_margin(visits, problem.loss)
        margin = cone_margin(problem.mdp, problem.loss, enumerate_up_to=0)
        assert path_margin(problem) * (1 - 1e-9) <= margin.value <= full * (1 + 1e-9), seed
        if margin.kind == "exact":
            assert margin.value == pytest.approx(full, rel=1e-9)
        weaker += margin.kind == "lower bound"
        floored = cone_margin(problem.mdp, problem.loss, floor=1 / 4)
        assert floored.where is None or floored.value >= floored.advantage_gap / 4
    assert weaker > 20 * (1 - backups)


def test_representations_agree():
    for seed in range(60):
        problem, _ = instance(seed)
        H, S, A, _ = problem.kernel.shape
        kernels = [sparse.csr_array(problem.kernel[h].reshape(S * A, S)) for h in range(H)]
        thin = MDP(kernels, problem.start)
        assert cone_margin(thin, problem.loss) == cone_margin(problem.mdp, problem.loss)
        nexts = problem.kernel.argmax(axis=3)
        certain = MDP(np.eye(S)[nexts], 0)
        walk = cone_margin(MDP(nexts, 0), problem.loss, enumerate_up_to=0)
        assert walk == cone_margin(certain, problem.loss, enumerate_up_to=0)
        assert walk.kind == "exact"
        assert walk.value == walk.advantage_gap


def test_errors_are_those_of_the_list():
    for seed in range(200):
        problem, visits = instance(seed)
        model = np.random.default_rng(seed).integers(-4, 5, size=problem.loss.shape) / 2.0
        gap = np.abs(totals(visits, problem.loss - model)).max()
        assert value_error(problem.mdp, problem.loss, model) == pytest.approx(gap, abs=1e-12)
        assert value_error(problem.mdp, problem.loss, problem.loss) == 0.0


def disturbed(problem, seed, size):
    noise = np.random.default_rng([seed, 30]).integers(-8, 9, size=problem.loss.shape)
    return problem.loss + noise * (size / 8)


def test_what_is_guaranteed_is_so():
    seen = Counter()
    for seed in SEEDS:
        problem, visits = instance(seed)
        lost = suboptimality(visits, problem.loss)
        for size in (1 / 16, 2):
            model = disturbed(problem, seed, size)
            found = detect(problem.mdp, problem.loss, model)
            assert found.resolved == (2 * found.error < found.margin.value)
            assert found.guaranteed == found.resolved
            harmless = lost[suboptimality(visits, model) == 0].max() == 0
            assert harmless or not found.resolved
            seen[found.resolved, harmless] += np.isfinite(found.margin.value)
    assert min(seen[True, True], seen[False, True], seen[False, False]) > 30


def test_the_detector_is_sharp():
    """At 2ε = Δ the promise fails: two arms, the model errs by half the gap in both."""
    mdp = MDP(np.array([[0, 0]]), 0, horizon=1)
    loss, tie = np.array([[[0.0, 1.0]]]), np.array([[[0.5, 0.5]]])
    assert not detect(mdp, loss, tie).resolved
    assert detect(mdp, loss, np.array([[[0.4375, 0.5625]]])).resolved


def test_a_floored_detection_promises_less_and_keeps_it():
    floor, weaker = 1 / 4, 0
    for seed in SEEDS:
        problem, visits = instance(seed)
        delicate = cone_margin(problem.mdp, problem.loss)
        if delicate.where is None:
            continue
        model = problem.loss.copy()
        model[delicate.where] -= 1.25 * advantages(problem)[delicate.where]
        found = detect(problem.mdp, problem.loss, model, floor=floor)
        assert not found.guaranteed
        if found.resolved:
            chosen = suboptimality(visits, model) == 0
            leaving = first_departures(visits, problem.loss)[chosen]
            assert leaving.max() < floor
            weaker += leaving.max() > 0
    assert weaker > 5


def test_ties_decide_what_counts_as_left_out():
    mdp = MDP(np.array([[0, 0, 0]]), 0, horizon=1)
    loss = np.array([[[0.0, 0.01, 1.0]]])
    assert cone_margin(mdp, loss).value == 0.01
    assert cone_margin(mdp, loss, ties=TieRule(absolute=0.1)).value == 1.0
    assert detect(mdp, loss, loss, ties=TieRule(absolute=0.1)).margin.value == 1.0


def test_probabilities_too_small_for_a_float_give_a_safe_zero():
    """0 → 1 → 2, each time with probability 1e-200, and from 2 for sure to 3, a dead end."""
    kernel = np.zeros((4, 2, 4))
    kernel[[0, 1, 3], :, 0] = 1.0
    kernel[[0, 1, 2], :, [1, 2, 3]] = [[1e-200], [1e-200], [1.0]]
    mdp = MDP(kernel, 0, horizon=4)
    for rare, reach in ((2, 0.0), (1, 1e-200)):
        loss = np.zeros((4, 4, 2))
        loss[3, rare, 1] = 1.0
        for few in (0, 4096):
            margin = cone_margin(mdp, loss, enumerate_up_to=few)
            assert margin.value == pytest.approx(reach, rel=1e-9)
            assert margin.advantage_gap == 1.0


def test_the_whole_polytope_has_no_wall():
    mdp = MDP(np.array([[0, 1], [1, 0]]), 0, horizon=3)
    margin = cone_margin(mdp, np.ones((3, 2, 2)))
    assert (margin.value, margin.kind, margin.where) == (np.inf, "exact", None)
    assert margin.advantage_gap == np.inf


@pytest.mark.parametrize("floor", [-0.1, 1.5, float("nan")])
def test_a_floor_is_a_probability(floor):
    with pytest.raises(InputError, match=r"floor is .* probability"):
        cone_margin(MDP(np.array([[0, 0]]), 0, horizon=1), np.zeros((1, 1, 2)), floor=floor)


def test_bad_losses_are_named():
    mdp, loss = MDP(np.array([[0, 0]]), 0, horizon=1), np.zeros((1, 1, 2))
    with pytest.raises(InputError, match="model has shape"):
        value_error(mdp, loss, np.zeros((1, 2)))


def test_how_margins_and_detections_are_shown():
    mdp, loss = MDP(np.array([[0, 0, 0]]), 0, horizon=1), np.array([[[1.0, 1.0, 1.5]]])
    margin, found = cone_margin(mdp, loss), detect(mdp, loss, loss)
    assert repr(margin) == "ConeMargin(value=0.5, kind='exact', advantage_gap=0.5, where=(0, 0, 2))"
    assert repr(found) == f"Detection(error=0.0, margin={margin!r}, resolved=True, error_kind='exact')"
    assert "<td>0.5</td><td>exact</td><td>0.5</td><td>0, 0, 2</td>" in margin._repr_html_()
    assert "<td>nowhere</td>" in cone_margin(mdp, 0 * loss)._repr_html_()
    assert "<td>0.5 (exact)</td><td>True</td><td>True</td>" in found._repr_html_()


def rare_state(horizon: int, gap: float = 5.0) -> tuple[MDP, np.ndarray]:
    """At every step the game goes on with probability 1/100; the only choice is at its end."""
    go_on = np.array([[[0.01, 0.99]] * 2, [[0.0, 1.0]] * 2])
    loss = np.zeros((horizon, 2, 2))
    loss[-1, 0, 1] = gap
    return MDP(go_on, initial=0, horizon=horizon), loss


@pytest.mark.parametrize(("horizon", "gap"), [(162, 5.0), (162, 1e20), (170, 5.0), (170, 1e300)])
def test_a_margin_that_underflows_is_a_bound(horizon: int, gap: float) -> None:
    found = cone_margin(*rare_state(horizon, gap))
    assert (found.value, found.kind, found.advantage_gap) == (0.0, "lower bound", gap)
    assert found.where == (horizon - 1, 0, 1)


def test_a_margin_just_above_underflow_is_exact() -> None:
    found = cone_margin(*rare_state(150))
    assert found.kind == "exact"
    assert found.value == pytest.approx(5e-298, rel=1e-9)
