"""A run that goes on by itself when it is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ckcv_ray.cli.process import persist, without
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.study.study import Execution, Study
from ckcv_ray.tables.named import read_task

GRID = ("--C", "0.1,1,10", "--gamma", "0.1,1", "--k", "3,4,5", "--n-splits", "80", "--exhaustive", "--paper")
DEADLINE = 60.0


def started(out: Path) -> subprocess.Popen[str]:
    words = ["run", "twonorm:120:0", *GRID, "--backend", "serial", "--out", out, "--resume-until-done", "2"]
    command = [sys.executable, "-m", "ckcv_ray.cli.main", *words]
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
    assert "ended with exit code -9: restart 1 of at most 2" in messages
    assert verify(tmp_path / "run").differences == []
    study = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=80, exhaustive=True)
    run_job(Job(study, read_task("twonorm:120:0")[0], tmp_path / "other"), Execution("serial"))
    for name in ("candidates.parquet", "certificate.json", "ensemble/models.parquet"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def test_who_asks_it_to_stop_is_obeyed(tmp_path: Path) -> None:
    process = started(tmp_path / "run")
    process.terminate()
    _, messages = process.communicate()
    assert process.returncode == 143, messages
    assert "restart" not in messages
    assert not (tmp_path / "run" / ".lock").exists()


@pytest.mark.parametrize(("command", "code", "times"), [("false", 1, 3), ("true", 0, 0)])
def test_it_goes_on_so_often_and_only_if_need_be(
    monkeypatch: pytest.MonkeyPatch, command: str, code: int, times: int
) -> None:
    messages: list[str] = []
    monkeypatch.setattr(sys, "executable", command)
    assert persist(["run"], 3, messages.append) == code
    assert len(messages) == times


def test_what_would_end_alike_is_not_given_again() -> None:
    messages: list[str] = []
    assert persist(["status", "nowhere"], 3, messages.append) == 4
    assert messages == []


def test_the_option_is_taken_out_in_both_its_forms() -> None:
    for option in (["--resume-until-done", "3"], ["--resume-until-done=3"]):
        left = without(["run", *option, "a.csv", "--k", "3"], "--resume-until-done")
        assert left == ["run", "a.csv", "--k", "3"]


def test_a_job_refuses_a_folder_that_would_be_lost(tmp_path: Path) -> None:
    out = "runs/mine"
    environment = {**os.environ, "RAY_JOB_CONFIG_JSON_ENV_VAR": "{}"}
    words = [sys.executable, "-m", "ckcv_ray", "run", "twonorm:60:0", "--out", out]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert f"--out {out!r}" in done.stderr
    assert list(tmp_path.iterdir()) == []
