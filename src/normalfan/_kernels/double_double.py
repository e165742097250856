"""Sums and products of pairs of floats that tell what they lost.

A number is a pair (high, low), the unevaluated sum of two floats with |low| at most half an ulp of high:
about 106 bits. Every operation returns a pair next to its result and `lost`, a bound on what the pair leaves
out. Most often that is exactly zero: whole numbers, decimals of a few digits and their sums over hundreds of
steps fit into 106 bits. A `lost` of zero is what makes a tie sure.
"""

from __future__ import annotations

from numba.extending import intrinsic, types

from normalfan._kernels.compiling import inlined, inner

UNDERFLOW = 2.0**-900
"""A product smaller than this may lose bits below the range of float64."""

LOST_BELOW = 2.0**-1060


@intrinsic
def fused(typingctx, x, y, z):
    """X·y + z, rounded once."""

    def codegen(context, builder, signature, args):
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen


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
