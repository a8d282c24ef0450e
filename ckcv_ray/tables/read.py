"""Readers of tables as Arrow columns: text, Excel, Parquet, Feather, NPZ and svmlight files, and data frames.

What a text table does not say (separator, decimal comma, encoding) is guessed from the file alone, and only
where a single reading is possible: otherwise the file is refused, naming the option to give. Where a guess
may still be wrong, or something is left out, a remark says so.

Nearly any bytes can be read as Western European text (cp1252), even those of Russian, Japanese or Mac text. A
file is read as such only if its words then look like words; otherwise the encoding has to be given.

Files are not trusted. The sizes that a file declares are checked against limits, and what it really expands
to has limited memory, so that a small file that expands to a large one, or claims to, is refused; nothing in
it is unpickled. Text is counted as it is unpacked, and read without that limit: Arrow's text reader ends the
process when memory is short.
"""

import codecs
import json
import os
import re
import resource
import sys
import threading
import zipfile
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from importlib.util import find_spec
from io import BytesIO
from itertools import islice, zip_longest
from os.path import isdir, isfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv, parquet

from ckcv_ray import errors
from ckcv_ray.errors import InputError, as_array, as_path, convert_errors, pluralize, quote, suggest
from ckcv_ray.tables.columns import (
    DECIMAL,
    DECLARED,
    GAPS,
    HELD,
    MAX_TABLE_BYTES,
    REMARKS,
    SPARSE,
    ColumnError,
    bare,
    check_bytes,
    check_text,
    decode,
    drop_gaps,
    find_decimal_mark,
    find_number_form,
    is_doubtful,
    is_plain,
    is_value,
)
from ckcv_ray.tables.objects import Bucket, is_address, parse_address

MAX_TABLE_ROWS = 10_000_000
MAX_TABLE_COLUMNS = 65_536
MAX_CELLS = 1 << 27
LINE_BYTES = 1 << 24
FOLDER_BYTES = 2 << 30  # of memory, besides what is mapped, for reading a file of a run folder
OWN_SHARE = 0.75  # of the free memory, for reading a table
WESTERN = "cp1252"  # what spreadsheets in Western Europe write
OTHERS = ("cp1251", "cp1250", "shift_jis", "gb18030", "mac_roman")
MAX_WORDS = 50_000  # that are looked at
LONGEST_WORD = 40
ODD_SHARE = 20  # fewer than one word in 20 may look odd
WORD_START = re.compile(r"[A-Za-z]*\Z")
WORD_END = re.compile(r"[^\0-\x7f][^\0-@\[-`{-\x7f]*")  # from the first letter that is not ASCII
SYMBOLS = {
    **dict.fromkeys("’‘–—…·´°×µªº\xa0", "j"),  # may join letters
    **dict.fromkeys("¹²³", "2"),
    **dict.fromkeys("„‚¿¡", "p"),  # open a word, but do not end it
    **dict.fromkeys("“”«»‹›", "q"),
}
ODD = re.compile("x|Lp|L[spq]+L|[s2]{2}|2LL|[al]U|[AU]U[al]".replace("L", "[aAlUo]"))  # see _outline
ODD_IN_LATIN = re.compile("[lU]{3}|^[^aA]*$")
ALONE = "àèéåöøæÀÉÅÖØÆ"  # letters that are words, or symbols, on their own
LAST, NO_MORE = "last", "none"
RANGE = re.compile(r"([1-9]\d{0,9})(?:-([1-9]\d{0,9}))?", re.ASCII)
MIN_OTHERS = 5  # with no more rows, nothing is said about the first and the last
MAX_READ = 1_000  # rows examined to see whether a column holds numbers
MAX_LINES_SAID = 20  # to name as lines to leave out
NAMES_LINE = re.compile(rb"[\r\n]*([^\r\n]*[A-Za-z\x80-\xff][^\r\n]*)")  # a first line with a letter
TOTALS = re.compile(r"(grand |sub-?)?totals?|sums?|mean|average|all|overall", re.IGNORECASE)
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
SAMPLE_LINES = 100
SPACE = " "
PARSED_ROW = re.compile(r"CSV parse error: Row #(\d+)")
SAYS_SEPARATOR = re.compile(rb"sep=([^\r\n])\r?\n")  # a first line written by spreadsheets
MARKS = {  # by which a text gives its own encoding; UTF-16's begins one of UTF-32's
    **dict.fromkeys((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE), "utf-32"),
    **dict.fromkeys((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), "utf-16"),
}
COMMENT_MARK = re.compile(rb"\s*# +(?!of )")  # before the names, as numpy.savetxt writes it
NO_ROW = b" \t\v\f\r\n,;|\x1a"  # what empty lines at the end may hold, with the end-of-file of DOS
LINE_END = re.compile(rb"[\r\n]")
END_BYTES = 1 << 10  # searched first for such lines
DECIMAL_COMMA = re.compile(
    rb"(?:^|[;\t|\n])\"?(?:[+-]|\xe2\x88\x92)?\d+,(?:\d{1,2}|\d{4,})\"?(?=[;\t|\r\n]|$)"
)
FORMULA_CELL = "f"  # openpyxl's type of a cell
MAX_WORKBOOK_CELLS = 1 << 24
MAX_SHEET_ROWS = 1 << 20  # of a sheet in Excel
MAX_SHEET_COLUMNS = 1 << 14
MAX_ITEMS = MAX_WORKBOOK_CELLS + MAX_SHEET_ROWS  # cells and rows of a part, or strings
MAX_OTHER_TAGS = 1 << 20  # besides sixteen for each item
TOO_MANY = (
    f"has more than {MAX_WORKBOOK_CELLS:,} cells or {MAX_SHEET_ROWS:,} rows, or much else: save the table as "
    "CSV, or leave out columns or rows"
)
ITEM = re.compile(rb"<(?:\w+:)?(c|row|si)[\s/>]")
Formulas = dict[tuple[int, int], str]  # the name of the cell by row and column, both counted from 0
SPACED = (".txt", ".dat")  # text tables that spaces may separate
TEXT, EXCEL = (".csv", ".tsv", *SPACED), (".xlsx",)
SUFFIXES = (*TEXT, ".parquet", ".feather", *EXCEL, ".npz", ".svmlight", ".libsvm", ".svm")
LONGEST_TYPE = 120
SAFE_DIGITS = 15  # digits of decimals, with which different ones are different floats
STUDY_FILE = "study.json"  # that marks a run folder
UNREADABLE = (pa.ArrowException, ValueError, TypeError, OverflowError)


@contextmanager
def limit_memory(most: int | None = None) -> Iterator[None]:
    """Let this process map at most ``most`` bytes beyond what it has; lift the limit at the end.

    The limit is on the process. So none is set while Python has other threads, which could not allocate
    either, nor on systems other than Linux: there a file may take all the memory there is.

    Args:
        most: bytes; by default three quarters of the free memory.

    Raises:
        ValueError: more is needed.
    """
    if sys.platform != "linux" or threading.active_count() > 1:
        yield
        return
    if most is None:
        free = next(line for line in Path("/proc/meminfo").read_text().splitlines() if "MemAvailable" in line)
        most = int(OWN_SHARE * 1024 * int(free.split()[1]))
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    least = min(limit for limit in (mapped + most, soft, hard) if limit != resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_AS, (least, hard))
    try:
        yield
    except MemoryError:
        raise ValueError(f"reading it takes more than {max(0, least - mapped) >> 20:,} MiB") from None
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def check_size(
    name: str, rows: int, columns: int, most_rows: int = MAX_TABLE_ROWS, most_cells: int = MAX_CELLS
) -> None:
    """Raise InputError if a table is too large to be read."""
    if rows > most_rows or columns > MAX_TABLE_COLUMNS or rows * columns > most_cells:
        raise InputError(
            f"{name} has {rows:,} rows and {columns:,} columns: at most {most_rows:,} rows, "
            f"{MAX_TABLE_COLUMNS:,} columns and {most_cells:,} cells can be read; leave out columns, or take "
            "a sample of the rows"
        )


def _outline(c: str) -> str:
    """Return a letter for the kind of a character: A, a (ASCII), U, l, o (other letters), or a mark."""
    if c in SYMBOLS or not c.isalpha():
        return SYMBOLS.get(c, "s" if c.isprintable() else "x")
    if c.isascii():
        return "A" if c.isupper() else "a"
    return "U" if c.isupper() else "l" if c.islower() else "o"


class _LinesLeftOut:
    """Which lines of a file, or rows of a sheet, are left out.

    Args:
        text: their numbers, such as 2,5-7,last; "none" says that there are no more, however they look.

    Raises:
        InputError: the text is neither.
    """

    def __init__(self, text: str | None) -> None:
        words = list[str]()
        if text is not None:
            words = [word.strip() for word in text.split(",")] if isinstance(text, str) else [""]
        self.said, self.last, self.complete = text or "", LAST in words, NO_MORE in words
        self.ranges: list[tuple[int, int]] = []  # the first and the last line of each range, counted from 1
        for word in words:
            if word in (LAST, NO_MORE):
                continue
            found = RANGE.fullmatch(word)
            first, end = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
            if not first <= end <= MAX_TABLE_ROWS:
                wanted = f"line numbers, counted from 1, such as 2 or 1-3,{LAST}, or {NO_MORE}"
                raise InputError(f"skip_rows={quote(text)}: expected {wanted}")
            self.ranges.append((first, end))

    def find(self, filled: NDArray[np.bool_], name: str) -> NDArray[np.bool_]:
        """Return which lines of a file are left out, (lines,), given which are ``filled``, and not blank."""
        chosen = np.zeros(len(filled), np.bool_)
        for first, end in self.ranges:
            if end > len(filled):
                count = f"{len(filled):,} lines, and no line {end:,}"
                raise InputError(f"skip_rows={quote(self.said)}: {name} has {count}")
            chosen[first - 1 : end] = True
        if self.last and filled.any():
            chosen[np.flatnonzero(filled)[-1]] = True
        return chosen

    def advise(self, line: int | str) -> str:
        """Return the option that leaves out another line as well, or says that there are no more."""
        return f"--skip-rows {','.join(word for word in (self.said, str(line)) if word)}"


def _number_lines(content: bytes, lines: _LinesLeftOut, name: str) -> list[int]:
    """Return the numbers of the lines of a text that are neither blank nor left out, counted from 1."""
    filled = np.array([bool(line.strip()) for line in _split_lines(content)], np.bool_)
    kept: list[int] = (np.flatnonzero(filled & ~lines.find(filled, name)) + 1).tolist()
    return kept


def _split_lines(content: bytes) -> list[bytes]:
    """Return the lines of a text with their ends; if there is any line feed, only line feeds end lines."""
    end = b"\n" if b"\n" in content else b"\r"
    *lines, last = content.split(end)
    return [line + end for line in lines] + [last] * bool(last)


def _check_names_once(content: bytes, written: bytes, lines: _LinesLeftOut, name: str) -> None:
    """Raise InputError if the line that names the columns is repeated below, as in files that were joined.

    ``written`` is ``content`` with the lines that were left out of it.
    """
    names = NAMES_LINE.match(content)
    if lines.complete or names is None:
        return
    end = b"\n" if b"\n" in content else b"\r"
    if all(content.find(end + mark + names[1], names.end()) < 0 for mark in (b"", BOM_UTF8)):
        return
    texts = [line.rstrip(b"\r\n").removeprefix(BOM_UTF8) for line in _split_lines(written)]
    same = [i for i in _number_lines(written, lines, name) if texts[i - 1] == names[1]]
    if len(same) > 1:
        repeats = ",".join(map(str, same[1 : MAX_LINES_SAID + 1]))
        raise InputError(
            f"line {same[1]:,} of {name} repeats line {same[0]:,}, which names the columns: if files were "
            f"joined, say {lines.advise(repeats)}; if it is a row like the others, {lines.advise(NO_MORE)}"
        )


def _check_rows(columns: pa.Table, name: str, lines: _LinesLeftOut, number: Callable[[int], int]) -> None:
    """Raise InputError if the first row looks like a header or units, or the last one like totals.

    In each column the first row is empty, or has text that no other row has there, and in one all others have
    numbers; or the last row begins with a word for totals, which no other row has there. ``number`` returns
    the line number of a row, counted from 1; row 0 holds the names.
    """
    if lines.complete or columns.num_rows <= MIN_OTHERS:
        return
    keep, named = lines.advise(NO_MORE), zip(columns.column_names, columns.columns, strict=True)
    first = [(title, column, column[0].as_py()) for title, column in named if not _is_gap(column[0].as_py())]
    if all(isinstance(cell, str) and not _are_numbers([cell]) for _, _, cell in first):
        numbers = (one for one in first if _are_numbers(one[1].slice(1, MAX_READ).to_pylist()))
        found = next(numbers, None)
        if found and all(pc.sum(pc.equal(column, cell)).as_py() == 1 for _, column, cell in first):
            (title, _, cell), above, line = found, number(0), number(1)
            raise InputError(
                f"{name} has {cell[:40]!r} in column {title[:60]!r} of line {line:,}, and numbers in all "
                f"lines below: if that line is a second header or has units, say {lines.advise(line)} to "
                f"leave it out; if line {above:,} is a title, {lines.advise(above)}; if neither, {keep}"
            )
    last = [(column, column[-1].as_py()) for column in columns.columns]
    column, said = next((one for one in last if not _is_gap(one[1])), (None, None))
    cell = said.strip() if isinstance(said, str) else ""
    if (word := TOTALS.match(cell)) and not cell[word.end() : word.end() + 1].isalnum():
        alone = not any(letter.isalnum() for letter in cell[word.end() :])
        likely = alone or any(_is_gap(other) for _, other in last)
        if likely and pc.sum(pc.equal(column, said)).as_py() == 1:
            line = number(columns.num_rows)
            place = line if lines.last else LAST
            raise InputError(
                f"line {line:,} of {name}, the last, begins with {cell[:40]!r}: if it sums up the others, "
                f"say {lines.advise(place)} to leave it out; if it is a row like them, {keep}"
            )


def _is_gap(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in GAPS)


def _are_numbers(cells: Iterable[str | None]) -> bool:
    texts = drop_gaps({None if cell is None else cell.strip() for cell in cells})
    try:
        form, bad = find_number_form(texts) if texts else ("", [])
    except ColumnError:  # numbers that can be read in two ways
        return True
    return bool(form) and not bad


def _read_text(path: Path, suffix: str, reading: "Reading", lines: _LinesLeftOut) -> pa.Table:
    """Read the columns of a text table, whose first line names them: every cell as text, as written.

    An empty cell is null. The metadata of the table has its decimal mark and remarks: see ``DECIMAL`` and
    ``REMARKS``. A space as separator stands for any number of spaces and tabs; where none is given, one is
    found.
    """
    name, encoding = repr(str(path)), reading.encoding
    separator = "\t" if reading.separator is None and suffix == ".tsv" else reading.separator
    if separator is not None and (len(separator) != 1 or not separator.isascii() or separator in '\r\n"'):
        raise InputError(f"separator={separator!r}: expected one character, such as ';' or a tab")
    written, remarks = _decode(_inflate(path, encoding is not None), encoding, name)
    _check_cells(written, "".join(SEPARATORS).encode(), name)
    written = written.rstrip(b"\x1a")
    end = written[-END_BYTES:]
    end = end if end.strip(NO_ROW) else written
    last = LINE_END.search(written, len(written) - len(end) + len(end.rstrip(NO_ROW)))
    if last and written[last.start() :].strip(b"\r\n"):  # only blanks and separators: as if empty
        written = written[: last.start()] + re.sub(rb"[^\r\n]+", b"", written[last.start() :])
    content = written
    if lines.ranges or lines.last:
        parts = _split_lines(written)
        chosen = lines.find(np.array([bool(part.strip()) for part in parts], np.bool_), name)
        content = b"".join(part for part, is_out in zip(parts, chosen, strict=True) if not is_out)
    heads = 0  # lines before the names
    if said := SAYS_SEPARATOR.match(content):
        content, separator, heads = content[said.end() :], separator or said[1].decode("ascii", "replace"), 1

    def find_line(row: int) -> int:
        """Return the number in the file of a non-blank line, counted from 0."""
        numbers = _number_lines(written, lines, name)
        return numbers[min(heads + row, len(numbers) - 1)]

    kept = content
    if mark := COMMENT_MARK.match(content):
        content = content[mark.end() :]
    separator = separator or _separator(content, name, suffix in SPACED)
    if separator == SPACE:
        if mark and len({len(line.split()) for line in content.split(b"\n", 2)[:2]}) > 1:  # it is a name
            content, mark = mark[0] + content, None
        if b'"' in content:  # one tab for all the spaces and tabs between two columns
            content = re.sub(rb'("[^"]*")|[ \t]+', lambda found: found[1] or b"\t", content)
        else:
            content = re.sub(rb"[ \t]+", b"\t", content)
        content, separator = re.sub(rb"(?m)^\t|\t(?=\r?$)", b"", content), "\t"
        _check_cells(content, b"\t", name)
    columns = _parse(content, separator, name, find_line)
    # a cell may span lines: then only the first and the last row have known line numbers
    _check_rows(columns, name, lines, lambda row: find_line(row if row < 2 else MAX_TABLE_ROWS))
    _check_names_once(kept, written, lines, name)
    if mark:
        first = columns.column_names[0]
        remarks.append(f"has a # before its names: it is left out, and the first column is {first!r}")
    return columns.replace_schema_metadata({**columns.schema.metadata, REMARKS: "\n".join(remarks).encode()})


def _parse(content: bytes, separator: str, name: str, find_line: Callable[[int], int]) -> pa.Table:
    """Return the columns of a text in UTF-8, from the line that names them."""
    comma = separator != "," and DECIMAL_COMMA.search(content[:LINE_BYTES]) is not None
    reading = csv.ReadOptions(block_size=LINE_BYTES, use_threads=False)
    parsing = csv.ParseOptions(delimiter=separator, newlines_in_values=b'"' in content)
    as_text = csv.ConvertOptions(strings_can_be_null=True, null_values=[""], default_column_type=pa.string())
    try:
        columns = csv.read_csv(pa.BufferReader(content), reading, parsing, as_text)
    except pa.ArrowInvalid as error:
        if "Expected" not in str(error):
            raise
        reason = str(error)
        if b'"' not in content:  # otherwise a quoted cell may hold a line end
            reason = PARSED_ROW.sub(lambda row: f"line {find_line(int(row[1]) - 1):,}", reason)
        raise InputError(
            f"{name} has lines of different lengths ({reason}): its first line has to name every column, one "
            "of row names too (R writes none with row.names=FALSE), without a title or remarks above, which "
            f"--skip-rows leaves out (such as 1-2); or say --separator, which is {separator!r} here"
        ) from None
    columns = columns.rename_columns([column.strip() for column in columns.column_names])
    mark = b"," if comma else b""
    for column in () if comma else columns.slice(0, SAMPLE_LINES).columns:
        known = drop_gaps({None if cell is None else bare(cell) for cell in column.to_pylist()})
        with suppress(ColumnError):
            form, bad = find_number_form(known) if any("." in text for text in known) else ("", known)
            certain = any("." in text and not is_doubtful(text, form) for text in known)
            if certain and not bad and find_decimal_mark(form) == ".":  # in numbers alone it can be no other
                mark = b"."
                break
    return columns.replace_schema_metadata({DECIMAL: mark})


def _inflate(path: Path, long_lines: bool = False) -> bytes:
    name, parts = repr(str(path)), list[bytes]()
    check_bytes(name, path.stat().st_size)
    with pa.input_stream(str(path), COMPRESSED.get(path.suffix.lower())) as stream:
        while block := stream.read(LINE_BYTES):
            if not long_lines and len(block) >= LINE_BYTES and not LINE_END.search(block):
                raise InputError(f"{name} has a line of more than {LINE_BYTES >> 20} MiB: is it a table?")
            parts.append(block)
            check_bytes(name, sum(map(len, parts)))
    return b"".join(parts)


def _check_cells(content: bytes, separators: bytes, name: str) -> None:
    """Raise InputError if text has too many cells, taking any byte of ``separators`` as one between them."""
    rows = max(content.count(b"\n"), content.count(b"\r"))
    first = LINE_END.split(content, maxsplit=1)[0]
    columns, cells = (max(map(text.count, separators)) for text in (first, content))
    check_size(name, rows, max(1 + columns, cells // max(1, rows)))


def _decode(content: bytes, encoding: str | None, name: str) -> tuple[bytes, list[str]]:
    """Return text in UTF-8, without a byte order mark, and remarks.

    A mark decides, whatever else was said; without either, the encoding is UTF-8 or Western European.
    """
    if encoding is not None:
        "a".encode(encoding)  # fails if there is no such encoding, even with a mark
    if content.startswith(codecs.BOM_UTF8):
        content, encoding = content.removeprefix(codecs.BOM_UTF8), None
    encoding = next((own for mark, own in MARKS.items() if content.startswith(mark)), encoding)
    if encoding is None and b"\0" not in content:
        place = pa.py_buffer(np.array([0, len(content)], np.int32))
        with suppress(pa.ArrowInvalid):  # validated, as decoded characters would take up to four bytes each
            pa.StringArray.from_buffers(1, place, pa.py_buffer(content)).validate(full=True)
            return content, []
        encoding = "utf-8"
        with suppress(UnicodeDecodeError):
            text, words, odd = content.decode(WESTERN), dict[str, None](), list[str]()
            for found in islice(WORD_END.finditer(text), MAX_WORDS):  # those that are not ASCII
                at = found.start()
                start = WORD_START.findall(text[max(0, at - LONGEST_WORD) : at])[0]
                words[start + found[0][:LONGEST_WORD]] = None
            # in the right code page a word has no symbols among its letters, no capital after a small
            # letter, but at least one ASCII letter, and at most two others in a row
            for word in words:
                outline = "".join(map(_outline, word))
                latin = any(kind in "aAlUo" for kind in outline) and not (len(word) == 1 and word in ALONE)
                if ODD.search(outline) or (latin and ODD_IN_LATIN.search(outline)):
                    odd.append(word)
            if len(odd) * ODD_SHARE < len(words):
                sample = odd[0] if odd else next(filter(str.isalpha, words), next(iter(words)))
                remark = f"is not UTF-8: read as {WESTERN}, as in {sample!r}; say --encoding if it is not"
                return text.encode(), [remark]
    if encoding is not None:
        try:
            content = content.decode(encoding).encode()
        except UnicodeError as error:
            start = error.start if isinstance(error, UnicodeDecodeError) else 0
            line = content.count(b"\n", 0, start) + 1
            raise InputError(
                f"{name} is not in {encoding}, as line {line:,} shows: say which --encoding it is in, such "
                f"as {', '.join(OTHERS)}, or save it in UTF-8"
            ) from None
        check_bytes(name, len(content))
    if b"\0" in content:
        cure = "unless it is in UTF-16: then say --encoding utf-16-le, or save it in UTF-8"
        raise InputError(f"{name} holds zero bytes: it is not text, {cure}")
    return content, []


def _separator(content: bytes, name: str, spaces: bool) -> str:
    """Return the separator that divides every line alike; spaces only if allowed, and no other does."""
    lines = [line for line in content[:LINE_BYTES].splitlines()[:SAMPLE_LINES] if line.strip()]
    bare = [re.sub(rb'"[^"]*"?', b"", line) for line in lines]
    counts = {separator: [line.count(separator.encode()) for line in bare] for separator in SEPARATORS}
    present = [separator for separator, found in counts.items() if found and found[0]]
    alike = [separator for separator in present if len(set(counts[separator])) == 1]
    if len(alike) > 1:
        called = " and ".join(SEPARATORS[separator] for separator in alike)
        cure = f"say --separator {alike[0]!r} or another"
        raise InputError(f"{name} may be separated by {called}, which all divide every line alike: {cure}")
    if alike:
        return alike[0]
    words = [len(re.sub(rb'"[^"]*"?', b"q", line).split()) for line in lines]
    names, rows = words[:1], set(words[1:] or words)
    if spaces and len(rows) == 1 and names[0] > 1 and min(rows) - names[0] in (0, 1):  # 1: rows have names
        return SPACE
    return max(present, key=lambda separator: counts[separator][0], default=",")


def _read_excel(path: Path, sheet: str | None, lines: _LinesLeftOut) -> pa.Table:
    """Read the columns of a sheet, whose first row names them.

    Formulas are read as the values stored with them; a remark says so: see ``REMARKS``.
    """
    name = repr(str(path))
    if find_spec("openpyxl") is None:
        raise InputError(f"{name} needs openpyxl: {errors.write_install('excel')}, or save the sheet as CSV")
    check_bytes(name, path.stat().st_size)
    _check_tags(path)
    rows, formulas = _read_rows(path, sheet)
    filled = np.array(list(map(bool, rows)), np.bool_)
    kept = filled & ~lines.find(filled, name)
    numbers, remark = np.flatnonzero(kept).tolist(), ""
    if computed := {place: cell for place, cell in formulas.items() if kept[place[0]]}:
        above = {i for row, i in computed if row != numbers[-1]}
        alone = [cell for (row, i), cell in computed.items() if row == numbers[-1] and i not in above]
        if alone and len(numbers) > 2 and not lines.complete:  # the last row may be the others' total
            place = numbers[-1] + 1 if lines.last else LAST
            raise InputError(
                f"{name} has a formula in cell {alone[0]} of the last row, and values above it: if it sums "
                f"up the others, say {lines.advise(place)} to leave the row out; if it is a row like them, "
                f"{lines.advise(NO_MORE)}"
            )
        rows, _ = _read_rows(path, sheet, data_only=True)
        first, count = next(iter(computed.values())), pluralize(len(computed), "formula")
        for (row, i), cell in computed.items():
            if rows[row][i : i + 1] in ([], [None]):
                raise InputError(  # no spreadsheet program has saved the workbook
                    f"{name} has a formula in cell {cell} without a stored value: open it in a "
                    "spreadsheet program and save it, or save the sheet as CSV"
                )
        remark = f"has {count}, the first in cell {first}: the value stored with a formula is read"
    check_size(name, len(rows), max(map(len, rows), default=0))
    if not numbers:
        raise InputError(f"{name} has an empty sheet: the first row names the columns")
    titles, columns = list[str](), []
    for title, *cells in zip_longest(*(rows[number] for number in numbers)):
        kinds = set(map(type, cells)) - {type(None)}
        if not kinds and title in (None, ""):
            continue
        titles.append("" if title is None else str(title))
        column = [None if cell is None else str(cell) for cell in cells]  # several types become text
        if len(kinds) == 1 or bool not in kinds:  # True is not 1
            with suppress(pa.ArrowException, OverflowError):
                column = pa.array(cells)
        columns.append(column)
    table = pa.table(columns, names=titles)
    _check_rows(table, name, lines, lambda row: int(numbers[row]) + 1)
    return table.replace_schema_metadata({REMARKS: remark.encode()} if remark else None)


def _check_tags(path: Path) -> None:
    """Raise InputError if a workbook's tags show that openpyxl would take very long."""
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
                        raise InputError(f"{str(path)!r} {TOO_MANY}")


def _read_rows(path: Path, sheet: str | None, data_only: bool = False) -> tuple[list[list[Any]], Formulas]:
    """Return the cells of every row of a sheet, without empty ones at its end, and its formulas."""
    from openpyxl import load_workbook

    name, rows, formulas, cells = repr(str(path)), list[list[Any]](), Formulas(), 0
    with closing(load_workbook(path, read_only=True, keep_links=False, data_only=data_only)) as book:
        names = book.sheetnames
        known = ", ".join(map(repr, names[:12]))
        if sheet is None and len(names) > 1:
            raise InputError(f"{name} has {len(names)} sheets: name one with --sheet; there are {known}")
        if sheet is not None and sheet not in names:
            raise InputError(f"{name} has no sheet {sheet!r}: there are {known}")
        chosen = book[names[0] if sheet is None else sheet]
        chosen.reset_dimensions()  # they cannot be trusted: a row is as long as its cells
        for number, row in enumerate(chosen.iter_rows()):
            values = [cell.value for cell in row]
            cells += len(values)
            if cells > MAX_WORKBOOK_CELLS or number >= MAX_SHEET_ROWS:
                raise InputError(f"{name} {TOO_MANY}")
            found = ((i, cell.coordinate) for i, cell in enumerate(row) if cell.data_type == FORMULA_CELL)
            formulas |= {(number, i): cell for i, cell in found}
            while values and values[-1] is None:
                values.pop()
            rows.append(values)
    return rows, formulas


def find_suffix(path: Path) -> str:
    """Return the suffix that gives the format; for a compressed text table, the one before the last."""
    suffix = path.suffix.lower()
    inner = Path(path.stem).suffix.lower()
    return inner if suffix in COMPRESSED and inner in TEXT else suffix


class Reading(NamedTuple):
    """What a file does not say about itself.

    Attributes:
        separator: separator of the columns of a text table; None to find it.
        sheet: sheet of a workbook; None if it has only one.
        skip_rows: numbers of lines of a text table, or of rows of a sheet, to leave out, such as
            "1-3,7,last"; "none" to keep those that look like units or totals; None to leave out none but
            refuse these.
        encoding: encoding of a text table whose first bytes do not tell, such as cp1251, shift_jis or
            mac_roman; None to find it: UTF-8, or cp1252 if that looks right.
    """

    separator: str | None = None
    sheet: str | None = None
    skip_rows: str | None = None
    encoding: str | None = None

    def adapt(self, source: str) -> "Reading":
        """Return what applies to another file, perhaps in another format."""
        suffix = find_suffix(Path(source))
        kept = (value if suffix in suffixes else None for value, suffixes in zip(self, FOR, strict=True))
        return Reading(*kept)


AS_IT_IS = Reading()
FOR = (TEXT, EXCEL, (*TEXT, *EXCEL), TEXT)  # suffixes of the files that each field is for


def check_place(source: str) -> None:
    """Raise InputError if a source is not a file, or is an address that is not read."""
    if is_address(source):
        parse_address("source", source)
        return
    path = Path(source)
    if not isdir(source):
        if find_suffix(path) in SUFFIXES and not as_path("path", source).is_file():
            nearby: list[str] = []
            with suppress(OSError):
                nearby = [name for name in os.listdir(path.parent) if find_suffix(Path(name)) in SUFFIXES]
            raise InputError(f"there is no file {source!r}{suggest(path.name, nearby, quote)}")
        return
    if isfile(path / STUDY_FILE):
        raise InputError(
            f"{source!r} is a run folder, not a table: name a file; ckcv status, report and verify read a "
            "run folder, and ckcv predict reads it and then a file of rows"
        )
    raise InputError(f"{source!r} is a folder, not a table: name a file that ends in {', '.join(SUFFIXES)}")


def read_file(path: str | Path, reading: Reading = AS_IT_IS) -> pa.Table:
    """Read the columns of a file in the format given by its suffix; columns of a text table are all text.

    Args:
        path: the file, or an address such as s3://bucket/patients.parquet, which ends in one of ``SUFFIXES``.
        reading: what it does not say about itself.

    Raises:
        InputError: the file does not exist, is not in that format, or is too large.
        UnreachableError: its store does not answer.
    """
    if is_address(path):
        address = parse_address("source", str(path))
        bucket, _, name = address.key.rpartition("/")
        with TemporaryDirectory(prefix="ckcv-") as folder:  # read through a copy
            copy = Path(folder) / name
            with convert_errors(InputError, f"cannot read {str(address)!r}"), copy.open("wb") as file:
                try:
                    Bucket(address._replace(key=bucket)).download(name, MAX_TABLE_BYTES, file)
                except FileNotFoundError:
                    raise InputError(f"there is no object {str(address)!r}") from None
            try:
                return read_file(copy, reading)
            except InputError as error:
                raise InputError(str(error).replace(str(copy), str(address))) from None
    path = as_path("path", path)
    suffix = find_suffix(path)
    for option, value, suffixes in zip(Reading._fields, reading, FOR, strict=True):
        if value is not None and suffix not in suffixes:
            raise InputError(f"{option} is for {' and '.join(suffixes)}, not {str(path)!r}: leave it out")
    lines = _LinesLeftOut(reading.skip_rows)
    limited = nullcontext() if suffix in TEXT else limit_memory()
    with convert_errors(InputError, f"cannot read {str(path)!r} as {suffix[1:]}"), limited:
        if suffix in TEXT:
            columns = _read_text(path, suffix, reading, lines)
        elif suffix in EXCEL:
            columns = _read_excel(path, reading.sheet, lines)
        elif suffix == ".parquet":
            columns = read_parquet(path)
        else:
            columns = {".feather": _feather, ".npz": _npz}.get(suffix, _svmlight)(path)
        check_text(repr(str(path)), *(column for column in columns.columns if is_plain(column.type)))
        return with_plain_values(columns)


def with_plain_values(columns: pa.Table) -> pa.Table:
    """Return the columns with plain values, not as stored: views, runs, decimals.

    A dictionary becomes a column marked as categories. Lists and the like, and categories such as bytes, that
    are not numbers, text or dates, become an empty column that says so.
    """
    for i, field in enumerate(columns.schema):
        values = _as_values(stored := columns.column(i))
        if not is_plain(values.type):
            columns = columns.set_column(i, _withhold(field.name, field.type), pa.nulls(columns.num_rows))
        elif values is not stored:
            marks = {DECLARED: b"yes"} if pa.types.is_dictionary(field.type) else field.metadata
            columns = columns.set_column(i, field.with_type(values.type).with_metadata(marks), values)
    return columns


def _as_values(stored: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with plain values; the column itself if it has them, or cannot have them."""
    kind = stored.type
    if pa.types.is_dictionary(kind) and is_value(kind.value_type):
        if pa.types.is_string_view(kind.value_type):  # which Arrow does not take
            stored = stored.cast(pa.dictionary(kind.index_type, pa.string()))
        return _as_values(decode(stored))
    if pa.types.is_run_end_encoded(kind) and is_value(kind.value_type):
        with suppress(pa.ArrowNotImplementedError):  # for views
            return _as_values(pc.run_end_decode(stored))
    if pa.types.is_string_view(kind):
        return stored.cast(pa.string())
    if pa.types.is_float16(kind):
        return stored.cast(pa.float32())
    if pa.types.is_timestamp(kind):
        try:
            pa.array([0], kind).cast(pa.string())
        except pa.ArrowInvalid:  # a time zone unknown here
            return stored.cast(pa.timestamp(kind.unit, "UTC"))
    if not pa.types.is_decimal(kind):
        return stored
    texts = stored.cast(pa.string())  # Arrow does not round a decimal to the nearest float
    if kind.scale <= 0:
        with suppress(pa.ArrowInvalid):
            return texts.cast(pa.int64())
    numbers = texts.cast(pa.float64())
    digits = (pc.max(pc.abs(numbers)).as_py() or 0.0) * 10.0**kind.scale
    exact = digits < 10.0**SAFE_DIGITS or pc.count_distinct(texts) == pc.count_distinct(numbers)
    return numbers if exact else stored  # decimals of which two share a nearest float stay what they are


def index_names(columns: pa.Table) -> set[str]:
    """Return the names of the columns that are the index of a pandas frame, which names rows."""
    try:
        said = json.loads((columns.schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
    except (ValueError, AttributeError):  # the metadata of a file cannot be trusted
        said = []
    named = {name for name in said if isinstance(name, str)} if isinstance(said, list) else set()
    return named | {name for name in columns.column_names if name.startswith("__index_level_")}


def from_matrix(
    X: NDArray[np.generic], y: NDArray[np.generic] | None, names: list[str] | None = None, target: str = "y"
) -> pa.Table:
    """Make columns x0, x1, ... (or ``names``) from X [n, d], and the target from y [n]."""
    names = names or [f"x{i}" for i in range(X.shape[1])]
    columns: dict[str, Any] = {name: np.ascontiguousarray(X[:, i]) for i, name in enumerate(names)}
    if X.dtype == object:  # there nan is a gap
        columns = {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
    return pa.table(columns | ({} if y is None else {target: y}))


@contextmanager
def npz(path: Path) -> Iterator[np.lib.npyio.NpzFile]:
    """Open an archive of arrays, refusing pickles; it is closed at the end in any case.

    Raises:
        InputError: an array expands to more than can be read.
    """
    with path.open("rb") as file, np.lib.npyio.NpzFile(file, allow_pickle=False) as archive:
        assert archive.zip is not None
        for member in archive.zip.infolist():
            check_bytes(f"{str(path)!r}: the array {member.filename!r}", member.file_size)
        yield archive


def read_parquet(
    source: Path | BinaryIO, most_rows: int = MAX_TABLE_ROWS, most_cells: int = MAX_CELLS, own: bool = False
) -> pa.Table:
    """Read a Parquet file, text as dictionaries first: a few values may fill very many cells.

    Args:
        source: the file.
        most_rows, most_cells: how large it may claim to be.
        own: whether it was written here, so that its pages have checksums to be verified; of other files
            only the columns whose cells are single values are read, and others are empty.

    Raises:
        InputError: it claims to hold more, or its text expands to more than can be read.
    """
    name = repr(str(source)) if isinstance(source, Path) else "it"
    with parquet.ParquetFile(source) as file:
        schema, metadata = file.schema_arrow, file.metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]  # their columns may abort Arrow
    rows = max(metadata.num_rows, sum(max(0, group.num_rows) for group in groups))
    check_size(name, rows, metadata.num_columns, most_rows, most_cells)
    single = [is_plain(kind) for kind in schema.types]
    text = [field.name for field, is_single in zip(schema, single, strict=True) if is_single]
    options = {"read_dictionary": text, "page_checksum_verification": own, "pre_buffer": False}
    with parquet.ParquetFile(source, **options) as file:
        # Arrow's threads may abort the process at its exit (arrow #34314): tables are read on this one, and
        # by column number, as the name a.list.element may also be a part of a list a
        starts = np.cumsum([0, *map(_count_parts, schema.types)]).tolist()  # a list is counted by its parts
        chosen = None if own else [i for i, is_single in zip(starts, single, strict=False) if is_single]
        table = file.reader.read_all(column_indices=chosen, use_threads=False)
    table.validate(full=True)  # Arrow reads text that is not UTF-8, and times beyond midnight
    check_text(name, *table.columns)
    for i, (field, is_single) in enumerate(zip(schema, single, strict=True)):
        if not (own or is_single):  # of any length, and cannot be learned from
            table = table.add_column(i, _withhold(field.name, field.type), pa.nulls(table.num_rows))
        elif pa.types.is_dictionary(kind := table.field(i).type) and not pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(kind.value_type))
    return table


def _count_parts(kind: pa.DataType) -> int:
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return sum(_count_parts(kind.field(i).type) for i in range(kind.num_fields)) or 1


def _withhold(name: str, kind: object) -> pa.Field:
    """Return an empty column in place of one whose cells are not read; which says what they were."""
    return pa.field(name, pa.null(), metadata={HELD: str(kind)[:LONGEST_TYPE]})


def _feather(path: Path) -> pa.Table:
    name, batches, rows, size = repr(str(path)), [], 0, 0
    check_bytes(name, path.stat().st_size)
    with pa.OSFile(str(path)) as stored:
        content = stored.read_buffer()  # Arrow's pool threads would read ahead in a file: see read_parquet
    with pa.ipc.open_file(content, options=pa.ipc.IpcReadOptions(use_threads=False)) as file:
        for i in range(file.num_record_batches):  # several may lie at one place in the file
            batches.append(batch := file.get_batch(i))
            check_size(name, rows := rows + batch.num_rows, len(file.schema.names))  # names have to be text
            check_bytes(name, size := size + batch.get_total_buffer_size())
            batch.validate(full=True)  # a reader follows offsets unchecked
        columns = pa.Table.from_batches(batches, file.schema)
    for i, field in enumerate(columns.schema):
        if pa.types.is_run_end_encoded(field.type):  # a small file could have very many rows
            columns = columns.set_column(i, _withhold(field.name, field.type), pa.nulls(columns.num_rows))
    return columns


def _npz(path: Path) -> pa.Table:
    with npz(path) as archive:
        X, y = archive["X"], archive["y"] if "y" in archive.files else None
    if X.ndim != 2 or (y is not None and y.shape != X.shape[:1]):
        shapes = f"X has shape {X.shape}" + ("" if y is None else f" and y {y.shape}")
        raise InputError(f"{str(path)!r}: {shapes}: expected (n, d) and (n,)")
    check_size(repr(str(path)), *X.shape)
    return from_matrix(X, y)


def _svmlight(path: Path) -> pa.Table:
    from sklearn.datasets import load_svmlight_file

    content = _inflate(path)
    _check_cells(content, b":", repr(str(path)))
    X, y = load_svmlight_file(BytesIO(content), zero_based=True)  # "auto" could differ between files
    check_size(repr(str(path)), *X.shape)
    columns = from_matrix(X.toarray(), y)
    if X.shape[1] > 1 and not X[:, 0].count_nonzero():  # the file numbers columns from one
        columns = columns.drop_columns(["x0"])
    return columns.replace_schema_metadata({SPARSE: b"yes"})


def make_columns(X: object, features: tuple[str, ...] | None = None) -> pa.Table:
    """Return the columns of X.

    Args:
        X: a data frame of pandas or polars, an Arrow table, an array [n, d], a sparse matrix, or what
            ``read_rows`` reads.
        features: names of the columns if X has none, or those of a frame count from 0 and none of these
            is numbered; by default x0, x1, ...

    Raises:
        InputError: X is none of these.
    """
    X = read_rows(X)
    if hasattr(X, "__arrow_c_stream__"):
        columns = _arrow(X)
        d, named = columns.num_columns, features or [f"x{i}" for i in range(columns.num_columns)]
        counted = list(getattr(X, "columns", ())) == list(range(d))  # as of an array
        numbered = features is not None and any(re.fullmatch(r"x?\d+", name) for name in features)
        return columns.rename_columns(named) if counted and len(named) == d and not numbered else columns
    if hasattr(X, "toarray") and hasattr(X, "shape"):  # a sparse matrix, with its zeros
        _check_shape(X.shape)
        values = np.asarray(X.toarray())
    else:
        values = as_array("X", X)
    names = [str(name) for name in getattr(X, "columns", ())] or None
    d = values.shape[1] if values.ndim == 2 else 0
    if not d or (names is None and features is not None and d != len(features)):
        wanted = f"(rows, {len(features)})" if features is not None else "(n, d), with d above 0"
        raise InputError(f"X has shape {values.shape}: expected {wanted}")
    try:
        columns = from_matrix(values, None)
        return columns.rename_columns(names or features or columns.column_names)
    except UNREADABLE as error:
        raise InputError(f"X of type {values.dtype} cannot be read as columns: {error}") from None


def read_rows(X: object) -> object:
    """Return the rows of a lazy frame of polars, or of a batch, reader, dataset or column of Arrow.

    All else is returned as it is.
    """
    if isinstance(X, pa.RecordBatch | pa.RecordBatchReader):
        return pa.table(X)
    if isinstance(X, pa.Array | pa.ChunkedArray):
        return _as_values(pa.chunked_array(getattr(X, "chunks", [X]), X.type))
    if type(X).__module__.partition(".")[0] in ("polars", "pyarrow"):
        for method in ("collect", "to_table"):
            if hasattr(X, method):
                return getattr(X, method)()
    return X


def check_same_order(X: object, name: str, values: object) -> None:
    """Raise InputError if the pandas index of y or the like has the labels of X's in another order."""
    rows, labels = (getattr(given, "index", None) if hasattr(given, "loc") else None for given in (X, values))
    if rows is None or labels is None:
        return
    if len(rows) == len(labels) and not rows.equals(labels) and set(rows) == set(labels):
        raise InputError(f"the index of {name} is that of X in another order: give {name}.loc[X.index]")


def _arrow(X: Any) -> pa.Table:
    """Return a data frame's columns, without its index, which names rows."""
    names = [str(name) for name in getattr(X, "columns", ())] if hasattr(X, "set_axis") else []
    if twins := len(set(names)) < len(names):  # in pandas; Arrow takes columns by name
        X = X.set_axis(range(len(names)), axis=1)
    try:
        columns = pa.table(X)
    except UNREADABLE as error:
        if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
            raise InputError(f"X cannot be read as columns: {error}") from None
        _check_shape(X.shape)
        read, fields = [], []
        for name, kind in zip(X.columns, X.dtypes, strict=True):  # each by itself
            try:
                part = X[[name]]
                part = pa.table(part.sparse.to_dense() if type(kind).__name__ == "SparseDtype" else part)
                read.append(part.column(0))
                fields.append(part.schema.field(0))
            except UNREADABLE as unread:  # an empty column, which says why
                read.append(pa.nulls(len(X)))
                fields.append(_withhold(str(name), f"{kind} ({unread.args[0]})"))
        columns = pa.table(read, pa.schema(fields))
    columns = with_plain_values(columns)
    if twins:
        columns = columns.rename_columns([*names, *columns.column_names[len(names) :]])
    index = index_names(columns)
    kept = [i for i, name in enumerate(columns.column_names) if name not in index]
    marks = {key: value for key, value in (columns.schema.metadata or {}).items() if key == DECIMAL}
    return columns.select(kept).replace_schema_metadata(marks or None)


def _check_shape(shape: tuple[int, ...]) -> None:
    if int(np.prod(shape, dtype=object)) > MAX_CELLS:
        raise InputError(f"X has shape {shape}: at most {MAX_CELLS:,} cells can be learned from")
