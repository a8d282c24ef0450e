"""Run folders of somebody else, whose study and log say what no run of this version could have written."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from conftest import blobs, snapshot
from forgery import LOG, PROBLEM, SERIAL, STUDY, TASK, column, find, reseal, rewrite
from pyarrow import parquet
from test_foreign_folders import ESC, MAX_MIB, READ, Change, Content, put

from ckcv_ray import Job, Study, load_run
from ckcv_ray.core.options import describe_part
from ckcv_ray.engine import recorder
from ckcv_ray.errors import RunError, StoreError
from ckcv_ray.reports.render import make_page
from ckcv_ray.runs.finished import replay
from ckcv_ray.runs.run import run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.study.parts import Holdout
from ckcv_ray.study.study import run_id
from ckcv_ray.version import VERSION

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
    """Check that every reader refuses a folder with one printable line, not without end."""
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
    "an option that steers": (part("learner", **{ESC: 3}), "unknown option '\\x1b[2J"),
    "a solver of the benchmarks": (part("learner", solver="libsvm"), f"'libsvm' {LEARNER}newton"),
    "another under the same name": (lambda c: c["study"].update(seed=1), f"{DAMAGED}it names run"),
    "a whole number with a point": (part("resampling", n_splits=3.0), "n_splits=3.0"),
    "a number without a point": (part("learner", C=[0.1, 1]), OTHERWISE),
    "a default that is left out": (lambda c: c["study"].pop("rare"), OTHERWISE),
    **{f"a study {study!r}": (entry(study=study), DAMAGED) for study in (None, 3, "svm", [], {})},
    **{
        f"no {name}": (lambda c, name=name: c.pop(name), f"{DAMAGED}'{name}'")
        for name in ("study", "data", "run_id", "schema")
    },
    "a key": (entry(note="trust me"), OTHERWISE),
    "a version that is true": (entry(schema=15.0), "schema 15.0, and this version reads 15"),
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
        lambda c: c["study"].update(certify=describe_part(Holdout(holdout_share=0.99))),
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
    for other in (text + " ", text.replace("  ", "\t"), twice):
        assert other != text
        (run / "study.json").write_text(other)
        reseal(run)
        check_refused(run, OTHERWISE)


@pytest.mark.parametrize("schema", [14, 16, "15", None, ESC, "x" * 10**6])
def test_a_run_of_another_schema_is_refused_in_a_sentence(run: Path, schema: object) -> None:
    put(run, "study.json", lambda content: content.update(schema=schema))
    again = "by which it was made, or run the study again in another folder"
    check_refused(run, f"study.json: schema {repr(schema)[:100]}", again)


def test_a_run_of_another_schema_is_left_alone_by_every_command(run, tmp_path, ckcv):
    put(run, "study.json", lambda content: content.update(schema=12))
    rows, before = tmp_path / "new.parquet", snapshot(run)
    parquet.write_table(TASK.columns(), rows)
    message = f"schema 12, and this version reads 15: read it with ckcv_ray '{VERSION}', by which it was made"
    for words in (("status", run), ("report", run), ("predict", run, rows), ("run", rows, "--out", run)):
        code, shown, error = ckcv(*words)
        assert (code, shown, message in error) == (4, "", True), words
    code, shown, _ = ckcv("verify", run)
    assert (code, message in shown) == (1, True)
    assert snapshot(run) == before


def test_a_study_of_very_many_candidates_takes_no_memory(whole: Path, run: Path) -> None:
    grid = sorted({float(f"{value:.12g}") for value in np.logspace(-3, 3, 10_000)})
    put_study(run, part("learner", C=grid, gamma=grid))
    assert (run / "study.json").stat().st_size < 1 << 20
    command, asked = [sys.executable, "-c", READ, whole], json.dumps(str(run)) + "\n"
    done = subprocess.run(command, input=asked, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (loaded, verified, played, paged, _), mib = json.loads(done.stdout)
    message = "candidates.parquet is damaged: its study has 200,000,000 candidates: at most 10,000,000 can be"
    assert message in loaded
    assert message in paged
    assert any(message in sentence for sentence in verified)
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
        ("salt", "", "should match pattern"),
        ("salt", "g" * 64, "should match pattern"),
        ("provenance", '{"id": 5}', "id: Input should be a valid string"),
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


STRAY = ("part-abc.parquet", f"part-{'0' * 64} (copy).parquet", "part-.parquet", "part-²")


@pytest.mark.parametrize("name", STRAY)
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
