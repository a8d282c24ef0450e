"""The two formats of a run's files, Parquet and JSON: written atomically, read within limits.

Every Parquet file names the run it belongs to, the version of its schema and that of this package; a reader
rejects what it does not know. A file may come from anybody, so what it says of itself is checked first, and
it is read under a limit of memory.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from io import BytesIO
from itertools import count, takewhile
from pathlib import PurePath

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from ckcv_ray.errors import InputError, RunError, StoreError, convert_errors
from ckcv_ray.storage.files import Content, Files, LocalFiles, ask_files
from ckcv_ray.tables.columns import decode_columns, is_plain
from ckcv_ray.tables.limits import FOLDER_BYTES, MAX_CELLS, MAX_TABLE_ROWS, limit_memory
from ckcv_ray.tables.read import read_parquet
from ckcv_ray.validation import as_path
from ckcv_ray.version import VERSION

STUDY = "study.json"  # which every run folder has
SCHEMA_VERSION = 15
MAX_JSON_BYTES = 1 << 26


@contextmanager
def guard_reading(files: Files, name: str) -> Iterator[None]:
    """Raise StoreError if a file is missing, and turn any error of its reader into one."""
    with convert_errors(StoreError, f"{files.path(name)} is damaged"):
        try:
            yield
        except FileNotFoundError:
            raise StoreError(f"{files.path(name)} is missing") from None


@contextmanager
def guard_writing(files: Files, name: str) -> Iterator[None]:
    """Guard a change to a file: check that the folder is still locked, and raise RunError for an OSError."""
    files.lock.check_held()
    try:
        yield
    except OSError as error:
        raise RunError(
            f"cannot write {files.path(name)}: {error.strerror or error}; what was written is kept"
        ) from None


def write(files: Files, name: str, content: Content) -> None:
    """Write a file of the run."""
    with guard_writing(files, name):
        files.write(name, content)


def write_all(files: Files, contents: Mapping[str, Content]) -> None:
    """Write several files of the run: in this order on a disk, a few at once on a store."""
    for _, done in ask_files(files, contents, lambda name: write(files, name, contents[name])):
        done()


def create(files: Files, name: str, content: Content, otherwise: str) -> None:
    """Write a file of the run that no other writer may have written.

    Raises:
        StoreError: there is one of its name; the message goes on with ``otherwise``.
    """
    with guard_writing(files, name):
        if not files.create(name, content):
            raise StoreError(f"{files.path(name)} {otherwise}")


def delete(files: Files, name: str) -> None:
    """Delete a file of the run."""
    with guard_writing(files, name):
        files.delete(name)


def name_piece(name: str, number: int) -> str:
    """Return the name of a piece of what grows: "uses.json", "uses-000001.json", and so on."""
    return f"{PurePath(name).stem}-{number:06d}{PurePath(name).suffix}" if number else name


def list_pieces(files: Files, name: str) -> list[str]:
    """Return the names of the pieces that there are, in order."""
    there = set(files.list(PurePath(name).stem))
    return list(takewhile(there.__contains__, (name_piece(name, number) for number in count())))


def locate_elsewhere(option: str, path: object, runs: Sequence[Files], own: str) -> tuple[Files, str]:
    """Return the folder and the name of a file outside of run folders, which have one of their ``own``.

    Raises:
        InputError: it is in one of these runs or in another one, or in a folder that does not exist.
    """
    file = as_path(option, path)
    files = LocalFiles(file.parent)
    if any(run.inside(file) is not None for run in runs) or files.exists(STUDY):
        says = f"is in a run folder, whose own is {own}: leave it out, or choose another place"
        raise InputError(f"{option}={str(file)!r} {says}")
    if not files.root.is_dir():
        raise InputError(f"{option}={str(file)!r}: there is no folder {str(files)!r}: create it")
    return files, file.name


def make_table(table: pa.Table, run_id: str, more: Mapping[str, str] | None = None) -> pa.Buffer:
    """Return a Parquet file of a run, with run_id, versions and ``more`` as its metadata.

    Dictionaries are written as the values that they hold.
    """
    metadata = {"run_id": run_id, "schema": str(SCHEMA_VERSION), "package": VERSION, **(more or {})}
    sink = pa.BufferOutputStream()
    content = decode_columns(table).replace_schema_metadata(metadata)
    parquet.write_table(content, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue()


def read_table(
    files: Files,
    name: str,
    run_id: str,
    schema: pa.Schema | None,
    rows: int = MAX_TABLE_ROWS,
    values: int = MAX_CELLS,
    content: bytes | None = None,
) -> pa.Table:
    """Read a Parquet file of this run that has this schema and at most this many rows and values.

    Args:
        files: of the folder.
        name: of the file.
        run_id: of the run.
        schema: its columns; None for any of plain types.
        rows, values: the largest numbers of them.
        content: of the file, if it was read before.

    Raises:
        StoreError: it is missing, damaged, too large, or another run's.
    """
    opened = files.open(name) if content is None else nullcontext(BytesIO(content))
    with guard_reading(files, name), opened as stream, limit_memory(FOLDER_BYTES):
        actual = parquet.read_schema(stream)
        if not belongs(actual.metadata or {}, run_id):
            raise StoreError(
                f"{files.path(name)} does not belong to run {run_id}, "
                "or has a schema this version cannot read"
            )
        if not (actual.equals(schema) if schema is not None else all(map(is_plain, actual.types))):
            raise StoreError(f"{files.path(name)} does not have the expected columns")
        table = read_parquet(stream, rows, values, verified=True)
        lists = (column for column in table.columns if pa.types.is_list(column.type))
        if sum(pc.sum(pc.list_value_length(column)).as_py() or 0 for column in lists) > values:
            raise ValueError(f"its lists hold more than {values:,} values")
        return table


def read_footer(files: Files, name: str) -> parquet.FileMetaData:
    """Return what a Parquet file says of itself, such as its number of rows.

    Raises:
        StoreError: it is missing, or damaged.
    """
    with guard_reading(files, name), files.open(name) as stream, limit_memory(FOLDER_BYTES):
        return parquet.read_metadata(stream)


def belongs(metadata: Mapping[bytes, bytes], run_id: str) -> bool:
    """Return whether a Parquet file's metadata name this run and the schema of this version."""
    named = metadata.get(b"schema"), metadata.get(b"run_id")
    return named == (str(SCHEMA_VERSION).encode(), run_id.encode())


def read_json(files: Files, name: str) -> dict[str, object]:
    """Read a JSON object.

    Raises:
        StoreError: it is missing or damaged.
    """
    with guard_reading(files, name):
        content = json.loads(files.read(name, MAX_JSON_BYTES))
        if not isinstance(content, dict):
            raise ValueError("expected an object")
        return content


def to_json(content: Mapping[str, object]) -> bytes:
    """Return the bytes that a JSON object is written as."""
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()
