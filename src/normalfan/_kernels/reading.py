"""One loss read carefully: which actions are surely optimal, which may be, and how far each is behind.

    Q(a) = loss(a) + E[V']         err Q(a) = E[err V'] + what this sum lost
    V = min_a Q(a)                 err V = the largest err Q(a) among the contenders

A number is a pair (high, low), the unevaluated sum of two floats with |low| at most half an ulp of high:
about 106 bits. Every operation returns a bound on what its pair leaves out. Most often that is exactly zero:
whole numbers, decimals of a few digits and their sums over hundreds of steps fit into 106 bits. A loss of
zero is what makes a tie sure. An action of loss inf is not allowed: out, and no contender.
Contenders, marks and threshold: docs/details/near-ties.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import types

from normalfan._kernels.compiling import inlined, inner, kernel
from normalfan._kernels.lanes import emitted

OUT, DOUBTFUL, SURE = 0, 1, 2
ROUNDED = 2.0**-50  # relative error of an advantage rounded to one float, or of a sum of bounds; with room
UNDERFLOW = 2.0**-900  # a product smaller than this may lose bits below the range of float64,
LOST_BELOW = 2.0**-1060  # but no more than this


@emitted(types.float64(types.float64, types.float64, types.float64))
def fused(builder, x, y, z):
    """X·y + z, rounded once."""
    return builder.fma(x, y, z)


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
    return product, fused(x, y, -product)


@inner
def add(xh, xl, yh, yl):
    """Add two pairs: (high, low, lost)."""
    sh, sl = two_sum(xh, yh)
    th, tl = two_sum(xl, yl)
    middle, lost_middle = two_sum(sl, th)
    vh, vl = two_sum(sh, middle)
    rest, lost_rest = two_sum(tl, vl)
    high, low = two_sum(vh, rest)
    return high, low, abs(lost_middle) + abs(lost_rest)


@inner
def scale(xh, xl, factor):
    """A pair times a float: (high, low, lost)."""
    ph, pl = two_product(xh, factor)
    qh, ql = two_product(xl, factor)
    middle, lost = two_sum(pl, qh)
    high, low = two_sum(ph, middle)
    lost = abs(lost) + abs(ql)
    if (xh != 0.0 and abs(ph) < UNDERFLOW) or (xl != 0.0 and abs(qh) < UNDERFLOW):
        lost += LOST_BELOW
    return high, low, lost


@inner
def divide(xh, xl, yh, yl):
    """A pair by a pair: (high, low, lost)."""
    if yh == 1.0 and yl == 0.0:
        return xh, xl, 0.0
    first = xh / yh
    ph, pl, _ = scale(yh, yl, first)
    rh, rl, _ = add(xh, xl, -ph, -pl)
    second = rh / yh
    ph, pl, _ = scale(yh, yl, second)
    rh, rl, _ = add(rh, rl, -ph, -pl)
    high, low = two_sum(first, second)
    high, low, _ = add(high, low, rh / yh, 0.0)
    # Three quotients of 53 bits each leave far less than this.
    return high, low, abs(high) * 2.0**-98


class Room(NamedTuple):
    """What is known of the actions of the state at hand, [A] each."""

    q: np.ndarray
    rest: np.ndarray
    error: np.ndarray
    size: np.ndarray


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
    for row in range(len(sums)):
        high, low, lost = 0.0, 0.0, 0.0
        for p in range(indptr[row], indptr[row + 1]):
            high, low, more = add(high, low, weights[p], 0.0)
            lost += more
        sums[row, 0], sums[row, 1], sums[row, 2] = high, low, lost


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


@inner
def _expect(row, indptr, indices, weights, sums, value, rest, error, size):
    """E of the values ahead as a pair with its error, and E of the sizes ahead."""
    begin, end = indptr[row], indptr[row + 1]
    c = indices[begin]
    if end - begin == 1:
        return value[c], rest[c], error[c], size[c]
    high, low, lost, spread, met = 0.0, 0.0, 0.0, 0.0, 0.0
    for p in range(begin, end):
        s, w = indices[p], weights[p]
        dh, dl, lost_difference = add(value[s], rest[s], -value[c], -rest[c])
        th, tl, lost_term = scale(dh, dl, w)
        high, low, lost_sum = add(high, low, th, tl)
        lost += w * lost_difference + lost_term + lost_sum
        spread += w * error[s]
        met += w * size[s]
    high, low, lost_quotient = divide(high, low, sums[row, 0], sums[row, 1])
    lost = (lost + abs(high) * sums[row, 2] + spread) / sums[row, 0] + lost_quotient
    high, low, lost_sum = add(high, low, value[c], rest[c])
    return high, low, lost + lost_sum, met / sums[row, 0]


@inner
def _contend(row, losses, twins, advantage, mark, room):
    """Find the best action and mark its contenders; returns (V, its low part, its error)."""
    actions = len(losses)
    best = 0
    for a in range(1, actions):
        if room.q[a] < room.q[best] or (room.q[a] == room.q[best] and room.rest[a] < room.rest[best]):
            best = a
    if losses[best] == np.inf:  # then no policy is here
        advantage[:], mark[:] = np.inf, OUT
        return 0.0, 0.0, 0.0
    least = np.inf
    for a in range(actions):
        if losses[a] == np.inf:
            advantage[a] = np.inf
            continue
        d, low, lost = add(room.q[a], room.rest[a], -room.q[best], -room.rest[best])
        advantage[a] = d + low
        room.error[a] += lost
        least = min(least, advantage[a] * (1.0 + ROUNDED) + room.error[a])
    largest, sure = 0.0, True
    for a in range(actions):
        mark[a] = OUT
        if advantage[a] * (1.0 - ROUNDED) - room.error[a] <= least:
            mark[a] = SURE
            largest = max(largest, room.error[a])
            exact = advantage[a] == 0.0 and room.error[a] == 0.0 and room.error[best] == 0.0
            same = losses[a] == losses[best] and twins[row + a] == twins[row + best]
            sure = sure and (a == best or exact or same)
    if not sure:
        for a in range(actions):
            if mark[a] == SURE:
                mark[a] = DOUBTFUL
    return room.q[best], room.rest[best], largest


@inner
def _judge(error, rule, advantage, low, high, mark, room):
    """Apply the tie rule to one state and enclose its advantages; returns the state's size."""
    absolute, relative, band = rule
    actions = len(advantage)
    met = 0.0
    for a in range(actions):
        if mark[a] != OUT and advantage[a] == 0.0:
            met = max(met, room.size[a])
    for a in range(actions):
        d = advantage[a]
        threshold = absolute + relative * max(met, room.size[a])
        if mark[a] == SURE:
            advantage[a] = low[a] = high[a] = 0.0
            continue
        if d <= threshold * band:
            mark[a] = DOUBTFUL
        off = room.error[a] + error
        low[a] = max(d * (1.0 - ROUNDED) - off, 0.0)
        high[a] = d * (1.0 + ROUNDED) + off
        if d <= threshold:
            advantage[a] = 0.0
    return met


@kernel
def read_kernel(
    loss, reachable, per_step, indptr, indices, weights, sums, twins, rule,
    advantage, low, high, mark, value, rest, error, size, room,
):  # fmt: skip
    """Fill advantage, low, high, mark [H, S, A]; value, rest, error, size [2, S]: this layer and the next."""
    steps, states, actions = loss.shape
    for h in range(steps - 1, -1, -1):
        here, ahead = h & 1, (h + 1) & 1
        for s in range(states):
            if reachable[h, s]:
                row = h * per_step + s * actions
                for a in range(actions):
                    own = loss[h, s, a]
                    if own == np.inf:
                        room.q[a], room.rest[a], room.error[a], room.size[a] = np.inf, 0.0, 0.0, 0.0
                        continue
                    high_part, low_part, lost, met = 0.0, 0.0, 0.0, 0.0
                    if h + 1 < steps:
                        high_part, low_part, lost, met = _expect(
                            row + a, indptr, indices, weights, sums,
                            value[ahead], rest[ahead], error[ahead], size[ahead],
                        )  # fmt: skip
                    room.q[a], room.rest[a], more = add(high_part, low_part, own, 0.0)
                    room.error[a] = (lost + more) * (1.0 + ROUNDED * 1024)
                    room.size[a] = max(abs(own), met)
                value[here, s], rest[here, s], error[here, s] = _contend(
                    row, loss[h, s], twins, advantage[h, s], mark[h, s], room
                )
                size[here, s] = _judge(
                    error[here, s], rule, advantage[h, s], low[h, s], high[h, s], mark[h, s], room
                )
