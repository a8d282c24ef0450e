"""The salt of a table: which rows there are decides what is drawn, and nothing else does."""

from itertools import product
from pathlib import Path

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

from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.draws import Draws, hold_out
from ckcv_ray.study import Study
from ckcv_ray.tables.readers.frames import make_columns
from ckcv_ray.tables.salt import compute_salt, read_cell_values, read_distinct
from ckcv_ray.tables.task import read

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
    for n in range(60, 1501, 4):
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


def salt(columns: pa.Table, *left_out: str) -> str:
    return compute_salt(columns, left_out)


def test_the_order_of_rows_and_columns_has_no_part_in_it() -> None:
    table = patients()
    usual, shuffled = salt(table), np.random.default_rng(1).permutation(40)
    assert salt(table.take(pa.array(shuffled))) == usual
    assert salt(table.select(["well", "site", "dose", "age"])) == usual


def test_every_cell_and_name_that_is_read_has_a_part_in_it() -> None:
    table = patients()
    usual, changed = salt(table), table["dose"].to_pylist()
    changed[7] += 1e-9
    assert salt(table.set_column(1, "dose", [changed])) != usual
    assert salt(table.rename_columns(["Age", "dose", "site", "well"])) != usual
    assert salt(table.slice(1)) != usual


def test_what_names_or_numbers_the_rows_has_none() -> None:
    table = patients()
    number, name = np.arange(100, 140), [f"no. {i}" for i in range(40)]
    for column in (number, number[::-1], name):
        assert salt(table.append_column("row", pa.array(column))) == salt(table)
    group = pa.array(np.arange(40) // 2)
    assert salt(table.append_column("house", group), "house") == salt(table)
    assert salt(table.append_column("house", group)) != salt(table)
    assert salt(table.append_column("row", pa.array(3 * number))) != salt(table)


def test_a_frame_its_csv_and_its_parquet_agree(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "age": [50.5, np.nan, 61.0, 47.25] * 5,
            "count": np.arange(20) % 7,
            "smokes": [True, False] * 10,
            "seen": pd.to_datetime(
                ["2026-11-23 00:00:00", "2026-11-24 12:30:01", None, "1969-01-01 00:00:00"] * 5
            ),
            "site": pd.Categorical(["north", "south", "NA", "n/a"] * 5),
            "note": ["a,b", 'say "x"', "\u00e9", "8:05"] * 5,
            "y": ["no", "yes"] * 10,
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    salts = {salt(read(tmp_path / name).learn) for name in ("t.csv", "t.parquet")}
    assert salts == {salt(make_columns(frame))}


def test_arrays_and_npz_agree_and_a_sparse_matrix_and_its_svmlight_file(tmp_path: Path) -> None:
    task = blobs(30, d=3)
    X, y = np.where(task.X > 0, task.X.round(3), 0.0), task.y
    np.savez(tmp_path / "t.npz", X=X, y=y)
    dump_svmlight_file(sparse.csr_matrix(X), y, str(tmp_path / "t.svmlight"))
    salts = {salt(read(tmp_path / name).learn) for name in ("t.npz", "t.svmlight")}
    arrays = [
        make_columns(rows).append_column("y", [y]) for rows in (X, np.negative(-X), sparse.csr_matrix(X))
    ]
    assert salts == {salt(columns) for columns in arrays}


texts = st.one_of(
    st.floats(allow_nan=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(
        ["", "NA", " 1.5 ", "+1", "1.", ".5", "1e400", "inf", "nan", "-0.0", "0x1F", "1_0", "\u0661"]
    ),
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


def test_a_drawn_seed_is_recorded() -> None:
    studies = [Study.of(seed="random") for _ in range(2)]
    assert studies[0].seed != studies[1].seed
    assert Study.from_json(studies[0].to_json()) == studies[0]
    assert Study.without_certification(seed="random").seed != Study.without_certification(seed="random").seed


def test_unsalted_draws_are_those_of_the_seed_alone() -> None:
    made = Draws(3).at(0, 0, 3).make_generator().integers(1 << 60)
    assert made == np.random.default_rng(np.random.SeedSequence(3, spawn_key=(0, 0, 3))).integers(1 << 60)
