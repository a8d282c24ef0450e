"""Fits that end their process or never end: the command goes on, and says what happened."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from command import RUN, Command

from ckcv_ray.cli import process as processes
from ckcv_ray.cli.process import Signals
from ckcv_ray.learners.choice import Choice
from ckcv_ray.learners.sklearn.learner import NAMED, AnyEstimator
from ckcv_ray.learners.sklearn.spec import trust
from ckcv_ray.learners.svm.learner import GaussianSVM

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


def left(out: Path) -> list[str]:
    return [file.name for file in out.rglob(".*")]


REASONS = {"Crashes": "Segmentation fault (SIGSEGV)", "ExitsAtOnce": "exit code 0"}


@pytest.mark.parametrize("name", REASONS)
def test_a_fit_that_ends_the_process_is_recorded_as_failed(
    ckcv: Command, table: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "run"
    code, shown, messages = ckcv("run", table, *OPTIONS, *SERIAL, *learner(name), "--out", out, "--json")
    assert code == 3, messages
    assert json.loads(shown)["setting"] == {"dummy": 0}
    at = "the process of the fit at dummy = 1, on split 0 with 14 training rows ended: "
    assert f"{at}{REASONS[name]}; it is tried once more" in messages
    assert f"{at}{REASONS[name]}; it is not begun again" in messages
    (failure,) = json.loads((out / "execution.json").read_text())["failures"]
    assert failure[-1].strip().endswith(f"it ended the process 2 times: {REASONS[name]}; {REASONS[name]}")
    assert left(out) == []


def test_if_every_fit_ends_the_process_the_command_gives_up(
    ckcv: Command, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "MAX_LOST_PROCESSES", 1)
    words = ("run", table, *OPTIONS, *SERIAL, *learner("CrashesAlways"), "--out", tmp_path / "run")
    code, shown, messages = ckcv(*words)
    assert (code, shown) == (1, "")
    assert "ckcv: 1 fit ended the process: correct the estimator, or narrow its search" in messages


def test_a_process_that_ends_outside_of_a_fit_is_not_done(ckcv: Command, table: Path, tmp_path: Path) -> None:
    words = ("run", table, *OPTIONS, *SERIAL, *learner("ExitsWhenMade"), "--out", tmp_path / "run")
    code, shown, messages = ckcv(*words)
    assert (code, shown) == (1, "")
    assert "ckcv: the process ended outside of a fit: exit code 0; run the same command again" in messages


def test_a_fit_that_never_ends_is_recorded_as_failed(table: Path, tmp_path: Path) -> None:
    """In the trial and among the workers of Ray; a setting that never ends is left out.

    Standard output holds the result alone, whatever a fit prints here or there.
    """
    words = ("run", table, *OPTIONS, *learner("PrintsAndHangs"), "--workers", "1", "--fit-timeout", "1")
    done = finish(*words, "--out", tmp_path / "run", "--json")
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout)["setting"] == {"dummy": 0}
    assert "it took more than 1 seconds (--fit-timeout)" in done.stderr


def test_a_hanging_fit_can_be_stopped(table: Path, tmp_path: Path) -> None:
    words = ("run", table, *OPTIONS, *SERIAL, *learner("HangsWithANote"), "--out", tmp_path / "run")
    process = begin(words, os.environ | {"CKCV_NOTE": str(tmp_path / "hangs")}, IMPATIENT)
    wait_for(tmp_path / "hangs", process)
    process.send_signal(signal.SIGINT)
    read_until(process.stderr, "has not ended: ask again to stop at once")
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 130, messages
    assert "interrupted: completed work is saved" in messages
    assert "did not end: if it never does, give a limit such as --fit-timeout 600" in messages


@pytest.mark.skipif(sys.platform != "linux", reason="needs PR_SET_PDEATHSIG and /proc")
def test_a_killed_supervisor_leaves_no_child(table: Path, tmp_path: Path) -> None:
    """Not even one inside code that never returns and heeds no signal."""
    words = ("run", table, *OPTIONS, *SERIAL, *learner("HangsWithANote"), "--out", tmp_path / "run")
    process = begin(words, os.environ | {"CKCV_NOTE": str(tmp_path / "hangs")})
    wait_for(tmp_path / "hangs", process)
    below, parents = list[int](), [process.pid]
    while parents:
        tasks = Path(f"/proc/{parents.pop()}/task").iterdir()
        parents += [int(child) for task in tasks for child in (task / "children").read_text().split()]
        below += parents[-1:]
    assert len(below) == 1
    descriptors = [os.pidfd_open(child) for child in below]
    process.kill()
    process.wait()
    process.stderr.close()
    try:
        for descriptor in descriptors:  # readable once its process has ended
            assert select.select([descriptor], [], [], 20)[0]
    finally:
        for descriptor in descriptors:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            os.close(descriptor)


def finish(*words: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "ckcv_ray", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True)


IMPATIENT = """
from ckcv_ray.cli import main, process

process.GRACE_SECONDS = 0.4
main.main()
"""


def begin(
    words: tuple[object, ...], environment: dict[str, str], script: str = ""
) -> "subprocess.Popen[str]":
    """Begin a command, by a script if one is given."""
    command = [sys.executable, *(("-c", script) if script else ("-m", "ckcv_ray")), *map(str, words)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=environment, text=True, **pipes)  # type: ignore[call-overload, no-any-return]


def wait_for(file: Path, process: "subprocess.Popen[str]") -> None:
    while not file.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def read_until(stream: IO[str], words: str) -> None:
    while words not in (line := stream.readline()):
        assert line, f"it ended without {words!r}"


@pytest.mark.parametrize(("name", "supervised"), [("SIGHUP", True), ("SIGUSR1", False)])
def test_other_signals_end_with_a_message(table: Path, tmp_path: Path, name: str, supervised: bool) -> None:
    number = signal.Signals[name]
    words: tuple[object, ...] = (*RUN, "--n-splits", "20000", "--exhaustive", "--out", tmp_path / "run")
    if supervised:
        own = (*learner("Constant"), "--n-splits", "20000", "--exhaustive", *SERIAL)
        words = ("run", table, "--target", "y", "--k", "3", *own, "--out", tmp_path / "run")
    process = begin(words, dict(os.environ))
    wait_for(tmp_path / "run" / "study.json", process)
    process.send_signal(number)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 128 + number, messages
    assert "stopping: saving completed work" in messages
    assert "interrupted: completed work is saved in" in messages
    assert left(tmp_path / "run") == []


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


PRINTED = (
    "printed by a fit",
    "written by a fit",
    "written to descriptor 1",
    "written by C",
    "written by a child",
    "printed by a prediction",
    "printed at the end",
)


def test_standard_output_holds_the_result_alone(table: Path, tmp_path: Path) -> None:
    done = finish("run", table, *OPTIONS, *SERIAL, *learner("Prints"), "--out", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "finished"
    assert [words for words in PRINTED if words not in done.stderr] == []


def test_nor_do_predictions_mix_with_what_is_printed(ckcv: Command, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert ckcv("run", table, *OPTIONS, *SERIAL, *learner("Prints"), "--out", out)[0] == 0
    code, shown, messages = ckcv("--trust", "own_estimators", "predict", out, table)
    assert code == 0
    assert shown.splitlines()[0] == '"row","prediction","member","score","share"'
    assert len(shown.splitlines()) == 41
    assert "printed by a prediction" in messages


def test_an_estimator_that_exits_when_it_is_imported_or_made(
    ckcv: Command, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "exits_on_import.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    words = ("run", table, *OPTIONS, *SERIAL, "--learner", "exits_on_import:Any", "--out", tmp_path / "run")
    code, shown, messages = ckcv(*words)
    assert (code, shown) == (1, "")
    assert "code of an estimator or a package: it raised SystemExit(0), which would end" in messages


def test_learners_of_scikit_learn_and_our_own_are_not_supervised() -> None:
    trust("own_estimators")  # as the command line does with what it names
    for one in (GaussianSVM(), *(learner() for learner in NAMED)):
        processes.require_supervision(one)
    own = AnyEstimator(estimator="own_estimators:Constant")
    params = {"estimator": {"class": "own_estimators:Constant"}}
    inside = AnyEstimator(estimator={"class": "sklearn.ensemble:BaggingClassifier", "params": params})
    for foreign in (own, inside, Choice((GaussianSVM(), own))):
        with pytest.raises(processes.SupervisedError):
            processes.require_supervision(foreign)
    with pytest.raises(processes.SupervisedError):
        processes.require_supervision(GaussianSVM(), 10.0)
