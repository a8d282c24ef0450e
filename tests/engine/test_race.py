"""A queue says what comes next in any order; a record depends on the study, the data and its key alone."""

from collections.abc import Iterator

import numpy as np
import pytest
from conftest import blobs

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.evaluate import Inputs, evaluate, share
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Study

STUDY = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4), n_splits=4, report_k=(4,))
EVERY = ((0, 3), (1, 3))


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem.of(STUDY, blobs(30))


@pytest.fixture(scope="module")
def inputs(problem: Problem) -> Inputs:
    return share(problem)


def race(queue: RaceQueue, inputs: Inputs) -> Iterator[tuple[Unit, ...]]:
    """Do what is asked for until nothing is; the batches."""
    while units := queue.plan(1).units:
        queue.add(evaluate(inputs, units))
        yield units


def test_it_hands_out_each_path_once_and_ends_decided(problem: Problem, inputs: Inputs) -> None:
    queue = RaceQueue(problem)
    units = [unit for batch in race(queue, inputs) for unit in batch]
    assert queue.is_decided()
    assert queue.complete()
    assert queue.expect_left() == 0.0
    done = [(u.size, u.split, path, step) for u in units for path, n in u.paths for step in range(n)]
    assert {unit.stage for unit in units} == {Stage.SELECT}
    assert len(done) == queue.fits
    assert len(set(done)) == queue.progress().computed


BOTH = [Unit(stage, 1, 2, EVERY) for stage in (Stage.SELECT, Stage.REFIT)]


def test_the_shared_data_are_not_written_to() -> None:
    inputs = share(Problem.of(STUDY.replace(scale="none"), blobs(30)))
    task, distances = inputs.shared
    for array in (task.X, task.y, distances, inputs.problem.task.X):
        array.flags.writeable = False
    outcome = evaluate(inputs, BOTH)
    assert not outcome.failures


def test_what_was_not_begun_in_time_is_left_and_the_first_is_always_begun(inputs: Inputs) -> None:
    """The records of both parts are those of the whole."""
    units = tuple(Unit(Stage.SELECT, 1, split, ((0, 3), (1, 2))) for split in range(4))
    whole = evaluate(inputs, units)
    assert whole.left == ()
    found, batches = [], 0
    while units:
        outcome = evaluate(inputs, units, seconds=0.0)
        assert outcome.left == units[1:]
        found.append(outcome.records)
        units, batches = outcome.left, batches + 1
    assert batches == 4
    assert np.concatenate(found).tobytes() == whole.records.tobytes()
