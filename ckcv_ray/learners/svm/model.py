"""A fitted SVM as a self-contained model.

Decision values are computed row by row, with an operation whose result for one row does not depend on the
others, so that a prediction and the error count behind it are equal in every bit.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.measures import UNDECIDED as NEITHER
from ckcv_ray.core.threads import one_thread
from ckcv_ray.learners.base import Model, Predicted
from ckcv_ray.learners.svm.decision import UNDECIDED_WIDTH
from ckcv_ray.learners.svm.kernels import compute_distances, gaussian
from ckcv_ray.learners.svm.scaling import Scaling
from ckcv_ray.tables.target import Rows

BLOCK_VALUES = 1 << 22


@dataclass(frozen=True)
class SVMModel(Model):
    """A fitted SVM: f(x) = sum_i dual_coef_i K(x_i, x) + offset."""

    C: float
    gamma: float
    scaling: Scaling  # centre and scale of its inputs, fitted on its training rows
    support: NDArray[np.int64]  # row numbers of the support vectors in the learning set, ascending
    vectors: Rows  # those rows, unscaled, (n_support, d)
    dual_coef: NDArray[np.float64]  # y * alpha of each support vector, (n_support,)
    offset: float  # added to the weighted sum of kernels

    def decision(self, X: Rows) -> NDArray[np.float64]:
        """Return the decision value of every row of X [rows, d], shape (rows,)."""
        vectors = self.scaling.apply(self.vectors)
        values = np.empty(len(X))
        step = max(1, BLOCK_VALUES // max(1, len(vectors)))
        with one_thread():
            for start in range(0, len(X), step):
                rows = slice(start, start + step)
                K = gaussian(compute_distances(self.scaling.apply(X[rows]), vectors), self.gamma)
                values[rows] = np.vecdot(K, self.dual_coef) + self.offset
        return values

    def predict(self, X: Rows) -> Predicted:
        """Classify every row; a row whose decision value is within 1e-9 of zero is undecided."""
        score = self.decision(X)
        label = np.where(np.abs(score) <= UNDECIDED_WIDTH, NEITHER, score > 0)
        return Predicted(label.astype(np.int32), score)
