"""Losses read carefully, one a lane: which actions are surely optimal, which may be, how far each is behind.

    Q(a) = loss(a) + E[V']         err Q(a) = E[err V'] + what this sum lost
    V = min_a Q(a)                 err V = the largest err Q(a) among the contenders

A number is a pair (high, low), the unevaluated sum of two floats with |low| at most half an ulp of high:
about 106 bits. Every operation returns a bound on what its pair leaves out. Most often that is exactly zero:
whole numbers, decimals of a few digits and their sums over hundreds of steps fit into 106 bits. A loss of
zero is what makes a tie sure. An action of loss inf is not allowed: out, and no contender.
Contenders, marks and threshold: docs/details/near-ties.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from normalfan._kernels.buffers import ALL, LANES, aligned_zeros
from normalfan._kernels.compiling import inlined, inner, kernel
from normalfan._kernels.lanes import (
    absolute,
    at_most,
    bits_of,
    broadcast,
    fma,
    last_lane,
    mask_of,
    maximum,
    minimum,
    select,
    zero_lanes,
)
from normalfan._kernels.losses import given, read_losses
from normalfan._kernels.memory import load, scatter, store

OUT, DOUBTFUL, SURE = 0, 1, 2
ROUNDED = 2.0**-50  # relative error of an advantage rounded to one float, or of a sum of bounds; with room
UNDERFLOW = 2.0**-900  # a product smaller than this may lose bits below the range of float64,
LOST_BELOW = 2.0**-1060  # but no more than this


@inlined
def two_sum(x, y):
    """The float nearest to x + y, and the rest: exact."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


@inlined
def two_product(x, y):
    """The float nearest to x·y, and the rest: exact unless it underflows."""
    product = x * y
    return product, fma(x, y, zero_lanes() - product)


@inlined
def add(xh, xl, yh, yl):
    """Add two pairs: (high, low, lost)."""
    sh, sl = two_sum(xh, yh)
    th, tl = two_sum(xl, yl)
    middle, lost_middle = two_sum(sl, th)
    vh, vl = two_sum(sh, middle)
    rest, lost_rest = two_sum(tl, vl)
    high, low = two_sum(vh, rest)
    return high, low, absolute(lost_middle) + absolute(lost_rest)


@inlined
def add_float(xh, xl, y):
    """Add a float to a pair: (high, low, lost)."""
    sh, sl = two_sum(xh, y)
    middle, lost = two_sum(sl, xl)
    high, low = two_sum(sh, middle)
    return high, low, absolute(lost)


@inlined
def _underflow(x, product):
    """What a product of x that underflows may lose."""
    zero, most = zero_lanes(), broadcast(LOST_BELOW)
    lost = select(at_most(absolute(product), broadcast(UNDERFLOW)), most, zero)
    return select(at_most(absolute(x), zero), zero, lost)


@inlined
def scale(xh, xl, factor):
    """A pair times a float: (high, low, lost)."""
    ph, pl = two_product(xh, factor)
    qh, ql = two_product(xl, factor)
    middle, lost = two_sum(pl, qh)
    high, low = two_sum(ph, middle)
    lost = absolute(lost) + absolute(ql)
    return high, low, lost + maximum(_underflow(xh, ph), _underflow(xl, qh))


@inlined
def _by(x, y):
    """A float of each lane by one that all share, most often 1: rows were divided by their sums."""
    return x if y == 1.0 else x / broadcast(y)


@inner
def divide(xh, xl, y, y_rest):
    """A pair by a pair that all lanes share: (high, low, lost)."""
    if y == 1.0 and y_rest == 0.0:
        return xh, xl, zero_lanes()
    yh, yl, zero = broadcast(y), broadcast(y_rest), zero_lanes()
    first = _by(xh, y)
    ph, pl, _ = scale(yh, yl, first)
    rh, rl, _ = add(xh, xl, zero - ph, zero - pl)
    second = _by(rh, y)
    ph, pl, _ = scale(yh, yl, second)
    rh, rl, _ = add(rh, rl, zero - ph, zero - pl)
    high, low = two_sum(first, second)
    high, low, _ = add_float(high, low, _by(rh, y))
    # Three quotients of 53 bits each leave far less than this.
    return high, low, absolute(high) * broadcast(2.0**-98)


class Room(NamedTuple):
    """What is known of the actions of the state at hand, lanes [A] each, and of the states of two steps."""

    loss: np.ndarray
    q: np.ndarray
    rest: np.ndarray
    error: np.ndarray
    size: np.ndarray
    advantage: np.ndarray
    marks: np.ndarray  # int64 [A] the lanes in which an action may be optimal
    absolute_ties: np.ndarray  # lanes
    layers: np.ndarray  # lanes [2*4*S]: value, its rest, error and size, of this step and the next


@kernel
def rounding_intervals(prices, sizes, factor, share, lowest, highest, wide):
    """Enclose prices that only rounding touches; wide: by more than a share of the price."""
    for t in range(len(prices)):
        lost = factor * (sizes[t] + prices[t]) if prices[t] > 0.0 else 0.0  # no cost is surely no cost
        lowest[t], highest[t] = max(prices[t] - lost, 0.0), prices[t] + lost
        wide[t] = 2.0 * lost > share * prices[t]


@kernel
def row_sums(indptr, weights, sums):
    """The exact sum of every row as a pair, and what was lost: sums [rows, 3]."""
    zero = zero_lanes()
    for row in range(len(sums)):
        high = low = lost = zero
        for p in range(indptr[row], indptr[row + 1]):
            high, low, more = add_float(high, low, broadcast(weights[p]))
            lost = lost + more
        sums[row, 0], sums[row, 1], sums[row, 2] = last_lane(high), last_lane(low), last_lane(lost)


@kernel
def first_twins(indptr, indices, weights, actions, twins):
    """For every row the first action of its state with the same successors: twins [rows]."""
    for row in range(len(twins)):
        a = row % actions
        twins[row] = a
        for b in range(a):
            other, size = row - a + b, indptr[row + 1] - indptr[row]
            if indptr[other + 1] - indptr[other] != size:
                continue
            same = True
            for k in range(size):
                p, q = indptr[row] + k, indptr[other] + k
                if indices[p] != indices[q] or weights[p] != weights[q]:
                    same = False
                    break
            if same:
                twins[row] = b
                break


@inlined
def _expect(row, indptr, indices, weights, sums, layers, ahead, width):
    """E of the values ahead as a pair with its error, and E of the sizes ahead."""
    begin, end = indptr[row], indptr[row + 1]
    c = ahead + np.int64(indices[begin]) * LANES
    base, base_rest = load(layers, c), load(layers, c + width)
    error, size = load(layers, c + 2 * width), load(layers, c + 3 * width)
    if end - begin == 1:
        return base, base_rest, error, size
    zero, own = zero_lanes(), broadcast(weights[begin])
    high = low = lost = zero  # of the first, which differs from itself by nothing
    spread, met = own * error, own * size
    for p in range(begin + 1, end):
        c, w = ahead + np.int64(indices[p]) * LANES, broadcast(weights[p])
        dh, dl, lost_difference = add(load(layers, c), load(layers, c + width), zero - base, zero - base_rest)
        th, tl, lost_term = scale(dh, dl, w)
        high, low, lost_sum = add(high, low, th, tl)
        lost = lost + (w * lost_difference + lost_term + lost_sum)
        spread = spread + w * load(layers, c + 2 * width)
        met = met + w * load(layers, c + 3 * width)
    high, low, lost_quotient = divide(high, low, sums[row, 0], sums[row, 1])
    lost = _by(lost + absolute(high) * broadcast(sums[row, 2]) + spread, sums[row, 0]) + lost_quotient
    high, low, lost_sum = add(high, low, base, base_rest)
    return high, low, lost + lost_sum, _by(met, sums[row, 0])


@inlined
def _below(x, y):
    """The lanes in which x < y, as bits."""
    return ~bits_of(at_most(y, x)) & ALL


@inlined
def _equal(x, y):
    return bits_of(at_most(x, y)) & bits_of(at_most(y, x))


@inner
def _contend(row, actions, twins, room):
    """Find the best action and its contenders, and how far each is behind.

    Returns V, its low part and its error; the lanes in which all ties are sure; those in which something is
    allowed. Contenders are left in ``room.marks``, a word each.
    """
    zero, infinite = zero_lanes(), broadcast(np.inf)
    more, less = broadcast(1.0 + ROUNDED), broadcast(1.0 - ROUNDED)
    value, rest, loss = load(room.q, 0), load(room.rest, 0), load(room.loss, 0)
    best, twin = zero, broadcast(float(twins[row]))
    for a in range(1, actions):
        q, q_rest = load(room.q, a * LANES), load(room.rest, a * LANES)
        better = mask_of(_below(q, value) | (_equal(q, value) & _below(q_rest, rest)))
        value, rest = select(better, q, value), select(better, q_rest, rest)
        loss = select(better, load(room.loss, a * LANES), loss)
        best, twin = (
            select(better, broadcast(float(a)), best),
            select(better, broadcast(float(twins[row + a])), twin),
        )
    least, best_error = infinite, zero
    for a in range(actions):
        forbidden = at_most(infinite, load(room.loss, a * LANES))
        d, low, lost = add(load(room.q, a * LANES), load(room.rest, a * LANES), zero - value, zero - rest)
        d = select(forbidden, infinite, d + low)
        error = select(forbidden, zero, load(room.error, a * LANES) + lost)
        store(room.advantage, a * LANES, d)
        store(room.error, a * LANES, error)
        best_error = select(mask_of(_equal(best, broadcast(float(a)))), error, best_error)
        least = minimum(select(forbidden, infinite, d * more + error), least)
    largest, sure = zero, np.int64(ALL)
    allowed = _below(loss, infinite)
    for a in range(actions):
        d, error = load(room.advantage, a * LANES), load(room.error, a * LANES)
        contends = bits_of(at_most(d * less - error, least)) & allowed
        room.marks[a] = contends
        largest = select(mask_of(contends), maximum(error, largest), largest)
        exact = _equal(d, zero) & _equal(error, zero) & _equal(best_error, zero)
        same = _equal(load(room.loss, a * LANES), loss) & _equal(twin, broadcast(float(twins[row + a])))
        sure &= ~contends | _equal(best, broadcast(float(a))) | exact | same
    nothing = mask_of(~allowed & ALL)
    return select(nothing, zero, value), select(nothing, zero, rest), largest, sure, allowed


@inner
def _judge(actions, error, sure, allowed, rule, cell, found, room):
    """Apply the tie rule to one state, whose first action is ``cell``; returns the state's size."""
    zero, infinite = zero_lanes(), broadcast(np.inf)
    more, less = broadcast(1.0 + ROUNDED), broadcast(1.0 - ROUNDED)
    absolute_ties, relative, band = load(room.absolute_ties, 0), broadcast(rule[0]), broadcast(rule[1])
    _, days, cells = found.shape
    met = zero
    for a in range(actions):
        zeros = room.marks[a] & _equal(load(room.advantage, a * LANES), zero)
        met = select(mask_of(zeros), maximum(load(room.size, a * LANES), met), met)
    for a in range(actions):
        d = select(mask_of(allowed), load(room.advantage, a * LANES), infinite)
        threshold = absolute_ties + relative * maximum(met, load(room.size, a * LANES))
        surely = mask_of(room.marks[a] & sure)
        doubtful = mask_of(room.marks[a] | bits_of(at_most(d, threshold * band)))
        off = load(room.error, a * LANES) + error
        advantage = select(surely, zero, select(at_most(d, threshold), zero, d))
        low = select(surely, zero, maximum(d * less - off, zero))
        high = select(surely, zero, d * more + off)
        mark = select(surely, broadcast(float(SURE)), select(doubtful, broadcast(float(DOUBTFUL)), zero))
        place, layer, day = found.ctypes.data + 8 * (cell + a), 8 * days * cells, 8 * cells
        scatter(place, day, days - 1, advantage)
        scatter(place + layer, day, days - 1, low)
        scatter(place + 2 * layer, day, days - 1, high)
        scatter(place + 3 * layer, day, days - 1, mark)
    return met


@kernel
def read_kernel(given, shape, reachable, per_step, indptr, indices, weights, sums, twins, rule, room, found):
    """Fill found [4, days, H·S·A]: advantage, low, high and mark of at most LANES losses."""
    steps, states, actions = shape
    zero, infinite = zero_lanes(), broadcast(np.inf)
    last = found.shape[1] - 1
    wider = broadcast(1.0 + ROUNDED * 1024)
    width = states * LANES
    for h in range(steps - 1, -1, -1):
        # Offsets, not views: to make a view for each state takes longer than all that is computed there.
        here, ahead = (h & 1) * 4 * width, ((h + 1) & 1) * 4 * width
        for s in range(states):
            if not reachable[h, s]:
                continue
            row = h * per_step + s * actions
            read_losses(given, 0, last, h, s, actions, room.loss)
            for a in range(actions):
                own = load(room.loss, a * LANES)
                forbidden = at_most(infinite, own)
                high = low = lost = met = zero
                if h + 1 < steps:
                    high, low, lost, met = _expect(
                        row + a, indptr, indices, weights, sums, room.layers, ahead, width
                    )
                high, low, more = add_float(high, low, own)
                store(room.q, a * LANES, select(forbidden, infinite, high))
                store(room.rest, a * LANES, select(forbidden, zero, low))
                store(room.error, a * LANES, select(forbidden, zero, (lost + more) * wider))
                store(room.size, a * LANES, select(forbidden, zero, maximum(absolute(own), met)))
            value, rest, error, sure, allowed = _contend(row, actions, twins, room)
            place = here + s * LANES
            store(room.layers, place, value)
            store(room.layers, place + width, rest)
            store(room.layers, place + 2 * width, error)
            cell = (h * states + s) * actions
            size = _judge(actions, error, sure, allowed, rule, cell, found, room)
            store(room.layers, place + 3 * width, size)


def read_days(
    losses: np.ndarray, ties: np.ndarray, rule: tuple[float, float], found: np.ndarray, *problem: Any
) -> np.ndarray:
    """Read at most LANES losses [N,H,S,A], with an absolute rule for ties each; [4, N, H, S, A].

    ``found`` [4*LANES, H*S*A] gets them: zeros, or what other losses of this problem left there.
    """
    days, _, states, actions = losses.shape
    room = Room(
        *(aligned_zeros(actions * LANES) for _ in range(6)),
        marks=np.zeros(actions, np.int64),
        absolute_ties=np.resize(np.append(ties, np.repeat(ties[-1:], LANES - days)), LANES),
        layers=aligned_zeros(2 * 4 * states * LANES),
    )
    numbers = found[: 4 * days].reshape(4, days, -1)
    read_kernel(given(losses), losses.shape[1:], *problem, rule, room, numbers)
    return numbers.reshape(4, *losses.shape)
