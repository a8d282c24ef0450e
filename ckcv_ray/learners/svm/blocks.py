"""A split prepared for all gammas: distances gathered or computed once, and the kernels computed from them.

If the matrices of a split fit into ``DENSE_BYTES``, distances are kept for all gammas, in scratch memory that
the next split reuses; otherwise a ``Points`` block computes them from the rows again for each gamma, which
changes no bit. If M = 1 - K of the training rows fits into ``WHOLE_BYTES``, the solver gets it in full; if
not, it computes a part of M at a time. Which of these two it is depends on the number of training rows alone,
never on the machine: they differ in the last bits of a solution.

Without scaling, the distances are gathered from the shared matrix; the exponential is then taken on the
gathered block and not on the shared matrix: it costs about as much as gathering, which would have to be
repeated for every gamma (0.8 against 0.45 ns per element; at k = 3 a block has at most 4/9 of them).

Of more than two classes, training rows lie class by class. Distances are computed or gathered once; each pair
of classes takes its part of them. The kernel from the training rows to the scored rows is computed once for
each gamma, a training row in each row, so that decision values are sums of the rows of support vectors only.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ckcv_ray.learners.svm import decomposition, path
from ckcv_ray.learners.svm.decomposition import BLOCK
from ckcv_ray.learners.svm.kernels import (
    STRIP,
    RowIndex,
    complement,
    compute_complement,
    fill_distances,
    gather,
    gather_complement,
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
from ckcv_ray.validation import Index

DENSE_BYTES = 1 << 31
WHOLE_BYTES = 1 << 31


class Dense(NamedTuple):
    """Squared distances from the training rows, and memory for a kernel."""

    train_distances: Matrix  # to themselves, [n_train, n_train padded to full vectors]
    score_distances: Matrix  # to the scored rows, likewise
    score_kernel: Matrix  # of the same shape
    n_score: int  # number of scored rows

    def fit(self, gamma: float, places: RowIndex, y: Vector, weights: Weights, options: Options) -> Solutions:
        """Fit the path of one gamma to some training rows, by their positions, with labels y."""
        return path.path(gather_complement(self.train_distances, places, gamma), y, options, weights)

    def strips(self, gamma: float) -> Iterator[tuple[slice, Matrix]]:
        """Yield all scored rows, and M from the training rows to them, padded to full vectors."""
        yield slice(0, self.n_score), complement(self.score_distances, gamma, out=self.score_kernel)


class Points(NamedTuple):
    """The scaled rows themselves."""

    train: Matrix
    score: Matrix

    def fit(self, gamma: float, places: RowIndex, y: Vector, weights: Weights, options: Options) -> Solutions:
        """Fit the path of one gamma to some training rows, by their positions, with labels y."""
        X = self.train[places]
        if whole_bytes(len(X)) > WHOLE_BYTES:
            return decomposition.path_on_points(X, gamma, y, options, weights)
        return path.path(compute_complement(X, gamma), y, options, weights)

    def strips(self, gamma: float) -> Iterator[tuple[slice, Matrix]]:
        """Yield a few scored rows at a time, and M as of the other block."""
        step = strip_rows(len(self.train))
        for start in range(0, len(self.score), step):
            rows = self.score[start : start + step]
            D = scratch("strip", (len(self.train), round_up(len(rows), DOUBLES)), np.float64)
            fill_distances(self.train, rows, D)
            M = scratch("strip kernel", D.shape, np.float64)
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
        fill_distances(scaled, scaled, among_train)
        fill_distances(scaled, scaling.apply(X[score]), to_score)
    else:
        gather(distances, train, train, among_train)
        gather(distances, train, score, to_score)
    return Dense(among_train, to_score, scratch("score kernel", oblong, np.float64), n_score)
