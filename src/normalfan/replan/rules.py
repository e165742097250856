"""When to re-plan, without seeing the future.

A rule watches the price of the plan in service, day by day, and says when to make a new one:

    Accumulated   the prices since the last re-plan add up to a threshold. With the threshold at the cost of a
                  re-plan this is the rule of ski rental: pay rent until it would have bought the skis.
    Cusum         the same of what exceeds an allowance a day, never below zero: small prices are forgotten.
    SingleDay     today's price alone. One odd day then sets the plan for the ordinary days after it.
    Periodic      every so many days, whatever the price.

`replay` runs a rule through a matrix of holding costs and gives it nothing but what is known. With losses
known before acting a rule sees today's price of the plan in service and may avoid it: the new plan serves
today. With losses known after, a rule decides about today having seen the prices up to yesterday.

What is promised. Say that plans *age* if an older plan is never better than a newer one,
costs[d,t] ≥ costs[d',t] for d ≤ d' ≤ t. Then for any re-plan cost C > 0 `Accumulated(C)` spends at most

    2 · OPT              losses known before acting, plans for the last day,
    (2 + M/C) · OPT      losses known after, with M the largest single price,

of the cheapest schedule in hindsight. *Proof.* Let the rule re-plan on day s and next on day e. Before: it
pays less than C until e, and C at e; a schedule that does not re-plan on the days s+1 … e holds a plan no
newer than s, so it pays at least the rule's prices of these days, which reach C. After: the rule pays less
than C + M on s … e−1, and C; a schedule that does not re-plan on s+1 … e−1 pays at least C on s … e−1. In
the last stretch, which no re-plan ends, what the rule pays is paid by the other too or is below the C of its
re-plan (plus M). ∎

When an old plan may become good again there is no such factor: if costs[d,d+1] = C for all d and everything
else is free, the rule re-plans every day while holding the first plan costs C in all. What always holds is
that regret is below (re-plans + 1) · C (before, plans for the last day), or (re-plans + 1) · (C + M).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from normalfan.errors import InputError
from normalfan.replan.costs import HoldingCosts
from normalfan.replan.schedule import Schedule, schedule_of

Decide: TypeAlias = Callable[[float], bool]
"""Takes the price of the plan in service, one day after the other; says whether to re-plan."""


class Rule(Protocol):
    """How to decide. A rule itself remembers nothing; each run gets its own `Decide`."""

    def decide(self) -> Decide:
        """A fresh memory. It starts over by itself whenever it says yes."""
        ...


@dataclass(frozen=True, slots=True)
class Accumulated:
    """Re-plan when the prices since the last re-plan reach a threshold."""

    threshold: float

    def __post_init__(self) -> None:
        _check_number("Accumulated.threshold", self.threshold)

    def decide(self) -> Decide:
        return Cusum(self.threshold, 0.0).decide()


@dataclass(frozen=True, slots=True)
class Cusum:
    """Re-plan when the prices beyond an allowance a day, kept from falling below 0, reach a threshold."""

    threshold: float
    allowance: float

    def __post_init__(self) -> None:
        _check_number("Cusum.threshold", self.threshold)
        _check_number("Cusum.allowance", self.allowance)

    def decide(self) -> Decide:
        total = 0.0

        def decide(price: float) -> bool:
            nonlocal total
            total = max(0.0, total + price - self.allowance)
            if total >= self.threshold and total > 0.0:  # nothing is gained by re-planning for nothing
                total = 0.0
                return True
            return False

        return decide


@dataclass(frozen=True, slots=True)
class SingleDay:
    """Re-plan when the price of one day reaches a threshold."""

    threshold: float

    def __post_init__(self) -> None:
        _check_number("SingleDay.threshold", self.threshold)

    def decide(self) -> Decide:
        return lambda price: price >= self.threshold and price > 0.0


@dataclass(frozen=True, slots=True)
class Periodic:
    """Re-plan every so many days."""

    days: int

    def __post_init__(self) -> None:
        if isinstance(self.days, bool) or not isinstance(self.days, int) or self.days < 1:
            raise InputError(f"Periodic.days is {self.days!r}, but must be a whole number from 1: try 7.")

    def decide(self) -> Decide:
        held = 0

        def decide(price: float) -> bool:  # noqa: ARG001
            nonlocal held
            held = (held + 1) % self.days
            return held == 0

        return decide


def replay(rule: Rule, costs: HoldingCosts) -> Schedule:
    """What the rule would have done, day by day, knowing only what it could."""
    # Today's price is seen before deciding about today, or only yesterday's is.
    lag = 0 if costs.known == "before" else 1
    decide, serving, days = rule.decide(), 0, list[int]()
    prices = costs.costs[0].tolist()
    for t in range(1, costs.n_days):
        if decide(prices[t - lag]):
            serving = t
            prices = costs.costs[serving].tolist()
            days.append(t)
    return schedule_of(costs, days)


def _check_number(name: str, number: float) -> None:
    if not (math.isfinite(number) and number >= 0):
        raise InputError(f"{name} is {number}, but must be finite and at least 0: give a price.")
