"""The journal and the lease of a folder on an object store: what is damaged or forged is refused."""

import json
from dataclasses import replace
from hashlib import sha256
from threading import Event
from typing import Any

import pytest
from stores import RUN, MemoryBucket, list_keys

from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.storage import object_files
from ckcv_ray.storage.journal import (
    Commit,
    Journal,
    OvertakenError,
    StoredFile,
    name_commit,
    open_commit,
    seal_commit,
)
from ckcv_ray.storage.object_files import Beat, Lease, name_beat, name_epoch
from ckcv_ray.tables.objects import parse_address

obstore = pytest.importorskip("obstore")
STORED = StoredFile("files/log/a/000001-0123456789abcdef", 3, sha256(b"123").hexdigest())
COMMIT = Commit(1, 0, 1, "0", {"log/a": STORED})
FORGED = {
    "another number": replace(COMMIT, number=1),
    "no writer": replace(COMMIT, epoch=0),
    "another format": replace(COMMIT, format=2),
    "a file outside": replace(COMMIT, files={"../a": STORED}),
    "an absolute file": replace(COMMIT, files={"/a": STORED}),
    "an object outside": replace(
        COMMIT, files={"a": replace(STORED, object="files/../../000001-0123456789abcdef")}
    ),
    "another object": replace(COMMIT, files={"a": replace(STORED, object="commits/00000000")}),
    "a negative size": replace(COMMIT, files={"a": replace(STORED, bytes=-1)}),
    "an endless size": replace(COMMIT, files={"a": replace(STORED, bytes=1 << 40)}),
    "no digest": replace(COMMIT, files={"a": replace(STORED, sha256="0")}),
}


@pytest.fixture
def bucket(memory: Any) -> MemoryBucket:
    return MemoryBucket(parse_address("out", RUN), memory)


def make_lease(bucket: MemoryBucket) -> Lease:
    return Lease(bucket, Journal(bucket))


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_commit_is_refused(what: str, bucket: MemoryBucket) -> None:
    bucket.put(name_commit(0), seal_commit(FORGED[what]))
    with pytest.raises(StoreError, match="commits/00000000 is damaged: write the run in another place"):
        Journal(bucket).refresh()


@pytest.mark.parametrize("content", [b"", b"0\n{}", sha256(b"[]").hexdigest().encode() + b"\n[]"])
def test_damaged_bytes_are_no_commit(content: bytes) -> None:
    with pytest.raises(ValueError):
        open_commit(content, 0)


@pytest.mark.parametrize("number", [0, 4])
def test_a_listed_commit_that_is_not_there_is_damage(
    bucket: MemoryBucket, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    bucket.put(name_commit(number), seal_commit(replace(COMMIT, number=number)))
    journal = Journal(bucket)
    journal.refresh()
    assert journal.files == COMMIT.files
    listed = bucket.list()
    bucket.delete(name_commit(number))
    monkeypatch.setattr(bucket, "list", lambda prefix: listed)
    with pytest.raises(StoreError, match=rf"{name_commit(number)} is damaged.*: it is missing"):
        Journal(bucket).refresh()


def test_the_first_commit_may_be_written_while_it_is_looked_for(
    bucket: MemoryBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not there when it is asked for, and is listed a moment later: nothing is damaged."""
    asked, get, list_all = Event(), bucket.get, bucket.list

    def get_first(name: str, most: int) -> bytes:
        try:
            return get(name, most)
        finally:
            asked.set()

    def list_later(prefix: str) -> Any:
        assert asked.wait(30)
        bucket.create(name_commit(0), seal_commit(COMMIT))
        return list_all(prefix)

    monkeypatch.setattr(bucket, "get", get_first)
    monkeypatch.setattr(bucket, "list", list_later)
    journal = Journal(bucket)
    journal.refresh()
    assert (journal.number, journal.files) == (0, COMMIT.files)


def test_the_last_commit_alone_is_read(bucket: MemoryBucket) -> None:
    bucket.put(name_commit(0), b"damaged, and followed by others")
    bucket.put(name_commit(7), seal_commit(replace(COMMIT, number=7)))
    journal = Journal(bucket)
    journal.refresh()
    assert (journal.number, journal.files) == (7, COMMIT.files)
    bucket.put(name_commit(8), seal_commit(replace(COMMIT, number=8, files={})))
    fresh = Journal(bucket)
    fresh.refresh()
    journal.refresh()
    assert journal.number == fresh.number == 8


def test_an_earlier_writer_cannot_claim_what_a_later_one_has(bucket: MemoryBucket) -> None:
    first, second = Journal(bucket), Journal(bucket)
    first.claim(1)
    second.claim(2)
    with pytest.raises(OvertakenError):
        first.append(1, {})
    with pytest.raises(OvertakenError):
        Journal(bucket).claim(1)
    lost = Journal(bucket)
    lost.refresh()
    bucket.create = lambda name, content: False  # type: ignore[method-assign]  # refused, and then gone
    with pytest.raises(OvertakenError):
        lost.append(2, {})


def test_a_commit_of_the_writer_before_counts(bucket: MemoryBucket) -> None:
    before, after = Journal(bucket), Journal(bucket)
    before.claim(1)
    after.refresh()
    before.append(1, COMMIT.files)
    real = after.refresh
    after.refresh = lambda: setattr(after, "refresh", real)  # type: ignore[method-assign, assignment, func-returns-value]  # late
    after.claim(2)
    assert after.files == COMMIT.files


@pytest.mark.parametrize("content", [b"", b"{}", Beat("a", 0.0, 1, False).to_bytes(), b"0" * 5000])
def test_a_damaged_heartbeat_is_refused(bucket: MemoryBucket, content: bytes) -> None:
    bucket.put(name_epoch(1), Beat("a", 1.0, 0, False).to_bytes())
    bucket.put(name_beat(1), content)
    with pytest.raises(StoreError, match=r"lock/000001\.hb is damaged: remove it"):
        make_lease(bucket).acquire()


def test_a_writer_without_a_heartbeat_is_watched_too(bucket: MemoryBucket) -> None:
    bucket.put(name_epoch(1), Beat("a", 0.2, 0, False).to_bytes())
    newcomer = make_lease(bucket)
    newcomer.acquire()
    assert newcomer.epoch == 2
    newcomer.release()


@pytest.mark.parametrize("ends", [True, False], ids=["who ends is followed", "who is overtaken is refused"])
def test_what_happens_while_it_watches_is_seen_at_once(
    bucket: MemoryBucket, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    bucket.put(name_epoch(1), Beat("a", 60.0, 0, False).to_bytes())
    monkeypatch.setattr(object_files, "LOOKS", 600)
    newcomer, read = make_lease(bucket), Lease._read_beat

    def happen(self: Lease, epoch: int) -> Beat | None:
        beat = read(self, epoch)
        if ends:
            bucket.put(name_beat(1), Beat("a", 60.0, 1, True).to_bytes())
        else:
            bucket.put(name_epoch(2), Beat("b", 60.0, 0, False).to_bytes())
        return beat

    monkeypatch.setattr(Lease, "_read_beat", happen)
    if ends:
        newcomer.acquire()
        assert newcomer.epoch == 2
        newcomer.release()
    else:
        with pytest.raises(StoreError, match="in use by another run"):
            newcomer.acquire()


def test_who_is_overtaken_between_two_steps_is_refused(
    bucket: MemoryBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in ("_create", "_beat"):
        newcomer, real = make_lease(bucket), getattr(Lease, step)

        def overtake(self: Lease, epoch: int, step: str = step, real: Any = real) -> None:
            if step == "_create":
                bucket.put(name_epoch(epoch), Beat("b", 60.0, 0, True).to_bytes())
                bucket.put(name_beat(epoch), Beat("b", 60.0, 0, True).to_bytes())
            else:
                Journal(bucket).claim(epoch + 1)
            real(self, epoch)

        with monkeypatch.context() as patch:
            patch.setattr(Lease, step, overtake)
            with pytest.raises(StoreError, match="in use by another run"):
                newcomer.acquire()
        assert not newcomer.held


@pytest.mark.parametrize("text", ["x", "0", "601", "nan"])
def test_a_time_to_live_outside_its_range_is_refused(
    bucket: MemoryBucket, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("CKCV_LEASE_SECONDS", text)
    with pytest.raises(InputError, match=rf"CKCV_LEASE_SECONDS='{text}': expected seconds from 0.1 to 600"):
        make_lease(bucket).acquire()
    monkeypatch.delenv("CKCV_LEASE_SECONDS")
    assert object_files.read_time_to_live() == object_files.TIME_TO_LIVE


def test_a_heartbeat_is_written_until_the_end(bucket: MemoryBucket, memory: Any) -> None:
    held = make_lease(bucket)
    held.acquire()
    assert held.busy
    first = bucket.get(name_beat(1), 999)
    watcher = make_lease(bucket)
    with pytest.raises(StoreError, match="in use"):
        watcher.acquire()
    assert bucket.get(name_beat(1), 999) != first
    held.release()
    last = json.loads(bucket.get(name_beat(1), 999))
    assert last["ended"]
    held._beat(1)
    assert json.loads(bucket.get(name_beat(1), 999)) == last
    assert not make_lease(bucket).busy
    assert "runs/x/lock/000001.hb" in list_keys(memory)


def test_an_epoch_that_vanishes_is_followed(bucket: MemoryBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    newcomer = make_lease(bucket)
    monkeypatch.setattr(newcomer, "_find_newest", lambda: 3)
    assert not newcomer.busy
    newcomer.acquire()
    assert newcomer.epoch == 4
    newcomer.release()
