"""A process that is killed at its very end leaves its lock file behind: the same command removes it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ckcv_ray import Execution, Study, evaluate, run

SERIAL = Execution("serial")
X = np.random.default_rng(0).normal(size=(24, 2)) + (np.arange(24) % 2)[:, None]
Y = np.arange(24) % 2
STUDY = Study.paper(C=(1.0,), gamma=(0.1,), k=(3,), n_splits=3)
KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {here!r})
from test_left_locks import CALLS
from ckcv_ray.storage.files import Lock

last = Path(sys.argv[2])
release = Lock.release

def kill(self):
    if self.held and (last / "manifest.json").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    release(self)

Lock.release = kill
CALLS[sys.argv[1]](last)
"""
CALLS = {
    "run": lambda out: run(STUDY, X, Y, out, SERIAL),
    "evaluate": lambda out: evaluate(X, Y, out, SERIAL, learner="tree"),
}


def files(folder: Path) -> list[str]:
    """The files of a folder that do not depend on the run."""
    found = (file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    return sorted(name for name in found if not name.startswith("log/") and "/log/" not in name)


@pytest.mark.parametrize("call", CALLS)
def test_the_same_call_removes_the_lock_of_a_process_that_was_killed_late(tmp_path: Path, call: str) -> None:
    killed, plain = tmp_path / "killed", tmp_path / "plain"
    program = KILLED.format(here=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", program, call, str(killed)])
    assert done.returncode == -9
    assert (killed / ".lock").exists()
    CALLS[call](killed)
    CALLS[call](plain)
    assert not list(killed.rglob(".lock"))
    assert files(killed) == files(plain)
    assert ".lock" not in (killed / "manifest.json").read_text()


def test_a_lock_that_is_held_stays(tmp_path: Path) -> None:
    CALLS["run"](tmp_path)
    program = f"""
from ckcv_ray.storage.files import Lock
from pathlib import Path
lock = Lock(Path({str(tmp_path)!r}))
lock.acquire()
print("held", flush=True)
input()
"""
    other = subprocess.Popen([sys.executable, "-c", program], stdin=-1, stdout=-1, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    CALLS["run"](tmp_path)
    assert (tmp_path / ".lock").exists()
    other.communicate("\n")
