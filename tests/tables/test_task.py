"""Tasks: digest, arrays, classes, parts; how columns are understood or refused; twins of a name."""

import json
import re
from dataclasses import asdict
from datetime import date
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet

from ckcv_ray.errors import InputError
from ckcv_ray.tables import roles as module
from ckcv_ray.tables.columns import MAX_CLASSES, NOTHING_ASKED, DeclaredTypes, Schema
from ckcv_ray.tables.named import read, read_task
from ckcv_ray.tables.roles import ClassTarget, Roles
from ckcv_ray.tables.task import Task, make_rows, make_test_rows


def plain_columns(**changed):
    """Columns a, b and y of 8 good rows, some of them replaced; None leaves a column out."""
    columns = {"a": [1.0, 2, 3, 4, 5, 6, 7, 8], "b": [2, 7, 1, 8, 2, 8, 1, 8], "y": [1, 2] * 4, **changed}
    return pa.table({name: values for name, values in columns.items() if values is not None})


def refusal(columns, *args, **options):
    with pytest.raises(InputError) as refused:
        Task.from_table(columns, Roles(*args, **options))
    return str(refused.value)


class Frame:
    """As much of a data frame as is asked for: columns, and a way to become an array."""

    def __init__(self, values, columns):
        self.values = values
        self.columns = columns

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)


def test_arrays_lists_objects_and_frames_are_one_task():
    X, y = np.arange(16.0).reshape(8, 2), ["no", "yes"] * 4
    rows = [tuple(row) for row in X.astype(int).tolist()]
    tables = (X, X.tolist(), rows, X.astype(object), np.asfortranarray(X), Frame(X, ["x0", "x1"]))
    labels = (y, tuple(y), np.array(y), np.array(y, dtype=object), y, y)
    tasks = list(map(Task.of, tables, labels))
    assert len({task.digest for task in tasks}) == 1
    assert tasks[0].features == ("x0", "x1")
    assert all(task.X.flags.c_contiguous for task in tasks)


def test_read_only_input_is_neither_changed_nor_kept():
    X, y = np.array([[-0.0, 1.0], [2.0, 3.0]] * 4), np.array([5, 7] * 4)
    before = X.tobytes(), y.tobytes()
    X.flags.writeable = y.flags.writeable = False
    task = Task.of(X, y)
    Task.from_table(task.columns(), Roles(task.target.name))
    assert (X.tobytes(), y.tobytes()) == before
    assert not np.shares_memory(task.X, X)
    assert not np.shares_memory(task.y, y)


def test_there_are_at_most_so_many_classes():
    most, more = (pa.table({"a": range(0, 4 * n, 2), "y": [*range(n)] * 2}) for n in (1000, 1001))
    assert Task.from_table(most).n_classes == MAX_CLASSES == 1000
    assert re.search(r"has 1,001 classes \(0, 1, 2.*expected 2 to 1,000", refusal(more))


def test_without_leaves_the_other_rows_in_their_order():
    rows = np.random.default_rng(0).normal(size=(15, 2))
    task = Task.of(rows, ["bac"[i % 3] for i in range(15)])
    left = task.without(np.array([0, 4, 8]))
    kept = [i for i in range(15) if i not in (0, 4, 8)]
    assert np.array_equal(left.X, task.X[kept])
    assert left.X.flags.c_contiguous
    assert np.array_equal(left.y, task.y[kept])
    assert (left.classes, left.features, left.target) == (task.classes, task.features, task.target)
    left = task.without(np.flatnonzero(task.y == 0))
    assert (set(left.y.tolist()), left.classes) == ({1, 2}, task.classes)
    with pytest.raises(InputError, match="10 of 15 rows held out leave 5: leave at least 6 to learn from"):
        task.without(np.arange(10))


def test_rows_to_test_on_are_matched_by_name_and_may_lack_a_class():
    task = Task.from_table(plain_columns(y=list("aabbccab")))
    rows = make_test_rows(pa.table({"y": ["c", "a"], "b": [1, 2], "other": ["u", "v"], "a": [3, 4]}), task)
    assert rows.X.tolist() == [[3, 1], [4, 2]]
    assert rows.y.tolist() == [2, 0]
    assert make_test_rows(None, task) is None
    assert make_test_rows(rows, task).y.tolist() == [2, 0]


TARGETS = {
    "text": ("no", "yes"),
    "digits as text": ("9", "10"),
    "int": (-7, 3),
    "large int": (2**62, 2**62 + 1),
    "float": (-0.25, 1e18),
    "bool": (False, True),
}


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("larger_first", [False, True])
def test_labels_are_sorted_and_numbered_in_that_order(kind, larger_first):
    smaller, larger = TARGETS[kind]
    values = [larger, smaller] * 4 if larger_first else [smaller, larger] * 4
    expected = [int(value == larger) for value in values]
    tables = (plain_columns(y=labels) for labels in (values, pa.array(values).dictionary_encode()))
    arrays = (values, np.array(values), np.array(values, dtype=object))
    for task in (*map(Task.from_table, tables), *(Task.of(np.eye(8), labels) for labels in arrays)):
        assert task.classes == (smaller, larger)
        assert [type(label) for label in task.classes] == [type(smaller)] * 2
        assert task.y.tolist() == expected
        assert task.y.dtype == np.int32


@pytest.mark.parametrize(
    ("classes", "said", "unknown"),
    [
        *product([(1, 2)], ["1 and 2"], [3, -1, 0, None]),
        *product([("no", "yes")], ["'no' and 'yes'"], ["maybe", "", None]),
        *product([("a", "b", "c")], ["'a', 'b', 'c'"], ["d", "", None]),
    ],
)
def test_a_label_that_is_none_of_them_is_named_even_if_it_is_nothing(classes, said, unknown):
    with pytest.raises(InputError, match=rf"column 'y' holds {unknown!r}: the labels are {said}"):
        ClassTarget("y", classes).read(pa.table({"y": pa.array([*classes, unknown])}))


def test_labels_that_unfold_to_too_much_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_TABLE_BYTES", 8 * 300)
    sound, long = (plain_columns(y=["no", "y" * letters] * 4) for letters in (300, 301))
    assert Task.from_table(sound).classes == ("no", "y" * 300)
    assert "labels of 'y' take more than" in refusal(long)


def test_features_and_drop_choose_columns():
    columns = plain_columns(c=list("abcdefgh"))
    assert Task.from_table(columns, Roles(drop=["c"])).features == ("a", "b")
    assert Task.from_table(columns, Roles(features=["b", "a"])).features == ("b", "a")
    assert Task.from_table(columns, Roles(features=["b", "c"], drop=["c"])).features == ("b",)
    assert Task.from_table(columns, Roles(features=["b", "y"])).features == ("b",)
    assert Task.from_table(columns, Roles(features=["a", "a"])).features == ("a",)
    assert Task.from_table(plain_columns()).rows_from(columns.slice(0, 0)).shape == (0, 2)
    assert Task.from_table(columns, Roles(features=["b"])).X[:, 0].tolist() == [2, 7, 1, 8, 2, 8, 1, 8]


LEAST = "each needs at least 2; leave the others out, or if they are few score them by ckcv evaluate"
REFUSED = [  # what is changed in the columns a, b and y, how they are used, and what is said
    ({"y": [1] * 8}, {}, "'y' has 1 class (1): expected 2 to 1,000"),
    ({"y": [1, *[2] * 7]}, {}, f"the target 'y' has classes of 1 row (1): {LEAST}"),
    ({"y": list("aaccabda")}, {}, f"the target 'y' has classes of 1 row (b, d): {LEAST}"),
    ({"y": [i / 2 for i in range(8)]}, {}, "; to predict numbers, choose a learner of numbers"),
    ({"y": [1, 2, None, 1, 2, 1, 2, 1]}, {}, "empty cells in 1 of 8 rows (12.5 %), the first in row 3"),
    ({"y": [-np.inf, np.inf] * 4}, {}, "the target 'y' has -inf: labels are text or finite numbers"),
    ({"label": [1, 2] * 4}, {}, "columns y, label could be the target: name it with --target"),
    ({"y": None}, {}, "none of target, y, label, class is the target: name it with --target; the col"),
    ({"y": None}, {"target": "b "}, "there is no column 'b ' for the target: the columns are a, b"),
    ({}, {"target": "Y"}, "there is no column 'Y' for the target: the columns are a, b, y; did you mean"),
    ({}, {"features": ["a", "nowhere"]}, "there is no column 'nowhere' for --"),
    ({}, {"drop": ["y"]}, "column 'y' cannot be --drop and --target"),
    ({}, {"drop": ["a", "b"]}, "no feature left besides the target 'y': correct --features or --drop"),
    ({}, {"features": ["y"]}, "no feature left besides the target 'y'"),
    ({"a": [1.0], "b": [2], "y": [1]}, {}, "the table has 1 row: 6 are needed"),
    ({"a": [1.0] * 8, "b": [2] * 8}, {}, "nothing varies from row to row in a, b: there is nothing to learn"),
    ({f"c{i}": range(8) for i in range(97)}, {"target": "Y"}, "c8, ... (100 in all)"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "roles", "expected"), REFUSED)
def test_a_table_that_cannot_be_learned_from(changed, roles, expected):
    assert expected in refusal(plain_columns(**changed), **roles)


def test_classes_of_a_single_row_may_be_scored_if_they_are_few():
    with pytest.raises(InputError, match=r"classes of 1 row \(b, c, d\): most need at least 2;"):
        Task.from_table(plain_columns(y=list("aaaaabcd")), allow_singletons=True)
    assert Task.from_table(plain_columns(y=list("aacccbaa")), allow_singletons=True).n_classes == 3
    assert Task.from_table(plain_columns(a=[1.0] * 8)).features == ("a", "b")  # one that varies is enough
    assert Task.from_table(plain_columns().slice(0, 6)).n == 6


def test_all_columns_that_are_refused_are_named_at_once():
    messages = refusal(plain_columns(odd=list("abcdefgh"), none=pa.nulls(8), late=[1.0] * 7 + [float("inf")]))
    assert all(f"column {name!r}" in messages for name in ("odd", "none", "late"))


Y = [0, 1] * 4


def column(values, asked=NOTHING_ASKED):
    (found,), X = Schema.learn(pa.table({"c": values}), ["c"], asked)
    return found, X[:, 0]


@given(
    st.lists(st.one_of(st.none(), st.floats(-1e9, 1e9)), min_size=8, max_size=8),
    st.lists(st.sampled_from([None, "a", "b", " c", "?"]), min_size=8, max_size=8),
    st.lists(st.one_of(st.none(), st.dates(date(1800, 1, 1), date(2200, 1, 1))), min_size=8, max_size=8),
)
def test_a_table_is_understood_again_from_the_columns_of_its_task(numbers, words, days):
    rows = {"x": [*numbers, 1.0, 2.0], "w": [*words, "a", "a"], "d": [*days, date(2000, 1, 1), None]}
    columns = pa.table(rows | {"y": [*Y, 0, 1]})
    task = Task.from_table(columns)
    schema = Schema.from_json(json.loads(json.dumps([asdict(one) for one in task.schema])))
    again = Task.restore(task.columns(), Roles("y"), schema, salt=task.salt)
    assert again.digest == task.digest
    assert again.X.tobytes() == task.X.tobytes()


def test_what_a_column_holds_and_its_levels_change_the_digest():
    def digest(values, asked=NOTHING_ASKED):
        return Task.from_table(pa.table({"a": values, "b": ["u", "v"] * 4, "y": Y}), asked=asked).digest

    words = digest(["x", "y"] * 4)
    assert len({words, digest(["x", "z"] * 4), digest([0, 1] * 4)}) == 3
    assert digest([0, 1] * 4) != digest([0, 1] * 4, DeclaredTypes(categorical=["a"]))
    assert digest(pa.array(["x", "y"] * 4).dictionary_encode()) == words


N = 40
RNG = np.random.default_rng(np.random.SeedSequence(3))
AGE, DOSE = RNG.normal(size=(2, N)).round(3).tolist()
CITY = RNG.choice(["Rome", "Oslo", "Bonn"], N).tolist()
OUTCOME = ["ill", "well"] * (N // 2)
NAMES = ["age", "dose", "city", "y"]
PLAIN = pa.Table.from_arrays(list(map(pa.array, (AGE, DOSE, CITY, OUTCOME))), names=NAMES)


def with_twin(name: str, values: list[object], place: int = 0) -> pa.Table:
    return PLAIN.add_column(place, name, pa.array(values))


def written(columns: pa.Table, file: Path) -> Path:
    (csv.write_csv if file.suffix == ".csv" else parquet.write_table)(columns, file)
    return file


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["age", "city", "y"])
def test_a_table_with_an_identical_copy_is_the_one_without(name: str, suffix: str, tmp_path: Path) -> None:
    twins, place = with_twin(name, PLAIN[name].to_pylist()), tmp_path / f"a.{suffix}"
    usual = Task.from_table(PLAIN)
    task, _ = read_task(written(twins, place))
    assert task.salt == usual.salt == usual.make_salt(read(place).learn)
    assert sorted(task.features) == sorted(usual.features)
    assert np.array_equal(usual.rows_from(twins), usual.X)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_that_differ_are_refused_unless_all_are_left_out(suffix: str, tmp_path: Path) -> None:
    file = written(with_twin("age", DOSE), tmp_path / f"a.{suffix}")
    with pytest.raises(InputError, match=r"two columns are named 'age', and differ: .* with --drop age$"):
        read_task(file)
    for roles in ({"drop": ["age"]}, {"features": ["dose", "city"]}):
        task, _ = read_task(file, **roles)
        assert task.features == ("dose", "city")
        assert task.salt == task.make_salt(read(file).learn)


@pytest.mark.parametrize("role", ["target", "group", "weight", "id"])
def test_a_column_with_a_purpose_is_a_single_one(role: str) -> None:
    table = with_twin("city", OUTCOME)
    with pytest.raises(InputError, match=r"two columns are named 'city', and differ: rename or remove one$"):
        Task.from_table(table, Roles(**{"target": "y", role: "city"}))
    with pytest.raises(InputError, match="two columns are named 'y'"):
        Task.from_table(with_twin("y", CITY))


def test_frames_of_python_are_read_alike() -> None:
    frame = PLAIN.select(["age", "dose"]).to_pandas()
    frame.index = range(100, 100 + N)
    task = Task.of(frame, OUTCOME)
    twins = frame[["age", "dose", "age"]]
    for X in (twins, pa.Table.from_arrays([PLAIN[name] for name in twins], names=list(twins))):
        assert Task.of(X, OUTCOME).digest == task.digest
        assert np.array_equal(make_rows(X, task), task.X)
    twins = pd.concat([frame, frame[["dose"]].rename(columns={"dose": "age"})], axis=1)
    with pytest.raises(InputError, match=r"two columns are named 'age', and differ: .* --drop age"):
        Task.of(twins, OUTCOME)
    with pytest.raises(InputError, match=r"two columns are named 'age', and differ: rename or remove one$"):
        make_rows(twins, task)


def test_columns_keep_their_names_and_the_task_is_that_of_the_file(tmp_path: Path) -> None:
    """Those of y, groups and weights too; a name that another column has is none for them."""
    names = {"patient": [i // 2 for i in range(N)], "dose": [1 + i % 3 for i in range(N)]}
    frame = PLAIN.select(["age"]).to_pandas().assign(ill=OUTCOME, **names)
    frame.to_csv(tmp_path / "table.csv", index=False)
    of_file, _ = read_task(tmp_path / "table.csv", "ill", group="patient", weight="dose")
    weight = pl.Series("dose", names["dose"])
    task = Task.of(frame[["age"]], frame["ill"], frame["patient"], sample_weight=weight)
    assert task.digest == of_file.digest
    assert (task.target.name, task.units.name, task.weighting.column) == ("ill", "patient", "dose")
    task = Task.of(frame, frame["ill"], frame["patient"], sample_weight=weight)
    assert (task.target.name, task.units.name, task.weighting.column) == ("y", "group", "weight")


def test_of_new_rows_the_columns_that_were_learned_from_are_looked_at() -> None:
    task = Task.from_table(PLAIN, Roles(drop=["dose"]))
    assert np.array_equal(task.rows_from(with_twin("dose", AGE)), task.X)
    for name in ("age", "city"):
        with pytest.raises(InputError, match=f"two columns are named '{name}', and differ"):
            task.rows_from(with_twin(name, DOSE))
    copied = make_test_rows(with_twin("y", OUTCOME), task)
    assert copied is not None
    assert np.array_equal(copied.y, task.y)
    with pytest.raises(InputError, match="two columns are named 'y'"):
        make_test_rows(with_twin("y", CITY), task)


BLOOD = ["blood pressure ", "Blood-pressure", "BLOOD PRESSURE", "Blood pressure.", "Blood presure"]


@pytest.mark.parametrize("came", [*BLOOD, "Blood\u2010pressure", "Blood\u200b pressure"])
def test_a_column_whose_name_is_written_otherwise_is_offered(came: str) -> None:
    task = Task.from_table(PLAIN.rename_columns(["Blood pressure", *NAMES[1:]]))
    with pytest.raises(InputError, match=r"^there is no column 'Blood pressure': the columns are") as refused:
        task.rows_from(PLAIN.rename_columns([came, *NAMES[1:]]))
    assert str(refused.value).endswith(f"; did you mean {came!a}?")
