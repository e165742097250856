"""Selectors that stay near their last choice.

On the face F, with a prediction m of the coming loss and the previous choice z, the Bregman selector of the
paper plays

    argmin_{u ∈ F}  ⟨u, m⟩ + λ D(u, z).

Two divergences D are offered; they disagree, and neither is "the" sticky selector. With the last loss as
prediction, m is constant on F and λ is irrelevant: the choice is pure memory.

*Entropy.* D(u, z) = Σ_h Σ_s u_h(s) KL(π_u ‖ π_z)(h,s), the Bregman divergence of the negative conditional
entropy on occupancies. The minimum is ρ·W_1 of a soft backup: W_{H+1} = 0 and, over the kept actions a,

    X_h(s,a) = m_h(s,a) + E W_{h+1},
    W_h(s)   = −λ log Σ_a π_z(a|s) exp(−X_h(s,a)/λ),          π(a|s) ∝ π_z(a|s) exp(−X_h(s,a)/λ).

*Proof.* Given W_{h+1}, the part of the objective that π(·|s) decides is u_h(s) times
Σ_a π(a) [X(a) + λ log(π(a)/π_z(a))], and Gibbs' inequality gives its minimum and minimiser. ∎

KL(· ‖ π_z) is infinite wherever u takes an action that π_z never takes, and z, the last play, is usually a
vertex. Such a z would freeze the choice on the faces that contain it, and has no finite D to the others.
Therefore it is first mixed: π_z = (1 − mixing) · π_played + mixing · (uniform over the kept actions), at each
state of the face. A kept action that was not played then costs at most λ log(|kept| / mixing) per visit, and
the minimiser depends on the mixing. π_played is not renormalised to the mask: mass that it has elsewhere
counts against states where the face offers nothing it used to play.

*Euclidean.* D(u, z) = ½‖u − z‖² is finite everywhere and needs no mixing. The minimiser is the point of F
nearest to z − m/λ (see `euclidean`).
"""

from __future__ import annotations

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.face import Face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.models import AnyModel
from normalfan.learners.options import check_positive
from normalfan.learners.selectors import Predictive
from normalfan.problem.arrays import FloatArray, first_index

MIXING = 0.01
"""The default share of the uniform policy in the entropic reference. The paper names none.

One in a hundred keeps every kept action within λ log(100 |kept|) of reach."""


class StickyEntropy(Predictive):
    """The best point of the face under a prediction plus λ times the relative entropy from the last choice.

    Parameters
    ----------
    model : LossModel, callable or None
        Predicts the coming loss: a model, a function as in `FromHistory`, or None for the last loss.
    weight : float
        λ, how strongly the last choice pulls.
    mixing : float
        The share of the uniform policy on the face that is mixed into the last choice, in (0, 1].
    ties : TieRule
        Which actions count as equally good under the prediction.

    Raises
    ------
    InputError
        If the weight is not positive and finite, the mixing not in (0, 1], or the model of another type.

    Examples
    --------
    >>> import numpy as np
    >>> import normalfan as nf
    >>> face = nf.optimal_face(nf.MDP([[0, 0, 0]], initial=0, horizon=1), [[[0.0, 0.0, 1.0]]])
    >>> selector = nf.learners.StickyEntropy(None, weight=1.0, mixing=0.2)
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
        """Mix the uniform policy over the kept actions into the last choice.

        Parameters
        ----------
        face : Face
            The face to choose from.
        previous : array [H, S, A]
            The policy played in the last round.

        Returns
        -------
        array [H, S, A]
            π_z.
        """
        kept = face.mask / np.maximum(face.mask.sum(axis=2, keepdims=True), 1)
        share = self.mixing * face.reached[:, :, None]
        mixed: FloatArray = (1.0 - share) * previous + self.mixing * kept
        return mixed

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        _, policy = soft_backup(face, self._costs(face), self.reference(face, previous), self.weight)
        return policy


def check_weight(weight: float) -> float:
    return check_positive("weight", weight, remedy="for no pull at all use Predictive")


def soft_backup(
    face: Face, cost: FloatArray, reference: FloatArray, weight: float
) -> tuple[float, FloatArray]:
    """The least ⟨u, cost⟩ + weight · D(u, reference) over a face, and the policy [H, S, A] that attains it.

    As the weight goes to 0 it becomes `restricted_backup`. An action that the reference never takes is never
    taken. The policy is uniform where the face never is.
    """
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
