"""Backward sweep over successor tables: values, faces and prices in one pass.

    Q(a) = loss[t,h,s,a] + E[V_{h+1}(s') | s, a]      V_h(s) = min_a Q(a)      A(a) = Q(a) - V_h(s)
    W_h(s) = min over a tied in round t-1 of  A(a) + E[W_{h+1}(s') | s, a]

Bit i + 1 of ``words[h,s,a]`` says that the action is tied in lane i, bit 0 in the round before the block.
A loss of inf says that the action is not allowed; where none of those tied in round t-1 is, all others count.
Rounds with a near-tie are marked ``near`` and read again. Layout and reasons: docs/details/kernels.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalfan._kernels.buffers import (
    ALL,
    ASKED_AHEAD,
    LANES,
    LINE,
    Problem,
    Swept,
    aligned_zeros,
    nothing_told,
    room_to_move,
    room_to_walk,
)
from normalfan._kernels.compiling import inlined, inner, kernel
from normalfan._kernels.evidence import examine, examine_infinite, unexplained
from normalfan._kernels.forward import keep_faces, weigh_faces
from normalfan._kernels.lanes import (
    absolute,
    any_bit,
    at_most,
    bits_of,
    broadcast,
    fma,
    mask_of,
    maximum,
    minimum,
    overlay,
    select,
    zero_lanes,
)
from normalfan._kernels.losses import (
    Factors,
    Given,
    add_move,
    ask_for_losses,
    form_block,
    four_losses,
    one_loss,
    read_losses,
    whole_loss,
)
from normalfan._kernels.memory import item, load, prefetch_at, prefetch_items, store
from normalfan._kernels.moves import read_moves

WORD = np.uint16  # of the rounds of a block, and of the one before it
BLOCKS = 7  # blocks that share a forward pass: 56 rounds and the one before fit a signed word
AHEAD = ASKED_AHEAD // 2  # successors whose values are asked for in advance
SOON = 6  # states from now on whose losses are asked for
MOST_STATES = 0.75  # if policies come to so many, moves are added up there as they are priced
NEAR_BYTES = 2**22  # two such blocks of losses fit the last cache
NEAR, SOUND, CLOSED, FREED = 0, 1, 2, 3  # sets of lanes: doubtful; finite; nothing allowed; freed of what was


class Room(NamedTuple):
    """Work space of a sweep."""

    words: np.ndarray  # WORD [blocks of a forward pass * H*S*A]
    values: np.ndarray  # float64 [3*S*2*LANES] V and W of this step, the next, and zeros after the last
    scratch: np.ndarray  # float64 [3*A*LANES] losses of a state, its Q, and E[W']
    flags: np.ndarray  # int64 [4] of the block


@inlined
def _expect(values, ahead, row, a, actions, indptr, indices, weights, scratch):
    """E[V' | row], and E[W' | row] to scratch."""
    if weights is None:
        place = ahead + item(indices, row) * 2 * LANES
        v = load(values, place)
    else:
        v = w = zero_lanes()
        for p in range(item(indptr, row), item(indptr, row + 1)):
            soon = ahead + item(indices, p + AHEAD) * 2 * LANES
            prefetch_items(values, soon)
            prefetch_items(values, soon + LANES)
            weight = broadcast(item(weights, p))
            place = ahead + item(indices, p) * 2 * LANES
            v = fma(weight, load(values, place), v)
            w = fma(weight, load(values, place + LANES), w)
        store(scratch, (2 * actions + a) * LANES, w)
    return v


@inlined
def _expect_held(values, ahead, row, a, actions, indices, weights, scratch):
    """E[W' | row], which `_expect` found."""
    if weights is None:
        w = load(values, ahead + item(indices, row) * 2 * LANES + LANES)
    else:
        w = load(scratch, (2 * actions + a) * LANES)
    return w


@inner
def _hold_freely(free, w, row, ahead, actions, v, indices, weights, room):
    """W, where in the lanes ``free`` every action may hold the state."""
    infinite = broadcast(np.inf)
    for a in range(actions):
        held = _expect_held(room.values, ahead, row + a, a, actions, indices, weights, room.scratch)
        cost = load(room.scratch, (actions + a) * LANES) - v + held
        w = minimum(select(mask_of(free), cost, infinite), w)
    return w


@inner
def _record(free, row, ahead, cell, place, actions, v, indices, weights, room, word, walk):
    """What the walks need of one state, where in some lanes something is not allowed."""
    infinite = broadcast(np.inf)
    w = least = infinite
    paid = zero_lanes()
    for a in range(actions):
        d = load(room.scratch, (actions + a) * LANES) - v
        held = _expect_held(room.values, ahead, row + a, a, actions, indices, weights, room.scratch)
        cost = select(mask_of(np.int64(item(room.words, word + a)) | free), d + held, infinite)
        keep = at_most(w, cost)
        walk.better[np.uint64(cell + a)] = ~bits_of(keep)
        paid = select(keep, paid, d)
        least = minimum(select(at_most(d, zero_lanes()), infinite, d), least)
        w = minimum(cost, w)
    store(walk.pay, place, paid)
    store(walk.gap, place, least)


@inlined
def _ask_ahead(problem, given, first, rounds, h, j, actions):
    """Ask for the losses of the state that comes SOON after the j-th of all steps, here or one step back."""
    soon, back = j + SOON, h
    if soon >= problem.ptr[h + 1]:
        back = h - 1
        soon += problem.ptr[max(back, 0)] - problem.ptr[h + 1]
    if back >= 0 and soon < problem.ptr[back + 1]:
        ask_for_losses(given, first, rounds, back, item(problem.idx, soon), actions)


@inlined
def _ask_for_next(problem, given, first, j):
    """Ask for a part of the next block, whose losses lie in one row a round: a part for each state priced."""
    steps, states, actions = problem.shape
    lines, parts = steps * states * actions * given.size // LINE, len(problem.idx)
    for line in range(j * lines // parts, (j + 1) * lines // parts):
        for i in range(LANES):
            prefetch_at(given.address + (first + i) * given.strides[0] + line * LINE)


@inner
def _back_steps(
    problem, indptr, indices, weights, given, first, last, block, earlier, rule, room, moves, walk
):
    """The recursion for one block; returns the sum of max |V| over the steps.

    ``block``: where its words begin; ``earlier`` leads to the word of the block before. Ties are in doubt up
    to a floor and what |V| adds. One call takes all steps: to hold and let go of arrays costs time.
    """
    steps, states, actions = problem.shape
    idx, values, scratch, words = problem.idx, room.values, room.scratch, room.words
    layer = states * 2 * LANES
    zero = zero_lanes()
    infinite = broadcast(np.inf)
    slope = broadcast(rule[1] + rule[2])
    given_floor, met_slope, rounding = broadcast(rule[0]), broadcast(rule[1]), broadcast(rule[2])
    whole = given.strides[3] == given.size and last == LANES - 1
    scale = met = largest = zero
    if moves is not None:
        l1, l2, linf = load(moves.norms, 0), load(moves.norms, LANES), load(moves.norms, 2 * LANES)
    for h in range(steps - 1, -1, -1):
        here = (h & 1) * layer
        ahead = 2 * layer if h + 1 == steps else layer - here
        floor = fma(met, met_slope, fma(scale, rounding, given_floor))
        largest_ahead, largest = largest, zero
        for j in range(problem.ptr[h], problem.ptr[h + 1]):
            s = np.int64(item(idx, j))
            cell = (h * states + s) * actions
            row = h * problem.per_step + s * actions
            word = block + cell
            if moves is None or moves.near == 0:
                _ask_ahead(problem, given, first, last + 1, h, j, actions)
            elif first + 2 * LANES <= moves.near:
                _ask_for_next(problem, given, first + LANES, j)
            v = infinite
            a = 0
            if whole:
                while a + 4 <= actions:
                    x0, x1, x2, x3 = four_losses(given, first, h, s, a)
                    q0 = x0 + _expect(values, ahead, row + a, a, actions, indptr, indices, weights, scratch)
                    q1 = x1 + _expect(
                        values, ahead, row + a + 1, a + 1, actions, indptr, indices, weights, scratch
                    )
                    q2 = x2 + _expect(
                        values, ahead, row + a + 2, a + 2, actions, indptr, indices, weights, scratch
                    )
                    q3 = x3 + _expect(
                        values, ahead, row + a + 3, a + 3, actions, indptr, indices, weights, scratch
                    )
                    store(scratch, (actions + a) * LANES, q0)
                    store(scratch, (actions + a + 1) * LANES, q1)
                    store(scratch, (actions + a + 2) * LANES, q2)
                    store(scratch, (actions + a + 3) * LANES, q3)
                    if moves is not None:
                        if moves.are_added:
                            l1, l2, linf = add_move(given, first, h, s, a, x0, l1, l2, linf)
                            l1, l2, linf = add_move(given, first, h, s, a + 1, x1, l1, l2, linf)
                            l1, l2, linf = add_move(given, first, h, s, a + 2, x2, l1, l2, linf)
                            l1, l2, linf = add_move(given, first, h, s, a + 3, x3, l1, l2, linf)
                    v = minimum(minimum(q0, q1), minimum(minimum(q2, q3), v))
                    a += 4
                while a < actions:
                    loss = whole_loss(given, first, h, s, a)
                    q = loss + _expect(values, ahead, row + a, a, actions, indptr, indices, weights, scratch)
                    store(scratch, (actions + a) * LANES, q)
                    if moves is not None:
                        if moves.are_added:
                            l1, l2, linf = add_move(given, first, h, s, a, loss, l1, l2, linf)
                    v = minimum(q, v)
                    a += 1
            while a < actions:
                loss = one_loss(given, first, last, h, s, a)
                q = loss + _expect(values, ahead, row + a, a, actions, indptr, indices, weights, scratch)
                store(scratch, (actions + a) * LANES, q)
                if moves is not None:
                    if moves.are_added:
                        l1, l2, linf = add_move(given, first, h, s, a, loss, l1, l2, linf)
                v = minimum(q, v)
                a += 1
            size = absolute(v)
            upper = fma(size, slope, floor)
            w = least = infinite
            paid = zero
            evidence = zero
            seen = np.int64(0)
            several = np.int64(0)
            for a in range(actions):
                d = load(scratch, (actions + a) * LANES) - v
                close = at_most(d, upper)
                # Bits are left by what is close but not zero, and by what is not finite (0 * d is nan).
                evidence = overlay(evidence, select(close, d, d * zero))
                before = np.int64(item(words, word + a + earlier)) >> LANES & 1
                now = before | bits_of(close) << 1
                words[np.uint64(word + a)] = now  # unsigned: numba need not look for a negative index
                several |= seen & now
                seen |= now
                held = _expect_held(values, ahead, row + a, a, actions, indices, weights, scratch)
                cost = select(mask_of(now), d + held, infinite)
                if walk is not None:
                    keep = at_most(w, cost)
                    walk.better[np.uint64(cell + a)] = ~bits_of(keep)
                    paid = select(keep, paid, d)
                    least = minimum(select(close, infinite, d), least)
                w = minimum(cost, w)
            if walk is not None:
                place = h * walk.stride + s * walk.width
                store(walk.pay, place, paid)
                store(walk.gap, place, least)
            if several > 1:  # bit 0 is the round before
                read_losses(given, first, last, h, s, actions, scratch)
                room.flags[NEAR] |= unexplained(actions, scratch, row, word, 1, words, problem.twins)
            if any_bit(evidence):
                doubtful, bounded = examine(actions, upper, v, scratch)
                room.flags[NEAR] |= doubtful
                if bounded != ALL:
                    read_losses(given, first, last, h, s, actions, scratch)
                    bounded, free, shut = examine_infinite(
                        actions, scratch, scratch, actions * LANES, LANES, v, word, 0, words
                    )
                    room.flags[SOUND] &= bounded
                    room.flags[CLOSED] |= shut
                    room.flags[FREED] |= free
                    w = _hold_freely(free, w, row, ahead, actions, v, indices, weights, room)
                    nothing = mask_of(shut)
                    v, w, size = (
                        select(nothing, zero, v),
                        select(nothing, zero, w),
                        select(nothing, zero, size),
                    )
                    if walk is not None:
                        place = h * walk.stride + s * walk.width
                        _record(free, row, ahead, cell, place, actions, v, indices, weights, room, word, walk)
            largest = maximum(size, largest)
            store(values, here + s * 2 * LANES, v)
            store(values, here + s * 2 * LANES + LANES, w)
        scale, met = scale + largest, maximum(largest + largest_ahead, met)
    if moves is not None:
        store(moves.norms, 0, l1)
        store(moves.norms, LANES, l2)
        store(moves.norms, 2 * LANES, linf)
    return scale


@inner
def _start_mean(problem, values, layer, out, first, rounds, scratch):
    """out[first:] = sum over the start states of rho(s) * values(s), ascending."""
    total = zero_lanes()
    for j in range(problem.ptr[0], problem.ptr[1]):
        s = np.int64(problem.idx[j])
        if problem.initial[s] > 0.0:
            total = fma(broadcast(problem.initial[s]), load(values, layer + s * 2 * LANES), total)
    store(scratch, 0, total)
    out[first : first + rounds] = scratch[:rounds]


@inner
def _side_by_side(words, size, blocks, faces):
    """Put the words of several blocks into one: bit 0, then the lanes of block after block."""
    for k in range(size):
        word = np.int64(words[k])
        for b in range(1, blocks):
            word |= np.int64(words[b * size + k]) >> 1 << (b * LANES + 1)
        faces[k] = word


@inner
def _back(problem, given, first, rounds, block, earlier, rule, room, out, moves, walk):
    """The backward sweep of one block of rounds, and what it tells of them."""
    room.flags[:] = 0
    room.flags[SOUND] = ALL
    if moves is not None:
        read_moves(problem, given, first, rounds, not moves.are_added, moves.norms, out)
    scale = _back_steps(
        problem, problem.indptr, problem.indices, problem.weights, given, first, rounds - 1, block, earlier,
        rule, room, moves, walk,
    )  # fmt: skip
    if moves is not None:
        if moves.are_added:
            _tell_added(moves.norms, first, rounds, out)
    _start_mean(problem, room.values, 0, out.values, first, rounds, room.scratch)
    _start_mean(problem, room.values, LANES, out.prices, first, rounds, room.scratch)
    store(room.scratch, 0, scale)
    for i in range(rounds):
        out.near[first + i] = (room.flags[NEAR] >> i) & 1 == 1
        out.finite[first + i] = (room.flags[SOUND] >> i) & 1 == 1
        out.closed[first + i] = (room.flags[CLOSED] >> i) & 1 == 1
        out.sizes[first + i] = room.scratch[i]


@inner
def _tell_added(norms, first, rounds, out):
    """Add the moves that were added up while states were priced; nothing is left of them."""
    for i in range(rounds):
        moved = out.variations[first + i]
        moved[0] += norms[i]
        moved[1] += norms[LANES + i]
        moved[2] = max(moved[2], norms[2 * LANES + i])
    norms[:] = 0.0


@kernel
def price_kernel(problem, given, factors, rounds, rule, room, faces, out, moves):
    """Sweep ``rounds`` rounds for their prices and faces; ``faces`` is None if a pass has one block."""
    steps, states, actions = problem.shape
    size = steps * states * actions
    blocks = len(room.words) // size
    reach = np.zeros((2, states), np.int64)
    for start in range(0, rounds, blocks * LANES):
        stop = min(start + blocks * LANES, rounds)
        for first in range(start, stop, LANES):
            block = (first - start) // LANES
            # The block before the first one of this pass is the last one of the pass before.
            earlier = -size if block > 0 else (blocks - 1) * size
            valid = min(LANES, stop - first)
            if factors is not None:
                given = form_block(factors, problem, first, moves is not None)
            _back(problem, given, first, valid, block * size, earlier, rule, room, out, moves, None)
        if faces is None:
            keep_faces(problem, room.words, reach, start, stop - start, out)
        else:
            _side_by_side(room.words, size, (stop - start + LANES - 1) // LANES, faces)
            keep_faces(problem, faces, reach, start, stop - start, out)


@kernel
def walk_kernel(problem, given, factors, rounds, rule, room, out, moves, walk):
    """The same with walks: each block is walked while what its sweep left is near."""
    for first in range(0, rounds, LANES):
        valid = min(LANES, rounds - first)
        if factors is not None:
            given = form_block(factors, problem, first, moves is not None)
        _back(problem, given, first, valid, 0, 0, rule, room, out, moves, walk)
        weigh_faces(
            problem, None, problem.indptr, problem.indices, problem.weights, given, room.words, walk, first,
            valid, room.flags[FREED], out,
        )  # fmt: skip


def sweep(
    problem: Problem,
    rounds: int,
    given: Given,
    rule: tuple[float, float, float],
    *,
    walks: bool,
    moves: bool,
    factors: Factors | None = None,
) -> Swept:
    """Price the rounds of ``given`` or ``factors``, with walks and with moves if asked for.

    ``rule``: floor, slope and rounding of a near-tie.
    """
    steps, states, actions = problem.shape
    size = steps * states * actions
    out = nothing_told(rounds, steps, detail=walks or moves)
    adding = None
    if moves:
        are_added = len(problem.idx) >= MOST_STATES * steps * states
        is_row = given.strides[1:] == tuple(given.size * n for n in (states * actions, actions, 1))
        is_near = is_row and given.size * LANES * size <= NEAR_BYTES
        adding = room_to_move(are_added=are_added, near=rounds if is_near and not are_added else 0)
    walk = room_to_walk(rounds, problem.shape, LANES, np.uint8) if walks else None
    # Walks look at one block at a time, and no pass needs more blocks than there are.
    wide = problem.weights is not None and not walks and rounds > LANES
    blocks = min(BLOCKS, -(-rounds // LANES)) if wide else 1
    room = Room(
        np.full(blocks * size, 1 << LANES, WORD),  # every action was open before the first round
        aligned_zeros(3 * states * 2 * LANES),
        aligned_zeros(3 * actions * LANES),
        np.zeros(4, np.int64),
    )
    if walks:
        walk_kernel(problem, given, factors, rounds, rule, room, out, adding, walk)
    else:
        faces = np.empty(size, np.int64) if wide else None
        price_kernel(problem, given, factors, rounds, rule, room, faces, out, adding)
    return out
