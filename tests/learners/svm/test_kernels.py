"""Parts of the SVM: distances equal in every bit however they are cut, the Gaussian kernel, scaling, factors,
and decisions; when the kernel is held whole, and the memory that a worker takes.
"""

from typing import Any

import numpy as np
import pytest
from conftest import blobs, limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from ckcv_ray.core.measures import UNDECIDED, ZERO_ONE
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine import evaluate
from ckcv_ray.errors import Rows
from ckcv_ray.learners.ensemble import judge
from ckcv_ray.learners.svm import blocks, kernels
from ckcv_ray.learners.svm.blocks import path_on_points
from ckcv_ray.learners.svm.compile import load_code
from ckcv_ray.learners.svm.kernels import (
    MIN_CURVATURE,
    Complement,
    complement,
    compute_complement,
    compute_distances,
    fill_complement,
    fill_distances,
)
from ckcv_ray.learners.svm.model import SVMModel
from ckcv_ray.learners.svm.newton import factorise, remove, solve
from ckcv_ray.learners.svm.problem import (
    DOUBLES,
    EQUAL,
    LANES,
    Options,
    Scaling,
    Solutions,
    fit_scaling,
    round_up,
)
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Study

repeatable = settings(derandomize=True, deadline=None, max_examples=limit_examples(60))


def cloud(seed, n, d):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=d)


def same_bits(a, b):
    return a.shape == b.shape and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (3, 70, 9), (70, 3, 64), (131, 67, 50), (5, 8, 300)])
def test_every_bit_is_that_of_a_plain_sum_over_the_features(n, m, d):
    A, B = cloud(1, n, d), cloud(2, m, d)
    for first, second in ((A, B), (A, A), (B, A)):
        total = np.zeros((len(first), len(second)))
        for f in range(d):
            difference = first[:, None, f] - second[None, :, f]
            total += difference * difference
        assert same_bits(compute_distances(first, second), total)
        out = np.full((len(first), round_up(len(second), DOUBLES)), np.nan)
        fill_distances(first, second, out)
        assert same_bits(out[:, : len(second)], total)
        assert np.isfinite(out).all()


@given(st.integers(0, 10**6), st.floats(-12, 6))
@repeatable
def test_the_complement_has_all_its_digits(seed, exponent):
    D = compute_distances(cloud(seed, 9, 3), cloud(seed + 1, 11, 3))
    gamma = 10.0**exponent
    np.testing.assert_allclose(complement(D, gamma), -np.expm1(-gamma * D), rtol=1e-15, atol=0)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 63, 64, 65])
def test_both_precisions_are_filled_up_with_ones_and_agree(n):
    X = cloud(5, n, 3)
    D = np.zeros((n, round_up(n, DOUBLES)))
    fill_distances(X, X, D)
    M = Complement(np.empty_like(D), np.full((n, round_up(n, LANES)), np.nan, np.float32))
    fill_complement(D, 0.1, M)
    assert same_bits(M.double[:, :n], complement(compute_distances(X, X), 0.1))
    assert np.all(M.single[:, round_up(n, DOUBLES) :] == 1)
    assert np.all(M.single >= np.float32(MIN_CURVATURE))
    direct = compute_complement(X, 0.1)
    assert same_bits(direct.single, M.single)
    assert same_bits(direct.double[:, :n], M.double[:, :n])


@pytest.mark.parametrize("strip", [1, 7, 1 << 20])
def test_a_product_in_strips_is_that_of_the_whole(strip, monkeypatch):
    monkeypatch.setattr(kernels, "STRIP", strip)
    A, B = cloud(1, 23, 4), cloud(2, 9, 4)
    b = np.random.default_rng(0).normal(size=9)
    product = kernels.complement_product(A, B, 0.02, b)
    np.testing.assert_allclose(product, complement(compute_distances(A, B), 0.02) @ b, rtol=1e-12)
    assert kernels.complement_product(A, B[:0], 0.02, b[:0]).tolist() == [0.0] * 23


# Scaling


@pytest.mark.parametrize("unit", [1e-145, 1.0, 1e145])
def test_rows_are_scaled_as_by_scikit_learn_whatever_the_unit(unit):
    X, others = cloud(0, 50, 6), cloud(1, 50, 6)
    theirs, scaling = StandardScaler().fit(X), fit_scaling(X * unit)
    np.testing.assert_allclose(scaling.centre, theirs.mean_ * unit, rtol=1e-12)
    np.testing.assert_allclose(scaling.scale, theirs.scale_ * unit, rtol=1e-12)
    for rows in (X, others, others[:1]):
        np.testing.assert_allclose(scaling.apply(rows * unit), theirs.transform(rows), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -1 / 3, 1e-300, 1e100, 123456.789])
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 1000])
def test_a_constant_column_is_centred_and_keeps_its_scale(value, rows):
    """The mean of equal numbers may be off by an ulp, and then their standard deviation is not 0."""
    X = np.column_stack([np.full(rows, value), np.arange(rows)])
    scaling = fit_scaling(X)
    assert scaling.scale[0] == 1.0
    assert np.all(np.abs(scaling.apply(X)[:, 0]) <= 1e-13 * abs(value))
    if rows > 1:
        assert scaling.scale[1] == pytest.approx(np.sqrt((rows**2 - 1) / 12))


# Cholesky factors, their solves and downdates


SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 13, 30)


@pytest.mark.parametrize("m", SIZES)
def test_a_factor_solves_and_without_a_variable_is_that_of_the_others(m):
    load_code()  # these functions are called without a solver that loads them first
    half = np.random.default_rng(0).normal(size=(m, m + 3))
    A, x = half @ half.T, np.random.default_rng(1).normal(size=m)
    padded = np.zeros((m + 2, m + 5))
    padded[:m, :m] = A
    U, z = np.zeros_like(padded), x.copy()
    factorise(padded, U, m)
    solve(U, z, np.empty(m), m)
    np.testing.assert_allclose(A @ z, x, rtol=1e-6, atol=1e-6)
    for h in range(m if m > 1 else 0):
        factorise(padded, U, m)
        remove(U, np.empty(m), m, h)
        R, others = np.triu(U[: m - 1, : m - 1]), np.delete(np.arange(m), h)
        np.testing.assert_allclose(R.T @ R, A[np.ix_(others, others)], rtol=1e-7, atol=1e-7)


# Decisions


NEAR = [0.0, -0.0, 1e-10, -1e-10, 1e-9, -1e-9, np.nextafter(1e-9, 0)]
CLEAR = [np.nextafter(1e-9, 1), 2e-9, 1.0, 1e300]


@pytest.mark.parametrize("value", [*NEAR, *CLEAR, *(-value for value in CLEAR)])
def test_a_decision_within_1e_9_is_undecided_and_an_error_and_beyond_it_counts_by_its_sign(value):
    row, none = np.zeros((1, 3)), [(np.empty(0, np.int64), np.empty(0))]
    machine = SVMModel.from_pairs(
        (1.0, 1.0), Scaling(row[0], row[0] + 1), 2, none, np.array([value]), row[:0]
    )
    found = machine.predict(row)
    label = UNDECIDED if value in NEAR else int(value > 0)
    assert (found.label.dtype, found.label.tolist(), found.score.tolist()) == (np.int32, [label], [value])
    for y in (0, 1):
        errors = judge(machine, row, np.array([y], dtype=np.int32), ZERO_ONE, 2)
        assert errors[y] == (label != y)
        assert errors[1 - y] == 0


# When the kernel is held whole, and memory


SOLVING = Options((0.1, 10.0), 1e-6, 10_000_000)


STUDY = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.05, 0.5), k=(3, 5), n_splits=4, param={"tolerance": 1e-6})


def test_whether_the_kernel_is_whole_depends_on_the_training_rows_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = blobs(60, d=3, seed=4)
    y, rows = 2.0 * task.y - 1, np.arange(60)
    monkeypatch.setattr(blocks, "WHOLE_BYTES", blocks.whole_bytes(50))
    in_parts: list[int] = []

    def count(X: Rows, *args: Any, **kwargs: Any) -> Solutions:
        in_parts.append(len(X))
        return path_on_points(X, *args, **kwargs)

    monkeypatch.setattr(blocks, "path_on_points", count)
    for limit, n_score in ((0, 60), (blocks.dense_bytes(50, 10), 60), (0, 1)):
        monkeypatch.setattr(blocks, "DENSE_BYTES", limit)
        for n_train in (50, 51):
            block = blocks.prepare(task.X, None, fit_scaling(task.X, "none"), rows[:n_train], rows[:n_score])
            block.fit(0.5, rows[:n_train], y[:n_train], EQUAL, SOLVING)
    assert in_parts == [51, 51, 51]


def test_the_plan_covers_what_a_worker_takes() -> None:
    small, large = (evaluate.estimate_memory(Problem.of(Study(), blobs(n, d=20))) for n in (400, 20_000))
    assert evaluate.INTERPRETER_BYTES < small < evaluate.INTERPRETER_BYTES + (16 << 20)
    assert large < 5 << 29
    problem = Problem.of(STUDY, blobs(60))
    outcome = evaluate.evaluate(evaluate.share(problem), [Unit(Stage.SELECT, 0, 0, ((0, 3),))])
    assert 0 < outcome.solving < outcome.seconds
    assert outcome.peak > 1 << 20
