"""What predict writes besides labels, reads from standard input, and says of members that it draws."""

import io
import sys
from csv import DictReader
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command import Command
from pyarrow import csv

from ckcv_ray import load_run

TABLE = "".join(f"p{i},{(i % 2) * 3 + i * 7 % 5},{i % 3},{['ill', 'well'][i % 2]}\n" for i in range(60))
STUDY = ("--k", "3", "--n-splits", "3")


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cases.csv").write_text(f"patient,age,dose,outcome\n{TABLE}")
    return tmp_path


@pytest.fixture
def linear(ckcv: Command, cases: Path) -> Path:
    words = ("--target", "outcome", "--drop", "patient", "--learner", "linear", *STUDY)
    assert ckcv("run", "cases.csv", *words, "--paper", "--out", "linear")[0] == 0
    return cases / "linear"


def read(shown: str) -> pa.Table:
    return csv.read_csv(io.BytesIO(shown.encode()))


class Stdin:
    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


def test_the_column_that_names_the_rows_is_carried(ckcv: Command, linear: Path) -> None:
    asked = ("predict", linear, "cases.csv", "--vote")
    kept, named = (ckcv(*asked, option, "patient") for option in ("--keep", "--id"))
    assert kept == named
    table = read(named[1])
    assert table.column_names[:3] == ["row", "patient", "prediction"]
    assert table["patient"].to_pylist()[:2] == ["p0", "p1"]


@pytest.mark.parametrize("rule", [("--vote",), ("--member", "1"), ("--seed", "3")])
def test_probabilities_are_those_of_what_decided(ckcv: Command, linear: Path, rule: tuple[str, ...]) -> None:
    code, shown, messages = ckcv("predict", linear, "cases.csv", *rule, "--probabilities")
    assert code == 0
    table = read(shown)
    assert table.column_names[-2:] == ["probability_ill", "probability_well"]
    columns = np.column_stack([table[name].to_numpy() for name in table.column_names[-2:]])
    np.testing.assert_allclose(columns.sum(axis=1), 1.0)
    names = np.array(["ill", "well"])
    decided = names[columns.argmax(axis=1)] == np.array(table["prediction"].to_pylist())
    assert decided.all() if rule[0] != "--vote" else decided.mean() > 0.9
    assert "probabilities: as linear gives them, not calibrated; nothing is proven of them\n" in messages
    result = load_run(linear)
    X, outputs = result.task.X, result.learner.outputs
    members = np.array([m.model.predict_outputs(X, outputs).probability for m in result.ensemble.members])
    own = members.mean(axis=0) if rule[0] == "--vote" else members[table["member"].to_numpy(), range(60)]
    np.testing.assert_allclose(columns, own)


def test_a_learner_without_probabilities_is_refused(ckcv: Command, cases: Path) -> None:
    words = ("--target", "outcome", "--drop", "patient", "--C", "1", "--gamma", "0.1", *STUDY)
    assert ckcv("run", "cases.csv", *words, "--out", "svm")[0] == 0
    code, shown, messages = ckcv("predict", "svm", "cases.csv", "--probabilities")
    assert (code, shown) == (2, "")
    assert messages.startswith("ckcv: probabilities: the learner svm has none: choose one such as linear or")


@pytest.mark.parametrize(
    "labels", ["False True", "false true", "0.0 1.0", "01 02", "2 10", "9.0 10.50", "0x1 0x2", "1;5 2;5"]
)
def test_labels_go_back_as_they_were_written(ckcv: Command, cases: Path, labels: str) -> None:
    low, high = labels.replace(";", ",").split()
    (cases / "t.csv").write_text("x;y\n" + "".join(f"{i / 4};{(low, high)[i >= 30]}\n" for i in range(60)))
    assert ckcv("run", "t.csv", "--learner", "tree", *STUDY, "--out", "written")[0] == 0
    learned = load_run("written").task
    assert learned.y.tolist() == (learned.X[:, 0] >= 7.5).tolist()
    code, shown, _ = ckcv("predict", "written", "t.csv")
    assert code == 0
    given = [row["prediction"] for row in DictReader(shown.splitlines())]
    assert set(given) == {low, high}
    assert [given[i] for i in (0, 59)] == [low, high]


def test_a_table_can_come_from_standard_input_and_go_to_standard_output(
    ckcv: Command, linear: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ckcv("predict", linear, "cases.csv", "--vote", "--id", "patient")
    monkeypatch.setattr(sys, "stdin", Stdin(Path("cases.csv").read_bytes()))
    given = ckcv("predict", linear, "-", "--vote", "--id", "patient", "--out", "-")
    assert given == expected


def test_what_is_wrong_with_standard_input_is_said_of_it(
    ckcv: Command, linear: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for content in (b"", b"a,b\n1\n"):
        monkeypatch.setattr(sys, "stdin", Stdin(content))
        code, shown, messages = ckcv("predict", linear, "-")
        assert (code, shown) == (2, "")
        assert "standard input" in messages
        assert "/tmp" not in messages
