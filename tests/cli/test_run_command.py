"""The commands run and status: what they print, being interrupted, and what is refused before any work."""

import fcntl
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command import KEYS, SMALL, Command
from conftest import blobs
from filelock import FileLock
from pyarrow import parquet

from ckcv_ray import load_run
from ckcv_ray.cli import run as command_run
from ckcv_ray.engine.evaluate import share
from ckcv_ray.engine.forecast import Estimate
from ckcv_ray.records.record import Outcome, record_type
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Execution, Study


def test_json_is_one_object_and_agrees_with_status(ckcv: Command, patients: Path, tmp_path: Path) -> None:
    words = ("run", patients, "--target", "outcome", "--out", tmp_path / "run", "--report-k", "5", *SMALL)
    code, shown, _ = ckcv(*words, "--json")
    ran = json.loads(shown)
    assert code == 0
    assert set(ran) == KEYS
    assert ran["proven"]["certification"] == "holdout"
    assert 0 < ran["proven"]["bound"] <= 1
    assert ran["test_error"] is None
    of_size = {k: row for row in ran["per_k"] for k in range(row["k_first"], row["k_last"] + 1)}
    assert list(of_size) == list(range(3, 21))  # half of the 40 rows are held out
    assert {k: row["n_select"] for k, row in of_size.items()} == {k: 20 // k for k in range(3, 21)}
    assert of_size[ran["k"]]["k_first"] == ran["k"]
    assert of_size[ran["k"]]["setting"] == ran["setting"]
    states = {k: row["state"] for k, row in of_size.items()}
    assert states[ran["k"]] == "winner"
    assert states[5] in ("reported", "winner")
    assert set(states.values()) <= {"winner", "reported", "beaten", "unseen"}
    for row in ran["per_k"]:
        assert row["lower_bound"] >= ran["l_ms"]
        for name in ("setting", "l_ms", "l_ee"):
            assert (row[name] is None) == (row["state"] not in ("winner", "reported"))
    counts = ran["evaluations"]
    assert counts["planned"] == counts["computed"] + counts["dropped"] + counts["failed"]
    _, status, _ = ckcv("status", tmp_path / "run", "--json")
    assert json.loads(status) == ran
    code, again, messages = ckcv(*words, "--json")
    assert json.loads(again) == ran
    assert "finished" in messages


def test_rows_to_test_are_measured(ckcv: Command, patients: Path, tmp_path: Path) -> None:
    words = ("run", patients, "--target", "outcome", "--out", tmp_path / "run", "--test", patients, *SMALL)
    code, shown, _ = ckcv(*words, "--json")
    result = load_run(tmp_path / "run")
    every = result.problem.all_rows
    labels = np.array([member.model.predict(every.X).label for member in result.ensemble.members])
    assert code == 0
    assert json.loads(shown)["test_error"] == pytest.approx(float(np.mean(labels != every.y)))


def test_unconverged_fits_are_counted_and_shown(ckcv: Command, patients: Path, tmp_path: Path) -> None:
    words = (
        "run",
        patients,
        "--target",
        "outcome",
        "--out",
        tmp_path / "run",
        "--param",
        "max_iter=3",
        *SMALL,
    )
    code, shown, _ = ckcv(*words, "--details")
    assert code == 0
    assert "fits did not converge" in shown
    log = parquet.read_table(tmp_path / "run" / "log")
    assert "not_converged" in set(log["status"].to_pylist())


@pytest.mark.parametrize(
    ("which", "code", "backend"),
    [
        (signal.SIGINT, 130, "serial"),
        (signal.SIGTERM, 143, "serial"),
        (signal.SIGINT, 130, "ray"),
        (signal.SIGTERM, 143, "ray"),
    ],
)
def test_interrupted_resumed_and_none_the_wiser(
    ckcv: Command, tmp_path: Path, which: signal.Signals, code: int, backend: str
) -> None:
    """A run stopped in the middle keeps what is done, and ends as if nothing had happened."""
    grids = ["--C", "log:-2:2:5", "--gamma", "log:-3:-1:3", "--k", "3:8", "--n-splits", "120"]
    words = ["run", "twonorm:120:0", *grids, "--backend", backend]
    command = [sys.executable, "-m", "ckcv_ray", *words]
    halted, whole = tmp_path / "halted", tmp_path / "whole"
    run = subprocess.Popen(
        [*command, "--out", halted, "--param", "max_iter=10000000"],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while "estimated" not in (line := run.stderr.readline()):
        assert line, "the run ended before it began"
    while not (halted / "study.json").exists():
        assert run.poll() is None
        time.sleep(0.002)
    run.send_signal(which)
    _, messages = run.communicate(timeout=120)
    assert run.returncode == code, messages
    assert "interrupted: completed work is saved" in messages
    status = ckcv("status", halted, "--json")
    assert (status[0], json.loads(status[1])["state"]) == (0, "unfinished")
    assert not list(halted.rglob(".*"))
    for out in (halted, whole):
        assert ckcv(*words[:-1], "serial", "--out", out)[0] == 0
    for name in ("candidates.parquet", "certificate.json", "ensemble/models.parquet"):
        assert (halted / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize(
    ("execution", "messages"),
    [
        (Execution("serial"), "estimated time: 30 s (serial, 1 worker)"),
        (Execution("ray", 10), "estimated time: 8 s (ray, 10 workers)"),
        (
            Execution("ray", None, "10.0.0.1:6379"),
            "30 s (ray, for 1 worker; shared by all workers of the cluster at 10.0.0.1:6379)",
        ),
    ],
)
def test_what_is_expected_is_said_for_the_workers_there_are(
    execution: Execution, messages: str, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = Outcome(np.empty(0, record_type(2)), (), ())
    inputs = share(Problem.of(Study(), blobs(30)))
    command_run._confirm(Estimate(30.0, 1e-9, outcome, inputs), execution, yes=True, limited=False)
    assert messages in capfd.readouterr().err.replace("\n", " ")


HOLD = """
import sys
from ckcv_ray.storage.folder import RunFolder
folder = RunFolder(sys.argv[1])
folder.acquire()
print("held", flush=True)
sys.stdin.read()
folder.release()
"""


@pytest.mark.parametrize("written", [(), ("data.parquet",), ("data.parquet", ".study.json-0.tmp")], ids=len)
def test_a_run_that_begins_is_starting(
    ckcv: Command, patients_run: Path, tmp_path: Path, written: tuple[str, ...]
) -> None:
    out = tmp_path / "begins"
    command = [sys.executable, "-c", HOLD, str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        for name in written:
            (out / name).write_bytes((patients_run / "data.parquet").read_bytes())
        code, shown, messages = ckcv("status", out)
        assert (code, shown, messages) == (0, "a run is starting: nothing has been computed yet\n", "")
        code, shown, _ = ckcv("status", out, "--json")
        found = json.loads(shown)
        assert (code, set(found), found["state"]) == (0, KEYS, "starting")
        holder.communicate("")
    assert ckcv("status", out)[0] == 4


def test_status_never_takes_the_lock(
    ckcv: Command, patients_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (patients_run / "manifest.json").unlink()
    (patients_run / ".lock").touch()  # of a run that was killed

    def refuse(*args: object) -> None:
        raise AssertionError("the lock was taken")

    for name in ("flock", "lockf"):
        monkeypatch.setattr(fcntl, name, refuse)
    code, shown, _ = ckcv("status", patients_run)
    assert code == 0
    assert "resume it with the same ckcv run command" in shown
    monkeypatch.undo()
    with FileLock(patients_run / ".lock"):
        monkeypatch.setattr(fcntl, "flock", refuse)
        assert "it is running" in ckcv("status", patients_run)[1]
        monkeypatch.undo()


@pytest.mark.parametrize("inside", [".", "deep/run"])
def test_a_link_to_nothing_is_refused_before_the_trial(
    ckcv: Command, patients: Path, tmp_path: Path, inside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_run.forecast, "estimate", None)
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    out = tmp_path / "link" / inside
    code, shown, messages = ckcv("run", patients, "--target", "outcome", "--out", out, *SMALL)
    assert (code, shown) == (2, "")
    link, gone = str(tmp_path / "link"), str(tmp_path / "gone")
    assert f"{link!r} is a link to {gone!r}, which does not exist" in messages
    assert not (tmp_path / "gone").exists()


def test_a_plan_says_how_many_rows_a_claim_needs(ckcv, patients):
    options = ("--target", "outcome", "--k", "3", "--C", "1", "--gamma", "1", "--workers", "1")
    claim = ("--certify", "holdout", "--claim", "sensitivity,specificity", "--positive", "ill")
    code, printed, _ = ckcv("plan", patients, *options, *claim)
    assert code == 0
    assert "sensitivity (recall of 'ill'), with probability 97.5 %: " in printed
    assert "  at least 80 %: not before 17 held-out rows of class 'ill', all of them right" in printed
    _, plain, _ = ckcv("plan", patients, *options)
    assert "recall" not in plain
