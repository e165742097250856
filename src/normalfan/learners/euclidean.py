"""Projected gradient descent on a simplex, and the projection.

The point of the simplex nearest to y is max(y − θ, 0) for the one θ that makes it sum to 1, and sorting finds
θ: with y sorted downwards, θ = (y_1 + … + y_k − 1) / k for the largest k with y_k > θ.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.learners.options import (
    DEFAULT_ETA,
    Described,
    StepSize,
    check_one_state,
    check_step_size,
    step_size,
)
from normalfan.problem.arrays import FloatArray, check_finite, read_numbers, read_only
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


class EuclideanMirrorDescent(Described):
    """Projected gradient descent over the distributions on the actions of one state.

    ::

        x_{t+1} = argmin over x in the simplex of  η_t ⟨x, ℓ_t⟩ + ½ ‖x − x_t‖²  =  Proj(x_t − η_t ℓ_t)

    It reaches the boundary of the simplex and leaves it again at once, so it needs no floor.

    Parameters
    ----------
    mdp : MDP
        A problem of one step and one state.
    eta : float or callable
        The step size, or a function that gives the step size of a round.

    Raises
    ------
    InputError
        If the problem has more steps or states, or the step size is not positive and finite.

    Examples
    --------
    >>> import normalfan as nf
    >>> learner = nf.learners.EuclideanMirrorDescent(nf.MDP([[0, 0]], initial=0, horizon=1), eta=0.5)
    >>> learner.observe(0, [[[0.0, 0.5]]])
    >>> learner.act(1)
    array([[[0.625, 0.375]]])
    """

    def __init__(self, mdp: MDP, eta: StepSize = DEFAULT_ETA) -> None:
        self.mdp = check_one_state("EuclideanMirrorDescent", mdp)
        self.eta = check_step_size(eta)
        self._play = read_only(np.full(mdp.shape, 1 / mdp.n_actions))

    def act(self, round: int) -> FloatArray:
        return self._play

    def observe(self, round: int, loss: npt.ArrayLike) -> None:
        moved = self._play - step_size(self.eta, round) * as_loss(self.mdp, loss)
        self._play = read_only(project_onto_simplex(moved.ravel()).reshape(self.mdp.shape))


def project_onto_simplex(point: npt.ArrayLike) -> FloatArray:
    """The distribution nearest to a point in Euclidean distance, exactly.

    Parameters
    ----------
    point : array_like [A]
        Any numbers, at least one.

    Returns
    -------
    array [A]
        A distribution.

    Raises
    ------
    InputError
        If the point has no entry or more than one axis, or an entry is not finite.

    Examples
    --------
    >>> import normalfan as nf
    >>> nf.learners.project_onto_simplex([0.75, 0.75, -2.0])
    array([0.5, 0.5, 0. ])
    """
    numbers = read_numbers("point", point)
    if numbers.ndim != 1 or not numbers.size:
        raise InputError(
            f"point has shape {list(numbers.shape)}, but must be a vector with at least one entry: "
            f"project one distribution at a time."
        )
    check_finite("point", numbers)
    # Measured from its largest entry, what can be kept lies within 1 of zero: no digits are lost.
    y = numbers.astype(np.float64) - numbers.max()
    descending = np.sort(y)[::-1]
    thresholds = (np.cumsum(descending) - 1.0) / np.arange(1, y.size + 1)
    kept = np.flatnonzero(descending > thresholds)[-1]
    return np.asarray(np.maximum(y - thresholds[kept], 0.0))
