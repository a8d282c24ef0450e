"""Reader of Excel workbooks, by openpyxl (the extra ``excel``)."""

import re
import zipfile
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ckcv_ray.errors import InputError, pluralize, write_install
from ckcv_ray.tables.readers.limits import LINE_BYTES, REMARKS, check_bytes, check_size
from ckcv_ray.tables.readers.lines import EVERY_LINE, LAST, NO_MORE, LinesLeftOut, check_rows

FORMULA_CELL = "f"  # openpyxl's type of a cell
MAX_WORKBOOK_CELLS = 1 << 24
MAX_SHEET_ROWS = 1 << 20  # of a sheet, as Excel has it
MAX_SHEET_COLUMNS = 1 << 14
MAX_ITEMS = MAX_WORKBOOK_CELLS + MAX_SHEET_ROWS  # cells and rows of a part, or strings
MAX_OTHER_TAGS = 1 << 20  # beside sixteen for each item
ITEM = re.compile(rb"<(?:\w+:)?(c|row|si)[\s/>]")
Formulas = dict[int, dict[int, str]]  # by row and column, both counted from 0: the name of the cell


def read_excel(path: Path, sheet: str | None = None, lines: LinesLeftOut = EVERY_LINE) -> pa.Table:
    """Read the columns of a sheet, whose first row names them.

    Formulas are read as the values that were stored with them; a remark says so: see ``list_remarks``.

    Args:
        path: a workbook.
        sheet: name of the sheet; None if there is only one.
        lines: rows to leave out.

    Raises:
        InputError: openpyxl is not installed; there are several sheets, or too many cells; a formula has no
            value; or a row looks like units or totals.
    """
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise InputError(
            f"{str(path)!r} needs openpyxl: {write_install('excel')}, or save the sheet as CSV"
        ) from None
    name = repr(str(path))
    check_bytes(name, path.stat().st_size)
    _check_tags(path)
    with closing(load_workbook(path, read_only=True, keep_links=False)) as book:
        names = book.sheetnames
        known = ", ".join(repr(name) for name in names[:12])
        if sheet is None and len(names) > 1:
            raise InputError(f"{name} has {len(names)} sheets: name one with --sheet; there are {known}")
        if sheet is not None and sheet not in names:
            raise InputError(f"{name} has no sheet {sheet!r}: there are {known}")
        sheet = names[0] if sheet is None else sheet
        rows, formulas = _read_rows(book[sheet], name)
    filled = np.array(list(map(bool, rows)), np.bool_)
    numbers = np.flatnonzero(filled & ~lines.find(filled, name)).tolist()
    remark = ""
    if computed := {number: formulas[number] for number in numbers if number in formulas}:
        _check_last(computed, numbers, lines, name)
        with closing(load_workbook(path, read_only=True, keep_links=False, data_only=True)) as book:
            rows, _ = _read_rows(book[sheet], name)
        _check_values(computed, rows, name)
        cells = [cell for places in computed.values() for cell in places.values()]
        count = pluralize(len(cells), "formula")
        remark = f"has {count}, the first in cell {cells[0]}: the value stored with a formula is read"
    check_size(name, len(rows), max(map(len, rows), default=0))
    columns = _make_table([rows[number] for number in numbers], path)
    check_rows(columns, name, lines, lambda row: int(numbers[1:][row]) + 1)
    return columns.replace_schema_metadata({REMARKS: remark.encode()} if remark else None)


def _check_tags(path: Path) -> None:
    """Raise InputError if a workbook would take openpyxl very long, by the tags of its parts."""
    with zipfile.ZipFile(path) as archive:
        check_bytes(repr(str(path)), sum(part.file_size for part in archive.infolist()))
        for part in archive.infolist():
            cells = rows = items = tags = 0
            with archive.open(part) as stream:
                while block := stream.read(LINE_BYTES):
                    found = ITEM.findall(block)
                    cells, rows = cells + found.count(b"c"), rows + found.count(b"row")
                    items, tags = items + len(found), tags + block.count(b"<")
                    is_sheet = cells <= MAX_SHEET_COLUMNS * (rows + 1) and rows <= MAX_SHEET_ROWS
                    if not is_sheet or items > MAX_ITEMS or tags > 16 * items + MAX_OTHER_TAGS:
                        raise _too_many(repr(str(path)))


def _too_many(name: str) -> InputError:
    return InputError(
        f"{name} has more than {MAX_WORKBOOK_CELLS:,} cells or {MAX_SHEET_ROWS:,} rows, or much else: "
        "save the table as CSV, or leave out columns or rows"
    )


def _read_rows(sheet: Any, name: str) -> tuple[list[list[Any]], Formulas]:
    """Return the cells of every row, without empty ones at its end, and its formulas."""
    rows: list[list[Any]] = []
    formulas: Formulas = {}
    cells = 0
    sheet.reset_dimensions()  # nobody vouches for them: rows are as long as their cells are many
    for number, row in enumerate(sheet.iter_rows()):
        values = [cell.value for cell in row]
        cells += len(values)
        if cells > MAX_WORKBOOK_CELLS or number >= MAX_SHEET_ROWS:
            raise _too_many(name)
        if FORMULA_CELL in (kinds := [cell.data_type for cell in row]):
            formulas[number] = {i: row[i].coordinate for i, kind in enumerate(kinds) if kind == FORMULA_CELL}
        while values and values[-1] is None:
            values.pop()
        rows.append(values)
    return rows, formulas


def _check_last(computed: Formulas, numbers: list[int], lines: LinesLeftOut, name: str) -> None:
    """Raise InputError if the last row has formulas where no other has: it may sum up the others."""
    others = {i for number, places in computed.items() for i in places if number != numbers[-1]}
    alone = [cell for i, cell in computed.get(numbers[-1], {}).items() if i not in others]
    if alone and len(numbers) > 2 and not lines.complete:
        place = numbers[-1] + 1 if lines.last else LAST
        raise InputError(
            f"{name} has a formula in cell {alone[0]} of the last row, and values above it: if it sums up "
            f"the others, say {lines.advise(place)} to leave the row out; if it is a row like them, "
            f"{lines.advise(NO_MORE)}"
        )


def _check_values(computed: Formulas, rows: list[list[Any]], name: str) -> None:
    """Raise InputError if a formula has no value, as in workbooks that no spreadsheet program has saved."""
    for number, places in computed.items():
        for i, cell in places.items():
            if i >= len(rows[number]) or rows[number][i] is None:
                raise InputError(
                    f"{name} has a formula in cell {cell} without a stored value: open it in a spreadsheet "
                    "program and save it, or save the sheet as CSV"
                )


def _make_table(rows: list[list[Any]], path: Path) -> pa.Table:
    if not rows:
        raise InputError(f"{str(path)!r} has an empty sheet: the first row names the columns")
    width = max(map(len, rows))
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
