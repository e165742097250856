"""The simplex experiment's claims, judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from normalfan_paper.experiment import LedgerRow, Verdict
from normalfan_paper.experiments.simplex.run import ALGORITHMS
from normalfan_paper.judging import (
    Estimate,
    correlation,
    estimate,
    judged,
    largest,
    listed,
    numbers_of,
    over_seeds,
    spanned,
)

if TYPE_CHECKING:
    import polars

IDENTITY = 1e-9
"""How far a sum of 5000 regrets may lie from a sum of 5000 prices: rounding."""

NORM_NAMES = {"variation_l1": "L1", "variation_l2": "L2", "variation_linf": "L∞"}
PAPER_PRICE, PAPER_VARIATION, PAPER_POOLED = 1.00, 0.89, 0.46
PAPER_WITHIN_CONE = 2600.0
TWO_DIGITS = 0.005
NEAR = 0.03
"""What "near 0.46" may mean."""
TIED = 0.5
"""The correlation from which on we call regret tied to a yardstick."""
PAPER_ROUNDS = 5000


def check(frame: polars.DataFrame) -> Sequence[LedgerRow]:
    designs = crossing_designs(frame)
    return [
        _decomposition(frame),
        _tracker_price(designs),
        _tracker_variation(designs),
        _zero_price(frame),
        _within_cone_variation(frame),
        *_pooled(designs),
    ]


def crossing_designs(frame: polars.DataFrame) -> dict[str, polars.DataFrame]:
    """All four regimes for every design: where a variant ran some of them, ours stand in for the rest."""
    import polars as pl

    ours = frame.filter(pl.col("variant") == "ours")
    designs = {f"rate {ours['rate'][0]:g}": ours}
    for variant in frame["variant"].unique(maintain_order=True).to_list()[1:]:
        changed = frame.filter(pl.col("variant") == variant)
        rest = ours.filter(
            ~pl.col("regime").is_in(changed["regime"].unique().to_list())
            & pl.col("seed").is_in(changed["seed"].unique().to_list())
        )
        designs[variant] = pl.concat([rest, changed])
    return designs


def _decomposition(frame: polars.DataFrame) -> LedgerRow:
    gap = largest(frame["tracker_gap"])
    round_gap = largest(frame["tracker_gap_worst_round"])
    vertices = largest(frame["largest_dimension"]) == 0
    holds = gap <= IDENTITY
    return LedgerRow(
        "simplex/decomposition",
        "The previous-face tracker's regret is its first round's plus the price, exactly",
        f"largest |regret − r₁ − Γ| over {len(frame)} sequences {gap:.1e}; "
        f"over single rounds {round_gap:.1e}",
        Verdict.HOLDS if holds else Verdict.FALSE,
        "every face was a vertex, so there is no selection error" if vertices else "some face was degenerate",
        {"largest gap": gap, "largest gap of a round": round_gap, "sequences": float(len(frame))},
    )


def _tracker_price(designs: dict[str, polars.DataFrame]) -> LedgerRow:
    found = {name: over_seeds(rows, correlation, "tracker", "price") for name, rows in designs.items()}
    return LedgerRow(
        "simplex/tracker-price",
        "The tracker's regret and the price correlate at 1.00",
        listed(found, ".4f"),
        judged(found, PAPER_PRICE, TWO_DIGITS),
        "the two differ by the first round's regret only, whatever the design",
        numbers_of(found),
    )


def _tracker_variation(designs: dict[str, polars.DataFrame]) -> LedgerRow:
    found = {
        f"{name}, {norm}": over_seeds(rows, correlation, "tracker", column)
        for name, rows in designs.items()
        for column, norm in NORM_NAMES.items()
    }
    verdict = judged(found, PAPER_VARIATION, TWO_DIGITS)
    nearest = min(found, key=lambda name: abs(found[name].mean - PAPER_VARIATION))
    return LedgerRow(
        "simplex/tracker-variation",
        "The tracker's regret and the loss variation correlate at 0.89 only",
        spanned(found, first=3),
        verdict,
        f"the norm, the drift and how often the crossing regimes cross decide; nearest is {nearest}",
        numbers_of(found),
    )


def _zero_price(frame: polars.DataFrame) -> LedgerRow:
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
    )


def within_cone_variation(frame: polars.DataFrame) -> dict[str, Estimate]:
    """The mean variation of 5000 rounds within a cone, over arms and trials, by drift and norm."""
    import polars as pl

    calm = frame.filter(pl.col("regime") == "within_cone")
    return {
        f"{drift}, {norm}": over_seeds(
            calm.filter(pl.col("drift") == drift), _of_5000_rounds, column, "rounds"
        )
        for drift in calm["drift"].unique(maintain_order=True)
        for column, norm in NORM_NAMES.items()
    }


def _of_5000_rounds(variation: np.ndarray, rounds: np.ndarray) -> float:
    return float(np.mean(variation / rounds)) * PAPER_ROUNDS


def _within_cone_variation(frame: polars.DataFrame) -> LedgerRow:
    found = within_cone_variation(frame)
    nearest = min(found, key=lambda name: abs(found[name].mean - PAPER_WITHIN_CONE))
    return LedgerRow(
        "simplex/within-cone-variation",
        "Within a cone the mean variation is 2.6e3",
        spanned(found, ".3g", first=3),
        judged(found, PAPER_WITHIN_CONE, 50.0),
        f"it is as large as the drift and the norm make it; nearest is {nearest}",
        numbers_of(found),
    )


def best_regrets(rows: polars.DataFrame, keys: Sequence[str]) -> dict[str, np.ndarray]:
    """[n] of each algorithm: its regret at the step size best on average over rows alike in `keys`."""
    import polars as pl

    out = {"tracker": rows["tracker"].to_numpy()}
    for name in ALGORITHMS:
        columns = [column for column in rows.columns if column.startswith(f"{name} ")]
        means = [pl.col(c).cast(pl.Float64).mean() for c in columns]
        means = [mean.over(list(keys)) for mean in means] if keys else means
        table = rows.select(mean.alias(c) for mean, c in zip(means, columns, strict=True)).to_numpy()
        chosen = np.broadcast_to(table, (len(rows), len(columns))).argmin(axis=1)
        out[name] = rows.select(columns).to_numpy()[np.arange(len(rows)), chosen].astype(np.float64)
    return out


def _pooled(designs: dict[str, polars.DataFrame]) -> list[LedgerRow]:
    yardsticks = {"price": "Γ"} | NORM_NAMES
    found: dict[str, Estimate] = {}
    single: dict[str, Estimate] = {}
    for design, rows in designs.items():
        regrets = best_regrets(rows, ["regime", "arms"])
        for column, name in yardsticks.items():
            found[f"{design}, {name}"] = estimate(_by_seed(rows, np.stack(list(regrets.values())), column))
            blind = {a: estimate(_by_seed(rows, regrets[a][None], column)) for a in ALGORITHMS}
            most = max(blind, key=lambda a: abs(blind[a].mean))
            single[f"{design}, {name} ({most})"] = blind[most]
    first, rows = next(iter(designs.items()))
    once = np.stack(list(best_regrets(rows, []).values()))
    found |= {f"{first}, one η, {name}": estimate(_by_seed(rows, once, c)) for c, name in yardsticks.items()}
    tied = [abs(number.mean) >= TIED for number in single.values()]
    return [
        LedgerRow(
            "simplex/pooled",
            "Over all four algorithms pooled, regret correlates near 0.46 with both price and variation",
            spanned(found, first=4),
            judged(found, PAPER_POOLED, NEAR),
            "the norm, the drift, the crossing rate and what the loss does between crossings decide",
            numbers_of(found),
        ),
        LedgerRow(
            "simplex/geometry-blind",
            "The geometry-blind methods' regret is tied to neither price nor variation",
            "the most correlated of the three: " + spanned(single, first=4),
            Verdict.FALSE if all(tied) else Verdict.DEPENDS if any(tied) else Verdict.HOLDS,
            f"{sum(tied)} of {len(tied)} pairs of design and yardstick reach a correlation of {TIED:g}",
            numbers_of(single),
        ),
    ]


def _by_seed(rows: polars.DataFrame, regrets: np.ndarray, column: str) -> list[float]:
    """The correlation of regrets [algorithms, n], pooled, with a column, seed by seed."""
    seeds, x = rows["seed"].to_numpy(), rows[column].to_numpy()
    return [
        correlation(np.tile(x[seeds == seed], len(regrets)), regrets[:, seeds == seed].ravel())
        for seed in np.unique(seeds)
    ]
