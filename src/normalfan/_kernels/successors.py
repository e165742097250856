"""Backward sweep over successor tables: values, faces and prices in one pass.

    Q(a) = loss[t,h,s,a] + E[V_{h+1}(s') | s, a]      V_h(s) = min_a Q(a)      A(a) = Q(a) - V_h(s)
    W_h(s) = min over a tied in round t-1 of  A(a) + E[W_{h+1}(s') | s, a]

Bit i + 1 of ``words[h,s,a]`` says that the action is tied in lane i, bit 0 in the round before the block.
A loss of inf says that the action is not allowed; where none of those tied in round t-1 is, all others count.
Rounds with a near-tie are marked ``near`` and read again. Layout and reasons: docs/details/kernels.md.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.buffers import Problem, Swept, aligned_zeros, allocate
from normalfan._kernels.compiling import inlined, inner, kernel
from normalfan._kernels.forward import keep_faces, walk_block
from normalfan._kernels.lanes import (
    LANES,
    absolute,
    any_bit,
    at_most,
    bits_of,
    broadcast,
    columns,
    fma,
    gather,
    item,
    load,
    mask_of,
    maximum,
    minimum,
    overlay,
    prefetch_items,
    select,
    store,
    zero_lanes,
)

ALL = (1 << LANES) - 1
WORD = np.uint16  # of the rounds of a block, and of the one before it
BLOCKS = 7  # blocks that share a forward pass: 56 rounds and the one before fit a signed word
AHEAD = 10  # successors to ask for in advance; their values are scattered over the third cache


@inlined
def read_losses(address, lane_stride, action_stride, last, actions, scratch):
    """Copy the losses of one state to scratch, one row of lanes an action."""
    a = 0
    if action_stride == 8 and last == LANES - 1:
        while a + 4 <= actions:
            l0, l1, l2, l3 = columns(address + a * 8, lane_stride)
            store(scratch, a * LANES, l0)
            store(scratch, (a + 1) * LANES, l1)
            store(scratch, (a + 2) * LANES, l2)
            store(scratch, (a + 3) * LANES, l3)
            a += 4
    while a < actions:
        store(scratch, a * LANES, gather(address + a * action_stride, lane_stride, last))
        a += 1


@inlined
def _expect(values, ahead, row, actions, indptr, indices, weights, scratch):
    """E[V' | row + a] and E[W' | row + a] of every action, to rows a and A + a of scratch."""
    final = len(indices) - 1
    for a in range(actions):
        v = w = zero_lanes()
        for p in range(item(indptr, row + a), item(indptr, row + a + 1)):
            soon = item(indices, min(p + AHEAD, final))
            prefetch_items(values, ahead + soon * 2 * LANES)
            weight = broadcast(item(weights, p))
            place = ahead + item(indices, p) * 2 * LANES
            v = fma(weight, load(values, place), v)
            w = fma(weight, load(values, place + LANES), w)
        store(scratch, a * LANES, v)
        store(scratch, (actions + a) * LANES, w)


@inlined
def _onward(part, values, ahead, row, a, actions, indices, weights, scratch):
    """E[V' | row + a] (part 0) or E[W' | row + a] (part 1)."""
    if weights is None:
        onward = load(values, ahead + item(indices, row + a) * 2 * LANES + part * LANES)
    else:
        onward = load(scratch, (part * actions + a) * LANES)
    return onward


@inner
def _examine(actions, upper, v, scratch):
    """What the evidence at a state shows: (lanes with a doubtful advantage, lanes where all are finite)."""
    zero = zero_lanes()
    doubtful = unbounded = zero
    for a in range(actions):
        d = load(scratch, a * LANES) - v
        unbounded = fma(d, zero, unbounded)
        doubtful = maximum(select(at_most(d, upper), d, zero), doubtful)
    return ~bits_of(at_most(doubtful, zero)), bits_of(at_most(unbounded, zero))


@inner
def examine_infinite(address, strides, last, actions, found, start, stride, base, word, shift, words):
    """At a state where some advantage, ``found`` less ``base``, is not finite, three sets of lanes:

    all is finite but what is not allowed; nothing is allowed that was tied before; nothing is allowed at all.
    Where nothing is, every action counts as tied for the round that follows. Words are read from ``shift``.
    """
    zero = zero_lanes()
    infinite = broadcast(np.inf)
    unbounded = zero
    able = kept = np.int64(0)
    for a in range(actions):
        forbidden = at_most(infinite, gather(address + a * strides[3], strides[0], last))
        d = load(found, start + a * stride) - base
        unbounded = fma(select(forbidden, zero, d), zero, unbounded)
        allowed = ~bits_of(forbidden)
        able |= allowed
        kept |= allowed & np.int64(item(words, word + a)) >> shift
    closed = ~able & ALL
    for a in range(actions):
        words[np.uint64(word + a)] = np.int64(item(words, word + a)) | closed << (shift + 1)
    return bits_of(at_most(unbounded, zero)), able & ~kept & ALL, closed


@inner
def unexplained(address, strides, last, actions, row, word, shift, words, twins):
    """The lanes (bit i + shift) in which two tied actions differ in loss or successors: maybe rounding."""
    seen = np.int64(0)
    several = np.int64(0)
    for a in range(actions):
        tied = np.int64(item(words, word + a)) >> shift
        b = np.int64(item(twins, row + a))
        if b < a:
            mine = gather(address + a * strides[3], strides[0], last)
            first = gather(address + b * strides[3], strides[0], last)
            same = bits_of(at_most(mine, first)) & bits_of(at_most(first, mine))
            tied &= ~(same & np.int64(item(words, word + b)) >> shift)
        several |= seen & tied
        seen |= tied
    return several


@inner
def _hold_freely(free, w, row, ahead, actions, v, indices, weights, values, scratch):
    """W, where in the lanes ``free`` every action may hold the state."""
    infinite = broadcast(np.inf)
    for a in range(actions):
        held = _onward(1, values, ahead, row, a, actions, indices, weights, scratch)
        w = minimum(select(mask_of(free), load(scratch, a * LANES) - v + held, infinite), w)
    return w


@inner
def _record(word, free, row, ahead, actions, v, indices, weights, words, values, scratch, walk):
    """What the walks need of one state: the action that holds it, what it pays, the least gap."""
    zero = zero_lanes()
    infinite = broadcast(np.inf)
    w = least = infinite
    choice = paid = zero
    for a in range(actions):
        d = load(scratch, a * LANES) - v
        held = _onward(1, values, ahead, row, a, actions, indices, weights, scratch)
        cost = select(mask_of(np.int64(item(words, word + a)) | free), d + held, infinite)
        keep = at_most(w, cost)
        choice = select(keep, choice, broadcast(float(a)))
        paid = select(keep, paid, d)
        least = minimum(select(at_most(d, zero), infinite, d), least)
        w = minimum(cost, w)
    place = word // actions * LANES
    store(walk.pick, place, choice)
    store(walk.pay, place, paid)
    store(walk.gap, place, least)


@inner
def _back_step(
    problem, indptr, indices, weights, address, strides, last, h, here, ahead, word_base, earlier, rule,
    scale, words, values, scratch, walk,
):  # fmt: skip
    """One step of the recursion for one block; returns (max |V|; doubtful, finite, closed lanes).

    ``here`` and ``ahead`` are offsets of layers of values; ``earlier`` leads to the word of the block before.
    """
    actions = problem.shape[2]
    zero = zero_lanes()
    infinite = broadcast(np.inf)
    slope = broadcast(rule[1])
    floor = fma(slope, scale, broadcast(rule[0]))
    whole = strides[3] == 8 and last == LANES - 1
    largest = zero
    near = np.int64(0)
    finite = np.int64(-1)
    closed = np.int64(0)
    idx, twins = problem.idx, problem.twins
    for j in range(problem.ptr[h], problem.ptr[h + 1]):
        s = np.int64(item(idx, j))
        row = h * problem.per_step + s * actions
        word = word_base + s * actions
        place = address + s * strides[2]
        if weights is not None:
            _expect(values, ahead, row, actions, indptr, indices, weights, scratch)
        v = infinite
        a = 0
        if whole:
            while a + 4 <= actions:
                l0, l1, l2, l3 = columns(place, strides[0])
                q0 = l0 + _onward(0, values, ahead, row, a, actions, indices, weights, scratch)
                q1 = l1 + _onward(0, values, ahead, row, a + 1, actions, indices, weights, scratch)
                q2 = l2 + _onward(0, values, ahead, row, a + 2, actions, indices, weights, scratch)
                q3 = l3 + _onward(0, values, ahead, row, a + 3, actions, indices, weights, scratch)
                store(scratch, a * LANES, q0)
                store(scratch, (a + 1) * LANES, q1)
                store(scratch, (a + 2) * LANES, q2)
                store(scratch, (a + 3) * LANES, q3)
                v = minimum(minimum(q0, q1), minimum(minimum(q2, q3), v))
                a += 4
                place += 32
        while a < actions:
            losses = gather(place, strides[0], last)
            q = losses + _onward(0, values, ahead, row, a, actions, indices, weights, scratch)
            store(scratch, a * LANES, q)
            v = minimum(q, v)
            a += 1
            place += strides[3]
        size = absolute(v)
        upper = fma(size, slope, floor)
        w = infinite
        evidence = zero
        seen = np.int64(0)
        several = np.int64(0)
        for a in range(actions):
            d = load(scratch, a * LANES) - v
            close = at_most(d, upper)
            # Bits are left by what is close but not zero, and by what is not finite (0 * d is nan).
            evidence = overlay(evidence, select(close, d, d * zero))
            before = np.int64(item(words, word + a + earlier)) >> LANES & 1
            now = before | bits_of(close) << 1
            words[np.uint64(word + a)] = now  # unsigned: numba need not look for a negative index
            several |= seen & now
            seen |= now
            held = _onward(1, values, ahead, row, a, actions, indices, weights, scratch)
            w = minimum(select(mask_of(now), d + held, infinite), w)
        place = address + s * strides[2]
        if several > 1:  # bit 0 is the round before
            near |= unexplained(place, strides, last, actions, row, word, 1, words, twins)
        free = np.int64(0)
        if any_bit(evidence):
            doubtful, bounded = _examine(actions, upper, v, scratch)
            near |= doubtful
            if bounded != ALL:
                bounded, free, shut = examine_infinite(
                    place, strides, last, actions, scratch, 0, LANES, v, word, 0, words
                )
                finite &= bounded
                closed |= shut
                w = _hold_freely(free, w, row, ahead, actions, v, indices, weights, values, scratch)
                nothing = mask_of(shut)
                v, w, size = select(nothing, zero, v), select(nothing, zero, w), select(nothing, zero, size)
        largest = maximum(size, largest)
        if walk is not None:
            _record(word, free, row, ahead, actions, v, indices, weights, words, values, scratch, walk)
        store(values, here + s * 2 * LANES, v)
        store(values, here + s * 2 * LANES + LANES, w)
    return largest, near, finite, closed


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


@kernel
def sweep_kernel(problem, address, strides, rounds, rule, words, faces, values, scratch, out, walk):
    """Sweep ``rounds`` rounds, whose losses ``address`` and ``strides`` (bytes) locate.

    ``words`` has H*S*A for each block of a forward pass; ``faces`` is None when a pass has one block,
    ``walk`` without detail.
    """
    steps, states, actions = problem.shape
    layer = states * 2 * LANES
    size = steps * states * actions
    blocks = len(words) // size
    reach = np.zeros((2, states), np.int64)
    for start in range(0, rounds, blocks * LANES):
        stop = min(start + blocks * LANES, rounds)
        for first in range(start, stop, LANES):
            valid = min(LANES, stop - first)
            block = (first - start) // LANES
            # The block before the first one of this pass is the last one of the pass before.
            earlier = -size if block > 0 else (blocks - 1) * size
            scale = zero_lanes()
            doubtful = np.int64(0)
            bounded = np.int64(-1)
            closed = np.int64(0)
            for h in range(steps - 1, -1, -1):
                here = (h & 1) * layer
                ahead = 2 * layer if h + 1 == steps else layer - here
                largest, doubtfully, boundedly, shut = _back_step(
                    problem, problem.indptr, problem.indices, problem.weights,
                    address + first * strides[0] + h * strides[1], strides, valid - 1, h, here, ahead,
                    block * size + h * states * actions, earlier, rule, scale, words, values, scratch, walk,
                )  # fmt: skip
                scale = scale + largest
                doubtful |= doubtfully
                bounded &= boundedly
                closed |= shut
            _start_mean(problem, values, 0, out.values, first, valid, scratch)
            _start_mean(problem, values, LANES, out.prices, first, valid, scratch)
            store(scratch, 0, scale)
            for i in range(valid):
                out.near[first + i] = (doubtful >> i) & 1 == 1
                out.finite[first + i] = (bounded >> i) & 1 == 1
                out.closed[first + i] = (closed >> i) & 1 == 1
                out.sizes[first + i] = scratch[i]
        if faces is None:
            keep_faces(problem, words, reach, start, stop - start, out)
        else:
            _side_by_side(words, size, (stop - start + LANES - 1) // LANES, faces)
            keep_faces(problem, faces, reach, start, stop - start, out)
        if walk is not None:
            walk_block(problem, words, walk, start, stop - start, LANES, out)


def sweep(problem: Problem, losses: np.ndarray, rule: tuple[float, float], detail: bool) -> Swept:
    """Price the rounds ``losses`` [N,H,S,A], any strides; ``rule``: (floor, slope) of a near-tie."""
    rounds, steps, states, actions = losses.shape
    out, walk = allocate(rounds, steps, states, LANES, detail)
    size = steps * states * actions
    # Walks look at one block at a time, and no pass needs more blocks than there are.
    wide = problem.weights is not None and not detail
    blocks = min(BLOCKS, -(-rounds // LANES)) if wide else 1
    sweep_kernel(
        problem, losses.ctypes.data, losses.strides, rounds, rule,
        # Every action was open before the first round.
        np.full(blocks * size, 1 << LANES, WORD), np.empty(size, np.int64) if wide else None,
        aligned_zeros(3 * states * 2 * LANES), aligned_zeros(2 * actions * LANES), out, walk,
    )  # fmt: skip
    return out
