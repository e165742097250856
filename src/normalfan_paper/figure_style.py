"""How figures look: for print and for the colour-blind, one message each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Okabe and Ito's palette, told apart by most eyes and in grey by lightness and marker.
COLOURS = {
    "black": "#000000", "orange": "#E69F00", "sky": "#56B4E9", "green": "#009E73",
    "yellow": "#F0E442", "blue": "#0072B2", "red": "#D55E00", "pink": "#CC79A7", "grey": "#7F7F7F",
}  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
COLUMN = 3.25  # inches: the width of one column of a paper, at which every figure is read
SMALL = 6.5  # points: the least size of a letter


def paper_figure(rows: int = 1, columns: int = 1, *, height: float = 2.4, **subplots: Any) -> tuple[Any, Any]:
    """A figure of a column's width and its axes, in the house's style."""
    figure, axes = _styled().subplots(rows, columns, figsize=(COLUMN, height), **subplots)
    return figure, axes


def paper_mosaic(layout: Any, *, height: float, **options: Any) -> tuple[Any, Any]:
    """The same with axes by name: see `subplot_mosaic` of matplotlib."""
    figure, axes = _styled().subplot_mosaic(layout, figsize=(COLUMN, height), **options)
    return figure, axes


def _styled() -> Any:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update(
        {
            "font.size": 7, "axes.titlesize": 7.5, "axes.labelsize": 7, "legend.fontsize": SMALL,
            "xtick.labelsize": SMALL, "ytick.labelsize": SMALL, "axes.spines.top": False,
            "axes.spines.right": False, "axes.linewidth": 0.6, "axes.grid": True, "grid.color": "#DDDDDD",
            "grid.linewidth": 0.5, "axes.axisbelow": True, "xtick.major.size": 2.5, "ytick.major.size": 2.5,
            "xtick.major.width": 0.6, "ytick.major.width": 0.6, "lines.linewidth": 1.0, "lines.markersize": 4,
            "legend.frameon": False, "legend.handlelength": 1.6, "hatch.linewidth": 0.6,
            "figure.constrained_layout.use": True, "pdf.fonttype": 42, "savefig.dpi": 300,
        }
    )  # fmt: skip
    return plt


def save_figure(figure: Any, folder: Path, name: str) -> list[Path]:
    """The figure as PDF, for print, and as PNG, for pages; the same bytes for the same data."""
    from matplotlib import pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.pdf", folder / f"{name}.png"]
    figure.savefig(paths[0], metadata={"CreationDate": None, "ModDate": None})
    figure.savefig(paths[1], metadata={"Software": None})
    plt.close(figure)
    return paths
