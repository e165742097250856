"""What a policy costs under a loss, from every state and action on.

    Q^π_h = ℓ_h + expect V^π_{h+1},      V^π_h(s) = Σ_a π_h(a|s) Q^π_h(s,a),      V^π_{H+1} = 0

The optimal counterpart is `normalfan.geometry.bellman.optimal_backup`.

    >>> mdp = MDP(np.array([[0, 1], [1, 1]]), initial=0, horizon=2)
    >>> loss = np.array([[[1.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [3.0, 4.0]]])
    >>> policy_backup(mdp, np.full((2, 2, 2), 0.5), loss).q[0]
    array([[2. , 3.5],
           [3.5, 3.5]])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from normalfan.geometry.bellman import as_policy
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


@dataclass(frozen=True, slots=True)
class PolicyBackup:
    """The values of one policy under one loss."""

    values: FloatArray  # [H+1, S]
    q: FloatArray  # [H, S, A]

    def value(self, mdp: MDP) -> float:
        """J(π), the policy's expected loss."""
        return float(mdp.initial @ self.values[0])


def policy_backup(mdp: MDP, policy: Any, loss: Any) -> PolicyBackup:
    """V^π and Q^π of a policy [H, S, A] under a loss [H, S, A]."""
    probability, cost = as_policy(mdp, policy), as_loss(mdp, loss)
    values = np.zeros((mdp.horizon + 1, mdp.n_states))
    q = np.empty(mdp.shape)
    for h in range(mdp.horizon - 1, -1, -1):
        q[h] = cost[h] + mdp.transitions.expect(h, values[h + 1])
        values[h] = (probability[h] * q[h]).sum(axis=1)
    return PolicyBackup(read_only(values), read_only(q))
