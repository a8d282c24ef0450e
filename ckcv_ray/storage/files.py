"""Files in one folder, by name: written atomically and durably, read only if they are regular files.

``Files`` is what run folders need of a store; ``LocalFiles`` are those of a disk, and ``object_files`` has
those of an object store. The only module of the package that accesses the file system for runs. A file
written by somebody else may be a pipe, a device, or endless: its type and size are checked before it is
opened, and no more than that size is read.
"""

import hashlib
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from errno import EACCES, EINVAL, ENOTSUP
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Protocol, TypeAlias

import pyarrow as pa

from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.storage.locks import Lock
from ckcv_ray.validation import quote, suggest

MAX_FILE_BYTES = 1 << 32
BLOCK_BYTES = 1 << 20
Names = list[str]  # inside the class, list is a method
Content: TypeAlias = bytes | pa.Buffer


class WriteLock(Protocol):
    """The right to write to a folder, which one process at a time has."""

    @property
    def held(self) -> bool:
        """Whether this process has it."""

    @property
    def busy(self) -> bool:
        """Whether a living process has it, as far as is known."""

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

    Names are relative, with slashes: "log/part-000001.parquet".

    Attributes:
        lock: who may write.
    """

    lock: WriteLock

    @abstractmethod
    def __str__(self) -> str:
        """Return the address of the folder, by which it is opened again."""

    @abstractmethod
    def path(self, name: str) -> str | Path:
        """Return the path or the address of a file, for messages."""

    @abstractmethod
    def exists(self, name: str = "") -> bool:
        """Return whether anything has that name."""

    @abstractmethod
    def is_gone(self, name: str) -> bool:
        """Return whether nothing has that name, not even a link."""

    @abstractmethod
    def is_folder(self) -> bool:
        """Return whether the root is a folder."""

    @abstractmethod
    def is_same(self, other_files: "Files") -> bool:
        """Return whether two are of one folder, under one name or two."""

    @abstractmethod
    def list(self, prefix: str = "") -> Names:
        """Return the sorted names of regular files that start with a prefix, in one folder only.

        "log/part-" lists files of the folder log, and "" those of the root.
        """

    @abstractmethod
    def tree(self) -> Names:
        """Return the sorted names of all regular files, at any depth; no link is followed."""

    @abstractmethod
    def list_all(self) -> Iterator[str]:
        """Yield the names of everything except folders, including pipes and broken links."""

    @abstractmethod
    def suggest_nearby(self, name: str) -> str:
        """Return the end of a message that offers the most similar folder next to this one with this file."""

    @abstractmethod
    def check_inside(self, name: str) -> None:
        """Check that no folder on the way to a file is a link, which may lead anywhere.

        The root may be one: that is up to who names it. A file that is one is not regular.

        Raises:
            StoreError: one of them is.
        """

    @abstractmethod
    def size(self, name: str) -> int:
        """Return the size of a regular file in the folder; see ``check_regular``."""

    @abstractmethod
    def read(self, name: str, most: int) -> bytes:
        """Read a regular file of at most ``most`` bytes.

        Raises:
            ValueError: it is not a regular file, or is larger.
        """

    @abstractmethod
    def open(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Open a regular file of the folder for reading, without blocking."""

    @abstractmethod
    def sha256(self, name: str) -> str:
        """Return the SHA-256 of a regular file.

        Raises:
            ValueError: it is not a regular file, or is larger than any file of a run.
        """

    def prefetch(self, names: Iterable[str]) -> None:
        """Read files that will be read one after another, if reading them at once is faster."""
        return

    @abstractmethod
    def write(self, name: str, content: Content) -> None:
        """Write a file atomically and durably.

        Raises:
            OSError: it cannot be written; no temporary file is left behind.
        """

    def write_all(self, contents: Mapping[str, Content]) -> None:
        """Write several files, each atomically and durably; see ``write``."""
        for name, content in contents.items():
            self.write(name, content)

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a file."""

    def delete_all(self, names: Iterable[str]) -> None:
        """Delete several files; see ``delete``."""
        for name in names:
            self.delete(name)

    @abstractmethod
    def rename(self, name: str, new: str) -> None:
        """Rename a file."""

    @abstractmethod
    def make_folders(self, *names: str) -> None:
        """Create the root and folders in it, along with missing parent folders."""

    @abstractmethod
    def check_writable(self) -> None:
        """Raise InputError if the root could not be created or written; creates nothing."""

    @abstractmethod
    def find_name(self, file: Path) -> str | None:
        """Return the name of a path in this folder, or None if it is outside."""

    @abstractmethod
    def remove_leftovers(self) -> Names:
        """Remove what dead writers left that is no file of this locked folder; return its names."""


class LocalFiles(Files):
    """The files of a folder on the local file system, and of the folders in it.

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
        """Return whether anything has that name."""
        return self.path(name).exists()

    def is_gone(self, name: str) -> bool:
        """Return whether nothing has that name, not even a link."""
        return not os.path.lexists(self.path(name))

    def is_folder(self) -> bool:
        """Return whether the root is a folder."""
        return self.root.is_dir()

    def is_same(self, other_files: Files) -> bool:
        """Return whether two are of one folder, under one name or two."""
        return isinstance(other_files, LocalFiles) and self.root.resolve() == other_files.root.resolve()

    def list(self, prefix: str = "") -> Names:
        """Return the sorted names of regular files that start with a prefix; see ``Files``."""
        self.check_inside(prefix)
        folder = self.path(prefix.rpartition("/")[0])
        return [name for name in self._regular(folder.glob("*")) if name.startswith(prefix)]

    def tree(self) -> Names:
        """Return the sorted names of all regular files, at any depth; no link is followed."""
        return self._regular(self.root.rglob("*"))

    def list_all(self) -> Iterator[str]:
        """Yield the names of everything except folders, including pipes and broken links."""
        return (f.relative_to(self.root).as_posix() for f in self.root.rglob("*") if not f.is_dir())

    def suggest_nearby(self, name: str) -> str:
        """Return the end of a message that offers the most similar folder next to this one with this file."""
        nearby: Names = []
        place = self.root.absolute()
        with suppress(OSError):
            folders = (found for found in place.parent.iterdir() if found.name != place.name)
            nearby = [found.name for found in folders if (found / name).is_file()]
        return suggest(place.name, nearby, lambda found: quote(str(self.root.parent / found)))

    def check_inside(self, name: str) -> None:
        """Check that no folder on the way to a file is a link; see ``Files``."""
        path = self.root
        for part in name.split("/")[:-1]:
            path /= part
            if path.is_symlink():
                raise StoreError(f"{path} is a link, and a run folder has none: put there what it leads to")

    def size(self, name: str) -> int:
        """Return the size of a regular file in the folder; see ``check_regular``."""
        self.check_inside(name)
        return check_regular(self.path(name))

    def read(self, name: str, most: int) -> bytes:
        """Read a regular file of at most ``most`` bytes; see ``Files``."""
        self.check_inside(name)
        with _open(self.path(name), most) as stream:
            return stream.read(check_status(os.fstat(stream.fileno()), most))

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Open a regular file of the folder for reading, without blocking."""
        self.check_inside(name)
        with _open(self.path(name)) as stream:
            yield stream

    def sha256(self, name: str) -> str:
        """Return the SHA-256 of a regular file; see ``Files``."""
        digest = hashlib.sha256()
        with self.open(name) as stream:
            left = check_status(os.fstat(stream.fileno()))
            while left and (block := stream.read(min(left, BLOCK_BYTES))):
                digest.update(block)
                left -= len(block)
        return digest.hexdigest()

    def write(self, name: str, content: Content) -> None:
        """Write a file atomically and durably; see ``Files``."""
        self.check_inside(name)
        write_atomically(self.path(name), content)

    def delete(self, name: str) -> None:
        """Delete a file."""
        self.check_inside(name)
        self.path(name).unlink()

    def rename(self, name: str, new: str) -> None:
        """Rename a file."""
        self.check_inside(name)
        self.path(name).replace(self.path(new))

    def make_folders(self, *names: str) -> None:
        """Create the root and folders in it; their names are on disk before this returns; see ``Files``."""
        for name in names:
            self.check_inside(f"{name}/")
            folder = self.path(name)
            missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
            folder.mkdir(parents=True, exist_ok=True)
            for parent in missing:
                sync_folder(parent.parent)

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

    def find_name(self, file: Path) -> str | None:
        """Return the name of a path in this folder, or None if it is outside."""
        path, root = (
            Path(os.path.realpath(place)) for place in (file, self.root)
        )  # of a link to itself, too
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else None

    def remove_leftovers(self) -> Names:
        """Remove nothing: temporary files are removed by whoever locks the folder."""
        return []

    def _regular(self, files: Iterable[Path]) -> Names:
        return sorted(file.relative_to(self.root).as_posix() for file in files if is_regular(file))


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
