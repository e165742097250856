"""Lanes from memory and back; ``item`` and ``put`` are single entries, at an index known not to be negative.

Losses are addressed by bytes and strides, whatever their layout; buffers are flat arrays of our own.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic, types

from normalfan._kernels.vectors import (
    BYTES,
    DOUBLE,
    INT32,
    NUMBERS,
    PIECE,
    ask_for,
    item_pointer,
    join,
    number,
    piece_pointers,
    read,
    read_at,
    split,
    transpose,
)


@intrinsic
def load(typingctx, buffer, start, like):
    """Lanes from ``buffer[start : start + n]``."""

    def codegen(context, builder, signature, args):
        start = item_pointer(context, builder, buffer, args[0], args[1])
        places = piece_pointers(start, builder, like.count)
        return join(builder, [read(builder, place) for place in places])

    return like(buffer, types.intp, like), codegen


@intrinsic
def store(typingctx, buffer, start, x):
    """Write the lanes to ``buffer[start : start + n]``."""

    def codegen(context, builder, signature, args):
        start = item_pointer(context, builder, buffer, args[0], args[1])
        places = piece_pointers(start, builder, x.count)
        for place, piece in zip(places, split(builder, args[2]), strict=True):
            builder.store(piece, place).align = 8
        return context.get_dummy_value()

    return types.none(buffer, types.intp, x), codegen


@intrinsic
def item(typingctx, array, index):
    """``array[index]`` of a flat array, for an index known not to be negative."""

    def codegen(context, builder, signature, args):
        place = item_pointer(context, builder, array, args[0], args[1])
        return context.unpack_value(builder, array.dtype, place)

    return array.dtype(array, types.intp), codegen


@intrinsic
def put(typingctx, array, index, value):
    """``array[index] = value`` of a flat array of integers, likewise; high bits are dropped."""

    def codegen(context, builder, signature, args):
        place = item_pointer(context, builder, array, args[0], args[1])
        builder.store(builder.trunc(args[2], ir.IntType(array.dtype.bitwidth)), place)
        return context.get_dummy_value()

    return types.none(array, types.intp, types.int64), codegen


@intrinsic
def gather(typingctx, address, stride, last, like):
    """Lane i from the float64 at ``address + min(i, last) * stride`` bytes; no clamp in a whole block."""
    count = like.count

    def codegen(context, builder, signature, args):
        start, stride, last, _ = args
        slot = cgutils.alloca_once(builder, ir.ArrayType(NUMBERS, count // PIECE))
        whole = builder.icmp_signed(">=", last, number(count - 1))
        with builder.if_else(whole, likely=True) as (straight, clamped):
            with straight:
                pieces = []
                for first in range(0, count, PIECE):
                    piece = ir.Constant(NUMBERS, ir.Undefined)
                    for k in range(PIECE):
                        loss = read_at(builder, start, stride, number(first + k), DOUBLE)
                        piece = builder.insert_element(piece, loss, number(k, INT32))
                    pieces.append(piece)
                builder.store(join(builder, pieces), slot)
            with clamped:
                slots = builder.bitcast(slot, DOUBLE.as_pointer())
                with cgutils.for_range(builder, number(count)) as loop:
                    beyond = builder.icmp_signed(">", loop.index, last)
                    i = builder.select(beyond, last, loop.index)
                    loss = read_at(builder, start, stride, i, DOUBLE)
                    builder.store(loss, builder.gep(slots, [loop.index]))
        return builder.load(slot)

    return like(types.intp, types.intp, types.intp, like), codegen


@intrinsic
def columns(typingctx, address, stride, like):
    """Four gathers of a whole block at once, from ``address`` and the three float64 after it.

    Rows are transposed in registers, so that every cache line is touched once instead of once a column.
    """
    four = types.UniTuple(like, PIECE)

    def codegen(context, builder, signature, args):
        start, stride, _ = args
        columns = [[] for _ in range(PIECE)]
        for first in range(0, like.count, PIECE):
            rows = [read_at(builder, start, stride, number(first + k), NUMBERS) for k in range(PIECE)]
            for column, piece in zip(columns, transpose(builder, rows), strict=True):
                column.append(piece)
        return context.make_tuple(builder, four, [join(builder, c) for c in columns])

    return four(types.intp, types.intp, like), codegen


@intrinsic
def prefetch_items(typingctx, buffer, start, like):
    """Ask for the lines that hold ``buffer[start : start + 2n]``."""

    def codegen(context, builder, signature, args):
        first = item_pointer(context, builder, buffer, args[0], args[1])
        for i in range(0, 2 * like.count, 8):
            ask_for(builder, builder.bitcast(builder.gep(first, [number(i)]), BYTES), 3)
        return context.get_dummy_value()

    return types.none(buffer, types.intp, like), codegen
