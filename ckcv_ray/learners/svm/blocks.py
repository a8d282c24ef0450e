"""A split prepared for all gammas: distances gathered or computed once, and the kernels computed from them.

If the matrices of a split fit into ``DENSE_BYTES``, they are held in full, in scratch memory that the next
split reuses; otherwise a ``Points`` block lets the solver compute what it needs from the rows. Which of the
two depends only on the sizes of the split, never on the machine: they differ in the last bits of a solution.

Without scaling, the distances are gathered from the shared matrix; the exponential is then taken on the
gathered block and not on the shared matrix: it costs about as much as gathering, which would have to be
repeated for every gamma (0.8 against 0.45 ns per element; at k = 3 a block has at most 4/9 of them).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Index
from ckcv_ray.learners.svm.decision import count_errors
from ckcv_ray.learners.svm.decomposition import BLOCK
from ckcv_ray.learners.svm.kernels import (
    DOUBLES,
    STRIP,
    Complement,
    complement,
    fill_complement,
    fill_distances,
    gather,
    scratch_complement,
    strip_rows,
)
from ckcv_ray.learners.svm.memory import Matrix, round_up, scratch
from ckcv_ray.learners.svm.path import MOST_FREE
from ckcv_ray.learners.svm.problem import Options, Solutions, Weights
from ckcv_ray.learners.svm.scaling import Scaling
from ckcv_ray.learners.svm.solvers import ON_POINTS, SOLVERS

DENSE_BYTES = 1 << 30


class Dense(NamedTuple):
    """Squared distances among the training rows and from the scored rows, and arrays for both kernels."""

    train_distances: Matrix
    score_distances: Matrix
    train_kernel: Complement
    score_kernel: Matrix

    def fit(self, gamma: float, y: Matrix, weights: Weights, options: Options) -> Solutions:
        """Fit the path of one gamma to labels y."""
        fill_complement(self.train_distances, gamma, self.train_kernel)
        solver = SOLVERS[options.solver]
        return solver(self.train_kernel, y, options.C_values, options.tolerance, options.max_iter, weights)

    def errors(self, gamma: float, fits: Solutions, y: NDArray[np.int8]) -> NDArray[np.int64]:
        """Return the errors by class of each fit on the scored rows with labels y, shape (n_C, 2)."""
        complement(self.score_distances, gamma, out=self.score_kernel)
        return count_errors(self.score_kernel, fits, y)

    def count_errors_by_part(
        self, parts: Sequence[Index], gamma: float, fits: Solutions, y: NDArray[np.int8]
    ) -> NDArray[np.int64]:
        """Return the errors by class of each fit on parts of the scored rows, shape (parts, n_C, 2)."""
        complement(self.score_distances, gamma, out=self.score_kernel)
        return np.array([count_errors(self.score_kernel[rows], fits, y[rows]) for rows in parts])


class Points(NamedTuple):
    """The scaled rows themselves: training rows and scored rows."""

    train: Matrix
    score: Matrix

    def fit(self, gamma: float, y: Matrix, weights: Weights, options: Options) -> Solutions:
        """Fit the path of one gamma to labels y."""
        solver, limits = ON_POINTS[options.solver], (options.tolerance, options.max_iter)
        return solver(self.train, gamma, y, options.C_values, *limits, weights=weights)

    def errors(self, gamma: float, fits: Solutions, y: NDArray[np.int8]) -> NDArray[np.int64]:
        """Return the errors by class of each fit on the scored rows with labels y, shape (n_C, 2)."""
        errors = np.zeros((len(fits.offset), 2), np.int64)
        step = strip_rows(len(self.train))
        for first in range(0, len(y), step):
            rows = slice(first, first + step)
            D = scratch("strip", (len(y[rows]), round_up(len(self.train), DOUBLES)))
            M = scratch("strip kernel", D.shape)
            fill_distances(self.score[rows], self.train, D)
            errors += count_errors(complement(D, gamma, out=M), fits, y[rows])
        return errors

    def count_errors_by_part(
        self, parts: Sequence[Index], gamma: float, fits: Solutions, y: NDArray[np.int8]
    ) -> NDArray[np.int64]:
        """Return the errors by class of each fit on parts of the scored rows, shape (parts, n_C, 2)."""
        return np.array([Points(self.train, self.score[rows]).errors(gamma, fits, y[rows]) for rows in parts])


def dense_bytes(n_train: int, n_score: int) -> int:
    """Return the bytes of a Dense block: D, and M in both precisions, of training rows; D and M of scored."""
    return n_train * (20 * n_train + 16 * n_score)


def block_bytes(n_train: int, n_score: int, d: int, n_C: int) -> int:
    """Return the bytes of one split in a worker, solver included: block, factors, fits."""
    dense = dense_bytes(n_train, n_score)
    if dense > DENSE_BYTES:
        dense = dense_bytes(BLOCK, 0) + 8 * d * (n_train + n_score) + 16 * STRIP
    return dense + 16 * min(n_train, MOST_FREE) ** 2 + 16 * n_C * n_train


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
