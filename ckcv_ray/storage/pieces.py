"""What grows one file at a time: the stream of a watched run, and the uses of judged rows.

    stream.jsonl            one line of JSON for what is watched, then one for each row, in order of arrival
    stream-000001.jsonl     the rows of the second batch, and so on
    uses.json               rows, answer, date and what was compared, for the first use
    uses-000001.json        the same for the second, and so on

A file is written once, and whole, so that a crash leaves either all that is new or nothing; and only one of
two writers can create it.

Each line of a stream ends with ``sha256``, the SHA-256 of the previous line's and of the line's own content.
So a line that is edited, removed or moved breaks the chain at the next one. What a chain cannot show is that
its end was cut off, or that all of it was written again: whoever keeps ``head``, the last digest, can tell.
For a stream in the run folder, the manifest keeps the SHA-256 of each file.

Each comparison on judged rows is a new chance to be wrong, so each use is counted, in the folders of the runs
that are compared, or in a named ledger. The manifest does not list uses, so that comparing changes no file of
a run. Rows are known one by one, by digests of all columns but the label, and by digests of those that a run
has learned from, of which a few may agree by chance: neither another run, nor another column, nor more rows
make them new. Tables have SHA-256s as well, for columns in which rows are often equal. So has an answer: the
same comparison of the same predictions can give no other answer, and is one use. Whoever can write to a file
can write anything in it.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, takewhile
from pathlib import PurePath
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray import errors
from ckcv_ray.errors import MOST, InputError, Label, Limited, Probability, Sha256, Stored, as_path, read_as
from ckcv_ray.storage.files import STUDY, Files, LocalFiles, create_file, guard_reading, read_json, to_json

STREAM = "stream.jsonl"
MAX_STREAM_BYTES = 1 << 28
MAX_STREAM_ROWS = 1 << 20
MAX_OF_IDENTIFIER = 1_000  # characters of the identifier of a row, or of its group
SEAL = "sha256"
USES = "uses.json"
MAX_USES = 10_000
MAX_SHARES, MAX_OF_COMPARED = 1_000, 400
Digests = Annotated[str, Limited(pattern="^([0-9a-f]{16})*$")]
Line = Annotated[str, Limited(max_length=MAX_OF_COMPARED, pattern=r"^[^\p{C}\p{Zl}\p{Zp}]*$")]  # printable
Moment = Annotated[str, Limited(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$")]
MAX_TWINS = 0.01  # share of rows that equal another: above it, equal rows may well be different examples


def name_piece(name: str, number: int) -> str:
    """Return the name of a piece: "uses.json", "uses-000001.json", and so on."""
    return f"{PurePath(name).stem}-{number:06d}{PurePath(name).suffix}" if number else name


def list_pieces(files: Files, name: str) -> list[str]:
    """Return the names of the existing pieces, in order."""
    there = set(files.list(PurePath(name).stem))
    return list(takewhile(there.__contains__, (name_piece(name, number) for number in count())))


def locate_elsewhere(option: str, path: object, runs: Sequence[Files], own: str) -> tuple[Files, str]:
    """Return the folder and the name of a file outside run folders, which have one of their ``own``.

    Raises:
        InputError: it is in the folder of one of these runs or another, or in a folder that does not exist.
    """
    file = as_path(option, path)
    files = LocalFiles(file.parent)
    if any(run.inside(file) is not None for run in runs) or files.exists(STUDY):
        says = f"is in a run folder, whose own is {own}: leave it out, or choose another place"
        raise InputError(f"{option}={str(file)!r} {says}")
    if not files.root.is_dir():
        raise InputError(f"{option}={str(file)!r}: there is no folder {str(files)!r}: create it")
    return files, file.name


@dataclass(frozen=True)
class Header(Stored):
    """What a stream watches, fixed before its first row.

    Attributes:
        format: version of the file's format.
        run_id: run_id of the run.
        certificate: SHA-256 of the run's certificate.
        by: the rule that predicts, as ``Result.rule`` takes it.
        delta: probability with which anything said about the stream may ever be false.
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
        id: its name, which no other row has.
        prediction: the label that was predicted.
        label: the true label.
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
        rows: its rows, in order of arrival.
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
        StoreError: it is damaged or was edited, is too large, or is not a stream.
    """
    pieces, content = list_pieces(files, name), b""
    if not pieces and not files.exists(name):
        return None
    with guard_reading(files, name):
        for piece in pieces or [name]:
            content += files.read(piece, MAX_STREAM_BYTES - len(content))
        return _parse_stream(content, len(pieces))


# a stream can be long, and is asked for in several places; its files are read each time
@lru_cache(maxsize=1)
def _parse_stream(content: bytes, n_pieces: int) -> Stream:
    *lines, last = content.decode().split("\n")
    if last or not lines:
        raise ValueError("its last line is not complete")
    head, objects = "", list[dict[str, Any]]()
    for number, line in enumerate(lines, start=1):
        values = json.loads(line)
        digest = values.pop(SEAL, "") if isinstance(values, dict) else ""
        sealed, expected = _seal(values, head)
        if digest != expected or sealed != f"{line}\n".encode():
            raise ValueError(f"it was edited: line {number} does not continue the chain of digests")
        head = expected
        objects.append(values)
    header = read_as(Header, objects[0])
    errors.check_count("rows", len(objects) - 1, MAX_STREAM_ROWS)
    rows = read_as(tuple[LiveRow, ...], objects[1:])
    _check_rows(rows)
    return Stream(header, rows, head, content, n_pieces)


def write_stream(
    files: Files, name: str, header: Header, stream: Stream | None, rows: Sequence[LiveRow]
) -> Stream:
    """Append rows to a stream, in a separate file, and return it.

    Args:
        files: the files of the folder.
        name: name of the first file.
        header: what a new stream watches.
        stream: the stream as it was read; None to begin one.
        rows: the rows of one more batch.

    Raises:
        StoreError: another writer has appended rows since it was read.
        InputError: there are too many rows, or one, or its group, was appended before.
    """
    if stream is None:
        stream = Stream(header, (), "", b"", 0)
    elif not rows:
        return stream
    try:
        every_row = *stream.rows, *read_as(tuple[LiveRow, ...], [row.to_json() for row in rows])
        _check_rows(every_row)
    except ValueError as error:
        raise InputError(
            f"rows cannot be appended to {str(files.path(name))!r}: {error}: a row is named in at most "
            f"{MAX_OF_IDENTIFIER:,} characters, and counts once, as does a group, with all of its rows in "
            "one batch; leave out what was appended before"
        ) from None
    lines, head = list[bytes](), stream.head
    for each in rows if stream.pieces else (header, *rows):
        line, head = _seal(each.to_json(), head)
        lines.append(line)
    content = b"".join(lines)
    if len(every_row) > MAX_STREAM_ROWS or len(stream.content) + len(content) > MAX_STREAM_BYTES:
        raise InputError(
            f"{str(files.path(name))!r} would have more than {MAX_STREAM_ROWS:,} rows or "
            f"{MAX_STREAM_BYTES >> 20} MiB, the maximum: begin another one with --stream"
        )
    grown = "was just written by somebody else: append the rows again"
    create_file(files, name_piece(name, stream.pieces), content, grown)
    return Stream(stream.header, every_row, head, stream.content + content, stream.pieces + 1)


def _seal(values: Mapping[str, Any], before: str) -> tuple[bytes, str]:
    """Return the line of an object, and its digest, given the digest of the line before it."""
    content = json.dumps(values, ensure_ascii=True, allow_nan=False)
    digest = hashlib.sha256(f"{before}{content}".encode()).hexdigest()
    return f'{content[:-1]}, "{SEAL}": "{digest}"}}\n'.encode(), digest


def _check_rows(rows: Sequence[LiveRow]) -> None:
    """Raise ValueError if rows occur twice or are out of order, or if one group is in two batches."""
    seen: set[str] = set()
    batches: dict[str, int] = {}
    last = 0
    for row in rows:
        if row.id in seen:
            raise ValueError(f"the row {row.id[:60]!r} appears twice")
        if row.batch < last or (row.unit and batches.setdefault(row.unit, row.batch) != row.batch):
            raise ValueError("its batches are out of order, or one group is in two of them")
        seen.add(row.id)
        last = row.batch


@dataclass(frozen=True)
class Use(Stored):
    """One use of judged rows.

    Attributes:
        tables: SHA-256 of the rows with their labels: of all their columns first, and of some.
        rows: digests of the rows that counted, without their labels, of 16 hexadecimal digits each; none if
            rows of different examples are often equal.
        learned: the same for the columns that a run has learned from.
        answer: SHA-256 of the question and of the predictions that were compared.
        compared: what was compared, for display.
        shares: how many uses share delta.
        delta: what is shared.
        date: when it was made, in UTC, such as 2026-11-25T13:00:00+00:00.
    """

    tables: Annotated[tuple[Sha256, ...], Limited(max_length=8)]
    rows: Digests
    learned: Digests
    answer: Sha256
    compared: Line
    shares: Annotated[int, Limited(ge=1, le=MAX_SHARES)]
    delta: Probability
    date: Moment

    def repeats(self, earlier: "Use") -> bool:
        """Return whether an earlier use is the same: the same question and predictions on the same table."""
        return self.answer == earlier.answer and not set(self.tables).isdisjoint(earlier.tables)


def list_linked(use: Use, earlier: Iterable[Use]) -> list[Use]:
    """Return the uses that share rows with a use, or with one that does, and so on, the oldest first.

    Of the rows by what was learned from, a few may be equal by chance.
    """
    linked, left = [use], list(earlier)
    for found in linked:
        rows, learned = _read_digests(found.rows), _read_digests(found.learned)
        for before in left.copy():
            others = _read_digests(before.learned)
            if (
                not set(found.tables).isdisjoint(before.tables)
                or np.isin(rows, _read_digests(before.rows)).any()
                or np.isin(learned, others).sum() > MAX_TWINS * min(len(learned), len(others))
            ):
                linked.append(before)
                left.remove(before)
    return sorted(linked[1:], key=lambda found: found.date)


def read_uses(files: Files, name: str = USES) -> tuple[Use, ...]:
    """Return the uses in a file and in those that follow it, the oldest first; none if there is no file.

    Raises:
        StoreError: a file is damaged, or holds something else.
    """
    uses: list[Use] = []
    for piece in list_pieces(files, name)[:MAX_USES]:
        content = read_json(files, piece)
        with guard_reading(files, piece):
            uses.append(read_as(Use, content))
    return tuple(uses)


def append_use(files: Files, use: Use, name: str, earlier: Sequence[Use]) -> None:
    """Write a use to a file of its own; no effect if one with the same answer exists.

    Args:
        files: the files of the folder.
        use: the use.
        name: name of the first file.
        earlier: the uses in the folder, as ``read_uses`` returned them.

    Raises:
        StoreError: another comparison was written since they were read.
        InputError: there are too many uses.
        RunError: it cannot be written.
    """
    if any(use.repeats(found) for found in earlier):
        return
    if len(earlier) >= MAX_USES:
        raise InputError(
            f"{str(files.path(name))!r} has {MAX_USES:,} uses, the maximum: begin another file with --ledger"
        )
    content = to_json(use.to_json())
    grown = "was written by another comparison just now: compare again"
    create_file(files, name_piece(name, len(earlier)), content, grown)


def _read_digests(digits: str) -> NDArray[np.uint64]:
    return np.frombuffer(bytes.fromhex(digits), "<u8")
