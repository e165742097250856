"""Libraries of plans against all subsets, and their bounds against the textbook's linear program."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from problems import random_problem
from scipy.optimize import linprog
from sentences import check_refusal
from soaking import repeated

import normalfan as nf
from normalfan import replan
from normalfan.replan.costs import costs_of_plans
from normalfan.replan.library import _runs
from normalfan.replan.median import medians


def least_cost(costs: np.ndarray, k: int) -> float:
    return min(costs[list(some)].min(axis=0).sum() for some in combinations(range(len(costs)), k))


def relaxed_cost(costs: np.ndarray, k: int) -> float:
    """The least ⟨C, x⟩ with Σ_j x_jt = 1, x_jt ≤ y_j, Σ_j y_j = k, by HiGHS, with all variables and rows."""
    m, n = costs.shape
    serves = np.hstack([np.tile(np.eye(n), m), np.zeros((n, m))])
    opened = np.hstack([np.eye(m * n), -np.repeat(np.eye(m), n, axis=0)])
    count = np.repeat([[0.0, 1.0]], [m * n, m], axis=1)
    solved = linprog(
        np.append(costs.reshape(-1), np.zeros(m)),
        A_ub=opened,
        b_ub=np.zeros(m * n),
        A_eq=np.vstack([serves, count]),
        b_eq=np.append(np.ones(n), k),
    )
    return float(solved.fun)


def random_costs(rng: np.random.Generator) -> np.ndarray:
    """Costs with ties, zeros, equal rows, heavy tails, or distances of points in a plane."""
    n = int(rng.integers(1, 11))
    kind = rng.integers(4)
    if kind == 0:
        return rng.integers(0, 4, size=(n, n)).astype(float)
    if kind == 1:
        return rng.exponential(size=(n, n)) * 10.0 ** rng.uniform(-3, 6, size=n)
    if kind == 2:
        points = rng.normal(size=(n, 2))
        return np.linalg.norm(points[:, None] - points, axis=2)
    return rng.random((n, n))[rng.integers(0, n, size=n)]


@pytest.mark.parametrize("seed", range(repeated(60, 150)))
def test_choices_against_all_subsets_and_bounds_against_the_whole_relaxation(seed: int) -> None:
    costs = random_costs(np.random.default_rng(seed))
    found = medians(costs, len(costs))
    for k, (chosen, bound) in enumerate(found, 1):
        least = least_cost(costs, k)
        assert len(set(chosen.tolist())) == k
        assert costs[chosen].min(axis=0).sum() == pytest.approx(least, rel=1e-9)
        relaxed = relaxed_cost(costs, k)
        assert bound <= least * (1 + 1e-12)
        # For k = 1 and where nothing is left to pay the bound is the cost itself.
        assert bound >= relaxed * (1 - 2e-4) - 1e-12
    if len(found) < len(costs):  # one more does not help
        assert costs[found[-1][0]].min(axis=0).sum() == pytest.approx(costs.min(axis=0).sum())


def test_a_bound_may_be_below_the_least_cost() -> None:
    """Twice three days, each free with two of three plans: six halves serve all, three plans do not."""
    costs = np.where(np.kron(np.eye(2), 1 - np.eye(3)) > 0, 0.0, 9.0)
    *_, (chosen, bound) = medians(costs, 3)
    assert costs[chosen].min(axis=0).sum() == least_cost(costs, 3) == 9.0
    assert bound == pytest.approx(relaxed_cost(costs, 3)) == 0.0


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("window", [1, 2])
def test_every_plan_may_serve_every_day(seed: int, window: int) -> None:
    """The costs on later days are the holding costs; on all days those of the plans' occupancies."""
    problem = random_problem(np.random.default_rng(seed))
    mdp, losses = problem.mdp(), problem.losses
    stream = nf.ArrayLosses(losses)
    costs, values = costs_of_plans(mdp, stream, window, nf.TieRule(), earlier=True, progress=False)
    held = replan.holding_costs(mdp, losses, window=window)
    np.testing.assert_array_equal(np.where(np.isnan(held.costs), np.nan, costs), held.costs)
    np.testing.assert_allclose(values, nf.price_stream(mdp, losses).values, atol=1e-12)
    backwards, _ = costs_of_plans(
        mdp, nf.ArrayLosses(losses[::-1]), 1, nf.TieRule(), earlier=True, progress=False
    )
    if window == 1:
        np.testing.assert_allclose(costs, backwards[::-1, ::-1], atol=1e-12)
    library = replan.plan_library(mdp, losses, most=3, window=window)
    for k, choice in enumerate(library.choices, 1):
        assert choice.cost == pytest.approx(least_cost(costs, k), abs=1e-12)
        assert choice.lower_bound <= choice.cost
        np.testing.assert_array_equal(choice.regrets, costs[choice.serving, range(len(costs))])
        assert set(choice.serving.tolist()) <= set(choice.days)
    assert library.first_plan_cost == pytest.approx(costs[0].sum())


def two_seasons(sign: float = -1.0) -> tuple[nf.MDP, nf.ArrayLosses]:
    """A year of days: in winter the first arm earns 10, else the second; at weekends the third."""
    days = np.arange(np.datetime64("2022-01-01"), np.datetime64("2023-01-01"))
    months = days.astype("datetime64[M]").astype(int) % 12 + 1
    weekday = (days.astype(int) + 3) % 7
    best = np.where(weekday >= 5, 2, np.where(np.isin(months, (11, 12, 1, 2)), 0, 1))
    rewards = np.zeros((len(days), 1, 1, 3))
    rewards[np.arange(len(days)), 0, 0, best] = 10.0
    losses = -rewards if sign < 0 else 20 - rewards
    mdp = nf.MDP(np.array([[0, 0, 0]]), initial=0, horizon=1)
    return mdp, nf.ArrayLosses(losses, round_names=days.astype(str).tolist())


def test_the_days_of_a_plan_are_told_in_words() -> None:
    library = replan.plan_library(*two_seasons(), most=5)
    assert len(library.choices) == 3  # a fourth does not help
    days_of_work = "100 % on Mondays to Fridays (71 % of all days are)"
    assert sorted(library.in_common().values()) == [
        "105 days; 100 % at weekends (29 % of all days are)",
        f"175 days; {days_of_work}; 100 % in March to October (67 % of all days are)",
        f"85 days; {days_of_work}; 100 % in November to February (33 % of all days are)",
    ]
    assert library.sentence == "Three plans keep 100 % of what a new plan a day earns."
    assert library.kept(1) == pytest.approx(175 / 365)
    assert library.kept(None) == pytest.approx(105 / 365)  # the first of January was a Saturday


def test_results_are_shown_in_a_few_lines() -> None:
    library = replan.plan_library(*two_seasons(), most=2)
    assert repr(library) == "PlanLibrary: 365 days; two plans keep 77 % of what a new plan a day earns"
    assert "<td>76.7 %</td>" in library._repr_html_()
    frame = library.to_frame()
    assert frame.columns == ["round", "plan", "cost"]
    assert frame["cost"].sum() == pytest.approx(library.choices[1].cost)
    assert frame["plan"].n_unique() == 2
    assert library.to_frame(plans=1)["plan"].n_unique() == 1


def test_where_nothing_is_earned_the_sentence_says_what_is_paid() -> None:
    library = replan.plan_library(*two_seasons(sign=1.0), most=1)
    assert library.sentence == "One plan costs 52 % more than a new plan a day."
    assert np.isnan(library.kept(1))
    assert library.rows()[0][2] == "–"
    arms = nf.MDP(np.array([[0, 0]]), initial=0, horizon=1)
    swings = np.array([[-1.0, 5.0], [9.0, 1.0]]).reshape(2, 1, 1, 2)
    assert replan.plan_library(arms, swings, 1).sentence == "One plan costs 6 more than a new plan a day."


def test_a_library_of_rewards_earns_what_that_of_losses_saves() -> None:
    mdp, losses = two_seasons()
    saved = replan.plan_library(mdp, losses, most=2)
    earned = replan.plan_library(mdp, nf.rewards(-losses.array), most=2)
    np.testing.assert_array_equal(earned.values, -saved.values)  # rewards stay rewards
    assert (earned.sentence, earned.kept(1)) == (saved.sentence, saved.kept(1))
    arms = nf.MDP(np.array([[0, 0]]), initial=0, horizon=1)
    swings = nf.rewards(np.array([[1.0, -5.0], [-9.0, -1.0]]).reshape(2, 1, 1, 2))
    assert replan.plan_library(arms, swings, 1).sentence == "One plan earns 6 less than a new plan a day."


@pytest.mark.parametrize(
    ("months", "runs"),
    [([1], ["January"]), ([1, 2, 12], ["December to February"]), ([3, 4, 10], ["March to April", "October"])],
)
def test_months_in_a_row_are_one_run(months: list[int], runs: list[str]) -> None:
    assert _runs(months) == runs


def test_numbers_of_plans_are_checked() -> None:
    mdp, losses = two_seasons()
    check_refusal(lambda: replan.plan_library(mdp, losses, most=0), "most is 0")
    library = replan.plan_library(mdp, losses, most=2)
    check_refusal(lambda: library.to_frame(plans=3), "plans is 3")
    check_refusal(lambda: library.kept(0), "plans is 0")
