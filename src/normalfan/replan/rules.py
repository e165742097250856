"""When to re-plan, without seeing the future: a rule watches the price of the plan in service, day by day.

If losses are known before acting it sees today's price and may avoid it: the new plan serves today. If they
are known after, it decides about today having seen the prices up to yesterday. If an older plan is never
better than a newer one, `Accumulated(C)` spends at most twice what the cheapest schedule in hindsight does;
the proof, and what holds otherwise, is in docs/details/ski-rental.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Protocol, TypeAlias

from normalfan.replan.costs import HoldingCosts, check_days
from normalfan.replan.schedule import Schedule, check_amount, schedule_of

Decide: TypeAlias = Callable[[float], bool]
"""Takes the price of the plan in service, one day after the other; says whether to re-plan."""


class Rule(Protocol):
    """How to decide when to re-plan; implement it to replay a rule of your own.

    Examples
    --------
    >>> class Always:
    ...     def decide(self):
    ...         return lambda price: True
    >>> rule: Rule = Always()
    """

    def decide(self) -> Decide:
        """Start a run: what is returned has a memory of its own, and starts over whenever it says yes."""
        ...


@dataclass(frozen=True, slots=True)
class Accumulated:
    """Re-plan when the prices since the last re-plan add up to a threshold.

    With the cost of a re-plan as the threshold this is ski rental: rent until it would have bought the skis.

    Examples
    --------
    >>> decide = Accumulated(3.0).decide()
    >>> [decide(price) for price in (1.0, 2.0, 2.0)]
    [False, True, False]
    """

    threshold: float  # at least 0

    def __post_init__(self) -> None:
        check_amount("Accumulated.threshold", self.threshold)

    def decide(self) -> Decide:
        return Cusum(self.threshold, 0.0).decide()


@dataclass(frozen=True, slots=True)
class Cusum:
    """Re-plan when a cumulative sum, c ← max(0, c + price − allowance), reaches a threshold.

    Small prices are forgotten. With an allowance of 0 it is `Accumulated`.

    Examples
    --------
    >>> decide = Cusum(1.5, allowance=0.5).decide()
    >>> [decide(price) for price in (1.0, 0.0, 2.0)]
    [False, False, True]
    """

    threshold: float  # at least 0
    allowance: float  # at least 0

    def __post_init__(self) -> None:
        check_amount("Cusum.threshold", self.threshold)
        check_amount("Cusum.allowance", self.allowance)

    def decide(self) -> Decide:
        total = 0.0

        def decide(price: float) -> bool:
            nonlocal total
            total = max(0.0, total + price - self.allowance)
            if total >= self.threshold and total > 0.0:  # a re-plan that saves nothing is not worth it
                total = 0.0
                return True
            return False

        return decide


@dataclass(frozen=True, slots=True)
class SingleDay:
    """Re-plan when the price of one day reaches a threshold: one odd day then sets the plan for those after.

    Examples
    --------
    >>> decide = SingleDay(2.0).decide()
    >>> [decide(price) for price in (1.9, 2.0)]
    [False, True]
    """

    threshold: float  # at least 0

    def __post_init__(self) -> None:
        check_amount("SingleDay.threshold", self.threshold)

    def decide(self) -> Decide:
        return lambda price: price >= self.threshold and price > 0.0


@dataclass(frozen=True, slots=True)
class Periodic:
    """Re-plan every so many days, whatever the price.

    Examples
    --------
    >>> decide = Periodic(2).decide()
    >>> [decide(0.0) for _ in range(4)]
    [False, True, False, True]
    """

    days: int  # at least 1

    def __post_init__(self) -> None:
        check_days("Periodic.days", self.days, "try 7")

    def decide(self) -> Decide:
        served = count(1)
        return lambda price: next(served) % self.days == 0  # noqa: ARG005


def replay(rule: Rule, costs: HoldingCosts) -> Schedule:
    """Run a rule, day by day, and show it only what is known by then.

    Parameters
    ----------
    rule : Rule
    costs : HoldingCosts
        They also say when losses are known.

    Returns
    -------
    Schedule

    Raises
    ------
    InputError
        If the rule is a `Drift` and river is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> costs = np.array([[0.0, 1.0, 5.0], [np.nan, 0.0, 5.0], [np.nan, np.nan, 0.0]])
    >>> replay(Accumulated(2.0), HoldingCosts(costs, np.zeros(3), "before", 1))
    Schedule: 1 re-plan on day 2; regret 1
    """
    # Today's price is seen before deciding about today, or only yesterday's is.
    lag = 0 if costs.known == "before" else 1
    decide, days = rule.decide(), list[int]()
    prices = costs.costs[0].tolist()
    for t in range(1, costs.n_days):
        if decide(prices[t - lag]):
            prices = costs.costs[t].tolist()
            days.append(t)
    return schedule_of(costs, days)
