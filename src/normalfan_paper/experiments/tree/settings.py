"""The layered-tree experiment: its size, and what the paper leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from normalfan_paper.experiment import Scale, Settings

HORIZONS = (8, 12, 16, 20)
GAMMA = 0.2
ROUNDS = 5000
SEQUENCES = 96
ETAS = (0.04, 0.08, 0.15, 0.3, 0.6, 1.0)

RATE = 0.025
OTHER_RATES = (0.005, 0.1)
"""Alternatively a sequence crosses at a rate of its own, drawn uniformly in logarithm between these."""

EXPLICIT = (8, 12)
"""The horizons at which the identity is also computed on the tree with all its states."""

SHARE = 4
"""Alternatives run on one seed in so many."""

SEEDS_A_CELL = 8

OURS: dict[str, Any] = {
    "dwell": "random",
    "suffix": "flipped",
    "one_layer": True,
    "rates": [RATE, RATE],
    "losses": "node",
}
VARIANTS: dict[str, dict[str, Any]] = {
    "ours": {},
    "regular dwell": {"dwell": "regular"},
    "any layer": {"one_layer": False},
    "varied rates": {"rates": list(OTHER_RATES)},
    "varied rates, any layer": {"rates": list(OTHER_RATES), "one_layer": False},
    "suffix redrawn": {"suffix": "redrawn"},
    "suffix kept": {"suffix": "kept"},
    "separable": {"losses": "separable"},
    "separable, suffix kept": {"losses": "separable", "suffix": "kept"},
}


def cells(scale: Scale) -> Sequence[Settings]:
    """A cell is one variant, horizon and block of seeds; one more cell checks the identity."""
    return list(_cells(scale))


def _cells(scale: Scale) -> Iterator[Settings]:
    few = max(min(scale.seeds, 2), scale.seeds // SHARE)
    explicit = EXPLICIT[:1] if scale.quick else EXPLICIT
    yield {"variant": "identity", "horizons": list(HORIZONS), "explicit": list(explicit), "gamma": GAMMA}
    for variant, changed in VARIANTS.items():
        seeds = range(scale.seeds if variant == "ours" else few)
        for horizon in HORIZONS:
            for first in range(0, len(seeds), SEEDS_A_CELL):
                yield {
                    "variant": variant,
                    "horizon": horizon,
                    "seeds": list(seeds[first : first + SEEDS_A_CELL]),
                    "gamma": GAMMA,
                    "rounds": ROUNDS // 2 if scale.quick else ROUNDS,
                    "sequences": SEQUENCES // 4 if scale.quick else SEQUENCES,
                    "etas": list(ETAS),
                    **OURS,
                    **changed,
                }
