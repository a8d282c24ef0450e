"""The Ray backend: what is lost or killed is computed again, errors arrive as raised, and our Ray is ours."""

import os
import re
import signal
import time
import urllib.request
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
import ray
from conftest import blobs
from doubles import run_with
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine import ray_backend
from ckcv_ray.engine.evaluate import Inputs, share
from ckcv_ray.engine.queue import Batch
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.engine.ray_backend import MAX_ATTEMPTS, RayBackend, remote_recorder, replacements
from ckcv_ray.engine.recorder import Recorder
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import FolderPath, RunFolder
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Execution, Study
from ckcv_ray.tables.task import Task


def test_a_batch_ray_gives_up_on_becomes_failures(ray_session: None, study: Study, task: Task) -> None:
    """Sent again, then halved, until each path has failed by itself."""

    @ray.remote(max_retries=0)
    def dying(units: tuple[Unit, ...], seconds: float, inputs: Inputs) -> None:
        os._exit(1)

    backend, problem = ray_backend.RayBackend(1), Problem.of(study, task)
    queue = RaceQueue(problem)
    try:
        backend.start(share(problem))
        backend._task = dying
        backend.submit(Batch((Unit(Stage.SELECT, 0, 0, ((0, 3), (1, 2))),)))
        while backend.in_flight():
            for outcome in backend.wait():
                queue.add(outcome)
        assert sorted(f[3:6] for f in queue.failures()) == [(0, 0, 3), (1, 0, 2)]
    finally:
        backend.close()


def test_a_table_too_large_for_every_node_is_refused(
    ray_session: None, study: Study, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_backend, "estimate_memory", lambda problem: 1 << 60)
    with pytest.raises(InputError, match=r"a worker needs \d+ MiB .* no node offers more than \d+ MiB"):
        run_job(Job(study, task, tmp_path / "run"), Execution("ray", workers=1))
    assert not (tmp_path / "run").exists()


def test_a_run_may_be_stopped_while_batches_complete(ray_session: None, study: Study, task: Task) -> None:
    """Ray ends this process if a task completes while it is being cancelled, so none may be."""
    shared = share(Problem.of(study, task))
    for _ in range(30):
        backend = ray_backend.RayBackend(3)
        backend.start(shared)
        for split in range(5):
            backend.submit(Batch((Unit(Stage.SELECT, 0, split, ((0, 1), (0, 2))),)))
        while not backend.wait():
            continue
        backend.close()
        assert backend.in_flight() == 0


def test_an_error_in_the_actor_arrives_as_it_was_raised(
    ray_session: None, study: Study, task: Task, tmp_path: Path
) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.acquire()
    with pytest.raises(StoreError, match="in use by another run"):
        run_job(Job(study, task, tmp_path / "run"), Execution("ray", 1))
    folder.release()


def test_nodes_come_and_go(study: Study, task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are looked at now and then while batches are waited for."""
    now = [100.0]
    alive = {"Alive": True, "Resources": {"CPU": 4.0, "memory": float(1 << 40)}}
    found = [alive, alive | {"Alive": False}, alive | {"Resources": {}}]
    monkeypatch.setattr(ray_backend.ray, "nodes", lambda: found)
    monkeypatch.setattr(ray_backend.ray, "put", id)
    monkeypatch.setattr(ray_backend.ray, "wait", lambda pending, **options: ([], pending))
    monkeypatch.setattr(ray_backend, "monotonic", lambda: now[0])
    backend = ray_backend.RayBackend()
    backend.start(share(Problem.of(study, task)))
    assert backend.workers == 4
    found.append(alive)
    assert backend.wait() == []
    assert backend.workers == 4
    now[0] += ray_backend.POLL_SECONDS + 1
    assert backend.wait() == []
    assert backend.workers == 8


some_paths = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=5, unique=True)
some_units = st.lists(
    st.builds(Unit, st.just(Stage.SELECT), st.integers(0, 6), st.integers(0, 9), some_paths.map(tuple)),
    min_size=1,
    max_size=9,
).map(tuple)


def parts(batch: tuple[Unit, ...]) -> list[tuple[int, int, tuple[int, int]]]:
    return [(unit.size, unit.split, path) for unit in batch for path in unit.paths]


@given(some_units, st.data())
def test_one_poisoned_path_is_isolated_and_all_else_gets_through(batch, data):
    """Whatever holds the poisoned path is lost every time."""
    poison = data.draw(st.sampled_from(parts(batch)))
    queue, done, failed, sent = deque([Batch(batch)]), [], [], 0
    while queue:
        one, sent = queue.popleft(), sent + 1
        if poison not in parts(one.units):
            done += parts(one.units)
        elif others := replacements(one):
            queue.extend(others)
        else:
            failed += parts(one.units)
    assert set(failed) == {poison}
    assert sorted(done + failed) == sorted(parts(batch))
    assert sent <= 2 * MAX_ATTEMPTS * len(parts(batch))


MEASURED = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=6)
DEADLINE = 60.0


def scraped() -> dict[str, float]:
    """The project's figures at the metrics port of this machine's node."""
    (node,) = ray.nodes()
    with urllib.request.urlopen(f"http://127.0.0.1:{node['MetricsExportPort']}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    found = (re.fullmatch(r"ray_(ckcv_\w+)\{.*\} (\S+)", line) for line in lines)
    return {match[1]: float(match[2]) for match in found if match}


@pytest.mark.usefixtures("ray_session")
def test_prometheus_sees_how_far_a_run_has_come() -> None:
    result = run_job(Job(MEASURED, blobs(36)), Execution("ray", 2))
    expected = {
        "ckcv_evaluations_done": result.execution["evaluations"]["computed"],
        "ckcv_evaluations_dropped": result.execution["evaluations"]["dropped"],
        "ckcv_evaluations_failed": 0,
        "ckcv_batches_in_flight": 0,
    }
    end = time.monotonic() + DEADLINE
    while (shown := scraped()) | expected != shown and time.monotonic() < end:
        time.sleep(0.5)  # Ray passes figures on every few seconds
    assert shown | expected == shown
    assert shown["ckcv_fits_total"] >= result.execution["fits"]
    assert shown["ckcv_solver_seconds_total"] > 0


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
    """A ``stop`` that never stops a run, but kills something when asked, a few times in all."""

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
