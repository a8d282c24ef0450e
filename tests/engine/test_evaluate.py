"""A record depends on the study, the data and its own key alone."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import blobs

from ckcv_ray.engine import evaluate as worker
from ckcv_ray.study import Stage, Study, Task

SCRIPT = """
import sys; sys.path[:0] = {tests!r}
from test_evaluate import evaluate, whole
sys.stdout.buffer.write(evaluate([whole({stage!r})], {scaling!r}).tobytes())
"""


def study(scaling: str) -> Study:
    return Study(C=(0.1, 1.0, 10.0, 1000.0), gamma=(0.01, 0.1, 1.0), n_splits=5, scaling=scaling)


def whole(stage: str) -> Task:
    return Task(Stage(stage), 4, 2, ((0, 4), (1, 4), (2, 4)))


def evaluate(tasks: list[Task], scaling: str) -> worker.Records:
    table = blobs(70, d=3, seed=2)
    outcome = worker.evaluate(tasks, study(scaling), worker.share(table.X, table.y, study(scaling)))
    assert not outcome.failures
    return outcome.records


def by_key(records: worker.Records) -> dict[tuple[object, ...], tuple[object, ...]]:
    return {tuple(record)[:5]: tuple(record)[5:] for record in records.tolist()}


@pytest.mark.parametrize("scaling", ["none", "standard"])
@pytest.mark.parametrize("stage", [Stage.SELECT, Stage.ESTIMATE])
def test_what_else_is_asked_for_changes_nothing(stage: Stage, scaling: str) -> None:
    together = by_key(evaluate([whole(stage)], scaling))
    assert len(together) == 12
    for g in (2, 0, 1):
        for n_C in (4, 1, 3):
            others = [
                Task(stage, 3, 0, ((1, 2),)),
                Task(stage, 4, 2, ((g, n_C),)),
                Task(stage, 5, 1, ((0, 4),)),
            ]
            found = by_key(evaluate(others, scaling))
            shared = set(found) & set(together)
            assert len(shared) == n_C
            assert all(found[key] == together[key] for key in shared)


@pytest.mark.parametrize("scaling", ["none", "standard"])
def test_another_process_gives_the_same_bytes(scaling: str) -> None:
    script = SCRIPT.format(
        tests=[str(Path(__file__).parent), str(Path(__file__).parents[1])], stage="select", scaling=scaling
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == evaluate([whole("select")], scaling).tobytes()


def test_shared_distances_and_distances_made_anew_give_the_same_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = evaluate([whole("select")], "none")
    monkeypatch.setattr(worker, "SHARED_BYTES", 0)
    assert np.array_equal(shared, evaluate([whole("select")], "none"))


def test_the_shared_data_are_not_written_to() -> None:
    table = blobs(40)
    data = worker.share(table.X, table.y, study("none"))
    for array in (data.X, data.y, data.distances):
        assert array is not None
        array.flags.writeable = False
    outcome = worker.evaluate([whole("select"), whole("refit")], study("none"), data)
    assert not outcome.failures
