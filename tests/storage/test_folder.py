"""The run folder: whole or not at all, and nothing foreign is taken for ours."""

import json
import os
import re
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

from ckcv_ray import load_run
from ckcv_ray.data.task import Table
from ckcv_ray.engine import evaluate as worker
from ckcv_ray.engine.aggregator import Aggregator
from ckcv_ray.errors import InputError, RunError, StoreError
from ckcv_ray.runs.load import replay
from ckcv_ray.runs.run import run_table
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage import folder as store
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.log import Failure
from ckcv_ray.study import Execution, Stage, Study, Task, run_id
from ckcv_ray.study import Path as Key

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
    ((records, failures),) = folder.cells(identity, study.sizes(table.n))
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
        "import os, sys; from pathlib import Path; from ckcv_ray.storage.folder import RunFolder\n"
        "RunFolder(Path(sys.argv[1])).acquire(); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", script, tmp_path]).returncode == 9
    folder = RunFolder(tmp_path)
    folder.acquire()
    folder.release()


def test_a_write_that_fails_leaves_nothing(
    study: Study, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, account = RunFolder(tmp_path), Aggregator(study, table).account()
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


@pytest.mark.parametrize("name", ["data.parquet", "cells/part-000000.parquet", "ensemble/models.parquet"])
def test_a_table_that_is_called_as_ours_is_left_alone(
    study: Study, table: Table, tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    parquet.write_table(table.columns(), file)
    before = file.read_bytes()
    with pytest.raises(StoreError, match=r"not a run folder.*choose another --out"):
        run_table(study, table, tmp_path, SERIAL)
    assert file.read_bytes() == before
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == [file]


def test_a_folder_of_runs_is_no_run(run: Path, study: Study, table: Table) -> None:
    writing = run / "ensemble" / ".models.parquet-0.tmp"
    writing.touch()
    before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    with pytest.raises(StoreError, match="not a run folder"):
        run_table(study, table, run.parent, SERIAL)
    RunFolder(run.parent / "another").acquire()
    assert {file: file.read_bytes() for file in run.rglob("*") if file.is_file()} == before


def test_a_run_killed_as_it_began_goes_on(study: Study, table: Table, tmp_path: Path, run: Path) -> None:
    (tmp_path / "begun").mkdir()
    shutil.copy(run / "data.parquet", tmp_path / "begun")
    (tmp_path / "begun" / ".study.json-0.tmp").touch()
    result = run_table(study, table, tmp_path / "begun", SERIAL)
    assert result.certificate == load_run(run).certificate
    assert verify(tmp_path / "begun").differences == []


def test_models_of_an_earlier_winner_do_not_stay(run: Path, study: Study, table: Table) -> None:
    stray = run / "ensemble" / "model-00099.pkl"
    stray.write_bytes((run / "ensemble" / "model-00000.pkl").read_bytes())
    folder = RunFolder(run)
    identity = folder.require()
    finished = folder.results(identity, folder.table(identity))
    folder.write_end(finished.certificate, folder.execution())  # as earlier versions did
    assert verify(run).differences == ["ensemble/model-00099.pkl is the pickle of no model in models.parquet"]
    assert len(load_run(run, allow_pickle=True).ensemble.members) == len(finished.ensemble.members)
    folder.reopen()
    run_table(study, table, run, SERIAL)
    assert not stray.exists()
    assert verify(run).differences == []


def test_parts_that_are_joined_while_they_are_read_are_read_joined(run: Path, table: Table) -> None:
    (part,) = (run / "cells").iterdir()
    shutil.copy(part, run / "cells" / "part-000001.parquet")
    folder = RunFolder(run)
    identity = folder.require()
    reading = folder.cells(identity, identity.study.sizes(table.n))
    first, _ = next(reading)
    (run / "cells" / "part-000001.parquet").rename(run / "cells" / "part-000002.parquet")
    part.unlink()
    (rest,) = (records for records, _ in reading)
    assert np.array_equal(first, rest)


def test_a_folder_is_busy_as_long_as_its_owner_lives(tmp_path: Path) -> None:
    one, other = RunFolder(tmp_path), RunFolder(tmp_path)
    assert not other.busy
    one.acquire()
    assert one.busy
    assert other.busy
    one.release()
    assert not other.busy
    (tmp_path / ".lock").touch()  # of a dead one
    assert not other.busy


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
    reseal(run)


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
    "another state": (TRIPLES, "state", lambda v: [s.replace("beaten", "tied") for s in v], "the log of"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_verify_sees_through_a_forged_manifest(run: Path, name: str) -> None:
    file, field, values, told = FORGERIES[name]
    assert verify(run).differences == []
    rewrite(run, file, column(field, values))
    assert told in "\n".join(verify(run).differences)


def test_verify_recomputes_the_certificate(run: Path) -> None:
    content = json.loads((run / "certificate.json").read_text())
    (run / "certificate.json").write_text(json.dumps(content | {"l_ee": content["l_ee"] / 2}))
    told = "\n".join(verify(run).differences)
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
            assert verify(out).differences
        result = run_table(MENDED, MENDED_TABLE, out, SERIAL)
        assert name in result.execution["damaged"] or name == "manifest.json"  # it may speak of another
        assert verify(out).differences == []
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
    assert verify(out).differences == []
    for other in RESULTS:
        assert (out / other).read_bytes() == (whole / other).read_bytes()


def test_a_damaged_folder_of_another_study_is_not_mended(whole: Path, tmp_path: Path) -> None:
    out = shutil.copytree(whole, tmp_path / "run")
    (out / "study.json").write_text("{")
    with pytest.raises(StoreError, match=r"study\.json is damaged"):
        run_table(replace(MENDED, seed=1), MENDED_TABLE, out, SERIAL)
    assert (out / "study.json").read_text() == "{"


def reseal(run: Path) -> None:
    """Make the manifest agree with the files, as a careful forger would."""
    folder = RunFolder(run)
    digests = {file: folder.sha256(file) for file in folder.files()}
    (run / "manifest.json").write_text(json.dumps(digests, indent=2) + "\n")


def put(**values: object) -> object:
    """Change fields of a JSON object; a name with dots leads to one inside."""

    def change(content: dict[str, object]) -> dict[str, object]:
        for name, value in values.items():
            *way, last = name.split("__")
            inner = content
            for step in way:
                inner = inner[step]
            inner[last] = value
        return content

    return change


def first(name: str, value: object) -> object:
    """Change a column's first value."""
    return column(name, lambda values: [value, *values[1:]])


CERTIFICATE, ACCOUNT, LOG = "certificate.json", "execution.json", "cells/part-000000.parquet"
CLAIM = {"protocol": "occam", "classifier": "random", "bound": 0.5, "delta": 0.05, "statement": "so"}
SEALED = {
    "C is text": (CERTIFICATE, put(C="a"), "C: Input should be a valid number"),
    "C is infinite": (CERTIFICATE, put(C=1e999), "C: Input should be a finite number"),
    "C is another": (CERTIFICATE, put(C=7.0), "run_id, C, gamma, k are"),
    "k is a share": (CERTIFICATE, put(k=3.5), "k: Input should be a valid integer"),
    "the bound is unknown": (CERTIFICATE, put(bound="luck"), "bound 'luck' is not known"),
    "a claim is empty": (CERTIFICATE, put(claims=[{}]), "claims.0.protocol: Field required"),
    "a claim is not proven": (CERTIFICATE, put(claims=[CLAIM]), "proven is not the first"),
    "a bound beyond 1": (CERTIFICATE, put(l_ee=1.5), "outside 0..1"),
    "an unknown field": (CERTIFICATE, put(note="good"), "note: Unexpected"),
    "a side without rows": (CERTIFICATE, put(false_positives={}), "false_positives.errors: Field required"),
    "more errors than rows": (CERTIFICATE, put(errors=[99, 0, 0]), "more errors than rows"),
    "an error for no split": (CERTIFICATE, put(errors=[0]), "errors: expected 3"),
    "other sizes": (CERTIFICATE, put(n_select=20), "n_select and n_splits"),
    "seconds are nothing": (ACCOUNT, put(seconds=None), "seconds: Input should be a valid number"),
    "a test of nothing": (ACCOUNT, put(test={}), "test.error: Field required"),
    "environment of nothing": (ACCOUNT, put(environment=True), "environment: Input should be"),
    "no cells planned": (ACCOUNT, put(cells__planned=0), "more than are planned"),
    "cells beyond the plan": (ACCOUNT, put(cells__computed=10**9), "more than are planned"),
    "a failure without an end": (ACCOUNT, put(failures=[[0.1, 3]]), "failures.0.2: Field required"),
    "triples of another C": (TRIPLES, first("C", 9.0), "C does not have the values"),
    "triples without a k": (TRIPLES, first("k", None), "k does not have the values"),
    "triples in another order": (TRIPLES, lambda t: t.take([*range(len(t))][::-1]), "in their order"),
    "an unknown state": (TRIPLES, first("state", "lucky"), "'lucky' is not known"),
    "no winner": (TRIPLES, column("state", lambda v: ["tied"] * len(v)), "0 winners"),
    "winners alone": (TRIPLES, column("state", lambda v: ["winner"] * len(v)), "l_ms has empty"),
    "a lower bound is lost": (TRIPLES, first("lower_bound", None), "lower_bound has empty cells"),
    "a lower bound beyond 1": (TRIPLES, first("lower_bound", 1e300), "lower_bound has values outside"),
    "no centre": (MODELS, first("centre", None), "centre has empty cells"),
    "a hole in the centre": (MODELS, first("centre", [0.0, None]), "centre has empty cells"),
    "half a centre": (MODELS, first("centre", [0.0]), "do not have the 2 features"),
    "a scale of 0": (MODELS, first("scale", [1.0, 0.0]), "have to be positive"),
    "an endless offset": (MODELS, first("offset", float("inf")), "not finite"),
    "too few coefficients": (MODELS, first("dual_coef", [1.0]), "no coefficient each"),
    "support of no row": (MODELS, first("support", [99]), "out of bounds"),
    "support from the end": (MODELS, first("support", [-1]), "do not ascend"),
    "split before the first": (MODELS, first("mc_index", -1), "each of the 3 splits"),
    "no model": (MODELS, lambda t: t.slice(0, 0), "each of the 3 splits"),
    "records of no C": (LOG, first("C", None), "C None is not the study's"),
    "records of no status": (LOG, first("status", "good"), "status 'good' is not the study's"),
    "records of no split": (LOG, first("mc_index", 3), "outside the splits"),
    "records before the first split": (LOG, first("mc_index", -1), "outside the splits"),
    "records without errors": (LOG, first("errors_negative", None), "errors_negative has empty"),
    "records with errors below 0": (LOG, first("errors_positive", -2), "more errors than rows"),
    "a failure without a reason": (LOG, first("status", "failed"), "traceback has empty cells"),
}


@pytest.mark.parametrize("name", SEALED)
def test_what_readers_rely_on_is_checked_though_the_manifest_agrees(
    whole: Path, tmp_path: Path, name: str
) -> None:
    file, change, told = SEALED[name]
    out = shutil.copytree(whole, tmp_path / "run")
    if file.endswith(".json"):
        (out / file).write_text(json.dumps(change(json.loads((out / file).read_text()))))
        reseal(out)
    else:
        rewrite(out, file, change)
    with pytest.raises(StoreError, match=rf"{file} is damaged: .*{re.escape(told)}"):
        replay(out) if file == LOG else load_run(out)
    assert told in " ".join(verify(out).differences)


@pytest.mark.parametrize("name", [*NAMES, "ensemble/model-00002.pkl"])
def test_what_the_manifest_does_not_name_is_not_taken_for_the_run(
    whole: Path, tmp_path: Path, name: str
) -> None:
    out = shutil.copytree(whole, tmp_path / "run")
    with (out / name).open("ab") as stream:
        stream.write(b" ")
    with pytest.raises(StoreError, match=f"{name} is (damaged|missing, or not the file .* mends it)"):
        load_run(out)
    run_table(MENDED, MENDED_TABLE, out, SERIAL)
    assert load_run(out).run_id == load_run(whole).run_id


def test_a_damaged_account_or_log_of_an_unfinished_run_is_set_aside(whole: Path, tmp_path: Path) -> None:
    out = shutil.copytree(whole, tmp_path / "run")
    rewrite(out, LOG, first("mc_index", -1))
    (out / ACCOUNT).write_text(json.dumps(put(fits="many")(json.loads((out / ACCOUNT).read_text()))))
    (out / "manifest.json").unlink()
    assert run_table(MENDED, MENDED_TABLE, out, SERIAL).execution["damaged"] == [ACCOUNT, LOG]
    for other in RESULTS:
        assert (out / other).read_bytes() == (whole / other).read_bytes()


def test_differences_are_told_at_their_place_and_in_a_line(whole: Path, tmp_path: Path) -> None:
    out = shutil.copytree(whole, tmp_path / "run")
    content = json.loads((out / CERTIFICATE).read_text())
    content["claims"][0]["bound"] /= 2
    content["proven"] = content["claims"][0]
    content["statements"][0] = "Nothing can go wrong. " * 1000
    (out / CERTIFICATE).write_text(json.dumps(content))
    reseal(out)
    told = verify(out).differences
    assert [line.split(" is ")[0] for line in told] == [
        f"certificate.json: {place}" for place in ("proven.bound", "claims.0.bound", "statements.0")
    ]
    assert max(map(len, told)) < 600


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
    assert verify(out).differences == []
    page = (out / "report.html").read_bytes()
    for at in range(len(page)):
        (out / "report.html").write_bytes(DAMAGE["flipped"](page, at))
        assert not RunFolder(out).report_whole()
    assert verify(out).differences == [
        "report.html is not as ckcv report wrote it: its last line does not name its SHA-256"
    ]
