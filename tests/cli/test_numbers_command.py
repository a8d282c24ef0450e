"""The commands on a column of numbers: run, plan, predict, status, verify, report; and what they refuse."""

import json
from csv import reader
from pathlib import Path

import numpy as np
import pytest
from command import Command

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
    rows = [
        f"{a:.4f},{b:.4f},{i // 3},{c:.2f}" for i, (a, b, c) in enumerate(zip(size, age, price, strict=True))
    ]
    file.write_text("\n".join(["size,age,low,price", *rows]))
    return file


@pytest.fixture
def sold(ckcv: Command, houses: Path, tmp_path: Path) -> Path:
    out = tmp_path / "run"
    code, _, said = ckcv("run", houses, *OPTIONS, *HELD, "--drop", "low", "--out", out, "--backend", "serial")
    assert code == 0, said
    return out


def test_run_says_how_far_off_predictions_are(ckcv: Command, houses: Path, sold: Path) -> None:
    again = ("run", houses, *OPTIONS, *HELD, "--drop", "low", "--out", sold, "--backend", "serial")
    code, shown, _ = ckcv(*again, "--details")
    assert code == 0
    assert "new rows are off by at most" in " ".join(shown.split())
    assert "error of 80 % of new rows at most" in " ".join(shown.split())
    content = json.loads(ckcv("status", sold, "--json")[1])
    assert content["proven"]["quantity"] == "clipped:5"
    assert isinstance(content["baseline"]["predicted"], float)
    assert (content["classes"], content["confusion"]) == ([], [])
    assert ckcv("verify", sold)[0] == 0
    assert ckcv("report", sold)[0] == 0


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


def test_no_majority_is_named_where_members_of_numbers_are_drawn(
    ckcv: Command, houses: Path, sold: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new.csv"
    new.write_text("size,age,price\n0.12345,0.5,21\n0.54321,-0.5,22\n")
    code, _, said = ckcv("predict", sold, new, "--all-members")
    assert code == 0
    assert said.startswith("drawn: a member for each row, others in every call\n")
    assert said.endswith("on 2 rows\n")  # and none of them was learned from


def test_predict_writes_no_interval_for_another_rule(ckcv: Command, houses: Path, sold: Path) -> None:
    code, shown, said = ckcv("predict", sold, houses, "--all-members", "--keep", "low")
    assert code == 0
    assert next(reader(shown.splitlines())) == ["row", "low", "prediction", "member"]
    assert "drawn independently for each row: nothing is proven for it alone" in said


def test_a_column_that_is_written_is_not_kept(ckcv: Command, houses: Path, sold: Path) -> None:
    code, _, said = ckcv("predict", sold, houses, "--keep", "low")
    assert code == 2
    assert "--keep 'low' is a column that is written anyway" in said


def test_plan_takes_the_options_of_numbers(ckcv: Command, houses: Path) -> None:
    code, shown, _ = ckcv("plan", houses, *OPTIONS, "--workers", "1")
    assert code == 0
    assert "evaluations in" in shown


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--target", "price"), "choose a learner of numbers such as ridge, in ckcv run with --clip"),
        (("--target", "price", "--learner", "ridge"), "such as --clip 50, by what errors cost"),
        ((*OPTIONS, "--clip", "0"), "--clip 0.0 is not allowed"),
        (
            (*OPTIONS, "--group", "low", "--certify", "holdout", "--claim", "within:0.5"),
            "counts rows as independent, which rows of groups are not",
        ),
        ((*OPTIONS, "--certify", "holdout", "--claim", "within:0.99"), "takes 299 held-out rows at least"),
    ],
)
def test_what_is_missing_is_named(
    ckcv: Command, houses: Path, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    code, _, said = ckcv("run", houses, *options, "--out", tmp_path / "run", "--backend", "serial")
    assert code == 2
    assert words in " ".join(said.split())
