"""The path without the whole kernel: the same optimum as with it, whatever the size of the working sets."""

import numpy as np
import pytest

from ckcv_ray.learners.base import Status
from ckcv_ray.learners.svm.decomposition import choose_working_set, path_on_points
from ckcv_ray.learners.svm.kernels import complement, compute_distances, gaussian, make_complement
from jobs.benchmarks import libsvm

GRID = (0.01, 0.1, 1.0, 10.0, 100.0)
PLENTY = 10_000_000


def points(seed, n=90, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    X.flags.writeable = y.flags.writeable = False
    return X, y


@pytest.mark.parametrize("block", [2, 8, 30, 64, 1000])
@pytest.mark.parametrize("gamma", [0.01, 0.5])
def test_every_size_of_working_set_ends_at_the_optimum(block, gamma):
    X, y = points(1)
    D = compute_distances(X, X)
    K = gaussian(D, gamma)
    exact = libsvm.path(make_complement(complement(D, gamma)), y, GRID, 1e-8, PLENTY)
    fits = path_on_points(X, gamma, y, GRID, 1e-6, PLENTY, block)
    for C, fit, best in zip(GRID, libsvm.list_solutions(fits), libsvm.list_solutions(exact), strict=True):
        assert fit.status is Status.CONVERGED
        again = libsvm.describe(K @ fit.b, y, fit.b, C, fit.n_iter, fit.status)
        assert again.violation <= 1.01e-6
        assert fit.violation == pytest.approx(again.violation, abs=1e-9)
        assert np.all((y * fit.b >= 0) & (y * fit.b <= C))
        assert abs(fit.b.sum()) <= 1e-10 * C * len(y)
        assert fit.value == pytest.approx(best.value, rel=1e-6)


def test_one_class_alone_gives_the_constant_classifier():
    X, y = points(3)
    fits = path_on_points(X, 0.2, np.ones_like(y), GRID, 1e-3, PLENTY)
    assert not fits.b.any()
    assert np.all(fits.offset == 1.0)


def test_the_cap_is_kept_and_told():
    X, y = points(4)
    fits = path_on_points(X, 0.5, y, (1.0, 100.0), 1e-6, 5, block=8)
    assert [s.status for s in libsvm.list_solutions(fits)] == [Status.NOT_CONVERGED] * 2
    assert np.all(fits.n_iter <= 5)
    assert np.all(fits.violation > 1e-6)


@pytest.mark.parametrize("block", [2, 3, 10, 50, 89])
def test_a_working_set_holds_the_most_violating_pair_and_no_more_rows_than_asked(block):
    rng = np.random.default_rng(0)
    F, C = rng.normal(size=90), 1.0
    y = np.where(rng.random(90) < 0.5, -1.0, 1.0)
    lo, hi = np.minimum(0.0, C * y), np.maximum(0.0, C * y)
    b = lo + (hi - lo) * rng.choice([0.0, 0.3, 1.0], 90)
    rows = choose_working_set(F, b, lo, hi, 1e-3, block)
    assert 2 <= len(rows) <= block
    assert np.all(np.diff(rows) > 0)
    assert np.argmin(np.where(b < hi, F, np.inf)) in rows
    assert np.argmax(np.where(b > lo, F, -np.inf)) in rows
    assert not len(choose_working_set(np.zeros(90), b, lo, hi, 1e-3, block))
