"""Evaluations by key: repeating one changes nothing, a different one is an error that shows both."""

import tracemalloc

import numpy as np
import pytest
from conftest import blobs

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.evaluate import evaluate, share
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.errors import RunError
from ckcv_ray.records.record import NO_RECORD, Failure, Ledger, Records
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Study

STUDY = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4), n_splits=3)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem.of(STUDY, blobs(30))


@pytest.fixture(scope="module")
def records(problem: Problem) -> Records:
    """Records of two splits in both stages, with one path fewer in the second."""
    paths = ((0, 3), (1, 2))
    units = [Unit(stage, 1, split, paths) for stage in (Stage.SELECT, Stage.ESTIMATE) for split in (0, 2)]
    return evaluate(share(problem), units).records


def test_new_records_are_told_from_those_held_and_what_was_entered_is_held(problem, records):
    ledger = Ledger(problem)
    assert ledger.enter(records[:7]).all()
    assert ledger.enter(records).tolist() == [False] * 7 + [True] * (len(records) - 7)
    assert not ledger.enter(records[::-1]).any()
    assert np.array_equal(np.sort(ledger.records()), np.sort(records))
    for stage in (False, True):
        entered = records[records["estimate"] == stage]
        known, totals = ledger.known(1, stage), ledger.totals(1, stage)
        assert np.array_equal(totals[entered["split"], entered["path"], entered["step"]], entered["totals"])
        assert known.sum() == len(entered)
        assert np.array_equal(known, np.all(totals != NO_RECORD, axis=-1))
        assert not ledger.known(0, stage).any()


@pytest.mark.parametrize("field", ["totals", "n_iter", "status"])
@pytest.mark.parametrize("together", [True, False], ids=["in one batch", "one after the other"])
def test_a_different_record_under_the_same_key_is_an_error(problem, records, field, together):
    ledger, other = Ledger(problem), records[3:4].copy()
    other[field] = other[field] + 1
    if not together:
        ledger.enter(records)
    with pytest.raises(RunError, match=r"two records of .*'split': 0.* differ, .*not deterministic") as error:
        ledger.enter(np.concatenate([records, other]) if together else other)
    for totals, n_iter, status in np.append(records[3], other)[["totals", "n_iter", "status"]]:
        assert str([*totals.tolist(), n_iter.item(), status.item()]) in str(error.value)


def test_a_failure_is_held_once_all_its_steps_are(problem: Problem, records: Records) -> None:
    ledger = Ledger(problem)
    failure = Failure(False, 1, 0, 0, 1, 3, "fire")
    assert not ledger.holds(failure)
    ledger.enter(records[:2])
    assert not ledger.holds(failure)
    ledger.enter(records[:3])
    assert ledger.holds(failure)
    assert not ledger.holds(failure._replace(estimate=True))


def test_fits_that_ended_at_the_cap_are_counted_in_both_stages() -> None:
    problem = Problem.of(STUDY.replace(param={"max_iter": 1}), blobs(30))
    units = [Unit(stage, 0, 0, ((1, 3),)) for stage in (Stage.SELECT, Stage.ESTIMATE)]
    ledger, records = Ledger(problem), evaluate(share(problem), units).records
    ledger.enter(records)
    assert ledger.not_converged() == int(np.sum(records["status"] == 1)) > 0


def test_memory_follows_what_was_computed_and_not_what_is_planned() -> None:
    """Of a fold size without records neither its totals nor its values are held, each of them alone."""
    grid = tuple(np.logspace(-2, 2, 40).tolist())
    large = Problem.of(Study.paper(C=grid, gamma=grid, k=tuple(range(3, 23)), n_splits=100), blobs(120))
    units = [Unit(Stage.SELECT, 1, 0, ((0, 40),))]
    outcome = evaluate(share(large), units)
    tracemalloc.start()
    queue = RaceQueue(large)
    queue.add(outcome)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    every = large.n_evaluations * np.dtype(np.float64).itemsize
    assert len(queue.ledger.records()) == 40
    assert held < every / 2  # dense tables of all of them take three times as much
