"""Readers of text tables: any usual separator, decimal comma, encoding and compression.

What is guessed (separator, decimal comma, encoding) is guessed from the file alone, and only where a single
reading is possible: else the file is refused, with the option that says it.
"""

import codecs
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv

from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns.formats import (
    ColumnError,
    bare,
    drop_gaps,
    find_decimal_mark,
    form_of_numbers,
    is_doubtful,
)
from ckcv_ray.tables.readers.limits import LINE_BYTES, MOST_TABLE_ROWS, check_bytes, check_size
from ckcv_ray.tables.readers.lines import EVERY_LINE, LinesLeftOut, check_rows, leave_out_lines, number_lines

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
SAMPLE_LINES = 100
ONE_THREAD = {"block_size": LINE_BYTES, "use_threads": False}
EVERY_ROW = (1 << 31) - 1
SPACE = " "
PARSED_ROW = re.compile(r"CSV parse error: Row #(\d+)")
DECIMAL = b"decimal"  # metadata of a table whose cells are as they were written: its decimal mark
SAYS_SEPARATOR = re.compile(rb"sep=([^\r\n])\r?\n")  # a first line of spreadsheets
UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
ENCODINGS = ("cp1252", "latin-1")  # what spreadsheets of western Europe write
DECIMAL_COMMA = re.compile(
    rb"(?:^|[;\t|\n])\"?(?:[+-]|\xe2\x88\x92)?\d+,(?:\d{1,2}|\d{4,})\"?(?=[;\t|\r\n]|$)"
)


def read_text(
    path: Path, separator: str | None = None, lines: LinesLeftOut = EVERY_LINE, spaces: bool = False
) -> pa.Table:
    """Read the columns of a text table, whose first line names them: every cell as text, as it is written.

    An empty cell is null. The metadata of the table has its decimal mark: see ``decimal_mark``.

    Args:
        path: a file, perhaps compressed, as its suffix says.
        separator: of the columns, where a space is any number of spaces and tabs; None to find it.
        lines: those to leave out.
        spaces: whether the separator that is found may be spaces.

    Raises:
        InputError: it is too large, no text, may be read in several ways, or has rows that seem to be none.
    """
    name = repr(str(path))
    _check_separator(separator)
    written = _utf8(inflate(path, "".join(SEPARATORS).encode()), name)
    content = leave_out_lines(written, lines, name)
    heads = 0  # lines before that of the names
    if said := SAYS_SEPARATOR.match(content):
        content, separator, heads = content[said.end() :], separator or said[1].decode("ascii", "replace"), 1
    separator = separator or _separator(content, name, spaces)
    if separator == SPACE:
        content, separator = _join_spaces(content, name), "\t"

    def find_line(row: int) -> int:
        numbers = number_lines(written, lines, name)
        return numbers[min(heads + row, len(numbers) - 1)]

    columns = _parse(content, separator, name, find_line)
    # a text may have several lines: then rows but the first and the last have no number of their own
    check_rows(columns, name, lines, lambda row: find_line(1 if row == 0 else MOST_TABLE_ROWS))
    return columns


def _parse(content: bytes, separator: str, name: str, find_line: Callable[[int], int]) -> pa.Table:
    """Return the columns of a text.

    Args:
        content: in UTF-8, from the line that names the columns.
        separator: of the columns.
        name: of the file, for messages.
        find_line: returns the number in the file of a line that is not blank, counted from 0.
    """
    comma = separator != "," and DECIMAL_COMMA.search(content[:LINE_BYTES]) is not None
    options: dict[str, Any] = {
        "read_options": csv.ReadOptions(**ONE_THREAD),
        "parse_options": csv.ParseOptions(delimiter=separator, newlines_in_values=b'"' in content),
    }
    try:
        as_text = dict.fromkeys(_names(content, options), pa.string())
        convert = csv.ConvertOptions(strings_can_be_null=True, null_values=[""], column_types=as_text)
        columns = csv.read_csv(pa.BufferReader(content), **options, convert_options=convert)
    except pa.ArrowInvalid as error:
        if "Expected" not in str(error):
            raise
        reason = str(error)
        if b'"' not in content:  # in which a line may end
            reason = PARSED_ROW.sub(lambda row: f"line {find_line(int(row[1]) - 1):,}", reason)
        raise InputError(
            f"{name} has lines of different lengths ({reason}): its first line has to name the columns, "
            "without a title or remarks above, which --skip-rows leaves out (such as 1-2); or say "
            f"--separator, which is {separator!r} here"
        ) from None
    columns = columns.rename_columns([column.strip() for column in columns.column_names])
    mark = b"," if comma else b"." if _has_decimal_points(columns) else b""
    return columns.replace_schema_metadata({DECIMAL: mark})


def _has_decimal_points(columns: pa.Table) -> bool:
    """Return whether a column begins with numbers alone, of which a point can only be that of decimals."""
    for column in columns.slice(0, SAMPLE_LINES).columns:
        known = drop_gaps({None if cell is None else bare(cell) for cell in column.to_pylist()})
        if any("." in text for text in known):
            try:
                form, bad = form_of_numbers(known, "")
            except ColumnError:
                continue
            certain = any("." in text and not is_doubtful(text, form) for text in known)
            if certain and not bad and find_decimal_mark(form) == ".":
                return True
    return False


def decimal_mark(columns: pa.Table) -> str | None:
    """Return the decimal mark of a table whose cells are as they were written: "" if no number has one.

    None for any other table.
    """
    mark = (columns.schema.metadata or {}).get(DECIMAL)
    return None if mark is None else {b",": ",", b".": "."}.get(mark, "")


def _names(content: bytes, options: dict[str, Any]) -> list[str]:
    """Return the names of the columns as Arrow reads them.

    Not by ``csv.open_csv``: a thread of Arrow's pool reads ahead for it, and may be the last to hold
    ``content``. To release it the thread asks for the interpreter, and where that is shutting down it ends
    the process ("terminate called without an active exception"). ``csv.read_csv`` joins its thread.
    """
    skipping = {**options, "read_options": csv.ReadOptions(**ONE_THREAD, skip_rows_after_names=EVERY_ROW)}
    try:
        return list(csv.read_csv(pa.BufferReader(content), **skipping).column_names)
    except pa.ArrowInvalid:  # there is no row to skip, or the table is no table
        return list(csv.read_csv(pa.BufferReader(content), **options).column_names)


def _check_separator(separator: str | None) -> None:
    fits = separator is None or (len(separator) == 1 and separator.isascii() and separator not in '\r\n"')
    if not fits:
        raise InputError(f"separator={separator!r}: expected one character, such as ';' or a tab")


def inflate(path: Path, separators: bytes) -> bytes:
    """Return the content of a text table; what is too large, or no text, is refused on the way.

    Args:
        path: a file, perhaps compressed, as its suffix says.
        separators: what may stand between the columns, a byte each.

    Raises:
        InputError: see above.
    """
    name = repr(str(path))
    check_bytes(name, path.stat().st_size)
    parts: list[bytes] = []
    size = rows = cells = columns = 0
    wide = False
    with _stream(path) as stream:
        while block := stream.read(LINE_BYTES):
            wide = wide or (
                not parts and block.startswith(tuple(UTF16))
            )  # in UTF-16 every other byte is zero
            rows += (ends := max(block.count(b"\n"), block.count(b"\r")))
            cells += _most(separators, block)
            size += len(block)
            if len(block) == LINE_BYTES and not ends:
                raise InputError(f"{name} has a line of more than {LINE_BYTES >> 20} MiB: is it a table?")
            if not wide and b"\0" in block:
                raise InputError(
                    f"{name} holds zero bytes: it is no text; if it is in UTF-16, save it in UTF-8"
                )
            check_bytes(name, size)
            columns = columns or 1 + _most(separators, re.split(rb"[\r\n]", block, maxsplit=1)[0])
            check_size(name, rows, max(columns, cells // max(1, rows)))
            parts.append(block)
    return b"".join(parts)


def _most(separators: bytes, content: bytes) -> int:
    return max(map(content.count, separators))


def _stream(path: Path) -> Any:
    kind = COMPRESSED.get(path.suffix.lower())
    file = pa.OSFile(str(path))
    return file if kind is None else pa.CompressedInputStream(file, kind)


def _utf8(content: bytes, name: str) -> bytes:
    """Return text in UTF-8, without a mark of the order of bytes.

    Raises:
        InputError: it is no text.
    """
    if content.startswith(UTF32):
        raise InputError(f"{name} is in UTF-32: save it in UTF-8")
    for mark, encoding in UTF16.items():
        if content.startswith(mark):
            try:
                return content[len(mark) :].decode(encoding).encode()
            except UnicodeDecodeError:
                raise InputError(f"{name} begins as text in UTF-16, and is none: save it in UTF-8") from None
    content = content.removeprefix(codecs.BOM_UTF8)
    if _is_utf8(content):
        return content
    for encoding in ENCODINGS:
        try:
            return content.decode(encoding).encode()
        except UnicodeDecodeError:
            continue
    raise AssertionError("latin-1 reads everything")


def _is_utf8(content: bytes) -> bool:
    """Return whether text is in UTF-8, without holding all of it as characters, of up to four bytes each."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for at in range(0, len(content), LINE_BYTES):
            decoder.decode(content[at : at + LINE_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _join_spaces(content: bytes, name: str) -> bytes:
    """Return text with a tab in place of every number of spaces and tabs between columns."""
    if b'"' in content:
        content = re.sub(rb'("[^"]*")|[ \t]+', lambda found: found[1] or b"\t", content)
    else:
        content = re.sub(rb"[ \t]+", b"\t", content)
    content = re.sub(rb"(?m)^\t|\t(?=\r?$)", b"", content)
    rows = max(content.count(b"\n"), content.count(b"\r"))
    check_size(name, rows, 1 + content.count(b"\t") // max(1, rows))
    return content


def _separator(content: bytes, name: str, spaces: bool = False) -> str:
    """Return the separator that divides every line alike; spaces only if they may, and no other does.

    Raises:
        InputError: several do.
    """
    lines = [line for line in content[:LINE_BYTES].splitlines()[:SAMPLE_LINES] if line.strip()]
    bare = [re.sub(rb'"[^"]*"?', b"", line) for line in lines]
    counts = {separator: [line.count(separator.encode()) for line in bare] for separator in SEPARATORS}
    present = [separator for separator, found in counts.items() if found and found[0]]
    alike = [separator for separator in present if len(set(counts[separator])) == 1]
    if len(alike) > 1:
        called = " and ".join(SEPARATORS[separator] for separator in alike)
        raise InputError(
            f"{name} may be separated by {called}, which all divide every line alike: say --separator "
            f"{alike[0]!r} or another"
        )
    if alike:
        return alike[0]
    words = [len(re.sub(rb'"[^"]*"?', b"q", line).split()) for line in lines]
    if spaces and words and words[0] > 1 and len(set(words)) == 1:
        return SPACE
    return max(present, key=lambda separator: counts[separator][0], default=",")
