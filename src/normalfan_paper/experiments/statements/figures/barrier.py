"""What one fixed problem can do with one entry: the claimed barrier, and the bandit that is beyond it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from normalfan_paper.figure_style import COLOURS, SMALL, paper_figure, save_figure

if TYPE_CHECKING:
    import polars


def draw(frame: polars.DataFrame, folder: Path) -> Sequence[Path]:
    """From the findings of the statements on one problem and two."""
    figure, (top, bottom) = paper_figure(2, 1, height=4.2, height_ratios=[1.3, 1])
    top.plot(*_series(frame, "rem-twomdps", "two_"), "o-", color=COLOURS["blue"], markersize=6,
             markerfacecolor="none", label="two problems: late chain, early tree")  # fmt: skip
    top.plot(*_series(frame, "rem-twomdps", "one_"), "x--", color=COLOURS["red"],
             label="one problem: a two-armed bandit")  # fmt: skip
    top.plot(*_series(frame, "rem-twomdps", "tree_"), "D-", color=COLOURS["black"], markersize=3,
             label="one problem: the paper's tree, change (H+1)γ")  # fmt: skip
    top.plot(*_series(frame, "rem-twomdps/two", "late_over_early_"), "^:", color=COLOURS["green"],
             label="the same tree, change 2Hγ")  # fmt: skip
    top.set(xlabel="H (the change is γ(H−1) unless said)", ylabel="larger / smaller price")
    top.set_title("Two sequences, one entry each, by the same amount")
    top.set_ylim(0, 19)
    top.legend(loc="upper left")

    bottom.plot(*_series(frame, "rem-twomdps/two", "restored_most_"), "s-", color=COLOURS["orange"],
                label="change / price, the old lead restored")  # fmt: skip
    bottom.plot(*_series(frame, "rem-twomdps/two", "literal_"), "D-.", color=COLOURS["black"],
                markersize=3, label="price / change, at 2Hγ")  # fmt: skip
    bottom.axhline(1.0, color=COLOURS["grey"], linewidth=0.8)
    bottom.annotate("no price exceeds the change", (0.02, 1.0), xycoords=("axes fraction", "data"),
                    xytext=(0, 2), textcoords="offset points", fontsize=SMALL)  # fmt: skip
    bottom.set(xlabel="H", ylabel="ratio", xticks=_series(frame, "rem-twomdps/two", "literal_")[0])
    bottom.set_title("One sequence on the tree: readings of “near two”")
    bottom.set_ylim(0, 3.3)
    bottom.legend(loc="upper left")
    return save_figure(figure, folder, "barrier")


def _series(frame: polars.DataFrame, claim: str, prefix: str) -> tuple[list[int], list[float]]:
    """The numbers reported as prefix + H, by H."""
    rows = frame.filter((frame["claim"] == claim) & frame["quantity"].str.starts_with(prefix))
    found = {
        int(name.removeprefix(prefix)): value for name, value in rows.select("quantity", "value").iter_rows()
    }
    horizons = sorted(found)
    return horizons, [found[horizon] for horizon in horizons]
