"""Files by name below one place: written whole, listed without following links, read if regular; and the
lock of the one process that writes there.
"""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from conftest import snapshot

from ckcv_ray import Execution, Study, evaluate, run
from ckcv_ray.errors import RunError, StoreError
from ckcv_ray.storage.files import LOCK, LocalFiles, Lock


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    (tmp_path / "run" / "log").mkdir(parents=True)
    return LocalFiles(tmp_path / "run")


@pytest.mark.parametrize("new", [b"", b"longer than before"])
def test_a_file_that_is_replaced_while_it_is_opened_is_read_whole(files, monkeypatch, new):
    """Its size is that of the file that is open, and never that of one before."""
    real = os.open

    def replace(path: Path, flags: int, *more: int) -> int:
        if not flags & os.O_CREAT:
            monkeypatch.setattr(os, "open", real)
            files.write("a", new)
        return real(path, flags, *more)

    def read_when_replaced(read: Callable[[str], object]) -> object:
        files.write("a", b"before")
        monkeypatch.setattr(os, "open", replace)
        return read("a")

    assert read_when_replaced(lambda name: files.read(name, 99)) == new
    if new:
        with pytest.raises(ValueError, match="larger than"):
            read_when_replaced(lambda name: files.read(name, len(new) - 1))


def test_links_to_folders_are_not_followed(files: LocalFiles, tmp_path: Path) -> None:
    """Neither round in circles nor out of the folder."""
    files.write("log/plain", b"1")
    files.path("log/here").symlink_to(files.root)
    files.path("log/above").symlink_to(tmp_path)
    files.path("log/self").symlink_to("self")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").touch()
    files.path("out").symlink_to(tmp_path / "outside")
    assert list(files.walk()) == files.list("log/") == ["log/plain"]
    assert sorted(files.walk(regular=False)) == ["log/plain", "log/self"]


def test_a_name_is_inside_or_outside_wherever_links_lead(files: LocalFiles, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(files.root)
    (files.root / "away").symlink_to(tmp_path / "other")
    (files.root / "self").symlink_to("self")
    assert files.inside(tmp_path / "link" / "a" / ".." / "b") == "b"
    assert files.inside(files.root / "away") is None
    assert files.inside(files.root / "self") == "self"
    assert files.inside(tmp_path / "run-2") is None
    assert LocalFiles(tmp_path / "link").inside(files.root / "log" / "x") == "log/x"


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(files, monkeypatch, call):
    files.write("a", b"old")
    monkeypatch.setattr(os, call, Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(RunError, match="No space"):
        files.write("a", b"new")
    monkeypatch.undo()
    assert files.read("a", 3) == b"old"
    assert sorted(os.listdir(files.root)) == ["a", "log"]


HOLD = """
import os, sys
from pathlib import Path
from ckcv_ray.storage.files import Lock
lock = Lock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
sys.stdin.read()
os._exit(9)
"""


def test_another_process_is_seen_and_its_lock_dies_with_it_and_asking_takes_nothing(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    assert not lock.busy
    assert not Lock(tmp_path / "nothing").busy
    assert list(tmp_path.iterdir()) == []
    command, pipe = [sys.executable, "-c", HOLD, tmp_path], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as other:
        assert other.stdout.readline() == b"held\n"
        assert lock.busy
        with pytest.raises(StoreError, match="in use by another run"):
            lock.acquire()
        other.stdin.close()
        assert other.wait() == 9
    assert (tmp_path / LOCK).exists()
    assert not lock.busy
    lock.acquire()
    lock.release()


@pytest.mark.parametrize(("refused", "busy"), [("EACCES", True), ("EAGAIN", True), ("ENOLCK", False)])
def test_a_file_system_may_refuse_to_share_a_lock_in_another_way(tmp_path, monkeypatch, refused, busy):
    monkeypatch.setattr(
        "ckcv_ray.storage.files.flock", Mock(side_effect=OSError(getattr(errno, refused), ""))
    )
    lock = Lock(tmp_path)
    lock.acquire()
    assert lock.busy
    assert Lock(tmp_path).busy == busy
    lock.release()


@pytest.mark.parametrize("how", ["moved", "replaced", "lock removed", "lock replaced"])
def test_what_is_no_longer_the_folder_that_was_locked_is_noticed(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    lock = Lock(folder)
    lock.check_held()  # of nothing that is held there is nothing to say
    lock.acquire()
    lock.check_held()
    if "lock" in how:
        (folder / LOCK).unlink()
    else:
        folder.rename(tmp_path / "away")
    if how == "replaced":
        folder.mkdir()
    if how in ("replaced", "lock replaced"):
        (folder / LOCK).touch()
    with pytest.raises(RunError, match="no longer the folder this run locked"):
        lock.check_held()
    lock.release()
    assert (folder / LOCK).exists() == (how in ("replaced", "lock replaced"))  # it is another's
    assert not lock.held


FORK = """
import os, sys
from pathlib import Path
from ckcv_ray.errors import RunError
from ckcv_ray.storage.files import Lock
lock = Lock(Path(sys.argv[1]))
lock.acquire()
if not os.fork():
    try:
        lock.check_held()
    except RunError as error:
        print(error, lock.held, flush=True)
    lock.release()
    os._exit(0)
os.wait()
print(lock.held, lock.file.exists(), Lock(lock.folder).busy)
lock.release()
print(lock.file.exists())
"""


def test_a_forked_child_neither_writes_nor_lets_go(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORK, tmp_path], capture_output=True, text=True, check=True)
    child, parent, released = done.stdout.splitlines()
    assert "belongs to the process" in child
    assert child.endswith("not to its child False")
    assert (parent, released) == ("True True True", "False")


SERIAL = Execution("serial")
X = np.random.default_rng(0).normal(size=(24, 2)) + (np.arange(24) % 2)[:, None]
Y = np.arange(24) % 2
STUDY = Study.paper(C=(1.0,), gamma=(0.1,), k=(3,), n_splits=3)
CALLS = {
    "run": lambda out: run(STUDY, X, Y, out, SERIAL),
    "evaluate": lambda out: evaluate(X, Y, out, SERIAL, learner="tree"),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_same_call_removes_the_lock_of_a_process_that_was_killed_late(tmp_path: Path, call: str) -> None:
    CALLS[call](tmp_path)
    before = snapshot(tmp_path)
    (tmp_path / LOCK).touch()
    (tmp_path / ".manifest.json-0.tmp").touch()
    CALLS[call](tmp_path)
    assert snapshot(tmp_path) == before
