"""Lanes: a fixed number of float64 that move together, as a numba type with the operations kernels need.

The rounds of a block are the lanes of vector registers, since plain numba loops over them are not vectorised
reliably. Nothing mixes two lanes, and there is no fast-math flag: a lane holds the same bits whatever stands
beside it. The dtype of a work array decides the number of lanes. More: docs/details/kernels.md.
"""

from __future__ import annotations

import operator

from llvmlite import ir
from numba.extending import (
    intrinsic,
    lower_builtin,
    models,
    register_model,
    type_callable,
    types,
)

from normalfan._kernels.vectors import (
    INT32,
    INT64,
    NUMBERS,
    PIECE,
    TRUTHS,
    WORDS,
    join,
    library,
    number,
    piecewise,
    splat,
    split,
    take,
)


class Lanes(types.Type):
    """The numba type of ``count`` float64 lanes."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(name=f"Lanes({count})")


class Mask(types.Type):
    """The numba type of ``count`` truth values, one a lane."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(name=f"Mask({count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type) -> None:
        super().__init__(dmm, fe_type, ir.ArrayType(NUMBERS, fe_type.count // PIECE))


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type) -> None:
        super().__init__(dmm, fe_type, ir.ArrayType(TRUTHS, fe_type.count // PIECE))


# --- arithmetic ----------------------------------------------------------------


def _define_operator(function, method: str) -> None:
    @type_callable(function)
    def _typed(context):
        def typer(x, y):
            return x if isinstance(x, Lanes) and x == y else None

        return typer

    lower_builtin(function, Lanes, Lanes)(piecewise(lambda builder, x, y: getattr(builder, method)(x, y)))


_define_operator(operator.add, "fadd")
_define_operator(operator.sub, "fsub")
_define_operator(operator.mul, "fmul")
_define_operator(operator.truediv, "fdiv")


@intrinsic
def fma(typingctx, x, y, z):
    """x*y + z with a single rounding."""
    return x(x, x, x), piecewise(library("fma"))


@intrinsic
def absolute(typingctx, x):
    """|x|."""
    return x(x), piecewise(library("fabs"))


def _smaller(builder, x, y):
    return builder.select(builder.fcmp_ordered("<", x, y), x, y)


@intrinsic
def minimum(typingctx, x, y):
    """The smaller of x and y (y when they are unordered)."""
    return x(x, x), piecewise(_smaller)


@intrinsic
def maximum(typingctx, x, y):
    """The larger of x and y (y when they are unordered)."""
    return x(x, x), piecewise(lambda b, x, y: b.select(b.fcmp_ordered(">", x, y), x, y))


# --- making lanes ------------------------------------------------------------------


@intrinsic
def lanes_of(typingctx, word):
    """Zero in every lane; an unsigned word of n bits stands for n/2 lanes."""
    kind = Lanes(word.bitwidth // 2)

    def codegen(context, builder, signature, args):
        return join(builder, [ir.Constant(NUMBERS, None)] * (kind.count // PIECE))

    return kind(word), codegen


@intrinsic
def lane_count(typingctx, like):
    """The number of lanes, a compile-time constant."""
    return types.intp(like), lambda context, builder, signature, args: number(like.count)


@intrinsic
def broadcast(typingctx, scalar, like):
    """The scalar in every lane."""

    def codegen(context, builder, signature, args):
        return join(builder, [splat(builder, args[0])] * (like.count // PIECE))

    return like(types.float64, like), codegen


# --- comparisons and bits --------------------------------------------------------


@intrinsic
def at_most(typingctx, x, y):
    """Where x <= y."""
    return Mask(x.count)(x, x), piecewise(lambda b, x, y: b.fcmp_ordered("<=", x, y))


@intrinsic
def select(typingctx, mask, x, y):
    """X where the mask holds, y elsewhere."""
    return x(mask, x, x), piecewise(lambda b, m, x, y: b.select(m, x, y))


def _pack(builder, masks, bits, shift: int):
    """Set the bits of the masks in an integer, from bit ``shift`` on."""
    for k, piece in enumerate(masks):
        four = builder.zext(builder.bitcast(piece, ir.IntType(PIECE)), INT64)
        bits = builder.or_(bits, builder.shl(four, number(k * PIECE + shift)))
    return bits


@intrinsic
def bits_of(typingctx, mask):
    """The mask as an integer, bit i for lane i."""

    def codegen(context, builder, signature, args):
        return _pack(builder, split(builder, args[0]), number(0), 0)

    return types.int64(mask), codegen


@intrinsic
def bits_at_most(typingctx, x, y):
    """An integer whose bit i is set when x_i <= y_i."""

    def codegen(context, builder, signature, args):
        pairs = zip(*(split(builder, arg) for arg in args), strict=True)
        return _pack(builder, [builder.fcmp_ordered("<=", *pair) for pair in pairs], number(0), 0)

    return types.int64(x, x), codegen


@intrinsic
def push_bits(typingctx, mask, before):
    """The mask as bits 1, 2, ... of an integer, above bit 0 taken from ``before``."""

    def codegen(context, builder, signature, args):
        return _pack(builder, split(builder, args[0]), args[1], 1)

    return types.int64(mask, types.int64), codegen


@intrinsic
def mask_of(typingctx, bits, like):
    """The mask whose lane i is bit i of the integer."""

    def codegen(context, builder, signature, args):
        word = splat(builder, args[0])
        pieces = []
        for first in range(0, like.count, PIECE):
            # The sign bit decides a hardware blend, so bit i travels there.
            shifts = ir.Constant(WORDS, [63 - i for i in range(first, first + PIECE)])
            signs = builder.shl(word, shifts)
            pieces.append(builder.icmp_signed("<", signs, ir.Constant(WORDS, None)))
        return join(builder, pieces)

    return Mask(like.count)(types.int64, like), codegen


def _folded(combine):
    """A code generator that folds the upper half of the lanes onto the lower until one is left."""

    def codegen(context, builder, signature, args):
        pieces = split(builder, args[0])
        while len(pieces) > 1:
            half = len(pieces) // 2
            pairs = zip(pieces[:half], pieces[half:], strict=True)
            pieces = [combine(builder, low, high) for low, high in pairs]
        (value,) = pieces
        while (half := value.type.count // 2) >= 1:
            low = take(builder, value, value, range(half))
            high = take(builder, value, value, range(half, 2 * half))
            value = combine(builder, low, high)
        return builder.extract_element(value, number(0, INT32))

    return codegen


@intrinsic
def total(typingctx, x):
    """The sum of the lanes, in a fixed order."""
    return types.float64(x), _folded(lambda builder, x, y: builder.fadd(x, y))


@intrinsic
def least(typingctx, x):
    """The smallest lane."""
    return types.float64(x), _folded(_smaller)


@intrinsic
def overlay(typingctx, ink, x):
    """Four lanes that gather, bit by bit, everything ever set in any lane of x."""
    kind = Lanes(PIECE)

    def codegen(context, builder, signature, args):
        (sheet,) = split(builder, args[0])
        sheet = builder.bitcast(sheet, WORDS)
        for piece in split(builder, args[1]):
            sheet = builder.or_(sheet, builder.bitcast(piece, WORDS))
        return join(builder, [builder.bitcast(sheet, NUMBERS)])

    return kind(kind, x), codegen


@intrinsic
def any_bit(typingctx, x):
    """Whether any bit of any lane is set."""

    def codegen(context, builder, signature, args):
        wide = ir.IntType(64 * PIECE)
        found = ir.Constant(wide, 0)
        for piece in split(builder, args[0]):
            found = builder.or_(found, builder.bitcast(piece, wide))
        return builder.icmp_unsigned("!=", found, ir.Constant(wide, 0))

    return types.boolean(x), codegen
