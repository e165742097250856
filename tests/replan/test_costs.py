"""Holding costs against prices of streams, exact rationals, and each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from oracles import exact_mask, exact_restricted_value, exact_value
from problems import Problem, random_problem
from sentences import check_refusal

import normalfan as nf
from normalfan import replan
from normalfan.battery import Battery, ercot_prices
from normalfan.geometry.bellman import optimal_backup


def lowest_optimal_policy(problem: Problem, loss: np.ndarray) -> np.ndarray:
    """The mask [H, S, A] that keeps the lowest of the optimal actions only."""
    mask = exact_mask(problem, loss)
    first = np.zeros_like(mask)
    for h, s in np.argwhere(mask.any(axis=2)):
        first[h, s, np.flatnonzero(mask[h, s])[0]] = True
    return first


def in_rationals(
    problem: Problem, losses: np.ndarray, planned: np.ndarray, *, one_policy: bool
) -> np.ndarray:
    costs = np.full((len(losses), len(losses)), np.nan)
    for j, loss in enumerate(planned):
        mask = lowest_optimal_policy(problem, loss) if one_policy else exact_mask(problem, loss)
        for t in range(j, len(losses)):
            held = exact_restricted_value(problem, mask, losses[t])
            costs[j, t] = float(held - exact_value(problem, losses[t]))
    return costs


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("reading", ["plan", "face"])
def test_costs_in_rationals(seed: int, reading: str) -> None:
    problem = random_problem(np.random.default_rng(seed))
    expected = in_rationals(problem, problem.losses, problem.losses, one_policy=reading == "plan")
    for kind in problem.kinds():
        costs = replan.holding_costs(problem.mdp(kind), problem.losses, reading=reading).costs
        np.testing.assert_allclose(costs, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("reading", ["plan", "face"])
def test_plans_for_means_in_rationals(seed: int, reading: str) -> None:
    # Two days' losses, doubled: sums stand for means and stay integers.
    problem = random_problem(np.random.default_rng(1000 + seed), rounds=5)
    losses = problem.losses
    planned = np.concatenate([losses[:1], losses[1:] + losses[:-1]])
    expected = in_rationals(problem, losses, planned, one_policy=reading == "plan")
    costs = replan.holding_costs(problem.mdp(), losses, window=2, reading=reading).costs
    np.testing.assert_allclose(costs, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(25))
def test_yesterdays_face_costs_the_price_of_the_stream(seed: int) -> None:
    problem = random_problem(np.random.default_rng(2000 + seed))
    mdp, losses = problem.mdp(), problem.losses
    prices = nf.price_stream(mdp, losses).prices
    costs = replan.holding_costs(mdp, losses, reading="face").costs
    np.testing.assert_array_equal(np.diag(costs, 1), prices[1:])
    np.testing.assert_array_equal(np.diag(costs), 0)


@pytest.mark.parametrize("seed", range(25))
def test_a_plan_costs_no_less_than_its_face_and_as_much_on_a_vertex(seed: int) -> None:
    problem = random_problem(np.random.default_rng(3000 + seed))
    mdp = problem.mdp()
    plan = replan.holding_costs(mdp, problem.losses).costs
    face = replan.holding_costs(mdp, problem.losses, reading="face").costs
    later = np.triu(np.ones_like(plan, dtype=bool))
    assert (plan[later] >= face[later] - 1e-12).all()
    for j, loss in enumerate(problem.losses):
        if nf.optimal_face(mdp, loss).is_vertex:
            np.testing.assert_allclose(plan[j, j:], face[j, j:], atol=1e-12)


def test_some_plans_cost_more_than_their_face() -> None:
    """Two tied arms, of which the plan takes the first; then the second is better."""
    arms = nf.MDP(np.array([[0, 0]]), initial=0, horizon=1)
    losses = np.array([[0.0, 0.0], [1.0, 0.0]]).reshape(2, 1, 1, 2)
    assert replan.holding_costs(arms, losses).costs[0, 1] == 1.0
    assert replan.holding_costs(arms, losses, reading="face").costs[0, 1] == 0.0


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("are_rewards", [False, True])
def test_exposures_and_products_agree(window: int, are_rewards: bool, rng: np.random.Generator) -> None:
    for _ in range(10):
        problem = random_problem(rng)
        features = rng.normal(size=(3, *problem.shape))
        theta = rng.normal(size=(6, 3))
        factored = nf.FactoredLosses(theta, features)
        whole = np.einsum("tk,khsa->thsa", theta, features)
        mdp = problem.mdp()
        by_exposures = replan.holding_costs(
            mdp, nf.rewards(factored) if are_rewards else factored, window=window
        )
        by_products = replan.holding_costs(mdp, -whole if are_rewards else whole, window=window)
        np.testing.assert_allclose(by_exposures.costs, by_products.costs, atol=1e-12)
        sign = -1 if are_rewards else 1  # rewards stay rewards
        np.testing.assert_allclose(by_exposures.values, sign * by_products.values, atol=1e-12)


def test_a_fortnight_of_the_battery() -> None:
    """Charging what is full and resting are the same: the plan costs what its face does."""
    battery, days = Battery(), ercot_prices().prices[38:52]
    mdp, losses = battery.mdp(), battery.losses(days)
    plan = replan.holding_costs(mdp, losses)
    face = replan.holding_costs(mdp, losses, reading="face")
    gap = plan.costs - face.costs
    assert np.nanmin(gap) >= -1e-6
    assert (np.diag(plan.costs) == 0).all()
    assert np.median(gap[np.triu_indices(14)]) == pytest.approx(0, abs=1e-6)


def test_blocks_and_iterators_change_nothing(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    mdp = nf.MDP(rng.integers(0, 4, size=(3, 4, 2)), initial=0)
    losses = rng.normal(size=(7, *mdp.shape))
    whole = replan.holding_costs(mdp, losses, window=2)
    assert np.count_nonzero(whole.costs > 0) > 5
    iterated = replan.holding_costs(mdp, iter(losses), window=2)
    np.testing.assert_array_equal(whole.costs, iterated.costs)
    monkeypatch.setattr("normalfan.replan.costs.BLOCK_BYTES", 2 * losses[0].nbytes)
    np.testing.assert_allclose(replan.holding_costs(mdp, losses, window=2).costs, whole.costs, atol=1e-15)


@pytest.mark.parametrize("window", [1, 2])
def test_losses_known_after_serve_a_day_later(window: int, rng: np.random.Generator) -> None:
    arms = nf.MDP(np.array([[0, 0, 0]]), initial=0, horizon=1)
    losses = nf.ArrayLosses(rng.random((6, 1, 1, 3)), round_names=list("abcdef"))
    before = replan.holding_costs(arms, losses, window=window)
    after = replan.holding_costs(arms, losses, window=window, known="after")
    assert (after.first_round, after.n_days) == (1, 5)
    for d in range(5):
        np.testing.assert_array_equal(after.costs[d, d:], before.costs[d, d + 1 :])
        assert np.isnan(after.costs[d, :d]).all()
    assert (np.diag(after.costs) > 0).any()
    np.testing.assert_array_equal(after.values, before.values[1:])
    assert after.learned_after() is after
    assert (before.day_name(1), after.day_name(1)) == ("b", "c")


def test_days_without_names_go_by_the_number_of_their_round() -> None:
    before = replan.holding_costs(ARMS, DAYS)
    assert (before.day_name(1), before.learned_after().day_name(1)) == ("1", "2")


ARMS = nf.MDP(np.array([[0, 0]]), initial=0, horizon=1)
DAYS = np.zeros((3, 1, 1, 2))


@pytest.mark.parametrize(
    ("provoke", "where"),
    [
        (lambda: replan.holding_costs(ARMS, DAYS, window=0), "window is 0"),
        (lambda: replan.holding_costs(ARMS, DAYS, window=1.5), "window is 1.5"),
        (lambda: replan.holding_costs(ARMS, DAYS, known="never"), "known is 'never'"),
        (lambda: replan.holding_costs(ARMS, DAYS, reading="tea"), "reading is 'tea'"),
        (lambda: replan.holding_costs(ARMS, DAYS[:1], known="after"), "1 round"),
        (lambda: replan.holding_costs(ARMS, DAYS[:0]), "no round"),
        (lambda: replan.holding_costs(ARMS, iter(())), "no round"),
        (lambda: replan.holding_costs(ARMS, np.full((3, 1, 1, 2), np.nan)), "losses[0, 0, 0, 0]"),
    ],
)
def test_refusals(provoke: Callable[[], object], where: str) -> None:
    check_refusal(provoke, where)


@pytest.mark.parametrize("seed", range(20))
def test_losses_backed_up_at_once_are_those_backed_up_one_by_one(seed: int) -> None:
    problem = random_problem(np.random.default_rng(4000 + seed))
    for kind in problem.kinds():
        mdp = problem.mdp(kind)
        several = optimal_backup(mdp, np.stack(problem.losses, axis=-1))
        tied = several.tied(mdp, nf.TieRule())
        for t, loss in enumerate(problem.losses):
            one = optimal_backup(mdp, loss)
            np.testing.assert_allclose(several.values[..., t], one.values, atol=1e-12)
            np.testing.assert_array_equal(tied[..., t], one.tied(mdp, nf.TieRule()))


def test_losses_that_overflow_are_refused_with_their_round() -> None:
    arms = nf.MDP(np.array([[0, 0]]), initial=0, horizon=2)
    losses = np.ones((3, 2, 1, 2))
    losses[1] = 1.7e308
    check_refusal(lambda: replan.holding_costs(arms, losses), "losses of round 1 add up beyond")
    losses[1] = np.nan
    check_refusal(lambda: replan.holding_costs(arms, losses), "losses[1, 0, 0, 0] is nan")


@pytest.mark.parametrize("reading", ["plan", "face"])
def test_a_mean_that_leaves_no_action_is_refused_with_its_days(reading: str) -> None:
    losses = np.array([[0.5, 0.2], [0.0, np.inf], [np.inf, 1.0]]).reshape(3, 1, 1, 2)
    assert replan.holding_costs(ARMS, losses, reading=reading).costs[0, 2] == 0.0
    check_refusal(
        lambda: replan.holding_costs(ARMS, losses, window=2, reading=reading),
        "the mean of losses[1] to losses[2] leaves no action at step 0, state 0",
    )


def test_rewards_are_called_rewards() -> None:
    earned = replan.holding_costs(ARMS, nf.rewards(DAYS + 1))
    assert repr(earned) == "HoldingCosts: 3 days, plans for the last day, rewards known before acting"
    assert earned.rewards
    assert earned.part(0, 2).rewards
    assert earned.learned_after().description.endswith("rewards known after acting")
    assert replan.holding_costs(ARMS, DAYS).description.endswith("losses known before acting")
