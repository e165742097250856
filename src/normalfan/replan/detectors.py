"""Drift detectors of river as rules: re-plan when the stream of prices is reported to have changed.

They know nothing of costs, and are here to be compared with. A detector may start again after a re-plan (the
prices that follow belong to another plan) or read on, and get prices or log(1 + price) (prices have heavy
tails, which these tests handle badly). KSWIN draws at random from its window, so its seed is fixed; it sees
ranks only, so it needs no logarithm; and it is slow, so few of its settings are tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from typing import Any, Literal

from normalfan.errors import check_installed
from normalfan.replan.rules import Decide

Detector = Literal["ADWIN", "PageHinkley", "KSWIN"]


@dataclass(frozen=True, slots=True)
class Drift:
    """Re-plan when a drift detector of river reports a change of the prices.

    Needs river: ``pip install 'normalfan[compare]'``.

    Examples
    --------
    >>> decide = Drift("PageHinkley", (("threshold", 1.0), ("min_instances", 1))).decide()
    >>> [decide(price) for price in (0.0, 0.0, 9.0)]
    [False, False, True]
    """

    detector: Detector  # a class of `river.drift`
    settings: tuple[tuple[str, Any], ...]  # the arguments of that class
    restart: bool = False  # start the detector again after a re-plan
    logarithm: bool = False  # show it log(1 + price) instead of the price

    def decide(self) -> Decide:
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
    kswin = [
        Drift("KSWIN", (("alpha", alpha), ("window_size", size), ("stat_size", part), ("seed", 0)), restart)
        for alpha in (1e-4, 0.005, 0.05)
        for size, part in ((20, 7), (40, 12), (100, 30))
        for restart in (False, True)
    ]
    return {"ADWIN": adwin, "Page-Hinkley": page_hinkley, "KSWIN": kswin}
