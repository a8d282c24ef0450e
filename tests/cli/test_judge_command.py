"""The command judge, on a table of labels and predictions."""

import json
from pathlib import Path

import numpy as np
import pytest
from command import Command


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    sick, ages = rng.random(300) < 0.4, rng.integers(20, 90, 300)
    risk = np.clip(sick * 0.5 + rng.normal(0.25, 0.15, 300), 0, 1)
    of_each = zip(sick.astype(int), risk, ages, strict=True)
    rows = (f"{'ny'[s]},{'ny'[int(r >= 0.5)]},{r:.4f},{a}" for s, r, a in of_each)
    path = tmp_path / "test.csv"
    path.write_text("\n".join(["outcome,answer,risk,age", *rows]) + "\n")
    return path


def test_two_commands_and_a_sentence_that_may_be_quoted(ckcv: Command, table: Path, tmp_path: Path) -> None:
    code, printed, _ = ckcv("judge", table, "--label", "outcome", "--prediction", "answer")
    assert (code, printed.startswith("May be quoted: in the long run at most ")) == (0, True)
    asked = ("--label", "outcome", "--score", "risk", "--cut-off", "0.5", "--positive", "y")
    code, printed, said = ckcv("judge", table, *asked, "--json", "--out", tmp_path / "page.html")
    values = json.loads(printed)
    assert (code, values["rows"], values["may_be_quoted"]) == (0, 300, True)
    assert values["confusion"][0][0] + values["confusion"][1][1] == 300 - values["claims"][0]["errors"]
    assert (tmp_path / "page.html").exists()
    assert "page: " in said


@pytest.mark.parametrize(("condition", "code"), [("error<=0.3", 0), ("error<=0.01", 5), ("error<=0.08", 6)])
def test_what_has_to_be_proven_decides_the_exit_code(
    ckcv: Command, table: Path, condition: str, code: int
) -> None:
    asked = ("judge", table, "--label", "outcome", "--prediction", "answer", "--accept", condition)
    assert ckcv(*asked)[0] == code
