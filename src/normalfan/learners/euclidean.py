"""Euclidean mirror descent on one state: a gradient step, then the nearest distribution.

    x_{t+1} = argmin over x in the simplex of  η_t ⟨x, ℓ_t⟩ + ½ ‖x − x_t‖²  =  Proj(x_t − η_t ℓ_t)

The projection is exact. It is max(y − θ, 0) for the one θ that makes it sum to 1, and sorting finds θ: with
y sorted downwards, θ = (y_1 + … + y_k − 1) / k for the largest k with y_k > θ. Unlike exponential weights
it reaches the boundary of the simplex and leaves it again without a memory, so it has no use for a floor.

    >>> project_onto_simplex(np.array([0.75, 0.75, -2.0]))
    array([0.5, 0.5, 0. ])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from normalfan.learners.options import (
    DEFAULT_ETA,
    StepSize,
    check_one_state,
    check_step_size,
    step_size,
)
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


class EuclideanMirrorDescent:
    """Projected gradient descent over the distributions on the actions of one state."""

    def __init__(self, mdp: MDP, eta: StepSize = DEFAULT_ETA) -> None:
        self.mdp = check_one_state("EuclideanMirrorDescent", mdp)
        self.eta = check_step_size(eta)
        self._play = read_only(np.full(mdp.shape, 1 / mdp.n_actions))

    def act(self, round: int) -> FloatArray:
        return self._play

    def observe(self, round: int, loss: Any) -> None:
        moved = self._play - step_size(self.eta, round) * as_loss(self.mdp, loss)
        self._play = read_only(project_onto_simplex(moved.ravel()).reshape(self.mdp.shape))


def project_onto_simplex(point: FloatArray) -> FloatArray:
    """The distribution [A] nearest to `point` [A] in Euclidean distance."""
    # Measured from its largest entry, what can be kept lies within 1 of zero: no digits are lost.
    y = point - point.max()
    descending = np.sort(y)[::-1]
    thresholds = (np.cumsum(descending) - 1.0) / np.arange(1, y.size + 1)
    kept = np.flatnonzero(descending > thresholds)[-1]
    return np.asarray(np.maximum(y - thresholds[kept], 0.0))
