"""Untidy tables on the command line: what is said before a run, and predictions of raw rows."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import Command
from finished import Finished
from pyarrow import csv

from ckcv_ray import Study, Task
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables import task

ONCE = ("--k", "3", "--n-splits", "3", "--C", "1", "--gamma", "0.1", "--backend", "serial")


def test_copies_are_joined_and_groups_are_of_several_columns(
    ckcv: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=160).round(2)
    rows = [f"{a},c{i // 80},{i // 4 % 20},{a},{'ab'[int(a > 0)]}" for i, a in enumerate(x)]
    Path("a.csv").write_text("\n".join(["dose,center,id,dose,y", *rows]) + "\n")
    code, printed, said = ckcv("run", "a.csv", "--group", "center,id", "--out", "run", *ONCE)
    assert code == 0, said
    assert "identical columns with the same name, one of which is kept: dose\n" in said
    assert "160 rows in 40 groups" in " ".join(printed.split())
    code, _, said = ckcv("predict", "run", "a.csv", "--out", "predicted.csv")
    assert (code, "ignored" in said) == (0, False)
    assert "identical columns with the same name, one of which is kept: dose\n" in said
    assert ckcv("verify", "run", "--table", "a.csv")[0] == 0
    code, _, said = ckcv("compare", "run", "--predictions", "y", "--rows", "a.csv")
    assert (code, said.endswith("the judged rows belong together with --group center,id\n")) == (2, True)
    Path("a.csv").write_text(Path("a.csv").read_text().replace("dose,y", "id,y", 1))
    code, _, said = ckcv("run", "a.csv", "--out", "other", *ONCE)
    assert (code, said.endswith("rename or remove one, or leave both out with --drop id\n")) == (2, True)


def test_rows_that_cannot_be_judged_are_marked(ckcv: Command, finished: Finished, tmp_path: Path) -> None:
    run, new = finished("exact encoded"), tmp_path / "new.csv"
    new.write_text("code,city,age,more,admitted,smokes\nA,Oslo,,1,2024-03-01,true\nB,Nowhere,old,2,,false\n")
    code, printed, said = ckcv("predict", run, new, "--keep", "code", "--vote")
    assert code == 0
    head, first, second = printed.splitlines()
    assert head.startswith('"row","code","prediction"')
    assert first.startswith('1,"A","')
    assert second == '2,"B",,,,'
    assert "1 of 2 rows could not be judged: column 'age' has 'old' in row 2, not a number: fix it" in said
    assert "1 column ignored: more" in said
    new.write_text("age,city,admitted,smokes\nold,Oslo,2024-03-01,true\n50,Oslo,soon,true\nold,,,\n")
    code, printed, said = ckcv("predict", run, new, "--strict")
    assert (code, printed) == (2, "")
    assert "'old' in row 1, not a number: fix it; column 'admitted' has 'soon' in row 2, not a date" in said


def test_how_tables_are_read_is_said_once_for_all_of_a_command(ckcv: Command, tmp_path: Path) -> None:
    """Of rows to learn from and to test on; numbers of new rows may be doubtful where others are not."""
    run, new = tmp_path / "run", tmp_path / "new.csv"
    rows = (f"{n % 5 + n / 10:.1f}|{('some', 'none')[n % 2]}|{'ab'[n % 3 > 0]}" for n in range(48))
    (tmp_path / "table.csv").write_text("\n".join(["age|drinks|y", *rows]) + "\n")
    shutil.copy(tmp_path / "table.csv", tmp_path / "test.csv")
    asked = ("run", tmp_path / "table.csv", "--separator", "|", "--test", tmp_path / "test.csv", *ONCE[:4])
    asked = (*asked, "--learner", "tree", "--subgroups", "drinks")
    code, _, said = ckcv(*asked, "--out", tmp_path / "taken")
    assert code == 0, said
    assert (
        "'drinks' is empty in 24 of 48 rows (50 %), with 'none' in 24 of them (to keep such text, say" in said
    )
    code, printed, said = ckcv(*asked, "--out", run, "--keep-values", "none", "--json")
    assert (code, "is empty in" in said, json.loads(printed)["test_error"] >= 0) == (0, False, True)
    new.write_text("age,drinks\n41.5,none\n1.250,some\n")
    for words, doubtful in (((), True), (("--thousands", "."), False), (("--thousands", ","), False)):
        code, _, said = ckcv("predict", run, new, *words)
        assert (code, "1 of 2 rows could not be judged: column 'age' has '1.250'" in said) == (0, doubtful)


def test_a_word_in_place_of_a_number_is_not_offered_to_be_kept(ckcv: Command, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{i % 7},{i if i % 8 else 'NA'}\n" for i in range(64)))
    code, _, said = ckcv(
        "plan", tmp_path / "a.csv", "--learner", "ridge", "--clip", "64", "--drop-unlabelled"
    )
    assert (code, "8 of 64 rows (12.5 %), with 'NA' in 8 of them; 56 are learned from" in said) == (0, True)


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
        assert "repeats" not in json.loads(ckcv("status", folder, "--json")[1])
    assert messages[0] == messages[1] == messages[2]
    assert [line.split()[0] for line in messages[0]] == ["x1", "(of"]
    assert planned[0] == planned[1] == planned[2]


def test_every_command_asks_for_an_encoding_and_reads_by_it(ckcv: Command, tmp_path: Path) -> None:
    def write_rows(name: str, seed: int) -> Path:
        x, labels = np.random.default_rng(seed).normal(size=60).round(4), ("за", "против")
        rows = (f"{name}{i},{a},{labels[i % 2]},{labels[int(a > 0)]}\n" for i, a in enumerate(x))
        (tmp_path / f"{name}.csv").write_bytes(f"no,x,nurse,y\n{''.join(rows)}".encode("cp1251"))
        return tmp_path / f"{name}.csv"

    learned, new = (write_rows(name, seed) for seed, name in enumerate("ab"))
    run, scores, stream, uses = (tmp_path / name for name in ("r", "s", "t.jsonl", "u"))
    for command in (
        ("run", learned, "--out", run, "--certify", "holdout", "--drop", "no,nurse", *ONCE),
        ("evaluate", learned, "--out", scores, "--learner", "tree", "--drop", "no,nurse"),
        ("predict", run, new),
        ("watch", run, new, "--id", "no", "--stream", stream),
        ("compare", run, "--rows", new, "--predictions", "nurse", "--ledger", uses),
    ):
        code, _, said = ckcv(*command)
        assert (code, "say which --encoding it is in, such as cp1251" in said) == (2, True)
        code, _, said = ckcv(*command, "--encoding", "cp1251")
        assert (code in (0, 6), "UTF-8" in said) == (True, False), said
    assert ckcv("verify", run, "--table", learned)[0] == 0
