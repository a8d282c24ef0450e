"""A split prepared for all gammas: distances gathered or computed once, and the kernels computed from them.

If the matrices of a split fit into ``DENSE_BYTES``, distances are kept for all gammas, in scratch memory that
the next split reuses; otherwise a ``Points`` block computes them from the rows again for each gamma, which
changes no bit. If M = 1 - K of the training rows fits into ``WHOLE_BYTES``, the solver gets it in full; if
not, it computes a part of M at a time. Which of these two it is depends only on the number of training rows,
never on the machine: they differ in the last bits of a solution.

Without scaling, the distances are gathered from the shared matrix; the exponential is then taken on the
gathered block and not on the shared matrix: it costs about as much as gathering, which would have to be
repeated for every gamma (0.8 against 0.45 ns per element; at k = 3 a block has at most 4/9 of them).

With more than two classes, training rows are ordered by class. Distances are computed or gathered once; each
pair of classes takes its part of them. The kernel from the training rows to the scored rows is computed once
for each gamma, one training row in each row, so that decision values are sums of support vectors' rows only.

If M does not fit into memory, ``path_on_points`` solves one block of it at a time.
The state is b and its gradient F over all n rows. Each round takes a working set of at most ``BLOCK`` rows,
the worst violators on either side and then free variables, solves the problem restricted to them with the
steps of ``path``, and updates F from the rows that changed, whose kernel is computed in strips and discarded.
The most violating pair is always in the set, so the violation ends below the tolerance (Lin, IEEE Trans.
Neural Networks 12, 2001).
"""

from collections.abc import Iterator
from threading import get_ident
from typing import NamedTuple

import numpy as np

from ckcv_ray.errors import Index
from ckcv_ray.learners.svm import kernels, path
from ckcv_ray.learners.svm.compile import load_code
from ckcv_ray.learners.svm.kernels import RowIndex
from ckcv_ray.learners.svm.problem import (
    DOUBLES,
    EQUAL,
    Matrix,
    Options,
    Scaling,
    Solutions,
    Vector,
    Weights,
    empty_fits,
    fit_constant,
    round_up,
    scratch,
    snap_to_bounds,
    writable,
)

DENSE_BYTES = 1 << 31
WHOLE_BYTES = 1 << 31
BLOCK = 4096  # rows of a working set


class Dense(NamedTuple):
    """Squared distances from the training rows, and memory for a kernel."""

    train_distances: Matrix  # to themselves, [n_train, n_train padded to full vectors]
    score_distances: Matrix  # to the scored rows, likewise padded
    score_kernel: Matrix  # in the same shape
    n_score: int  # number of scored rows

    def fit(self, gamma: float, places: RowIndex, y: Vector, weights: Weights, options: Options) -> Solutions:
        """Fit the path of one gamma to some training rows, by their positions, with labels y."""
        D, M = self.train_distances, kernels.scratch_complement(len(places))
        if len(places) == len(D):  # then these are all training rows, in order
            kernels.fill_complement(D, gamma, M)
            return path.path(M, y, options, weights)
        strip = kernels.strip_rows(M.double.shape[1])
        for first in range(0, len(places), strip):
            double, single = M.double[first : first + strip], M.single[first : first + strip]
            distances = scratch("strip", double.shape, np.float64)
            kernels.gather(D, places[first : first + strip], places, distances)
            kernels.fill_complement(distances, gamma, kernels.Complement(double, single))
        return path.path(M, y, options, weights)

    def strips(self, gamma: float) -> Iterator[tuple[slice, Matrix]]:
        """Yield all scored rows, and M from the training rows to them, padded to full vectors."""
        yield slice(0, self.n_score), kernels.complement(self.score_distances, gamma, out=self.score_kernel)


class Points(NamedTuple):
    """The scaled rows themselves."""

    train: Matrix
    score: Matrix

    def fit(self, gamma: float, places: RowIndex, y: Vector, weights: Weights, options: Options) -> Solutions:
        """Fit the path of one gamma to some training rows, by their positions, with labels y."""
        X = self.train[places]
        if whole_bytes(len(X)) > WHOLE_BYTES:
            return path_on_points(X, gamma, y, options, weights)
        return path.path(kernels.compute_complement(X, gamma), y, options, weights)

    def strips(self, gamma: float) -> Iterator[tuple[slice, Matrix]]:
        """Yield a few scored rows at a time, and M as in the other block."""
        step = kernels.strip_rows(len(self.train))
        for start in range(0, len(self.score), step):
            rows = self.score[start : start + step]
            D = scratch("strip", (len(self.train), round_up(len(rows), DOUBLES)), np.float64)
            kernels.fill_distances(self.train, rows, D)
            M = scratch("strip kernel", D.shape, np.float64)
            yield slice(start, start + len(rows)), kernels.complement(D, gamma, out=M)


def whole_bytes(n_train: int) -> int:
    """Return the bytes of M among the training rows in both precisions."""
    return 12 * n_train**2


def dense_bytes(n_train: int, n_score: int) -> int:
    """Return the bytes of a Dense block: D, M (both precisions) of training rows, and D, M of scored rows."""
    return n_train * (20 * n_train + 16 * n_score)


def block_bytes(n_train: int, n_score: int, d: int, n_C: int) -> int:
    """Return the bytes of one split in a worker, solver included: rows twice, block, factors, fits."""
    matrices = dense_bytes(n_train, n_score)
    if matrices > DENSE_BYTES:
        whole = whole_bytes(n_train)
        matrices = (whole if whole <= WHOLE_BYTES else whole_bytes(BLOCK)) + 16 * kernels.STRIP
    rows = 16 * d * (n_train + n_score)
    return rows + matrices + 16 * min(n_train, path.MAX_FREE) ** 2 + 16 * n_C * n_train


def prepare(
    X: Matrix, distances: Matrix | None, scaling: Scaling, train: Index, score: Index
) -> Dense | Points:
    """Return the block of one split of X [n, d], in this thread's scratch memory: one block at a time.

    Args:
        distances: squared distances [n, n] of the rows of X, if available and nothing is scaled.
        scaling: applied to the rows otherwise.
        train, score: row numbers of X.
    """
    n, n_score = len(train), len(score)
    if dense_bytes(n, n_score) > DENSE_BYTES:
        return Points(scaling.apply(X[train]), scaling.apply(X[score]))
    oblong = n, round_up(n_score, DOUBLES)
    among_train = scratch("train distances", (n, round_up(n, DOUBLES)), np.float64)
    to_score = scratch("score distances", oblong, np.float64)
    if distances is None:
        scaled = scaling.apply(X[train])
        kernels.fill_distances(scaled, scaled, among_train)
        kernels.fill_distances(scaled, scaling.apply(X[score]), to_score)
    else:
        kernels.gather(distances, train, train, among_train)
        kernels.gather(distances, train, score, to_score)
    return Dense(among_train, to_score, scratch("score kernel", oblong, np.float64), n_score)


def path_on_points(
    X: Matrix, gamma: float, y: Vector, options: Options, weights: Weights = EQUAL, block: int = BLOCK
) -> Solutions:
    """Fit each C in turn, starting from the previous solution, without ever holding all of K.

    Args:
        X: training rows [n, d]; gamma: width of the kernel exp(-gamma * squared distance).
        y, options, weights: as for ``path.path``.
        block: rows of a working set, at least 2.
    """
    if (y == y[:1]).all():
        return fit_constant(y, len(options.C_values))
    load_code()
    y, n = writable(y), len(y)
    fits, (costs, tolerance, max_iter) = empty_fits(len(options.C_values), n), options
    b, F = np.zeros(n), -y
    solved = False
    for c, C in enumerate(costs):
        lo, hi = weights.bounds(y, C)
        if not solved:
            path.rescale(F, y, b, lo, hi, -C * weights.negative, C * weights.positive)
            done = 0
            while done < max_iter:
                rows = _choose_working_set(F, b, lo, hi, tolerance, block)
                if not len(rows):
                    break
                M, space = kernels.compute_complement(X[rows], gamma), path.workspace(len(rows), get_ident())
                before, inside = b[rows], space.state[:3]
                inside[:] = 0.0
                inside[:, : len(rows)] = b[rows], lo[rows], hi[rows]
                limits = tolerance, max_iter - done, path.index_mask(len(rows))
                done += max(1, path.optimise(M, F[rows], *inside, *limits, space))  # the other rows are fixed
                b[rows] = inside[0, : len(rows)]
                moved = np.flatnonzero(b[rows] != before)
                F -= kernels.complement_product(X, X[rows[moved]], gamma, b[rows[moved]] - before[moved])
            fits.n_iter[c] = done
            b = b if weights == EQUAL else snap_to_bounds(b, y, C, weights)
        fits.b[c] = b
        path.describe_fit(F, y, b, lo, hi, c, fits)
        fits.converged[c] = solved or fits.violation[c] < tolerance
        solved = solved or bool(fits.converged[c] and weights.is_unconstrained(b, C))
    return fits


def _choose_working_set(F: Vector, b: Vector, lo: Vector, hi: Vector, tolerance: float, block: int) -> Index:
    """Return the rows of the next working set, ascending; none if the violation is below the tolerance."""
    rises, falls = np.where(b < hi, F, np.inf), np.where(b > lo, F, -np.inf)
    if not falls.max() - rises.min() >= tolerance:
        return np.empty(0, np.intp)
    if len(F) <= block:
        return np.arange(len(F))
    quarter = max(1, block // 4)
    upward, downward = np.argsort(rises, kind="stable")[:quarter], np.argsort(-falls, kind="stable")[:quarter]
    violators = np.union1d(upward[rises[upward] < falls.max()], downward[falls[downward] > rises.min()])
    added = np.setdiff1d(np.flatnonzero((b > lo) & (b < hi)), violators)
    if len(added) < block - len(violators):  # space left: add those at a bound with the least slack
        slack = np.minimum(np.abs(rises - falls.max()), np.abs(falls - rises.min()))
        slack[violators], slack[added] = np.inf, -1.0
        added = np.argsort(slack, kind="stable")
    return np.union1d(violators, added[: block - len(violators)])
