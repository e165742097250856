"""The simplex experiment: its size, and the designs of its map.

Each of the four regimes can move in several ways, and the two crossing regimes at several rates. They do not
meet before regrets are pooled, so every way is run once and a *design* is a choice of one way for each: the
map is their product, times three norms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from normalfan_paper.experiment import Scale, Settings

ARMS = (16, 32, 64, 128)
ROUNDS = 5000
GAMMA = 0.25
ETAS = (0.04, 0.08, 0.15, 0.3, 0.6, 1.0)
TRIALS, MAP_TRIALS = 24, 4
CROSSING = ("crossings", "rotating")
REGIMES = ("within_cone", "wall", *CROSSING)

MOTIONS = {
    "within_cone": ("walk", "step", "redraw", "offset"),
    "wall": ("held", "walk", "redrawn"),
    "crossings": ("held", "walk", "redrawn"),
    "rotating": ("held", "walk", "redrawn"),
}
"""How the loss moves inside a cone: by regime, ours first. `simplex_regimes` says what the words mean."""
RATES = (0.5, 0.002, 0.004, 0.02, 0.1, 1.0)
"""How often the crossing regimes cross, ours first."""


def ways(regime: str) -> list[tuple[str, float | None]]:
    """The ways of a regime, as motion and rate, ours first; regimes that only drift have no rate."""
    rates: Sequence[float | None] = RATES if regime in CROSSING else (None,)
    return list(product(MOTIONS[regime], rates))


def cells(scale: Scale) -> Sequence[Settings]:
    """A cell is one number of arms and one seed: all trials of our ways, or some trials of all."""
    return list(_cells(scale))


def _cells(scale: Scale) -> Iterator[Settings]:
    for part, arms, seed in product(("ours", "map"), ARMS[:2] if scale.quick else ARMS, range(scale.seeds)):
        trials = TRIALS if part == "ours" else MAP_TRIALS
        yield {
            "part": part,
            "arms": arms,
            "seed": seed,
            "ways": [[r, *way] for r in REGIMES for way in (ways(r)[:1] if part == "ours" else ways(r))],
            "gamma": GAMMA,
            "rounds": ROUNDS // 5 if scale.quick else ROUNDS,
            "trials": trials // 4 if scale.quick else trials,
            "etas": list(ETAS),
        }
