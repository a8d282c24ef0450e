"""A fitted SVM as a self-contained model, and the table of such models.

Decision values are computed row by row, with an operation whose result for one row does not depend on the
others, so that a prediction and the error count behind it are equal in every bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.measures import UNDECIDED as NEITHER
from ckcv_ray.core.threads import one_thread
from ckcv_ray.learners.base import Predicted
from ckcv_ray.learners.svm.decision import UNDECIDED_WIDTH
from ckcv_ray.learners.svm.kernels import gaussian, squared_distances
from ckcv_ray.learners.svm.scaling import Scaling
from ckcv_ray.tables.target import Rows
from ckcv_ray.tables.task import Task

BLOCK_VALUES = 1 << 22
SCHEMA = pa.schema(
    [
        ("C", pa.float64()),
        ("gamma", pa.float64()),
        ("centre", pa.list_(pa.float64())),
        ("scale", pa.list_(pa.float64())),
        ("support", pa.list_(pa.int64())),
        ("dual_coef", pa.list_(pa.float64())),
        ("offset", pa.float64()),
    ]
)


@dataclass(frozen=True)
class SVMModel:
    """A fitted SVM: f(x) = sum_i dual_coef_i K(x_i, x) + offset.

    Attributes:
        C, gamma: its hyperparameters.
        scaling: centre and scale of its inputs, fitted on its training rows.
        support: row numbers of the support vectors in the learning set, ascending.
        vectors: those rows, unscaled, (n_support, d).
        dual_coef: y * alpha of each support vector, (n_support,).
        offset: added to the weighted sum of kernels.
    """

    C: float
    gamma: float
    scaling: Scaling
    support: NDArray[np.int64]
    vectors: Rows
    dual_coef: NDArray[np.float64]
    offset: float

    def decision(self, X: Rows) -> NDArray[np.float64]:
        """Return the decision value of every row of X [rows, d], shape (rows,)."""
        vectors = self.scaling.apply(self.vectors)
        values = np.empty(len(X))
        step = max(1, BLOCK_VALUES // max(1, len(vectors)))
        with one_thread():
            for start in range(0, len(X), step):
                rows = slice(start, start + step)
                K = gaussian(squared_distances(self.scaling.apply(X[rows]), vectors), self.gamma)
                values[rows] = np.vecdot(K, self.dual_coef) + self.offset
        return values

    def predict(self, X: Rows) -> Predicted:
        """Classify every row; a row whose decision value is within 1e-9 of zero is undecided."""
        score = self.decision(X)
        label = np.where(np.abs(score) <= UNDECIDED_WIDTH, NEITHER, score > 0)
        return Predicted(label.astype(np.int32), score)


def to_table(models: Sequence[SVMModel]) -> pa.Table:
    """Return a table with a row for each model; support vectors are row numbers of the learning set."""
    rows = [
        {
            "C": m.C,
            "gamma": m.gamma,
            "centre": m.scaling.centre,
            "scale": m.scaling.scale,
            "support": m.support,
            "dual_coef": m.dual_coef,
            "offset": m.offset,
        }
        for m in models
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def from_table(table: pa.Table, task: Task) -> list[SVMModel]:
    """Return the models stored in a table, given the task they were learned from; see ``base.Learner``."""
    return [_model(row, task.X) for row in table.to_pylist()]


def most_values(task: Task) -> int:
    """Return the number of values of a model whose support vectors are all rows."""
    return 2 * sum(task.X.shape) + len(SCHEMA)


def same(a: SVMModel, b: SVMModel) -> bool:
    """Return whether two models are equal in every bit."""
    arrays = zip((a.support, a.dual_coef, *a.scaling), (b.support, b.dual_coef, *b.scaling), strict=True)
    return a.offset == b.offset and all(np.array_equal(one, other) for one, other in arrays)


def _model(row: dict[str, Any], X: Rows) -> SVMModel:
    support = np.array(row["support"], dtype=np.int64)
    model = SVMModel(
        C=row["C"],
        gamma=row["gamma"],
        scaling=Scaling(np.array(row["centre"]), np.array(row["scale"])),
        support=support,
        vectors=X[support].astype(np.float64),  # one dtype object: the same pickle wherever X came from
        dual_coef=np.array(row["dual_coef"], dtype=np.float64),
        offset=row["offset"],
    )
    m = model
    check_numbers(m.C, m.gamma, m.scaling, m.support, m.dual_coef, m.offset, X.shape[1])
    return model


def check_numbers(
    C: float,
    gamma: float,
    scaling: Scaling,
    support: NDArray[np.int64],
    dual_coef: NDArray[np.float64],
    offset: float,
    d: int,
) -> None:
    """Raise ValueError if the numbers of an SVM cannot be those of one that was fitted on d inputs."""
    if scaling.centre.shape != (d,) or scaling.scale.shape != (d,):
        raise ValueError(f"centre and scale do not have {d} features")
    if dual_coef.shape != support.shape or np.any(np.diff(support, prepend=-1) <= 0):
        raise ValueError("its support vectors must be in ascending order, with one coefficient each")
    numbers = (*scaling, dual_coef, C, gamma, offset)
    if not all(np.isfinite(values).all() for values in numbers):
        raise ValueError("it has numbers that are not finite")
    if not (np.all(scaling.scale > 0) and C > 0 and gamma > 0):
        raise ValueError("scale, C and gamma must be positive")
