"""Schedules against every schedule there is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, combinations

import numpy as np
import pytest
from holding import random_costs
from sentences import check_refusal

from normalfan import replan
from normalfan.replan.schedule import schedule_of


def every_schedule(n_days: int) -> list[tuple[int, ...]]:
    days = range(1, n_days)
    return list(chain.from_iterable(combinations(days, k) for k in range(n_days)))


def regret_by_hand(costs: replan.HoldingCosts, days: tuple[int, ...]) -> float:
    serving, regret = 0, 0.0
    for t in range(costs.n_days):
        if t in days:
            serving = t
        regret += costs.costs[serving, t]
    return regret


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("known", ["before", "after"])
def test_the_cheapest_of_all_schedules(seed: int, known: str) -> None:
    rng = np.random.default_rng(seed)
    costs = random_costs(rng, int(rng.integers(1, 9)), known)
    regrets = {days: regret_by_hand(costs, days) for days in every_schedule(costs.n_days)}
    for cost in (0.0, 0.5, 1.0, 3.0, 100.0):
        found = replan.cheapest_schedule(costs, cost)
        assert found.regret == regrets[found.days]
        least = min(regret + cost * len(days) for days, regret in regrets.items())
        assert found.total(cost) == pytest.approx(least)
    least = replan.least_regrets(costs)
    assert len(least) == costs.n_days
    for k in range(costs.n_days):
        within = replan.cheapest_schedule(costs, 0.0, most=k)
        best = min(regret for days, regret in regrets.items() if len(days) <= k)
        assert within.replans <= k
        assert within.regret == best == least[k]
        paid = replan.cheapest_schedule(costs, 1.5, most=k)
        assert paid.replans <= k
        least_total = min(regret + 1.5 * len(days) for days, regret in regrets.items() if len(days) <= k)
        assert paid.total(1.5) == pytest.approx(least_total)


def test_budgets_may_lie_in_a_dent_that_no_cost_reaches() -> None:
    """The least regret need not be convex in the number of re-plans."""
    costs = np.full((4, 4), 9.0)
    costs[[0, 1, 2, 3], [0, 1, 2, 3]] = 0
    costs[0, 1:] = 4, 4, 4  # 12 in all
    costs[1, 2:] = 5, 5
    costs[2, 3] = 9
    costs[np.tril_indices(4, -1)] = np.nan
    days = replan.HoldingCosts(costs, np.zeros(4), "before", 1)
    least = replan.least_regrets(days)
    assert least.tolist() == [12.0, 8.0, 4.0, 0.0]
    costs[0, 3] = 1
    days = replan.HoldingCosts(costs, np.zeros(4), "before", 1)
    least = replan.least_regrets(days)
    reached = {replan.cheapest_schedule(days, cost).replans for cost in np.linspace(0, 20, 2001)}
    steps = -np.diff(least)
    assert (np.diff(steps) > 0).any()
    assert reached < set(range(4))


def test_a_shorter_curve_is_the_beginning_of_the_longer() -> None:
    costs = random_costs(np.random.default_rng(3), 9)
    np.testing.assert_array_equal(replan.least_regrets(costs, 4), replan.least_regrets(costs)[:5])


def test_what_days_cost() -> None:
    costs = random_costs(np.random.default_rng(4), 7)
    for days in every_schedule(7):
        run = schedule_of(costs, days)
        assert run.regret == regret_by_hand(costs, days) == run.regrets.sum()
        assert run.replans == len(days)
        assert run.total(2.5) == run.regret + 2.5 * len(days)


COSTS = random_costs(np.random.default_rng(0), 5)


@pytest.mark.parametrize(
    ("provoke", "where"),
    [
        (lambda: replan.cheapest_schedule(COSTS, -1.0), "cost is -1.0"),
        (lambda: replan.cheapest_schedule(COSTS, float("nan")), "cost is nan"),
        (lambda: replan.cheapest_schedule(COSTS, float("inf")), "cost is inf"),
        (lambda: replan.cheapest_schedule(COSTS, 1.0, most=-1), "most is -1"),
        (lambda: replan.least_regrets(COSTS, -1), "most is -1"),
    ],
)
def test_refusals(provoke: Callable[[], object], where: str) -> None:
    check_refusal(provoke, where)
