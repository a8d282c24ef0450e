"""Commands verify and list: what they find, how much of it is computed again, and that nothing is written."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Command, snapshot, unwrap
from filelock import FileLock
from finished import Finished
from forgery import damage

from ckcv_ray import InputError, Verification, load_run, load_scores
from ckcv_ray.cli.folders import list_runs
from ckcv_ray.runs.result import find_verdict
from ckcv_ray.storage.files import LOCK


def test_verify_agrees_then_sees_a_changed_byte(ckcv: Command, patients_run: Path) -> None:
    code, shown, _ = ckcv("verify", patients_run, "--json")
    assert code == 0
    found = json.loads(shown)
    assert (found["run_id"], found["ok"], found["differences"]) == (load_run(patients_run).run_id, True, [])
    assert found["verdict"] == f"nothing contradicts the files; taken on trust: {found['assumed'][0]}"
    damage(patients_run / "candidates.parquet", "flipped", 400)
    code, shown, _ = ckcv("verify", patients_run)
    assert (code, "candidates.parquet" in shown) == (1, True)


def test_verify_says_its_cost_first_and_stops_at_a_limit(ckcv: Command, patients_run: Path) -> None:
    result = load_run(patients_run)
    rows = len(result.problem.every_row.y)
    code, shown, messages = ckcv("verify", patients_run)
    fits = re.findall(r"to verify: (\d+) fits on up to (\d+) rows.* limit 3,600 s", unwrap(messages))
    assert (code, fits) == (0, [(*re.findall(r"(\d+) models, fitted again", shown), str(rows))])
    code, shown, messages = ckcv("verify", patients_run, "--rerun", "--backend", "serial", "--limit", "0.001")
    assert unwrap(messages).startswith(
        f"to run again: {result.execution['fits']:,} fits on up to {rows} rows"
    )
    assert code == 6
    assert shown.startswith("not verified: not looked at within 0.001 s (--limit): models refit and full")
    for limit in ("0", "nan", "inf"):
        code, _, messages = ckcv("verify", patients_run, "--limit", limit)
        assert (code, "is not a number of seconds above 0" in messages) == (2, True)


HANGS = """
from threading import Event
from ckcv_ray.cli.main import main
from ckcv_ray.cli import folders
from ckcv_ray.runs import verify as verification

folders.STOP_SECONDS = 2 - 60  # long before the limit, after which no fit would begin
verification.one_model = lambda *_: Event().wait()
main()
"""


def test_a_fit_that_goes_on_past_the_limit_ends_the_verification(patients_run: Path) -> None:
    command = [sys.executable, "-c", HANGS, "verify", str(patients_run), "--limit", "60"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (6, "")
    assert "not verified: a fit did not end in 60 s, the limit: allow more with --limit" in done.stderr


def test_what_could_not_be_computed_is_not_verified(
    ckcv: Command, patients_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Verification(recomputed=["the rest"], unverified=["its models: no package xgboost is here"])
    monkeypatch.setattr("ckcv_ray.cli.folders.verify_folder", lambda *_: found)
    code, shown, _ = ckcv("verify", patients_run)
    assert (code, "every figure" in shown) == (6, False)
    assert shown.splitlines()[0] == "not verified: its models: no package xgboost is here"
    code, shown, _ = ckcv("verify", patients_run, "--json")
    assert (code, json.loads(shown)["ok"]) == (6, False)


@pytest.fixture
def runs(finished: Finished, tmp_path: Path) -> Path:
    """A finished run, scores, an unfinished run and a damaged one, each called r in a separate folder."""
    for name, kind in {"good": "held", "a/unfinished": "held", "damaged": "held", "scores": "folds"}.items():
        finished(kind, to=tmp_path / name)
    (tmp_path / "a/unfinished/r/manifest.json").unlink()
    (tmp_path / "damaged/r/certificate.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_run_folders_are_listed_and_nothing_is_written(ckcv: Command, runs: Path) -> None:
    before = snapshot(runs)
    code, shown, messages = ckcv("list", runs, "--json")
    assert (code, messages) == (0, "")
    listed = {Path(run["folder"]).parent.name: run for run in json.loads(shown)["runs"]}
    states = {"good": "finished", "scores": "finished", "unfinished": "unfinished", "damaged": "damaged"}
    assert {name: run["state"] for name, run in listed.items()} == states
    assert {run["command"] for name, run in listed.items() if name != "scores"} == {"run"}
    assert listed["scores"]["command"] == "evaluate"
    assert {(run["target"], run["rows"]) for run in listed.values()} == {("y", 60), ("y", 90)}
    assert listed["good"]["result"].startswith(("error at most ", "nothing can be quoted"))
    scores = load_scores(runs / "scores" / "r")
    best = min(scores.figures(entry, scores.scores[0]).mean for entry in scores.entries)
    assert listed["scores"]["result"].startswith(f"zero_one {best:.4g} (")
    assert listed["unfinished"]["result"] == ""
    verdicts = {name: run["verdict"] for name, run in listed.items()}
    good = find_verdict(load_run(runs / "good" / "r"))
    assert verdicts == {"good": good, "scores": "", "unfinished": "", "damaged": ""}
    assert "certificate.json" in listed["damaged"]["problem"]
    assert snapshot(runs) == before


def test_what_was_written_last_comes_first_and_what_is_wrong_is_said(ckcv: Command, runs: Path) -> None:
    for file in (runs / "scores" / "r").iterdir():
        os.utime(file, (2e9, 2e9))
    first, *_ = list_runs(runs)
    assert first["folder"] == str(runs / "scores" / "r")
    assert first["date"].startswith("2033-05-")
    *_, count, said = ckcv("list", runs)[1].splitlines()
    assert (count, said.partition(": ")[0]) == ("4 run folders", str(runs / "damaged" / "r"))


def test_a_run_that_is_running_or_needs_a_package_says_so(runs: Path) -> None:
    folder = runs / "a" / "unfinished" / "r"
    with FileLock(folder / LOCK):
        assert [run["state"] for run in list_runs(folder)] == ["running"]
    study = json.loads((folder / "study.json").read_text())
    study["study"]["learner"]["name"] = "nowhere"
    (folder / "study.json").write_text(json.dumps(study))
    (run,) = list_runs(folder)
    assert (run["state"], run["command"], run["rows"]) == ("unreadable", None, None)
    assert "needs what is not here: learner='nowhere' is not known" in run["problem"]


def test_a_folder_without_runs_has_none(
    ckcv: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ckcv("list")[:2] == (0, "no run folder in . or below\n")
    assert ckcv("list", "nowhere")[0] == 2
    with pytest.raises(InputError, match="there is no folder 'nowhere': name one"):
        list_runs("nowhere")
