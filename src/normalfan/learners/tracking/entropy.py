"""The soft backup: a linear loss plus conditional relative entropy, minimised over a face.

For policies u and a reference z put D(u, z) = Σ_h Σ_s u_h(s) KL(π_u ‖ π_z)(h,s), the Bregman divergence
of the negative conditional entropy on occupancies. The minimum over a face of

    ⟨u, cost⟩ + λ D(u, z)

is ρ·W_1, with W_{H+1} = 0 and backward, over the actions a that the face keeps at (h,s),

    X_h(s,a) = cost_h(s,a) + E W_{h+1},
    W_h(s)   = −λ log Σ_a π_z(a|s) exp(−X_h(s,a)/λ),          π(a|s) ∝ π_z(a|s) exp(−X_h(s,a)/λ).

*Proof.* Backward, given W_{h+1}, the part of the objective that π(·|s) decides is u_h(s) times
Σ_a π(a) [X(a) + λ log(π(a)/π_z(a))], and Gibbs' inequality gives its minimum and minimiser. ∎

As λ → 0 it becomes the hard restricted backup. An action with π_z(a|s) = 0 is never taken; a state
where the reference takes no kept action at all has no finite D, and is refused.

    >>> from normalfan.geometry.face import whole_polytope
    >>> from normalfan.problem.mdp import MDP
    >>> face = whole_polytope(MDP(np.array([[0, 0]]), initial=0, horizon=1))
    >>> soft = soft_backup(face, np.array([[[0.0, np.log(3)]]]), np.array([[[0.5, 0.5]]]), weight=1.0)
    >>> soft.policy
    array([[[0.75, 0.25]]])
    >>> bool(np.isclose(soft.value, -np.log(0.5 + 0.5 / 3)))
    True
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.face import Face
from normalfan.problem.arrays import FloatArray, first_index


@dataclass(frozen=True, slots=True, eq=False)
class SoftBackup:
    """The least cost plus weighted divergence over a face, and the policy that attains it."""

    value: float
    policy: FloatArray  # [H, S, A], uniform where the face never is


def soft_backup(face: Face, cost: FloatArray, reference: FloatArray, weight: float) -> SoftBackup:
    """Minimise ⟨u, cost⟩ + weight · D(u, reference) over the face; `reference` is a policy [H, S, A]."""
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
    return SoftBackup(float(mdp.initial @ ahead), policy)
