"""The figures on degenerate faces: what every selector pays, and where."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from normalfan_paper.experiments.degenerate.check import error_by_dimension
from normalfan_paper.experiments.degenerate.settings import SELECTORS
from normalfan_paper.figure_style import COLOURS, MARKERS, SMALL, paper_figure, save_figure
from normalfan_paper.judging import over_seeds, rate

if TYPE_CHECKING:
    import polars

LABELS = {
    "oracle": "oracle",
    "occupancies": "sticky,\noccupancies",
    "entropy": "sticky,\nentropy",
    "strings": "sticky,\nstrings",
    "lexicographic": "lexico-\ngraphic",
    "random vertex": "random\nvertex",
    "random point": "random\npoint",
}
TINTS = ("black", "green", "sky", "blue", "orange", "red", "pink")


def draw(frame: polars.DataFrame, folder: Path) -> Sequence[Path]:
    import polars as pl

    ours = frame.filter(pl.col("variant") == "ours")
    return [*_stack(ours, folder), *_dimension(ours, folder)]


def _stack(ours: polars.DataFrame, folder: Path) -> list[Path]:
    import polars as pl

    figure, axes = paper_figure(height=2.6)
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
    axes.barh(places, price, 0.6, color=COLOURS["sky"], label="price, the same for all")
    axes.barh(
        places, error, 0.6, left=price, xerr=spread, capsize=2, color=COLOURS["red"], hatch="//",
        edgecolor="white", ecolor="black", label="selection error",
    )  # fmt: skip
    for place, base, height in zip(places, price, error, strict=True):
        axes.annotate(
            f"+{height:.3f}", (base + height, place), (5, 0), textcoords="offset points", va="center",
            fontsize=SMALL,
        )  # fmt: skip
    axes.set_yticks(
        places, [LABELS[selector].replace("-\n", "").replace("\n", " ") for selector in SELECTORS]
    )
    axes.set_xlabel("regret a round (units of loss)")
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.margins(x=0.18)
    figure.legend(loc="outside upper center", ncols=2)
    return save_figure(figure, folder, "degenerate-stack")


def _dimension(ours: polars.DataFrame, folder: Path) -> list[Path]:
    figure, axes = paper_figure(height=2.7)
    for (selector, (layers, numbers)), tint, marker in zip(
        error_by_dimension(ours).items(), TINTS, MARKERS, strict=False
    ):
        means = np.array([number.mean for number in numbers])
        errors = np.nan_to_num([number.error for number in numbers])
        axes.fill_between(layers, means - errors, means + errors, color=COLOURS[tint], alpha=0.2, linewidth=0)
        axes.plot(
            layers, means, marker=marker, markersize=2.5, color=COLOURS[tint], linewidth=0.9,
            label=LABELS[selector].replace("-\n", "").replace("\n", " "),
        )  # fmt: skip
    axes.set_xticks(range(2, int(layers[-1]) + 1, 2))
    axes.set_xlabel("free layers n of the face held (dimension 2ⁿ − 1)")
    axes.set_ylabel("selection error a round")
    axes.set_title("The larger the face, the more there is to get wrong")
    axes.legend(loc="upper left")
    return save_figure(figure, folder, "degenerate-dimension")
