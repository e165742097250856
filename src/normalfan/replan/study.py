"""Everything there is to say about re-planning one stream at one cost.

A study holds

    schedules   the cheapest in hindsight; the rules whose setting is the cost itself, which need no tuning;
                every day; never
    points      every family of rules over its sweep of settings
    least       the least regret with at most k re-plans

    >>> import numpy as np
    >>> costs = np.where(np.tri(8, k=-1) > 0, np.nan, np.arange(8)[None, :] - np.arange(8)[:, None])
    >>> result = study(HoldingCosts(costs, np.zeros(8), "before", 1), cost=5.0, detectors=False)
    >>> {name: run.total(5.0) for name, run in result.schedules.items()}
    {'cheapest in hindsight': 17.0, 'accumulated': 17.0, 'CUSUM': 17.0, 'single day': 18.0,
     'every day': 35.0, 'never': 28.0}
"""

from __future__ import annotations

from dataclasses import dataclass

from normalfan.problem.arrays import FloatArray, read_only
from normalfan.replan.costs import HoldingCosts
from normalfan.replan.curve import Point, best_within, run_sweeps, sweeps
from normalfan.replan.rules import Accumulated, Cusum, SingleDay, replay
from normalfan.replan.schedule import Schedule, cheapest_schedule, least_regrets, schedule_of

ALLOWANCE = 0.1
"""The daily allowance of the CUSUM that is set by the cost, in costs: a tenth of a re-plan a day."""

ALL_BUDGETS_UP_TO = 1000
"""With more days than this the hindsight curve ends at a sixth of them: it takes O(n²) a re-plan."""


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """See the module."""

    costs: HoldingCosts
    cost: float
    schedules: dict[str, Schedule]
    points: tuple[Point, ...]
    least: FloatArray  # [K + 1]

    def budgets(self) -> list[int]:
        """Numbers of re-plans to compare at: one in 56, 28, 14 and 7 days."""
        return sorted({round(self.costs.n_days / days) for days in (56, 28, 14, 7)} - {0})

    def within(self, replans: int) -> dict[str, Point]:
        """What each family can do with at most so many re-plans."""
        return best_within(self.points, replans)


def study(costs: HoldingCosts, cost: float, *, detectors: bool = True, progress: bool = False) -> Study:
    n_days = costs.n_days
    schedules = {
        "cheapest in hindsight": cheapest_schedule(costs, cost),
        "accumulated": replay(Accumulated(cost), costs),
        "CUSUM": replay(Cusum(cost, ALLOWANCE * cost), costs),
        "single day": replay(SingleDay(cost), costs),
        "every day": schedule_of(costs, range(1, n_days)),
        "never": schedule_of(costs, ()),
    }
    return Study(
        costs=costs,
        cost=cost,
        schedules=schedules,
        points=run_sweeps(costs, sweeps(costs, detectors=detectors), progress=progress),
        least=read_only(least_regrets(costs, None if n_days <= ALL_BUDGETS_UP_TO else n_days // 6)),
    )
