"""The folder of a run that none was named for: after its table, without a clash, and the same again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from ckcv_ray.cli import options
from ckcv_ray.cli.options import IN_JOB, choose_folder
from ckcv_ray.errors import InputError

GRID = ("--target", "outcome", "--k", "3", "--n-splits", "3", "--C", "1", "--gamma", "0.1")


@pytest.fixture
def here(patients: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the table, as the working directory."""
    monkeypatch.chdir(patients.parent)
    return patients.parent


def test_it_is_named_after_the_table_and_found_again(ckcv: Callable[..., Any], here: Path) -> None:
    code, printed, said = ckcv("run", "patients.csv", *GRID)
    assert code == 0
    assert "run folder: patients_run" in said
    assert printed.endswith("then      ckcv report patients_run; ckcv predict patients_run NEW.csv\n") or (
        "Nothing can be quoted" in printed
    )
    again = ckcv("run", "patients.csv", *GRID)
    assert again[:2] == (0, printed)
    assert "already holds the finished run" in again[2]
    assert [folder.name for folder in here.iterdir() if folder.is_dir()] == ["patients_run"]


def test_what_an_unfinished_run_has_is_counted_aloud(ckcv: Callable[..., Any], here: Path) -> None:
    printed, said = ckcv("run", "patients.csv", *GRID)[1:]
    assert "resuming" not in said
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


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("data/my table (2).csv.gz", "my_table_2_run"),
        ("sklearn:iris", "sklearn_iris_run"),
        ("twonorm:400:0", "twonorm_400_0_run"),
        ("???", "table_run"),
        ("Größe.xlsx", "Größe_run"),
    ],
)
def test_names(source: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert choose_folder(source, "run", "0" * 12) == name


def test_what_is_there_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a_run").write_text("a file")
    Path("a_run_2").mkdir()
    Path("a_run_2/thesis.txt").write_text("a year of work")
    assert choose_folder("a.csv", "run", "0" * 12) == "a_run_3"
    monkeypatch.setattr(options, "MAX_FOLDERS", 2)
    with pytest.raises(InputError, match="a_run and 1 more are taken: name a folder with --out"):
        choose_folder("a.csv", "run", "0" * 12)


def test_a_job_must_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(IN_JOB, "{}")
    with pytest.raises(InputError, match="out='a_run' is relative to the job's copy"):
        choose_folder("a.csv", "run", "0" * 12)
