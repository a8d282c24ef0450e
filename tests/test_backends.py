"""One contract, several backends: whatever the order, the number and the fate of batches, one answer."""

import os
from pathlib import Path

import numpy as np
import pytest
import ray
from conftest import blobs
from hypothesis import given, settings
from hypothesis import strategies as st

from ckcv_ray import cluster, worker
from ckcv_ray.data import Table
from ckcv_ray.driver import SerialBackend, run_table
from ckcv_ray.errors import InputError, RunError, StoreError
from ckcv_ray.result import Result
from ckcv_ray.store import RunFolder
from ckcv_ray.study import Execution, Stage, Study, Task

FILES = ("triples.parquet", "certificate.json", "study.json", "data.parquet", "ensemble/models.parquet")


class Unruly(SerialBackend):
    """Keeps several batches waiting, takes them in any order, and hands some of them back twice."""

    name = "unruly"

    def __init__(self, seed: int, window: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.window = window

    def wait(self) -> list[worker.Outcome]:
        self.queue.rotate(int(self.rng.integers(len(self.queue))))
        tasks = self.queue.popleft()
        if len(tasks) > 1 and self.rng.random() < 0.5:
            self.queue.append(tasks[1:])
            tasks = tasks[:1]
        outcome = worker.evaluate(tasks, self.study, self.data)
        outcome = outcome._replace(records=self._shuffled(outcome.records), members=outcome.members[::-1])
        return [outcome] * int(self.rng.integers(1, 3))

    def _shuffled(self, records: worker.Records) -> worker.Records:
        paths = [records[records["gamma"] == gamma] for gamma in np.unique(records["gamma"])]
        order = self.rng.permutation(len(paths))
        return np.concatenate([paths[i] for i in order]) if paths else records


class Failing(SerialBackend):
    """Loses every task that ``doomed`` picks."""

    def __init__(self, doomed: object) -> None:
        self.doomed = doomed

    def wait(self) -> list[worker.Outcome]:
        tasks = self.queue.popleft()
        lost = [task for task in tasks if self.doomed(task)]
        kept = [task for task in tasks if not self.doomed(task)]
        return [
            worker.evaluate(kept, self.study, self.data),
            worker.failed(lost, self.study, "Traceback: the machine caught fire"),
        ]


class Lying(SerialBackend):
    """Changes one count the second time it is asked."""

    def wait(self) -> list[worker.Outcome]:
        (outcome,) = super().wait()
        altered = outcome.records.copy()
        altered["errors_positive"][-1] += 1
        return [outcome, outcome._replace(records=altered)]


def signature(result: Result) -> tuple[object, ...]:
    """Everything that must be equal in every bit."""
    members = [
        (m.mc_index, m.C, m.gamma, m.errors, m.offset, m.dual_coef.tobytes(), m.support.tobytes())
        for m in result.ensemble.members
    ]
    certificate = result.certificate.to_json()
    certificate.pop("digests")
    return result.triples.to_pydict(), members, certificate


def files(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


@pytest.mark.parametrize("scaling", ["standard", "none"])
@pytest.mark.parametrize("workers", [1, 3])
def test_ray_equals_serial_in_every_byte(
    ray_session: None, tmp_path: Path, workers: int, scaling: str
) -> None:
    study = Study(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), n_splits=5, scaling=scaling, report_k=(5,))
    table = blobs(36)
    run_table(study, table, tmp_path / "serial", Execution("serial"))
    run_table(study, table, tmp_path / "ray", Execution("ray", workers))
    assert files(tmp_path / "serial") == files(tmp_path / "ray")


@given(seed=st.integers(0, 10**6), window=st.integers(1, 9))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_order_repetition_and_batching_change_nothing(seed: int, window: int) -> None:
    study = Study(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), n_splits=4, seed=seed % 7, report_k=(4,))
    table = blobs(24, seed=seed % 5)
    quiet = run_table(study, table, execution=Execution("serial"))
    noisy = run_table(study, table, backend=Unruly(seed, window))
    assert signature(quiet) == signature(noisy)


def test_a_record_that_changes_stops_the_run(study: Study, table: Table, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not deterministic"):
        run_table(study, table, tmp_path / "run", backend=Lying())


def test_a_failed_path_is_recorded_and_the_rest_completes(study: Study, table: Table, tmp_path: Path) -> None:
    def doomed(task: Task) -> bool:
        return task.stage is Stage.SELECT and task.mc_index == 2 and task.k == 3

    result = run_table(study, table, tmp_path / "run", backend=Failing(doomed))
    states = result.triples.to_pydict()["state"]
    assert result.execution["cells"]["failed"] == 6
    assert result.certificate.provisional == ("failed" in states)
    assert "machine caught fire" in result.execution["failures"][0][-1]
    cells = result.execution["cells"]
    assert cells["planned"] == cells["computed"] + cells["dropped"] + cells["failed"]
    again = run_table(study, table, tmp_path / "run")
    assert signature(again) == signature(result)


def test_failures_that_are_provably_beaten_leave_the_certificate_whole() -> None:
    table = blobs(30, shift=4.0)
    study = Study(C=(1.0,), gamma=(1e-6, 1.0), k=(3,), n_splits=5)
    whole = run_table(study, table, execution=Execution("serial"))
    loser = next(g for g, gamma in enumerate(study.gamma) if gamma != whole.gamma)

    class LosesLast(SerialBackend):
        def wait(self) -> list[worker.Outcome]:
            (outcome,) = super().wait()
            records = outcome.records
            last = (records["mc_index"] == 4) & (records["gamma"] == study.gamma[loser])
            if not last.any():
                return [outcome]
            task = Task(Stage.SELECT, 3, 4, ((loser, 1),))
            return [outcome._replace(records=records[~last]), worker.failed([task], study, "lost")]

    result = run_table(study, table, backend=LosesLast())
    assert not result.certificate.provisional
    assert result.l_ms == whole.l_ms


def test_when_everything_fails_the_run_says_why(study: Study, table: Table) -> None:
    with pytest.raises(RunError, match=r"no triple could be completed(.|\n)*caught fire"):
        run_table(study, table, backend=Failing(lambda task: True))


def test_when_the_winner_cannot_be_refitted_the_run_says_why(study: Study, table: Table) -> None:
    with pytest.raises(RunError, match=r"could not be refitted(.|\n)*caught fire"):
        run_table(study, table, backend=Failing(lambda task: task.stage is Stage.REFIT))


def test_a_solver_that_raises_is_data_not_a_crash(
    study: Study, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object) -> None:
        raise FloatingPointError("the matrix is a pineapple")

    monkeypatch.setitem(worker.SOLVERS, study.solver, broken)
    task = Task(Stage.SELECT, 3, 0, ((0, 3), (1, 2)))
    outcome = worker.evaluate([task], study, worker.share(table.X, table.y, study))
    assert not len(outcome.records)
    assert [(f.path.gamma, f.first, f.stop) for f in outcome.failures] == [(0.1, 0, 3), (1.0, 0, 2)]
    assert all("pineapple" in failure.traceback for failure in outcome.failures)


def test_whether_a_cell_fails_depends_on_its_key_alone(
    study: Study, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that raises at its largest C keeps the counts of the others, as a shorter path would."""
    sound = worker.SOLVERS[study.solver]

    def fragile(M: object, y: object, C_values: tuple[float, ...], *rest: object) -> object:
        if C_values[-1] > 1.0:
            raise FloatingPointError("C is too large")
        return sound(M, y, C_values, *rest)

    monkeypatch.setitem(worker.SOLVERS, study.solver, fragile)
    data = worker.share(table.X, table.y, study)
    whole = worker.evaluate([Task(Stage.SELECT, 3, 0, ((0, 3),))], study, data)
    short = worker.evaluate([Task(Stage.SELECT, 3, 0, ((0, 2),))], study, data)
    assert np.array_equal(whole.records, short.records)
    assert not short.failures
    assert [(f.first, f.stop) for f in whole.failures] == [(2, 3)]


def test_a_batch_ray_gives_up_on_becomes_failures(ray_session: None, study: Study, table: Table) -> None:
    @ray.remote(max_retries=0)
    def dying() -> None:
        os._exit(1)

    tasks = [Task(Stage.SELECT, 3, 0, ((0, 3), (1, 2)))]
    backend = cluster.RayBackend(1)
    try:
        aggregator = backend.start(study, table, None)
        backend._pending[dying.remote()] = tasks
        (outcome,) = backend.wait()
        assert aggregator.add(outcome).failed == 5
    finally:
        backend.close()


def test_an_error_in_the_actor_arrives_as_it_was_raised(
    ray_session: None, study: Study, table: Table, tmp_path: Path
) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.acquire()
    with pytest.raises(StoreError, match="in use by another run"):
        run_table(study, table, tmp_path / "run", Execution("ray", 1))
    folder.release()


def test_an_address_where_nobody_answers_is_refused_at_once() -> None:
    for address, told in (("127.0.0.1:1", "no Ray cluster answers"), ("nonsense", "expected host:port")):
        with pytest.raises(InputError, match=told):
            cluster._reach(address)
