"""How sweeps read losses: the rounds of a block as lanes, from numbers in memory of any layout.

Factored losses are formed block by block, in memory that stays near.

Beside the losses of a state stand those of the round before the block, so that a sweep can tell how far each
loss moved while it is in registers. Two actions that cost and do the same are one move.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from normalfan._kernels.buffers import frozen
from normalfan._kernels.compiling import inlined, inner
from normalfan._kernels.lanes import LANES, absolute, broadcast, fma, maximum, shifted, zero_lanes
from normalfan._kernels.memory import column, columns, gather, item, load, number_at, prefetch_at, store


class Given(NamedTuple):
    """Losses [N,H,S,A] in memory."""

    address: int
    strides: tuple[int, int, int, int]  # in bytes
    size: int  # of a number
    unit: Any  # a zero of their type, float64 or float32


def given(losses: np.ndarray) -> Given:
    """Losses as kernels take them; the caller keeps the array alive."""
    return Given(losses.ctypes.data, losses.strides, losses.itemsize, losses.dtype.type(0))


class Factors(NamedTuple):
    """Losses ± Σ_k θ_t[k]·Φ_k, and room for those of a block, each entry's after that of the round before."""

    indptr: np.ndarray  # int64 [H*S*A+1] where the features of an entry begin
    indices: np.ndarray  # int32 their numbers k, in the order in which they are added up
    features: np.ndarray  # float64
    coefficients: np.ndarray  # float64 [K, N] the rounds of each, the last repeated to a whole block
    sign: float
    formed: np.ndarray  # float64 [H*S*A * (LANES+1)]


def factors(by_entry: Any, coefficients: np.ndarray, sign: float) -> tuple[Given, Factors]:
    """Losses of features [H*S*A, K], in sparse rows, and coefficients [N, K]; and where blocks are formed."""
    rounds = np.minimum(np.arange(-(-len(coefficients) // LANES) * LANES), len(coefficients) - 1)
    found = Factors(
        frozen(by_entry.indptr, np.int64),
        frozen(by_entry.indices, np.int32),
        frozen(by_entry.data, np.float64),
        np.ascontiguousarray(coefficients.T[:, rounds]),
        sign,
        np.zeros(by_entry.shape[0] * (LANES + 1)),
    )
    return given(found.formed.reshape(1, 1, 1, -1)), found


@inner
def form_block(factors, problem, first, everywhere):
    """Form the losses of the block from round ``first``, if not ``everywhere`` then at reachable states."""
    steps, states, actions = problem.shape
    formed, width = factors.formed, LANES + 1
    length = factors.coefficients.shape[1]
    theta = factors.coefficients.reshape(-1)
    sign = broadcast(factors.sign)
    for h in range(steps):
        begin, end = (0, states) if everywhere else (problem.ptr[h], problem.ptr[h + 1])
        for j in range(begin, end):
            s = np.int64(j if everywhere else problem.idx[j])
            for entry in range((h * states + s) * actions, (h * states + s + 1) * actions):
                formed[entry * width] = formed[entry * width + LANES]
                loss = zero_lanes()
                for p in range(item(factors.indptr, entry), item(factors.indptr, entry + 1)):
                    place = np.int64(item(factors.indices, p)) * length + first
                    loss = loss + broadcast(item(factors.features, p)) * load(theta, place)
                store(formed, entry * width + 1, loss * sign)
    wide = 8 * width
    strides = (8, states * actions * wide, actions * wide, wide)
    return Given(formed.ctypes.data + 8 * (1 - first), strides, 8, 0.0)


@inlined
def read_rows(place, lane_stride, stride, last, count, size, unit, scratch):
    """Copy ``count`` numbers of all lanes to scratch, one row of lanes each."""
    a = 0
    if stride == size and last == LANES - 1:
        while a + 4 <= count:
            l0, l1, l2, l3 = columns(place + a * size, lane_stride, unit)
            store(scratch, a * LANES, l0)
            store(scratch, (a + 1) * LANES, l1)
            store(scratch, (a + 2) * LANES, l2)
            store(scratch, (a + 3) * LANES, l3)
            a += 4
    while a < count:
        store(scratch, a * LANES, gather(place + a * stride, lane_stride, last, unit))
        a += 1


@inlined
def four_losses(given, first, h, s, a):
    """The losses of four actions from a on, in a whole block whose actions lie side by side."""
    t0, t1, t2, _ = given.strides
    place = given.address + first * t0 + h * t1 + s * t2 + a * given.size
    return columns(place, t0, given.unit)


@inlined
def whole_loss(given, first, h, s, a):
    """The losses of one action there."""
    t0, t1, t2, _ = given.strides
    return column(given.address + first * t0 + h * t1 + s * t2 + a * given.size, t0, given.unit)


@inlined
def one_loss(given, first, last, h, s, a):
    """The losses of an action, in any block."""
    t0, t1, t2, t3 = given.strides
    return gather(given.address + first * t0 + h * t1 + s * t2 + a * t3, t0, last, given.unit)


@inlined
def read_losses(given, first, last, h, s, actions, scratch):
    """Copy the losses of one state to scratch, one row of lanes an action."""
    t0, t1, t2, t3 = given.strides
    place = given.address + first * t0 + h * t1 + s * t2
    read_rows(place, t0, t3, last, actions, given.size, given.unit, scratch)


@inlined
def ask_for_losses(given, first, rounds, h, s, actions):
    """Ask for the losses of one state before they are needed: each round's lie elsewhere in main memory."""
    t0, t1, t2, t3 = given.strides
    if t3 == given.size:
        # The last byte first, and where a state has more than a line, all of them.
        place = given.address + first * t0 + h * t1 + s * t2 + actions * t3 - 1
        for i in range(rounds):
            prefetch_at(place + i * t0)
        for byte in range(64, actions * t3, 64):
            for i in range(rounds):
                prefetch_at(place + i * t0 - byte)


@inlined
def loss_at(given, t, h, s, a):
    """One loss."""
    t0, t1, t2, t3 = given.strides
    return number_at(given.address + t * t0 + h * t1 + s * t2 + a * t3, given.unit)


@inlined
def add_move(given, first, h, s, a, loss, l1, l2, linf):
    """The norms with the move of one action, whose losses are at hand, added to them."""
    d = absolute(loss - shifted(loss, loss_at(given, max(first - 1, 0), h, s, a)))
    return l1 + d, fma(d, d, l2), maximum(d, linf)


@inlined
def add_moves(given, first, h, s, actions, scratch, l1, l2, linf):
    """The same of all actions of a state, whose losses are in scratch."""
    for a in range(actions):
        l1, l2, linf = add_move(given, first, h, s, a, load(scratch, a * LANES), l1, l2, linf)
    return l1, l2, linf


@inner
def shortest_named(given, t, h, s, row, a, actions, twins, lengths):
    """Of the actions that cost and do what action a does, the one with the shortest name, the first of them.

    ``lengths`` [A] of the names, or [0] to leave action a as it is.
    """
    found = np.int64(a)
    if len(lengths) == 0:
        return found
    loss, twin = loss_at(given, t, h, s, a), item(twins, row + a)
    for b in range(actions):
        same = item(twins, row + b) == twin and loss_at(given, t, h, s, b) == loss
        if same and (lengths[b] < lengths[found] or (lengths[b] == lengths[found] and b < found)):
            found = np.int64(b)
    return found
