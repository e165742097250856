"""Any plan: older ones, the first one, a forecast's, a policy, against exact rationals and the definition."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracles import exact_mask, exact_price, exact_value
from problems import Problem, random_problem
from sentences import check_refusal
from soaking import repeated

import normalfan as nf
from normalfan.problem.losses import Negated
from normalfan_paper.linear_program import LP_TOLERANCE, lp_price

ARMS = nf.MDP([[0, 0, 0]], initial=0, horizon=1)
SEEDS = range(repeated(4, 12))
PROBLEMS = 25


def exact_policy_value(problem: Problem, weights: np.ndarray, loss: np.ndarray) -> Fraction:
    """J of the policy with these integer weights [H, S, A], forward, in rationals."""
    total, reached = Fraction(0), problem.initial()
    for h in range(problem.shape[0]):
        ahead: dict[int, Fraction] = {}
        for s, mass in reached.items():
            for a, weight in enumerate(weights[h, s].tolist()):
                part = mass * Fraction(weight, int(weights[h, s].sum()))
                total += part * int(loss[h, s, a])
                for j, p in problem.probability(h, s, a).items():
                    ahead[j] = ahead.get(j, Fraction(0)) + part * p
        reached = {s: mass for s, mass in ahead.items() if mass}
    return total


@pytest.mark.parametrize("seed", SEEDS)
def test_older_plans_agree_with_exact_rationals(seed: int) -> None:
    rng = np.random.default_rng([seed, 71])
    priced = free = 0
    for _ in range(PROBLEMS):
        problem = random_problem(rng, rounds=6)
        mdp = problem.mdp(str(rng.choice(problem.kinds())))
        values = nf.price_stream(mdp, problem.losses).values
        for against, planless, age in ((2, 2, 2), (4, 4, 4), ("first", 1, None)):
            motion = nf.price_stream(mdp, problem.losses, against=against)
            np.testing.assert_array_equal(motion.values, values)
            assert motion.plans.planless == planless
            assert not motion.prices[:planless].any()
            assert not motion.crossed[:planless].any()
            for t in range(planless, 6):
                old = problem.losses[t - age if age else 0]
                expected = exact_price(problem, old, problem.losses[t])
                assert motion.prices[t] == pytest.approx(float(expected), rel=1e-12, abs=0)
                assert motion.by_step[t].sum() == pytest.approx(float(expected), rel=1e-12, abs=0)
                masks = exact_mask(problem, old), exact_mask(problem, problem.losses[t])
                assert motion.crossed[t] == (masks[0] != masks[1]).any()
                assert motion.variation()[t] == np.abs(problem.losses[t] - old).sum()
                priced, free = priced + (expected > 0), free + (expected == 0)
    assert min(priced, free) > 50


@pytest.mark.parametrize("seed", SEEDS)
def test_forecasts_agree_with_linear_programs(seed: int) -> None:
    rng = np.random.default_rng([seed, 72])
    for _ in range(PROBLEMS):
        problem = random_problem(rng, rounds=4)
        mdp, losses = problem.mdp(), problem.losses.astype(float)
        forecasts = losses + rng.integers(-1, 2, losses.shape)
        prices = nf.price_stream(mdp, losses, against=forecasts).prices
        for t in range(4):
            by_definition = lp_price(mdp, forecasts[t], losses[t])
            assert prices[t] == pytest.approx(by_definition, abs=LP_TOLERANCE)
        assert not nf.price_stream(mdp, losses, against=losses).prices.any()  # a perfect forecast is free


@pytest.mark.parametrize("seed", SEEDS)
def test_policies_agree_with_exact_rationals_and_with_their_face(seed: int) -> None:
    rng = np.random.default_rng([seed, 73])
    priced = optimal = 0
    for _ in range(PROBLEMS):
        problem = random_problem(rng, rounds=3)
        mdp = problem.mdp(str(rng.choice(problem.kinds())))
        weights = rng.integers(0, 3, problem.shape)
        weights[~weights.any(axis=2), 0] = 1
        policy = weights / weights.sum(axis=2, keepdims=True)
        motion = nf.price_stream(mdp, problem.losses, against=policy)
        for t, loss in enumerate(problem.losses):
            expected = exact_policy_value(problem, weights, loss) - exact_value(problem, loss)
            assert motion.prices[t] == pytest.approx(float(expected), rel=1e-12, abs=0)
            assert motion.by_step[t].sum() == pytest.approx(float(expected), rel=1e-12, abs=0)
            assert motion.crossed[t] == (expected > 0)
            assert motion.lowest_prices[t] <= float(expected) * (1 + 1e-15)
            assert motion.highest_prices[t] >= float(expected) * (1 - 1e-15)
            priced, optimal = priced + (expected > 0), optimal + (expected == 0)
        # One action everywhere is the face of the loss that is 0 there and 1 elsewhere.
        actions = weights.argmax(axis=2)
        surrogate = (actions[:, :, None] != np.arange(mdp.n_actions)).astype(float)
        by_face = nf.price_stream(mdp, problem.losses, against=np.stack([surrogate] * 3))
        by_actions = nf.price_stream(mdp, problem.losses, against=actions)
        np.testing.assert_allclose(by_actions.prices, by_face.prices, rtol=1e-12, atol=0)
        np.testing.assert_allclose(by_actions.by_step, by_face.by_step, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(by_actions.cell_prices, by_face.cell_prices, rtol=1e-12, atol=0)
        np.testing.assert_array_equal(by_actions.variations, nf.price_stream(mdp, problem.losses).variations)
    assert min(priced, optimal) > 10


def test_one_round_before_is_the_default_to_the_bit(rng: np.random.Generator) -> None:
    problem = random_problem(rng, rounds=6)
    mdp, losses = problem.mdp(), problem.losses.astype(float)
    default = nf.price_stream(mdp, losses)
    before = losses[np.maximum(np.arange(6) - 1, 0)]
    for against in (1, np.int64(1), "previous", before, nf.IterableLosses(before), nf.ArrayLosses(before)):
        motion = nf.price_stream(mdp, losses, against=against)
        for name, column in default.columns().items():
            np.testing.assert_array_equal(motion.columns()[name], column, err_msg=name)


@pytest.mark.parametrize("against", [3, "first", "forecasts", "policy"])
def test_blocks_threads_and_sources_do_not_matter(against: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    mdp = nf.MDP(rng.dirichlet(np.ones(4), (4, 3)), 0, horizon=3)
    losses = rng.integers(0, 3, (40, *mdp.shape)).astype(float)
    chosen = {"forecasts": losses[::-1], "policy": rng.dirichlet(np.ones(3), (3, 4))}.get(against, against)
    whole = nf.price_stream(mdp, losses, against=chosen)
    monkeypatch.setattr("normalfan.pricing.stream.block_rounds", lambda *_, **__: 7)
    for source, threads in ((losses, 1), (losses, 3), (iter(losses), 1)):
        parts = nf.price_stream(mdp, source, against=chosen, threads=threads)
        for name, column in whole.columns().items():
            np.testing.assert_array_equal(parts.columns()[name], column, err_msg=name)
    quick = nf.price_stream(mdp, losses, against=chosen, detail="prices")
    np.testing.assert_array_equal(quick.prices, whole.prices)


def test_an_optimal_policy_is_free_and_a_near_tie_is_told() -> None:
    losses = np.array([[0.1 + 0.2, 0.3, 1.0], [1.0, 1.0, 2.0]]).reshape(2, 1, 1, 3)
    motion = nf.price_stream(ARMS, losses, against=[[0]])
    assert motion.prices.tolist() == [0.0, 0.0]
    assert motion.ambiguous.tolist() == [True, False]
    assert motion.highest_prices[0] > 0
    exact = nf.price_stream(ARMS, losses, against=[[0]], exact_when_ambiguous=True)
    assert exact.prices[0] == 0.1 + 0.2 - 0.3
    assert exact.decided_exactly.tolist() == [True, False]


def test_the_words_fit() -> None:
    losses = np.zeros((3, 1, 1, 3))
    names = {
        "previous": "the plan of the round before",
        2: "the plan of 2 rounds before",
        "first": "the plan of the first round",
    }
    for against, name in names.items():
        assert nf.price_stream(ARMS, losses, against=against).plans.name == name
    assert nf.price_stream(ARMS, losses, against=losses).plans.name == "the forecast's plan"
    assert nf.price_stream(ARMS, losses, against=[[0]]).plans.name == "your plan"


CORRIDOR = nf.MDP([[0, 1], [1, 1]], 0, horizon=2, labels=nf.Labels(states=("near", "far")))


def test_actions_are_needed_only_where_the_plan_can_be() -> None:
    losses = np.arange(8.0).reshape(1, 2, 2, 2)
    assert nf.price_stream(CORRIDOR, losses, against=[[0, -1], [1, -1]]).prices.tolist() == [1.0]
    check_refusal(lambda: nf.price_stream(CORRIDOR, losses, against=[[1, 0], [0, -1]]), "state far at step 1")


@pytest.mark.parametrize(
    ("against", "where"),
    [
        ("next", "against is 'next'"),
        (0, "against is 0"),
        (True, "against is True"),
        (2.5, "against is 2.5"),
        ([[0, 1]], "against has shape [1, 2]"),
        ([[3]], "against[0, 0] is 3"),
        ([[0.5]], "against[0, 0] is 0.5"),
        ([[[0.5, 0.4, 0.0]]], "policy"),
        (np.zeros((2, 1, 1, 2)), "against has shape"),
        (np.zeros((3, 1, 1, 3)), "the forecasts have 3 rounds"),
        ((np.zeros((1, 1, 3)) for _ in range(1)), "the forecasts end before round 1"),
        ((np.zeros((1, 1, 3)) for _ in range(3)), "the forecasts go on after round 1"),
        (np.array([0, 0, 0, 0, np.nan, 0]).reshape(2, 1, 1, 3), "forecasts[1, 0, 0, 1] is nan"),
        (nf.rewards(np.zeros((2, 1, 1, 3))), "the forecasts are rewards"),
        (nf.ArrayLosses(np.zeros((2, 1, 1, 3)), round_names=["tue", "mon"]), "called 'tue'"),
    ],
)
def test_what_is_no_plan_is_refused(against: Any, where: str) -> None:
    losses = nf.ArrayLosses(np.zeros((2, 1, 1, 3)), round_names=["mon", "tue"])
    check_refusal(lambda: nf.price_stream(ARMS, losses, against=against), where)


def test_bad_losses_are_named_by_their_round() -> None:
    losses = np.zeros((5, 1, 1, 3))
    losses[3, 0, 0, 1] = np.nan
    check_refusal(lambda: nf.price_stream(ARMS, losses, against="first"), "losses[3, 0, 0, 1]")
    losses[3, 0, 0, 1] = 1.7e308
    check_refusal(lambda: nf.price_stream(ARMS, losses, against=-losses), "losses of rounds 0 to 4")


def test_rewards_are_priced_as_rewards(rng: np.random.Generator) -> None:
    problem = random_problem(rng, rounds=5)
    mdp, losses = problem.mdp(), problem.losses.astype(float)
    for against, turned in (
        (2, 2),
        ("first", "first"),
        (losses[::-1], Negated(nf.ArrayLosses(-losses[::-1]))),
    ):
        lost = nf.price_stream(mdp, losses, against=against)
        earned = nf.price_stream(mdp, nf.rewards(-losses), against=turned)
        np.testing.assert_array_equal(lost.prices, earned.prices)
        np.testing.assert_array_equal(lost.values, -earned.values)
        np.testing.assert_array_equal(lost.kept_values, -earned.kept_values)
        assert (lost.rewards, earned.rewards) == (False, True)
