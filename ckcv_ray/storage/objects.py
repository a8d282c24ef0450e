"""Run folders on an object store, and which of a disk and a store an address leads to.

A file is an object of the same name, so that a plain copy of the objects to a disk is the run folder. An
object appears whole, and nothing needs a lock: whatever two writers compute is the same, so that parts of the
log, named by their digests, are created if they are absent, and files that follow from the study are
replaced by the same bytes. A second writer wastes work; a time stamp warns of it. What does not follow from
the study is one object each, which only one of two writers can create.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_hex
from tempfile import SpooledTemporaryFile
from time import monotonic
from typing import Any, BinaryIO, cast

import pyarrow as pa

from ckcv_ray.errors import CKCVError, InputError, UnreachableError
from ckcv_ray.storage.files import LOCK, MAX_FILE_BYTES, Content, Files, LocalFiles, Names
from ckcv_ray.tables.objects import AT_ONCE, Bucket, Listed, ask_at_once, is_address, parse_address
from ckcv_ray.validation import as_path

MAX_IN_MEMORY = 1 << 26  # bytes of an open file
RENEWED_AFTER = 30.0  # seconds, at the next write
ALIVE = 600.0  # seconds after its last stamp for which a writer is taken to be running


class Stamp:
    """The object ``.lock`` of a folder, which says that a run writes there: a warning, and no lock.

    Args:
        bucket: the objects of the folder.
    """

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.held = False
        self._content, self._stamped = b"", 0.0

    @property
    def busy(self) -> bool:
        """Whether a run wrote its stamp not long ago, by the clocks of this machine and of the store."""
        return self.held or ((age := self._find_age()) is not None and age < ALIVE)

    @property
    def caution(self) -> str:
        """A sentence about a run that has not said that it has ended; "" if there is none."""
        if self.held or (age := self._find_age()) is None:
            return ""
        return (
            f"another run wrote to {self.bucket.address} {age:,.0f} s ago, and has not said that it has "
            "ended: if it is running, both compute the same, and one of them in vain"
        )

    def acquire(self) -> None:
        """Write the stamp, and see that the store refuses to create it once more.

        Raises:
            InputError: the store ignores conditions, or may not be written.
        """
        self._content = token_hex(16).encode()
        self._write()
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
            self._write()

    def release(self) -> None:
        """Delete the stamp: this writer has ended."""
        if self.held:
            self.held = False
            with suppress(UnreachableError):
                self.bucket.delete(LOCK)

    def _write(self) -> None:
        self.bucket.put(LOCK, self._content)
        self._stamped = monotonic()

    def _find_age(self) -> float | None:
        try:
            written = self.bucket.find(LOCK).modified
        except FileNotFoundError:
            return None
        return max(0.0, (datetime.now(UTC) - written).total_seconds())


class ObjectFiles(Files):
    """The files of a folder on an object store.

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
        """Return whether there is an object of that name; of the root, whether there is any in it."""
        if not name:
            return bool(self.bucket.list())
        with suppress(FileNotFoundError):
            self.bucket.find(name)
            return True
        return False

    def is_folder(self) -> bool:
        """Return whether the root is a folder: any address is."""
        return True

    def list(self, prefix: str = "") -> Names:
        """Return the sorted names of files that start with a prefix, in one folder only."""
        listed = (entry.name for entry in self.bucket.list(prefix.rpartition("/")[0]))
        return [name for name in listed if name.startswith(prefix) and "/" not in name[len(prefix) :]]

    def walk(self, regular: bool = True) -> Iterator[str]:
        """Yield the names of all files, at any depth; all are regular."""
        return (entry.name for entry in self.bucket.list())

    def read(self, name: str, most: int) -> bytes:
        """Read a file of at most ``most`` bytes; see ``Files``."""
        return self.bucket.get(name, most)

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Open a copy of a file for reading, on a disk if it is large."""
        with SpooledTemporaryFile(MAX_IN_MEMORY) as file:
            self.bucket.download(name, MAX_FILE_BYTES, cast(BinaryIO, file))
            file.seek(0)
            yield cast(BinaryIO, file)

    def write(self, name: str, content: Content) -> None:
        """Write a file."""
        self.bucket.put(name, to_bytes(content))

    def create(self, name: str, content: Content) -> bool:
        """Write a file if there is none of its name; return whether this was done.

        A request that was repeated may have met what it wrote itself: that is this file, too.
        """
        held = to_bytes(content)
        return self.bucket.create(name, held) or self._holds(name, held)

    def delete(self, name: str) -> None:
        """Delete a file; one that is not there is no error, since another writer may have deleted it."""
        self.bucket.delete(name)

    def check_writable(self) -> None:
        """Raise InputError if there is no such bucket; whether it may be written shows when it is."""
        self.bucket.list(LOCK)

    def inside(self, file: Path) -> str | None:
        """Return None: no path leads into a store."""
        return None

    def _holds(self, name: str, content: bytes) -> bool:
        with suppress(FileNotFoundError, ValueError):
            return self.bucket.get(name, len(content)) == content
        return False


def to_bytes(content: Content) -> bytes:
    """Return content as bytes."""
    return content.to_pybytes() if isinstance(content, pa.Buffer) else content


def open_files(address: Any, error: type[CKCVError] = InputError) -> Files:
    """Return the files of a folder; nothing is accessed yet.

    Args:
        address: a path, or an address such as s3://bucket/runs/patients.
        error: raised for a path that no file can have.

    Raises:
        InputError: it is neither.
    """
    if is_address(address):
        return ObjectFiles(Bucket(parse_address("out", address)))
    return LocalFiles(as_path("out", address, error))


def locate(name: str, address: Any) -> str:
    """Return an address that means the same from any working directory.

    Args:
        name: of the option, for messages.
        address: a path, or an address such as s3://bucket/runs/patients.

    Raises:
        InputError: it is neither.
    """
    if is_address(address):
        return str(parse_address(name, address))
    return str(as_path(name, address).absolute())


def find_run_folders(place: Any, file: str) -> Iterator[tuple[str, float]]:
    """Yield the address of each run folder in a folder and below it, and when it was written last.

    Folders inside a run folder are parts of it. Links are not followed.

    Args:
        place: a path, or an address such as s3://bucket/runs or s3://bucket.
        file: name of the file that every run folder has.

    Raises:
        InputError: there is no such folder, or bucket.
    """
    if is_address(place):
        yield from _find_in_store(Bucket(parse_address("folder", place, least=0)), file)
        return
    root = as_path("folder", place)
    if not root.is_dir():
        raise InputError(f"there is no folder {str(root)!r}: name one that has run folders in it")
    for folder, inner, files in os.walk(root):
        inner.sort()
        if file in files:
            inner.clear()
            times = [0.0]
            with suppress(OSError):
                times += [entry.stat(follow_symlinks=False).st_mtime for entry in os.scandir(folder)]
            yield str(Path(folder)), max(times)


def find_next_to(address: str, file: str) -> dict[str, str]:
    """Return the addresses of the other run folders in the parent folder of one, by name, the newest first.

    Links are not followed.

    Args:
        address: of the run folder, which need not exist: an absolute path, or such as s3://bucket/runs/x.
        file: name of the file that finished run folders have, which says when they were written.

    Raises:
        OSError: the parent folder cannot be read.
        CKCVError: the store does not answer, or refuses.
    """
    if is_address(address):
        place = parse_address("out", address)
        parent, _, name_here = place.key.rpartition("/")
        bucket = Bucket(place._replace(key=parent))
        names = sorted(bucket.folders("") - {name_here})
        answers = ask_at_once(*(partial(_find_written, bucket, f"{name}/{file}") for name in names))
        written = {name: answer.result() for name, answer in zip(names, answers, strict=True)}
        found = {name: str(bucket.address.inside(name)) for name in names}
    else:
        own_path = Path(address)
        paths = own_path.parent.iterdir() if own_path.parent.is_dir() else ()
        found = {path.name: str(path) for path in paths if path != own_path and not path.is_symlink()}
        written = {name: _find_time(Path(path) / file) for name, path in found.items()}
    times = {name: time for name, time in written.items() if time is not None}
    return {name: found[name] for name in sorted(times, key=lambda name: (-times[name], name))}


def _find_time(file: Path) -> float | None:
    """Return when a file was written; None if there is none, and 0 if that cannot be seen."""
    try:
        return file.lstat().st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return 0.0


def _find_written(bucket: Bucket, name: str) -> float | None:
    with suppress(FileNotFoundError):
        return bucket.find(name).modified.timestamp()
    return None


def _find_in_store(bucket: Bucket, file: str) -> Iterator[tuple[str, float]]:
    """Yield the run folders that a store lists, and when one of their files was written last."""
    listed: dict[str, list[Listed]] = {}
    for entry in bucket.list():
        listed.setdefault(entry.name.rpartition("/")[0], []).append(entry)
    found = [
        folder
        for folder, entries in listed.items()
        if any(entry.name.rpartition("/")[2] == file for entry in entries)
    ]
    for folder in sorted(found):
        if not any(folder.startswith(f"{outside}/".lstrip("/")) for outside in found if outside != folder):
            yield (
                str(bucket.address.inside(folder)),
                max(entry.modified.timestamp() for entry in listed[folder]),
            )
