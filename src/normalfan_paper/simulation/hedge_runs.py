"""Hedge, many runs at once: what each of a sweep would have paid, round by round.

    w_{t+1}(a) ∝ w_t(a) exp(−η ℓ_t(a)),      pays ⟨w_t, ℓ_t⟩

is the learner `Hedge` with a constant step size, and gives what that gives one at a time, up to rounding in
the last digits. Batched runs are here because a sweep runs the same learner tens of times on the same
losses.

Layout. A run is a lane of vector registers and the runs are the contiguous axis of everything that is kept:
eight of them take one pass over the losses, and no lane ever waits for another. The axis is padded to whole
lanes with copies of the last setting; what those pay is dropped. Threads share out the lanes. A lane holds
the same bits whatever runs beside it.

    >>> arms = MDP([[0, 0]], initial=0, horizon=1)
    >>> losses = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]).reshape(3, 1, 1, 2)
    >>> simulate_hedge(arms, losses, etas=[np.log(3), np.log(9)]).round(3)
    array([[0.5  , 0.25 , 0.9  ],
           [0.5  , 0.1  , 0.988]])
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from normalfan.learners.learner import check_one_state
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import Losses
from normalfan.problem.mdp import MDP
from normalfan_paper.simulation.streams import (
    checked_payments,
    in_parts,
    own_streams,
    step_sizes,
    whole_stream,
)


def simulate_hedge(mdp: MDP, losses: Losses, etas: Sequence[float], *, threads: int = 1) -> FloatArray:
    """What Hedge pays on one state with each of the step sizes: [n_runs, T].

    `losses`: [T, 1, 1, A] or a loss stream, shared by all runs; or an array [n_runs, T, 1, 1, A], for each
    run its own (seeds). To cross settings with long shared streams, call once a stream.
    """
    from normalfan._kernels.buffers import LANES
    from normalfan_paper._kernels import hedge_lanes

    check_one_state("simulate_hedge", mdp)
    steps = step_sizes(etas)
    own = own_streams(mdp, losses, len(steps))
    rows = whole_stream(mdp, losses)[:, 0, 0] if own is None else own[:, :, 0, 0]

    def run(part: slice) -> FloatArray:
        return hedge_lanes.run_hedge(rows if own is None else rows[part], steps[part])

    return checked_payments(np.concatenate(in_parts(run, len(steps), LANES, threads)))
