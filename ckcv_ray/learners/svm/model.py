"""A fitted SVM as a self-contained model, for two classes or more.

Decision values are computed row by row, with an operation whose result for one row does not depend on the
others, so that a prediction and the error count behind it are equal in every bit.

One against one: every pair of classes has one vote for each row, and the class with most votes wins.

As in LIBSVM and in scikit-learn's ``SVC(break_ties=False)``, the first of the classes with most votes wins. A
pair whose decision value is within 1e-9 of zero is open: rounding would decide its vote. A row is undecided
if some way to decide its open pairs changes the winner.

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

from ckcv_ray.core.measures import UNDECIDED as NEITHER
from ckcv_ray.core.process import one_thread
from ckcv_ray.errors import Classes, Rows
from ckcv_ray.learners.base import Model, Predicted
from ckcv_ray.learners.svm.compile import FAST, compile_listed, wide
from ckcv_ray.learners.svm.kernels import RowIndex, compute_distances, gaussian
from ckcv_ray.learners.svm.problem import Matrix, Scaling, Vector

UNDECIDED_WIDTH = 1e-9  # this close to zero, rounding would decide the label: an error
BLOCK_VALUES = 1 << 22
Integers = NDArray[np.int64]


def list_pairs(n_classes: int) -> list[tuple[int, int]]:
    """Return the pairs of classes in order: (0, 1), (0, 2), ..., (1, 2), ...

    A positive decision value is a vote for the second of a pair, a negative one for the first.
    """
    return list(combinations(range(n_classes), 2))


def elect(n_classes: int, values: Matrix) -> Classes:
    """Return the class that wins each row, or -1 where open pairs could change it, (..., rows).

    Args:
        n_classes: number of classes.
        values: decision values of the rows by each pair of classes, (n_pairs, ..., rows).
    """
    if n_classes == 2:  # the outcome of the votes of one pair, without counting them
        return np.where(np.abs(values[0]) <= UNDECIDED_WIDTH, np.int32(NEITHER), values[0] > 0)
    certain, opened = np.zeros((2, n_classes, *values.shape[1:]), np.int32)
    for (first, second), f in zip(list_pairs(n_classes), values, strict=True):
        is_open = np.abs(f) <= UNDECIDED_WIDTH
        certain[first] += f < -UNDECIDED_WIDTH
        certain[second] += f > UNDECIDED_WIDTH
        opened[first] += is_open
        opened[second] += is_open
    earlier = np.arange(n_classes, dtype=np.int32)[::-1]  # of equal ones the first class counts as larger
    least = certain * n_classes + earlier.reshape(-1, *[1] * (certain.ndim - 1))
    winner: Classes = np.argmax(least, axis=0).astype(np.int32)
    if not opened.any():
        return winner
    most, at = least + opened * n_classes, winner[None]
    votes = np.take_along_axis(least, at, 0)[0]
    np.put_along_axis(most, at, -1, 0)
    return np.where(votes > most.max(axis=0), winner, np.int32(NEITHER))


@compile_listed(fastmath=FAST)
def _decide(M: Matrix, begin: int, places: RowIndex, b: Matrix, offset: Vector, f: Matrix) -> None:
    """Fill in the decision values f [n_C, rows] of one pair's fits, f(x) = offset - sum_i b_i M(x_i, x).

    Each sum is taken over the support vectors in their order, the rows of M of four of them at a time, and
    does not depend on which other fits and rows there are. Where C no longer has an effect, a fit is the one
    before it.

    Args:
        M: 1 - K of the training rows and the scored rows, [training rows, >= begin + rows].
        begin: the column of M with the first row of f.
        places: rows of M of the pair's training rows.
        b, offset: of each fit, b of the rows in ``places``.
        f: filled.
    """
    wide()
    n, n_scored = b.shape[1], f.shape[1]
    end, used = begin + n_scored, np.empty(n + 1, np.int64)
    for c in range(b.shape[0]):
        known, m, values, weights = c > 0 and offset[c] == offset[c - 1], 0, f[c], b[c]
        for q in range(n):
            used[m] = q
            m += weights[q] != 0.0
            known = known and weights[q] == b[c - 1, q]
        for k in range(n_scored):
            values[k] = f[c - 1, k] if known else offset[c]
        if known:
            continue
        whole_fours = m - m % 4
        for p in range(0, whole_fours, 4):
            q0, q1, q2, q3 = used[p], used[p + 1], used[p + 2], used[p + 3]
            b0, b1, b2, b3 = weights[q0], weights[q1], weights[q2], weights[q3]
            M0, M1 = M[places[q0]][begin:end], M[places[q1]][begin:end]
            M2, M3 = M[places[q2]][begin:end], M[places[q3]][begin:end]
            for k in range(n_scored):
                values[k] -= (b0 * M0[k] + b1 * M1[k]) + (b2 * M2[k] + b3 * M3[k])
        for p in range(whole_fours, m):
            b0, M0 = weights[used[p]], M[places[used[p]]][begin:end]
            for k in range(n_scored):
                values[k] -= b0 * M0[k]


@dataclass(frozen=True)
class SVMModel(Model):
    """A fitted SVM: a decision function for each pair of classes, in the order of ``list_pairs``.

    That of a pair is f(x) = sum_i dual_coef_i K(x_i, x) + offset, positive for the second class. If only one
    class of a pair had training rows, f is constant, -1 or 1; if neither had any, 0.
    """

    C: float
    gamma: float
    scaling: Scaling  # centre and scale of its inputs, fitted on its training rows of all classes
    n_classes: int
    support: Integers  # row numbers of all support vectors in the learning set, ascending
    vectors: Rows  # those rows, unscaled, (n_support, d)
    used: tuple[Integers, ...]  # for each pair, positions of its support vectors in ``support``, ascending
    dual_coef: tuple[Vector, ...]  # for each pair, y * alpha of them; y is 1 for the second class
    offset: Vector  # for each pair, (n_pairs,)

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

    def decisions(self, X: Rows) -> Iterator[tuple[slice, Matrix]]:
        """Yield some rows of X [n, d] at a time, and their decision values for each pair, [n_pairs, rows]."""
        vectors, every = self.scaling.apply(self.vectors), len(self.support)
        step = max(1, BLOCK_VALUES // max(1, every))
        with one_thread():
            for start in range(0, len(X), step):
                rows = slice(start, start + step)
                K = gaussian(compute_distances(self.scaling.apply(X[rows]), vectors), self.gamma)
                of_pairs = (K if len(used) == every else np.take(K, used, axis=1) for used in self.used)
                yield rows, np.array([*map(np.add, map(np.vecdot, of_pairs, self.dual_coef), self.offset)])

    def predict(self, X: Rows) -> Predicted:
        """Classify every row: with two classes by the sign of the score; with more by votes, without a score.

        A row is undecided if a decision value within 1e-9 of zero could change its class.
        """
        labels, score = np.empty(len(X), np.int32), np.full(len(X), np.nan)
        for rows, values in self.decisions(X):
            labels[rows] = elect(self.n_classes, values)
            if self.n_classes == 2:
                score[rows] = values[0]
        return Predicted(labels, score)
