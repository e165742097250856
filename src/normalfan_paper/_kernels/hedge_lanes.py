"""Hedge advanced together: one run a lane, all of them in the same round.

A sweep over step sizes or seeds repeats the same arithmetic on the same losses. Here the runs are the lanes
(see ``lanes``), in blocks of eight, and every buffer has the run as its last, contiguous axis. What is kept
is what an arm has lost so far beyond the best arm, L(a), and its weight is exp(−η L(a)), never divided by
the sum of the weights: that is needed only where they are used, and an average Σ w x / Σ w takes one
exponential an action and no logarithm. The learners of ``normalfan.learners`` keep normalised logs; the two
differ by a constant that cancels. On shared losses L is kept once for all runs, since only η differs
between them.

Mirror descent (``mirror_lanes``) and the trust region (``trust_lanes``) are built in the same way.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.buffers import aligned_zeros, frozen
from normalfan._kernels.compiling import inlined, inner, kernel
from normalfan._kernels.lanes import LANES, broadcast, fma, minimum, zero_lanes
from normalfan._kernels.losses import read_rows
from normalfan._kernels.memory import item, load, store
from normalfan_paper._kernels.exponential import weight


@inner
def charge_arms(losses, start, behind):
    """Add a round's losses to what the arms are behind the best one by."""
    arms = len(behind)
    cheapest = np.inf
    for a in range(arms):
        cheapest = min(cheapest, losses[start + a])
    best = np.inf
    for a in range(arms):
        # Measured from the cheapest, large losses leave the sums their digits.
        behind[a] += losses[start + a] - cheapest
        best = min(best, behind[a])
    for a in range(arms):
        behind[a] -= best


@inlined
def pay_round(t, losses, arms, etas, behind, paid):
    """What every run pays in round t with the weights exp(−η·behind)."""
    zero = zero_lanes()
    runs = len(etas)
    for first in range(0, runs, LANES):
        eta = load(etas, first)
        weighed, mass = zero, zero
        for a in range(arms):
            w = weight(broadcast(-item(behind, a)) * eta)
            weighed = fma(w, broadcast(item(losses, t * arms + a)), weighed)
            mass = mass + w
        store(paid, t * runs + first, weighed / mass)


@kernel
def hedge_kernel(losses, arms, etas, behind, paid):
    """Runs that share their losses [T*K]; fills paid [T*runs]."""
    for t in range(len(paid) // len(etas)):
        pay_round(t, losses, arms, etas, behind, paid)
        charge_arms(losses, t * arms, behind)


@kernel
def hedge_streams_kernel(address, strides, streams, arms, etas, behind, scratch, paid):
    """Runs with losses of their own, [runs, T, K] by byte strides; the last block may be partial."""
    zero = zero_lanes()
    infinite = broadcast(np.inf)
    runs = len(etas)
    for first in range(0, runs, LANES):
        eta = zero - load(etas, first)
        for a in range(arms):
            store(behind, a * LANES, zero)
        for t in range(len(paid) // runs):
            place = address + first * strides[0] + t * strides[1]
            last = min(LANES, streams - first) - 1
            read_rows(place, strides[0], strides[2], last, arms, 8, 0.0, scratch)
            weighed, mass, cheapest, best = zero, zero, infinite, infinite
            for a in range(arms):
                loss = load(scratch, a * LANES)
                w = weight(load(behind, a * LANES) * eta)
                weighed = fma(w, loss, weighed)
                mass = mass + w
                cheapest = minimum(loss, cheapest)
            store(paid, t * runs + first, weighed / mass)
            for a in range(arms):
                moved = load(behind, a * LANES) + (load(scratch, a * LANES) - cheapest)
                best = minimum(moved, best)
                store(behind, a * LANES, moved)
            for a in range(arms):
                store(behind, a * LANES, load(behind, a * LANES) - best)


def run_hedge(losses: np.ndarray, etas: np.ndarray) -> np.ndarray:
    """What each run pays in each round, [runs, T], on losses [T, K] or [runs, T, K]."""
    rounds, arms = losses.shape[-2:]
    padded = whole_lanes(etas)
    paid = np.empty(rounds * len(padded))
    if losses.ndim == 2:
        hedge_kernel(frozen(losses, np.float64), arms, padded, np.zeros(arms), paid)
    else:
        hedge_streams_kernel(
            losses.ctypes.data, losses.strides, len(losses), arms, padded,
            aligned_zeros(arms * LANES), aligned_zeros(arms * LANES), paid,
        )  # fmt: skip
    return paid.reshape(rounds, -1)[:, : len(etas)].T


def whole_lanes(column: np.ndarray) -> np.ndarray:
    """Padded with its last entry to a whole number of lanes."""
    return np.pad(column, (0, -len(column) % LANES), mode="edge")
