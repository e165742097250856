"""The map of designs: what every combination of choices makes of the paper's four numbers.

A design is a way to move for each regime (see `settings`) and a norm. The regimes do not meet before regrets
are pooled, so that a design's numbers come from the rows of its four ways. Four numbers are compared with the
paper's: the correlation of the tracker's regret with the variation (0.89), those of all algorithms' pooled
regrets with the price and with the variation (0.46 both), and the mean variation within a cone (2.6e3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from normalfan.problem.arrays import FloatArray
from normalfan_paper.experiments.simplex.run import ALGORITHMS
from normalfan_paper.experiments.simplex.settings import CROSSING, MOTIONS, RATES, REGIMES, ROUNDS
from normalfan_paper.judging import Estimate, estimate

if TYPE_CHECKING:
    import polars

NORM_NAMES = {"variation_l1": "L1", "variation_l2": "L2", "variation_linf": "L∞"}
PAPER = {"tracker and V": 0.89, "pooled and Γ": 0.46, "pooled and V": 0.46, "V in a cone": 2600.0}
NEAR = {"tracker and V": 0.05, "pooled and Γ": 0.05, "pooled and V": 0.05, "V in a cone": 130.0}
"""How near to the paper's number counts as a match: 0.05 of a correlation, 5 % of the variation."""


class Design(NamedTuple):
    """A choice for everything that the paper leaves open about the simplex."""

    cone: str
    wall: str
    between: str
    rate: float
    norm: str  # a column

    def __str__(self) -> str:
        return (
            f"{NORM_NAMES[self.norm]}, cone {self.cone}, wall {self.wall}, between crossings {self.between}, "
            f"rate {self.rate:g}"
        )


@dataclass(frozen=True, slots=True)
class Numbers:
    """A design and its four numbers."""

    design: Design
    found: dict[str, Estimate]

    @property
    def matches(self) -> int:
        """How many of the paper's numbers it comes near to."""
        return sum(abs(number.mean - PAPER[name]) <= NEAR[name] for name, number in self.found.items())

    @property
    def distance(self) -> float:
        """The sum of all four distances, each in units of what counts as near."""
        return sum(abs(number.mean - PAPER[name]) / NEAR[name] for name, number in self.found.items())


class Way(NamedTuple):
    """The rows of one way of one regime, [seeds, n] each."""

    price: FloatArray
    tracker: FloatArray
    regrets: FloatArray  # [algorithms, seeds, n], at the best step size for the number of arms
    variations: dict[str, FloatArray]


Ways: TypeAlias = dict[tuple[str, str, float | None], Way]  # by regime, motion and rate


def ours() -> list[Design]:
    """Our design, in three norms."""
    return [design for design in all_designs() if design[:4] == next(all_designs())[:4]]


def all_designs() -> Iterator[Design]:
    """The product of all choices, ours first."""
    cones, walls, betweens = (MOTIONS[regime] for regime in ("within_cone", "wall", "crossings"))
    for cone, wall, between, rate, norm in product(cones, walls, betweens, RATES, NORM_NAMES):
        yield Design(cone, wall, between, rate, norm)


def ways_of(frame: polars.DataFrame) -> Ways:
    """The ways that were run, by regime, motion and rate."""
    import polars as pl

    found: Ways = {}
    parts = frame.sort("seed", "arms", "trial").partition_by("regime", "motion", "rate", as_dict=True)
    for (regime, motion, rate), rows in parts.items():
        shape = rows["seed"].n_unique(), -1
        regrets = [rows["tracker"].to_numpy()]
        for name in ALGORITHMS:
            columns = [column for column in rows.columns if column.startswith(f"{name} ")]
            means = [pl.col(column).cast(pl.Float64).mean().over("arms") for column in columns]
            chosen = rows.select(means).to_numpy().argmin(axis=1)
            table = rows.select(columns).to_numpy().astype(np.float64)
            regrets.append(table[np.arange(len(rows)), chosen])
        found[regime, motion, rate] = Way(
            rows["price"].to_numpy().reshape(shape),
            rows["tracker"].to_numpy().reshape(shape),
            np.stack([regret.reshape(shape) for regret in regrets]),
            {norm: (rows[norm] / rows["rounds"] * ROUNDS).to_numpy().reshape(shape) for norm in NORM_NAMES},
        )
    return found


def members(design: Design, ways: Ways) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Price, variation, tracker's regret, [seeds, n], and all regrets [algorithms, seeds, n] of a design."""
    motions = dict(zip(REGIMES, (design.cone, design.wall, design.between, design.between), strict=True))
    some = [ways[r, motions[r], design.rate if r in CROSSING else None] for r in REGIMES]
    return (
        np.concatenate([way.price for way in some], axis=1),
        np.concatenate([way.variations[design.norm] for way in some], axis=1),
        np.concatenate([way.tracker for way in some], axis=1),
        np.concatenate([way.regrets for way in some], axis=2),
    )


def numbers_of_design(design: Design, ways: Ways) -> Numbers:
    price, variation, tracker, regrets = members(design, ways)
    pooled = np.concatenate(list(regrets), axis=1)
    calm = ways["within_cone", design.cone, None].variations[design.norm]
    found = {
        "tracker and V": estimate(correlations(tracker, variation)),
        "pooled and Γ": estimate(correlations(pooled, np.tile(price, len(regrets)))),
        "pooled and V": estimate(correlations(pooled, np.tile(variation, len(regrets)))),
        "V in a cone": estimate(calm.mean(axis=1)),
    }
    return Numbers(design, found)


def correlations(x: FloatArray, y: FloatArray) -> FloatArray:
    """[seeds]: Pearson's, of each seed's rows [n]; nan if one of them does not vary."""
    x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    scale = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    found: FloatArray = np.full(len(x), np.nan)
    np.divide((x * y).sum(axis=1), scale, out=found, where=scale > 0)
    return found


def best_of(some: Sequence[Numbers]) -> Numbers:
    """The most matches and, among equals, the nearest."""
    return min(some, key=lambda numbers: (-numbers.matches, numbers.distance))
