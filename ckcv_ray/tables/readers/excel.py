"""Reader of Excel workbooks, by openpyxl (the extra ``excel``)."""

import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ckcv_ray.errors import InputError, write_install
from ckcv_ray.tables.readers.excel_sizes import MAX_SHEET_ROWS, MAX_WORKBOOK_CELLS, check_workbook
from ckcv_ray.tables.readers.limits import check_bytes, check_size
from ckcv_ray.tables.readers.lines import EVERY_LINE, LinesLeftOut, check_rows

FORMULA_CELL = "f"  # openpyxl's type of a cell


def read_excel(path: Path, sheet: str | None = None, lines: LinesLeftOut = EVERY_LINE) -> pa.Table:
    """Read the columns of a sheet, whose first row names them.

    Args:
        path: a workbook.
        sheet: name of the sheet; None if there is only one.
        lines: rows to leave out.

    Raises:
        InputError: openpyxl is not installed; there are several sheets, formulas, or too many cells; or a row
            looks like units or totals.
    """
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise InputError(
            f"{str(path)!r} needs openpyxl: {write_install('excel')}, or save the sheet as CSV"
        ) from None
    check_bytes(repr(str(path)), path.stat().st_size)
    with zipfile.ZipFile(path) as archive:
        check_workbook(archive, repr(str(path)))
    book = load_workbook(path, read_only=True, keep_links=False)
    try:
        names = book.sheetnames
        known = ", ".join(repr(name) for name in names[:12])
        if sheet is None and len(names) > 1:
            raise InputError(
                f"{str(path)!r} has {len(names)} sheets: name one with --sheet; there are {known}"
            )
        if sheet is not None and sheet not in names:
            raise InputError(f"{str(path)!r} has no sheet {sheet!r}: there are {known}")
        rows, formulas = _read_rows(book[names[0] if sheet is None else sheet], path)
    finally:
        book.close()
    filled = np.array(list(map(bool, rows)), np.bool_)
    numbers = np.flatnonzero(filled & ~lines.find(filled, repr(str(path))))
    for number in numbers:
        if formula := formulas[number]:
            last = "; --skip-rows last leaves the last row out" if number == numbers[-1] else ""
            raise InputError(
                f"{str(path)!r} has a formula in cell {formula}, and tables hold values: "
                f"put values in place of formulas, such as by saving it as CSV{last}"
            )
    columns = _make_table([rows[number] for number in numbers], path)
    check_rows(columns, repr(str(path)), lines, lambda row: int(numbers[1:][row]) + 1)
    return columns


def _read_rows(sheet: Any, path: Path) -> tuple[list[list[Any]], list[str]]:
    """Return the cells of every row, without empty ones at its end, and its first formula's place or ""."""
    rows: list[list[Any]] = []
    formulas: list[str] = []
    cells = 0
    sheet.reset_dimensions()  # nobody vouches for them: rows are as long as their cells are many
    for number, row in enumerate(sheet.iter_rows()):
        values = [cell.value for cell in row]
        while values and values[-1] is None:
            values.pop()
        cells += len(values)
        if cells > MAX_WORKBOOK_CELLS or number > MAX_SHEET_ROWS:
            raise InputError(
                f"{str(path)!r} has more than {MAX_WORKBOOK_CELLS:,} cells or {MAX_SHEET_ROWS:,} rows: "
                "save the table as CSV, or leave out columns or rows"
            )
        rows.append(values)
        formulas.append(next((cell.coordinate for cell in row if cell.data_type == FORMULA_CELL), ""))
    return rows, formulas


def _make_table(rows: list[list[Any]], path: Path) -> pa.Table:
    if not rows:
        raise InputError(f"{str(path)!r} has an empty sheet: the first row names the columns")
    width = max(map(len, rows))
    check_size(repr(str(path)), len(rows), width)
    names = ["" if name is None else str(name) for name in rows[0]] + [""] * (width - len(rows[0]))
    filled = {i for row in rows[1:] for i, value in enumerate(row) if value is not None}
    kept = [i for i, name in enumerate(names) if name or i in filled]
    arrays = (_array([row[i] if i < len(row) else None for row in rows[1:]]) for i in kept)
    return pa.Table.from_arrays(list(arrays), names=[names[i] for i in kept])


def _array(values: list[Any]) -> pa.Array:
    """Return cells as a column; of several types, as text."""
    kinds = set(map(type, values)) - {type(None)}
    if len(kinds) == 1 or bool not in kinds:  # True is no 1
        with suppress(pa.ArrowException, OverflowError):
            return pa.array(values)
    return pa.array([None if value is None else str(value) for value in values])
