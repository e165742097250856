"""Lanes: a fixed number of float64 that move together.

A stream is priced in blocks of rounds. Within a block every round goes through
the same arithmetic on different losses, so the rounds are the lanes of a vector
register: lane ``i`` is round ``first + i`` and nothing ever mixes two lanes. Plain
numba loops over such an axis are not vectorised reliably, so this module gives
numba a small type, ``Lanes(n)``, whose machine representation *is* the LLVM vector
``<n x double>``; LLVM splits it over whatever registers the processor has.

    x + y   x - y   x * y          lane by lane, rounded once each
    fma(x, y, z)                   x*y + z, one rounding on every processor
    minimum, maximum, absolute     as the names say
    broadcast(c, like)             a scalar in every lane of ``like``
    load, store                    contiguous lanes of a flat buffer
    gather(address, stride, last)  lane i from ``address + min(i, last) * stride`` bytes
    transpose_rows                 four neighbouring columns of all lanes at once
    at_most(x, y)                  an integer whose bit i says x_i <= y_i
    choose(bits, x, y)             x_i where bit i is set, y_i elsewhere

There is no fast-math flag anywhere: a lane holds the same bits whatever the
number of lanes beside it, which is why a stream priced in one call, in chunks or
round by round gives identical results. Comparisons leave and enter as plain
integers because the set of tied actions is kept that way, one bit a round.
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

_double = ir.DoubleType()
_int64 = ir.IntType(64)
_int32 = ir.IntType(32)

#: Comparisons are split into pieces of one 256-bit register: one instruction
#: turns such a piece into bits, while wider masks go through slow repacking.
_PIECE = 4


class Lanes(types.Type):
    """The numba type of ``count`` float64 lanes."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(name=f"Lanes({count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type) -> None:
        super().__init__(dmm, fe_type, ir.VectorType(_double, fe_type.count))


# --- arithmetic ----------------------------------------------------------------


def _define_operator(function, method: str) -> None:
    @type_callable(function)
    def _typed(context):
        def typer(x, y):
            return x if isinstance(x, Lanes) and x == y else None

        return typer

    @lower_builtin(function, Lanes, Lanes)
    def _lowered(context, builder, signature, args):
        return getattr(builder, method)(*args)


_define_operator(operator.add, "fadd")
_define_operator(operator.sub, "fsub")
_define_operator(operator.mul, "fmul")


def _call_llvm(builder, name: str, args):
    """Call the vector form of an LLVM intrinsic; all operands share one type."""
    vector = args[0].type
    kind = ir.FunctionType(vector, [vector] * len(args))
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{vector.count}f64")
    return builder.call(function, args)


@intrinsic
def fma(typingctx, x, y, z):
    """x*y + z with a single rounding."""

    def codegen(context, builder, signature, args):
        return _call_llvm(builder, "fma", args)

    return x(x, x, x), codegen


@intrinsic
def absolute(typingctx, x):
    """|x|."""

    def codegen(context, builder, signature, args):
        return _call_llvm(builder, "fabs", args)

    return x(x), codegen


@intrinsic
def minimum(typingctx, x, y):
    """The smaller of x and y (y when they are unordered)."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", *args), *args)

    return x(x, x), codegen


@intrinsic
def maximum(typingctx, x, y):
    """The larger of x and y (y when they are unordered)."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return x(x, x), codegen


@intrinsic
def total(typingctx, x):
    """The sum of the lanes, upper half onto lower half until one is left."""

    def codegen(context, builder, signature, args):
        (value,) = args
        while (half := value.type.count // 2) >= 1:
            lower = _take(builder, value, value, range(half))
            upper = _take(builder, value, value, range(half, 2 * half))
            value = builder.fadd(lower, upper)
        return builder.extract_element(value, ir.Constant(_int32, 0))

    return types.float64(x), codegen


# --- memory --------------------------------------------------------------------


def _constant(values, element=_int32):
    return ir.Constant(ir.VectorType(element, len(values)), list(values))


def _splat(builder, scalar, count: int):
    vector = ir.VectorType(scalar.type, count)
    single = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(_int32, 0))
    return builder.shuffle_vector(single, ir.Constant(vector, ir.Undefined), _constant([0] * count))


def _take(builder, x, y, lanes):
    """The named lanes of x followed by y."""
    return builder.shuffle_vector(x, y, _constant(lanes))


def _typed_pointer(builder, address, element):
    return builder.inttoptr(address, element.as_pointer())


def _item_pointer(context, builder, array_type, array, index, element):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), element.as_pointer())


def _read(builder, pointer):
    value = builder.load(pointer)
    value.align = 8  # buffers are 64-byte aligned when we own them; user losses need not be
    return value


@intrinsic
def lanes_of(typingctx, word):
    """Zero in every lane; an unsigned word of n bits stands for n/2 lanes."""
    kind = Lanes(word.bitwidth // 2)

    def codegen(context, builder, signature, args):
        return ir.Constant(ir.VectorType(_double, kind.count), None)

    return kind(word), codegen


@intrinsic
def lane_count(typingctx, like):
    """The number of lanes, a compile-time constant."""

    def codegen(context, builder, signature, args):
        return ir.Constant(_int64, like.count)

    return types.intp(like), codegen


@intrinsic
def broadcast(typingctx, scalar, like):
    """The scalar in every lane."""

    def codegen(context, builder, signature, args):
        return _splat(builder, args[0], like.count)

    return like(types.float64, like), codegen


@intrinsic
def load(typingctx, buffer, start, like):
    """Lanes from ``buffer[start : start + n]``."""

    def codegen(context, builder, signature, args):
        vector = ir.VectorType(_double, like.count)
        return _read(builder, _item_pointer(context, builder, buffer, args[0], args[1], vector))

    return like(buffer, types.intp, like), codegen


@intrinsic
def store(typingctx, buffer, start, x):
    """Write the lanes to ``buffer[start : start + n]``."""

    def codegen(context, builder, signature, args):
        pointer = _item_pointer(context, builder, buffer, args[0], args[1], args[2].type)
        builder.store(args[2], pointer).align = 8
        return context.get_dummy_value()

    return types.none(buffer, types.intp, x), codegen


@intrinsic
def gather(typingctx, address, stride, last, like):
    """Lane i from the float64 at ``address + min(i, last) * stride`` bytes.

    A whole block takes straight-line loads; the clamp of a partial one is a
    small loop, which keeps the machine code short.
    """
    count = like.count

    def codegen(context, builder, signature, args):
        start, step, final, _ = args
        vector = ir.VectorType(_double, count)
        whole = builder.icmp_signed(">=", final, ir.Constant(_int64, count - 1))
        slot = cgutils.alloca_once(builder, vector)
        with builder.if_else(whole, likely=True) as (straight, clamped):
            with straight:
                value = ir.Constant(vector, ir.Undefined)
                for i in range(count):
                    place = builder.add(start, builder.mul(step, ir.Constant(_int64, i)))
                    item = _read(builder, _typed_pointer(builder, place, _double))
                    value = builder.insert_element(value, item, ir.Constant(_int32, i))
                builder.store(value, slot)
            with clamped:
                items = builder.bitcast(slot, _double.as_pointer())
                with cgutils.for_range(builder, ir.Constant(_int64, count)) as loop:
                    beyond = builder.icmp_signed(">", loop.index, final)
                    i = builder.select(beyond, final, loop.index)
                    place = builder.add(start, builder.mul(step, i))
                    item = _read(builder, _typed_pointer(builder, place, _double))
                    builder.store(item, builder.gep(items, [loop.index]))
        return builder.load(slot)

    return like(types.intp, types.intp, types.intp, like), codegen


@intrinsic
def transpose_rows(typingctx, address, stride, buffer, start, like):
    """Four columns of n rows, each column stored as lanes.

    ``buffer[start + c*n + i] = row_i[c]`` where row i is the four float64 at
    ``address + i*stride`` bytes. Every cache line is touched once instead of once
    a column, which matters when the rows fall into the same cache set.
    """
    count = like.count

    def codegen(context, builder, signature, args):
        base, step, out, first, _ = args
        piece = ir.VectorType(_double, _PIECE)
        for group in range(0, count, _PIECE):
            rows = []
            for i in range(group, group + _PIECE):
                place = builder.add(base, builder.mul(step, ir.Constant(_int64, i)))
                rows.append(_read(builder, _typed_pointer(builder, place, piece)))
            low = [_take(builder, rows[i], rows[i + 1], [0, 4, 2, 6]) for i in (0, 2)]
            high = [_take(builder, rows[i], rows[i + 1], [1, 5, 3, 7]) for i in (0, 2)]
            columns = [
                _take(builder, *low, [0, 1, 4, 5]),
                _take(builder, *high, [0, 1, 4, 5]),
                _take(builder, *low, [2, 3, 6, 7]),
                _take(builder, *high, [2, 3, 6, 7]),
            ]
            for c, column in enumerate(columns):
                index = builder.add(first, ir.Constant(_int64, c * count + group))
                pointer = _item_pointer(context, builder, buffer, out, index, piece)
                builder.store(column, pointer).align = 8
        return context.get_dummy_value()

    return types.none(types.intp, types.intp, buffer, types.intp, like), codegen


@intrinsic
def prefetch(typingctx, address, stride, like):
    """Ask for the cache lines at ``address + i * stride``, one a lane; never faults."""
    count = like.count

    def codegen(context, builder, signature, args):
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, _int32, _int32, _int32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        read_soon = [ir.Constant(_int32, v) for v in (0, 3, 1)]
        for i in range(count):
            place = builder.add(args[0], builder.mul(args[1], ir.Constant(_int64, i)))
            builder.call(function, [builder.inttoptr(place, byte), *read_soon])
        return context.get_dummy_value()

    return types.none(types.intp, types.intp, like), codegen


# --- comparisons and bits --------------------------------------------------------


class Mask(types.Type):
    """The numba type of ``count`` truth values, one a lane."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(name=f"Mask({count})")


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type) -> None:
        super().__init__(dmm, fe_type, ir.VectorType(ir.IntType(1), fe_type.count))


@intrinsic
def at_most(typingctx, x, y):
    """Where x <= y."""

    def codegen(context, builder, signature, args):
        return builder.fcmp_ordered("<=", *args)

    return Mask(x.count)(x, x), codegen


@intrinsic
def select(typingctx, mask, x, y):
    """X where the mask holds, y elsewhere."""

    def codegen(context, builder, signature, args):
        return builder.select(*args)

    return x(mask, x, x), codegen


@intrinsic
def bits_of(typingctx, mask):
    """The mask as an integer, bit i for lane i."""
    count = mask.count

    def codegen(context, builder, signature, args):
        (mask,) = args
        bits = ir.Constant(_int64, 0)
        for first in range(0, count, _PIECE):
            piece = _take(builder, mask, mask, range(first, first + _PIECE))
            piece = builder.zext(builder.bitcast(piece, ir.IntType(_PIECE)), _int64)
            bits = builder.or_(bits, builder.shl(piece, ir.Constant(_int64, first)))
        return bits

    return types.int64(mask), codegen


@intrinsic
def mask_of(typingctx, bits, like):
    """The mask whose lane i is bit i of the integer."""
    count = like.count

    def codegen(context, builder, signature, args):
        # The sign bit decides a hardware blend, so bit i travels there.
        shifts = _constant([63 - i for i in range(count)], _int64)
        signs = builder.shl(_splat(builder, args[0], count), shifts)
        return builder.icmp_signed("<", signs, ir.Constant(signs.type, None))

    return Mask(count)(types.int64, like), codegen


@intrinsic
def shift_in(typingctx, first, x):
    """The lanes ``first, x_0, ..., x_{n-2}``: every lane sees its predecessor."""
    count = x.count

    def codegen(context, builder, signature, args):
        zero = ir.Constant(_int32, 0)
        head = builder.insert_element(ir.Constant(args[1].type, ir.Undefined), args[0], zero)
        return _take(builder, head, args[1], [0, *range(count, 2 * count - 1)])

    return x(types.float64, x), codegen


@intrinsic
def bits_at_most(typingctx, x, y):
    """An integer whose bit i is set when x_i <= y_i."""
    count = x.count

    def codegen(context, builder, signature, args):
        bits = ir.Constant(_int64, 0)
        for first in range(0, count, _PIECE):
            left, right = (_take(builder, v, v, range(first, first + _PIECE)) for v in args)
            mask = builder.bitcast(builder.fcmp_ordered("<=", left, right), ir.IntType(_PIECE))
            mask = builder.zext(mask, _int64)
            bits = builder.or_(bits, builder.shl(mask, ir.Constant(_int64, first)))
        return bits

    return types.int64(x, x), codegen
