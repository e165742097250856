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
COLUMN = 6.4  # inches, the width of a figure


def paper_figure(rows: int = 1, columns: int = 1, *, height: float = 3.4, **subplots: Any) -> tuple[Any, Any]:
    """A figure of the house's width and its axes, in the house's style."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update(
        {
            "font.size": 9, "axes.titlesize": 9, "axes.labelsize": 9, "legend.fontsize": 8,
            "xtick.labelsize": 8, "ytick.labelsize": 8, "axes.spines.top": False, "axes.spines.right": False,
            "axes.grid": True, "grid.color": "#DDDDDD", "grid.linewidth": 0.6, "axes.axisbelow": True,
            "legend.frameon": False, "figure.constrained_layout.use": True, "pdf.fonttype": 42,
            "savefig.dpi": 200,
        }
    )  # fmt: skip
    return plt.subplots(rows, columns, figsize=(COLUMN, height), **subplots)


def save_figure(figure: Any, folder: Path, name: str) -> list[Path]:
    """The figure as PDF, for print, and as PNG, for pages; the same bytes for the same data."""
    from matplotlib import pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.pdf", folder / f"{name}.png"]
    figure.savefig(paths[0], metadata={"CreationDate": None, "ModDate": None})
    figure.savefig(paths[1], metadata={"Software": None})
    plt.close(figure)
    return paths
