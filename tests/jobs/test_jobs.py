"""The scripts: a study as a Ray job on a separate cluster, on loopback, with a token."""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest
from learner_contract import same_files

ROOT = Path(__file__).resolve().parents[2]
RAY = str(Path(sys.executable).parent / "ray")
TRIALS = 20
HEAD_SECONDS = 240.0  # a head starts within some ten of them where the machine has nothing else to do
STUDY = ("twonorm:90:0", "--k", "3,4,5", "--n-splits", "4", "--C", "0.1,1,10", "--gamma", "0.01,0.1")
RUN = [sys.executable, str(ROOT / "jobs" / "run_study.py"), *STUDY]


class Head(NamedTuple):
    address: str
    jobs: str
    environment: dict[str, str]


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def free_ports(count: int) -> list[int]:
    """Ports below those that the system assigns to connections: none is taken before Ray has started."""
    first = 20_000 + os.getpid() % 10_000
    return list(islice(filter(is_free, range(first, 32_768)), count))


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Head]:
    """A separate Ray head; all its processes end with the one that runs it."""
    port, dashboard, agent = free_ports(3)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"  # the job says "python"
    log = tmp_path_factory.mktemp("head") / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                RAY, "start", "--head", "--block", "--node-ip-address=127.0.0.1", f"--port={port}",
                "--dashboard-host=127.0.0.1", f"--dashboard-port={dashboard}", "--num-cpus=2",
                f"--dashboard-agent-listen-port={agent}",  # the session's Ray uses the default one
                f"--temp-dir=/tmp/ckcv{port}", "--disable-usage-stats",
            ],
            env=environment, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        jobs = f"http://127.0.0.1:{dashboard}"
        _wait_for_jobs(jobs, environment, process, log)
        yield Head(f"127.0.0.1:{port}", jobs, environment)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
        remove(Path(f"/tmp/ckcv{port}"))


def remove(folder: Path) -> None:
    """Delete the folder of a Ray whose last processes may still be writing into it."""
    for _ in range(TRIALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"{folder} cannot be deleted")


def _wait_for_jobs(
    jobs: str, environment: dict[str, str], process: subprocess.Popen[bytes], log: Path
) -> None:
    """Wait for the head: it responds some seconds before it can accept a job."""
    trial = [RAY, "job", "submit", "--address", jobs, "--", "true"]
    end = time.monotonic() + HEAD_SECONDS
    while time.monotonic() < end:
        trial_run = subprocess.run(trial, env=environment, capture_output=True, text=True)
        if trial_run.returncode == 0 or process.poll() is not None:
            break
    assert trial_run.returncode == 0, f"no jobs: {trial_run.stdout}{trial_run.stderr}{log.read_text()}"


def local(out: Path) -> None:
    subprocess.run([*RUN, "--out", out, "--backend", "serial"], check=True, capture_output=True)


def test_a_study_as_a_ray_job(head: Head, tmp_path: Path) -> None:
    out = tmp_path / "job"
    submit = [RAY, "job", "submit", "--address", head.jobs, "--working-dir", str(ROOT), "--"]
    study = ["python", "jobs/run_study.py", *STUDY, "--backend", "ray", "--out", str(out)]
    done = subprocess.run([*submit, *study], env=head.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "model     C = " in done.stdout
    assert json.loads((out / "execution.json").read_text())["backend"] == "ray"
    local(tmp_path / "local")
    assert same_files(out, tmp_path / "local")


def test_a_run_joins_the_given_cluster(head: Head, tmp_path: Path) -> None:
    """RAY_ADDRESS and --address select the same cluster; data and answer are the same."""
    local(tmp_path / "local")
    ways = {"variable": ({"RAY_ADDRESS": head.address}, []), "option": ({}, ["--address", head.address])}
    for name, (environment, option) in ways.items():
        command = [*RUN, "--backend", "ray", *option, "--out", str(tmp_path / name)]
        subprocess.run(command, env=head.environment | environment, check=True, capture_output=True)
        assert same_files(tmp_path / name, tmp_path / "local")


def test_a_night_as_a_ray_job_is_submitted_once(head: Head, tmp_path: Path) -> None:
    """The submission id of the night is the lock; complete runs use the cluster."""
    submit = [RAY, "job", "submit", "--address", head.jobs, "--submission-id", "nightly-first"]
    options = ["--plan", "tiny", "--only", "overhead", "--repeats", "1", "--commit", "abc"]
    night = ["python", "jobs/nightly", "--out", str(tmp_path), "--night", "first", *options]
    command = [*submit, "--working-dir", str(ROOT), "--", *night]
    done, again = (
        subprocess.run(command, env=head.environment, capture_output=True, text=True) for _ in range(2)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "night first: measured" in done.stdout
    assert again.returncode != 0
    assert "already exists" in again.stdout + again.stderr
    (part,) = (tmp_path / "history").iterdir()
    figures = json.loads(part.read_text())["figures"]
    assert {figure["group"] for figure in figures} == {"overhead"}
