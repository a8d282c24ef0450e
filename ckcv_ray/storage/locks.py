"""The lock of a run folder: one process at a time writes, and only to the folder it locked."""

import os
import stat
import struct
import sys
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from pathlib import Path

from filelock import FileLock, Timeout

from ckcv_ray.errors import InputError, RunError, StoreError

LOCK = ".lock"


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

    def acquire(self) -> None:
        """Lock the folder until ``release`` or the end of this process.

        Raises:
            StoreError: another process has locked it, or the lock file is not a regular file.
            InputError: the folder cannot be written.
            RunError: the disk is full.
        """
        if self.file.exists() and not stat.S_ISREG(self.file.stat().st_mode):
            raise StoreError(f"{self.file} is damaged: it is not a regular file")
        try:
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
