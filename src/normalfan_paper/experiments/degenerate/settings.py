"""The experiment on degenerate faces: its size, and what the paper leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from normalfan_paper.experiment import Scale, Settings

HORIZON = 20
GAMMA = 0.2
LONGEST = 18
ROUNDS = 5000
SWITCH = 0.025
REDRAW = 0.25
SELECTORS = (
    *("oracle", "occupancies", "entropy", "strings"),
    *("lexicographic", "random vertex", "random point"),
)
"""The oracle; three readings of the sticky selector; the lexicographic one; two of the random one."""

OURS: dict[str, Any] = {"motion": "bits", "redraw": REDRAW, "charge": "to the prefix"}
VARIANTS: dict[str, dict[str, Any]] = {
    "ours": {},
    "redraw 1/8": {"redraw": 0.125},
    "redraw 1/2": {"redraw": 0.5},
    "redraw 1": {"redraw": 1.0},
    "charge to the end": {"charge": "to the end"},
    "separable": {"charge": "separable"},
    "whole faces switch": {"motion": "faces"},
    "whole faces switch, to the end": {"motion": "faces", "charge": "to the end"},
}
EXPLICIT: dict[str, Any] = {"horizon": 6, "longest": 4, "rounds": 300}
"""The size at which the learners of the package play on the tree with all its states, engine-priced."""


def cells(scale: Scale) -> Sequence[Settings]:
    """A cell is one variant with all its seeds; one more plays on the explicit tree."""
    return list(_cells(scale))


def _cells(scale: Scale) -> Iterator[Settings]:
    common = {"gamma": GAMMA, "flip": SWITCH, "selectors": list(SELECTORS)}
    for variant, changed in VARIANTS.items():
        yield {
            "variant": variant,
            "seeds": list(range(scale.seeds)),
            "horizon": HORIZON,
            "longest": LONGEST,
            "rounds": ROUNDS,
            **common,
            **OURS,
            **changed,
        }
    seeds = list(range(min(scale.seeds, 2)))
    yield {"variant": "explicit", "seeds": seeds, **common, **OURS, **EXPLICIT}
