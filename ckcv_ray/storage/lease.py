"""The lease of a run folder on an object store: one writer at a time, by nothing but ``create``.

    lock/000001             the first writer (its epoch), and so on: whoever creates one is the next writer
    lock/000001.hb          its heartbeat, written again and again while it lives, and once when it ends

A newcomer watches the heartbeat of the last writer for one time to live, on a clock of its own: if it
changes, the writer lives. If it does not, or says that the writer has ended, the newcomer creates the next
epoch, and writes a commit of that epoch to the journal (``journal``), which fences whoever was before.

A writer that could not renew its heartbeat for most of the time to live writes nothing before it has renewed
it, and has seen that there is no later epoch.
"""

import json
import os
import re
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from secrets import token_hex
from time import monotonic
from typing import Any, ClassVar

from ckcv_ray.errors import InputError, RunError, StoreError, UnreachableError, convert_errors
from ckcv_ray.storage.journal import Journal, OvertakenError
from ckcv_ray.tables.readers.objects import Bucket, ask_at_once
from ckcv_ray.validation import STRICT, quote, read_as

LOCKS = "lock/"
EPOCH_NAME = re.compile(r"lock/([0-9]{6})")
TIME_TO_LIVE, VARIABLE = 20.0, "CKCV_LEASE_SECONDS"
LEAST_SECONDS, MOST_SECONDS = 0.1, 600.0
BEATS = 4  # heartbeats in a time to live
LOOKS = 8  # of a newcomer in a time to live
USABLE = 0.7  # share of a time to live without a renewal after which nothing is written
MOST_BEAT_BYTES = 1 << 12
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
        """Create an epoch.

        Raises:
            StoreError: another writer has created it.
        """
        name, content = name_epoch(epoch), self._describe()
        if not self.bucket.create(name, content) and self.bucket.get(name, MOST_BEAT_BYTES) != content:
            raise self._refuse()

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
            self.bucket.get(name_epoch(epoch), MOST_BEAT_BYTES)
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
                    content = self.bucket.get(name, MOST_BEAT_BYTES)
                except FileNotFoundError:
                    continue
                beat = read_as(Beat, json.loads(content))
                if not LEAST_SECONDS <= beat.seconds <= MOST_SECONDS:
                    raise ValueError(f"seconds: {beat.seconds} is outside {LEAST_SECONDS}..{MOST_SECONDS}")
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
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise InputError(
            f"{VARIABLE}={quote(text)}: expected seconds from {LEAST_SECONDS:g} to {MOST_SECONDS:g}"
        )
    return seconds
