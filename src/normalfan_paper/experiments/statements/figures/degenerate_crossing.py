"""Two crossings by the same loss variation: disjoint faces are priced, faces that meet are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from normalfan.geometry.face import Face, optimal_face
from normalfan.pricing.crossing import price
from normalfan.problem.arrays import FloatArray
from normalfan_paper.environments.constructions import one_state
from normalfan_paper.figure_style import COLOURS, SMALL, paper_figure, save_figure

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])  # where the three arms are drawn
BEFORE = {"apart": (0.0, 1.0, 1.0), "meeting": (0.0, 0.0, 1.0)}
AFTER = {"apart": (1.0, 0.0, 0.0), "meeting": (2.0, 0.0, 0.0)}


def draw(folder: Path) -> Sequence[Path]:
    figure, panels = paper_figure(1, 2, height=2.1)
    arms = one_state(1, 3)
    for axes, name in zip(panels, BEFORE, strict=True):
        before, after = (np.array(losses[name]).reshape(arms.shape) for losses in (BEFORE, AFTER))
        old, new = optimal_face(arms, before), optimal_face(arms, after)
        axes.fill(*CORNERS.T, color=COLOURS["grey"], alpha=0.15, linewidth=0)
        axes.plot(*np.vstack([CORNERS, CORNERS[:1]]).T, color=COLOURS["grey"], linewidth=0.8)
        _draw_face(axes, new, color=COLOURS["orange"], linewidth=5, label="new face")
        _draw_face(axes, old, color=COLOURS["blue"], linewidth=2, label="old face")
        for arm, (x, y) in enumerate(CORNERS):
            axes.annotate(
                f"{before.flat[arm]:g} → {after.flat[arm]:g}",
                (x, y),
                xytext=(0, 7 if y else -13),
                textcoords="offset points",
                ha="center",
                fontsize=SMALL,
            )
        cost, moved = price(old, after).price, float(np.abs(after - before).sum())
        words = "meet" if old.meets(new) else "are apart"
        axes.set_title(f"Faces {words}: price {cost:g}\nvariation {moved:g} in L1", pad=8)
        axes.set(aspect="equal", xlim=(-0.25, 1.25), ylim=(-0.2, 1.05))
        axes.axis("off")
    handles, labels = panels[1].get_legend_handles_labels()
    for handle in handles:
        handle.set_markersize(4)
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return save_figure(figure, folder, "degenerate-crossing")


def _draw_face(axes: Any, face: Face, **style: Any) -> None:
    """A vertex as a dot, an edge as a line between its ends."""
    ends: FloatArray = np.array([visits.ravel() @ CORNERS for visits in face.vertices()])
    axes.plot(*ends.T, marker="o", markersize=style["linewidth"] + 4, solid_capstyle="round", **style)
