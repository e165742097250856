"""The layered tree's claims, judged."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from normalfan_paper.experiment import LedgerRow, Verdict
from normalfan_paper.judging import (
    Estimate,
    estimate,
    largest,
    listed,
    numbers_of,
    over_seeds,
    r_squared,
    seeds_in_words,
    spanned,
    verdict_over,
)

if TYPE_CHECKING:
    import polars

ROUNDING = 1e-14
"""What float64 may lose in a price of 20 steps, over γ."""
PAPER_DEVIATION = 2e-15
ONE_DIGIT = 1.25
"""A number stated with one digit is met up to this factor."""
NEARLY_ALL = 0.9
"""The share of the variance from which on we say "nearly all"."""
TOGETHER = 0.99
PREDICTORS = {
    "price": "Γ",
    "causal": "causal length",
    "raw": "raw length",
    "variation_l1": "V in L1",
    "variation_l2": "V in L2",
    "variation_linf": "V in L∞",
}


def check(frame: polars.DataFrame) -> Sequence[LedgerRow]:
    import polars as pl

    identity = frame.filter(pl.col("variant") == "identity")
    sequences = frame.filter(pl.col("variant") != "identity")
    return [
        *_identity(identity),
        _early_and_late(identity),
        _predictors(sequences),
        _together(sequences),
    ]


def deviations(identity: polars.DataFrame) -> dict[str, float]:
    """The largest |Γ/γ − (H − h + 1)| over horizons and layers, by how the price was computed."""
    expected = identity["horizon"] - identity["layer"] + 1
    names = {"multiplied": "closed form", "summed": "lazy backup", "engine": "engine on the explicit tree"}
    return {label: largest((identity[column] - expected).drop_nulls()) for column, label in names.items()}


def _identity(identity: polars.DataFrame) -> list[LedgerRow]:
    found = deviations(identity)
    shown = "; ".join(f"{name} {value:.1e}" for name, value in found.items())
    met = {name: value <= PAPER_DEVIATION * ONE_DIGIT for name, value in found.items()}
    bit = largest(identity["separable_bit"])
    layers = f"{len(identity)} layers of horizons {', '.join(map(str, sorted(set(identity['horizon']))))}"
    return [
        LedgerRow(
            "tree/identity",
            "Γ/γ = H − h + 1 for a crossing at layer h",
            f"largest deviation over {layers}: {shown}",
            Verdict.HOLDS if max(found.values()) <= ROUNDING else Verdict.FALSE,
            "on the tree the old path errs on every layer from h on; the rest is rounding (elsewhere it "
            "may err "
            f"once: one bit of a separable chain costs {bit:.3g} γ at any layer, statements/cor-causal)",
            found,
        ),
        LedgerRow(
            "tree/identity-digits",
            "The largest deviation is 2e-15",
            shown,
            Verdict.HOLDS if all(met.values()) else Verdict.ASSUMES if any(met.values()) else Verdict.FALSE,
            "it is that small where γ is multiplied; a backup that adds γ layer by layer rounds each time"
            if not all(met.values())
            else "however the price is computed",
            found,
        ),
    ]


def _early_and_late(identity: polars.DataFrame) -> LedgerRow:
    import polars as pl

    first = identity.filter(pl.col("layer") == 1).sort("horizon")
    last = identity.filter(pl.col("layer") == pl.col("horizon")).sort("horizon")
    ratios = dict(zip(first["horizon"].to_list(), (first["summed"] / last["summed"]).to_list(), strict=True))
    exact = all(abs(ratio - horizon) <= ROUNDING * horizon for horizon, ratio in ratios.items())
    return LedgerRow(
        "tree/early-late",
        "A crossing at the first layer costs H times as much as one at the last",
        "; ".join(f"H = {horizon}: {ratio:.10g}" for horizon, ratio in ratios.items()),
        Verdict.HOLDS if exact else Verdict.FALSE,
        "it is the identity at h = 1 and h = H",
        {f"H = {horizon}": ratio for horizon, ratio in ratios.items()},
    )


def best_regret(rows: polars.DataFrame) -> np.ndarray:
    """[n]: mirror descent's regret at the step size that is best on average at the row's horizon."""
    columns = [column for column in rows.columns if column.startswith("regret ")]
    table = rows.select(columns).to_numpy().astype(np.float64)
    horizons = rows["horizon"].to_numpy()
    regret = np.empty(len(rows))
    for horizon in np.unique(horizons):
        here = horizons == horizon
        regret[here] = table[here, table[here].mean(axis=0).argmin()]
    return regret


def explained(rows: polars.DataFrame, column: str, regret: str = "best") -> tuple[Estimate, Estimate]:
    """R² of one predictor, over all horizons pooled and within each on average."""
    x, y = rows[column].to_numpy(), rows[regret].to_numpy()
    seeds, horizons = rows["seed"].to_numpy(), rows["horizon"].to_numpy()
    pooled, within = [], []
    for seed in np.unique(seeds):
        here = seeds == seed
        groups = [here & (horizons == horizon) for horizon in np.unique(horizons)]
        pooled.append(r_squared(x[here], y[here]))
        within.append(float(np.mean([r_squared(x[group], y[group]) for group in groups])))
    return estimate(pooled), estimate(within)


def with_best(sequences: polars.DataFrame) -> dict[str, polars.DataFrame]:
    """The sequences of each variant, with the regret at the best step size as a column."""
    import polars as pl

    out = {}
    for variant in sequences["variant"].unique(maintain_order=True):
        rows = sequences.filter(pl.col("variant") == variant)
        out[variant] = rows.with_columns(best=best_regret(rows))
    return out


def _predictors(sequences: polars.DataFrame) -> LedgerRow:
    pooled: dict[str, Estimate] = {}
    within: dict[str, Estimate] = {}
    variants = with_best(sequences)
    for variant, rows in variants.items():
        for column, name in PREDICTORS.items():
            key = f"{variant}, {name}"
            pooled[key], within[f"{key}, within H"] = explained(rows, column)
    single = {
        f"ours, Γ, η = {column.split(' ')[1]}": explained(variants["ours"], "price", column)[0]
        for column in sequences.columns
        if column.startswith("regret ")
    }
    everything = pooled | within
    enough = [number.mean >= NEARLY_ALL for number in everything.values()]
    verdict = verdict_over(enough)
    steady, varied = within["regular dwell, Γ, within H"], within["ours, Γ, within H"]
    return LedgerRow(
        "tree/predictors",
        "Variation, raw and causal path length and price all explain nearly all of mirror descent's regret",
        f"R² pooled: {spanned(pooled, first=4)}; within H: {spanned(within, first=4)}",
        verdict,
        "mirror descent without a floor remembers every dwell, so its regret hangs on when crossings come: "
        f"with Γ as predictor R² within H is {steady:.2f} at regular and {varied:.2f} at random intervals",
        numbers_of(everything | single),
        _seeds(sequences),
    )


def _together(sequences: polars.DataFrame) -> LedgerRow:
    import polars as pl

    found: dict[str, Estimate] = {}
    for variant in sequences["variant"].unique(maintain_order=True):
        rows = sequences.filter(pl.col("variant") == variant)
        for one, other in combinations(("price", "causal", "raw", "variation_l1"), 2):
            pair = f"{variant}, {PREDICTORS[one]} and {PREDICTORS[other]}"
            found[pair] = over_seeds(rows, r_squared, one, other)
    alike = {name: number.mean >= TOGETHER for name, number in found.items()}
    ours = [held for name, held in alike.items() if name.startswith("ours")]
    least = min(found, key=lambda name: found[name].mean)
    own = min(number.mean for name, number in found.items() if name.startswith("ours"))
    verdict = Verdict.HOLDS if all(alike.values()) else Verdict.ASSUMES if all(ours) else Verdict.FALSE
    return LedgerRow(
        "tree/together",
        "In this family the predictors move together",
        f"least R² between two of them: ours {own:.4f}; least of all {listed({least: found[least]})}",
        verdict,
        "if a crossing turns its whole suffix, price, causal length, raw length and L1 variation are one "
        "number up to a factor; if it does not, the raw length is another",
        numbers_of(found),
        _seeds(sequences),
    )


def _seeds(sequences: polars.DataFrame) -> str:
    counts = {str(variant): rows["seed"].n_unique() for (variant,), rows in sequences.group_by("variant")}
    return seeds_in_words(counts.pop("ours"), counts.values())
