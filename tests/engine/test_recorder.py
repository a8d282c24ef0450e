"""A run killed at any moment of writing is resumed, and ends the same."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from conftest import blobs, is_night
from doubles import FIRE, Faulty, run_with
from pyarrow import parquet
from stores import results

from ckcv_ray.core.schedule import Stage
from ckcv_ray.engine.loop import Backend
from ckcv_ray.engine.recorder import Recorder
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Study

PLAIN = Study.paper(C=(0.01, 1.0), gamma=(1e-6, 0.1, 1.0), k=(3, 4), n_splits=3)
STUDIES = {"reporting": PLAIN.replace(report_k=(3, 4)), "exhaustive": PLAIN.replace(exhaustive=True)}
TASK = blobs(30, seed=2, shift=3.0)


LOST = {(stage, 4, 1, path) for stage in (Stage.ESTIMATE, Stage.REFIT) for path in range(3)}
BACKENDS: dict[str, Callable[[], Backend]] = {
    "well": lambda: Faulty((), least_seconds=0.0),
    "poor": lambda: Faulty((), LOST | {(Stage.SELECT, 3, 2, 0)}, least_seconds=0.0),
}


class Death(BaseException):
    """The end of a process: it does nothing afterwards."""


@contextmanager
def killed_at(last: int) -> Iterator[None]:
    """End the process at the given one of the moments at which it changes files."""
    moments = count(1)
    dead = False

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            nonlocal dead
            if name != "open" or args[1] & os.O_CREAT:
                dead |= next(moments) == last
                if dead:
                    raise Death
            return None if name == "fsync" else real(*args, **named)  # no power is lost here

        return call

    with pytest.MonkeyPatch.context() as patch, suppress(Death):
        for name in ("fsync", "replace", "unlink", "mkdir", "open"):
            patch.setattr(os, name, counted(name, getattr(os, name)))
        yield


def let_go(recorder: Recorder) -> None:
    """Do what the system does when a process ends: its lock is free, and the file is still there."""
    lock = recorder.folder.files.lock
    if lock._descriptor is not None:
        os.close(lock._descriptor)
        lock._descriptor = None
    lock._lock.release(force=True)


def failures(out: Path) -> set[tuple[int, int, int]]:
    """Path, k and split of each failure in the metadata."""
    metadata = RunFolder(out).execution()
    assert {failure[3] for failure in metadata["failures"]} <= {FIRE}
    return {tuple(failure[:3]) for failure in metadata["failures"]}


def missed(out: Path) -> set[tuple[int, int]]:
    """Path and k of the candidates of which something is unknown because it failed."""
    rows = parquet.read_table(out / "candidates.parquet").to_pylist()
    lost = [
        row for row in rows if row["state"] == "failed" or (row["state"] == "reported" and not row["l_ee"])
    ]
    return {(row["path"], row["k_first"]) for row in lost}


@pytest.mark.parametrize(
    ("name", "backend", "step"),
    [
        ("reporting", "well", 9),
        ("exhaustive", "well", 9),
        ("reporting", "poor", 3),
        ("exhaustive", "poor", 9),
    ],
    ids=["case0", "case1", "case2", "case3"],
)
def test_all_may_be_killed_at_any_moment_and_is_taken_up(
    tmp_path: Path, name: str, backend: str, step: int, request: pytest.FixtureRequest
) -> None:
    made, make = list[Recorder](), BACKENDS[backend]

    def recorder(problem: Problem, folder: Any) -> Recorder:
        made.append(Recorder(problem, folder))
        return made[-1]

    def lived(out: Path, last: int) -> bool:
        done = False
        with killed_at(last):
            run_with(make, STUDIES[name], TASK, out, recorder)
            done = True
        let_go(made[-1])
        return done

    whole = tmp_path / "whole"
    assert lived(whole, -1)
    for last in count(1, 1 if step == 3 and is_night(request.config) else step):
        out = tmp_path / str(last)
        if lived(out, last):
            break
        run_with(make, STUDIES[name], TASK, out)
        assert results(out) == results(whole)
        assert failures(out) <= failures(whole)  # what is beaten need not be tried again
        assert missed(out) <= {failure[:2] for failure in failures(out)}
        assert verify(out).differences == []
        assert [file.name for file in out.rglob(".*") if file.name != ".lock"] == []
        assert not RunFolder(out).files.lock.busy
    assert last > 30


def test_results_are_written_by_none_but_the_one_that_concluded_them(tmp_path: Path) -> None:
    recorder = Recorder(Problem.of(PLAIN, TASK), tmp_path / "run")
    recorder.open()
    assert recorder.write_end({}, {"certificate.json": b"{}"}) is False
    recorder.close()
    names = sorted(file.name for file in (tmp_path / "run").rglob("*") if file.is_file())
    assert names == ["data.parquet", "execution.json", "study.json"]
