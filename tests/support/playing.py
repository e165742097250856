"""Learners played one at a time: what batched simulations are held against."""

from __future__ import annotations

import numpy as np

import normalfan as nf
from normalfan.learners.learner import Learner
from normalfan.learners.mirror import policy_backup


def bandit(n_arms: int) -> nf.MDP:
    return nf.MDP(np.zeros((1, n_arms), dtype=int), 0, horizon=1)


def paid(learner: Learner, losses: np.ndarray) -> np.ndarray:
    """What one learner pays, by its own play."""
    values = []
    for t, loss in enumerate(losses):
        backup, _ = policy_backup(learner.mdp, learner.act(t), loss)
        values.append(learner.mdp.initial @ backup[0])
        learner.observe(t, loss)
    return np.array(values)


def plays(learner: Learner, losses: np.ndarray) -> np.ndarray:
    """[T+1, H, S, A]: every play, and the one after the last loss."""
    seen = []
    for t, loss in enumerate(losses):
        seen.append(learner.act(t))
        learner.observe(t, loss)
    return np.array([*seen, learner.act(len(losses))])
