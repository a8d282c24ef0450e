"""Files and folders on disk: written atomically and durably, read only where they are regular files.

A file that somebody else wrote may be a pipe, a device, or without end. Its kind and its size are looked at
before it is opened, and no more is read of it than that size.
"""

import hashlib
import os
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EINVAL, ENOTSUP
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

import pyarrow as pa

MOST_BYTES = 1 << 32
BLOCK_BYTES = 1 << 20
NO_FOLDER_SYNC = {EINVAL, ENOTSUP, EACCES}  # what file systems answer that cannot fsync a folder


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
    """The size of a regular file of at most so many bytes.

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
    """Whether ``check_regular`` has nothing against a file."""
    try:
        check_regular(file)
    except (OSError, ValueError):
        return False
    return True


def read_whole(file: Path, most: int) -> bytes:
    """The content of a regular file of at most so many bytes.

    Raises:
        ValueError: it is not one.
    """
    size = check_regular(file, most)
    with _opened(file) as stream:
        return stream.read(size)


def sha256(file: Path) -> str:
    """SHA-256 of a regular file.

    Raises:
        ValueError: it is not one, or larger than any file of a run.
    """
    digest, left = hashlib.sha256(), check_regular(file)
    with _opened(file) as stream:
        while left and (block := stream.read(min(left, BLOCK_BYTES))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()


def locked(file: Path) -> bool:
    """Whether a process holds a lock on a file, as far as that can be told without taking it.

    Linux lists the locks of this machine, and fcntl tells of those that others hold on a network file system;
    of other systems it is not known.
    """
    with suppress(OSError, ValueError):
        check_regular(file)
        return _listed(file.stat().st_ino) or _reported(file)
    return False


def _listed(inode: int) -> bool:
    """Whether /proc/locks names an inode; devices go by other numbers there on some file systems."""
    with suppress(OSError):
        entries = (line.split() for line in Path("/proc/locks").read_text().splitlines())
        return any(field.endswith(f":{inode}") for entry in entries for field in entry[5:6])
    return False


def _reported(file: Path) -> bool:
    """Whether fcntl tells of a lock that excludes ours; nothing is locked by asking."""
    if sys.platform != "linux":
        return False
    import fcntl

    ours = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
    with _opened(file) as stream:
        kind: int = struct.unpack_from("h", fcntl.fcntl(stream.fileno(), fcntl.F_OFD_GETLK, ours))[0]
    return kind != fcntl.F_UNLCK


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading, without waiting."""
    check_regular(file)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(file, flags), "rb") as stream:
        yield stream
