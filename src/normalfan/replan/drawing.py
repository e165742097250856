"""The curve as a picture: regret against re-plans, a line for each family of rules.

A line is the lower envelope of a family's points, drawn in steps (with at most so many re-plans, this little
regret). The ground under the hindsight curve is shaded: nobody gets there. Both axes are logarithmic, so
points without any re-plan, which all rules share, are left out, and so is the foot of the picture, where
re-planning almost every day leaves next to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from normalfan.errors import InputError
from normalfan.files import written_atomically
from normalfan.problem.arrays import FloatArray
from normalfan.replan.curve import Point, envelope
from normalfan.replan.schedule import Schedule

SUFFIXES = (".png", ".pdf", ".html")

DECADES_SHOWN = 2.3
"""How far below the largest regret the picture reaches."""


@dataclass(frozen=True, slots=True)
class Pen:
    color: str
    dash: str  # plotly's word
    width: float


PENS = {
    "accumulated": Pen("#1f6fb4", "solid", 2.4),
    "CUSUM": Pen("#d1495b", "solid", 2.4),
    "single day": Pen("#edae49", "dash", 2.0),
    "periodic": Pen("#7a7a7a", "dot", 2.0),
    "ADWIN": Pen("#66a182", "dashdot", 1.6),
    "Page-Hinkley": Pen("#8e6bbf", "dashdot", 1.6),
    "KSWIN": Pen("#8c564b", "dashdot", 1.6),
}

_STYLES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}


def check_drawing_library(path: str | Path) -> None:
    """Refuse a picture whose library is missing, and a name that says nothing of its kind."""
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        raise InputError(
            f"figure is {str(path)!r}, but its name must end in one of {', '.join(SUFFIXES)}: rename it."
        )
    library, extra = ("plotly", "report") if suffix == ".html" else ("matplotlib", "paper")
    if find_spec(library) is None:
        raise InputError(
            f"{library} is not installed, but a {suffix} figure needs it: pip install 'normalfan[{extra}]'."
        )


def draw_curve(
    path: str | Path,
    points: Sequence[Point],
    hindsight: FloatArray,
    *,
    marks: Mapping[str, Schedule] | None = None,
    title: str = "Regret against re-plans",
    unit: str = "",
) -> None:
    """Write the picture; `hindsight` is `least_regrets`, `marks` are single schedules to point out."""
    check_drawing_library(path)
    lines = {family: _corners(points, family, len(hindsight)) for family in PENS}
    lines = {family: corners for family, corners in lines.items() if len(corners[0])}
    floor = np.arange(1, len(hindsight)), hindsight[1:]
    spots = {name: run for name, run in (marks or {}).items() if run.replans and run.regret > 0}
    regret = f"regret ({unit})" if unit else "regret"
    draw = _plotly if Path(path).suffix == ".html" else _matplotlib
    draw(Path(path), lines, floor, spots, title, regret)


def _corners(points: Sequence[Point], family: str, n_days: int) -> tuple[list[int], list[float]]:
    """The corners of a family's line, which goes on to the right at the level of its last."""
    kept = [p for p in envelope(points, family) if p.replans > 0 and p.regret > 0]
    replans, regrets = [p.replans for p in kept], [p.regret for p in kept]
    return ([*replans, n_days], [*regrets, regrets[-1]]) if kept else ([], [])


def _heights(lines: Any, floor: Any) -> tuple[float, float]:
    top = max([*floor[1][:1], *(max(regrets) for _, regrets in lines.values())], default=0.0) or 1.0
    return top / 10**DECADES_SHOWN, top * 1.3


def _matplotlib(path: Path, lines: Any, floor: Any, spots: Any, title: str, regret: str) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    figure = Figure(figsize=(8.4, 5.2), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="re-plans (at most)", ylabel=regret)
    low, high = _heights(lines, floor)
    days, least = floor[0][floor[1] > 0], floor[1][floor[1] > 0]
    axes.plot(days, least, color="black", linewidth=1.6, label="best in hindsight")
    axes.fill_between(days, least, low, where=least >= low, color="black", alpha=0.06, linewidth=0)
    for family, (replans, regrets) in lines.items():
        pen = PENS[family]
        style: dict[str, Any] = {"color": pen.color, "linestyle": _STYLES[pen.dash], "linewidth": pen.width}
        axes.step(replans, regrets, where="post", label=family, **style)
    for (name, run), marker in zip(spots.items(), "sD^v", strict=False):
        axes.plot(
            run.replans, run.regret, marker, color="black", markerfacecolor="white", markersize=8, label=name
        )
    axes.set_xlim(1, max(len(floor[0]) + 1, 2))
    axes.set_ylim(low, high)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(EngFormatter(sep=""))
    axes.set_title(title, loc="left")
    axes.grid(which="major", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="lower left")
    with written_atomically(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=160)


def _plotly(path: Path, lines: Any, floor: Any, spots: Any, title: str, regret: str) -> None:
    import plotly.graph_objects as go

    figure = go.Figure()
    figure.add_scatter(x=floor[0], y=floor[1], name="best in hindsight", line={"color": "black", "width": 2})
    for family, (replans, regrets) in lines.items():
        pen = PENS[family]
        line = {"color": pen.color, "dash": pen.dash, "width": pen.width, "shape": "hv"}
        figure.add_scatter(x=replans, y=regrets, name=family, line=line, mode="lines")
    for name, run in spots.items():
        spot = {"size": 12, "symbol": "diamond-open", "color": "black"}
        figure.add_scatter(x=[run.replans], y=[run.regret], name=name, mode="markers", marker=spot)
    figure.update_layout(
        title=title, template="plotly_white", hovermode="closest", legend={"x": 0.01, "y": 0.01}
    )
    figure.update_xaxes(type="log", title="re-plans (at most)")
    figure.update_yaxes(type="log", title=regret, range=np.log10(_heights(lines, floor)).tolist())
    page = figure.to_html(include_plotlyjs=True, full_html=True, config={"displaylogo": False})
    with written_atomically(path) as file:
        file.write(page.encode())
