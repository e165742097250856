"""A picture of the fan: a plane in the space of losses, its cones, and the path of the losses on it.

Every grid point has the optimal face of its loss and the price of keeping the origin's plan there. Losses of
the stream are drawn at the nearest point of the plane, which is exact for those in it. Faces are coloured
like countries: neighbours differ, but a colour does not identify a face.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.bellman import optimal_backup
from normalfan.geometry.face import Face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.stream import price_stream
from normalfan.problem.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    check_finite,
    check_shape,
    read_numbers,
    read_only,
)
from normalfan.problem.losses import IterableLosses, as_finite_loss
from normalfan.problem.mdp import MDP, follow
from normalfan.text import counted

# Pale fills, on which dark walls are easy to see.
COLOURS = ("#bbccee", "#eeeebb", "#ccddaa", "#ffcccc", "#cceeff", "#dddddd", "#f3d9b1", "#dccbe6")
PARALLEL = 1e-9  # the squared sine of two directions that span no plane worth drawing
MOST_CELLS = 10_000_000  # (step, state, action) that each part of a page may visit: about a second of work

MOST_SIDE, LEAST_SIDE = 45, 9
AT_ONCE = 32  # points whose faces are found together; of more, BLAS would share out tiny products to threads


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """The losses origin + x·right + y·up.

    Parameters
    ----------
    origin, right, up : array [H, S, A]
        The loss at x = y = 0, and the directions of the two axes.

    Examples
    --------
    >>> e = np.eye(2).reshape(2, 1, 1, 2)
    >>> Plane(0 * e[0], e[0], e[1]).is_flat
    False
    """

    origin: FloatArray
    right: FloatArray
    up: FloatArray

    def losses(self, xs: FloatArray, ys: FloatArray) -> Iterator[FloatArray]:
        """The losses of a grid, line by line."""
        return (self.origin + x * self.right + y * self.up for y in ys for x in xs)

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

    xs: FloatArray  # [nx]  the coordinates of the grid
    ys: FloatArray  # [ny]
    labels: IntArray  # [ny, nx]  which face each grid point has
    colours: IntArray  # [faces]  neighbours differ, as far as eight colours allow
    prices: FloatArray  # [ny, nx]  of keeping the plan of the origin
    path: FloatArray  # [n, 2]  the points of the path
    in_plane: BoolArray  # [n]  whether a loss of the path lies in the plane; else its point is the nearest

    def __repr__(self) -> str:
        return f"FanPicture: {counted(self.n_faces, 'face')} on a grid of {len(self.xs)} × {len(self.ys)}"

    @property
    def n_faces(self) -> int:
        """How many faces the grid meets."""
        return len(self.colours)

    def walls(self) -> FloatArray:
        """The walls between grid points of different faces: line segments [n, 2, 2] from (x, y) to (x, y)."""
        xs, ys = edges(self.xs), edges(self.ys)
        j, i = np.nonzero(self.labels[:, 1:] != self.labels[:, :-1])
        upright = np.stack([xs[i + 1], ys[j], xs[i + 1], ys[j + 1]], axis=1)
        j, i = np.nonzero(self.labels[1:] != self.labels[:-1])
        level = np.stack([xs[i], ys[j + 1], xs[i + 1], ys[j + 1]], axis=1)
        return np.concatenate([upright, level]).reshape(-1, 2, 2)


def edges(centres: FloatArray) -> FloatArray:
    """The n + 1 borders of n grid cells.

    >>> edges(np.array([0.0, 1.0, 3.0]))
    array([-0.5,  0.5,  2. ,  4. ])
    """
    if len(centres) == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    between = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[2 * centres[0] - between[0]], between, [2 * centres[-1] - between[-1]]])


def draw_fan(
    mdp: MDP,
    plane: Plane,
    xs: npt.ArrayLike,
    ys: npt.ArrayLike,
    path: Sequence[FloatArray] = (),
    *,
    ties: TieRule = DEFAULT_TIES,
) -> FanPicture:
    """Slice the fan by a plane: faces, prices and colours of a grid, and a path of losses on it.

    Parameters
    ----------
    mdp, plane : MDP, Plane
        The problem, and where to slice its fan.
    xs, ys, path : array [nx], array [ny], sequence of arrays [H, S, A]
        The coordinates of the grid, and losses to place on the plane.
    ties : TieRule
        When two actions count as equally good.

    Returns
    -------
    FanPicture
        The picture; `write_fan` puts it into a file.

    Raises
    ------
    InputError
        If a loss does not fit the problem, coordinates are not a list, or a number is not finite.

    Examples
    --------
    >>> arms = MDP(np.array([[0, 0]]), initial=0, horizon=1)
    >>> e = np.eye(2).reshape(2, 1, 1, 2)
    >>> draw_fan(arms, Plane(0 * e[0], e[0], e[1]), xs=[-1, 0.5], ys=[-1, 1], path=[2 * e[1]])
    FanPicture: 3 faces on a grid of 2 × 2
    """
    drawn = "a fan is drawn of losses that allow every action"
    plane = Plane(
        *(as_finite_loss(mdp, getattr(plane, name), drawn, name) for name in ("origin", "right", "up"))
    )
    columns, lines = _read_coordinates("xs", xs), _read_coordinates("ys", ys)
    prices = _prices(mdp, plane, columns, lines, ties)  # refuses losses beyond the range of floats
    labels, faces = label_faces(mdp, plane, columns, lines, ties)
    placed = [plane.coordinates(loss) for loss in path]
    return FanPicture(
        xs=columns,
        ys=lines,
        labels=labels,
        colours=_map_colours(labels, len(faces)),
        prices=prices,
        path=np.array([at for at, _ in placed]).reshape(len(placed), 2),
        in_plane=np.array([exact for _, exact in placed], dtype=bool),
    )


def _read_coordinates(name: str, coordinates: npt.ArrayLike) -> FloatArray:
    numbers = read_numbers(name, coordinates)
    check_shape(name, numbers.shape, (numbers.size,), "flatten it, or use np.linspace")
    check_finite(name, numbers)
    if not numbers.size:
        raise InputError(f"{name} has no number, but a grid needs at least one: use np.linspace.")
    return numbers.astype(np.float64)


def label_faces(
    mdp: MDP, plane: Plane, xs: FloatArray, ys: FloatArray, ties: TieRule = DEFAULT_TIES
) -> tuple[IntArray, tuple[Face, ...]]:
    """Which face each grid point has, [ny, nx], and the faces, numbered in the order of appearance."""
    points = plane.losses(xs, ys)
    at_once = int(np.clip(MOST_CELLS // math.prod(mdp.shape), 1, AT_ONCE))
    seen: dict[bytes, int] = {}
    labels, faces = list[int](), list[Face]()
    while some := list(islice(points, at_once)):
        kept, _ = follow(mdp, optimal_backup(mdp, np.stack(some, axis=-1)).tied(mdp, ties))
        for mask in np.moveaxis(kept, -1, 0):
            labels.append(seen.setdefault(mask.tobytes(), len(seen)))
            if len(faces) < len(seen):
                faces.append(Face(mdp, mask))
    return read_only(np.array(labels).reshape(len(ys), len(xs))), tuple(faces)


def _prices(mdp: MDP, plane: Plane, xs: FloatArray, ys: FloatArray, ties: TieRule) -> FloatArray:
    """The price of each grid point against the origin."""
    losses = IterableLosses(chain([plane.origin], plane.losses(xs, ys)))
    decided = replace(ties, band=1.0)  # how sure a grid point's price is does not matter here
    motion = price_stream(mdp, losses, against="first", ties=decided, detail="prices")
    return motion.prices[1:].reshape(len(ys), len(xs))


def _map_colours(labels: IntArray, n_faces: int) -> IntArray:
    """A colour for each face, large faces first: the rarest colour that no neighbour has."""
    neighbours: list[set[int]] = [set() for _ in range(n_faces)]
    for one, other in ((labels[:, :-1], labels[:, 1:]), (labels[:-1], labels[1:])):
        for a, b in zip(one.ravel().tolist(), other.ravel().tolist(), strict=True):
            if a != b:
                neighbours[a].add(b)
                neighbours[b].add(a)
    used = np.zeros(len(COLOURS), dtype=np.int64)
    colours = np.full(n_faces, -1, dtype=np.int64)
    for face in np.argsort(-np.bincount(labels.ravel(), minlength=n_faces), kind="stable").tolist():
        taken = {int(colours[other]) for other in neighbours[face]}
        free = [c for c in range(len(COLOURS)) if c not in taken] or list(range(len(COLOURS)))
        colours[face] = min(free, key=lambda c: (used[c], c))
        used[colours[face]] += 1
    return colours


def slice_through(
    mdp: MDP, around: Mapping[int, FloatArray], centre: int, name_of: Callable[[int], str], ties: TieRule
) -> tuple[FanPicture, str] | None:
    """Slice the fan through the crossing into round `centre`; None if the losses `around` it span no plane.

    Returns the picture, with `around` as its path, and the title of the y axis. The x axis goes from the loss
    before the crossing to the loss after it. The y axis goes on to the loss of the next round, or back to the
    one before, so that three losses of the path lie in the plane; where these are on one line, towards the
    mean of the losses around, or along a constant loss.
    """
    if not centre:
        return None
    old, new = around[centre - 1], around[centre]
    ups = [
        (f"from {name_of(start)} to {name_of(end)}", around[end] - around[start])
        for start, end in ((centre, centre + 1), (centre - 1, centre - 2))
        if end in around
    ]
    ups.append(("towards the mean", np.mean(list(around.values()), axis=0) - old))
    ups.append(("along a constant loss", np.full_like(old, np.abs(new - old).max())))
    for up, direction in ups:
        plane = Plane(old, new - old, direction)
        if not plane.is_flat:
            side = int(np.clip(math.isqrt(MOST_CELLS // math.prod(mdp.shape)), LEAST_SIDE, MOST_SIDE))
            grid = np.linspace(-0.5, 1.5, side)
            return draw_fan(mdp, plane, grid, grid, list(around.values()), ties=ties), up
    return None
