"""A split prepared for all gammas: distances gathered or computed once, and the kernels computed from them.

If the matrices of a split fit into ``DENSE_BYTES``, distances are kept for all gammas, in scratch memory that
the next split reuses; otherwise a ``Points`` block computes them from the rows again for each gamma, which
changes no bit. If M = 1 - K of the training rows fits into ``WHOLE_BYTES``, the solver gets it in full; if
not, it computes a part of M at a time. Which of these two it is depends on the number of training rows alone,
never on the machine: they differ in the last bits of a solution.

Without scaling, the distances are gathered from the shared matrix; the exponential is then taken on the
gathered block and not on the shared matrix: it costs about as much as gathering, which would have to be
repeated for every gamma (0.8 against 0.45 ns per element; at k = 3 a block has at most 4/9 of them).

A split of more than two classes, prepared for all gammas and all pairs of classes.

The training rows lie class by class, so that the rows of a class are a range. Distances are computed or
gathered once; each pair of classes takes its part of them. The kernel from the training rows to the scored
rows is computed once for each gamma, a training row in each row, so that decision values are sums of the rows
of support vectors only.

Here too, what does not fit into ``DENSE_BYTES`` is computed from the rows for each gamma again.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ckcv_ray.core.arrays import Index
from ckcv_ray.learners.svm import decomposition, path
from ckcv_ray.learners.svm.decomposition import BLOCK
from ckcv_ray.learners.svm.kernels import (
    STRIP,
    Complement,
    complement,
    compute_complement,
    compute_distances,
    fill_complement,
    fill_distances,
    gather,
    pair_complement,
    scratch_complement,
    strip_rows,
)
from ckcv_ray.learners.svm.path import MAX_FREE
from ckcv_ray.learners.svm.problem import (
    DOUBLES,
    Matrix,
    Options,
    Scaling,
    Solutions,
    Vector,
    Weights,
    round_up,
    scratch,
)

DENSE_BYTES = 1 << 31
WHOLE_BYTES = 1 << 31


class Dense(NamedTuple):
    """Squared distances among the training rows and from the scored rows, and arrays for both kernels."""

    train_distances: Matrix
    score_distances: Matrix
    train_kernel: Complement
    score_kernel: Matrix

    def fit(
        self, gamma: float, pair: tuple[int, int], y: Vector, weights: Weights, options: Options
    ) -> Solutions:
        """Fit the path of one gamma to labels y of the rows of the two classes."""
        fill_complement(self.train_distances, gamma, self.train_kernel)
        return path.path(self.train_kernel, y, *options, weights)

    def strips(self, gamma: float) -> Iterator[tuple[slice, Matrix]]:
        """Yield all scored rows, and M from them to the training rows, padded to full vectors."""
        every = slice(0, len(self.score_distances))
        yield every, complement(self.score_distances, gamma, out=self.score_kernel)


class Points(NamedTuple):
    """The scaled rows themselves."""

    train: Matrix
    score: Matrix
    ranges: Sequence[slice]  # the training rows of each of more than two classes; none of two

    def fit(
        self, gamma: float, pair: tuple[int, int], y: Vector, weights: Weights, options: Options
    ) -> Solutions:
        """Fit the path of one gamma to the rows of a pair of classes, with labels y."""
        X = np.concatenate([self.train[self.ranges[n]] for n in pair]) if self.ranges else self.train
        if whole_bytes(len(X)) > WHOLE_BYTES:
            return decomposition.path_on_points(X, gamma, y, *options, weights=weights)
        return path.path(compute_complement(X, gamma), y, *options, weights)

    def strips(self, gamma: float) -> Iterator[tuple[slice, Matrix]]:
        """Yield a few scored rows at a time, and M as of the other blocks."""
        step = strip_rows(len(self.train))
        for start in range(0, len(self.score), step):
            rows = self.score[start : start + step]
            first, second = (self.train, rows) if self.ranges else (rows, self.train)
            D = scratch("strip", (len(first), round_up(len(second), DOUBLES)))
            fill_distances(first, second, D)
            M = scratch("strip kernel", D.shape)
            yield slice(start, start + len(rows)), complement(D, gamma, out=M)


def whole_bytes(n_train: int) -> int:
    """Return the bytes of M among the training rows in both precisions."""
    return 12 * n_train**2


def dense_bytes(n_train: int, n_score: int) -> int:
    """Return the bytes of a Dense block: D, and M in both precisions, of training rows; D and M of scored."""
    return n_train * (20 * n_train + 16 * n_score)


def block_bytes(n_train: int, n_score: int, d: int, n_C: int) -> int:
    """Return the bytes of one split in a worker, solver included: rows twice, block, factors, fits."""
    matrices = dense_bytes(n_train, n_score)
    if matrices > DENSE_BYTES:
        whole = whole_bytes(n_train)
        matrices = (whole if whole <= WHOLE_BYTES else whole_bytes(BLOCK)) + 16 * STRIP
    rows = 16 * d * (n_train + n_score)
    return rows + matrices + 16 * min(n_train, MAX_FREE) ** 2 + 16 * n_C * n_train


class DenseClasses(NamedTuple):
    """Squared distances, and a kernel from the training rows to the scored rows."""

    ranges: Sequence[slice]  # the training rows of each class
    of_class: Sequence[Matrix]  # all training rows from those of a class, [n_train, rows of it]
    score_distances: Matrix  # from all training rows to the scored rows, [n_train, >= n_score]
    score_kernel: Matrix  # of the same shape
    n_score: int  # number of scored rows

    def fit(
        self, gamma: float, pair: tuple[int, int], y: Vector, weights: Weights, options: Options
    ) -> Solutions:
        """Fit the path of one gamma to the rows of a pair of classes, with labels y."""
        first, second = pair
        columns = self.of_class[first], self.of_class[second]
        M = pair_complement(*columns, gamma, self.ranges[first], self.ranges[second])
        return path.path(M, y, *options, weights)

    def strips(self, gamma: float) -> Iterator[tuple[slice, Matrix]]:
        """Yield all scored rows, and M from the training rows to them, padded to full vectors."""
        yield slice(0, self.n_score), complement(self.score_distances, gamma, out=self.score_kernel)


def prepare(
    X: Matrix,
    distances: Matrix | None,
    scaling: Scaling,
    train: Index,
    score: Index,
    ranges: Sequence[slice] = (),
) -> Dense | DenseClasses | Points:
    """Return the block of one split of X [n, d], in this thread's scratch memory: one block at a time.

    Args:
        distances: squared distances [n, n] of the rows of X, if available and nothing is scaled.
        scaling: applied to the rows otherwise.
        train, score: row numbers of X; training rows of more than two classes lie class by class.
        ranges: of each of more than two classes in ``train``.
    """
    n = len(train)
    if dense_bytes(n, len(score)) > DENSE_BYTES:
        return Points(scaling.apply(X[train]), scaling.apply(X[score]), ranges)

    def fill(rows: Index, columns: Index, out: Matrix) -> None:
        if distances is not None:
            gather(distances, rows, columns, out)
            return
        scaled = scaling.apply(X[rows])
        others = scaled if columns is rows else scaling.apply(X[columns])
        if out.shape[1] % DOUBLES:
            out[...] = compute_distances(scaled, others)
        else:
            fill_distances(scaled, others, out)

    if ranges:
        memory = scratch("train distances", (n * n,))
        of_class = [memory[n * part.start : n * part.stop].reshape(n, -1) for part in ranges]
        for part, columns in zip(ranges, of_class, strict=True):
            fill(train, train[part], columns)
        oblong = n, round_up(len(score), DOUBLES)
        to_score = scratch("score distances", oblong)
        fill(train, score, to_score)
        return DenseClasses(ranges, of_class, to_score, scratch("score kernel", oblong), len(score))
    square = n, round_up(n, DOUBLES)
    oblong = len(score), square[1]
    among_train, from_score = scratch("train distances", square), scratch("score distances", oblong)
    fill(train, train, among_train)
    fill(score, train, from_score)
    return Dense(among_train, from_score, scratch_complement(n), scratch("score kernel", oblong))
