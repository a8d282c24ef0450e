"""The history of nights: a folder, on a disk or an object store, with one Parquet file for each.

Files are written atomically, and once. A row holds a figure together with the commit, the package and the
machine. Speeds on different kinds of machine cannot be compared, so a night is compared only with nights of
its kind: the same processor, cores, system, Python and packages.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from ckcv_ray import GaussianSVM, InputError, StoreError
from ckcv_ray.errors import convert_errors
from ckcv_ray.storage.execution import read_environment
from ckcv_ray.storage.files import MAX_FILE_BYTES, Files, unwritable
from jobs.nightly.figures import Figure, Role

SCHEMA_VERSION = "1"
PAGE = "nightly.html"
FOLDER = "history"
PART = f"{FOLDER}/part-"
TEMPORARY = re.compile(r"(history/\.part-[\w.-]+\.parquet|\.nightly\.html)-\w+\.tmp")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
COLUMNS = pa.schema(
    [
        ("night", pa.string()),
        ("began", pa.timestamp("us", tz="UTC")),
        ("commit", pa.string()),
        ("package", pa.string()),
        ("plan", pa.string()),
        ("kind", pa.string()),
        ("machine", pa.string()),
        ("group", pa.string()),
        ("case", pa.string()),
        ("name", pa.string()),
        ("role", pa.string()),
        ("value", pa.float64()),
        ("text", pa.string()),
    ]
)


class Night(NamedTuple):
    """The figures of one night, and where they were measured.

    Attributes:
        name: of the night, usually its date.
        began: start time, UTC; nights are ordered by it.
        commit, package: the code measured: its commit and version.
        plan: the set of cases.
        machine: processor, cores, system, python, packages, blas.
        figures: the measurements.
    """

    name: str
    began: datetime
    commit: str
    package: str
    plan: str
    machine: dict[str, Any]
    figures: tuple[Figure, ...]

    @property
    def kind(self) -> str:
        """Identifier of the kind of machine: a digest of its description."""
        canonical = json.dumps(self.machine, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]

    def groups(self) -> list[str]:
        """List the groups measured or attempted, in order."""
        return list(dict.fromkeys(figure.group for figure in self.figures))

    def measured(self, group: str) -> list[Figure]:
        """Return the figures of a group; none if its benchmark failed."""
        figures = [figure for figure in self.figures if figure.group == group]
        return [] if any(figure.role == Role.FAILED for figure in figures) else figures


def machine() -> dict[str, Any]:
    """Describe the kind of this machine."""
    return {**read_environment(GaussianSVM()), "cores": os.cpu_count()}


def check_name(night: str) -> str:
    """Check that a night's name can be part of a file name, and return it.

    Raises:
        InputError: it cannot.
    """
    if not NAME.fullmatch(night):
        raise InputError(f"night={night!r}: letters, digits, '.', '_' and '-', at most 64, as in 2026-08-01")
    return night


class History:
    """The nights in a folder.

    Args:
        files: of the folder; nothing is accessed until a method needs it.
    """

    def __init__(self, files: Files) -> None:
        self.files = files

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder and lock it against other nights, until the end or this process's death.

        Raises:
            StoreError: another process holds the lock.
            InputError: the folder cannot be written.
        """
        self.files.lock.acquire()
        try:
            for name in [*self.files.list("."), *self.files.list(f"{FOLDER}/.")]:
                if TEMPORARY.fullmatch(name):  # left by a night that was killed
                    self.files.delete(name)
            yield
        finally:
            self.files.lock.release()

    def nights(self) -> list[Night]:
        """Read all nights, the oldest first.

        Raises:
            StoreError: a file is damaged, or not part of a history.
        """
        return sorted(map(self._read, self._parts()), key=lambda night: (night.began, night.name))

    def copy(self, to: Files) -> None:
        """Copy the nights and the page to a folder, where files of these names are replaced.

        Raises:
            InputError: the folder cannot be written.
            StoreError: a file is damaged.
        """
        contents = {name: self._content(name) for name in [*self._parts(), PAGE]}
        try:
            for name, content in contents.items():
                to.write(name, content)
        except OSError as error:
            raise unwritable(str(to), error) from None

    def add(self, night: Night) -> None:
        """Write the file of a night.

        Raises:
            StoreError: another job has just written this night.
        """
        shared = (night.name, night.began, night.commit, night.package, night.plan, night.kind)
        where = json.dumps(night.machine)
        rows = [dict(zip(COLUMNS.names, (*shared, where, *figure), strict=True)) for figure in night.figures]
        metadata = {"history": SCHEMA_VERSION, "night": night.name}
        table = pa.Table.from_pylist(rows, schema=COLUMNS).replace_schema_metadata(metadata)
        sink = pa.BufferOutputStream()
        parquet.write_table(table, sink, compression="zstd", write_page_checksum=True)
        part = name_part(night.name)
        if not self.files.create(part, sink.getvalue()):
            raise StoreError(f"{self.files.path(part)} was written by another job: it is not replaced")

    def _parts(self) -> list[str]:
        return [name for name in self.files.list(f"{FOLDER}/") if not name.startswith(f"{FOLDER}/.")]

    def _content(self, name: str) -> bytes:
        with convert_errors(StoreError, f"{self.files.path(name)} is damaged"):
            return self.files.read(name, MAX_FILE_BYTES)

    def _read(self, name: str) -> Night:
        file, content = self.files.path(name), pa.BufferReader(self._content(name))
        try:
            table = parquet.read_table(content, page_checksum_verification=True, use_threads=False)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise StoreError(f"{file} is damaged: {str(error).splitlines()[0]}") from None
        version = (table.schema.metadata or {}).get(b"history", b"").decode()
        if version != SCHEMA_VERSION or not table.schema.equals(COLUMNS):
            raise StoreError(f"{file} is not part of a history that this version can read")
        try:
            return _night(table.to_pylist(), name)
        except (ValueError, TypeError, UnicodeDecodeError) as error:
            raise StoreError(f"{file} is damaged: {error}") from None


def name_part(night: str) -> str:
    """Return the name of the file of a night."""
    return f"{PART}{night}.parquet"


def _night(rows: list[dict[str, Any]], name: str) -> Night:
    """Build a night from its rows, which agree in all but the figures."""
    shared = {json.dumps([row[name] for name in COLUMNS.names[:7]], default=str) for row in rows}
    if len(shared) != 1:
        raise ValueError(f"{len(shared)} nights in one file")
    figures = tuple(
        Figure(*(row[n] for n in COLUMNS.names[7:]))._replace(role=Role(row["role"])) for row in rows
    )
    first = rows[0]
    fields = {name: first[name] for name in ("began", "commit", "package", "plan")}
    night = Night(name=first["night"], **fields, machine=json.loads(first["machine"]), figures=figures)
    if name != name_part(night.name) or not NAME.fullmatch(night.name):
        raise ValueError(f"it contains the night {night.name!r}")
    if night.kind != first["kind"]:
        raise ValueError("the machine does not match the recorded kind")
    return night
