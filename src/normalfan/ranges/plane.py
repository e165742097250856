"""Exact polygons of plans in a plane of losses.

What a plan costs beyond the optimum is convex over the plane, and J* is the lower envelope of one linear
function for each plan. A region is what is left of the window when a backup at every corner finds nothing
more to cut away. Today's optimal plans alone have an envelope, too: their price is what lies between the two.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from normalfan.errors import InputError, check_whole
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.plots import new_figure
from normalfan.problem.arrays import BoolArray, FloatArray, read_numbers, read_only
from normalfan.problem.losses import Losses
from normalfan.problem.mdp import MDP
from normalfan.ranges.line import ROUNDING
from normalfan.ranges.reading import (
    Directions,
    Tolerance,
    check_ways,
    read_today,
    read_tolerance,
    read_window,
)
from normalfan.ranges.today import NOTHING, Plan, Swept, Today
from normalfan.text import counted, html_table, number, printable

Point: TypeAlias = tuple[float, float]
Polygon: TypeAlias = list[Point]  # its corners, counter-clockwise
Window: TypeAlias = float | tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True, eq=False, repr=False)
class Regions:
    """Polygons of plans in a window: what `region` and `regions` return. Coordinates are coefficients.

    Examples
    --------
    >>> import normalfan as nf
    >>> losses = nf.FactoredLosses([[3.0, 5.0]], [[[[1, 0]]], [[[0, 1]]]], feature_names=["buy", "make"])
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> found = nf.regions(arms, losses, directions=["buy", "make"], window=2)
    >>> found, found.price(5.0, 3.0)
    (Regions: 2 plans for buy from 1 to 5 and make from 3 to 7, tolerance 0, 2.0)
    """

    names: tuple[str, str]  # of the two coefficients
    now: FloatArray  # [2] where they stand
    window: FloatArray  # [2, 2] from where to where each goes
    polygons: tuple[FloatArray, ...]  # n of [m, 2] corners, counter-clockwise
    exposures: FloatArray  # [n, 2] how much of the two each plan takes
    values: FloatArray  # [n] the expected loss, or reward, of each plan where the coefficients stand now
    kept: FloatArray  # [k, 3] of the plans that are optimal now: value, and how much each takes of the two
    tolerance: float  # what a plan may cost beyond the best one in its polygon
    complete: bool  # no plan of the window is missing
    is_todays: bool  # there is one polygon, that of today's plan; not those of all plans
    today: Today  # the round

    def policy(self, i: int) -> FloatArray:
        """Plan i as a policy [H, S, A]."""
        if self.is_todays:
            return self.today.policy
        return self.today.policy_at(self.polygons[i].mean(axis=0) - self.now, np.zeros(2))

    def price(self, x: float, y: float) -> float:
        """What keeping the best of today's optimal plans costs at a point of the window.

        If plans are missing it costs at least that.
        """
        if self.is_todays:
            raise InputError("price needs all plans, but nf.region finds only today's: use nf.regions.")
        point = np.array([x, y], dtype=np.float64)
        if not ((self.window[:, 0] <= point) & (point <= self.window[:, 1])).all():
            raise InputError(
                f"the point ({x}, {y}) is outside the window, but plans are known only inside: widen it."
            )
        here = self.today.sign * np.append(1.0, point - self.now)
        every = np.column_stack([self.values, self.exposures])
        cost = float((self.kept @ here).min() - (every @ here).min())
        return cost if cost > ROUNDING * float((np.abs(self.kept) @ np.abs(here)).max()) else 0.0

    @property
    def areas(self) -> FloatArray:
        """[n]: of the polygons."""
        return np.array([_area(polygon.tolist()) for polygon in self.polygons])

    def plot(self) -> Any:
        """Draw the polygons; returns a matplotlib figure."""
        figure, axes = new_figure(self._in_short().split(" for ")[0], x=self.names[0], y=self.names[1])
        for i, polygon in enumerate(self.polygons):
            axes.fill(*polygon.T, facecolor=f"C{i % 10}", edgecolor="white", alpha=0.6)
        axes.plot(*self.now, marker="o", color="black")
        axes.set(xlim=self.window[0], ylim=self.window[1])
        return figure

    def __repr__(self) -> str:
        return f"Regions: {self._in_short()}"

    def _repr_html_(self) -> str:
        rows = [
            (i, len(polygon), *map(number, (self.values[i], *self.exposures[i])))
            for i, polygon in enumerate(self.polygons[:50])
        ]
        head = ("plan", "corners", "value now", *(f"exposure to {name}" for name in self.names))
        return html_table(self._in_short(), head, rows)

    def _in_short(self) -> str:
        spans = (
            f"{printable(name):.40} from {number(low)} to {number(high)}"
            for name, (low, high) in zip(self.names, self.window, strict=True)
        )
        many = counted(len(self.polygons), "plan")
        return f"{many} for {' and '.join(spans)}, tolerance {number(self.tolerance)}"


def region(
    mdp: MDP,
    losses: Losses,
    *,
    directions: Directions,
    window: Window,
    at: int | str | None = None,
    tolerance: Tolerance = 0.0,
    ties: TieRule = DEFAULT_TIES,
) -> Regions:
    """Find the exact polygon, in a plane, in which today's plan costs at most a tolerance.

    Where several plans are optimal today, the first of tied actions is the plan.

    Parameters
    ----------
    mdp, losses, at, ties
        As in `ranging`.
    directions : sequence of str or array_like
        The two axes: names of features, or directions, as coefficients [2, K] or losses [2, H, S, A].
    window : float or ((float, float), (float, float))
        How far to look to either side of now; or from where to where in each coefficient.
    tolerance : float or str, default 0
        What the plan may cost beyond the best one: an amount, or a share of the round's |value|.

    Returns
    -------
    Regions
        With one polygon.

    Raises
    ------
    InputError
        If there is no such round, feature or tolerance, there are not two directions, or the window is none.

    Examples
    --------
    >>> import normalfan as nf
    >>> losses = nf.FactoredLosses([[3.0, 5.0]], [[[[1, 0]]], [[[0, 1]]]])
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> nf.region(arms, losses, directions=["0", "1"], window=2).polygons[0].tolist()
    [[1.0, 3.0], [3.0, 3.0], [5.0, 5.0], [5.0, 7.0], [1.0, 7.0]]
    """
    today, moves = _read_plane(mdp, losses, at, directions, window, ties)
    allowed = read_tolerance(today, tolerance)
    reach = float(np.abs(moves).max())
    polygon, verified = _corners(moves), set[Point]()
    while fresh := [corner for corner in polygon if corner not in verified]:
        verified |= set(fresh)
        swept, further = _both(today, np.array(fresh), today.plan)
        for corner, *found in zip(fresh, swept.gaps, swept.rises, further.rises, strict=True):
            gap, gx, gy = map(float, found)
            if gap - allowed > ROUNDING * reach * (abs(gx) + abs(gy)):
                polygon = _clip(polygon, -(allowed - gap + gx * corner[0] + gy * corner[1]), gx, gy)
    return _regions(today, moves, [polygon], _own_plane(today), kept=_own_plane(today), tolerance=allowed)


def regions(
    mdp: MDP,
    losses: Losses,
    *,
    directions: Directions,
    window: Window,
    at: int | str | None = None,
    most: int = 10_000,
    ties: TieRule = DEFAULT_TIES,
) -> Regions:
    """Find the exact polygons of all plans that are optimal somewhere in a window of a plane.

    Plans that never differ in cost by more than rounding count as one.

    Parameters
    ----------
    mdp, losses, directions, window, at, ties
        As in `region`.
    most : int, default 10,000
        Where to stop: `complete` then says that plans are missing, and polygons may be too large.

    Returns
    -------
    Regions

    Raises
    ------
    InputError
        If there is no such round or feature, there are not two directions, or the window is none.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> entries = [[[[1, 0]]], [[[0, 1]]]]
    >>> nf.regions(arms, [[[3.0, 5.0]]], directions=entries, window=((-1, 3), (-1, 1))).exposures.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    check_whole("most", most, "leave it out for 10,000 plans")
    today, moves = _read_plane(mdp, losses, at, directions, window, ties)
    planes, cells, complete = _envelope(today, moves, most)
    kept, *_ = _envelope(today, moves, most, today.tied) if today.dimension else (_own_plane(today), None)
    wide = [i for i, cell in enumerate(cells) if _area(cell) > ROUNDING * np.ptp(moves, axis=1).prod()]
    return _regions(today, moves, [cells[i] for i in wide], planes[wide], kept=kept, complete=complete)


def _envelope(
    today: Today, moves: FloatArray, most: int, mask: BoolArray | None = None
) -> tuple[FloatArray, list[Polygon], bool]:
    """The linear pieces c + gx·x + gy·y of J* over the window, [n, 3], where each holds, and if that is all.

    With a mask, of the least cost of plans that keep to it.
    """
    reach, spans = float(np.abs(moves).max()), np.ptp(moves, axis=1)
    pieces = _Pieces(_corners(moves))
    verified, waiting = set[tuple[int, int]](), pieces.whole
    while waiting and len(pieces.cells) < most:
        corners = np.column_stack([np.ones(len(waiting)), waiting])
        swept, further = _both(today, corners[:, 1:], mask=mask)
        gradients = np.stack([swept.slopes, further.slopes], axis=1)
        starts = swept.values - (gradients * corners[:, 1:]).sum(axis=1)
        for corner, plane in zip(corners, np.column_stack([starts, gradients]), strict=True):
            lower = (pieces.planes @ corner).min(initial=np.inf) - plane @ corner
            size = np.abs(plane[0]) + reach * np.abs(plane[1:]).sum()
            if lower > ROUNDING * size and len(pieces.cells) < most:
                pieces.add(plane)
        waiting = Polygon()
        for point in (point for i in sorted(pieces.changed) for point in pieces.cells[i]):
            place = round(point[0] / spans[0] * 1e9), round(point[1] / spans[1] * 1e9)
            if place not in verified:
                verified.add(place)
                waiting.append(point)
        pieces.changed.clear()
    return pieces.planes, pieces.cells, not waiting


class _Pieces:
    """A lower envelope that grows: planes, and the cells in which each is the lowest."""

    def __init__(self, whole: Polygon) -> None:
        self.whole = whole
        self.cells: list[Polygon] = []
        self.changed: set[int] = set()
        self._planes = np.zeros((64, 3))
        self._corners = np.zeros((3, 64, 8))  # x, y and height of those of each cell; at −∞ there is none

    @property
    def planes(self) -> FloatArray:
        return self._planes[: len(self.cells)]

    def add(self, plane: FloatArray) -> None:
        """Add a plane that is the lowest somewhere: only the cells that it cuts have to do with it."""
        count, own = len(self.cells), self.whole
        x, y, height = self._corners[:, :count]
        cut = np.flatnonzero((plane[0] + plane[1] * x + plane[2] * y < height).any(axis=1)).tolist()
        if count == len(self._planes):
            self._planes = np.pad(self._planes, ((0, count), (0, 0)))
            self._corners = np.pad(self._corners, ((0, 0), (0, count), (0, 0)))
        self._planes[count] = plane
        for i in cut:
            own = _clip(own, *(plane - self._planes[i]).tolist())
        self.cells.append(own)
        for i in cut:
            self._set(i, _clip(self.cells[i], *(self._planes[i] - plane).tolist()))
        self._set(count, own)

    def _set(self, i: int, cell: Polygon) -> None:
        self.cells[i] = cell
        self.changed.add(i)
        missing = len(cell) - self._corners.shape[2]
        if missing > 0:
            self._corners = np.pad(self._corners, ((0, 0), (0, 0), (0, missing)))
            self._corners[2, :, -missing:] = -np.inf
        self._corners[2, i] = -np.inf
        if cell:
            x, y = np.array(cell).T
            c, gx, gy = self._planes[i]
            self._corners[:, i, : len(cell)] = x, y, c + gx * x + gy * y


def _regions(
    today: Today,
    moves: FloatArray,
    cells: Iterable[Polygon],
    planes: FloatArray,
    *,
    kept: FloatArray,
    complete: bool = True,
    tolerance: float | None = None,
) -> Regions:
    """The result, in the user's coordinates and sign; with a tolerance, for today's plan alone."""
    shown = 0.0 + today.sign * planes
    return Regions(
        names=(today.names[0], today.names[1]),
        now=today.now,
        window=read_only(today.now[:, None] + moves),
        polygons=tuple(read_only(today.now + np.array(cell).reshape(-1, 2)) for cell in cells),
        exposures=read_only(shown[:, 1:]),
        values=read_only(shown[:, 0]),
        kept=read_only(0.0 + today.sign * kept),
        tolerance=tolerance or 0.0,
        complete=complete,
        is_todays=tolerance is not None,
        today=today,
    )


def _read_plane(
    mdp: MDP, losses: Losses, at: int | str | None, directions: Directions, window: Any, ties: TieRule
) -> tuple[Today, FloatArray]:
    """The round with two ways to move, and how far they go, [2, 2]."""
    today = read_today(mdp, losses, at, directions, ties)
    check_ways(today, "directions", 2, "a plane has two")
    spans = read_numbers("window", window).astype(np.float64)
    if spans.ndim == 0:
        _, half = read_window("window", (-spans, spans))
        return today, np.array([[-half, half]] * 2)
    if spans.shape != (2, 2):
        raise InputError(
            f"window has shape {list(spans.shape)}, but must be one number or two intervals: pass [2, 2]."
        )
    return today, np.array([read_window("window", span) for span in spans]) - today.now[:, None]


def _both(
    today: Today, points: FloatArray, plan: Plan = NOTHING, mask: BoolArray | None = None
) -> tuple[Swept, Swept]:
    """Backups at points, with slopes along the first axis, and of the same plans along the second."""
    along = np.eye(2)[:, None] + np.zeros((len(points), 1))
    swept = today.backups(points, along[0], plan=plan, mask=mask)
    return swept, today.backups(points, along[1], plan=plan, forced=swept.picks)


def _own_plane(today: Today) -> FloatArray:
    """[1, 3]: the value of today's plan, and how much it takes of both."""
    return np.append(today.value, today.exposures(today.policy))[None]


def _corners(moves: FloatArray) -> Polygon:
    (left, right), (low, high) = moves.tolist()
    return [(left, low), (right, low), (right, high), (left, high)]


def _clip(polygon: Polygon, c: float, gx: float, gy: float) -> Polygon:
    """The part of a convex polygon with c + gx·x + gy·y ≤ 0 (Sutherland and Hodgman)."""
    slack = ROUNDING * max((abs(gx * x) + abs(gy * y) for x, y in polygon), default=0.0)
    over = [gx * x + gy * y + c for x, y in polygon]
    over = [0.0 if abs(excess) <= slack else excess for excess in over]  # on the line, but for rounding
    if max(over, default=0.0) <= 0:
        return polygon
    left = Polygon()
    for (a, start), (b, end) in pairwise([*zip(over, polygon, strict=True), (over[0], polygon[0])]):
        if a <= 0:
            left.append(start)
        if a * b < 0:
            share = a / (a - b)
            left.append((start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])))
    return left


def _area(polygon: Polygon) -> float:
    if not polygon:
        return 0.0
    around = pairwise([*polygon, polygon[0]])
    return sum(x * v - u * y for (x, y), (u, v) in around) / 2
