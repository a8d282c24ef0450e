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

from ckcv_ray.cli.process import Signals

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


LOST = {"Crashes": "Segmentation fault (SIGSEGV)", "ExitsAtOnce": "exit code 0"}


@pytest.mark.parametrize("name", LOST)
def test_a_fit_that_ends_its_process_is_recorded_as_failed(
    ckcv: Command, table: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "run"
    code, shown, messages = ckcv("run", table, *OPTIONS, *SERIAL, *learner(name), "--out", out, "--json")
    assert code == 3, messages
    assert json.loads(shown)["setting"] == {"dummy": 0}
    (failure,) = json.loads((out / "execution.json").read_text())["failures"]
    assert failure[-1] == f"lost 2 times: it ended its process: {LOST[name]}"
    assert left(out) == []


def test_a_fit_that_never_ends_is_recorded_as_failed(table: Path, tmp_path: Path) -> None:
    """A setting that never ends is left out. Standard output holds the result alone, whatever fits print."""
    words = ("run", table, *OPTIONS, *SERIAL, *learner("PrintsAndHangs"), "--fit-timeout", "1")
    done = finish(*words, "--out", tmp_path / "run", "--json")
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout)["setting"] == {"dummy": 0}
    assert [words for words in PRINTED if words not in done.stderr] == []
    (failure,) = json.loads((tmp_path / "run" / "execution.json").read_text())["failures"]
    assert failure[-1].endswith("exit code 1\n(a fit may take 1 seconds: fit_timeout)")


PRINTED = (
    "printed by a fit",
    "written by a fit",
    "written to descriptor 1",
    "written by C",
    "written by a child",
)


def test_one_signal_ends_a_fit_that_hangs(table: Path, tmp_path: Path) -> None:
    words = ("run", table, *OPTIONS, *SERIAL, *learner("HangsInOneSplit"), "--out", tmp_path / "run")
    process = begin(words, os.environ | {"CKCV_NOTE": str(tmp_path / "hangs")}, IMPATIENT)
    wait_for(tmp_path / "hangs", process)
    process.terminate()
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 143, messages
    assert "interrupted: no work was saved" in messages


@pytest.mark.skipif(sys.platform != "linux", reason="needs PR_SET_PDEATHSIG and /proc")
def test_a_killed_command_leaves_no_worker(table: Path, tmp_path: Path) -> None:
    """Not even one inside code that never returns and heeds no signal."""
    words = ("run", table, *OPTIONS, *SERIAL, *learner("HangsInOneSplit"), "--out", tmp_path / "run")
    process = begin(words, os.environ | {"CKCV_NOTE": str(tmp_path / "hangs")})
    wait_for(tmp_path / "hangs", process)
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


def test_other_signals_end_with_a_message(table: Path, tmp_path: Path) -> None:
    own = (*learner("Constant"), "--target", "y", "--k", "3", *SERIAL)
    svm = ("run", "twonorm:40:0", "--k", "3,4", "--C", "0.1,1,10", "--gamma", "0.1,1", "--backend", "serial")
    studies = {"SIGHUP": ("run", table, *own), "SIGUSR1": svm}
    for name, study in studies.items():
        words = (*study, "--n-splits", "20000", "--exhaustive", "--out", tmp_path / name)
        process = begin(words, dict(os.environ))
        wait_for(tmp_path / name / "study.json", process)
        process.send_signal(signal.Signals[name])
        _, messages = process.communicate(timeout=60)
        assert process.returncode == 128 + signal.Signals[name], messages
        assert "stopping: saving completed work" in messages
        assert "interrupted: completed work is saved in" in messages
        assert left(tmp_path / name) == []


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


def test_predictions_do_not_mix_with_what_is_printed(ckcv: Command, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert ckcv("run", table, *OPTIONS, *SERIAL, *learner("Prints"), "--out", out)[0] == 0
    code, shown, messages = ckcv("--trust", "own_estimators", "predict", out, table)
    assert code == 0
    assert shown.splitlines()[0] == '"row","prediction","member","score","share"'
    assert len(shown.splitlines()) == 41
    assert "printed by a prediction" in messages


def test_an_estimator_that_exits_when_it_is_imported(
    ckcv: Command, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "exits_on_import.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    words = ("run", table, *OPTIONS, *SERIAL, "--learner", "exits_on_import:Any", "--out", tmp_path / "run")
    code, shown, messages = ckcv(*words)
    assert (code, shown) == (1, "")
    assert "code of an estimator or a package: it raised SystemExit(0), which would end" in messages
