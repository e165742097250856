"""Backward sweep of dense problems: the recursion of ``successors`` as a matrix product within the cache.

Layout, for a block of BLOCK rounds (bit t + 1 of a word for round t, bit 0 for the round before):
values [group, S, LANES] and held [round, S] are V and W of the step ahead, q is [row of the panel, round].
Why: docs/details/kernels.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalfan._kernels.buffers import Problem, Swept, aligned_zeros, allocate
from normalfan._kernels.compiling import inner, kernel
from normalfan._kernels.forward import keep_faces, walk_block
from normalfan._kernels.lanes import (
    LANES,
    absolute,
    at_most,
    bits_of,
    broadcast,
    fma,
    gather,
    load,
    lowest_bit,
    mask_of,
    maximum,
    minimum,
    select,
    store,
    total,
    zero_lanes,
)
from normalfan._kernels.successors import ALL, examine_infinite, unexplained

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
    finite: np.ndarray  # int64 [BLOCK // LANES] bits of the rounds in which all is finite or not allowed
    closed: np.ndarray  # the same of those in which nothing is allowed at some state
    near: np.ndarray  # the same of those with a doubtful tie
    best: np.ndarray  # float64 [BLOCK] the least cost of holding, over the actions so far
    choice: np.ndarray  # float64 [BLOCK] the action that attains it
    paid: np.ndarray  # float64 [BLOCK] that action's advantage


@inner
def _multiply(rows, first, count, values, rounds, q):
    """q[r, t] = sum_k rows[first + r, k] * values[t, k] for ``count`` rows and all groups of rounds."""
    zero = zero_lanes()
    states = rows.shape[1]
    for r in range(0, count, ROWS):
        # The last tile of a panel repeats its last row rather than running past it.
        r0, r1, r2 = r, min(r + 1, count - 1), min(r + 2, count - 1)
        r3, r4, r5 = min(r + 3, count - 1), min(r + 4, count - 1), min(r + 5, count - 1)
        for g in range((rounds + LANES - 1) // LANES):
            x0 = x1 = x2 = x3 = x4 = x5 = zero
            start = g * states * LANES
            for k in range(states):
                v = load(values, start + k * LANES)
                x0 = fma(broadcast(rows[first + r0, k]), v, x0)
                x1 = fma(broadcast(rows[first + r1, k]), v, x1)
                x2 = fma(broadcast(rows[first + r2, k]), v, x2)
                x3 = fma(broadcast(rows[first + r3, k]), v, x3)
                x4 = fma(broadcast(rows[first + r4, k]), v, x4)
                x5 = fma(broadcast(rows[first + r5, k]), v, x5)
            t = g * LANES
            store(q, r0 * BLOCK + t, x0)
            store(q, r1 * BLOCK + t, x1)
            store(q, r2 * BLOCK + t, x2)
            store(q, r3 * BLOCK + t, x3)
            store(q, r4 * BLOCK + t, x4)
            store(q, r5 * BLOCK + t, x5)


@inner
def _settle(problem, address, strides, rounds, h, s, row, rule, block, q, words, walk):
    """One state, all rounds: from P V' in q to advantages in q, values and tie bits.

    Returns the rounds, a bit each, in which nothing is allowed that was tied before.
    """
    _, states, actions = problem.shape
    word = (h * states + s) * actions
    zero = zero_lanes()
    infinite = broadcast(np.inf)
    floor, slope = broadcast(rule[0]), broadcast(rule[1])
    free = np.int64(0)
    for a in range(actions):
        words[word + a] = (words[word + a] >> BLOCK) & 1
    for t in range(0, rounds, LANES):
        last = min(LANES, rounds - t) - 1
        v = infinite
        for a in range(actions):
            place = (row + a) * BLOCK + t
            loss = gather(address + t * strides[0] + a * strides[3], strides[0], last)
            total_loss = loss + load(q, place)
            store(q, place, total_loss)
            v = minimum(total_loss, v)
        size = absolute(v)
        upper = fma(slope, size + load(block.scale, t), floor)
        unbounded, doubtful, least = zero, zero, infinite
        seen = several = np.int64(0)
        for a in range(actions):
            place = (row + a) * BLOCK + t
            d = load(q, place) - v
            close = at_most(d, upper)
            tied = bits_of(close)
            words[word + a] |= tied << (t + 1)
            several |= seen & tied
            seen |= tied
            store(q, place, d)
            unbounded = fma(d, zero, unbounded)
            doubtful = maximum(select(close, d, zero), doubtful)
            if walk is not None:
                least = minimum(select(close, infinite, d), least)
        block.near[t // LANES] |= ~bits_of(at_most(doubtful, zero))
        if several:
            block.near[t // LANES] |= unexplained(
                address + t * strides[0], strides, last, actions, h * problem.per_step + s * actions, word,
                t + 1, words, problem.twins,
            )  # fmt: skip
        if bits_of(at_most(unbounded, zero)) != ALL:
            bounded, freely, shut = examine_infinite(
                address + t * strides[0], strides, last, actions, q, row * BLOCK + t, BLOCK, zero, word, t,
                words,
            )  # fmt: skip
            block.finite[t // LANES] &= bounded
            block.closed[t // LANES] |= shut
            free |= freely << t
            nothing = mask_of(shut)
            v, size = select(nothing, zero, v), select(nothing, zero, size)
            for a in range(actions):
                place = (row + a) * BLOCK + t
                store(q, place, select(nothing, zero, load(q, place)))
        store(block.fresh_values, t * states + s * LANES, v)
        store(block.largest, t, maximum(size, load(block.largest, t)))
        if walk is not None:
            store(walk.gap, (word // actions) * BLOCK + t, least)
    return free


@inner
def _improve(block, t, a, advantage, onward):
    """Hold round t by action a if that is cheaper than the actions before it."""
    cost = advantage + onward
    if cost < block.best[t]:
        block.best[t], block.choice[t], block.paid[t] = cost, a, advantage


@inner
def _hold(row, a, rounds, advantages, block):
    """Offer action a, with successor probabilities ``row``, to the set of rounds that kept it."""
    zero = zero_lanes()
    states = len(row)
    whole = states - states % LANES
    held = block.held
    while rounds:
        # Four rounds share the row. With fewer left the last one is simply done again.
        t0 = lowest_bit(rounds)
        rounds &= rounds - 1
        t1 = lowest_bit(rounds) if rounds else t0
        rounds &= rounds - 1
        t2 = lowest_bit(rounds) if rounds else t1
        rounds &= rounds - 1
        t3 = lowest_bit(rounds) if rounds else t2
        rounds &= rounds - 1
        o0, o1, o2, o3 = t0 * states, t1 * states, t2 * states, t3 * states
        x0 = x1 = x2 = x3 = zero
        for k in range(0, whole, LANES):
            p = load(row, k)
            x0 = fma(p, load(held, o0 + k), x0)
            x1 = fma(p, load(held, o1 + k), x1)
            x2 = fma(p, load(held, o2 + k), x2)
            x3 = fma(p, load(held, o3 + k), x3)
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
def _back_step(problem, address, strides, rounds, h, rule, block, q, words, walk):
    """One step of the recursion for one block of rounds."""
    steps, states, actions = problem.shape
    panel = len(q) // (actions * BLOCK)
    base, rows = h * problem.per_step, problem.rows
    listed = problem.idx[problem.ptr[h] : problem.ptr[h + 1]]
    block.largest[:] = 0.0
    done = 0
    while done < len(listed):
        first = listed[done] // panel * panel
        stop = min(first + panel, states)
        if h + 1 < steps:
            _multiply(rows, base + first * actions, (stop - first) * actions, block.values, rounds, q)
        else:
            q[:] = 0.0
        while done < len(listed) and listed[done] < stop:
            s = np.int64(listed[done])
            done += 1
            row = (s - first) * actions
            free = _settle(
                problem, address + s * strides[2], strides, rounds, h, s, row, rule, block, q, words, walk
            )
            block.best[:] = np.inf
            for a in range(actions):
                kept = (words[(h * states + s) * actions + a] | free) & ((1 << rounds) - 1)
                advantages = q[(row + a) * BLOCK : (row + a + 1) * BLOCK]
                _hold(rows[base + s * actions + a], a, kept, advantages, block)
            for t in range(rounds):
                block.fresh_held[t * states + s] = block.best[t]
            if walk is not None:
                place = (h * states + s) * BLOCK
                walk.pick[place : place + BLOCK] = block.choice
                walk.pay[place : place + BLOCK] = block.paid
    block.scale[:] += block.largest


@inner
def _turn(block):
    """The step at hand becomes the step ahead."""
    return Block(
        block.fresh_values, block.values, block.fresh_held, block.held, block.scale,
        block.largest, block.finite, block.closed, block.near, block.best, block.choice, block.paid,
    )  # fmt: skip


@inner
def _tell(problem, block, first, rounds, out):
    """What is known of the rounds once the first step is reached; states in ascending order."""
    states = problem.shape[1]
    for s in range(states):
        start = problem.initial[s]
        if start > 0.0:
            for t in range(rounds):
                group, lane = t // LANES, t % LANES
                out.values[first + t] += start * block.values[(group * states + s) * LANES + lane]
                out.prices[first + t] += start * block.held[t * states + s]
    for t in range(rounds):
        group, lane = t // LANES, t % LANES
        out.near[first + t] = (block.near[group] >> lane) & 1 == 1
        out.finite[first + t] = (block.finite[group] >> lane) & 1 == 1
        out.closed[first + t] = (block.closed[group] >> lane) & 1 == 1
        out.sizes[first + t] = block.scale[t]


@kernel
def sweep_kernel(problem, address, strides, rounds, rule, words, block, q, out, walk):
    """All rounds, block by block; `words` holds the round before the first in bit BLOCK."""
    steps, states, _ = problem.shape
    reach = np.zeros((2, states), np.int64)
    for first in range(0, rounds, BLOCK):
        valid = min(BLOCK, rounds - first)
        block.values[:] = 0.0
        block.held[:] = 0.0
        block.scale[:] = 0.0
        block.finite[:] = ALL
        block.closed[:] = 0
        block.near[:] = 0
        for h in range(steps - 1, -1, -1):
            place = address + first * strides[0] + h * strides[1]
            _back_step(problem, place, strides, valid, h, rule, block, q, words, walk)
            block = _turn(block)
        _tell(problem, block, first, valid, out)
        keep_faces(problem, words, reach, first, valid, out)
        if walk is not None:
            walk_block(problem, words, walk, first, valid, BLOCK, out)


def sweep(problem: Problem, losses: np.ndarray, rule: tuple[float, float], detail: bool) -> Swept:
    """Price the rounds ``losses`` [N,H,S,A] (float64, any strides)."""
    rounds, steps, states, actions = losses.shape
    block = Block(
        *(aligned_zeros(states * BLOCK) for _ in range(4)),
        *(aligned_zeros(BLOCK) for _ in range(2)),
        *(np.zeros(BLOCK // LANES, np.int64) for _ in range(3)),
        *(aligned_zeros(BLOCK) for _ in range(3)),
    )
    # Every action was open before the first round.
    words = np.full(steps * states * actions, 1 << BLOCK, np.int64)
    panel = max(1, PANEL_ROWS // actions)
    out, walk = allocate(rounds, steps, states, BLOCK, detail)
    sweep_kernel(
        problem, losses.ctypes.data, losses.strides, rounds, rule, words, block,
        aligned_zeros(panel * actions * BLOCK), out, walk,
    )  # fmt: skip
    return out
