"""When to re-plan, seen from the end.

A schedule is the set of days on which a new plan begins to serve. The plan of day 0 is there anyway; each
later one costs C. With S[d,e] = Σ_{d ≤ t < e} costs[d,t], what the plan of day d costs until day e, the
cheapest schedule is a shortest path through the days,

    best[e] = min_{d < e}  best[d] + S[d,e] + C·[d > 0],

and the least regret with exactly k re-plans is the same recursion in layers,
f_k[e] = min_d f_{k−1}[d] + S[d,e]. The layers are needed because the least regret need not be convex in k: no
C picks out a budget within a dent.

    >>> costs = np.array([[0.0, 1.0, 5.0], [np.nan, 0.0, 5.0], [np.nan, np.nan, 0.0]])
    >>> week = HoldingCosts(costs, np.zeros(3), "before", 1)
    >>> cheapest_schedule(week, cost=2.0)
    Schedule(days=(2,), regret=1.0)
    >>> least_regrets(week)
    array([6., 1., 0.])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from normalfan.errors import InputError
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.replan.costs import HoldingCosts


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Days on which to re-plan, and what the plans in service then cost."""

    days: tuple[int, ...]  # in increasing order, never day 0
    regret: float  # over all days, re-planning not counted
    regrets: FloatArray = field(repr=False)  # [n]  of each day

    @property
    def replans(self) -> int:
        return len(self.days)

    def total(self, cost: float) -> float:
        """Regret and re-planning together."""
        return self.regret + cost * self.replans


def schedule_of(costs: HoldingCosts, days: Sequence[int]) -> Schedule:
    """What re-planning on these days costs."""
    starts = (0, *days)
    if any(later <= earlier for earlier, later in pairwise((*starts, costs.n_days))):
        raise InputError(
            f"days are {list(days)}, but must increase within 1 to {costs.n_days - 1}: "
            f"day 0 has its plan anyway."
        )
    serving = np.repeat(starts, np.diff((*starts, costs.n_days)))
    regrets = costs.costs[serving, np.arange(costs.n_days)]
    return Schedule(tuple(map(int, days)), math.fsum(regrets), read_only(regrets))


def cheapest_schedule(costs: HoldingCosts, cost: float) -> Schedule:
    """The schedule with the least regret + `cost` · re-plans; of equally cheap ones one that holds longer."""
    check_cost(cost)
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
    """[most + 1]: the least regret with at most k re-plans, k = 0 … `most` (as many as there are days)."""
    layers = costs.n_days - 1 if most is None else _replans(costs, most)
    spent = _spent(costs)
    reached = spent[:, 0].copy()
    regrets = [reached[-1]]
    ways = np.empty_like(spent)
    for _ in range(layers):
        np.add(spent, reached[:-1], out=ways)
        reached = ways.min(axis=1)  # no plan serves until day 0: reached[0] is ∞, so day 0 is no re-plan
        regrets.append(min(reached[-1], regrets[-1]))
    return np.array(regrets)


def schedule_within(costs: HoldingCosts, replans: int) -> Schedule:
    """The schedule with the least regret among those with at most `replans` re-plans."""
    spent = _spent(costs)
    reached = spent[:, 0].copy()
    layers, best, chosen = [np.zeros(costs.n_days + 1, dtype=np.int64)], reached[-1], 1
    for k in range(_replans(costs, replans)):
        ways = spent[:, 1:] + reached[1:-1]
        layers.append(ways.argmin(axis=1) + 1)
        reached = ways.min(axis=1)
        if reached[-1] < best:
            best, chosen = reached[-1], k + 2
    return schedule_of(costs, _trace(layers[:chosen]))


def check_cost(cost: float) -> None:
    if not (math.isfinite(cost) and cost >= 0):
        raise InputError(f"cost is {cost}, but a re-plan must cost a finite amount of at least 0: give one.")


def _replans(costs: HoldingCosts, replans: int) -> int:
    """As many re-plans as were asked for and as there are days for."""
    if replans < 0:
        raise InputError(f"replans is {replans}, but a number of re-plans is at least 0: give one.")
    return min(replans, costs.n_days - 1)


def _spent(costs: HoldingCosts) -> FloatArray:
    """[n + 1, n]: S[d,e] at [e, d], ∞ where e ≤ d."""
    until = np.cumsum(np.triu(costs.costs), axis=1)
    spent = np.full((costs.n_days + 1, costs.n_days), np.inf)
    later = np.tri(costs.n_days, dtype=bool)
    spent[1:][later] = until.T[later]
    return spent


def _trace(layers: list[np.ndarray[tuple[int], np.dtype[np.int64]]]) -> list[int]:
    """The re-plan days on the way back from the end through the last day's, its last day's, …"""
    days, end = list[int](), len(layers[0]) - 1
    for began in reversed(layers):
        end = int(began[end])
        if end == 0:
            break
        days.append(end)
    return days[::-1]
