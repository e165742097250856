"""The figures on degenerate faces: what every selector pays, and where."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from normalfan_paper.experiments.degenerate.check import error_by_dimension
from normalfan_paper.experiments.degenerate.settings import SELECTORS
from normalfan_paper.figure_style import COLOURS, MARKERS, paper_figure, save_figure
from normalfan_paper.judging import over_seeds, rate

if TYPE_CHECKING:
    import polars

LABELS = {
    "oracle": "oracle",
    "occupancies": "sticky\n(occupancies)",
    "strings": "sticky\n(strings)",
    "lexicographic": "lexico-\ngraphic",
    "random vertex": "random\nvertex",
    "random point": "random\npoint",
}
TINTS = ("black", "green", "blue", "orange", "red", "pink")


def draw(frame: polars.DataFrame, folder: Path) -> Sequence[Path]:
    import polars as pl

    ours = frame.filter(pl.col("variant") == "ours")
    return [*_stack(ours, folder), *_dimension(ours, folder)]


def _stack(ours: polars.DataFrame, folder: Path) -> list[Path]:
    import polars as pl

    figure, axes = paper_figure(height=3.3)
    parts = [
        [
            over_seeds(
                ours.filter(pl.col("selector") == selector),
                rate,
                column,
                "rounds",
            )
            for selector in SELECTORS
        ]
        for column in ("price", "selection")
    ]
    price, error = ([number.mean for number in part] for part in parts)
    spread = [np.nan_to_num(number.error) for number in parts[1]]
    places = np.arange(len(SELECTORS))
    axes.bar(places, price, 0.6, color=COLOURS["sky"], label="price, the same for all")
    axes.bar(
        places, error, 0.6, bottom=price, yerr=spread, capsize=3, color=COLOURS["red"], hatch="//",
        edgecolor="white", ecolor="black", label="selection error",
    )  # fmt: skip
    for place, base, height in zip(places, price, error, strict=True):
        axes.annotate(
            f"+{height:.3f}", (place, base + height), (0, 7), textcoords="offset points", ha="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )  # fmt: skip
    axes.set_xticks(places, [LABELS[selector] for selector in SELECTORS])
    axes.set_ylabel("regret a round (units of loss)")
    axes.set_title("One price, and what the choice of a point adds")
    axes.grid(visible=False, axis="x")
    axes.margins(y=0.25)
    axes.legend(loc="upper left", ncols=2)
    return save_figure(figure, folder, "degenerate-stack")


def _dimension(ours: polars.DataFrame, folder: Path) -> list[Path]:
    figure, axes = paper_figure(height=3.4)
    for (selector, (layers, numbers)), tint, marker in zip(
        error_by_dimension(ours).items(), TINTS, MARKERS, strict=False
    ):
        means = np.array([number.mean for number in numbers])
        errors = np.nan_to_num([number.error for number in numbers])
        axes.fill_between(layers, means - errors, means + errors, color=COLOURS[tint], alpha=0.2, linewidth=0)
        axes.plot(
            layers, means, marker=marker, markersize=4, color=COLOURS[tint], linewidth=1.2,
            label=LABELS[selector].replace("-\n", "").replace("\n", " "),
        )  # fmt: skip
    axes.set_xticks(range(2, int(layers[-1]) + 1, 2))
    axes.set_xlabel("free layers n of the face that is held (dimension 2ⁿ − 1)")
    axes.set_ylabel("selection error a round (units of loss)")
    axes.set_title("The larger the face, the more there is to get wrong")
    axes.legend(loc="upper left")
    return save_figure(figure, folder, "degenerate-dimension")
