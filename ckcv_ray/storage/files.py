"""The files of a run folder by name, on a disk or on an object store, and the run folders at an address.

Most are Parquet or JSON. Every Parquet file names its run, the version of its schema and that of this
package; a reader rejects another run or schema. A file may come from anybody, so what it says about itself is
checked first, JSON has a limit on bytes, and Parquet is read under a memory limit.

On a disk they are written atomically and durably, and by one process at a time. A file written by somebody
else may be a pipe, a device, or endless: it is opened without blocking, its type and size are checked before
it is read, and no more than that size is read.

On a store a file is an object of the same name, so that a plain copy of the objects to a disk is the run
folder. An object appears whole, and nothing needs a lock: whatever two writers compute is the same, so
parts of the log, named by their digests, and files that follow from the study are replaced by the same bytes.
A second writer wastes work; a time stamp warns of it. What must come from a single writer, such as the first
files of a run or a batch of live rows, is one object each, which only one of two writers can create.
"""

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from errno import EACCES, EDQUOT, EINVAL, ENOSPC, ENOTSUP
from fcntl import LOCK_NB, LOCK_SH, flock
from functools import partial
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from tempfile import SpooledTemporaryFile
from time import monotonic
from typing import BinaryIO, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc
from filelock import FileLock, Timeout
from pyarrow import parquet

from ckcv_ray import errors
from ckcv_ray.errors import CKCVError, InputError, RunError, StoreError, UnreachableError, as_path
from ckcv_ray.tables.columns import is_plain
from ckcv_ray.tables.objects import AT_ONCE, Bucket, Returned, ask_at_once, is_address, parse_address
from ckcv_ray.tables.read import FOLDER_BYTES, MAX_CELLS, MAX_TABLE_ROWS, limit_memory, read_parquet
from ckcv_ray.version import VERSION

STUDY = "study.json"  # every run folder has it
LOCK = ".lock"
SCHEMA_VERSION = 15
MAX_JSON_BYTES = 1 << 26
MAX_FILE_BYTES = 1 << 32
MAX_IN_MEMORY = 1 << 26  # bytes of an open file from a store
PATIENCE = 0.2  # seconds within which a lock taken only as a test is released
RENEWED_AFTER = 30.0  # seconds, at the next write
ALIVE = 600.0  # seconds after its last stamp for which a writer counts as running
Names = list[str]  # inside the class, list is a method


class LocalFiles:
    """The files of a folder on the local file system and of its subfolders.

    Names are relative, with slashes: "ensemble/models.parquet". No folder on the way to a file may be a link,
    which could lead anywhere: StoreError is raised. The root may be a link: that is up to whoever names it. A
    file that is a link is not regular.

    Args:
        root: the folder; it is not accessed until a method needs it.

    Attributes:
        lock: who writes.
        at_once: number of requests best made at once.
    """

    at_once = 1

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lock = Lock(root)

    def __str__(self) -> str:
        """Return the address of the folder, with which it can be opened again."""
        return str(self.root)

    def path(self, name: str) -> Path:
        """Return the path of a file, for messages."""
        return self.root / name

    def exists(self, name: str = "") -> bool:
        """Return whether anything has that name, even a link that leads nowhere; without a name, the root."""
        return os.path.lexists(self.path(name)) if name else self.root.exists()

    def list(self, prefix: str = "") -> Names:
        """Return the sorted names of regular files that start with a prefix, in one folder only.

        "log/part-" lists files of the folder log, and "" those of the root.
        """
        folder = self._locate(prefix[: prefix.rfind("/") + 1])
        found = (file for file in folder.glob("*") if file.is_file() and not file.is_symlink())
        names = (file.relative_to(self.root).as_posix() for file in found)
        return sorted(name for name in names if name.startswith(prefix))

    def walk(self, regular: bool = True) -> Iterator[str]:
        """Yield the names of regular files at any depth, in no order; no link is followed.

        Args:
            regular: False for everything except folders, including pipes and broken links.
        """
        for file in self.root.rglob("*"):
            if (file.is_file() and not file.is_symlink()) if regular else not file.is_dir():
                yield file.relative_to(self.root).as_posix()

    def read(self, name: str, most: int) -> bytes:
        """Read a regular file of at most ``most`` bytes.

        Raises:
            FileNotFoundError: there is none.
            ValueError: it is not a regular file, or is larger.
        """
        with open_regular(self._locate(name), most) as stream:
            return stream.read(os.fstat(stream.fileno()).st_size)

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Open a regular file of the folder for reading, without blocking."""
        with open_regular(self._locate(name)) as stream:
            yield stream

    def write(self, name: str, content: bytes) -> None:
        """Write a file, and the folders on the way to it, atomically and durably.

        Raises:
            RunError: it cannot be written; no temporary file is left behind. Or the folder is no longer
                locked.
        """
        file = self._locate(name)
        with guard_writing(self, name):
            make_folder(file.parent)
            write_atomically(file, content)

    def create(self, name: str, content: bytes) -> bool:
        """Write a file if nothing has its name; return whether it was written.

        The lock of the folder keeps others from doing so.
        """
        if self.exists(name):
            return False
        self.write(name, content)
        return True

    def delete(self, name: str) -> None:
        """Delete a file."""
        with guard_writing(self, name):
            self._locate(name).unlink()

    def check_writable(self) -> None:
        """Check that the root could be created or written; creates nothing.

        Raises:
            StoreError: it is a file.
            InputError: it could not be.
        """
        if self.root.exists() and not self.root.is_dir():
            raise StoreError(f"{str(self)!r} exists and is not a run folder: choose another --out")
        folders = (self.root, *self.root.absolute().parents)
        nearest = next(folder for folder in folders if os.path.lexists(folder))
        if not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
            raise InputError(
                f"cannot write to {str(self)!r}: {str(nearest)!r} is not a folder in which you may write"
            )

    def inside(self, file: Path) -> str | None:
        """Return the name of a path in this folder, or None if it is outside."""
        path, root = (Path(os.path.realpath(place)) for place in (file, self.root))  # even of a loop
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else None

    def _locate(self, name: str) -> Path:
        """Return the path of a file, checking that no folder on the way is a link."""
        path = self.root
        for part in name.split("/")[:-1]:
            path /= part
            if path.is_symlink():
                raise StoreError(f"{path} is a link, and a run folder has none: replace it with its target")
        return self.path(name)


class ObjectFiles:
    """The files of a folder on an object store; see ``LocalFiles``.

    Args:
        bucket: the objects of the folder.
    """

    at_once = AT_ONCE

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.lock = Stamp(bucket)

    def __str__(self) -> str:
        return str(self.bucket.address)

    def path(self, name: str) -> str:
        """Return the address of a file, for messages."""
        return str(self.bucket.address.inside(name))

    def exists(self, name: str = "") -> bool:
        """Return whether there is an object of that name; for the root, whether there is any in it."""
        if not name:
            return bool(self.bucket.list())
        with suppress(FileNotFoundError):
            self.bucket.find(name)
            return True
        return False

    def list(self, prefix: str = "") -> Names:
        """Return the sorted names of files that start with a prefix, in one folder only."""
        listed = (name for name, _ in self.bucket.list(prefix.rpartition("/")[0]))
        return [name for name in listed if name.startswith(prefix) and "/" not in name[len(prefix) :]]

    def walk(self, regular: bool = True) -> Iterator[str]:
        """Yield the names of all files, at any depth; all are regular."""
        return (name for name, _ in self.bucket.list())

    def read(self, name: str, most: int) -> bytes:
        """Read a file of at most ``most`` bytes."""
        return self.bucket.get(name, most)

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Open a copy of a file for reading, on disk if it is large."""
        with SpooledTemporaryFile(MAX_IN_MEMORY) as file:
            self.bucket.download(name, MAX_FILE_BYTES, cast(BinaryIO, file))
            file.seek(0)
            yield cast(BinaryIO, file)

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""
        with guard_writing(self, name):
            self.bucket.put(name, content)

    def create(self, name: str, content: bytes) -> bool:
        """Write a file if there is none of its name; return whether it was written.

        A repeated request may have found what it wrote itself: that counts as written, too.
        """
        with guard_writing(self, name):
            if self.bucket.create(name, content):
                return True
            with suppress(FileNotFoundError, ValueError):
                return self.bucket.get(name, len(content)) == content
        return False

    def delete(self, name: str) -> None:
        """Delete a file; a missing one is no error, since another writer may have deleted it."""
        with guard_writing(self, name):
            self.bucket.delete(name)

    def check_writable(self) -> None:
        """Raise InputError if there is no such bucket; whether it can be written shows on writing."""
        self.bucket.list(LOCK)

    def inside(self, file: Path) -> str | None:
        """Return None: no path leads into a store."""
        return None


Files: TypeAlias = LocalFiles | ObjectFiles


class Lock:
    """The file ``.lock`` in a folder.

    Args:
        folder: the folder to lock; it is not accessed until a method needs it.
    """

    caution = ""  # another writer is refused

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / LOCK
        self._lock = FileLock(self.file, timeout=PATIENCE)
        self._descriptor: int | None = None  # of the lock file that is held
        self._process = os.getpid()  # that holds the lock: a forked child does not

    @property
    def held(self) -> bool:
        """Whether this process has locked the folder."""
        return self._process == os.getpid() and bool(self._lock.is_locked)

    @property
    def busy(self) -> bool:
        """Whether a living process has locked the folder, as far as is known.

        Asking shares the lock for a moment; a process that begins to write waits for that. A process that
        shares the lock, as one that asks does, is not seen, nor is one whose lock file may not be read.
        """
        with suppress(OSError, ValueError), open_regular(self.file) as file:
            try:
                flock(file, LOCK_SH | LOCK_NB)
            except (BlockingIOError, PermissionError):  # the latter is EACCES on some file systems
                return True
        return self.held

    def acquire(self) -> None:
        """Create the folder and lock it until ``release`` or the end of this process.

        Raises:
            StoreError: another process has locked it, or the lock file is not a regular file.
            InputError: the folder cannot be written.
            RunError: the disk is full.
        """
        if self.file.exists() and not stat.S_ISREG(self.file.stat().st_mode):
            raise StoreError(f"{self.file} is damaged: it is not a regular file")
        try:
            make_folder(self.folder)
            self._lock.acquire()
            self._process = os.getpid()
            self._descriptor = os.open(self.file, os.O_RDONLY)
        except Timeout:
            raise StoreError(f"{str(self.folder)!r} is in use by another run: wait, or stop it") from None
        except OSError as error:
            self.release()
            raise unwritable(self.folder, error) from None

    def check_held(self) -> None:
        """Raise RunError if the locked folder has been moved, replaced or removed, or lost its lock file.

        Also raise it in a child forked from the process that holds the lock.
        """
        if self._descriptor is None:
            return
        if self._process != os.getpid():
            raise RunError(f"{str(self.folder)!r} belongs to the process {self._process}, not to its child")
        with suppress(FileNotFoundError, NotADirectoryError):
            if os.path.samestat(os.fstat(self._descriptor), self.file.stat()):
                return
        raise RunError(
            f"{str(self.folder)!r} is no longer the folder this run locked: it was moved or replaced, or "
            f"its file {LOCK} was removed; what was written is kept, and nothing more is written"
        )

    def release(self) -> None:
        """Unlock the folder and remove the lock file; a forked child leaves both alone."""
        if self._process != os.getpid():
            return
        if self._descriptor is not None:
            with suppress(RunError, OSError):
                self.check_held()
                self.file.unlink()
            os.close(self._descriptor)
            self._descriptor = None
        if self.held:
            self._lock.release(force=True)


class Stamp:
    """The object ``.lock`` of a folder, which says that a run writes there: a warning, not a lock.

    Args:
        bucket: the objects of the folder.
    """

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.held = False
        self._content, self._stamped = b"", 0.0

    @property
    def busy(self) -> bool:
        """Whether a run wrote its stamp recently, by the clocks of this machine and of the store."""
        return self.held or ((age := self._find_age()) is not None and age < ALIVE)

    @property
    def caution(self) -> str:
        """A sentence about a run that has not reported its end; "" if there is none."""
        if self.held or (age := self._find_age()) is None:
            return ""
        return (
            f"another run wrote to {self.bucket.address} {age:,.0f} s ago, and has not said that it has "
            "ended: if it is running, both compute the same, and one of them in vain"
        )

    def acquire(self) -> None:
        """Write the stamp, and check that the store refuses to create it again.

        Raises:
            InputError: the store ignores conditions, or may not be written.
        """
        self._content = token_hex(16).encode()
        self.bucket.put(LOCK, self._content)
        self._stamped = monotonic()
        if self.bucket.create(LOCK, self._content):
            self.bucket.delete(LOCK)
            raise InputError(
                f"{str(self.bucket.address)!r}: this store writes over an object that it was asked "
                "to create only if there is none (it ignores If-None-Match), so that one of two runs could "
                "lose what it wrote: use another store, or a newer version of it"
            )
        self.held = True

    def check_held(self) -> None:
        """Write the stamp again if it is old."""
        if self.held and monotonic() - self._stamped > RENEWED_AFTER:
            self.bucket.put(LOCK, self._content)
            self._stamped = monotonic()

    def release(self) -> None:
        """Delete the stamp: this writer has ended."""
        if self.held:
            self.held = False
            with suppress(UnreachableError):
                self.bucket.delete(LOCK)

    def _find_age(self) -> float | None:
        try:
            written = self.bucket.find(LOCK)
        except FileNotFoundError:
            return None
        return max(0.0, (datetime.now(UTC) - written).total_seconds())


def unwritable(folder: object, error: OSError) -> InputError | RunError:
    """Return the error for a folder that cannot be written: a full disk is not bad input."""
    kind = RunError if error.errno in {ENOSPC, EDQUOT} else InputError
    return kind(f"cannot write to {str(folder)!r}: {error.strerror}")


def ask_files(
    files: Files, names: Iterable[str], request: Callable[[str], Returned]
) -> Iterator[tuple[str, Callable[[], Returned]]]:
    """Yield for each file, in order, a function that returns the answer to a request.

    A few requests are made at once where that is faster, and otherwise no thread is started.
    """
    every = list(names)
    for first in range(0, len(every), files.at_once):
        some = every[first : first + files.at_once]
        requests = [partial(request, name) for name in some]
        answers = [each.result for each in ask_at_once(*requests)] if files.at_once > 1 else requests
        yield from zip(some, answers, strict=True)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents; their names are on disk before this returns."""
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for parent in missing:
        sync_folder(parent.parent)


def write_atomically(final: Path, content: bytes) -> None:
    """Write a file atomically: temporary file, fsync, rename, fsync of the folder.

    Raises:
        OSError: it cannot be written; no temporary file is left behind.
    """
    temporary = final.with_name(f".{final.name}-{token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, final)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    sync_folder(final.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power failure, where the file system supports it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in {EINVAL, ENOTSUP, EACCES}:  # from file systems that cannot fsync a folder
            raise


@contextmanager
def open_regular(file: Path, most: int = MAX_FILE_BYTES) -> Iterator[BinaryIO]:
    """Open a regular file of at most ``most`` bytes for reading, without blocking or following a link.

    What is checked is the open file: by then its name may belong to another.

    Raises:
        OSError: there is none, or it is a socket.
        ValueError: it is a link, a folder, a pipe or a device, or is larger.
    """
    if file.is_symlink():  # then nothing is opened, wherever it leads
        raise ValueError("it is a link")
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is not a regular file")
        if status.st_size > most:
            raise ValueError(f"it is larger than {most >> 20} MiB")
    except ValueError:
        os.close(descriptor)
        raise
    with os.fdopen(descriptor, "rb") as stream:
        yield stream


@contextmanager
def guard_reading(files: Files, name: str) -> Iterator[None]:
    """Raise StoreError if a file is missing, and turn any error of its reader into one."""
    with errors.convert_errors(StoreError, f"{files.path(name)} is damaged"):
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


def write_all(files: Files, contents: Mapping[str, bytes]) -> None:
    """Write several files of the run: in this order on a disk, a few at once on a store."""
    for _, done in ask_files(files, contents, lambda name: files.write(name, contents[name])):
        done()


def create_file(files: Files, name: str, content: bytes, otherwise: str) -> None:
    """Write a file of the run that no other writer may have written.

    Raises:
        StoreError: there is one of that name; the message goes on with ``otherwise``.
    """
    if not files.create(name, content):
        raise StoreError(f"{files.path(name)} {otherwise}")


def make_table(table: pa.Table, run_id: str, more: Mapping[str, str] | None = None) -> bytes:
    """Return a Parquet file of a run, with run_id, versions and ``more`` as its metadata."""
    metadata = {"run_id": run_id, "schema": str(SCHEMA_VERSION), "package": VERSION, **(more or {})}
    sink = BytesIO()
    content = table.replace_schema_metadata(metadata)
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
        files: the files of the folder.
        name: name of the file.
        run_id: run_id of the run.
        schema: its columns; None for any columns of plain types.
        rows, values: the most it may have.
        content: the file's bytes, if they were read before.

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
        table = read_parquet(stream, rows, values, own=True)
        lists = (column for column in table.columns if pa.types.is_list(column.type))
        if sum(pc.sum(pc.list_value_length(column)).as_py() or 0 for column in lists) > values:
            raise ValueError(f"its lists hold more than {values:,} values")
        return table


def read_footer(files: Files, name: str) -> parquet.FileMetaData:
    """Return what a Parquet file says about itself, such as its number of rows.

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
    """Return the bytes of a JSON object as written."""
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()


def open_files(address: object, error: type[CKCVError] = InputError) -> Files:
    """Return the files of a folder; nothing is accessed yet.

    Args:
        address: a path, or an address such as s3://bucket/runs/patients.
        error: raised for an impossible path.

    Raises:
        InputError: it is neither.
    """
    if is_address(address):
        return ObjectFiles(Bucket(parse_address("out", address)))
    return LocalFiles(as_path("out", address, error))


def locate(name: str, address: object) -> str:
    """Return an address that means the same from any working directory.

    Args:
        name: name of the option, for messages.
        address: a path, or an address such as s3://bucket/runs/patients.

    Raises:
        InputError: it is neither.
    """
    if is_address(address):
        return str(parse_address(name, address))
    return str(as_path(name, address).absolute())


def find_run_folders(place: object) -> Iterator[tuple[str, float]]:
    """Yield the address of each run folder in a folder and below it, and when it was last written.

    Folders inside a run folder are part of it. Links are not followed.

    Args:
        place: a path, or an address such as s3://bucket/runs or s3://bucket.

    Raises:
        InputError: there is no such folder, or bucket.
    """
    if is_address(place):
        bucket, listed = Bucket(parse_address("folder", place, least=0)), dict[str, dict[str, float]]()
        for path, modified in bucket.list():
            key, _, name = path.rpartition("/")
            listed.setdefault(key, {})[name] = modified.timestamp()
        found = sorted(key for key, times in listed.items() if STUDY in times)
        for key in found:
            if not any(key.startswith(f"{outside}/".lstrip("/")) for outside in found if outside != key):
                yield str(bucket.address.inside(key)), max(listed[key].values())
        return
    root = as_path("folder", place)
    if not root.is_dir():
        raise InputError(f"there is no folder {str(root)!r}: name one that has run folders in it")
    for folder, inner, files in os.walk(root):
        inner.sort()
        if STUDY in files:
            inner.clear()
            written = [0.0]
            with suppress(OSError):
                written += [entry.stat(follow_symlinks=False).st_mtime for entry in os.scandir(folder)]
            yield str(Path(folder)), max(written)


def find_next_to(address: str, file: str) -> dict[str, str]:
    """Return the addresses of the other run folders in a run folder's parent, by name, the newest first.

    Links are not followed.

    Args:
        address: the run folder's, which need not exist: an absolute path, or one such as s3://bucket/runs/x.
        file: name of a file in finished run folders, which tells when they were written.

    Raises:
        OSError: the parent folder cannot be read.
        CKCVError: the store does not answer, or refuses.
    """
    found: list[tuple[float, str, str]] = []
    if is_address(address):
        place = parse_address("out", address)
        parent, _, name_here = place.key.rpartition("/")
        bucket = Bucket(place._replace(key=parent))
        names = sorted(bucket.folders("") - {name_here})
        answers = ask_at_once(*(partial(bucket.find, f"{name}/{file}") for name in names))
        for name, answer in zip(names, answers, strict=True):
            with suppress(FileNotFoundError):
                written = answer.result().timestamp()
                found.append((-written, name, str(bucket.address.inside(name))))
    else:
        own_path = Path(address)
        for path in own_path.parent.iterdir() if own_path.parent.is_dir() else ():
            if path != own_path and not path.is_symlink():
                with suppress(FileNotFoundError, NotADirectoryError):
                    try:
                        written = (path / file).lstat().st_mtime
                    except PermissionError:
                        written = 0.0
                    found.append((-written, path.name, str(path)))
    return {name: place for _, name, place in sorted(found)}
