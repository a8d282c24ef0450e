"""Run folders that somebody else made: refused in bounded memory and time, or shown with all escaped."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from forgery import ACCOUNT, CANDIDATES, DATA, LOG, MODELS, NAMES, SERIAL, STUDY, TASK, find, reseal
from pyarrow import parquet

from ckcv_ray import Job, load_run
from ckcv_ray.errors import InputError, StoreError, printable
from ckcv_ray.learners.ensemble import make_schema
from ckcv_ray.records.record import Failure
from ckcv_ray.reports.render import make_page
from ckcv_ray.runs.run import run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.pages import REPORT
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
    """Bytes without end that take no room."""
    file.touch()
    os.truncate(file, 1 << 40)


STRANGE: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "endless zeros": lambda file: file.symlink_to("/dev/zero"),
    "a terminal": lambda file: file.symlink_to("/dev/tty"),
    "a file of the kernel": lambda file: file.symlink_to("/proc/kmsg"),
    "a socket": bind,
    "a folder": Path.mkdir,
    "a link to itself": lambda file: file.symlink_to(file.name),
    "a terabyte of holes": holes,
}


@pytest.fixture(scope="module")
def elsewhere(whole: Path) -> Iterator[Reader]:
    """What each way of reading says of a folder, in one other process; the MiB that it has taken at most."""
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
    """Every list of a column as long."""

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
    "a statement": lambda c: c["statements"].__setitem__(0, ESC),
    "a line more": lambda c: c["statements"].__setitem__(0, "L_EE\nproven 0.00 %"),
    "a claim": lambda c: c["claims"][0].update(statement=ESC),
    "a certification": lambda c: c["claims"][0].update(certification=ESC),
    "another direction": lambda c: c["assumptions"].__setitem__(0, "\u202eevil"),
}


@pytest.mark.parametrize("name", WORDS)
def test_a_certificate_that_steers_a_terminal_is_refused(whole: Path, tmp_path: Path, name: str) -> None:
    out = shutil.copytree(whole, tmp_path / "run")
    put(out, "certificate.json", WORDS[name])
    for read in (load_run, make_page):
        with pytest.raises(StoreError, match=r"certificate\.json is damaged: .*control") as messages:
            read(out)
        assert str(messages.value).isprintable()
    assert all(messages.isprintable() for messages in verify(out).differences)


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


def test_tracebacks_are_escaped_in_the_report(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failure = Failure(False, 0, 0, 0, 0, 1, f"Traceback:\n\tfire{ESC}")
    monkeypatch.setattr("ckcv_ray.engine.race.RaceQueue.failures", lambda self: [failure])
    (result := load_run(whole)).execution["evaluations"]["failed"] = 1
    monkeypatch.setattr("ckcv_ray.reports.render.load", lambda folder: result)
    html = make_page(whole)
    assert "Traceback:\n\tfire\\x1b[2J" in html
    assert printable(html) == html


@pytest.mark.slow
def test_nothing_happens_while_fifty_hostile_folders_are_read(tmp_path: Path) -> None:
    assert try_folders(50, 0, tmp_path.resolve()) == []
