"""The run folder: whole or not at all, and nothing foreign is taken for ours."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import blobs
from pyarrow import parquet

from ckcv_ray import load_run, store, worker
from ckcv_ray.data import Table
from ckcv_ray.driver import run_table
from ckcv_ray.errors import InputError, RunError, StoreError
from ckcv_ray.store import RunFolder
from ckcv_ray.study import Execution, Stage, Study, Task, run_id
from ckcv_ray.study import Path as Key
from ckcv_ray.verify import verify
from ckcv_ray.worker import Failure

SERIAL = Execution("serial")


@pytest.fixture
def run(study: Study, table: Table, tmp_path: Path) -> Path:
    run_table(study, table, tmp_path / "run", SERIAL)
    return tmp_path / "run"


def test_the_log_gives_back_what_was_put_in(study: Study, table: Table, tmp_path: Path) -> None:
    folder, study = RunFolder(tmp_path / "run"), study.for_rows(table.n)
    folder.acquire()
    folder.begin(study, table, name := run_id(study, table.digest))
    outcome = worker.evaluate(
        [Task(Stage.SELECT, 3, 0, ((0, 3), (1, 2)))], study, worker.share(table.X, table.y, study)
    )
    failure = Failure(False, Key(1.0, 3, 1), 1, 3, "Traceback: a line\nand another")
    folder.append(outcome.records, [failure], study, name)
    identity = folder.identity()
    assert identity is not None
    assert identity.study == study
    ((records, failures),) = folder.cells(identity)
    assert np.array_equal(records, outcome.records)
    assert failures == [failure]
    assert folder.table(identity).digest == table.digest
    folder.release()
    assert not (tmp_path / "run" / ".lock").exists()


def test_results_come_back_in_every_bit(run: Path, study: Study, table: Table) -> None:
    kept, fresh = load_run(run), run_table(study, table, execution=SERIAL)
    assert kept.triples.equals(fresh.triples)
    for a, b in zip(kept.ensemble.members, fresh.ensemble.members, strict=True):
        assert np.array_equal(a.decision(table.X), b.decision(table.X))
    assert repr(kept).splitlines()[:4] == repr(fresh).splitlines()[:4]


def test_a_second_writer_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    first, second = RunFolder(tmp_path), RunFolder(tmp_path)
    first.acquire()
    with pytest.raises(StoreError, match="in use by another run"):
        second.acquire()
    first.release()
    second.acquire()
    second.release()


def test_a_lock_dies_with_its_owner(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from ckcv_ray.store import RunFolder\n"
        "RunFolder(Path(sys.argv[1])).acquire(); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", script, tmp_path]).returncode == 9
    folder = RunFolder(tmp_path)
    folder.acquire()
    folder.release()


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path)
    account = {"seconds": 1.0, "fits": 2, "cells": {}, "capped": 0}
    folder.write_execution(account)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.os, "fsync", full)
    with pytest.raises(RunError, match="No space"):
        folder.write_execution({})
    assert [file.name for file in tmp_path.iterdir()] == ["execution.json"]
    assert folder.execution() == account


def test_files_follow_the_umask(run: Path) -> None:
    mask = os.umask(0o022)
    os.umask(mask)
    assert (run / "triples.parquet").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_folder_of_something_else_is_left_alone(study: Study, table: Table, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(StoreError, match="not a run folder"):
        run_table(study, table, tmp_path, SERIAL)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_place_that_cannot_be_written_is_bad_input(study: Study, table: Table, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is not a folder"):
        run_table(study, table, tmp_path / "file" / "run", SERIAL)


def test_a_schema_from_the_future_is_refused(run: Path) -> None:
    content = json.loads((run / "study.json").read_text())
    (run / "study.json").write_text(json.dumps(content | {"schema": 99}))
    with pytest.raises(StoreError, match="schema 99"):
        load_run(run)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2}', "\x00\xff", '{"schema": 2, "study": 3}'])
def test_a_damaged_study_is_named(run: Path, text: str) -> None:
    (run / "study.json").write_text(text)
    with pytest.raises(StoreError, match=r"study\.json"):
        load_run(run)


@pytest.mark.parametrize("name", ["triples.parquet", "data.parquet", "ensemble/models.parquet"])
def test_a_parquet_of_another_run_is_refused(run: Path, name: str) -> None:
    table = parquet.read_table(run / name)
    metadata = {**(table.schema.metadata or {}), b"run_id": b"ffffffffffff"}
    parquet.write_table(table.replace_schema_metadata(metadata), run / name)
    with pytest.raises(StoreError, match="does not belong to run"):
        load_run(run)


def test_other_data_under_the_same_name_are_refused(run: Path) -> None:
    table = parquet.read_table(run / "data.parquet")
    changed = table.set_column(0, "x0", pa.array(table["x0"].to_numpy() + 1))
    parquet.write_table(changed.replace_schema_metadata(table.schema.metadata), run / "data.parquet")
    with pytest.raises(StoreError, match="digest differs"):
        load_run(run)


def rewrite(run: Path, name: str, change: object) -> None:
    """Change a table of a run and make the manifest agree, as a careful forger would."""
    table = parquet.read_table(run / name)
    parquet.write_table(change(table).replace_schema_metadata(table.schema.metadata), run / name)
    folder = RunFolder(run)
    digests = {file: folder.sha256(file) for file in folder.files()}
    (run / "manifest.json").write_text(json.dumps(digests, indent=2) + "\n")


def column(name: str, values: object) -> object:
    def change(table: pa.Table) -> pa.Table:
        position = table.schema.get_field_index(name)
        kind = table.schema.field(name).type
        return table.set_column(position, name, pa.array(values(table[name].to_pylist()), kind))

    return change


MODELS, TRIPLES = "ensemble/models.parquet", "triples.parquet"
FORGERIES = {
    "lower counts": (MODELS, "errors_negative", lambda v: [0] * len(v), "errors on its"),
    "another offset": (MODELS, "offset", lambda v: [x + 9 for x in v], "errors on its"),
    "another C": (MODELS, "C", lambda v: [99.0] * len(v), "the winner is"),
    "a scaling that saw more": (MODELS, "centre", lambda v: [[x + 0.1 for x in c] for c in v], "its scaling"),
    "foreign support": (MODELS, "support", lambda v: [list(range(len(s))) for s in v], "its training"),
    "unbalanced duals": (MODELS, "dual_coef", lambda v: [[abs(x) for x in c] for c in v], "sum to zero"),
    "a better bound": (TRIPLES, "l_ms", lambda v: [x and x / 2 for x in v], "the log of cells gives"),
    "another state": (TRIPLES, "state", lambda v: ["beaten"] * len(v), "the log of cells gives"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_verify_sees_through_a_forged_manifest(run: Path, name: str) -> None:
    file, field, values, told = FORGERIES[name]
    assert verify(run) == []
    rewrite(run, file, column(field, values))
    assert told in "\n".join(verify(run))


def test_verify_recomputes_the_certificate(run: Path) -> None:
    content = json.loads((run / "certificate.json").read_text())
    (run / "certificate.json").write_text(json.dumps(content | {"l_ee": content["l_ee"] / 2}))
    told = "\n".join(verify(run))
    assert "certificate.json: l_ee" in told
    assert "SHA-256 differs" in told


def test_verify_wants_a_finished_run(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no finished run"):
        verify(tmp_path)


def test_records_lost_from_the_log_are_computed_again(tmp_path: Path, study: Study) -> None:
    """A run taken up again after its log lost a part ends as if it had not."""
    table = blobs(40, seed=5)
    run_table(study, table, tmp_path / "whole", SERIAL)
    run_table(study, table, tmp_path / "torn", SERIAL)
    for name in ("manifest.json", "certificate.json", "triples.parquet", "cells/part-000000.parquet"):
        (tmp_path / "torn" / name).unlink()
    run_table(study, table, tmp_path / "torn", SERIAL)
    for name in ("triples.parquet", "certificate.json", "ensemble/models.parquet"):
        assert (tmp_path / "torn" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


# Every file of a finished run

DAMAGE = {
    "flipped": lambda content, at: content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :],
    "cut short": lambda content, at: content[:at],
    "longer": lambda content, at: content + b" ",
    "blank for blank": lambda content, at: content.replace(b" ", b"\t", 1),
    "deleted": lambda content, at: None,
}


def damage(file: Path, how: str, at: int) -> bool:
    """Do harm to a file; False where there is nothing to change in this way."""
    content = file.read_bytes()
    changed = DAMAGE[how](content, at % len(content))
    if changed is None:
        file.unlink()
    elif changed != content:
        file.write_bytes(changed)
    return changed != content


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    run_table(MENDED, MENDED_TABLE, out, SERIAL)
    return out


MENDED = Study(C=(0.1, 1.0), gamma=(0.1, 1.0), k=(3, 4), n_splits=3)
MENDED_TABLE = blobs(24)
RESULTS = ("study.json", "data.parquet", "triples.parquet", "certificate.json", "ensemble/models.parquet")
NAMES = (*RESULTS, "ensemble/model-00000.pkl", "cells/part-000000.parquet", "execution.json", "manifest.json")


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("name", NAMES)
def test_any_harm_to_any_file_is_seen_named_and_mended(
    whole: Path, tmp_path: Path, name: str, how: str
) -> None:
    for i, at in enumerate(np.random.default_rng(len(name)).integers(1 << 30, size=3).tolist()):
        out = shutil.copytree(whole, tmp_path / str(i))
        if not damage(out / name, how, at):
            continue
        if (name, how) != ("manifest.json", "deleted"):  # which is then an unfinished run
            assert verify(out)
        result = run_table(MENDED, MENDED_TABLE, out, SERIAL)
        assert name in result.execution["damaged"] or name == "manifest.json"  # it may speak of another
        assert verify(out) == []
        for other in RESULTS:
            assert (out / other).read_bytes() == (whole / other).read_bytes()
        assert not list(out.rglob(".*"))


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("name", ["study.json", "data.parquet", "cells/part-000000.parquet"])
def test_an_unfinished_run_is_mended_too(whole: Path, tmp_path: Path, name: str, how: str) -> None:
    out = shutil.copytree(whole, tmp_path / "run")
    (out / "manifest.json").unlink()
    if damage(out / name, how, 1 << 10):
        run_table(MENDED, MENDED_TABLE, out, SERIAL)
    assert verify(out) == []
    for other in RESULTS:
        assert (out / other).read_bytes() == (whole / other).read_bytes()


def test_a_damaged_folder_of_another_study_is_not_mended(whole: Path, tmp_path: Path) -> None:
    out = shutil.copytree(whole, tmp_path / "run")
    (out / "study.json").write_text("{")
    with pytest.raises(StoreError, match=r"study\.json is damaged"):
        run_table(replace(MENDED, seed=1), MENDED_TABLE, out, SERIAL)
    assert (out / "study.json").read_text() == "{"


@pytest.mark.parametrize("content", ["[" * 200_000, '{"a":' * 200_000, "1" * 5000])
def test_a_hostile_study_file_is_a_damaged_one(whole: Path, tmp_path: Path, content: str) -> None:
    out = shutil.copytree(whole, tmp_path / "run")
    (out / "study.json").write_text(content)
    with pytest.raises(StoreError, match=r"study\.json is damaged"):
        load_run(out)


def test_a_huge_study_file_is_not_read(whole: Path, tmp_path: Path) -> None:
    out = shutil.copytree(whole, tmp_path / "run")
    os.truncate(out / "study.json", 8 << 30)  # of holes: it takes no room
    with pytest.raises(StoreError, match="more than 64 MiB"):
        load_run(out)


def test_verify_sees_a_changed_report(whole: Path, tmp_path: Path) -> None:
    out = shutil.copytree(whole, tmp_path / "run")
    RunFolder(out).write_report("<p>12 %</p>\n")
    assert verify(out) == []
    page = (out / "report.html").read_bytes()
    for at in range(len(page)):
        (out / "report.html").write_bytes(DAMAGE["flipped"](page, at))
        assert not RunFolder(out).report_whole()
    assert verify(out) == [
        "report.html is not as ckcv report wrote it: its last line does not name its SHA-256"
    ]
