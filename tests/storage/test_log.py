"""The log: what was put in comes back, and positions outside the study do not."""

from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from forgery import PROBLEM, STUDY, TASK

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.evaluate import evaluate, share
from ckcv_ray.errors import RunError, StoreError
from ckcv_ray.records.record import Failure, Records
from ckcv_ray.storage import log as module
from ckcv_ray.storage.files import LocalFiles
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.log import Log, name_part
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.task import Task

FAILURE = Failure(False, 1, 2, 0, 0, 2, "Traceback: fire\nand smoke")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """The log of a folder that is held."""
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


def test_a_part_that_is_not_what_its_name_says_is_refused(log: Log, records: Records) -> None:
    log.append(records, [])
    (part,) = map(log.files.path, log.parts())
    part.write_bytes(part.read_bytes() + b" ")
    with pytest.raises(StoreError, match="its SHA-256 is not that of its name"):
        list(log.read())


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
