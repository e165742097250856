"""When to re-plan, without seeing the future: a rule watches the price of the plan in service, day by day.

If losses are known before acting it sees today's price and may avoid it: the new plan serves today. If they
are known after, it decides about today having seen the prices up to yesterday. If an older plan is never
better than a newer one, `Accumulated(C)` spends at most twice what the cheapest schedule in hindsight does;
the proof, and what holds otherwise, is in docs/details/ski-rental.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from functools import cache
from importlib.util import find_spec
from itertools import product
from typing import Any, Literal, Protocol, TypeAlias, get_args

from normalfan.errors import InputError, check_choice, check_installed, check_number, check_whole
from normalfan.replan.costs import HoldingCosts
from normalfan.replan.schedule import Schedule, schedule_of

Decide: TypeAlias = Callable[[float], bool]
"""Takes the price of the plan in service, one day after the other; says whether to re-plan."""


Detector: TypeAlias = Literal["ADWIN", "PageHinkley", "KSWIN"]


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
class StoredRule(ABC):
    """A rule whose memory is one number, 0 at first: a run of it can be stored and go on elsewhere."""

    def __post_init__(self) -> None:
        for setting in fields(self):
            name = f"{type(self).__name__}.{setting.name}"
            check_number(name, getattr(self, setting.name), "give such a number")

    @abstractmethod
    def advance(self, memory: float, price: float) -> tuple[float, bool]:
        """The memory after a price, and whether to re-plan."""

    def decide(self) -> Decide:
        memory = 0.0

        def decide(price: float) -> bool:
            nonlocal memory
            memory, replan = self.advance(memory, price)
            return replan

        return decide

    def __str__(self) -> str:
        name = next(name for name, kind in STORED_RULES.items() if kind is type(self))
        numbers = (repr(float(number)).removesuffix(".0") for number in astuple(self))
        return f"{name}:{','.join(numbers)}"


@dataclass(frozen=True, slots=True)
class Accumulated(StoredRule):
    """Re-plan when the prices since the last re-plan add up to a threshold.

    With the cost of a re-plan as the threshold this is ski rental: rent until it would have bought the skis.

    Examples
    --------
    >>> list(map(Accumulated(3.0).decide(), [1.0, 2.0, 2.0]))
    [False, True, False]
    """

    threshold: float  # at least 0

    def advance(self, memory: float, price: float) -> tuple[float, bool]:
        """Its memory is the sum of the prices."""
        return Cusum(self.threshold, 0.0).advance(memory, price)


@dataclass(frozen=True, slots=True)
class Cusum(StoredRule):
    """Re-plan when a cumulative sum, c ← max(0, c + price − allowance), reaches a threshold.

    Small prices are forgotten. With an allowance of 0 it is `Accumulated`.

    Examples
    --------
    >>> list(map(Cusum(1.5, allowance=0.5).decide(), [1.0, 0.0, 2.0]))
    [False, False, True]
    """

    threshold: float  # at least 0
    allowance: float  # at least 0

    def advance(self, memory: float, price: float) -> tuple[float, bool]:
        """Its memory is the sum c."""
        total = max(0.0, memory + price - self.allowance)
        replan = total >= self.threshold and total > 0.0  # one that saves nothing is not worth it
        return 0.0 if replan else total, replan


@dataclass(frozen=True, slots=True)
class SingleDay(StoredRule):
    """Re-plan when the price of one day reaches a threshold: one odd day then sets the plan for those after.

    Examples
    --------
    >>> list(map(SingleDay(2.0).decide(), [1.9, 2.0]))
    [False, True]
    """

    threshold: float  # at least 0

    def advance(self, memory: float, price: float) -> tuple[float, bool]:
        """It remembers nothing."""
        return memory, price >= self.threshold and price > 0.0


@dataclass(frozen=True, slots=True)
class Periodic(StoredRule):
    """Re-plan every so many days, whatever the price.

    Examples
    --------
    >>> list(map(Periodic(2).decide(), [0.0, 0.0, 0.0, 0.0]))
    [False, True, False, True]
    """

    days: int  # at least 1

    def __post_init__(self) -> None:
        check_whole("Periodic.days", self.days, "try 7")

    def advance(self, memory: float, price: float) -> tuple[float, bool]:  # noqa: ARG002
        """Its memory is the number of days since the last re-plan."""
        served = (memory + 1.0) % self.days
        return served, served == 0.0


@dataclass(frozen=True, slots=True)
class Drift:
    """Re-plan when a drift detector of river reports a change of the prices.

    It knows nothing of costs, and is here to be compared with. After a re-plan the prices belong to another
    plan, so it may start again; prices have heavy tails, which these tests handle badly, so it may see their
    logarithms. Needs river: ``pip install 'normalfan[compare]'``.

    Examples
    --------
    >>> list(map(Drift("PageHinkley", (("threshold", 1.0), ("min_instances", 1))).decide(), [0.0, 0.0, 9.0]))
    [False, False, True]
    """

    detector: Detector  # a class of `river.drift`
    settings: tuple[tuple[str, Any], ...]  # the arguments of that class
    restart: bool = False  # start the detector again after a re-plan
    logarithm: bool = False  # show it log(1 + price) instead of the price

    def decide(self) -> Decide:
        check_choice("Drift.detector", self.detector, get_args(Detector))
        check_installed("river", "its drift detectors need it", "compare")
        from river import drift

        make = getattr(drift, self.detector)
        detector = make(**dict(self.settings))

        def decide(price: float) -> bool:
            nonlocal detector
            detector.update(math.log1p(price) if self.logarithm else price)
            alarm = bool(detector.drift_detected)
            if alarm and self.restart:
                detector = make(**dict(self.settings))
            return alarm

        return decide


STORED_RULES: dict[str, type[StoredRule]] = {
    "accumulated": Accumulated,
    "cusum": Cusum,
    "single": SingleDay,
    "periodic": Periodic,
}


def parse_rule(text: str) -> StoredRule:
    """Read a rule as it is written on the command line; `str` gives the text back.

    >>> parse_rule("cusum:200,5"), str(parse_rule("periodic:7"))
    (Cusum(threshold=200.0, allowance=5.0), 'periodic:7')
    """
    name, _, rest = text.partition(":")
    kind = STORED_RULES.get(name)
    try:
        read = int if kind is Periodic else float
        numbers = [read(part) for part in rest.split(",")]
        if kind is not None and len(numbers) == len(fields(kind)):
            return kind(*numbers)
    except InputError as error:
        raise InputError(f"of the rule {text!r}, {error}") from None
    except ValueError:
        pass
    raise InputError(
        f"the rule is {text!r}, but must be accumulated:X, cusum:THRESHOLD,ALLOWANCE, single:X or "
        f"periodic:K: try accumulated:200, which re-plans when the plan in service has cost 200."
    )


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
    return next(replays([rule], costs))


def replays(rules: Iterable[Rule], costs: HoldingCosts) -> Iterator[Schedule]:
    """Run many rules; the prices of a plan are read once, however many rules meet it."""
    prices_of = cache(lambda day: costs.costs[day].tolist())
    # Today's price is seen before deciding about today, or only yesterday's is.
    lag = 0 if costs.known == "before" else 1
    for rule in rules:
        decide, days, prices = rule.decide(), list[int](), prices_of(0)
        for t in range(1, costs.n_days):
            if decide(prices[t - lag]):
                prices = prices_of(t)
                days.append(t)
        yield schedule_of(costs, days)


def detectors_installed() -> bool:
    return find_spec("river") is not None


def detector_families(typical: float) -> dict[str, list[Drift]]:
    """Settings of each detector from quick to slow; `typical` is the size of an ordinary price."""
    ways = list(product((False, True), (False, True)))
    adwin = [
        Drift("ADWIN", (("delta", delta), ("clock", clock), ("grace_period", grace)), *way)
        for delta in (1e-9, 1e-6, 1e-4, 1e-3, 2e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
        for clock, grace in ((1, 2), (1, 10), (32, 10))
        for way in ways
    ]
    page_hinkley = []
    sizes, slacks = (0.5, 1, 2, 3, 5, 8, 12, 20, 35, 60, 100, 200), (0.005, 0.1, 0.5)
    for way, size, slack, least, mode in product(ways, sizes, slacks, (1, 30), ("up", "both")):
        scale = 1.0 if way[1] else typical
        levels = (("threshold", size * scale), ("delta", slack * scale))
        page_hinkley.append(Drift("PageHinkley", (*levels, ("min_instances", least), ("mode", mode)), *way))
    # It draws at random from its window, so its seed is fixed; it sees ranks only, so it needs no logarithm;
    # and it is slow, so few of its settings are tried.
    kswin = [
        Drift("KSWIN", (("alpha", alpha), ("window_size", size), ("stat_size", part), ("seed", 0)), restart)
        for alpha in (1e-4, 0.005, 0.05)
        for size, part in ((20, 7), (40, 12), (100, 30))
        for restart in (False, True)
    ]
    return {"ADWIN": adwin, "Page-Hinkley": page_hinkley, "KSWIN": kswin}
