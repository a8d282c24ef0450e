"""The commands on a column of numbers: run, plan, predict, status, verify, report; and what they refuse."""

from csv import reader
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command import Command
from pyarrow import csv

from ckcv_ray import load_run

N = 90
OPTIONS = ("--target", "price", "--learner", "ridge", "--clip", "5", "--k", "3", "--n-splits", "3")
HELD = ("--certify", "holdout", "--holdout-share", "0.5", "--claim", "refit,within:0.8")


@pytest.fixture(scope="module")
def houses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of prices, and a column whose name predict may write."""
    rng, file = np.random.default_rng(2), tmp_path_factory.mktemp("houses") / "houses.csv"
    size, age = rng.normal(size=(2, N))
    price = 20 + 3 * size - age + rng.standard_t(2.5, N)
    low = np.arange(N) // 3
    csv.write_csv(pa.table({"size": size, "age": age, "low": low, "price": price.round(2)}), file)
    return file


@pytest.fixture
def sold(ckcv: Command, houses: Path, tmp_path: Path) -> Path:
    out = tmp_path / "run"
    code, _, said = ckcv("run", houses, *OPTIONS, *HELD, "--drop", "low", "--out", out, "--backend", "serial")
    assert code == 0, said
    return out


def test_predict_writes_the_interval(ckcv: Command, houses: Path, sold: Path) -> None:
    code, shown, said = ckcv("predict", sold, houses)
    assert code == 0
    heading, *rows = reader(shown.splitlines())
    assert heading == ["row", "prediction", "member", "low", "high"]
    (claim,) = [claim for claim in load_run(sold).certificate.claims if claim["quantity"] == "within:0.8"]
    ends = np.array([[float(row[i]) for i in (1, 3, 4)] for row in rows])
    assert np.allclose(ends[:, 0] - ends[:, 1], claim["bound"])
    assert np.allclose(ends[:, 2] - ends[:, 0], claim["bound"])
    assert "proven to be off by at most" in said
    known = load_run(sold).task.n
    assert 0 < known < N
    assert f"on {N} rows; {known} of them are learning rows, and say little about new ones" in said


def test_predict_writes_no_interval_for_another_rule(ckcv: Command, houses: Path, sold: Path) -> None:
    code, shown, said = ckcv("predict", sold, houses, "--all-members", "--keep", "low")
    assert code == 0
    assert next(reader(shown.splitlines())) == ["row", "low", "prediction", "member"]
    assert "drawn independently for each row: nothing is proven for it alone" in said


def test_a_column_that_is_written_is_not_kept(ckcv: Command, houses: Path, sold: Path) -> None:
    code, _, said = ckcv("predict", sold, houses, "--keep", "low")
    assert code == 2
    assert "--keep 'low' is a column that is written anyway" in said
