"""``--weight`` on the command line: named once, and not asked for again when rows are predicted."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
from command import Command
from pyarrow import csv

SMALL = ("--learner", "linear", "--param", "C=0.1,1", "--k", "3", "--n-splits", "3", "--backend", "serial")


def test_a_column_of_weights(ckcv: Command, patients: Path, tmp_path: Path) -> None:
    table = csv.read_csv(patients)
    weights = pa.array(np.random.default_rng(0).integers(1, 9, table.num_rows))
    csv.write_csv(table.append_column("share", weights), tmp_path / "weighted.csv")
    asked = (tmp_path / "weighted.csv", "--target", "outcome", "--weight", "share")
    code, printed, _ = ckcv("run", *asked, "--out", tmp_path / "run", *SMALL)
    assert code == 0
    assert "2 columns" in printed
    assert "Rows are weighted by 'share' in fits alone" in printed
    code, printed, said = ckcv("predict", tmp_path / "run", patients)
    assert (code, len(printed.splitlines())) == (0, 1 + table.num_rows)
    code, _, said = ckcv("predict", tmp_path / "run", tmp_path / "weighted.csv")
    assert code == 0
    assert "ignored" not in said
    assert ckcv("verify", tmp_path / "run", "--refit")[0] == 0
    code, printed, _ = ckcv("status", tmp_path / "run", "--json")
    assert json.loads(printed)["state"] == "finished"
    code, printed, _ = ckcv("evaluate", *asked, "--out", tmp_path / "scores", "--learner", "tree")
    assert code == 0
    assert "Rows are weighted by 'share' in fits alone" in printed
    code, _, said = ckcv("run", *asked, "--out", tmp_path / "svm", "--k", "3")
    assert code == 2
    assert "learner svm does not use weights of rows: choose from svm_nystroem, linear" in said
