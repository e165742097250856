"""What a policy pays, the regret of one play in two parts, the distance of two losses, in readable NumPy.

`normalfan.run` and the learners find the same in compiled code.
"""

from __future__ import annotations

import numpy as np

from normalfan.geometry.bellman import restricted_backup
from normalfan.geometry.face import Face
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP


def policy_backup(mdp: MDP, policy: FloatArray, loss: FloatArray) -> tuple[FloatArray, FloatArray]:
    """V^π [H+1, S] and Q^π [H, S, A], backward: Q_h = ℓ_h + E V_{h+1} and V_h(s) = Σ_a π_h(a|s) Q_h(s,a)."""
    values, q = np.zeros((mdp.horizon + 1, mdp.n_states)), np.empty(mdp.shape)
    for h in range(mdp.horizon - 1, -1, -1):
        q[h] = loss[h] + mdp.transitions.expect(h, values[h + 1])
        values[h] = (policy[h] * q[h]).sum(axis=1)
    return values, q


def split_regret(face: Face, advantages: FloatArray, visits: FloatArray) -> tuple[float, float]:
    """Γ and ε of an occupancy [H, S, A] under a loss with these advantages [H, S, A]."""
    mdp = face.mdp
    values, _ = restricted_backup(mdp, face.mask_under(advantages), advantages)
    selection = 0.0
    for h in range(mdp.horizon):
        excess = advantages[h] + mdp.transitions.expect(h, values[h + 1]) - values[h, :, None]
        selection += float((visits[h] * np.where(advantages[h] < np.inf, excess, 0.0)).sum())
    return float(mdp.initial @ values[0]), selection


def loss_distances(loss: FloatArray, previous: FloatArray) -> FloatArray:
    """‖loss − previous‖ in the norms l1, l2, linf: [3]; what is not allowed in either counts as unmoved."""
    allowed = (loss < np.inf) & (previous < np.inf)
    moved = np.abs(np.subtract(loss, previous, out=np.zeros_like(loss), where=allowed))
    # Not np.linalg.norm: waking the threads of BLAS for one dot product costs more than the round.
    return np.array([moved.sum(), np.sqrt((moved * moved).sum()), moved.max()])
