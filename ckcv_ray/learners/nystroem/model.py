"""A Gaussian SVM on Nyström features as a self-contained model: a sum of kernels at a few landmark rows.

With the landmarks l_1 ... l_m, their kernel matrix K and k(x) = (exp(-gamma |x - l_j|^2))_j, the features
of a row are z(x) = K^(-1/2) k(x): of all functions of k(x), the products z(x)'z(x') are closest to the
kernel (Williams, Seeger, NIPS 13, 2000). A linear function of them is a sum of kernels, w'z(x) + b = a'k(x)
+ b, which is what a model holds and evaluates.

Kernels are computed by matrix products of one shape, on one thread, so that the values of a row do not
depend on other rows, in any bit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ckcv_ray.core.arrays import Index, Values
from ckcv_ray.core.threads import one_thread
from ckcv_ray.learners.base import Model, Predicted
from ckcv_ray.learners.svm.scaling import Scaling
from ckcv_ray.tables.target import Rows

BATCH = 512  # rows of every matrix product: some kernels of BLAS round the last rows of others in another way
RANK = (
    1e-10  # of the largest eigenvalue of K: directions of smaller ones are within rounding, and are left out
)


class Landmarks(NamedTuple):
    """Rows by which the kernel is approximated."""

    rows: Index  # their numbers in the learning set, ascending, (m,)
    vectors: Rows  # these rows, unscaled, [m, d]
    scaling: Scaling  # centre and scale of all inputs, fitted on the training rows

    def compute_kernel(self, X: Rows, rows: Index, gamma: float) -> Iterator[tuple[slice, Values]]:
        """Yield k(x) of some rows of X [n, d], batch by batch: their place in ``rows``, and k [batch, m].

        Squared distances are |x|^2 + |l|^2 - 2 x'l, around the landmarks' mean, which keeps their digits.
        """
        scaled = self.scaling.apply(self.vectors)
        centre = scaled.mean(axis=0)
        vectors = scaled - centre
        columns, squares = np.ascontiguousarray(vectors.T), np.vecdot(vectors, vectors)
        for start in range(0, len(rows), BATCH):
            part = rows[start : start + BATCH]
            padded = np.concatenate([part, np.repeat(part[-1:], BATCH - len(part))])
            inputs = self.scaling.apply(X[padded]) - centre
            K = inputs @ columns
            K *= -2.0
            K += squares
            K += np.vecdot(inputs, inputs)[:, None]
            np.maximum(K, 0.0, out=K)
            K *= -gamma
            np.exp(K, out=K)
            yield slice(start, start + len(part)), K[: len(part)]

    def find_normalisation(self, gamma: float) -> Values:
        """Return N [m, r] with z(x) = N'k(x), of the r eigenvectors of K that are not within rounding."""
        every = np.arange(len(self.vectors))
        K = np.concatenate([part for _, part in self.compute_kernel(self.vectors, every, gamma)])
        eigenvalues, eigenvectors = np.linalg.eigh((K + K.T) / 2.0)
        used = eigenvalues > RANK * eigenvalues[-1]
        return np.asarray(eigenvectors[:, used] / np.sqrt(eigenvalues[used]))

    def compute_features(self, X: Rows, rows: Index, gamma: float, normalisation: Values) -> Values:
        """Return z(x) of some rows of X [n, d], and a last column of ones: [rows, r + 1]."""
        Z = np.ones((len(rows), normalisation.shape[1] + 1))
        for place, K in self.compute_kernel(X, rows, gamma):
            Z[place, :-1] = K @ normalisation
        return Z

    def evaluate(self, X: Rows, rows: Index, gamma: float, dual_coef: Values, offset: Values) -> Values:
        """Return a'k(x) + b of some rows of X [n, d] for all a of ``dual_coef`` [q, m], b of ``offset`` (q,).

        Its shape is [rows, q]; the value of a row and an a does not depend on the rest.
        """
        values = np.empty((len(rows), len(offset)))
        with one_thread():
            for place, K in self.compute_kernel(X, rows, gamma):
                for column, (coefficients, constant) in enumerate(zip(dual_coef, offset, strict=True)):
                    values[place, column] = np.vecdot(K, coefficients) + constant
        return values


@dataclass(frozen=True)
class NystroemModel(Model):
    """A fitted SVM, f(x) = sum_j dual_coef_j exp(-gamma |x - l_j|^2) + offset; of many classes one each."""

    C: float
    gamma: float
    landmarks: Landmarks  # the rows l_j
    dual_coef: Values  # of two classes [1, m], of K [K, m]
    offset: Values  # (1,) or (K,)

    def predict(self, X: Rows) -> Predicted:
        """Classify every row: of two classes by the sign of f, of more by the largest, first if tied."""
        every = np.arange(len(X))
        return classify(self.landmarks.evaluate(X, every, self.gamma, self.dual_coef, self.offset))


def classify(values: Values) -> Predicted:
    """Return what decision values say, [rows, 1] of two classes or [rows, K] of more."""
    if values.shape[1] == 1:
        return Predicted((values[:, 0] > 0.0).astype(np.int32), values[:, 0])
    return Predicted(values.argmax(axis=1).astype(np.int32), np.full(len(values), np.nan))
