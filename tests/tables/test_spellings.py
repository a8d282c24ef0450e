"""Labels of several forms are asked about, joined or kept apart; rows without a label are left out."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from ckcv_ray import CKCVClassifier
from ckcv_ray.errors import InputError
from ckcv_ray.runs.load import load
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study.study import Execution, Study
from ckcv_ray.tables.columns import DeclaredTypes, fold_text
from ckcv_ray.tables.named import read, read_task
from ckcv_ray.tables.questions import MAX_SPELLINGS
from ckcv_ray.tables.task import Roles, Task, make_test_rows

SMALL = Study.paper(learner="tree", k=(3,), n_splits=2)
JOIN, APART = DeclaredTypes(labels="join"), DeclaredTypes(labels="apart")


def write(folder: Path, labels: list[str], name: str = "table.csv") -> Path:
    """Write a table with these labels, and a column of numbers; as Parquet all labels are text."""
    path = folder / name
    if name.endswith("parquet"):
        parquet.write_table(pa.table({"x": np.arange(len(labels)) / 2, "y": labels}), path)
    else:
        path.write_text("x,y\n" + "".join(f"{i / 2},{label}\n" for i, label in enumerate(labels)))
    return path


WAYS = {  # labels, two that are named, in what they differ, and the classes if they are joined
    "case": (["Yes", "yes", "Yes", "no"], ("Yes", "yes"), "case", ("Yes", "no")),
    "inner spaces": (["a b", "ab", "ab", "c"], ("ab", "a b"), "spaces", ("ab", "c")),
    "tabs": (["a\t", "a", "a", "c"], ("a", "a\t"), "spaces", ("a", "c")),
    "both": (["A b", "ab", "ab", "c"], ("ab", "A b"), "case and spaces", ("ab", "c")),
    "ties": (["no", "NO", "yes", "yes"], ("NO", "no"), "case", ("NO", "yes")),
    "numbers": (["01", "1", "1", "2"], ("1", "01"), "one value", (1, 2)),
    "decimals": (["1.0", "1", "1.0", "2"], ("1.0", "1"), "one value", ("1.0", "2")),
    "among text": (["1.0", "1", "1", "b"], ("1", "1.0"), "one value", ("1", "b")),
    "truth": (["True", "true", "true", "no"], ("true", "True"), "case", ("no", "true")),
    "truths": (["TRUE", "true", "true", "false"], ("true", "TRUE"), "case", ("false", "true")),
    "three": (["a", "A", "a ", "b"], ("a", "A"), "case", ("a", "b")),
    "points": ([">50K", ">50K.", ">50K", "b"], (">50K", ">50K."), "a point", (">50K", "b")),
    "hyphens": (["so-so", "so so", "so so", "b"], ("so so", "so-so"), "hyphens", ("b", "so so")),
    "dashes": (["a\u2013b", "a-b", "a-b", "c"], ("a-b", "a\u2013b"), "hyphens", ("a-b", "c")),
    "unseen": (["a\u200bb", "ab", "ab", "c"], ("ab", "a\u200bb"), "not seen", ("ab", "c")),
}


def test_grades_and_signs_are_labels_of_their_own() -> None:
    for labels in (("A", "A-", "B"), ("-", "+"), ("-1", "1")):
        folded = {fold_text(label) for label in labels}
        assert len(folded) == len(labels)


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("file", ["table.csv", "table.parquet"])
def test_labels_of_several_forms_are_asked_about_joined_or_kept(name: str, file: str, tmp_path: Path) -> None:
    labels, named, reason, classes = WAYS[name]
    forms = [label.strip(" ") for label in labels * 3]
    source = write(tmp_path, labels * 3, file)
    with pytest.raises(InputError) as refused:
        read_task(source)
    counted = (f"{form!r} ({forms.count(form)} rows)" for form in named)
    assert all(part in str(refused.value) for part in (*counted, reason, "--labels join", "--labels apart"))
    task = read_task(source, asked=JOIN)[0]
    assert list(map(str, task.classes)) == list(map(str, classes)) or file.endswith("parquet")
    kept = read_task(source, asked=APART)[0]
    assert set(map(str, kept.classes)) == set(forms)
    assert task.n_classes == len(kept.classes) - 1 == 2
    assert [kept.classes[number] for number in kept.y] == forms
    for known in (task, kept):  # new rows are read as these were
        again = make_test_rows(read(source).learn, known)
        assert again is not None
        assert np.array_equal(again.y, known.y)


def test_many_ways_are_counted(tmp_path: Path) -> None:
    labels = ["yes", "Yes", "YES", "yEs", "yeS", "no", "No"]
    with pytest.raises(InputError) as refused:
        read_task(write(tmp_path, labels * 2))
    said = "'YES' (2 rows), 'Yes' (2 rows), 'yEs' (2 rows), 'yeS' (2 rows) and 1 other, which differ in case"
    assert f"{said} alone, and 1 other label of several forms: say --labels" in str(refused.value)


def test_a_new_label_of_another_form_is_understood_where_one_class_is_like_it(tmp_path: Path) -> None:
    task = read_task(write(tmp_path, ["Yes", "no"] * 4))[0]
    new = pa.table({"x": [1.0, 2.0, 3.0], "y": ["YES", "n o", "yes "]})
    rows = make_test_rows(new, task)
    assert rows is not None
    assert rows.y.tolist() == [0, 1, 0]
    apart = read_task(write(tmp_path, ["Yes", "yes"] * 4), asked=APART)[0]
    with pytest.raises(InputError, match="holds 'YES'"):
        make_test_rows(new, apart)


def test_a_folder_keeps_labels_apart(tmp_path: Path) -> None:
    task = read_task(write(tmp_path, ["Yes", "yes", "no"] * 8), asked=APART)[0]
    run_job(Job(SMALL, task, tmp_path / "run"), Execution("serial"))
    assert load(tmp_path / "run").task.classes == ("Yes", "no", "yes")


def test_an_estimator_takes_labels_as_they_are() -> None:
    X, y = np.random.default_rng(0).normal(size=(24, 2)), np.array(["a", "A"] * 12)
    fitted = CKCVClassifier(k=(3,), n_splits=2, learner="tree", backend="serial").fit(X, y)
    assert fitted.classes_.tolist() == ["A", "a"]


def test_in_python_labels_are_asked_about_too() -> None:
    X, y = np.arange(12.0)[:, None], ["a", "A", "b"] * 4
    with pytest.raises(InputError, match=r"'A' .* and 'a' .* differ in case alone"):
        Task.of(X, y)
    assert Task.of(X, y, asked=JOIN).classes == ("A", "b")
    with pytest.raises(InputError, match="labels='both' is not known: choose from join, apart"):
        Task.of(X, y, asked=DeclaredTypes(labels="both"))
    with pytest.raises(InputError, match="labels=join is for classes, and numbers are predicted"):
        Task.of(X, X[:, 0] ** 2, asked=JOIN, numbers=True)


def test_numbers_that_differ_in_their_last_digit_are_no_single_class(tmp_path: Path) -> None:
    assert read_task(write(tmp_path, ["9007199254740993", "9007199254740992"] * 4))[0].n_classes == 2


def test_very_many_labels_are_too_many_classes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="classes"):
        read_task(write(tmp_path, [f"a{i}" for i in range(MAX_SPELLINGS + 1)]))


LABELS = st.sampled_from(["a", "A", " a", "a a", "b", "1", "1.0", "01", "NA", ""])


@given(st.lists(LABELS, min_size=8, max_size=30))
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
    source = write(tmp_path, labels)
    columns = read(source).learn
    with pytest.raises(InputError, match=r"has empty cells.*, the first in row 1.*--drop-unlabelled"):
        Task.from_table(columns, Roles("y", numbers=numbers))
    task = Task.from_table(columns, Roles("y", numbers=numbers), DeclaredTypes(drop_unlabelled=True))
    assert task.X[:, 0].tolist() == [i / 2 for i, label in enumerate(labels) if label != gap]


def test_rows_with_nan_are_left_out_with_their_groups_and_weights() -> None:
    y = np.array([0.0, 1, np.nan, 0, 1, 0, 1, 0, 1, 0])
    X, weights = np.arange(10.0)[:, None], np.arange(1.0, 11)
    asked = DeclaredTypes(drop_unlabelled=True)
    groups = [0, 1, 2, 3, 4, 5, 6, 6, 7, 7]
    task = Task.of(X, y, groups=groups, asked=asked, sample_weight=weights)
    assert task.n == 9
    assert task.weighting.named is not None
    assert task.weighting.named.tolist() == [1, 2, 4, 5, 6, 7, 8, 9, 10]
    assert len(task.groups) == 9
