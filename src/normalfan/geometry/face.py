"""Faces of the occupancy polytope.

A loss exposes the face F(ℓ) of its optimal occupancy measures: those supported on optimal actions. A
face is determined by its support, so it is kept as a *canonical* mask [H, S, A]: (h,s,a) is kept when a
is optimal at (h,s) and s is reached from the start through kept actions. Then

    equal masks   ⇔  equal faces
    dim F         =  #kept (h,s,a) − #reached (h,s)
    F ∩ F' ≠ ∅    ⇔  from every start state some policy stays within both masks to the end
    ⟨u, ℓ⟩        is minimised over u ∈ F by one backup restricted to the mask.

    >>> mdp = MDP(np.array([[0, 0]]), initial=0, horizon=1)          # one state, two actions
    >>> tied = optimal_face(mdp, np.array([[[1.0, 1.0]]]))
    >>> tied.dimension, tied.is_vertex
    (1, False)
    >>> tied.meets(optimal_face(mdp, np.array([[[0.0, 1.0]]])))
    True
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.bellman import (
    as_deterministic_policy,
    occupancy,
    optimal_backup,
    restricted_backup,
)
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray, read_numbers, read_only
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


@dataclass(frozen=True, slots=True, eq=False)
class Face:
    """A face of a problem's occupancy polytope, as a canonical mask."""

    mdp: MDP
    mask: BoolArray  # [H, S, A], canonical

    @property
    def reached(self) -> BoolArray:
        """[H, S]: where the face's policies can be."""
        return np.asarray(self.mask.any(axis=2))

    @property
    def dimension(self) -> int:
        return int(np.count_nonzero(self.mask)) - int(np.count_nonzero(self.reached))

    @property
    def is_vertex(self) -> bool:
        return self.dimension == 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Face):
            return NotImplemented
        return self.mdp.fingerprint == other.mdp.fingerprint and np.array_equal(self.mask, other.mask)

    def __hash__(self) -> int:
        return hash((self.mdp.fingerprint, self.mask.tobytes()))

    def meets(self, other: Face) -> bool:
        """Whether the two faces share a point."""
        _check_same_problem(self.mdp, other.mdp)
        common = self.mask & other.mask
        viable = np.ones(self.mdp.n_states, dtype=bool)
        for h in range(self.mdp.horizon - 1, -1, -1):
            leaves = self.mdp.transitions.expect(h, (~viable).astype(float)) > 0
            viable = (common[h] & ~leaves).any(axis=1)
        return bool(viable[self.mdp.initial > 0].all())

    def contains(self, visits: Any, tolerance: float = 1e-9) -> bool:
        """Whether an occupancy measure [H, S, A] lies on the face, up to `tolerance` in each entry.

        Anything that is not an occupancy measure of the problem at all (negative, or its flow does not
        balance) is on no face.
        """
        q = read_numbers("occupancy", visits)
        if q.shape != self.mdp.shape:
            raise InputError(
                f"occupancy has shape {list(q.shape)}, but the problem needs {list(self.mdp.shape)}: "
                f"build it with occupancy(mdp, policy)."
            )
        if not (np.isfinite(q).all() and q.min() >= -tolerance):
            return False
        arriving = self.mdp.initial
        for h in range(self.mdp.horizon):
            if np.abs(q[h].sum(axis=1) - arriving).max() > tolerance:
                return False
            arriving = self.mdp.transitions.push(h, np.asarray(q[h], dtype=np.float64))
        return bool(q[~self.mask].max(initial=0.0) <= tolerance)

    def minimise(self, loss: Any) -> tuple[float, FloatArray]:
        """The least expected loss on the face and a deterministic policy [H, S, A] that attains it.

        At states where the face never is the policy is uniform: nothing depends on it there.
        """
        values, actions = restricted_backup(self.mdp, self.mask, as_loss(self.mdp, loss))
        return float(self.mdp.initial @ values[0]), as_deterministic_policy(self.mdp, actions)

    def vertices(self, limit: int = 10_000) -> Iterator[FloatArray]:
        """The face's vertices, as occupancy measures [H, S, A], each once.

        They are the deterministic policies on the mask, told apart by the states they reach. Their
        number is exponential: more than `limit` is refused before any is built.
        """
        policies = math.prod(self.mask.sum(axis=2)[self.reached].tolist())
        if policies > limit:
            raise InputError(
                f"the face has up to {Decimal(policies):.3g} vertices, but vertices() lists at most "
                f"{limit}: pass a larger limit, or use minimise and diameter, which list none."
            )
        return self._vertices_from(0, self.mdp.initial, np.full(self.reached.shape, -1))

    def _vertices_from(self, h: int, arriving: FloatArray, actions: IntArray) -> Iterator[FloatArray]:
        if h == self.mdp.horizon:
            yield occupancy(self.mdp, as_deterministic_policy(self.mdp, actions))
            return
        states = np.flatnonzero(arriving > 0)
        for choice in product(*(np.flatnonzero(self.mask[h, s]) for s in states)):
            extended = actions.copy()
            extended[h, states] = choice
            mass = np.zeros(self.mask.shape[1:])
            mass[states, choice] = 1.0
            yield from self._vertices_from(h + 1, self.mdp.transitions.push(h, mass), extended)


def optimal_face(mdp: MDP, loss: Any, *, ties: TieRule = DEFAULT_TIES) -> Face:
    """The face of all occupancy measures that are optimal under `loss`."""
    tied = optimal_backup(mdp, as_loss(mdp, loss)).tied(mdp, ties)
    return Face(mdp, canonical(mdp, tied))


def whole_polytope(mdp: MDP) -> Face:
    """The face of a constant loss: every occupancy measure."""
    return Face(mdp, canonical(mdp, np.ones(mdp.shape, dtype=bool)))


def canonical(mdp: MDP, mask: BoolArray) -> BoolArray:
    """The mask restricted to states that are reached from the start through the mask itself."""
    kept = np.zeros(mdp.shape, dtype=bool)
    reached = mdp.initial > 0
    for h in range(mdp.horizon):
        kept[h] = mask[h] & reached[:, None]
        reached = mdp.transitions.push(h, kept[h].astype(float)) > 0
    return read_only(kept)


def _check_same_problem(mine: MDP, other: MDP) -> None:
    if mine is not other and mine.fingerprint != other.fingerprint:
        raise InputError(
            "the two faces belong to different problems, but only faces of one polytope can meet: "
            "build both from the same MDP."
        )
