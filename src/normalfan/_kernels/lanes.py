"""Lanes: eight float64 that move together, as a numba type with the operations kernels need.

The rounds of a block are the lanes of vector registers, since plain numba loops over them are not vectorised
reliably. Nothing mixes two lanes, and there is no fast-math flag: a lane holds the same bits whatever stands
beside it. A value is as many vectors as it takes registers, and every operation is emitted piece by piece:
where one register does not hold it all, LLVM would narrow the masks of one wide vector to bytes and widen
them again, which costs more than the arithmetic. More: docs/details/kernels.md.
"""

from __future__ import annotations

import operator
from functools import reduce, wraps
from itertools import pairwise

from llvmlite import binding, ir
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable, types

from normalfan._kernels.buffers import LANES

PIECE = 8 if binding.get_host_cpu_features().get("avx512vl") else 4  # float64 in a register
FIRSTS = range(0, LANES, PIECE)  # the first lane of each piece

DOUBLE = ir.DoubleType()
INT64 = ir.IntType(64)
INT32 = ir.IntType(32)
NUMBERS = ir.VectorType(DOUBLE, PIECE)
WORDS = ir.VectorType(INT64, PIECE)
TRUTHS = ir.VectorType(ir.IntType(1), PIECE)


class Pieces(types.Type):
    """A numba type of one value a lane; `piece` is the LLVM type of four of them."""

    def __init__(self, name: str, piece: ir.Type) -> None:
        self.piece = piece
        super().__init__(name)


@register_model(Pieces)
class _PiecesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type) -> None:
        super().__init__(dmm, fe_type, ir.ArrayType(fe_type.piece, len(FIRSTS)))


lanes = Pieces("lanes", NUMBERS)
mask = Pieces("mask", TRUTHS)


# --- how operations are written --------------------------------------------------


def emitted(signature):
    """Make ``emit(builder, x, ...)`` a function of kernels: it writes the LLVM code of a call."""

    def declare(emit):
        @wraps(emit)  # whose argument names numba takes over, after the first
        def typed(typingctx, *args):
            return signature, lambda context, builder, signature, values: emit(builder, *values)

        return intrinsic(typed)

    return declare


def piecewise(signature):
    """The same of a function that is written for one piece of each argument."""
    return lambda emit: emitted(signature)(_by_piece(emit))


def _by_piece(emit):
    @wraps(emit)
    def emit_all(builder, *values):
        pieces = zip(*(split(builder, value) for value in values), strict=True)
        return join(builder, [emit(builder, *operands) for operands in pieces])

    return emit_all


def split(builder, value) -> list:
    return [builder.extract_value(value, k) for k in range(len(FIRSTS))]


def join(builder, pieces):
    value = ir.Constant(ir.ArrayType(pieces[0].type, len(FIRSTS)), ir.Undefined)
    for k, piece in enumerate(pieces):
        value = builder.insert_value(value, piece, k)
    return value


def number(value: int, kind=INT64):
    return ir.Constant(kind, value)


def take(builder, x, y, places):
    """The lanes at these places of x followed by y."""
    order = ir.Constant(ir.VectorType(INT32, len(places)), list(places))
    return builder.shuffle_vector(x, y, order)


def splat(builder, scalar):
    """A piece with the scalar in every lane."""
    empty = ir.Constant(ir.VectorType(scalar.type, PIECE), ir.Undefined)
    single = builder.insert_element(empty, scalar, number(0, INT32))
    return take(builder, single, empty, [0] * PIECE)


def call(builder, name: str, kind, args):
    """Call an LLVM intrinsic."""
    function = ir.FunctionType(kind, [arg.type for arg in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, function, f"llvm.{name}"), args)


# --- making lanes, arithmetic ------------------------------------------------------


@emitted(lanes())
def zero_lanes(builder):
    """Zero in every lane."""
    return join(builder, [ir.Constant(NUMBERS, None)] * len(FIRSTS))


@emitted(lanes(types.float64))
def broadcast(builder, scalar):
    """The scalar in every lane."""
    return join(builder, [splat(builder, scalar)] * len(FIRSTS))


def _define_operator(function, method: str) -> None:
    @type_callable(function)
    def _typed(context):
        return lambda x, y: lanes if x == y == lanes else None

    emit = _by_piece(lambda builder, x, y: getattr(builder, method)(x, y))
    lower_builtin(function, lanes, lanes)(lambda context, builder, signature, values: emit(builder, *values))


_define_operator(operator.add, "fadd")
_define_operator(operator.sub, "fsub")
_define_operator(operator.mul, "fmul")
_define_operator(operator.truediv, "fdiv")


@piecewise(lanes(lanes, lanes, lanes))
def fma(builder, x, y, z):
    """x*y + z with a single rounding."""
    return call(builder, f"fma.v{PIECE}f64", NUMBERS, [x, y, z])


@piecewise(lanes(lanes))
def absolute(builder, x):
    return call(builder, f"fabs.v{PIECE}f64", NUMBERS, [x])


def _smaller(builder, x, y):
    return builder.select(builder.fcmp_ordered("<", x, y), x, y)


def larger(builder, x, y):
    return builder.select(builder.fcmp_ordered(">", x, y), x, y)


@piecewise(lanes(lanes, lanes))
def minimum(builder, x, y):
    """The smaller of x and y (y when they are unordered)."""
    return _smaller(builder, x, y)


@piecewise(lanes(lanes, lanes))
def maximum(builder, x, y):
    """The larger of x and y (y when they are unordered)."""
    return larger(builder, x, y)


def _folded(builder, x, combine):
    """Fold the upper half of the lanes onto the lower until one is left."""
    value = reduce(lambda low, high: combine(builder, low, high), split(builder, x))
    while (half := value.type.count // 2) >= 1:
        low = take(builder, value, value, range(half))
        high = take(builder, value, value, range(half, 2 * half))
        value = combine(builder, low, high)
    return builder.extract_element(value, number(0, INT32))


@emitted(types.float64(lanes))
def total(builder, x):
    """The sum of the lanes, in a fixed order."""
    return _folded(builder, x, lambda builder, x, y: builder.fadd(x, y))


@emitted(types.float64(lanes))
def least(builder, x):
    """The smallest lane."""
    return _folded(builder, x, _smaller)


@emitted(lanes(lanes, types.float64))
def shifted(builder, x, scalar):
    """The scalar, then all lanes but the last, each one place further."""
    pieces = [splat(builder, scalar), *split(builder, x)]
    places = range(PIECE - 1, 2 * PIECE - 1)
    return join(builder, [take(builder, *pair, places) for pair in pairwise(pieces)])


@emitted(types.float64(lanes))
def last_lane(builder, x):
    """The last lane."""
    return builder.extract_element(split(builder, x)[-1], number(PIECE - 1, INT32))


# --- comparisons and bits --------------------------------------------------------


@piecewise(mask(lanes, lanes))
def at_most(builder, x, y):
    """Where x <= y."""
    return builder.fcmp_ordered("<=", x, y)


@piecewise(mask(lanes, lanes))
def equal(builder, x, y):
    """Where x == y."""
    return builder.fcmp_ordered("==", x, y)


@piecewise(lanes(mask, lanes, lanes))
def select(builder, where, x, y):
    """X where the mask holds, y elsewhere."""
    return builder.select(where, x, y)


@emitted(types.int64(mask))
def bits_of(builder, where):
    """The mask as an integer, bit i for lane i."""
    bits = number(0)
    for first, piece in zip(FIRSTS, split(builder, where), strict=True):
        some = builder.zext(builder.bitcast(piece, ir.IntType(PIECE)), INT64)
        bits = builder.or_(bits, builder.shl(some, number(first)))
    return bits


@emitted(mask(types.int64))
def mask_of(builder, bits):
    """The mask whose lane i is bit i of the integer."""
    if PIECE == LANES:  # which is what a mask is to the processor
        return join(builder, [builder.bitcast(builder.trunc(bits, ir.IntType(LANES)), TRUTHS)])
    word = splat(builder, bits)
    pieces = []
    for first in FIRSTS:
        # The sign bit decides a hardware blend, so bit i travels there.
        shifts = ir.Constant(WORDS, [63 - i for i in range(first, first + PIECE)])
        signs = builder.shl(word, shifts)
        pieces.append(builder.icmp_signed("<", signs, ir.Constant(WORDS, None)))
    return join(builder, pieces)


@piecewise(lanes(lanes, lanes))
def overlay(builder, x, y):
    """Every bit that is set in x or in y."""
    return builder.bitcast(builder.or_(builder.bitcast(x, WORDS), builder.bitcast(y, WORDS)), NUMBERS)


@emitted(types.boolean(lanes))
def any_bit(builder, x):
    """Whether any bit of any lane is set."""
    words = reduce(builder.or_, (builder.bitcast(piece, WORDS) for piece in split(builder, x)))
    there = builder.icmp_unsigned("!=", words, ir.Constant(WORDS, None))
    bits = ir.IntType(PIECE)
    return builder.icmp_unsigned("!=", builder.bitcast(there, bits), ir.Constant(bits, 0))


@emitted(types.int64(types.uint64))
def lowest_bit(builder, word):
    """The index of the lowest bit of a word that is not 0."""
    return builder.cttz(word, ir.Constant(ir.IntType(1), 1))


@emitted(types.int64(types.uint64))
def count_bits(builder, word):
    return builder.ctpop(word)
