"""The commands run, plan, status and evaluate: what they print, the folder they choose, a budget, interrupts,
and a first look with the line that starts the run.
"""

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from conftest import Command
from filelock import FileLock
from learner_contract import same_files
from pyarrow import parquet

from ckcv_ray import load_run
from ckcv_ray.cli import run as commands
from ckcv_ray.cli.options import IN_JOB, check_out, choose_folder
from ckcv_ray.cli.output import Signals
from ckcv_ray.engine.worker import LostError
from ckcv_ray.errors import InputError, name_reason
from ckcv_ray.runs import run as running
from ckcv_ray.storage.folder import RunFolder

STOPS = [(name, "serial") for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")]


@pytest.mark.parametrize(("which", "backend"), [*STOPS, ("SIGINT", "ray"), ("SIGTERM", "ray")])
def test_interrupted_resumed_and_none_the_wiser(
    ckcv: Command, tmp_path: Path, which: str, backend: str
) -> None:
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
    kept = "has the effort of its study, 504 evaluations: --budget 30s is for a new run"
    assert kept in " ".join(messages.split())
    code, status, _ = ckcv("status", out, "--json")
    assert (code, json.loads(status)) == (0, ran)


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
    why = "ValueError: Expected n_neighbors <= n_samples_fit, but n_neighbors = 40"
    assert f"1 path failed, and their scores are incomplete: {why}" in said
    assert f"1 path failed: {why}" in " ".join(printed.split())
    assert ckcv(*asked, "--retry-failed")[0] == 3


HEAD = 'Traceback (most recent call last):\n  File "a.py", line 1\n    f()\n'


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (f"{HEAD}KeyError: 1\n\nlater\n\n{HEAD}OSError: two\nlines\n", "OSError: two"),
        ("lost 2 times: late\n(a fit may take 2 seconds: fit_timeout)", "lost 2 times: late"),
        ("", "unknown"),
    ],
)
def test_the_reason_of_a_failure_is_the_first_line_of_its_exception(told: str, reason: str) -> None:
    assert name_reason(told) == reason


def test_a_setting_that_was_not_found_is_fitted_nowhere(ckcv: Command, tmp_path: Path) -> None:
    all_fail = ("--learner", "neighbors", "--resampling", "holdout:0.9", "--param", "n_neighbors=40,41")
    asked = ("evaluate", "sklearn:iris", "--out", tmp_path / "run", *all_fail, "--refit", "best")
    assert "\nmodel     no setting has zero_one on every split" in ckcv(*asked)[1]


@pytest.mark.parametrize("more", [(), ("--budget", "10m")], ids=["race", "budget"])
@pytest.mark.parametrize(
    ("learner", "ends", "time"),
    [("neighbors", 1, "unknown, as every fit of the trial failed"), ("neighbors,tree", 3, "less than 1 s")],
)
def test_fits_that_all_fail_are_not_expected_to_take_forever(
    ckcv: Command, tmp_path: Path, learner: str, ends: int, time: str, more: tuple[str, ...]
) -> None:
    name = "n_neighbors" if ends == 1 else "neighbors.n_neighbors"
    fail = "--learner", learner, "--param", f"{name}=4000", "--k", "3", "--n-splits", "2"
    code, _, said = ckcv("run", "sklearn:iris", *fail, *more, "--out", tmp_path / "run")
    assert code == ends
    assert f"estimated time: {time} (serial, 1 worker)" in said


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


FIRST = ("--k", "3", "--n-splits", "2", "--C", "1", "--gamma", "0.1", "--workers", "1")
LOOK = ("plan", "patients.csv", "--target", "outcome", "--try", "20s")


@pytest.fixture
def trying(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute what is tried in this process."""
    monkeypatch.setattr(running, "warm_up", lambda inputs: None)
    monkeypatch.setattr(running, "compute_apart", lambda _, timeout, make, *rest, seconds: make(*rest))


def list_tries() -> list[str]:
    return [path.name for path in Path().rglob("try-*")]


@pytest.mark.usefixtures("trying")
def test_the_line_starts_a_run_whose_claim_is_untouched_and_another_seed_says_what_was_seen(
    ckcv: Command,
) -> None:
    code, shown, said = ckcv(*LOOK, *FIRST)
    assert code == 0, said
    assert "trying svm for up to 20 s" in said
    (folder,), line = list_tries(), shown.splitlines()[-1].removeprefix("start the run  ")
    assert "wrong; no claim: nothing was judged\n" in shown
    assert f"recorded in    {folder}\n" in shown
    assert folder in ckcv("list")[1]
    command, *words = shlex.split(line)
    assert command == "ckcv"
    code, result, said = ckcv(*words, "--json")
    assert code == 0, said
    assert f"try-{json.loads(result)['run_id']}" == folder
    assert json.loads(result)["before"]["runs"] == []
    words[words.index("--seed") + 1] = "1"
    told = " ".join(ckcv(*words, "--details")[1].split())
    assert f"('{folder}'): this bound is not covered if what was shown led to this study" in told


@pytest.mark.usefixtures("trying")
@pytest.mark.parametrize(
    ("n_tried", "options"),
    [
        (3, "--seed random"),
        (2, "--learner tree,linear --exhaustive --claim refit,sensitivity --holdout-share 0.4"),
        (1, """--learner tree --drop '"dose, mg"' --positive ill --require 'sensitivity>=0.1'"""),
        (1, "--study 'my study.toml'"),
    ],
)
def test_the_line_gives_the_planned_run(
    n_tried: int, options: str, ckcv: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("my study.toml").write_text('learner = "tree"\nseed = "random"\nholdout-share = 0.4\n')
    started: list[str] = []

    def start(work: Any, *rest: object) -> None:
        started.append(work.problem.run_id)
        raise typer.Exit(0)

    monkeypatch.setattr(commands, "_run", start)
    code, shown, said = ckcv(
        *LOOK, *shlex.split(options), "--k", "3", "--n-splits", "2", "--workers", "1", "--json"
    )
    assert code == 0, said
    planned = json.loads(shown)
    assert ("--seed 0" in planned["line"]) == ("random" not in options and "--study" not in options)
    _, *words = shlex.split(planned["line"])
    assert ckcv(*words)[0] == 0
    assert started == [planned["try"]["plans"]]
    assert list_tries() == [f"try-{planned['try']['plans']}"]
    assert (planned["try"]["splits"], planned["try"]["late"]) == (5, [])
    assert len(planned["try"]["entries"]) == n_tried


@pytest.mark.usefixtures("trying")
def test_it_lies_beside_the_run_and_another_one_beside_it(ckcv: Command) -> None:
    words = (*LOOK, *FIRST, "--out", "runs/mine")
    assert ckcv(*words)[0] == 0
    assert ckcv(*words)[0] == 0  # the same rows and splits: the same folder
    assert ckcv(*words, "--rows", "15")[0] == 0
    first, second = sorted(path.name for path in Path("runs").iterdir())
    assert second == f"{first}_2"
    assert "--out runs/mine" in ckcv(*words)[1]


@pytest.mark.usefixtures("trying")
def test_where_nothing_is_finished_or_it_is_interrupted_nothing_is_recorded(
    ckcv: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Signals, "stop", lambda signals: True)
        code, shown, said = ckcv(*LOOK, *FIRST)
        assert (code, shown, "interrupted: no work was saved" in said) == (130, "", True)

    def never_ends(*given: object, seconds: float) -> None:
        raise LostError("it did not answer in time")

    monkeypatch.setattr(running, "compute_apart", never_ends)
    code, shown, said = ckcv(*LOOK, *FIRST)
    assert (code, shown, "nothing finished in 20 s: allow more time" in said) == (1, "", True)
    assert list_tries() == []
