"""Scalar operations written so that LLVM turns the loops around them into vector code.

numba's own ``min`` and ``max`` honour NaN and the sign of zero, and its integers widen to 64 bits; either
keeps a reduction scalar. These do not: floats carry the flags nnan and nsz, integers stay at 32 bits.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

FLAGS = ("nnan", "nsz")
INT32 = ir.IntType(32)
LEAST_CURVATURE = 0x2B8CBCCC  # the bits of 1e-12 in float32
ONE = 0x3F800000  # the bits of 1.0
LARGEST = 2**31 - 1


@intrinsic
def lesser(typingctx: Any, a: Any, b: Any) -> Any:
    """The lesser of two floats that are not NaN."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", *args, flags=FLAGS), *args, flags=FLAGS)

    return a(a, a), generate


@intrinsic
def greater(typingctx: Any, a: Any, b: Any) -> Any:
    """The greater of two floats that are not NaN."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *args, flags=FLAGS), *args, flags=FLAGS)

    return a(a, a), generate


@intrinsic
def best_pair(typingctx: Any, best: Any, difference: Any, m: Any, index: Any, mask: Any) -> Any:
    """max(best, key), where key holds about log2(difference^2 / m) above the index, in one int32.

    The bits of a positive float, read as an integer, are its logarithm with the mantissa for its
    fraction; so a subtraction stands for the division, to within 9 percent of the gain.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        best, difference, m, index, mask = args
        gain = builder.bitcast(builder.fmul(difference, difference), INT32)
        least = ir.Constant(INT32, LEAST_CURVATURE)
        bits = builder.bitcast(m, INT32)
        curvature = builder.select(builder.icmp_signed(">", bits, least), bits, least)
        ratio = builder.add(builder.sub(gain, curvature), ir.Constant(INT32, ONE))
        key = builder.or_(builder.and_(ratio, mask), builder.trunc(index, INT32))
        return builder.select(builder.icmp_signed(">", key, best), key, best)

    return types.int32(types.int32, types.float32, types.float32, types.int64, types.int32), generate


@intrinsic
def first_equal(typingctx: Any, first: Any, value: Any, wanted: Any, index: Any) -> Any:
    """min(first, index) where value equals wanted, else first; in int32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first, value, wanted, index = args
        hit = builder.fcmp_ordered("==", value, wanted)
        place = builder.select(hit, builder.trunc(index, INT32), ir.Constant(INT32, LARGEST))
        return builder.select(builder.icmp_signed("<", place, first), place, first)

    return types.int32(types.int32, types.float32, types.float32, types.int64), generate
