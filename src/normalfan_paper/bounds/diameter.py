"""How large a face is: the greatest distance between two of its occupancy measures.

It bounds what a selector on the face loses by a wrong prediction, ε ≤ diam · δ, in dual norms. It is exact in
L∞ (the widest coordinate), on faces without chance, and on small faces, whose vertices are compared pair by
pair. Otherwise it is an upper bound, layer by layer, from ‖q_h − q'_h‖₁ ≤ 2(1 − Pr(no choice up to step h)),
the box of the coordinates' ranges, and ‖x‖₂² ≤ ‖x‖₁ ‖x‖∞. Proofs: docs/details/diameter.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from normalfan.errors import check_choice
from normalfan.geometry.face import Face
from normalfan.geometry.reach import is_unbranched
from normalfan.problem.arrays import FloatArray, IntArray

Norm: TypeAlias = Literal["l1", "l2", "linf"]

METRICS = {"l1": "cityblock", "l2": "euclidean", "linf": "chebyshev"}
"""The names of the norms in scipy.spatial."""

TARGETS_AT_ONCE = 256
"""How many states share one backup: enough for a matrix product, few enough to fit in memory."""


@dataclass(frozen=True, slots=True)
class Diameter:
    """The largest distance between two points of a face, or a bound on it; see `diameter`.

    >>> import normalfan as nf
    >>> diameter(nf.whole_polytope(nf.MDP([[0, 0]], initial=0, horizon=3)))
    Diameter(value=6.0, kind='exact')
    """

    value: float  # the distance
    kind: Literal["exact", "upper bound"]  # what `value` is


def diameter(face: Face, norm: Norm = "l1", *, enumerate_up_to: int = 256) -> Diameter:
    """The largest ‖u − v‖ over occupancy measures u and v of a face; of few policies all pairs are compared.

    >>> import normalfan as nf
    >>> diameter(nf.whole_polytope(nf.MDP([[0, 1, 1], [1, 1, 1]], initial=0, horizon=2)), "linf")
    Diameter(value=1.0, kind='exact')
    """
    check_choice("norm", norm, tuple(METRICS))
    if face.is_vertex:
        return Diameter(0.0, "exact")
    if is_unbranched(face):
        return Diameter(_between_paths(face, norm), "exact")
    if norm == "linf":
        return Diameter(float(_widths(face).max()), "exact")
    if face.n_policies <= enumerate_up_to:
        return Diameter(_between_vertices(face, norm, enumerate_up_to), "exact")
    return Diameter(_bound(face, norm), "upper bound")


def _between_paths(face: Face, norm: Norm) -> float:
    layers = int(np.count_nonzero(face.mask.sum(axis=(1, 2)) > 1))
    return {"l1": 2.0 * layers, "l2": math.sqrt(2.0 * layers), "linf": 1.0}[norm]


def _between_vertices(face: Face, norm: Norm, limit: int) -> float:
    from scipy.spatial.distance import pdist

    vertices = np.stack([visits[face.mask] for visits in face.vertices(limit)])
    return float(pdist(vertices, METRICS[norm]).max())


def _bound(face: Face, norm: Norm) -> float:
    widths = _widths(face)
    by_layer = np.minimum(2.0 * (1.0 - _agreement(face)), widths.sum(axis=(1, 2)))
    if norm == "l1":
        return float(by_layer.sum())
    squares = np.minimum(by_layer * widths.max(axis=(1, 2)), (widths**2).sum(axis=(1, 2)))
    return math.sqrt(squares.sum())


def _agreement(face: Face) -> FloatArray:
    """[H]: the probability that no state up to this step, itself included, had a choice."""
    forced = face.mask & (face.mask.sum(axis=2, keepdims=True) == 1)
    agreement = np.empty(face.mdp.horizon)
    arriving = face.mdp.initial
    for h in range(face.mdp.horizon):
        mass = arriving[:, None] * forced[h]
        agreement[h] = mass.sum()
        arriving = face.mdp.transitions.push(h, mass)
    return agreement


def _widths(face: Face) -> FloatArray:
    """[H, S, A]: max − min of each coordinate over the face."""
    least, most = np.zeros((2, *face.reached.shape))
    for h, states in enumerate(face.reached):
        targets = np.flatnonzero(states)
        for batch in np.split(targets, range(TARGETS_AT_ONCE, len(targets), TARGETS_AT_ONCE)):
            least[h, batch], most[h, batch] = _extreme_reach(face, h, batch)
    least[face.mask.sum(axis=2) > 1] = 0.0
    widths: FloatArray = (most - least)[:, :, None] * face.mask
    return widths


def _extreme_reach(face: Face, step: int, targets: IntArray) -> tuple[FloatArray, FloatArray]:
    """The least and the greatest probability of being in each target at `step`, [n] each."""
    least = np.zeros((face.mdp.n_states, len(targets)))
    least[targets, np.arange(len(targets))] = 1.0
    most = least
    for h in range(step - 1, -1, -1):
        kept = face.mask[h][:, :, None]
        # Where nothing is kept 1 and 0 stand in: no policy of the face ever gets there.
        least = face.mdp.transitions.expect(h, least).min(axis=1, where=kept, initial=1.0)
        most = face.mdp.transitions.expect(h, most).max(axis=1, where=kept, initial=0.0)
    return face.mdp.initial @ least, face.mdp.initial @ most
