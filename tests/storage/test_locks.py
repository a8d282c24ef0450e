"""One process at a time writes to a folder, the one it locked; a lock that was left behind is removed."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import snapshot

from ckcv_ray import Execution, Study, evaluate, run
from ckcv_ray.errors import RunError, StoreError
from ckcv_ray.storage.files import LOCK, Lock

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
