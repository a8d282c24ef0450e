"""Lines of a table that are no rows (titles, units, second headers, totals): left out, or asked about."""

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns.formats import GAPS, ColumnError, drop_gaps, find_number_form
from ckcv_ray.tables.readers.limits import MAX_TABLE_ROWS
from ckcv_ray.validation import quote

LAST, NO_MORE = "last", "none"
RANGE = re.compile(r"([1-9]\d{0,9})(?:-([1-9]\d{0,9}))?", re.ASCII)
MIN_OTHERS = 5  # rows without which nothing is said of the first and the last
MAX_READ = 1_000  # rows looked at to see whether a column holds numbers
MAX_LINES_SAID = 20  # to leave out
NAMES_LINE = re.compile(rb"[\r\n]*([^\r\n]*[A-Za-z\x80-\xff][^\r\n]*)")  # a first line with a letter
TOTALS = re.compile(r"(grand |sub-?)?totals?|sums?|mean|average|all|overall", re.IGNORECASE)


@dataclass(frozen=True)
class LinesLeftOut:
    """Which lines of a file, or rows of a sheet, are left out."""

    said: str = ""  # how that was said, such as "2,5-7,last"; "" if it was not
    ranges: tuple[tuple[int, int], ...] = ()  # the first and the last line of each range, counted from 1
    last: bool = False  # whether the last line that is not blank is left out
    complete: bool = False  # whether there are no others that look as if they should be left out

    @classmethod
    def parse(cls, text: str | None) -> "LinesLeftOut":
        """Read numbers of lines, such as 2,5-7,last; "none" says that there are no more.

        Raises:
            InputError: the text is none of these.
        """
        if text is None:
            return cls()
        words = [word.strip() for word in text.split(",")] if isinstance(text, str) else [""]
        ranges: list[tuple[int, int]] = []
        for word in words:
            if word in (LAST, NO_MORE):
                continue
            found = RANGE.fullmatch(word)
            first, end = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
            if not first <= end <= MAX_TABLE_ROWS:
                raise InputError(
                    f"skip_rows={quote(text)}: expected numbers of lines, counted from 1, such as 2 or "
                    f"1-3,{LAST}, or {NO_MORE}"
                )
            ranges.append((first, end))
        return cls(text, tuple(ranges), LAST in words, NO_MORE in words)

    def find(self, filled: NDArray[np.bool_], name: str) -> NDArray[np.bool_]:
        """Return which lines are left out, (lines,).

        Args:
            filled: which lines are not blank, (lines,).
            name: of the file, for messages.

        Raises:
            InputError: the file has fewer lines than are named.
        """
        chosen = np.zeros(len(filled), np.bool_)
        for first, end in self.ranges:
            if end > len(filled):
                raise InputError(
                    f"skip_rows={quote(self.said)}: {name} has {len(filled):,} lines, and no line {end:,}"
                )
            chosen[first - 1 : end] = True
        if self.last and filled.any():
            chosen[np.flatnonzero(filled)[-1]] = True
        return chosen

    def advise(self, line: int | str) -> str:
        """Return the option that leaves out another line as well, or says that there are no more."""
        return f"--skip-rows {','.join(word for word in (self.said, str(line)) if word)}"


EVERY_LINE = LinesLeftOut()


def leave_out_lines(content: bytes, lines: LinesLeftOut, name: str) -> bytes:
    """Return text without some of its lines.

    Raises:
        InputError: it has fewer lines than are named.
    """
    if not (lines.ranges or lines.last):
        return content
    starts, filled = _find_lines(content)
    chosen = lines.find(filled, name)
    change = np.flatnonzero(np.diff(chosen.astype(np.int8), prepend=1, append=1))
    parts = zip(change[::2].tolist(), change[1::2].tolist(), strict=True)  # of lines that are kept
    return b"".join(content[starts[first] : starts[end]] for first, end in parts)


def number_lines(content: bytes, lines: LinesLeftOut, name: str) -> list[int]:
    """Return the numbers of the lines of a text that are neither blank nor left out, counted from 1."""
    _, filled = _find_lines(content)
    kept: list[int] = (np.flatnonzero(filled & ~lines.find(filled, name)) + 1).tolist()
    return kept


def _find_lines(content: bytes) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return where lines of a text start and the last one ends, (lines + 1,), and which are not blank."""
    mark = b"\n" if b"\n" in content else b"\r"
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) == mark[0]) + 1
    starts = np.unique([0, *ends, len(content)])
    filled = [bool(content[first:end].strip()) for first, end in pairwise(starts.tolist())]
    return starts, np.array(filled, np.bool_)


def check_names_once(content: bytes, written: bytes, lines: LinesLeftOut, name: str) -> None:
    """Raise InputError if the line that names the columns is repeated below, as in files that were joined.

    Args:
        content: the text that is read.
        written: the same with the lines that are left out of it.
        lines: which these are, and whether there are more to leave out.
        name: of the file, for messages.
    """
    names = NAMES_LINE.match(content)
    if lines.complete or names is None:
        return
    end = b"\n" if b"\n" in content else b"\r"
    if all(content.find(end + mark + names[1], names.end()) < 0 for mark in (b"", BOM_UTF8)):
        return
    starts, filled = _find_lines(written)
    kept = np.flatnonzero(filled & ~lines.find(filled, name)).tolist()
    texts = ((i, written[starts[i] : starts[i + 1]].rstrip(b"\r\n")) for i in kept)
    same = [i + 1 for i, text in texts if text.removeprefix(BOM_UTF8) == names[1]]
    if len(same) > 1:
        repeats = ",".join(map(str, same[1 : MAX_LINES_SAID + 1]))
        raise InputError(
            f"line {same[1]:,} of {name} repeats line {same[0]:,}, which names the columns: if files were "
            f"joined, say {lines.advise(repeats)}; if it is a row like the others, {lines.advise(NO_MORE)}"
        )


def check_rows(columns: pa.Table, name: str, lines: LinesLeftOut, number: Callable[[int], int]) -> None:
    """Raise InputError if the first row looks like a header or units, or the last one like totals.

    Args:
        columns: of the table.
        name: of the file, for messages.
        lines: what was left out of it, and whether there is more to leave out.
        number: returns the number of the line of a row; rows are counted from 0.
    """
    if lines.complete or columns.num_rows <= MIN_OTHERS:
        return
    keep = lines.advise(NO_MORE)
    if found := _find_header(columns):
        (column, cell), line = found, number(0)
        raise InputError(
            f"{name} has {cell[:40]!r} in column {column[:60]!r} of line {line:,}, and numbers in all lines "
            f"below: if that line is a second header or has units, say {lines.advise(line)} to leave it out; "
            f"if it is a row like the others, {keep}"
        )
    if cell := _find_totals(columns):
        line = number(columns.num_rows - 1)
        place = line if lines.last else LAST
        raise InputError(
            f"line {line:,} of {name}, the last, begins with {cell[:40]!r}: if it sums up the others, say "
            f"{lines.advise(place)} to leave it out; if it is a row like them, {keep}"
        )


def _find_header(columns: pa.Table) -> tuple[str, str] | None:
    """Return a column and its first cell, if the first row has a text there and all others have numbers.

    None unless each cell of the row is empty, or a text that no other row has in this column.
    """
    cells = [(column, column[0].as_py()) for column in columns.columns]
    if not all(isinstance(cell, str) and not _has_numbers([cell]) for _, cell in cells if not _is_gap(cell)):
        return None
    texts = [(i, cell) for i, (_, cell) in enumerate(cells) if not _is_gap(cell)]
    numbers = [(i, cell) for i, cell in texts if _has_numbers(cells[i][0].slice(1, MAX_READ).to_pylist())]
    if not numbers or not all(_is_single(columns.column(i), cell) for i, cell in texts):
        return None
    i, cell = numbers[0]
    return columns.column_names[i], cell


def _find_totals(columns: pa.Table) -> str:
    """Return the first cell of the last row if it is a word for totals, and in no other row; else ""."""
    row = [column[-1].as_py() for column in columns.columns]
    i = next((i for i, cell in enumerate(row) if not _is_gap(cell)), None)
    if i is None or not isinstance(row[i], str):
        return ""
    cell = row[i].strip()
    word = TOTALS.match(cell)
    if word is None or cell[word.end() : word.end() + 1].isalnum():
        return ""
    alone = not any(letter.isalnum() for letter in cell[word.end() :])
    likely = (alone or any(map(_is_gap, row))) and _is_single(columns.column(i), row[i])
    return cell if likely else ""


def _is_gap(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in GAPS)


def _has_numbers(cells: Iterable[str | None]) -> bool:
    texts = drop_gaps({None if cell is None else cell.strip() for cell in cells})
    try:
        form, bad = find_number_form(texts, "") if texts else ("", [])
    except ColumnError:  # numbers that may be read in two ways
        return True
    return bool(form) and not bad


def _is_single(column: pa.ChunkedArray, cell: str) -> bool:
    """Return whether a text is in one row of a column alone."""
    return bool(pc.sum(pc.equal(column, cell)).as_py() == 1)
