"""Words for empty cells (NA, none), and labels of several forms: what is said, asked, joined, kept."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray import CKCVClassifier, load_run, verify
from ckcv_ray.errors import InputError
from ckcv_ray.runs.compare import compare
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.watch import watch
from ckcv_ray.study.study import Execution, Study
from ckcv_ray.tables.columns import ColumnKind, DeclaredTypes
from ckcv_ray.tables.named import read, read_task
from ckcv_ray.tables.read import read_file
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import Task, make_test_rows

NAMIBIA = DeclaredTypes(keep_values=("Na",))  # in any case of letters
COUNTRIES = ["NA", "ZA", "", "DE"] * 10
DRINKS = ["none", "some", "much", "some", "none"] * 8
LABELS = ["yes", "no"] * 20


def frame(country: list[str] = COUNTRIES, y: list[str] = LABELS) -> pd.DataFrame:
    return pd.DataFrame({"x": np.arange(40) % 7 / 2, "country": country, "drink": DRINKS, "y": y})


def write(rows: pd.DataFrame, name: str, folder: Path) -> Path:
    path = folder / name
    {".csv": rows.to_csv, ".parquet": rows.to_parquet, ".xlsx": rows.to_excel}[path.suffix](path, index=False)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.xlsx"])
def test_each_reader_hands_over_the_words_and_they_are_gaps_unless_they_are_kept(name, tmp_path):
    path = write(frame(), name, tmp_path)
    cells = read_file(path)["country"].to_pylist()
    assert [cell or "" for cell in cells] == COUNTRIES
    task, _ = read_task(path)
    assert task.schema[1].levels == ("DE", "ZA")
    assert [found.describe() for found in task.gap_words] == [
        "20 of 40 rows (50 %), by the words 'NA' in 10 (--keep-values NA keeps these)",
        "16 of 40 rows (40 %), by the words 'none' in 16 (--keep-values none keeps these)",
    ]
    kept, _ = read_task(path, asked=NAMIBIA)
    assert kept.schema[1].levels == ("DE", "NA", "ZA")
    assert np.isnan(kept.X[:, 1]).tolist() == [country == "" for country in COUNTRIES]
    assert kept.schema[2].levels == ("much", "some")
    assert kept.salt == task.salt
    assert kept.digest != task.digest


@pytest.mark.parametrize("word", ["", "unknown"])
def test_other_words_are_refused(word: str) -> None:
    with pytest.raises(InputError, match=f"keep_values='{word}': expected words that are taken for empty"):
        Task.of(frame()[["x"]], LABELS, asked=DeclaredTypes(keep_values=("NA", word)))


def test_a_kept_word_among_numbers_is_asked_about(tmp_path: Path) -> None:
    rows = frame()
    rows.loc[3, "x"] = None
    rows.to_csv(tmp_path / "t.csv", index=False, na_rep="NA")
    assert read_task(tmp_path / "t.csv")[0].schema[0].kind is ColumnKind.NUMBER
    with pytest.raises(InputError, match="'x' holds numbers and in 1 row something else, such as 'NA' in"):
        read_task(tmp_path / "t.csv", asked=NAMIBIA)
    assert read_task(tmp_path / "t.csv", asked=NAMIBIA._replace(numeric=("x",)))[0].schema[0].lenient
    for asked in (NAMIBIA, NAMIBIA._replace(drop_unlabelled=True)):
        with pytest.raises(InputError, match="the target 'x' has what is no number, such as 'NA' in row 4"):
            Task.from_table(read_file(tmp_path / "t.csv"), Roles("x", numbers=True), asked)


@pytest.mark.parametrize("written", [True, False])
def test_labels_that_are_words_are_counted_and_may_be_kept(written: bool, tmp_path: Path) -> None:
    rows = frame(y=["yes", "no", "NA", "no", ""] * 8)
    columns = read_file(write(rows, "t.csv", tmp_path)) if written else pa.Table.from_pandas(rows)
    with pytest.raises(InputError) as refused:
        Task.from_table(columns)
    assert str(refused.value) == (
        "the target 'y' has empty cells in 16 of 40 rows (40 %), by the words 'NA' in 8 (--keep-values NA "
        "keeps these), the first in row 3: fix them, or leave these rows out with --drop-unlabelled"
    )
    dropped = DeclaredTypes(drop_unlabelled=True)
    task = Task.from_table(columns, asked=dropped._replace(keep_values=("NA",)))
    assert (task.classes, task.n) == (("NA", "no", "yes"), 32)
    less = Task.from_table(columns, asked=dropped)
    assert (less.classes, less.n) == (("no", "yes"), 24)
    assert less.make_salt(columns) == less.salt != task.salt == task.make_salt(columns)


def test_later_tables_are_read_as_the_one_that_was_learned_from(tmp_path: Path) -> None:
    labels = ["NA" if country == "NA" else "yes" if country == "ZA" else "no" for country in COUNTRIES]
    table = write(frame(y=labels), "t.csv", tmp_path)
    task, _ = read_task(table, asked=NAMIBIA, drop=["drink"])
    run = tmp_path / "run"
    run_job(Job(Study.of(learner="tree", k=(3,), n_splits=3), task, run), Execution("serial"))
    assert verify(run, table=table).ok
    rows = frame(y=labels).assign(id=[f"p{i}" for i in range(40)], prediction=labels)
    new = read_file(write(rows.assign(x=rows["x"] + 0.1), "n.csv", tmp_path))
    loaded = load_run(run)
    assert loaded.predict(new, by="full").tolist() == labels
    assert loaded.task.find_labelled(new).all()
    assert [found["units"] for found in watch(run, new).to_json()["findings"]] == [40, 10, 20, 10]
    assert compare(run, new, predictions="prediction").to_json()["rows"] == 40


JOIN, APART = DeclaredTypes(labels="join"), DeclaredTypes(labels="apart")


def write_labels(folder: Path, labels: list[str], name: str = "table.csv") -> Path:
    """Write a table with these labels, and a column of numbers; as Parquet all labels are text."""
    return write(pd.DataFrame({"x": np.arange(len(labels)) / 2, "y": labels}), name, folder)


WAYS = {  # labels, two that are named, and the classes if they are joined
    "case": (["Yes", "yes", "Yes", "no"], ("Yes", "yes"), ("Yes", "no")),
    "ties": (["no", "NO", "yes", "yes"], ("NO", "no"), ("NO", "yes")),
    "numbers": (["01", "1", "1", "2"], ("1", "01"), (1, 2)),
    "among text": (["1.0", "1", "1", "b"], ("1", "1.0"), ("1", "b")),
    "truth": (["True", "true", "true", "no"], ("true", "True"), ("no", "true")),
    "points": ([">50K", ">50K.", ">50K", "b"], (">50K", ">50K."), (">50K", "b")),
    "hyphens": (["so-so", "so so", "so so", "b"], ("so so", "so-so"), ("b", "so so")),
    "unseen": (["a\u200bb", "ab", "ab", "c"], ("ab", "a\u200bb"), ("ab", "c")),
}


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("file", ["table.csv", "table.parquet"])
def test_labels_of_several_forms_are_asked_about_joined_or_kept(name: str, file: str, tmp_path: Path) -> None:
    labels, named, classes = WAYS[name]
    forms = [label.strip(" ") for label in labels * 3]
    source = write_labels(tmp_path, labels * 3, file)
    with pytest.raises(InputError) as refused:
        read_task(source)
    counted = (f"{form!r} ({forms.count(form)} rows)" for form in named)
    assert all(part in str(refused.value) for part in (*counted, "--labels join", "--labels apart"))
    task = read_task(source, asked=JOIN)[0]
    assert list(map(str, task.classes)) == list(map(str, classes)) or file.endswith("parquet")
    kept = read_task(source, asked=APART)[0]
    assert set(map(str, kept.classes)) == set(forms)
    assert task.n_classes == len(kept.classes) - 1 == 2
    assert [kept.classes[number] for number in kept.y] == forms
    restored = Task.restore(kept.columns(), Roles("y"), kept.schema, salt=kept.salt)
    assert (restored.classes, restored.digest) == (kept.classes, kept.digest)
    for known in (task, kept):  # new rows are read as these were
        again = make_test_rows(read(source).learn, known)
        assert again is not None
        assert np.array_equal(again.y, known.y)


def test_an_estimator_takes_labels_as_they_are() -> None:
    X, y = np.random.default_rng(0).normal(size=(24, 2)), np.array(["a", "A"] * 12)
    fitted = CKCVClassifier(k=(3,), n_splits=2, learner="tree", backend="serial").fit(X, y)
    assert fitted.classes_.tolist() == ["A", "a"]


def test_in_python_labels_are_asked_about_too() -> None:
    X, y = np.arange(12.0)[:, None], ["a", "A", "b"] * 4
    assert Task.of(X, y, asked=JOIN).classes == ("A", "b")
    with pytest.raises(InputError, match="labels='both' is not known: choose from join, apart"):
        Task.of(X, y, asked=DeclaredTypes(labels="both"))
    with pytest.raises(InputError, match="labels=join is for classes, and numbers are predicted"):
        Task.of(X, X[:, 0] ** 2, asked=JOIN, numbers=True)


SPELT = st.sampled_from(["a", "A", " a", "a a", "b", "1", "1.0", "01", "NA", ""])


@given(st.lists(SPELT, min_size=8, max_size=30))
def test_rows_with_a_label_are_learned_from_and_keep_their_class(labels: list[str]) -> None:
    """Whatever is joined, no row changes its class but to one that is written alike."""
    columns = pa.table({"x": np.arange(len(labels)) / 2, "y": labels})
    asked = DeclaredTypes(labels="join", drop_unlabelled=True)
    try:
        task = Task.from_table(columns, Roles("y"), asked, allow_singletons=True)
    except InputError:
        return
    kept = [label.strip() for label in labels if label.strip() not in ("", "NA")]
    assert task.n == len(kept)
    ways = {"A": "a", "a a": "aa", "1.0": "1", "01": "1"}
    for label, number in zip(kept, task.y.tolist(), strict=True):
        name = str(task.classes[number])
        assert ways.get(label, label) == ways.get(name, name)


@pytest.mark.parametrize("gap", ["", "NA", "?", " null "])
@pytest.mark.parametrize("numbers", [False, True])
def test_rows_without_a_label_are_refused_or_left_out(gap: str, numbers: bool, tmp_path: Path) -> None:
    labels = [gap, *"1122", gap, *"3311"]
    source = write_labels(tmp_path, labels)
    columns = read(source).learn
    with pytest.raises(InputError, match=r"empty cells.*, the first in row 1.*--drop-unlabelled"):
        Task.from_table(columns, Roles("y", numbers=numbers))
    task = Task.from_table(columns, Roles("y", numbers=numbers), DeclaredTypes(drop_unlabelled=True))
    assert task.X[:, 0].tolist() == [i / 2 for i, label in enumerate(labels) if label != gap]
