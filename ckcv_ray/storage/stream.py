"""The stream of a watched run: live rows with their true labels, a file for each batch.

    stream.jsonl            one line of JSON for what is watched, then one for each row, in order of arrival
    stream-000001.jsonl     the rows of the second batch, and so on

Each line ends with ``sha256``, the SHA-256 of that of the line before it and of the line's own content. So a
line that is edited, removed or put elsewhere breaks the chain at the next one. What a chain cannot show is
that its end was cut off, or that all of it was written again: whoever keeps ``head``, the last digest, can
tell. Of a stream in the run folder the manifest keeps the SHA-256 of each file.

A file is written once, and whole, so that a crash leaves either all of the new rows or none; and of two
writers one alone can create it.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.storage import formats
from ckcv_ray.storage.files import Files, LocalFiles
from ckcv_ray.tables.columns import Label
from ckcv_ray.validation import Probability, Stored, check_count, read_as

STREAM = "stream.jsonl"
FORMAT = 1
MAX_STREAM_BYTES = 1 << 28
MAX_STREAM_ROWS = 1 << 20
MAX_OF_IDENTIFIER = 1_000  # characters of the identifier of a row, or of its group
SEAL = "sha256"
KEYS = ("id", "prediction", "label", "group", "batch")  # of a row; without groups none has a group


@dataclass(frozen=True)
class Header(Stored):
    """What a stream watches, fixed before its first row.

    Attributes:
        format: version of the file's format.
        run_id: of the run.
        certificate: SHA-256 of the run's certificate.
        by: the rule that predicts, as ``Result.rule`` takes it.
        delta: probability with which anything that is said of the stream may ever be false.
        grouped: whether the rows have groups.
    """

    format: int
    run_id: str
    certificate: str
    by: str
    delta: Probability
    grouped: bool


class LiveRow(NamedTuple):
    """A live row.

    Attributes:
        identifier: its name, of which there is one row.
        prediction: the label that was predicted.
        label: the true one.
        group: name of its group; "" without groups.
        batch: number of the call that appended it, from 0.
    """

    identifier: str
    prediction: Label
    label: Label
    group: str
    batch: int


class Stream(NamedTuple):
    """A stream as it is stored.

    Attributes:
        header: what it watches.
        rows: in order of arrival.
        head: the digest of its last line.
        content: its bytes.
        pieces: number of its files.
    """

    header: Header
    rows: tuple[LiveRow, ...]
    head: str
    content: bytes
    pieces: int


def locate_stream(run: Files, elsewhere: Path | None) -> tuple[Files, str]:
    """Return the folder and the name of a stream: that of the run folder, or a file elsewhere.

    Raises:
        InputError: the file is in this run folder or another one, or in none that exists.
    """
    if elsewhere is None:
        return run, STREAM
    shown = str(elsewhere)
    files = LocalFiles(elsewhere.absolute().parent)
    if run.inside(elsewhere) is not None or files.exists(formats.STUDY):
        raise InputError(
            f"stream={shown!r} is in a run folder, whose own stream is {STREAM}: leave --stream out to use "
            "that of this run, or choose another place"
        )
    if not files.is_folder():
        raise InputError(f"stream={shown!r}: there is no folder {str(files)!r}: create it, or choose another")
    return files, elsewhere.name


def read_stream(files: Files, name: str) -> Stream | None:
    """Return a stream whose chain of digests is intact; None if there is no file.

    Raises:
        StoreError: it is damaged or was edited, is too large, or is no stream.
    """
    pieces, content = formats.list_pieces(files, name), b""
    if not pieces and not files.exists(name):
        return None
    with formats.guard_reading(files, name):
        for piece in pieces or [name]:
            content += files.read(piece, MAX_STREAM_BYTES - len(content))
        first, *later = list(_open_lines(content.decode().split("\n"))) or [("", {})]
        header = read_as(Header, first[1])
        if header.format != FORMAT:
            raise ValueError(f"it has the format {header.format}, and this version reads {FORMAT}")
        check_count("rows", len(later), MAX_STREAM_ROWS)
        rows = tuple(_read_row(values, header.grouped) for _, values in later)
        _check_rows(rows, header.grouped)
    return Stream(header, rows, later[-1][0] if later else first[0], content, len(pieces))


def begin_stream(header: Header) -> Stream:
    """Return a stream without rows."""
    line, head = _seal(header.to_json(), "")
    return Stream(header, (), head, line, 0)


def write_stream(files: Files, name: str, stream: Stream, rows: Sequence[LiveRow]) -> Stream:
    """Append rows to a stream, in a file of their own, and return it.

    Args:
        files: of the folder.
        name: of the file.
        stream: as it was read, or as it begins.
        rows: no identifier among them, and no group, is in the stream.

    Raises:
        StoreError: a file is damaged, or another writer has appended rows since it was read.
        InputError: it has too many rows.
    """
    grown = "has grown since it was read: append the rows again"
    stored = read_stream(files, name)
    if stored is not None and stored.content != stream.content:
        raise StoreError(f"{files.path(name)} {grown}")
    if len(stream.rows) + len(rows) > MAX_STREAM_ROWS:
        raise InputError(
            f"{str(files.path(name))!r} would have more than {MAX_STREAM_ROWS:,} rows, the maximum: begin "
            "another one with --stream"
        )
    lines, head = [b"" if stream.pieces else stream.content], stream.head
    for row in rows:
        values = dict(zip(KEYS, row, strict=True))
        if not stream.header.grouped:
            del values["group"]
        line, head = _seal(values, head)
        lines.append(line)
    content = b"".join(lines)
    if len(stream.content) + len(content) > MAX_STREAM_BYTES:
        raise InputError(
            f"{str(files.path(name))!r} would be larger than {MAX_STREAM_BYTES >> 20} MiB, the maximum: "
            "begin another one with --stream"
        )
    if not rows and stored is not None:
        return stream
    formats.create(files, formats.name_piece(name, stream.pieces), content, grown)
    every = stream.content + content if stream.pieces else content
    return Stream(stream.header, (*stream.rows, *rows), head, every, stream.pieces + 1)


def _seal(values: Mapping[str, Any], before: str) -> tuple[bytes, str]:
    """Return the line of an object, and its digest, given the digest of the line before it."""
    content = json.dumps(values, ensure_ascii=True, allow_nan=False)
    digest = hashlib.sha256(f"{before}{content}".encode()).hexdigest()
    return f'{content[:-1]}, "{SEAL}": "{digest}"}}\n'.encode(), digest


def _open_lines(lines: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the digest and the object of every line.

    Raises:
        ValueError: a line is not as ``_seal`` writes it, after the one before it.
    """
    if lines[-1] or len(lines) < 2:
        raise ValueError("its last line is not complete")
    before = ""
    for number, line in enumerate(lines[:-1], start=1):
        values = json.loads(line)
        digest = values.pop(SEAL, "") if isinstance(values, dict) else ""
        sealed, expected = _seal(values, before)
        if digest != expected or sealed != f"{line}\n".encode():
            raise ValueError(f"it was edited: line {number} does not continue the chain of digests")
        before = expected
        yield expected, values


def _read_row(values: dict[str, Any], grouped: bool) -> LiveRow:
    """Return the row of a JSON object.

    Raises:
        ValueError: it is none.
    """
    expected = [key for key in KEYS if grouped or key != "group"]
    if list(values) != expected:
        raise ValueError(f"a row has the keys {', '.join(map(str, values))}, and not {', '.join(expected)}")
    names = [values["id"], values.get("group", "-")]
    if not all(isinstance(name, str) and 0 < len(name) <= MAX_OF_IDENTIFIER for name in names):
        raise ValueError(f"an identifier or group is not text of 1 to {MAX_OF_IDENTIFIER:,} characters")
    if not all(isinstance(values[key], Label) for key in ("prediction", "label")):
        raise ValueError("a prediction or a label is not text, a number or a truth value")
    if type(values["batch"]) is not int or values["batch"] < 0:
        raise ValueError("a batch is not a whole number of at least 0")
    return LiveRow(
        values["id"], values["prediction"], values["label"], values.get("group", ""), values["batch"]
    )


def _check_rows(rows: Iterable[LiveRow], grouped: bool) -> None:
    """Raise ValueError if a row stands twice, batches are out of order, or a group is in two of them."""
    seen: set[str] = set()
    batches: dict[str, int] = {}
    last = 0
    for row in rows:
        if row.identifier in seen:
            raise ValueError(f"the row {row.identifier[:60]!r} stands twice")
        if row.batch < last or (grouped and batches.setdefault(row.group, row.batch) != row.batch):
            raise ValueError("its batches are out of order, or one group is in two of them")
        seen.add(row.identifier)
        last = row.batch
