"""A page to play with: a polytope, its normal fan, and two losses to drag. One file, no network."""

from __future__ import annotations

import json
from typing import Any

from normalfan.problem.transitions import Deterministic
from normalfan_paper.pages import template
from normalfan_paper.plane import example

TITLE = "Play with a normal fan"
INTRODUCTION = (
    "A tree of three steps with two actions has eight plans, and a loss for every step. Only losses x·d₁ + "
    "y·d₂ "
    "are shown, a plane. On it the fan says which plan is best; beside it the polytope, thrown onto the same "
    "plane, has that plan as a corner. While today's loss stays in yesterday's cone, staying is free."
)
COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#7F7F7F", "#0072B2", "#D55E00")
EXTENT = 2.0
BEFORE, AFTER = (0.9, -0.9), (-0.25, -0.8)


def to_fan_page() -> str:
    """The page; what it shows is computed in the page itself, from the problem that is written into it."""
    page = template("fan.html")
    script = template("fan.js").render()
    text: str = page.render(title=TITLE, introduction=INTRODUCTION, data=_data(), script=script)
    return text


def _data() -> str:
    mdp, plane = example()
    if not isinstance(mdp.transitions, Deterministic):
        raise TypeError("the page walks along next states, so the example must have some")
    document: dict[str, Any] = {
        "horizon": mdp.horizon,
        "nexts": mdp.transitions.nexts[0].tolist(),
        "along": plane.along.tolist(),
        "corners": plane.corners.tolist(),
        "rays": plane.rays.tolist(),
        "inside": plane.inside.tolist(),
        "words": ["".join(map(str, actions.tolist())) for actions in plane.actions],
        "colours": COLOURS[: len(plane.corners)],
        "extent": EXTENT,
        "before": BEFORE,
        "after": AFTER,
    }
    return json.dumps(document)
