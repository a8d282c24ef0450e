"""Whether distances are kept changes no bit, and whether the kernel is held whole no answer."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import blobs
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel

from ckcv_ray.core.draws import Draws
from ckcv_ray.core.resampling.complete import split_complete
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine import evaluate, ray_backend
from ckcv_ray.errors import InputError
from ckcv_ray.learners.svm import blocks, kernels
from ckcv_ray.learners.svm.decomposition import path_on_points
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.learners.svm.model import classify, count_errors
from ckcv_ray.learners.svm.problem import (
    EQUAL,
    Options,
    Solutions,
    empty_fits,
    fit_scaling,
    make_signs,
)
from ckcv_ray.learners.svm.trainer import may_share
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Execution, Study
from ckcv_ray.tables.columns import Rows
from ckcv_ray.tables.task import Task
from jobs.benchmarks import libsvm

SOLVING = Options((0.1, 10.0), 1e-6, 10_000_000)
SERIAL = Execution("serial")


STUDY = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.05, 0.5), k=(3, 5), n_splits=4, param={"tolerance": 1e-6})


def records(task: Task) -> bytes:
    problem = Problem.of(STUDY, task)
    units = [Unit(Stage.SELECT, size, split, ((0, 3), (1, 3))) for size in range(2) for split in range(4)]
    return evaluate.evaluate(units, evaluate.share(problem)).records.tobytes()


@pytest.mark.parametrize("d", [3, 60])
def test_kept_distances_change_no_bit(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    task = blobs(90, d=d, seed=1)
    job = Job(STUDY, task)
    kept, kept_records = run_job(job, SERIAL), records(task)
    monkeypatch.setattr(blocks, "DENSE_BYTES", 0)
    monkeypatch.setattr(kernels, "STRIP", 500)  # several strips, the last of them shorter
    found = run_job(job, SERIAL)
    assert records(task) == kept_records
    for a, b in zip(found.ensemble.members, kept.ensemble.members, strict=True):
        assert a.model.dual_coef.tobytes() == b.model.dual_coef.tobytes()
        assert a.model.offset == b.model.offset


def test_a_study_has_the_same_answer_without_whole_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    task = blobs(90, d=3, seed=1)
    whole = run_job(Job(STUDY, task), SERIAL)
    monkeypatch.setattr(blocks, "DENSE_BYTES", 0)
    monkeypatch.setattr(blocks, "WHOLE_BYTES", 0)
    in_parts = run_job(Job(STUDY, task), SERIAL)
    assert (in_parts.setting, in_parts.k) == (whole.setting, whole.k)
    assert (in_parts.l_ms, in_parts.l_ee) == (whole.l_ms, whole.l_ee)
    for a, b in zip(in_parts.ensemble.members, whole.ensemble.members, strict=True):
        np.testing.assert_allclose(a.model.decision(task.X), b.model.decision(task.X), atol=1e-3)


def test_whether_the_kernel_is_whole_depends_on_the_training_rows_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = blobs(60, d=3, seed=4)
    y, rows = make_signs(task).astype(float), np.arange(60)
    monkeypatch.setattr(blocks, "WHOLE_BYTES", blocks.whole_bytes(50))
    in_parts: list[int] = []

    def count(X: Rows, *args: Any, **kwargs: Any) -> Solutions:
        in_parts.append(len(X))
        return path_on_points(X, *args, **kwargs)

    monkeypatch.setattr(blocks.decomposition, "path_on_points", count)
    for limit, n_score in ((0, 60), (blocks.dense_bytes(50, 10), 60), (0, 1)):
        monkeypatch.setattr(blocks, "DENSE_BYTES", limit)
        for n_train in (50, 51):
            block = blocks.prepare(task.X, None, fit_scaling(task.X, "none"), rows[:n_train], rows[:n_score])
            block.fit(0.5, (0, 1), y[:n_train], EQUAL, SOLVING)
    assert in_parts == [51, 51, 51]


@pytest.mark.parametrize("strip", [1, 200, 1 << 20])
def test_scores_in_strips_are_those_of_the_whole(strip: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "STRIP", strip)
    task = blobs(60, d=3, seed=2)
    y = make_signs(task)
    split = split_complete(60, 3, 0, 4, Draws(0))
    dense = blocks.prepare(task.X, None, fit_scaling(task.X, "none"), split.train, split.select)
    fits = dense.fit(0.5, (0, 1), y[split.train].astype(float), EQUAL, SOLVING)
    ((_, whole),) = dense.strips(0.5)
    signs, errors = classify(whole, fits), count_errors(whole, fits, y[split.select])
    points = blocks.Points(task.X[split.train], task.X[split.select], ())
    parts = [
        (rows, classify(M, fits), count_errors(M, fits, y[split.select][rows]))
        for rows, M in points.strips(0.5)
    ]
    assert np.array_equal(np.concatenate([found for _, found, _ in parts], axis=1), signs)
    assert np.array_equal(sum(found for _, _, found in parts), errors)
    assert parts[-1][0].stop == len(split.select)
    K = rbf_kernel(task.X[split.select], task.X[split.train], gamma=0.5)
    assert np.array_equal(signs, np.sign(K @ fits.b.T + fits.offset).T)
    wrong = signs != y[split.select]
    assert np.array_equal(errors, [[np.sum(row & (y[split.select] == c)) for c in (-1, 1)] for row in wrong])
    assert errors.sum() > 0


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "points"])
def test_fits_of_wide_rows_are_optimal(dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not dense:
        monkeypatch.setattr(blocks, "DENSE_BYTES", 0)
    task = blobs(80, d=300, seed=6, shift=0.2)
    X, y = task.X.copy(), make_signs(task).astype(float)
    X[40:60] = X[:20]  # equal rows, of which each pair gets opposite labels
    y[40:60] = -y[:20]
    rows, gamma = np.arange(80), 1 / 300
    fits = blocks.prepare(X, None, fit_scaling(X, "none"), rows, rows[:1]).fit(
        gamma, (0, 1), y, EQUAL, SOLVING
    )
    K = np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    for C, fit in zip(SOLVING.C_values, libsvm.list_solutions(fits), strict=True):
        optimum = libsvm.describe(K @ fit.b, y, fit.b, C, fit.n_iter, fit.status)
        assert optimum.violation <= 1.01 * SOLVING.tolerance
        assert optimum.offset == pytest.approx(fit.offset, abs=1e-9)
        assert np.all((y * fit.b >= 0) & (y * fit.b <= C))


def test_a_row_within_rounding_of_zero_is_undecided_and_wrong() -> None:
    M = np.array([[0.0], [1.0], [1.0 - 1e-8], [1.0 - 1e-10], [1.0 + 1e-10]])
    fits = empty_fits(1, 1)._replace(b=np.ones((1, 1)), offset=np.ones(1))
    assert classify(M, fits).tolist() == [[1, 0, 1, 0, 0]]
    assert count_errors(M, fits, np.array([1, 1, -1, -1, 1], np.int8)).tolist() == [[2, 2]]


def test_shared_distances_make_the_block_that_new_ones_make() -> None:
    task = blobs(50, d=4, seed=3)
    split = split_complete(50, 4, 1, 4, Draws(0))
    shared = GaussianSVM(scale="none").trainer.share(task).distances
    assert shared is not None
    anew = [
        a.copy()
        for a in blocks.prepare(task.X, None, fit_scaling(task.X, "none"), split.train, split.select)[:2]
    ]
    gathered = blocks.prepare(task.X, shared, fit_scaling(task.X, "none"), split.train, split.select)[:2]
    for a, b, rows in zip(anew, gathered, (split.train, split.select), strict=True):
        n = len(split.train)
        assert a.shape[0] == len(rows)
        assert a[:, :n].tobytes() == b[:, :n].tobytes()


def test_distances_of_wide_rows_are_shared_up_to_twice_the_size() -> None:
    assert [may_share(8000, d) for d in (1, 49, 50)] == [True] * 3
    assert [may_share(10_000, d) for d in (1, 49, 50)] == [False, False, True]
    assert not may_share(12_000, 1000)


def test_what_is_held_depends_on_sizes_alone() -> None:
    assert blocks.dense_bytes(9000, 1000) < blocks.DENSE_BYTES < blocks.dense_bytes(10_500, 1)
    assert blocks.whole_bytes(13_000) < blocks.WHOLE_BYTES < blocks.whole_bytes(14_000)
    X, rows = np.zeros((10_500, 1)), np.arange(10_500)
    assert isinstance(blocks.prepare(X, None, fit_scaling(X, "none"), rows, rows[:1]), blocks.Points)
    assert isinstance(blocks.prepare(X, None, fit_scaling(X, "none"), rows[:50], rows[:9]), blocks.Dense)


def test_the_plan_covers_what_a_worker_takes() -> None:
    small, large = (evaluate.estimate_memory(Problem.of(Study(), blobs(n, d=20))) for n in (400, 20_000))
    assert evaluate.INTERPRETER_BYTES < small < evaluate.INTERPRETER_BYTES + (16 << 20)
    assert large < 5 << 29
    problem = Problem.of(STUDY, blobs(60))
    outcome = evaluate.evaluate([Unit(Stage.SELECT, 0, 0, ((0, 3),))], evaluate.share(problem))
    assert 0 < outcome.solving < outcome.seconds
    assert outcome.peak > 1 << 20


def test_a_table_too_large_for_every_node_is_refused(
    ray_session: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_backend, "estimate_memory", lambda problem: 1 << 60)
    job = Job(STUDY, blobs(60), tmp_path / "run")
    with pytest.raises(InputError, match=r"a worker needs \d+ MiB .* no node offers more than \d+ MiB"):
        run_job(job, Execution("ray", workers=1))
    assert not (tmp_path / "run").exists()
