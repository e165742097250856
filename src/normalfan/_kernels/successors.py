"""Backward sweep over successor tables: values, faces and prices in one pass.

For every round t and every step h = H-1, ..., 0, with V_H = W_H = 0 and G_H = 0,

    Q(a) = loss[t,h,s,a] + E[V_{h+1}(s') | s, a]          V_h(s) = min_a Q(a)
    tied(a) = Q(a) - V_h(s) <= absolute + relative * (|V_h(s)| + G_{h+1})
    A(a) = 0 where tied, Q(a) - V_h(s) elsewhere
    W_h(s) = min over a tied in round t-1 of  A(a) + E[W_{h+1}(s') | s, a]
    G_h = G_{h+1} + max_s |V_h(s)|

so that rho.V_0 is the optimal value of round t and rho.W_0 the price of staying on
the face of round t-1. The losses are read once and the second recursion adds
non-negative terms only: a plan that is still optimal costs exactly zero.

Layout. Rounds are processed in blocks, one round a lane (see ``lanes``). The value
buffer of a step holds, for each state, its V lanes and then its W lanes, so that a
successor is one short contiguous read. The tied sets are words of bits, and the
tied set of the previous round is simply the next lower bit: bit ``i + 1`` of
``words[h,s,a]`` belongs to lane i, bit 0 to the round before the block. Losses are
addressed by byte strides, whatever their layout. Only the listed states, those some
policy can reach, are visited. Nothing here depends on the number of lanes: each
lane sees the same operations in the same order, so chunked, threaded and
round-by-round calls agree to the bit.

A deterministic table is ``indices`` alone, row (h,s,a) naming its successor; a
sparse one adds row pointers and weights. Arguments that are None are pruned when
numba compiles, so one source gives four kernels: either table, with detail or not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalfan._kernels.buffers import States, Swept, aligned_zeros, allocate, frozen, swept
from normalfan._kernels.compiling import inlined, inner, kernel
from normalfan._kernels.lanes import (
    absolute,
    any_bit,
    at_most,
    bits_of,
    broadcast,
    columns,
    fma,
    gather,
    item,
    lane_count,
    lanes_of,
    load,
    mask_of,
    maximum,
    minimum,
    overlay,
    push_bits,
    put,
    select,
    store,
)
from normalfan._kernels.packed import PLANES, face_facts, keep_faces
from normalfan._kernels.walks import walk_block

#: Words of tied sets, by kind of table: half their bits are lanes.
DETERMINISTIC_WORD = np.uint32
SPARSE_WORD = np.uint16


class Tables(NamedTuple):
    """Successors of every (step, state, action); K is 1 (the same at all steps) or H."""

    indices: np.ndarray  # int32 [K,S,A] successors, or int32 [nnz] beside indptr
    indptr: np.ndarray | None = None  # int64 [K, S*A + 1] offsets into indices and weights
    weights: np.ndarray | None = None  # float64 [nnz], all positive


@inlined
def read_losses(place, strides, last, actions, scratch, zero):
    """The losses of one state to scratch, a row of lanes for each action."""
    count = lane_count(zero)
    a = 0
    if strides[3] == 8 and last == count - 1:
        while a + 4 <= actions:
            l0, l1, l2, l3 = columns(place + a * 8, strides[0], zero)
            store(scratch, a * count, l0)
            store(scratch, (a + 1) * count, l1)
            store(scratch, (a + 2) * count, l2)
            store(scratch, (a + 3) * count, l3)
            a += 4
    while a < actions:
        store(scratch, a * count, gather(place + a * strides[3], strides[0], last, zero))
        a += 1


@inlined
def _look_ahead(row, ahead, actions, indptr, indices, weights, values, scratch, zero):
    """Turn the losses of one state into Q; returns V and the sum of all Q.

    A sparse table has its E[W'] gathered on the way, behind the Q in scratch: the two lie
    side by side in memory. The sum is there to notice a loss that is not finite.
    """
    count = lane_count(zero)
    v = broadcast(np.inf, zero)
    everything = zero
    for a in range(actions):
        if weights is None:
            onward = load(values, ahead + item(indices, row + a) * 2 * count, zero)
        else:
            onward, held = zero, zero
            for p in range(item(indptr, row + a), item(indptr, row + a + 1)):
                weight = broadcast(item(weights, p), zero)
                at = ahead + item(indices, p) * 2 * count
                onward = fma(weight, load(values, at, zero), onward)
                held = fma(weight, load(values, at + count, zero), held)
            store(scratch, (actions + a) * count, held)
        q = load(scratch, a * count, zero) + onward
        store(scratch, a * count, q)
        v = minimum(q, v)
        everything = everything + q
    return v, everything


@inlined
def _held(row, a, ahead, actions, indices, weights, values, scratch, zero):
    """E[W'] of one action."""
    count = lane_count(zero)
    if weights is None:
        return load(values, ahead + item(indices, row + a) * 2 * count + count, zero)
    return load(scratch, (actions + a) * count, zero)


@inlined
def _settle_plainly(word, row, ahead, actions, upper, v, indices, weights, words, values, scratch, zero):
    """Tied sets and W of one state where every advantage is zero or clear of the rule.

    Returns (W, whether some lane has two close actions).
    """
    count = lane_count(zero)
    infinite = broadcast(np.inf, zero)
    w = infinite
    seen, again = np.int64(0), np.int64(0)
    for a in range(actions):
        d = load(scratch, a * count, zero) - v
        now = push_bits(at_most(d, upper), np.int64(item(words, word + a)) >> count & 1)
        put(words, word + a, now)
        again |= seen & now
        seen |= now
        held = _held(row, a, ahead, actions, indices, weights, values, scratch, zero)
        w = minimum(select(mask_of(now, zero), d + held, infinite), w)
    return w, again > 1  # bit 0 belongs to the round before the block


@inlined
def _is_doubtful(actions, upper, v, scratch, zero):
    """Whether some close advantage is not exactly zero, so that the rule has to decide."""
    count = lane_count(zero)
    close_ones = lanes_of(np.uint8(0))
    for a in range(actions):
        d = load(scratch, a * count, zero) - v
        close_ones = overlay(close_ones, select(at_most(d, upper), d, zero))
    return any_bit(close_ones)


@inner
def _settle_by_rule(
    word, row, ahead, actions, tolerance, band, v, indices, weights, words, values, scratch, walk,
    place, zero,
):  # fmt: skip
    """Tied sets and W of one state by the full rule; returns (W, bits of the unambiguous lanes).

    The words of the state are complete on entry but for their tied bits.
    """
    count = lane_count(zero)
    infinite = broadcast(np.inf, zero)
    upper = tolerance * broadcast(band, zero)
    doubtful, w, choice, paid, least = zero, infinite, zero, zero, infinite
    for a in range(actions):
        d = load(scratch, a * count, zero) - v
        tied = at_most(d, tolerance)
        doubtful = maximum(select(at_most(d, upper), d, zero), doubtful)
        now = push_bits(tied, np.int64(item(words, word + a)) & 1)
        put(words, word + a, now)
        advantage = select(tied, zero, d)
        held = _held(row, a, ahead, actions, indices, weights, values, scratch, zero)
        cost = select(mask_of(now, zero), advantage + held, infinite)
        if walk is not None:
            least = minimum(select(tied, infinite, d), least)
            keep = at_most(w, cost)
            choice = select(keep, choice, broadcast(float(a), zero))
            paid = select(keep, paid, advantage)
        w = minimum(cost, w)
    if walk is not None:
        store(walk.pick, place, choice)
        store(walk.pay, place, paid)
        store(walk.gap, place, least)
    return w, bits_of(at_most(doubtful * broadcast(band, zero), tolerance))


@inner
def _back_step(
    address, strides, last, idx, begin, end, base, here, ahead, word_base, actions, indptr, indices,
    weights, rule, scale, words, values, scratch, walk,
):  # fmt: skip
    """One step of the recursion for one block; returns (max |V|, near bits, sum of all Q).

    ``base`` is the first row of the step's table, ``here`` and ``ahead`` are the offsets
    of the two layers in the value buffer, ``word_base`` the first word of the step.
    """
    zero = lanes_of(words[0])
    count = lane_count(zero)
    slack, relative, band = rule
    largest, everything = zero, zero
    near = np.int64(0)
    for j in range(begin, end):
        s = np.int64(item(idx, j))
        row, word = base + s * actions, word_base + s * actions
        read_losses(address + s * strides[2], strides, last, actions, scratch, zero)
        v, sum_of_state = _look_ahead(row, ahead, actions, indptr, indices, weights, values, scratch, zero)
        everything = everything + sum_of_state
        size = absolute(v)
        largest = maximum(size, largest)
        tolerance = fma(broadcast(relative, zero), size + scale, broadcast(slack, zero))
        upper = tolerance * broadcast(band, zero)
        w, close_calls = _settle_plainly(
            word, row, ahead, actions, upper, v, indices, weights, words, values, scratch, zero
        )
        if walk is not None or (close_calls and _is_doubtful(actions, upper, v, scratch, zero)):
            place = (word // actions) * count
            w, clear = _settle_by_rule(
                word, row, ahead, actions, tolerance, band, v, indices, weights, words, values, scratch,
                walk, place, zero,
            )  # fmt: skip
            near |= ~clear
        store(values, here + s * 2 * count, v)
        store(values, here + s * 2 * count + count, w)
    return largest, near, everything


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


@kernel
def sweep_kernel(
    address, strides, rounds, shape, per_step, indptr, indices, weights, ptr, idx, initial,
    rule, words, values, scratch, reach, out, walk, certain, detail,
):  # fmt: skip
    """Sweep ``rounds`` rounds; see the module's docstring for the recursion.

    ``address`` and ``strides`` (bytes) locate the losses, ``per_step`` is the number of
    table rows from one step to the next (0 when all share one table). ``words``,
    ``values``, ``scratch`` and ``reach`` are work space; the type of ``words`` sets the
    number of lanes. ``walk`` and ``detail`` are None or the work space and the outputs
    of the detailed variant.
    """
    steps, states, actions = shape
    value, price, crossed, vertex, dimension, near, finite = out
    zero = lanes_of(words[0])
    count = lane_count(zero)
    layer = states * 2 * count
    every = (1 << (count + 1)) - 1
    planes = np.zeros(PLANES, np.int64)
    visit = 1
    for first in range(0, rounds, count):
        valid = min(count, rounds - first)
        scale, everything = zero, zero
        doubt = np.int64(0)
        for h in range(steps - 1, -1, -1):
            here = (h & 1) * layer
            ahead = 2 * layer if h + 1 == steps else layer - here
            largest, doubtful, sum_of_step = _back_step(
                address + first * strides[0] + h * strides[1], strides, valid - 1,
                idx, ptr[h], ptr[h + 1], h * per_step, here, ahead,
                h * states * actions, actions, indptr, indices, weights, rule, scale,
                words, values, scratch, walk,
            )  # fmt: skip
            scale = scale + largest
            everything = everything + sum_of_step
            doubt |= doubtful
        _start_mean(values, 0, ptr, idx, initial, value, first, valid, scratch, zero)
        _start_mean(values, count, ptr, idx, initial, price, first, valid, scratch, zero)
        sound = bits_of(at_most(everything * zero, zero))
        for i in range(valid):
            near[first + i] = (doubt >> i) & 1 == 1
            finite[first + i] = (sound >> i) & 1 == 1
        changed, choices = keep_faces(
            words, reach, planes, ptr, idx, initial, shape, per_step, indptr, indices, None, every
        )
        face_facts(first, valid, changed, choices, planes, crossed, vertex, dimension)
        if detail is not None:
            visit = walk_block(
                first, valid, count, visit, shape, per_step, (indptr, indices, weights, None),
                ptr, idx, initial, words, walk, price, vertex, certain, detail,
            )  # fmt: skip


def sweep(
    losses: np.ndarray,
    tables: Tables,
    states: States,
    initial: np.ndarray,
    ties: tuple[float, float, float],
    certain: bool,
    detail: bool,
) -> Swept:
    """Price the rounds ``losses`` [N,H,S,A] (float64, any strides), one after another.

    ``ties`` is (absolute, relative, band). The first round has no round before it: its price is 0.
    """
    rounds, steps, n_states, n_actions = losses.shape
    sparse = tables.weights is not None
    word = SPARSE_WORD if sparse else DETERMINISTIC_WORD
    lanes = np.dtype(word).itemsize * 4
    kinds = len(tables.indptr) if sparse else len(tables.indices)
    out, walk, extra = allocate(rounds, steps, n_states, lanes, detail)
    sweep_kernel(
        losses.ctypes.data, losses.strides, rounds, (steps, n_states, n_actions),
        0 if kinds == 1 else n_states * n_actions + sparse,
        frozen(tables.indptr, np.int64) if sparse else None,
        frozen(tables.indices, np.int32),
        frozen(tables.weights, np.float64) if sparse else None,
        frozen(states.ptr, np.int64), frozen(states.idx, np.int32), frozen(initial, np.float64),
        tuple(ties),
        # Every action was open before the first round.
        np.full(steps * n_states * n_actions, 1 << lanes, word),
        aligned_zeros(3 * n_states * 2 * lanes), aligned_zeros(2 * n_actions * lanes),
        np.zeros((2, n_states), word), out, walk, certain, extra,
    )  # fmt: skip
    return swept(out, extra)
