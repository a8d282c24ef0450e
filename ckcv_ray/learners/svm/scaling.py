"""Standardisation, fitted on the training rows of a model and applied to all its inputs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.learners.svm.memory import Vector


class Scaling(NamedTuple):
    """The affine map x -> (x - centre) / scale, feature by feature; shapes (d,), scale > 0."""

    centre: Vector
    scale: Vector

    def apply(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a scaled copy of X [rows, d]."""
        scaled = X - self.centre
        scaled /= self.scale
        return scaled

    def is_close(self, expected: "Scaling", rounding: float) -> bool:
        """Return whether it is the expected map up to ``rounding``, relative to the numbers.

        In a centre near zero all but rounding cancels: it is compared relative to its scale.
        """
        centre, scale = expected
        near = np.abs(self.centre - centre) <= rounding * np.maximum(np.abs(centre), scale)
        return bool(np.all(near)) and np.allclose(self.scale, scale, rounding, 0)


def identity(d: int) -> Scaling:
    """Return the map that leaves d features unchanged."""
    return Scaling(np.zeros(d), np.ones(d))


def standard(X: NDArray[np.float64]) -> Scaling:
    """Return mean and standard deviation of each column of X [rows, d]; a constant column keeps its scale."""
    spread = np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 0.0)
    return Scaling(X.mean(axis=0), np.where(spread > 0, spread, 1.0))


def fit_scaling(X: NDArray[np.float64], how: str) -> Scaling:
    """Return a scaling of kind ``how``, fitted on X [rows, d]."""
    return standard(X) if how == "standard" else identity(X.shape[1])
