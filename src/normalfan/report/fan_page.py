"""A slice of the fan by itself: as a page (.html), or as a figure (.png, .pdf)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from normalfan.errors import InputError
from normalfan.files import written_atomically
from normalfan.report.charts import fan_chart
from normalfan.report.fan import COLOURS, FanPicture, edges
from normalfan.report.rendering import write_page
from normalfan.text import amount, percent

SUFFIXES = (".html", ".png", ".pdf")


def write_fan(
    path: str | Path,
    fan: FanPicture,
    *,
    title: str,
    unit: str = "",
    right: str = "x",
    up: str = "y",
    stops: Sequence[str] = (),
    prices: Sequence[float] = (),
) -> None:
    """Write a picture; its suffix says what as.

    `right`, `up`: what the axes are called. `stops`, `prices`: names and prices of the losses on the path.
    """
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        raise InputError(
            f"the picture is to be called {path}, but its name must end in {', '.join(SUFFIXES)}: choose one."
        )
    if suffix == ".html":
        data = {"unit": unit, "fan": fan_chart(fan, right, up, stops, prices)}
        write_page(path, "fan.html", data, title=title, note="", sentences=fan_sentences(fan, unit))
    else:
        with written_atomically(path) as file:
            _draw(file, suffix[1:], fan, title, right, up)


def fan_sentences(fan: FanPicture, unit: str) -> list[str]:
    free = float((fan.prices == 0).mean())
    most = amount(float(fan.prices.max()), unit)
    sentences = [
        f"{fan.labels.shape[1]} × {fan.labels.shape[0]} losses expose {fan.n_faces:,} optimal faces.",
        f"Keeping the plan of the origin is free on {percent(free)} of them and costs up to {most}.",
    ]
    if len(fan.path):
        sentences.append(
            f"Of the {len(fan.path):,} losses of the path, {int(fan.in_plane.sum()):,} lie in the plane; the "
            f"others are drawn, hollow, where it comes nearest."
        )
    return sentences


def _draw(file: IO[bytes], kind: str, fan: FanPicture, title: str, right: str, up: str) -> None:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.collections import LineCollection
        from matplotlib.colors import ListedColormap
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "matplotlib is not installed, but a .png or .pdf needs it: pip install 'normalfan[paper]'."
        ) from None
    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot()
    columns, lines = edges(fan.xs), edges(fan.ys)
    fills = ListedColormap(COLOURS)
    axes.pcolormesh(
        columns,
        lines,
        fan.colours[fan.labels],
        cmap=fills,
        vmin=-0.5,
        vmax=len(COLOURS) - 0.5,
        rasterized=True,
    )
    axes.add_collection(LineCollection(list(fan.walls()), colors="#6b675f", linewidths=0.5))
    axes.plot(*fan.path.T, color="#0065a8", linewidth=1.2)
    for inside, fill in ((False, "white"), (True, "#0065a8")):
        some = fan.path[fan.in_plane == inside]
        axes.plot(*some.T, "o", markersize=5, markerfacecolor=fill, markeredgecolor="#0065a8")
    axes.set(
        xlim=columns[[0, -1]],
        ylim=lines[[0, -1]],
        xlabel=_literal(right),
        ylabel=_literal(up),
        title=_literal(title),
    )
    # No date within: the same picture is the same file.
    figure.savefig(file, format=kind, dpi=150, metadata={"CreationDate": None} if kind == "pdf" else None)


def _literal(text: str) -> str:
    """A dollar sign is a dollar sign, not the beginning of a formula."""
    return text.replace("$", r"\$")
