"""What a policy costs under a loss, from every state and action on; `optimal_backup` is the optimal twin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from normalfan.geometry.bellman import as_policy
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


@dataclass(frozen=True, slots=True, eq=False)
class PolicyBackup:
    """The values of one policy under one loss: what `policy_backup` returns.

    Examples
    --------
    >>> arms = MDP([[0, 0]], initial=0, horizon=1)
    >>> policy_backup(arms, [[[0.5, 0.5]]], [[[1.0, 2.0]]]).value(arms)
    1.5
    """

    values: FloatArray  # [H+1, S] V^π, the expected loss from a step and state on; the last row is 0
    q: FloatArray  # [H, S, A] Q^π, the same after a given first action

    def value(self, mdp: MDP) -> float:
        """J(π) = ρ·V_1, the expected loss of the policy from the start."""
        return float(mdp.initial @ self.values[0])


def policy_backup(mdp: MDP, policy: npt.ArrayLike, loss: npt.ArrayLike) -> PolicyBackup:
    """Evaluate a policy under a loss: Q_h = ℓ_h + E V_{h+1} and V_h(s) = Σ_a π_h(a|s) Q_h(s,a), backward.

    Parameters
    ----------
    mdp : MDP
    policy, loss : array_like [H, S, A]

    Returns
    -------
    PolicyBackup

    Raises
    ------
    InputError
        If an array has the wrong shape, the loss is not finite, or the policy is no distribution.

    Examples
    --------
    >>> arms = MDP([[0, 0]], initial=0, horizon=2)
    >>> policy_backup(arms, [[[0.5, 0.5]]] * 2, [[[1.0, 2.0]]] * 2).q[0]
    array([[2.5, 3.5]])
    """
    probability, cost = as_policy(mdp, policy), as_loss(mdp, loss)
    values = np.zeros((mdp.horizon + 1, mdp.n_states))
    q = np.empty(mdp.shape)
    for h in range(mdp.horizon - 1, -1, -1):
        q[h] = cost[h] + mdp.transitions.expect(h, values[h + 1])
        values[h] = (probability[h] * q[h]).sum(axis=1)
    return PolicyBackup(read_only(values), read_only(q))
