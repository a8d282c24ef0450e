"""Run folders made by somebody else, and what no run of this version could have written: refused in bounded
memory and time, or shown with everything escaped.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from conftest import blobs
from forgery import (
    ACCOUNT,
    CANDIDATES,
    DATA,
    LOG,
    MODELS,
    NAMES,
    PROBLEM,
    SERIAL,
    STUDY,
    TASK,
    column,
    find,
    reseal,
    rewrite,
)
from pyarrow import parquet

from ckcv_ray import Job, Study, load_run
from ckcv_ray.core.options import value_to_json
from ckcv_ray.engine import recorder
from ckcv_ray.errors import InputError, RunError, StoreError, printable
from ckcv_ray.learners.ensemble import make_schema
from ckcv_ray.reports.render import make_page
from ckcv_ray.runs.finished import replay
from ckcv_ray.runs.run import run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.pages import REPORT
from ckcv_ray.study.parts import Holdout
from ckcv_ray.study.study import run_id
from ckcv_ray.tables.task import Task
from jobs.faults.hostile import try_folders

ESC = "\x1b[2J\x1b]0;owned\x07"

READ = """
import json, signal, sys
from pathlib import Path
from ckcv_ray import load_run
from ckcv_ray.errors import CKCVError
from ckcv_ray.reports.render import make_page
from ckcv_ray.runs import verify as verification
from ckcv_ray.runs.finished import replay

def verify(out):
    return verification.verify(out).differences

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM"))

whole = sys.argv[1]
load_run(whole), make_page(whole), verify(whole)
before = peak()
for line in sys.stdin:
    case = json.loads(line)
    signal.alarm(60)  # which ends the process
    told = []
    for read in (load_run, verify, replay, make_page, lambda out: load_run(out, allow_pickle=True)):
        try:
            found = read(case)
            told.append(found if isinstance(found, list) else "read")
        except CKCVError as error:
            told.append(f"{type(error).__name__}: {error}")
    signal.alarm(0)
    print(json.dumps((told, peak() - before)), flush=True)
"""
MAX_MIB = 1000  # of the 2 GiB that a file may take
Reader = Callable[[Path], tuple[list[Any], int]]
Content = dict[str, Any]
Change = Callable[[Any], Any]


def bind(file: Path) -> None:
    """A socket; its address may have 107 characters."""
    with contextlib.chdir(file.parent), socket.socket(socket.AF_UNIX) as server:
        server.bind(file.name)


def holes(file: Path) -> None:
    """An endless file that takes no room."""
    file.touch()
    os.truncate(file, 1 << 40)


STRANGE: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "endless zeros": lambda file: file.symlink_to("/dev/zero"),
    "a file of the kernel": lambda file: file.symlink_to("/proc/kmsg"),
    "a socket": bind,
    "a folder": Path.mkdir,
    "a link to itself": lambda file: file.symlink_to(file.name),
    "a terabyte of holes": holes,
}


@pytest.fixture(scope="module")
def elsewhere(whole: Path) -> Iterator[Reader]:
    """What each way of reading says about a folder, in one other process, and its peak memory in MiB."""
    command, pipe = [sys.executable, "-c", READ, str(whole)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:

        def read(case: Path) -> tuple[list[Any], int]:
            process.stdin.write(json.dumps(str(case)) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert answer, f"the process ended with exit code {process.wait()}: see what it wrote"
            return tuple(json.loads(answer))

        yield read
        process.stdin.close()
        assert process.wait(timeout=60) == 0


@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_no_file_of_a_run_is_refused_at_once_and_a_report_not_read(whole, tmp_path, kind, elsewhere):
    for name in [*NAMES, REPORT]:
        out = shutil.copytree(whole, tmp_path / name.replace("/", " "))
        file = find(out, name)
        file.unlink(missing_ok=name == REPORT)
        STRANGE[kind](file)
        (loaded, verified, _, paged, unpickled), mib = elsewhere(out)
        assert mib < MAX_MIB, name
        if name == REPORT:
            assert loaded == "read"
            assert verified == [] or "is not as ckcv report wrote it" in verified[0]
        else:
            assert all(messages.startswith("StoreError: ") for messages in (loaded, paged, unpickled)), name
            assert verified not in ([], "read"), name


@pytest.mark.parametrize("kind", ["a pipe", "endless zeros"])
def test_a_lock_that_is_none_is_refused(tmp_path: Path, kind: str) -> None:
    STRANGE[kind](tmp_path / ".lock")
    with pytest.raises((StoreError, InputError), match=r"\.lock|cannot write"):
        run_job(Job(STUDY, TASK, tmp_path), SERIAL)
    assert not RunFolder(tmp_path).files.lock.busy


def repeat_first(table: pa.Table, rows: int = 1_000_000) -> pa.Table:
    return table.take(pa.array(np.zeros(rows, np.int64)))


def lists(name: str, length: int) -> Change:
    """Make every list of a column this long."""

    def change(table: pa.Table) -> pa.Table:
        offsets = np.arange(len(table) + 1, dtype=np.int32) * length
        kind = make_schema(STUDY.learner, TASK).field(name).type.value_type.to_pandas_dtype()
        column = pa.ListArray.from_arrays(offsets, np.zeros(len(table) * length, kind))
        return table.set_column(table.schema.get_field_index(name), table.schema.field(name), column)

    return change


def text(name: str, length: int, rows: int) -> Change:
    """A long text in many rows, stored once."""
    long = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["x" * length])
    return lambda table: repeat_first(table, rows).set_column(table.schema.get_field_index(name), name, long)


BOMBS: dict[str, tuple[str, int, Change]] = {  # a file, how its table is changed, and how often it is written
    "rows of data": (DATA, 11, repeat_first),
    "long labels": (DATA, 1, text("y", 1 << 14, 200_000)),
    "lists in data": (DATA, 1, lambda table: pa.table({"x0": [[0.0] * 1_000_000] * 8, "y": [0, 1] * 4})),
    "support": (MODELS, 1, lists("support", 10_000_000)),
    "errors": (MODELS, 1, lists("errors", 10_000_000)),
    "many models": (MODELS, 10, repeat_first),
    "long states": (CANDIDATES, 1, text("state", 1 << 20, 8)),
    "many records": (LOG, 11, repeat_first),
    "long tracebacks": (LOG, 1, text("traceback", 1 << 20, 2000)),
}


def test_parquet_that_unfolds_is_refused_in_bounded_memory(whole, tmp_path, elsewhere):
    for name, (file, times, change) in BOMBS.items():
        out = shutil.copytree(whole, tmp_path / name)
        table = parquet.read_table(find(out, file))
        grown = change(table).replace_schema_metadata(table.schema.metadata)
        with parquet.ParquetWriter(find(out, file), grown.schema, compression="zstd") as writer:
            for _ in range(times):
                writer.write_table(grown)
        assert find(out, file).stat().st_size < 5_000_000, name
        reseal(out)
        messages, mib = elsewhere(out)
        refused = messages[2] if file == LOG else messages[0]
        assert refused.startswith("StoreError: "), (name, refused)
        assert find(out, file).name in refused, name
        assert mib < MAX_MIB, name


@pytest.mark.parametrize(
    ("limit", "most", "of"), [("VALUES", 71, "72 values"), ("TABLE_ROWS", 24, "32 candidates")]
)
def test_what_a_run_could_not_read_again_it_does_not_begin(limit, most, of, tmp_path, monkeypatch):
    monkeypatch.setattr(f"ckcv_ray.storage.folder.MAX_{limit}", most)
    with pytest.raises(InputError, match=f"the study has {of}; a run folder holds at most {most}: "):
        run_job(Job(STUDY.replace(C=tuple(range(1, 9))), TASK, tmp_path / "run"), SERIAL)
    assert list(tmp_path.iterdir()) == []


def put(run: Path, name: str, change: Change) -> None:
    """Change a JSON file of a run, and reseal it."""
    content = json.loads((run / name).read_text())
    change(content)
    (run / name).write_text(json.dumps(content, indent=2) + "\n")
    reseal(run)


WORDS: dict[str, Change] = {
    "a line more": lambda c: c["statements"].__setitem__(0, "L_EE\nproven 0.00 %"),
    "a claim": lambda c: c["claims"][0].update(statement=ESC),
    "another direction": lambda c: c["assumptions"].__setitem__(0, "\u202eevil"),
}


@pytest.mark.parametrize("name", WORDS)
def test_a_certificate_that_steers_a_terminal_is_refused(run: Path, name: str) -> None:
    put(run, "certificate.json", WORDS[name])
    for read in (load_run, make_page):
        with pytest.raises(StoreError, match=r"certificate\.json is damaged: .*control") as messages:
            read(run)
        assert str(messages.value).isprintable()
    assert all(messages.isprintable() for messages in verify(run).differences)


def test_nothing_that_is_shown_steers_a_terminal(tmp_path, ckcv):
    """Labels, features, source, environment and tracebacks of a run try to."""
    labels = np.where(TASK.y > 0, f"well{ESC}", f"ill\r{ESC}")
    task, steering = replace(Task.of(TASK.X, labels), source=f"here{ESC}"), tmp_path / "steering"
    run_job(Job(STUDY, task, steering), SERIAL)
    processor, failure = f"cpu{ESC}\nckcv: all is well", [0, 3, 0, f"Traceback{ESC}"]
    put(steering, ACCOUNT, lambda c: c["environment"].update(processor=processor))
    put(steering, ACCOUNT, lambda c: c.update(failures=[failure], damaged=[f"a{ESC}"]))
    for words in (["status"], ["status", "--json"], ["verify"], ["verify", "--json"], ["report"]):
        code, *shown = ckcv(words[0], steering, *words[1:])
        assert code == 0, words
        assert list(map(printable, shown)) == shown
        assert "ckcv: all is well" not in shown[1].splitlines()
    html = (steering / "report.html").read_text()
    assert printable(html) == html
    assert r"well\x1b[2J" in html
    assert "<svg" in html


@pytest.mark.slow
def test_nothing_happens_while_fifty_hostile_folders_are_read(tmp_path: Path) -> None:
    assert try_folders(50, 0, tmp_path.resolve()) == []


READERS: tuple[Callable[[Path], object], ...] = (load_run, replay, make_page)


@pytest.fixture(scope="module", autouse=True)
def never_flushed_early() -> Iterator[None]:
    """However slow the machine, a run writes one part of its log."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "FLUSH_SECONDS", inf)
        yield


def put_study(run: Path, change: Change) -> None:
    """Change the study of a run under a name that fits it, in all files."""

    def forge(content: Content) -> None:
        change(content)
        content["run_id"] = run_id(Study.from_json(content["study"]), content["data"])

    put(run, "study.json", forge)
    name = json.loads((run / "study.json").read_text())["run_id"]
    for file in run.rglob("*.parquet"):
        put_metadata(file, run_id=name)
    put(run, "certificate.json", lambda c: c.update(run_id=name))


def put_metadata(file: Path, **values: str) -> None:
    table = parquet.read_table(file)
    metadata = {**table.schema.metadata, **{name.encode(): text.encode() for name, text in values.items()}}
    parquet.write_table(table.replace_schema_metadata(metadata), file)


def check_refused(run: Path, *messages: str) -> None:
    """Check that every reader refuses a folder with one printable line of bounded length."""
    said = seen(run)
    for read in READERS:
        with pytest.raises(StoreError) as error:
            read(run)
        assert all(part in str(error.value) and any(part in one for one in said) for part in messages)
        assert str(error.value).isprintable()
        assert len(str(error.value)) < 2000


def seen(run: Path) -> list[str]:
    """What a verification says against a run."""
    found = verify(run)
    return found.differences + found.unverified


def part(slot: str, **options: object) -> Change:
    return lambda content: content["study"][slot].update(options)


def entry(**entries: object) -> Change:
    return lambda content: content.update(entries)


DAMAGED = "study.json is damaged: "
OTHERWISE = f"{DAMAGED}it is not as a run writes it"
LEARNER = "is not known: choose from "
# All else that a part may not be is in tests/study/test_study.py.
FORGED: dict[str, tuple[Change, str]] = {
    "an unknown learner": (part("learner", name="jungle"), f"is not here: learner='jungle' {LEARNER}"),
    "a learner that steers": (part("learner", name=ESC), f"\\x07' {LEARNER}"),
    "a learner without end": (part("learner", name="x" * 10**6), LEARNER),
    "a solver of the benchmarks": (part("learner", solver="libsvm"), f"'libsvm' {LEARNER}newton"),
    "another under the same name": (lambda c: c["study"].update(seed=1), f"{DAMAGED}it names run"),
    "a whole number with a point": (part("resampling", n_splits=3.0), "n_splits=3.0"),
    "a default that is left out": (lambda c: c["study"].pop("rare"), OTHERWISE),
    "a study that is none": (entry(study="svm"), DAMAGED),
    "no data": (lambda c: c.pop("data"), f"{DAMAGED}'data'"),
    "a key": (entry(note="trust me"), OTHERWISE),
    **{
        f"schema {schema!r:.9}": (entry(schema=schema), f"schema {schema!r:.100}")
        for schema in (14, 15.0, None, ESC, "x" * 10**6)
    },
}


@pytest.mark.parametrize("name", FORGED)
def test_a_study_file_that_no_run_wrote_is_refused(run: Path, name: str) -> None:
    """Also where it means the same: what a reader does not compare it cannot vouch for."""
    change, messages = FORGED[name]
    put(run, "study.json", change)
    check_refused(run, messages)


BESIDE: dict[str, tuple[Change, str]] = {
    "more folds than rows": (part("resampling", k=[3, 50]), "k=50 is outside 3..24"),
    "every k, one by one": (part("resampling", k=[*range(3, 25)]), "not in the canonical form for its data"),
    "a report of no k": (part("search", report_k=[5]), "report_k=5 is not among k"),
    "all rows held out": (
        lambda c: c["study"].update(certify=value_to_json(Holdout(holdout_share=0.99))),
        "23 of 24 rows held out leave 1",
    ),
}


@pytest.mark.parametrize("name", BESIDE)
def test_a_study_that_does_not_go_with_its_data_is_refused(run: Path, name: str) -> None:
    """Though its name is that of study and data."""
    change, messages = BESIDE[name]
    put_study(run, change)
    check_refused(run, DAMAGED, messages)


def test_a_study_file_has_the_bytes_that_a_run_writes(run: Path) -> None:
    text = (run / "study.json").read_text()
    twice = text.replace('"seed": 0', '"seed": 1,\n    "seed": 0')
    for other in (text + " ", text.replace("  ", "\t"), twice, "", "[]", '{"a":' * 200_000, "1" * 5000):
        assert other != text
        (run / "study.json").write_text(other)
        reseal(run)
        check_refused(run, OTHERWISE if "seed" in other else DAMAGED)


@pytest.mark.parametrize("name", ["candidates.parquet", "data.parquet", "ensemble/models.parquet"])
def test_a_table_of_another_run_is_refused(run: Path, name: str) -> None:
    put_metadata(run / name, run_id="f" * 12)
    with pytest.raises(StoreError, match="does not belong to run"):
        load_run(run)


def test_a_study_of_very_many_candidates_takes_no_memory(run: Path, elsewhere: Reader) -> None:
    grid = sorted({float(f"{value:.12g}") for value in np.logspace(-3, 3, 10_000)})
    put_study(run, part("learner", C=grid, gamma=grid))
    assert (run / "study.json").stat().st_size < 1 << 20
    (loaded, verified, played, paged, _), mib = elsewhere(run)
    message = "candidates.parquet is damaged: its study has 200,000,000 candidates: at most 10,000,000 can be"
    assert all(message in said for said in (loaded, paged, str(verified)))
    assert "its study has 600,000,000 evaluations: at most" in played
    assert mib < MAX_MIB


def test_data_of_another_study_are_refused(run: Path, tmp_path: Path) -> None:
    run_job(Job(STUDY, blobs(24, seed=1), tmp_path / "other"), SERIAL)
    shutil.copy(tmp_path / "other" / "data.parquet", run)
    put_metadata(run / "data.parquet", run_id=PROBLEM.run_id)
    reseal(run)
    check_refused(run, "data.parquet is not the data of this run: its digest differs")


@pytest.mark.parametrize(
    ("field", "forged", "messages"),
    [
        ("salt", "g" * 64, "should match pattern"),
        ("provenance", '{"reading": {"sheet": [1]}}', "reading.sheet: Input should be a valid string"),
        ("provenance", '{"command": "x"}', "command: Extra inputs are not permitted"),
    ],
)
def test_what_the_draws_rest_on_is_checked(run: Path, field: str, forged: str, messages: str) -> None:
    put_metadata(run / "data.parquet", **{field: forged})
    reseal(run)
    check_refused(run, messages)


@pytest.mark.parametrize("name", ["log", "ensemble"])
def test_a_folder_that_leads_elsewhere_is_not_followed(whole: Path, run: Path, name: str) -> None:
    """Its files are none of the run's, even where they would be the same."""
    shutil.rmtree(run / name)
    (run / name).symlink_to(whole / name)
    with pytest.raises(StoreError, match=f"{name}(/.* is missing or does not match the manifest| is a link)"):
        load_run(run)
    assert any(f"{name} is a link" in sentence or "is missing" in sentence for sentence in seen(run))


@pytest.mark.parametrize("name", ["part-abc.parquet", f"part-{'0' * 64} (copy).parquet", "part-²"])
def test_a_file_that_is_called_almost_as_a_part_is_left_alone(whole: Path, run: Path, name: str) -> None:
    rewrite(run, LOG, lambda records: records.slice(0, len(records) // 2))
    (run / "log" / name).write_bytes(b"a note of mine")
    (run / "manifest.json").unlink()
    result = run_job(Job(STUDY, TASK, run), SERIAL)
    assert result.certificate == load_run(whole).certificate
    assert (run / "log" / name).read_bytes() == b"a note of mine"
    assert len(list((run / "log").iterdir())) == 3
    assert seen(run) == []


@pytest.mark.parametrize("exhaustive", [False, True])
@pytest.mark.parametrize("step", [0, 2])
def test_a_log_that_lacks_a_step_of_every_path_is_gone_on_with(tmp_path, step, exhaustive):
    """Steps after it may be in another part: what was lost is computed again, and nothing waits for it."""
    study, out = STUDY.replace(C=(0.1, 1.0, 10.0), exhaustive=exhaustive), tmp_path / "run"
    result = run_job(Job(study, TASK, out), SERIAL)
    rewrite(out, LOG, lambda records: records.filter(pc.not_equal(records["step"], step)))
    (out / "manifest.json").unlink()
    again = run_job(Job(study, TASK, out), SERIAL)
    assert again.certificate == result.certificate
    assert again.candidates.equals(result.candidates)
    assert seen(out) == []


def test_a_part_with_other_columns_is_refused(run: Path) -> None:
    rewrite(run, LOG, lambda records: records.append_column("more", records["size"]))
    with pytest.raises(StoreError, match="does not have the expected columns"):
        replay(run)


def test_two_parts_that_contradict_each_other_are_seen(run: Path) -> None:
    change = column("n_iter", lambda values: [value + 1 for value in values])
    table = change(parquet.read_table(find(run, LOG)))
    parquet.write_table(table, run / "log" / "part-0.parquet")
    reseal(run)
    assert any("two records of" in sentence and "differ" in sentence for sentence in seen(run))
    with pytest.raises(RunError, match="two records of"):
        replay(run)
