"""A disk that is full, a folder that is moved away, power that is lost: the same command mends the run."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran, blobs

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
    """Counts what takes room on a disk, and refuses it once there is none.

    Args:
        refused: number of the first that is refused; none without.
        lasting: whether all that follow are refused too.
    """

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

    def free(self) -> None:
        self.refused = 0


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def every(request: pytest.FixtureRequest) -> int:
    """How many places to go on by: all are tried by jobs/check --all."""
    return 1 if request.config.getoption("--long") else 3


def lasting_files(out: Path) -> dict[str, bytes]:
    """What is equal in every byte however a run was interrupted, by name."""
    found = (file for file in out.rglob("*") if file.is_file() and not file.name.startswith(APART))
    return {file.relative_to(out).as_posix(): file.read_bytes() for file in found}


FULL = [
    *(pytest.param(certify, True, id=f"{certify}, for good") for certify in STUDIES),
    *(pytest.param(c, False, id=f"{c}, for a moment") for c in ("paper", "holdout")),
]


@pytest.mark.parametrize(("certify", "lasting"), FULL)
def test_wherever_the_disk_is_full_the_same_run_mends_it(
    tmp_path: Path, disk: Disk, certify: str, lasting: bool, every: int
) -> None:
    study = STUDIES[certify]
    run(study, tmp_path / "whole")
    whole = lasting_files(tmp_path / "whole")
    step, failed = every * {"paper": 1, "holdout": 3}[certify], 0
    for refused in count(1, step):
        out = tmp_path / str(refused)
        disk.fill(refused, lasting)
        messages = None
        try:
            run(study, out)
        except RunError as error:
            messages = str(error)
        assert messages is None or (os.strerror(errno.ENOSPC) in messages and "\n" not in messages)
        failed += messages is not None
        if disk.done < refused:  # that far it does not come
            break
        disk.free()
        assert {file.name for file in out.rglob(".*")} <= {".lock"}
        run(study, out)
        assert lasting_files(out) == whole, refused
        assert verify(out).differences == []
        shutil.rmtree(out)
    assert failed >= 50 // step


@pytest.mark.parametrize(
    ("code", "kind"), [(errno.ENOSPC, RunError), (errno.EDQUOT, RunError), (errno.EROFS, InputError)]
)
def test_a_quota_is_a_full_disk_and_what_cannot_be_written_is_bad_input(
    tmp_path: Path, code: int, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(kind, match=os.strerror(code)):
        run(STUDIES["paper"], tmp_path / "run")


WORDS = ("run", "twonorm:40:0", "--C", "1,10", "--gamma", "0.01,0.1", "--k", "3,4", "--n-splits", "3")


@pytest.mark.parametrize("blocks", [0, 4])
def test_a_limit_on_the_size_of_files_is_a_full_disk(
    tmp_path: Path, blocks: int, ckcv: Callable[..., Ran]
) -> None:
    words = (*WORDS, "--backend", "serial", "--out")
    assert ckcv(*words, tmp_path / "whole")[0] == 0
    command = ["bash", "-c", f'ulimit -f {blocks}; exec "$@"', "-", sys.executable, "-m", "ckcv_ray", *words]
    done = subprocess.run([*command, tmp_path / "run"], capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("ckcv: ")) == (1, 1), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].endswith("File too large; what was written is kept")
    assert ckcv(*words, tmp_path / "run")[0] == 0
    assert lasting_files(tmp_path / "run") == lasting_files(tmp_path / "whole")


# A folder that is no longer the one that was locked


def moved_at(out: Path, batch: int, then: Callable[[], None]) -> Callable[[], bool]:
    """A ``stop`` that never stops a run, and has its folder moved away when it is asked for the n-th time."""
    asked = iter(range(10**6))

    def stop() -> bool:
        if next(asked) == batch:
            out.rename(out.with_name("away"))
            then()
        return False

    return stop


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {
        str(file): file.read_bytes() if file.is_file() else None
        for file in folder.rglob("*")
        if file.name != ".lock"
    }


@pytest.mark.parametrize("place", ["nothing", "folder", "run", "run in use"])
@pytest.mark.parametrize("batch", [1, 3])
def test_a_run_writes_into_no_folder_but_its_own(
    tmp_path: Path, place: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ckcv_ray.engine.recorder.FLUSH_SECONDS", 0.0)
    monkeypatch.setattr("ckcv_ray.engine.recorder.FLUSH_SHARE", 0.0)
    monkeypatch.setattr("ckcv_ray.engine.backend.SerialBackend.least_seconds", 0.0)
    run(Study.paper(**GRIDS, seed=9), tmp_path / "other")
    out, other = tmp_path / "run", RunFolder(tmp_path / "run")

    def put() -> None:
        if place == "folder":
            out.mkdir()
            (out / "thesis.tex").write_text("years of work")
        elif place != "nothing":
            shutil.copytree(tmp_path / "other", out)
        if place == "run in use":
            other.acquire()
        before.append(snapshot(out))

    before: list[dict[str, bytes | None]] = []
    with pytest.raises(RunError, match="no longer the folder this run locked"):
        run(STUDIES["paper"], out, stop=moved_at(out, batch, put))
    assert [snapshot(out)] == before
    assert out.exists() == (place != "nothing")
    assert (out / ".lock").exists() == (place == "run in use")
    other.release()
    shutil.rmtree(out, ignore_errors=True)
    (tmp_path / "away").rename(out)
    run(STUDIES["paper"], out)
    assert verify(out).differences == []


# Power that is lost


class Calls:
    """What is done to files, in order: (call, name of the file)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[str, Path]] = []
        self.patch = monkeypatch
        self.record("fsync", lambda descriptor: os.readlink(f"/proc/self/fd/{descriptor}"))
        self.record("replace", lambda source, final: final)
        self.record("unlink", lambda path, **named: path)
        self.record("mkdir", lambda path, *mode: path)

    def record(self, name: str, subject: Callable[..., Any]) -> None:
        real = getattr(os, name)

        def call(*args: Any, **named: Any) -> Any:
            self.made.append((name, Path(subject(*args, **named))))
            return real(*args, **named)

        self.patch.setattr(os, name, call)


def test_a_name_is_on_disk_before_a_write_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(monkeypatch)
    files.write_atomically(tmp_path / "a.json", b"{}")
    (first, temporary), *rest = calls.made
    assert (first, temporary.suffix) == ("fsync", ".tmp")
    assert rest == [("replace", tmp_path / "a.json"), ("fsync", tmp_path)]


def test_new_folders_are_on_disk_before_they_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, calls = tmp_path / "deep" / "run", Calls(monkeypatch)
    folder = RunFolder(out)
    folder.acquire()
    folder.files.write("log/a", b"")
    folder.release()
    for one in (out.parent, out, out / "log"):
        assert ("fsync", one.parent) in calls.made[calls.made.index(("mkdir", one)) :]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_cannot_fsync_folders_is_used_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError(code, os.strerror(code))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    run(STUDIES["paper"], tmp_path / "run")
    assert verify(tmp_path / "run").differences == []


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
