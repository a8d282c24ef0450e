"""Fits that end their process or never end, and signals: the command goes on, or says what it leaves; and a
run that continues by itself after being killed.
"""

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
from conftest import Command
from learner_contract import same_files

from ckcv_ray.cli.output import Signals
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.study.study import Execution, Study
from ckcv_ray.tables.named import read_task
from jobs import run_study

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
    "PrintsAndHangs": "exit code 1\n(a fit may take 5 seconds: fit_timeout)",
}
PRINTED = ("printed by a fit", "written by a fit", "written to descriptor 1", "written by C", "by a child")


@pytest.mark.parametrize("name", LOST)
def test_a_fit_that_ends_its_process_is_recorded_as_failed(
    ckcv: Command, table: Path, tmp_path: Path, name: str
) -> None:
    """Or that never ends. Standard output holds the result alone, whatever fits print."""
    out, limit = tmp_path / "run", ("--fit-timeout", "5") if name == "PrintsAndHangs" else ()
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


GRID = ("--C", "0.1,1,10", "--gamma", "0.1,1", "--k", "3,4,5", "--n-splits", "50", "--exhaustive", "--paper")
DEADLINE = 60.0
ROOT = Path(__file__).resolve().parents[2]


def started(out: Path) -> subprocess.Popen[str]:
    words = ["twonorm:120:0", *GRID, "--backend", "serial", "--out", out, "--times", "2"]
    command = [sys.executable, ROOT / "jobs" / "run_study.py", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    end = time.monotonic() + DEADLINE
    while not (out / "study.json").exists() and time.monotonic() < end:
        time.sleep(0.01)
    return process


def child(process: subprocess.Popen[str]) -> int:
    (number,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(number)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc to find the child")
def test_a_killed_run_goes_on_by_itself(tmp_path: Path) -> None:
    process = started(tmp_path / "run")
    os.kill(child(process), signal.SIGKILL)
    _, messages = process.communicate()
    assert process.returncode == 0, messages
    assert "ended with exit code -9: starting it again, 1 of at most 2" in messages
    assert verify(tmp_path / "run").differences == []
    study = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=50, exhaustive=True)
    run_job(Job(study, read_task("twonorm:120:0")[0], tmp_path / "other"), Execution("serial"))
    assert same_files(tmp_path / "run", tmp_path / "other")


def test_who_asks_it_to_stop_is_obeyed(tmp_path: Path) -> None:
    process = started(tmp_path / "run")
    process.terminate()
    _, messages = process.communicate()
    assert process.returncode == 143, messages
    assert "again, 1 of" not in messages
    assert not (tmp_path / "run" / ".lock").exists()


@pytest.mark.parametrize(("code", "times"), [(0, 0), (1, 3), (2, 0), (3, 0), (5, 0), (-9, 3)])
def test_it_goes_on_so_often_and_only_if_need_be(
    code: int, times: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ends = f"import os, sys; os.kill(os.getpid(), {-code}) if {code} < 0 else sys.exit({code})"
    monkeypatch.setattr(run_study, "start", lambda words: subprocess.Popen([sys.executable, "-c", ends]))
    assert run_study.repeat(["run"], 3) == (code if code >= 0 else 128 - code)
    assert capfd.readouterr().err.count("starting it again") == times
