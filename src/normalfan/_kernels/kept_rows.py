"""Rows of a dense table that some rounds of a block keep: their products with what each of these rounds has.

As a rule a round keeps one action of a state, and others keep others: no matrix product. But the rows that a
round keeps in neighbouring states are near one another, so that what it has is read once for a few of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalfan._kernels.compiling import inlined, inner
from normalfan._kernels.lanes import LANES, broadcast, fma, lowest_bit, total, zero_lanes
from normalfan._kernels.memory import item, load, store

TOGETHER = 3  # rows multiplied at a time: as many states as `dense` has in a panel of eight actions
WIDE = 6 * LANES  # columns added at a time, in registers


class Kept(NamedTuple):
    """The rows that each round keeps, ascending, in a few states; those of round t from t * most on."""

    most: int
    counts: np.ndarray  # int64 [rounds]
    rows: np.ndarray  # int64 [rounds * most]
    states: np.ndarray  # int64 [rounds * most] to which they belong


def no_rows(rounds: int, most: int) -> Kept:
    """Lists with room for so many rows a round."""
    places = (np.zeros(rounds * most, np.int64) for _ in range(2))
    return Kept(most, np.zeros(rounds, np.int64), *places)


@inner
def keep_row(kept, rounds, row, state):
    """Put a row on the lists of some rounds, a bit each."""
    while rounds:
        t = lowest_bit(rounds)
        rounds &= rounds - 1
        place = np.uint64(t * kept.most + kept.counts[t])
        kept.counts[t] += 1
        kept.rows[place] = row
        kept.states[place] = state


@inner
def multiply_kept(table, kept, first, held, out, width):
    """out[r - first, t] = sum_k table[r, k] * held[t, k] for each row r of round t; empties the lists.

    Rows of ``out`` have this width.
    """
    zero = zero_lanes()
    states = table.shape[1]
    whole = states - states % LANES
    counts, rows = kept.counts, kept.rows
    for t in range(len(counts)):
        begin, o = t * kept.most, t * states
        final = begin + counts[t] - 1
        counts[t] = 0
        for place in range(begin, final + 1, TOGETHER):
            # With fewer left the last row is simply done again.
            i0 = item(rows, place)
            i1, i2 = item(rows, min(place + 1, final)), item(rows, min(place + 2, final))
            r0, r1, r2 = i0 * states, i1 * states, i2 * states
            x0 = x1 = x2 = zero
            for k in range(0, whole, LANES):
                w = load(held, o + k)
                x0 = fma(load(table, r0 + k), w, x0)
                x1 = fma(load(table, r1 + k), w, x1)
                x2 = fma(load(table, r2 + k), w, x2)
            w0, w1, w2 = total(x0), total(x1), total(x2)
            for k in range(whole, states):
                w = item(held, o + k)
                w0 += item(table, r0 + k) * w
                w1 += item(table, r1 + k) * w
                w2 += item(table, r2 + k) * w
            out[np.uint64((i0 - first) * width + t)] = w0
            out[np.uint64((i1 - first) * width + t)] = w1
            out[np.uint64((i2 - first) * width + t)] = w2


@inlined
def _add_wide(table, begin, end, o, k, rows, owners, masses, sums):
    """Add WIDE columns from k on of the rows of one round, each times the mass of its state."""
    states = table.shape[1]
    k1, k2, k3, k4, k5 = k + LANES, k + 2 * LANES, k + 3 * LANES, k + 4 * LANES, k + 5 * LANES
    x0, x1, x2 = load(sums, o + k), load(sums, o + k1), load(sums, o + k2)
    x3, x4, x5 = load(sums, o + k3), load(sums, o + k4), load(sums, o + k5)
    for i in range(begin, end):
        m = broadcast(item(masses, o + item(owners, i)))
        r = item(rows, i) * states
        x0, x1 = fma(load(table, r + k), m, x0), fma(load(table, r + k1), m, x1)
        x2, x3 = fma(load(table, r + k2), m, x2), fma(load(table, r + k3), m, x3)
        x4, x5 = fma(load(table, r + k4), m, x4), fma(load(table, r + k5), m, x5)
    store(sums, o + k, x0)
    store(sums, o + k1, x1)
    store(sums, o + k2, x2)
    store(sums, o + k3, x3)
    store(sums, o + k4, x4)
    store(sums, o + k5, x5)


@inlined
def _add_rest(table, begin, end, o, k, rows, owners, masses, sums):
    """The same of all columns from k on."""
    states = table.shape[1]
    whole = states - states % LANES
    for j in range(k, whole, LANES):
        x = load(sums, o + j)
        for i in range(begin, end):
            m = broadcast(item(masses, o + item(owners, i)))
            x = fma(load(table, item(rows, i) * states + j), m, x)
        store(sums, o + j, x)
    for j in range(whole, states):
        for i in range(begin, end):
            mass = item(masses, o + item(owners, i))
            sums[np.uint64(o + j)] += item(table, item(rows, i) * states + j) * mass


@inner
def add_kept(table, kept, masses, sums):
    """sums[t, k] += table[r, k] * masses[t, state of r] for each row r of round t; empties the lists."""
    states = table.shape[1]
    counts, rows, owners = kept.counts, kept.rows, kept.states
    # A few columns at a time, so that those of all rows stay in the first cache.
    for k in range(0, states, WIDE):
        for t in range(len(counts)):
            begin = t * kept.most
            end, o = begin + counts[t], t * states
            if k + WIDE <= states:
                _add_wide(table, begin, end, o, k, rows, owners, masses, sums)
            else:
                _add_rest(table, begin, end, o, k, rows, owners, masses, sums)
    counts[:] = 0
