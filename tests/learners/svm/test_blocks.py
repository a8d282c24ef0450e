"""Whether a split's matrices are held whole or made as they are needed changes no answer."""

from pathlib import Path

import numpy as np
import pytest
from conftest import blobs

from ckcv_ray.core.resampling import complete_kfold
from ckcv_ray.engine import evaluate as worker
from ckcv_ray.engine import ray_backend as cluster
from ckcv_ray.errors import InputError
from ckcv_ray.learners.svm import blocks, kernels
from ckcv_ray.runs.run import run_table
from ckcv_ray.study import Execution, Stage, Study, Task


def study(scaling: str = "none", solver: str = "newton") -> Study:
    return Study(
        C=(0.1, 1.0, 10.0),
        gamma=(0.05, 0.5),
        k=(3, 5),
        n_splits=4,
        scaling=scaling,
        solver=solver,
        tolerance=1e-6,
    )


@pytest.mark.parametrize("solver", ["newton", "libsvm"])
@pytest.mark.parametrize("scaling", ["none", "standard"])
def test_a_study_has_the_same_answer_without_whole_matrices(
    scaling: str, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = blobs(90, d=3, seed=1)
    whole = run_table(study(scaling, solver), table, execution=Execution("serial"))
    monkeypatch.setattr(blocks, "DENSE_BYTES", 0)
    in_parts = run_table(study(scaling, solver), table, execution=Execution("serial"))
    assert (in_parts.C, in_parts.gamma, in_parts.k) == (whole.C, whole.gamma, whole.k)
    assert (in_parts.l_ms, in_parts.l_ee) == (whole.l_ms, whole.l_ee)
    for a, b in zip(in_parts.ensemble.members, whole.ensemble.members, strict=True):
        np.testing.assert_allclose(a.decision(table.X), b.decision(table.X), atol=1e-3)


@pytest.mark.parametrize("strip", [1, 200, 1 << 20])
def test_scores_in_strips_are_those_of_the_whole(strip: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "STRIP", strip)
    table = blobs(60, d=3, seed=2)
    split = complete_kfold(60, 3, 0, 4, 0)
    scaling = worker.fit_scaling(table.X, "none")
    dense = blocks.prepare(table.X, None, scaling, split.train, split.select)
    y = table.y[split.train].astype(float)
    fits = dense.fit(study(), 0.5, y, (0.1, 10.0))
    counted = dense.errors(0.5, fits, table.y[split.select])
    points = blocks.Points(table.X[split.train], table.X[split.select])
    assert np.array_equal(points.errors(0.5, fits, table.y[split.select]), counted)
    assert counted.sum() > 0


def test_shared_distances_make_the_block_that_new_ones_make() -> None:
    table = blobs(50, d=4, seed=3)
    split = complete_kfold(50, 4, 1, 4, 0)
    shared = worker.share(table.X, table.y, study()).distances
    assert shared is not None
    scaling = worker.fit_scaling(table.X, "none")
    anew = [a.copy() for a in blocks.prepare(table.X, None, scaling, split.train, split.select)[:2]]
    gathered = blocks.prepare(table.X, shared, scaling, split.train, split.select)[:2]
    for a, b, rows in zip(anew, gathered, (split.train, split.select), strict=True):
        n = len(split.train)
        assert a.shape[0] == len(rows)
        assert a[:, :n].tobytes() == b[:, :n].tobytes()


def test_which_block_a_split_gets_depends_on_its_size_alone() -> None:
    assert blocks.dense_bytes(5000, 2000) < blocks.DENSE_BYTES < blocks.dense_bytes(10_000, 1)
    X = np.zeros((8000, 1))
    X[::2] = 1.0
    rows = np.arange(8000)
    scaling = worker.fit_scaling(X, "none")
    assert isinstance(blocks.prepare(X, None, scaling, rows, rows[:10]), blocks.Points)


def test_the_plan_covers_what_a_worker_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = (worker.memory(Study(), n, 20) for n in (400, 20_000))
    assert worker.INTERPRETER_BYTES < small < worker.INTERPRETER_BYTES + (16 << 20)
    assert large < 2 << 30
    table = blobs(60)
    task = Task(Stage.SELECT, 3, 0, ((0, 3),))
    outcome = worker.evaluate([task], study(), worker.share(table.X, table.y, study()))
    assert 0 < outcome.solving < outcome.seconds
    assert outcome.peak > 1 << 20


def test_a_table_too_large_for_every_node_is_refused(
    ray_session: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "memory", lambda *args: 1 << 60)
    with pytest.raises(InputError, match=r"a worker needs \d+ MiB .* no node offers more than \d+ MiB"):
        run_table(study(), blobs(60), out=tmp_path / "run", backend=cluster.RayBackend(1))
    assert not (tmp_path / "run").exists()
