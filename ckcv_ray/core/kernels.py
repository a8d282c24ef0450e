"""Squared distances, the Gaussian kernel K, and its complement M = 1 - K."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

Matrix = NDArray[np.float64]


def squared_distances(A: Matrix, B: Matrix) -> Matrix:
    """Squared Euclidean distances [p, q] between the rows of A [p, d] and B [q, d].

    By ``cdist`` and not by a matrix product: here any block equals the same block of the whole in
    every bit, so it makes no difference to a result whether distances were shared or made anew.
    """
    return np.asarray(cdist(A, B, "sqeuclidean"))


def complement(distances: Matrix, gamma: float) -> Matrix:
    """1 - K = -expm1(-gamma * D) of squared distances D: all its digits, however small gamma."""
    M = np.multiply(distances, -gamma)
    np.expm1(M, out=M)
    return np.negative(M, out=M)


def gaussian(distances: Matrix, gamma: float) -> Matrix:
    """Kernel matrix exp(-gamma * D) of squared distances D; a new array of the same shape."""
    K = np.multiply(distances, -gamma)
    return np.exp(K, out=K)
