"""Readers of text tables: any usual separator, decimal comma, encoding and compression.

What is guessed (separator, decimal comma, encoding) is guessed from the file alone, and only where a single
reading is possible: else the file is refused, with the option that says it. Where a guess may be wrong after
all, or something is left out, a remark says so.
"""

import codecs
import re
from collections.abc import Callable
from contextlib import suppress
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
    find_number_form,
    is_doubtful,
)
from ckcv_ray.tables.readers.code_pages import decode_western
from ckcv_ray.tables.readers.limits import (
    DECIMAL,
    LINE_BYTES,
    MAX_TABLE_ROWS,
    REMARKS,
    check_bytes,
    check_size,
)
from ckcv_ray.tables.readers.lines import (
    EVERY_LINE,
    LinesLeftOut,
    check_names_once,
    check_rows,
    leave_out_lines,
    number_lines,
)

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
SAMPLE_LINES = 100
ONE_THREAD = {"block_size": LINE_BYTES, "use_threads": False}
EVERY_ROW = (1 << 31) - 1
SPACE = " "
PARSED_ROW = re.compile(r"CSV parse error: Row #(\d+)")
SAYS_SEPARATOR = re.compile(rb"sep=([^\r\n])\r?\n")  # a first line of spreadsheets
UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
OWN_MARKS = (codecs.BOM_UTF8, *UTF32, *UTF16)  # with which a text says its encoding itself
COMMENT_MARK = re.compile(rb"\s*# +(?!of )")  # before the names, as numpy.savetxt writes it
NO_ROW = b" \t\v\f\r\n,;|\x1a"  # what lines at the end may hold that are none, with the end of a file of DOS
LINE_END = re.compile(rb"[\r\n]")
END_BYTES = 1 << 10  # that are looked at first for such lines
DECIMAL_COMMA = re.compile(
    rb"(?:^|[;\t|\n])\"?(?:[+-]|\xe2\x88\x92)?\d+,(?:\d{1,2}|\d{4,})\"?(?=[;\t|\r\n]|$)"
)


def read_text(
    path: Path,
    separator: str | None = None,
    lines: LinesLeftOut = EVERY_LINE,
    spaces: bool = False,
    encoding: str | None = None,
) -> pa.Table:
    """Read the columns of a text table, whose first line names them: every cell as text, as it is written.

    An empty cell is null. The metadata of the table has its decimal mark and remarks: see ``decimal_mark``
    and ``list_remarks``.

    Args:
        path: a file, perhaps compressed, as its suffix says.
        separator: of the columns, where a space is any number of spaces and tabs; None to find it.
        lines: those to leave out.
        spaces: whether the separator that is found may be spaces.
        encoding: of the text; None to find it.

    Raises:
        InputError: it is too large, no text, may be read in several ways, or has rows that seem to be none.
    """
    name = repr(str(path))
    if separator is not None and (len(separator) != 1 or not separator.isascii() or separator in '\r\n"'):
        raise InputError(f"separator={separator!r}: expected one character, such as ';' or a tab")
    written, remarks = _utf8(inflate(path, "".join(SEPARATORS).encode(), encoding), name)
    written = _empty_end(written)
    content = leave_out_lines(written, lines, name)
    heads = 0  # lines before that of the names
    if said := SAYS_SEPARATOR.match(content):
        content, separator, heads = content[said.end() :], separator or said[1].decode("ascii", "replace"), 1

    def find_line(row: int) -> int:
        """Return the number in the file of a line that is not blank, counted from 0."""
        numbers = number_lines(written, lines, name)
        return numbers[min(heads + row, len(numbers) - 1)]

    kept = content
    if mark := COMMENT_MARK.match(content):
        content = content[mark.end() :]
    separator = separator or _separator(content, name, spaces)
    if separator == SPACE:
        if mark and len({len(line.split()) for line in content.split(b"\n", 2)[:2]}) > 1:  # it is a name
            content, mark = mark[0] + content, None
        content, separator = _join_spaces(content, name), "\t"
    columns = _parse(content, separator, name, find_line)
    # a text may have several lines: then rows but the first and the last have no number of their own
    check_rows(columns, name, lines, lambda row: find_line(1 if row == 0 else MAX_TABLE_ROWS))
    check_names_once(kept, written, lines, name)
    if mark:
        first = columns.column_names[0]
        remarks.append(f"has a # before its names: it is left out, and the first column is {first!r}")
    return columns.replace_schema_metadata({**columns.schema.metadata, REMARKS: "\n".join(remarks).encode()})


def _parse(content: bytes, separator: str, name: str, find_line: Callable[[int], int]) -> pa.Table:
    """Return the columns of a text in UTF-8, from the line that names them."""
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
        if _has_row_names(content, options):
            raise InputError(
                f"{name} has a cell more in every line than names in its first: if they are row names, as by "
                "R's write.table, write it with row.names=FALSE, or put a name and the separator before the "
                "others, such as row, and say --id row; if that line is a title, --skip-rows leaves it out "
                "(such as 1)"
            ) from None
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
            with suppress(ColumnError):
                form, bad = find_number_form(known, "")
                certain = any("." in text and not is_doubtful(text, form) for text in known)
                if certain and not bad and find_decimal_mark(form) == ".":
                    return True
    return False


def _has_row_names(content: bytes, options: dict[str, Any]) -> bool:
    """Return whether every line has a cell more than there are names, and not by a separator at its end."""
    first = f"row{options['parse_options'].delimiter}".encode()
    convert = csv.ConvertOptions(strings_can_be_null=True)
    with suppress(pa.ArrowInvalid):
        columns = csv.read_csv(
            pa.BufferReader(first + content.lstrip(b"\r\n")), **options, convert_options=convert
        )
        return bool(columns.column(-1).null_count < columns.num_rows)
    return False


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


def inflate(path: Path, separators: bytes, encoding: str | None = None) -> bytes:
    """Return the content of a text table; what is too large, or no text, is refused on the way.

    Args:
        path: a file, perhaps compressed, as its suffix says.
        separators: what may stand between the columns, a byte each.
        encoding: of a file that does not say it itself; None to leave it as it is, else it is read as UTF-8.

    Raises:
        InputError: see above.
    """
    name = repr(str(path))
    check_bytes(name, path.stat().st_size)
    parts: list[bytes] = []
    size = rows = cells = columns = 0
    wide = False  # in UTF-16 every other byte is zero
    decoder = None if encoding is None else codecs.getincrementaldecoder(encoding)()
    kind, file = COMPRESSED.get(path.suffix.lower()), pa.OSFile(str(path))
    with file if kind is None else pa.CompressedInputStream(file, kind) as stream:
        while block := stream.read(LINE_BYTES):
            if not parts and block.startswith(OWN_MARKS):
                wide, decoder = block.startswith(tuple(UTF16)), None
            if decoder is not None:
                block = _decode(decoder, block, f"{name} is not in {encoding}", rows)
            rows += (ends := max(block.count(b"\n"), block.count(b"\r")))
            cells += _most(separators, block)
            size += len(block)
            if len(block) >= LINE_BYTES and not ends:
                raise InputError(f"{name} has a line of more than {LINE_BYTES >> 20} MiB: is it a table?")
            if not wide and b"\0" in block:
                raise InputError(
                    f"{name} holds zero bytes: it is no text, unless it is in UTF-16: then say --encoding "
                    "utf-16-le, or save it in UTF-8"
                )
            check_bytes(name, size)
            columns = columns or 1 + _most(separators, re.split(rb"[\r\n]", block, maxsplit=1)[0])
            check_size(name, rows, max(columns, cells // max(1, rows)))
            parts.append(block)
    if decoder is not None:
        parts.append(_decode(decoder, b"", f"{name} is not in {encoding}", rows))
    return b"".join(parts)


def _decode(decoder: codecs.IncrementalDecoder, block: bytes, refusal: str, rows: int) -> bytes:
    """Return more of a text in UTF-8, of which some rows were read; without more, its end."""
    try:
        return decoder.decode(block, final=not block).encode()
    except UnicodeError as error:
        before = error.object[: error.start] if isinstance(error, UnicodeDecodeError) else b""
        line = rows + 1 + before.count(b"\n")
        raise InputError(
            f"{refusal}, as line {line:,} shows: say another --encoding, or leave it out to have it found or "
            "asked for"
        ) from None


def _most(separators: bytes, content: bytes) -> int:
    return max(map(content.count, separators))


def _empty_end(content: bytes) -> bytes:
    """Return text whose last lines are empty where they hold blanks and separators alone."""
    content = content.rstrip(b"\x1a")
    end = content[-END_BYTES:]
    end = end if end.strip(NO_ROW) else content
    last = LINE_END.search(content, len(content) - len(end) + len(end.rstrip(NO_ROW)))
    if last is None or not content[last.start() :].strip(b"\r\n"):
        return content
    return content[: last.start()] + re.sub(rb"[^\r\n]+", b"", content[last.start() :])


def _utf8(content: bytes, name: str) -> tuple[bytes, list[str]]:
    """Return text in UTF-8, without a mark of the order of bytes, and remarks."""
    if content.startswith(UTF32):
        raise InputError(f"{name} is in UTF-32: save it in UTF-8")
    for mark, encoding in UTF16.items():
        if content.startswith(mark):
            try:
                return content[len(mark) :].decode(encoding).encode(), []
            except UnicodeDecodeError:
                raise InputError(f"{name} begins as text in UTF-16, and is none: save it in UTF-8") from None
    content = content.removeprefix(codecs.BOM_UTF8)
    decoder = codecs.getincrementaldecoder("utf-8")()
    with suppress(UnicodeDecodeError):  # block by block, as characters take up to four bytes each
        for at in range(0, len(content), LINE_BYTES):
            decoder.decode(content[at : at + LINE_BYTES])
        decoder.decode(b"", final=True)
        return content, []
    text, remark = decode_western(content, name)
    return text.encode(), [remark]


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
    """Return the separator that divides every line alike; spaces only if they may, and no other does."""
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
    names, rows = words[:1], set(words[1:] or words)
    if spaces and len(rows) == 1 and names[0] > 1 and min(rows) - names[0] in (0, 1):  # 1: names of rows
        return SPACE
    return max(present, key=lambda separator: counts[separator][0], default=",")
