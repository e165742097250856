"""Selectors that stay near their last choice.

On the face F, with a prediction m of the coming loss and the previous representative z, the Bregman
selector of the paper plays

    argmin_{u ∈ F}  ⟨u, m⟩ + λ D_ψ(u, z).

λ is the `weight`. Two geometries ψ are offered; they disagree, and neither is "the" sticky selector.

*Entropy.* ψ is the negative conditional entropy, D_ψ(u,z) = Σ_h Σ_s u_h(s) KL(π_u ‖ π_z)(h,s), and the
minimiser is one soft backup on the mask (see `entropy`). KL(· ‖ π_z) is infinite wherever u takes an
action that π_z never takes, and z is the play of the round before: usually a vertex, so on the boundary
almost everywhere. Left alone such a z freezes the choice on the faces that contain it, and has no
finite D at all to those that do not. Therefore z is first mixed: π_z = (1 − `mixing`) · π_played +
`mixing` · (uniform over the kept actions), at every state of the face. A kept action that was not
played then costs at most λ log(|kept| / mixing) per visit, finite but growing as the mixing shrinks,
and the minimiser depends on it. π_played is not renormalised to the mask: mass that it has elsewhere
counts against states where the face offers nothing it used to play.

*Euclidean.* ψ = ½‖·‖² on occupancies, which is finite everywhere and needs no mixing; the minimiser is
the point of F nearest to z − m/λ (see `nearest`).

With the last loss as prediction, m is constant on F and λ is irrelevant: the choice is pure memory.

    >>> from normalfan.geometry.face import optimal_face
    >>> from normalfan.learners.models import LastLoss
    >>> from normalfan.problem.mdp import MDP
    >>> arms = MDP(np.array([[0, 0, 0]]), initial=0, horizon=1)
    >>> face = optimal_face(arms, np.array([[[0.0, 0.0, 1.0]]]))
    >>> played = np.array([[[0.0, 0.5, 0.5]]])
    >>> StickyEuclidean(LastLoss(), weight=1.0).select(face, played)
    array([[[0.25, 0.75, 0.  ]]])
    >>> StickyEntropy(LastLoss(), weight=1.0, mixing=0.2).select(face, played)
    array([[[0.16666667, 0.83333333, 0.        ]]])
"""

from __future__ import annotations

import math

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.bellman import occupancy
from normalfan.geometry.face import Face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.models import AnyModel, own_model
from normalfan.learners.tracking.entropy import soft_backup
from normalfan.learners.tracking.nearest import nearest_point
from normalfan.learners.tracking.prediction import predicted_advantages
from normalfan.learners.tracking.selection import policy_from_weights
from normalfan.problem.arrays import FloatArray

MIXING = 0.01
"""How much of the uniform policy the entropic reference contains unless told otherwise.

The paper names none. One in a hundred keeps every kept action within λ log(100 |kept|) of reach."""


class StickyEntropy:
    """Near the last choice in conditional relative entropy."""

    def __init__(
        self, model: AnyModel, weight: float, *, mixing: float = MIXING, ties: TieRule = DEFAULT_TIES
    ) -> None:
        if not 0.0 < mixing <= 1.0:
            raise InputError(
                f"mixing is {mixing}, but must lie in (0, 1]: without any, a reference on the boundary "
                f"is infinitely far from every action it does not take; {MIXING} is the default."
            )
        self.model = own_model(model)
        self.weight = _read_weight(weight)
        self.mixing = mixing
        self.ties = ties

    def reference(self, face: Face, previous: FloatArray) -> FloatArray:
        """π_z [H, S, A]: the last policy with a little uniform over the kept actions mixed in."""
        kept = face.mask / np.maximum(face.mask.sum(axis=2, keepdims=True), 1)
        share = self.mixing * face.reached[:, :, None]
        mixed: FloatArray = (1.0 - share) * previous + self.mixing * kept
        return mixed

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        cost = predicted_advantages(face, self.model, self.ties)
        return soft_backup(face, cost, self.reference(face, previous), self.weight).policy

    def observe(self, loss: FloatArray) -> None:
        self.model.update(loss)


class StickyEuclidean:
    """Near the last choice in the Euclidean distance of occupancies."""

    def __init__(self, model: AnyModel, weight: float, *, ties: TieRule = DEFAULT_TIES) -> None:
        self.model = own_model(model)
        self.weight = _read_weight(weight)
        self.ties = ties

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        cost = predicted_advantages(face, self.model, self.ties)
        visits = nearest_point(face, occupancy(face.mdp, previous) - cost / self.weight)
        return policy_from_weights(face, visits)

    def observe(self, loss: FloatArray) -> None:
        self.model.update(loss)


def _read_weight(weight: float) -> float:
    if not (weight > 0.0 and math.isfinite(weight)):
        raise InputError(
            f"weight is {weight}, but must be positive and finite: for no pull at all use Predictive."
        )
    return weight
