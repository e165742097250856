"""The slice of the fan through the dearest crossing.

Its x axis leads from the loss before the crossing, at 0, to the loss after it, at 1. Its y axis leads on to
the loss of the next round, or back to the one before, so that three losses of the path lie in the plane;
where these are on one line, towards the mean of the losses around, or along a loss that is the same
everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from normalfan.geometry.ties import TieRule
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP
from normalfan.report.fan import FanPicture, Plane, draw_fan
from normalfan.report.findings import CELLS

MOST_SIDE, LEAST_SIDE = 45, 9


@dataclass(frozen=True, slots=True, eq=False)
class CrossingFan:
    """A picture of the fan, and what its axes and its path are called."""

    picture: FanPicture
    right: str
    up: str
    stops: tuple[int, ...]  # the rounds of picture.path
    round: int


def slice_through(
    mdp: MDP, around: Mapping[int, FloatArray], centre: int, called: Callable[[int], str], ties: TieRule
) -> CrossingFan | None:
    """The crossing into round `centre`, on the plane that the losses `around` it span; None: they do not."""
    if not centre:
        return None
    old, new = around[centre - 1], around[centre]
    ups = [
        (f"from {called(start)} to {called(end)}", around[end] - around[start])
        for start, end in ((centre, centre + 1), (centre - 1, centre - 2))
        if end in around
    ]
    ups.append(("towards the mean", np.mean(list(around.values()), axis=0) - old))
    ups.append(("along a constant loss", np.full_like(old, np.abs(new - old).max())))
    for up, direction in ups:
        plane = Plane(old, new - old, direction)
        if not plane.is_flat:
            side = int(np.clip(math.isqrt(CELLS // math.prod(mdp.shape)), LEAST_SIDE, MOST_SIDE))
            grid = np.linspace(-0.5, 1.5, side)
            picture = draw_fan(mdp, plane, grid, grid, list(around.values()), ties=ties)
            right = f"from {called(centre - 1)} to {called(centre)}"
            return CrossingFan(picture, right, up, tuple(around), centre)
    return None
