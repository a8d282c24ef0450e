"""Files below one place, by name: written atomically and durably, read only where they are regular files.

The one module of the package that touches the file system for runs. A file that somebody else wrote may be a
pipe, a device, or without end: its kind and its size are looked at before it is opened, and no more is read
of it than that size.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EINVAL, ENOTSUP
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

import pyarrow as pa

from ckcv_ray.errors import InputError
from ckcv_ray.storage.locks import Lock

MOST_BYTES = 1 << 32
BLOCK_BYTES = 1 << 20
Names = list[str]  # the class has a method list
NO_FOLDER_SYNC = {EINVAL, ENOTSUP, EACCES}  # what file systems answer that cannot fsync a folder


class Files:
    """The files of a folder of the local file system, and of the folders in it.

    Args:
        root: the folder; nothing is touched until a method says so.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lock = Lock(root)

    def __str__(self) -> str:
        return str(self.root)

    def path(self, name: str) -> Path:
        """Return where a file is, for messages."""
        return self.root / name

    def inside(self, name: str) -> "Files":
        """Return the files of a folder in this one."""
        return Files(self.root / name)

    def exists(self, name: str = "") -> bool:
        """Tell whether there is anything of that name."""
        return self.path(name).exists()

    def is_gone(self, name: str) -> bool:
        """Tell whether there is nothing of that name, not even a link."""
        return not os.path.lexists(self.path(name))

    def is_folder(self) -> bool:
        """Tell whether the root is a folder."""
        return self.root.is_dir()

    def list(self, prefix: str = "") -> Names:
        """Return the names of regular files that begin with a prefix, sorted; of one folder alone.

        "log/part-" are those of the folder log, and "" those of the root.
        """
        folder = self.path(prefix.rpartition("/")[0])
        return [name for name in self._regular(folder.glob("*")) if name.startswith(prefix)]

    def tree(self) -> Names:
        """Return the names of all regular files, sorted, in folders inside folders; no link is followed."""
        return self._regular(self.root.rglob("*"))

    def everything(self) -> Iterator[str]:
        """Yield the names of whatever is there but folders: pipes and broken links, too."""
        return (f.relative_to(self.root).as_posix() for f in self.root.rglob("*") if not f.is_dir())

    def size(self, name: str) -> int:
        """Return the size of a regular file; see ``check_regular``."""
        return check_regular(self.path(name))

    def read(self, name: str, most: int) -> bytes:
        """Read a regular file of at most so many bytes.

        Raises:
            ValueError: it is not one.
        """
        size = check_regular(self.path(name), most)
        with self.open(name) as stream:
            return stream.read(size)

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Open a regular file for reading, without waiting."""
        with _opened(self.path(name)) as stream:
            yield stream

    def sha256(self, name: str) -> str:
        """Return the SHA-256 of a regular file.

        Raises:
            ValueError: it is not one, or larger than any file of a run.
        """
        digest, left = hashlib.sha256(), self.size(name)
        with self.open(name) as stream:
            while left and (block := stream.read(min(left, BLOCK_BYTES))):
                digest.update(block)
                left -= len(block)
        return digest.hexdigest()

    def write(self, name: str, content: bytes | pa.Buffer) -> None:
        """Write a file atomically and durably.

        Raises:
            OSError: it cannot be written; then no temporary file is left.
        """
        write_whole(self.path(name), content)

    def delete(self, name: str) -> None:
        """Delete a file."""
        self.path(name).unlink()

    def rename(self, name: str, new: str) -> None:
        """Give a file another name."""
        self.path(name).replace(self.path(new))

    def make_folders(self, *names: str) -> None:
        """Make the root and folders in it, with those above that are missing."""
        for name in names:
            make_folder(self.path(name))

    def check_writable(self) -> None:
        """Raise InputError where the root could not be made or written; makes nothing."""
        ways = (self.root, *self.root.absolute().parents)
        there = next(folder for folder in ways if folder.exists() or folder.is_symlink())
        if not there.exists():
            raise InputError(
                f"cannot write to {str(self)!r}: {str(there)!r} is a link to "
                f"{os.readlink(there)!r}, where there is nothing: make that folder, or name another"
            )
        if not there.is_dir():
            raise InputError(f"cannot write to {str(self)!r}: {str(there)!r} is not a folder")
        if not os.access(there, os.W_OK | os.X_OK):
            raise InputError(f"cannot write to {str(self)!r}: no permission in {str(there)!r}")

    def name_of(self, file: Path) -> str | None:
        """Return the name that a path has here; None where it lies outside."""
        place, root = (Path(os.path.realpath(path)) for path in (file, self.root))  # a link may be to itself
        return place.relative_to(root).as_posix() if place.is_relative_to(root) else None

    def _regular(self, found: Iterable[Path]) -> Names:
        return sorted(file.relative_to(self.root).as_posix() for file in found if is_regular(file))


def is_replaceable(file: Path) -> bool:
    """Tell whether a file can be written there: there is nothing of that name, or a file."""
    return file.is_file() or not file.exists()


def write_whole(final: Path, content: bytes | pa.Buffer) -> None:
    """Write a file atomically: under a temporary name, fsync, rename, fsync of the folder.

    Raises:
        OSError: it cannot be written; then no temporary file is left.
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


def make_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing; their names are on disk before it returns."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in missing:
        sync_folder(one.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder survive a loss of power, where the file system can do that."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in NO_FOLDER_SYNC:
            raise


def check_regular(file: Path, most: int = MOST_BYTES) -> int:
    """Return the size of a regular file of at most so many bytes.

    Raises:
        ValueError: it is a pipe, a device, a socket or a folder, or larger.
    """
    found = file.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is not a regular file")
    if found.st_size > most:
        raise ValueError(f"it has more than {most >> 20} MiB")
    return found.st_size


def is_regular(file: Path) -> bool:
    """Tell whether ``check_regular`` has nothing against a file."""
    try:
        check_regular(file)
    except (OSError, ValueError):
        return False
    return True


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    check_regular(file)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(file, flags), "rb") as stream:
        yield stream
