"""Tiny problems with the list of all their deterministic policies: an oracle for what is said of vertices.

It knows nothing of advantages or faces: it lists every policy and adds up losses along its occupancies.
Probabilities are dyadic and losses integers, so that it is exact in floating point and a tie is a tie.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from normalfan.problem.mdp import MDP

SEEDS = range(300)


@dataclass(frozen=True)
class Problem:
    kernel: np.ndarray  # [H, S, A, S]
    start: np.ndarray  # [S]
    loss: np.ndarray  # [H, S, A]

    @property
    def mdp(self) -> MDP:
        return MDP(self.kernel, self.start)


def dyadic_rows(rng, count, n):
    """Distributions over n states in sixteenths: certain, even, with a rare slip, and any."""
    rows = np.zeros((count, n))
    for row in rows:
        some = rng.choice(n, size=rng.integers(1, n + 1), replace=False)
        parts = ([16], [8, 8], [15, 1], [1] * 16)[rng.integers(4)]
        np.add.at(row, rng.choice(some, size=len(parts)), np.array(parts) / 16)
    return rows


def random_problem(seed):
    rng = np.random.default_rng([seed, 20])
    H, S, A = (4, 3, 2) if seed % 4 == 0 else (int(n) for n in rng.integers(1, 4, size=3))
    if A ** (H * S) > 5000:
        A = 2
    kernel = dyadic_rows(rng, H * S * A, S).reshape(H, S, A, S)
    start = dyadic_rows(rng, 1, S)[0]
    loss = rng.integers(0, 3, size=(H, S, A)).astype(float)
    if seed % 3:  # the integers as advantages, most of them none: faces of every dimension
        loss *= rng.random((H, S, A)) < 0.4
        loss[np.arange(H)[:, None], np.arange(S), rng.integers(A, size=(H, S))] = 0.0
        values = np.zeros((H + 1, S))
        values[:H] = rng.integers(-2, 3, size=(H, S))
        loss += values[:H, :, None] - np.einsum("hsat,ht->hsa", kernel, values[1:])
    return Problem(kernel, start, loss)


def all_occupancies(problem):
    """Of every deterministic policy, [N, H, S, A]."""
    H, S, A, _ = problem.kernel.shape
    choices = np.indices((A,) * (H * S)).reshape(H, S, -1).transpose(2, 0, 1)
    visits = np.zeros((len(choices), H, S, A))
    arriving = np.broadcast_to(problem.start, (len(choices), S))
    for h in range(H):
        np.put_along_axis(visits[:, h], choices[:, h, :, None], arriving[:, :, None], axis=2)
        arriving = np.tensordot(visits[:, h], problem.kernel[h])
    return visits


@cache
def instance(seed):
    problem = random_problem(seed)
    return problem, all_occupancies(problem)


def totals(visits, loss):
    return np.tensordot(visits, loss, axes=3)


def suboptimality(visits, loss):
    objective = totals(visits, loss)
    return objective - objective.min()


def least_positive_reach(visits, loss):
    """r* by definition, [H, S], over the optimal policies."""
    reach = visits[suboptimality(visits, loss) == 0].sum(axis=3)
    return np.where(reach > 0, reach, np.inf).min(axis=0)
