"""A run that goes on by itself when it is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from learner_contract import same_files

from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.study.study import Execution, Study
from ckcv_ray.tables.named import read_task
from jobs import run_study

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


@pytest.mark.parametrize(
    ("code", "times"), [(0, 0), (1, 3), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (-9, 3), (-11, 3)]
)
def test_it_goes_on_so_often_and_only_if_need_be(
    code: int, times: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ends = f"import os, sys; os.kill(os.getpid(), {-code}) if {code} < 0 else sys.exit({code})"
    monkeypatch.setattr(run_study, "start", lambda words: subprocess.Popen([sys.executable, "-c", ends]))
    assert run_study.repeat(["run"], 3) == (code if code >= 0 else 128 - code)
    assert capfd.readouterr().err.count("starting it again") == times
