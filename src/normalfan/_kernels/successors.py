"""Backward sweep over successor tables: values, faces and prices in one pass.

    Q(a) = loss[t,h,s,a] + E[V_{h+1}(s') | s, a]      V_h(s) = min_a Q(a)      A(a) = Q(a) - V_h(s)
    W_h(s) = min over a tied in round t-1 of  A(a) + E[W_{h+1}(s') | s, a]

Bit i + 1 of ``words[h,s,a]`` says that the action is tied in lane i, bit 0 in the round before the block.
Rounds with a near-tie are marked ``near`` and read again. Layout and reasons: docs/details/kernels.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalfan._kernels.buffers import States, Swept, aligned_zeros, allocate, frozen, swept
from normalfan._kernels.compiling import inlined, inner, kernel
from normalfan._kernels.faces import PLANES, face_facts, keep_faces
from normalfan._kernels.forward import walk_block
from normalfan._kernels.lanes import (
    absolute,
    any_bit,
    at_most,
    bits_at_most,
    broadcast,
    fma,
    lane_count,
    lanes_of,
    mask_of,
    maximum,
    minimum,
    overlay,
    push_bits,
    select,
)
from normalfan._kernels.memory import columns, gather, item, load, prefetch_items, put, store

WORD = np.uint16
LANES = 8  # half the bits of a word: one is needed for the round before the block
BLOCKS = 7  # blocks that share a forward pass: 56 rounds and the one before fit a signed word
AHEAD = 10  # successors to ask for in advance; their values are scattered over the third cache


class Tables(NamedTuple):
    """Successors of every (step, state, action); K is 1 (the same at all steps) or H."""

    twins: np.ndarray  # int32 [K,S,A] the first action of the state with the same successors
    indices: np.ndarray  # int32 [K,S,A] successors, or int32 [nnz] beside indptr
    indptr: np.ndarray | None = None  # int64 [K, S*A + 1] offsets into indices and weights
    weights: np.ndarray | None = None  # float64 [nnz], all positive


@inlined
def read_losses(address, lane_stride, action_stride, last, actions, scratch, zero):
    """Copy the losses of one state to scratch, one row of lanes an action."""
    count = lane_count(zero)
    a = 0
    if action_stride == 8 and last == count - 1:
        while a + 4 <= actions:
            l0, l1, l2, l3 = columns(address + a * 8, lane_stride, zero)
            store(scratch, a * count, l0)
            store(scratch, (a + 1) * count, l1)
            store(scratch, (a + 2) * count, l2)
            store(scratch, (a + 3) * count, l3)
            a += 4
    while a < actions:
        store(scratch, a * count, gather(address + a * action_stride, lane_stride, last, zero))
        a += 1


@inlined
def _expect(values, ahead, row, actions, indptr, indices, weights, scratch, zero):
    """E[V' | row + a] and E[W' | row + a] of every action, to rows a and A + a of scratch."""
    count = lane_count(zero)
    final = len(indices) - 1
    for a in range(actions):
        v = zero
        w = zero
        for p in range(item(indptr, row + a), item(indptr, row + a + 1)):
            soon = item(indices, min(p + AHEAD, final))
            prefetch_items(values, ahead + soon * 2 * count, zero)
            weight = broadcast(item(weights, p), zero)
            place = ahead + item(indices, p) * 2 * count
            v = fma(weight, load(values, place, zero), v)
            w = fma(weight, load(values, place + count, zero), w)
        store(scratch, a * count, v)
        store(scratch, (actions + a) * count, w)


@inlined
def _onward(part, values, ahead, row, a, actions, indices, weights, scratch, zero):
    """E[V' | row + a] (part 0) or E[W' | row + a] (part 1)."""
    count = lane_count(zero)
    if weights is None:
        lanes = load(values, ahead + item(indices, row + a) * 2 * count + part * count, zero)
    else:
        lanes = load(scratch, (part * actions + a) * count, zero)
    return lanes


@inner
def _examine(actions, upper, v, scratch, zero):
    """What the evidence at a state shows: (lanes with a doubtful advantage, lanes where all are finite)."""
    count = lane_count(zero)
    doubtful = zero
    unbounded = zero
    for a in range(actions):
        d = load(scratch, a * count, zero) - v
        unbounded = fma(d, zero, unbounded)
        doubtful = maximum(select(at_most(d, upper), d, zero), doubtful)
    return ~bits_at_most(doubtful, zero), bits_at_most(unbounded, zero)


@inner
def unexplained(address, strides, last, actions, row, word, shift, words, twins, zero):
    """The lanes (bit i + shift) in which two tied actions differ in loss or successors: maybe rounding."""
    seen = np.int64(0)
    several = np.int64(0)
    for a in range(actions):
        tied = np.int64(item(words, word + a)) >> shift
        b = np.int64(item(twins, row + a))
        if b < a:
            mine = gather(address + a * strides[3], strides[0], last, zero)
            first = gather(address + b * strides[3], strides[0], last, zero)
            same = bits_at_most(mine, first) & bits_at_most(first, mine)
            tied &= ~(same & np.int64(item(words, word + b)) >> shift)
        several |= seen & tied
        seen |= tied
    return several


@inner
def _record(word, row, ahead, actions, v, indices, weights, words, values, scratch, walk, place):
    """What the walks need of one state: the action that holds it, what it pays, the least gap."""
    zero = lanes_of(words[0])
    count = lane_count(zero)
    infinite = broadcast(np.inf, zero)
    w = infinite
    choice = zero
    paid = zero
    least = infinite
    for a in range(actions):
        d = load(scratch, a * count, zero) - v
        held = _onward(1, values, ahead, row, a, actions, indices, weights, scratch, zero)
        cost = select(mask_of(item(words, word + a), zero), d + held, infinite)
        keep = at_most(w, cost)
        choice = select(keep, choice, broadcast(float(a), zero))
        paid = select(keep, paid, d)
        least = minimum(select(at_most(d, zero), infinite, d), least)
        w = minimum(cost, w)
    store(walk.pick, place, choice)
    store(walk.pay, place, paid)
    store(walk.gap, place, least)


@inner
def _back_step(
    address, strides, last, idx, begin, end, base, twin_base, here, ahead, word_base, earlier, actions,
    indptr, indices, weights, twins, rule, scale, words, values, scratch, walk,
):  # fmt: skip
    """One step of the recursion for one block; returns (max |V|, doubtful lanes, finite lanes).

    ``here`` and ``ahead`` are offsets of layers of values; ``earlier`` leads to the word of the block before.
    """
    zero = lanes_of(words[0])
    count = lane_count(zero)
    infinite = broadcast(np.inf, zero)
    slope = broadcast(rule[1], zero)
    floor = fma(slope, scale, broadcast(rule[0], zero))
    whole = strides[3] == 8 and last == count - 1
    largest = zero
    near = np.int64(0)
    finite = np.int64(-1)
    for j in range(begin, end):
        s = np.int64(item(idx, j))
        row = base + s * actions
        word = word_base + s * actions
        place = address + s * strides[2]
        if weights is not None:
            _expect(values, ahead, row, actions, indptr, indices, weights, scratch, zero)
        v = infinite
        a = 0
        if whole:
            while a + 4 <= actions:
                l0, l1, l2, l3 = columns(place, strides[0], zero)
                q0 = l0 + _onward(0, values, ahead, row, a, actions, indices, weights, scratch, zero)
                q1 = l1 + _onward(0, values, ahead, row, a + 1, actions, indices, weights, scratch, zero)
                q2 = l2 + _onward(0, values, ahead, row, a + 2, actions, indices, weights, scratch, zero)
                q3 = l3 + _onward(0, values, ahead, row, a + 3, actions, indices, weights, scratch, zero)
                store(scratch, a * count, q0)
                store(scratch, (a + 1) * count, q1)
                store(scratch, (a + 2) * count, q2)
                store(scratch, (a + 3) * count, q3)
                v = minimum(minimum(q0, q1), minimum(minimum(q2, q3), v))
                a += 4
                place += 32
        while a < actions:
            losses = gather(place, strides[0], last, zero)
            q = losses + _onward(0, values, ahead, row, a, actions, indices, weights, scratch, zero)
            store(scratch, a * count, q)
            v = minimum(q, v)
            a += 1
            place += strides[3]
        size = absolute(v)
        largest = maximum(size, largest)
        upper = fma(size, slope, floor)
        w = infinite
        evidence = lanes_of(np.uint8(0))
        seen = np.int64(0)
        several = np.int64(0)
        for a in range(actions):
            d = load(scratch, a * count, zero) - v
            close = at_most(d, upper)
            # Bits are left by what is close but not zero, and by what is not finite (0 * d is nan).
            evidence = overlay(evidence, select(close, d, d * zero))
            before = np.int64(item(words, word + a + earlier)) >> count & 1
            now = push_bits(close, before)
            put(words, word + a, now)
            several |= seen & now
            seen |= now
            held = _onward(1, values, ahead, row, a, actions, indices, weights, scratch, zero)
            w = minimum(select(mask_of(now, zero), d + held, infinite), w)
        if any_bit(evidence):
            doubtful, bounded = _examine(actions, upper, v, scratch, zero)
            near |= doubtful
            finite &= bounded
        if several > 1:  # bit 0 is the round before
            near |= unexplained(
                address + s * strides[2], strides, last, actions, twin_base + s * actions, word, 1, words,
                twins, zero,
            )  # fmt: skip
        if walk is not None:
            _record(
                word, row, ahead, actions, v, indices, weights, words, values, scratch, walk,
                word // actions * count,
            )  # fmt: skip
        store(values, here + s * 2 * count, v)
        store(values, here + s * 2 * count + count, w)
    return largest, near, finite


@inner
def _start_mean(values, layer, ptr, idx, initial, out, first, rounds, scratch, zero):
    """out[first:] = sum over the start states of rho(s) * values(s), ascending."""
    count = lane_count(zero)
    total = zero
    for j in range(ptr[0], ptr[1]):
        s = np.int64(idx[j])
        if initial[s] > 0.0:
            lanes = load(values, layer + s * 2 * count, zero)
            total = fma(broadcast(initial[s], zero), lanes, total)
    store(scratch, 0, total)
    for i in range(rounds):
        out[first + i] = scratch[i]


@inner
def _side_by_side(words, size, blocks, count, faces):
    """Put the words of several blocks into one: bit 0, then the lanes of block after block."""
    for k in range(size):
        word = np.int64(words[k])
        for b in range(1, blocks):
            word |= np.int64(words[b * size + k]) >> 1 << (b * count + 1)
        faces[k] = word


@kernel
def sweep_kernel(
    address, strides, rounds, shape, per_step, indptr, indices, weights, twins, ptr, idx, initial, rule,
    words, faces, values, scratch, reach, out, walk, certain, detail,
):  # fmt: skip
    """Sweep ``rounds`` rounds, whose losses ``address`` and ``strides`` (bytes) locate.

    ``per_step``: table rows from one step to the next, 0 if all share one. ``words``, of which each block of
    a forward pass has H*S*A, sets the number of lanes; ``faces`` is None when a pass has one block, ``walk``
    and ``detail`` without detail.
    """
    steps, states, actions = shape
    value, price, crossed, vertex, dimension, near, finite, size_of_values = out
    twins_per_step = 0 if len(twins) == shape[1] * shape[2] else shape[1] * shape[2]
    zero = lanes_of(words[0])
    count = lane_count(zero)
    layer = states * 2 * count
    size = steps * states * actions
    blocks = len(words) // size
    planes = np.zeros(PLANES, np.int64)
    visit = 1
    for start in range(0, rounds, blocks * count):
        stop = min(start + blocks * count, rounds)
        for first in range(start, stop, count):
            valid = min(count, stop - first)
            block = (first - start) // count
            # The block before the first one of this pass is the last one of the pass before.
            earlier = -size if block > 0 else (blocks - 1) * size
            scale = zero
            doubtful = np.int64(0)
            bounded = np.int64(-1)
            for h in range(steps - 1, -1, -1):
                here = (h & 1) * layer
                ahead = 2 * layer if h + 1 == steps else layer - here
                largest, doubtfully, boundedly = _back_step(
                    address + first * strides[0] + h * strides[1], strides, valid - 1,
                    idx, ptr[h], ptr[h + 1], h * per_step, h * twins_per_step, here, ahead,
                    block * size + h * states * actions, earlier, actions, indptr, indices, weights,
                    twins, rule, scale, words, values, scratch, walk,
                )  # fmt: skip
                scale = scale + largest
                doubtful |= doubtfully
                bounded &= boundedly
            _start_mean(values, 0, ptr, idx, initial, value, first, valid, scratch, zero)
            _start_mean(values, count, ptr, idx, initial, price, first, valid, scratch, zero)
            store(scratch, 0, scale)
            for i in range(valid):
                near[first + i] = (doubtful >> i) & 1 == 1
                finite[first + i] = (bounded >> i) & 1 == 1
                size_of_values[first + i] = scratch[i]
        taken = (stop - start + count - 1) // count
        every = (1 << (taken * count + 1)) - 1
        if faces is None:
            changed, choices = keep_faces(
                words, reach, planes, ptr, idx, initial, shape, per_step, indptr, indices, None, every
            )
        else:
            _side_by_side(words, size, taken, count, faces)
            changed, choices = keep_faces(
                faces, reach, planes, ptr, idx, initial, shape, per_step, indptr, indices, None, every
            )
        face_facts(start, stop - start, changed, choices, planes, crossed, vertex, dimension)
        if detail is not None:
            visit = walk_block(
                start, stop - start, count, visit, shape, per_step,
                (indptr, indices, weights, None), ptr, idx, initial, words, walk, price, vertex,
                certain, detail,
            )  # fmt: skip


def sweep(
    losses: np.ndarray,
    tables: Tables,
    states: States,
    initial: np.ndarray,
    rule: tuple[float, float],
    certain: bool,
    detail: bool,
) -> Swept:
    """Price the rounds ``losses`` [N,H,S,A], any strides; ``rule``: (floor, slope) of a near-tie."""
    rounds, steps, n_states, n_actions = losses.shape
    sparse = tables.weights is not None
    kinds = len(tables.indptr) if sparse else len(tables.indices)
    out, walk, extra = allocate(rounds, steps, n_states, LANES, detail)
    size = steps * n_states * n_actions
    # Walks look at one block at a time, and no pass needs more blocks than there are.
    wide = sparse and not detail
    blocks = min(BLOCKS, -(-rounds // LANES)) if wide else 1
    sweep_kernel(
        losses.ctypes.data, losses.strides, rounds, (steps, n_states, n_actions),
        0 if kinds == 1 else n_states * n_actions + sparse,
        frozen(tables.indptr, np.int64) if sparse else None,
        frozen(tables.indices, np.int32),
        frozen(tables.weights, np.float64) if sparse else None,
        frozen(tables.twins, np.int32),
        frozen(states.ptr, np.int64), frozen(states.idx, np.int32), frozen(initial, np.float64),
        tuple(rule),
        # Every action was open before the first round.
        np.full(blocks * size, 1 << LANES, WORD), np.empty(size, np.int64) if wide else None,
        aligned_zeros(3 * n_states * 2 * LANES), aligned_zeros(2 * n_actions * LANES),
        np.zeros((2, n_states), np.int64), out, walk, certain, extra,
    )  # fmt: skip
    return swept(out, extra)
