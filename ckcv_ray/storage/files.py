"""Files in one folder, by name: written atomically and durably, read only if they are regular files.

``Files`` is what run folders need of a store; ``LocalFiles`` are those of a disk, and ``objects`` has those
of an object store. The only module of the package that accesses the file system for runs. A file written by
somebody else may be a pipe, a device, or endless: its type and size are checked before it is opened, and no
more than that size is read.
"""

import hashlib
import os
import stat
import struct
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from errno import EACCES, EDQUOT, EINVAL, ENOSPC, ENOTSUP
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Protocol, TypeAlias

import pyarrow as pa
from filelock import FileLock, Timeout

from ckcv_ray.errors import InputError, RunError, StoreError
from ckcv_ray.tables.objects import Returned, ask_at_once

LOCK = ".lock"
MAX_FILE_BYTES = 1 << 32
BLOCK_BYTES = 1 << 20
Names = list[str]  # inside the class, list is a method
Content: TypeAlias = bytes | pa.Buffer


class WriteLock(Protocol):
    """Who writes to a folder: on a disk one process at a time, on an object store it is only said."""

    @property
    def held(self) -> bool:
        """Whether this process has it."""

    @property
    def busy(self) -> bool:
        """Whether a living process has it, as far as is known."""

    @property
    def caution(self) -> str:
        """A sentence about another writer that does not keep this one from writing; "" if there is none."""

    def acquire(self) -> None:
        """Take it, until ``release`` or the end of this process.

        Raises:
            StoreError: another process has it.
            InputError: the folder cannot be written.
        """

    def check_held(self) -> None:
        """Raise RunError if it was taken and is lost."""

    def release(self) -> None:
        """Give it back; no effect if this process does not have it."""


class Files(ABC):
    """The files of a folder, and of the folders in it; nothing is accessed until a method needs it.

    Names are relative, with slashes: "ensemble/models.parquet".

    Attributes:
        lock: who writes.
        at_once: number of requests that are best made at once.
    """

    lock: WriteLock
    at_once = 1

    @abstractmethod
    def __str__(self) -> str:
        """Return the address of the folder, by which it is opened again."""

    @abstractmethod
    def path(self, name: str) -> str | Path:
        """Return the path or the address of a file, for messages."""

    @abstractmethod
    def exists(self, name: str = "") -> bool:
        """Return whether anything has that name, be it a link that leads nowhere."""

    @abstractmethod
    def is_folder(self) -> bool:
        """Return whether the root is a folder."""

    @abstractmethod
    def list(self, prefix: str = "") -> Names:
        """Return the sorted names of regular files that start with a prefix, in one folder only.

        "log/part-" lists files of the folder log, and "" those of the root.
        """

    @abstractmethod
    def walk(self, regular: bool = True) -> Iterator[str]:
        """Yield the names of regular files at any depth, in no order; no link is followed.

        Args:
            regular: False for everything except folders, including pipes and broken links.
        """

    @abstractmethod
    def read(self, name: str, most: int) -> bytes:
        """Read a regular file of at most ``most`` bytes.

        Raises:
            FileNotFoundError: there is none.
            ValueError: it is not a regular file, or is larger.
        """

    @abstractmethod
    def open(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Open a regular file of the folder for reading, without blocking; see ``read``."""

    @abstractmethod
    def write(self, name: str, content: Content) -> None:
        """Write a file atomically and durably, and the folders on the way to it.

        Raises:
            OSError: it cannot be written; no temporary file is left behind.
        """

    @abstractmethod
    def create(self, name: str, content: Content) -> bool:
        """Write a file if nothing has its name; return whether this was done. See ``write``."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a file."""

    @abstractmethod
    def check_writable(self) -> None:
        """Raise InputError if the root could not be created or written; creates nothing."""

    @abstractmethod
    def inside(self, file: Path) -> str | None:
        """Return the name of a path in this folder, or None if it is outside."""


class LocalFiles(Files):
    """The files of a folder on the local file system, and of the folders in it.

    No folder on the way to a file may be a link, which may lead anywhere: StoreError is raised. The root may
    be one: that is up to who names it. A file that is one is not regular.

    Args:
        root: the folder; it is not accessed until a method needs it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lock: WriteLock = Lock(root)

    def __str__(self) -> str:
        return str(self.root)

    def path(self, name: str) -> Path:
        """Return the path of a file, for messages."""
        return self.root / name

    def exists(self, name: str = "") -> bool:
        """Return whether anything has that name; see ``Files``."""
        return os.path.lexists(self.path(name)) if name else self.root.exists()

    def is_folder(self) -> bool:
        """Return whether the root is a folder."""
        return self.root.is_dir()

    def list(self, prefix: str = "") -> Names:
        """Return the sorted names of regular files that start with a prefix; see ``Files``."""
        folder = self._locate(prefix[: prefix.rfind("/") + 1])
        found = (file.relative_to(self.root).as_posix() for file in folder.glob("*") if is_regular(file))
        return sorted(name for name in found if name.startswith(prefix))

    def walk(self, regular: bool = True) -> Iterator[str]:
        """Yield the names of files at any depth; see ``Files``."""
        found = (
            file for file in self.root.rglob("*") if (is_regular(file) if regular else not file.is_dir())
        )
        return (file.relative_to(self.root).as_posix() for file in found)

    def read(self, name: str, most: int) -> bytes:
        """Read a regular file of at most ``most`` bytes; see ``Files``."""
        with _open(self._locate(name), most) as stream:
            return stream.read(check_status(os.fstat(stream.fileno()), most))

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Open a regular file of the folder for reading, without blocking."""
        with _open(self._locate(name)) as stream:
            yield stream

    def write(self, name: str, content: Content) -> None:
        """Write a file atomically and durably; see ``Files``."""
        file = self._locate(name)
        make_folder(file.parent)
        write_atomically(file, content)

    def create(self, name: str, content: Content) -> bool:
        """Write a file if nothing has its name; the lock of the folder keeps others from doing so."""
        if self.exists(name):
            return False
        self.write(name, content)
        return True

    def delete(self, name: str) -> None:
        """Delete a file."""
        self._locate(name).unlink()

    def check_writable(self) -> None:
        """Raise InputError if the root could not be created or written; creates nothing."""
        folders = (self.root, *self.root.absolute().parents)
        nearest = next(folder for folder in folders if folder.exists() or folder.is_symlink())
        if not nearest.exists():
            raise InputError(
                f"cannot write to {str(self)!r}: {str(nearest)!r} is a link to "
                f"{os.readlink(nearest)!r}, which does not exist: create that folder, or choose another"
            )
        if not nearest.is_dir():
            raise InputError(f"cannot write to {str(self)!r}: {str(nearest)!r} is not a folder")
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise InputError(f"cannot write to {str(self)!r}: no permission in {str(nearest)!r}")

    def inside(self, file: Path) -> str | None:
        """Return the name of a path in this folder, or None if it is outside."""
        path, root = (
            Path(os.path.realpath(place)) for place in (file, self.root)
        )  # of a link to itself, too
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else None

    def _locate(self, name: str) -> Path:
        """Return the path of a file, on the way to which no folder is a link."""
        path = self.root
        for part in name.split("/")[:-1]:
            path /= part
            if path.is_symlink():
                raise StoreError(f"{path} is a link, and a run folder has none: put there what it leads to")
        return self.path(name)


class Lock:
    """The file ``.lock`` in a folder.

    Args:
        folder: the folder to lock; it is not accessed until a method needs it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / LOCK
        self._lock = FileLock(self.file, timeout=0)
        self._descriptor: int | None = None  # of the lock file that is held
        self._process = os.getpid()  # that holds it: a forked child has no part in it

    @property
    def held(self) -> bool:
        """Whether this process has locked the folder."""
        return self._process == os.getpid() and bool(self._lock.is_locked)

    @property
    def busy(self) -> bool:
        """Whether a living process has locked the folder, as far as is known; does not take the lock."""
        return self.held or is_locked(self.file)

    @property
    def caution(self) -> str:
        """Return no sentence: another writer is refused."""
        return ""

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
            raise StoreError(
                f"{str(self.folder)!r} is in use by another run: wait for it, or stop it"
            ) from None
        except OSError as error:
            self.release()
            raise unwritable(self.folder, error) from None

    def check_held(self) -> None:
        """Raise RunError if the locked folder has been moved, replaced or removed, or lost its lock file.

        Likewise in a child that was forked from the process that holds the lock.
        """
        if self._descriptor is None:
            return
        if self._process != os.getpid():
            raise RunError(f"{str(self.folder)!r} belongs to the process {self._process}, not to its child")
        try:
            ours = os.path.samestat(os.fstat(self._descriptor), self.file.stat())
        except (FileNotFoundError, NotADirectoryError):
            ours = False
        if not ours:
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


def unwritable(folder: Path | str, error: OSError) -> InputError | RunError:
    """Return the error for a folder that cannot be written: a full disk is not bad input."""
    kind = RunError if error.errno in {ENOSPC, EDQUOT} else InputError
    return kind(f"cannot write to {str(folder)!r}: {error.strerror}")


def is_locked(file: Path) -> bool:
    """Return whether a process holds a lock on a file, as far as is known without taking the lock.

    Linux lists the locks of this machine, and fcntl reports those that others hold on a network file
    system; on other operating systems the answer is False.
    """
    with suppress(OSError):
        status = file.stat()
        return stat.S_ISREG(status.st_mode) and (_is_listed(status.st_ino) or _is_reported(file))
    return False


def _is_listed(inode: int) -> bool:
    """Return whether /proc/locks lists an inode; it gives other device numbers on some file systems."""
    with suppress(OSError):
        entries = (line.split() for line in Path("/proc/locks").read_text().splitlines())
        return any(field.endswith(f":{inode}") for entry in entries for field in entry[5:6])
    return False


def _is_reported(file: Path) -> bool:
    """Return whether fcntl reports a lock that excludes ours; asking locks nothing."""
    if sys.platform != "linux":
        return False
    import fcntl

    ours = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
        kind: int = struct.unpack_from("h", fcntl.fcntl(stream.fileno(), fcntl.F_OFD_GETLK, ours))[0]
    return kind != fcntl.F_UNLCK


def sha256(files: Files, name: str) -> str:
    """Return the SHA-256 of a regular file.

    Raises:
        ValueError: it is not a regular file, or is larger than any file of a run.
    """
    with files.open(name) as stream:
        return hash_stream(stream)


def hash_stream(stream: BinaryIO) -> str:
    """Return the SHA-256 of what is left of an open file.

    Raises:
        ValueError: it is larger than any file of a run.
    """
    digest, left = hashlib.sha256(), MAX_FILE_BYTES
    while block := stream.read(BLOCK_BYTES):
        digest.update(block)
        left -= len(block)
        if left < 0:
            raise ValueError(f"it is larger than {MAX_FILE_BYTES >> 20} MiB")
    return digest.hexdigest()


def ask_files(
    files: Files, names: Iterable[str], request: Callable[[str], Returned]
) -> Iterator[tuple[str, Callable[[], Returned]]]:
    """Yield a function for each of some files, in their order, that returns the answer to a request.

    A few requests are made at once where that is faster, and no thread is started elsewhere.
    """
    every = list(names)
    for first in range(0, len(every), files.at_once):
        some = every[first : first + files.at_once]
        requests = [partial(request, name) for name in some]
        answers = [each.result for each in ask_at_once(*requests)] if files.at_once > 1 else requests
        yield from zip(some, answers, strict=True)


def make_folder(folder: Path) -> None:
    """Create a folder and those that it is in; their names are on disk before this returns."""
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for parent in missing:
        sync_folder(parent.parent)


def write_atomically(final: Path, content: Content) -> None:
    """Write a file atomically: temporary file, fsync, rename, fsync of the folder.

    Raises:
        OSError: it cannot be written; no temporary file is left behind.
    """
    temporary = final.with_name(f".{final.name}-{token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
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
        if error.errno not in {EINVAL, ENOTSUP, EACCES}:  # of file systems that cannot fsync a folder
            raise


def check_regular(file: Path, most: int = MAX_FILE_BYTES) -> int:
    """Return the size of a regular file of at most ``most`` bytes.

    Raises:
        ValueError: it is a link, a pipe, a device, a socket or a folder, or is larger.
    """
    return check_status(file.lstat(), most)


def check_status(status: os.stat_result, most: int = MAX_FILE_BYTES) -> int:
    """Return the size of what has this status; see ``check_regular``.

    That of an open file is that of what is read: its name may be another file's by then.
    """
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is not a regular file")
    if status.st_size > most:
        raise ValueError(f"it is larger than {most >> 20} MiB")
    return status.st_size


def is_regular(file: Path) -> bool:
    """Return whether ``check_regular`` accepts a file."""
    try:
        check_regular(file)
    except (OSError, ValueError):
        return False
    return True


@contextmanager
def _open(file: Path, most: int = MAX_FILE_BYTES) -> Iterator[BinaryIO]:
    check_regular(file, most)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(file, flags), "rb") as stream:
        yield stream
