"""The simplex experiment: its size, and what the paper leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from normalfan_paper.experiment import Scale, Settings

ARMS = (16, 32, 64, 128)
ROUNDS = 5000
GAMMA = 0.25
ETAS = (0.04, 0.08, 0.15, 0.3, 0.6, 1.0)
TRIALS = 24
REGIMES = ("within_cone", "wall", "crossings", "rotating")

DRIFT = "walk"
RATE = 0.5
BETWEEN = "held"

OTHER_DRIFTS = ("step", "redraw", "offset")
OTHER_RATES = (0.02, 0.1, 1.0)
MIXED = "mixed"
"""Each trial has a rate of its own, drawn uniformly from [0, 1]."""
OTHER_BETWEEN = "redrawn"
SHARE = 4
"""Alternatives run on one seed in so many."""


def cells(scale: Scale) -> Sequence[Settings]:
    """A cell is one variant, number of arms and seed, with all trials of its regimes."""
    return list(_cells(scale))


def _cells(scale: Scale) -> Iterator[Settings]:
    few = max(min(scale.seeds, 2), scale.seeds // SHARE)
    arms = ARMS[:2] if scale.quick else ARMS
    variants: list[tuple[str, int, dict[str, Any]]] = [("ours", scale.seeds, {})]
    variants += [(f"drift {kind}", few, {"drift": kind, "regimes": ["within_cone"]}) for kind in OTHER_DRIFTS]
    crossing = ["crossings", "rotating"]
    variants += [(f"rate {rate}", few, {"rate": rate, "regimes": crossing}) for rate in (*OTHER_RATES, MIXED)]
    variants += [(f"between {OTHER_BETWEEN}", few, {"between": OTHER_BETWEEN, "regimes": crossing})]
    for variant, seeds, changed in variants:
        for n_arms in arms:
            for seed in range(seeds):
                base = {
                    "variant": variant,
                    "arms": n_arms,
                    "seed": seed,
                    "regimes": list(REGIMES),
                    "drift": DRIFT,
                    "rate": RATE,
                    "between": BETWEEN,
                    "gamma": GAMMA,
                    "rounds": ROUNDS // 5 if scale.quick else ROUNDS,
                    "trials": TRIALS // 6 if scale.quick else TRIALS,
                    "etas": list(ETAS),
                }
                yield base | changed
