"""Figures that a notebook shows and a script saves, drawn without touching matplotlib's global state."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from normalfan.errors import check_installed


def new_figure(
    title: str = "", *, x: str = "", y: str = "", size: tuple[float, float] = (6.4, 4.0)
) -> tuple[Any, Any]:
    """An empty figure with one set of axes; `x` and `y` are their labels, `size` is in inches."""
    check_installed("matplotlib", "a figure needs it", "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class Chart(Figure):
        """A figure that notebooks show even where pyplot was never imported."""

        def _repr_png_(self) -> bytes:
            image = io.BytesIO()
            self.savefig(image, format="png", dpi=110)
            return image.getvalue()

    figure = Chart(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set(title=literal(title), xlabel=literal(x), ylabel=literal(y))
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def literal(text: str) -> str:
    """Text as matplotlib should show it: a dollar sign is a dollar sign, not the beginning of a formula."""
    return text.replace("$", r"\$")


def round_axis(axes: Any, names: Sequence[str] | None, count: int) -> list[Any]:
    """Where rounds stand on the horizontal axis: at their dates if all names are dates, else at 0, 1, …"""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    try:
        dates = [datetime.fromisoformat(name) for name in names or ()]
    except ValueError:
        dates = []
    if not dates:
        return list(range(count))
    axes.xaxis.set_major_locator(locator := AutoDateLocator())
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    return dates


def bar_width(count: int) -> float:
    """The width in points of one of `count` vertical bars; never so thin that a bar is lost."""
    return min(max(250.0 / max(count, 1), 0.8), 16.0)
