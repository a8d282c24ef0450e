"""The files of a run folder on an object store: a journal says what holds each file, and a lease who writes.

    commits/00000000        the journal, see ``journal``
    lock/000001             the first writer (its epoch), and so on: whoever creates one is the next writer
    lock/000001.hb          its heartbeat, written again and again while it lives, and once when it ends
    files/log/part-000000.parquet/000001-9f86d081884c7d65
                            an object: what the writer of epoch 1 wrote as log/part-000000.parquet

A file is written as an object of a new name, and then named by a commit: before that it does not exist, and
after it whole. What an object holds is checked against the size and the SHA-256 in the journal whenever it is
read, so that a damaged or missing one is noticed. Readers trust the journal and no listing.

One writer at a time has the lease, by nothing but ``create``. A newcomer watches the heartbeat of the last
writer for one time to live, on a clock of its own: if it changes, the writer lives. If it does not, or says
that the writer has ended, the newcomer creates the next epoch, and writes a commit of that epoch to the
journal, which fences whoever was before. A writer that could not renew its heartbeat for most of the time to
live writes nothing before it has renewed it, and has seen that there is no later epoch.
"""

import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from itertools import repeat
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryFile
from time import monotonic
from typing import Any, BinaryIO, ClassVar, cast

import pyarrow as pa

from ckcv_ray.errors import InputError, RunError, StoreError, UnreachableError, convert_errors
from ckcv_ray.storage.files import BLOCK_BYTES, MAX_FILE_BYTES, Content, Files, Names
from ckcv_ray.storage.journal import OBJECT, OBJECTS, Journal, OvertakenError, StoredFile, name_commit
from ckcv_ray.storage.locks import LOCK
from ckcv_ray.tables.objects import Bucket, Returned, ask_at_once
from ckcv_ray.validation import STRICT, quote, read_as

LOCKS = "lock/"
EPOCH_NAME = re.compile(r"lock/([0-9]{6})")
TIME_TO_LIVE, VARIABLE = 20.0, "CKCV_LEASE_SECONDS"
MIN_SECONDS, MAX_SECONDS = 0.1, 600.0
BEATS = 4  # heartbeats in a time to live
LOOKS = 8  # of a newcomer in a time to live
USABLE = 0.7  # share of a time to live without a renewal after which nothing is written
MAX_BEAT_BYTES = 1 << 12
STAMP_SECONDS = 1.0  # stores say when an object was written in whole seconds


@dataclass(frozen=True)
class Beat:
    """What a writer says of itself in its epoch and in its heartbeat.

    Attributes:
        writer: random, the same in both.
        seconds: its time to live.
        count: number of the heartbeat; 0 in the epoch.
        ended: whether it has ended.
    """

    __pydantic_config__: ClassVar[Any] = {**STRICT, "extra": "forbid"}

    writer: str
    seconds: float
    count: int
    ended: bool

    def to_bytes(self) -> bytes:
        """Return what is written."""
        return json.dumps(asdict(self)).encode()


class Lease:
    """The right to write to a folder; the counterpart of ``locks.Lock``.

    Args:
        bucket: the objects of the folder.
        journal: of the folder.
    """

    def __init__(self, bucket: Bucket, journal: Journal) -> None:
        self.bucket, self.journal = bucket, journal
        self.epoch = 0  # of this writer; 0 if it is none
        self._seconds = TIME_TO_LIVE
        self._writer, self._count, self._renewed = "", 0, 0.0
        self._process = os.getpid()
        self._stopped = threading.Event()
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def held(self) -> bool:
        """Whether this process is the writer, as far as it knows."""
        return self.epoch > 0 and self._process == os.getpid()

    @property
    def busy(self) -> bool:
        """Whether a writer lives, by the clocks of this machine and of the store: to show, not to rely on."""
        if self.held:
            return True
        newest = self._find_newest()
        beat = self._read_beat(newest) if newest else None
        if beat is None or beat.ended:
            return False
        name = name_beat(newest)
        written = [entry.modified for entry in self.bucket.list(LOCKS) if entry.name == name]
        age = (datetime.now(UTC) - max(written, default=datetime.fromtimestamp(0, UTC))).total_seconds()
        return age < beat.seconds + STAMP_SECONDS

    def acquire(self) -> None:
        """Become the writer, after watching the last one for a time to live if it has not ended.

        Raises:
            StoreError: another writer lives.
            InputError: the store ignores conditions, or may not be written.
        """
        self._seconds, self._writer = read_time_to_live(), token_hex(16)
        newest = self._find_newest()
        if newest:
            self._watch(newest)
        epoch = newest + 1
        self._create(epoch)
        self._process, self._count = os.getpid(), 0
        self._stopped.clear()
        for done in ask_at_once(lambda: self._check_conditions(epoch), lambda: self._beat(epoch)):
            done.result()
        try:
            self.journal.claim(epoch)
        except OvertakenError:
            raise self._refuse() from None
        self.epoch = epoch
        self._thread = threading.Thread(target=self._keep_beating, name="ckcv-lease", daemon=True)
        self._thread.start()

    def check_held(self) -> None:
        """Raise RunError if this process is not the writer any more, or was forked from it.

        After most of a time to live without a renewal, it is renewed first.

        Raises:
            UnreachableError: it cannot be.
        """
        if not self.epoch:
            return
        if self._process != os.getpid():
            raise RunError(
                f"{str(self.bucket.address)!r} belongs to the process {self._process}, not to its child"
            )
        if monotonic() - self._renewed > USABLE * self._seconds:
            if self._exists(self.epoch + 1):
                self.lose()
                raise RunError(
                    f"{str(self.bucket.address)!r} was taken over by another run, since this one could not "
                    "reach the store in time: what was written is kept, and nothing more is written"
                )
            self._beat(self.epoch)

    def check_writer(self) -> None:
        """Raise RunError unless this process is the writer; see ``check_held``."""
        self.check_held()
        if not self.epoch:
            raise RunError(f"{str(self.bucket.address)!r} is not locked by this process: nothing is written")

    def lose(self) -> None:
        """Stop being the writer, since another one has taken over."""
        self._stopped.set()
        self.epoch = 0

    def release(self) -> None:
        """Say that this writer has ended, so that the next one need not wait; a forked child says nothing."""
        if not self.held:
            return
        epoch, self.epoch = self.epoch, 0
        self._end_beating(epoch)

    def _create(self, epoch: int) -> None:
        name, content = name_epoch(epoch), self._describe()
        if not self.bucket.create(name, content) and self.bucket.get(name, MAX_BEAT_BYTES) != content:
            raise self._refuse()  # another writer has created it

    def _check_conditions(self, epoch: int) -> None:
        """See that the store refuses to create an epoch twice.

        Raises:
            InputError: it ignores conditions.
        """
        if self.bucket.create(name_epoch(epoch), self._describe(ended=True)):
            self._end_beating(epoch)
            raise InputError(
                f"{str(self.bucket.address)!r}: this store writes over an object that it was asked "
                "to create only if there is none (it ignores If-None-Match), so that two runs could write to "
                "one folder: use another store, or a newer version of it"
            )

    def _watch(self, epoch: int) -> None:
        """Watch the writer of an epoch until it has ended, or for one time to live.

        Raises:
            StoreError: it lives.
        """
        first = self._read_beat(epoch)
        if first is not None and first.ended:
            return
        seconds = first.seconds if first is not None else self._seconds
        end = monotonic() + seconds
        while (left := end - monotonic()) > 0:
            threading.Event().wait(min(left, seconds / LOOKS))
            now = self._read_beat(epoch)
            if now is not None and now.ended:
                return
            if now != first or self._exists(epoch + 1):
                raise self._refuse()

    def _keep_beating(self) -> None:
        while not self._stopped.wait(self._seconds / BEATS):
            with suppress(UnreachableError):  # ``check_held`` decides what that means
                self._beat(self.epoch)

    def _beat(self, epoch: int) -> None:
        """Write the heartbeat; no effect once the writer has ended."""
        with self._writing:
            if self._stopped.is_set():
                return
            began = monotonic()
            self._count += 1
            self.bucket.put(name_beat(epoch), self._describe())
            self._renewed = began

    def _end_beating(self, epoch: int) -> None:
        with self._writing:
            self._stopped.set()
            with suppress(UnreachableError):  # then the next one waits
                self.bucket.put(name_beat(epoch), self._describe(ended=True))

    def _describe(self, ended: bool = False) -> bytes:
        return Beat(self._writer, self._seconds, self._count, ended).to_bytes()

    def _find_newest(self) -> int:
        """Return the last epoch: 0 if there is none. What a listing has not yet is asked for by name."""
        listed, first, journal = ask_at_once(
            lambda: self.bucket.list(LOCKS), lambda: self._exists(1), self.journal.refresh
        )
        journal.result()
        found = (EPOCH_NAME.fullmatch(entry.name) for entry in listed.result())
        newest = max(self.journal.epoch, int(first.result()), *(int(match[1]) for match in found if match))
        while newest and self._exists(newest + 1):
            newest += 1
        return newest

    def _exists(self, epoch: int) -> bool:
        with suppress(FileNotFoundError, ValueError):
            self.bucket.get(name_epoch(epoch), MAX_BEAT_BYTES)
            return True
        return False

    def _read_beat(self, epoch: int) -> Beat | None:
        """Return the heartbeat of a writer, or what it said first; None if it has said nothing.

        Raises:
            StoreError: it is damaged.
        """
        for name in (name_beat(epoch), name_epoch(epoch)):
            damaged = f"{self.bucket.address.inside(name)} is damaged: remove it if no run writes there"
            with convert_errors(StoreError, damaged):
                try:
                    content = self.bucket.get(name, MAX_BEAT_BYTES)
                except FileNotFoundError:
                    continue
                beat = read_as(Beat, json.loads(content))
                if not MIN_SECONDS <= beat.seconds <= MAX_SECONDS:
                    raise ValueError(f"seconds: {beat.seconds} is outside {MIN_SECONDS}..{MAX_SECONDS}")
                return beat
        return None

    def _refuse(self) -> StoreError:
        return StoreError(f"{str(self.bucket.address)!r} is in use by another run: wait for it, or stop it")


def name_epoch(epoch: int) -> str:
    """Return the name of an epoch's object."""
    return f"{LOCKS}{epoch:06d}"


def name_beat(epoch: int) -> str:
    """Return the name of a heartbeat's object."""
    return f"{name_epoch(epoch)}.hb"


def read_time_to_live() -> float:
    """Return the time to live of a writer, in seconds, which the environment may set.

    Raises:
        InputError: it is no number of seconds in its range.
    """
    text = os.environ.get(VARIABLE, "")
    if not text:
        return TIME_TO_LIVE
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise InputError(
            f"{VARIABLE}={quote(text)}: expected seconds from {MIN_SECONDS:g} to {MAX_SECONDS:g}"
        )
    return seconds


OURS = re.compile(r"(commits|lock|files)/.+", re.ASCII)
MAX_KEPT_BYTES = 1 << 26  # in memory, of what was read or written


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
        if stored.bytes <= MAX_KEPT_BYTES:
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
        if stored.bytes <= MAX_KEPT_BYTES:
            return self._keep_intact(self._find(name), self._fetch(name))
        with TemporaryFile() as file:
            return self._download(name, cast(BinaryIO, file))

    def prefetch(self, names: Iterable[str]) -> None:
        """Read files that will be read one after another at once, as far as they can be kept."""
        wanted, room = list[StoredFile](), MAX_KEPT_BYTES
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
        objects, written = dict[str, bytes](), dict[str, StoredFile]()
        for name, content in contents.items():
            held = content.to_pybytes() if isinstance(content, pa.Buffer) else content
            new, digest = f"{OBJECTS}{name}/{self.lease.epoch:06d}-{token_hex(8)}", hashlib.sha256(held)
            written[name], objects[new] = StoredFile(new, len(held), digest.hexdigest()), held
        for put in ask_at_once(*(partial(self.bucket.put, *pair) for pair in objects.items())):
            put.result()
        for new, held in objects.items():
            self._keep(new, held)
        self._commit({**self.journal.files, **written})

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
            self.bucket.download(stored.object, min(stored.bytes, MAX_FILE_BYTES), file)

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
        while sum(map(len, self._kept.values())) > MAX_KEPT_BYTES:
            del self._kept[next(iter(self._kept))]
