"""The salt of a table: which rows there are decides what is drawn, and nothing else does."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import blobs
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import binom
from sklearn.datasets import dump_svmlight_file

from ckcv_ray import Execution, Job, verify
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.draws import Draws, hold_out
from ckcv_ray.errors import InputError
from ckcv_ray.runs.run import run_job
from ckcv_ray.study.study import Study
from ckcv_ray.tables.columns import NOTHING_ASKED, DeclaredTypes
from ckcv_ray.tables.named import read_task
from ckcv_ray.tables.questions import describe_sorted
from ckcv_ray.tables.read import Reading
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import Task, compute_salt, read_cell_values, read_distinct

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


def test_bounds_hold_on_tables_that_are_sorted_by_what_is_hard() -> None:
    """One fresh table of each size at seed 0, whose last tenth a fixed classifier has wrong."""
    failures, expected = 0, []
    rng = np.random.default_rng(np.random.SeedSequence(1, spawn_key=(60,)))
    for n in range(60, 1501):
        wrong = np.arange(n) >= n - n // 10
        salt = compute_salt(pa.table({"x": rng.normal(size=n), "wrong": wrong}), [])
        held = hold_out(n, 1 / 3, Draws(0, salt))
        failures += clopper_pearson(int(wrong[held].sum()), len(held), DELTA) < wrong.mean()
        expected.append(DELTA)
    assert failures <= binom.ppf(0.999, len(expected), DELTA)


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
            "seen": pd.to_datetime(
                ["2026-11-23", "2026-11-24 12:30:01", None, "1969-01-01"] * 5, format="ISO8601"
            ),
            "site": pd.Categorical(["north", "south", "NA", "n/a"] * 5),
            "note": ["a,b", 'say "x"', "\u00e9", "8:05"] * 5,
            "y": ["no", "yes"] * 10,
        }
    )
    frame.to_csv(tmp_path / "t.CSV", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    salts = {read_task(tmp_path / name)[0].salt for name in ("t.CSV", "t.parquet")}
    assert salts == {Task.from_table(pa.Table.from_pandas(frame, preserve_index=False)).salt}
    renamed = frame.rename(columns={"y": "well"})
    whole = Task.from_table(pa.Table.from_pandas(renamed, preserve_index=False), Roles("well"))
    assert Task.of(renamed.drop(columns="well"), renamed["well"]).digest == whole.digest


def test_arrays_and_npz_agree_and_a_sparse_matrix_and_its_svmlight_file(tmp_path: Path) -> None:
    task = blobs(30, d=3)
    X, y = np.where(task.X > 0, task.X.round(3), 0.0), task.y
    np.savez(tmp_path / "t.npz", X=X, y=y)
    for suffix in ("svmlight", "libsvm", "svm"):
        dump_svmlight_file(sparse.csr_matrix(X), y, str(tmp_path / f"t.{suffix}"))
    files = {read_task(tmp_path / f"t.{suffix}")[0].salt for suffix in ("npz", "svmlight", "libsvm", "svm")}
    matrices = X, np.negative(-X), sparse.csr_matrix(X), pd.DataFrame(X)
    assert files == {Task.of(rows, y).salt for rows in matrices}
    dump_svmlight_file(X, y * 2 - 1, str(tmp_path / "one.svm"), zero_based=False)
    numbered = read_task(tmp_path / "one.svm")[0]
    assert (numbered.classes, numbered.features) == ((-1, 1), ("x1", "x2", "x3"))
    assert np.array_equal(numbered.X, X)


ODD = ["", "NA", " 1.5 ", "+1", "1.", ".5", "1e400", "inf", "nan", "-0.0", "0x1F", "1_0", "\u0661"]
texts = st.one_of(
    st.floats(allow_nan=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(ODD),
    st.datetimes().map(str),
    st.text(max_size=5),
)


@given(st.lists(texts, min_size=1, max_size=8))
def test_a_cell_has_one_value_however_its_column_is_read(cells: list[str]) -> None:
    column = pa.chunked_array([pa.array(cells)])
    for together, alone in zip(read_cell_values(column), read_distinct(column), strict=True):
        assert together.tolist() == alone.tolist()


@given(st.lists(st.one_of(st.none(), st.floats(), st.integers(-(2**40), 2**40).map(float)), min_size=1))
def test_numbers_have_the_value_of_their_text(numbers: list[float | None]) -> None:
    column = pa.chunked_array([pa.array(numbers, pa.float64())])
    finite = [None if x is None or not np.isfinite(x) else x for x in numbers]
    written = pa.chunked_array([pa.array([None if x is None else repr(x) for x in finite], pa.string())])
    expected = read_cell_values(pa.chunked_array([pa.array(finite, pa.float64())]))
    assert [values.tolist() for values in read_distinct(written)] == [values.tolist() for values in expected]
    assert len(read_cell_values(column)[0]) == len(numbers)


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
    assert not [line for line in found.trusted if line.startswith("the salt")]
    frame.loc[3, "dose"] += 1
    frame.to_csv(file, index=False, sep=";")
    assert "the salt is not that of" in verify(tmp_path / "run", table=file).differences[0]
    with pytest.raises(InputError, match="there is no column 'well', the target of the run"):
        verify(tmp_path / "run", table="sklearn:iris")


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
