"""A new cell is read as it was learned: the same value, or it cannot be judged, or is asked about."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import limit_examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

from ckcv_ray import Execution, Job, Study, load_run
from ckcv_ray.errors import InputError
from ckcv_ray.runs.run import run_job
from ckcv_ray.tables.columns import (
    FIRST_DAY,
    Cells,
    DeclaredTypes,
    cast_numbers,
    choose_date_parser,
    choose_number_parser,
    declare_cells,
    read_moments,
)
from ckcv_ray.tables.named import read
from ckcv_ray.tables.read import Reading
from ckcv_ray.tables.roles import ClassTarget, Roles
from ckcv_ray.tables.task import Task

N = 24
CATEGORICAL = DeclaredTypes(categorical=("x",))


def write(place: Path, cells: Sequence[str] | pa.Array) -> pa.Table:
    """Write a table of a column x, and read it; cells that have a type keep it."""
    if isinstance(cells, pa.Array):
        return write(place, [""] * len(cells)).set_column(0, "x", cells)
    lines = (f"{cell};{i % 5};{'pq'[i % 3 == 0]}\n" for i, cell in enumerate(cells))
    place.write_text("x;z;y\n" + "".join(lines), encoding="utf-8")
    return read(place).learn


@pytest.mark.parametrize(
    ("cells", "new"),
    [
        (["1", "2", "A3", "A1"] * 2, pa.array([1, 2, 1, 2])),
        (["1", "2", "A3", "A1"] * 2, pa.array([1.0, 2.0, None, 1.0])),
        (["01", "02", "A3", "x"] * 2, pa.array(["1", "2.0", "A3", "01"])),
        (["True", "False", "no", "True"] * 2, pa.array([True, False, None, True])),
        (["S\u00e4ugling", "\u00c5", "x", "y"] * 2, pa.array(["Sa\u0308ugling", "\u212b", "y", "x"])),
        (["08:00", "10:30", "late", "08:00"] * 2, pa.array([28800, 37800, None, 28800], pa.time32("s"))),
    ],
)
def test_a_category_is_known_however_it_is_written(cells: list[str], new: pa.Array, tmp_path: Path) -> None:
    task = Task.from_table(write(tmp_path / "a.csv", cells * 6), Roles("y"), CATEGORICAL)
    found = task.read(pa.table({"z": range(4), "x": new}))
    known = new.is_valid().to_numpy(zero_copy_only=False)
    assert np.array_equal(found.X[known, 0][:2], task.X[:4, 0][known][:2])
    assert not found.unseen


def test_categories_never_seen_are_told_and_two_ways_are_not_mixed_up(tmp_path: Path) -> None:
    task = Task.from_table(write(tmp_path / "a.csv", ["1", "01", "x", "y"] * 6), Roles("y"), CATEGORICAL)
    found = task.read(pa.table({"z": range(4), "x": ["1", "01", "1.0", "Z"]}))
    assert found.X[:2, 0].tolist() == task.X[:2, 0].tolist()
    unseen = "have a category that was never seen, such as '1.0' in column 'x': it counts as a rare one"
    assert found.unseen == f"2 rows {unseen}"
    assert not found.bad.any()
    assert "1 row has a category that was never seen" in task.read(pa.table({"z": [1], "x": ["Z"]})).unseen


@pytest.mark.parametrize("labels", [["1", "2", "1.0"], pa.array([1, 2, 1]), ["01", " 2", "1"]])
def test_labels_are_known_however_they_are_written(labels):
    columns = pa.table({"y": labels})
    assert ClassTarget("y", ("1", "2", "3a")).read(columns).tolist() == [0, 1, 0]
    assert ClassTarget("y", (1, 2, 3)).read(columns).tolist() == [0, 1, 0]


def test_none_and_a_dash_may_be_labels():
    assert Task.of(np.arange(8.0)[:, None], ["none", "mild"] * 4).classes == ("mild", "none")
    assert Task.of(np.arange(8.0)[:, None], ["-", "+"] * 4).classes == ("+", "-")


@pytest.mark.parametrize("name", ["pid", None])
def test_the_index_of_a_frame_is_not_learned_from(name):
    frame = pd.DataFrame({"x": np.arange(8.0)}, index=pd.Index(np.arange(8) % 2, name=name))
    assert Task.of(frame, [0, 1] * 4).features == ("x",)
    assert Task.of(frame.reset_index(), [0, 1] * 4).features == (name or "index", "x")


@pytest.mark.parametrize("write", [parquet.write_table, feather.write_feather])
@pytest.mark.parametrize("name", ["pid", None])
def test_the_index_of_a_file_is_learned_from_on_request_alone(tmp_path, write, name):
    frame = pd.DataFrame({"x": np.arange(8.0), "y": [0, 1] * 4}, index=pd.Index(range(8, 16), name=name))
    frame = frame.iloc[[3, 1, 0, 2, 7, 5, 4, 6]]  # no range
    file = tmp_path / ("t.parquet" if write is parquet.write_table else "t.feather")
    write(pa.Table.from_pandas(frame), str(file))
    columns = read(file).learn
    assert Task.from_table(columns, Roles("y")).features == ("x",)
    if name:
        assert Task.from_table(columns, Roles("y", ["x", "pid"])).features == ("x", "pid")


@pytest.mark.parametrize("separator", ["", ",,", "é", '"'])
def test_a_separator_is_one_character(tmp_path, separator):
    write(tmp_path / "a.csv", ["1", "2"])
    with pytest.raises(InputError, match="expected one character"):
        read(tmp_path / "a.csv", Reading(separator=separator))


WHOLE = st.from_regex(r"[+-]?\d{1,25}", fullmatch=True)
POINT = st.from_regex(r"[+-]?(\d{1,20}\.?\d{0,20}|\.\d{1,20})([eE][+-]?\d{1,3})?", fullmatch=True)
ODD = st.sampled_from(
    ["inf", "-Infinity", "nan", "-nan", "nan(1)", "0x1F", "1_0", "1e", "+", ".", " 1", "1 ", "1d5", "١"]
)
NUMBERS = WHOLE | POINT | st.floats().map(repr) | ODD | st.text(max_size=4)
MOMENTS = st.datetimes().map(str) | st.datetimes().map(lambda moment: moment.isoformat(timespec="minutes"))
ZONES = st.sampled_from(["Z", "+01:00", "-0330", "+24", ""])
DATES = (
    st.dates().map(str)
    | st.tuples(MOMENTS, ZONES).map("".join)
    | st.from_regex(r"\d{4}-[01]\d-[0-3]\d[ T][0-2]\d(:[0-6]\d(:[0-6]\d(\.\d{1,10})?)?)?Z?", fullmatch=True)
    | st.sampled_from(
        ["0000-01-01", "2024", "2024-02", "20240101", "2024-02-30", "10:00", "2024-01-01 24:00"]
    )
)


@pytest.mark.slow
@settings(max_examples=limit_examples(300), deadline=None)
@given(texts=st.lists(NUMBERS, min_size=1, max_size=4), comma=st.booleans())
@example(texts=["nan"], comma=False)
@example(texts=["1e400", "5e-324", "-0", "0.1e1"], comma=False)
def test_what_arrow_casts_are_the_numbers_that_the_parser_reads(texts: list[str], comma: bool) -> None:
    texts = [text.replace(".", ",") for text in texts] if comma else texts
    cast = cast_numbers(pa.chunked_array([pa.array([*texts, None], pa.string())]), comma)
    if cast is not None:
        forms = ("comma",) if comma else ("", "point")
        for parse in map(choose_number_parser, forms):
            expected = np.array([*map(parse, texts), np.nan], np.float64)
            assert np.array_equal(cast.view(np.int64)[:-1], expected.view(np.int64)[:-1])
        assert np.isnan(cast[-1])


@pytest.mark.slow
@settings(max_examples=limit_examples(300), deadline=None)
@given(texts=st.lists(DATES, min_size=1, max_size=3))
@example(texts=["2024-01-01 10:00:00.9999", "1969-12-31 23:59:59.9999"])
@example(texts=["2262-01-01 00:00:00.999"])
@example(texts=["0000-12-31", "2024-01-01"])
def test_what_arrow_casts_are_the_moments_that_the_parser_reads(texts: list[str]) -> None:
    cells = Cells(pa.chunked_array([pa.array([*texts, None], pa.string())]), "")
    if cells.are_dates:
        *cast, gap = read_moments(cells.infer()).tolist()
        known = [None if moment < FIRST_DAY else moment for moment in cast]
        assert known == [choose_date_parser("")(text) for text in texts]
        assert np.isnan(gap)


@pytest.mark.parametrize(
    ("learned", "new", "reason"),
    [
        ("2026-11-{} 10:00:00", "2026-11-01 15:00:00+05:00", "date such as 2026-11-23, without a time zone"),
        ("2026-11-{}", "13 Jan 2024", "date such as 2026-11-23, without a time zone"),
        ("{}.11.2026", "13 Jan 2024", "date such as 23.11.2026, without a time zone"),
        ("{}.25", "1e200", "number up to 1e+150"),
        ("{}.5", "high", "number"),
    ],
)
def test_what_hinders_is_named(tmp_path: Path, learned: str, new: str, reason: str) -> None:
    cells = [learned.format(10 + i % 15) for i in range(N)]
    task = Task.from_table(write(tmp_path / "a.csv", cells))
    found = task.read(write(tmp_path / "b.csv", [new] * 3))
    assert found.reason == f"column 'x' has {new!r} in row 1, not a {reason}: fix it"


DAYS = [i % 28 + 1 for i in range(N)]
EIGHTHS = [i / 8 + 0.125 for i in range(N)]
BITS = [float(i % 2) for i in range(N)]
TEN = [datetime(2026, 11, day, 10) for day in DAYS]
MIDNIGHT = [datetime(2026, 11, day) for day in DAYS]


class Form(NamedTuple):
    """How a cell of each row is written, what it means there, and of which kind that is."""

    kind: str
    values: list[Any]
    cells: list[str] | pa.Array


FORMS = {
    "point": Form("number", EIGHTHS, [f"{x:.3f}" for x in EIGHTHS]),
    "comma": Form("number", EIGHTHS, [f"{x:.3f}".replace(".", ",") for x in EIGHTHS]),
    "percent": Form("percent", EIGHTHS, [f"{x:.3f}%" for x in EIGHTHS]),
    "per mille": Form("per mille", EIGHTHS, [f"{x:.3f}\u2030" for x in EIGHTHS]),
    "dollars": Form("dollars", EIGHTHS, [f"${x:.3f}" for x in EIGHTHS]),
    "bits": Form("number", BITS, ["01"[i % 2] for i in range(N)]),
    "truth": Form("number", BITS, [("False", "True")[i % 2] for i in range(N)]),
    "words": Form("words", BITS, ["ab"[i % 2] for i in range(N)]),
    "naive": Form("clock", TEN, [f"{moment:%Y-%m-%d %H:%M:%S}" for moment in TEN]),
    "zoned": Form("moment", TEN, [f"{moment:%Y-%m-%d} 15:00:00+05:00" for moment in TEN]),
    "utc": Form("moment", TEN, [f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in TEN]),
    "days": Form("clock", MIDNIGHT, [f"{day:%Y-%m-%d}" for day in MIDNIGHT]),
    "dotted": Form("clock", MIDNIGHT, [f"{day:%d.%m.%Y}" for day in MIDNIGHT]),
    "floats": Form("number", EIGHTHS, pa.array(EIGHTHS)),
    "integers": Form("number", BITS, pa.array(BITS).cast(pa.int64())),
    "booleans": Form("number", BITS, pa.array(BITS).cast(pa.bool_())),
    "typed days": Form("clock", MIDNIGHT, pa.array(MIDNIGHT).cast(pa.date32())),
    "typed naive": Form("clock", TEN, pa.array(TEN)),
    "typed utc": Form("moment", TEN, pa.array(TEN, pa.timestamp("ms", "UTC"))),
    "declared": Form("words", BITS, pa.array(["ab"[i % 2] for i in range(N)]).dictionary_encode()),
}
JUDGED = [  # forms of which each is read in a column of each other
    ("floats", "integers", "booleans", "bits", "truth"),
    ("words", "declared"),
    ("zoned", "utc", "typed utc"),
    ("days", "naive", "typed days", "typed naive"),
]
ONE_WAY = {("dollars", "point"), ("dollars", "floats"), ("dotted", "typed days"), ("point", "floats")}
ALL_JUDGED = {(name, name) for name in FORMS} | ONE_WAY | {p for one in JUDGED for p in product(one, one)}


@pytest.mark.parametrize("learned", FORMS)
@pytest.mark.parametrize("later", FORMS)
def test_a_cell_has_the_value_that_it_had_or_cannot_be_judged(learned, later, tmp_path):
    there, here = FORMS[learned], FORMS[later]
    task = Task.from_table(write(tmp_path / "a.csv", there.cells), Roles("y"))
    columns = write(tmp_path / "b.csv", here.cells)
    try:
        rows = task.read(columns)
    except InputError as error:
        assert "'x'" in str(error)  # noqa: PT017
        assert (learned, later) not in ALL_JUDGED
        return
    assert not ((learned, later) in ALL_JUDGED and rows.bad.any())
    if there.kind == here.kind or (there.kind, here.kind) == ("dollars", "number"):  # in the column's unit
        dates = isinstance(here.values[0], datetime)
        values = [1000 * x.replace(tzinfo=UTC).timestamp() for x in here.values] if dates else here.values
        assert np.array_equal(rows.X[~rows.bad, 0], np.array(values)[~rows.bad])
    elif there.kind == "words":
        assert f"{N} rows have a category that was never seen" in rows.unseen
    else:
        assert rows.bad.all()


@pytest.mark.parametrize("unit", ["%", "\u2030"])
def test_a_number_without_its_unit_is_refused_with_the_cure_and_not_in_a_run_folder(unit, tmp_path):
    columns = write(tmp_path / "a.csv", [f"{x:.3f}{unit}" for x in EIGHTHS])
    task, study = Task.from_table(columns, Roles("y")), Study.of(learner="tree", k=(3,), n_splits=3)
    result = run_job(Job(study, task, tmp_path / "run"), Execution("serial"))
    again = load_run(tmp_path / "run")
    assert np.array_equal(again.task.X, result.task.X)
    assert again.predict(columns).tolist() == result.predict(columns).tolist()
    frame = pd.DataFrame({"x": EIGHTHS, "z": np.arange(N) % 5})
    with pytest.raises(InputError, match=f"'x' holds double, which may be .* text, such as '12.5{unit}'"):
        again.predict(frame)
    assert np.isnan(task.read(pa.table(frame.assign(x=np.nan))).X[:, 0]).all()


MANY = 40
DOUBTFUL = {  # cells learned from, and new ones: doubtful, the same number as decimals, and as thousands
    "point": ([f"{i}.{i % 10}5" for i in range(MANY)], "1.250", 1.25, 1250.0),
    "with gaps": (["1.5", "-", "", *[f"{i}.75" for i in range(MANY - 3)]], "1.250", 1.25, 1250.0),
    "comma": ([f"{i},{i % 10}5" for i in range(MANY)], "1,250", 1.25, 1250.0),
    "thousands": ([f"{i + 1},000.50" for i in range(MANY)], "1.250", 1.25, 1250.0),
    "whole dollars": ([f"${i + 1},000,000" for i in range(MANY)], "$1.250", 1.25, 1250.0),
    "dollars": ([f"${i}.50" for i in range(MANY)], "$1.250", 1.25, 1250.0),
    "euros": ([f"{i},50 €" for i in range(MANY)], "1,250 €", 1.25, 1250.0),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_a_cell_that_may_have_thousands_is_asked_about(name: str, tmp_path: Path) -> None:
    cells, new, decimals, thousands = DOUBTFUL[name]
    task = Task.from_table(write(tmp_path / "a.csv", cells))
    assert task.schema[0].short_decimals
    rows = write(tmp_path / "b.csv", [*cells, new])
    found = task.read(rows)
    assert found.bad[-1]
    if "gap" not in name:  # of which the first row is what cannot be judged
        assert f"has {new!r} in row {MANY + 1}, not a number with one or two decimals; say" in found.reason
    assert np.array_equal(found.X[:-1], task.X, equal_nan=True)
    mark = "," if "," in new else "."
    for said, value in ((mark, thousands), (",.".replace(mark, ""), decimals)):
        known = task.read(declare_cells(rows, thousands=said))
        assert known.X[-1, 0] == value
        assert np.array_equal(known.X[:-1], task.X, equal_nan=True)


def test_a_doubtful_cell_is_no_gap_of_a_lenient_column(tmp_path: Path) -> None:
    cells = [*DOUBTFUL["point"][0], "high"]
    task = Task.from_table(write(tmp_path / "a.csv", cells), asked=DeclaredTypes(numeric=["x"]))
    assert task.schema[0].lenient
    assert task.schema[0].short_decimals
    found = task.read(write(tmp_path / "b.csv", ["1.250", "low", "1.5"]))
    assert found.bad.tolist() == [True, False, False]
    assert np.isnan(found.X[1, 0])
    columns = write(tmp_path / "c.csv", ["$1,250", "1.000,25"] * (N // 2))  # the first is none in this form
    assert not Task.from_table(columns, asked=DeclaredTypes(numeric=["x"])).read(columns).bad.any()
