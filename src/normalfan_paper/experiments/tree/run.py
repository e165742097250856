"""One cell of the layered-tree experiment: sequences of optimal paths, their yardsticks, and mirror descent.

The cell "identity" forces one crossing at every layer of every horizon and prices it in four ways: the lazy
tree's product and its backup, the engine on the explicit tree, and the engine on a separable chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from normalfan.pricing.motion import NORMS
from normalfan.pricing.stream import price_stream
from normalfan.problem.arrays import FloatArray, IntArray
from normalfan_paper.environments.constructions import one_state
from normalfan_paper.environments.lazy_tree import LazyTree, moving_path
from normalfan_paper.experiment import Settings
from normalfan_paper.experiments.tree.settings import ETAS
from normalfan_paper.simulation.mirror_runs import MirrorSetting, simulate_mirror_descent
from normalfan_paper.simulation.tree_runs import simulate_tree_mirror_descent

if TYPE_CHECKING:
    import polars


def run_cell(settings: Settings) -> polars.DataFrame:
    """One row a sequence; in the cell "identity", one a horizon and layer."""
    import polars as pl

    whole = dict.fromkeys(("seed", "horizon", "sequence", "crossings", "raw", "causal", "layer"), pl.Int64)
    sums = ("rate", "price", *(f"variation_{norm}" for norm in NORMS))
    ratios = ("multiplied", "summed", "engine", "separable_bit", "separable_suffix")
    schema: dict[str, Any] = {"variant": pl.String} | whole | dict.fromkeys((*sums, *ratios), pl.Float64)
    schema |= {f"regret {eta:g}": pl.Float32 for eta in ETAS}
    rows = _identity(settings) if settings["variant"] == "identity" else _sequences(settings)
    return pl.DataFrame(list(rows), schema=schema)


def _sequences(settings: Settings) -> Iterator[dict[str, Any]]:
    horizon, etas = settings["horizon"], settings["etas"]
    for seed in settings["seeds"]:
        children = np.random.SeedSequence([seed, horizon]).spawn(settings["sequences"])
        for sequence, child in enumerate(children):
            rng = np.random.default_rng(child)
            rate = float(np.exp(rng.uniform(*np.log(settings["rates"]))))
            layer = int(rng.integers(1, horizon + 1)) if settings["one_layer"] else None
            paths = moving_path(
                settings["rounds"], horizon, rate, rng=rng, layer=layer,
                dwell=settings["dwell"], suffix=settings["suffix"],
            )  # fmt: skip
            tree = LazyTree(settings["gamma"], paths)
            measured = _separable(tree, etas) if settings["losses"] == "separable" else _node(tree, etas)
            yield {
                "variant": settings["variant"],
                "seed": seed,
                "horizon": horizon,
                "sequence": sequence,
                "rate": rate,
                "crossings": int((tree.causal_lengths > 0).sum()),
                "raw": int(tree.raw_lengths.sum()),
                "causal": int(tree.causal_lengths.sum()),
                **measured,
            }


def _node(tree: LazyTree, etas: list[float]) -> dict[str, float]:
    regrets = simulate_tree_mirror_descent(tree, etas).sum(axis=1)
    return _measured(float(tree.backed_up_prices.sum()), tree.variations(), regrets, etas)


def _separable(tree: LazyTree, etas: list[float]) -> dict[str, float]:
    mdp, losses = one_state(tree.horizon, 2), separable_losses(tree.gamma, tree.paths)
    motion = price_stream(mdp, losses)
    runs = simulate_mirror_descent(mdp, losses, [MirrorSetting(eta) for eta in etas])
    moved = np.stack([motion.variation(norm) for norm in NORMS], axis=1)
    return _measured(motion.total, moved, runs.sum(axis=1), etas)


def _measured(
    price: float, variations: FloatArray, regrets: FloatArray, etas: list[float]
) -> dict[str, float]:
    measured = {"price": price}
    measured |= {f"variation_{norm}": float(v) for norm, v in zip(NORMS, variations.sum(axis=0), strict=True)}
    return measured | {f"regret {eta:g}": float(r) for eta, r in zip(etas, regrets, strict=True)}


def separable_losses(gamma: float, paths: IntArray) -> FloatArray:
    """[T, H, 1, 2]: γ for the wrong action on each layer, whatever was done on the others."""
    wrong = paths[:, :, None, None] != np.arange(2)
    return np.asarray(gamma * wrong)


def _identity(settings: Settings) -> Iterator[dict[str, Any]]:
    gamma = settings["gamma"]
    for horizon in settings["horizons"]:
        base = np.random.default_rng(np.random.SeedSequence([horizon])).integers(2, size=horizon)
        for layer in range(1, horizon + 1):
            bit = np.arange(1, horizon + 1) == layer
            suffix = np.arange(1, horizon + 1) >= layer
            tree = LazyTree(gamma, np.stack([base, base ^ suffix]))
            row: dict[str, Any] = {
                "variant": "identity",
                "horizon": horizon,
                "layer": layer,
                "multiplied": tree.prices[1] / gamma,
                "summed": tree.backed_up_prices[1] / gamma,
            }
            if horizon in settings["explicit"]:
                row["engine"] = price_stream(*tree.explicit(), detail="prices").prices[1] / gamma
            for name, turned in (("separable_bit", bit), ("separable_suffix", suffix)):
                losses = separable_losses(gamma, np.stack([base, base ^ turned]))
                row[name] = price_stream(one_state(horizon, 2), losses, detail="prices").prices[1] / gamma
            yield row
