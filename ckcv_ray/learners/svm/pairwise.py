"""A fitted SVM for more than two classes as a self-contained model.

It is one SVM for each pair of classes, all with one scaling, C and gamma; ``votes`` says how they classify a
row. As in ``model``, a result for one row does not depend on the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.threads import one_thread
from ckcv_ray.learners.base import Model, Predicted
from ckcv_ray.learners.svm.kernels import compute_distances, gaussian
from ckcv_ray.learners.svm.memory import Vector
from ckcv_ray.learners.svm.model import BLOCK_VALUES, SVMModel
from ckcv_ray.learners.svm.scaling import Scaling
from ckcv_ray.learners.svm.votes import Ballot, list_pairs
from ckcv_ray.tables.target import Rows

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class PairwiseSVM(Model):
    """A fitted SVM for several classes: a decision function for each pair, in the order of ``list_pairs``.

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
    ) -> "PairwiseSVM":
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

    def pairs(self) -> Iterator[tuple[tuple[int, int], SVMModel]]:
        """Yield each pair of classes and its SVM."""
        parts = zip(list_pairs(self.n_classes), self.used, self.dual_coef, self.offset.tolist(), strict=True)
        for pair, used, dual_coef, offset in parts:
            rows = self.support[used], self.vectors[used]
            yield pair, SVMModel(self.C, self.gamma, self.scaling, *rows, dual_coef, offset)

    def predict(self, X: Rows) -> Predicted:
        """Classify every row by the votes of the pairs; there is no score."""
        vectors = self.scaling.apply(self.vectors)
        labels = np.empty(len(X), np.int32)
        step = max(1, BLOCK_VALUES // max(1, len(vectors)))
        with one_thread():
            for start in range(0, len(X), step):
                rows = slice(start, start + step)
                D = compute_distances(self.scaling.apply(X[rows]), vectors)
                labels[rows] = self._winners(gaussian(D, self.gamma))
        return Predicted(labels, np.full(len(X), np.nan))

    def _winners(self, K: Rows) -> NDArray[np.int32]:
        """Return the class of each row, given its kernel with all support vectors, (rows, n_support)."""
        ballot = Ballot((len(K),), self.n_classes)
        parts = zip(list_pairs(self.n_classes), self.used, self.dual_coef, self.offset, strict=True)
        for pair, used, dual_coef, offset in parts:
            ballot.add(*pair, np.vecdot(np.take(K, used, axis=1), dual_coef) + offset)
        return ballot.winners()
