"""The polytope's shadow and its fan, side by side, with a path of losses that is mostly free."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from normalfan.pricing.stream import price_stream
from normalfan.problem.arrays import FloatArray
from normalfan_paper.figure_style import COLOURS, SMALL, paper_mosaic, save_figure
from normalfan_paper.plane import Shadow, example

SHADES = ("sky", "orange", "green", "yellow", "pink", "grey", "blue", "red")
RADIUS = 2.0

# Where the loss is in each round, in the plane's coordinates: long moves inside a cone, one short step out.
PATH = np.array([[1.35, -0.5], [0.25, -1.35], [1.2, -0.85], [0.2, -0.75], [-0.25, -0.8]])


def draw(folder: Path) -> Sequence[Path]:
    tree, plane = example()
    losses = np.tensordot(PATH, plane.along, axes=1)
    motion = price_stream(tree, losses)
    figure, axes = paper_mosaic([["polytope", "fan"], ["bars", "bars"]], height=3.4, height_ratios=[1.45, 1])
    _draw_polygon(axes["polytope"], plane)
    _draw_fan(axes["fan"], plane)
    axes["fan"].plot(*PATH.T, color=COLOURS["black"], marker="o", markersize=2.5, linewidth=0.8)
    for t, place in enumerate(PATH):
        axes["fan"].annotate(f"{t}", place, xytext=(2, 3), textcoords="offset points", fontsize=SMALL)

    bars = axes["bars"]
    rounds = np.arange(1, len(PATH))
    moved, paid = motion.variation("linf")[1:], motion.prices[1:]
    bars.bar(rounds - 0.2, moved, 0.4, color=COLOURS["sky"], label="variation ‖ℓₜ − ℓₜ₋₁‖∞")
    bars.bar(rounds + 0.2, paid, 0.4, color=COLOURS["red"], hatch="//", label="price Γₜ")
    for place, value in zip(rounds + 0.2, paid, strict=True):
        bars.annotate(f"{value:.2g}", (place, value), ha="center", va="bottom", fontsize=SMALL)
    bars.set(xlabel="round t", ylabel="units of loss", xticks=rounds)
    bars.set_title("Only the crossing is priced")
    bars.set_ylim(0, 1.45 * float(max(moved.max(), paid.max())))
    bars.legend(loc="upper left", ncols=2)
    return save_figure(figure, folder, "normal-fan")


def _draw_polygon(axes: Any, plane: Shadow) -> None:
    axes.fill(*plane.corners.T, color="#EEEEEE", zorder=1)
    axes.plot(
        *np.vstack([plane.corners, plane.corners[:1]]).T, color=COLOURS["black"], linewidth=0.8, zorder=2
    )
    axes.plot(*plane.inside.T, ".", color=COLOURS["grey"], markersize=3)
    middle = plane.corners.mean(axis=0)
    for i, corner in enumerate(plane.corners):
        axes.plot(
            *corner, "o", color=COLOURS[SHADES[i]], markeredgecolor="black", markeredgewidth=0.5, zorder=3
        )
        outward = (corner - middle) / np.linalg.norm(corner - middle)
        axes.annotate(word_of(plane, i), corner, xytext=9 * outward, textcoords="offset points",
                      ha="center", va="center", fontsize=SMALL)  # fmt: skip
    axes.set_aspect("equal")
    axes.margins(0.2)
    axes.set(xticks=[], yticks=[])
    axes.set_title("Polytope (shadow):\na corner is a plan")
    axes.set(xlabel="⟨q, d₁⟩", ylabel="⟨q, d₂⟩")


def _draw_fan(axes: Any, plane: Shadow) -> None:
    """Every cone between its two rays, exactly: inner normals of the polygon's edges."""
    for i in range(len(plane.corners)):
        first, last = plane.rays[i], plane.rays[(i + 1) % len(plane.rays)]
        wedge = RADIUS * _arc(first, last)
        axes.fill(*np.vstack([[0, 0], wedge]).T, color=COLOURS[SHADES[i]], alpha=0.45, linewidth=0)
        axes.plot(*np.vstack([[0, 0], wedge[0]]).T, color=COLOURS["black"], linewidth=0.8)
        middle = wedge[len(wedge) // 2]
        axes.annotate(
            word_of(plane, i), 0.82 * middle, ha="center", va="center", fontsize=SMALL, style="italic"
        )
    axes.set_aspect("equal")
    axes.set(xlim=(-RADIUS, RADIUS), ylim=(-RADIUS, RADIUS), xticks=[], yticks=[], xlabel="x", ylabel="y")
    axes.set_title("Normal fan: losses\nx·d₁ + y·d₂ by plan")
    axes.grid(visible=False)


def _arc(first: FloatArray, last: FloatArray) -> FloatArray:
    """Unit vectors from one direction to the other, anticlockwise."""
    begin, end = (np.arctan2(ray[1], ray[0]) for ray in (first, last))
    angles = np.linspace(begin, end if end > begin else end + 2 * np.pi, 41)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def word_of(plane: Shadow, corner: int) -> str:
    """The action string of a corner's vertex."""
    return "".join(map(str, plane.actions[corner].tolist()))
