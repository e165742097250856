"""What one fixed problem can do with one entry: the claimed barrier, and the bandit that is beyond it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from normalfan_paper.figure_style import COLOURS, paper_figure, save_figure

if TYPE_CHECKING:
    import polars


def draw(frame: polars.DataFrame, folder: Path) -> Sequence[Path]:
    """From the findings of the statements on one problem and two."""
    figure, (left, right) = paper_figure(1, 2, height=3.5, width_ratios=[1.1, 1])
    left.plot(*_series(frame, "rem-twomdps", "two_"), "o-", color=COLOURS["blue"], markersize=9,
              markerfacecolor="none", label="two problems: late chain, early tree")  # fmt: skip
    left.plot(*_series(frame, "rem-twomdps", "one_"), "x--", color=COLOURS["red"],
              label="one problem: a two-armed bandit")  # fmt: skip
    left.plot(*_series(frame, "rem-twomdps/two", "late_over_early_"), "^:", color=COLOURS["green"],
              label="one problem: the uniform tree")  # fmt: skip
    left.set(
        xlabel="H (the change is γ(H−1); on the tree 2Hγ)",
        ylabel="larger price / smaller price",
        title="Two sequences, one entry each,\nby the same amount",
    )
    left.set_ylim(0, 16)
    left.legend(loc="upper left")

    right.plot(*_series(frame, "rem-twomdps/two", "restored_most_"), "s-", color=COLOURS["orange"],
               label="change / price, the new path\nleading as the old one did")  # fmt: skip
    right.plot(*_series(frame, "rem-twomdps/two", "literal_"), "D-.", color=COLOURS["black"],
               label="price / change, at 2Hγ")  # fmt: skip
    right.axhline(1.0, color=COLOURS["grey"], linewidth=1)
    right.annotate("no price exceeds the change", (0.98, 1.0), xycoords=("axes fraction", "data"),
                   xytext=(0, 3), textcoords="offset points", ha="right", fontsize=8)  # fmt: skip
    right.set(xlabel="H", ylabel="ratio", title="One sequence on the uniform tree:\nreadings of “near two”")
    right.set_ylim(0, 3.6)
    right.legend(loc="upper left")
    return save_figure(figure, folder, "barrier")


def _series(frame: polars.DataFrame, claim: str, prefix: str) -> tuple[list[int], list[float]]:
    """The numbers reported as prefix + H, by H."""
    rows = frame.filter((frame["claim"] == claim) & frame["quantity"].str.starts_with(prefix))
    found = {
        int(name.removeprefix(prefix)): value for name, value in rows.select("quantity", "value").iter_rows()
    }
    horizons = sorted(found)
    return horizons, [found[horizon] for horizon in horizons]
