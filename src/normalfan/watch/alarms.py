"""Alarm rules: what must be true of a round for somebody to be told.

price>100       the price of the round; also >=, <, <=
price>1%        the same, against a hundredth of the round's |value|
total>5000      the prices added up: raised once, by the round that takes them there
margin<1e-3     the cone margin; likewise value, dimension, variation_l1, variation_l2, variation_linf
crossed         the optimal face is not the previous one
ambiguous       the price or the crossing hangs on a near-tie

>>> rule = Rule.parse("price > 1%")
>>> str(rule)
'price>1%'
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from normalfan.errors import InputError
from normalfan.pricing.monitor import PricedRound

FLAGS = ("crossed", "ambiguous")
QUANTITIES = (
    "price",
    "total",
    "value",
    "margin",
    "dimension",
    "variation_l1",
    "variation_l2",
    "variation_linf",
)

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}

_FORM = re.compile(r"\s*([a-z_0-9]+)\s*(?:(>=|<=|>|<)\s*([^\s%]+)\s*(%?))?\s*")


@dataclass(frozen=True, slots=True)
class Rule:
    """One alarm rule, parsed."""

    name: str
    comparison: str = ""  # empty for a flag
    bound: float = 0.0
    percent: bool = False

    @classmethod
    def parse(cls, text: str) -> Rule:
        match = _FORM.fullmatch(text)
        name, comparison, bound, percent = match.groups() if match else ("", None, None, None)
        if name in FLAGS and comparison is None:
            return cls(name)
        number = _number(bound)
        is_known = name in QUANTITIES and number is not None
        if not is_known or (percent and name != "price") or (name == "total" and "<" in (comparison or "")):
            raise InputError(
                f"the alarm rule {text!r} is not understood, but must compare one of {', '.join(QUANTITIES)} "
                f"with a number by >, >=, <, <= (a % only after price, only > and >= after total) or be one "
                f"of {', '.join(FLAGS)}: write --alarm 'price>100', 'price>1%' or 'crossed'."
            )
        return cls(name, str(comparison), number or 0.0, bool(percent))

    def raised_by(self, step: PricedRound, total_before: float, total: float) -> bool:
        """Whether a round raises the alarm; the totals are those before and after it."""
        if not self.comparison:
            return bool(getattr(step, self.name))
        holds = _COMPARISONS[self.comparison]
        if self.name == "total":
            return holds(total, self.bound) and not holds(total_before, self.bound)
        bound = self.bound / 100 * abs(step.value) if self.percent else self.bound
        return holds(getattr(step, self.name), bound)

    def __str__(self) -> str:
        return (
            f"{self.name}{self.comparison}{self.bound:.12g}{'%' * self.percent}"
            if self.comparison
            else self.name
        )


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None
