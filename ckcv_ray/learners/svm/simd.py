"""Scalar operations written so that LLVM turns the loops around them into vector code.

numba's ``min`` and ``max`` honour NaN and the sign of zero, and its integers widen to 64 bits; either keeps a
reduction scalar. These do not: floats carry the flags nnan and nsz, and integers stay at 32 bits.

``fill_tile`` is written in vectors itself, since no loop makes LLVM keep a tile of sums in registers.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ckcv_ray.learners.svm.memory import DOUBLES

FAST = {"contract", "reassoc", "arcp", "nsz"}
REDUCTION_FLAGS = ("nnan", "nsz")
INT32 = ir.IntType(32)
INT64 = ir.IntType(64)
SHIFT = 1.5 * 2.0**52
TILE_ROWS = 4


@intrinsic
def lesser(typingctx: Any, a: Any, b: Any) -> Any:
    """Return the lesser of two floats that are not NaN."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(
            builder.fcmp_ordered("<", *args, flags=REDUCTION_FLAGS), *args, flags=REDUCTION_FLAGS
        )

    return a(a, a), generate


@intrinsic
def greater(typingctx: Any, a: Any, b: Any) -> Any:
    """Return the greater of two floats that are not NaN."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(
            builder.fcmp_ordered(">", *args, flags=REDUCTION_FLAGS), *args, flags=REDUCTION_FLAGS
        )

    return a(a, a), generate


@intrinsic
def fuse(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return a(a, a, a), generate


@intrinsic
def largest_gain(typingctx: Any, best: Any, difference: Any, m: Any, index: Any, mask: Any) -> Any:
    """Return max(best, key), where key holds about log2(difference^2 / m) above the index, in one int32.

    The bits of a positive float, read as an integer, are its logarithm with the mantissa as the
    fraction; so a subtraction replaces the division, to within 9 percent of the gain.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        best, difference, m, index, mask = args
        gain = builder.bitcast(builder.fmul(difference, difference), INT32)
        key = _pack(builder, builder.sub(gain, builder.bitcast(m, INT32)), index, mask)
        return builder.select(builder.icmp_signed(">", key, best), key, best)

    return types.int32(types.int32, types.float32, types.float32, types.int64, types.int32), generate


@intrinsic
def lowest(typingctx: Any, best: Any, height: Any, index: Any, mask: Any) -> Any:
    """Return min(best, key), where key holds the upper bits of height above the index.

    If height is negative, by rounding, so is the key.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        best, height, index, mask = args
        key = _pack(builder, builder.bitcast(height, INT32), index, mask)
        return builder.select(builder.icmp_signed("<", key, best), key, best)

    return types.int32(types.int32, types.float32, types.int64, types.int32), generate


def _pack(builder: Any, value: Any, index: Any, mask: Any) -> Any:
    return builder.or_(builder.and_(value, mask), builder.trunc(index, INT32))


@intrinsic
def power_of_two(typingctx: Any, t: Any) -> Any:
    """Return 2^(t - SHIFT) for an integer t - SHIFT from -1022 to 1023, where SHIFT = 1.5 * 2^52.

    At that size a float's low bits are its integer part; shifted up to the exponent, they are the power.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.shl(builder.bitcast(args[0], INT64), ir.Constant(INT64, 52))
        return builder.bitcast(builder.add(bits, ir.Constant(INT64, 1023 << 52)), ir.DoubleType())

    return types.float64(types.float64), generate


@intrinsic
def wide(typingctx: Any) -> Any:
    """Let LLVM use vectors of 512 bits in the calling function, where the CPU has them."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # llvmlite's ``add`` accepts only attributes without a value
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def fill_tile(typingctx: Any, A: Any, panel: Any, D: Any, i: Any, j: Any) -> Any:
    """Fill ``TILE_ROWS`` rows from i on of ``DOUBLES`` columns from j on of D with squared distances.

    Row i of D is for row i of A [rows, d], and column j + q for column q of ``panel`` [d, DOUBLES]; the
    arrays are C-contiguous. Beyond the last row, that row is filled again. Each sum is over the features in
    order, rounded after every operation, whatever the vectors of the processor.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        *arrays, i, j = args
        A, panel, D = (
            context.make_array(kind)(context, builder, array)
            for kind, array in zip(signature.args, arrays, strict=False)
        )
        vector = ir.VectorType(ir.DoubleType(), DOUBLES)
        undefined, first = ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(INT32, DOUBLES), None)
        n, d = cgutils.unpack_tuple(builder, A.shape)
        last, width = builder.sub(n, INT64(1)), cgutils.unpack_tuple(builder, D.shape)[1]
        rows = [builder.add(i, INT64(r)) for r in range(TILE_ROWS)]
        rows = [builder.select(builder.icmp_signed("<", row, last), row, last) for row in rows]
        inputs = [builder.gep(A.data, [builder.mul(row, d)]) for row in rows]
        sums = [cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * DOUBLES)) for _ in rows]
        with cgutils.for_range(builder, d) as loop:
            at = builder.gep(panel.data, [builder.mul(loop.index, INT64(DOUBLES))])
            features = builder.load(builder.bitcast(at, vector.as_pointer()), align=8)
            for row, total in zip(inputs, sums, strict=True):
                value = builder.insert_element(
                    undefined, builder.load(builder.gep(row, [loop.index])), INT32(0)
                )
                difference = builder.fsub(builder.shuffle_vector(value, undefined, first), features)
                square = builder.fmul(difference, difference)
                builder.store(builder.fadd(builder.load(total), square), total)
        for row, total in zip(rows, sums, strict=True):
            at = builder.gep(D.data, [builder.add(builder.mul(row, width), j)])
            builder.store(builder.load(total), builder.bitcast(at, vector.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(A, panel, D, i, j), generate
