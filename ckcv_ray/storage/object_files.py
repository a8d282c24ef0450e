"""The files of a run folder on an object store: a journal says which object holds which file.

    commits/00000000        the journal, see ``journal``
    lock/000001             who writes, see ``lease``
    files/log/part-000000.parquet/000001-9f86d081884c7d65
                            an object: what the writer of epoch 1 wrote as log/part-000000.parquet

A file is written as an object of a new name, and then named by a commit: before that it does not exist, and
after it whole. What an object holds is checked against the size and the SHA-256 in the journal whenever it is
read, so that a damaged or missing one is noticed. Readers trust the journal and no listing.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from itertools import repeat
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryFile
from typing import Any, BinaryIO, cast

import pyarrow as pa

from ckcv_ray.storage.files import BLOCK_BYTES, MOST_FILE_BYTES, Content, Files, Names
from ckcv_ray.storage.journal import OBJECT, OBJECTS, Journal, OvertakenError, StoredFile, name_commit
from ckcv_ray.storage.lease import Lease
from ckcv_ray.storage.locks import LOCK
from ckcv_ray.tables.readers.objects import Bucket, Returned, ask_at_once

OURS = re.compile(r"(commits|lock|files)/.+", re.ASCII)
MOST_KEPT_BYTES = 1 << 26  # in memory, of what was read or written


class ObjectFiles(Files):
    """The files of a folder on an object store.

    Args:
        bucket: the objects of the folder.
    """

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.journal = Journal(bucket)
        self.lease = Lease(bucket, self.journal)
        self.lock = self.lease
        self._kept: dict[str, bytes] = {}

    def __str__(self) -> str:
        return str(self.bucket.address)

    def path(self, name: str) -> str:
        """Return the address of a file, for messages."""
        return str(self.bucket.address.inside(name))

    def exists(self, name: str = "") -> bool:
        """Return whether anything has that name."""
        if not name:
            files, listed = ask_at_once(self._refresh, self.bucket.list)
            return bool(files.result()) or bool(listed.result())
        if name == LOCK:
            return False
        return name in self.journal.files or name in self._refresh()

    def is_gone(self, name: str) -> bool:
        """Return whether nothing has that name."""
        return name not in self._refresh()

    def is_folder(self) -> bool:
        """Return whether the root is a folder: any address is."""
        return True

    def is_same(self, other_files: Files) -> bool:
        """Return whether two are of one folder."""
        return str(self) == str(other_files)

    def list(self, prefix: str = "") -> Names:
        """Return the sorted names of files that start with a prefix, in one folder only."""
        names = (name for name in self._refresh() if name.startswith(prefix))
        return sorted(name for name in names if "/" not in name[len(prefix) :])

    def tree(self) -> Names:
        """Return the sorted names of all files, at any depth."""
        return sorted(self._refresh())

    def list_all(self) -> Iterator[str]:
        """Yield the names of all files, and of objects that no run writes."""
        files, listed = ask_at_once(self.tree, self.bucket.list)
        yield from files.result()
        yield from (entry.name for entry in listed.result() if not OURS.fullmatch(entry.name))

    def suggest_nearby(self, name: str) -> str:
        """Offer nothing: a bucket may have very many."""
        return ""

    def check_inside(self, name: str) -> None:
        """Check nothing: a store has no links."""

    def size(self, name: str) -> int:
        """Return the size of a file, by the journal."""
        return self._find(name).bytes

    def read(self, name: str, most: int) -> bytes:
        """Read a file of at most ``most`` bytes.

        Raises:
            ValueError: it is larger, its object is missing, or is not what was written.
        """
        if (size := self._find(name).bytes) > most:
            raise ValueError(f"it has {size:,} bytes, and may have {most:,}")
        return self._load(name)

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Open a file for reading; a large one is copied to a temporary file first."""
        stored = self._find(name)
        if stored.bytes <= MOST_KEPT_BYTES:
            yield BytesIO(self._load(name))
            return
        with TemporaryFile() as file:
            digest = self._download(name, cast(BinaryIO, file))
            if digest != self._find(name).sha256:
                raise ValueError("it is not what was written: its SHA-256 differs")
            file.seek(0)
            yield cast(BinaryIO, file)

    def sha256(self, name: str) -> str:
        """Return the SHA-256 of what the object of a file holds.

        Raises:
            ValueError: it is missing, or larger than any file of a run.
        """
        stored = self._find(name)
        if stored.object in self._kept:
            return hashlib.sha256(self._kept[stored.object]).hexdigest()
        if stored.bytes <= MOST_KEPT_BYTES:
            return self._keep_intact(self._find(name), self._fetch(name))
        with TemporaryFile() as file:
            return self._download(name, cast(BinaryIO, file))

    def prefetch(self, names: Iterable[str]) -> None:
        """Read files that will be read one after another at once, as far as they can be kept."""
        wanted, room = list[StoredFile](), MOST_KEPT_BYTES
        for name in names:
            stored = self.journal.files.get(name)
            if stored is not None and stored.object not in self._kept and stored.bytes <= room:
                wanted.append(stored)
                room -= stored.bytes
        answers = ask_at_once(*(partial(self.bucket.get, stored.object, stored.bytes) for stored in wanted))
        for stored, answer in zip(wanted, answers, strict=True):
            if answer.exception() is None:  # else it shows when the file is read
                self._keep_intact(stored, answer.result())

    def write(self, name: str, content: Content) -> None:
        """Write a file, if this process is the writer.

        Raises:
            RunError: it is not.
        """
        self.write_all({name: content})

    def write_all(self, contents: Mapping[str, Content]) -> None:
        """Write several files, which appear together; see ``write``."""
        self.lease.check_writer()
        held = [
            content.to_pybytes() if isinstance(content, pa.Buffer) else content
            for content in contents.values()
        ]
        written = [self._name_object(*pair) for pair in zip(contents, held, strict=True)]
        objects = [stored.object for stored in written]
        for put in ask_at_once(*map(partial, repeat(self.bucket.put), objects, held)):
            put.result()
        for name, content in zip(objects, held, strict=True):
            self._keep(name, content)
        self._commit({**self.journal.files, **dict(zip(contents, written, strict=True))})

    def delete(self, name: str) -> None:
        """Delete a file."""
        self.delete_all([name])

    def delete_all(self, names: Iterable[str]) -> None:
        """Delete several files, which disappear together."""
        gone = {name: self._find(name) for name in names}
        self._commit({name: stored for name, stored in self.journal.files.items() if name not in gone})

    def rename(self, name: str, new: str) -> None:
        """Rename a file; its object keeps the name it has."""
        stored = self._find(name)
        kept = {key: entry for key, entry in self.journal.files.items() if key != name}
        self._commit({**kept, new: stored})

    def make_folders(self, *names: str) -> None:
        """Create nothing: a store has no folders."""

    def check_writable(self) -> None:
        """Raise InputError if there is no such bucket; whether it may be written shows when it is."""
        if not self.journal.listed:  # else there is
            self.bucket.list(name_commit(0))

    def find_name(self, file: Path) -> str | None:
        """Return None: no path leads into a store."""
        return None

    def remove_leftovers(self) -> Names:
        """Remove the objects that no file has, which dead writers left; return their names.

        Those of a later writer stay: this one may have been overtaken, and would not know its files.
        """
        self.lease.check_writer()
        named = {stored.object for stored in self.journal.files.values()}
        written = [match for entry in self.bucket.list(OBJECTS) if (match := OBJECT.fullmatch(entry.name))]
        left = [match[0] for match in written if match[0] not in named and int(match[1]) <= self.lease.epoch]
        for deleted in self._delete_objects(left):
            deleted.result()
        return left

    def _refresh(self) -> Mapping[str, StoredFile]:
        """Return the files as they are now; the writer knows them."""
        if not self.lock.held:
            self.journal.refresh()
        return self.journal.files

    def _find(self, name: str) -> StoredFile:
        """Return where a file is.

        Raises:
            FileNotFoundError: there is none.
        """
        if name not in self.journal.files and name not in self._refresh():
            raise FileNotFoundError(self.path(name))
        return self.journal.files[name]

    def _load(self, name: str) -> bytes:
        stored = self._find(name)
        if stored.object in self._kept:
            return self._kept[stored.object]
        content = self._fetch(name)
        if self._keep_intact(self._find(name), content) != self._find(name).sha256:
            raise ValueError("it is not what was written: its SHA-256 differs")
        return content

    def _fetch(self, name: str) -> bytes:
        return self._ask_for(name, lambda stored: self.bucket.get(stored.object, stored.bytes))

    def _download(self, name: str, file: BinaryIO) -> str:
        """Copy what the object of a file holds to an open file, and return its SHA-256."""

        def copy(stored: StoredFile) -> None:
            self.bucket.download(stored.object, min(stored.bytes, MOST_FILE_BYTES), file)

        self._ask_for(name, copy)
        file.seek(0)
        digest = hashlib.sha256()
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
        return digest.hexdigest()

    def _ask_for(self, name: str, request: Callable[[StoredFile], Returned]) -> Returned:
        """Return what a request for the object of a file returns.

        A writer that replaces a file deletes its object, so one that is not there is looked up again.
        """
        while True:
            stored = self._find(name)
            try:
                return request(stored)
            except FileNotFoundError:
                if self._refresh().get(name) == stored:
                    raise ValueError(f"its object {stored.object} is missing from the store") from None

    def _name_object(self, name: str, content: bytes) -> StoredFile:
        """Return a new name for the object of a file, with what it is to hold."""
        digest = hashlib.sha256(content).hexdigest()
        return StoredFile(f"{OBJECTS}{name}/{self.lease.epoch:06d}-{token_hex(8)}", len(content), digest)

    def _commit(self, files: Mapping[str, StoredFile]) -> None:
        """Make these the files of the folder, and delete the objects that no file has any more."""
        self.lease.check_writer()
        before = self.journal.files
        try:
            self.journal.append(self.lease.epoch, files)
        except OvertakenError:
            self.lease.lose()
            raise
        gone = {stored.object for stored in before.values()} - {stored.object for stored in files.values()}
        for name in gone:
            self._kept.pop(name, None)
        self._delete_objects(gone)  # what cannot be deleted ``remove_leftovers`` will

    def _delete_objects(self, names: Iterable[str]) -> Sequence[Future[Any]]:
        return ask_at_once(*map(partial, repeat(self.bucket.delete), names))

    def _keep_intact(self, stored: StoredFile, content: bytes) -> str:
        """Keep what was read, if it is what was written, and return its SHA-256 in any case."""
        digest = hashlib.sha256(content).hexdigest()
        if digest == stored.sha256:
            self._keep(stored.object, content)
        return digest

    def _keep(self, name: str, content: bytes) -> None:
        self._kept[name] = content
        while sum(map(len, self._kept.values())) > MOST_KEPT_BYTES:
            del self._kept[next(iter(self._kept))]
