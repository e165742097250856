"""The usual yardsticks of non-stationarity, to lay beside the price.

*Variation*, ‖ℓ_t − ℓ_{t−1}‖ in three norms: how far the loss moved.

*Comparator path length*, ‖v_t − v_{t−1}‖₁: how far the optimum moved. An optimal face has many points;
v is the lexicographically first vertex, so that a face that did not move contributes nothing.

*Causal path length*: the same motion, counted by how much of the horizon it redirects. Start the two
comparators together and let them go side by side until they first take different actions, at step h
say (steps from 0): everything from there on, H − h steps, may differ. On average

    Σ_h Pr(first disagreement at step h) · (H − h),

which on a deterministic tree is the H − h + 1 of the paper, whose layers count from 1. Policies that
agree wherever they go have length 0 even if they differ where they never are.

    >>> tree = MDP(np.array([[0, 1], [1, 1]]), initial=0, horizon=3)
    >>> stay = np.tile(np.array([1.0, 0.0]), (3, 2, 1))
    >>> leave_late = stay.copy(); leave_late[2] = [0.0, 1.0]
    >>> causal_distance(tree, stay, leave_late)
    1.0
"""

from __future__ import annotations

import numpy as np

from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP


def loss_distances(loss: FloatArray, previous: FloatArray) -> FloatArray:
    """‖loss − previous‖ in the norms l1, l2, linf: [3]."""
    moved = np.abs(loss - previous)
    # Not np.linalg.norm: waking the threads of BLAS for one dot product costs more than the round.
    return np.array([moved.sum(), np.sqrt((moved * moved).sum()), moved.max()])


def occupancy_distance(visits: FloatArray, others: FloatArray) -> float:
    """The L1 distance of two occupancies [H, S, A]."""
    return float(np.abs(visits - others).sum())


def causal_distance(mdp: MDP, policy: FloatArray, other: FloatArray) -> float:
    """The steps after the first disagreement of two policies [H, S, A], on average.

    Where policies are random their actions are coupled so as to agree as often as possible, which is
    with probability Σ_a min(π(a), π'(a)).
    """
    together = mdp.initial
    steps = 0.0
    for h in range(mdp.horizon):
        common = np.minimum(policy[h], other[h])
        parting = np.maximum(1.0 - common.sum(axis=1), 0.0)  # exactly 0 where certain policies agree
        steps += float(together @ parting) * (mdp.horizon - h)
        together = mdp.transitions.push(h, together[:, None] * common)
    return steps
