"""Two more learners on one state, advanced together: one step size a lane, on losses that all share.

    optimistic Hedge    exp(−η (L(a) + last(a))), L as in ``hedge_lanes``; the exponent without η is shared
    Euclidean           x ← max(y − θ, 0), y = x − η ℓ, θ the one number that makes it sum to 1

θ is found by Newton's method on f(θ) = Σ_a max(y(a) − θ, 0) − 1, convex, falling and piecewise linear:

    θ ← θ + f(θ) / #{a : y(a) > θ}.

From a θ that is too small the steps never pass the root, arms only ever drop out, and once none does the step
was the last. Any set S of arms gives such a start, (Σ_S y − 1) / |S|: here the arms that were played (the
support moves little from round to round), or the one arm with the largest y if that is better.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.buffers import aligned_zeros, frozen
from normalfan._kernels.compiling import inlined, kernel
from normalfan._kernels.lanes import LANES, at_most, bits_of, broadcast, fma, maximum, select, zero_lanes
from normalfan._kernels.memory import item, load, store
from normalfan_paper._kernels.hedge_lanes import charge_arms, pay_round, whole_lanes

ALL = (1 << LANES) - 1


@kernel
def optimistic_kernel(losses, arms, etas, behind, ahead, paid):
    """Exponential weights that count the last loss twice; fills paid [T*runs]."""
    for t in range(len(paid) // len(etas)):
        pay_round(t, losses, arms, etas, ahead, paid)
        charge_arms(losses, t * arms, behind)
        ahead[:] = behind
        charge_arms(losses, t * arms, ahead)


@inlined
def _project(moved, arms, theta):
    """The root of f, from a ``theta`` that is not above it."""
    zero = zero_lanes()
    one = broadcast(1.0)
    before = broadcast(np.inf)
    settled = False
    while not settled:
        mass, kept = zero, zero
        for a in range(arms):
            above = load(moved, a * LANES) - theta
            out = at_most(above, zero)
            mass = mass + select(out, zero, above)
            kept = kept + select(out, zero, one)
        # Rounding may put theta past the root by a digit: it never comes back, or two lanes that do so in
        # turn would keep the loop going, and the arm with the largest y is kept all the same.
        kept = maximum(kept, one)
        theta = maximum(theta + (mass - one) / kept, theta)
        settled = bits_of(at_most(before, kept)) == ALL
        before = kept
    return theta


@kernel
def euclidean_kernel(losses, arms, etas, plays, moved, paid):
    """Projected gradient descent from ``plays`` [runs/8, K, 8]; fills paid [T*runs]."""
    zero = zero_lanes()
    one = broadcast(1.0)
    runs = len(etas)
    for t in range(len(paid) // runs):
        cheapest = np.inf
        for a in range(arms):
            cheapest = min(cheapest, losses[t * arms + a])
        for first in range(0, runs, LANES):
            eta = load(etas, first)
            place = first * arms
            expected, mass, kept, top = zero, zero, zero, broadcast(-np.inf)
            for a in range(arms):
                # Measured from the cheapest, large losses leave the play its digits.
                loss = broadcast(item(losses, t * arms + a) - cheapest)
                x = load(plays, place + a * LANES)
                expected = fma(x, loss, expected)
                y = x - eta * loss
                played = at_most(x, zero)
                mass = mass + select(played, zero, y)
                kept = kept + select(played, zero, one)
                top = maximum(y, top)
                store(moved, a * LANES, y)
            store(paid, t * runs + first, expected + broadcast(cheapest))
            theta = _project(moved, arms, maximum((mass - one) / kept, top - one))
            for a in range(arms):
                x = load(moved, a * LANES) - theta
                store(plays, place + a * LANES, maximum(x, zero))


def run_optimistic_hedge(losses: np.ndarray, etas: np.ndarray) -> np.ndarray:
    """What each run pays in each round, [runs, T], on losses [T, K]."""
    rounds, arms = losses.shape
    padded = whole_lanes(etas)
    paid = np.empty(rounds * len(padded))
    flat = frozen(losses, np.float64)
    optimistic_kernel(flat, arms, padded, np.zeros(arms), np.zeros(arms), paid)
    return paid.reshape(rounds, -1)[:, : len(etas)].T


def run_euclidean_mirror_descent(losses: np.ndarray, etas: np.ndarray) -> np.ndarray:
    """What each run pays in each round, [runs, T], on losses [T, K]."""
    rounds, arms = losses.shape
    padded = whole_lanes(etas)
    paid = np.empty(rounds * len(padded))
    plays = aligned_zeros(arms * len(padded))
    plays[:] = 1.0 / arms
    euclidean_kernel(frozen(losses, np.float64), arms, padded, plays, aligned_zeros(arms * LANES), paid)
    return paid.reshape(rounds, -1)[:, : len(etas)].T
