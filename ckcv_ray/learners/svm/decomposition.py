"""The path in C when M = 1 - K does not fit into memory: one block of it at a time.

The state is b and its gradient F over all n rows. Each round takes a working set of at most ``BLOCK`` rows,
the worst violators on either side and then free variables, solves the problem restricted to them with the
steps of ``path``, and updates F from the rows that changed, whose kernel is computed in strips and discarded.
The most violating pair is always in the set, so the violation ends below the tolerance (Lin, IEEE Trans.
Neural Networks 12, 2001).
"""

from threading import get_ident

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.learners.svm.compile import load_code
from ckcv_ray.learners.svm.kernels import complement_product, compute_complement
from ckcv_ray.learners.svm.path import describe_fit, index_mask, optimise, rescale, workspace
from ckcv_ray.learners.svm.problem import (
    EQUAL,
    Matrix,
    Options,
    Solutions,
    Vector,
    Weights,
    empty_fits,
    fit_constant,
    snap_to_bounds,
    writable,
)

BLOCK = 4096


def path_on_points(
    X: Matrix, gamma: float, y: Vector, options: Options, weights: Weights = EQUAL, block: int = BLOCK
) -> Solutions:
    """Fit each C in turn, starting from the previous solution; without ever holding all of K.

    Args:
        X: training rows [n, d]; gamma: width of the kernel exp(-gamma * squared distance).
        y, options, weights: as for ``path.path``.
        block: rows of a working set, at least 2.
    """
    if (y == y[:1]).all():
        return fit_constant(y, len(options.C_values))
    load_code()
    y, n = writable(y), len(y)
    fits = empty_fits(len(options.C_values), n)
    b, F = np.zeros(n), -y
    solved = False
    for c, C in enumerate(options.C_values):
        lo, hi = weights.bounds(y, C)
        if not solved:
            rescale(F, y, b, lo, hi, -C * weights.negative, C * weights.positive)
            fits.n_iter[c] = _solve(X, gamma, (F, b, lo, hi), options, block)
            b = b if weights == EQUAL else snap_to_bounds(b, y, C, weights)
        fits.b[c] = b
        describe_fit(F, y, b, lo, hi, c, fits)
        fits.converged[c] = solved or fits.violation[c] < options.tolerance
        solved = solved or bool(fits.converged[c] and weights.is_unconstrained(b, C))
    return fits


def _solve(
    X: Matrix, gamma: float, state: tuple[Vector, Vector, Vector, Vector], options: Options, block: int
) -> int:
    """Move b and F, of a state F, b, lo and hi, to the optimum at one C; return the number of iterations."""
    (F, b, lo, hi), (_, tolerance, max_iter) = state, options
    done = 0
    while done < max_iter:
        rows = choose_working_set(F, b, lo, hi, tolerance, block)
        if not len(rows):
            break
        M, space = compute_complement(X[rows], gamma), workspace(len(rows), get_ident())
        before, inside = b[rows], space.state[:3]
        inside[:] = 0.0
        inside[:, : len(rows)] = b[rows], lo[rows], hi[rows]
        limits = tolerance, max_iter - done, index_mask(len(rows))
        done += max(1, optimise(M, F[rows], *inside, *limits, space))  # the other rows are fixed
        b[rows] = inside[0, : len(rows)]
        moved = np.flatnonzero(b[rows] != before)
        F -= complement_product(X, X[rows[moved]], gamma, b[rows[moved]] - before[moved])
    return done


def choose_working_set(
    F: Vector, b: Vector, lo: Vector, hi: Vector, tolerance: float, block: int
) -> NDArray[np.intp]:
    """Return the rows of the next working set, ascending; none if the violation is below the tolerance."""
    rises, falls = np.where(b < hi, F, np.inf), np.where(b > lo, F, -np.inf)
    if not falls.max() - rises.min() >= tolerance:
        return np.empty(0, np.intp)
    if len(F) <= block:
        return np.arange(len(F))
    quarter = max(1, block // 4)
    upward, downward = np.argsort(rises, kind="stable")[:quarter], np.argsort(-falls, kind="stable")[:quarter]
    violators = np.union1d(upward[rises[upward] < falls.max()], downward[falls[downward] > rises.min()])
    added = np.setdiff1d(np.flatnonzero((b > lo) & (b < hi)), violators)
    if len(added) < block - len(violators):  # space left: add those at a bound with the least slack
        slack = np.minimum(np.abs(rises - falls.max()), np.abs(falls - rises.min()))
        slack[violators], slack[added] = np.inf, -1.0
        added = np.argsort(slack, kind="stable")
    return np.union1d(violators, added[: block - len(violators)])
