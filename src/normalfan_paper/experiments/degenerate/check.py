"""The claims on degenerate faces, judged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from normalfan_paper.experiment import LedgerRow, Verdict
from normalfan_paper.experiments.degenerate.settings import GAMMA, HORIZON, SELECTORS, SWITCH
from normalfan_paper.judging import (
    Estimate,
    correlation,
    estimate,
    judged,
    largest,
    numbers_of,
    seeds_in_words,
    sides,
    spanned,
    verdict_over,
)

if TYPE_CHECKING:
    import polars

ROUNDING = 1e-9
"""How far sums over 5000 rounds may differ by rounding."""
PAPER = {"sticky": 0.062, "lexicographic": 0.109, "random": 0.110}
THREE_DIGITS = 0.0005
STICKY = ("occupancies", "entropy", "strings")
RANDOM = ("random vertex", "random point")
BLIND = ("lexicographic", *RANDOM)


def check(frame: polars.DataFrame) -> Sequence[LedgerRow]:
    import polars as pl

    moving = frame.filter(pl.col("variant") != "explicit")
    errors = error_per_round(moving)
    seeds = moving["seed"].n_unique()  # every design has all of them
    found = [
        _identical_price(frame),
        _oracle(frame),
        _level("sticky", errors, STICKY),
        _level("lexicographic", errors, ("lexicographic",)),
        _level("random", errors, RANDOM),
        _switch(errors),
        _order(errors),
        _random_mean(errors),
        *_dimension(moving),
    ]
    return [replace(row, seeds=seeds_in_words(seeds, [seeds])) for row in found]


def error_per_round(frame: polars.DataFrame) -> dict[tuple[str, str], np.ndarray]:
    """[seeds]: the selection error a round, by variant and selector."""
    import polars as pl

    summed = (
        frame.group_by("variant", "selector", "seed", maintain_order=True)
        .agg(pl.col("selection", "rounds").sum())
        .sort("seed")
    )
    parts = summed.partition_by("variant", "selector", as_dict=True)
    return {
        (variant, selector): (
            parts[variant, selector]["selection"] / parts[variant, selector]["rounds"]
        ).to_numpy()
        for variant in frame["variant"].unique(maintain_order=True)
        for selector in SELECTORS
    }


def _identical_price(frame: polars.DataFrame) -> LedgerRow:
    import polars as pl

    totals = frame.group_by("variant", "seed", "selector").agg(pl.col("implied_price", "price").sum())
    spread = totals.group_by("variant", "seed").agg(
        implied=pl.col("implied_price").max() - pl.col("implied_price").min(),
        priced=pl.col("price").max() - pl.col("price").min(),
    )
    differ = max(largest(spread["implied"]), largest(spread["priced"]))
    gap = largest(frame["largest_gap"])
    return LedgerRow(
        "degenerate/identical-price",
        "All selectors pay the identical price, and the regret above it is selection error",
        f"largest difference of regret − selection error between selectors over {len(spread)} sequences "
        f"{differ:.1e}; largest |regret − price − selection error| of a round {gap:.1e}",
        Verdict.HOLDS if max(differ, gap) <= ROUNDING else Verdict.FALSE,
        "the price is a property of two losses, and every selector plays on the same face",
        {"largest difference": differ, "largest gap of a round": gap},
    )


def _oracle(frame: polars.DataFrame) -> LedgerRow:
    import polars as pl

    error = largest(frame.filter(pl.col("selector") == "oracle")["selection"])
    return LedgerRow(
        "degenerate/oracle",
        "The oracle adds no selection error",
        f"largest sum {error:.1e}",
        Verdict.HOLDS if error <= ROUNDING else Verdict.FALSE,
        "it plays the point of the face that defines the price",
        {"largest": error},
    )


def _level(name: str, errors: dict[tuple[str, str], np.ndarray], selectors: Sequence[str]) -> LedgerRow:
    found = {
        f"{variant}, {selector}" if len(selectors) > 1 else variant: estimate(values)
        for (variant, selector), values in errors.items()
        if selector in selectors
    }
    nearest = min(found, key=lambda key: abs(found[key].mean - PAPER[name]))
    return LedgerRow(
        f"degenerate/{name}-level",
        f"The {name} selector adds {PAPER[name]:.3f} a round",
        spanned(found, ".4f", first=len(selectors)),
        judged(found, PAPER[name], THREE_DIGITS),
        "the level is set by how often prefixes grow finer and by what a wrong step costs; "
        f"{sides(found, PAPER[name])}, nearest is {nearest}",
        numbers_of(found),
    )


def _switch(errors: dict[tuple[str, str], np.ndarray]) -> LedgerRow:
    most = SWITCH * HORIZON * GAMMA
    found = {
        f"{variant}, {selector}": estimate(values)
        for (variant, selector), values in errors.items()
        if variant.startswith("whole faces switch") and selector in BLIND
    }
    claimed = PAPER["lexicographic"]
    reached = max(number.mean for number in found.values()) >= claimed - THREE_DIGITS
    verdict = Verdict.HOLDS if reached else Verdict.ASSUMES if most < claimed else Verdict.DEPENDS
    return LedgerRow(
        "degenerate/switch",
        "Prefixes move with switch probability 0.025, and a blind selector adds 0.109 a round",
        f"if the face moves on switch rounds only, at most {SWITCH:g}·H·γ = {most:.3g} a round; "
        f"run so: {spanned(found, '.4f')}",
        verdict,
        "a held face has no selection error, so something must move on other rounds too: here the bits flip "
        "one by one and the length of the prefix is redrawn besides",
        {"bound": most, **numbers_of(found)},
    )


def _order(errors: dict[tuple[str, str], np.ndarray]) -> LedgerRow:
    """Oracle below sticky, sticky below the blind ones, paired over seeds."""
    gaps: dict[str, Estimate] = {}
    kept: dict[str, bool] = {}
    for variant in dict.fromkeys(variant for variant, _ in errors):
        for sticky in STICKY:
            blind = np.min([errors[variant, name] for name in BLIND], axis=0)
            gap, above = estimate(blind - errors[variant, sticky]), estimate(errors[variant, sticky])
            gaps[f"{variant}, {sticky}"] = gap
            kept[f"{variant}, {sticky}"] = all(n.mean > 2 * _known(n.error) for n in (gap, above))
    broken = [name for name, fine in kept.items() if not fine]
    verdict = verdict_over(kept.values())
    return LedgerRow(
        "degenerate/order",
        "The sticky selector stays below the lexicographic and random ones, the oracle below all",
        f"best blind error − sticky error: {spanned(gaps, '.4f', first=len(STICKY))}",
        verdict,
        f"no gap beyond two standard errors in: {', '.join(broken)}"
        if broken
        else "in every design that was run",
        numbers_of(gaps),
    )


def _known(error: float) -> float:
    return error if math.isfinite(error) else 0.0


def _random_mean(errors: dict[tuple[str, str], np.ndarray]) -> LedgerRow:
    vertex, point = RANDOM
    found = {
        variant: estimate(errors[variant, vertex] - errors[variant, point])
        for variant in dict.fromkeys(variant for variant, _ in errors)
    }
    doubt = min(_probability(number, len(errors[variant, vertex])) for variant, number in found.items())
    return LedgerRow(
        "degenerate/random-mean",
        "Random selection draws a uniform point",
        f"error of a random vertex less that of a random point: {spanned(found, '.4f')}; the largest "
        f"in its standard errors comes by chance with probability {min(1.0, doubt * len(found)):.2g}",
        Verdict.HOLDS if doubt * len(found) >= CHANCE else Verdict.FALSE,
        "a random vertex and a random interior point have the same mean occupancy, and losses are linear: "
        "the reading does not matter",
        numbers_of(found),
    )


CHANCE = 1e-3
"""A difference less probable than this, among all designs, is no accident."""


def _probability(difference: Estimate, seeds: int) -> float:
    """Of a mean at least as far from 0, if the true one is 0 (Student)."""
    from scipy.stats import t

    if not difference.error > 0:
        return 1.0 if abs(difference.mean) <= ROUNDING or seeds < 2 else 0.0
    return float(2 * t.sf(abs(difference.mean) / difference.error, seeds - 1))


def error_by_dimension(rows: polars.DataFrame) -> dict[str, tuple[np.ndarray, list[Estimate]]]:
    """For each selector the numbers of free layers, and the error a round on such faces."""
    parts = rows.partition_by("selector", as_dict=True)
    out = {}
    for selector in SELECTORS:
        part = parts[selector,]
        free, error = part["free_layers"].to_numpy(), (part["selection"] / part["rounds"]).to_numpy()
        layers = np.unique(free)
        out[selector] = (layers, [estimate(error[free == count].tolist()) for count in layers])
    return out


def _dimension(moving: polars.DataFrame) -> list[LedgerRow]:
    import polars as pl

    growth: dict[str, Estimate] = {}
    below: dict[str, float] = {}
    for variant in moving["variant"].unique(maintain_order=True):
        rows = moving.filter(pl.col("variant") == variant)
        table = error_by_dimension(rows)
        for selector in (*STICKY, *BLIND):
            layers, numbers = table[selector]
            means = [number.mean for number in numbers]
            growth[f"{variant}, {selector}"] = Estimate(correlation(_ranks(layers), _ranks(means)), math.nan)
        for sticky in STICKY:
            fine = [_not_above(table, sticky, place) for place in range(len(table[sticky][0]))]
            below[f"{variant}, {sticky}"] = float(np.mean(fine))
    grows = [number.mean >= MONOTONE for number in growth.values()]
    under = [share == 1.0 for share in below.values()]
    least = min(below, key=lambda name: below[name])
    return [
        LedgerRow(
            "degenerate/dimension",
            "The selection error grows with the dimension of the free face",
            f"rank correlation of error and free layers: {spanned(growth, first=len(STICKY))}",
            verdict_over(grows),
            f"{sum(grows)} of {len(grows)} designs and selectors reach {MONOTONE:g}; the dimension of a face "
            f"with n free layers is 2^n − 1",
            numbers_of(growth),
        ),
        LedgerRow(
            "degenerate/sticky-below",
            "The sticky selector keeps the error below the blind ones at every dimension",
            "share of dimensions at which it is not above: ours "
            + ", ".join(f"{below[f'ours, {sticky}']:.2f} ({sticky})" for sticky in STICKY)
            + f"; least {below[least]:.2f} ({least})",
            verdict_over(under),
            f"above by more than two standard errors in: {', '.join(n for n in below if below[n] < 1.0)}"
            if not all(under)
            else "nowhere was it above by more than two standard errors",
            below,
        ),
    ]


def _not_above(table: dict[str, tuple[np.ndarray, list[Estimate]]], sticky: str, place: int) -> bool:
    """The sticky error is above no blind one, by more than two standard errors."""
    own = table[sticky][1][place]
    others = [table[name][1][place] for name in BLIND]
    return all(
        own.mean - other.mean <= 2 * math.hypot(_known(own.error), _known(other.error)) + ROUNDING
        for other in others
    )


MONOTONE = 0.9
"""The rank correlation from which on we say "grows"."""


def _ranks(values: Sequence[float] | np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values))
