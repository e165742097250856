"""Trust regions advanced together: eight runs with losses of their own, a lane each.

The step is π' ∝ π exp(−x·gap), gap = Q − min Q, with the largest x ≤ η at which the divergence is within
the radius: at every state on its own, or with one x for the sum of all states' divergences weighted by
visits. With

    Z(x) = Σ_a π(a) exp(−x gap(a)),      KL(x) = −x E_x[gap] − log Z(x),      KL'(x) = x Var_x[gap]

for the new policy from the old, and KL(x) = x E_0[gap] + log Z(x), KL'(x) = E_0[gap] − E_x[gap] for the old
from the new, a trial takes one exponential an action, in lanes, and one logarithm a state. The root is found
by Newton's method on √KL, which is nearly linear in x, inside a bracket: a handful of trials. Policies are
kept as probabilities, so a floor is needed. Unlike settings of one learner, seeds have losses of their own:
they are read by byte strides, 0 where runs or steps share them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from normalfan._kernels.buffers import States, aligned_zeros, frozen
from normalfan._kernels.compiling import inlined, inner, kernel
from normalfan._kernels.lanes import LANES, broadcast, fma, maximum, minimum, zero_lanes
from normalfan._kernels.memory import gather, item, load, store
from normalfan_paper._kernels.exponential import weight
from normalfan_paper._kernels.hedge_lanes import whole_lanes

ACCURACY = 1e-12  # how close to the radius, relative to it, a binding divergence is brought
EPSILON = 2.0**-52
MOST_TRIALS = 200


class Search(NamedTuple):
    """One root a lane: the trial, its bracket, and what the trial gave."""

    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    divergence: np.ndarray
    slope: np.ndarray
    open: np.ndarray  # bool: still sought
    logarithms: np.ndarray


class Space(NamedTuple):
    """Work space of eight runs."""

    kept: np.ndarray  # [rows, A, lanes] probabilities
    gaps: np.ndarray  # [rows, A, lanes]
    largest: np.ndarray  # [rows, lanes] the largest gap
    spread: np.ndarray  # [rows, lanes] the variance of the gaps under the policy
    middle: np.ndarray  # [rows, lanes] their mean
    visits: np.ndarray  # [rows, lanes]
    values: np.ndarray  # [3, S, lanes]: even steps, odd steps, zeros
    reached: np.ndarray  # [2, S, lanes]
    search: Search


@inlined
def _evaluate(
    row, place, last, strides, successor, ahead, actions, nexts, kept, gaps, largest, spread, middle, values
):
    """Q of one state under the policies of eight runs as gaps; returns V."""
    zero = zero_lanes()
    at = row * actions * LANES
    value, square = zero, zero
    least, most = broadcast(np.inf), broadcast(-np.inf)
    for a in range(actions):
        onward = load(values, ahead + item(nexts, successor + a) * LANES)
        q = gather(place + a * strides[4], strides[0], last, 0.0) + onward
        value = fma(load(kept, at + a * LANES), q, value)
        store(gaps, at + a * LANES, q)
        least, most = minimum(q, least), maximum(q, most)
    for a in range(actions):
        q = load(gaps, at + a * LANES)
        square = fma(load(kept, at + a * LANES), (q - value) * (q - value), square)
        store(gaps, at + a * LANES, q - least)
    store(largest, row * LANES, most - least)
    store(spread, row * LANES, square)
    store(middle, row * LANES, value - least)
    return value


@inlined
def _try(first, end, actions, backward, kept, gaps, middle, visits, trials, divergences, slopes, logarithms):
    """The divergences of the rows at the trials, and their slopes, weighted by visits."""
    zero = zero_lanes()
    x = zero - load(trials, 0)
    total, slope = zero, zero
    for row in range(first, end):
        at = row * actions * LANES
        mass, mean, square = zero, zero, zero
        for a in range(actions):
            gap = load(gaps, at + a * LANES)
            w = load(kept, at + a * LANES) * weight(x * gap)
            mass = mass + w
            mean = fma(w, gap, mean)
            square = fma(w * gap, gap, square)
        mean = mean / mass
        store(logarithms, 0, mass)
        for i in range(LANES):
            logarithms[i] = math.log(logarithms[i])
        visited = load(visits, row * LANES)
        if backward:
            before = load(middle, row * LANES)
            total = fma(visited, maximum(load(logarithms, 0) - x * before, zero), total)
            slope = fma(visited, maximum(before - mean, zero), slope)
        else:
            total = fma(visited, maximum(x * mean - load(logarithms, 0), zero), total)
            slope = fma(visited, (zero - x) * maximum(square / mass - mean * mean, zero), slope)
    store(divergences, 0, total)
    store(slopes, 0, slope)


@inlined
def _judge(count, radii, trials, lows, highs, divergences, slopes, sought):
    """Narrow each bracket by its trial and choose the next; whether some root is still sought."""
    seeking = False
    for i in range(count):
        if sought[i]:
            x, radius, divergence = trials[i], radii[i], divergences[i]
            if divergence <= radius:
                lows[i] = x
            else:
                highs[i] = x
            if abs(divergence - radius) <= ACCURACY * radius:
                sought[i] = False
            elif highs[i] - lows[i] <= EPSILON * highs[i]:
                trials[i] = lows[i]
                sought[i] = False
            else:
                root = math.sqrt(divergence)
                better = x + 2.0 * root * (math.sqrt(radius) - root) / slopes[i]
                if not (lows[i] < better < highs[i]):
                    better = math.sqrt(lows[i] * highs[i])
                trials[i] = better
                seeking = True
    return seeking


@inner
def _find(first, end, actions, backward, etas, radii, kept, gaps, largest, spread, middle, visits, search):
    """The largest steps within the radii, for the weighted sum over the rows, into ``search.x``."""
    trials, lows, highs, divergences, slopes, sought, logarithms = search
    count = len(etas)
    trials[:] = etas
    _try(first, end, actions, backward, kept, gaps, middle, visits, trials, divergences, slopes, logarithms)
    seeking = False
    for i in range(count):
        sought[i] = divergences[i] > radii[i] * (1.0 + ACCURACY)
        if sought[i]:
            seeking = True
            furthest, variance = 0.0, 0.0
            for row in range(first, end):
                furthest += visits[row * count + i] * largest[row * count + i]
                variance += visits[row * count + i] * spread[row * count + i]
            # Divergence grows by at most the largest gap per unit of x, and at first as x²/2 variances.
            lows[i], highs[i] = min(radii[i] / furthest, etas[i]), etas[i]
            trials[i] = min(max(math.sqrt(2.0 * radii[i] / variance), lows[i]), highs[i])
    for _ in range(MOST_TRIALS):
        if not seeking:
            break
        _try(
            first, end, actions, backward, kept, gaps, middle, visits, trials, divergences, slopes, logarithms
        )
        seeking = _judge(count, radii, trials, lows, highs, divergences, slopes, sought)
    for i in range(count):
        if sought[i]:
            trials[i] = lows[i]


@inlined
def _move(row, actions, floors, trials, kept, gaps):
    """One state's step by ``search.x``, then its floor."""
    zero = zero_lanes()
    at = row * actions * LANES
    x, floor = zero - load(trials, 0), load(floors, 0)
    mass = zero
    for a in range(actions):
        w = load(kept, at + a * LANES) * weight(x * load(gaps, at + a * LANES))
        store(kept, at + a * LANES, w)
        mass = mass + w
    share = (broadcast(1.0) - broadcast(float(actions)) * floor) / mass
    for a in range(actions):
        store(kept, at + a * LANES, fma(load(kept, at + a * LANES), share, floor))


@inner
def _walk(nexts, per_step, shape, ptr, idx, initial, scale, kept, visits, reached):
    """The visits of the played policies, times ``scale``, into ``visits``."""
    steps, states, actions = shape
    zero = zero_lanes()
    layer = states * LANES
    for row in range(ptr[0], ptr[1]):
        s = np.int64(item(idx, row))
        store(reached, s * LANES, broadcast(initial[s] * scale))
    for h in range(steps):
        here, later = (h & 1) * layer, (h + 1 & 1) * layer
        if h + 1 < steps:
            for row in range(ptr[h + 1], ptr[h + 2]):
                store(reached, later + np.int64(item(idx, row)) * LANES, zero)
        for row in range(ptr[h], ptr[h + 1]):
            s = np.int64(item(idx, row))
            arrived = load(reached, here + s * LANES)
            store(visits, row * LANES, arrived)
            if h + 1 < steps:
                for a in range(actions):
                    mass = arrived * load(kept, (row * actions + a) * LANES)
                    to = later + item(nexts, h * per_step + s * actions + a) * LANES
                    store(reached, to, load(reached, to) + mass)


@kernel
def trust_kernel(
    address, strides, last, nexts, per_step, shape, ptr, idx, initial, settings, per_state, backward, scale,
    space, paid,
):  # fmt: skip
    """Eight runs on losses [runs, T, H, S, A] by byte strides; fills paid [T, lanes].

    ``settings`` are step sizes, radii and floors. With ``per_state`` every state has its own radius and
    visits are 1; otherwise the visits times ``scale`` weigh the states. ``backward`` is KL(old ‖ new).
    """
    steps, states, actions = shape
    etas, radii, floors = settings
    # By name once: an array read from a tuple is counted, which costs.
    kept, gaps, largest, spread, middle, visits, values, reached, search = space
    trials = search.x
    zero = zero_lanes()
    layer = states * LANES
    for t in range(len(paid) // LANES):
        for h in range(steps - 1, -1, -1):
            here = (h & 1) * layer
            ahead = 2 * layer if h + 1 == steps else layer - here
            for row in range(ptr[h], ptr[h + 1]):
                s = np.int64(item(idx, row))
                place = address + t * strides[1] + h * strides[2] + s * strides[3]
                value = _evaluate(
                    row, place, last, strides, h * per_step + s * actions, ahead, actions, nexts,
                    kept, gaps, largest, spread, middle, values,
                )  # fmt: skip
                store(values, here + s * LANES, value)
        outcome = zero
        for row in range(ptr[0], ptr[1]):
            s = np.int64(item(idx, row))
            if initial[s] > 0.0:
                outcome = fma(broadcast(initial[s]), load(values, s * LANES), outcome)
        store(paid, t * LANES, outcome)
        if per_state:
            for row in range(ptr[steps]):
                _find(
                    row, row + 1, actions, backward, etas, radii, kept, gaps, largest, spread, middle, visits,
                    search,
                )  # fmt: skip
                _move(row, actions, floors, trials, kept, gaps)
        else:
            _walk(nexts, per_step, shape, ptr, idx, initial, scale, kept, visits, reached)
            _find(
                0, ptr[steps], actions, backward, etas, radii, kept, gaps, largest, spread, middle, visits,
                search,
            )  # fmt: skip
            for row in range(ptr[steps]):
                _move(row, actions, floors, trials, kept, gaps)


def run_trust_region(
    losses: np.ndarray,
    nexts: np.ndarray,
    states: States,
    initial: np.ndarray,
    horizon: int,
    settings: tuple[np.ndarray, np.ndarray, np.ndarray],
    per_state: bool,
    backward: bool,
    scale: float,
) -> np.ndarray:
    """What at most eight runs pay in each round, [runs, T], on losses [runs or 1, T, 1 or H, S, A]."""
    n_runs, rounds, (n_states, n_actions) = len(settings[0]), losses.shape[1], losses.shape[3:]
    shared = [0 if losses.shape[axis] == 1 else losses.strides[axis] for axis in range(5)]
    strides = tuple(shared[axis] if axis in (0, 2) else losses.strides[axis] for axis in range(5))
    rows = len(states.idx)
    numbers = [aligned_zeros(LANES) for _ in range(6)]
    search = Search(*numbers[:5], np.zeros(LANES, np.bool_), numbers[5])
    space = Space(
        kept=aligned_zeros(rows * n_actions * LANES),
        gaps=aligned_zeros(rows * n_actions * LANES),
        largest=aligned_zeros(rows * LANES),
        spread=aligned_zeros(rows * LANES),
        middle=aligned_zeros(rows * LANES),
        visits=aligned_zeros(rows * LANES),
        values=aligned_zeros(3 * n_states * LANES),
        reached=aligned_zeros(2 * n_states * LANES),
        search=search,
    )
    space.kept[:] = 1.0 / n_actions
    space.visits[:] = 1.0
    paid = np.empty(rounds * LANES)
    trust_kernel(
        losses.ctypes.data, strides, n_runs - 1, frozen(nexts, np.int32),
        0 if len(nexts) == 1 else n_states * n_actions, (horizon, n_states, n_actions),
        states.ptr, states.idx, frozen(initial, np.float64),
        tuple(whole_lanes(column) for column in settings), per_state, backward, scale, space, paid,
    )  # fmt: skip
    return paid.reshape(rounds, LANES)[:, :n_runs].T
