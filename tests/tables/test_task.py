"""Tasks: digest, arrays, classes, parts; columns with one name; the salt, which depends on the rows alone."""

import json
from dataclasses import asdict
from datetime import date, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import blobs
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv
from scipy import sparse
from scipy.stats import binom
from sklearn.datasets import dump_svmlight_file

from ckcv_ray import Execution, Job, Study, verify
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.draws import Draws, hold_out
from ckcv_ray.errors import InputError, read_as
from ckcv_ray.runs.run import run_job
from ckcv_ray.tables import columns
from ckcv_ray.tables import roles as module
from ckcv_ray.tables.columns import NOTHING_ASKED, Column, DeclaredTypes, Schema
from ckcv_ray.tables.named import read, read_task
from ckcv_ray.tables.predictions import PredictionColumns, read_predictions
from ckcv_ray.tables.questions import describe_sorted
from ckcv_ray.tables.read import Reading
from ckcv_ray.tables.roles import ClassTarget, Roles
from ckcv_ray.tables.task import (
    Task,
    TestRows,
    compute_salt,
    make_rows,
    make_test_rows,
    read_cell_values,
    read_distinct,
)


def plain_columns(**changed):
    """Columns a, b and y of 8 good rows, some replaced; None leaves a column out."""
    columns = {"a": [1.0, 2, 3, 4, 5, 6, 7, 8], "b": [2, 7, 1, 8, 2, 8, 1, 8], "y": [1, 2] * 4, **changed}
    return pa.table({name: values for name, values in columns.items() if values is not None})


def refusal(columns, *args, **options):
    with pytest.raises(InputError) as refused:
        Task.from_table(columns, Roles(*args, **options))
    return str(refused.value)


def test_arrays_lists_objects_and_frames_are_one_task():
    X, y = np.arange(16.0).reshape(8, 2), ["no", "yes"] * 4
    tables = (X, X.astype(int).tolist(), X.astype(object), np.asfortranarray(X), pd.DataFrame(X))
    tasks = list(map(Task.of, tables, (y, tuple(y), np.array(y), np.array(y, dtype=object), y)))
    assert len({task.digest for task in tasks}) == 1
    assert tasks[0].features == ("x0", "x1")
    assert all(task.X.flags.c_contiguous for task in tasks)


NUMBERED = pd.DataFrame(np.arange(24.0).reshape(8, 3) ** 2)  # columns 0, 1 and 2
LETTERED = NUMBERED.set_axis(["a", "b", "c"], axis=1)


@pytest.mark.parametrize("learned", [[0, 1, 2], [2, 0, 1], [1, 2], ["0", "2"]], ids=str)
def test_numbered_columns_are_matched_by_name_in_any_order(learned: list[object]) -> None:
    both = pd.concat([NUMBERED, NUMBERED.rename(columns=str)], axis=1)
    task = Task.of(both[learned], ["no", "yes"] * 4)
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2], ["2", "0", "1"]):
        assert np.array_equal(make_rows(both[order], task), task.X)
    assert np.array_equal(make_rows(both[learned].to_numpy(), task), task.X)
    with pytest.raises(InputError, match=r"there is no column 'x?2'"):
        make_rows(NUMBERED[[0, 1]], task)


def test_columns_that_are_counted_are_those_of_an_array_unless_names_are_numbers() -> None:
    task = Task.of(LETTERED, ["no", "yes"] * 4)
    assert np.array_equal(make_rows(NUMBERED, task), task.X)
    for other in (NUMBERED[[2, 1, 0]], NUMBERED[[0, 1]]):
        with pytest.raises(InputError, match="there is no column 'a': the columns are"):
            make_rows(other, task)


def test_without_leaves_the_other_rows_in_their_order():
    rows = np.random.default_rng(0).normal(size=(15, 2))
    task = Task.of(rows, ["bac"[i % 3] for i in range(15)])
    left = task.without(np.array([0, 4, 8]))
    kept = [i for i in range(15) if i not in (0, 4, 8)]
    assert np.array_equal(left.X, task.X[kept])
    assert left.X.flags.c_contiguous
    assert np.array_equal(left.y, task.y[kept])
    assert (left.classes, left.features, left.target) == (task.classes, task.features, task.target)
    with pytest.raises(InputError, match="10 of 15 rows held out leave 5: leave at least 6 to learn from"):
        task.without(np.arange(10))


def test_rows_to_test_on_are_matched_by_name_and_may_lack_a_class():
    task = Task.from_table(plain_columns(y=list("aabbccab")))
    rows = make_test_rows(pa.table({"y": ["c", "a"], "b": [1, 2], "other": ["u", "v"], "a": [3, 4]}), task)
    assert rows.X.tolist() == [[3, 1], [4, 2]]
    assert rows.y.tolist() == [2, 0]
    assert make_test_rows(None, task) is None
    assert make_test_rows(rows, task).y.tolist() == [2, 0]


@pytest.mark.parametrize("last", [[1, 2, 1], ["u", "v", "w"]], ids=["plain", "words"])
def test_rows_to_test_on_have_one_shape_and_one_order(last: list[Any]) -> None:
    task = Task.from_table(pa.table({"a": range(12), "b": last * 4, "y": list("abcaab") * 2}))
    assert make_test_rows(TestRows(np.asfortranarray(task.X), task.y), task).X.flags.c_contiguous
    for y in (task.y[:, None], task.y[0], task.y[:0], task.y[:-1], task.y + 3):
        with pytest.raises(InputError, match=r"test rows have X of shape \(12, 2\) and y of shape "):
            make_test_rows(TestRows(task.X, y), task)


TARGETS = [("no", "yes"), ("9", "10"), (-7, 3), (2**62, 2**62 + 1), (-0.25, 1e18), (False, True)]


@pytest.mark.parametrize(("smaller", "larger"), TARGETS)
def test_labels_are_sorted_and_numbered_in_that_order(smaller, larger):
    values = [larger, smaller] * 4
    tables = (plain_columns(y=labels) for labels in (values, pa.array(values).dictionary_encode()))
    arrays = (values, np.array(values), np.array(values, dtype=object))
    for task in (*map(Task.from_table, tables), *(Task.of(np.eye(8), labels) for labels in arrays)):
        assert task.classes == (smaller, larger)
        assert [type(label) for label in task.classes] == [type(smaller)] * 2
        assert task.y.tolist() == [1, 0] * 4
        assert task.y.dtype == np.int32


def test_a_label_that_is_none_of_them_is_named_even_if_it_is_nothing():
    for classes, said in (((1, 2), "1 and 2"), (("a", "b", "c"), "'a', 'b', 'c'")):
        for unknown in (type(classes[0])(), None):
            with pytest.raises(InputError, match=rf"column 'y' holds {unknown!r}: the labels are {said}"):
                ClassTarget("y", classes).read(pa.table({"y": pa.array([*classes, unknown])}))


def test_labels_and_categories_that_unfold_to_too_much_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_TABLE_BYTES", 8 * 300)
    sound, long = (plain_columns(y=["no", "y" * letters] * 4) for letters in (300, 301))
    assert Task.from_table(sound).classes == ("no", "y" * 300)
    assert "labels of 'y' take more than" in refusal(long)
    task = Task.from_table(plain_columns(a=sound["y"]))
    monkeypatch.setattr(columns, "MAX_TABLE_BYTES", 300)
    assert "a column takes" in refusal(plain_columns(a=sound["y"].dictionary_encode()))
    with pytest.raises(InputError, match="a column takes"):
        task.columns()


def test_labels_of_a_dictionary_are_those_that_rows_have():
    labels = pa.DictionaryArray.from_arrays(np.arange(8) % 2, ["no", "yes", "Yes", "perhaps"])
    judged = plain_columns(y=["no", "yes"] * 4, b=labels)
    predictions = read_predictions(judged, PredictionColumns("y", "b"), numbers=False)
    assert (predictions.predicted.tolist(), predictions.strange) == ([0, 1] * 4, ())


def test_features_and_drop_choose_columns():
    columns = plain_columns(c=list("abcdefgh"))
    assert Task.from_table(columns, Roles(drop=["c"])).features == ("a", "b")
    assert Task.from_table(columns, Roles(features=["b", "a"])).features == ("b", "a")
    assert Task.from_table(columns, Roles(features=["b", "c"], drop=["c"])).features == ("b",)
    assert Task.from_table(columns, Roles(features=["a", "a", "y"])).features == ("a",)
    assert Task.from_table(plain_columns()).rows_from(columns.slice(0, 0)).shape == (0, 2)
    assert Task.from_table(columns, Roles(features=["b"])).X[:, 0].tolist() == [2, 7, 1, 8, 2, 8, 1, 8]


LEAST = "(a, b, c, d): each needs at least 2; leave these out, or score by ckcv evaluate, which prov"
FEW = " among its 2 (1, 2): each needs at least 2; score by ckcv evaluate, which proves nothing; to predict n"
REFUSED = [  # what is changed in the columns a, b and y, how they are used, and what is said
    ({"y": list("aaccabda")}, {}, f"the target 'y' has classes of 1 row (b, d) among its 4 {LEAST}"),
    ({"y": [1] * 7 + [2]}, {}, FEW),
    ({"a": range(0, 4004, 2), "b": None, "y": [*range(1001)] * 2}, {}, "has 1,001 classes (0, 1, 2"),
    ({"y": [i / 2 for i in range(8)]}, {}, ": each needs at least 2; to predict numbers, choose a learner"),
    ({"y": None}, {}, "none of target, y, label, class is the target: name it with --target; the col"),
    ({}, {"target": "Y"}, "there is no column 'Y' for the target: the columns are a, b, y; did you mean"),
    ({}, {"drop": ["a", "b"]}, "no feature left besides the target 'y': correct --features or --drop"),
    ({"a": [1.0], "b": [2], "y": [1]}, {}, "the table has 1 row: 6 are needed"),
    ({"a": [1.0] * 8, "b": [2] * 8}, {}, "nothing varies from row to row in a, b: there is nothing to learn"),
    ({f"c{i}": range(8) for i in range(97)}, {"target": "Y"}, "c8, ... (100 in all)"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "roles", "expected"), REFUSED)
def test_a_table_that_cannot_be_learned_from(changed, roles, expected):
    assert expected in refusal(plain_columns(**changed), **roles)


def test_classes_of_a_single_row_may_be_scored_if_they_are_few():
    with pytest.raises(InputError, match=r"1 row \(b, c, d\) among its 4 \(a, b, c, d\): most need .* 2$"):
        Task.from_table(plain_columns(y=list("aaaaabcd")), allow_singletons=True)
    assert Task.from_table(plain_columns(y=list("aacccbaa")), allow_singletons=True).n_classes == 3


Y = [0, 1] * 4


@given(
    st.lists(st.one_of(st.none(), st.floats(-1e9, 1e9)), min_size=8, max_size=8),
    st.lists(st.sampled_from([None, "a", "b", " c", "?"]), min_size=8, max_size=8),
    st.lists(st.one_of(st.none(), st.dates(date(1800, 1, 1), date(2200, 1, 1))), min_size=8, max_size=8),
)
def test_a_table_is_understood_again_from_the_columns_of_its_task(numbers, words, days):
    rows = {"x": [*numbers, 1.0, 2.0], "w": [*words, "a", "a"], "d": [*days, date(2000, 1, 1), None]}
    columns = pa.table(rows | {"y": [*Y, 0, 1]})
    task = Task.from_table(columns)
    known = read_as(list[Column], json.loads(json.dumps([asdict(one) for one in task.schema])))
    again = Task.restore(task.columns(), Roles("y"), Schema(tuple(known)), salt=task.salt)
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


@pytest.mark.parametrize("name", ["age", "city", "y"])
def test_a_table_with_an_identical_copy_is_the_one_without(name: str, tmp_path: Path) -> None:
    twins, usual = with_twin(name, PLAIN[name].to_pylist()), Task.from_table(PLAIN)
    csv.write_csv(twins, tmp_path / "a.csv")
    task, _ = read_task(tmp_path / "a.csv")
    assert task.salt == usual.salt == usual.make_salt(read(tmp_path / "a.csv").learn)
    assert sorted(task.features) == sorted(usual.features)
    assert np.array_equal(usual.rows_from(twins), usual.X)


@pytest.mark.parametrize("role", ["target", "group", "weight", "id"])
def test_a_column_with_a_purpose_is_a_single_one(role: str) -> None:
    table = with_twin("city", OUTCOME)
    with pytest.raises(InputError, match=r"two columns are named 'city', and differ: rename or remove one$"):
        Task.from_table(table, Roles(**{"target": "y", role: "city"}))


def test_frames_of_python_are_read_alike() -> None:
    frame = PLAIN.select(["age", "dose"]).to_pandas()
    frame.index = range(100, 100 + N)
    task = Task.of(frame, OUTCOME)
    twins = frame[["age", "dose", "age"]]
    for X in (twins, pa.Table.from_arrays([PLAIN[name] for name in twins], names=list(twins))):
        assert Task.of(X, OUTCOME).digest == task.digest
        assert np.array_equal(make_rows(X, task), task.X)


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
    with pytest.raises(InputError, match="two columns are named 'city', and differ"):
        task.rows_from(with_twin("city", DOSE))
    assert np.array_equal(make_test_rows(with_twin("y", OUTCOME), task).y, task.y)
    with pytest.raises(InputError, match="two columns are named 'y'"):
        make_test_rows(with_twin("y", CITY), task)


@pytest.mark.parametrize("came", ["BLOOD-PRESSURE ", "Blood presure", "Blood\u200b\u2010pressure"])
def test_a_column_whose_name_is_written_otherwise_is_offered(came: str) -> None:
    task = Task.from_table(PLAIN.rename_columns(["Blood pressure", *NAMES[1:]]))
    with pytest.raises(InputError, match=r"^there is no column 'Blood pressure': the columns are") as refused:
        task.rows_from(PLAIN.rename_columns([came, *NAMES[1:]]))
    assert str(refused.value).endswith(f"; did you mean {came!a}?")


# The salt: which rows there are decides what is drawn, and nothing else does

DELTA, HELD = 0.05, 5


def test_a_bound_fails_as_often_as_for_fixed_positions_if_rows_come_in_random_order() -> None:
    """Over all tables of ten independent labels, with the positions that each table's salt draws."""
    tables = [np.array(wrong) for wrong in product((0, 1), repeat=10)]
    salts = [compute_salt(pa.table({"wrong": wrong}), []) for wrong in tables]
    limits = clopper_pearson(np.arange(HELD + 1), HELD, DELTA)
    rates = np.array([0.1, 0.3, limits[0] + 1e-9, limits[2] + 1e-9])
    likely = np.array([rates ** wrong.sum() * (1 - rates) ** (10 - wrong.sum()) for wrong in tables])
    for seed in range(30):
        held = {salt: hold_out(10, 0.5, Draws(seed, salt)) for salt in set(salts)}
        counts = [wrong[held[salt]].sum() for wrong, salt in zip(tables, salts, strict=True)]
        fails = limits[counts][:, None] < rates
        exact = [binom.pmf(np.arange(HELD + 1), HELD, rate) @ (limits < rate) for rate in rates]
        assert (likely * fails).sum(axis=0) == pytest.approx(exact, abs=1e-12)


def patients() -> pa.Table:
    drawn = blobs(40, seed=3)
    site = [("a", "b", "c")[i % 3] for i in range(40)]
    well = np.where(drawn.y == 1, "well", "ill")
    return pa.table({"age": drawn.X[:, 0], "dose": drawn.X[:, 1], "site": site, "well": well})


def salt(columns: pa.Table, target: str = "well", asked: DeclaredTypes = NOTHING_ASKED, **roles: Any) -> str:
    return Task.from_table(columns, Roles(target, **roles), asked).salt


def test_the_order_of_rows_and_columns_and_what_is_asked_have_no_part_in_it() -> None:
    table = patients()
    usual, shuffled = salt(table), np.random.default_rng(1).permutation(40)
    assert salt(table.take(pa.array(shuffled))) == usual
    assert salt(table.select(["well", "site", "dose", "age"])) == usual
    assert salt(table, drop=["dose"]) == salt(table, features=["age"]) == usual
    assert salt(table, asked=DeclaredTypes(categorical=("site",), labels="apart")) == usual
    assert salt(table, target="site") == usual


def test_every_cell_and_name_that_is_read_has_a_part_in_it() -> None:
    table = patients()
    usual, changed = salt(table), table["dose"].to_pylist()
    changed[7] += 1e-9
    other = table.set_column(1, "dose", [changed])
    assert salt(other) != usual
    dropped = (Task.from_table(one, Roles("well", drop=["dose"])).digest for one in (table, other))
    assert len(set(dropped)) == 2  # of a column that is dropped as well
    assert salt(table.rename_columns(["Age", "dose", "site", "well"])) != usual
    assert salt(table.slice(1)) != usual


def test_what_names_or_numbers_the_rows_has_none() -> None:
    table = patients()
    number, name = np.arange(100, 140), [f"no. {i}" for i in range(40)]
    for column in (number, number[::-1], name):
        assert salt(table.append_column("row", pa.array(column)), drop=["row"]) == salt(table)
    group = pa.array(np.arange(40) // 2)
    assert salt(table.append_column("house", group), group="house") == salt(table)
    assert salt(table.append_column("house", group), id="house") == salt(table)
    assert salt(table.append_column("house", group)) != salt(table)
    assert salt(table.append_column("row", pa.array(3 * number))) != salt(table)


def test_a_frame_its_csv_and_its_parquet_agree(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "age": [50.5, np.nan, 61.0, 47.25] * 5,
            "seen": [datetime(2026, 11, 23), datetime(2026, 11, 24, 12, 30, 1), None, datetime(1969, 1, 1)]
            * 5,
            "site": pd.Categorical(["north", "south", "NA", "n/a"] * 5),
            "note": ["a,b", 'say "x"', "\u00e9", "8:05"] * 5,
            "y": ["no", "yes"] * 10,
        }
    )
    frame.to_csv(tmp_path / "t.CSV", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    salts = {read_task(tmp_path / name)[0].salt for name in ("t.CSV", "t.parquet")}
    assert salts == {Task.from_table(pa.Table.from_pandas(frame, preserve_index=False)).salt}
    visits = pa.Table.from_pandas(frame.set_index(pd.Index(np.arange(20) // 2, name="visit")))
    assert compute_salt(visits, ()) == compute_salt(visits.drop_columns("visit"), ())  # for every reader


def test_arrays_and_npz_agree_and_a_sparse_matrix_and_its_svmlight_file(tmp_path: Path) -> None:
    task = blobs(30, d=3)
    X, y = np.where(task.X > 0, task.X.round(3), 0.0), task.y
    np.savez(tmp_path / "t.npz", X=X, y=y)
    dump_svmlight_file(sparse.csr_matrix(X), y, str(tmp_path / "t.svm"))
    files = {read_task(tmp_path / name)[0].salt for name in ("t.npz", "t.svm")}
    assert files == {
        Task.of(rows, y).salt for rows in (X, np.negative(-X), sparse.csr_matrix(X), pd.DataFrame(X))
    }


@given(st.lists(st.one_of(st.none(), st.floats(), st.integers(-(2**40), 2**40).map(float)), min_size=1))
def test_numbers_have_the_value_of_their_text(numbers: list[float | None]) -> None:
    finite = [None if x is None or not np.isfinite(x) else x for x in numbers]
    written = pa.chunked_array([pa.array([None if x is None else repr(x) for x in finite], pa.string())])
    expected = read_cell_values(pa.chunked_array([pa.array(finite, pa.float64())]))
    assert [values.tolist() for values in read_distinct(written)] == [values.tolist() for values in expected]


def test_the_salt_is_verified_with_the_table_and_else_taken_on_trust(tmp_path: Path) -> None:
    frame, file = patients().to_pandas(), tmp_path / "patients.csv"
    frame.insert(0, "no", [f"p{i}" for i in range(40)])
    frame.loc[40] = ["p40", 1.0, 2.0, "a", None]
    frame.to_csv(file, index=False, sep=";")
    asked = DeclaredTypes(drop_unlabelled=True)
    task, _ = read_task(file, "well", drop=["dose"], id="no", asked=asked, reading=Reading(separator=";"))
    run_job(Job(Study.of(learner="tree", k=(3,), n_splits=3), task, tmp_path / "run"), Execution("serial"))
    found = verify(tmp_path / "run")
    assert found.ok
    assert [line for line in found.trusted if line.startswith("the salt")]
    found = verify(tmp_path / "run", table=file)
    assert (found.ok, found.recomputed[1]) == (True, f"the salt, from '{file}'")
    frame.loc[3, "dose"] += 1
    frame.to_csv(file, index=False, sep=";")
    assert "the salt is not that of" in verify(tmp_path / "run", table=file).differences[0]


@pytest.mark.parametrize(
    ("seed", "differ", "shuffled", "expected"),
    [(0, 2, False, True), (0, 2, True, False), (0, 4, False, False), (1 << 40, 2, False, False)],
)
def test_few_rows_in_a_sorted_table_are_a_caution(seed, differ, shuffled, expected):
    """Kappa of four rows with equal shares, n = 400: (2 pi 400)^-1.5 / .25^2 = .00013; of two .04."""
    y = np.repeat([0, 1], 200)
    X = np.column_stack([np.arange(400.0) % (differ // 2), y])
    order = np.random.default_rng(0).permutation(400) if shuffled else np.arange(400)
    assert bool(describe_sorted(Task.of(X[order], y[order]), seed)) == expected
