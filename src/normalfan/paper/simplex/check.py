"""The simplex experiment's claims, judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from normalfan.paper.experiment import Row, Verdict
from normalfan.paper.judging import Estimate, correlation, estimate, judged, listed, numbers_of, over_seeds
from normalfan.paper.simplex.run import ALGORITHMS

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


def check(frame: polars.DataFrame) -> Sequence[Row]:
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
    """All four regimes for every design of the crossing regimes; the other two regimes are shared."""
    import polars as pl

    ours = frame.filter(pl.col("variant") == "ours")
    rate = ours["rate"][0]
    designs = {f"rate {rate:g}": ours}
    calm = ours.filter(pl.col("regime").is_in(["within_cone", "wall"]))
    for variant in frame["variant"].unique(maintain_order=True):
        if variant.startswith(("rate", "between")):
            crossing = frame.filter(pl.col("variant") == variant)
            shared = calm.filter(pl.col("seed").is_in(crossing["seed"].unique().to_list()))
            designs[variant] = pl.concat([shared, crossing])
    return designs


def _decomposition(frame: polars.DataFrame) -> Row:
    gap = float(frame["tracker_gap"].abs().max())  # type: ignore[arg-type]
    round_gap = float(frame["tracker_gap_worst_round"].max())  # type: ignore[arg-type]
    vertices = int(frame["largest_dimension"].max()) == 0  # type: ignore[arg-type]
    holds = gap <= IDENTITY
    return Row(
        "simplex/decomposition",
        "The previous-face tracker's regret is its first round's plus the price, exactly",
        f"largest |regret − r₁ − Γ| over {len(frame)} sequences {gap:.1e}; over single rounds {round_gap:.1e}",
        Verdict.HOLDS if holds else Verdict.FALSE,
        "every face was a vertex, so there is no selection error" if vertices else "some face was degenerate",
        {"largest gap": gap, "largest gap of a round": round_gap, "sequences": float(len(frame))},
    )


def _per_design(
    designs: dict[str, polars.DataFrame], number: Callable[[polars.DataFrame], float]
) -> dict[str, Estimate]:
    return {name: over_seeds(rows, number) for name, rows in designs.items()}


def _tracker_price(designs: dict[str, polars.DataFrame]) -> Row:
    found = _per_design(designs, lambda rows: correlation(rows["tracker"], rows["price"]))
    return Row(
        "simplex/tracker-price",
        "The tracker's regret and the price correlate at 1.00",
        listed(found, ".4f"),
        judged(found, PAPER_PRICE, TWO_DIGITS),
        "the two differ by the first round's regret only, whatever the design",
        numbers_of(found),
    )


def _tracker_variation(designs: dict[str, polars.DataFrame]) -> Row:
    found = {
        f"{name}, {norm}": over_seeds(rows, lambda part, c=column: correlation(part["tracker"], part[c]))  # type: ignore[misc]
        for name, rows in designs.items()
        for column, norm in NORM_NAMES.items()
    }
    verdict = judged(found, PAPER_VARIATION, TWO_DIGITS)
    nearest = min(found, key=lambda name: abs(found[name].mean - PAPER_VARIATION))
    return Row(
        "simplex/tracker-variation",
        "The tracker's regret and the loss variation correlate at 0.89 only",
        listed(found),
        verdict,
        f"the norm and how often the crossing regimes cross decide; nearest is {nearest}",
        numbers_of(found),
    )


def _zero_price(frame: polars.DataFrame) -> Row:
    import polars as pl

    calm = frame.filter(pl.col("regime") == "within_cone")
    price = float(calm["price"].max())  # type: ignore[arg-type]
    later = float((calm["tracker"] - calm["tracker_first"]).abs().max())  # type: ignore[arg-type]
    free = price == 0.0 and later <= IDENTITY
    return Row(
        "simplex/within-cone-price",
        "Within a cone the price stays at zero and the tracker pays almost nothing",
        f"largest price {price:g}, largest regret after the first round {later:g}, "
        f"in {len(calm)} sequences of all drifts; the first round costs {calm['tracker_first'].mean():.3f}",
        Verdict.HOLDS if free else Verdict.FALSE,
        "the tracker stays on the one vertex that is always optimal",
        {"largest price": price, "largest regret after the first round": later},
    )


def within_cone_variation(frame: polars.DataFrame) -> dict[str, Estimate]:
    """The mean variation within a cone, over arms and trials, by drift and norm."""
    import polars as pl

    calm = frame.filter(pl.col("regime") == "within_cone")
    return {
        f"{drift}, {norm}": over_seeds(
            calm.filter(pl.col("drift") == drift),
            lambda part, c=column: float(part[c].mean()),  # type: ignore[misc, arg-type]
        )
        for drift in calm["drift"].unique(maintain_order=True)
        for column, norm in NORM_NAMES.items()
    }


def _within_cone_variation(frame: polars.DataFrame) -> Row:
    found = within_cone_variation(frame)
    nearest = min(found, key=lambda name: abs(found[name].mean - PAPER_WITHIN_CONE))
    return Row(
        "simplex/within-cone-variation",
        "Within a cone the mean variation is 2.6e3",
        listed(found, ".3g"),
        judged(found, PAPER_WITHIN_CONE, 50.0),
        f"it is as large as the drift and the norm make it; nearest is {nearest}",
        numbers_of(found),
    )


def best_regrets(rows: polars.DataFrame, keys: Sequence[str]) -> dict[str, np.ndarray]:
    """[n] of each algorithm: its regret at the step size whose mean over the rows alike in `keys` is least."""
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


def _pooled(designs: dict[str, polars.DataFrame]) -> list[Row]:
    found: dict[str, Estimate] = {}
    single: dict[str, Estimate] = {}
    for design, rows in designs.items():
        settings = {"": ["regime", "arms"]} | ({", one η": []} if not found else {})
        for label, keys in settings.items():
            regrets = best_regrets(rows, keys)
            for column, name in ({"price": "Γ"} | NORM_NAMES).items():
                per_seed = _by_seed(rows, np.stack(list(regrets.values())), column)
                found[f"{design}{label}, {name}"] = estimate(per_seed)
                if not single.keys() & {f"hedge, {name}"}:
                    single |= {
                        f"{algorithm}, {name}": estimate(_by_seed(rows, regret[None], column))
                        for algorithm, regret in regrets.items()
                    }
    verdict = judged(found, PAPER_POOLED, NEAR)
    blind = {name: number for name, number in single.items() if not name.startswith("tracker")}
    tied = max(abs(number.mean) for number in blind.values())
    return [
        Row(
            "simplex/pooled",
            "Over all four algorithms pooled, regret correlates near 0.46 with price and with variation alike",
            listed(found),
            verdict,
            "the norm, the crossing rate and what the loss does between crossings decide",
            numbers_of(found),
        ),
        Row(
            "simplex/geometry-blind",
            "The geometry-blind methods' regret is tied to neither price nor variation",
            listed(single),
            Verdict.HOLDS if tied < 0.5 else Verdict.FALSE,
            f"taken singly at the first design's rate, the largest correlation of the three is {tied:.2f}; "
            f"pooling algorithms of different levels hides it"
            if tied >= 0.5
            else "no single algorithm reaches a correlation of one half",
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
