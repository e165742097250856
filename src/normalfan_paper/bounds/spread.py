"""How much a divergence varies over a face: the R of Proposition "Bregman face selection".

    R = sup_{u,v ∈ F} |D(u,z) − D(v,z)| = max_F D(·,z) − min_F D(·,z).

D is convex in its first argument, so its maximum is at a vertex.

*Entropy*, exact. At a vertex π_u is certain and KL(π_u ‖ π_z) = −log π_z(a|s), so D is linear on
vertices and its maximum one restricted backup; the minimum is the soft backup without a cost. A kept
action that z never takes makes R infinite.

*Euclidean*, ½‖u − z‖². The minimum is at the nearest point. On vertices u² ≤ u, with equality where
chance plays no part; replacing it makes the maximum linear, one backup: exact without chance, else an
upper bound, and exact again where the vertices are few enough to list.

    >>> from normalfan.geometry.face import whole_polytope
    >>> from normalfan.problem.mdp import MDP
    >>> arms = whole_polytope(MDP(np.array([[0, 0]]), initial=0, horizon=1))
    >>> entropy_spread(arms, np.array([[[1.0, 0.0]]]))
    Spread(value=inf, kind='exact')
    >>> euclidean_spread(arms, np.array([[[1.0, 0.0]]]))
    Spread(value=1.0, kind='exact')
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from normalfan.geometry.bellman import restricted_backup
from normalfan.geometry.face import Face
from normalfan.geometry.reach import is_unbranched
from normalfan.problem.arrays import FloatArray
from normalfan_paper.learners.sticky import nearest_point, soft_backup


@dataclass(frozen=True, slots=True)
class Spread:
    """The range of a divergence over a face, or a bound on it."""

    value: float
    kind: Literal["exact", "upper bound"]


def entropy_spread(face: Face, reference: FloatArray) -> Spread:
    """R of the conditional relative entropy from a policy `reference` [H, S, A]."""
    if (reference[face.mask] <= 0.0).any():
        return Spread(math.inf, "exact")
    surprise = np.zeros(face.mask.shape)
    surprise[face.mask] = -np.log(reference[face.mask])
    largest = _greatest(face, surprise)
    least, _ = soft_backup(face, np.zeros(face.mask.shape), reference, 1.0)
    return Spread(max(largest - least, 0.0), "exact")


def euclidean_spread(face: Face, visits: FloatArray, *, enumerate_up_to: int = 256) -> Spread:
    """R of half the squared distance from an occupancy `visits` [H, S, A]."""
    least = _half_square(nearest_point(face, visits) - visits)
    unbranched = is_unbranched(face)
    if not unbranched and face.n_policies <= enumerate_up_to:
        largest = max(_half_square(vertex - visits) for vertex in face.vertices(enumerate_up_to))
        return Spread(max(largest - least, 0.0), "exact")
    at_zero = _half_square(visits)
    largest = at_zero + _greatest(face, 0.5 - visits)
    return Spread(max(largest - least, 0.0), "exact" if unbranched else "upper bound")


def _greatest(face: Face, gain: FloatArray) -> float:
    """The largest ⟨u, gain⟩ over the face."""
    values, _ = restricted_backup(face.mdp, face.mask, -gain)
    return -float(face.mdp.initial @ values[0])


def _half_square(difference: FloatArray) -> float:
    return 0.5 * float((difference**2).sum())
