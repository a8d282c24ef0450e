"""Learning rows and new rows are read by one code: what a cell becomes depends on its text and the schema."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import limit_examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns import (
    DeclaredTypes,
    cast_dates,
    cast_numbers,
    choose_date_parser,
    choose_number_parser,
)
from ckcv_ray.tables.named import read
from ckcv_ray.tables.task import Task, make_test_rows

N = 24
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
@example(texts=["2024-01-01 10:00:00.123456789", "1969-12-31 23:59:59.9999"])
@example(texts=["2262-01-01 00:00:00.999"])
@example(texts=["0000-12-31", "2024-01-01"])
def test_what_arrow_casts_are_the_moments_that_the_parser_reads(texts: list[str]) -> None:
    cast = cast_dates(pa.chunked_array([pa.array([*texts, None], pa.string())]))
    if cast is not None:
        assert cast[:-1].tolist() == [choose_date_parser("")(text) for text in texts]
        assert np.isnan(cast[-1])


CELLS = (
    ["1", "-7", "03", "+2", "12345678901234567890", "9007199254740993"],
    ["0x1F", "0XFF", "7", ""],
    ["1.5", "-.25", "2.", "1e3", "NA", "1E-320"],
    ["1,5", "2", "1,5e3", "-0,25"],
    ["1.500,5", "22", "3.000.000,5"],
    ["true", "False", "1", "0", ""],
    ["?", "1.5", "-2", "1e2"],
    ["2024-01-01", "1969-12-31", "", "0001-01-01"],
    ["2024-01-01 10:00", "2024-01-02", "1900-01-01T00:00:01"],
    ["2024-01-01 10:00:00.123456789", "1969-12-31 23:59:59.9999", "2024-01-01"],
    ["2024-01-01T10:00:00Z", "2024-01-01T12:00:00.5+01:00"],
    ["01.03.2024", "31.12.1999", "?"],
    ["20240101", "20231231", "20240101.0"],
    ["red", "blue", " red", "größe"],
    ["01", "02", "A3"],
    ["10:00", "11:30", "10:00:01"],
    [" 1", "2 ", "\t3"],
    ["nan(1)", "2", "3"],
    ["0000-01-01", "2024-01-01"],
)
ASKED = (
    DeclaredTypes(),
    DeclaredTypes(categorical=("c",)),
    DeclaredTypes(numeric=("c",)),
    DeclaredTypes(date=("c",)),
)


def written(folder: Path, cells: list[str], separator: str = ";") -> Path:
    file = folder / "t.csv"
    lines = [f"{cell}{separator}{i}{separator}{'ab'[i % 2]}" for i, cell in enumerate(cells)]
    file.write_text("\n".join([separator.join(("c", "n", "y")), *lines, ""]))
    return file


@pytest.mark.parametrize("cells", CELLS, ids=lambda cells: cells[0])
@pytest.mark.parametrize("asked", ASKED, ids=str)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_a_learning_row_is_read_alone_as_among_the_others(
    tmp_path_factory: pytest.TempPathFactory, cells: list[str], asked: DeclaredTypes, data: st.DataObject
) -> None:
    others = data.draw(st.lists(st.sampled_from(cells), min_size=N, max_size=N))
    columns = read(written(tmp_path_factory.mktemp("t"), [*cells, *others])).learn
    try:
        task = Task.from_table(columns, asked=asked)
    except InputError:
        return
    alone = [task.read(columns.slice(i, 1)) for i in range(len(cells))]
    assert np.array_equal(np.concatenate([rows.X for rows in alone]), task.X[: len(cells)], equal_nan=True)
    assert not any(rows.unseen for rows in alone)
    assert np.array_equal(task.read(columns).X, task.X, equal_nan=True)


def learned(folder: Path, cells: list[str], **options: DeclaredTypes) -> tuple[Task, pa.Table]:
    columns = read(written(folder, (cells * N)[:N])).learn
    return Task.from_table(columns, **options), columns


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["0x1F", "7", "0x00"], [31, 7, 0]),
        (["1,5e3", "2", "0,5"], [1500, 2, 0.5]),
        (["5,", ",5", "-1"], [5, 0.5, -1]),
    ],
)
def test_whatever_is_a_number_to_learn_from_is_one_in_new_rows(
    tmp_path: Path, cells: list[str], expected: list[float]
) -> None:
    task, columns = learned(tmp_path, cells)
    assert task.X[:3, 0].tolist() == expected
    assert task.read(columns.slice(0, 3)).X[:, 0].tolist() == expected


@pytest.mark.parametrize(
    ("cells", "levels"),
    [
        (["0x1F", "7", "0x00"], ("0", "31", "7")),
        (["1,5", "2", "0,25"], ("0.25", "1.5", "2")),
        (["1", "false", "false"], ("1", "false")),
        (["2024-01-01 10:00:00.0001", "2024-01-01 10:00:00.0002"], None),
    ],
)
def test_a_category_is_known_as_it_was_written(
    tmp_path: Path, cells: list[str], levels: tuple[str, ...] | None
) -> None:
    task, columns = learned(tmp_path, cells, asked=DeclaredTypes(categorical=("c",)))
    assert task.schema[0].levels == (levels or tuple(sorted(cells)))
    assert not task.read(columns).unseen


def test_a_label_to_the_base_16_is_known_in_test_rows(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,y\n" + "".join(f"{2 * i},{('0x1', '2')[i % 2]}\n" for i in range(N)))
    columns = read(file).learn
    task = Task.from_table(columns)
    assert task.classes == ("0x1", "2")
    rows = make_test_rows(columns, task)
    assert rows is not None
    assert rows.y.tolist() == task.y.tolist()


@pytest.mark.parametrize("cells", [["nan(1)", "2", "3"], ["0000-01-01", "2024-01-02", "2024-01-03"]])
def test_what_arrow_alone_reads_is_no_number_and_no_date(tmp_path: Path, cells: list[str]) -> None:
    with pytest.raises(InputError, match=r"(something else|what is none), such as"):
        learned(tmp_path, cells)
