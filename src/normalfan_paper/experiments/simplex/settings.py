"""The simplex experiment: its size, and what the paper leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from normalfan_paper.experiment import Choice, Scale, Settings

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

CHOICES = (
    Choice(
        "simplex/drift",
        "How does the loss move within a cone?",
        "every arm but the best takes Gaussian steps of standard deviation γ, reflected into [γ, 1]",
        (
            "all arms together take a step of Euclidean length γ",
            "every arm is drawn again in every round",
            "a common offset takes Gaussian steps of standard deviation γ",
        ),
        ("simplex/within-cone-variation",),
    ),
    Choice(
        "simplex/norm",
        "In which norm is the variation measured?",
        "all three of L1, L2 and L∞ are shown",
        (),
        ("simplex/within-cone-variation", "simplex/tracker-variation", "simplex/pooled"),
    ),
    Choice(
        "simplex/rate",
        "How often does the best arm change in the two crossing regimes?",
        "in one round of two",
        (
            "in one round of 50",
            "in one round of 10",
            "in every round",
            "each trial has a rate of its own, drawn uniformly from [0, 1]",
        ),
        ("simplex/tracker-price", "simplex/tracker-variation", "simplex/pooled", "simplex/geometry-blind"),
    ),
    Choice(
        "simplex/between",
        "What does the loss do between crossings?",
        "it is held",
        ("all costs are drawn again in every round, and the best arm stays",),
        ("simplex/tracker-variation", "simplex/pooled"),
    ),
    Choice(
        "simplex/best-setting",
        "Over what is the best step size chosen?",
        "for each algorithm, regime and number of arms, by the mean regret over seeds and trials",
        ("for each algorithm once",),
        ("simplex/pooled",),
    ),
)


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
