"""When it would have been best to re-plan, in hindsight.

The plan of day 0 is there anyway; each later one costs C. With S[d,e] = Σ_{d ≤ t < e} costs[d,t] the cheapest
schedule is a shortest path, best[e] = min_{d < e} best[d] + S[d,e] + C·[d > 0], and the least regret with
exactly k re-plans is f_k[e] = min_d f_{k−1}[d] + S[d,e]. Layers are needed because the least regret need not
be convex in k: some numbers of re-plans are the best for no C.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from normalfan.errors import check_number, check_whole
from normalfan.problem.arrays import FloatArray, IntArray, read_only
from normalfan.replan.costs import HoldingCosts
from normalfan.text import counted, number

DAYS_SHOWN = 8


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Schedule:
    """Days on which to re-plan, and what the plans in service then cost.

    Examples
    --------
    >>> Schedule((3, 7), 1.5, np.zeros(9))
    Schedule: 2 re-plans on days 3, 7; regret 1.5
    """

    days: tuple[int, ...]  # in increasing order; never day 0
    regret: float  # over all days, without the cost of re-planning
    regrets: FloatArray  # [n] of each day

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.days[:DAYS_SHOWN])) + (", …" if self.replans > DAYS_SHOWN else "")
        on = f" on {'day' if self.replans == 1 else 'days'} {shown}" if self.days else ""
        return f"Schedule: {counted(self.replans, 're-plan')}{on}; regret {number(self.regret)}"

    @property
    def replans(self) -> int:
        """The number of re-plans."""
        return len(self.days)

    def total(self, cost: float) -> float:
        """Regret + cost · re-plans."""
        return self.regret + cost * self.replans


def schedule_of(costs: HoldingCosts, days: Sequence[int]) -> Schedule:
    """What re-planning on given days costs; they increase within 1 … n − 1."""
    starts = (0, *days)
    serving = np.repeat(starts, np.diff((*starts, costs.n_days)))
    regrets = costs.costs[serving, np.arange(costs.n_days)]
    return Schedule(tuple(map(int, days)), math.fsum(regrets), read_only(regrets))


def cheapest_schedule(costs: HoldingCosts, cost: float, *, most: int | None = None) -> Schedule:
    """Find the schedule with the least regret + cost · re-plans.

    Parameters
    ----------
    costs : HoldingCosts
    cost : float
        Of one re-plan.
    most : int, optional
        The largest number of re-plans: O(n²) for each. By default any, in O(n²).

    Returns
    -------
    Schedule
        Of equally cheap ones, one that keeps its plans longer.

    Raises
    ------
    InputError
        If the cost is negative or not finite, or `most` is negative.

    Examples
    --------
    >>> costs = np.array([[0.0, 1.0, 5.0], [np.nan, 0.0, 5.0], [np.nan, np.nan, 0.0]])
    >>> cheapest_schedule(HoldingCosts(costs, np.zeros(3), "before", 1), cost=2.0)
    Schedule: 1 re-plan on day 2; regret 1
    """
    check_number("cost", cost, "say what a re-plan costs")
    if most is not None:
        totals, layers = [], []
        for k, (reached, ways) in enumerate(_layers(costs, most)):
            totals.append(reached[-1] + cost * k)
            layers.append(ways.argmin(axis=1))
        return schedule_of(costs, _trace(layers[: int(np.argmin(totals)) + 1]))
    spent = _spent(costs)
    best = np.zeros(costs.n_days + 1)
    began = np.zeros(costs.n_days + 1, dtype=np.int64)
    for e in range(1, costs.n_days + 1):
        ways = best[:e] + spent[e, :e]
        ways[1:] += cost
        began[e] = ways.argmin()
        best[e] = ways[began[e]]
    return schedule_of(costs, _trace([began] * costs.n_days))


def least_regrets(costs: HoldingCosts, most: int | None = None) -> FloatArray:
    """Compute the least regret for every number of re-plans, in O(n²) for each.

    Parameters
    ----------
    costs : HoldingCosts
    most : int, optional
        The largest number of re-plans; by default n − 1.

    Returns
    -------
    array [most + 1]
        The least regret with at most k re-plans, k = 0 … most.

    Raises
    ------
    InputError
        If `most` is negative.

    Examples
    --------
    >>> costs = np.array([[0.0, 1.0, 5.0], [np.nan, 0.0, 5.0], [np.nan, np.nan, 0.0]])
    >>> least_regrets(HoldingCosts(costs, np.zeros(3), "before", 1))
    array([6., 1., 0.])
    """
    layers = _layers(costs, costs.n_days if most is None else most)
    return np.minimum.accumulate([reached[-1] for reached, _ in layers])


def _layers(costs: HoldingCosts, most: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    """For exactly k = 0 … `most` re-plans: f_k [n + 1], and what it minimises, [n + 1, n], overwritten."""
    check_whole("most", most, "leave it out for any number", least=0)
    spent = _spent(costs)
    ways = np.full_like(spent, np.inf)
    ways[:, 0] = spent[:, 0]
    for _ in range(min(most, costs.n_days - 1) + 1):
        reached = ways.min(axis=1)  # no plan serves until day 0: reached[0] is ∞, so day 0 is no re-plan
        yield reached, ways
        np.add(spent, reached[:-1], out=ways)


def _spent(costs: HoldingCosts) -> FloatArray:
    """[n + 1, n]: S[d,e] at [e, d], ∞ where e ≤ d."""
    until = np.cumsum(np.triu(costs.costs), axis=1)
    spent = np.full((costs.n_days + 1, costs.n_days), np.inf)
    later = np.tri(costs.n_days, dtype=bool)
    spent[1:][later] = until.T[later]
    return spent


def _trace(layers: list[IntArray]) -> list[int]:
    """The re-plan days, found backwards: the first day of the last plan, of the one before it, …"""
    days, end = list[int](), len(layers[0]) - 1
    for began in reversed(layers):
        end = int(began[end])
        if end == 0:
            break
        days.append(end)
    return days[::-1]
