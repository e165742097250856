"""The layered tree's figures: the identity, and what predicts mirror descent's regret."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from normalfan_paper.experiments.tree.check import PREDICTORS, deviations, explained, with_best
from normalfan_paper.figure_style import COLOURS, MARKERS, paper_figure, save_figure
from normalfan_paper.judging import largest

if TYPE_CHECKING:
    import polars

TINTS = ("sky", "green", "orange", "red", "blue", "pink", "grey", "yellow")


def draw(frame: polars.DataFrame, folder: Path) -> Sequence[Path]:
    return [*_identity(frame, folder), *_predictors(frame, folder)]


def _identity(frame: polars.DataFrame, folder: Path) -> list[Path]:
    import polars as pl

    identity = frame.filter(pl.col("variant") == "identity")
    figure, axes = paper_figure(height=3.4)
    longest = int(largest(identity["horizon"]))
    axes.plot([0, longest + 1], [0, longest + 1], color=COLOURS["black"], linewidth=0.8, label="identity")
    # Longest first and largest: the shorter horizons stay visible inside.
    for k, horizon in enumerate(sorted(set(identity["horizon"]), reverse=True)):
        rows = identity.filter(pl.col("horizon") == horizon)
        axes.plot(
            horizon - rows["layer"] + 1, rows["summed"], MARKERS[k], color=COLOURS[TINTS[k]],
            label=f"H = {horizon}", markersize=9 - 2 * k, markeredgecolor="black", markeredgewidth=0.4,
        )  # fmt: skip
    bit = identity.filter(pl.col("horizon") == longest)
    axes.plot(
        longest - bit["layer"] + 1, bit["separable_bit"], "x", color=COLOURS["grey"], markersize=5,
        label="one bit of a separable chain",
    )  # fmt: skip
    worst = max(deviations(identity).values())
    axes.set_xlabel("steps from the crossing to the end, H − h + 1")
    axes.set_ylabel("price over margin, Γ/γ")
    axes.set_title(f"An early crossing costs more (largest deviation from the line {worst:.0e})")
    axes.legend(loc="upper left")
    return save_figure(figure, folder, "tree-identity")


def _predictors(frame: polars.DataFrame, folder: Path) -> list[Path]:
    import polars as pl

    variants = with_best(frame.filter(pl.col("variant") != "identity"))
    figure, (left, right) = paper_figure(1, 2, height=3.9, sharey=True)
    width = 0.8 / len(PREDICTORS)
    for axes, which, title in ((left, 0, "all horizons pooled"), (right, 1, "within each horizon")):
        for k, (column, name) in enumerate(PREDICTORS.items()):
            found = [explained(rows, column)[which] for rows in variants.values()]
            places = np.arange(len(variants)) + width * (k - (len(PREDICTORS) - 1) / 2)
            axes.barh(
                places, [np.nan_to_num(number.mean) for number in found], 0.9 * width, label=name,
                xerr=[np.nan_to_num(number.error) for number in found], color=COLOURS[TINTS[k]],
                error_kw={"linewidth": 0.6},
            )  # fmt: skip
        axes.set_yticks(range(len(variants)), list(variants))
        axes.set_xlim(0, 1.02)
        axes.set_xlabel("R² for mirror descent's regret, best η")
        axes.set_title(title)
        axes.grid(visible=False, axis="y")
    left.invert_yaxis()
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=7)
    return save_figure(figure, folder, "tree-predictors")
