"""How often each statement is tried, and what the paper leaves open about it."""

from __future__ import annotations

from collections.abc import Sequence

from normalfan_paper.experiment import Scale, Settings

INSTANCES, QUICK_INSTANCES = 200, 40

PARTS = (
    "decomposition",
    "bellman",
    "large-variation",
    "variation-separation",
    "one-problem-or-two",
    "causal-anisotropy",
    "path-length",
    "geometry",
    "predictive-selection",
    "bregman-selection",
    "degenerate-selection",
    "cone-detector",
    "gate",
    "gate-speed",
    "lower-bound",
)
"""One cell each; `run.CHECKS` says which function runs it."""


def cells(scale: Scale) -> Sequence[Settings]:
    instances = QUICK_INSTANCES if scale.quick else INSTANCES
    return [{"part": part, "instances": instances} for part in PARTS]
