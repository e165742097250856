"""Backward sweep of dense problems: the recursion of ``successors`` as a matrix product within the cache.

Layout, for a block of BLOCK rounds (bit t + 1 of a word for round t, bit 0 for the round before):
values [group, S, LANES] and held [round, S] are V and W of the step ahead, q is [row of the panel, round].
Why: docs/details/kernels.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalfan._kernels.buffers import LANES, Problem, Swept, aligned_zeros, allocate
from normalfan._kernels.compiling import inlined, inner, kernel
from normalfan._kernels.forward import (
    PLANES,
    costlier,
    follow_choices,
    keep_faces,
    keep_step,
    least_paths,
    nearer,
    paying_rounds,
    start_reach,
    tell_cells,
    tell_faces,
    tell_margins,
    tell_step,
)
from normalfan._kernels.lanes import (
    TILE_ROWS,
    absolute,
    at_most,
    bits_of,
    broadcast,
    fma,
    gather,
    item,
    load,
    lowest_bit,
    mask_of,
    maximum,
    minimum,
    multiply_tile,
    select,
    shifted,
    store,
    total,
    zero_lanes,
)
from normalfan._kernels.losses import Given, add_moves, ask_for_losses, read_losses
from normalfan._kernels.successors import ALL, examine_infinite, unexplained

PANEL_ROWS = 24
BLOCK = 56  # whole groups of lanes, and one bit to spare in a signed word
TILE = 72  # states whose masses, of all rounds of a block, fit the first cache


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
    freed: np.ndarray  # int64 [1] bits of the rounds in which nothing is allowed that was tied before
    paid: np.ndarray  # float64 [BLOCK] the advantage of the action that attains it
    scratch: np.ndarray  # float64 [A*LANES] losses of a state


@inner
def _multiply(rows, first, count, values, rounds, q):
    """q[r, t] = sum_k rows[first + r, k] * values[t, k] for ``count`` rows and all groups of rounds."""
    states = rows.shape[1]
    for r in range(0, count, TILE_ROWS):
        for t in range(0, rounds, LANES):
            # The last tile of a panel repeats its last row rather than running past it.
            most = count - 1 - r
            multiply_tile(rows, states, first + r, most, values, t * states, q, r * BLOCK + t, BLOCK)


@inner
def _move(given, first, t, h, s, actions, scratch, walk):
    """Add the moves of one state, whose losses are in scratch, to the norms of LANES rounds."""
    l1, l2 = load(walk.norms, t), load(walk.norms, BLOCK + t)
    linf = load(walk.norms, 2 * BLOCK + t)
    l1, l2, linf = add_moves(given, first + t, h, s, actions, scratch, l1, l2, linf)
    store(walk.norms, t, l1)
    store(walk.norms, BLOCK + t, l2)
    store(walk.norms, 2 * BLOCK + t, linf)


@inner
def _settle(problem, given, first, rounds, h, s, row, rule, block, q, words, walk):
    """One state, all rounds: from P V' in q to advantages in q, values and tie bits.

    Returns the rounds, a bit each, in which nothing is allowed that was tied before.
    """
    _, states, actions = problem.shape
    word = (h * states + s) * actions
    scratch = block.scratch
    zero = zero_lanes()
    infinite = broadcast(np.inf)
    floor, slope = broadcast(rule[0]), broadcast(rule[1])
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
            _move(given, first, t, h, s, actions, scratch, walk)
    return free


@inner
def _improve(block, t, advantage, onward):
    """Hold round t by an action if that is cheaper than the actions before it; returns the round as a bit."""
    cost = advantage + onward
    if cost < block.best[t]:
        block.best[t], block.paid[t] = cost, advantage
        return 1 << t
    return 0


@inner
def _hold(row, rounds, advantages, block):
    """Offer the action with successor probabilities ``row`` to the set of rounds that kept it.

    Returns those in which it is cheaper than the actions before it.
    """
    zero = zero_lanes()
    states = len(row)
    whole = states - states % LANES
    held = block.held
    better = np.int64(0)
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
        better |= _improve(block, t0, advantages[t0], w0)
        better |= _improve(block, t1, advantages[t1], w1)
        better |= _improve(block, t2, advantages[t2], w2)
        better |= _improve(block, t3, advantages[t3], w3)
    return better


@inner
def _back_step(problem, given, start, rounds, h, rule, block, q, words, walk):
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
        for s in range(first, stop):  # they arrive during the product
            ask_for_losses(given, start, rounds, h, s, actions)
        if h + 1 < steps:
            _multiply(rows, base + first * actions, (stop - first) * actions, block.values, rounds, q)
        else:
            q[:] = 0.0
        while done < len(listed) and listed[done] < stop:
            s = np.int64(listed[done])
            done += 1
            row, cell = (s - first) * actions, (h * states + s) * actions
            free = _settle(problem, given, start, rounds, h, s, row, rule, block, q, words, walk)
            block.freed[0] |= free
            block.best[:] = np.inf
            if walk is not None:
                block.paid[:] = 0.0
            for a in range(actions):
                kept = (words[cell + a] | free) & ((1 << rounds) - 1)
                advantages = q[(row + a) * BLOCK : (row + a + 1) * BLOCK]
                better = _hold(rows[base + s * actions + a], kept, advantages, block)
                if walk is not None:
                    walk.better[cell + a] = better
            for t in range(rounds):
                block.fresh_held[t * states + s] = block.best[t]
            if walk is not None:
                place = h * walk.stride + s * walk.width
                walk.pay[place : place + rounds] = block.paid[:rounds]
    block.scale[:] += block.largest
    if walk is not None:
        _move_unlisted(problem, given, start, rounds, h, listed, block.scratch, walk)


@inner
def _move_unlisted(problem, given, first, rounds, h, listed, scratch, walk):
    """The moves at states to which no policy comes."""
    _, states, actions = problem.shape
    done = 0
    for s in range(states):
        if done < len(listed) and listed[done] == s:
            done += 1
            continue
        for t in range(0, rounds, LANES):
            read_losses(given, first + t, min(LANES, rounds - t) - 1, h, s, actions, scratch)
            _move(given, first, t, h, s, actions, scratch, walk)


@inner
def _turn(block):
    """The step at hand becomes the step ahead."""
    return Block(
        block.fresh_values, block.values, block.fresh_held, block.held, block.scale, block.largest,
        block.finite, block.closed, block.near, block.best, block.freed, block.paid, block.scratch,
    )  # fmt: skip


# --- the walk over the faces ----------------------------------------------------------


class Masses(NamedTuple):
    """Work space of the walk over the faces of a block."""

    here: np.ndarray  # float64 [BLOCK*S] of each round, at the step at hand
    ahead: np.ndarray  # the same, at the next
    reach: np.ndarray  # int64 [2,S] the rounds that reach a state
    found: np.ndarray  # float64 [4*BLOCK] margin, least gap, most paid at a cell, and that cell


@inner
def _visit(problem, h, t, reach, masses, walk, found, wanted, first, out):
    """Margins of LANES rounds at one step, and what those after them pay."""
    states = problem.shape[1]
    paid = zero_lanes()
    margin, smallest = load(found, t), load(found, BLOCK + t)
    most, spot = load(found, 2 * BLOCK + t), load(found, 3 * BLOCK + t)
    for j in range(problem.ptr[h], problem.ptr[h + 1]):
        s = np.int64(problem.idx[j])
        reached = reach[s] >> t
        if reached & (2 * ALL + 1) == 0:
            continue
        place = h * walk.stride + s * walk.width + t
        m = gather(masses.ctypes.data + 8 * (t * states + s), 8 * states, LANES - 1, 0.0)
        before = masses[(t - 1) * states + s] if t > 0 else walk.carry[h * states + s]
        margin, smallest = nearer(reached >> 1, m, load(walk.gap, place), margin, smallest)
        pay = load(walk.pay, place)
        part = shifted(m, before if reached & 1 else 0.0) * pay
        paid = paid + part
        most, spot = costlier(mask_of(reached), pay, part, h * states + s, most, spot)
    store(found, t, margin)
    store(found, BLOCK + t, smallest)
    store(found, 2 * BLOCK + t, most)
    store(found, 3 * BLOCK + t, spot)
    tell_step(paid, wanted >> t & ALL, first + t, h, walk, out)


@inlined
def _add_row(rows, row, start, stop, mass, ahead, place):
    """Send a mass along a row to the states from ``start`` to ``stop``, kept from ``place`` on."""
    m = broadcast(mass)
    whole = stop - (stop - start) % LANES
    for k in range(start, whole, LANES):
        store(ahead, place + k, fma(load(rows, row + k), m, load(ahead, place + k)))
    for k in range(whole, stop):
        ahead[np.uint64(place + k)] += item(rows, row + k) * mass


@inner
def _send(problem, h, words, reach, here, ahead):
    """The masses of the next step; a few states ahead at a time, so that those of all rounds stay near."""
    _, states, actions = problem.shape
    ahead[:] = 0.0
    for start in range(0, states, TILE):
        stop = min(start + TILE, states)
        for j in range(problem.ptr[h], problem.ptr[h + 1]):
            s = np.int64(problem.idx[j])
            for a in range(actions):
                kept = (words[(h * states + s) * actions + a] & reach[s]) >> 1
                row = (h * problem.per_step + s * actions + a) * states
                while kept:
                    t = lowest_bit(kept)
                    kept &= kept - 1
                    mass = item(here, t * states + s)
                    _add_row(problem.rows, row, start, stop, mass, ahead, t * states)


@inner
def _weigh_faces(problem, given, words, masses, walk, first, rounds, freed, out):
    """`forward.weigh_faces` of a block: there masses move in lanes, here along the rows, round by round."""
    steps, states, _ = problem.shape
    here, ahead = masses.here, masses.ahead
    tally = np.zeros(2 + PLANES, np.int64)
    wanted = paying_rounds(first, rounds, out)
    start_reach(problem, masses.reach[0], rounds)
    for t in range(BLOCK):
        here[t * states : (t + 1) * states] = problem.initial
    masses.found[: 2 * BLOCK] = np.inf
    masses.found[2 * BLOCK :] = -1.0
    for h in range(steps):
        reach = masses.reach[h & 1]
        for t in range(0, rounds, LANES):
            _visit(problem, h, t, reach, here, walk, masses.found, wanted, first, out)
        walk.carry[h * states : (h + 1) * states] = here[(BLOCK - 1) * states :]
        if h + 1 < steps:
            _send(problem, h, words, reach, here, ahead)
        keep_step(problem, words, h, reach, masses.reach[(h + 1) & 1], tally)
        here, ahead = ahead, here
    tell_faces(tally, first, rounds, out)
    strayed = wanted & (tally[1] | freed)
    for t in range(0, rounds, LANES):
        valid = min(LANES, rounds - t)
        most, spot = load(masses.found, 2 * BLOCK + t), load(masses.found, 3 * BLOCK + t)
        tell_cells(problem, given, words, t, wanted >> t & ALL, most, spot, first + t, walk, out)
        margin, smallest = load(masses.found, t), load(masses.found, BLOCK + t)
        tell_margins(problem, margin, smallest, first + t, valid, walk, out)
        chosen = strayed >> t & ALL
        if chosen:
            follow_choices(
                problem, problem.rows, None, None, None, given, words, walk, t, first + t, chosen, out
            )
        several = tally[1] >> (t + 1) & ((1 << valid) - 1)
        if several and not problem.certain:
            least_paths(problem, problem.rows, None, None, None, words, walk, t, first + t, several, out)


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
def sweep_kernel(problem, given, rounds, rule, words, block, q, out, walk, masses):
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
        block.freed[:] = 0
        if walk is not None:
            walk.norms[:] = 0.0
        for h in range(steps - 1, -1, -1):
            _back_step(problem, given, first, valid, h, rule, block, q, words, walk)
            block = _turn(block)
        _tell(problem, block, first, valid, out)
        if walk is None:
            keep_faces(problem, words, reach, first, valid, out)
        else:
            for t in range(valid):
                for k in range(3):
                    out.variations[first + t, k] = walk.norms[k * BLOCK + t]
            if walk.is_wanted:
                _weigh_faces(problem, given, words, masses, walk, first, valid, block.freed[0], out)
            else:
                keep_faces(problem, words, reach, first, valid, out)


def sweep(
    problem: Problem,
    rounds: int,
    given: Given,
    rule: tuple[float, float],
    *,
    detail: bool,
    walks: bool = True,
) -> Swept:
    """Price the rounds of ``given``; in detail, with or without walks."""
    steps, states, actions = problem.shape
    block = Block(
        *(aligned_zeros(states * BLOCK) for _ in range(4)),
        *(aligned_zeros(BLOCK) for _ in range(2)),
        *(np.zeros(BLOCK // LANES, np.int64) for _ in range(3)),
        aligned_zeros(BLOCK),
        np.zeros(1, np.int64),
        aligned_zeros(BLOCK),
        aligned_zeros(actions * LANES),
    )
    # Every action was open before the first round.
    words = np.full(steps * states * actions, 1 << BLOCK, np.int64)
    panel = max(1, PANEL_ROWS // actions)
    out, walk = allocate(rounds, problem.shape, BLOCK, np.int64, detail=detail, walks=walks)
    masses = Masses(
        *(aligned_zeros(states * BLOCK) for _ in range(2)),
        np.zeros((2, states), np.int64),
        aligned_zeros(4 * BLOCK),
    )
    sweep_kernel(
        problem, given, rounds, rule, words, block, aligned_zeros(panel * actions * BLOCK), out, walk,
        masses if detail else None,
    )  # fmt: skip
    return out  # type: ignore[no-any-return]
