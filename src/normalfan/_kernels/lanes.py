"""Lanes: a fixed number of float64 that move together.

A stream is priced in blocks of rounds. Within a block every round goes through
the same arithmetic on different losses, so the rounds are the lanes of vector
registers: lane ``i`` is round ``first + i`` and nothing ever mixes two lanes. Plain
numba loops over such an axis are not vectorised reliably, so this module gives
numba a small type, ``Lanes(n)``, and the few operations the kernels need:

    x + y   x - y   x * y            lane by lane, rounded once each
    fma(x, y, z)                     x*y + z, one rounding on every processor
    minimum, maximum, absolute       as the names say
    broadcast(c, like)               a scalar in every lane of ``like``
    load, store                      contiguous lanes of a flat buffer
    gather(address, stride, last)    lane i from ``address + min(i, last) * stride`` bytes
    columns(address, stride)         four neighbouring gathers in one, transposed
    at_most(x, y), select(m, x, y)   a mask of lanes, and a choice by it
    bits_of(m), mask_of(bits, like)  masks as integers, bit i for lane i
    total(x)                         the sum of the lanes, in a fixed order

A value is an array of machine vectors of four float64 (one 256-bit register) rather
than one wide LLVM vector: with the wide type LLVM narrows comparison masks to bytes
and widens them again, which costs more than the arithmetic.

There is no fast-math flag anywhere: a lane holds the same bits whatever the
number of lanes beside it, which is why a stream priced in one call, in chunks or
round by round gives identical results.
"""

from __future__ import annotations

import operator

from llvmlite import ir
from numba.core import cgutils
from numba.extending import (
    intrinsic,
    lower_builtin,
    models,
    register_model,
    type_callable,
    types,
)

_PIECE = 4
_double = ir.DoubleType()
_int64 = ir.IntType(64)
_int32 = ir.IntType(32)
_piece = ir.VectorType(_double, _PIECE)
_piece_bits = ir.VectorType(_int64, _PIECE)
_piece_mask = ir.VectorType(ir.IntType(1), _PIECE)


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
        super().__init__(dmm, fe_type, ir.ArrayType(_piece, fe_type.count // _PIECE))


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type) -> None:
        super().__init__(dmm, fe_type, ir.ArrayType(_piece_mask, fe_type.count // _PIECE))


def _split(builder, value) -> list:
    return [builder.extract_value(value, k) for k in range(value.type.count)]


def _join(builder, pieces):
    value = ir.Constant(ir.ArrayType(pieces[0].type, len(pieces)), ir.Undefined)
    for k, piece in enumerate(pieces):
        value = builder.insert_value(value, piece, k)
    return value


def _piecewise(emit):
    """A code generator that applies ``emit(builder, piece, ...)`` to matching pieces."""

    def codegen(context, builder, signature, args):
        pieces = zip(*(_split(builder, arg) for arg in args), strict=True)
        return _join(builder, [emit(builder, *operands) for operands in pieces])

    return codegen


# --- arithmetic ----------------------------------------------------------------


def _define_operator(function, method: str) -> None:
    @type_callable(function)
    def _typed(context):
        def typer(x, y):
            return x if isinstance(x, Lanes) and x == y else None

        return typer

    lower_builtin(function, Lanes, Lanes)(_piecewise(lambda builder, x, y: getattr(builder, method)(x, y)))


_define_operator(operator.add, "fadd")
_define_operator(operator.sub, "fsub")
_define_operator(operator.mul, "fmul")


def _llvm(name: str):
    """Emit a call of the vector form of an LLVM intrinsic."""

    def emit(builder, *pieces):
        kind = ir.FunctionType(_piece, [_piece] * len(pieces))
        symbol = f"llvm.{name}.v{_PIECE}f64"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, symbol), pieces)

    return emit


@intrinsic
def fma(typingctx, x, y, z):
    """x*y + z with a single rounding."""
    return x(x, x, x), _piecewise(_llvm("fma"))


@intrinsic
def absolute(typingctx, x):
    """|x|."""
    return x(x), _piecewise(_llvm("fabs"))


@intrinsic
def minimum(typingctx, x, y):
    """The smaller of x and y (y when they are unordered)."""
    return x(x, x), _piecewise(lambda b, x, y: b.select(b.fcmp_ordered("<", x, y), x, y))


@intrinsic
def maximum(typingctx, x, y):
    """The larger of x and y (y when they are unordered)."""
    return x(x, x), _piecewise(lambda b, x, y: b.select(b.fcmp_ordered(">", x, y), x, y))


# --- making lanes, and memory --------------------------------------------------


def _number(value: int, kind=_int64):
    return ir.Constant(kind, value)


def _take(builder, x, y, lanes):
    """The named lanes of x followed by y."""
    order = ir.Constant(ir.VectorType(_int32, len(lanes)), list(lanes))
    return builder.shuffle_vector(x, y, order)


def _splat(builder, scalar):
    empty = ir.Constant(ir.VectorType(scalar.type, _PIECE), ir.Undefined)
    single = builder.insert_element(empty, scalar, _number(0, _int32))
    return _take(builder, single, empty, [0] * _PIECE)


def _read(builder, pointer):
    value = builder.load(pointer)
    value.align = 8  # nothing is assumed about the losses beyond their item size
    return value


def _read_at(builder, start, stride, i, kind):
    """Load ``kind`` from the byte address ``start + i * stride``."""
    place = builder.add(start, builder.mul(stride, i))
    return _read(builder, builder.inttoptr(place, kind.as_pointer()))


def _pointers(context, builder, array_type, array, index, count: int) -> list:
    """Where the pieces of ``count`` lanes lie in a flat buffer from ``index``."""
    data = context.make_array(array_type)(context, builder, array).data
    start = builder.gep(data, [index])
    return [
        builder.bitcast(builder.gep(start, [_number(i)]), _piece.as_pointer())
        for i in range(0, count, _PIECE)
    ]


@intrinsic
def lanes_of(typingctx, word):
    """Zero in every lane; an unsigned word of n bits stands for n/2 lanes."""
    kind = Lanes(word.bitwidth // 2)

    def codegen(context, builder, signature, args):
        return _join(builder, [ir.Constant(_piece, None)] * (kind.count // _PIECE))

    return kind(word), codegen


@intrinsic
def lane_count(typingctx, like):
    """The number of lanes, a compile-time constant."""
    return types.intp(like), lambda context, builder, signature, args: _number(like.count)


@intrinsic
def broadcast(typingctx, scalar, like):
    """The scalar in every lane."""

    def codegen(context, builder, signature, args):
        return _join(builder, [_splat(builder, args[0])] * (like.count // _PIECE))

    return like(types.float64, like), codegen


@intrinsic
def load(typingctx, buffer, start, like):
    """Lanes from ``buffer[start : start + n]``."""

    def codegen(context, builder, signature, args):
        places = _pointers(context, builder, buffer, args[0], args[1], like.count)
        return _join(builder, [_read(builder, place) for place in places])

    return like(buffer, types.intp, like), codegen


@intrinsic
def store(typingctx, buffer, start, x):
    """Write the lanes to ``buffer[start : start + n]``."""

    def codegen(context, builder, signature, args):
        places = _pointers(context, builder, buffer, args[0], args[1], x.count)
        for place, piece in zip(places, _split(builder, args[2]), strict=True):
            builder.store(piece, place).align = 8
        return context.get_dummy_value()

    return types.none(buffer, types.intp, x), codegen


@intrinsic
def item(typingctx, array, index):
    """``array[index]`` of a flat array, for an index known not to be negative."""

    def codegen(context, builder, signature, args):
        data = context.make_array(array)(context, builder, args[0]).data
        return context.unpack_value(builder, array.dtype, builder.gep(data, [args[1]]))

    return array.dtype(array, types.intp), codegen


@intrinsic
def put(typingctx, array, index, value):
    """``array[index] = value`` of a flat array of integers, likewise; high bits are dropped."""

    def codegen(context, builder, signature, args):
        data = context.make_array(array)(context, builder, args[0]).data
        narrow = builder.trunc(args[2], data.type.pointee)
        context.pack_value(builder, array.dtype, narrow, builder.gep(data, [args[1]]))
        return context.get_dummy_value()

    return types.none(array, types.intp, types.int64), codegen


@intrinsic
def gather(typingctx, address, stride, last, like):
    """Lane i from the float64 at ``address + min(i, last) * stride`` bytes.

    A whole block takes straight-line loads; the clamp of a partial one is a
    small loop, which keeps the machine code short.
    """
    count = like.count

    def codegen(context, builder, signature, args):
        start, stride, last, _ = args
        slot = cgutils.alloca_once(builder, ir.ArrayType(_piece, count // _PIECE))
        whole = builder.icmp_signed(">=", last, _number(count - 1))
        with builder.if_else(whole, likely=True) as (straight, clamped):
            with straight:
                pieces = []
                for first in range(0, count, _PIECE):
                    piece = ir.Constant(_piece, ir.Undefined)
                    for k in range(_PIECE):
                        number = _read_at(builder, start, stride, _number(first + k), _double)
                        piece = builder.insert_element(piece, number, _number(k, _int32))
                    pieces.append(piece)
                builder.store(_join(builder, pieces), slot)
            with clamped:
                numbers = builder.bitcast(slot, _double.as_pointer())
                with cgutils.for_range(builder, _number(count)) as loop:
                    beyond = builder.icmp_signed(">", loop.index, last)
                    i = builder.select(beyond, last, loop.index)
                    number = _read_at(builder, start, stride, i, _double)
                    builder.store(number, builder.gep(numbers, [loop.index]))
        return builder.load(slot)

    return like(types.intp, types.intp, types.intp, like), codegen


@intrinsic
def columns(typingctx, address, stride, like):
    """Four gathers of a whole block at once, from ``address`` and the three float64 after it.

    Each row of four is read in one piece and four rows are transposed in registers.
    Every cache line is touched once instead of once a column, which matters most when
    the rows fall into the same cache set.
    """
    four = types.UniTuple(like, _PIECE)

    def codegen(context, builder, signature, args):
        start, stride, _ = args
        columns = [[] for _ in range(_PIECE)]
        for first in range(0, like.count, _PIECE):
            rows = [_read_at(builder, start, stride, _number(first + k), _piece) for k in range(_PIECE)]
            even = [_take(builder, rows[k], rows[k + 1], [0, 4, 2, 6]) for k in (0, 2)]
            odd = [_take(builder, rows[k], rows[k + 1], [1, 5, 3, 7]) for k in (0, 2)]
            columns[0].append(_take(builder, *even, [0, 1, 4, 5]))
            columns[1].append(_take(builder, *odd, [0, 1, 4, 5]))
            columns[2].append(_take(builder, *even, [2, 3, 6, 7]))
            columns[3].append(_take(builder, *odd, [2, 3, 6, 7]))
        return context.make_tuple(builder, four, [_join(builder, c) for c in columns])

    return four(types.intp, types.intp, like), codegen


@intrinsic
def prefetch(typingctx, address, stride, like):
    """Ask for the cache lines at ``address + i * stride``, one a lane; never faults."""

    def codegen(context, builder, signature, args):
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, _int32, _int32, _int32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        read_into_all_levels = [_number(v, _int32) for v in (0, 3, 1)]
        for i in range(like.count):
            place = builder.add(args[0], builder.mul(args[1], _number(i)))
            builder.call(function, [builder.inttoptr(place, byte), *read_into_all_levels])
        return context.get_dummy_value()

    return types.none(types.intp, types.intp, like), codegen


# --- comparisons and bits --------------------------------------------------------


@intrinsic
def at_most(typingctx, x, y):
    """Where x <= y."""
    return Mask(x.count)(x, x), _piecewise(lambda b, x, y: b.fcmp_ordered("<=", x, y))


@intrinsic
def select(typingctx, mask, x, y):
    """X where the mask holds, y elsewhere."""
    return x(mask, x, x), _piecewise(lambda b, m, x, y: b.select(m, x, y))


@intrinsic
def bits_of(typingctx, mask):
    """The mask as an integer, bit i for lane i."""

    def codegen(context, builder, signature, args):
        bits = _number(0)
        for k, piece in enumerate(_split(builder, args[0])):
            four = builder.zext(builder.bitcast(piece, ir.IntType(_PIECE)), _int64)
            bits = builder.or_(bits, builder.shl(four, _number(k * _PIECE)))
        return bits

    return types.int64(mask), codegen


@intrinsic
def push_bits(typingctx, mask, before):
    """The mask as bits 1, 2, ... of an integer, above bit 0 taken from ``before``."""

    def codegen(context, builder, signature, args):
        bits = args[1]
        for k, piece in enumerate(_split(builder, args[0])):
            four = builder.zext(builder.bitcast(piece, ir.IntType(_PIECE)), _int64)
            bits = builder.or_(bits, builder.shl(four, _number(k * _PIECE + 1)))
        return bits

    return types.int64(mask, types.int64), codegen


@intrinsic
def mask_of(typingctx, bits, like):
    """The mask whose lane i is bit i of the integer."""

    def codegen(context, builder, signature, args):
        number = _splat(builder, args[0])
        pieces = []
        for first in range(0, like.count, _PIECE):
            # The sign bit decides a hardware blend, so bit i travels there.
            shifts = ir.Constant(_piece_bits, [63 - i for i in range(first, first + _PIECE)])
            signs = builder.shl(number, shifts)
            pieces.append(builder.icmp_signed("<", signs, ir.Constant(_piece_bits, None)))
        return _join(builder, pieces)

    return Mask(like.count)(types.int64, like), codegen


@intrinsic
def total(typingctx, x):
    """The sum of the lanes, upper half onto lower half until one is left."""

    def codegen(context, builder, signature, args):
        pieces = _split(builder, args[0])
        while len(pieces) > 1:
            half = len(pieces) // 2
            pairs = zip(pieces[:half], pieces[half:], strict=True)
            pieces = [builder.fadd(low, high) for low, high in pairs]
        (value,) = pieces
        while (half := value.type.count // 2) >= 1:
            low = _take(builder, value, value, range(half))
            high = _take(builder, value, value, range(half, 2 * half))
            value = builder.fadd(low, high)
        return builder.extract_element(value, _number(0, _int32))

    return types.float64(x), codegen


@intrinsic
def overlay(typingctx, ink, x):
    """Four lanes that gather, bit by bit, everything ever set in any lane of x."""
    kind = Lanes(_PIECE)

    def codegen(context, builder, signature, args):
        (sheet,) = _split(builder, args[0])
        sheet = builder.bitcast(sheet, _piece_bits)
        for piece in _split(builder, args[1]):
            sheet = builder.or_(sheet, builder.bitcast(piece, _piece_bits))
        return _join(builder, [builder.bitcast(sheet, _piece)])

    return kind(kind, x), codegen


@intrinsic
def any_bit(typingctx, x):
    """Whether any bit of any lane is set."""

    def codegen(context, builder, signature, args):
        wide = ir.IntType(64 * _PIECE)
        found = ir.Constant(wide, 0)
        for piece in _split(builder, args[0]):
            found = builder.or_(found, builder.bitcast(piece, wide))
        return builder.icmp_unsigned("!=", found, ir.Constant(wide, 0))

    return types.boolean(x), codegen
