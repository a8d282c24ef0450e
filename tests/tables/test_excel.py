"""Excel workbooks: one sheet of values."""

from datetime import datetime

import pytest
from openpyxl import Workbook

from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns.formats import ColumnKind
from ckcv_ray.tables.readers.files import Reading
from ckcv_ray.tables.task import Task, read
from ckcv_ray.tables.units import Roles

ROWS = [
    ["age", "city", "admitted", "y", None],
    *[[i + 0.5 if i % 3 else None, "AB"[i % 2], datetime(2024, 1, 1 + i), i % 2, None] for i in range(8)],
]


@pytest.fixture
def book() -> Workbook:
    made = Workbook()
    for row in ROWS:
        made.active.append(row)
    return made


def test_a_sheet_is_read(book, tmp_path):
    book.save(tmp_path / "a.xlsx")
    task = Task.from_table(read(str(tmp_path / "a.xlsx")).learn, Roles("y"))
    assert [one.kind for one in task.schema] == [ColumnKind.NUMBER, ColumnKind.CATEGORY, ColumnKind.DATE]
    assert (task.n, task.classes) == (8, (0, 1))


def test_a_column_of_several_types_is_text(book, tmp_path):
    book.active["A3"] = "old"
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(InputError, match="'age' holds numbers and in 1 row something else, such as 'old'"):
        Task.from_table(read(str(tmp_path / "a.xlsx")).learn, Roles("y"))


def test_of_several_sheets_one_is_named(book, tmp_path):
    book.create_sheet("Second").append(["a", "y"])
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(InputError, match="has 2 sheets: name one with --sheet; there are 'Sheet', 'Second'"):
        read(str(tmp_path / "a.xlsx"))
    with pytest.raises(InputError, match="has no sheet 'Third'"):
        read(str(tmp_path / "a.xlsx"), reading=Reading(sheet="Third"))
    assert read(str(tmp_path / "a.xlsx"), reading=Reading(sheet="Sheet")).learn.num_rows == 8


def test_formulas_are_refused(book, tmp_path):
    book.active["A4"] = "=A2*2"
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(InputError, match="has a formula in cell A4, and tables hold values"):
        read(str(tmp_path / "a.xlsx"))


def test_an_empty_sheet_and_no_workbook_are_refused(tmp_path):
    Workbook().save(tmp_path / "a.xlsx")
    with pytest.raises(InputError, match="an empty sheet"):
        read(str(tmp_path / "a.xlsx"))
    (tmp_path / "b.xlsx").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"cannot read .* as xlsx"):
        read(str(tmp_path / "b.xlsx"))


def test_a_sheet_is_for_workbooks(tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n1,0\n")
    with pytest.raises(InputError, match=r"sheet is for \.xlsx, not .*: leave it out"):
        read(str(tmp_path / "a.csv"), reading=Reading(sheet="x"))
