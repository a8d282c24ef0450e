"""One against one: every pair of classes has one vote for each row, and the class with most votes wins.

As in LIBSVM and in scikit-learn's ``SVC(break_ties=False)``, of the classes with most votes the first wins. A
pair whose decision value is within 1e-9 of zero is open: rounding would decide its vote. A row is undecided
if there is a way to decide its open pairs that changes the winner.

That is so unless one class w wins however they are decided. Against w, the best that can happen to another
class c is that all open pairs of c vote for c and those of w against w, which is one way to decide them. So w
wins for certain if its certain votes exceed the certain and open votes of every other class, or equal them
and w comes first.
"""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Classes
from ckcv_ray.core.measures import UNDECIDED as NEITHER
from ckcv_ray.learners.svm.decision import UNDECIDED_WIDTH
from ckcv_ray.learners.svm.machine_code import compile_listed, load_code, writable
from ckcv_ray.learners.svm.memory import Matrix, Vector
from ckcv_ray.learners.svm.problem import Solutions
from ckcv_ray.learners.svm.simd import FAST, wide

Counts = NDArray[np.int32]


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
    ballot: Ballot,
    pair: tuple[int, int],
    M: Matrix,
    begin: int,
    ranges: tuple[slice, slice],
    fits: Solutions,
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
