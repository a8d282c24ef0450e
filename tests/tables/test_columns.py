"""How columns are understood, and the numbers that their values become."""

import json
from dataclasses import asdict
from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from ckcv_ray.errors import InputError
from ckcv_ray.storage.formats import SCHEMA_VERSION, make_table
from ckcv_ray.tables.columns import (
    NOTHING_ASKED,
    Column,
    ColumnKind,
    DeclaredTypes,
    Schema,
    decode_columns,
    decode_in_parts,
    format_column,
    take_in_parts,
)
from ckcv_ray.tables.task import Roles, Task
from ckcv_ray.version import VERSION

Y = [0, 1] * 4
NUMBER, CATEGORY, DATE = ColumnKind.NUMBER, ColumnKind.CATEGORY, ColumnKind.DATE
DAY = 86_400_000
UNDERSTOOD = {
    "numbers": ([1.5, 2.0] * 4, NUMBER, [1.5, 2.0]),
    "numbers with gaps": ([1.5, None] * 4, NUMBER, [1.5, np.nan]),
    "truth values": ([True, False] * 4, NUMBER, [1, 0]),
    "truth values with gaps": ([True, False, None, True] * 2, NUMBER, [1, 0, np.nan, 1]),
    "decimals": (pa.array([1, 2] * 4).cast(pa.decimal128(30, 3)), NUMBER, [1, 2]),
    "numbers as text": (["1.5", " 2 "] * 4, NUMBER, [1.5, 2]),
    "numbers as text with gaps": (["1.5", "?", "n/a", ""] * 2, NUMBER, [1.5, np.nan, np.nan, np.nan]),
    "decimal commas": (["1,5", "2", "1.000,25", "-3,0"] * 2, NUMBER, [1.5, 2, 1000.25, -3]),
    "commas of thousands": (["1,000", "2,000,000.5"] * 4, NUMBER, [1000, 2000000.5]),
    "percent": (["10 %", "20 %"] * 4, NUMBER, [10, 20]),
    "amounts": (["$1,234.50", "-$7"] * 4, NUMBER, [1234.5, -7]),
    "words": (["red", "blue"] * 4, CATEGORY, [1, 0]),
    "words with gaps and spaces": (["red ", None, "blue", ""] * 2, CATEGORY, [1, np.nan, 0, np.nan]),
    "words in a dictionary": (pa.array(["red", "blue"] * 4).dictionary_encode(), CATEGORY, [1, 0]),
    "days": ([date(1970, 1, 2), None] * 4, DATE, [DAY, np.nan]),
    "moments": ([datetime(1970, 1, 1, 1, tzinfo=UTC)] * 8, DATE, [DAY / 24]),
    "days as text": (["1970-01-02", "1969-12-31"] * 4, DATE, [DAY, -DAY]),
    "days with points": (["02.01.1970", "31.12.1969"] * 4, DATE, [DAY, -DAY]),
    "months first": (["01/02/1970", "12/31/1969"] * 4, DATE, [DAY, -DAY]),
    "hours as text": (["1970-01-01 01:00", "1970-01-02 00:00"] * 4, DATE, [DAY / 24, DAY]),
}


def column(values, asked=NOTHING_ASKED):
    (found,), X = Schema.learn(pa.table({"c": values}), ["c"], asked)
    return found, X[:, 0]


@pytest.mark.parametrize("name", UNDERSTOOD)
def test_a_column_is_understood_by_its_values(name):
    values, kind, numbers = UNDERSTOOD[name]
    found, X = column(values)
    assert found.kind is kind
    assert np.array_equal(X, np.resize(numbers, 8), equal_nan=True)


@pytest.mark.parametrize(
    ("values", "asked", "kind", "numbers"),
    [
        ([3, 1] * 4, DeclaredTypes(categorical=["c"]), CATEGORY, [1, 0]),
        ([3.0, None] * 4, DeclaredTypes(categorical=["c"]), CATEGORY, [0, np.nan]),
        (["1", "2", "x", "3"] * 2, DeclaredTypes(numeric=["c"]), NUMBER, [1, 2, np.nan, 3]),
        (["1", "2", "x", "3"] * 2, DeclaredTypes(categorical=["c"]), CATEGORY, [0, 1, 3, 2]),
        (["19700102", "19691231"] * 4, DeclaredTypes(date=["c"]), DATE, [DAY, -DAY]),
    ],
)
def test_the_user_may_say_what_a_column_holds(values, asked, kind, numbers):
    found, X = column(values, asked)
    assert found.kind is kind
    assert np.array_equal(X, np.resize(numbers, 8), equal_nan=True)


def test_a_category_of_whole_numbers_is_the_same_with_and_without_gaps():
    """A gap makes a column of whole numbers one of floating point in many programs."""
    whole, _ = column([3, 10] * 4, DeclaredTypes(categorical=["c"]))
    floating, _ = column(np.array([3.0, 10.0] * 4), DeclaredTypes(categorical=["c"]))
    assert whole.levels == floating.levels == ("10", "3")


@given(
    st.lists(st.one_of(st.none(), st.floats(-1e9, 1e9)), min_size=8, max_size=8),
    st.lists(st.sampled_from([None, "a", "b", " c", "?"]), min_size=8, max_size=8),
    st.lists(st.one_of(st.none(), st.dates(date(1800, 1, 1), date(2200, 1, 1))), min_size=8, max_size=8),
)
def test_a_table_is_understood_again_from_the_columns_of_its_task(numbers, words, days):
    columns = pa.table(
        {
            "x": pa.array([*numbers, 1.0, 2.0]),
            "w": pa.array([*words, "a", "a"]),
            "d": pa.array([*days, date(2000, 1, 1), None]),
            "y": [*Y, 0, 1],
        }
    )
    task = Task.from_table(columns)
    schema = Schema.from_json(json.loads(json.dumps([asdict(one) for one in task.schema])))
    again = Task.restore(task.columns(), Roles("y"), schema, salt=task.salt)
    assert again.digest == task.digest
    assert again.X.tobytes() == task.X.tobytes()


def test_numbers_without_gaps_are_plain():
    assert Task.from_table(pa.table({"a": range(8), "b": [True, False] * 4, "y": Y})).schema.plain
    assert not Task.from_table(pa.table({"a": [*range(7), None], "y": Y})).schema.plain


def test_what_a_column_holds_and_its_levels_change_the_digest():
    def digest(values, asked=NOTHING_ASKED):
        return Task.from_table(pa.table({"a": values, "b": ["u", "v"] * 4, "y": Y}), asked=asked).digest

    words = digest(["x", "y"] * 4)
    assert len({words, digest(["x", "z"] * 4), digest([0, 1] * 4)}) == 3
    assert digest([0, 1] * 4) != digest([0, 1] * 4, DeclaredTypes(categorical=["a"]))
    assert digest(pa.array(["x", "y"] * 4).dictionary_encode()) == words


def test_rows_that_cannot_be_judged_are_marked():
    schema = Schema((Column("a"), Column("w", CATEGORY, ("u", "v")), Column("d", DATE)))
    table = pa.table(
        {
            "a": ["1", "x", "", "inf"],
            "w": ["u", "v", None, "z"],
            "d": ["2020-01-01", "?", "soon", "2020-01-01"],
        }
    )
    rows = schema.apply(table)
    assert rows.bad.tolist() == [False, True, True, True]
    assert rows.reason == "column 'a' has 'x' in row 2, not a number: fix it"
    with pytest.raises(InputError, match="'x' in row 2"):
        rows.check()
    plain = Schema.of_numbers("a").apply(pa.table({"a": [1.0, None]}))
    assert plain.bad.tolist() == [False, True], "a task without gaps knows nothing to fill one with"


@pytest.mark.parametrize("kind", [NUMBER, CATEGORY, DATE])
def test_numbers_become_columns_and_numbers_again(kind):
    values = np.array([0.0, 2.0, np.nan, 1.0])
    one = Column("c", kind, ("a", "b", "c") if kind is CATEGORY else ())
    again = Schema((one,)).apply(pa.table({"c": format_column(values, one)})).X[:, 0]
    assert np.array_equal(values, again, equal_nan=True)


@given(
    values=st.lists(st.text(max_size=9) | st.none(), min_size=1, max_size=5),
    codes=st.lists(st.integers(0, 4) | st.none(), max_size=60),
    dtype=st.sampled_from([pa.string(), pa.large_string()]),
)
def test_text_is_made_in_small_parts(values, codes, dtype):
    """Text that grows as a whole takes twice its memory."""
    texts = pa.array(values, dtype)
    numbers = pa.array([code if code is None else code % len(values) for code in codes], pa.int64())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ckcv_ray.tables.columns.PART_BYTES", 20)
        parts = take_in_parts(texts, numbers)
    assert pa.chunked_array(parts, dtype).to_pylist() == texts.take(numbers).to_pylist()
    longest = max(len((value or "").encode()) for value in values)
    assert all(sum(len((text or "").encode()) for text in part.to_pylist()) <= 20 + longest for part in parts)


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 2) | st.none(), st.integers(0, 3), st.integers(-5, 5)), max_size=60
    ),
    again=st.integers(0, 2),
)
def test_a_table_is_decoded_in_small_parts(rows, again):
    """Chunks may have dictionaries of their own, which hold a null."""
    one, two, three = (pa.array([row[i] for row in rows], pa.int64()) for i in range(3))
    columns = {
        "a": pa.DictionaryArray.from_arrays(one, pa.array(["", "one", None])),
        "b": pa.DictionaryArray.from_arrays(two, pa.array([0.5, 1.5, 2.5, None])),
        "c": three,
    }
    other = pa.DictionaryArray.from_arrays(one, pa.array([None, "one", "two"]))
    tables = [pa.table(columns), *[pa.table(columns | {"a": other})] * again]
    table = pa.concat_tables(tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ckcv_ray.tables.columns.PART_BYTES", 9)
        parts = list(decode_in_parts(table))
    assert pa.concat_tables(parts).equals(decode_columns(table))
    assert decode_columns(table).to_pylist() == table.to_pylist()
    assert all(sum(len(text or "") for text in part["a"].to_pylist()) <= 9 + 3 for part in parts)


@pytest.mark.slow
def test_long_categories_are_written_without_a_copy_for_each_row():
    """A file of some kilobytes may hold a long text in a hundred thousand rows."""
    columns = pa.table({"x": ["a" * 10_000, "b" * 10_000] * 5_000, "y": [0, 1, 1, 0] * 2_500})
    task = Task.from_table(columns)
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        content = make_table(task.coded_columns(), "run").to_pybytes()
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < columns.nbytes / 2
    assert parquet.read_table(pa.BufferReader(content)).equals(columns)


def test_what_needs_one_part_is_written_as_parquet_writes_it():
    table = pa.table({"x": pa.array(["u", "v", None] * 9).dictionary_encode(), "y": range(27)})
    sink = pa.BufferOutputStream()
    metadata = {"run_id": "run", "schema": str(SCHEMA_VERSION), "package": VERSION}
    plain = table.cast(pa.schema({"x": pa.string(), "y": pa.int64()})).replace_schema_metadata(metadata)
    parquet.write_table(plain, sink, compression="zstd", write_page_checksum=True)
    assert make_table(table, "run") == sink.getvalue()


@pytest.mark.parametrize("gap", [None, ""])
def test_columns_in_several_pieces_are_one_column(gap):
    """As large files are read; gaps are then in pieces that know of different values."""
    pieces = pa.chunked_array([["u", gap, "v", "u"], ["w", "u", gap, "v"]])
    found, X = column(pieces)
    assert found.levels == ("u", "v", "w")
    assert np.array_equal(X, [0, np.nan, 1, 0, 2, 0, np.nan, 1], equal_nan=True)
    labels = pa.chunked_array([["a", None, "b", "a"], ["a", "b", None, "b"]])
    with pytest.raises(InputError, match=r"empty cells in 2 of 8 rows \(25 %\), the first in row 2"):
        Task.from_table(pa.table({"x": range(8), "y": labels}))
