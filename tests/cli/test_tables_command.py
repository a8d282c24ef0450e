"""Untidy tables on the command line: what is said before a run, and predictions of raw rows."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command import Command
from pyarrow import csv, parquet
from untidy import untidy

from ckcv_ray import Study, Task
from ckcv_ray.study import Problem
from ckcv_ray.tables import task

ONCE = ("--k", "3", "--n-splits", "3", "--C", "1", "--gamma", "0.1", "--backend", "serial")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    columns = untidy(60).append_column("code", pa.array([f"P{i}" for i in range(60)]))
    csv.write_csv(columns, tmp_path / "table.csv")
    return tmp_path / "table.csv"


def test_what_was_understood_is_said_before_a_run(ckcv: Command, table: Path, tmp_path: Path) -> None:
    asked = (table, "--target", "outcome", "--out", tmp_path / "run", *ONCE)
    code, _, said = ckcv("run", *asked)
    assert code == 2
    assert "column 'code' has another text in each of its 60 rows" in said
    code, _, said = ckcv("run", *asked, "--id", "code")
    assert code == 0
    lines = [line.split() for line in said.splitlines()]
    kinds = {words[0]: words[1] for words in lines if len(words) == 4}
    expected = {"age": "number", "city": "category", "admitted": "date", "smokes": "number"}
    assert kinds == {"column": "kind", **expected}


def test_copies_are_joined_and_groups_are_of_several_columns(
    ckcv: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=160).round(2)
    rows = [f"{a},c{i // 80},{i // 4 % 20},{a},{'ab'[int(a > 0)]}" for i, a in enumerate(x)]
    Path("a.csv").write_text("\n".join(["dose,center,id,dose,y", *rows]) + "\n")
    code, printed, said = ckcv("run", "a.csv", "--group", "center,id", "--out", "run", *ONCE)
    assert code == 0, said
    assert "identical columns of one name, of which one is kept: dose\n" in said
    assert "160 rows in 40 groups" in " ".join(printed.split())
    code, _, said = ckcv("predict", "run", "a.csv", "--out", "predicted.csv")
    assert (code, "ignored" in said) == (0, False)
    assert "identical columns of one name, of which one is kept: dose\n" in said
    assert ckcv("verify", "run", "--table", "a.csv")[0] == 0
    code, _, said = ckcv("compare", "run", "--predictions", "y", "--rows", "a.csv")
    assert (code, said.endswith("the judged rows belong together with --group center,id\n")) == (2, True)
    Path("a.csv").write_text(Path("a.csv").read_text().replace("dose,y", "id,y", 1))
    code, _, said = ckcv("run", "a.csv", "--out", "other", *ONCE)
    assert (code, said.endswith("rename or remove one, or leave both out with --drop id\n")) == (2, True)
    assert ckcv("run", "a.csv", "--drop", "id", "--out", "other", *ONCE)[0] == 0


def test_rows_that_cannot_be_judged_are_marked(ckcv: Command, table: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert ckcv("run", table, "--target", "outcome", "--drop", "code", "--out", run, *ONCE)[0] == 0
    new = tmp_path / "new.csv"
    new.write_text("code,city,age,more,admitted,smokes\nA,Oslo,,1,2024-03-01,true\nB,Nowhere,old,2,,false\n")
    code, printed, said = ckcv("predict", run, new, "--keep", "code", "--vote")
    assert code == 0
    head, first, second = printed.splitlines()
    assert head.startswith('"row","code","prediction"')
    assert first.startswith('1,"A","')
    assert second == '2,"B",,,,'
    assert "1 of 2 rows could not be judged: column 'age' has 'old' in row 2, not a number: fix it" in said
    assert "1 column ignored: more" in said
    new.write_text("age,city,admitted,smokes,=name\n50,Oslo,2024-03-01,true,\x1b[2J=1+1\n")
    code, printed, _ = ckcv("predict", run, new, "--keep", "=name", "--vote", "--csv-safe")
    assert code == 0
    assert printed.isascii()
    assert "\x1b" not in printed
    assert """'=name""" in printed
    new.write_text("age,city,admitted,smokes\nold,Oslo,2024-03-01,true\n50,Oslo,2024-03-01,true\nold,,,\n")
    code, printed, said = ckcv("predict", run, new, "--strict")
    assert (code, printed) == (2, "")
    assert "'old' in row 1" in said


def test_a_separator_is_for_every_text_table_of_a_run(ckcv: Command, tmp_path: Path) -> None:
    """Test rows may lie in a text table too, or in a file of another format."""
    i = np.arange(24)
    rows = pa.table({"a;1": (i % 5 + i / 10).round(1), "b;2": i * 7 % 11, "y;3": np.where(i % 2, "b", "a")})
    for name in ("table.csv", "test.csv"):
        csv.write_csv(rows, tmp_path / name, csv.WriteOptions(delimiter="|"))
    parquet.write_table(rows, tmp_path / "test.parquet")
    rates = []
    for test in ("test.csv", "test.parquet"):
        asked = (tmp_path / "table.csv", "--target", "y;3", "--separator", "|", "--test", tmp_path / test)
        code, printed, said = ckcv("run", *asked, "--out", tmp_path / test.replace(".", "_"), *ONCE, "--json")
        assert code == 0, said
        rates.append(json.loads(printed)["test_error"])
    assert rates[0] == rates[1]


def test_nothing_of_rows_held_out_is_said_before_they_certify(
    ckcv: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is in a column of the rows to learn from; of those held out cells and labels move."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.column_stack([rng.normal(size=60), y])
    asked = ("--target", "y", "--certify", "holdout", "--claim", "sensitivity", *ONCE)
    held = Problem.of(Study.paper(k=3, certify="holdout"), Task.of(X, y)).held
    salt = Task.of(X, y).salt
    monkeypatch.setattr(task, "compute_salt", lambda *_: salt)
    messages, planned = [], []
    for number in range(3):
        if number:
            X[held, 1], X[held, 0], y[held] = number * 7, X[held[0], 0], rng.permutation(y[held])
        file, folder = tmp_path / f"{number}.csv", tmp_path / f"{number}"
        csv.write_csv(pa.table({"x0": X[:, 0], "x1": X[:, 1], "y": y}), file)
        _, _, said = ckcv("run", file, "--out", folder, *asked)
        messages.append(re.findall(r"(?m)^.*(?:the target away|to learn from).*$", said))
        _, printed, _ = ckcv("plan", file, *asked[:-2], "--json")
        planned.append(json.loads(printed)["claims"])
        (folder / "manifest.json").unlink()
        assert json.loads(ckcv("status", folder, "--json")[1])["repeats"] == 0
    assert messages[0] == messages[1] == messages[2]
    assert [line.split()[0] for line in messages[0]] == ["x1", "(of"]
    assert planned[0] == planned[1] == planned[2]
