"""A Ray that a run starts for itself: it is private, needs no home folder, and leaves nothing behind.

Here each test has its own Ray, in a process that it starts, and counts the processor time of that.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from ckcv_ray.learners.svm.compile import _folders

HANGS = 600  # seconds after which a process does not end; with four others it takes up to 120


def test_a_ray_of_our_own_listens_on_loopback_alone_and_keeps_its_token(tmp_path: Path) -> None:
    script = (
        "from ckcv_ray.engine.backend import session\n"
        "from ckcv_ray.study.study import Execution\n"
        "import os; os.environ['RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER'] = '0'\n"  # as a session does before
        "from ray._private import worker\n"
        "worker.enable_token_auth_by_default = lambda: False\n"  # as earlier versions of Ray
        "import ray\n"
        "from ray._private.authentication.authentication_utils import is_token_auth_enabled\n"
        "tokens, told = [], set()\n"
        "for _ in range(2):\n"
        "    with session(Execution('ray', 1)):\n"
        "        tokens.append(os.environ['RAY_AUTH_TOKEN'])\n"
        "        assert ray.get(ray.remote(os.getenv).remote('RAY_AUTH_TOKEN')) == tokens[-1]\n"
        "        told |= {node['NodeManagerAddress'] for node in ray.nodes()}\n"
        "        told.add(ray.get_runtime_context().gcs_address.split(':')[0])\n"
        "    assert 'RAY_AUTH_TOKEN' not in os.environ\n"
        "assert len(set(tokens)) == 2 and {*map(len, tokens)} == {64}\n"
        "os.environ['RAY_AUTH_TOKEN'] = given = 'f' * 64\n"
        "with session(Execution('ray', 1)):\n"
        "    assert os.environ['RAY_AUTH_TOKEN'] == given\n"
        "print(*told, is_token_auth_enabled(), ray.is_initialized())"
    )
    plain = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    plain["HOME"] = str(tmp_path)
    done = subprocess.run([sys.executable, "-c", script], env=plain, capture_output=True, text=True)
    assert done.stdout.split() == ["127.0.0.1", "True", "False"], done.stderr
    assert not [*tmp_path.rglob("*token*")]


ON_RAY = (
    *("run", "twonorm:60:0", "--k", "3,4", "--n-splits", "2", "--C", "1", "--gamma", "0.1"),
    *("--backend", "ray", "--workers", "1", "--out"),
)
UNKNOWN = f"""
import faulthandler, pathlib
faulthandler.dump_traceback_later({HANGS - 10}, exit=True)  # where it waits
def home():
    raise RuntimeError("Could not determine home directory.")
pathlib.Path.home = home
from ckcv_ray.cli.main import main
main()
"""


@pytest.mark.parametrize("home", ["with a file", "of an unknown user"])
def test_a_run_on_ray_needs_no_home(home: str) -> None:
    """And nothing of it is left: no process, no token."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="h") as folder:  # short: Ray's sockets lie within
        tmp_path = Path(folder)
        (tmp_path / ".ray").write_text("no folder")
        mark = f"CKCV_HOMELESS={tmp_path}"
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "HOME"))}
        plain |= dict([mark.split("=")]) | {"TMPDIR": str(tmp_path)}
        if home == "with a file":
            plain |= {"HOME": str(tmp_path), "NUMBA_CACHE_DIR": str(_folders()[0])}
        done = subprocess.run(
            [sys.executable, "-c", UNKNOWN, *ON_RAY, str(tmp_path / "run")],
            env=plain,
            capture_output=True,
            text=True,
            timeout=HANGS,
            umask=0,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "model     " in done.stdout
        assert {file.name for file in tmp_path.iterdir()} == {".ray", "ray", "run"}
        assert not left_of(mark)


def test_under_uv_run_the_folder_is_not_packed(tmp_path: Path) -> None:
    """Else a large one would end the run, and workers would be started by uv, in another environment."""
    (tmp_path / "uv").symlink_to(Path(sys.executable).resolve())
    (tmp_path / "run").write_text("import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 30)
    words = [str(tmp_path / "uv"), "run", sys.executable, "-m", "ckcv_ray", *ON_RAY, str(tmp_path / "out")]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "model     " in done.stdout


def left_of(mark: str, seconds: float = 20.0) -> list[str]:
    """Processes that have this in their environment, once they had time to end."""
    until = time.monotonic() + seconds
    while (left := [p.parent.name for p in Path("/proc").glob("[0-9]*/environ") if mark in of(p)]) and (
        time.monotonic() < until
    ):
        time.sleep(0.1)
    return left


def of(environ: Path) -> list[str]:
    try:
        return environ.read_text(errors="replace").split("\0")
    except OSError:  # it ended meanwhile
        return []
