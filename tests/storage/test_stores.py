"""One contract over all stores of run folders: a disk, an object store in memory, and one that speaks S3."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from threading import Barrier
from typing import Any
from unittest.mock import Mock

import pytest
from conftest import blobs
from forgery import STUDY, TASK, run_in
from stores import (
    BUCKET,
    RUN,
    CarelessBucket,
    FailingBucket,
    MemoryBucket,
    RepeatingBucket,
    list_keys,
    read_all,
    results,
    use,
)

from ckcv_ray import load_run
from ckcv_ray.cli.folders import list_runs
from ckcv_ray.engine import recorder
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.errors import InputError, StoreError, UnreachableError
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage import files as module
from ckcv_ray.storage.files import Files, ObjectFiles, open_files
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.pieces import (
    STREAM,
    USES,
    Header,
    LiveRow,
    Use,
    append_use,
    read_stream,
    read_uses,
    write_stream,
)
from ckcv_ray.study.problem import Problem

obstore = pytest.importorskip("obstore")
PLACES = ("disk", "memory", "s3", "moto")


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty folder, by store."""
    if request.param == "disk":
        return str(tmp_path / "run")
    request.getfixturevalue(request.param)
    return f"{RUN}/{tmp_path.name}"


@pytest.fixture
def files(place: str) -> Iterator[Files]:
    """The files of a folder that is locked, where there are locks."""
    opened = open_files(place)
    opened.lock.acquire()
    yield opened
    opened.lock.release()


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make runs have several log parts."""
    monkeypatch.setattr(recorder, "FLUSH_SECONDS", 0.0)
    monkeypatch.setattr(recorder, "FLUSH_SHARE", 0.0)
    monkeypatch.setattr(SerialBackend, "least_seconds", 0.0)


def test_what_is_written_is_read_listed_and_hashed(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_IN_MEMORY", 3)  # more is read by a copy on the disk
    files.write("b.json", b"{}")
    files.write("log/a", b"12345")
    assert files.create("log/b", b"first")
    assert not files.create("log/b", b"second")
    for seen in (files, open_files(str(files))):
        assert seen.read("b.json", 2) == b"{}"
        assert seen.read("log/b", 9) == b"first"
        assert seen.list("b") == ["b.json"]
        assert seen.list("log/") == ["log/a", "log/b"]
        assert seen.list("log/a") == ["log/a"]
        assert seen.list("c") == seen.list("no/such/folder/") == []
        for regular in (False, True):
            assert set(seen.walk(regular=regular)) - {".lock"} == {"b.json", "log/a", "log/b"}
        digest = "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5"
        assert RunFolder(str(seen)).sha256("log/a") == digest
        assert all(map(seen.exists, ("", "log/a")))
        with seen.open("log/a") as stream:
            assert stream.read(2) == b"12"
    files.write("log/a", b"new")
    files.delete("b.json")
    for seen in (files, open_files(str(files))):
        assert seen.read("log/a", 9) == b"new"
        assert not seen.exists("b.json")
        with pytest.raises(FileNotFoundError):
            seen.read("b.json", 9)
        with pytest.raises(ValueError, match="larger than"):
            seen.read("log/a", 2)


def test_a_run_has_the_bytes_that_it_has_on_a_disk_and_its_copy_is_the_run(place, whole, tmp_path):
    result = run_in(place)
    assert results(place) == results(whole)
    assert verify(place).ok
    assert load_run(place).run_id == result.run_id
    before = read_all(place)
    run_in(place)
    assert read_all(place) == before
    copy_objects(place, tmp_path / "copy")
    assert verify(tmp_path / "copy").ok
    (tmp_path / "copy" / "manifest.json").unlink()
    assert run_in(tmp_path / "copy").certificate == result.certificate


def copy_objects(address: str, folder: Path) -> None:
    """Copy what is in a place to a disk, as any program would."""
    for name, content in read_all(address).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.usefixtures("small_batches")
def test_a_run_that_is_cut_off_at_any_request_goes_on_there_and_as_a_copy(
    memory, monkeypatch, whole, late, tmp_path
):
    expected, answered = results(whole), 0
    while True:
        address, left = f"{RUN}/{late}-{answered}/x", [answered]  # alone: a run reads those next to it
        use(monkeypatch, lambda at, n=left: FailingBucket(at, memory, n, late))
        try:
            run_in(address)
            break
        except UnreachableError:
            use(monkeypatch, lambda at: MemoryBucket(at, memory))
            if answered % 6 == 0 and read_all(address):
                copy = tmp_path / str(answered)
                copy_objects(address, copy)
                run_in(copy)
                assert results(copy) == expected, answered
            run_in(address)
            assert results(address) == expected, answered
            assert verify(address).ok
        answered += 2 + late
    assert answered > 20


def test_two_runs_at_once_leave_the_bytes_of_one(memory: Any, whole: Path, small_batches: None) -> None:
    begin = Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: (begin.wait(), run_in(RUN)), range(2)))
    assert results(RUN) == results(whole)
    assert verify(RUN).ok


def test_a_run_that_finishes_while_another_does_is_finished(memory, monkeypatch):
    """The metadata differ, and the manifest has to list those that are there."""
    written = ObjectFiles.write

    def write(self, name, content):
        written(self, name, content)
        if name == "manifest.json":
            monkeypatch.setattr(ObjectFiles, "write", written)
            self.write("execution.json", b"{}")  # of another run, which writes its manifest later, or never

    monkeypatch.setattr(ObjectFiles, "write", write)
    run_in(RUN)
    assert verify(RUN).ok


@pytest.mark.parametrize("other", [Problem.of(STUDY.replace(seed=1), TASK), Problem.of(STUDY, blobs(26))])
def test_of_two_studies_that_begin_at_once_one_is_refused(memory: Any, other: Problem) -> None:
    first, second = RunFolder(RUN), RunFolder(RUN)
    first.begin(other)
    with pytest.raises(StoreError, match="was just written by another run: choose another --out"):
        second.begin(Problem.of(STUDY, TASK))
    assert RunFolder(RUN).problem().run_id == other.run_id
    first.begin(other)  # the same again is no other run


def test_a_second_creator_of_a_batch_or_a_use_is_refused(files: Files) -> None:
    header = Header(2, "0" * 12, "0" * 64, "auto", 0.05)
    batches = [[LiveRow(name, 1, 1, "", 0)] for name in "ab"]
    first = write_stream(files, STREAM, header, None, batches[0])
    again = LiveRow("c", 1, 0, "", 1)
    second = write_stream(files, STREAM, header, first, [again])
    assert read_stream(files, STREAM) == second
    assert [row.id for row in second.rows] == ["a", "c"]
    for known, rows in ((None, batches[1]), (first, [replace(again, id="d")])):
        with pytest.raises(StoreError, match="was just written by somebody else"):
            write_stream(files, STREAM, header, known, rows)
    assert read_stream(files, STREAM) == second
    uses = [
        Use(("0" * 64,), "", "", f"{i:064x}", "a", 3, 0.05, f"2026-11-2{i}T13:00:00+00:00") for i in range(3)
    ]
    for known in range(3):  # the last one is there already
        append_use(files, uses[min(known, 1)], USES, uses[:known])
    assert read_uses(files) == (uses[0], uses[1])
    with pytest.raises(StoreError, match="was written by another comparison just now: compare again"):
        append_use(files, uses[2], USES, uses[:1])


def test_another_run_is_said_and_does_not_keep_one_from_writing(memory: Any) -> None:
    first, second = open_files(RUN).lock, open_files(RUN).lock
    assert not second.busy
    assert second.caution == ""
    first.acquire()
    assert first.busy
    assert first.caution == ""
    assert second.busy
    assert "both compute the same, and one of them in vain" in second.caution
    second.acquire()
    second.release()
    second.release()
    assert not open_files(RUN).lock.busy
    assert isinstance(first, module.Stamp)
    first._stamped -= 99.0
    first.check_held()
    assert open_files(RUN).lock.busy
    first.release()
    assert list_keys(memory) == []


def test_a_repeated_request_that_meets_its_own_write_has_written(memory: Any) -> None:
    writer = ObjectFiles(RepeatingBucket(open_files(RUN).bucket.address, memory))
    assert writer.create("a", b"1")
    assert not writer.create("a", b"2")


def test_a_store_that_ignores_conditions_is_refused(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, lambda at: CarelessBucket(at, memory))
    with pytest.raises(InputError, match="ignores If-None-Match"):
        run_in(RUN)
    assert list_keys(memory) == []


def test_others_objects_are_no_run(memory: Any) -> None:
    obstore.put(memory, "runs/x/holiday.jpg", b"")
    with pytest.raises(StoreError, match=r"has no study\.json"):
        RunFolder(RUN).identity()
    with pytest.raises(StoreError, match="choose another"):
        run_in(RUN)
    assert list_keys(memory) == ["runs/x/holiday.jpg"]
    assert RunFolder(RUN).suggest_folder() == ""
    assert open_files(RUN).inside(Path("a")) is None


def test_runs_in_a_bucket_are_listed(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (RUN, f"s3://{BUCKET}/other"):
        run_in(place)
    obstore.put(memory, "runs/x/inner/study.json", b"")  # part of a run folder
    for place in (f"s3://{BUCKET}", f"s3://{BUCKET}/runs", RUN):
        listed = {entry["folder"]: entry for entry in list_runs(place)}
        assert set(listed) - {f"s3://{BUCKET}/other"} == {RUN}
        assert listed[RUN]["state"] == "finished"
        assert datetime.fromisoformat(listed[RUN]["date"]).year >= 2026
    assert len(list_runs(f"s3://{BUCKET}")) == 2
    assert list_runs(f"s3://{BUCKET}/nothing") == []
    monkeypatch.setattr(RunFolder, "require", Mock(side_effect=UnreachableError("the cable was pulled")))
    (found,) = list_runs(RUN)
    assert (found["state"], found["problem"]) == ("unreadable", "the cable was pulled")


def test_every_command_reads_a_run_on_an_object_store(memory, ckcv, tmp_path):
    options = ("twonorm:40:0", "--C", 1, "--gamma", 0.1, "--k", 3, "--n-splits", 3, "--backend", "serial")
    open_files(RUN).lock.acquire()  # of a run that was killed
    code, out, messages = ckcv("run", *options, "--out", f"{RUN}/")
    assert code == 0, messages
    assert "has not said that it has ended: if it is running, both compute the same" in messages
    assert ckcv("run", *options, "--out", RUN)[2].startswith(f"{RUN} already holds the finished run")
    assert ckcv("status", RUN)[1] == out
    assert ckcv("predict", RUN, "twonorm:9:1", "--seed", "1")[0] == 0
    assert f"report: {RUN}/report.html" in ckcv("report", RUN)[2]
    assert ckcv("report", RUN, "--out", tmp_path / "page.html")[0] == ckcv("verify", RUN)[0] == 0
    assert json.loads(ckcv("list", f"s3://{BUCKET}/runs", "--json")[1])["runs"][0]["folder"] == RUN
    assert ckcv("compare", RUN, RUN, "--rows", "twonorm:40:2")[0] == 2
    code, _, messages = ckcv("evaluate", "twonorm:40:0", "--resampling", "kfold:3", "--out", f"{RUN}-scores")
    assert code == 0, messages
    assert [key for key in list_keys(memory) if not key.startswith("runs/x")] == []
