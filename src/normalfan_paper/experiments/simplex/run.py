"""One cell of the simplex experiment: every trial of its regimes, priced and played.

The price comes from the engine (`price_stream`). The previous-face tracker plays the best arm of the round
before and pays what it reads off the losses: its regret and the price are computed by different means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normalfan.pricing.motion import NORMS
from normalfan.pricing.stream import price_stream
from normalfan.problem.arrays import FloatArray
from normalfan_paper.environments import simplex_regimes
from normalfan_paper.environments.constructions import Instance
from normalfan_paper.experiment import Settings
from normalfan_paper.experiments.simplex.settings import REGIMES
from normalfan_paper.simulation.hedge_runs import simulate_hedge
from normalfan_paper.simulation.simplex_runs import (
    simulate_euclidean_mirror_descent,
    simulate_optimistic_hedge,
)

if TYPE_CHECKING:
    import polars

ALGORITHMS = {
    "hedge": simulate_hedge,
    "optimistic": simulate_optimistic_hedge,
    "euclidean": simulate_euclidean_mirror_descent,
}


def run_cell(settings: Settings) -> polars.DataFrame:
    """One row a trial."""
    import polars

    rows = []
    for regime, motion, rate in settings["ways"]:
        place = [settings["seed"], settings["arms"], REGIMES.index(regime)]
        for trial, child in enumerate(np.random.SeedSequence(place).spawn(settings["trials"])):
            rng = np.random.default_rng(child)
            instance = build_losses(regime, motion, rate, settings, rng)
            known = {name: settings[name] for name in ("part", "seed", "arms", "rounds")}
            known |= {"regime": regime, "motion": motion, "rate": rate, "trial": trial}
            rows.append(known | measure(instance, settings["etas"]))
    frame = polars.DataFrame(rows, schema_overrides={"rate": polars.Float64}, infer_schema_length=None)
    runs = [name for name in frame.columns if name.split(" ")[0] in ALGORITHMS]
    return frame.with_columns(polars.col(runs).cast(polars.Float32))


def build_losses(
    regime: str, motion: Any, rate: float | None, settings: Settings, rng: np.random.Generator
) -> Instance:
    """The losses of one trial."""
    size: tuple[int, int, float] = (settings["rounds"], settings["arms"], settings["gamma"])
    if regime == "within_cone":
        return simplex_regimes.within_cone(*size, drift=motion, rng=rng)
    if regime == "wall":
        return simplex_regimes.wall(*size, others=motion, rng=rng)
    crossing = simplex_regimes.crossings if regime == "crossings" else simplex_regimes.rotating
    return crossing(*size, rate=float(rate or 0.0), between=motion, rng=rng)


def measure(instance: Instance, etas: list[float]) -> dict[str, Any]:
    """Price, variation and everybody's regret on one sequence of losses."""
    motion = price_stream(*instance)
    tracked = tracker_regret(instance.losses[:, 0, 0])
    after_first = float(tracked[1:].sum())
    row: dict[str, Any] = {
        "price": motion.total,
        "crossed": int(motion.crossed.sum()),
        "largest_dimension": int(motion.dimensions.max()),
        **{f"variation_{norm}": float(motion.variation(norm).sum()) for norm in NORMS},
        "tracker": float(tracked.sum()),
        "tracker_first": float(tracked[0]),
        "tracker_gap": after_first - motion.total,
        "tracker_gap_worst_round": float(np.abs(tracked[1:] - motion.prices[1:]).max(initial=0.0)),
    }
    best = motion.values.sum()
    for name, simulate in ALGORITHMS.items():
        paid = simulate(instance.mdp, instance.losses, etas)
        row |= {f"{name} {eta:g}": total - best for eta, total in zip(etas, paid.sum(axis=1), strict=True)}
    return row


def tracker_regret(losses: FloatArray) -> FloatArray:
    """[T]: what playing the best arm of the round before loses on losses [T, K]; uniform at first."""
    best = losses.argmin(axis=1)
    paid = np.append(losses[0].mean(), losses[np.arange(1, len(losses)), best[:-1]])
    return np.asarray(paid - losses.min(axis=1))
