"""Trust-region steps against a convex solver and their greedy limits."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from convex import SOLVED_SEEDS, larger_problem, q_values, solved
from hypothesis import assume, given
from hypothesis import strategies as st
from playing import plays
from problems import Problem, random_problem
from scipy.special import log_softmax, logsumexp, rel_entr

import normalfan as nf
from normalfan import learners

seeds = st.integers(0, 2**32 - 1)


def divergences(after: np.ndarray, before: np.ndarray) -> np.ndarray:
    return np.asarray(rel_entr(after, before).sum(axis=-1))


def weights_of(problem: Problem, policy: np.ndarray, kind: str) -> np.ndarray:
    visits = nf.occupancy(problem.mdp(), policy).sum(axis=2)
    return visits / problem.shape[0] if kind == "average" else visits


@pytest.mark.parametrize("eta", [1.5, np.inf])
@pytest.mark.parametrize("kind", ["per state", "average", "trajectory"])
@pytest.mark.parametrize("seed", SOLVED_SEEDS)
def test_the_trust_region_solves_its_program(seed: int, kind: Any, eta: float) -> None:
    problem = larger_problem(seed, rounds=2)
    # A little off the integers: without ties the minimiser is unique wherever it is not greedy.
    losses = problem.losses + np.random.default_rng(seed).uniform(0, 0.1, problem.losses.shape)
    learner = learners.TrustRegion(problem.mdp(), eta, kind=kind)
    played = plays(learner, losses)
    for before, loss, after in zip(played, losses, played[1:], strict=False):
        q = q_values(problem, before, loss)
        weights = np.ones(problem.shape[:2]) if kind == "per state" else weights_of(problem, before, kind)
        rows = before.reshape(-1, problem.shape[2])
        moved = cp.Variable(rows.shape)
        kl = cp.sum(cp.rel_entr(moved, rows), axis=1)
        cost = cp.sum(cp.multiply(q.reshape(rows.shape), moved), axis=1)
        objective = weights.ravel() @ (cost if np.isinf(eta) else cost + kl / eta)
        ball = kl <= 0.12 if kind == "per state" else weights.ravel() @ kl <= 0.12
        best = solved(objective, [cp.sum(moved, axis=1) == 1, ball], gap=1e-9)

        mine, spent = (after * q).sum(axis=2), divergences(after, before)
        assert (weights * (mine if np.isinf(eta) else mine + spent / eta)).sum() == pytest.approx(
            best, abs=1e-6
        )
        used = spent if kind == "per state" else (weights * spent).sum()
        assert np.max(used) <= 0.12 * (1 + 1e-9)


def greedy_ball(
    problem: Problem, learner: learners.TrustRegion, t: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """One step seen from inside, [H, S] each and the last [H, S, A]: the divergence spent, that of the
    greedy limit, the visits before, and the greedy limit itself.

    The logs are read, not the play: a chance of e⁻⁸⁰⁰ is none in a double, and some to the learner.
    Near-ties are passed over: they may be read either way, and steps so long cost the logs their digits.
    """
    before, policy, loss = log_softmax(learner._logs, axis=2), learner.act(t), problem.losses[t]
    learner.observe(t, loss)
    after = log_softmax(learner._logs, axis=2)
    kept = np.exp(after) > 0
    spent = np.where(kept, np.exp(after) * (np.where(kept, after, 0) - np.where(kept, before, 0)), 0.0)
    q = np.where(before > -np.inf, q_values(problem, policy, loss), np.inf)
    gaps = q - q.min(axis=2, keepdims=True)
    assume(not ((gaps > 1e-13) & (gaps < 1e-5)).any())
    greedy = np.where(gaps < 1e-9, before, -np.inf)
    mass = logsumexp(greedy, axis=2)
    visits = nf.occupancy(problem.mdp(), policy).sum(axis=2)
    return spent.sum(axis=2), -mass, visits, np.exp(greedy - mass[:, :, None])


@given(seeds, st.sampled_from([0.01, 0.12, 1.0]))
def test_the_per_state_ball_is_filled_unless_the_greedy_point_lies_inside(seed: int, radius: float) -> None:
    problem = random_problem(np.random.default_rng(seed))
    learner = learners.TrustRegion(problem.mdp(), eta=np.inf, radius=radius)
    for t in range(len(problem.losses)):
        spent, needed, _, limit = greedy_ball(problem, learner, t)
        inside = needed <= radius
        np.testing.assert_allclose(spent[~inside], radius, rtol=1e-7)
        np.testing.assert_allclose(learner.act(t + 1)[inside], limit[inside], atol=1e-9)


@given(seeds, st.sampled_from(["average", "trajectory"]))
def test_the_weighted_ball_is_filled_unless_everything_is_greedy(seed: int, kind: Any) -> None:
    problem = random_problem(np.random.default_rng(seed))
    learner = learners.TrustRegion(problem.mdp(), eta=np.inf, kind=kind)
    for t in range(len(problem.losses)):
        spent, needed, visits, _ = greedy_ball(problem, learner, t)
        weights = visits / problem.shape[0] if kind == "average" else visits
        used = (weights * spent).sum()
        assert used == pytest.approx(min(0.12, (weights * needed).sum()), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("kind", ["per state", "average", "trajectory"])
@pytest.mark.parametrize("seed", SOLVED_SEEDS)
def test_the_other_direction_fills_its_ball_along_the_natural_gradient(seed: int, kind: Any) -> None:
    """π' ∝ π exp(−x Q), x as large as KL(π ‖ π') ≤ α allows: found again by bisection of the definition."""
    problem = larger_problem(seed, rounds=2)
    losses = problem.losses + np.random.default_rng(seed).uniform(0, 0.1, problem.losses.shape)
    learner = learners.TrustRegion(problem.mdp(), np.inf, kind=kind, direction="old from new")
    played = plays(learner, losses)
    for before, loss, after in zip(played, losses, played[1:], strict=False):
        q = q_values(problem, before, loss)
        weights = np.ones(problem.shape[:2]) if kind == "per state" else weights_of(problem, before, kind)
        spent = divergences(before, after)
        used = spent if kind == "per state" else (weights * spent).sum()
        assert np.max(used) <= 0.12 * (1 + 1e-9)

        def moved(x: np.ndarray, before: np.ndarray = before, q: np.ndarray = q) -> np.ndarray:
            logs = np.log(before) - x[:, :, None] * q
            return np.exp(logs - logsumexp(logs, axis=2, keepdims=True))

        low, high = np.zeros(problem.shape[:2]), np.full(problem.shape[:2], 1e4)
        for _ in range(100):
            middle = (low + high) / 2
            there = np.where(
                weights > 0, divergences(before, moved(middle)), 0.0
            )  # unvisited, it may be infinite
            within = there <= 0.12 if kind == "per state" else (weights * there).sum() <= 0.12
            low, high = np.where(within, middle, low), np.where(within, high, middle)
        np.testing.assert_allclose(after, moved(low), atol=1e-7)


def test_the_direction_matters() -> None:
    """An action given up costs KL(new ‖ old) only log(1/p), and KL(old ‖ new) everything."""
    arms, loss = nf.MDP([[0, 0]], 0, horizon=1), np.array([[[0.0, 1.0]]])
    forward, backward = (
        learners.TrustRegion(arms, np.inf, radius=0.8, direction=way)  # type: ignore[arg-type]
        for way in ("new from old", "old from new")
    )
    for learner in (forward, backward):
        learner.observe(0, loss)
    np.testing.assert_allclose(forward.act(1)[0, 0], [1.0, 0.0])  # log 2 < 0.8: greedy at once
    chance = backward.act(1)[0, 0, 1]
    assert divergences(np.array([0.5, 0.5]), np.array([1 - chance, chance])) == pytest.approx(0.8)
