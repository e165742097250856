"""The sticky selectors, by relative entropy and by Euclidean distance, and the nearest point of a face.

On the face F, with a prediction m of the coming loss and the last choice z, they play

    argmin_{u ∈ F}  ⟨u, m⟩ + λ D(u, z)   or   argmin_{u ∈ F}  ⟨u, m⟩ + λ/2 ‖u − z‖².

The two disagree. The first is a soft backup (docs/details/learners.md), the second the point of F nearest to
z − m/λ.

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
    >>> from normalfan.problem.mdp import MDP
    >>> face = whole_polytope(MDP(np.array([[0, 1], [1, 1]]), initial=0, horizon=2))
    >>> nearest_point(face, np.full((2, 2, 2), 0.5))[1].round(6)
    array([[0.25, 0.25],
           [0.25, 0.25]])
"""

from __future__ import annotations

import numpy as np

from normalfan.errors import InputError, check_number
from normalfan.geometry.bellman import as_deterministic_policy, occupancy, restricted_backup
from normalfan.geometry.face import Face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.learner import AnyModel, seen_everywhere
from normalfan.learners.mirror import project_onto_simplex
from normalfan.learners.selectors import Predictive, policy_from_weights
from normalfan.problem.arrays import FloatArray, first_index

GAP = 1e-12
"""The duality gap at which a point counts as nearest, relative to max(1, ‖u − y‖)."""

MOST_STEPS = 10_000
"""How many vertices are tried before the search ends with an error."""


MIXING = 0.01
"""The paper names none; one in a hundred keeps every kept action within λ log(100 |kept|) of reach."""


class StickyEntropy(Predictive):
    """The best point of the face under a prediction plus λ times the relative entropy from the last choice.

    With a prediction m and the last choice z: the u of least ⟨u, m⟩ + λ D(u, z), with D(u, z) =
    Σ_{h,s} u_h(s) KL(π_u ‖ π_z)(h,s), as docs/details/learners.md proves. D is infinite where π_z never takes
    an action of u, so the last play is mixed: π_z = (1 − mixing) · π_played + mixing · (uniform on kept).

    Parameters
    ----------
    model : LossModel, callable or None
        Predicts the coming loss, as in `FromHistory` if a function; None is the last loss.
    weight, mixing : float
        λ > 0, how strongly the last choice pulls, and the uniform policy's share in it, in (0, 1].
    ties : TieRule

    Examples
    --------
    >>> import normalfan as nf
    >>> face = nf.optimal_face(nf.MDP([[0, 0, 0]], initial=0, horizon=1), [[[0.0, 0.0, 1.0]]])
    >>> selector = StickyEntropy(None, weight=1.0, mixing=0.2)
    >>> selector.select(face, previous=np.array([[[0.0, 0.5, 0.5]]])).round(3)
    array([[[0.167, 0.833, 0.   ]]])
    """

    def __init__(
        self, model: AnyModel, weight: float, *, mixing: float = MIXING, ties: TieRule = DEFAULT_TIES
    ) -> None:
        if not 0.0 < mixing <= 1.0:
            raise InputError(
                f"mixing is {mixing}, but must lie in (0, 1]: without any, a reference on the boundary "
                f"is infinitely far from every action it does not take; {MIXING} is the default."
            )
        super().__init__(model, ties=ties)
        self.weight = check_weight(weight)
        self.mixing = mixing

    def reference(self, face: Face, previous: FloatArray) -> FloatArray:
        """π_z [H, S, A]: the last policy, mixed with the uniform one over the kept actions."""
        kept = face.mask / np.maximum(face.mask.sum(axis=2, keepdims=True), 1)
        share = self.mixing * face.reached[:, :, None]
        mixed: FloatArray = (1.0 - share) * previous + self.mixing * kept
        return mixed

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        costs = seen_everywhere(self, face.mdp, self._costs(face))
        _, policy = soft_backup(face, costs, self.reference(face, previous), self.weight)
        return policy


class StickyEuclidean(Predictive):
    """The best point of the face under a prediction plus λ/2 times the squared distance from the last choice.

    Parameters
    ----------
    model : LossModel, callable or None
        Predicts the coming loss: a model, a function as in `FromHistory`, or None for the last loss.
    weight : float
        λ, how strongly the last choice pulls.
    ties : TieRule
        Which actions count as equally good under the prediction.

    Raises
    ------
    InputError
        If the weight is not positive and finite, or the model is of another type.

    Examples
    --------
    >>> import numpy as np
    >>> import normalfan as nf
    >>> face = nf.optimal_face(nf.MDP([[0, 0, 0]], initial=0, horizon=1), [[[0.0, 0.0, 1.0]]])
    >>> selector = StickyEuclidean(None, weight=1.0)
    >>> selector.select(face, previous=np.array([[[0.0, 0.5, 0.5]]]))
    array([[[0.25, 0.75, 0.  ]]])
    """

    def __init__(self, model: AnyModel, weight: float, *, ties: TieRule = DEFAULT_TIES) -> None:
        super().__init__(model, ties=ties)
        self.weight = check_weight(weight)

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        costs = seen_everywhere(self, face.mdp, self._costs(face))
        visits = nearest_point(face, occupancy(face.mdp, previous) - costs / self.weight)
        return policy_from_weights(face, visits)


def check_weight(weight: float) -> float:
    return check_number("weight", weight, "for no pull at all use Predictive", positive=True)


def soft_backup(
    face: Face, cost: FloatArray, reference: FloatArray, weight: float
) -> tuple[float, FloatArray]:
    """The least ⟨u, cost⟩ + weight · D(u, reference) over a face, and the policy [H, S, A] attaining it."""
    mdp, mask = face.mdp, face.mask
    kept = mask & (reference > 0.0)
    stranded = face.reached & ~kept.any(axis=2)
    if stranded.any():
        h, s = first_index(stranded)
        raise InputError(
            f"reference[{h}, {s}] gives no probability to any action that the face keeps there, so its "
            f"divergence is infinite: mix it with a little of the uniform policy."
        )
    with np.errstate(divide="ignore"):  # log 0 = −∞ is what an action never taken should have
        log_reference = np.log(np.where(kept, reference, 0.0))
    policy = np.full(mask.shape, 1.0 / mdp.n_actions)
    ahead = np.zeros(mdp.n_states)
    for h in range(mdp.horizon - 1, -1, -1):
        here = face.reached[h]
        scores = (log_reference[h] - (cost[h] + mdp.transitions.expect(h, ahead)) / weight)[here]
        top = scores.max(axis=1, keepdims=True)
        weights = np.exp(scores - top)
        total = weights.sum(axis=1, keepdims=True)
        policy[h, here] = weights / total
        ahead = np.zeros(mdp.n_states)
        ahead[here] = -weight * (top + np.log(total))[:, 0]
    return float(mdp.initial @ ahead), policy


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
