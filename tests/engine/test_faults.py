"""Real faults on a real Ray: killed workers, a killed aggregator, damaged parts; the answer is the same."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
import ray
from conftest import blobs

from ckcv_ray.engine.ray_backend import RayBackend
from ckcv_ray.errors import StoreError
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.run import run_table
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage import folder as store
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study import Execution, Study

STUDY = Study(C=(0.1, 1.0, 10.0), gamma=(0.01, 0.1, 1.0), k=(3, 4, 5, 6), n_splits=40, exhaustive=True)
TABLE = blobs(60, seed=7)
FILES = ("triples.parquet", "certificate.json", "ensemble/models.parquet")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    run_table(STUDY, TABLE, out, Execution("serial"))
    return out


def same(one: Path, other: Path) -> bool:
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in FILES)


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

    def __init__(self, backend: RayBackend) -> None:
        self.backend, self.asked, self.killed = backend, 0, 0

    def __call__(self) -> bool:
        self.asked += 1
        if self.asked > 2 and self.killed < 3:
            self.killed += self.kill()
        return False

    def kill(self) -> int:
        raise NotImplementedError


class KillsWorkers(Killer):
    def kill(self) -> int:
        found = workers()[:1]
        for process in found:
            os.kill(process, signal.SIGKILL)
        return len(found)


class KillsAggregators(Killer):
    def kill(self) -> int:
        assert self.backend._remote is not None
        ray.kill(self.backend._remote._actor)
        return 1


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("kind", [KillsWorkers, KillsAggregators])
def test_a_run_outlives_what_is_killed_under_it(tmp_path: Path, whole: Path, kind: type[Killer]) -> None:
    backend = RayBackend(workers=2)
    killer = kind(backend)
    result: Result = run_table(STUDY, TABLE, tmp_path / "run", backend=backend, stop=killer)
    assert killer.killed >= 1
    assert result.execution["failures"] == []
    assert same(tmp_path / "run", whole)
    assert verify(tmp_path / "run").differences == []


# The log


def unfinished(tmp_path: Path) -> Path:
    """A folder with several parts and no end."""
    asked = iter(range(10**6))
    with pytest.raises(KeyboardInterrupt):
        run_table(STUDY, TABLE, tmp_path / "run", Execution("serial"), stop=lambda: next(asked) > 12)
    return tmp_path / "run"


@pytest.mark.parametrize("fault", ["truncated", "flipped", "deleted", "emptied"])
def test_a_damaged_part_is_named_and_computed_again(tmp_path: Path, whole: Path, fault: str) -> None:
    out = unfinished(tmp_path)
    part = sorted((out / "cells").glob("part-*"))[0]
    content = bytearray(part.read_bytes())
    content[len(content) // 3] ^= 0x40
    damage = {"truncated": content[: len(content) // 2], "flipped": content, "emptied": b""}
    part.unlink() if fault == "deleted" else part.write_bytes(damage[fault])
    result = run_table(STUDY, TABLE, out, Execution("serial"))
    assert result.execution["damaged"] == ([] if fault == "deleted" else [f"cells/{part.name}"])
    assert same(out, whole)
    assert verify(out).differences == []


def test_small_parts_are_joined_and_nothing_is_lost(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ckcv_ray.engine.aggregator.FLUSH_SECONDS", 0.0)
    monkeypatch.setattr("ckcv_ray.engine.aggregator.FLUSH_SHARE", 0.0)
    monkeypatch.setattr(store, "MOST_SMALL_PARTS", 5)
    run_table(STUDY, TABLE, tmp_path / "run", Execution("serial"))
    assert len(list((tmp_path / "run" / "cells").iterdir())) <= 5
    assert same(tmp_path / "run", whole)
    assert verify(tmp_path / "run").differences == []


def test_another_runs_part_is_not_taken_for_damage_of_a_finished_run(whole: Path) -> None:
    folder = RunFolder(whole)
    identity = folder.require()._replace(run_id="0" * 12)
    with pytest.raises(StoreError, match="does not belong"):
        list(folder.cells(identity, STUDY.sizes(TABLE.n)))
