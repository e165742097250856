"""How lanes look to LLVM: arrays of small machine vectors, and code that walks them.

A value of n lanes is an array of n/4 vectors ``<4 x double>``, one 256-bit register
each, and every operation is emitted piece by piece. One wide vector ``<n x double>``
would be shorter to write, but LLVM then narrows comparison masks to bytes and widens
them again, which costs more than the arithmetic it serves.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

PIECE = 4
DOUBLE = ir.DoubleType()
INT64 = ir.IntType(64)
INT32 = ir.IntType(32)
BYTES = ir.IntType(8).as_pointer()
NUMBERS = ir.VectorType(DOUBLE, PIECE)
WORDS = ir.VectorType(INT64, PIECE)
TRUTHS = ir.VectorType(ir.IntType(1), PIECE)


def split(builder, value) -> list:
    """The pieces of a value."""
    return [builder.extract_value(value, k) for k in range(value.type.count)]


def join(builder, pieces):
    """The value made of these pieces."""
    value = ir.Constant(ir.ArrayType(pieces[0].type, len(pieces)), ir.Undefined)
    for k, piece in enumerate(pieces):
        value = builder.insert_value(value, piece, k)
    return value


def piecewise(emit):
    """A code generator that applies ``emit(builder, piece, ...)`` to matching pieces."""

    def codegen(context, builder, signature, args):
        pieces = zip(*(split(builder, arg) for arg in args), strict=True)
        return join(builder, [emit(builder, *operands) for operands in pieces])

    return codegen


def library(name: str):
    """Emit a call of the vector form of an LLVM intrinsic."""

    def emit(builder, *pieces):
        kind = ir.FunctionType(NUMBERS, [NUMBERS] * len(pieces))
        symbol = f"llvm.{name}.v{PIECE}f64"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, symbol), pieces)

    return emit


def number(value: int, kind=INT64):
    return ir.Constant(kind, value)


def take(builder, x, y, lanes):
    """The named lanes of x followed by y."""
    order = ir.Constant(ir.VectorType(INT32, len(lanes)), list(lanes))
    return builder.shuffle_vector(x, y, order)


def splat(builder, scalar):
    """A piece with the scalar in every lane."""
    empty = ir.Constant(ir.VectorType(scalar.type, PIECE), ir.Undefined)
    single = builder.insert_element(empty, scalar, number(0, INT32))
    return take(builder, single, empty, [0] * PIECE)


def transpose(builder, rows):
    """The columns of four rows of four."""
    even = [take(builder, rows[k], rows[k + 1], [0, 4, 2, 6]) for k in (0, 2)]
    odd = [take(builder, rows[k], rows[k + 1], [1, 5, 3, 7]) for k in (0, 2)]
    return [
        take(builder, *even, [0, 1, 4, 5]),
        take(builder, *odd, [0, 1, 4, 5]),
        take(builder, *even, [2, 3, 6, 7]),
        take(builder, *odd, [2, 3, 6, 7]),
    ]


def read(builder, pointer):
    value = builder.load(pointer)
    value.align = 8  # nothing is assumed of a buffer beyond the size of its items
    return value


def read_at(builder, start, stride, i, kind):
    """Load ``kind`` from the byte address ``start + i * stride``."""
    place = builder.add(start, builder.mul(stride, i))
    return read(builder, builder.inttoptr(place, kind.as_pointer()))


def item_pointer(context, builder, array_type, array, index):
    """Where item ``index`` of a flat array lies."""
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


def piece_pointers(start, builder, count: int) -> list:
    """Where the pieces of ``count`` lanes lie from ``start``."""
    places = [builder.gep(start, [number(i)]) for i in range(0, count, PIECE)]
    return [builder.bitcast(place, NUMBERS.as_pointer()) for place in places]


def ask_for(builder, pointer, level: int) -> None:
    """Prefetch a cache line for reading; 3 is into every level, 2 spares the first."""
    kind = ir.FunctionType(ir.VoidType(), [BYTES, INT32, INT32, INT32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [pointer, *(number(v, INT32) for v in (0, level, 1))])
