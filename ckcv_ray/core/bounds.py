"""Upper confidence bounds on an error rate after ``errors`` mistakes on ``m`` independent rows.

Clopper and Pearson (Biometrika 26, 1934): U(x; m) is the p at which P(Bin(m, p) <= x) = delta, so that
P(p > U(X; m)) <= delta for every p. It is the upper delta quantile of Beta(x + 1, m - x), and 1 at x = m.
(Equation (3) of Anguita et al. 2012 prints p^s where p^j is meant.)
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv

from ckcv_ray.errors import InputError

LEAST_DELTA = 1e-100  # below, scipy's inverse of the beta function gives nan or falls with x
Bounds = NDArray[np.float64]


def clopper_pearson(errors: ArrayLike, m: ArrayLike, delta: float = 0.05) -> Any:
    """Clopper-Pearson upper bound at confidence 1 - delta, elementwise.

    Args:
        errors: whole numbers, 0 <= errors <= m, any shape.
        m: whole numbers >= 0, broadcast against ``errors``; m = 0 gives 1.
        delta: probability with which the bound may fail, inside (0, 1).

    Returns:
        float64 in (0, 1], of the broadcast shape; a float where both arguments are scalars.

    Raises:
        InputError: a count that is not a whole number in its range, or delta outside (0, 1).
    """
    x, size = np.broadcast_arrays(_counts(errors, "errors"), _counts(m, "m"))
    check_delta(delta)
    if np.any(x > size):
        first = np.argmax(x > size)
        raise InputError(f"errors={x.flat[first]} is above m={size.flat[first]}: errors lie in 0..m")
    partial = x < size
    bound = np.where(partial, betainccinv(x + 1.0, np.where(partial, size - x, 1.0), delta), 1.0)
    return bound if bound.ndim else float(bound)


def bound_table(m: int, delta: float) -> Bounds:
    """Clopper-Pearson for every count: element x is U(x; m), shape (m + 1,)."""
    return np.asarray(clopper_pearson(np.arange(m + 1), m, delta))


def check_delta(delta: float) -> None:
    """Raise InputError unless delta lies inside (0, 1), and not below ``LEAST_DELTA``."""
    if not LEAST_DELTA <= delta < 1.0:
        told = f"below {LEAST_DELTA:g}, the least supported" if 0.0 < delta < 1.0 else "outside (0, 1)"
        raise InputError(f"delta={delta!r} is {told}: it is a probability of failure, for example 0.05")


def _counts(values: ArrayLike, name: str) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise InputError(f"{name} has type {array.dtype}: counts are whole numbers")
    if np.any(array < 0):
        raise InputError(f"{name}={array.min()} is negative: counts are 0 or more")
    return array.astype(np.int64)
