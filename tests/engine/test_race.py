"""The queue adds and says what comes next: in any order, any number of times, it says the same."""

from collections.abc import Iterator

import pytest
from conftest import blobs
from doubles import FIRE

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.evaluate import Inputs, evaluate, make_failures, share
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Study

STUDY = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4), n_splits=4, report_k=(4,))
EVERY = ((0, 3), (1, 3))


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem.of(STUDY, blobs(30))


@pytest.fixture(scope="module")
def exhaustive() -> Problem:
    return Problem.of(STUDY.replace(exhaustive=True), blobs(30))


@pytest.fixture(scope="module")
def inputs(problem: Problem) -> Inputs:
    return share(problem)


def race(queue: RaceQueue, inputs: Inputs) -> Iterator[tuple[Unit, ...]]:
    """Do what is asked for until nothing is; the batches."""
    while units := queue.plan(1).units:
        queue.add(evaluate(units, inputs))
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


def test_what_is_done_failed_and_dropped_is_all_that_was_planned(problem: Problem, inputs: Inputs) -> None:
    queue = RaceQueue(problem)
    queue.add(make_failures([Unit(Stage.SELECT, 0, 1, EVERY)], problem.n_totals, FIRE))
    for _ in race(queue, inputs):
        at = queue.progress()
        assert at.computed + at.failed + at.dropped <= at.planned == problem.n_evaluations
    at = queue.progress()
    assert at.computed + at.failed + at.dropped == at.planned
    assert at.failed >= 6


def test_failures_of_one_path_are_joined_in_any_order(problem: Problem, inputs: Inputs) -> None:
    lost = [make_failures([Unit(Stage.SELECT, 0, 1, ((1, n),))], problem.n_totals, FIRE) for n in (2, 3)]
    for outcomes in (lost, lost[::-1], [*lost, *lost]):
        queue = RaceQueue(problem)
        for outcome in outcomes:
            queue.add(outcome)
        assert [failure[:6] for failure in queue.failures()] == [(False, 0, 1, 1, 0, 3)]
    queue.add(evaluate([Unit(Stage.SELECT, 0, 1, ((1, 2),))], inputs))
    assert len(queue.failures()) == 1
    queue.add(evaluate([Unit(Stage.SELECT, 0, 1, ((1, 3),))], inputs))
    assert queue.failures() == []
    queue.add(lost[0])  # of another batch, late
    assert queue.failures() == []


def test_an_exhaustive_run_is_not_complete_before_its_estimates(exhaustive: Problem) -> None:
    inputs = share(exhaustive)
    queue = RaceQueue(exhaustive)
    for j in range(2):
        for i in range(4):
            assert not queue.is_decided()
            queue.add(evaluate([Unit(Stage.SELECT, j, i, EVERY)], inputs))
    assert queue.is_decided()
    assert not queue.complete()
    units = [unit for batch in race(queue, inputs) for unit in batch]
    assert {(unit.stage, unit.size, unit.split) for unit in units} == {
        (Stage.ESTIMATE, j, i) for j in range(2) for i in range(4)
    }
    assert queue.complete()


def test_estimates_that_failed_are_not_waited_for(exhaustive: Problem) -> None:
    inputs, queue = share(exhaustive), RaceQueue(exhaustive)
    units = [Unit(stage, j, i, EVERY) for stage in list(Stage)[:2] for j in range(2) for i in range(4)]
    queue.add(evaluate(units[:-1], inputs))
    assert not queue.complete()
    queue.add(evaluate([units[-1]._replace(paths=((0, 3), (1, 1)))], inputs))
    assert not queue.complete()
    queue.add(make_failures([units[-1]._replace(paths=((1, 3),))], exhaustive.n_totals, FIRE))
    assert queue.complete()
