"""The simplex figures: what moves, what is priced and what the tracker pays; and the map of designs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from normalfan_paper.experiments.simplex.designs import (
    NORM_NAMES,
    PAPER,
    all_designs,
    best_of,
    numbers_of_design,
    ours,
    ways_of,
)
from normalfan_paper.experiments.simplex.settings import MOTIONS, RATES, REGIMES
from normalfan_paper.figure_style import COLOURS, MARKERS, SMALL, paper_figure, paper_mosaic, save_figure
from normalfan_paper.judging import largest, over_seeds

if TYPE_CHECKING:
    import polars

LABELS = {
    "within_cone": "within\na cone",
    "wall": "across\na wall",
    "crossings": "random\ncrossings",
    "rotating": "rotating\noptimum",
}
TINTS = ("sky", "green", "orange", "red")


def draw(frame: polars.DataFrame, folder: Path) -> Sequence[Path]:
    return [*_regimes(frame, folder), *_map(frame, folder)]


def _regimes(frame: polars.DataFrame, folder: Path) -> list[Path]:
    """Top: variation and price by regime. Below, for all ways to move: what the tracker's regret follows."""
    import polars as pl

    own = frame.filter(pl.col("part") == "ours")
    figure, axes = paper_mosaic([["bars", "bars"], ["price", "variation"]], height=3.8)
    _bars(axes["bars"], own)
    for name, column, title in (
        ("price", "price", "… the price Γ"),
        ("variation", "variation_linf", "… the variation (L∞)"),
    ):
        for regime, marker, tint in zip(REGIMES, MARKERS, TINTS, strict=False):
            # One point a way to move and number of arms: single trials would lie on top of each other.
            points = (
                frame.filter(pl.col("regime") == regime)
                .group_by("part", "motion", "rate", "arms", maintain_order=True)
                .agg(pl.col("price", "variation_linf", "tracker").mean())
            )
            axes[name].plot(
                points[column], points["tracker"], marker, color=COLOURS[tint], markersize=3, alpha=0.7,
                markeredgecolor="black", markeredgewidth=0.2, label=LABELS[regime].replace("\n", " "),
            )  # fmt: skip
        axes[name].set_xlabel(title)
        axes[name].locator_params(axis="x", nbins=4)
    end = 1.05 * largest(frame["price"])
    axes["price"].plot([0, end], [0, end], color=COLOURS["black"], linewidth=0.6, zorder=1)
    axes["price"].set_ylabel("tracker's regret against …")
    axes["variation"].set_ylim(axes["price"].get_ylim())
    axes["variation"].tick_params(labelleft=False)
    handles, labels = axes["price"].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return save_figure(figure, folder, "simplex")


def _bars(axes: Any, own: polars.DataFrame) -> None:
    import polars as pl

    bars = (("variation_linf", "variation (L∞)", "sky", "//"), ("price", "price Γ", "red", ""))
    for k, (column, label, colour, hatch) in enumerate(bars):
        means = [over_seeds(own.filter(pl.col("regime") == regime), np.mean, column) for regime in REGIMES]
        places = np.arange(len(REGIMES)) + 0.38 * (k - 0.5)
        axes.bar(
            places, [mean.mean for mean in means], 0.36, yerr=[np.nan_to_num(mean.error) for mean in means],
            label=label, color=COLOURS[colour], hatch=hatch, edgecolor="white", ecolor="black", capsize=1.5,
        )  # fmt: skip
        for place, mean in zip(places, means, strict=True):
            axes.annotate(
                f"{mean.mean:.0f}", (place, mean.mean), (0, 3), textcoords="offset points",
                ha="center", fontsize=SMALL,
            )  # fmt: skip
    axes.set_xticks(range(len(REGIMES)), [LABELS[regime] for regime in REGIMES])
    axes.set_ylabel("sum over the rounds")
    axes.set_title("Far motion may be free")
    axes.grid(visible=False, axis="x")
    axes.margins(y=0.25)
    axes.legend(loc="upper center", ncols=2)


def _map(frame: polars.DataFrame, folder: Path) -> list[Path]:
    """How many of the paper's four numbers each design matches, with the drift within the cone as ours."""
    import polars as pl
    from matplotlib.colors import ListedColormap

    ways = ways_of(frame.filter(pl.col("part") == "map"))
    every = [numbers_of_design(design, ways) for design in all_designs()]
    shown = [numbers for numbers in every if numbers.design.cone == ours()[0].cone]
    nearest = min(shown, key=lambda numbers: numbers.distance).design
    rows = [(wall, between) for wall in MOTIONS["wall"] for between in MOTIONS["crossings"]]
    columns = sorted(RATES)
    figure, panels = paper_figure(len(NORM_NAMES), 1, height=5.6, sharex=True)
    shades = ListedColormap(["#F2F2F2", "#CFE3F3", "#8FC1E3", "#3F8FC6", "#0B4F8A"])
    for axes, (norm, name) in zip(panels, NORM_NAMES.items(), strict=True):
        table = np.zeros((len(rows), len(columns)))
        for numbers in shown:
            design = numbers.design
            if design.norm == norm:
                table[rows.index((design.wall, design.between)), columns.index(design.rate)] = numbers.matches
        axes.pcolormesh(table, cmap=shades, vmin=-0.5, vmax=len(PAPER) + 0.5, edgecolors="white", linewidth=1)
        for (i, j), count in np.ndenumerate(table):
            here = rows[i] == (nearest.wall, nearest.between) and columns[j] == nearest.rate
            text = f"{count:.0f}" + ("★" if here and norm == nearest.norm else "")
            axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=SMALL,
                      color="white" if count > 2 else "black")  # fmt: skip
        axes.set_yticks(np.arange(len(rows)) + 0.5, [f"{wall} | {between}" for wall, between in rows])
        axes.set_xticks(np.arange(len(columns)) + 0.5, [f"{rate:g}" for rate in columns])
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.set_title(f"variation in {name}")
    panels[-1].set_xlabel("how often the crossing regimes cross")
    figure.supylabel("other arms at the wall | between crossings", fontsize=7)
    most = best_of(every).matches
    figure.suptitle(
        f"Numbers of the paper matched, of {len(PAPER)} (most of\n{len(every)} designs: {most}; ★ nearest "
        f"shown)",
        fontsize=7.5,
    )
    return save_figure(figure, folder, "simplex-map")
