"""Backward sweep of dense problems: the recursion of ``successors`` as a matrix product within the cache.

Layout, for a block of BLOCK rounds (bit t + 1 of a word for round t, bit 0 for the round before):
values [group, S, LANES] and held [round, S] are V and W of the step ahead, q is [row of the panel, round].
Why: docs/details/kernels.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalfan._kernels.buffers import (
    ALL,
    LANES,
    Problem,
    Swept,
    aligned_zeros,
    nothing_told,
    room_to_move,
    room_to_walk,
)
from normalfan._kernels.compiling import inner, kernel
from normalfan._kernels.dense_faces import BLOCK, Masses, weigh_dense_faces
from normalfan._kernels.evidence import examine_infinite, unexplained
from normalfan._kernels.forward import keep_faces
from normalfan._kernels.kept_rows import TOGETHER, Kept, keep_row, multiply_kept, no_rows
from normalfan._kernels.lanes import (
    absolute,
    at_most,
    bits_of,
    broadcast,
    fma,
    mask_of,
    maximum,
    minimum,
    select,
    zero_lanes,
)
from normalfan._kernels.losses import Given, ask_for_losses, read_losses
from normalfan._kernels.memory import item, load, scatter, store
from normalfan._kernels.moves import read_moves
from normalfan._kernels.tiles import TILE_ROWS, multiply_tile

PANEL_ROWS = 24  # rows that are multiplied before they are settled, if that makes TOGETHER states
SENT_ROWS = 48  # rows along which masses are sent at a time; a part of their columns fits the first cache


class Block(NamedTuple):
    """Work space of one block of rounds."""

    values: np.ndarray  # float64 [group, S, LANES] of the step ahead
    fresh_values: np.ndarray  # the same of the step at hand
    held: np.ndarray  # float64 [BLOCK, S] of the step ahead
    fresh_held: np.ndarray
    scale: np.ndarray  # float64 [BLOCK] sum over the steps ahead of max |V|
    largest: np.ndarray  # float64 [BLOCK] max |V| of the step at hand
    before: np.ndarray  # float64 [BLOCK] that of the step ahead
    met: np.ndarray  # float64 [BLOCK] what no loss of a best action ahead is beyond
    floor: np.ndarray  # float64 [BLOCK] up to which a tie is in doubt, but for what |V| adds
    finite: np.ndarray  # int64 [BLOCK // LANES] bits of the rounds in which all is finite or not allowed
    closed: np.ndarray  # the same of those in which nothing is allowed at some state
    near: np.ndarray  # the same of those with a doubtful tie
    freed: np.ndarray  # int64 [1] bits of the rounds in which nothing is allowed that was tied before
    q: np.ndarray  # float64 [rows of a panel, BLOCK] P V', then advantages
    onward: np.ndarray  # the same of P W', in the rounds that keep a row
    keeping: np.ndarray  # int64 [rows of a panel] bits of these rounds
    kept: Kept  # the same rows round by round
    scratch: np.ndarray  # float64 [A*LANES] losses of a state


@inner
def _multiply(problem, given, start, rounds, h, first, stop, values, q):
    """q[r, t] = sum_k P[r, k] * values[t, k] for the rows of some states, whose losses arrive meanwhile."""
    _, states, actions = problem.shape
    base, count = h * problem.per_step + first * actions, (stop - first) * actions
    for r in range(0, count, TILE_ROWS):
        for t in range(0, rounds, LANES):
            if r == 0:  # a few at a time: the processor fetches no more at once
                for s in range(first, stop):
                    ask_for_losses(given, start + t, min(LANES, rounds - t), h, s, actions)
            # The last tile of a panel repeats its last row rather than running past it.
            most = count - 1 - r
            multiply_tile(problem.rows, states, base + r, most, values, t * states, q, r * BLOCK + t, BLOCK)


@inner
def _settle(problem, given, first, rounds, h, s, row, rule, block, words, walk):
    """One state, all rounds: from P V' in q to advantages in q, values and tie bits.

    Returns the rounds, a bit each, in which nothing is allowed that was tied before.
    """
    _, states, actions = problem.shape
    word = (h * states + s) * actions
    scratch, q = block.scratch, block.q
    zero = zero_lanes()
    infinite = broadcast(np.inf)
    slope = broadcast(rule[1] + rule[2])
    free = np.int64(0)
    for a in range(actions):
        words[word + a] = (words[word + a] >> BLOCK) & 1
    for t in range(0, rounds, LANES):
        read_losses(given, first + t, min(LANES, rounds - t) - 1, h, s, actions, scratch)
        v = infinite
        for a in range(actions):
            place = (row + a) * BLOCK + t
            total_loss = load(scratch, a * LANES) + load(q, place)
            store(q, place, total_loss)
            v = minimum(total_loss, v)
        size = absolute(v)
        upper = fma(slope, size, load(block.floor, t))
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
                actions, scratch, h * problem.per_step + s * actions, word, t + 1, words, problem.twins
            )
        if bits_of(at_most(unbounded, zero)) != ALL:
            bounded, freely, shut = examine_infinite(
                actions, scratch, q, row * BLOCK + t, BLOCK, zero, word, t, words
            )
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
            store(walk.gap, h * walk.stride + s * walk.width + t, least)
    return free


@inner
def _keep(problem, h, s, row, rounds, free, words, block):
    """List the rows of one state in the rounds that keep them."""
    _, states, actions = problem.shape
    cell = (h * states + s) * actions
    for a in range(actions):
        keeping = (words[cell + a] | free) & ((1 << rounds) - 1)
        block.keeping[row + a] = keeping
        keep_row(block.kept, keeping, h * problem.per_step + s * actions + a, s)


@inner
def _hold(problem, h, s, row, rounds, block, walk):
    """W of one state: the least over the kept actions of what they cost and lead to."""
    _, states, actions = problem.shape
    q, onward, keeping = block.q, block.onward, block.keeping
    infinite = broadcast(np.inf)
    cell = (h * states + s) * actions
    if walk is not None:
        walk.better[cell : cell + actions] = 0
    for t in range(0, rounds, LANES):
        w, paid = infinite, zero_lanes()
        for a in range(actions):
            place = (row + a) * BLOCK + t
            d = load(q, place)
            cost = select(mask_of(item(keeping, row + a) >> t), d + load(onward, place), infinite)
            if walk is not None:
                dearer = at_most(w, cost)
                walk.better[np.uint64(cell + a)] |= (~bits_of(dearer) & ALL) << t
                paid = select(dearer, paid, d)
            w = minimum(cost, w)
        last = min(LANES, rounds - t) - 1
        scatter(block.fresh_held.ctypes.data + 8 * (t * states + s), 8 * states, last, w)
        if walk is not None:
            store(walk.pay, h * walk.stride + s * walk.width + t, paid)


@inner
def _back_step(problem, given, start, rounds, h, rule, block, words, walk):
    """One step of the recursion for one block of rounds."""
    steps, states, actions = problem.shape
    panel = len(block.keeping) // actions
    listed = problem.idx[problem.ptr[h] : problem.ptr[h + 1]]
    block.largest[:] = 0.0
    done = 0
    while done < len(listed):
        first = listed[done] // panel * panel
        stop = min(first + panel, states)
        end = done + np.searchsorted(listed[done:], stop)
        if h + 1 < steps:
            _multiply(problem, given, start, rounds, h, first, stop, block.values, block.q)
        else:
            block.q[:] = 0.0
        for j in range(done, end):
            s = np.int64(listed[j])
            row = (s - first) * actions
            free = _settle(problem, given, start, rounds, h, s, row, rule, block, words, walk)
            block.freed[0] |= free
            _keep(problem, h, s, row, rounds, free, words, block)
        base = h * problem.per_step + first * actions
        multiply_kept(problem.rows, block.kept, base, block.held, block.onward, BLOCK)
        for j in range(done, end):
            s = np.int64(listed[j])
            _hold(problem, h, s, (s - first) * actions, rounds, block, walk)
        done = end
    block.scale[:] += block.largest
    for t in range(BLOCK):
        block.met[t] = max(block.met[t], block.largest[t] + block.before[t])
        block.floor[t] = rule[0] + rule[1] * block.met[t] + rule[2] * block.scale[t]
        block.before[t] = block.largest[t]


@inner
def _turn(block):
    """The step at hand becomes the step ahead."""
    return Block(
        block.fresh_values, block.values, block.fresh_held, block.held, block.scale, block.largest,
        block.before, block.met, block.floor, block.finite, block.closed, block.near, block.freed, block.q,
        block.onward, block.keeping, block.kept, block.scratch,
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
def sweep_kernel(problem, given, rounds, rule, words, block, out, moves, walk, masses):
    """All rounds, block by block; `words` holds the round before the first in bit BLOCK."""
    steps, states, _ = problem.shape
    reach = np.zeros((2, states), np.int64)
    for first in range(0, rounds, BLOCK):
        valid = min(BLOCK, rounds - first)
        block.values[:] = 0.0
        block.held[:] = 0.0
        block.scale[:] = block.met[:] = block.before[:] = 0.0
        block.floor[:] = rule[0]
        block.finite[:] = ALL
        block.closed[:] = 0
        block.near[:] = 0
        block.freed[:] = 0
        if moves is not None:
            for t in range(0, valid, LANES):
                read_moves(problem, given, first + t, min(LANES, valid - t), True, moves.norms, out)
        for h in range(steps - 1, -1, -1):
            _back_step(problem, given, first, valid, h, rule, block, words, walk)
            block = _turn(block)
        _tell(problem, block, first, valid, out)
        if walk is None:
            keep_faces(problem, words, reach, first, valid, out)
        else:
            weigh_dense_faces(
                problem, given, words, masses, block.kept, walk, first, valid, block.freed[0], out
            )


def sweep(
    problem: Problem,
    rounds: int,
    given: Given,
    rule: tuple[float, float, float],
    *,
    walks: bool,
    moves: bool,
) -> Swept:
    """Price the rounds of ``given``, with walks and with moves if asked for."""
    steps, states, actions = problem.shape
    panel = max(TOGETHER, PANEL_ROWS // actions) * actions
    block = Block(
        *(aligned_zeros(states * BLOCK) for _ in range(4)),
        *(aligned_zeros(BLOCK) for _ in range(5)),
        *(np.zeros(BLOCK // LANES, np.int64) for _ in range(3)),
        np.zeros(1, np.int64),
        *(aligned_zeros(panel * BLOCK) for _ in range(2)),
        np.zeros(panel, np.int64),
        no_rows(BLOCK, max(panel, SENT_ROWS)),
        aligned_zeros(actions * LANES),
    )
    # Every action was open before the first round.
    words = np.full(steps * states * actions, 1 << BLOCK, np.int64)
    out = nothing_told(rounds, steps, detail=walks or moves)
    walk = masses = None
    if walks:
        walk = room_to_walk(rounds, problem.shape, BLOCK, np.int64)
        masses = Masses(
            *(aligned_zeros(states * BLOCK) for _ in range(2)),
            np.zeros((2, states), np.int64),
            aligned_zeros(4 * BLOCK),
        )
    adding = room_to_move() if moves else None
    sweep_kernel(problem, given, rounds, rule, words, block, out, adding, walk, masses)
    return out
