"""Labels of several forms, and rows without one, on the command line."""

import json
from pathlib import Path

import numpy as np
import pytest
from command import Command

ONCE = ("--k", "3", "--n-splits", "3", "--C", "1", "--gamma", "0.1", "--backend", "serial")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Write 60 rows of classes Yes (also YES) and no, of which every tenth has no label."""
    x = np.random.default_rng(0).normal(size=60)
    ways = ("Yes", "no", "YES", "no", "Yes", "no")
    labels = ["" if i % 10 == 9 else ways[i % 6] for i in range(60)]
    rows = (f"{a + (label != 'no'):.3f},{a * a:.3f},{label}" for a, label in zip(x, labels, strict=True))
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["a,b,y", *rows]) + "\n")
    return path


def test_new_rows_are_read_in_every_form(ckcv: Command, table: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    asked = ("run", table, "--out", run, "--labels", "join", "--drop-unlabelled", *ONCE)
    new = tmp_path / "new.csv"
    new.write_text("a,b,y\n0.1,0.2,yes\n0.3,0.4,NO\n0.5,0.1,YES\n")
    code, printed, said = ckcv(*asked, "--test", new, "--json")
    assert code == 0, said
    assert json.loads(printed)["test_error"]
    code, _, said = ckcv("predict", run, new, "--vote")
    assert (code, "of 3 rows" in said) == (0, True)
    code, _, said = ckcv("predict", run, table, "--vote")
    assert (code, "6 rows without a label: not in the error rate" in said) == (0, True)
    assert ckcv("verify", run, "--test", new)[0] == 0


def test_words_taken_for_gaps_are_said_and_may_be_kept(ckcv: Command, tmp_path: Path) -> None:
    """A country, NA, and cells that are empty; an answer, none; later rows are read alike without a word."""
    table, run = tmp_path / "table.csv", tmp_path / "run"
    labels = ("NA", "no", "yes", "no", "yes")
    rows = (f"{('NA', 'ZA', '', 'DE')[i % 4]},{('none', 'some')[i % 2]},{labels[i % 5]}" for i in range(60))
    table.write_text("\n".join(["country,drinks,y", *rows]) + "\n")
    asked = ("run", table, "--k", "3", "--n-splits", "3", "--learner", "tree", "--subgroups", "drinks")
    code, _, said = ckcv(*asked, "--out", tmp_path / "taken", "--drop-unlabelled")
    assert code == 0, said
    assert "rows without 'y' left out: 12 of 60 rows (20 %), 'NA' in 12 of them; 48 are learned" in said
    assert "learned from; --keep-values NA keeps it as a label" in said
    assert "'country': 'NA' in 12 of 48 rows (25 %) was taken for an empty cell, like cells that" in said
    assert "'drinks': 'none' in 24 of 48 rows (50 %) was taken for an empty cell: --keep-values none" in said
    code, printed, said = ckcv(*asked, "--out", run, "--keep-values", "NA,none", "--json")
    assert (code, "taken for" in said, json.loads(printed)["rows"]) == (0, False, 60), said
    code, _, said = ckcv("predict", run, table)
    assert (code, "of 60 rows" in said, "without a label" in said) == (0, True, False), said
    code, _, said = ckcv(*asked, "--out", run, "--keep-values", "nobody")
    assert code == 2
    assert "--keep-values 'nobody': it is no word that is taken for an empty cell" in said
