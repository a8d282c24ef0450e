"""One contract over all stores of run folders: a disk, an object store in memory, and one that speaks S3."""

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from forgery import STUDY, TASK, run_in
from stores import (
    RUN,
    CarelessBucket,
    FailingBucket,
    InterruptedBucket,
    LateBucket,
    MemoryBucket,
    OrderedBucket,
    RepeatingBucket,
    WatchedBucket,
    die,
    list_keys,
    read_all,
    results,
    use,
)

from ckcv_ray import load_run
from ckcv_ray.errors import InputError, RunError, StoreError, UnreachableError
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage import object_files
from ckcv_ray.storage.files import Files
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.journal import name_commit, open_commit
from ckcv_ray.storage.log import MAX_SMALL_PARTS, Log
from ckcv_ray.storage.object_files import ObjectFiles
from ckcv_ray.storage.places import open_files
from ckcv_ray.study.study import Execution

obstore = pytest.importorskip("obstore")
SERIAL = Execution("serial")
PLACES = ("disk", "memory", "s3", "moto")


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty folder, by store."""
    if request.param == "disk":
        return str(tmp_path / "run")
    request.getfixturevalue(request.param)
    return f"{RUN}/{tmp_path.name}"


@pytest.fixture
def files(place: str) -> Files:
    """The files of a locked folder."""
    opened = open_files(place)
    opened.make_folders("log/")
    opened.lock.acquire()
    return opened


def test_what_is_written_is_read_listed_and_hashed(files: Files) -> None:
    files.write("b.json", b"{}")
    files.write_all({"log/a": pa.py_buffer(b"12345"), "log/b": b""})
    for seen in (files, open_files(str(files))):
        assert seen.read("b.json", 2) == b"{}"
        assert seen.list("b") == ["b.json"]
        assert seen.list("log/") == ["log/a", "log/b"]
        assert seen.list("log/a") == ["log/a"]
        assert seen.list("c") == seen.list("no/such/folder/") == []
        assert set(seen.list_all()) - {".lock"} == {"b.json", "log/a", "log/b"}
        assert [name for name in seen.tree() if name != ".lock"] == ["b.json", "log/a", "log/b"]
        assert seen.size("log/a") == 5
        assert seen.sha256("log/a") == sha256(b"12345").hexdigest()
        assert seen.exists()
        assert seen.exists("log/a")
        assert not seen.is_gone("log/a")
        assert seen.is_folder()
        with seen.open("log/a") as stream:
            assert stream.read(2) == b"12"
    files.prefetch(["b.json", "log/a"])
    files.rename("log/a", "log/c")
    files.write_all({"log/b": b"new", "log/d": b"", "log/e": b""})
    files.delete("b.json")
    files.delete_all(["log/d", "log/e"])
    assert open_files(str(files)).list("log/") == ["log/b", "log/c"]
    assert open_files(str(files)).read("log/c", 9) == b"12345"
    assert open_files(str(files)).read("log/b", 9) == b"new"
    for seen in (files, open_files(str(files))):
        assert not seen.exists("b.json")
        assert seen.is_gone("b.json")
        assert seen.is_gone("log/a")
    files.lock.release()


def test_what_is_missing_or_too_large_is_not_read(files: Files) -> None:
    files.write("a", b"123")
    with pytest.raises(FileNotFoundError):
        files.read("b", 9)
    with pytest.raises(FileNotFoundError):
        files.delete("b")
    with pytest.raises(ValueError):
        files.read("a", 2)
    files.lock.release()


def test_a_second_writer_is_refused_until_the_first_ends(place: str, files: Files) -> None:
    second = open_files(place)
    assert second.lock.busy
    with pytest.raises(StoreError, match="in use by another run"):
        second.lock.acquire()
    assert files.lock.held
    assert files.lock.busy
    assert not second.lock.held
    files.lock.release()
    files.lock.release()
    assert not second.lock.busy
    second.lock.acquire()
    second.lock.check_held()
    second.lock.release()


@pytest.mark.parametrize("attempt", range(5))
def test_of_writers_that_begin_at_once_one_writes(place: str, attempt: int) -> None:
    ready = Barrier(3)

    def write(name: bytes) -> bytes | StoreError:
        mine = open_files(place)
        mine.make_folders("log/")
        ready.wait()
        try:
            mine.lock.acquire()
            mine.write("who", name)
            return name
        except StoreError as error:
            return error
        finally:
            ready.wait()
            mine.lock.release()

    with ThreadPoolExecutor(3) as pool:
        told = list(pool.map(write, (b"one", b"two", b"three")))
    assert open_files(place).read("who", 99) in told
    assert sum(isinstance(one, StoreError) for one in told) == 2


def test_a_run_has_the_bytes_that_it_has_on_a_disk(place: str, whole: Path) -> None:
    result = run_job(Job(STUDY, TASK, place), SERIAL)
    assert results(place) == results(whole)
    assert verify(place).ok
    assert load_run(place).run_id == result.run_id
    before = read_all(place)
    run_job(Job(STUDY, TASK, place), SERIAL)
    assert read_all(place) == before


@pytest.mark.parametrize("step", [7, 1])
def test_a_run_that_is_cut_off_at_any_request_goes_on(
    memory: Any, monkeypatch: pytest.MonkeyPatch, whole: Path, step: int
) -> None:
    expected = results(whole)
    for late in (False, True):
        answered = 0
        while True:
            address, left = f"{RUN}/{late}-{answered}/x", [answered]  # alone: a run reads those next to it
            use(monkeypatch, lambda at, n=left, late=late: FailingBucket(at, memory, n, late))  # type: ignore[misc]
            try:
                run_job(Job(STUDY, TASK, address), SERIAL)
                break
            except UnreachableError:
                use(monkeypatch, lambda at: MemoryBucket(at, memory))
                run_job(Job(STUDY, TASK, address), SERIAL)
                assert results(address) == expected, (answered, late)
            answered += step
        assert answered > 21


def test_results_appear_together_after_their_objects(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, lambda at: OrderedBucket(at, memory))
    run_job(Job(STUDY, TASK, RUN), SERIAL)
    opened = open_files(RUN)
    assert isinstance(opened, ObjectFiles)
    opened.journal.refresh()
    seen = []
    for number in range(opened.journal.number + 1):
        files = open_commit(opened.bucket.get(name_commit(number), 1 << 20), number).files
        seen.append({name for name in files if "log/" not in name})
    inputs = {"data.parquet", "study.json"}
    assert [names for i, names in enumerate(seen) if names not in seen[:i]] == [set(), inputs, seen[-1]]
    assert {"manifest.json", "certificate.json", "candidates.parquet"} < seen[-1]


def test_a_new_run_asks_little(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    use(monkeypatch, lambda at: WatchedBucket(at, memory, asked))
    run_job(Job(STUDY, TASK, RUN), SERIAL)
    assert sum(what.startswith(("read", "list")) for what in asked) <= 18
    opened = open_files(RUN)
    assert isinstance(opened, ObjectFiles)
    opened.journal.refresh()
    written = [what for what in asked if what.startswith("write") and ".hb" not in what]
    epoch_and_probe, commits = 2, opened.journal.number + 1
    assert len(written) == len(opened.tree()) + commits + epoch_and_probe
    assert commits == len(["the epoch", "data and study", "records", "results"])
    asked.clear()
    load_run(RUN)
    assert max(count for what, count in Counter(asked).items() if "read files/" in what) == 1


def test_files_read_ahead_are_asked_for_once_and_damage_shows_when_they_are_read(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = open_writer(memory)
    writer.write_all({"a": b"1", "b": b"2", "large": b"12345", "gone": b"3"})
    writer.lock.release()
    for key in list_keys(memory):
        if "/files/b/" in key:
            obstore.put(memory, key, b"X")
        if "/files/gone/" in key:
            obstore.delete(memory, key)
    monkeypatch.setattr(object_files, "MAX_KEPT_BYTES", 4)
    asked: list[str] = []
    reader = ObjectFiles(WatchedBucket(writer.bucket.address, memory, asked))
    reader.prefetch(["a"])
    assert asked == []  # it is not known yet
    names = reader.list()
    asked.clear()
    reader.prefetch(["no such file", *names])
    assert sorted(what.split("/")[1] for what in asked) == ["a", "b", "gone"]
    asked.clear()
    assert (reader.read("a", 9), reader.sha256("a"), asked) == (b"1", sha256(b"1").hexdigest(), [])
    reader.prefetch(["a"])
    assert asked == []
    assert reader.sha256("b") == sha256(b"X").hexdigest()
    for name, said in (("b", "not what was written"), ("gone", "is missing from the store")):
        with pytest.raises(ValueError, match=said):
            reader.read(name, 9)


def test_what_is_deleted_together_disappears_together(memory: Any) -> None:
    writer = open_writer(memory)
    writer.write_all({"a": b"1", "b": b"2", "c": b"3"})
    before = writer.journal.number
    with pytest.raises(FileNotFoundError):
        writer.delete_all(["a", "no such file"])
    assert open_files(RUN).list() == ["a", "b", "c"]
    writer.delete_all(["a", "b"])
    assert (writer.journal.number, open_files(RUN).list()) == (before + 1, ["c"])
    assert [key for key in list_keys(memory) if "/files/a/" in key or "/files/b/" in key] == []
    writer.lock.release()


def test_small_parts_are_joined_in_two_commits(memory: Any) -> None:
    run_in(RUN)  # type: ignore[arg-type]
    folder = RunFolder(RUN)
    folder.acquire()
    log = Log(folder.files, folder.problem())
    (records, failures), *_ = log.read()
    while len(log.parts()) < MAX_SMALL_PARTS - 1:
        log.append(records[:2], failures)
    assert isinstance(folder.files, ObjectFiles)
    before = folder.files.journal.number
    log.append(records[:2], failures)
    assert len(log.parts()) == 1
    assert folder.files.journal.number == before + 3  # the part, the joined one, and that the others are gone
    ((joined, _),) = log.read()
    assert {row.tobytes() for row in joined} == {row.tobytes() for row in records}
    folder.release()


def open_writer(
    memory: Any, kind: Callable[[Any, Any], Any] = MemoryBucket, address: str = RUN
) -> ObjectFiles:
    """A writer, by a bucket of a kind."""
    opened = open_files(address)
    assert isinstance(opened, ObjectFiles)
    writer = ObjectFiles(kind(opened.bucket.address, memory))
    writer.lock.acquire()
    return writer


def test_a_dead_writer_is_followed_and_a_stale_one_fenced(memory: Any) -> None:
    stale = open_writer(memory)
    stale.write("a", b"first")
    die(stale)
    fresh = open_writer(memory)
    assert fresh.read("a", 9) == b"first"
    stale.lease._renewed = float("inf")  # it was stopped, and has not looked at its clock
    with pytest.raises(RunError, match="was taken over by another run"):
        stale.write("a", b"stale")
    assert not stale.lock.held
    assert fresh.read("a", 9) == open_files(RUN).read("a", 9) == b"first"
    left = [key for key in list_keys(memory) if "/files/a/000001-" in key]
    assert len(left) == 2
    assert [f"runs/x/{name}" for name in fresh.remove_leftovers()] in (left[:1], left[1:])
    assert open_files(RUN).read("a", 9) == b"first"
    fresh.lock.release()


def test_a_stale_writer_removes_no_object_of_a_later_one(memory: Any) -> None:
    stale = open_writer(memory)
    stale.write("a", b"first")
    die(stale)
    fresh = open_writer(memory)
    fresh.write("b", b"later")
    stale.lease._renewed = float("inf")
    assert stale.remove_leftovers() == []
    assert open_files(RUN).read("b", 9) == b"later"
    fresh.lock.release()


def test_a_writer_that_was_cut_off_for_long_renews_or_stops(memory: Any) -> None:
    writer = open_writer(memory)
    die(writer)
    writer.lease._stopped.clear()
    writer.lease._renewed -= 99.0
    writer.lock.check_held()
    assert writer.lease._renewed > 0
    die(writer)
    open_writer(memory).lock.release()
    writer.lease._renewed -= 99.0
    with pytest.raises(RunError, match="could not reach the store in time"):
        writer.write("a", b"")
    assert not writer.lock.held


def test_a_forked_child_is_no_writer(memory: Any) -> None:
    writer = open_writer(memory)
    writer.lease._process = 0
    assert not writer.lock.held
    with pytest.raises(RunError, match="not to its child"):
        writer.write("a", b"")
    writer.lock.release()
    assert open_files(RUN).lock.busy
    die(writer)


def test_a_writer_that_never_took_the_lock_writes_nothing(memory: Any) -> None:
    opened = open_files(RUN)
    opened.lock.check_held()
    opened.lock.release()
    for change in (lambda: opened.write("a", b""), opened.remove_leftovers):
        with pytest.raises(RunError, match="is not locked by this process: nothing is written"):
            change()
    assert list_keys(memory) == []


def test_a_request_that_failed_and_was_carried_out_is_no_other_writer(memory: Any) -> None:
    left = [1 << 30]
    writer = open_writer(memory, lambda address, store: FailingBucket(address, store, left, late=True))
    die(writer)
    left[0] = 1
    with pytest.raises(UnreachableError):
        writer.write("a", b"1")
    left[0] = 1 << 30
    assert open_files(RUN).list() == ["a"]
    writer.write("b", b"2")
    assert open_files(RUN).list() == ["b"]
    writer.lock.release()


def test_a_repeated_request_that_meets_its_own_write_has_written(memory: Any) -> None:
    writer = open_writer(memory, RepeatingBucket)
    writer.write("a", b"1")
    writer.write("b", b"2")
    assert open_files(RUN).list() == ["a", "b"]
    writer.lock.release()


def test_a_store_that_ignores_conditions_is_refused(memory: Any) -> None:
    for _ in range(2):  # nobody waits for the one that was refused
        with pytest.raises(InputError, match="ignores If-None-Match"):
            open_writer(memory, CarelessBucket)
    beats = [json.loads(bytes(obstore.get(memory, key).bytes())) for key in list_keys(memory) if ".hb" in key]
    assert [beat["ended"] for beat in beats] == [True, True]
    assert not [key for key in list_keys(memory) if "/commits/" in key]


def test_late_listings_hide_nothing(memory: Any) -> None:
    late = LateBucket(open_files(RUN).bucket.address, memory)  # type: ignore[attr-defined]
    first = open_writer(memory)
    first.write("a", b"1")
    first.lock.release()
    seen = ObjectFiles(late)
    assert seen.read("a", 9) == b"1"
    second = ObjectFiles(late)
    second.lock.acquire()
    assert second.lease.epoch == 2
    second.write("b", b"2")
    second.lock.release()
    assert open_files(RUN).list() == ["a", "b"]


def test_a_reader_follows_a_writer_that_replaces_files(memory: Any) -> None:
    writer = open_writer(memory)
    writer.write("a", b"old")
    writer.write("b", b"old")
    reader = open_files(RUN)
    assert reader.read("b", 9) == b"old"
    writer.write("a", b"new")
    assert reader.read("a", 9) == b"new"
    reader = open_files(RUN)
    assert reader.size("a") == 3
    writer.delete("a")
    with pytest.raises(FileNotFoundError):
        reader.read("a", 9)
    writer.lock.release()


@pytest.mark.parametrize("how", ["read", "open", "sha256"])
@pytest.mark.parametrize("most", [4, 1 << 20])  # bytes that are kept in memory: others are read by a copy
def test_a_file_that_is_replaced_between_any_two_requests_is_read(
    memory: Any, monkeypatch: pytest.MonkeyPatch, most: int, how: str
) -> None:
    monkeypatch.setattr(object_files, "MAX_KEPT_BYTES", most)
    writer = open_writer(memory)
    contents, before = (b"old content", b"the new content"), 0
    while True:
        writer.write("a", contents[0])
        left = [before]
        reader = ObjectFiles(
            InterruptedBucket(writer.bucket.address, memory, left, lambda: writer.write("a", contents[1]))
        )
        if how == "sha256":
            assert reader.sha256("a") in [sha256(content).hexdigest() for content in contents]
        elif how == "read":
            assert reader.read("a", 20) in contents
        else:
            with reader.open("a") as stream:
                assert stream.read() in contents
        if left[0] >= 0:
            break
        before += 1
    assert before >= 3  # the journal, and the object
    writer.lock.release()


@pytest.mark.parametrize("damage", ["missing", "changed", "longer"])
def test_damage_is_noticed_and_mended(memory: Any, damage: str, whole: Path) -> None:
    run_in(RUN)  # type: ignore[arg-type]
    key = next(key for key in list_keys(memory) if "/files/certificate.json/" in key)
    content = bytes(obstore.get(memory, key).bytes())
    obstore.delete(memory, key)
    if damage != "missing":
        obstore.put(memory, key, content[:-2] + b" \n" if damage == "changed" else content * 2)
    with pytest.raises(StoreError, match=r"certificate\.json"):
        load_run(RUN)
    assert any("certificate.json" in sentence for sentence in verify(RUN).differences)
    run_in(RUN)  # type: ignore[arg-type]
    assert results(RUN) == results(whole)


def test_metadata_are_read_while_a_run_ends(memory: Any) -> None:
    """What an unfinished run says of itself is read, and it is finished before it is looked at."""

    def begin() -> None:
        stopped = iter(range(3))
        with pytest.raises(KeyboardInterrupt):
            run_job(Job(STUDY, TASK, RUN), SERIAL, lambda: next(stopped, None) is None)

    before, seen = 0, []
    while True:
        for key in list_keys(memory):
            obstore.delete(memory, key)
        begin()
        left, opened = [before], open_files(RUN)
        assert isinstance(opened, ObjectFiles)
        reader = InterruptedBucket(opened.bucket.address, memory, left, lambda: run_in(RUN))  # type: ignore[arg-type]
        seen.append("backend" in RunFolder(ObjectFiles(reader)).execution())
        if left[0] >= 0:
            break
        before += 1
    assert seen == sorted(seen, reverse=True)  # of a run that ends later, what it said before
    assert set(seen) == {True, False}


def test_large_files_are_read_by_a_copy(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_files, "MAX_KEPT_BYTES", 4)
    writer = open_writer(memory)
    writer.write_all({"a": b"12345", "b": b"1"})
    writer.lock.release()
    reader = open_files(RUN)
    assert reader.sha256("a") == sha256(b"12345").hexdigest()
    with reader.open("a") as stream:
        assert stream.read() == b"12345"
    key = next(key for key in list_keys(memory) if "/files/a/" in key)
    obstore.put(memory, key, b"54321")
    assert reader.sha256("a") == sha256(b"54321").hexdigest()
    with pytest.raises(ValueError, match="not what was written"), reader.open("a"):
        raise AssertionError
    obstore.delete(memory, key)
    with pytest.raises(ValueError, match="is missing from the store"):
        reader.sha256("a")


def test_others_objects_are_no_run(memory: Any) -> None:
    obstore.put(memory, "runs/x/holiday.jpg", b"")
    opened = open_files(RUN)
    assert opened.exists()
    assert list(opened.list_all()) == ["holiday.jpg"]
    with pytest.raises(StoreError, match=r"has no study\.json"):
        RunFolder(RUN).identity()
    with pytest.raises(StoreError, match="choose another"):
        run_job(Job(STUDY, TASK, RUN), SERIAL)
    assert list_keys(memory) == ["runs/x/holiday.jpg"]
    assert opened.is_same(open_files(RUN))
    assert opened.suggest_nearby("study.json") == ""
    assert opened.find_name(Path("a")) is None


def test_what_a_dead_writer_left_is_cleaned_and_nothing_else(memory: Any) -> None:
    run_in(RUN)  # type: ignore[arg-type]
    before = list_keys(memory)
    obstore.put(memory, "runs/x/files/log/part-000009.parquet/000001-0123456789abcdef", b"left")
    assert RunFolder(RUN).clean() == ["files/log/part-000009.parquet/000001-0123456789abcdef"]
    gone = {key for key in before if "/files/" in key} - set(list_keys(memory))
    assert gone == set()
    assert RunFolder(RUN).clean() == []
    writer = open_writer(memory)
    with pytest.raises(StoreError, match="in use"):
        RunFolder(RUN).clean()
    writer.lock.release()
