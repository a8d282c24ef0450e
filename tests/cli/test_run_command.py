"""The commands run, status and evaluate: what they print, the folder they choose, a budget, interrupts."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from filelock import FileLock
from learner_contract import same_files
from pyarrow import parquet

from ckcv_ray import load_run
from ckcv_ray.cli.options import IN_JOB, check_out, choose_folder
from ckcv_ray.errors import InputError
from ckcv_ray.storage.folder import RunFolder

STOPS = [(name, "serial") for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")]


@pytest.mark.parametrize(("which", "backend"), [*STOPS, ("SIGINT", "ray"), ("SIGTERM", "ray")])
def test_interrupted_resumed_and_none_the_wiser(
    ckcv: Command, tmp_path: Path, which: str, backend: str
) -> None:
    """A run stopped in the middle keeps what is done, and ends as if nothing had happened."""
    grids = ["--C", "log:-2:2:5", "--gamma", "log:-3:-1:3", "--k", "3:8", "--n-splits", "60"]
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
    run.send_signal(signal.Signals[which])
    _, messages = run.communicate(timeout=120)
    assert run.returncode == 128 + signal.Signals[which], messages
    assert "stopping: saving completed work" in messages
    assert "interrupted: completed work is saved in" in messages
    status = ckcv("status", halted, "--json")
    found = json.loads(status[1])
    assert (status[0], found["state"]) == (0, "unfinished")
    assert 0 <= found["evaluations"]["computed"] < found["evaluations"]["planned"]
    assert ("l_ms" in found) == ("k" in found) == ("setting" in found)
    assert not list(halted.rglob(".*"))
    for out in (halted, whole):
        assert ckcv(*words[:-1], "serial", "--out", out)[0] == 0
    assert same_files(halted, whole)


def test_a_run_that_begins_is_starting(ckcv: Command, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "begins")
    folder.acquire()
    (tmp_path / "begins" / "data.parquet").touch()
    code, shown, _ = ckcv("status", tmp_path / "begins", "--json")
    assert (code, json.loads(shown)) == (0, {"state": "starting"})
    folder.release()
    assert ckcv("status", tmp_path / "begins")[0] == 4


def test_status_says_whether_an_unfinished_run_is_running(ckcv: Command, patients_run: Path) -> None:
    (patients_run / "manifest.json").unlink()
    assert "resume it with the same ckcv run command" in ckcv("status", patients_run)[1]
    with FileLock(patients_run / ".lock"):
        assert "it is running" in ckcv("status", patients_run)[1]
    (patients_run / "execution.json").write_text("{")
    code, _, said = ckcv("status", patients_run)
    assert (code, "execution.json is damaged" in said) == (4, True)


QUICK = ("--learner", "tree", "--k", "3,4,5", "--n-splits", "4", "--backend", "serial")


@pytest.fixture
def words(patients: Path, tmp_path: Path) -> tuple[object, ...]:
    """A run of 42 trees and 3 fold sizes on 40 rows."""
    return ("run", patients, "--target", "outcome", "--out", tmp_path / "run", *QUICK)


def test_a_time_too_short_for_one_candidate_is_refused_with_the_least_effort(
    ckcv: Command, words: tuple[object, ...], tmp_path: Path
) -> None:
    code, shown, messages = ckcv(*words, "--budget", "0.001s")
    assert (code, shown) == (2, "")
    text = " ".join(messages.split())
    assert "ckcv: --budget 0.001s allows an effort of 1 evaluation, and to compare 42 settings" in text
    least = re.search(r"and complete one candidate takes (\d+) or more, about [^:]+: allow more time", text)
    assert least is not None, text
    assert not (tmp_path / "run" / "study.json").exists()
    assert ckcv(*words, "--effort", int(least[1]) - 1)[0] == 2
    assert ckcv(*words, "--effort", least[1])[0] == 0


def test_a_run_within_a_time_and_what_reads_its_folder(
    ckcv: Command, words: tuple[object, ...], tmp_path: Path
) -> None:
    """The time becomes an effort once: the same command shows the result, whatever it takes by then."""
    out = tmp_path / "run"
    words = (*words, "--certify", "holdout", "--budget", "30s")
    code, shown, messages = ckcv(*words, "--json")
    assert code == 0, messages
    assert "--budget 30s allows all 504 evaluations: the exact race" in " ".join(messages.split())
    ran, result = json.loads(shown), load_run(out)
    assert result.study.effort == 504
    searched = result.certificate.to_json()["search"]
    assert searched == {"effort": 504, "candidates": 126, "not_excluded": 0, "least": None}
    assert ran["search"] == searched
    code, again, messages = ckcv(*words, "--json")
    assert (code, json.loads(again)) == (0, ran)
    assert "already holds the finished run" in messages
    kept = "has the effort of its study, 504 evaluations: --budget 30s is for a new run"
    assert kept in " ".join(messages.split())
    code, status, _ = ckcv("status", out, "--json")
    assert (code, json.loads(status)) == (0, ran)
    assert re.search(r"^search +", ckcv("status", out, "--details")[1], re.MULTILINE)
    code, shown, messages = ckcv("verify", out, "--rerun", "--backend", "serial")
    assert (code, "every figure follows from the data" in shown) == (0, True), shown


GRID = ("--target", "outcome", "--k", "3", "--n-splits", "3", "--C", "1", "--gamma", "0.1")


@pytest.fixture
def here(patients: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the table, as the working directory."""
    monkeypatch.chdir(patients.parent)
    return patients.parent


def test_it_is_named_after_the_table_and_found_again(ckcv: Callable[..., Any], here: Path) -> None:
    code, printed, said = ckcv("run", "patients.csv", *GRID)
    assert (code, "run folder: patients_run" in said, "resuming" in said) == (0, True, False)
    code, again, said = ckcv("run", "patients.csv", *GRID)
    assert (code, again, "already holds the finished run" in said) == (0, printed, True)
    assert [folder.name for folder in here.iterdir() if folder.is_dir()] == ["patients_run"]
    (here / "patients_run" / "manifest.json").unlink()
    code, again, said = ckcv("run", "patients.csv", *GRID)
    assert (code, again) == (0, printed)
    parts = (here / "patients_run" / "log").iterdir()
    rows = sum(parquet.read_metadata(part).num_rows for part in parts)
    assert f"resuming: patients_run holds {rows} records of this study" in said


def test_another_study_gets_the_next_number(ckcv: Callable[..., Any], here: Path) -> None:
    for seed in ("1", "2", "1"):
        assert ckcv("run", "patients.csv", *GRID, "--seed", seed)[0] == 0
    assert ckcv("evaluate", "patients.csv", "--target", "outcome", "--resampling", "kfold:3")[0] == 0
    made = sorted(folder.name for folder in here.iterdir() if folder.is_dir())
    assert made == ["patients_run", "patients_run_2", "patients_scores"]
    studies = [json.loads((here / name / "study.json").read_text()) for name in made[:2]]
    assert studies[0] != studies[1]


def test_it_is_named_after_the_source_and_what_is_there_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for source, name in (("data/my tablé (2).csv.gz", "my_tablé_2_run"), ("???", "table_run")):
        assert choose_folder(source, "run", "0" * 12) == name
    Path("a_run").write_text("a file")
    Path("a_run_2").mkdir()
    Path("a_run_2/thesis.txt").write_text("a year of work")
    assert choose_folder("a.csv", "run", "0" * 12) == "a_run_3"


def test_a_job_must_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(IN_JOB, "{}")
    for name in (lambda: choose_folder("a.csv", "run", "0" * 12), lambda: check_out("a_run")):
        with pytest.raises(InputError, match="out='a_run' is relative to the job's copy"):
            name()


def test_failures_have_their_own_exit_code(ckcv: Command, tmp_path: Path) -> None:
    some_fail = ("--learner", "neighbors", "--resampling", "holdout:0.9", "--param", "n_neighbors=5,40")
    asked = ("evaluate", "sklearn:iris", "--out", tmp_path / "run", *some_fail, "--backend", "serial")
    code, printed, said = ckcv(*asked)
    assert code == 3
    assert "1 failed" in printed
    assert "1 path failed, and their scores are incomplete" in said
    assert ckcv(*asked, "--retry-failed")[0] == 3


def test_figures_at_another_cut_off_than_the_one_chosen_say_so(
    ckcv: Command, patients: Path, tmp_path: Path
) -> None:
    held = ("run", patients, "--target", "outcome", "--out", tmp_path / "run", "--certify", "holdout", *QUICK)
    _, shown, _ = ckcv(*held, "--subgroups", "age:2", "--require", "sensitivity>=0.1", "--positive", "ill")
    shown = " ".join(shown.split())
    (text,) = re.findall(r" subgroups (.*?); at the learner's own cut-off, not the one chosen", shown)
    assert "wrong" in text
    (right, rows) = re.search(r"measured [\d.]+ % \((\d+) of (\d+) held-out rows right\)", shown).groups()
    assert f"'ill' {int(rows) - int(right)} of {rows}" in shown.partition("by class")[2]
