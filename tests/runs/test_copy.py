"""Runs copied between a disk and an object store, and every command on a run that is on one."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from forgery import SERIAL, STUDY, TASK
from stores import BUCKET, RUN, list_keys, read_all, results

from ckcv_ray import load_run
from ckcv_ray.cli.folders import copy_run, list_runs
from ckcv_ray.cli.options import check_out
from ckcv_ray.errors import InputError, StoreError, UnreachableError
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.object_files import ObjectFiles
from ckcv_ray.storage.pages import write_report
from ckcv_ray.storage.places import locate, open_files
from ckcv_ray.tables.objects import Bucket

obstore = pytest.importorskip("obstore")
Ran = tuple[int, str, str]


def test_a_copy_is_the_run_and_comes_back(memory: Any, run: Path, tmp_path: Path) -> None:
    copied = copy_run(run, RUN)
    assert read_all(RUN) == read_all(run)
    assert copied == (load_run(run).run_id, RUN, len(read_all(run)), sum(map(len, read_all(run).values())))
    assert verify(RUN).ok
    copy_run(RUN, tmp_path / "back")
    assert read_all(tmp_path / "back") == read_all(run)
    assert not (tmp_path / "back" / ".lock").exists()


def test_a_finished_run_and_an_unfinished_one_are_copied(memory: Any, tmp_path: Path) -> None:
    run_job(Job(STUDY, TASK, tmp_path / "run"), SERIAL)
    copy_run(tmp_path / "run", RUN)
    assert verify(RUN).ok
    RunFolder(tmp_path / "run").reopen()
    copy_run(tmp_path / "run", RUN)
    assert not RunFolder(RUN).finished
    run_job(Job(STUDY, TASK, RUN), SERIAL)
    assert results(RUN) == results(tmp_path / "run")


def test_what_is_only_in_an_earlier_copy_is_removed(memory: Any, run: Path) -> None:
    copy_run(run, RUN)
    (run / "log" / "part-000000.parquet").rename(run / "log" / "part-000001.parquet")
    RunFolder(run).reopen()
    copy_run(run, RUN)
    assert read_all(RUN) == read_all(run)


def test_a_copy_that_is_cut_off_is_not_finished_and_is_completed(
    memory: Any, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: ObjectFiles, name: str, content: bytes) -> None:
        raise UnreachableError("the cable was pulled")

    with monkeypatch.context() as patch:
        patch.setattr(ObjectFiles, "write", fail)
        with pytest.raises(UnreachableError):
            copy_run(run, RUN)
    assert not RunFolder(RUN).finished
    copy_run(run, RUN)
    assert read_all(RUN) == read_all(run)


def test_a_run_that_ends_while_it_is_copied_is_copied_as_one_that_goes_on(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its manifest may speak of files that were not there when the copy began."""
    manifest = (run / "manifest.json").read_bytes()
    RunFolder(run).reopen()
    listed = RunFolder.list_copied

    def list_before_it_ends(folder: RunFolder) -> list[str]:
        names = listed(folder)
        (run / "manifest.json").write_bytes(manifest)
        return [name for name in names if name != "certificate.json"]

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "list_copied", list_before_it_ends)
        copy_run(run, tmp_path / "copy")
    assert not RunFolder(tmp_path / "copy").finished
    copy_run(run, tmp_path / "copy")
    assert read_all(tmp_path / "copy") == read_all(run)


def test_what_differs_from_its_manifest_is_not_copied(memory: Any, run: Path) -> None:
    file = run / "data.parquet"
    file.write_bytes(file.read_bytes() + b" ")
    with pytest.raises(
        StoreError, match=r"data\.parquet does not match the manifest: the copy is not finished"
    ):
        copy_run(run, RUN)
    assert not RunFolder(RUN).finished


def test_what_arrives_otherwise_is_said(memory: Any, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put = Bucket.put

    def spoil(self: Bucket, name: str, content: bytes) -> None:
        put(self, name, b"0" * len(content) if name.startswith("files/") else content)

    monkeypatch.setattr(Bucket, "put", spoil)
    with pytest.raises(StoreError, match="is not what was copied: copy the run again"):
        copy_run(run, RUN)
    assert not RunFolder(RUN).finished


def test_what_cannot_be_copied_is_refused(memory: Any, run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is the run folder itself"):
        copy_run(run, run)
    with pytest.raises(StoreError, match="holds no run"):
        copy_run(tmp_path / "none", RUN)
    run_job(Job(STUDY.replace(seed=9), TASK, RUN), SERIAL)
    with pytest.raises(StoreError, match="holds run"):
        copy_run(run, RUN)
    obstore.put(memory, "other/a.jpg", b"")
    with pytest.raises(StoreError, match=r"has no study\.json"):
        copy_run(run, f"s3://{BUCKET}/other")
    files = open_files(RUN)
    files.lock.acquire()
    with pytest.raises(StoreError, match="is being written by a run"):
        copy_run(RUN, tmp_path / "copy")
    files.lock.release()
    assert not (tmp_path / "copy").exists()


def test_a_folder_on_a_disk_is_cleaned(run: Path) -> None:
    before = read_all(run)
    left = (".study.json-0123.tmp", "log/.part-000003.parquet-4567.tmp")
    for name in left:
        (run / name).write_bytes(b"half a")
    assert RunFolder(run).clean() == list(left)
    assert read_all(run) == before
    assert RunFolder(run).clean() == []


def test_runs_in_a_bucket_are_listed(memory: Any) -> None:
    run_job(Job(STUDY, TASK, RUN), SERIAL)
    run_job(Job(STUDY, TASK, f"s3://{BUCKET}/other"), SERIAL)
    for place in (f"s3://{BUCKET}", f"s3://{BUCKET}/runs", RUN):
        listed = {entry.folder: entry for entry in list_runs(place)}
        assert set(listed) - {f"s3://{BUCKET}/other"} == {RUN}
        assert listed[RUN].state == "finished"
        assert datetime.fromisoformat(listed[RUN].date).year >= 2026
    assert len(list_runs(f"s3://{BUCKET}")) == 2
    assert list_runs(f"s3://{BUCKET}/nothing") == []


def test_a_store_that_does_not_answer_is_listed_as_unreadable(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_job(Job(STUDY, TASK, RUN), SERIAL)

    def fail(self: RunFolder, kind: str = "") -> None:
        raise UnreachableError("the cable was pulled")

    monkeypatch.setattr(RunFolder, "require", fail)
    (found,) = list_runs(RUN)
    assert (found.state, found.problem) == ("unreadable", "the cable was pulled")


def test_every_command_reads_a_run_on_an_object_store(
    memory: Any, ckcv: Callable[..., Ran], tmp_path: Path
) -> None:
    options = ("twonorm:40:0", "--C", 1, "--gamma", 0.1, "--k", 3, "--n-splits", 3, "--backend", "serial")
    code, out, messages = ckcv("run", *options, "--out", f"{RUN}/")
    assert code == 0, messages
    assert f"run folder: {RUN}\n" in messages
    assert ckcv("run", *options, "--out", RUN)[2].startswith(f"{RUN} already holds the finished run")
    assert ckcv("status", RUN)[1] == out
    for words in (
        ("verify", RUN),
        ("clean", RUN),
        ("copy", RUN, tmp_path / "copy"),
        ("verify", tmp_path / "copy"),
    ):
        code, out, messages = ckcv(*words)
        assert code == 0, messages
    words = ("predict", tmp_path / "copy", "twonorm:9:1")
    assert ckcv(*words, "--seed", "1")[1] == ckcv("predict", RUN, *words[2:], "--seed", "1")[1] != ""
    code, _, messages = ckcv("report", RUN)
    assert f"report: {RUN}/report.html" in messages
    assert open_files(RUN).exists("report.html")
    assert ckcv("verify", RUN)[0] == 0
    assert ckcv("report", RUN, "--out", tmp_path / "page.html")[0] == 0
    assert (tmp_path / "page.html").exists()
    assert json.loads(ckcv("list", f"s3://{BUCKET}/runs", "--json")[1])["runs"][0]["folder"] == RUN
    removed = json.loads(ckcv("clean", RUN, "--json")[1])
    assert removed == {"folder": RUN, "removed": []}
    assert ckcv("compare", RUN, RUN, "--rows", "twonorm:40:2")[0] == 2
    code, _, messages = ckcv("evaluate", "twonorm:40:0", "--resampling", "kfold:3", "--out", f"{RUN}-scores")
    assert code == 0, messages
    assert [key for key in list_keys(memory) if not key.startswith("runs/x")] == []


def test_commands_refuse_bad_addresses(ckcv: Callable[..., Ran], memory: Any, tmp_path: Path) -> None:
    for out, words in (
        ("ftp://a/b", "the scheme is not known"),
        ("s3://u:p@bucket/x", "the address has a user"),
    ):
        code, _, messages = ckcv("run", "twonorm:40:0", "--out", out)
        assert code == 2
        assert words in messages
        assert "u:p" not in messages
    with pytest.raises(InputError, match="an address such as s3://bucket/runs/x"):
        check_out(str(Path("s3://bucket/x")))
    assert locate("out", RUN) == RUN


def test_a_report_of_a_run_that_is_written_is_refused(memory: Any) -> None:
    files = open_files(RUN)
    files.lock.acquire()
    with pytest.raises(StoreError, match="in use"):
        write_report(open_files(RUN), "<p>")
    files.lock.release()
