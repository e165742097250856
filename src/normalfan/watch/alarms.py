"""Alarm rules: which rounds raise an alarm.

price>100       the price of the round; also >=, <, <=
price>1%        the same, compared with a hundredth of the round's |value|
total>5000      the sum of all prices: raised once, by the round that takes it there
margin<1e-3     the cone margin; likewise value, dimension, variation_l1, variation_l2, variation_linf
crossed         the optimal face is not the previous one
ambiguous       the price or the crossing depends on a near-tie
"""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass

from normalfan.errors import InputError
from normalfan.pricing.monitor import PricedRound

FLAGS = ("crossed", "ambiguous")
QUANTITIES = (
    *("price", "total", "value", "margin", "dimension"),
    *("variation_l1", "variation_l2", "variation_linf"),
)

_COMPARISONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_FORM = re.compile(rf"\s*([a-z_0-9]+)\s*(?:(>=|<=|>|<)\s*({_NUMBER})\s*(%?))?\s*")


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """One alarm rule; `AlarmRule.parse` makes it from its text.

    Parameters
    ----------
    name : str
        A flag or a quantity.
    comparison : str
        One of >, >=, <, <=; empty for a flag.
    bound : float
        What the quantity is compared with.
    percent : bool
        Whether the bound is a percentage of the round's |value|.

    Examples
    --------
    >>> str(AlarmRule.parse("price > 1%"))
    'price>1%'
    """

    name: str
    comparison: str = ""
    bound: float = 0.0
    percent: bool = False

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
