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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from ckcv_ray.errors import InputError
from ckcv_ray.storage import formats
from ckcv_ray.storage.files import Files
from ckcv_ray.tables.columns import Label
from ckcv_ray.validation import MOST, Limited, Probability, Stored, check_count, read_as

STREAM = "stream.jsonl"
MAX_STREAM_BYTES = 1 << 28
MAX_STREAM_ROWS = 1 << 20
MAX_OF_IDENTIFIER = 1_000  # characters of the identifier of a row, or of its group
SEAL = "sha256"


@dataclass(frozen=True)
class Header(Stored):
    """What a stream watches, fixed before its first row.

    Attributes:
        format: version of the file's format.
        run_id: of the run.
        certificate: SHA-256 of the run's certificate.
        by: the rule that predicts, as ``Result.rule`` takes it.
        delta: probability with which anything that is said of the stream may ever be false.
    """

    format: Literal[2]
    run_id: str
    certificate: str
    by: str
    delta: Probability


@dataclass(frozen=True)
class LiveRow(Stored):
    """A live row.

    Attributes:
        id: its name, of which there is one row.
        prediction: the label that was predicted.
        label: the true one.
        unit: name of its group; "" without groups.
        batch: number of the call that appended it, from 0.
    """

    id: Annotated[str, Limited(min_length=1, max_length=MAX_OF_IDENTIFIER)]
    prediction: Label
    label: Label
    unit: Annotated[str, Limited(max_length=MAX_OF_IDENTIFIER)]
    batch: Annotated[int, Limited(ge=0, le=MOST)]


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
        check_count("rows", len(later), MAX_STREAM_ROWS)
        rows = read_as(tuple[LiveRow, ...], [values for _, values in later])
        _check_rows(rows)
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
        StoreError: another writer has appended rows since it was read.
        InputError: it has too many rows.
    """
    if not rows and stream.pieces:
        return stream
    lines, head = [b"" if stream.pieces else stream.content], stream.head
    for row in rows:
        line, head = _seal(row.to_json(), head)
        lines.append(line)
    content = b"".join(lines)
    many = len(stream.rows) + len(rows) > MAX_STREAM_ROWS
    if many or len(stream.content) + len(content) > MAX_STREAM_BYTES:
        raise InputError(
            f"{str(files.path(name))!r} would have more than {MAX_STREAM_ROWS:,} rows or "
            f"{MAX_STREAM_BYTES >> 20} MiB, the maximum: begin another one with --stream"
        )
    grown = "is another writer's, who was faster: append the rows again"
    formats.create(files, formats.name_piece(name, stream.pieces), content, grown)
    every = stream.content + content if stream.pieces else content
    return Stream(stream.header, (*stream.rows, *rows), head, every, stream.pieces + 1)


def _seal(values: Mapping[str, Any], before: str) -> tuple[bytes, str]:
    """Return the line of an object, and its digest, given the digest of the line before it."""
    content = json.dumps(values, ensure_ascii=True, allow_nan=False)
    digest = hashlib.sha256(f"{before}{content}".encode()).hexdigest()
    return f'{content[:-1]}, "{SEAL}": "{digest}"}}\n'.encode(), digest


def _open_lines(lines: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the digest and the object of every line, each as ``_seal`` writes it after the one before it."""
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


def _check_rows(rows: Sequence[LiveRow]) -> None:
    """Raise ValueError if rows stand twice or are out of order, or if one group is in two batches."""
    seen: set[str] = set()
    batches: dict[str, int] = {}
    last = 0
    for row in rows:
        if row.id in seen:
            raise ValueError(f"the row {row.id[:60]!r} stands twice")
        if row.batch < last or (row.unit and batches.setdefault(row.unit, row.batch) != row.batch):
            raise ValueError("its batches are out of order, or one group is in two of them")
        seen.add(row.id)
        last = row.batch
