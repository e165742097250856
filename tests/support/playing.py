"""Learners played one at a time: what batched simulations are held against."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

import normalfan as nf
from normalfan.learners.learner import Learner
from normalfan_paper.bounds.splitting import policy_backup


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


def entropic_step(logs: np.ndarray, costs: np.ndarray, floor: float = 0.0) -> np.ndarray:
    """The logs of π'(a) ∝ π(a) exp(−c(a)), mixed with the uniform policy: the compiled step in NumPy."""
    moved = log_softmax(logs - (costs - costs.min(axis=-1, keepdims=True)), axis=-1)
    return np.log((1 - logs.shape[-1] * floor) * np.exp(moved) + floor) if floor else moved
