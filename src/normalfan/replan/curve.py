"""Regret against the number of re-plans: every rule, swept over its settings.

One number cannot rank rules, because each trades regret for re-plans through a setting of its own. So each
family of rules is run over a sweep of settings, and each run is a point. What a family can do with at most k
re-plans is the least regret of its points with at most k. Settings are picked in hindsight, for every family
alike: the curve shows what a rule could do if tuned well, not how to tune it. A family with more settings has
more tries, so their number is kept beside it.

The hindsight curve underneath (`least_regrets`) is what no rule can beat.

    >>> costs = np.where(np.tri(8, k=-1) > 0, np.nan, np.arange(8)[None, :] - np.arange(8)[:, None])
    >>> days = HoldingCosts(costs, np.zeros(8), "before", 1)
    >>> points = run_sweeps(days, {"periodic": [Periodic(2), Periodic(4)]})
    >>> [(point.replans, point.regret) for point in points]
    [(3, 4.0), (1, 12.0)]
    >>> best_within(points, replans=2)["periodic"].rule
    Periodic(days=4)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from normalfan.progress import progress_bar
from normalfan.replan.costs import HoldingCosts
from normalfan.replan.detectors import detector_sweeps
from normalfan.replan.rules import Accumulated, Cusum, Periodic, Rule, SingleDay, replay

PRICE_RULES = ("accumulated", "CUSUM")
DETECTORS = ("ADWIN", "Page-Hinkley", "KSWIN")

ALLOWANCES = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Allowances of the CUSUM sweep, in typical prices."""


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a rule."""

    family: str
    rule: Rule
    replans: int
    regret: float

    def total(self, cost: float) -> float:
        return self.regret + cost * self.replans


def sweeps(costs: HoldingCosts, *, detectors: bool = True, settings: int = 120) -> dict[str, list[Rule]]:
    """Each family with the settings to try; thresholds range over the sizes that occur in `costs`."""
    typical, largest = _sizes(costs)
    thresholds = np.geomspace(typical / 100, largest, settings).tolist()
    families: dict[str, list[Rule]] = {
        "accumulated": [Accumulated(h) for h in thresholds],
        "CUSUM": [Cusum(h, a * typical) for a in ALLOWANCES for h in thresholds],
        "single day": [SingleDay(h) for h in thresholds],
        "periodic": [Periodic(k) for k in range(1, costs.n_days + 1)],
    }
    if detectors:
        families |= {name: list(rules) for name, rules in detector_sweeps(typical).items()}
    return families


def run_sweeps(
    costs: HoldingCosts, families: Mapping[str, Sequence[Rule]], *, progress: bool = False
) -> tuple[Point, ...]:
    points = []
    with progress_bar("trying rules", sum(map(len, families.values())), progress) as advance:
        for family, rules in families.items():
            for rule in rules:
                run = replay(rule, costs)
                points.append(Point(family, rule, run.replans, run.regret))
                advance(1)
    return tuple(points)


def best_within(points: Iterable[Point], replans: int) -> dict[str, Point]:
    """Of each family the point of least regret with at most `replans` re-plans, if it has one."""
    best = dict[str, Point]()
    for point in points:
        if point.replans <= replans and (
            point.family not in best or point.regret < best[point.family].regret
        ):
            best[point.family] = point
    return best


def cheapest_of_each(points: Iterable[Point], cost: float) -> dict[str, Point]:
    """Of each family the point of least regret + `cost` · re-plans."""
    best = dict[str, Point]()
    for point in points:
        if point.family not in best or point.total(cost) < best[point.family].total(cost):
            best[point.family] = point
    return best


def envelope(points: Iterable[Point], family: str) -> list[Point]:
    """The points of a family that no other of its points beats in both respects, by re-plans."""
    own = sorted((p for p in points if p.family == family), key=lambda p: (p.replans, p.regret))
    kept = list[Point]()
    for point in own:
        if not kept or point.regret < kept[-1].regret:
            kept.append(point)
    return kept


def settings_of(rule: Rule) -> dict[str, Any]:
    """The settings of a rule by name."""
    settings: dict[str, Any] = asdict(rule)  # type: ignore[call-overload]
    return settings | dict(settings.pop("settings", ()))


def _sizes(costs: HoldingCosts) -> tuple[float, float]:
    """A typical price (the median of the positive ones) and what holding the first plan for ever costs."""
    priced = costs.costs[costs.costs > 0]
    typical = float(np.median(priced)) if priced.size else 1.0
    return typical, max(float(costs.costs[0].sum()), typical)
