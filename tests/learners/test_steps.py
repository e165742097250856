"""The learners' steps against their definitions: a convex solver, enumeration, closed forms."""

from __future__ import annotations

import contextlib
import warnings
from fractions import Fraction
from itertools import combinations, pairwise, product
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import exact_values
from problems import Problem, random_problem
from scipy.special import logsumexp, rel_entr, softmax

import normalfan as nf
from normalfan import learners
from normalfan.learners.oreps import project_onto_occupancies

seeds = st.integers(0, 2**32 - 1)
SOLVED_SEEDS = range(6)  # a convex program each: a few are enough, and quick


def solved(objective: Any, constraints: list[Any], gap: float = 1e-14) -> float:
    """The least value; a minimiser is known to about the root of the gap, so the default asks for more
    than the solver may reach, and takes what comes near. Where it gives up altogether, which depends on the
    processor, it is asked for less.
    """
    problem = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        for asked in (gap, 1e2 * gap):
            with contextlib.suppress(cp.error.SolverError):
                problem.solve(solver=cp.CLARABEL, **_accuracy(asked))
                break
    assert problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
    return float(problem.value)


def _accuracy(gap: float) -> dict[str, float]:
    wanted = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
    return dict.fromkeys(wanted, gap) | dict.fromkeys((f"reduced_{name}" for name in wanted), 1e3 * gap)


def expected_successor(problem: Problem, values: np.ndarray, h: int, s: int, a: int) -> float:
    return sum(float(p) * values[j] for j, p in problem.probability(h, s, a).items())


def q_values(problem: Problem, policy: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """Q^π by the definition, entry by entry."""
    q, values = np.zeros(problem.shape), np.zeros(problem.shape[1])
    for h in reversed(range(problem.shape[0])):
        for s, a in np.ndindex(*problem.shape[1:]):
            q[h, s, a] = loss[h, s, a] + expected_successor(problem, values, h, s, a)
        values = np.array([policy[h, s] @ q[h, s] for s in range(problem.shape[1])])
    return q


def entropic_minimiser(policy: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Argmin over policies of Σ_{h,s} ⟨π', c⟩ + KL(π' ‖ π)."""
    before, cost = (x.reshape(-1, x.shape[-1]) for x in (policy, costs))
    after = cp.Variable(before.shape)
    objective = cp.sum(cp.multiply(cost, after)) + cp.sum(cp.rel_entr(after, before))
    solved(objective, [cp.sum(after, axis=1) == 1])
    return np.asarray(after.value).reshape(policy.shape)


def larger_problem(seed: int, rounds: int = 3) -> Problem:
    """A random problem in which there is something to choose."""
    rng = np.random.default_rng(seed)
    while True:
        problem = random_problem(rng, rounds=rounds)
        if problem.shape[2] > 1 and (problem.shape[0] > 1 or problem.shape[1] > 1):
            return problem


def bandit(arms: int) -> nf.MDP:
    return nf.MDP(np.zeros((1, arms), dtype=int), 0, horizon=1)


def plays(learner: Any, losses: np.ndarray) -> np.ndarray:
    """[T+1, H, S, A]: every play, and the one after the last loss."""
    seen = []
    for t, loss in enumerate(losses):
        seen.append(learner.act(t))
        learner.observe(t, loss)
    return np.array([*seen, learner.act(len(losses))])


@given(seeds)
def test_policy_backup_is_the_definition_and_agrees_with_the_occupancy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, rounds=1)
    policy = rng.dirichlet(np.ones(problem.shape[2]), size=problem.shape[:2])
    for kind in problem.kinds():
        mdp = problem.mdp(kind)
        backup = learners.policy_backup(mdp, policy, problem.losses[0])
        np.testing.assert_allclose(backup.q, q_values(problem, policy, problem.losses[0]), atol=1e-12)
        paid = (nf.occupancy(mdp, policy) * problem.losses[0]).sum()
        assert backup.value(mdp) == pytest.approx(paid, abs=1e-12)


@given(seeds, st.floats(0.01, 5.0))
def test_hedge_is_the_softmax_of_the_summed_losses(seed: int, eta: float) -> None:
    losses = np.random.default_rng(seed).normal(size=(20, 1, 1, 5))
    sums = np.concatenate([np.zeros((1, 1, 1, 5)), losses.cumsum(axis=0)])
    mdp = bandit(5)
    np.testing.assert_allclose(
        plays(learners.Hedge(mdp, eta), losses), softmax(-eta * sums, axis=-1), rtol=1e-9
    )
    last = np.concatenate([np.zeros((1, 1, 1, 5)), losses])
    np.testing.assert_allclose(
        plays(learners.OptimisticHedge(mdp, eta), losses), softmax(-eta * (sums + last), axis=-1), rtol=1e-9
    )


def test_a_schedule_weighs_each_loss_by_its_own_round() -> None:
    losses = np.random.default_rng(0).normal(size=(9, 1, 1, 4))
    etas = 1 / np.sqrt(1 + np.arange(9.0))
    learner = learners.Hedge(bandit(4), lambda t: float(etas[t]))
    weighed = (etas[:, None, None, None] * losses).sum(axis=0)
    np.testing.assert_allclose(plays(learner, losses)[-1], softmax(-weighed, axis=-1), rtol=1e-12)


@given(seeds, st.integers(1, 3), st.integers(0, 5), st.floats(0.0, 0.9))
def test_fixed_share_is_hedge_over_all_sequences_of_actions(
    seed: int, arms: int, rounds: int, share: float
) -> None:
    losses = np.random.default_rng(seed).normal(size=(rounds, arms))
    switch = (1 - share) * np.eye(arms) + share / arms
    weights = np.zeros(arms)
    for sequence in product(range(arms), repeat=rounds + 1):
        cost = sum(losses[t, sequence[t]] for t in range(rounds))
        prior = np.prod([switch[i, j] for i, j in pairwise(sequence)])
        weights[sequence[-1]] += prior * np.exp(-0.7 * cost)
    learner = learners.FixedShare(bandit(arms), eta=0.7, share=share)
    played = plays(learner, losses.reshape(rounds, 1, 1, arms))[-1].ravel()
    np.testing.assert_allclose(played, weights / weights.sum(), rtol=1e-9)


def nearest_by_enumeration(point: list[float]) -> list[Fraction]:
    """The nearest distribution among those nearest with a given support, in rationals."""
    y = [Fraction(number) for number in point]
    candidates = []
    for size in range(1, len(y) + 1):
        for support in combinations(range(len(y)), size):
            shift = (1 - sum(y[i] for i in support)) / size
            x = [y[i] + shift if i in support else Fraction(0) for i in range(len(y))]
            if min(x) >= 0:
                candidates.append(x)
    return min(candidates, key=lambda x: sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=6))
def test_projection_onto_the_simplex_by_enumeration(point: list[float]) -> None:
    expected = [float(x) for x in nearest_by_enumeration(point)]
    np.testing.assert_allclose(learners.project_onto_simplex(np.array(point)), expected, atol=1e-12)


@pytest.mark.parametrize("seed", SOLVED_SEEDS)
def test_the_euclidean_step_solves_its_program(seed: int) -> None:
    losses = np.random.default_rng(seed).normal(size=(4, 1, 1, 7))
    played = plays(learners.EuclideanMirrorDescent(bandit(7), eta=0.3), losses)[:, 0, 0]
    after = cp.Variable(7)
    objective = 0.3 * losses[-1].ravel() @ after + cp.sum_squares(after - played[-2]) / 2
    solved(objective, [cp.sum(after) == 1, after >= 0])
    np.testing.assert_allclose(played[-1], after.value, atol=1e-6)


@pytest.mark.parametrize("seed", SOLVED_SEEDS)
def test_mirror_descent_solves_its_program(seed: int) -> None:
    problem = larger_problem(seed)
    played = plays(learners.MirrorDescent(problem.mdp(), eta=0.6), problem.losses)
    for before, loss, after in zip(played, problem.losses, played[1:], strict=False):
        expected = entropic_minimiser(before, 0.6 * q_values(problem, before, loss))
        np.testing.assert_allclose(after, expected, atol=1e-6)


@pytest.mark.parametrize("seed", SOLVED_SEEDS)
def test_optimistic_mirror_descent_solves_its_two_programs(seed: int) -> None:
    problem = larger_problem(seed)
    model = problem.losses[::-1].copy()  # wrong on purpose, and different in every round
    learner = learners.OptimisticMirrorDescent(problem.mdp(), 0.6, model=lambda past: model[len(past) - 1])
    played = plays(learner, problem.losses)
    secondary = np.full(problem.shape, 1 / problem.shape[2])
    np.testing.assert_allclose(played[0], secondary, rtol=1e-15)
    for t, loss in enumerate(problem.losses):
        secondary = entropic_minimiser(secondary, 0.6 * q_values(problem, played[t], loss))
        ahead = entropic_minimiser(secondary, 0.6 * q_values(problem, secondary, model[t]))
        np.testing.assert_allclose(played[t + 1], ahead, atol=1e-6)


def exact_advantages(problem: Problem, loss: np.ndarray) -> np.ndarray:
    values, _ = exact_values(problem, loss)
    advantages = np.empty(problem.shape, dtype=object)
    for h, s, a in np.ndindex(*problem.shape):
        ahead = sum(p * values[h + 1][j] for j, p in problem.probability(h, s, a).items())
        advantages[h, s, a] = int(loss[h, s, a]) + ahead - values[h][s]
    return advantages


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("seed", SOLVED_SEEDS)
def test_the_thresholded_step_solves_its_program(seed: int, inside: bool) -> None:
    problem = larger_problem(seed)
    learner = learners.ThresholdedMirrorDescent(
        problem.mdp(), eta=0.6, threshold=1.0, penalty=0.7, penalty_inside_step=inside
    )
    played = plays(learner, problem.losses)
    charge = 0.6 * 0.7 if inside else 0.7
    for before, loss, after in zip(played, problem.losses, played[1:], strict=False):
        outside = exact_advantages(problem, loss) > 1  # ties with the threshold decided in rationals
        cost = 0.6 * q_values(problem, before, loss) + charge * outside
        np.testing.assert_allclose(after, entropic_minimiser(before, cost), atol=1e-6)


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
    before, policy, loss = learner._logs, learner.act(t), problem.losses[t]
    learner.observe(t, loss)
    after = learner._logs
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


@pytest.mark.parametrize("seed", SOLVED_SEEDS)
def test_oreps_solves_its_program(seed: int) -> None:
    problem = larger_problem(seed)
    mdp = problem.mdp()
    visits = [nf.occupancy(mdp, play) for play in plays(learners.OReps(mdp, eta=0.6), problem.losses)]
    for before, loss, after in zip(visits, problem.losses, visits[1:], strict=False):
        possible = before > 0
        q = [cp.Variable(problem.shape[1:], nonneg=True) for _ in range(problem.shape[0])]
        flat = cp.hstack([cp.vec(layer, order="C") for layer in q])[possible.ravel().nonzero()[0]]
        constraints = [cp.sum(q[0], axis=1) == problem.start / problem.start.sum()]
        for h in range(problem.shape[0] - 1):
            kernel = problem.counts[h] / problem.counts[h].sum(axis=-1, keepdims=True)
            arriving = kernel.reshape(-1, problem.shape[1]).T @ cp.vec(q[h], order="C")
            constraints.append(cp.sum(q[h + 1], axis=1) == arriving)
        solved(0.6 * loss[possible] @ flat + cp.sum(cp.kl_div(flat, before[possible])), constraints)
        expected = np.array([layer.value for layer in q])
        np.testing.assert_allclose(after, np.where(possible, expected, 0), atol=1e-6)


@settings(max_examples=50)
@given(seeds, st.floats(0.01, 30.0))
def test_the_oreps_projection_is_a_flow_and_is_stationary(seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, rounds=1)
    mdp = problem.mdp()
    logs = rng.normal(scale=spread, size=problem.shape)
    projected = project_onto_occupancies(mdp, logs)
    q = np.exp(projected)
    assert nf.whole_polytope(mdp).contains(q, tolerance=1e-9)
    # The gradient log(q/p) of the divergence is worth the same to every policy.
    gradient = np.where(np.isfinite(projected), projected - logs, 0.0)
    policies = rng.dirichlet(np.ones(problem.shape[2]), size=(4, *problem.shape[:2]))
    worth = [(nf.occupancy(mdp, policy) * gradient).sum() for policy in policies]
    np.testing.assert_allclose(worth, worth[0], atol=1e-9 * (1 + np.abs(gradient).max()))


@given(seeds)
def test_on_one_state_they_are_all_hedge(seed: int) -> None:
    losses = np.random.default_rng(seed).normal(size=(12, 1, 1, 4))
    mdp = bandit(4)
    hedge = plays(learners.Hedge(mdp), losses)
    for other in (learners.MirrorDescent(mdp), learners.FixedShare(mdp, share=0.0), learners.OReps(mdp)):
        np.testing.assert_allclose(plays(other, losses), hedge, rtol=1e-8)
    optimistic = plays(learners.OptimisticHedge(mdp), losses)
    np.testing.assert_allclose(plays(learners.OptimisticMirrorDescent(mdp), losses), optimistic, rtol=1e-12)
    assert not np.allclose(optimistic, hedge)
    floored = plays(learners.Hedge(mdp, floor=0.05), losses)
    np.testing.assert_allclose(plays(learners.FixedShare(mdp, share=0.2), losses), floored, rtol=1e-12)


@given(seeds)
def test_separable_losses_make_mirror_descent_one_hedge_per_layer(seed: int) -> None:
    problem = random_problem(np.random.default_rng(seed))
    layers = problem.losses[:, :, :1, :].astype(float)  # the same in all states of a step
    losses = np.broadcast_to(layers, problem.losses.shape)
    played = plays(learners.MirrorDescent(problem.mdp()), losses)
    for h in range(problem.shape[0]):
        hedge = plays(learners.Hedge(bandit(problem.shape[2])), layers[:, h : h + 1])
        np.testing.assert_allclose(played[:, h], np.broadcast_to(hedge[:, 0], played[:, h].shape), atol=1e-12)


@given(seeds)
def test_limits_in_which_the_others_are_mirror_descent(seed: int) -> None:
    problem = random_problem(np.random.default_rng(seed))
    mdp = problem.mdp()
    plain = plays(learners.MirrorDescent(mdp), problem.losses)
    for same in (
        learners.ThresholdedMirrorDescent(mdp, threshold=np.inf),
        learners.ThresholdedMirrorDescent(mdp, penalty=0.0),
        learners.TrustRegion(mdp, eta=0.3, radius=np.inf),
    ):
        np.testing.assert_allclose(plays(same, problem.losses), plain, atol=1e-11)
