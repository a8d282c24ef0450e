"""Rows to be predicted are read as the learning rows were, whatever else is in their file."""

import re
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook
from pyarrow import feather, parquet

from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns import DeclaredTypes
from ckcv_ray.tables.named import read
from ckcv_ray.tables.read import Reading
from ckcv_ray.tables.task import Roles, Task, number_classes

LABELS = ["ill", "well"] * 4
COLUMNS = {
    "words": ["A", "B", "C", "A"] * 2,
    "codes": ["01", "02", "A3", "A1"] * 2,
    "truth values with a gap": ["True", "False", "?", "True"] * 2,
    "truth values": ["true", "false"] * 4,
    "times": ["08:00", "10:30", "late", "08:00"] * 2,
    "numbers": ["1.5", "2", "3e1", "-4"] * 2,
    "numbers with gaps": ["1.5", "", "NA", "-4"] * 2,
    "decimal commas": ['"1,5"', '"2,25"', '"3,0"', "4"] * 2,
    "commas of thousands": ['"1,500"', '"22"', '"3,000,000.5"', "4"] * 2,
    "days": ["2024-03-01", "2024-04-11", "", "2024-05-09"] * 2,
    "days of Germany": ["01.03.2024", "11.04.2024", "", "29.05.2024"] * 2,
    "fractions of seconds": ["2024-03-01 10:00:00.123456", "1969-03-01 12:00:00.9999", "", "2024-03-02"] * 2,
    "hours": ["2024-03-01 10", "2024-03-01 11", "2024-03-01 12", "2024-03-02 10"] * 2,
    "moments": ["2024-03-01T10:00:00Z", "2024-03-01T12:00:00+01:00", "?", "2024-03-02T10:00:00Z"] * 2,
}


def written(folder, cells, name="new.csv"):
    file = folder / name
    lines = [f"{i},{cell},{label}" for i, (cell, label) in enumerate(zip(cells, LABELS, strict=False))]
    file.write_text("\n".join(["n,column,y", *lines, ""]))
    return file


def learned(folder, cells, **options):
    """A task; of cells that are partly codes a category, as the user says."""
    if {"A1", "A3", "x"} & set(cells):
        options["asked"] = DeclaredTypes(categorical=("column",))
    return Task.from_table(read(written(folder, cells, "learn.csv")).learn, Roles("y"), **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("new")


@pytest.mark.parametrize("kind", COLUMNS)
@settings(max_examples=limit_examples(20), deadline=None)
@given(data=st.data())
def test_a_row_is_read_alike_in_any_company(folder, kind, data):
    cells = COLUMNS[kind]
    task = learned(folder, cells)
    chosen = data.draw(st.lists(st.integers(0, len(cells) - 1), min_size=1, max_size=8))
    odd = data.draw(st.lists(st.sampled_from(["?", "abc", "13/02/2024", "true", '"1,2"', "7.5"]), max_size=3))
    file = written(folder, [*(cells[i] for i in chosen), *odd])
    found = task.read(read(file).learn)
    expected = task.X[chosen, 1]
    assert np.array_equal(found.X[: len(chosen), 1], expected, equal_nan=True)
    assert np.array_equal(found.bad[: len(chosen)], np.isnan(expected) & task.schema.plain)


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
def test_a_category_is_known_however_it_is_written(folder, cells, new):
    task = learned(folder, cells)
    levels = task.X[:4, 1]
    found = task.read(pa.table({"n": range(4), "column": new}))
    known = np.array([value is not None for value in new.to_pylist()])
    assert np.array_equal(found.X[known, 1][:2], levels[known][:2])
    assert not found.unseen


def test_categories_never_seen_are_told(folder):
    task = learned(folder, COLUMNS["words"])
    found = task.read(read(written(folder, ["A", "Z", "Z", "B"])).learn)
    assert found.unseen == (
        "2 rows have categories that were never seen, such as 'Z' in column 'column': they count as rare ones"
    )
    assert not found.bad.any()


def test_two_ways_to_write_two_categories_are_not_mixed_up(folder):
    task = learned(folder, ["1", "01", "x", "y"] * 2)
    found = task.read(pa.table({"n": range(3), "column": ["1", "01", "1.0"]}))
    assert found.X[:2, 1].tolist() == task.X[:2, 1].tolist()
    assert "1 row has a category that was never seen" in found.unseen


def test_what_is_no_number_stays_a_gap_where_that_was_asked(folder):
    cells = ["1.5", "high", "2", "3"] * 2
    task = learned(folder, cells, asked=DeclaredTypes(numeric=("column",)))
    found = task.read(read(written(folder, ["high", "2", "low"])).learn)
    assert (np.isnan(found.X[:, 1]).tolist(), found.bad.any()) == ([True, False, True], False)


@pytest.mark.parametrize("labels", [["1", "2", "1.0"], pa.array([1, 2, 1]), ["01", " 2", "1"]])
def test_labels_are_known_however_they_are_written(labels):
    column = pa.chunked_array([labels])
    assert number_classes(column, ("1", "2", "3a"), "y").tolist() == [0, 1, 0]
    assert number_classes(column, (1, 2, 3), "y").tolist() == [0, 1, 0]


def test_a_label_with_an_accent_of_its_own_is_that_with_one_after_the_letter():
    column = pa.chunked_array([["ne\u0301ant", "\u00dc", "U\u0308"]])
    assert number_classes(column, ("n\u00e9ant", "U\u0308"), "y").tolist() == [0, 1, 1]
    with pytest.raises(InputError, match="which are one value: say --labels join"):
        Task.from_table(pa.table({"x": range(8), "y": ["\u00dc", "U\u0308", "a", "b"] * 2}))


@pytest.mark.parametrize("gap", ["?", "NA", " null "])
def test_what_names_nothing_is_no_label_and_no_group(folder, gap):
    with pytest.raises(
        InputError,
        match=rf"'y' has empty cells in 1 of 8 rows .*{re.escape(repr(gap.strip()))} in 1 of them, .*row 2",
    ):
        Task.of(np.arange(8.0)[:, None], ["a", gap, *["a", "b"] * 3])
    with pytest.raises(InputError, match="has no group in 1 of 8 rows, the first in row 1"):
        Task.of(np.arange(8.0)[:, None], [0, 1] * 4, groups=[gap, *"bcdefgh"])


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a;b;y\n2.644,75;1;u\n1.341;2;v\n", [2644.75, 1341]),
        ('a,b,y\n"2.644,75",1;u\n"1.341",2,v\n'.replace(";", ","), [2644.75, 1341]),
        ("sep=;\na;b;y\n1,5;1;u\n2,5;2;v\n", [1.5, 2.5]),
        (" a , b ,y\n1.5,1,u\n2.5,2,v\n", [1.5, 2.5]),
        ('a, b, y\n1.5, "1", u\n2.5, "2", v\n', [1.5, 2.5]),
    ],
)
def test_text_tables_are_read_as_people_write_them(tmp_path, text, expected):
    file = tmp_path / "t.csv"
    head, *lines = text.splitlines()
    first = [head] if not head.startswith("sep=") else [head, lines.pop(0)]
    file.write_text("\n".join([*first, *lines * 4, ""]))
    task = Task.from_table(read(file).learn, Roles("y"))
    assert (task.features, task.classes) == (("a", "b"), ("u", "v"))
    assert task.X[:2].tolist() == [[expected[0], 1], [expected[1], 2]]


@pytest.mark.parametrize("separator", ["", ",,", "é", '"'])
def test_a_separator_is_one_character(tmp_path, separator):
    with pytest.raises(InputError, match="expected one character"):
        read(written(tmp_path, ["1", "2"]), reading=Reading(separator=separator))


def test_a_workbook_is_read_as_the_table_it_was_made_of(tmp_path):
    task = learned(tmp_path, ["True", "False", "n/a", "True"] * 2)
    book = Workbook()
    for row in [("n", "column"), (0, True), (1, False)]:
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    found = task.read(read(tmp_path / "t.xlsx").learn)
    assert (found.X[:, 1].tolist(), found.unseen) == (task.X[:2, 1].tolist(), "")


def test_whole_numbers_that_are_days_are_days_on_request(folder):
    cells = ["20240411", "20240412", "20240501", "20230101"] * 2
    task = learned(folder, cells, asked=DeclaredTypes(date=("column",)))
    assert task.schema[1].form == "%Y%m%d"
    new = task.read(read(written(folder, ["20240412", "?"])).learn)
    assert new.X[0, 1] == task.X[1, 1]
    assert task.read(pa.table({"n": [1], "column": [20240412]})).X[0, 1] == task.X[1, 1]
    with pytest.raises(InputError, match="not all are dates such as 20261123"):
        learned(folder, ["1", "2", "3", "4"] * 2, asked=DeclaredTypes(date=("column",)))


def test_truth_beside_decimal_commas_is_read_in_new_rows(tmp_path: Path) -> None:
    """In whichever of the two forms a table was learned, and in whichever new rows come."""
    lines = [(f"{i / 4 - 3:.2f}", i % 3 == 0, i % 2) for i in range(24)]
    point, comma = tmp_path / "point.csv", tmp_path / "comma.csv"
    point.write_text("num,flag,y\n" + "".join(f"{n},{flag},{y}\n" for n, flag, y in lines))
    comma.write_text("num;flag;y\n" + "".join(f"{n.replace('.', ',')};{flag};{y}\n" for n, flag, y in lines))
    tasks = [Task.from_table(read(path).learn, Roles("y")) for path in (point, comma)]
    for task in tasks:
        for path in (point, comma):
            found = task.read(read(path).learn.drop_columns(["y"]))
            assert not found.bad.any()
            assert np.array_equal(found.X, tasks[0].X)


@pytest.mark.parametrize(("form", "shown"), [("%Y-%m-%d", "2026-11-23"), ("%d.%m.%Y", "23.11.2026")])
def test_a_date_in_another_form_is_refused_by_showing_that_of_the_learning_rows(
    form: str, shown: str
) -> None:
    days = [datetime(2024, 1 + i % 12, 13 + i % 15) for i in range(24)]
    columns = {"day": [day.strftime(form) for day in days], "y": [i % 2 for i in range(24)]}
    task = Task.from_table(pa.table(columns), Roles("y"))
    found = task.read(pa.table({"day": ["13 Jan 2024"]}))
    assert found.reason == f"column 'day' has '13 Jan 2024' in row 1, not a date such as {shown}: fix it"
