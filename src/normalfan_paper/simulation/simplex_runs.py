"""Optimistic Hedge and Euclidean mirror descent on one state, many step sizes at once.

    simulate_optimistic_hedge            plays x_t(a) ∝ exp(−η (Σ_{s<t} ℓ_s(a) + ℓ_{t−1}(a)))
    simulate_euclidean_mirror_descent    x_{t+1} = Proj(x_t − η ℓ_t), the nearest distribution

are the learners `OptimisticHedge` (with the last loss as its model, no floor) and `EuclideanMirrorDescent`,
constant step size; see `runs` for how runs are laid out.

    >>> arms = MDP([[0, 0]], initial=0, horizon=1)
    >>> losses = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]).reshape(3, 1, 1, 2)
    >>> simulate_optimistic_hedge(arms, losses, etas=[np.log(3)]).round(3)
    array([[0.5  , 0.1  , 0.964]])
    >>> simulate_euclidean_mirror_descent(arms, losses, etas=[0.5, 2.0])
    array([[0.5 , 0.25, 1.  ],
           [0.5 , 0.  , 1.  ]])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from normalfan.learners.learner import check_one_state
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import Losses
from normalfan.problem.mdp import MDP
from normalfan_paper.simulation.streams import checked_payments, in_parts, step_sizes, whole_stream


def simulate_optimistic_hedge(
    mdp: MDP, losses: Losses, etas: Sequence[float], *, threads: int = 1
) -> FloatArray:
    """What optimistic Hedge pays with each of the step sizes: [n_runs, T]. `losses`: [T, 1, 1, A]."""
    from normalfan_paper._kernels import simplex_lanes

    check_one_state("simulate_optimistic_hedge", mdp)
    return _sweep(simplex_lanes.run_optimistic_hedge, mdp, losses, etas, threads)


def simulate_euclidean_mirror_descent(
    mdp: MDP, losses: Losses, etas: Sequence[float], *, threads: int = 1
) -> FloatArray:
    """What Euclidean mirror descent pays with each of the step sizes: [n_runs, T]. `losses`: [T, 1, 1, A]."""
    from normalfan_paper._kernels import simplex_lanes

    check_one_state("simulate_euclidean_mirror_descent", mdp)
    return _sweep(simplex_lanes.run_euclidean_mirror_descent, mdp, losses, etas, threads)


def _sweep(
    kernel: Callable[[FloatArray, FloatArray], FloatArray],
    mdp: MDP,
    losses: Losses,
    etas: Sequence[float],
    threads: int,
) -> FloatArray:
    from normalfan._kernels.buffers import LANES

    steps = step_sizes(etas)
    rows = whole_stream(mdp, losses)[:, 0, 0]
    parts = in_parts(lambda part: kernel(rows, steps[part]), len(steps), LANES, threads)
    return checked_payments(np.concatenate(parts))
