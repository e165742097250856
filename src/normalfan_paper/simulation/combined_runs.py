"""A combination of learners from what its members paid: the same as playing `learners.Combined`, at no cost.

Members never hear of the combination, so their payments can be computed first, all at once, and weighed
afterwards.

    >>> members = np.array([[0.0, 1.0, 0.0, 1.0], [0.5, 0.5, 0.5, 0.5]])
    >>> run = simulate_combination(members)
    >>> run.paid.round(2), round(run.bound, 2)
    (array([0.25, 0.9 , 0.25, 0.86]), 0.87)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalfan.errors import InputError
from normalfan.learners.combined import ExpertWeights
from normalfan.problem.arrays import FloatArray

INTERVALS = 60
"""Into so many pieces a run is cut, and the promise is tried on every interval between two cuts."""


class CombinedRun(NamedTuple):
    """What a combination paid, and what it was promised to."""

    paid: FloatArray  # [T] by the losses that are judged
    weights: FloatArray  # [T, N] in each round
    bound: float  # by how much it exceeds any member at most, by the losses seen
    slack: float  # the least of bound − excess, over members and, with a share, intervals: never negative


def simulate_combination(
    seen: FloatArray, judged: FloatArray | None = None, *, share: float = 0.0
) -> CombinedRun:
    """Combine members that paid `seen` [N, T]; if the losses seen are noisy, `judged` [N, T] is paid."""
    truth = seen if judged is None else judged
    if truth.shape != seen.shape:
        raise InputError(
            f"judged has shape {list(truth.shape)} and seen {list(seen.shape)}, but must be alike: pass what "
            f"the same members paid in the same rounds."
        )
    rule = ExpertWeights(len(seen), share)
    weights = np.empty(seen.shape[::-1])
    for t, costs in enumerate(seen.T):
        weights[t] = rule.weights
        rule.update(costs)
    excess = np.einsum("tn,nt->t", weights, seen) - seen  # [N, T]
    return CombinedRun(
        np.einsum("tn,nt->t", weights, truth), weights, rule.bound(), _least_slack(rule, excess)
    )


def _least_slack(rule: ExpertWeights, excess: FloatArray) -> float:
    """Bound − excess at its least: over members for the whole run, or over intervals too."""
    total = np.concatenate([np.zeros((len(excess), 1)), np.cumsum(excess, axis=1)], axis=1)  # [N, T+1]
    rounds = excess.shape[1]
    if not rule.share:
        return float(rule.bound() - total[:, -1].max())
    cuts = np.unique(np.linspace(0, rounds, min(INTERVALS, rounds) + 1).astype(int))
    return min(
        float(rule.bound(begin, end) - (total[:, end] - total[:, begin]).max())
        for i, begin in enumerate(cuts)
        for end in cuts[i + 1 :]
    )
