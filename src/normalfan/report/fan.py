"""A picture of the fan: a plane in the space of losses, the polygons of its plans, a path of losses on it.

Polygons are exact (see `normalfan.regions`). Losses of the path are drawn at the nearest point of the plane,
which is exact for those in it. Polygons are coloured like countries: neighbours differ, but a colour does not
identify a plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray
from normalfan.problem.losses import as_finite_loss
from normalfan.problem.mdp import MDP
from normalfan.ranges.plane import Regions, Window, regions
from normalfan.text import counted

# Pale fills, on which dark walls are easy to see.
COLOURS = ("#bbccee", "#eeeebb", "#ccddaa", "#ffcccc", "#cceeff", "#dddddd", "#f3d9b1", "#dccbe6")
PARALLEL = 1e-9  # the squared sine of two directions that span no plane worth drawing
WINDOW = ((-0.5, 1.5), (-0.5, 1.5))

MOST_CELLS = 10_000_000  # (step, state, action) that each part of a page may visit: about a second of work
MOST_PLANS, LEAST_PLANS = 3000, 20
TOUCHING, VISIBLE = 1e-9, 2e-3  # distances, in windows: polygons touch; a strip between them can be seen


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """The losses origin + x·right + y·up.

    Examples
    --------
    >>> e = np.eye(2).reshape(2, 1, 1, 2)
    >>> Plane(0 * e[0], e[0], e[1]).is_flat
    False
    """

    origin: FloatArray  # [H, S, A] the loss at x = y = 0
    right: FloatArray  # [H, S, A] the direction of the x axis
    up: FloatArray  # likewise of the y axis

    @property
    def is_flat(self) -> bool:
        """Whether the two directions are nearly parallel, or one of them is zero."""
        (xx, xy), (_, yy) = self._spanning @ self._spanning.T
        return bool(xx * yy - xy * xy <= PARALLEL * xx * yy)

    def coordinates(self, loss: FloatArray) -> tuple[FloatArray, bool]:
        """The point [2] of the plane nearest to a loss [H, S, A], and whether it is the loss itself."""
        away = (loss - self.origin).reshape(-1)
        nearest, *_ = np.linalg.lstsq(self._spanning.T, away, rcond=None)
        miss = np.abs(away - nearest @ self._spanning).max(initial=0.0)
        scale = np.abs(away).max(initial=0.0)
        return np.round(nearest, 12) + 0.0, bool(miss <= 1e-9 * scale)

    @property
    def _spanning(self) -> FloatArray:
        return np.stack([self.right.reshape(-1), self.up.reshape(-1)])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FanPicture:
    """A slice of the fan with prices, colours and a path on it: what `draw_fan` returns."""

    regions: Regions  # n polygons, and the price of keeping the plan of the origin anywhere in the window
    colours: IntArray  # [n]  neighbours differ, as far as eight colours allow
    path: FloatArray  # [m, 2]  the points of the path
    in_plane: BoolArray  # [m]  whether a loss of the path lies in the plane; else its point is the nearest

    def __repr__(self) -> str:
        return (
            f"FanPicture: {counted(len(self.colours), 'plan')}, a path of {counted(len(self.path), 'point')}"
        )

    @property
    def free_share(self) -> float:
        """The part of the window in which keeping the plan of the origin costs nothing."""
        middles = np.array([polygon.mean(axis=0) for polygon in self.regions.polygons])
        free = [self.regions.price(x, y) == 0.0 for x, y in middles.tolist()]
        areas = self.regions.areas
        return float(areas[free].sum() / areas.sum())

    @property
    def corner_price(self) -> float:
        """The highest price at the four corners of the window."""
        xs, ys = self.regions.window.tolist()
        return max(self.regions.price(x, y) for x in xs for y in ys)


def draw_fan(
    mdp: MDP,
    plane: Plane,
    window: Window = WINDOW,
    path: Sequence[FloatArray] = (),
    *,
    most: int = 10_000,
    ties: TieRule = DEFAULT_TIES,
) -> FanPicture:
    """Slice the fan by a plane: the exact polygon of every plan in a window, and a path of losses on it.

    Parameters
    ----------
    mdp : MDP
    plane : Plane
        Where to slice its fan.
    window : float or ((float, float), (float, float)), default from -0.5 to 1.5
        How far to look to either side of the origin; or from where to where on each axis.
    path : sequence of arrays [H, S, A]
        Losses to place on the plane.
    most : int, default 10,000
        Where to stop if there are more plans.
    ties : TieRule

    Returns
    -------
    FanPicture
        `write_fan` puts it into a file.

    Raises
    ------
    InputError
        If a loss does not fit the problem, the window is none, or a number is not finite.

    Examples
    --------
    >>> arms = MDP(np.array([[0, 0]]), initial=0, horizon=1)
    >>> e = np.eye(2).reshape(2, 1, 1, 2)
    >>> draw_fan(arms, Plane(0 * e[0], e[0], e[1]), window=1, path=[2 * e[1]])
    FanPicture: 2 plans, a path of 1 point
    """
    drawn = "a fan is drawn of losses that allow every action"
    plane = Plane(
        *(as_finite_loss(mdp, getattr(plane, name), drawn, name) for name in ("origin", "right", "up"))
    )
    axes = np.stack([plane.right, plane.up])
    found = regions(mdp, plane.origin, directions=axes, window=window, most=most, ties=ties)
    placed = [plane.coordinates(loss) for loss in path]
    return FanPicture(
        regions=found,
        colours=_map_colours(found),
        path=np.array([at for at, _ in placed]).reshape(len(placed), 2),
        in_plane=np.array([exact for _, exact in placed], dtype=bool),
    )


def _map_colours(found: Regions) -> IntArray:
    """A colour for each polygon, large ones first: the rarest colour that no neighbour has."""
    neighbours = _neighbours(found)
    used = np.zeros(len(COLOURS), dtype=np.int64)
    colours = np.full(len(neighbours), -1, dtype=np.int64)
    for i in np.argsort(-found.areas, kind="stable").tolist():
        taken = {int(colours[other]) for other in neighbours[i]}
        free = [c for c in range(len(COLOURS)) if c not in taken] or list(range(len(COLOURS)))
        colours[i] = min(free, key=lambda c: (used[c], c))
        used[colours[i]] += 1
    return colours


def _neighbours(found: Regions) -> list[set[int]]:
    """The polygons beyond the middles of each one's edges: at once, and behind what is too thin to see."""
    costs = found.today.sign * np.column_stack([found.values, found.exposures])
    spans = np.ptp(found.window, axis=1)
    neighbours: list[set[int]] = [set() for _ in found.polygons]
    for i, polygon in enumerate(found.polygons):
        edges = (np.roll(polygon, -1, axis=0) - polygon) / spans
        lengths = np.hypot(*edges.T)[:, None]
        outward = np.divide(edges[:, ::-1] * (1, -1), lengths, out=np.zeros_like(edges), where=lengths > 0)
        middles = (polygon + np.roll(polygon, -1, axis=0)) / 2 - found.now
        beyond = np.concatenate([middles + distance * outward * spans for distance in (TOUCHING, VISIBLE)])
        heights = np.column_stack([np.ones(len(beyond)), beyond]) @ costs.T
        for near in set(heights.argmin(axis=1).tolist()) - {i}:
            neighbours[i].add(near)
            neighbours[near].add(i)
    return neighbours


def slice_through(
    mdp: MDP, around: Mapping[int, FloatArray], centre: int, names: Mapping[int, str], ties: TieRule
) -> tuple[FanPicture, str] | None:
    """A slice through the crossing into round `centre`, with its path, and the title of its y axis.

    None if the losses `around` it span no plane. The x axis goes from the loss before the crossing to the one
    after it; the y axis on to the next round or back to the one before, so that three losses of the path lie
    in the plane; where these are on one line, towards the mean of the losses around, or a constant loss.
    """
    if not centre:
        return None
    old, new = around[centre - 1], around[centre]
    ups = [
        (f"from {names[start]} to {names[end]}", around[end] - around[start])
        for start, end in ((centre, centre + 1), (centre - 1, centre - 2))
        if end in around
    ]
    ups.append(("towards the mean", np.mean(list(around.values()), axis=0) - old))
    ups.append(("along a constant loss", np.full_like(old, np.abs(new - old).max())))
    for up, direction in ups:
        plane = Plane(old, new - old, direction)
        if not plane.is_flat:
            most = int(np.clip(MOST_CELLS // math.prod(mdp.shape), LEAST_PLANS, MOST_PLANS))
            return draw_fan(mdp, plane, WINDOW, list(around.values()), most=most, ties=ties), up
    return None
