"""The selector that stays near its last choice.

On the face F, with a prediction m of the coming loss and the last choice z, it plays the u ∈ F of least
⟨u, m⟩ + λ D(u, z), with D(u, z) = Σ_{h,s} u_h(s) KL(π_u ‖ π_z)(h,s): a soft backup over the kept actions.
D is infinite wherever u takes an action that π_z never takes, and the last play is usually a vertex, so it is
mixed first: π_z = (1 − mixing) · π_played + mixing · (uniform over the kept actions). The proof is in
docs/details/learners.md.
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

# The paper names none; one in a hundred keeps every kept action within λ log(100 |kept|) of reach.
MIXING = 0.01


class StickyEntropy(Predictive):
    """The best point of the face under a prediction plus λ times the relative entropy from the last choice.

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
        _, policy = soft_backup(face, self._costs(face), self.reference(face, previous), self.weight)
        return policy


def check_weight(weight: float) -> float:
    return check_positive("weight", weight, remedy="for no pull at all use Predictive")


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
