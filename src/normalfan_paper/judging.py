"""From numbers to verdicts: means and their standard errors over seeds, correlations, and one rule.

A claimed number is compared with what came out under every design that was run:

    holds                  every design agrees with the claim
    depends on the design  some agree and some do not
    not reproduced         by any design that was run: none agrees. The paper's own design is not known, so
                           that no run can make its number false

where a design agrees if it lies within `slack` (how precisely the claim was stated) or two standard errors.

    >>> judged({"a": Estimate(0.5, 0.01), "b": Estimate(0.9, 0.01)}, claimed=0.89, slack=0.005).name
    'DEPENDS'
    >>> judged({"a": Estimate(0.5, 0.01), "b": Estimate(0.8, 0.01)}, claimed=0.89, slack=0.005).name
    'UNSEEN'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normalfan_paper.experiment import Verdict

if TYPE_CHECKING:
    import polars


SURE = 2.0  # a difference counts when it exceeds this many standard errors
ROUNDING = 1e-9  # and is more than rounding


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds and its standard error (nan with a single seed)."""

    mean: float
    error: float

    def __str__(self) -> str:
        """As many digits as the error leaves."""
        if not math.isfinite(self.error):
            return f"{self.mean:.3g} (one seed)"
        decimals = 4 if self.error < 1e-4 else max(0, -math.floor(math.log10(self.error)))
        return f"{self.mean:.{decimals}f} ± {self.error:.{decimals}f}"

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if not math.isfinite(self.error):
            return format(self.mean, spec)
        return f"{self.mean:{spec}} ± {self.error:.1g}"

    def agrees(self, claimed: float, slack: float) -> bool:
        error = self.error if math.isfinite(self.error) else 0.0
        return abs(self.mean - claimed) <= max(slack, SURE * error)

    def above(self, bound: float) -> bool:
        """Surely above; never with a single seed, which has no error to speak of."""
        lead = self.mean - bound
        return math.isfinite(self.error) and lead > max(SURE * self.error, ROUNDING * abs(self.mean))

    def within(self, low: float, high: float) -> bool:
        """Not surely outside."""
        error = self.error if math.isfinite(self.error) else math.inf
        return self.mean + SURE * error >= low and self.mean - SURE * error <= high


def estimate(values: Iterable[float]) -> Estimate:
    """The mean of one number a seed; seeds without a number (nan) are left out."""
    numbers = np.array([value for value in values if not math.isnan(value)])
    if not len(numbers):
        return Estimate(math.nan, math.nan)
    error = numbers.std(ddof=1) / math.sqrt(len(numbers)) if len(numbers) > 1 else math.nan
    return Estimate(float(numbers.mean()), float(error))


def over_seeds(frame: polars.DataFrame, number: Callable[..., Any], *columns: str) -> Estimate:
    """A number of some columns (arrays), computed from each seed's rows and averaged."""
    seeds = frame["seed"].to_numpy()
    arrays = [frame[column].to_numpy() for column in columns]
    return estimate(float(number(*(a[seeds == seed] for a in arrays))) for seed in np.unique(seeds))


def largest(numbers: polars.Series) -> float:
    """The largest absolute value."""
    return float(np.abs(numbers.to_numpy()).max())


def rate(total: Any, count: Any) -> float:
    """Σ total / Σ count."""
    return float(np.sum(total) / np.sum(count))


def correlation(x: Any, y: Any) -> float:
    """Pearson's; nan if one of them does not vary."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt(float((x * x).sum()) * float((y * y).sum()))
    return float((x * y).sum()) / scale if scale > 0 else math.nan


def r_squared(x: Any, y: Any) -> float:
    """The share of y's variance that a line in x explains."""
    return correlation(x, y) ** 2


def judged(designs: Mapping[str, Estimate], claimed: float, slack: float) -> Verdict:
    return verdict_over([design.agrees(claimed, slack) for design in designs.values()])


def sides(designs: Mapping[str, Estimate], claimed: float) -> str:
    """Where the designs lie, in words: if on both sides, one between them would agree.

    >>> sides({"a": Estimate(0.5, 0.01), "b": Estimate(0.9, 0.01)}, 0.8)
    'designs lie on both sides of it'
    """
    above = [design.mean > claimed for design in designs.values()]
    if any(above) and not all(above):
        return "designs lie on both sides of it"
    return f"all designs lie {'above' if all(above) else 'below'} it"


def verdict_over(designs: Iterable[bool]) -> Verdict:
    """A claim about an experiment that the paper does not define: in how many designs it came out."""
    found = list(designs)
    if all(found):
        return Verdict.HOLDS
    return Verdict.DEPENDS if any(found) else Verdict.UNSEEN


def seeds_in_words(ours: int, alternatives: Iterable[int] = ()) -> str:
    """How many seeds a row had.

    >>> seeds_in_words(32), seeds_in_words(32, [32, 32]), seeds_in_words(32, [8, 4, 8])
    ('32', '32, alternatives too', '32; alternatives 4 to 8')
    """
    others = sorted(set(alternatives))
    if not others:
        return str(ours)
    if others == [ours]:
        return f"{ours}, alternatives too"
    return f"{ours}; alternatives {others[0]}" + (f" to {others[-1]}" if len(others) > 1 else "")


def listed(designs: Mapping[str, Estimate], spec: str = ".2f") -> str:
    """The designs and their numbers, in one line."""
    return "; ".join(f"{name} {number:{spec}}" for name, number in designs.items())


def spanned(designs: Mapping[str, Estimate], spec: str = ".2f", *, first: int = 1) -> str:
    """The first designs, which are ours, and the range of all: the rest is in a row's `numbers`."""
    names = list(designs)
    low = min(names, key=lambda name: designs[name].mean)
    high = max(names, key=lambda name: designs[name].mean)
    ours = listed({name: designs[name] for name in names[:first]}, spec)
    ends = f"{designs[low].mean:{spec}} ({low}) to {designs[high].mean:{spec}} ({high})"
    return f"{ours}; over {len(names)} designs from {ends}"


def numbers_of(designs: Mapping[str, Estimate]) -> dict[str, float]:
    """The same for a row's `numbers`: each mean, and its standard error where there is one."""
    numbers = {name: number.mean for name, number in designs.items()}
    errors = {f"{name} (s.e.)": number.error for name, number in designs.items()}
    return {name: value for name, value in (numbers | errors).items() if math.isfinite(value)}
