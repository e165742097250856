"""Regret against re-plans as a picture, a line for each family of rules.

The area under the hindsight curve is shaded, because no rule gets there. Both axes are logarithmic: points
without any re-plan, which all rules share, are left out, and so are very small regrets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from normalfan.errors import check_installed
from normalfan.plots import new_figure
from normalfan.problem.arrays import FloatArray

DECADES_SHOWN = 2.3  # below the largest regret
REPLANS = "re-plans (at most)"
HINDSIGHT = "best in hindsight"

PENS = {  # colour, dashes (in plotly's words) and width of each family's line
    "accumulated": ("#1f6fb4", "solid", 2.4),
    "CUSUM": ("#d1495b", "solid", 2.4),
    "single day": ("#edae49", "dash", 2.0),
    "periodic": ("#7a7a7a", "dot", 2.0),
    "ADWIN": ("#66a182", "dashdot", 1.6),
    "Page-Hinkley": ("#8e6bbf", "dashdot", 1.6),
    "KSWIN": ("#8c564b", "dashdot", 1.6),
}
_LINESTYLES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn; places are (re-plans, regret), neither of them 0."""

    title: str
    unit: str
    least_regrets: FloatArray  # [K + 1]
    lines: dict[str, list[tuple[int, float]]]  # the corners of each family's, from left to right
    marks: dict[str, tuple[int, float]]

    @property
    def regret(self) -> str:
        return f"regret ({self.unit})" if self.unit else "regret"

    @property
    def heights(self) -> tuple[float, float]:
        """The lowest and the highest regret that is shown."""
        seen = [*self.least_regrets[1:2], *(regret for line in self.lines.values() for _, regret in line)]
        top = max(seen, default=0.0) or 1.0
        return top / 10**DECADES_SHOWN, top * 1.3


def check_library(*, interactive: bool) -> None:
    """Refuse a picture whose library is missing."""
    library, extra = ("plotly", "report") if interactive else ("matplotlib", "plot")
    check_installed(library, "this figure needs it", extra)


def draw(picture: Picture) -> Any:
    """The picture as a figure of matplotlib."""
    from matplotlib.ticker import EngFormatter

    figure, axes = new_figure(picture.title, x=REPLANS, y=picture.regret, size=(8.4, 5.2))
    low, high = picture.heights
    shown = np.flatnonzero(picture.least_regrets[1:] > 0) + 1
    least = picture.least_regrets[shown]
    axes.plot(shown, least, color="black", linewidth=1.6, label=HINDSIGHT)
    axes.fill_between(shown, least, low, where=least >= low, color="black", alpha=0.06, linewidth=0)
    for family, corners in picture.lines.items():
        color, dash, width = PENS[family]
        pen = {"color": color, "linestyle": _LINESTYLES[dash], "linewidth": width}
        axes.step(*zip(*corners, strict=True), where="post", label=family, **pen)
    for (name, place), marker in zip(picture.marks.items(), "sD^v", strict=False):
        axes.plot(*place, marker, color="black", markerfacecolor="white", markersize=8, label=name)
    axes.set(xscale="log", yscale="log", ylim=(low, high), xlim=(1, max(len(picture.least_regrets), 2)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(which="major", color="#dddddd", linewidth=0.6)
    axes.legend(frameon=False, fontsize=9, loc="lower left")
    return figure


def draw_interactive(picture: Picture) -> Any:
    """The picture as a figure of plotly."""
    check_library(interactive=True)
    import plotly.graph_objects as go

    figure = go.Figure()
    replans = np.arange(1, len(picture.least_regrets))
    black = {"color": "black", "width": 2}
    figure.add_scatter(x=replans, y=picture.least_regrets[1:], name=HINDSIGHT, line=black)
    for family, corners in picture.lines.items():
        line = dict(zip(("color", "dash", "width"), PENS[family], strict=True)) | {"shape": "hv"}
        x, y = zip(*corners, strict=True)
        figure.add_scatter(x=x, y=y, name=family, line=line, mode="lines")
    for name, (k, regret) in picture.marks.items():
        mark = {"size": 12, "symbol": "diamond-open", "color": "black"}
        figure.add_scatter(x=[k], y=[regret], name=name, mode="markers", marker=mark)
    corner = {"x": 0.01, "y": 0.01}
    figure.update_layout(title=picture.title, template="plotly_white", hovermode="closest", legend=corner)
    figure.update_xaxes(type="log", title=REPLANS)
    figure.update_yaxes(type="log", title=picture.regret, range=np.log10(picture.heights).tolist())
    return figure
