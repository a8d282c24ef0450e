"""A full disk, a folder moved away, a power failure: the same command repairs the run."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from conftest import blobs

from ckcv_ray.errors import InputError, RunError
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage import files
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study.study import Execution, Study

SERIAL = Execution("serial")
GRIDS: dict[str, Any] = {"C": (0.1, 1.0), "gamma": (0.1, 1.0), "k": (3,), "n_splits": 2}
STUDIES = {
    "paper": Study.paper(**GRIDS),
    "holdout": Study.paper(**GRIDS, certify="holdout", holdout_share=0.5),
}
TASK = blobs(24)
APART = ("execution.json", "manifest.json", "part-")


def run(study: Study, out: Path, **named: Any) -> Result:
    return run_job(Job(study, TASK, out), SERIAL, **named)


class Disk:
    """Counts writes that take disk space, and refuses from a number on, once or for good; 0 refuses none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done, self.refused, self.lasting = 0, 0, True
        for name in ("fsync", "replace", "mkdir", "open", "fdopen"):
            monkeypatch.setattr(os, name, self.counted(name, getattr(os, name)))

    def counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            reads = name == "open" and not args[1] & os.O_CREAT
            if not reads and not (name == "fdopen" and args[1] != "wb"):
                self.take()
            return real(*args, **named)

        return call

    def take(self) -> None:
        self.done += 1
        if self.refused and (self.done == self.refused or (self.lasting and self.done > self.refused)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill(self, refused: int, lasting: bool) -> None:
        self.done, self.refused, self.lasting = 0, refused, lasting


def lasting_files(out: Path) -> dict[str, bytes]:
    """What is equal in every byte however a run was interrupted, by name."""
    found = (file for file in out.rglob("*") if file.is_file() and not file.name.startswith(APART))
    return {file.relative_to(out).as_posix(): file.read_bytes() for file in found}


@pytest.mark.parametrize("certify", STUDIES)
@pytest.mark.parametrize("lasting", [True, False], ids=["for good", "for a moment"])
def test_wherever_the_disk_is_full_the_same_run_mends_it(tmp_path, monkeypatch, certify, lasting, request):
    """At a few places; ``jobs/check --all`` tries all of them."""
    study = STUDIES[certify]
    run(study, tmp_path / "whole")
    whole = lasting_files(tmp_path / "whole")
    step = {"paper": 1, "holdout": 3}[certify] * (1 if request.config.getoption("--long") else 3)
    disk, told = Disk(monkeypatch), list[str]()
    for refused in count(1, step):
        out = tmp_path / str(refused)
        disk.fill(refused, lasting)
        try:
            run(study, out)
        except RunError as error:
            told.append(str(error))
        if disk.done < refused:  # that far it does not come
            break
        disk.fill(0, lasting)
        assert {file.name for file in out.rglob(".*")} <= {".lock"}
        run(study, out)
        assert lasting_files(out) == whole, refused
        assert verify(out).differences == []
        shutil.rmtree(out)
    assert len(told) >= 50 // step
    assert all(os.strerror(errno.ENOSPC) in message and "\n" not in message for message in told)


@pytest.mark.parametrize(("code", "kind"), [("EDQUOT", RunError), ("EROFS", InputError)])
def test_a_quota_is_a_full_disk_and_what_cannot_be_written_is_bad_input(tmp_path, code, kind, monkeypatch):
    error = OSError(getattr(errno, code), os.strerror(getattr(errno, code)))
    monkeypatch.setattr(os, "fsync", Mock(side_effect=error))
    with pytest.raises(kind, match=error.strerror):
        run(STUDIES["paper"], tmp_path / "run")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path]]:
    """What is done to files, in order: (call, name of the file)."""
    made = []

    def record(name: str, subject: Callable[..., Any]) -> None:
        real = getattr(os, name)

        def call(*args: Any, **named: Any) -> Any:
            made.append((name, Path(subject(*args))))
            return real(*args, **named)

        monkeypatch.setattr(os, name, call)

    record("fsync", lambda descriptor: os.readlink(f"/proc/self/fd/{descriptor}"))
    record("replace", lambda source, final: final)
    for name in ("unlink", "mkdir"):
        record(name, lambda path, *mode: path)
    return made


def test_a_name_is_on_disk_before_a_write_returns(tmp_path, calls):
    files.write_atomically(tmp_path / "a.json", b"{}")
    (first, temporary), *rest = calls
    assert (first, temporary.suffix) == ("fsync", ".tmp")
    assert rest == [("replace", tmp_path / "a.json"), ("fsync", tmp_path)]


def test_new_folders_are_on_disk_before_they_are_used(tmp_path, calls):
    out = tmp_path / "deep" / "run"
    folder = RunFolder(out)
    folder.acquire()
    folder.files.write("log/a", b"")
    folder.release()
    for one in (out.parent, out, out / "log"):
        assert ("fsync", one.parent) in calls[calls.index(("mkdir", one)) :]


def test_a_file_system_that_cannot_fsync_folders_is_used_without(tmp_path, monkeypatch):
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    files.write_atomically(tmp_path / "a", b"a")
    assert (tmp_path / "a").read_bytes() == b"a"


# Arrow's threads may abort a process at its exit (arrow #34314), so a run starts none


SCRIPT = """
import os
import scipy.linalg  # whose BLAS has threads of its own
from ckcv_ray import Execution, Job, Study, load_run, read_task
from ckcv_ray.runs.run import run_job
from ckcv_ray.runs.verify import verify

def threads():
    return len(os.listdir("/proc/self/task"))

before = threads()
task, _ = read_task("twonorm:40:0")
run_job(Job(Study.paper(C=(1, 10), gamma=(0.1,), k=(3, 5), n_splits=3), task, "run"), Execution("serial"))
found = load_run("run")
found.summary()
found.predict(task.X)
verify("run", rerun=True)
assert threads() == before, (before, threads())
"""


def test_a_run_starts_no_threads_of_arrow(tmp_path):
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
