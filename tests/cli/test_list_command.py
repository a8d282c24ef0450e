"""Command list: the run folders below a folder, read without writing, damaged ones among them."""

import json
import os
from pathlib import Path

import pytest
from command import Command
from conftest import snapshot
from filelock import FileLock
from finished import Finished

from ckcv_ray import InputError, load_scores
from ckcv_ray.cli.folders import list_runs
from ckcv_ray.storage.files import LOCK


@pytest.fixture
def runs(finished: Finished, tmp_path: Path) -> Path:
    """A finished run, scores, an unfinished run and a damaged one, each called r in a folder of its own."""
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
    assert "certificate.json" in listed["damaged"]["problem"]
    assert snapshot(runs) == before


def test_the_table_has_a_line_for_each_and_says_what_is_wrong(ckcv: Command, runs: Path) -> None:
    _, shown, _ = ckcv("list", runs)
    first, *lines = shown.splitlines()
    assert first.split()[:4] == ["folder", "made", "by", "target"]
    about = [line.partition("  ckcv run  ")[2].split()[:2] for line in lines]  # target and rows
    assert about.count(["y", "60"]) == 3
    assert "4 run folders" in lines
    assert lines[-1].startswith(f"{runs / 'damaged' / 'r'}: ")


def test_what_was_written_last_comes_first(runs: Path) -> None:
    for file in (runs / "scores" / "r").iterdir():
        os.utime(file, (2e9, 2e9))
    first, *_ = list_runs(runs)
    assert first.folder == str(runs / "scores" / "r")
    assert first.date.startswith("2033-05-")


def test_a_run_that_is_running_or_needs_a_package_says_so(runs: Path) -> None:
    folder = runs / "a" / "unfinished" / "r"
    with FileLock(folder / LOCK):
        assert [run.state for run in list_runs(folder)] == ["running"]
    study = json.loads((folder / "study.json").read_text())
    study["study"]["learner"]["name"] = "nowhere"
    (folder / "study.json").write_text(json.dumps(study))
    (run,) = list_runs(folder)
    assert (run.state, run.command, run.rows) == ("unreadable", None, None)
    assert "needs what is not here: learner='nowhere' is not known" in run.problem


def test_a_folder_without_runs_has_none(
    ckcv: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ckcv("list")[:2] == (0, "no run folder in . or below\n")
    assert ckcv("list", "nowhere")[0] == 2
    with pytest.raises(InputError, match="there is no folder 'nowhere': name one"):
        list_runs("nowhere")
