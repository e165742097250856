"""Euclidean projections, onto the simplex and onto a face, and the learner that steps by them.

Onto the simplex it is max(y − θ, 0) for the one θ that makes it sum to 1, and sorting finds θ: with y sorted
downwards, θ = (y_1 + … + y_k − 1) / k for the largest k with y_k > θ.

A face has exponentially many vertices, but the one furthest in a given direction is found by one restricted
backup. Wolfe's algorithm (*Finding the nearest point in a polytope*, 1976) needs no more. It stores a few
affinely independent vertices with positive weights, the *corral*, and their weighted mean u. Each step asks
for the vertex v that is least in the direction of the gradient g = u − y of the objective ½‖u − y‖². Since

    gap = ⟨g, u − v⟩ ≥ ½‖u − y‖² − ½‖u* − y‖² ≥ ½‖u − u*‖²,

a gap of zero, up to `GAP`, proves that u is nearest. If the gap is larger, v joins the corral, and u moves to
the point nearest to y in the corral's affine hull, dropping vertices whose weight would turn negative on the
way. The objective falls with every step and a corral never comes back, so the search is finite. In practice
it takes a few more steps than the answer has vertices: cheap while the answer mixes few policies, and some
seconds for a point deep inside a face of several hundred dimensions.

    >>> from normalfan.geometry.face import whole_polytope
    >>> face = whole_polytope(MDP(np.array([[0, 1], [1, 1]]), initial=0, horizon=2))
    >>> nearest_point(face, np.full((2, 2, 2), 0.5))[1].round(6)
    array([[0.25, 0.25],
           [0.25, 0.25]])
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.bellman import as_deterministic_policy, occupancy, restricted_backup
from normalfan.geometry.face import Face
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

GAP = 1e-12
"""The duality gap at which a point counts as nearest, relative to max(1, ‖u − y‖)."""

MOST_STEPS = 10_000
"""How many vertices are tried before the search ends with an error."""


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


def nearest_point(face: Face, target: FloatArray) -> FloatArray:
    """The occupancy [H, S, A] on the face that minimises ‖u − target‖₂; `target` is any [H, S, A]."""
    visits = np.zeros(face.mask.shape)
    if face.mdp.n_states == 1:
        for h, kept in enumerate(face.mask[:, 0]):
            visits[h, 0, kept] = project_onto_simplex(target[h, 0, kept])
    else:
        visits[face.mask] = _wolfe(face, target[face.mask])
    return visits


def _wolfe(face: Face, y: FloatArray) -> FloatArray:
    """The nearest point to y, both as vectors of the kept coordinates [n]."""
    corral = _least_vertex(face, -y)[None]  # [k, n]
    weights = np.ones(1)
    for _ in range(MOST_STEPS):
        u = weights @ corral
        gradient = u - y
        fresh = _least_vertex(face, gradient)
        gap = float(gradient @ (u - fresh))
        if gap <= GAP * max(1.0, float(np.linalg.norm(gradient))):
            return np.asarray(u)
        corral, weights = _recentre(np.vstack([corral, fresh]), np.append(weights, 0.0), y)
    raise ArithmeticError(
        f"the nearest point of the face was not found in {MOST_STEPS} steps (the duality gap is still "
        f"{gap:.3g}): the target may be too large for float64; use a larger weight."
    )


def _least_vertex(face: Face, direction: FloatArray) -> FloatArray:
    """A vertex of the face at which ⟨u, direction⟩ is least, [n]."""
    cost = np.zeros(face.mask.shape)
    cost[face.mask] = direction
    _, actions = restricted_backup(face.mdp, face.mask, cost)
    return occupancy(face.mdp, as_deterministic_policy(face.mdp, actions))[face.mask]


def _recentre(corral: FloatArray, weights: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Move the weights to the point nearest to y in the convex hull, dropping vertices in the way."""
    while True:
        wanted = _affine_weights(corral, y)
        if (wanted > 0.0).all():
            return corral, wanted
        blocked = wanted <= 0.0
        falls = weights[blocked] - wanted[blocked]
        # A vertex that has no weight and wants none blocks the way at once.
        ratios = np.divide(weights[blocked], falls, out=np.zeros(falls.shape), where=falls > 0.0)
        weights = weights + ratios.min() * (wanted - weights)
        weights[np.flatnonzero(blocked)[ratios.argmin()]] = 0.0
        held = weights > 0.0
        corral, weights = corral[held], weights[held] / weights[held].sum()


def _affine_weights(corral: FloatArray, y: FloatArray) -> FloatArray:
    """The weights, summing to one, of the point of the affine hull nearest to y."""
    base, spread = corral[0], corral[1:] - corral[0]
    others, *_ = np.linalg.lstsq(spread.T, y - base, rcond=None)
    return np.append(1.0 - others.sum(), others)
