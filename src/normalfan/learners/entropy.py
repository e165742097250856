"""Exponential weights, kept in logs; all functions act on the last axis.

The entropic mirror step, argmin over p of ⟨p, c⟩ + KL(p ‖ π), is π'(a) ∝ π(a) exp(−c(a)): a subtraction once
π is stored as log π, exact even where π itself has underflowed to 0: what was unlearned can be learned again.

    >>> moved = entropic_step(uniform_logs((2,)), np.array([0.0, 5000.0]))
    >>> np.exp(entropic_step(moved, np.array([5000.0, 0.0]))), np.exp(with_floor(moved, 0.125))
    (array([0.5, 0.5]), array([0.875, 0.125]))
"""

from __future__ import annotations

import numpy as np

from normalfan.problem.arrays import FloatArray, read_only


def uniform_logs(shape: tuple[int, ...]) -> FloatArray:
    """Log-probabilities of the uniform distribution."""
    return np.full(shape, -np.log(shape[-1]))


def entropic_step(logs: FloatArray, costs: FloatArray) -> FloatArray:
    """The logs of π'(a) ∝ π(a) exp(−c(a))."""
    # Costs count up to a constant: measured from the least, large ones leave log π its digits.
    return normalised(logs - (costs - costs.min(axis=-1, keepdims=True)))


def normalised(logs: FloatArray) -> FloatArray:
    """The logs of weights, shifted so that the weights sum to 1."""
    # In two shifts: one by log Σ exp at once would leave large logs a sum that is off in its digits.
    topped = logs - logs.max(axis=-1, keepdims=True)
    return np.asarray(topped - np.log(np.exp(topped).sum(axis=-1, keepdims=True)))


def with_floor(logs: FloatArray, floor: float) -> FloatArray:
    """log((1 − A·f) π + f): the policy mixed with the uniform one (see `options`)."""
    if floor == 0:
        return logs
    return np.asarray(np.logaddexp(logs + np.log1p(-logs.shape[-1] * floor), np.log(floor)))


def probabilities(logs: FloatArray) -> FloatArray:
    """The policy itself, read-only."""
    return read_only(np.exp(logs))
