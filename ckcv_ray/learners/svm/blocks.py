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


class Strip(NamedTuple):
    """M = 1 - K of some of the scored rows and all training rows, padded to full vectors.

    Of more than two classes it is transposed.
    """

    scored: slice
    M: Matrix


class Dense(NamedTuple):
    """Squared distances among the training rows and from the scored rows, and arrays for both kernels."""

    train_distances: Matrix
    score_distances: Matrix
    train_kernel: Complement
    score_kernel: Matrix

    def fit(self, gamma: float, y: Matrix, weights: Weights, options: Options) -> Solutions:
        """Fit the path of one gamma to labels y."""
        fill_complement(self.train_distances, gamma, self.train_kernel)
        return path.path(self.train_kernel, y, *options, weights)

    def strips(self, gamma: float) -> Iterator[Strip]:
        """Yield the kernel from all scored rows to the training rows."""
        every = slice(0, len(self.score_distances))
        yield Strip(every, complement(self.score_distances, gamma, out=self.score_kernel))


class Points(NamedTuple):
    """The scaled rows themselves: training rows and scored rows."""

    train: Matrix
    score: Matrix

    def fit(self, gamma: float, y: Matrix, weights: Weights, options: Options) -> Solutions:
        """Fit the path of one gamma to labels y."""
        return fit_rows(self.train, gamma, y, weights, options)

    def strips(self, gamma: float) -> Iterator[Strip]:
        """Yield the kernel from a few scored rows at a time to the training rows."""
        step = strip_rows(len(self.train))
        for start in range(0, len(self.score), step):
            rows = self.score[start : start + step]
            D = scratch("strip", (len(rows), round_up(len(self.train), DOUBLES)))
            fill_distances(rows, self.train, D)
            M = scratch("strip kernel", D.shape)
            yield Strip(slice(start, start + len(rows)), complement(D, gamma, out=M))


def fit_rows(X: Matrix, gamma: float, y: Vector, weights: Weights, options: Options) -> Solutions:
    """Fit the path of one gamma to scaled rows X [n, d] with labels y, whose distances are not at hand."""
    if whole_bytes(len(X)) > WHOLE_BYTES:
        return decomposition.path_on_points(X, gamma, y, *options, weights=weights)
    return path.path(compute_complement(X, gamma), y, *options, weights)


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


def prepare(
    X: Matrix, distances: Matrix | None, scaling: Scaling, train: Index, score: Index
) -> Dense | Points:
    """Return the block of one split of X [n, d], in this thread's scratch memory: one block at a time.

    Args:
        distances: squared distances [n, n] of the rows of X, if available and nothing is scaled.
        scaling: applied to the rows otherwise.
        train, score: row numbers of X.
    """
    if dense_bytes(len(train), len(score)) > DENSE_BYTES:
        return Points(scaling.apply(X[train]), scaling.apply(X[score]))
    square = len(train), round_up(len(train), DOUBLES)
    oblong = len(score), square[1]
    block = Dense(
        scratch("train distances", square),
        scratch("score distances", oblong),
        scratch_complement(len(train)),
        scratch("score kernel", oblong),
    )
    if distances is not None:
        gather(distances, train, train, block.train_distances)
        gather(distances, score, train, block.score_distances)
    else:
        inputs = scaling.apply(X[train])
        fill_distances(inputs, inputs, block.train_distances)
        fill_distances(scaling.apply(X[score]), inputs, block.score_distances)
    return block


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

    def strips(self, gamma: float) -> Iterator[Strip]:
        """Yield the kernel from the training rows to all scored rows."""
        yield Strip(slice(0, self.n_score), complement(self.score_distances, gamma, out=self.score_kernel))


class ClassPoints(NamedTuple):
    """The scaled rows themselves: ranges of the classes, training rows and scored rows."""

    ranges: Sequence[slice]
    train: Matrix
    score: Matrix

    def fit(
        self, gamma: float, pair: tuple[int, int], y: Vector, weights: Weights, options: Options
    ) -> Solutions:
        """Fit the path of one gamma to the rows of a pair of classes, with labels y."""
        rows = np.concatenate([self.train[self.ranges[number]] for number in pair])
        return fit_rows(rows, gamma, y, weights, options)

    def strips(self, gamma: float) -> Iterator[Strip]:
        """Yield the kernel from the training rows to a few scored rows at a time."""
        step = strip_rows(len(self.train))
        for start in range(0, len(self.score), step):
            rows = self.score[start : start + step]
            D = scratch("strip", (len(self.train), round_up(len(rows), DOUBLES)))
            fill_distances(self.train, rows, D)
            M = scratch("strip kernel", D.shape)
            yield Strip(slice(start, start + len(rows)), complement(D, gamma, out=M))


def prepare_classes(
    X: Matrix,
    distances: Matrix | None,
    scaling: Scaling,
    train: Index,
    ranges: Sequence[slice],
    score: Index,
) -> DenseClasses | ClassPoints:
    """Return the block of one split of X [n, d], in this thread's scratch memory: one block at a time.

    Args:
        distances: squared distances [n, n] of the rows of X, if available and nothing is scaled.
        scaling: applied to the rows otherwise.
        train: row numbers of X, class by class.
        ranges: of each class in ``train``.
        score: row numbers of X.
    """
    n = len(train)
    if dense_bytes(n, len(score)) > DENSE_BYTES:
        return ClassPoints(ranges, scaling.apply(X[train]), scaling.apply(X[score]))
    memory = scratch("train distances", (n * n,))
    of_class = [memory[n * part.start : n * part.stop].reshape(n, -1) for part in ranges]
    oblong = n, round_up(len(score), DOUBLES)
    block = DenseClasses(
        ranges, of_class, scratch("score distances", oblong), scratch("score kernel", oblong), len(score)
    )
    if distances is not None:
        for part, columns in zip(ranges, of_class, strict=True):
            gather(distances, train, train[part], columns)
        gather(distances, train, score, block.score_distances)
        return block
    inputs = scaling.apply(X[train])
    for part, columns in zip(ranges, of_class, strict=True):
        columns[...] = compute_distances(inputs, inputs[part])
    fill_distances(inputs, scaling.apply(X[score]), block.score_distances)
    return block
