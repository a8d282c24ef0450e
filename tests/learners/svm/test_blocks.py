"""Whether a split's matrices are held whole or made as they are needed changes no answer."""

from pathlib import Path

import numpy as np
import pytest
from conftest import blobs

from ckcv_ray.core.resampling.complete import split_complete
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine import evaluate, ray_backend
from ckcv_ray.errors import InputError
from ckcv_ray.learners.svm import blocks, kernels
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.learners.svm.problem import EQUAL, Options, make_signs
from ckcv_ray.learners.svm.scaling import identity
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study import Execution, Problem, Study

SOLVING = Options((0.1, 10.0), "newton", 1e-6, 10_000_000)
SERIAL = Execution("serial")


def study(scale: str = "none") -> Study:
    return Study.paper(
        C=(0.1, 1.0, 10.0),
        gamma=(0.05, 0.5),
        k=(3, 5),
        n_splits=4,
        scale=scale,
        tolerance=1e-6,
    )


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_a_study_has_the_same_answer_without_whole_matrices(
    scale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = blobs(90, d=3, seed=1)
    whole = run_job(Job(study(scale), task), SERIAL)
    monkeypatch.setattr(blocks, "DENSE_BYTES", 0)
    in_parts = run_job(Job(study(scale), task), SERIAL)
    assert (in_parts.setting, in_parts.k) == (whole.setting, whole.k)
    assert (in_parts.l_ms, in_parts.l_ee) == (whole.l_ms, whole.l_ee)
    for a, b in zip(in_parts.ensemble.members, whole.ensemble.members, strict=True):
        np.testing.assert_allclose(a.model.decision(task.X), b.model.decision(task.X), atol=1e-3)


@pytest.mark.parametrize("strip", [1, 200, 1 << 20])
def test_scores_in_strips_are_those_of_the_whole(strip: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "STRIP", strip)
    task = blobs(60, d=3, seed=2)
    y = make_signs(task)
    split = split_complete(60, 3, 0, 4, 0)
    dense = blocks.prepare(task.X, None, identity(3), split.train, split.select)
    GaussianSVM().trainer.load()
    fits = dense.fit(0.5, y[split.train].astype(float), EQUAL, SOLVING)
    counted = dense.errors(0.5, fits, y[split.select])
    points = blocks.Points(task.X[split.train], task.X[split.select])
    assert np.array_equal(points.errors(0.5, fits, y[split.select]), counted)
    assert counted.sum() > 0


def test_shared_distances_make_the_block_that_new_ones_make() -> None:
    task = blobs(50, d=4, seed=3)
    split = split_complete(50, 4, 1, 4, 0)
    shared = GaussianSVM(scale="none").trainer.share(task).distances
    assert shared is not None
    anew = [a.copy() for a in blocks.prepare(task.X, None, identity(4), split.train, split.select)[:2]]
    gathered = blocks.prepare(task.X, shared, identity(4), split.train, split.select)[:2]
    for a, b, rows in zip(anew, gathered, (split.train, split.select), strict=True):
        n = len(split.train)
        assert a.shape[0] == len(rows)
        assert a[:, :n].tobytes() == b[:, :n].tobytes()


def test_which_block_a_split_gets_depends_on_its_size_alone() -> None:
    assert blocks.dense_bytes(5000, 2000) < blocks.DENSE_BYTES < blocks.dense_bytes(10_000, 1)
    X = np.zeros((8000, 1))
    X[::2] = 1.0
    rows = np.arange(8000)
    assert isinstance(blocks.prepare(X, None, identity(1), rows, rows[:10]), blocks.Points)


def test_the_plan_covers_what_a_worker_takes() -> None:
    small, large = (evaluate.memory(Problem.of(Study(), blobs(n, d=20))) for n in (400, 20_000))
    assert evaluate.INTERPRETER_BYTES < small < evaluate.INTERPRETER_BYTES + (16 << 20)
    assert large < 2 << 30
    problem = Problem.of(study(), blobs(60))
    outcome = evaluate.evaluate([Unit(Stage.SELECT, 0, 0, ((0, 3),))], evaluate.share(problem))
    assert 0 < outcome.solving < outcome.seconds
    assert outcome.peak > 1 << 20


def test_a_table_too_large_for_every_node_is_refused(
    ray_session: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_backend, "memory", lambda problem: 1 << 60)
    job = Job(study(), blobs(60), tmp_path / "run")
    with pytest.raises(InputError, match=r"a worker needs \d+ MiB .* no node offers more than \d+ MiB"):
        run_job(job, Execution("ray", workers=1))
    assert not (tmp_path / "run").exists()
