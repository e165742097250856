"""A plane of losses x·d₁ + y·d₂, and the shadow that the polytope throws on it.

On the plane ⟨q, x·d₁ + y·d₂⟩ = ⟨(⟨q,d₁⟩, ⟨q,d₂⟩), (x, y)⟩: only the shadow of q counts, a point of the plane.
The shadow of the polytope is a polygon, and the fan of the polygon is the fan of the polytope, cut by the
plane. A corner of the polygon is optimal between the inner normals of its two edges.

    >>> from normalfan.problem.mdp import MDP
    >>> arms = MDP([[0, 0, 0]], initial=0, horizon=1)
    >>> plane = shadow(arms, np.array([[[[0, 1, 0]]], [[[0, 0, 1]]]]))
    >>> plane.corners.tolist(), plane.rays.tolist()
    ([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalfan.geometry.face import whole_polytope
from normalfan.problem.arrays import FloatArray, IntArray
from normalfan.problem.mdp import MDP
from normalfan_paper.environments.constructions import layered_tree_mdp

HORIZON = 3
ROUNDING = (
    1e-12  # of an area, relative to the square of the polygon's size: below it three points lie on a line
)


class Shadow(NamedTuple):
    """The polygon, anticlockwise from its lowest corner, and its fan."""

    along: FloatArray  # [2, H, S, A] the directions d₁ and d₂
    corners: FloatArray  # [n, 2]
    rays: FloatArray  # [n, 2] the loss at which corner i and the one before tie: where the cone of i begins
    inside: FloatArray  # [m, 2] shadows of vertices that are optimal nowhere on the plane
    actions: list[IntArray]  # [n] of [H], what a corner's vertex does: the first action taken on each step


def example() -> tuple[MDP, Shadow]:
    """The plane that the figure and the page show: a binary tree of three layers, eight paths."""
    tree = layered_tree_mdp(HORIZON)
    along = np.random.default_rng(34).integers(-3, 4, size=(2, *tree.shape)).astype(float)
    return tree, shadow(tree, along)


def shadow(mdp: MDP, along: FloatArray) -> Shadow:
    """The shadow of a problem's polytope; all its vertices are listed."""
    directions = np.asarray(along, dtype=np.float64)
    vertices = list(whole_polytope(mdp).vertices())
    points = np.array([[float((v * d).sum()) for d in directions] for v in vertices])
    order = _hull(points)
    corners = points[order]
    edges = corners - np.roll(corners, 1, axis=0)
    rays = np.stack([-edges[:, 1], edges[:, 0]], axis=1) + 0.0  # no −0
    others = np.setdiff1d(np.arange(len(points)), order)
    actions = [vertices[i].sum(axis=1).argmax(axis=1) for i in order]
    return Shadow(directions, corners, rays, points[others], actions)


def _hull(points: FloatArray) -> list[int]:
    """The corners of the convex hull, anticlockwise; points on an edge are none (Andrew's chain)."""
    order = sorted(range(len(points)), key=lambda i: (points[i, 1], points[i, 0]))
    straight = ROUNDING * float(np.ptp(points, axis=0).max()) ** 2

    def half(places: list[int]) -> list[int]:
        chain: list[int] = []
        for i in places:
            while len(chain) > 1 and _turn(points[chain[-2]], points[chain[-1]], points[i]) <= straight:
                chain.pop()
            if not chain or np.abs(points[chain[-1]] - points[i]).max() ** 2 > straight:
                chain.append(i)
        return chain[:-1]

    return half(order) + half(order[::-1])


def _turn(a: FloatArray, b: FloatArray, c: FloatArray) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
