"""A split of more than two classes, prepared for all gammas and all pairs of classes.

The training rows lie class by class, so that the rows of a class are a range. Distances are computed or
gathered once; each pair of classes takes its part of them. The kernel from the training rows to the scored
rows is computed once for each gamma, a training row in each row, so that decision values are sums of the rows
of support vectors only.

As in ``blocks``, what does not fit into ``DENSE_BYTES`` is computed from the rows for each gamma again.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ckcv_ray.core.arrays import Index
from ckcv_ray.learners.svm.blocks import DENSE_BYTES, Strip, dense_bytes, fit_rows
from ckcv_ray.learners.svm.kernels import (
    complement,
    compute_distances,
    fill_distances,
    gather,
    pair_complement,
    strip_rows,
)
from ckcv_ray.learners.svm.memory import DOUBLES, Matrix, Vector, round_up, scratch
from ckcv_ray.learners.svm.problem import Options, Solutions, Weights
from ckcv_ray.learners.svm.scaling import Scaling
from ckcv_ray.learners.svm.solvers import SOLVERS


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
        solver = SOLVERS[options.solver]
        return solver(M, y, options.C_values, options.tolerance, options.max_iter, weights)

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
