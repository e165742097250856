"""The simplex figure: what moves, what is priced, and what the tracker pays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from normalfan_paper.experiments.simplex.settings import REGIMES
from normalfan_paper.figure_style import COLOURS, MARKERS, paper_figure, save_figure
from normalfan_paper.judging import largest, over_seeds

if TYPE_CHECKING:
    import polars

LABELS = {
    "within_cone": "within\none cone",
    "wall": "across\na wall",
    "crossings": "random\ncrossings",
    "rotating": "rotating\noptimum",
}
TINTS = ("sky", "green", "orange", "red")


def draw(frame: polars.DataFrame, folder: Path) -> Sequence[Path]:
    """Left: variation and price by regime. Right: the tracker's regret against the price."""
    import polars as pl

    ours = frame.filter(pl.col("variant") == "ours")
    figure, (left, right) = paper_figure(1, 2, height=3.1, width_ratios=(1.25, 1))
    bars = (("variation_linf", "variation (L∞)", "sky", "//"), ("price", "price Γ", "red", ""))
    for k, (column, label, colour, hatch) in enumerate(bars):
        means = [over_seeds(ours.filter(pl.col("regime") == regime), np.mean, column) for regime in REGIMES]
        places = np.arange(len(REGIMES)) + 0.38 * (k - 0.5)
        left.bar(
            places, [mean.mean for mean in means], 0.36, yerr=[np.nan_to_num(mean.error) for mean in means],
            label=label, color=COLOURS[colour], hatch=hatch, edgecolor="white", ecolor="black", capsize=2,
        )  # fmt: skip
        for place, mean in zip(places, means, strict=True):
            left.annotate(
                f"{mean.mean:.0f}", (place, mean.mean), (0, 5), textcoords="offset points",
                ha="center", fontsize=7,
            )  # fmt: skip
    left.set_xticks(range(len(REGIMES)), [LABELS[regime] for regime in REGIMES])
    left.set_ylabel("sum over the rounds (units of loss)")
    left.set_title("Far motion may be free")
    left.grid(visible=False, axis="x")
    left.margins(y=0.25)
    left.legend(loc="upper center", ncols=2)
    for regime, marker, tint in zip(REGIMES, MARKERS, TINTS, strict=False):
        # One point a design, seed and number of arms: thousands of trials would lie on top of each other.
        points = (
            frame.filter(pl.col("regime") == regime)
            .group_by("variant", "seed", "arms", maintain_order=True)
            .agg(pl.col("price", "tracker").mean())
        )
        right.plot(
            points["price"], points["tracker"], marker, color=COLOURS[tint], markersize=5, alpha=0.7,
            markeredgecolor="black", markeredgewidth=0.3, label=LABELS[regime].replace("\n", " "),
        )  # fmt: skip
    end = 1.05 * largest(frame["price"])
    right.plot([0, end], [0, end], color=COLOURS["black"], linewidth=0.8, zorder=1, label="regret = Γ")
    right.set_xlabel("price Γ over the rounds (units of loss)")
    right.set_ylabel("regret of the tracker (units of loss)")
    right.set_title("The tracker pays Γ, at any rate")
    right.legend(loc="upper left")
    return save_figure(figure, folder, "simplex")
