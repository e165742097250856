"""Machine words as sets of rounds: bit t stands for round t of a block."""

from __future__ import annotations

from llvmlite import ir
from numba.extending import intrinsic, types


@intrinsic
def lowest(typingctx, word):
    """The smallest member of a non-empty set: the index of the lowest bit."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@intrinsic
def size(typingctx, word):
    """How many members a set has."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen
