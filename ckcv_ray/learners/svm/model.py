"""A fitted SVM as a self-contained model: one SVM for each pair of classes, with one scaling, C and gamma.

Decision values are computed row by row, with an operation whose result for one row does not depend on the
others, so that a prediction and the error count behind it are equal in every bit.

One against one: every pair of classes has one vote for each row, and the class with most votes wins.

As in LIBSVM and in scikit-learn's ``SVC(break_ties=False)``, of the classes with most votes the first wins. A
pair whose decision value is within 1e-9 of zero is open: rounding would decide its vote. A row is undecided
if there is a way to decide its open pairs that changes the winner.

That is so unless one class w wins however they are decided. Against w, the best that can happen to another
class c is that all open pairs of c vote for c and those of w against w, which is one way to decide them. So w
wins for certain if its certain votes exceed the certain and open votes of every other class, or equal them
and w comes first. Two classes are one pair: a row whose decision value is within 1e-9 of zero is undecided.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Classes
from ckcv_ray.core.measures import UNDECIDED as NEITHER
from ckcv_ray.core.process import one_thread
from ckcv_ray.learners.base import Model, Predicted
from ckcv_ray.learners.svm.compile import FAST, compile_listed, load_code, wide
from ckcv_ray.learners.svm.kernels import compute_distances, gaussian
from ckcv_ray.learners.svm.problem import Matrix, Scaling, Solutions, Vector, writable
from ckcv_ray.tables.columns import Rows

UNDECIDED_WIDTH = 1e-9  # this close to zero, rounding would decide the label: an error
BLOCK_VALUES = 1 << 22
Integers = NDArray[np.int64]
Places = NDArray[np.int64]  # [2, n]
Votes = NDArray[np.int32]  # [fits, n_classes, rows]


def list_pairs(n_classes: int) -> list[tuple[int, int]]:
    """Return the pairs of classes in order: (0, 1), (0, 2), ..., (1, 2), ...

    A positive decision value is a vote for the second of a pair, a negative one for the first.
    """
    return list(combinations(range(n_classes), 2))


class Ballot:
    """The votes of pairs of classes for rows, for each of several fits.

    Attributes:
        rows: number of rows.
        certain: votes of pairs that are decided, (fits, n_classes, rows).
        open: pairs of each class that are not, likewise.
    """

    def __init__(self, n_fits: int, n_classes: int, rows: int) -> None:
        load_code()
        self.rows = rows
        self.certain = np.zeros((n_fits, n_classes, rows), np.int32)
        self.open = np.zeros((n_fits, n_classes, rows), np.int32)

    def add(self, first: int, second: int, f: Matrix) -> None:
        """Add the votes of a pair of classes with decision values f, (fits, rows)."""
        _vote(f, first, second, self.certain, self.open)

    def winners(self) -> Classes:
        """Return the class that wins each row, or -1 where open pairs could change it, (fits, rows)."""
        labels = np.empty((len(self.certain), self.rows), np.int32)
        _find_winners(self.certain, self.open, labels)
        return labels


def decide(M: Matrix, begin: int, ranges: tuple[slice, slice], fits: Solutions, rows: int) -> Matrix:
    """Return the decision values of one pair's fits, (n_C, rows).

    Args:
        M: 1 - K of the training rows and the scored rows, [training rows, >= begin + rows].
        begin: the column of M of the first row.
        ranges: of the training rows of the two classes.
        fits: f(x) = offset - sum_i b_i M(x_i, x), with b of the first class's rows and then the second's.
            Each sum is taken over the support vectors in their order, and does not depend on which other fits
            and rows there are.
        rows: number of rows.
    """
    load_code()
    f, used = np.empty((len(fits.b), rows)), np.empty((2, fits.b.shape[1] + 1), np.int64)
    (start, end), start2 = (ranges[0].start, ranges[0].stop), ranges[1].start
    _decide_each(M, begin, start, end - start, start2, writable(fits.b), fits.offset, f, used)
    return f


@compile_listed(fastmath=FAST)
def _decide(
    M: Matrix,
    begin: int,
    start: int,
    n_first: int,
    start2: int,
    b: Vector,
    offset: float,
    f: Vector,
    used: Places,
) -> None:
    """Compute the decision values f, from the rows of M of four support vectors at a time."""
    wide()
    m, at, row, n_scored = 0, used[0], used[1], f.shape[0]
    end = begin + n_scored
    for q in range(b.shape[0]):
        at[m], row[m] = q, start + q if q < n_first else start2 + q - n_first
        m += b[q] != 0.0
    for k in range(n_scored):
        f[k] = offset
    whole_fours = m - m % 4
    for p in range(0, whole_fours, 4):
        b0, b1, b2, b3 = b[at[p]], b[at[p + 1]], b[at[p + 2]], b[at[p + 3]]
        M0, M1 = M[row[p]][begin:end], M[row[p + 1]][begin:end]
        M2, M3 = M[row[p + 2]][begin:end], M[row[p + 3]][begin:end]
        for k in range(n_scored):
            f[k] -= (b0 * M0[k] + b1 * M1[k]) + (b2 * M2[k] + b3 * M3[k])
    for p in range(whole_fours, m):
        b0, M0 = b[at[p]], M[row[p]][begin:end]
        for k in range(n_scored):
            f[k] -= b0 * M0[k]


@compile_listed()
def _decide_each(
    M: Matrix,
    begin: int,
    start: int,
    n_first: int,
    start2: int,
    b: Matrix,
    offset: Vector,
    f: Matrix,
    used: Places,
) -> None:
    """Decide by each fit. Where C has no effect any more, a fit is the one before it."""
    for c in range(b.shape[0]):
        known = c > 0 and offset[c] == offset[c - 1]
        for q in range(b.shape[1]):
            known = known and b[c, q] == b[c - 1, q]
        if known:
            f[c] = f[c - 1]
        else:
            _decide(M, begin, start, n_first, start2, b[c], offset[c], f[c], used)


@compile_listed()
def _vote(f: Matrix, first: int, second: int, certain: Votes, opened: Votes) -> None:
    """Count the votes of a pair of classes in each fit."""
    for c in range(f.shape[0]):
        for k in range(f.shape[1]):
            is_open = np.int32(abs(f[c, k]) <= UNDECIDED_WIDTH)
            certain[c, first, k] += np.int32(f[c, k] < -UNDECIDED_WIDTH)
            certain[c, second, k] += np.int32(f[c, k] > UNDECIDED_WIDTH)
            opened[c, first, k] += is_open
            opened[c, second, k] += is_open


@compile_listed()
def _find_winners(certain: Votes, opened: Votes, labels: Classes) -> None:
    """Find the first class with most certain votes, and whether another one could have as many."""
    for c in range(labels.shape[0]):
        for k in range(labels.shape[1]):
            winner = 0
            for other in range(1, certain.shape[1]):
                if certain[c, other, k] > certain[c, winner, k]:
                    winner = other
            labels[c, k] = winner
            for other in range(certain.shape[1]):
                lead = certain[c, winner, k] - certain[c, other, k] - opened[c, other, k]
                if other != winner and (lead < 0 or (lead == 0 and other < winner)):
                    labels[c, k] = NEITHER


@dataclass(frozen=True)
class SVMModel(Model):
    """A fitted SVM: a decision function for each pair of classes, in the order of ``list_pairs``.

    That of a pair is f(x) = sum_i dual_coef_i K(x_i, x) + offset, positive for the second class. Of more than
    two classes, a pair of which only one had training rows is constant, -1 or 1; one without training rows is
    0.
    """

    C: float
    gamma: float
    scaling: Scaling  # centre and scale of its inputs, fitted on its training rows of all classes
    n_classes: int
    support: Integers  # row numbers of all support vectors in the learning set, ascending
    vectors: Rows  # those rows, unscaled, (n_support, d)
    used: tuple[Integers, ...]  # for each pair, positions of its support vectors in ``support``, ascending
    dual_coef: Vector  # y * alpha of these, one pair after the other; y is 1 for the second class
    offset: Vector  # of each pair, (n_pairs,)

    @classmethod
    def from_pairs(
        cls,
        setting: tuple[float, float],
        scaling: Scaling,
        n_classes: int,
        pairs: Sequence[tuple[Integers, Vector]],
        offset: Vector,
        X: Rows,
    ) -> "SVMModel":
        """Make a model on the rows X [n, d] of a task from the row numbers and coefficients of each pair."""
        support = np.unique(np.concatenate([rows for rows, _ in pairs])).astype(np.int64)
        vectors = X[support].astype(np.float64)  # one dtype object: the same pickle wherever X came from
        used = tuple(np.searchsorted(support, rows).astype(np.int64) for rows, _ in pairs)
        dual_coef = np.concatenate([coefficients for _, coefficients in pairs])
        return cls(*setting, scaling, n_classes, support, vectors, used, dual_coef, offset)

    def pairs(self) -> list[tuple[Integers, Vector]]:
        """Return ``used`` and the coefficients of each pair."""
        ends = np.cumsum([*map(len, self.used)])
        return [*zip(self.used, np.split(self.dual_coef, ends[:-1]), strict=True)]

    def decide(self, X: Rows) -> Iterator[tuple[slice, Matrix]]:
        """Yield some rows of X [rows, d] at a time, and the decision values of all pairs, [n_pairs, rows]."""
        vectors, pairs = self.scaling.apply(self.vectors), self.pairs()
        every, step = np.arange(len(vectors)), max(1, BLOCK_VALUES // max(1, len(vectors)))
        with one_thread():
            for start in range(0, len(X), step):
                rows = slice(start, start + step)
                K = gaussian(compute_distances(self.scaling.apply(X[rows]), vectors), self.gamma)
                f = [
                    np.vecdot(K if np.array_equal(used, every) else np.take(K, used, axis=1), coefficients)
                    for used, coefficients in pairs
                ]
                yield rows, np.array(f) + self.offset[:, None]

    def predict(self, X: Rows) -> Predicted:
        """Classify every row by the votes of the pairs; of more than two classes there is no score."""
        label, score = np.empty(len(X), np.int32), np.full(len(X), np.nan)
        for rows, f in self.decide(X):
            ballot = Ballot(1, self.n_classes, f.shape[1])
            for pair, values in zip(list_pairs(self.n_classes), f, strict=True):
                ballot.add(*pair, values[None])
            (label[rows],) = ballot.winners()
            if self.n_classes == 2:
                (score[rows],) = f
        return Predicted(label, score)
