"""Real faults on a real Ray: killed workers, a killed recorder; the answer is the same."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
import ray
from conftest import blobs
from doubles import run_with

from ckcv_ray.engine.ray_backend import RayBackend, remote_recorder
from ckcv_ray.engine.recorder import Recorder
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import FolderPath
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Execution, Study

SERIAL = Execution("serial")
STUDY = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.01, 0.1, 1.0), k=(3, 4, 5, 6), n_splits=25, exhaustive=True)
TASK = blobs(60, seed=7)


def workers() -> list[int]:
    """Processes of our Ray that evaluate a batch just now."""
    found, mark = [], f"CKCV_TESTS={os.getpid()}".encode()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                ours = mark in (folder / "environ").read_bytes().split(b"\0")
                if ours and (folder / "cmdline").read_bytes().startswith(b"ray::_evaluate"):
                    found.append(int(folder.name))
    return found


class Killer:
    """A ``stop`` that never stops a run, but kills something when it is asked, a few times in all."""

    def __init__(self, kill: Callable[["Killer"], int]) -> None:
        self.recorders: list[Any] = []
        self.asked, self.killed, self.kill = 0, 0, kill

    def recorder(self, problem: Problem, out: FolderPath | None) -> Recorder:
        self.recorders.append(remote_recorder(problem, out))
        return cast(Recorder, self.recorders[-1])

    def __call__(self) -> bool:
        self.asked += 1
        if self.asked > 2 and self.killed < 3:
            self.killed += self.kill(self)
        return False


def kill_worker(killer: Killer) -> int:
    found = workers()[:1]
    for process in found:
        os.kill(process, signal.SIGKILL)
    return len(found)


def kill_recorder(killer: Killer) -> int:
    ray.kill(killer.recorders[-1]._actor)
    return 1


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("kill", [kill_worker, kill_recorder])
def test_a_run_outlives_what_is_killed_under_it(tmp_path: Path, kill: Any) -> None:
    run_job(Job(STUDY, TASK, tmp_path / "whole"), SERIAL)
    killer = Killer(kill)
    result = run_with(lambda: RayBackend(2), STUDY, TASK, tmp_path / "run", killer.recorder, stop=killer)
    assert killer.killed >= 1
    assert result.execution["failures"] == []
    for name in ("candidates.parquet", "certificate.json", "ensemble/models.parquet"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert verify(tmp_path / "run").differences == []
