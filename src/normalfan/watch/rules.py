"""Rules that look at every priced round: which raise an alarm, and when to replace the plan in service.

An alarm rule is one of

price>100       the price of the round; also >=, <, <=
price>1%        the same, compared with a hundredth of the round's |value|
total>5000      the sum of all prices: raised once, by the round that takes it there
margin<1e-3     the cone margin; likewise value, dimension, variation_l1, variation_l2, variation_linf
crossed         the optimal face is not the previous one
ambiguous       the price or the crossing depends on a near-tie

The plan of the first round enters service. In every later round a rule sees what the plan in service costs,
the price of its face, and says whether to re-plan: then the plan of this round enters service. If losses are
known before acting, it serves this round already; if they are known after, from the next one on. This is
`replan.replay`, live.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError, check_choice
from normalfan.pricing.blocks import BlockPricer
from normalfan.pricing.kernels import Sweeper
from normalfan.pricing.monitor import PricedRound, stored
from normalfan.problem.arrays import FloatArray

if TYPE_CHECKING:
    from normalfan.replan.rules import StoredRule

FLAGS = ("crossed", "ambiguous")
QUANTITIES = (
    *("price", "total", "value", "margin", "dimension"),
    *("variation_l1", "variation_l2", "variation_linf"),
)

_COMPARISONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_FORM = re.compile(rf"\s*([a-z_0-9]+)\s*(?:(>=|<=|>|<)\s*({_NUMBER})\s*(%?))?\s*")

KNOWN = ("before", "after")

SWEPT = 4  # rounds that are priced in the time of one: sweeps are eight wide, and each takes two
_PREFIX = "service_"


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """One alarm rule; `AlarmRule.parse` makes it from its text.

    Examples
    --------
    >>> str(AlarmRule.parse("price > 1%"))
    'price>1%'
    """

    name: str  # of a flag or a quantity
    comparison: str = ""  # of a quantity: >, >=, < or <=
    bound: float = 0.0  # that it is compared with
    percent: bool = False  # the bound is a percentage of the round's |value|

    @classmethod
    def parse(cls, text: str) -> AlarmRule:
        """Read a rule such as "price>100", "price>1%" or "crossed"."""
        match = _FORM.fullmatch(text)
        name, comparison, number, percent = match.groups(default="") if match else ("", "", "", "")
        if name in FLAGS and not comparison:
            return cls(name)
        bound = float(number or "nan")
        is_known = name in QUANTITIES and math.isfinite(bound)
        if not is_known or (percent and name != "price") or (name == "total" and "<" in comparison):
            raise InputError(
                f"the alarm rule {text!r} is not understood, but must compare one of {', '.join(QUANTITIES)} "
                f"with a number by >, >=, <, <= (a % only after price, only > and >= after total) or be one "
                f"of {', '.join(FLAGS)}: write --alarm 'price>100', 'price>1%' or 'crossed'."
            )
        return cls(name, comparison, bound, bool(percent))

    def raised_by(self, step: PricedRound, total_before: float, total: float) -> bool:
        """Whether a round that takes the sum of prices from `total_before` to `total` raises it."""
        if not self.comparison:
            return bool(getattr(step, self.name))
        holds = _COMPARISONS[self.comparison]
        if self.name == "total":
            return bool(holds(total, self.bound) and not holds(total_before, self.bound))
        bound = self.bound / 100 * abs(step.value) if self.percent else self.bound
        return bool(holds(getattr(step, self.name), bound))

    def __str__(self) -> str:
        bound = f"{self.comparison}{self.bound:.12g}{'%' * self.percent}"
        return self.name + bound if self.comparison else self.name


@dataclass(frozen=True, slots=True)
class Service:
    """A plan in service, after a round."""

    since: int  # the round whose plan it is
    loss: FloatArray = field(repr=False, compare=False)  # [H, S, A] for which its plans are the best
    rule: str  # that watches it
    cost: float = 0.0  # of the rounds that it served
    age: int = 0  # rounds since its own
    memory: float = 0.0  # of the rule
    replans: int = 0  # so far

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a state stores of it, by name."""
        return {f"{_PREFIX}{name}": np.asarray(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], source: str | Path) -> Service | None:
        """What `to_arrays` gave; None from a state without a rule."""
        if f"{_PREFIX}rule" not in arrays:
            return None
        kinds = {"since": "i", "rule": "U", "cost": "f", "memory": "f", "age": "iu", "replans": "iu"}
        found = {name: stored(arrays, f"{_PREFIX}{name}", kind, source) for name, kind in kinds.items()}
        loss = arrays.get(f"{_PREFIX}loss")
        sums = [found[name] for name in ("cost", "memory", "age", "replans")]
        if loss is None or not all(0 <= number < math.inf for number in sums):
            raise InputError(
                f"the plan in service in {source} has no loss, or a sum that is negative or infinite, but "
                f"must be as a watch writes it: take an undamaged copy."
            )
        return cls(loss=loss, **found)


Served: TypeAlias = tuple[dict[str, Any], Service | None]
"""What a round has to say about service, and the plan in service from there on."""


class LiveRule:
    """Runs a rule over rounds as they are priced; remembers nothing itself."""

    def __init__(self, pricer: BlockPricer, rule: StoredRule, known: str) -> None:
        check_choice("known", known, KNOWN)
        self.rule = rule
        self.is_known_before = known == "before"
        self.name = str(rule) if self.is_known_before else f"{rule}, known after"
        self._reader = pricer.reader
        self._sweep = Sweeper(pricer.tables, pricer.ties)

    def follow(
        self,
        service: Service | None,
        numbers: Sequence[int],
        losses: Sequence[FloatArray],
        prices: Sequence[float],
    ) -> Iterator[Served]:
        """What these rounds mean for the plan in service; `prices` are those against the round before."""
        ahead: list[float] = []  # prices of the plan in service in the coming rounds
        for t, (number, loss, price) in enumerate(zip(numbers, losses, prices, strict=True)):
            if service is None:
                service = Service(number, loss, self.name)
                yield _record(service, 0.0, replan=False), service
                continue
            if service.age == 0:
                paid, ahead = price, []  # the plan in service is that of the round before
            else:
                # As far ahead as it has lasted: a plan that is soon replaced costs few prices in vain.
                end = t + max(SWEPT, service.age)
                ahead = ahead or self._prices(service, losses[t:end])
                paid = ahead.pop(0)
            told, service = self._decide(service, number, loss, paid)
            yield told, service

    def _decide(
        self, service: Service, number: int, loss: FloatArray, price: float
    ) -> tuple[dict[str, Any], Service]:
        memory, replan = self.rule.advance(service.memory, price)
        if not math.isfinite(service.cost + price):
            raise InputError(
                f"prices of the plan of round {service.since} add up beyond the range of float64 by round "
                f"{number}, but their sum must be finite: rescale the losses."
            )
        kept = replace(service, cost=service.cost + price, age=service.age + 1, memory=memory)
        if not (service.age or replan):
            # A plan that stays is priced often: its near-ties are read once, and made clear. Charging 1 for
            # every action that is not optimal leaves the same actions optimal, in every state.
            read = self._reader.read(service.loss)
            allowed = read.advantages < np.inf
            kept = replace(kept, loss=np.where(allowed, read.advantages > 0, np.inf))
        if not replan:
            return _record(kept, price, replan=False), kept
        new = Service(number, loss, self.name, memory=memory, replans=service.replans + 1)
        if not self.is_known_before:
            return _record(kept, price, replan=True), new
        replaced = {"since": service.since, "price": price, "cost": service.cost}
        return _record(new, 0.0, replan=True) | {"replaced": replaced}, new

    def _prices(self, service: Service, losses: Sequence[FloatArray]) -> list[float]:
        """Of the plan in service under each loss: those that a `BlockPricer` gives."""
        # A round is priced against the one before it: so the plan's own loss comes before each.
        swept = self._sweep(np.stack([one for loss in losses for one in (service.loss, loss)]))
        *_, wide = self._reader.rounding_intervals(swept.prices, swept.sizes)
        prices, unclear = swept.prices[1::2], (swept.near | wide)[1::2]
        for t in np.flatnonzero(unclear).tolist():
            read = self._reader.read(losses[t]).advantages
            prices[t] = self._sweep(np.stack([service.loss, read])).prices[1]
        return prices.tolist()  # type: ignore[no-any-return]


def _record(service: Service, price: float, *, replan: bool) -> dict[str, Any]:
    return {"since": service.since, "price": price, "cost": service.cost, "replan": replan}
