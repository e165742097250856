"""Trust regions advanced together: eight runs with losses of their own, a lane each.

The step is π' ∝ π exp(−x·gap), gap = Q − min Q, with the largest x ≤ η at which the divergence is within the
radius: at every state on its own, or with one x for the sum of all states' divergences weighted by visits. With

    Z(x) = Σ_a π(a) exp(−x gap(a)),      KL(x) = −x E_x[gap] − log Z(x),      KL'(x) = x Var_x[gap]

a trial takes one exponential an action, in lanes, and one logarithm a state. The root is found by Newton's method
on √KL, which is nearly linear in x, inside a bracket: a handful of trials. Policies are kept as probabilities,
so a floor is needed. Unlike settings of one learner, seeds have losses of their own: they are read by byte
strides, 0 where runs or steps share them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from normalfan._kernels.buffers import States, aligned_zeros, frozen
from normalfan._kernels.compiling import inlined, inner, kernel
from normalfan._kernels.exponential import weight
from normalfan._kernels.lanes import broadcast, fma, lane_count, lanes_of, maximum, minimum
from normalfan._kernels.memory import gather, item, load, store
from normalfan._kernels.simulate import LANES, WORD, whole_lanes

ACCURACY = 1e-12  # how close to the radius, relative to it, a binding divergence is brought
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
    variances: np.ndarray


class Space(NamedTuple):
    """Work space of eight runs."""

    kept: np.ndarray  # [rows, A, lanes] probabilities
    gaps: np.ndarray  # [rows, A, lanes]
    largest: np.ndarray  # [rows, lanes] the largest gap
    visits: np.ndarray  # [rows, lanes]
    values: np.ndarray  # [3, S, lanes]: even steps, odd steps, zeros
    reached: np.ndarray  # [2, S, lanes]
    search: Search


@inlined
def _evaluate(row, place, last, strides, successor, ahead, actions, nexts, space):
    """Q of one state under the policies of eight runs as gaps; returns V."""
    zero = lanes_of(WORD(0))
    count = lane_count(zero)
    at = row * actions * count
    value = zero
    least, most = broadcast(np.inf, zero), broadcast(-np.inf, zero)
    for a in range(actions):
        onward = load(space.values, ahead + item(nexts, successor + a) * count, zero)
        q = gather(place + a * strides[4], strides[0], last, zero) + onward
        value = fma(load(space.kept, at + a * count, zero), q, value)
        store(space.gaps, at + a * count, q)
        least, most = minimum(q, least), maximum(q, most)
    for a in range(actions):
        store(space.gaps, at + a * count, load(space.gaps, at + a * count, zero) - least)
    store(space.largest, row * count, most - least)
    return value


@inlined
def _try(row, actions, space):
    """Add one state's divergences at the trials to the search, weighted by its visits."""
    zero = lanes_of(WORD(0))
    count = lane_count(zero)
    search = space.search
    at = row * actions * count
    x = zero - load(search.x, 0, zero)
    mass, mean, square = zero, zero, zero
    for a in range(actions):
        gap = load(space.gaps, at + a * count, zero)
        w = load(space.kept, at + a * count, zero) * weight(x * gap)
        mass = mass + w
        mean = fma(w, gap, mean)
        square = fma(w * gap, gap, square)
    mean = mean / mass
    variance = maximum(square / mass - mean * mean, zero)
    store(search.logarithms, 0, mass)
    for i in range(count):
        search.logarithms[i] = math.log(search.logarithms[i])
    divergence = maximum(x * mean - load(search.logarithms, 0, zero), zero)
    visits = load(space.visits, row * count, zero)
    store(search.divergence, 0, fma(visits, divergence, load(search.divergence, 0, zero)))
    store(search.slope, 0, fma(visits * (zero - x), variance, load(search.slope, 0, zero)))
    store(search.variances, 0, fma(visits, variance, load(search.variances, 0, zero)))


@inner
def _attempt(first, end, actions, space):
    """The divergences of the rows at the trials."""
    search = space.search
    search.divergence[:] = 0.0
    search.slope[:] = 0.0
    search.variances[:] = 0.0
    for row in range(first, end):
        _try(row, actions, space)


@inner
def _judge(search, radii):
    """Narrow each bracket by its trial and choose the next; whether some root is still sought."""
    seeking = False
    for i in range(len(search.x)):
        if not search.open[i]:
            continue
        x, radius, divergence = search.x[i], radii[i], search.divergence[i]
        if divergence <= radius:
            search.low[i] = x
        else:
            search.high[i] = x
        if abs(divergence - radius) <= ACCURACY * radius:
            search.open[i] = False
            continue
        if search.high[i] <= np.nextafter(search.low[i], np.inf):
            search.x[i] = search.low[i]
            search.open[i] = False
            continue
        root = math.sqrt(divergence)
        better = x + 2.0 * root * (math.sqrt(radius) - root) / search.slope[i]
        if not (search.low[i] < better < search.high[i]):
            better = math.sqrt(search.low[i] * search.high[i])
        search.x[i] = better
        seeking = True
    return seeking


@inner
def _find(first, end, actions, etas, radii, space):
    """The largest steps within the radii, for the sum over rows, into ``search.x``."""
    count = len(etas)
    search = space.search
    search.x[:] = 0.0
    _attempt(first, end, actions, space)
    spreads = search.variances.copy()
    search.x[:] = etas
    _attempt(first, end, actions, space)
    seeking = False
    for i in range(count):
        search.open[i] = search.divergence[i] > radii[i] * (1.0 + ACCURACY)
        if search.open[i]:
            seeking = True
            furthest = 0.0
            for row in range(first, end):
                furthest += space.visits[row * count + i] * space.largest[row * count + i]
            # Divergence grows at most by the largest gap per unit of x; at first it is half x squared variances.
            search.low[i], search.high[i] = min(radii[i] / furthest, etas[i]), etas[i]
            guess = math.sqrt(2.0 * radii[i] / spreads[i])
            search.x[i] = min(max(guess, search.low[i]), search.high[i])
    for _ in range(MOST_TRIALS):
        if not seeking:
            break
        _attempt(first, end, actions, space)
        seeking = _judge(search, radii)
    for i in range(count):
        if search.open[i]:
            search.x[i] = search.low[i]


@inlined
def _move(row, actions, floors, space):
    """One state's step by ``search.x``, then its floor."""
    zero = lanes_of(WORD(0))
    count = lane_count(zero)
    at = row * actions * count
    x, floor = zero - load(space.search.x, 0, zero), load(floors, 0, zero)
    mass = zero
    for a in range(actions):
        w = load(space.kept, at + a * count, zero) * weight(x * load(space.gaps, at + a * count, zero))
        store(space.kept, at + a * count, w)
        mass = mass + w
    share = (broadcast(1.0, zero) - broadcast(float(actions), zero) * floor) / mass
    for a in range(actions):
        store(space.kept, at + a * count, fma(load(space.kept, at + a * count, zero), share, floor))


@inner
def _walk(nexts, per_step, shape, ptr, idx, initial, scale, space):
    """The visits of the played policies, times ``scale``, into ``space.visits``."""
    steps, states, actions = shape
    zero = lanes_of(WORD(0))
    count = lane_count(zero)
    layer = states * count
    for row in range(ptr[0], ptr[1]):
        s = np.int64(item(idx, row))
        store(space.reached, s * count, broadcast(initial[s] * scale, zero))
    for h in range(steps):
        here, later = (h & 1) * layer, (h + 1 & 1) * layer
        if h + 1 < steps:
            for row in range(ptr[h + 1], ptr[h + 2]):
                store(space.reached, later + np.int64(item(idx, row)) * count, zero)
        for row in range(ptr[h], ptr[h + 1]):
            s = np.int64(item(idx, row))
            reached = load(space.reached, here + s * count, zero)
            store(space.visits, row * count, reached)
            if h + 1 < steps:
                for a in range(actions):
                    mass = reached * load(space.kept, (row * actions + a) * count, zero)
                    to = later + item(nexts, h * per_step + s * actions + a) * count
                    store(space.reached, to, load(space.reached, to, zero) + mass)


@kernel
def trust_kernel(
    address, strides, last, nexts, per_step, shape, ptr, idx, initial, settings, per_state, scale, space, paid
):
    """Eight runs on losses [runs, T, H, S, A] by byte strides; fills paid [T, lanes].

    ``settings`` are step sizes, radii and floors. With ``per_state`` every state has its own radius and visits
    are 1; otherwise the visits times ``scale`` weigh the states.
    """
    steps, states, actions = shape
    etas, radii, floors = settings
    zero = lanes_of(WORD(0))
    count = lane_count(zero)
    layer = states * count
    for t in range(len(paid) // count):
        for h in range(steps - 1, -1, -1):
            here = (h & 1) * layer
            ahead = 2 * layer if h + 1 == steps else layer - here
            for row in range(ptr[h], ptr[h + 1]):
                s = np.int64(item(idx, row))
                place = address + t * strides[1] + h * strides[2] + s * strides[3]
                value = _evaluate(
                    row, place, last, strides, h * per_step + s * actions, ahead, actions, nexts, space
                )
                store(space.values, here + s * count, value)
        expected = zero
        for row in range(ptr[0], ptr[1]):
            s = np.int64(item(idx, row))
            if initial[s] > 0.0:
                expected = fma(broadcast(initial[s], zero), load(space.values, s * count, zero), expected)
        store(paid, t * count, expected)
        if per_state:
            for row in range(ptr[steps]):
                _find(row, row + 1, actions, etas, radii, space)
                _move(row, actions, floors, space)
        else:
            _walk(nexts, per_step, shape, ptr, idx, initial, scale, space)
            _find(0, ptr[steps], actions, etas, radii, space)
            for row in range(ptr[steps]):
                _move(row, actions, floors, space)


def simulate_trust_region(
    losses: np.ndarray,
    nexts: np.ndarray,
    states: States,
    initial: np.ndarray,
    horizon: int,
    settings: tuple[np.ndarray, np.ndarray, np.ndarray],
    per_state: bool,
    scale: float,
) -> np.ndarray:
    """What at most eight runs pay in each round, [runs, T], on losses [runs or 1, T, 1 or H, S, A]."""
    n_runs, rounds, (n_states, n_actions) = len(settings[0]), losses.shape[1], losses.shape[3:]
    shared = [0 if losses.shape[axis] == 1 else losses.strides[axis] for axis in range(5)]
    strides = tuple(shared[axis] if axis in (0, 2) else losses.strides[axis] for axis in range(5))
    rows = len(states.idx)
    search = Search(*(aligned_zeros(LANES) for _ in range(5)), np.zeros(LANES, np.bool_), *(
        aligned_zeros(LANES) for _ in range(2)
    ))  # fmt: skip
    space = Space(
        kept=aligned_zeros(rows * n_actions * LANES),
        gaps=aligned_zeros(rows * n_actions * LANES),
        largest=aligned_zeros(rows * LANES),
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
        frozen(states.ptr, np.int64), frozen(states.idx, np.int32), frozen(initial, np.float64),
        tuple(whole_lanes(column) for column in settings), per_state, scale, space, paid,
    )  # fmt: skip
    return paid.reshape(rounds, LANES)[:, :n_runs].T
