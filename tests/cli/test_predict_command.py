"""The command predict: by which member, for which rows, what it must never write or open, and files that are
fit for a terminal and a spreadsheet.
"""

import io
import json
import pickle
import re
import shutil
import sys
from csv import DictReader, reader
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import Command, blobs, call, snapshot, unwrap
from finished import Finished
from pyarrow import csv, parquet

from ckcv_ray import judge, load_run
from ckcv_ray.errors import format_percent
from ckcv_ray.runs.result import find_verdict


def test_predict_matches_columns_by_name(
    ckcv: Command, patients_run: Path, patients: Path, tmp_path: Path
) -> None:
    columns = csv.read_csv(patients)
    mixed = columns.select(["outcome", "dose, mg", "age"]).append_column("extra", pa.array(["?"] * 40))
    csv.write_csv(mixed, tmp_path / "mixed.csv")
    code, shown, messages = ckcv("predict", patients_run, tmp_path / "mixed.csv", "--all-members")
    assert code == 0
    assert "error rate" in messages
    rows = list(reader(shown.splitlines()))
    assert rows[0] == ["row", "prediction", "member", "score", "share"]
    assert [row[0] for row in rows[1:]] == [str(i) for i in range(1, 41)]
    assert {row[1] for row in rows[1:]} <= {"well", "ill"}
    (seed,) = re.findall(r"--seed (\d+) repeats these draws", messages)
    assert shown == ckcv("predict", patients_run, patients, "--seed", seed, "--all-members")[1]
    wrong = sum(row[1] != label.as_py() for row, label in zip(rows[1:], columns["outcome"], strict=True))
    assert f"{wrong} of 40" in messages


@pytest.mark.parametrize("kind", ["prices", "visits"])
def test_the_error_measured_is_the_mean_that_is_bounded(
    kind: str, ckcv: Command, finished: Finished, tmp_path: Path
) -> None:
    folder, out = finished(kind), tmp_path / "p.csv"
    task = load_run(folder).problem.all_rows
    rows = task.columns().slice(0, 40)  # of which the last group has one row
    csv.write_csv(rows, tmp_path / "rows.csv")
    words = ("predict", folder, tmp_path / "rows.csv", "--out", out)
    assert ckcv(*words)[0] == 0
    said = unwrap(ckcv(*words, "--seed", 1)[2] if kind == "visits" else ckcv(*words)[2])
    predicted, y = csv.read_csv(out)["prediction"].to_numpy(), rows[task.target.name].to_numpy()
    if kind == "prices":
        mean = f"{np.mean(np.minimum(np.abs(y - predicted), 4)):.4g}"
        assert f"mean error: {mean} on 40 rows, where an error above 4 counts as 4" in said
        assert "root mean squared error" in said.split(mean)[1]
        return
    group = rows[task.units.name].to_numpy()
    rates = [np.mean((y != predicted)[group == one]) for one in np.unique(group)]
    wrong = f"({np.sum(y != predicted)} of 40 rows wrong)"
    assert f"error rate: {format_percent(np.mean(rates))}, mean over 14 groups {wrong}" in said
    csv.write_csv(rows.drop_columns(task.units.name), tmp_path / "rows.csv")
    said = unwrap(ckcv(*words, "--seed", 1)[2])
    assert "and not the mean over groups that is bounded, for lack of column 'group'" in said


class Bomb:
    """What a stranger may put in a pickle."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.file,)


def test_pickles_are_opened_on_request_alone_and_if_they_are_ours(
    ckcv: Command, patients_run: Path, patients: Path, tmp_path: Path
) -> None:
    plain = ckcv("predict", patients_run, patients, "--seed", 1)
    assert ckcv("predict", patients_run, patients, "--seed", 1, "--allow-pickle") == plain
    (patients_run / "ensemble" / "model-00001.pkl").write_bytes(pickle.dumps(Bomb(tmp_path / "exploded")))
    for words in (
        ("predict", patients_run, patients),
        ("predict", patients_run, patients, "--allow-pickle"),
        ("report", patients_run),
        ("status", patients_run),
    ):
        code, shown, messages = ckcv(*words)
        assert (code, shown) == (4, "")
        assert "model-00001.pkl is missing or does not match the manifest" in messages.replace("\n", "")
    assert ckcv("verify", patients_run)[0] == 1
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("name", ["data.parquet", "log/part-000000.parquet", "../r/a.csv", ""])
def test_predictions_are_written_neither_into_a_run_nor_over_what_is_predicted(
    ckcv: Command, finished: Finished, tmp_path: Path, name: str
) -> None:
    run = finished("held", to=tmp_path)
    rows = shutil.copy(run / "data.parquet", tmp_path)
    before = snapshot(tmp_path)
    code, shown, messages = ckcv("predict", run, rows, "--out", run / name if name else rows)
    assert (code, shown) == (2, "")
    assert (
        "is in the run folder" if name else "is not a file of predictions as ckcv wrote it"
    ) in messages.replace("\n", " ")
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("name", ["p.csv", "p.parquet", "p.html"])
def test_what_is_written_replaces_its_like_alone(
    ckcv: Command, patients_run: Path, patients: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / name
    words, kind = ("predict", patients_run, patients), "file of predictions"
    if name.endswith("html"):
        words, kind = ("report", patients_run), "report"
    assert ckcv(*words, "--out", out)[0] == ckcv(*words, "--out", out)[0] == 0
    if kind != "report":
        assert [ckcv(*words, "--out", out, *more)[0] for more in (("--vote",), ("--keep", "age"))] == [0, 0]
    mine = out.read_bytes().replace(b"<body", b"<body class='mine'", 1).replace(b"prediction", b"guess")
    for other in (b"", b"row,age\n1,2\n", patients.read_bytes(), b"\xff" * 9, b"<html>notes</html>", mine):
        out.write_bytes(other)
        code, _, messages = ckcv(*words, "--out", out)
        assert (code, f"is not a {kind} as ckcv wrote it" in messages.replace("\n", " ")) == (2, True)
        assert out.read_bytes() == other


def test_an_interval_is_written_by_the_rule_that_it_is_proven_of(
    ckcv: Command, finished: Finished, tmp_path: Path
) -> None:
    run = finished("numbers")
    houses = csv.read_csv(run.parent / "houses.csv")
    csv.write_csv(houses.append_column("low", houses["price"]), tmp_path / "houses.csv")
    code, shown, said = ckcv("predict", run, tmp_path / "houses.csv", "--all-members", "--keep", "low")
    assert (code, shown.splitlines()[0]) == (0, '"row","low","prediction","member"')
    assert "drawn independently for each row: nothing is proven for it alone" in said
    code, _, said = ckcv("predict", run, tmp_path / "houses.csv", "--keep", "low")
    assert (code, "--keep 'low' is a column that is written anyway" in said) == (2, True)


def test_rows_to_predict_need_no_weights(ckcv: Command, finished: Finished, tmp_path: Path) -> None:
    run = finished("weights of rows")
    table = csv.read_csv(run.parent / "costs.csv")
    csv.write_csv(table.drop_columns(["weight"]), tmp_path / "new.csv")
    with_weights, without = (
        ckcv("predict", run, at / name) for at, name in ((run.parent, "costs.csv"), (tmp_path, "new.csv"))
    )
    assert with_weights[:2] == without[:2]
    assert (without[0], "ignored" in with_weights[2]) == (0, False)


TABLE = "".join(f"p{i},{(i % 2) * 3 + i * 7 % 5},{i % 3},{['ill', 'well'][i % 2]}\n" for i in range(60))
STUDY = ("--k", "3", "--n-splits", "3")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table and a run on it."""
    folder = tmp_path_factory.mktemp("cases")
    (folder / "cases.csv").write_text(f"patient,age,dose,outcome\n{TABLE}")
    words = ("--target", "outcome", "--drop", "patient", "--learner", "linear", *STUDY, "--paper")
    assert call("run", folder / "cases.csv", *words, "--out", folder / "linear") == 0
    return folder


@pytest.fixture
def linear(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place)
    return place / "linear"


def read(shown: str) -> pa.Table:
    return csv.read_csv(io.BytesIO(shown.encode()))


@pytest.mark.parametrize("rule", [("--vote",), ("--member", "1"), ("--seed", "3")])
def test_probabilities_are_those_of_what_decided(ckcv: Command, linear: Path, rule: tuple[str, ...]) -> None:
    code, shown, messages = ckcv("predict", linear, "cases.csv", *rule, "--probabilities")
    assert code == 0
    table = read(shown)
    assert table.column_names[-2:] == ["probability_ill", "probability_well"]
    columns = np.column_stack([table[name].to_numpy() for name in table.column_names[-2:]])
    assert "probabilities: as linear gives them, not recalibrated; nothing is proven of them\n" in messages
    result = load_run(linear)
    X, outputs = result.task.X, result.study.learner.outputs
    members = np.array([m.model.predict_outputs(X, outputs).probability for m in result.ensemble.members])
    own = members.mean(axis=0) if rule[0] == "--vote" else members[table["member"].to_numpy(), range(60)]
    np.testing.assert_allclose(columns, own)


@pytest.mark.parametrize("labels", ["False True", "01 02", "1;5 2;5"])
def test_labels_go_back_as_they_were_written(ckcv: Command, tmp_path: Path, labels: str) -> None:
    low, high = labels.replace(";", ",").split()
    table, run = tmp_path / "t.csv", tmp_path / "run"
    table.write_text("x;y\n" + "".join(f"{i / 4};{(low, high)[i >= 30]}\n" for i in range(60)))
    assert ckcv("run", table, "--learner", "tree", *STUDY, "--out", run)[0] == 0
    learned = load_run(run).task
    assert learned.y.tolist() == (learned.X[:, 0] >= 7.5).tolist()
    code, shown, _ = ckcv("predict", run, table)
    assert code == 0
    given = [row["prediction"] for row in DictReader(shown.splitlines())]
    assert set(given) == {low, high}
    assert [given[i] for i in (0, 59)] == [low, high]


def test_a_table_can_come_from_standard_input_and_go_to_standard_output(
    ckcv: Command, linear: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def give(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    expected = ckcv("predict", linear, "cases.csv", "--vote", "--id", "patient")
    give(Path("cases.csv").read_bytes())
    given = ckcv("predict", linear, "-", "--vote", "--id", "patient", "--out", "-")
    assert given == expected
    table = read(expected[1])
    assert (table.column_names[:3], table["patient"][0].as_py()) == (["row", "patient", "prediction"], "p0")
    for content in (b"", b"a,b\n1\n"):
        give(content)
        code, shown, messages = ckcv("predict", linear, "-")
        assert (code, shown) == (2, "")
        assert "standard input" in messages
        assert "/tmp" not in messages


LABELS = {
    "a newline": ("a\nb", "a\\nb", "a\\nb", "a\\\\nb"),
    "a tab": ("\t=1", "no", "\\t=1", "no"),
    "a formula": ('=HYPERLINK("x")', "-", '=HYPERLINK("x")', "-"),
}


@pytest.mark.parametrize("case", LABELS)
def test_a_prediction_file_holds_no_control_character(case: str, ckcv: Command, tmp_path: Path) -> None:
    one, other, *written = LABELS[case]
    rng = np.random.default_rng(0)
    y = np.where(np.arange(40) % 2, one, other)
    columns = pa.table({"a": rng.normal(size=40) + 2 * (y == one), "b": rng.normal(size=40), "y": y})
    parquet.write_table(columns, tmp_path / "rows.parquet")
    few = ("--learner", "tree", "--k", "3", "--n-splits", "3")
    ckcv("run", tmp_path / "rows.parquet", "--target", "y", "--out", tmp_path / "run", *few)
    for safe in ((), ("--csv-safe",)):
        words = ("predict", tmp_path / "run", tmp_path / "rows.parquet", "--seed", 1, *safe)
        _, shown, _ = ckcv(*words)
        ckcv(*words, "--out", tmp_path / "p.csv")
        assert (tmp_path / "p.csv").read_text() == shown
        assert all(line.isprintable() for line in shown.split("\n"))
        rows = list(reader(shown.splitlines()))
        marks = ["'" if safe and label[0] in "=+-@\t\r" else "" for label in (one, other)]
        expected = {f"{mark}{label}" for mark, label in zip(marks, written, strict=True)}
        assert len(rows) == 41
        assert {row[1] for row in rows[1:]} == expected
    ckcv("predict", tmp_path / "run", tmp_path / "rows.parquet", "--out", tmp_path / "p.parquet")
    assert set(parquet.read_table(tmp_path / "p.parquet")["prediction"].to_pylist()) == {one, other}


def test_numbers_are_no_formulas(ckcv: Command, patients_run: Path, patients: Path) -> None:
    """A score below zero begins with a minus, and stays a number."""
    words = ("predict", patients_run, patients, "--seed", 1)
    assert ckcv(*words, "--csv-safe") == ckcv(*words)


VERDICTS = {  # how a table differs, what is asked of it, the verdict, and what predict says of it
    "may be quoted": ("", (), ()),
    "with caution": ("twice", (), ("Quote with CAUTION: in the long run at most ", "CAUTION: ")),
    "nothing yet": ("noise", (), ("Nothing can be quoted yet. ",)),
    "not accepted": ("", ("--accept", "error<=0.001"), ("NOT ACCEPTED: ", "May be quoted: ")),
    "question": ("visit_id", (), ("Quote with CAUTION: ", "QUESTION: ")),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_predict_and_list_say_whether_the_run_may_be_quoted(ckcv: Command, tmp_path: Path, name: str) -> None:
    differs, options, words = VERDICTS[name]
    rng = np.random.default_rng(5)
    y, size = np.arange(200) % 2, rng.normal(size=200)
    columns = {"size": size + 2 * (y if differs != "noise" else 0), "y": np.where(y, "ill", "well")}
    if differs == "visit_id":  # each of four rows
        columns[differs] = np.arange(200) // 4
    table, run = pa.table(columns), tmp_path / "r"
    csv.write_csv(pa.concat_tables([table] * (2 if differs == "twice" else 1)), tmp_path / "t.csv")
    asked = ("--target", "y", "--learner", "naive_bayes", "--seed", 1 << 40, *STUDY, "--out", run)
    assert ckcv("run", tmp_path / "t.csv", *asked, *options)[0] == (5 if options else 0)
    result, before = load_run(run), snapshot(run)
    verdict = "with caution" if name == "question" else name
    assert find_verdict(result) == verdict
    code, _, said = ckcv("predict", run, tmp_path / "t.csv")
    lines, screen = said.splitlines(), unwrap(ckcv("status", run, "--details")[1])
    assert (code, all(any(line.startswith(each) for line in lines) for each in words)) == (0, True)
    told = [line for line in lines if line.startswith(("NOT", "Quote", "Nothing", "May", "CAUTION", "QUEST"))]
    assert bool(told) == bool(words)
    assert all(
        line.replace("CAUTION: ", "", line.startswith("C")) in screen for line in told if line[0] != "Q"
    )
    by_full = ckcv("predict", run, tmp_path / "t.csv", "--full")[2]
    assert not any(each in by_full for each in ("Quote with", "May be quoted", "Nothing can be quoted"))
    assert ("NOT ACCEPTED: " in by_full) == bool(options)
    rows, listed = json.loads(ckcv("list", run, "--json")[1])["runs"], ckcv("list", run)[1].splitlines()
    assert [row["verdict"] for row in rows] == [verdict]
    place = listed[0].index("verdict")
    assert listed[1][place:].startswith(f"{verdict}  ")
    assert snapshot(run) == before


@pytest.mark.parametrize("learner", ["linear", "tree"])  # many scores of a tree are the same
@pytest.mark.parametrize("positive", ["ill", "well"])
def test_the_score_written_is_what_the_cut_off_is_of(
    ckcv: Command, tmp_path: Path, positive: str, learner: str
) -> None:
    task = blobs(400, shift=1.5)
    y = np.where(task.y, "well", "ill")
    rows, run, few = tmp_path / "rows.csv", tmp_path / "run", ("--k", "3", "--n-splits", "3")
    csv.write_csv(pa.table({"a": task.X[:, 0], "b": task.X[:, 1], "y": y}), rows)
    asked = ("--positive", positive, "--require", "sensitivity>=0.6", *few)
    assert ckcv("run", rows, "--target", "y", "--out", run, "--learner", learner, *asked)[0] == 0
    _, shown, said = ckcv("predict", run, rows)
    result, written = load_run(run), read(shown)
    score, flag = (written[name].to_numpy() for name in ("score", "flag"))
    cut_off = result.claims[0].cut_off
    assert np.array_equal(score >= cut_off, flag)
    assert f"column flag: where score, larger for '{positive}', is at least {cut_off}" in unwrap(said)
    asked_of = {"cut_off": cut_off, "positive": positive, "claim": "sensitivity,specificity"}
    counts = judge(y, score=score, **asked_of).count_classes()
    at, is_positive = sorted(["ill", "well"]).index(positive), y == positive
    assert counts[[at, 1 - at], at].tolist() == [np.sum(flag & is_positive), np.sum(flag & ~is_positive)]
    own = read(ckcv("predict", run, rows, "--refit")[1])
    assert np.array_equal(own["score"].to_numpy() > 0, own["prediction"].to_numpy() == positive)
    in_python = result.predictions(task.X, result.rule("refit")).score  # larger for the second label
    assert in_python == pytest.approx(score if positive == "well" else -score, rel=1e-11)
    vote = ckcv("predict", run, rows, "--vote")[2]
    assert "column flag by the model fitted on the learning rows with cut-off" in unwrap(vote)
    assert "column flag: where score" not in unwrap(vote)
