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
FOUR = 4  # columns that are transposed at a time
FIRSTS = range(0, LANES, PIECE)  # the first lane of each piece

DOUBLE = ir.DoubleType()
INT64 = ir.IntType(64)
INT32 = ir.IntType(32)
NUMBERS = ir.VectorType(DOUBLE, PIECE)
WORDS = ir.VectorType(INT64, PIECE)
ROW = ir.VectorType(DOUBLE, FOUR)
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
    wide = ir.IntType(64 * PIECE)
    pieces = (builder.bitcast(piece, wide) for piece in split(builder, x))
    return builder.icmp_unsigned("!=", reduce(builder.or_, pieces), ir.Constant(wide, 0))


@emitted(types.int64(types.uint64))
def lowest_bit(builder, word):
    """The index of the lowest bit of a word that is not 0."""
    return builder.cttz(word, ir.Constant(ir.IntType(1), 1))


@emitted(types.int64(types.uint64))
def count_bits(builder, word):
    return builder.ctpop(word)


# --- memory: losses lie at byte addresses, whatever their layout; buffers are flat arrays of our own ---


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
                    pieces = []
                    for first in FIRSTS:
                        piece = ir.Constant(NUMBERS, ir.Undefined)
                        for k in range(PIECE):
                            loss = _read_number(builder, address, stride, number(first + k), kind)
                            piece = builder.insert_element(piece, loss, number(k, INT32))
                        pieces.append(piece)
                    builder.store(join(builder, pieces), slot)
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
def columns(typingctx, address, stride, unit):
    """Four gathers of a whole block at once, from ``address`` and the three numbers after it.

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
