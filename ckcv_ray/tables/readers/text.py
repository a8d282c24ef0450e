"""Readers of text tables: any usual separator, decimal comma, encoding and compression.

What is guessed (separator, decimal comma, encoding) is guessed from the file alone, and only where a single
reading is possible: else the file is refused, with the option that says it.
"""

import codecs
import json
import re
from collections.abc import Collection
from csv import reader
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns.formats import bare
from ckcv_ray.tables.readers.limits import LINE_BYTES, check_bytes, check_size

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
SAMPLE_LINES = 100
ONE_THREAD = {"block_size": LINE_BYTES, "use_threads": False}
EVERY_ROW = (1 << 31) - 1
COMMA = b"comma"  # metadata of a table with decimal commas
ALIKE = b"alike"  # metadata of a column: two texts of it that have become one value
SAYS_SEPARATOR = re.compile(rb"sep=([^\r\n])\r?\n")  # a first line of spreadsheets
UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
ENCODINGS = ("cp1252", "latin-1")  # what spreadsheets of western Europe write
DECIMAL_COMMA = re.compile(rb"(?:^|[;\t|\n])\"?[+-]?\d+,(?:\d{1,2}|\d{4,})\"?(?=[;\t|\r\n]|$)")


def read_text(
    path: Path, separator: str | None = None, raw: bool = False, named: Collection[str] = ()
) -> pa.Table:
    """Read the columns of a text table, whose first line names them.

    A column of ``named`` in which two texts become one value, such as 01 and 1, says so in its metadata: see
    ``find_alike``.

    Args:
        path: a file, perhaps compressed, as its suffix says.
        separator: of the columns; None to find it.
        raw: whether all cells are taken as they are written, as text; else the cells of a column decide
            together what they are.
        named: columns whose values are names, of classes and groups, where every character may count.

    Raises:
        InputError: it is too large, no text, or may be read in several ways.
    """
    name = repr(str(path))
    _check_separator(separator)
    content = _utf8(inflated(path, "".join(SEPARATORS).encode()), name)
    if said := SAYS_SEPARATOR.match(content):
        content, separator = content[said.end() :], separator or said[1].decode("ascii", "replace")
    separator = separator or _separator(content, name)
    comma = separator != "," and DECIMAL_COMMA.search(content[:LINE_BYTES]) is not None
    options: dict[str, Any] = {
        "read_options": csv.ReadOptions(**ONE_THREAD),
        "parse_options": csv.ParseOptions(delimiter=separator, newlines_in_values=b'"' in content),
    }
    taken: dict[str, Any] = {"strings_can_be_null": True, "decimal_point": "," if comma else "."}
    try:
        if raw:
            taken = {"column_types": dict.fromkeys(_names(content, options), pa.string())}
        else:
            watched = _find_names(content, separator, named)
            taken["column_types"] = dict.fromkeys(watched, pa.string())
        convert = csv.ConvertOptions(**taken)
        columns = csv.read_csv(pa.BufferReader(content), **options, convert_options=convert)
    except pa.ArrowInvalid as error:
        if "Expected" not in str(error):
            raise
        raise InputError(
            f"{name} has lines of different lengths ({error}; lines are counted from the first): its first "
            f"line has to name the columns, without a title or remarks above; or say --separator, which is "
            f"{separator!r} here"
        ) from None
    if not raw:
        decimal = {name: taken[name] for name in ("strings_can_be_null", "decimal_point")}
        for i in (i for i, name in enumerate(columns.column_names) if name in watched):
            columns = columns.set_column(i, *_understand(columns.field(i), columns.column(i), decimal))
    columns = columns.rename_columns([column.strip() for column in columns.column_names])
    return columns.replace_schema_metadata({COMMA: b"yes"} if comma else None)


def find_alike(column: pa.Field) -> tuple[str, str] | None:
    """Return two different texts of a column that have become one value; None if none have."""
    alike = (column.metadata or {}).get(ALIKE)
    return None if alike is None else tuple(json.loads(alike))


def _find_names(content: bytes, separator: str, named: Collection[str]) -> list[str]:
    """Return the names of some columns as the first line writes them, which may be with spaces."""
    line = content[:LINE_BYTES].split(b"\n", 1)[0].decode(errors="replace")
    names = next(reader([line], delimiter=separator), [])
    return [name for name in names if name.strip() in set(named)]


def _understand(field: pa.Field, column: pa.ChunkedArray, options: dict[str, Any]) -> tuple[pa.Field, Any]:
    """Return a column of text as what its cells are together, as Arrow decides it for other columns."""
    texts = column.combine_chunks().dictionary_encode()
    if isinstance(texts, pa.ChunkedArray) or not len(texts.dictionary):
        return pa.field(field.name, pa.null()), pa.nulls(len(column))
    sink = pa.BufferOutputStream()
    csv.write_csv(pa.table({"": texts.dictionary}), sink, csv.WriteOptions(quoting_style="all_valid"))
    written = sink.getvalue()
    reading = {
        "read_options": csv.ReadOptions(block_size=written.size + 1, use_threads=False),
        "parse_options": csv.ParseOptions(newlines_in_values=True),
        "convert_options": csv.ConvertOptions(**options),
    }
    values = csv.read_csv(pa.BufferReader(written), **reading).column(0).combine_chunks()
    if pa.types.is_string(values.type):
        return field, column
    alike = _find_pair(texts.dictionary, values)
    metadata = None if alike is None else {ALIKE: json.dumps(alike)}
    return pa.field(field.name, values.type, metadata=metadata), values.take(texts.indices)


def _find_pair(texts: pa.Array, values: pa.Array) -> tuple[str, str] | None:
    """Return two texts, different but for spaces, that have one value; None if there are none."""
    if pa.types.is_floating(values.type):
        values = pc.add(values, 0.0)  # -0.0 and 0.0 are one number
    if pc.count_distinct(values).as_py() == len(values) - values.null_count:
        return None
    first: dict[Any, str] = {}
    for text, value in zip(texts.to_pylist(), values.to_pylist(), strict=True):
        if value is not None and value == value and first.setdefault(value, bare(text)) != bare(text):
            return first[value], bare(text)
    return None


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


def inflated(path: Path, separators: bytes) -> bytes:
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


def _separator(content: bytes, name: str) -> str:
    """Return the separator that divides every line alike.

    Raises:
        InputError: several do.
    """
    lines = [line for line in content[:LINE_BYTES].splitlines()[:SAMPLE_LINES] if line.strip()]
    bare = [re.sub(rb'"[^"]*"?', b"", line) for line in lines]
    counts = {one: [line.count(one.encode()) for line in bare] for one in SEPARATORS}
    present = [one for one, found in counts.items() if found and found[0]]
    alike = [one for one in present if len(set(counts[one])) == 1]
    if len(alike) > 1:
        called = " and ".join(SEPARATORS[one] for one in alike)
        raise InputError(
            f"{name} may be separated by {called}, which all divide every line alike: say --separator "
            f"{alike[0]!r} or another"
        )
    if alike:
        return alike[0]
    return max(present, key=lambda one: counts[one][0], default=",")
