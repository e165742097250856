"""A slice of the fan by itself: as a page (.html), or as a figure (.png, .pdf)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO

from normalfan.errors import InputError, check_installed
from normalfan.files import written_atomically
from normalfan.plots import new_figure
from normalfan.report.charts import fan_chart
from normalfan.report.fan import COLOURS, FanPicture, edges
from normalfan.report.page import check_page_packages, write_page
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
    """Write a slice of the fan to a file.

    Parameters
    ----------
    path, fan : str or Path, FanPicture
        The file, .html (needs `normalfan[report]`), .png or .pdf (need `normalfan[plot]`), and the slice.
    title, unit, right, up : str
        The heading, the unit of the losses such as "$", and the titles of the axes.
    stops, prices : sequence of str, sequence of float
        Names and prices of the losses on the path.

    Raises
    ------
    InputError
        If the name ends otherwise, or a package is missing.

    Examples
    --------
    >>> import normalfan as nf, numpy as np
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> e = np.eye(2).reshape(2, 1, 1, 2)
    >>> picture = nf.report.draw_fan(arms, nf.report.Plane(0 * e[0], e[0], e[1]), xs=[-1, 1], ys=[-1, 1])
    >>> write_fan("fan.html", picture, title="Two arms")  # doctest: +SKIP
    """
    check_picture(path)
    suffix = Path(path).suffix
    if suffix == ".html":
        data = {"unit": unit, "fan": fan_chart(fan, right, up, stops, prices)}
        write_page(path, "fan.html", data, title=title, note="", sentences=fan_sentences(fan, unit))
    else:
        with written_atomically(path) as file:
            _draw(file, suffix[1:], fan, title, right, up)


def check_picture(path: str | Path) -> None:
    """Refuse a picture of another kind, or one whose packages are missing; ask before any long work."""
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        raise InputError(f"path is {path}, but it must end in {', '.join(SUFFIXES)}: choose one of them.")
    if suffix == ".html":
        check_page_packages()
    else:
        check_installed("matplotlib", f"a {suffix} picture needs it", "plot")


def fan_sentences(fan: FanPicture, unit: str) -> list[str]:
    """What a slice shows, in two or three sentences."""
    free = float((fan.prices == 0).mean())
    most = amount(float(fan.prices.max()), unit)
    sentences = [
        f"The grid of {len(fan.xs)} × {len(fan.ys)} losses meets {fan.n_faces:,} optimal faces.",
        f"Keeping the plan of the origin is free on {percent(free)} of the grid and costs up to {most}.",
    ]
    if len(fan.path):
        sentences.append(
            f"{int(fan.in_plane.sum()):,} of the {len(fan.path):,} losses of the path lie in the plane; the "
            f"others are drawn hollow, at the nearest point of it."
        )
    return sentences


def _draw(file: IO[bytes], kind: str, fan: FanPicture, title: str, right: str, up: str) -> None:
    figure, axes = new_figure(title, x=right, y=up, size=(6.4, 5.2))
    from matplotlib.collections import LineCollection
    from matplotlib.colors import ListedColormap

    columns, lines = edges(fan.xs), edges(fan.ys)
    fills = {"cmap": ListedColormap(COLOURS), "vmin": -0.5, "vmax": len(COLOURS) - 0.5, "rasterized": True}
    axes.pcolormesh(columns, lines, fan.colours[fan.labels], **fills)
    axes.add_collection(LineCollection(list(fan.walls()), colors="#6b675f", linewidths=0.5))
    axes.plot(*fan.path.T, color="#0065a8", linewidth=1.2)
    for inside, fill in ((False, "white"), (True, "#0065a8")):
        some = fan.path[fan.in_plane == inside]
        axes.plot(*some.T, "o", markersize=5, markerfacecolor=fill, markeredgecolor="#0065a8")
    axes.set(xlim=columns[[0, -1]], ylim=lines[[0, -1]])
    # No date within: the same picture is the same file.
    figure.savefig(file, format=kind, dpi=150, metadata={"CreationDate": None} if kind == "pdf" else None)
