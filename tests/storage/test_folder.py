"""The run folder and its log: nothing foreign is taken for ours, whatever is damaged is named and repaired,
what was put in comes back, and positions outside the study do not.
"""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
from conftest import snapshot
from forgery import (
    ACCOUNT,
    DAMAGE,
    DATA,
    LOG,
    MODELS,
    NAMES,
    PROBLEM,
    SERIAL,
    STUDY,
    TASK,
    damage,
    find,
    first,
    put,
    reseal,
    rewrite,
    run_in,
)
from pyarrow import parquet
from stores import results

from ckcv_ray import load_run
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.evaluate import evaluate, share
from ckcv_ray.errors import InputError, RunError, StoreError
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.records.record import Failure, Records
from ckcv_ray.runs.finished import read_result
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage import execution, folder
from ckcv_ray.storage import log as module
from ckcv_ray.storage.execution import VARIABLES, find_changes, read_environment
from ckcv_ray.storage.files import LocalFiles, read_table
from ckcv_ray.storage.folder import RunFolder, read_pickles
from ckcv_ray.storage.log import Log, name_part
from ckcv_ray.storage.pages import report_intact, write_report
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Study
from ckcv_ray.tables.task import Task


def test_files_follow_the_umask(run: Path) -> None:
    mask = os.umask(0o022)
    os.umask(mask)
    assert {find(run, name).stat().st_mode & 0o777 for name in NAMES} == {0o666 & ~mask}


@pytest.mark.parametrize("name", [DATA, f"log/part-{'0' * 64}.parquet", MODELS])
def test_a_table_that_is_called_as_ours_is_left_alone(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    parquet.write_table(TASK.columns(), file)
    before = snapshot(tmp_path)
    with pytest.raises(StoreError, match=r"not a run folder.*choose another --out"):
        run_in(tmp_path)
    assert snapshot(tmp_path) == before


def test_a_folder_of_runs_is_no_run(run: Path) -> None:
    (run / "ensemble" / ".models.parquet-0.tmp").touch()
    before = snapshot(run)
    with pytest.raises(StoreError, match="not a run folder"):
        run_in(run.parent)
    RunFolder(run.parent / "another").acquire()
    assert snapshot(run) == before


def test_a_run_killed_before_it_said_what_it_is_about_goes_on(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.acquire()
    folder.begin(PROBLEM)
    (tmp_path / "run" / "study.json").unlink()
    (tmp_path / "run" / "log" / f".part-{'0' * 64}.parquet-x.tmp").write_text("half")
    folder.release()
    run_in(tmp_path / "run")
    assert not list((tmp_path / "run").rglob(".*"))


def test_a_refused_run_leaves_no_trace(tmp_path: Path) -> None:
    holder = RunFolder(tmp_path / "run")
    holder.acquire()
    before = snapshot(tmp_path)
    with pytest.raises(StoreError, match="in use"):
        run_in(tmp_path / "run")
    assert snapshot(tmp_path) == before
    holder.release()


@pytest.mark.parametrize(("code", "kind"), [(errno.EACCES, InputError), (errno.ENOSPC, RunError)])
def test_a_folder_that_cannot_be_prepared_is_not_written(tmp_path, monkeypatch, code, kind):
    out = tmp_path / "run"
    out.mkdir()
    (out / "log").touch()
    with pytest.raises(InputError, match=f"^cannot write to '{out}': File exists$"):
        RunFolder(out).acquire()
    (out / "log").unlink()
    (out / f".study.json-{'0' * 16}.tmp").touch()
    monkeypatch.setattr(Path, "unlink", Mock(side_effect=OSError(code, os.strerror(code))))
    with pytest.raises(kind, match=f"^cannot write to '{out}': {os.strerror(code)}$"):
        RunFolder(out).acquire()
    assert not RunFolder(out).files.lock.busy


def test_categories_that_a_file_cannot_name_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("ckcv_ray.storage.folder.MAX_SCHEMA_BYTES", 1 << 20)
    text = ["a" * 300_000, "b" * 300_000, "c" * 600_000, "d"] * 10
    task = Task.from_table(pa.table({"x": text, "y": ["yes", "no"] * 20}))
    with pytest.raises(InputError, match="the categories of the columns take 1 MiB: at most"):
        RunFolder(tmp_path / "run").begin(Problem.of(Study.of(learner="tree"), task))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("name", NAMES)
def test_any_damage_to_any_file_is_seen_named_and_mended(whole, tmp_path, name, how):
    places = 2 if how == "flipped" else 1  # the others are the same wherever they are
    for i, at in enumerate(np.random.default_rng(len(name)).integers(1 << 30, size=places).tolist()):
        out = shutil.copytree(whole, tmp_path / str(i))
        file = find(out, name)
        if not damage(file, how, at):
            continue
        if (name, how) != ("manifest.json", "deleted"):  # which is then an unfinished run
            assert verify(out).differences
            says = f"{file.name} is (damaged|missing)|a damaged one|repairs it|does not belong to run"
            with pytest.raises(StoreError, match=says):
                load_run(out)
        result = run_in(out)
        named = file.relative_to(out).as_posix() in result.execution["damaged"]
        assert named or name == "manifest.json"  # it may speak of another
        assert verify(out).differences == []
        assert results(out) == results(whole)
        assert not list(out.rglob(".*"))


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("name", ["study.json", DATA, LOG])
def test_an_unfinished_run_is_mended_too(whole: Path, run: Path, name: str, how: str) -> None:
    (run / "manifest.json").unlink()
    damage(find(run, name), how, 1 << 10)
    run_in(run)
    assert verify(run).differences == []
    assert results(run) == results(whole)


def test_a_damaged_folder_of_another_study_is_not_mended(run: Path) -> None:
    (run / "study.json").write_text("{")
    with pytest.raises(StoreError, match=r"study\.json is damaged"):
        run_job(Job(STUDY.replace(seed=1), TASK, run), SERIAL)
    assert (run / "study.json").read_text() == "{"


def test_a_damaged_account_or_log_of_an_unfinished_run_is_set_aside(whole: Path, run: Path) -> None:
    rewrite(run, LOG, first("split", -1))
    part = f"log/{find(run, LOG).name}"
    (run / ACCOUNT).write_text(json.dumps(put(fits="many")(json.loads((run / ACCOUNT).read_text()))))
    (run / "manifest.json").unlink()
    assert run_in(run).execution["damaged"] == [ACCOUNT, part]
    assert not (run / part).exists()
    assert results(run) == results(whole)


def test_a_finished_run_is_read_once_and_nothing_is_computed(run, monkeypatch):
    """Each file is hashed once; the log is not played back, and what is known of the data not read."""
    before, hashed, tables = snapshot(run), Mock(wraps=RunFolder(run).sha256), Mock(wraps=read_table)
    monkeypatch.setattr(RunFolder, "sha256", lambda self, name: hashed(name))
    monkeypatch.setattr(folder, "read_table", tables)
    monkeypatch.setattr("ckcv_ray.engine.backend.SerialBackend.start", None)
    assert run_in(run).run_id == PROBLEM.run_id
    assert sorted(call.args[0] for call in hashed.mock_calls) == sorted(RunFolder(run).manifest())
    assert [call.args[1] for call in tables.mock_calls] == ["candidates.parquet", MODELS]
    assert snapshot(run) == before


def test_verify_sees_a_changed_report(run: Path) -> None:
    write_report(RunFolder(run).files, "<p>12 %</p>\n")
    assert verify(run).differences == []
    page = (run / "report.html").read_bytes()
    for at in range(len(page)):
        (run / "report.html").write_bytes(DAMAGE["flipped"](page, at))
        assert not report_intact(RunFolder(run).files)
    (found,) = verify(run).differences
    assert found == "report.html is not as ckcv report wrote it: its last line does not give its SHA-256"


def test_a_report_takes_no_other_place_in_the_folder(run: Path, tmp_path: Path) -> None:
    folder = RunFolder(run)
    for name in ("data.parquet", "page.html", "log/page.html"):
        with pytest.raises(InputError, match=r"is in the run folder, where it can only be report\.html"):
            write_report(folder.files, "<p>", run / name)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="it is not a file"):
        write_report(folder.files, "<p>", tmp_path / "pipe")
    assert write_report(folder.files, "<p>", tmp_path / "page.html") == str(tmp_path / "page.html")
    (run / "report.html").symlink_to("report.html")
    with pytest.raises(InputError, match="symbolic links"):
        write_report(folder.files, "<p>")
    (run / "report.html").unlink()
    write_report(folder.files, "<p>")
    assert report_intact(folder.files)
    assert verify(run).differences == []


def test_models_of_an_earlier_winner_do_not_stay(run: Path) -> None:
    stray = run / "ensemble" / "model-00099.pkl"
    stray.write_bytes((run / "ensemble" / "model-00000.pkl").read_bytes())
    folder = RunFolder(run)
    finished = read_result(folder, PROBLEM)
    reseal(run)
    assert len(verify(run).differences) == 1
    assert len(load_run(run, allow_pickle=True).ensemble.members) == len(finished.models.best.members)
    folder.reopen()
    run_in(run)
    assert not stray.exists()
    assert verify(run).differences == []


def test_pickles_are_opened_with_the_right_digest_alone(run: Path) -> None:
    files, ensemble = LocalFiles(run), load_run(run).ensemble
    names, X = [f"ensemble/model-{i:05d}.pkl" for i in range(3)], PROBLEM.task.X
    digests = {name: hashlib.sha256((run / name).read_bytes()).hexdigest() for name in names}
    opened = read_pickles(files, PROBLEM, ensemble, digests)
    assert np.array_equal(opened.predict(X)[1], ensemble.predict(X)[1])
    for wrong in ({}, digests | {names[1]: digests[names[0]]}):
        with pytest.raises(StoreError, match="does not match the manifest: it is not opened"):
            read_pickles(files, PROBLEM, ensemble, wrong)
    with (run / names[0]).open("ab") as stream:
        stream.truncate(1 << 20)
    with pytest.raises(StoreError, match="is damaged: it is larger than"):
        read_pickles(files, PROBLEM, ensemble, digests)


LEARNER = GaussianSVM()


def test_every_part_that_can_change_bits_is_compared_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "_common", execution._common.__wrapped__)
    monkeypatch.setenv(VARIABLES[0], "generic")
    here = read_environment(LEARNER)
    assert here[f"variables.{VARIABLES[0]}"] == "generic"
    others = {"blas.scipy": "mkl", "learner.machine_code": "a", "packages.numba": "0.1", "processor": "b"}
    messages = [sentence.partition(",")[0] for sentence in find_changes(here | others, here)]
    assert messages == [f"{name} was {other}" for name, other in others.items()]
    assert find_changes(here, read_environment(LEARNER)) == []


FAILURE = Failure(False, 1, 2, 0, 0, 2, "Traceback: fire\nand smoke")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """The log of a locked folder."""
    folder = RunFolder(tmp_path / "log of a run")
    folder.acquire()
    yield Log(folder.files, PROBLEM)
    folder.release()


@pytest.fixture(scope="module")
def records() -> Records:
    units = [Unit(stage, j, 1, ((0, 2), (1, 1))) for stage in list(Stage)[:2] for j in range(2)]
    return evaluate(share(PROBLEM), units).records


def everything(log: Log) -> tuple[Records, list[Failure]]:
    found = list(log.read())
    return np.concatenate([r for r, _ in found]), [failure for _, failed in found for failure in failed]


def test_it_gives_back_what_was_put_in_and_the_same_again_is_the_same_part(log, records):
    other = FAILURE._replace(estimate=True, size=0, path=1, first=1)
    log.append(records, [FAILURE, other])
    ((found, failures),) = log.read()
    assert np.array_equal(found, records)
    assert failures == [FAILURE, other]
    for _ in range(2):
        log.append(records[:3], [])
    log.append(records[:0], [FAILURE])
    assert len(log.parts()) == 3
    found, failures = everything(log)
    assert (len(found), len(failures)) == (len(records) + 3, 3)
    assert np.array_equal(np.unique(found), np.sort(records))


def test_a_long_log_is_written_in_parts_that_are_read(run, records, monkeypatch):
    monkeypatch.setattr(module, "MAX_PART_ROWS", len(records) // 2)
    log = Log(LocalFiles(run), PROBLEM)
    before, (old, _) = log.parts(), everything(log)
    log.append(records, [FAILURE])
    assert len(log.parts()) == len(before) + 3
    found, failures = everything(log)
    assert len(found) == len(old) + len(records)
    assert failures == [FAILURE]


@pytest.mark.parametrize("step", [1, 5])
def test_no_flipped_bit_ends_the_process_or_changes_a_record(log: Log, records: Records, step: int) -> None:
    """Arrow 26 aborts the process if it is asked for a column's metadata that are damaged."""
    log.append(records, [FAILURE])
    known = {record.tobytes() for record in records}
    part = log.files.path(log.parts()[0])
    content = part.read_bytes()
    for byte in range(0, len(content), step):
        flipped = bytearray(content)
        flipped[byte] ^= 1 << byte % 8
        part.unlink()
        part = part.with_name(Path(name_part(sha256(flipped).hexdigest())).name)  # as a forger would
        part.write_bytes(flipped)
        with suppress(StoreError):
            assert {record.tobytes() for record in everything(log)[0]} <= known


GROUPS, MORE = np.repeat(np.arange(12), 2), "more errors than rows"
TOTALS = [  # of evaluations of groups or not, and what is said of them
    *((GROUPS, (*errors, 0), MORE) for errors in ((2**63 - 1, 1), (2**62, 2**62))),
    (GROUPS, (0, 0, 1 << 62), "exceeds the number of groups"),
    (None, (0, 9), MORE),
    (None, (0, 6), "more errors on a class than rows of it"),
]


@pytest.mark.parametrize(("groups", "totals", "message"), TOTALS)
def test_totals_that_no_evaluation_has_are_refused(tmp_path, groups, totals, message):
    """With a sum of shares counts have 64 bits, of which two may sum to a number below 0."""
    study = STUDY if groups is not None else STUDY.replace(criterion="balanced")
    problem = Problem.of(study, Task.of(TASK.X, TASK.y, groups=groups))
    log = Log(LocalFiles(tmp_path), problem)
    (tmp_path / "log").mkdir()
    records = evaluate(share(problem), [Unit(Stage.SELECT, 0, 0, ((0, 2),))]).records
    records["totals"][0] = totals
    log.append(records, [])
    with pytest.raises(StoreError, match=message):
        list(log.read())


def test_nothing_is_deleted_in_a_folder_that_is_no_longer_held(log: Log, records: Records) -> None:
    log.append(records, [])
    (log.files.root / ".lock").unlink()
    (part,) = log.parts()
    log.files.path(part).write_bytes(b"damaged")
    for write in (lambda: list(log.read([])), lambda: log.append(records[:2], [])):
        with pytest.raises(RunError, match="no longer the folder this run locked"):
            write()
    assert log.parts() == [part]
