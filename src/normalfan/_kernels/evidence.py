"""Rare states of a sweep: a tie may be in doubt, or something there is not finite.

A sweep looks for evidence of either as it prices a state; only where there is some is it examined here.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.buffers import ALL, LANES
from normalfan._kernels.compiling import inner
from normalfan._kernels.lanes import at_most, bits_of, broadcast, fma, maximum, select, zero_lanes
from normalfan._kernels.memory import item, load


@inner
def examine(actions, upper, v, scratch):
    """What the evidence at a state shows: (lanes with a doubtful advantage, lanes where all are finite)."""
    zero = zero_lanes()
    doubtful = unbounded = zero
    for a in range(actions):
        d = load(scratch, (actions + a) * LANES) - v
        unbounded = fma(d, zero, unbounded)
        doubtful = maximum(select(at_most(d, upper), d, zero), doubtful)
    return ~bits_of(at_most(doubtful, zero)), bits_of(at_most(unbounded, zero))


@inner
def examine_infinite(actions, scratch, found, start, stride, base, word, shift, words):
    """At a state where some advantage, ``found`` less ``base``, is not finite, three sets of lanes:

    all is finite but what is not allowed; nothing is allowed that was tied before; nothing is allowed at all.
    Where nothing is, every action counts as tied for the round that follows. Words are read from ``shift``.
    """
    zero = zero_lanes()
    infinite = broadcast(np.inf)
    unbounded = zero
    able = kept = np.int64(0)
    for a in range(actions):
        forbidden = at_most(infinite, load(scratch, a * LANES))
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
def unexplained(actions, scratch, row, word, shift, words, twins):
    """The lanes (bit i + shift) in which two tied actions differ in loss or successors: maybe rounding."""
    seen = np.int64(0)
    several = np.int64(0)
    for a in range(actions):
        tied = np.int64(item(words, word + a)) >> shift
        b = np.int64(item(twins, row + a))
        if b < a:
            mine, first = load(scratch, a * LANES), load(scratch, b * LANES)
            same = bits_of(at_most(mine, first)) & bits_of(at_most(first, mine))
            tied &= ~(same & np.int64(item(words, word + b)) >> shift)
        several |= seen & tied
        seen |= tied
    return several
