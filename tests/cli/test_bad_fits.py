"""Fits that end their process or never end, and signals: the command goes on, or says what it leaves."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command import Command

from ckcv_ray.cli.output import Signals

OPTIONS = ("--target", "y", "--k", "3", "--n-splits", "3", "--param", "dummy=0,1", "--certify", "paper")
SERIAL = ("--backend", "serial")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    X = np.random.default_rng(0).normal(size=(40, 2))
    rows = (f"{a},{b},{int(b > 0)}" for a, b in X)
    (tmp_path / "table.csv").write_text("a,b,y\n" + "\n".join(rows))
    return tmp_path / "table.csv"


def learner(name: str) -> tuple[str, str]:
    return "--learner", f"own_estimators:{name}"


LOST = {
    "Crashes": "Segmentation fault (SIGSEGV)",
    "ExitsAtOnce": "exit code 0",
    "PrintsAndHangs": "exit code 1\n(a fit may take 1 seconds: fit_timeout)",
}
PRINTED = ("printed by a fit", "written by a fit", "written to descriptor 1", "written by C", "by a child")


@pytest.mark.parametrize("name", LOST)
def test_a_fit_that_ends_its_process_is_recorded_as_failed(
    ckcv: Command, table: Path, tmp_path: Path, name: str
) -> None:
    """Or that never ends. Standard output holds the result alone, whatever fits print."""
    out, limit = tmp_path / "run", ("--fit-timeout", "1") if name == "PrintsAndHangs" else ()
    words = ("run", table, *OPTIONS, *SERIAL, *learner(name), *limit, "--out", out, "--json")
    code, shown, messages = ckcv(*words)
    assert code == 3, messages
    assert json.loads(shown)["setting"] == {"dummy": 0}
    assert all(text in messages for text in PRINTED) == bool(limit)
    (failure,) = json.loads((out / "execution.json").read_text())["failures"]
    assert failure[-1] == f"lost 2 times: it ended its process: {LOST[name]}"
    assert [*out.rglob(".*")] == []


def test_one_signal_ends_a_fit_that_hangs(table: Path, tmp_path: Path) -> None:
    process = begin_hanging(table, tmp_path, "-c", IMPATIENT)
    process.terminate()
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 143, messages
    assert "interrupted: no work was saved" in messages


@pytest.mark.skipif(sys.platform != "linux", reason="needs PR_SET_PDEATHSIG and /proc")
def test_a_killed_command_leaves_no_worker(table: Path, tmp_path: Path) -> None:
    """Not even one inside code that never returns and heeds no signal."""
    process = begin_hanging(table, tmp_path)
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    (worker,) = [child for task in tasks for child in (task / "children").read_text().split()]
    descriptor = os.pidfd_open(int(worker))
    process.kill()
    process.communicate()
    ended, _, _ = select.select([descriptor], [], [], 20)  # readable once its process has ended
    if not ended:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    os.close(descriptor)
    assert ended


IMPATIENT = """
from ckcv_ray.cli import main, output

output.GRACE_SECONDS = 0.4
main.main()
"""


def begin_hanging(table: Path, folder: Path, *script: str) -> "subprocess.Popen[str]":
    """Begin a run whose fit hangs, and wait until it does."""
    words = ("run", table, *OPTIONS, *SERIAL, *learner("HangsInOneSplit"), "--out", folder / "run")
    command = [sys.executable, *(script or ("-m", "ckcv_ray")), *map(str, words)]
    environment = os.environ | {"CKCV_NOTE": str(folder / "hangs")}
    process = subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    while not (folder / "hangs").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return process


def test_a_hangup_that_nohup_ignores_is_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals() as signals:
            signal.raise_signal(signal.SIGHUP)
            assert signals.received is None
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)  # at the same time: forwarded, and sent to the group
            assert signals.received == signal.SIGTERM
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_estimator_that_exits_when_it_is_imported(
    ckcv: Command, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "exits_on_import.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    words = ("run", table, *OPTIONS, *SERIAL, "--learner", "exits_on_import:Any", "--out", tmp_path / "run")
    code, shown, messages = ckcv(*words)
    assert (code, shown) == (1, "")
    assert "code of an estimator or a package: it raised SystemExit(0), which would end" in messages
