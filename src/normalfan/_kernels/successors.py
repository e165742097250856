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

import numba
import numpy as np

from normalfan._kernels.buffers import States, Swept, aligned_zeros, allocate, frozen, swept
from normalfan._kernels.lanes import (
    absolute,
    at_most,
    bits_at_most,
    broadcast,
    fma,
    gather,
    lane_count,
    lanes_of,
    load,
    mask_of,
    maximum,
    minimum,
    select,
    store,
    transpose_rows,
)
from normalfan._kernels.packed import PLANES, face_facts, keep_faces
from normalfan._kernels.walks import walk_block

WORD = np.uint16
LANES = 8  # half the bits of a word: one is needed for the round before the block

_jit = numba.njit(nogil=True, error_model="numpy")


class Tables(NamedTuple):
    """Successors of every (step, state, action); K is 1 (the same at all steps) or H."""

    indices: np.ndarray  # int32 [K,S,A] successors, or int32 [nnz] beside indptr
    indptr: np.ndarray | None = None  # int64 [K, S*A + 1] offsets into indices and weights
    weights: np.ndarray | None = None  # float64 [nnz], all positive


@_jit
def _expect(values, at, row, indptr, indices, weights, zero):
    """E[v(s') | row] of the lanes stored at offset ``at`` of each state."""
    width = 2 * lane_count(zero)
    if weights is None:
        return load(values, at + indices[row] * width, zero)
    total = zero
    for p in range(indptr[row], indptr[row + 1]):
        total = fma(broadcast(weights[p], zero), load(values, at + indices[p] * width, zero), total)
    return total


@_jit
def read_losses(address, lane_stride, action_stride, last, actions, scratch, zero):
    """Copy the losses of one state to scratch, one row of lanes an action."""
    count = lane_count(zero)
    a = 0
    if action_stride == 8 and last == count - 1:
        while a + 4 <= actions:
            transpose_rows(address + a * 8, lane_stride, scratch, a * count, zero)
            a += 4
    while a < actions:
        losses = gather(address + a * action_stride, lane_stride, last, zero)
        store(scratch, a * count, losses)
        a += 1


@_jit
def _back_step(
    address,
    strides,
    last,
    states,
    base,
    here,
    ahead,
    word_base,
    actions,
    indptr,
    indices,
    weights,
    rule,
    scale,
    words,
    values,
    scratch,
    walk,
    zero,
):
    """One step of the recursion for one block; returns (max |V|, near bits, 0 or nan).

    ``base`` is the first row of the step's table, ``here`` and ``ahead`` are the offsets
    of the two layers in the value buffer, ``word_base`` the first word of the step.
    """
    count = lane_count(zero)
    infinite = broadcast(np.inf, zero)
    slack, relative, band = rule
    largest = zero
    finite = zero
    near = np.int64(0)
    for s in states:
        row = base + s * actions
        word = word_base + s * actions
        read_losses(address + s * strides[2], strides[0], strides[3], last, actions, scratch, zero)
        v = infinite
        for a in range(actions):
            losses = load(scratch, a * count, zero)
            finite = fma(losses, zero, finite)
            q = losses + _expect(values, ahead, row + a, indptr, indices, weights, zero)
            store(scratch, a * count, q)
            v = minimum(q, v)
        size = absolute(v)
        largest = maximum(size, largest)
        tolerance = broadcast(slack, zero) + broadcast(relative, zero) * (size + scale)
        upper = tolerance * broadcast(band, zero)
        doubtful = zero
        w = infinite
        choice = zero
        paid = zero
        least = infinite
        for a in range(actions):
            d = load(scratch, a * count, zero) - v
            tied = at_most(d, tolerance)
            doubtful = maximum(select(at_most(d, upper), d, zero), doubtful)
            before = np.int64(words[word + a] >> count) & 1
            now = bits_at_most(d, tolerance) << 1 | before
            words[word + a] = now
            advantage = select(tied, zero, d)
            if walk is not None:
                least = minimum(select(tied, infinite, d), least)
            onward = _expect(values, ahead + count, row + a, indptr, indices, weights, zero)
            cost = select(mask_of(now, zero), advantage + onward, infinite)
            if walk is not None:
                keep = at_most(w, cost)
                choice = select(keep, choice, broadcast(float(a), zero))
                paid = select(keep, paid, advantage)
            w = minimum(cost, w)
        near |= ~bits_at_most(doubtful, tolerance * broadcast(1.0 / band, zero))
        store(values, here + s * 2 * count, v)
        store(values, here + s * 2 * count + count, w)
        if walk is not None:
            place = (word // actions) * count
            store(walk.pick, place, choice)
            store(walk.pay, place, paid)
            store(walk.gap, place, least)
    return largest, near, finite


@_jit
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


@numba.njit(nogil=True, cache=True, error_model="numpy")
def sweep_kernel(
    address,
    strides,
    rounds,
    shape,
    per_step,
    indptr,
    indices,
    weights,
    ptr,
    idx,
    initial,
    rule,
    words,
    values,
    scratch,
    reach,
    out,
    walk,
    certain,
    detail,
):
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
        scale = zero
        bad = zero
        doubt = np.int64(0)
        for h in range(steps - 1, -1, -1):
            here = (h & 1) * layer
            ahead = 2 * layer if h + 1 == steps else layer - here
            largest, doubtful, unbounded = _back_step(
                address + first * strides[0] + h * strides[1],
                strides,
                valid - 1,
                idx[ptr[h] : ptr[h + 1]],
                h * per_step,
                here,
                ahead,
                h * states * actions,
                actions,
                indptr,
                indices,
                weights,
                rule,
                scale,
                words,
                values,
                scratch,
                walk,
                zero,
            )
            scale = scale + largest
            bad = bad + unbounded
            doubt |= doubtful
        _start_mean(values, 0, ptr, idx, initial, value, first, valid, scratch, zero)
        _start_mean(values, count, ptr, idx, initial, price, first, valid, scratch, zero)
        sound = bits_at_most(bad, zero)
        for i in range(valid):
            near[first + i] = (doubt >> i) & 1 == 1
            finite[first + i] = (sound >> i) & 1 == 1
        changed, choices = keep_faces(
            words, reach, planes, ptr, idx, initial, shape, per_step, indptr, indices, None, every
        )
        face_facts(first, valid, changed, choices, planes, crossed, vertex, dimension)
        if detail is not None:
            visit = walk_block(
                first,
                valid,
                count,
                visit,
                shape,
                per_step,
                (indptr, indices, weights, None),
                ptr,
                idx,
                initial,
                words,
                walk,
                price,
                vertex,
                certain,
                detail,
            )


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
    kinds = len(tables.indptr) if sparse else len(tables.indices)
    out, walk, extra = allocate(rounds, steps, n_states, LANES, detail)
    sweep_kernel(
        losses.ctypes.data, losses.strides, rounds, (steps, n_states, n_actions),
        0 if kinds == 1 else n_states * n_actions + sparse,
        frozen(tables.indptr, np.int64) if sparse else None,
        frozen(tables.indices, np.int32),
        frozen(tables.weights, np.float64) if sparse else None,
        frozen(states.ptr, np.int64), frozen(states.idx, np.int32), frozen(initial, np.float64),
        tuple(ties),
        # Every action was open before the first round.
        np.full(steps * n_states * n_actions, 1 << LANES, WORD),
        aligned_zeros(3 * n_states * 2 * LANES), aligned_zeros(n_actions * LANES),
        np.zeros((2, n_states), WORD), out, walk, certain, extra,
    )  # fmt: skip
    return swept(out, extra)
