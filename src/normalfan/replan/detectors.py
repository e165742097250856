"""Drift detectors of river as rules: re-plan when the stream of prices is said to have changed.

The detectors know nothing of costs; they are here to be compared with. Each is fed the price of the plan in
service, as every rule is. Two choices are open and both are offered: whether a detector starts afresh after
a re-plan (the prices that follow belong to another plan) or reads on, and whether it is fed prices or the
logarithm of 1 + price (prices have heavy tails, and the tests behind these detectors like them no more than
anyone). KSWIN draws at random from its window, so its seed is fixed; it sees ranks only, so it needs no
logarithm; and it takes half a second for two years of days, so few of its settings are tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from typing import Any, Literal

from normalfan.errors import InputError
from normalfan.replan.rules import Decide

Detector = Literal["ADWIN", "PageHinkley", "KSWIN"]

KSWIN_SEED = 0


@dataclass(frozen=True, slots=True)
class Drift:
    """Re-plan when a detector of river reports drift."""

    detector: Detector
    settings: tuple[tuple[str, Any], ...]  # of river's class, by name
    restart: bool = False  # whether a re-plan is a new beginning
    logarithm: bool = False  # of 1 + price, instead of the price

    def decide(self) -> Decide:
        _check_installed()
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


def _check_installed() -> None:
    if not detectors_installed():
        raise InputError(
            "river is not installed, but its drift detectors need it: pip install 'normalfan[compare]'."
        )


def detector_sweeps(typical: float) -> dict[str, list[Drift]]:
    """Settings of each detector from quick to slow; `typical` is the size of an ordinary price."""
    ways = list(product((False, True), (False, True)))
    adwin = [
        Drift("ADWIN", (("delta", delta), ("clock", clock), ("grace_period", grace)), *way)
        for delta in (1e-9, 1e-6, 1e-4, 1e-3, 2e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
        for clock, grace in ((1, 2), (1, 10), (32, 10))
        for way in ways
    ]
    page_hinkley = [
        Drift(
            "PageHinkley",
            (("threshold", size * scale), ("delta", slack * scale), ("min_instances", least), ("mode", mode)),
            restart,
            logarithm,
        )
        for restart, logarithm in ways
        for scale in (1.0 if logarithm else typical,)
        for size in (0.5, 1, 2, 3, 5, 8, 12, 20, 35, 60, 100, 200)
        for slack in (0.005, 0.1, 0.5)
        for least in (1, 30)
        for mode in ("up", "both")
    ]
    kswin = [
        Drift(
            "KSWIN", (("alpha", alpha), ("window_size", size), ("stat_size", part), ("seed", KSWIN_SEED)), r
        )
        for alpha in (1e-4, 0.005, 0.05)
        for size, part in ((20, 7), (40, 12), (100, 30))
        for r in (False, True)
    ]
    return {"ADWIN": adwin, "Page-Hinkley": page_hinkley, "KSWIN": kswin}
