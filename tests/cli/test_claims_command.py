"""Cut-offs, conditions and subgroups on the command line."""

import csv
from pathlib import Path

import numpy as np
import pytest
from command import Command

OPTIONS = ("--certify", "holdout", "--holdout-share", "0.5", "--k", "3,5", "--n-splits", "3", "--C", "1")
ONCE = (*OPTIONS, "--gamma", "0.1", "--backend", "serial")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Write 240 rows with a category, a number, and a class that follows from the number."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=240)
    sick = np.where(x + 0.5 * rng.normal(size=240) > 0, "sick", "well")
    sex = rng.choice(["f", "m"], 240)
    rows = (f"{a:.4f},{b},{label}" for a, b, label in zip(x, sex, sick, strict=True))
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["marker,sex,state", *rows]) + "\n")
    return path


def test_rows_are_flagged_by_the_cut_off_that_was_proven(ckcv: Command, table: Path, tmp_path: Path) -> None:
    asked = ("run", table, "--target", "state", "--out", tmp_path / "run", *ONCE, "--positive", "sick")
    code, printed, _ = ckcv(*asked, "--require", "sensitivity>=0.8", "--accept", "sensitivity>=0.8")
    assert code == 0
    assert printed.startswith("ACCEPTED: sensitivity>=0.8: proven sensitivity (recall of 'sick') at least")
    out = tmp_path / "new.csv"
    code, _, said = ckcv("predict", tmp_path / "run", table, "--out", out)
    assert code == 0
    assert "with cut-off" in said
    lines = list(csv.DictReader(out.read_text().splitlines()))
    assert {(line["prediction"], line["flag"]) for line in lines} == {("sick", "true"), ("well", "false")}
    code, _, said = ckcv("predict", tmp_path / "run", table, "--refit", "--out", tmp_path / "own.csv")
    assert code == 0
    assert "column flag has the one chosen" in said
    assert "column flag by the model fitted on all rows that were not held out with cut-off" in said
    own = list(csv.DictReader((tmp_path / "own.csv").read_text().splitlines()))
    assert [line["flag"] for line in own] == [line["flag"] for line in lines]


def test_a_condition_that_is_not_met_ends_with_5(ckcv: Command, table: Path, tmp_path: Path) -> None:
    asked = ("run", table, "--target", "state", "--out", tmp_path / "run", *ONCE)
    code, printed, _ = ckcv(*asked, "--accept", "error<=0.0001")
    assert code == 5
    assert printed.startswith("NOT ACCEPTED: error<=0.0001: proven error at most ")
    assert ckcv(*asked, "--accept", "error<=0.0001")[0] == 5  # the finished run is shown again
    code, _, said = ckcv(*asked, "--accept", "error>=0.1")
    assert code == 2
    assert "is that it is at most a value: write error<=0.1" in said


def test_subgroups_are_named_before_the_run(ckcv: Command, table: Path, tmp_path: Path) -> None:
    asked = ("run", table, "--target", "state", "--out", tmp_path / "run", *ONCE, "--details")
    code, printed, _ = ckcv(*asked, "--subgroups", "sex,marker:3")
    assert code == 0
    assert "subgroups at most " in printed
    assert "  sex = f, error: " in printed
    assert "  sex = m, recall of well: " in printed
    assert " <= marker < " in printed
    code, _, said = ckcv(*asked, "--subgroups", "state")
    assert (code, "'state' is the target: name one that new rows have as well" in said) == (2, True)
