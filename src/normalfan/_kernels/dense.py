"""Backward sweep of dense problems: the recursion of ``successors`` as a matrix product within the cache.

Layout, for a block of BLOCK rounds (bit t + 1 of a word for round t, bit 0 for the round before):
values [group, S, LANES] and held [round, S] are V and W of the step ahead, q is [row of the panel, round].
Why: docs/details/kernels.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalfan._kernels.bitsets import lowest
from normalfan._kernels.buffers import States, Swept, aligned_zeros, allocate, frozen, swept
from normalfan._kernels.compiling import inner, kernel
from normalfan._kernels.faces import PLANES, face_facts, keep_faces
from normalfan._kernels.forward import walk_block
from normalfan._kernels.lanes import (
    absolute,
    at_most,
    bits_of,
    broadcast,
    fma,
    lanes_of,
    maximum,
    minimum,
    select,
    total,
)
from normalfan._kernels.memory import gather, load, store
from normalfan._kernels.successors import unexplained

LANES = 8
ROWS = 6  # 6 rows by 8 lanes keep twelve of sixteen vector registers busy with sums
PANEL_ROWS = 24
BLOCK = 56  # whole groups of lanes, and one bit to spare in a signed word


class Block(NamedTuple):
    """Work space of one block of rounds."""

    values: np.ndarray  # float64 [group, S, LANES] of the step ahead
    fresh_values: np.ndarray  # the same of the step at hand
    held: np.ndarray  # float64 [BLOCK, S] of the step ahead
    fresh_held: np.ndarray
    scale: np.ndarray  # float64 [BLOCK] sum over the steps ahead of max |V|
    largest: np.ndarray  # float64 [BLOCK] max |V| of the step at hand
    finite: np.ndarray  # float64 [BLOCK] 0, or nan once an advantage is not finite
    near: np.ndarray  # int64 [BLOCK // LANES] bits of the rounds with a doubtful tie
    best: np.ndarray  # float64 [BLOCK] the least cost of holding, over the actions so far
    choice: np.ndarray  # float64 [BLOCK] the action that attains it
    paid: np.ndarray  # float64 [BLOCK] that action's advantage


@inner
def _no_lanes():
    return lanes_of(np.uint16(0))


@inner
def _multiply(rows, first, count, values, groups, q):
    """q[r, t] = sum_k rows[first + r, k] * values[t, k] for ``count`` rows and all groups."""
    zero = _no_lanes()
    states = rows.shape[1]
    for r in range(0, count, ROWS):
        # The last tile of a panel repeats its last row rather than running past it.
        r0, r1, r2 = r, min(r + 1, count - 1), min(r + 2, count - 1)
        r3, r4, r5 = min(r + 3, count - 1), min(r + 4, count - 1), min(r + 5, count - 1)
        for g in range(groups):
            x0 = x1 = x2 = x3 = x4 = x5 = zero
            start = g * states * LANES
            for k in range(states):
                v = load(values, start + k * LANES, zero)
                x0 = fma(broadcast(rows[first + r0, k], zero), v, x0)
                x1 = fma(broadcast(rows[first + r1, k], zero), v, x1)
                x2 = fma(broadcast(rows[first + r2, k], zero), v, x2)
                x3 = fma(broadcast(rows[first + r3, k], zero), v, x3)
                x4 = fma(broadcast(rows[first + r4, k], zero), v, x4)
                x5 = fma(broadcast(rows[first + r5, k], zero), v, x5)
            t = g * LANES
            store(q, r0 * BLOCK + t, x0)
            store(q, r1 * BLOCK + t, x1)
            store(q, r2 * BLOCK + t, x2)
            store(q, r3 * BLOCK + t, x3)
            store(q, r4 * BLOCK + t, x4)
            store(q, r5 * BLOCK + t, x5)


@inner
def _settle(
    address, strides, rounds, actions, states, s, row, rule, block, q, word, words, twin, twins, walk
):
    """One state, all rounds: from P V' in q to advantages in q, values and tie bits."""
    zero = _no_lanes()
    infinite = broadcast(np.inf, zero)
    floor, slope = broadcast(rule[0], zero), broadcast(rule[1], zero)
    for a in range(actions):
        words[word + a] = (words[word + a] >> BLOCK) & 1
    for t in range(0, rounds, LANES):
        last = min(LANES, rounds - t) - 1
        v = infinite
        for a in range(actions):
            place = (row + a) * BLOCK + t
            loss = gather(address + t * strides[0] + a * strides[3], strides[0], last, zero)
            total_loss = loss + load(q, place, zero)
            store(q, place, total_loss)
            v = minimum(total_loss, v)
        store(block.fresh_values, t * states + s * LANES, v)
        size = absolute(v)
        store(block.largest, t, maximum(size, load(block.largest, t, zero)))
        upper = fma(slope, size + load(block.scale, t, zero), floor)
        finite = load(block.finite, t, zero)
        doubtful = zero
        least = infinite
        seen = np.int64(0)
        several = np.int64(0)
        for a in range(actions):
            place = (row + a) * BLOCK + t
            d = load(q, place, zero) - v
            close = at_most(d, upper)
            tied = bits_of(close)
            words[word + a] |= tied << (t + 1)
            several |= seen & tied
            seen |= tied
            store(q, place, d)
            finite = fma(d, zero, finite)
            doubtful = maximum(select(close, d, zero), doubtful)
            if walk is not None:
                least = minimum(select(close, infinite, d), least)
        store(block.finite, t, finite)
        block.near[t // LANES] |= ~bits_of(at_most(doubtful, zero))
        if several:
            block.near[t // LANES] |= unexplained(
                address + t * strides[0], strides, last, actions, twin, word, t + 1, words, twins, zero
            )
        if walk is not None:
            store(walk.gap, (word // actions) * BLOCK + t, least)


@inner
def _improve(block, t, a, advantage, onward):
    """Hold round t by action a if that is cheaper than the actions before it."""
    cost = advantage + onward
    if cost < block.best[t]:
        block.best[t], block.choice[t], block.paid[t] = cost, a, advantage


@inner
def _hold(row, a, rounds, advantages, block):
    """Offer action a, with successor probabilities ``row``, to the set of rounds that kept it."""
    zero = _no_lanes()
    states = len(row)
    whole = states - states % LANES
    held = block.held
    while rounds:
        # Four rounds share the row. With fewer left the last one is simply done again.
        t0 = lowest(rounds)
        rounds &= rounds - 1
        t1 = lowest(rounds) if rounds else t0
        rounds &= rounds - 1
        t2 = lowest(rounds) if rounds else t1
        rounds &= rounds - 1
        t3 = lowest(rounds) if rounds else t2
        rounds &= rounds - 1
        o0, o1, o2, o3 = t0 * states, t1 * states, t2 * states, t3 * states
        x0 = x1 = x2 = x3 = zero
        for k in range(0, whole, LANES):
            p = load(row, k, zero)
            x0 = fma(p, load(held, o0 + k, zero), x0)
            x1 = fma(p, load(held, o1 + k, zero), x1)
            x2 = fma(p, load(held, o2 + k, zero), x2)
            x3 = fma(p, load(held, o3 + k, zero), x3)
        w0, w1, w2, w3 = total(x0), total(x1), total(x2), total(x3)
        for k in range(whole, states):
            w0 += row[k] * held[o0 + k]
            w1 += row[k] * held[o1 + k]
            w2 += row[k] * held[o2 + k]
            w3 += row[k] * held[o3 + k]
        _improve(block, t0, a, advantages[t0], w0)
        _improve(block, t1, a, advantages[t1], w1)
        _improve(block, t2, a, advantages[t2], w2)
        _improve(block, t3, a, advantages[t3], w3)


@inner
def _back_step(
    address, strides, rounds, h, shape, listed, rows, twin_base, twins, rule, block, q, words, walk
):
    """One step of the recursion for one block of rounds."""
    steps, states, actions = shape
    groups = (rounds + LANES - 1) // LANES
    panel = len(q) // (actions * BLOCK)
    every = (1 << rounds) - 1
    block.largest[:] = 0.0
    for first in range(0, states, panel):
        width = min(panel, states - first)
        if not listed[first : first + width].any():
            continue
        if h + 1 < steps:
            _multiply(rows, first * actions, width * actions, block.values, groups, q)
        else:
            q[:] = 0.0
        for s in range(first, first + width):
            if not listed[s]:
                continue
            word, row = (h * states + s) * actions, (s - first) * actions
            _settle(
                address + s * strides[2], strides, rounds, actions, states, s, row, rule, block, q,
                word, words, twin_base + s * actions, twins, walk,
            )  # fmt: skip
            block.best[:] = np.inf
            for a in range(actions):
                advantages = q[(row + a) * BLOCK : (row + a + 1) * BLOCK]
                _hold(rows[s * actions + a], a, words[word + a] & every, advantages, block)
            for t in range(rounds):
                block.fresh_held[t * states + s] = block.best[t]
            if walk is not None:
                place = (h * states + s) * BLOCK
                walk.pick[place : place + BLOCK] = block.choice
                walk.pay[place : place + BLOCK] = block.paid
    block.scale[:] += block.largest


@inner
def _mean_at_start(block, states, rounds, initial, value, price):
    """rho.V and rho.W of every round, states in ascending order."""
    value[:] = 0.0
    price[:] = 0.0
    for s in range(states):
        if initial[s] > 0.0:
            for t in range(rounds):
                group, lane = t // LANES, t % LANES
                value[t] += initial[s] * block.values[(group * states + s) * LANES + lane]
                price[t] += initial[s] * block.held[t * states + s]


@kernel
def sweep_kernel(
    address, strides, rounds, shape, rows, twins, listed, ptr, idx, initial, rule, words, block, q, reach,
    out, walk, certain, detail,
):  # fmt: skip
    """All rounds, block by block; `words` holds the round before the first in bit BLOCK."""
    steps, states, actions = shape
    value, price, crossed, vertex, dimension, near, finite, sizes = out
    planes = np.zeros(PLANES, np.int64)
    per_step = 0 if len(rows) == 1 else states * actions
    flat = rows.reshape(-1)
    visit = np.int64(1)
    for first in range(0, rounds, BLOCK):
        valid = min(BLOCK, rounds - first)
        block.values[:] = 0.0
        block.held[:] = 0.0
        block.scale[:] = 0.0
        block.finite[:] = 0.0
        block.near[:] = 0
        for h in range(steps - 1, -1, -1):
            _back_step(
                address + first * strides[0] + h * strides[1], strides, valid, h, shape, listed[h],
                rows[h % len(rows)], h * per_step, twins, rule, block, q, words, walk,
            )  # fmt: skip
            block = _turn(block)
        done = slice(first, first + valid)
        _mean_at_start(block, states, valid, initial, value[done], price[done])
        for t in range(valid):
            near[first + t] = (block.near[t // LANES] >> (t % LANES)) & 1 == 1
            finite[first + t] = block.finite[t] == 0.0
            sizes[first + t] = block.scale[t]
        changed, choices = keep_faces(
            words, reach, planes, ptr, idx, initial, shape, per_step, None, None, flat,
            (1 << (valid + 1)) - 1,
        )  # fmt: skip
        face_facts(first, valid, changed, choices, planes, crossed, vertex, dimension)
        if detail is not None:
            visit = walk_block(
                first, valid, BLOCK, visit, shape, per_step, (None, None, None, flat), ptr, idx, initial,
                words, walk, price, vertex, certain, detail,
            )  # fmt: skip


@inner
def _turn(block):
    """The step at hand becomes the step ahead."""
    return Block(
        block.fresh_values, block.values, block.fresh_held, block.held, block.scale,
        block.largest, block.finite, block.near, block.best, block.choice, block.paid,
    )  # fmt: skip


def sweep(
    losses: np.ndarray,
    rows: np.ndarray,
    twins: np.ndarray,
    states: States,
    listed: np.ndarray,
    initial: np.ndarray,
    rule: tuple[float, float],
    certain: bool,
    detail: bool,
) -> Swept:
    """Price the rounds ``losses`` [N,H,S,A] (float64, any strides); ``rows`` [K, S*A, S]."""
    rounds, *shape = losses.shape
    steps, n_states, n_actions = shape
    flat = n_states * BLOCK
    block = Block(
        *(aligned_zeros(flat) for _ in range(4)),
        *(aligned_zeros(BLOCK) for _ in range(3)),
        np.zeros(BLOCK // LANES, np.int64),
        *(aligned_zeros(BLOCK) for _ in range(3)),
    )
    # Every action was open before the first round.
    words = np.full(steps * n_states * n_actions, 1 << BLOCK, np.int64)
    panel = max(1, PANEL_ROWS // n_actions)
    out, walk, extra = allocate(rounds, steps, n_states, BLOCK, detail)
    sweep_kernel(
        losses.ctypes.data, losses.strides, rounds, tuple(shape), rows, frozen(twins, np.int32), listed,
        frozen(states.ptr, np.int64), frozen(states.idx, np.int32), frozen(initial, np.float64),
        tuple(rule), words, block, aligned_zeros(panel * n_actions * BLOCK),
        np.zeros((2, n_states), np.int64), out, walk, certain, extra,
    )  # fmt: skip
    return swept(out, extra)
