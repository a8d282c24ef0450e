"""One contract for all backends: the same result whatever the order, number and fate of the batches."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import doubles
import pytest
import ray
from conftest import blobs
from doubles import Faulty, Fragile, run_with

from ckcv_ray.engine.backend import MakeRecorder, SerialBackend
from ckcv_ray.engine.loop import Backend
from ckcv_ray.engine.queue import Progress
from ckcv_ray.engine.ray_backend import RayBackend, remote_recorder
from ckcv_ray.engine.recorder import Recorder
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.study.study import Execution, Study

SERIAL = Execution("serial")
FILES = ("candidates.parquet", "certificate.json", "study.json", "data.parquet", "ensemble/models.parquet")
STUDY = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), n_splits=5, report_k=(5,))
TASK = blobs(36)
FRAGILE = Fragile(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0))


class Kind(NamedTuple):
    """A kind of backend: how to create one, and how to create its recorders."""

    backend: Callable[[], Backend]
    recorder: MakeRecorder = Recorder

    def run(self, study: Study, out: Path | None = None, **more: object) -> Result:
        return run_with(self.backend, study, TASK, out, self.recorder, **more)


FAULTS = ("hold", "twice", "backwards", "lose", "again", "deny", "in_parts")
SCRIPT = [(FAULTS[i % len(FAULTS)], 7 * i % 99) for i in range(60)]
KINDS = {
    "ray on one worker": Kind(lambda: RayBackend(1), remote_recorder),
    "ray on three": Kind(lambda: RayBackend(3), remote_recorder),
    "ray without an actor": Kind(lambda: RayBackend(2)),
    "all faults": Kind(lambda: Faulty(SCRIPT)),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    if request.param.startswith("ray"):
        request.getfixturevalue("ray_session")
    return KINDS[request.param]


@pytest.fixture(scope="module", autouse=True)
def workers_know_the_doubles() -> Iterator[None]:
    ray.cloudpickle.register_pickle_by_value(doubles)
    yield
    ray.cloudpickle.unregister_pickle_by_value(doubles)


def files(folder: Path) -> dict[str, bytes]:
    pickles = sorted(file.relative_to(folder).as_posix() for file in folder.glob("ensemble/*.pkl"))
    return {name: (folder / name).read_bytes() for name in (*FILES, *pickles)}


@pytest.mark.parametrize("exhaustive", [False, True])
def test_every_byte_equals_a_serial_run(kind: Kind, exhaustive: bool, tmp_path: Path) -> None:
    study = STUDY.replace(exhaustive=True, k=(3, 5), n_splits=3) if exhaustive else STUDY
    run_job(Job(study, TASK, tmp_path / "serial"), SERIAL)
    progress: list[Progress] = []
    result = kind.run(study, tmp_path / "run", listen=progress.append)
    assert files(tmp_path / "run") == files(tmp_path / "serial")
    last = progress[-1]
    assert last.planned == last.computed + last.dropped == result.problem.n_evaluations
    assert (last.stage, last.best) == ("judging", ((result.setting, result.k), result.certificate.l_ms))
    assert result.execution["failures"] == []
    assert verify(tmp_path / "run").differences == []
    counts = result.execution["evaluations"]
    assert (counts["computed"] == result.problem.n_evaluations) == exhaustive
    assert (result.candidates["l_ee"].null_count == 0) == exhaustive


def test_an_exception_is_a_failure_and_all_else_is_computed(kind: Kind, tmp_path: Path) -> None:
    """It is the same failure wherever it is computed, and however much is requested at once."""
    study = STUDY.replace(k=(3, 4), n_splits=3, report_k=()).with_learner(FRAGILE)
    alone = run_with(SerialBackend(), study, TASK)
    result = kind.run(study, tmp_path / "run")
    assert result.candidates.equals(alone.candidates)
    where = [(row["path"], row["step"]) for row in result.candidates.to_pylist() if row["state"] == "failed"]
    assert where
    assert set(where) <= {(1, 1), (1, 2)}
    assert result.certificate.provisional
    assert {failure[0] for failure in result.execution["failures"]} == {1}
    assert all("pineapple" in failure[-1] for failure in result.execution["failures"])
    counts = result.execution["evaluations"]
    assert counts["planned"] == counts["computed"] + counts["dropped"] + counts["failed"]


def test_a_stopped_run_is_resumed(kind: Kind, tmp_path: Path) -> None:
    run_job(Job(STUDY, TASK, tmp_path / "serial"), SERIAL)
    for most in (0, 1, 4):
        calls = iter(range(10**6))
        with pytest.raises(KeyboardInterrupt):
            kind.run(STUDY, tmp_path / "run", stop=lambda most=most, calls=calls: next(calls) >= most)
        assert not (tmp_path / "run" / "manifest.json").exists()
        assert not (tmp_path / "run" / ".lock").exists()
    kind.run(STUDY, tmp_path / "run")
    assert files(tmp_path / "run") == files(tmp_path / "serial")
