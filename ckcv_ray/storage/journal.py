"""The journal of a run folder on an object store: which object holds which file, after each change.

    commits/00000000        the files after the first change, and so on

Each commit names all files of the folder, so that the last one alone is read. It is written by a ``create``,
which the store refuses if there is one of that number: so of two writers one is refused, and stops. A writer
that takes over first writes a commit of its own epoch; after it no writer of an earlier epoch can add one, be
it slow, or stopped for an hour. What it wrote besides is named by no commit, and so in no file.

Commits are never changed or deleted, which would let a writer of an earlier epoch go on. Readers find the
last one by its number: a listing says where to begin, and what it has not yet is asked for by name.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from secrets import token_hex
from typing import Any, ClassVar, cast

from ckcv_ray.errors import RunError, StoreError, convert_errors
from ckcv_ray.tables.objects import Bucket, ask_at_once
from ckcv_ray.validation import STRICT, check_count, read_as

COMMITS, OBJECTS = "commits/", "files/"
JOURNAL_FORMAT = 1
MAX_COMMIT_BYTES = 1 << 26
MAX_STORED_FILES = 100_000
MAX_OBJECT_BYTES = 1 << 32
COMMIT = re.compile(r"commits/([0-9]{8})")
STORED_NAME = re.compile(r"(?!.*(?:^|/)\.{1,2}(?:/|$))[\w.+-]+(/[\w.+-]+)*", re.ASCII)
OBJECT = re.compile(r"files/[\w.+/-]+/([0-9]{6})-[0-9a-f]{16}", re.ASCII)  # with the epoch of its writer
HEX_DIGEST = re.compile("[0-9a-f]{64}")


class OvertakenError(RunError):
    """Another writer has written to the journal, so that this one may not."""


@dataclass(frozen=True)
class StoredFile:
    """Where a file is, and what it holds.

    Attributes:
        object: name of the object.
        bytes: its size.
        sha256: of its content.
    """

    __pydantic_config__: ClassVar[Any] = {**STRICT, "extra": "forbid"}

    object: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Commit:
    """One change of the files of a folder.

    Attributes:
        format: version of the journal's format.
        number: of the commit, from 0.
        epoch: of the writer; see ``lease``.
        nonce: random, by which a writer knows its own.
        files: all files after the change, by name.
    """

    __pydantic_config__: ClassVar[Any] = {**STRICT, "extra": "forbid"}

    format: int
    number: int
    epoch: int
    nonce: str
    files: dict[str, StoredFile]


class Journal:
    """The journal of one folder.

    Args:
        bucket: the objects of the folder.
    """

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.number = -1  # of the last commit that is known
        self.epoch = 0
        self.files: Mapping[str, StoredFile] = {}
        self.listed = False  # whether the store was asked where to begin

    def refresh(self) -> None:
        """Read what was added since the last time.

        Raises:
            StoreError: a commit is damaged, or was written by another version.
        """
        commit = self._read(self.number + 1) if self.listed else self._find_last()
        self.listed = True
        while commit is not None:
            self._take(commit)
            commit = self._read(self.number + 1)

    def append(self, epoch: int, files: Mapping[str, StoredFile]) -> None:
        """Add a commit after the last one that is known.

        One of the same writer that is there already is of a request that failed, as far as it knows, and
        was carried out nevertheless: it is followed by this one.

        Args:
            epoch: of the writer.
            files: all files after the change.

        Raises:
            OvertakenError: another writer has added one.
        """
        while True:
            commit = Commit(JOURNAL_FORMAT, self.number + 1, epoch, token_hex(16), dict(files))
            if self.bucket.create(name_commit(commit.number), seal_commit(commit)):
                return self._take(commit)
            there = self._read(commit.number)
            if there is None or there.epoch != epoch:
                raise OvertakenError(
                    f"{str(self.bucket.address)!r} was taken over by another run: what was written is kept, "
                    "and nothing more is written"
                )
            self._take(there)
            if there == commit:
                return None

    def claim(self, epoch: int) -> None:
        """Add a commit that changes nothing, after which no writer of an earlier epoch can add one.

        Raises:
            OvertakenError: a writer of a later epoch has done so.
        """
        while self.epoch < epoch:
            try:
                return self.append(epoch, self.files)
            except OvertakenError:  # by one more commit of the writer before, which counts
                self.refresh()
        raise OvertakenError(f"{str(self.bucket.address)!r} was taken over by another run")

    def _find_last(self) -> Commit | None:
        """Take the last commit that the store lists, and return the one after it, which it may list late.

        A new folder has none: the first is asked for while the store lists, and is the one to return. It may
        be written between the two, so one that is listed is asked for again.
        """
        found, first = ask_at_once(self._find_listed, lambda: self._read(0))
        listed: int = found.result()
        if listed < 0:
            return cast(Commit | None, first.result())
        if listed == 0:
            return self._require(first.result() or self._read(0), 0)
        last, after = ask_at_once(lambda: self._read(listed), lambda: self._read(listed + 1))
        self._take(self._require(last.result(), listed))
        return cast(Commit | None, after.result())

    def _find_listed(self) -> int:
        found = (COMMIT.fullmatch(entry.name) for entry in self.bucket.list(COMMITS))
        return max((int(match[1]) for match in found if match), default=-1)

    def _take(self, commit: Commit) -> None:
        self.number, self.epoch, self.files = commit.number, commit.epoch, commit.files

    def _read(self, number: int) -> Commit | None:
        name = name_commit(number)
        with convert_errors(StoreError, self._describe_damage(name)):
            try:
                content = self.bucket.get(name, MAX_COMMIT_BYTES)
            except FileNotFoundError:
                return None
            return open_commit(content, number)

    def _require(self, commit: Commit | None, number: int) -> Commit:
        """Return a commit that the store lists.

        Raises:
            StoreError: it is not there.
        """
        if commit is None:
            raise StoreError(f"{self._describe_damage(name_commit(number))}: it is missing")
        return commit

    def _describe_damage(self, name: str) -> str:
        return (
            f"{self.bucket.address.inside(name)} is damaged: write the run in another place, or put back the "
            "object that was there"
        )


def name_commit(number: int) -> str:
    """Return the name of a commit's object."""
    return f"{COMMITS}{number:08d}"


def seal_commit(commit: Commit) -> bytes:
    """Return the bytes of a commit: a line with the SHA-256 of what follows, and JSON."""
    content = json.dumps(asdict(commit)).encode()
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def open_commit(content: bytes, number: int) -> Commit:
    """Return the commit in some bytes, which may be a stranger's.

    Raises:
        ValueError: they are none of this number, or name what no run writes.
    """
    digest, _, text = content.partition(b"\n")
    if hashlib.sha256(text).hexdigest().encode() != digest:
        raise ValueError("its SHA-256 differs")
    commit = read_as(Commit, json.loads(text))
    if commit.format != JOURNAL_FORMAT:
        raise ValueError(f"it has the format {commit.format}, and this version reads {JOURNAL_FORMAT}")
    if commit.number != number or commit.epoch < 1:
        raise ValueError(f"it is commit {commit.number} of writer {commit.epoch}, under the name of {number}")
    check_count("files", len(commit.files), MAX_STORED_FILES)
    for name, stored in commit.files.items():
        if not (
            STORED_NAME.fullmatch(name)
            and OBJECT.fullmatch(stored.object)
            and STORED_NAME.fullmatch(stored.object)
        ):
            raise ValueError(f"{name[:60]!r} is no name of a file of a run")
        if not (0 <= stored.bytes <= MAX_OBJECT_BYTES and HEX_DIGEST.fullmatch(stored.sha256)):
            raise ValueError(f"{name[:60]!r} has a size or a SHA-256 that no file has")
    return commit
