"""Lanes from memory and back.

Losses lie at byte addresses, whatever their layout; buffers are flat arrays of our own.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic, types

from normalfan._kernels.lanes import (
    DOUBLE,
    FIRSTS,
    INT32,
    LANES,
    NUMBERS,
    PIECE,
    WORDS,
    call,
    emitted,
    join,
    lanes,
    number,
    splat,
    split,
    take,
)

FOUR = 4  # columns that are transposed at a time
ROW = ir.VectorType(DOUBLE, FOUR)


def item_pointer(context, builder, array_type, array, index):
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


def piece_pointers(builder, start) -> list:
    places = [builder.gep(start, [number(first)]) for first in FIRSTS]
    return [builder.bitcast(place, NUMBERS.as_pointer()) for place in places]


def read_piece(builder, pointer):
    value = builder.load(pointer)
    value.align = 8  # nothing is assumed of a buffer beyond the size of its items
    return value


def _read_at(builder, start, stride, i, kind):
    """Load ``kind`` from the byte address ``start + i * stride``."""
    place = builder.add(start, builder.mul(stride, i))
    return read_piece(builder, builder.inttoptr(place, kind.as_pointer()))


@intrinsic
def load(typingctx, buffer, start):
    """Lanes from ``buffer[start : start + LANES]``."""

    def codegen(context, builder, signature, args):
        places = piece_pointers(builder, item_pointer(context, builder, buffer, *args))
        return join(builder, [read_piece(builder, place) for place in places])

    return lanes(buffer, types.intp), codegen


@intrinsic
def store(typingctx, buffer, start, x):
    """Write the lanes to ``buffer[start : start + LANES]``."""

    def codegen(context, builder, signature, args):
        places = piece_pointers(builder, item_pointer(context, builder, buffer, *args[:2]))
        for place, piece in zip(places, split(builder, args[2]), strict=True):
            builder.store(piece, place).align = 8
        return context.get_dummy_value()

    return types.none(buffer, types.intp, lanes), codegen


@intrinsic
def item(typingctx, array, index):
    """``array[index]`` of a flat array, for an index known not to be negative."""

    def codegen(context, builder, signature, args):
        return context.unpack_value(builder, array.dtype, item_pointer(context, builder, array, *args))

    return array.dtype(array, types.intp), codegen


@intrinsic
def prefetch_items(typingctx, buffer, start):
    """Ask for the cache lines that hold ``buffer[start : start + LANES]``."""

    def codegen(context, builder, signature, args):
        first = item_pointer(context, builder, buffer, *args)
        for i in range(0, LANES, 8):
            _ask(builder, builder.bitcast(builder.gep(first, [number(i)]), ir.IntType(8).as_pointer()))
        return context.get_dummy_value()

    return types.none(buffer, types.intp), codegen


@intrinsic
def prefetch_at(typingctx, address):
    """Ask for the cache line of a byte address."""

    def codegen(context, builder, signature, args):
        _ask(builder, builder.inttoptr(args[0], ir.IntType(8).as_pointer()))
        return context.get_dummy_value()

    return types.none(types.intp), codegen


def _ask(builder, place) -> None:
    # For reading, into every level of the cache, data.
    call(builder, "prefetch.p0", ir.VoidType(), [place, *(number(v, INT32) for v in (0, 3, 1))])


def loss_type(unit) -> ir.Type:
    """The LLVM type of numbers in memory, of which ``unit`` is numba's type."""
    return ir.FloatType() if unit == types.float32 else DOUBLE


def _read_number(builder, start, stride, i, kind):
    """The number of type ``kind`` at ``start + i * stride`` bytes, as a float64."""
    value = _read_at(builder, start, stride, i, kind)
    value.align = 4 if kind == ir.FloatType() else 8
    return value if kind == DOUBLE else builder.fpext(value, DOUBLE)


@intrinsic
def number_at(typingctx, address, unit):
    """The number of the type of ``unit`` at a byte address, as a float64."""

    def codegen(context, builder, signature, args):
        return _read_number(builder, args[0], number(0), number(0), loss_type(unit))

    return types.float64(types.intp, unit), codegen


def read_beside(builder, address, kind, begin=None, end=None):
    """Lanes from numbers that lie side by side; with ends only from these lanes, zero elsewhere."""
    pieces = []
    row_type = ir.VectorType(kind, PIECE)
    for first in FIRSTS:
        where = number(first), number(4 if kind == ir.FloatType() else 8)
        if end is None:
            row = _read_at(builder, address, *where, row_type)
            row.align = 4
        else:
            lane = ir.Constant(WORDS, list(range(first, first + PIECE)))
            there = builder.and_(
                builder.icmp_signed("<=", splat(builder, begin), lane),
                builder.icmp_signed("<", lane, splat(builder, end)),
            )
            place = builder.inttoptr(builder.add(address, builder.mul(*where)), row_type.as_pointer())
            args = [place, number(4, INT32), there, ir.Constant(row_type, None)]
            suffix = "f32" if kind == ir.FloatType() else "f64"
            row = call(builder, f"masked.load.v{PIECE}{suffix}.p0", row_type, args)
        pieces.append(row if kind == DOUBLE else builder.fpext(row, NUMBERS))
    return join(builder, pieces)


@intrinsic
def gather(typingctx, address, stride, last, unit):
    """Lane i from the number at ``address + min(i, last) * stride`` bytes; no clamp in a whole block."""
    kind = loss_type(unit)

    def codegen(context, builder, signature, args):
        address, stride, last, _ = args
        slot = cgutils.alloca_once(builder, ir.ArrayType(NUMBERS, len(FIRSTS)))
        whole = builder.icmp_signed(">=", last, number(LANES - 1))
        beside = builder.icmp_signed("==", stride, number(4 if kind == ir.FloatType() else 8))
        with builder.if_else(whole, likely=True) as (straight, clamped):
            with straight, builder.if_else(beside) as (one_after_the_other, apart):
                with one_after_the_other:
                    builder.store(read_beside(builder, address, kind), slot)
                with apart:
                    builder.store(_read_column(builder, address, stride, kind), slot)
            with clamped:
                slots = builder.bitcast(slot, DOUBLE.as_pointer())
                with cgutils.for_range(builder, number(LANES)) as loop:
                    beyond = builder.icmp_signed(">", loop.index, last)
                    i = builder.select(beyond, last, loop.index)
                    loss = _read_number(builder, address, stride, i, kind)
                    builder.store(loss, builder.gep(slots, [loop.index]))
        return builder.load(slot)

    return lanes(types.intp, types.intp, types.intp, unit), codegen


@emitted(types.none(types.intp, types.intp, types.intp, lanes))
def scatter(builder, address, stride, last, x):
    """Lane i to the float64 at ``address + i * stride`` bytes, up to lane ``last``."""
    slot = cgutils.alloca_once(builder, ir.ArrayType(NUMBERS, len(FIRSTS)))
    builder.store(x, slot)
    slots = builder.bitcast(slot, DOUBLE.as_pointer())
    with cgutils.for_range(builder, builder.add(last, number(1))) as loop:
        place = builder.add(address, builder.mul(stride, loop.index))
        number_there = builder.load(builder.gep(slots, [loop.index]))
        builder.store(number_there, builder.inttoptr(place, DOUBLE.as_pointer()))
    return ir.Constant(ir.IntType(8).as_pointer(), None)


@intrinsic
def column(typingctx, address, stride, unit):
    """Lane i from the number at ``address + i * stride`` bytes, in a whole block: nothing is asked first."""

    def codegen(context, builder, signature, args):
        return _read_column(builder, *args[:2], loss_type(unit))

    return lanes(types.intp, types.intp, unit), codegen


def _read_column(builder, address, stride, kind):
    pieces = []
    for first in FIRSTS:
        piece = ir.Constant(NUMBERS, ir.Undefined)
        for k in range(PIECE):
            loss = _read_number(builder, address, stride, number(first + k), kind)
            piece = builder.insert_element(piece, loss, number(k, INT32))
        pieces.append(piece)
    return join(builder, pieces)


@intrinsic
def columns(typingctx, address, stride, unit):
    """Four such columns at once, from ``address`` and the three numbers after it.

    Rows are transposed in registers, so that every cache line is touched once instead of once a column.
    """
    four = types.UniTuple(lanes, FOUR)
    kind = ir.VectorType(loss_type(unit), FOUR)

    def codegen(context, builder, signature, args):
        halves = []
        for first in range(0, LANES, FOUR):
            rows = [_read_at(builder, *args[:2], number(first + k), kind) for k in range(FOUR)]
            for row in rows:
                row.align = 4
            halves.append(_transpose(builder, [_widened(builder, row) for row in rows]))
        found = []
        for low, high in zip(*halves, strict=True):
            pieces = [take(builder, low, high, range(LANES))] if PIECE == LANES else [low, high]
            found.append(join(builder, pieces))
        return context.make_tuple(builder, four, found)

    return four(types.intp, types.intp, unit), codegen


def _widened(builder, row):
    """A row of float64 made of what may be float32."""
    return row if row.type == ROW else builder.fpext(row, ROW)


def _transpose(builder, rows):
    """The columns of four rows of four."""
    even = [take(builder, rows[k], rows[k + 1], [0, 4, 2, 6]) for k in (0, 2)]
    odd = [take(builder, rows[k], rows[k + 1], [1, 5, 3, 7]) for k in (0, 2)]
    return [take(builder, *pair, low) for low in ([0, 1, 4, 5], [2, 3, 6, 7]) for pair in (even, odd)]
