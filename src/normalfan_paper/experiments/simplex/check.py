"""The simplex experiment's claims, judged: by our design, and over the map of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from normalfan_paper.experiment import LedgerRow, Verdict
from normalfan_paper.experiments.simplex.designs import (
    NEAR,
    NORM_NAMES,
    PAPER,
    Design,
    Numbers,
    Ways,
    all_designs,
    best_of,
    correlations,
    members,
    numbers_of_design,
    ours,
    ways_of,
)
from normalfan_paper.experiments.simplex.run import ALGORITHMS
from normalfan_paper.judging import (
    Estimate,
    estimate,
    judged,
    largest,
    listed,
    numbers_of,
    seeds_in_words,
    sides,
    verdict_over,
)

if TYPE_CHECKING:
    import polars

IDENTITY = 1e-9
"""How far a sum of 5000 regrets may lie from a sum of 5000 prices: rounding."""
PAPER_PRICE = 1.00
DIGITS = {"tracker and V": 0.005, "pooled and Γ": 0.03, "pooled and V": 0.03, "V in a cone": 50.0}
"""How precisely the paper states its numbers; "near 0.46" is taken as within 0.03."""
TIED = 0.5
"""The correlation from which on we call regret tied to a yardstick."""


def check(frame: polars.DataFrame) -> Sequence[LedgerRow]:
    import polars as pl

    whole = ways_of(frame.filter(pl.col("part") == "ours"))
    mapped = ways_of(frame.filter(pl.col("part") == "map"))
    own = [numbers_of_design(design, whole) for design in ours()]
    designs = [numbers_of_design(design, mapped) for design in all_designs()]
    seeds = seeds_in_words(frame["seed"].n_unique(), [frame["seed"].n_unique()])
    return [
        _decomposition(frame, seeds),
        _tracker_price(whole, mapped, seeds),
        _one_number(
            "tracker-variation",
            "The tracker's regret and the loss variation correlate at 0.89 only",
            ["tracker and V"],
            own,
            designs,
            seeds,
        ),
        _zero_price(frame, seeds),
        _within_cone_variation(own, designs, seeds),
        _one_number(
            "pooled",
            "Over all four algorithms pooled, regret correlates near 0.46 with both price and variation",
            ["pooled and Γ", "pooled and V"],
            own,
            designs,
            seeds,
        ),
        _geometry_blind(whole, mapped, seeds),
        _all_at_once(own, designs, seeds),
    ]


def _decomposition(frame: polars.DataFrame, seeds: str) -> LedgerRow:
    gap = largest(frame["tracker_gap"])
    round_gap = largest(frame["tracker_gap_worst_round"])
    vertices = largest(frame["largest_dimension"]) == 0
    return LedgerRow(
        "simplex/decomposition",
        "The previous-face tracker's regret is its first round's plus the price, exactly",
        f"largest |regret − r₁ − Γ| over {len(frame)} sequences {gap:.1e}; "
        f"over single rounds {round_gap:.1e}",
        Verdict.HOLDS if gap <= IDENTITY else Verdict.FALSE,
        "every face was a vertex, so there is no selection error" if vertices else "some face was degenerate",
        {"largest gap": gap, "largest gap of a round": round_gap, "sequences": float(len(frame))},
        seeds,
    )


def _tracker_price(whole: Ways, mapped: Ways, seeds: str) -> LedgerRow:
    found = {}
    for name, ways, some in (
        ("ours", whole, ours()[:1]),
        ("map", mapped, list(all_designs())[:: len(NORM_NAMES)]),
    ):
        values = []
        for design in some:
            price, _, tracker, _ = members(design, ways)
            values.append(estimate(correlations(tracker, price)))
        found[name] = min(values, key=lambda number: number.mean)
    return LedgerRow(
        "simplex/tracker-price",
        "The tracker's regret and the price correlate at 1.00",
        f"ours {found['ours']:.4f}; least of {len(some)} designs {found['map']:.4f}",
        judged(found, PAPER_PRICE, 0.005),
        "the two differ by the first round's regret only, whatever the design",
        numbers_of(found),
        seeds,
    )


def _one_number(
    row: str, claim: str, names: Sequence[str], own: list[Numbers], designs: list[Numbers], seeds: str
) -> LedgerRow:
    """A number of the paper over the whole map; if two are claimed together, both must agree."""
    agree = [
        all(numbers.found[name].agrees(PAPER[name], DIGITS[name]) for name in names) for numbers in designs
    ]
    nearest = min(designs, key=lambda n: sum(abs(n.found[name].mean - PAPER[name]) for name in names))
    mine = {f"{NORM_NAMES[n.design.norm]}, {name}": n.found[name] for n in own for name in names}
    means = [n.found[name].mean for n in designs for name in names]
    near = {name: nearest.found[name] for name in names}
    return LedgerRow(
        f"simplex/{row}",
        claim,
        f"ours {listed(mine)}; over {len(designs)} designs from {min(means):.2f} to {max(means):.2f}; "
        f"nearest "
        f"{listed(near)} ({nearest.design})",
        verdict_over(agree),
        f"{sum(agree)} of {len(agree)} designs agree to the digits that are given; the norm, the drift, the "
        "crossing rate and what the loss does between crossings decide",
        numbers_of(mine) | numbers_of({f"nearest, {name}": number for name, number in near.items()}),
        seeds,
    )


def _zero_price(frame: polars.DataFrame, seeds: str) -> LedgerRow:
    import polars as pl

    calm = frame.filter(pl.col("regime") == "within_cone")
    price = largest(calm["price"])
    later = largest(calm["tracker"] - calm["tracker_first"])
    first = largest(calm["tracker_first"])
    free = price == 0.0 and later <= IDENTITY
    return LedgerRow(
        "simplex/within-cone-price",
        "Within a cone the price stays at zero and the tracker pays almost nothing",
        f"largest price {price:g}, largest regret after the first round {later:g}, "
        f"in {len(calm)} sequences of all drifts; the first round costs at most {first:.3f}",
        Verdict.HOLDS if free else Verdict.FALSE,
        "the tracker stays on the one vertex that is always optimal",
        {"largest price": price, "largest regret after the first round": later},
        seeds,
    )


def _within_cone_variation(own: list[Numbers], designs: list[Numbers], seeds: str) -> LedgerRow:
    """Of the design only the drift and the norm matter here."""
    name = "V in a cone"
    found = {f"{n.design.cone}, {NORM_NAMES[n.design.norm]}": n.found[name] for n in designs}
    mine = {f"{n.design.cone}, {NORM_NAMES[n.design.norm]}": n.found[name] for n in own}
    nearest = min(found, key=lambda key: abs(found[key].mean - PAPER[name]))
    means = [number.mean for number in found.values()]
    return LedgerRow(
        "simplex/within-cone-variation",
        "Within a cone the mean variation is 2.6e3",
        f"ours {listed(mine, '.3g')}; over {len(found)} drifts and norms from {min(means):.3g} to "
        f"{max(means):.3g}",
        judged(found, PAPER[name], DIGITS[name]),
        f"it is as large as the drift and the norm make it; {sides(found, PAPER[name])}, nearest is "
        f"{nearest}, "
        f"{found[nearest]:.3g}",
        numbers_of(found),
        seeds,
    )


def _geometry_blind(whole: Ways, mapped: Ways, seeds: str) -> LedgerRow:
    def strongest(ways: Ways, designs: Sequence[Design]) -> dict[str, Estimate]:
        out = {}
        for design in designs:
            price, variation, _, regrets = members(design, ways)
            for name, yardstick in (("Γ", price), ("V", variation)):
                each = [estimate(correlations(regret, yardstick)) for regret in regrets[1:]]
                out[f"{design}, {name}"] = max(each, key=lambda number: abs(number.mean))
        return out

    mine, found = strongest(whole, ours()), strongest(mapped, list(all_designs()))
    tied = [abs(number.mean) >= TIED for number in found.values()]
    means = [number.mean for number in found.values()]
    verdict = Verdict.HOLDS if not any(tied) else Verdict.UNSEEN if all(tied) else Verdict.DEPENDS
    shown = {name.rpartition(", ")[2] + " " + name.partition(",")[0]: number for name, number in mine.items()}
    return LedgerRow(
        "simplex/geometry-blind",
        "The geometry-blind methods' regret is tied to neither price nor variation",
        f"the most correlated of the {len(ALGORITHMS)}, ours: {listed(shown)}; over {len(found)} pairs of "
        f"a design "
        f"and a yardstick from {min(means):.2f} to {max(means):.2f}",
        verdict,
        f"{sum(tied)} of {len(tied)} pairs reach a correlation of {TIED:g}",
        numbers_of(mine),
        seeds,
    )


def _all_at_once(own: list[Numbers], designs: list[Numbers], seeds: str) -> LedgerRow:
    best, closest = best_of(designs), min(designs, key=lambda numbers: numbers.distance)
    counts = np.bincount([numbers.matches for numbers in designs], minlength=len(PAPER) + 1)
    told = ", ".join(f"{number} of {len(PAPER)} in {count}" for number, count in enumerate(counts) if count)

    def said(numbers: Numbers) -> str:
        return ", ".join(f"{name} {number:.3g}" for name, number in numbers.found.items())

    return LedgerRow(
        "simplex/all-at-once",
        "One design gives 0.89, 0.46, 0.46 and 2.6e3 together",
        f"numbers matched (correlations within {NEAR['tracker and V']:g}, the variation within 5 %): "
        f"{told}; most in "
        f"{best.design}: {said(best)}; nearest {closest.design}: {said(closest)}; ours at best "
        f"{best_of(own).matches}",
        verdict_over(numbers.matches == len(PAPER) for numbers in designs),
        f"{len(designs)} designs were searched: motion in the cone × at the wall × between crossings × "
        f"rate × norm; "
        "a match would say that such a design exists, not that it is the paper's",
        {f"designs with {number} matches": float(count) for number, count in enumerate(counts)}
        | {f"nearest, {name}": number.mean for name, number in closest.found.items()},
        seeds,
    )
