"""More than two classes: one SVM for each pair of them, on the rows of these two.

For each gamma, every pair has a path over all C on the split's training rows of its classes, and votes on all
scored rows (``votes``). Scaling, distances and class weights are those of all training rows. What classes
without training rows would add is what ``SVC`` makes of the others: a pair with one of them is constant and
votes for the other class, which gives every class that is present the same number of votes.

Reference: Knerr, Personnaz, Dreyfus, "Single-layer learning revisited", Neurocomputing, 1990.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Classes, Index
from ckcv_ray.core.measures import Measure
from ckcv_ray.learners.svm.class_blocks import ClassPoints, DenseClasses, prepare_classes
from ckcv_ray.learners.svm.memory import Vector
from ckcv_ray.learners.svm.pairwise import PairwiseSVM
from ckcv_ray.learners.svm.problem import Options, Solutions, Weights, empty_fits, fit_constant
from ckcv_ray.learners.svm.scaling import Scaling
from ckcv_ray.learners.svm.votes import Ballot, add_votes, list_pairs
from ckcv_ray.tables.target import Rows

MOST_VOTES = 1 << 22  # numbers of votes that are held at once
NO_DISTANCES = np.empty((0, 0))


class ClassesBlock(NamedTuple):
    """One prepared split of more than two classes."""

    X: Rows  # all rows of the task
    y: Classes  # their class numbers
    train: Index  # row numbers of the training rows, class by class
    ranges: Sequence[slice]  # of each class in ``train``
    score: Index  # row numbers of the scored rows
    gammas: tuple[float, ...]  # of the paths
    options: Options  # of the solver, with all C
    scaling: Scaling
    kernel: DenseClasses | ClassPoints
    weights: Vector  # of the classes

    def fit(self, path: int, length: int) -> "ClassesFits":
        """Fit the first ``length`` costs at one gamma."""
        gamma, options = self.gammas[path], self.options._replace(C_values=self.options.C_values[:length])
        pairs = list_pairs(len(self.weights))
        return ClassesFits(self, gamma, options.C_values, [self._fit(gamma, pair, options) for pair in pairs])

    def _fit(self, gamma: float, pair: tuple[int, int], options: Options) -> Solutions:
        """Fit the path of one pair of classes, the second of which is +1."""
        first, second = pair
        n_first, n_second = (part.stop - part.start for part in (self.ranges[first], self.ranges[second]))
        y = np.ones(n_first + n_second)
        y[:n_first] = -1.0
        if not len(y):
            fits = empty_fits(len(options.C_values), 0)
            fits.converged[:] = True
        elif not n_first * n_second:
            fits = fit_constant(y, len(options.C_values))
        else:
            weights = Weights(float(self.weights[first]), float(self.weights[second]))
            fits = self.kernel.fit(gamma, pair, y, weights, options)
        return fits._replace(b=fits.b.copy(), gradient=NO_DISTANCES)  # the two share memory


class ClassesFits(NamedTuple):
    """The fits of one gamma at its first costs, of every pair of classes."""

    block: ClassesBlock
    gamma: float
    C_values: tuple[float, ...]
    pairs: list[Solutions]

    @property
    def status(self) -> NDArray[np.int8]:
        """Position of each fit's status: converged if every pair is."""
        converged = np.array([fits.converged for fits in self.pairs])
        return np.logical_not(converged.all(axis=0)).astype(np.int8)

    @property
    def n_iter(self) -> NDArray[np.int64]:
        """Iterations of each fit, over all pairs."""
        n_iter: NDArray[np.int64] = np.array([fits.n_iter for fits in self.pairs]).sum(axis=0)
        return n_iter

    def totals(self, measure: Measure) -> NDArray[np.int64]:
        """Return the totals of each fit; the votes are counted in compiled code."""
        return measure.totals(self.block.y[self.block.score], self.predict(), len(self.block.weights))

    def predict(self) -> Classes:
        """Return the class of each scored row, or -1 if undecided, (steps, rows)."""
        block, n_C = self.block, len(self.C_values)
        labels = np.empty((n_C, len(block.score)), np.int32)
        pairs = list_pairs(len(block.weights))
        step = max(1, MOST_VOTES // (n_C * len(block.weights)))
        for scored, M in block.kernel.strips(self.gamma):
            for start in range(scored.start, scored.stop, step):
                stop = min(start + step, scored.stop)
                ballot = Ballot((n_C, stop - start), len(block.weights))
                for pair, fits in zip(pairs, self.pairs, strict=True):
                    ranges = block.ranges[pair[0]], block.ranges[pair[1]]
                    add_votes(ballot, pair, M, start - scored.start, ranges, fits)
                labels[:, start:stop] = ballot.winners()
        return labels

    def model(self, step: int) -> PairwiseSVM:
        """Return the model at one cost."""
        block, n_classes = self.block, len(self.block.weights)
        pairs = [
            _support(np.r_[block.train[block.ranges[first]], block.train[block.ranges[second]]], fits.b[step])
            for (first, second), fits in zip(list_pairs(n_classes), self.pairs, strict=True)
        ]
        setting = self.C_values[step], self.gamma
        offset = np.array([fits.offset[step] for fits in self.pairs])
        return PairwiseSVM.from_pairs(setting, block.scaling, n_classes, pairs, offset, block.X)


def prepare_block(
    X: Rows,
    y: Classes,
    distances: Rows | None,
    split: tuple[Index, Index],
    gammas: tuple[float, ...],
    options: Options,
    scaling: Scaling,
    weights: Vector,
) -> ClassesBlock:
    """Prepare the distances of a split.

    Args:
        X, y: rows of the task and their class numbers.
        distances: squared distances among all rows, if available and nothing is scaled.
        split: row numbers of the training rows and of the scored rows.
        gammas, options, scaling, weights: see ``ClassesBlock``.
    """
    train, score = split
    order = np.argsort(y[train], kind="stable")
    ends = np.searchsorted(y[train][order], np.arange(len(weights) + 1)).tolist()
    ranges = [slice(*ends_of_class) for ends_of_class in pairwise(ends)]
    kernel = prepare_classes(X, distances, scaling, train[order], ranges, score)
    return ClassesBlock(X, y, train[order], ranges, score, gammas, options, scaling, kernel, weights)


def _support(rows: Index, b: Vector) -> tuple[NDArray[np.int64], Vector]:
    """Return the row numbers of the support vectors among ``rows``, ascending, and their coefficients."""
    used = np.flatnonzero(b)
    order = np.argsort(rows[used], kind="stable")
    return rows[used][order].astype(np.int64), b[used][order]
