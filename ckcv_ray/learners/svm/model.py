"""A fitted SVM as a self-contained model, of two classes or of more.

Decision values are computed row by row, with an operation whose result for one row does not depend on the
others, so that a prediction and the error count behind it are equal in every bit.

One against one: every pair of classes has one vote for each row, and the class with most votes wins.

As in LIBSVM and in scikit-learn's ``SVC(break_ties=False)``, of the classes with most votes the first wins. A
pair whose decision value is within 1e-9 of zero is open: rounding would decide its vote. A row is undecided
if there is a way to decide its open pairs that changes the winner.

That is so unless one class w wins however they are decided. Against w, the best that can happen to another
class c is that all open pairs of c vote for c and those of w against w, which is one way to decide them. So w
wins for certain if its certain votes exceed the certain and open votes of every other class, or equal them
and w comes first.

A model is one SVM for each pair of classes, all with one scaling, C and gamma; two classes are one pair.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Classes
from ckcv_ray.core.measures import UNDECIDED as NEITHER
from ckcv_ray.core.process import one_thread
from ckcv_ray.learners.base import Model, Predicted
from ckcv_ray.learners.svm.compile import FAST, compile_listed, load_code, wide
from ckcv_ray.learners.svm.kernels import compute_distances, gaussian
from ckcv_ray.learners.svm.problem import Matrix, Scaling, Signs, Solutions, Vector, writable
from ckcv_ray.tables.columns import Rows

UNDECIDED_WIDTH = 1e-9  # this close to zero, rounding would decide the label: an error


def classify(M: Matrix, fits: Solutions) -> Signs:
    """Return the sign that each fit gives each row, 0 where it is undecided, shape (n_C, rows).

    M = 1 - K of the rows [rows] and the training rows [>= n_train]; f(x) = offset - sum_i b_i M(x, x_i).
    There is one sum per fit and row, which does not depend on which other fits and rows there are.
    """
    load_code()
    signs = np.empty((len(fits.offset), len(M)), np.int8)
    _classify(writable(M), writable(fits.b), writable(fits.offset), signs)
    return signs


def count_errors(M: Matrix, fits: Solutions, y: Signs) -> NDArray[np.int64]:
    """Return the errors of each fit among the rows of class -1 and those of class +1, shape (n_C, 2).

    M: as for ``classify``; y: signs of the rows.
    """
    load_code()
    errors = np.zeros((len(fits.offset), 2), np.int64)
    _count_errors(writable(M), writable(fits.b), writable(fits.offset), writable(y), errors)
    return errors


@compile_listed(fastmath=FAST)
def _classify(M: Matrix, b: Matrix, offset: Matrix, signs: NDArray[np.int8]) -> None:
    """Take four rows per pass over b, repeating the last one if their number is not a multiple of four."""
    wide()
    n, rows = b.shape[1], M.shape[0]
    for first in range(0, rows, 4):
        last = rows - 1
        p0, p1, p2, p3 = first, min(first + 1, last), min(first + 2, last), min(first + 3, last)
        M0, M1, M2, M3 = M[p0], M[p1], M[p2], M[p3]
        for c in range(b.shape[0]):
            weights = b[c]
            f0, f1, f2, f3 = offset[c], offset[c], offset[c], offset[c]
            for q in range(n):
                f0 -= weights[q] * M0[q]
                f1 -= weights[q] * M1[q]
                f2 -= weights[q] * M2[q]
                f3 -= weights[q] * M3[q]
            signs[c, p0], signs[c, p1] = _decide_sign(f0), _decide_sign(f1)
            signs[c, p2], signs[c, p3] = _decide_sign(f2), _decide_sign(f3)


@compile_listed()
def _decide_sign(f: float) -> np.int8:
    return np.int8(f > UNDECIDED_WIDTH) - np.int8(f < -UNDECIDED_WIDTH)


@compile_listed()
def _count_errors(M: Matrix, b: Matrix, offset: Matrix, y: Signs, errors: NDArray[np.int64]) -> None:
    signs = np.empty((b.shape[0], M.shape[0]), np.int8)
    _classify(M, b, offset, signs)
    for c in range(b.shape[0]):
        for p in range(M.shape[0]):
            if signs[c, p] != y[p]:
                errors[c, np.int64(y[p] > 0)] += 1


BLOCK_VALUES = 1 << 22


Counts = NDArray[np.int32]
Integers = NDArray[np.int64]


def list_pairs(n_classes: int) -> list[tuple[int, int]]:
    """Return the pairs of classes in order: (0, 1), (0, 2), ..., (1, 2), ...

    A positive decision value is a vote for the second of a pair, a negative one for the first.
    """
    return list(combinations(range(n_classes), 2))


class Ballot:
    """The votes of pairs of classes for rows.

    Attributes:
        certain: votes of pairs that are decided, (..., n_classes, rows).
        open: pairs of each class that are not, likewise.
    """

    def __init__(self, shape: tuple[int, ...], n_classes: int) -> None:
        *outer, rows = shape
        self.certain = np.zeros((*outer, n_classes, rows), np.int32)
        self.open = np.zeros_like(self.certain)

    def add(self, first: int, second: int, f: NDArray[np.float64]) -> None:
        """Add the votes of a pair of classes with decision values f, (..., rows)."""
        is_open = np.abs(f) <= UNDECIDED_WIDTH
        self.certain[..., first, :] += f < -UNDECIDED_WIDTH
        self.certain[..., second, :] += f > UNDECIDED_WIDTH
        self.open[..., first, :] += is_open
        self.open[..., second, :] += is_open

    def winners(self) -> Classes:
        """Return the class that wins each row, or -1 where open pairs could change it, (..., rows)."""
        n_classes = self.certain.shape[-2]
        earlier = np.arange(n_classes, dtype=np.int32)[::-1, None]  # of equals the first class is the larger
        least = self.certain * n_classes + earlier
        winner: Classes = np.argmax(least, axis=-2).astype(np.int32)
        if not self.open.any():
            return winner
        most = least + self.open * n_classes
        at = np.expand_dims(winner, -2)
        votes = np.take_along_axis(least, at, -2)
        np.put_along_axis(most, at, -1, -2)
        return np.where(votes[..., 0, :] > most.max(axis=-2), winner, np.int32(NEITHER))


def add_votes(
    ballot: Ballot, pair: tuple[int, int], M: Matrix, begin: int, ranges: tuple[slice, slice], fits: Solutions
) -> None:
    """Add the votes of one pair's fits to a ballot of shape (n_C, scored rows).

    Args:
        ballot: changed in place.
        pair: the two classes.
        M: 1 - K of the training rows and the scored rows, [training rows, >= begin + scored rows].
        begin: the column of M with the ballot's first row.
        ranges: of the training rows of the two classes.
        fits: f(x) = offset - sum_i b_i M(x_i, x), with b of the first class's rows and then the second's.
            Each sum is taken over the support vectors in their order, and does not depend on which other fits
            and rows there are.
    """
    load_code()
    f, used = np.empty(ballot.certain.shape[-1]), np.empty((2, fits.b.shape[1] + 1), np.int64)
    first, second = ranges
    begins = first.start, first.stop - first.start, second.start
    _add_votes(M, begin, *begins, writable(fits.b), fits.offset, *pair, f, used, ballot.certain, ballot.open)


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
    used: NDArray[np.int64],
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
def _add_votes(
    M: Matrix,
    begin: int,
    start: int,
    n_first: int,
    start2: int,
    b: Matrix,
    offset: Vector,
    first: int,
    second: int,
    f: Vector,
    used: NDArray[np.int64],
    certain: Counts,
    opened: Counts,
) -> None:
    """Count the votes of each fit. Where C has no effect any more, a fit is the one before it."""
    n_scored = f.shape[0]
    for c in range(b.shape[0]):
        known = c > 0 and offset[c] == offset[c - 1]
        for q in range(b.shape[1]):
            known = known and b[c, q] == b[c - 1, q]
        if not known:
            _decide(M, begin, start, n_first, start2, b[c], offset[c], f, used)
        for_first, for_second = certain[c, first], certain[c, second]
        open_first, open_second = opened[c, first], opened[c, second]
        for k in range(n_scored):
            is_open = np.int32(abs(f[k]) <= UNDECIDED_WIDTH)
            for_first[k] += np.int32(f[k] < -UNDECIDED_WIDTH)
            for_second[k] += np.int32(f[k] > UNDECIDED_WIDTH)
            open_first[k] += is_open
            open_second[k] += is_open


@dataclass(frozen=True)
class SVMModel(Model):
    """A fitted SVM: a decision function for each pair of classes, in the order of ``list_pairs``.

    That of a pair is f(x) = sum_i dual_coef_i K(x_i, x) + offset, positive for the second class. A pair of
    which only one class had training rows is constant, -1 or 1; one without training rows is 0.
    """

    C: float
    gamma: float
    scaling: Scaling  # centre and scale of its inputs, fitted on its training rows of all classes
    n_classes: int
    support: Integers  # row numbers of all support vectors in the learning set, ascending
    vectors: Rows  # those rows, unscaled, (n_support, d)
    used: tuple[Integers, ...]  # for each pair, positions of its support vectors in ``support``, ascending
    dual_coef: tuple[Vector, ...]  # for each pair, y * alpha of them; y is 1 for the second class
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
    ) -> Self:
        """Make a model on the rows X [n, d] of a task from the row numbers and coefficients of each pair."""
        rows = np.concatenate([support for support, _ in pairs])
        support = np.unique(rows).astype(np.int64)
        return cls(
            *setting,
            scaling=scaling,
            n_classes=n_classes,
            support=support,
            vectors=X[support].astype(np.float64),  # one dtype object: the same pickle wherever X came from
            used=tuple(np.searchsorted(support, of_pair).astype(np.int64) for of_pair, _ in pairs),
            dual_coef=tuple(coefficients for _, coefficients in pairs),
            offset=offset,
        )

    def decisions(self, X: Rows) -> Iterator[tuple[slice, list[Vector]]]:
        """Yield some rows of X [n, d] at a time, and their decision values for each pair."""
        vectors, every = self.scaling.apply(self.vectors), len(self.support)
        step = max(1, BLOCK_VALUES // max(1, every))
        with one_thread():
            for start in range(0, len(X), step):
                rows = slice(start, start + step)
                K = gaussian(compute_distances(self.scaling.apply(X[rows]), vectors), self.gamma)
                of_pairs = (K if len(used) == every else np.take(K, used, axis=1) for used in self.used)
                yield rows, [*map(np.add, map(np.vecdot, of_pairs, self.dual_coef), self.offset)]

    def predict(self, X: Rows) -> Predicted:
        """Classify every row: of two classes by the sign, which is the score; of more by votes, without one.

        A row is undecided that a decision value within 1e-9 of zero could change.
        """
        labels, score = np.empty(len(X), np.int32), np.full(len(X), np.nan)
        for rows, values in self.decisions(X):
            if len(values) == 1:  # what the votes of one pair come to, without counting them
                score[rows] = f = values[0]
                labels[rows] = np.where(np.abs(f) <= UNDECIDED_WIDTH, NEITHER, f > 0)
            else:
                ballot = Ballot(values[0].shape, self.n_classes)
                for pair, f in zip(list_pairs(self.n_classes), values, strict=True):
                    ballot.add(*pair, f)
                labels[rows] = ballot.winners()
        return Predicted(labels, score)
