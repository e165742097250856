"""The layered tree's figures: the identity, what predicts mirror descent's regret, and that by design."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from normalfan_paper.experiments.tree.check import PREDICTORS, deviations, explained, with_best
from normalfan_paper.figure_style import COLOURS, MARKERS, SMALL, paper_figure, save_figure
from normalfan_paper.judging import largest

if TYPE_CHECKING:
    import polars

TINTS = ("sky", "green", "orange", "red", "blue", "pink", "grey", "yellow")


def draw(frame: polars.DataFrame, folder: Path) -> Sequence[Path]:
    return [*_identity(frame, folder), *_predictors(frame, folder), *_designs(frame, folder)]


def _identity(frame: polars.DataFrame, folder: Path) -> list[Path]:
    import polars as pl

    identity = frame.filter(pl.col("variant") == "identity")
    figure, axes = paper_figure(height=2.6)
    longest = int(largest(identity["horizon"]))
    axes.plot([0, longest + 1], [0, longest + 1], color=COLOURS["black"], linewidth=0.8, label="identity")
    # Longest first and largest: the shorter horizons stay visible inside.
    for k, horizon in enumerate(sorted(set(identity["horizon"]), reverse=True)):
        rows = identity.filter(pl.col("horizon") == horizon)
        axes.plot(
            horizon - rows["layer"] + 1, rows["summed"], MARKERS[k], color=COLOURS[TINTS[k]],
            label=f"H = {horizon}", markersize=6.5 - 1.5 * k, markeredgecolor="black", markeredgewidth=0.4,
        )  # fmt: skip
    bit = identity.filter(pl.col("horizon") == longest)
    axes.plot(
        longest - bit["layer"] + 1, bit["separable_bit"], "x", color=COLOURS["grey"], markersize=3,
        label="separable chain",
    )  # fmt: skip
    worst = max(deviations(identity).values())
    axes.set_xlabel("steps from the crossing on, H − h + 1")
    axes.set_ylabel("price over margin, Γ/γ")
    axes.set_title(f"Early crossings cost more (off the line by {worst:.0e})")
    axes.legend(loc="upper left")
    return save_figure(figure, folder, "tree-identity")


def _predictors(frame: polars.DataFrame, folder: Path) -> list[Path]:
    """Our design in one panel."""
    import polars as pl

    ours = with_best(frame.filter(pl.col("variant") == "ours"))["ours"]
    figure, axes = paper_figure(height=2.4)
    for k, (which, label, tint, hatch) in enumerate(
        ((0, "all horizons pooled", "blue", ""), (1, "within each horizon", "orange", "//"))
    ):
        found = [explained(ours, column)[which] for column in PREDICTORS]
        places = np.arange(len(PREDICTORS)) + 0.38 * (k - 0.5)
        axes.barh(
            places, [np.nan_to_num(n.mean) for n in found], 0.36, color=COLOURS[tint], hatch=hatch,
            label=label, xerr=[np.nan_to_num(n.error) for n in found], edgecolor="white", ecolor="black",
            capsize=1.5,
        )  # fmt: skip
        for place, number in zip(places, found, strict=True):
            axes.annotate(f"{number.mean:.2f}", (number.mean + np.nan_to_num(number.error), place), (3, 0),
                          textcoords="offset points", va="center", fontsize=SMALL)  # fmt: skip
    axes.set_yticks(range(len(PREDICTORS)), list(PREDICTORS.values()))
    axes.set(xlim=(0, 1.14), xlabel="R² for mirror descent's regret, best η")
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    figure.legend(loc="outside upper center", ncols=2)
    return save_figure(figure, folder, "tree-predictors")


def _designs(frame: polars.DataFrame, folder: Path) -> list[Path]:
    """The appendix: every design, within each horizon."""
    import polars as pl

    variants = with_best(frame.filter(pl.col("variant") != "identity"))
    table = np.array([[explained(rows, c)[1].mean for c in PREDICTORS] for rows in variants.values()])
    figure, axes = paper_figure(height=3.0)
    axes.pcolormesh(np.nan_to_num(table), cmap="Blues", vmin=0, vmax=1.15, edgecolors="white", linewidth=1)
    for (i, j), value in np.ndenumerate(table):
        text = f"{value:.2f}" if np.isfinite(value) else "–"
        axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=SMALL,
                  color="white" if value > 0.75 else "black")  # fmt: skip
    axes.set_yticks(np.arange(len(variants)) + 0.5, [name.replace(", ", ",\n") for name in variants])
    short = [name.replace(" length", "\nlength").replace("V in ", "V\n") for name in PREDICTORS.values()]
    axes.set_xticks(np.arange(len(PREDICTORS)) + 0.5, short)
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.set_title("R² within each horizon, by design and predictor")
    return save_figure(figure, folder, "tree-predictors-designs")
