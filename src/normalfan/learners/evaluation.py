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

    Attributes
    ----------
    values : array [H+1, S]
        V^π, the expected loss from a step and state on; the last row is 0.
    q : array [H, S, A]
        Q^π, the same after a given first action.

    Examples
    --------
    >>> import numpy as np
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> nf.learners.policy_backup(arms, np.full((1, 1, 2), 0.5), [[[1.0, 2.0]]]).value(arms)
    1.5
    """

    values: FloatArray  # [H+1, S]
    q: FloatArray  # [H, S, A]

    def value(self, mdp: MDP) -> float:
        """J(π), the expected loss of the policy from the start.

        Parameters
        ----------
        mdp : MDP
            The problem; its initial distribution weighs the values of the first step.

        Returns
        -------
        float
            ρ·V_1.
        """
        return float(mdp.initial @ self.values[0])


def policy_backup(mdp: MDP, policy: npt.ArrayLike, loss: npt.ArrayLike) -> PolicyBackup:
    """Evaluate a policy under a loss at every step, state and action.

    Backward from V_{H+1} = 0::

        Q_h = ℓ_h + expect V_{h+1},      V_h(s) = Σ_a π_h(a|s) Q_h(s,a)

    Parameters
    ----------
    mdp : MDP
        The problem.
    policy : array_like [H, S, A]
        A distribution over actions at every step and state.
    loss : array_like [H, S, A]
        The loss.

    Returns
    -------
    PolicyBackup
        V and Q.

    Raises
    ------
    InputError
        If an array has the wrong shape, the loss is not finite, or the policy is no distribution.

    Examples
    --------
    >>> import numpy as np
    >>> import normalfan as nf
    >>> mdp = nf.MDP([[0, 1], [1, 1]], initial=0, horizon=2)
    >>> loss = np.array([[[1.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [3.0, 4.0]]])
    >>> nf.learners.policy_backup(mdp, np.full((2, 2, 2), 0.5), loss).q[0]
    array([[2. , 3.5],
           [3.5, 3.5]])
    """
    probability, cost = as_policy(mdp, policy), as_loss(mdp, loss)
    values = np.zeros((mdp.horizon + 1, mdp.n_states))
    q = np.empty(mdp.shape)
    for h in range(mdp.horizon - 1, -1, -1):
        q[h] = cost[h] + mdp.transitions.expect(h, values[h + 1])
        values[h] = (probability[h] * q[h]).sum(axis=1)
    return PolicyBackup(read_only(values), read_only(q))
