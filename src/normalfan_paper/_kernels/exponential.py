"""The exponential of lanes: numba has none that stays in vector registers.

    exp(x) = 2ⁿ exp(r),      n = x / log 2 rounded,      r = x − n log 2,  |r| ≤ log(2) / 2

n log 2 is taken off in two fused steps, with log 2 = HIGH + LOW to 107 bits. exp(r) is a polynomial, its
Taylor series economised: written in Chebyshev polynomials on the interval and cut off after degree 11, which
leaves 3e-18. 2ⁿ is added to the exponent of the result. Within 1 ulp from end to end; subnormal results are
rounded once more, to the nearest.

The steps at the ends are there so that no lane needs a branch: below DEEP the result is computed 2^LIFT times
too large and brought down by a product, which underflows as it should; from TOP on it is infinite. None of it
survives reassociation: adding and subtracting MAGIC rounds to an integer, which algebra would remove.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numpy.polynomial import chebyshev

from normalfan._kernels.compiling import inlined
from normalfan._kernels.lanes import (
    NUMBERS,
    PIECE,
    WORDS,
    at_most,
    broadcast,
    fma,
    lanes,
    maximum,
    minimum,
    piecewise,
    select,
)

DEGREE = 11
MAGIC = 1.5 * 2.0**52  # added to a small number it leaves the nearest integer in the lowest bits
HIGH = float.fromhex("0x1.62e42fefa39efp-1")
LOW = float.fromhex("0x1.abc9e3b39803fp-56")
LEAST, DEEP = -746.0, -700.0  # exp is 0 at the first; at the second it is still far from subnormal
LIFT = 128
TOP = math.nextafter(math.log(np.finfo(np.float64).max), math.inf)  # where exp becomes infinite


def _coefficients() -> tuple[float, ...]:
    """Of 1, r, ..., r^DEGREE."""
    powers = np.arange(DEGREE + 4)
    bound = math.log(2) / 2
    taylor = bound**powers / np.array([math.factorial(k) for k in powers])
    economised = chebyshev.cheb2poly(chebyshev.poly2cheb(taylor)[: DEGREE + 1])
    inexact = economised / bound ** powers[: DEGREE + 1]
    return (1.0, 1.0, *inexact[2:].tolist())  # the first two are 1 to within 1e-17


_, _, C2, C3, C4, C5, C6, C7, C8, C9, C10, C11 = _coefficients()


@piecewise(lanes(lanes, lanes))
def scaled(builder, x, n):
    """X times 2ⁿ for normal numbers, where the lowest bits of the float ``n`` hold the integer."""
    up = ir.Constant(WORDS, [52] * PIECE)
    raised = builder.add(builder.bitcast(x, WORDS), builder.shl(builder.bitcast(n, WORDS), up))
    return builder.bitcast(raised, NUMBERS)


@inlined
def _split(x):
    """Exp(r), and a float whose lowest bits hold n."""
    magic = broadcast(MAGIC)
    shifted = fma(x, broadcast(1.0 / math.log(2.0)), magic)
    n = shifted - magic
    r = fma(n, broadcast(-LOW), fma(n, broadcast(-HIGH), x))
    # Even and odd powers side by side: half as long a chain of fused steps, for one more product.
    square = r * r
    even = fma(square, broadcast(C10), broadcast(C8))
    odd = fma(square, broadcast(C11), broadcast(C9))
    even = fma(square, even, broadcast(C6))
    odd = fma(square, odd, broadcast(C7))
    even = fma(square, even, broadcast(C4))
    odd = fma(square, odd, broadcast(C5))
    even = fma(square, even, broadcast(C2))
    odd = fma(square, odd, broadcast(C3))
    return fma(square, fma(r, odd, even), r) + broadcast(1.0), shifted


@inlined
def exponential(x):
    """exp(x), lane by lane; nan stays nan."""
    one = broadcast(1.0)
    x = maximum(broadcast(LEAST), minimum(broadcast(TOP), x))
    p, shifted = _split(x)
    deep = at_most(x, broadcast(DEEP))
    lifted = shifted + select(deep, broadcast(float(LIFT)), one - one)
    result = scaled(p, lifted) * select(deep, broadcast(2.0**-LIFT), one)
    return select(at_most(broadcast(TOP), x), broadcast(math.inf), result)


@inlined
def weight(x):
    """exp(x) for x <= 0 where 1e-304 counts as nothing: 0 below DEEP, and none of the care at the ends."""
    p, shifted = _split(x)
    return select(at_most(x, broadcast(DEEP)), broadcast(0.0), scaled(p, shifted))
