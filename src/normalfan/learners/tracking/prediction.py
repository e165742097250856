"""Selectors that minimise a loss over the face: the one they predict, or the one that is coming.

On a face F, with a prediction m of the coming loss ℓ,

    x ∈ argmin_{u ∈ F} ⟨u, m⟩        loses at most        diam(F) · ‖m − ℓ‖_*

against the best point of F (Proposition "Predictive selection"). The minimum is one backup restricted
to the face's mask. It runs over the *advantages* of m rather than m itself: on occupancies the two
differ by a constant, and an advantage that the tie rule counts as none is none, so that rounding never
breaks a tie. Ties go to the lowest action.

With m = ℓ_{t−1}, the loss whose optimal face F is, every point of F is as good as any other: predicting
by the last loss *is* the lexicographic tie-break. A prediction must know more than the last loss to be
of use here, for instance an average over many.

    >>> from normalfan.geometry.face import optimal_face
    >>> from normalfan.learners.models import ExponentialAverage
    >>> from normalfan.problem.mdp import MDP
    >>> from normalfan.learners.tracking.selection import uniform_policy
    >>> arms = MDP(np.array([[0, 0]]), initial=0, horizon=1)
    >>> selector = Predictive(ExponentialAverage(0.5))
    >>> for loss in (np.array([[[3.0, 0.0]]]), np.array([[[1.0, 1.0]]])):    # the second is a tie,
    ...     selector.observe(loss)
    >>> selector.select(optimal_face(arms, loss), uniform_policy(arms))      # the first decides it
    array([[[0., 1.]]])
"""

from __future__ import annotations

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.bellman import as_deterministic_policy, optimal_backup, restricted_backup
from normalfan.geometry.face import Face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.models import AnyModel, LossModel, own_model, predicted_loss
from normalfan.pricing.crossing import price
from normalfan.problem.arrays import FloatArray


class Oracle:
    """The best point of the face under the coming loss: no selection error, by foresight."""

    def __init__(self, *, ties: TieRule = DEFAULT_TIES) -> None:
        self.ties = ties
        self._coming: FloatArray | None = None

    def foresee(self, loss: FloatArray) -> None:
        self._coming = loss

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        if self._coming is None:
            raise InputError(
                "the oracle was not shown the coming loss, but chooses by nothing else: "
                "call foresee(loss) before each choice, as run does."
            )
        return price(face, self._coming, ties=self.ties).policy

    def observe(self, loss: FloatArray) -> None:
        self._coming = None


class Predictive:
    """The best point of the face under a model's prediction; without one, the lowest kept actions."""

    def __init__(self, model: AnyModel, *, ties: TieRule = DEFAULT_TIES) -> None:
        self.model = own_model(model)
        self.ties = ties

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        cost = predicted_advantages(face, self.model, self.ties)
        _, actions = restricted_backup(face.mdp, face.mask, cost)
        return as_deterministic_policy(face.mdp, actions)

    def observe(self, loss: FloatArray) -> None:
        self.model.update(loss)


def predicted_advantages(face: Face, model: LossModel, ties: TieRule) -> FloatArray:
    """The settled advantages [H, S, A] of a prediction, all 0 without one.

    As a cost they order occupancies exactly as the prediction does.
    """
    prediction = predicted_loss(face.mdp, model)
    if prediction is None:
        return np.zeros(face.mask.shape)
    return optimal_backup(face.mdp, prediction).settled(face.mdp, ties)
