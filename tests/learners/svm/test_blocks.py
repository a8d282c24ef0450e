"""When the kernel is held whole, and the memory that a worker takes; bits: ``test_one_against_one``."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import blobs

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine import evaluate, ray_backend
from ckcv_ray.errors import InputError
from ckcv_ray.learners.svm import blocks
from ckcv_ray.learners.svm.blocks import path_on_points
from ckcv_ray.learners.svm.problem import EQUAL, Options, Solutions, fit_scaling
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Execution, Study
from ckcv_ray.tables.columns import Rows

SOLVING = Options((0.1, 10.0), 1e-6, 10_000_000)
SERIAL = Execution("serial")


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


def test_a_table_too_large_for_every_node_is_refused(
    ray_session: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_backend, "estimate_memory", lambda problem: 1 << 60)
    job = Job(STUDY, blobs(60), tmp_path / "run")
    with pytest.raises(InputError, match=r"a worker needs \d+ MiB .* no node offers more than \d+ MiB"):
        run_job(job, Execution("ray", workers=1))
    assert not (tmp_path / "run").exists()
