"""Squared distances, the Gaussian kernel K, and its complement M = 1 - K.

For small gamma, K differs from 1 only in its last digits, while M keeps full precision. The solver works with
M, in float64 and in float32.

``fill_tile`` is written in vectors itself, since no loop makes LLVM keep a tile of sums in registers.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from ckcv_ray.learners.svm.compile import compile_listed, emit, load_code, wide
from ckcv_ray.learners.svm.problem import DOUBLES, LANES, Matrix, Single, round_up, scratch, writable

PANELS = 8  # panels of ``DOUBLES`` columns each, whose features are read again while in the cache
MIRRORED_FROM = 50  # columns from which copying half of a square takes less time than computing it
STRIP = 1 << 20  # elements of M computed at once where M is not kept
MIN_CURVATURE = 1e-12
LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # their sum is ln 2
LAST = 1.0 / 6227020800.0
INT32, INT64 = ir.IntType(32), ir.IntType(64)
SHIFT, TILE_ROWS = 1.5 * 2.0**52, 4
LARGEST_EXPONENT = 700.0  # exp(-700) is far below the last digit of 1
RowIndex = NDArray[np.int64]


class Complement(NamedTuple):
    """M = 1 - K of n training rows, for the solver."""

    double: Matrix  # float64; its first n columns are M, shape (n, n rounded up to full vectors)
    single: Single  # the same in float32, at least ``MIN_CURVATURE`` everywhere, padding included


def compute_distances(A: Matrix, B: Matrix) -> Matrix:
    """Return the squared Euclidean distances [p, q] between the rows of A [p, d] and B [q, d].

    Squared differences are summed over the features in order, as in scipy's ``cdist`` and not as a matrix
    product: so equal rows have distance 0, no digits cancel, and any block equals the same block of the full
    matrix in every bit. Whether distances were shared or recomputed makes no difference to a result.
    """
    D = np.empty((len(A), round_up(len(B), DOUBLES)))
    fill_distances(A, B, D)
    return D[:, : len(B)]


def fill_distances(A: Matrix, B: Matrix, out: Matrix) -> None:
    """Write ``compute_distances`` to rows padded to full vectors; the padding is finite.

    If B is A, the matrix is symmetric in every bit, and if rows are wide, half of it is copied.
    """
    load_code()
    d, mirrored = A.shape[1], B is A and A.shape[1] >= MIRRORED_FROM
    A, B = (np.require(rows, np.float64, ("C", "W")) for rows in (A, B))
    _sum_squares(A, B, scratch("panels", (PANELS, d, DOUBLES), np.float64), mirrored, out)


def gaussian(distances: Matrix, gamma: float) -> Matrix:
    """Return the kernel matrix exp(-gamma * D) of squared distances D, a new array of the same shape."""
    K = np.multiply(distances, -gamma)
    return np.exp(K, out=K)


def complement(distances: Matrix, gamma: float, out: Matrix | None = None) -> Matrix:
    """Return 1 - K = -expm1(-gamma * D) of squared distances D, to full precision however small gamma is."""
    load_code()
    M = np.empty(distances.shape) if out is None else out
    _fill(writable(distances), gamma, M, np.empty((len(M), 0), np.float32))
    return M


def fill_complement(distances: Matrix, gamma: float, out: Complement) -> None:
    """Fill ``out`` from the distances among the training rows, padded as by ``fill_distances``."""
    load_code()
    _fill(writable(distances), gamma, out.double, out.single)


def strip_rows(columns: int) -> int:
    """Return the number of rows of a strip of ``STRIP`` elements."""
    return max(1, STRIP // max(1, columns))


def complement_product(A: Matrix, B: Matrix, gamma: float, b: Matrix) -> Matrix:
    """Return M(A, B) b for the rows of A [p, d] and B [q, d], shape (p,), from temporary strips of M."""
    product = np.empty(len(A))
    strip = strip_rows(len(B))
    D = scratch("strip", (min(strip, len(A)), round_up(len(B), DOUBLES)), np.float64)
    M = scratch("strip kernel", D.shape, np.float64)
    for first in range(0, len(A), strip):
        rows = A[first : first + strip]
        fill_distances(rows, B, D[: len(rows)])
        complement(D[: len(rows)], gamma, out=M[: len(rows)])
        product[first : first + strip] = np.vecdot(M[: len(rows), : len(B)], b)
    return product


def scratch_complement(n: int) -> Complement:
    """Return arrays for the complement of n training rows, from the calling thread's scratch memory."""
    return Complement(
        scratch("kernel", (n, round_up(n, DOUBLES)), np.float64),
        scratch("single", (n, round_up(n, LANES)), np.float32),
    )


def compute_complement(X: Matrix, gamma: float) -> Complement:
    """Return M of the rows X, in the calling thread's scratch memory, without holding their distances."""
    M = scratch_complement(len(X))
    fill_distances(X, X, M.double)
    strip = strip_rows(M.double.shape[1])
    for first in range(0, len(X), strip):
        double, single = M.double[first : first + strip], M.single[first : first + strip]
        distances = scratch("strip", double.shape, np.float64)
        distances[...] = double
        fill_complement(distances, gamma, Complement(double, single))
    return M


def _define_tile(typingctx: Any, A: Any, panel: Any, D: Any, i: Any, j: Any) -> Any:
    """Fill ``TILE_ROWS`` rows from i on of ``DOUBLES`` columns from j on of D with squared distances.

    Row i of D is for row i of A [rows, d], and column j + q for column q of ``panel`` [d, DOUBLES]; the
    arrays are C-contiguous. Beyond the last row, that row is filled again. Each sum is over the features in
    order, rounded after every operation, whatever the processor's vectors.
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


def _power(builder: Any, t: Any) -> Any:
    bits = builder.shl(builder.bitcast(t, INT64), ir.Constant(INT64, 52))
    return builder.bitcast(builder.add(bits, ir.Constant(INT64, 1023 << 52)), ir.DoubleType())


fill_tile = intrinsic(_define_tile)
# 2^(t - SHIFT) for an integer t - SHIFT from -1022 to 1023, where SHIFT = 1.5 * 2^52. At that size a float's
# low bits are its integer part; shifted up to the exponent, they are the power
power_of_two = emit(types.float64(types.float64), _power)


@compile_listed()
def _sum_squares(A: Matrix, B: Matrix, panels: Matrix, mirrored: bool, D: Matrix) -> None:
    """Fill D[i, j] = sum over f of (A[i, f] - B[j, f])^2, in order; ``mirrored`` says that B is A.

    ``panels`` [PANELS, d, DOUBLES] is scratch: rows of B, feature by feature, beyond the last one zeros.
    """
    wide()
    n, m, width = A.shape[0], D.shape[1], panels.shape[2]
    for start in range(0, m, panels.shape[0] * width):
        stop = min(start + panels.shape[0] * width, m)
        rows = min(stop, n) if mirrored else n
        for j in range(start, stop, width):
            _fill_panel(B, j, panels[(j - start) // width])
        for i in range(0, rows, TILE_ROWS):
            for j in range(start, stop, width):
                fill_tile(A, panels[(j - start) // width], D, i, j)
        if mirrored:
            for j in range(start, stop, width):
                _mirror(D, j, min(j, n), min(j + width, n))


@compile_listed()
def _fill_panel(B: Matrix, start: int, panel: Matrix) -> None:
    """Copy rows of B from ``start`` on to the columns of a panel."""
    for q in range(panel.shape[1]):
        for f in range(panel.shape[0]):
            panel[f, q] = B[start + q, f] if start + q < B.shape[0] else 0.0


@compile_listed()
def _mirror(D: Matrix, start: int, rows: int, stop: int) -> None:
    """Copy the columns from start to stop of the first rows of D to the rows from start to stop."""
    for i in range(rows):
        for j in range(start, stop):
            D[j, i] = D[i, j]


@compile_listed()
def gather(D: Matrix, rows: RowIndex, columns: RowIndex, block: Matrix) -> None:
    """Copy D[rows][:, columns] to rows padded to full vectors with zeros."""
    wide()
    for p in range(rows.shape[0]):
        row, out = D[rows[p]], block[p]
        for q in range(columns.shape[0]):
            out[q] = row[columns[q]]
        for q in range(columns.shape[0], out.shape[0]):
            out[q] = 0.0


@compile_listed(fastmath={"contract"})
def _fill(D: Matrix, gamma: float, double: Matrix, single: Single) -> None:
    """Fill in 1 - exp(-gamma D); with -gamma D = k ln 2 + r, this is (1 - 2^k) - 2^k expm1(r)."""
    wide()
    n = min(D.shape[1], single.shape[1])
    for i in range(D.shape[0]):
        row, out, narrow = D[i], double[i], single[i]
        for j in range(row.shape[0]):
            x = -gamma * row[j]
            x = x if x > -LARGEST_EXPONENT else -LARGEST_EXPONENT
            t = x * LOG2_E + SHIFT
            k = t - SHIFT
            power = power_of_two(t)
            r = (x - k * LN2_HIGH) - k * LN2_LOW
            r2 = r * r
            r4 = r2 * r2
            # Taylor series of expm1 to r^13 / 13!, by Estrin's scheme
            low = (1.0 + r * (1.0 / 2.0)) + r2 * (1.0 / 6.0 + r * (1.0 / 24.0))
            middle = (1.0 / 120.0 + r * (1.0 / 720.0)) + r2 * (1.0 / 5040.0 + r * (1.0 / 40320.0))
            high = (1.0 / 362880.0 + r * (1.0 / 3628800.0)) + r2 * (
                1.0 / 39916800.0 + r * (1.0 / 479001600.0)
            )
            series = low + r4 * (middle + r4 * (high + r4 * LAST))
            out[j] = (1.0 - power) - power * (r * series)
        for j in range(n):
            narrow[j] = out[j] if out[j] > MIN_CURVATURE else MIN_CURVATURE
        for j in range(n, narrow.shape[0]):
            narrow[j] = np.float32(1.0)
