"""Cut-offs, conditions and subgroups on the command line."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command import Command
from pyarrow.csv import write_csv

OPTIONS = ("--certify", "holdout", "--holdout-share", "0.5", "--k", "3,5", "--n-splits", "3", "--C", "1")
ONCE = (*OPTIONS, "--gamma", "0.1", "--backend", "serial")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Write 240 rows with a category, a number, and a class that follows from the number."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=240)
    sick = np.where(x + 0.5 * rng.normal(size=240) > 0, "sick", "well")
    columns = {"marker": x.round(4), "sex": rng.choice(["f", "m"], 240), "state": sick}
    write_csv(pa.table(columns), tmp_path / "table.csv")
    return tmp_path / "table.csv"


def test_figures_at_another_cut_off_than_the_one_chosen_say_so(
    ckcv: Command, table: Path, tmp_path: Path
) -> None:
    asked = ("run", table, "--target", "state", "--out", tmp_path / "run", *ONCE, "--subgroups", "sex")
    code, shown, _ = ckcv(*asked, "--require", "sensitivity>=0.8", "--positive", "sick")
    assert code == 0
    shown = " ".join(shown.split())
    (text,) = re.findall(r" subgroups (.*?); at the learner's own cut-off, not the one chosen", shown)
    assert "wrong" in text
    (right, rows) = re.search(r"measured [\d.]+ % \((\d+) of (\d+) held-out rows right\)", shown).groups()
    assert f"'sick' {int(rows) - int(right)} of {rows}" in shown.partition("by class")[2]
