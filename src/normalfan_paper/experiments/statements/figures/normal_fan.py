"""A plane through loss space, coloured by optimal face, with a path of losses that is mostly free."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from normalfan.geometry.bellman import occupancy
from normalfan.pricing.stream import price_stream
from normalfan.ranges.plane import Regions, regions
from normalfan_paper.environments.constructions import layered_tree_mdp
from normalfan_paper.figure_style import COLOURS, paper_figure, save_figure

HORIZON = 3
EXTENT = 2.0
SHADES = ("sky", "orange", "green", "yellow", "pink", "grey", "blue", "red")

# Where the loss is in each round, in the plane's coordinates: long moves inside a cone, one short step out.
PATH = np.array([[-1.55, -0.6], [-0.75, -1.5], [-1.75, -1.2], [-0.5, -0.75], [0.1, -0.8]])


def draw(folder: Path) -> Sequence[Path]:
    tree = layered_tree_mdp(HORIZON)
    along_x, along_y = np.random.default_rng(3).normal(size=(2, *tree.shape))
    axes = np.stack([along_x, along_y])
    cones = regions(tree, np.zeros(tree.shape), directions=axes, window=EXTENT)
    losses = PATH[:, 0, None, None, None] * along_x + PATH[:, 1, None, None, None] * along_y
    motion = price_stream(tree, losses)

    figure, (left, right) = paper_figure(1, 2, height=3.3, width_ratios=[1.1, 1])
    _draw_plane(left, cones)
    left.plot(*PATH.T, color=COLOURS["black"], marker="o", markersize=4, linewidth=1.2)
    for t, (x, y) in enumerate(PATH):
        left.annotate(f"{t}", (x, y), xytext=(4, 4), textcoords="offset points", fontsize=8)
    left.set(xlabel="x", ylabel="y", title=f"Losses x·d₁ + y·d₂: {len(cones.polygons)} cones", aspect="equal")
    left.grid(False)

    rounds = np.arange(1, len(PATH))
    moved, paid = motion.variation("l1")[1:], motion.prices[1:]
    right.bar(rounds - 0.2, moved, 0.4, color=COLOURS["sky"], label="variation ‖ℓₜ − ℓₜ₋₁‖₁")
    right.bar(rounds + 0.2, paid, 0.4, color=COLOURS["red"], hatch="//", label="price Γₜ")
    for place, value in zip(rounds + 0.2, paid, strict=True):
        right.annotate(f"{value:.3g}", (place, value), ha="center", va="bottom", fontsize=8)
    right.set(xlabel="round t", ylabel="loss units", xticks=rounds, title="Only the crossing is priced")
    right.set_ylim(0, 1.25 * float(moved.max()))
    right.legend(loc="upper right")
    return save_figure(figure, folder, "normal-fan")


def _draw_plane(axes: Any, cones: Regions) -> None:
    for i, polygon in enumerate(cones.polygons):
        shade = COLOURS[SHADES[i % len(SHADES)]]
        axes.fill(*polygon.T, facecolor=shade, edgecolor=COLOURS["black"], linewidth=0.5, alpha=0.45)
        if cones.areas[i] > 0.01 * cones.areas.sum():  # else it is too thin to hold its name
            name = _actions(cones.policy(i) * occupancy(cones.today.mdp, cones.policy(i)) > 0)
            axes.text(
                *(1.1 * polygon.mean(axis=0)), name, ha="center", va="center", fontsize=8, style="italic"
            )
    axes.set(xlim=(-EXTENT, EXTENT), ylim=(-EXTENT, EXTENT))


def _actions(mask: Any) -> str:
    """The action string of a vertex of the tree."""
    return "".join(str(int(layer.any(axis=0).argmax())) for layer in mask)
