"""Loops whose sums must stay in registers: a tile of a matrix product, and how far rows are apart."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic, types

from normalfan._kernels.buffers import LANES
from normalfan._kernels.lanes import FIRSTS, NUMBERS, PIECE, call, larger, number, splat, split
from normalfan._kernels.memory import item_pointer, loss_type, piece_pointers, read_beside, read_piece

TILE_ROWS = 12 * PIECE // LANES  # their sums fill twelve registers, whatever the size of these


@intrinsic
def multiply_tile(typingctx, rows, states, first, most, values, start, out, place, stride):
    """out[place + r * stride :] = sum over k of rows[first + min(r, most), k] * values[start + k * LANES :].

    For r below TILE_ROWS and LANES columns at once, each summed in ascending order; rows are [any, states].
    """

    def codegen(context, builder, signature, args):
        rows_array, states, first, most, values_array, start, out_array, place, stride = args
        base = context.make_array(rows)(context, builder, rows_array).data
        chosen = []
        for r in range(TILE_ROWS):
            beyond = builder.icmp_signed("<", most, number(r))
            row = builder.add(first, builder.select(beyond, most, number(r)))
            chosen.append(builder.gep(base, [builder.mul(row, states)]))
        sums = [[cgutils.alloca_once(builder, NUMBERS) for _ in FIRSTS] for _ in chosen]
        for row in sums:
            for slot in row:
                builder.store(ir.Constant(NUMBERS, None), slot)
        values_start = item_pointer(context, builder, values, values_array, start)
        with cgutils.for_range(builder, states) as loop:
            column = builder.gep(values_start, [builder.mul(loop.index, number(LANES))])
            pieces = [read_piece(builder, piece) for piece in piece_pointers(builder, column)]
            for row, slots in zip(chosen, sums, strict=True):
                weight = splat(builder, builder.load(builder.gep(row, [loop.index])))
                for piece, slot in zip(pieces, slots, strict=True):
                    more = [weight, piece, builder.load(slot)]
                    builder.store(call(builder, f"fma.v{PIECE}f64", NUMBERS, more), slot)
        for r, slots in enumerate(sums):
            beyond = builder.icmp_signed("<", most, number(r))
            row = builder.select(beyond, most, number(r))
            target = builder.add(place, builder.mul(row, stride))
            pointers = piece_pointers(builder, item_pointer(context, builder, out, out_array, target))
            for pointer, slot in zip(pointers, slots, strict=True):
                builder.store(builder.load(slot), pointer).align = 8
        return context.get_dummy_value()

    size = types.intp
    return types.none(rows, size, size, size, values, size, out, size, size), codegen


def _longer(builder, d, x):
    return builder.fadd(x, d)


def _squarer(builder, d, x):
    return call(builder, f"fma.v{PIECE}f64", NUMBERS, [d, d, x])


@intrinsic
def add_distances(typingctx, before, place, stride, last, skip, count, unit, norms):
    """Add up how far numbers are from those in the row before, for LANES rows from ``place`` on.

    Row r lies ``min(r, last) * stride`` bytes further, and the one before the first at ``before``; each has
    ``count`` numbers of the type of ``unit``, the first for lane ``skip``. Lanes of ``norms``, for row r from
    ``3 * r * LANES`` on, are the sums of |x - y|, those of its squares, and the largest.
    """

    def codegen(context, builder, signature, args):
        before, place, stride, last, skip, count, _, norms_array = args
        kind = loss_type(unit)
        size = number(4 if kind == ir.FloatType() else 8)
        rows = [before]
        for r in range(LANES):
            beyond = builder.icmp_signed("<", last, number(r))
            rows.append(builder.add(place, builder.mul(stride, builder.select(beyond, last, number(r)))))
        first = item_pointer(context, builder, norms, norms_array, number(0))
        places = [builder.gep(first, [number(k)]) for k in range(0, 3 * LANES * LANES, PIECE)]
        places = [builder.bitcast(one, NUMBERS.as_pointer()) for one in places]
        sums = [cgutils.alloca_once(builder, NUMBERS) for _ in places]
        for slot, one in zip(sums, places, strict=True):
            builder.store(read_piece(builder, one), slot)

        def add_column(column, *ends):
            offset = builder.mul(builder.sub(column, skip), size)
            slots = iter(sums)
            old, *new = (read_beside(builder, builder.add(row, offset), kind, *ends) for row in rows)
            for now in new:
                moves = [
                    call(builder, f"fabs.v{PIECE}f64", NUMBERS, [builder.fsub(x, y)])
                    for x, y in zip(split(builder, now), split(builder, old), strict=True)
                ]
                for grow in (_longer, _squarer, larger):
                    for d in moves:
                        slot = next(slots)
                        builder.store(grow(builder, d, builder.load(slot)), slot)
                old = now

        end = builder.add(skip, count)
        begin = builder.select(builder.icmp_signed(">", skip, number(0)), number(LANES), number(0))
        whole = builder.and_(end, number(-LANES))
        with builder.if_then(builder.icmp_signed("<", number(0), skip)):
            add_column(number(0), skip, end)
        with cgutils.for_range_slice(builder, begin, whole, number(LANES)) as (column, _):
            add_column(column)
        tail = builder.select(builder.icmp_signed("<", begin, whole), whole, begin)
        with builder.if_then(builder.icmp_signed("<", tail, end)):
            add_column(tail, number(0), builder.sub(end, tail))
        for slot, one in zip(sums, places, strict=True):
            builder.store(builder.load(slot), one).align = 8
        return context.get_dummy_value()

    size = types.intp
    return types.none(size, size, size, size, size, size, unit, norms), codegen
