"""A picture of the fan: a plane through the space of losses, its cones, and the path of the losses on it.

The plane is origin + x·right + y·up. Every grid point carries the face it exposes and the price of keeping
the origin's plan there; losses of the stream are drawn at their least-squares coordinates, which are exact
for those that lie in the plane.

Faces are coloured like a map: a few colours, and neighbours differ. So a colour names no face; a wall
always shows.

    >>> arms = MDP(np.array([[0, 0]]), initial=0, horizon=1)
    >>> e = np.eye(2).reshape(2, 1, 1, 2)
    >>> picture = draw_fan(arms, Plane(0 * e[0], e[0], e[1]), xs=[-1, 0.5], ys=[-1, 1], path=[2 * e[1]])
    >>> picture.labels.tolist(), picture.path.tolist(), picture.in_plane.tolist()
    ([[0, 1], [2, 2]], [[0.0, 2.0]], [True])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any

import numpy as np

from normalfan.geometry.fan_slice import fan_slice
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.stream import price_stream
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray
from normalfan.problem.losses import IterableLosses
from normalfan.problem.mdp import MDP

COLOURS = ("#bbccee", "#eeeebb", "#ccddaa", "#ffcccc", "#cceeff", "#dddddd", "#f3d9b1", "#dccbe6")
"""Pale fills, from which dark walls stand out; the walls, not the colours, tell faces apart."""

PARALLEL = 1e-9
"""Two directions whose squared sine is below this span no plane that is worth drawing."""


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """origin + x·right + y·up, losses [H, S, A] each."""

    origin: FloatArray
    right: FloatArray
    up: FloatArray

    @property
    def gram(self) -> FloatArray:
        spanning = self._spanning
        return spanning @ spanning.T

    @property
    def is_flat(self) -> bool:
        """Whether the two directions are (nearly) one, or none."""
        (xx, xy), (_, yy) = self.gram
        return bool(xx * yy - xy * xy <= PARALLEL * xx * yy)

    def coordinates(self, loss: FloatArray) -> tuple[FloatArray, bool]:
        """The (x, y) of the nearest point of the plane, and whether the loss is that point."""
        away = (loss - self.origin).reshape(-1)
        nearest, *_ = np.linalg.lstsq(self._spanning.T, away, rcond=None)
        miss = np.abs(away - nearest @ self._spanning).max(initial=0.0)
        scale = np.abs(away).max(initial=0.0)
        return np.round(nearest, 12) + 0.0, bool(miss <= 1e-9 * scale)

    @property
    def _spanning(self) -> FloatArray:
        return np.stack([self.right.reshape(-1), self.up.reshape(-1)])


@dataclass(frozen=True, slots=True, eq=False)
class FanPicture:
    """A slice of the fan with prices, colours and a path on it."""

    xs: FloatArray  # [nx]
    ys: FloatArray  # [ny]
    labels: IntArray  # [ny, nx]  which face
    colours: IntArray  # [faces]  index into COLOURS; neighbours differ while the colours last
    prices: FloatArray  # [ny, nx]  of keeping the plan of the origin
    path: FloatArray  # [n, 2]
    in_plane: BoolArray  # [n]  false: drawn where the plane comes nearest

    @property
    def n_faces(self) -> int:
        return len(self.colours)

    def walls(self) -> FloatArray:
        """[n, 2, 2]: segments from (x, y) to (x, y) between grid points of different faces."""
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
    xs: Any,
    ys: Any,
    path: Sequence[FloatArray] = (),
    *,
    ties: TieRule = DEFAULT_TIES,
) -> FanPicture:
    """Label, price and colour the grid, and place the losses of `path` on it."""
    fan = fan_slice(mdp, plane.origin, plane.right, plane.up, xs, ys, ties=ties)
    columns, lines = np.asarray(xs, dtype=np.float64), np.asarray(ys, dtype=np.float64)
    placed = [plane.coordinates(loss) for loss in path]
    return FanPicture(
        xs=columns,
        ys=lines,
        labels=fan.labels,
        colours=_map_colours(fan.labels, len(fan.faces)),
        prices=_prices(mdp, plane, columns, lines, ties),
        path=np.array([at for at, _ in placed]).reshape(len(placed), 2),
        in_plane=np.array([exact for _, exact in placed], dtype=bool),
    )


def _prices(mdp: MDP, plane: Plane, xs: FloatArray, ys: FloatArray, ties: TieRule) -> FloatArray:
    """The price of each grid point against the origin: a stream that returns there before every point."""

    def points() -> Iterator[FloatArray]:
        for y in ys:
            for x in xs:
                yield plane.origin + x * plane.right + y * plane.up

    there_and_back = chain.from_iterable(zip(repeat(plane.origin), points(), strict=False))
    decided = replace(ties, band=1.0)  # nobody asks how sure the price of a grid point is
    motion = price_stream(mdp, IterableLosses(there_and_back), ties=decided)
    return motion.prices[1::2].reshape(len(ys), len(xs))


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
