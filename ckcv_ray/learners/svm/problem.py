"""The problem, its solutions, and how far a solution is from optimal.

The dual of the C-SVM with offset, in signed variables b = y * alpha: over b in R^n,

    minimise  1/2 b'Kb - y'b    subject to  sum b = 0,  lo <= b <= hi,

with lo_i = min(0, C w_i y_i) and hi_i = max(0, C w_i y_i), where w_i > 0 is the weight of the class of row i,
by default 1. The gradient is g = Kb - y. Increasing b_i and decreasing b_j lowers the objective at the rate
g_j - g_i, so b is optimal when the

    KKT violation = max {-g_i : b_i < hi_i} - max(-inf, min {-g_j : b_j > lo_j})

is at most zero; LIBSVM stops when it is below its tolerance (Fan, Chen, Lin, JMLR 6, 2005), and so does this
package. The decision value is f(x) = sum_i b_i K(x_i, x) + offset.

Arrays are laid out for vector code: rows start on cache lines and are padded to full vectors.

Fresh memory costs a page fault for every 4096 bytes, more than filling it with a kernel does; so memory that
is needed repeatedly is scratch, kept per thread.

Standardisation is fitted on the training rows of a model and applied to all its inputs.
"""

import math
import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Single = NDArray[np.float32]

CACHE_LINE = 64
DOUBLES = 8  # numbers in a vector of 512 bits
LANES = 64
AT_BOUND = 1e-12  # this close to a bound, relative to the distance between the bounds, b is at it
KERNEL = ("C", "gamma")  # the hyperparameters of a machine with a Gaussian kernel

_kept = threading.local()
Kind = TypeVar("Kind", bound=np.generic)


def scratch(name: str, shape: tuple[int, ...], dtype: type[Kind]) -> NDArray[Kind]:
    """Return the calling thread's array of that name, uninitialised; it invalidates the previous one."""
    kept, size = vars(_kept), math.prod(shape)
    memory: NDArray[Kind] | None = kept.get(name)
    if memory is None or memory.size < size:
        n_bytes = size * np.dtype(dtype).itemsize
        fresh = np.zeros(n_bytes + CACHE_LINE, np.uint8)
        start = -fresh.ctypes.data % CACHE_LINE  # a vector load across two lines takes twice as long
        memory = kept[name] = fresh[start : start + n_bytes].view(dtype)
    return memory[:size].reshape(shape)


def writable(array: NDArray[Kind]) -> NDArray[Kind]:
    """Return the array, or a copy if it is read-only or not C-contiguous: those are different types."""
    return array if array.flags.carray else np.require(array, requirements=("C", "W"))


def round_up(n: int, lanes: int) -> int:
    """Return the smallest multiple of ``lanes`` that is not below n."""
    return -(-n // lanes) * lanes


class Weights(NamedTuple):
    """What a row of each class weighs: b_i is between -C * negative and 0, or between 0 and C * positive."""

    negative: float = 1.0
    positive: float = 1.0

    def bounds(self, y: Vector, C: float) -> tuple[Vector, Vector]:
        """Return lo and hi of the rows with labels y, shape (n,) each."""
        return np.where(y > 0, 0.0, -C * self.negative), np.where(y > 0, C * self.positive, 0.0)

    def is_unconstrained(self, b: Vector, C: float) -> bool:
        """Return whether no b has reached C times its weight: then C has no effect."""
        return bool(-C * self.negative < np.min(b) and np.max(b) < C * self.positive)


EQUAL = Weights()


class Options(NamedTuple):
    """What a solver needs besides rows, classes and gamma."""

    C_values: tuple[float, ...]  # ascending, positive
    tolerance: float  # largest KKT violation, in the solver's arithmetic, of a converged fit
    max_iter: int  # iterations after which a fit is returned as it is, not converged


class Solutions(NamedTuple):
    """The fits of a path as arrays: b [n_C, n_train], the others [n_C]."""

    b: Matrix  # signed dual variables y * alpha
    offset: Vector  # mean of -g over free variables; without any, the middle of the allowed interval
    value: Vector  # the dual objective, 1/2 b'Kb - y'b, at most 0
    violation: Vector  # KKT violation, >= 0
    n_iter: NDArray[np.int64]  # iterations of the solver
    converged: NDArray[np.bool_]


def empty_fits(n_C: int, n: int) -> Solutions:
    """Return arrays for the fits of a path, all zero."""
    return Solutions(
        b=np.zeros((n_C, n)),
        offset=np.zeros(n_C),
        value=np.zeros(n_C),
        violation=np.zeros(n_C),
        n_iter=np.zeros(n_C, np.int64),
        converged=np.zeros(n_C, np.bool_),
    )


def snap_to_bounds(b: Vector, y: Vector, C: float, weights: Weights) -> Vector:
    """Return b with entries within rounding of a bound moved onto it.

    With weights, the bounds of one class may add up to those of the other except for rounding: if all rows
    are at their bounds, one of them then remains free only by rounding, and would decide the offset.
    """
    lo, hi = weights.bounds(y, C)
    room = AT_BOUND * (hi - lo)
    return np.where(b - lo <= room, lo, np.where(hi - b <= room, hi, b))


def fit_constant(y: Vector, n_C: int) -> Solutions:
    """Return fits to rows of one class: no support vectors, f(x) = that class everywhere; 0 for no rows."""
    fits = empty_fits(n_C, len(y))
    fits.offset[:] = y[:1].sum()
    fits.converged[:] = True
    return fits


class Scaling(NamedTuple):
    """The affine map x -> (x - centre) / scale, feature by feature; shapes (d,), scale > 0."""

    centre: Vector
    scale: Vector

    def apply(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a scaled copy of X [rows, d]."""
        scaled = X - self.centre
        scaled /= self.scale
        return scaled


def read_scaling(row: Mapping[str, object], d: int, others: Sequence[Vector]) -> Scaling:
    """Return the scaling of the model stored in a row, whose other numbers are given.

    Raises:
        ValueError: its numbers cannot be those of a fit on d inputs.
    """
    scaling = Scaling(np.array(row["centre"]), np.array(row["scale"]))
    kernel = np.array([row[name] for name in KERNEL])
    if {scaling.centre.shape, scaling.scale.shape} != {(d,)}:
        raise ValueError(f"centre and scale do not have {d} features")
    if not all(np.isfinite(values).all() for values in (*scaling, kernel, *others)):
        raise ValueError("it has numbers that are not finite")
    if not (np.all(scaling.scale > 0) and np.all(kernel > 0)):
        raise ValueError("scale, C and gamma must be positive")
    return scaling


def fit_scaling(X: NDArray[np.float64], how: str = "standard") -> Scaling:
    """Return a scaling of kind ``how``, fitted on X [rows, d]: by mean and standard deviation, or "none".

    A constant column keeps its scale.
    """
    if how == "none":
        return Scaling(np.zeros(X.shape[1]), np.ones(X.shape[1]))
    spread = np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 0.0)
    return Scaling(X.mean(axis=0), np.where(spread > 0, spread, 1.0))
