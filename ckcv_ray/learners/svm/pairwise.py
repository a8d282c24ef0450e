"""A fitted SVM for more than two classes as a self-contained model, and the table of such models.

It is one SVM for each pair of classes, all with one scaling, C and gamma; ``votes`` says how they classify a
row. As in ``model``, a result for one row does not depend on the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.threads import one_thread
from ckcv_ray.learners.base import Predicted
from ckcv_ray.learners.svm.kernels import gaussian, squared_distances
from ckcv_ray.learners.svm.memory import Vector
from ckcv_ray.learners.svm.model import BLOCK_VALUES, SVMModel, check_numbers
from ckcv_ray.learners.svm.scaling import Scaling
from ckcv_ray.learners.svm.votes import Ballot, pairs_of
from ckcv_ray.tables.target import Rows
from ckcv_ray.tables.task import Task

SCHEMA = pa.schema(
    [
        ("C", pa.float64()),
        ("gamma", pa.float64()),
        ("centre", pa.list_(pa.float64())),
        ("scale", pa.list_(pa.float64())),
        ("support", pa.list_(pa.list_(pa.int64()))),
        ("dual_coef", pa.list_(pa.list_(pa.float64()))),
        ("offset", pa.list_(pa.float64())),
    ]
)

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class PairwiseSVM:
    """A fitted SVM for several classes: a decision function for each pair, in the order of ``pairs_of``.

    That of a pair is f(x) = sum_i dual_coef_i K(x_i, x) + offset, positive for the second class. A pair of
    which only one class had training rows is constant, -1 or 1; one without training rows is 0.

    Attributes:
        C, gamma: its hyperparameters.
        scaling: centre and scale of its inputs, fitted on its training rows of all classes.
        n_classes: number of classes.
        support: row numbers of all support vectors in the learning set, ascending.
        vectors: those rows, unscaled, (n_support, d).
        used: for each pair, positions of its support vectors in ``support``, ascending.
        dual_coef: for each pair, y * alpha of its support vectors, where y is 1 for the second class.
        offset: of each pair, (n_pairs,).
    """

    C: float
    gamma: float
    scaling: Scaling
    n_classes: int
    support: Numbers
    vectors: Rows
    used: tuple[Numbers, ...]
    dual_coef: tuple[Vector, ...]
    offset: Vector

    @classmethod
    def of_pairs(
        cls,
        setting: tuple[float, float],
        scaling: Scaling,
        n_classes: int,
        pairs: Sequence[tuple[Numbers, Vector]],
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
        parts = zip(pairs_of(self.n_classes), self.used, self.dual_coef, self.offset.tolist(), strict=True)
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
                D = squared_distances(self.scaling.apply(X[rows]), vectors)
                labels[rows] = self._winners(gaussian(D, self.gamma))
        return Predicted(labels, np.full(len(X), np.nan))

    def _winners(self, K: Rows) -> NDArray[np.int32]:
        """Return the class of each row, given its kernel with all support vectors, (rows, n_support)."""
        ballot = Ballot((len(K),), self.n_classes)
        parts = zip(pairs_of(self.n_classes), self.used, self.dual_coef, self.offset, strict=True)
        for pair, used, dual_coef, offset in parts:
            ballot.add(*pair, np.vecdot(np.take(K, used, axis=1), dual_coef) + offset)
        return ballot.winners()


def to_table(models: Sequence[PairwiseSVM]) -> pa.Table:
    """Return a table with a row for each model; support vectors are row numbers of the learning set."""
    rows = [
        {
            "C": m.C,
            "gamma": m.gamma,
            "centre": m.scaling.centre,
            "scale": m.scaling.scale,
            "support": [m.support[used] for used in m.used],
            "dual_coef": list(m.dual_coef),
            "offset": m.offset,
        }
        for m in models
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def from_table(table: pa.Table, task: Task) -> list[PairwiseSVM]:
    """Return the models stored in a table, given the task they were learned from; see ``base.Learner``."""
    return [_model(row, task) for row in table.to_pylist()]


def most_values(task: Task) -> int:
    """Return the number of values of a model in which every row supports every pair of its class.

    An empty list of a pair counts as a value.
    """
    n, d = task.X.shape
    n_pairs = len(pairs_of(task.n_classes))
    return int(2 * (n * (task.n_classes - 1) + n_pairs + d) + n_pairs + len(SCHEMA))


def same(a: PairwiseSVM, b: PairwiseSVM) -> bool:
    """Return whether two models are equal in every bit."""
    if a.n_classes != b.n_classes:
        return False
    one, other = ((*m.scaling, m.support, m.offset, *m.used, *m.dual_coef) for m in (a, b))
    return all(map(np.array_equal, one, other))


def _model(row: dict[str, Any], task: Task) -> PairwiseSVM:
    n_pairs = len(pairs_of(task.n_classes))
    offset = np.array(row["offset"], dtype=np.float64)
    if not len(row["support"]) == len(row["dual_coef"]) == len(offset) == n_pairs:
        raise ValueError(f"expected support vectors and an offset for each of {n_pairs} pairs of classes")
    support = [np.array(rows, dtype=np.int64) for rows in row["support"]]
    dual_coef = [np.array(coefficients, dtype=np.float64) for coefficients in row["dual_coef"]]
    scaling = Scaling(np.array(row["centre"]), np.array(row["scale"]))
    for rows, coefficients, one in zip(support, dual_coef, offset.tolist(), strict=True):
        check_numbers(row["C"], row["gamma"], scaling, rows, coefficients, one, task.X.shape[1])
    pairs = list(zip(support, dual_coef, strict=True))
    return PairwiseSVM.of_pairs((row["C"], row["gamma"]), scaling, task.n_classes, pairs, offset, task.X)
