"""Learners advanced together: one run a lane, all of them in the same round.

A sweep over step sizes or seeds repeats the same arithmetic on the same losses. Here the runs are the lanes
(see ``lanes``), in blocks of eight, and every buffer has the run as its last, contiguous axis:

    Hedge            exp(−η L(a)) over the arms, L(a) the loss of arm a so far beyond the best arm's
    mirror descent   logs[row, run block, a, lane], row one of the (h, s) that some policy reaches

What is kept is the logarithm of weights whose largest is 1, never divided by their sum: the sum is needed
only where the weights are used, and an average Σ w x / Σ w takes one exponential an action and no logarithm.
The learners of ``normalfan.learners`` keep normalised logs; the two differ by a constant that cancels.

Hedge on shared losses keeps L once for all runs, since only η differs between them. Mirror descent evaluates
and updates a state in one visit: backward in time Q(h, s) is final once V(h+1) is, and an episode reads the
policy of a state once. What the near set needs, the optimal advantages of the loss and the slack of the tie
rule, is the same for all runs and found once an episode.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.buffers import States, aligned_zeros, frozen
from normalfan._kernels.compiling import inlined, inner, kernel
from normalfan._kernels.exponential import weight
from normalfan._kernels.lanes import at_most, broadcast, fma, lane_count, lanes_of, maximum, minimum, select
from normalfan._kernels.memory import item, load, store
from normalfan._kernels.successors import read_losses

LANES = 8
WORD = np.uint16  # twice as many bits as lanes


@inner
def _charge_arms(losses, start, behind):
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


@kernel
def hedge_kernel(losses, arms, etas, behind, paid):
    """Runs that share their losses [T*K]; fills paid [T*runs]."""
    zero = lanes_of(WORD(0))
    runs = len(etas)
    for t in range(len(paid) // runs):
        for first in range(0, runs, lane_count(zero)):
            eta = load(etas, first, zero)
            weighed, mass = zero, zero
            for a in range(arms):
                w = weight(broadcast(-item(behind, a), zero) * eta)
                weighed = fma(w, broadcast(item(losses, t * arms + a), zero), weighed)
                mass = mass + w
            store(paid, t * runs + first, weighed / mass)
        _charge_arms(losses, t * arms, behind)


@kernel
def hedge_streams_kernel(address, strides, streams, arms, etas, behind, scratch, paid):
    """Runs with losses of their own, [runs, T, K] by byte strides; the last block may be partial."""
    zero = lanes_of(WORD(0))
    count = lane_count(zero)
    infinite = broadcast(np.inf, zero)
    runs = len(etas)
    for first in range(0, runs, count):
        eta = zero - load(etas, first, zero)
        for a in range(arms):
            store(behind, a * count, zero)
        for t in range(len(paid) // runs):
            place = address + first * strides[0] + t * strides[1]
            last = min(count, streams - first) - 1
            read_losses(place, strides[0], strides[2], last, arms, scratch, zero)
            weighed, mass, cheapest, best = zero, zero, infinite, infinite
            for a in range(arms):
                loss = load(scratch, a * count, zero)
                w = weight(load(behind, a * count, zero) * eta)
                weighed = fma(w, loss, weighed)
                mass = mass + w
                cheapest = minimum(loss, cheapest)
            store(paid, t * runs + first, weighed / mass)
            for a in range(arms):
                moved = load(behind, a * count, zero) + (load(scratch, a * count, zero) - cheapest)
                best = minimum(moved, best)
                store(behind, a * count, moved)
            for a in range(arms):
                store(behind, a * count, load(behind, a * count, zero) - best)


@inner
def _near_table(losses, start, nexts, per_step, shape, ptr, idx, ties, values, advantages, slack):
    """The optimal advantages [row, a] of one loss, and by how much each row may exceed a threshold.

    The same operations as ``optimal_backup`` and ``TieRule.thresholds``: near means the same to the bit.
    """
    steps, states, actions = shape
    absolute, relative = ties
    values[(steps & 1) * states : (steps & 1) * states + states] = 0.0
    ahead = 0.0
    for h in range(steps - 1, -1, -1):
        here, later = (h & 1) * states, (h + 1 & 1) * states
        largest = 0.0
        for row in range(ptr[h], ptr[h + 1]):
            s = np.int64(item(idx, row))
            best = np.inf
            for a in range(actions):
                onward = item(values, later + item(nexts, h * per_step + s * actions + a))
                q = item(losses, start + (h * states + s) * actions + a) + onward
                advantages[row * actions + a] = q
                best = min(best, q)
            for a in range(actions):
                advantages[row * actions + a] -= best
            values[here + s] = best
            slack[row] = absolute + relative * (abs(best) + ahead)
            largest = max(largest, abs(best))
        ahead += largest


@inlined
def _visit(
    row, loss, successor, ahead, first, actions, runs, thresholded, near, losses, nexts, logs, values, scratch
):
    """Evaluate one state under the played policies of eight runs, and take their mirror steps; returns V.

    ``loss`` and ``successor`` say where the state's losses and successors begin, ``ahead`` where the layer of
    the next step does, ``first`` is the first of the runs.
    """
    zero = lanes_of(WORD(0))
    count = lane_count(zero)
    etas, thresholds, charges = runs
    advantages, slack = near
    width = len(etas)
    place = (row * width + first) * actions
    eta = load(etas, first, zero)
    weighed, mass = zero, zero
    least = broadcast(np.inf, zero)
    for a in range(actions):
        onward = load(values, ahead + item(nexts, successor + a) * width + first, zero)
        q = broadcast(item(losses, loss + a), zero) + onward
        w = weight(load(logs, place + a * count, zero))
        weighed = fma(w, q, weighed)
        mass = mass + w
        cost = eta * q
        if thresholded:
            far = broadcast(item(advantages, row * actions + a), zero)
            edge = load(thresholds, first, zero) + broadcast(item(slack, row), zero)
            cost = cost + select(at_most(far, edge), zero, load(charges, first, zero))
        store(scratch, a * count, cost)
        least = minimum(cost, least)
    top = broadcast(-np.inf, zero)
    for a in range(actions):
        moved = load(logs, place + a * count, zero) - (load(scratch, a * count, zero) - least)
        store(scratch, a * count, moved)
        top = maximum(moved, top)
    for a in range(actions):
        store(logs, place + a * count, load(scratch, a * count, zero) - top)
    return weighed / mass


@kernel
def mirror_kernel(
    losses, nexts, per_step, shape, ptr, idx, initial, runs, thresholded, ties,
    logs, values, scratch, plain, near, paid,
):  # fmt: skip
    """Mirror descent on losses [T*H*S*A] and deterministic successors; fills paid [T*runs].

    ``runs`` are step sizes, thresholds and charges; ``per_step`` is the number of successors from one step to
    the next (0 when all share them). ``values`` holds the layers of even and odd steps and one of zeros,
    ``plain`` the optimal values of a loss, and ``near`` what ``_near_table`` finds if ``thresholded``.
    """
    steps, states, actions = shape
    zero = lanes_of(WORD(0))
    count = lane_count(zero)
    width = len(runs[0])
    layer = states * width
    size = steps * states * actions
    for t in range(len(paid) // width):
        if thresholded:
            _near_table(losses, t * size, nexts, per_step, shape, ptr, idx, ties, plain, near[0], near[1])
        for h in range(steps - 1, -1, -1):
            here = (h & 1) * layer
            ahead = 2 * layer if h + 1 == steps else layer - here
            for row in range(ptr[h], ptr[h + 1]):
                s = np.int64(item(idx, row))
                for first in range(0, width, count):
                    v = _visit(
                        row, t * size + (h * states + s) * actions, h * per_step + s * actions, ahead, first,
                        actions, runs, thresholded, near, losses, nexts, logs, values, scratch,
                    )  # fmt: skip
                    store(values, here + s * width + first, v)
        for first in range(0, width, count):
            expected = zero
            for row in range(ptr[0], ptr[1]):
                s = np.int64(item(idx, row))
                if initial[s] > 0.0:
                    v = load(values, s * width + first, zero)
                    expected = fma(broadcast(initial[s], zero), v, expected)
            store(paid, t * width + first, expected)


def simulate_hedge(losses: np.ndarray, etas: np.ndarray) -> np.ndarray:
    """What each run pays in each round, [runs, T], on losses [T, K] or [runs, T, K]."""
    rounds, arms = losses.shape[-2:]
    padded = _whole_lanes(etas)
    paid = np.empty(rounds * len(padded))
    if losses.ndim == 2:
        hedge_kernel(frozen(losses, np.float64), arms, padded, np.zeros(arms), paid)
    else:
        hedge_streams_kernel(
            losses.ctypes.data, losses.strides, len(losses), arms, padded,
            aligned_zeros(arms * LANES), aligned_zeros(arms * LANES), paid,
        )  # fmt: skip
    return paid.reshape(rounds, -1)[:, : len(etas)].T


def simulate_mirror_descent(
    losses: np.ndarray,
    nexts: np.ndarray,
    states: States,
    initial: np.ndarray,
    runs: tuple[np.ndarray, np.ndarray, np.ndarray],
    ties: tuple[float, float],
) -> np.ndarray:
    """What each run pays in each round, [runs, T], on losses [T, H, S, A] and successors [1 or H, S, A].

    ``runs`` are step sizes, thresholds and charges; ``ties`` is (absolute, relative).
    """
    rounds, steps, n_states, n_actions = losses.shape
    etas, thresholds, charges = (_whole_lanes(column) for column in runs)
    width, rows = len(etas), len(states.idx)
    paid = np.empty(rounds * width)
    mirror_kernel(
        frozen(losses, np.float64), frozen(nexts, np.int32), 0 if len(nexts) == 1 else n_states * n_actions,
        (steps, n_states, n_actions), frozen(states.ptr, np.int64), frozen(states.idx, np.int32),
        frozen(initial, np.float64), (etas, thresholds, charges),
        bool(((charges > 0) & (thresholds < np.inf)).any()), ties,
        aligned_zeros(rows * n_actions * width), aligned_zeros(3 * n_states * width),
        aligned_zeros(n_actions * LANES), np.zeros(2 * n_states),
        (np.empty(rows * n_actions), np.empty(rows)), paid,
    )  # fmt: skip
    return paid.reshape(rounds, -1)[:, : len(runs[0])].T


def _whole_lanes(column: np.ndarray) -> np.ndarray:
    """Padded with its last entry to a whole number of lanes."""
    return np.pad(column, (0, -len(column) % LANES), mode="edge")
