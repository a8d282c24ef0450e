"""A record depends on the study, the data and its own key alone."""

import numpy as np
import pytest
from conftest import blobs

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine import evaluate as worker
from ckcv_ray.learners.svm import path as solver
from ckcv_ray.records.record import Records
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Study
from ckcv_ray.tables.task import Task


def problem(scale: str) -> Problem:
    study = Study.paper(
        C=(0.1, 1.0, 10.0, 1000.0), gamma=(0.01, 0.1, 1.0), k=(3, 4, 5), n_splits=5, scale=scale
    )
    return Problem.of(study, blobs(70, d=3, seed=2))


def unit(stage: str) -> Unit:
    return Unit(Stage(stage), 1, 2, ((0, 4), (1, 4), (2, 4)))


def evaluate(units: list[Unit], scale: str) -> Records:
    outcome = worker.evaluate(units, worker.share(problem(scale)))
    assert not outcome.failures
    return outcome.records


def by_key(records: Records) -> dict[tuple[object, ...], bytes]:
    return {tuple(record)[:5]: record.tobytes() for record in records}


@pytest.mark.parametrize("scale", ["none", "standard"])
@pytest.mark.parametrize("stage", [Stage.SELECT, Stage.ESTIMATE])
def test_what_else_is_asked_for_changes_nothing(stage: Stage, scale: str) -> None:
    together = by_key(evaluate([unit(stage)], scale))
    assert len(together) == 12
    for path in (2, 0, 1):
        for length in (4, 1, 3):
            others = [
                Unit(stage, 0, 0, ((1, 2),)),
                Unit(stage, 1, 2, ((path, length),)),
                Unit(stage, 2, 1, ((0, 4),)),
            ]
            found = by_key(evaluate(others, scale))
            shared = set(found) & set(together)
            assert len(shared) == length
            assert all(found[key] == together[key] for key in shared)


def test_the_shared_data_are_not_written_to() -> None:
    inputs = worker.share(problem("none"))
    for array in (inputs.shared.task.X, inputs.shared.task.y, inputs.shared.distances, inputs.problem.task.X):
        assert array is not None
        array.flags.writeable = False
    outcome = worker.evaluate([unit("select"), unit("refit")], inputs)
    assert not outcome.failures


def test_a_solver_that_raises_is_data_not_a_crash(
    study: Study, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object) -> None:
        raise FloatingPointError("the matrix is a pineapple")

    monkeypatch.setattr(solver, "path", broken)
    unit = Unit(Stage.SELECT, 0, 0, ((0, 3), (1, 2)))
    outcome = worker.evaluate([unit], worker.share(Problem.of(study, task)))
    assert not len(outcome.records)
    assert [(f.path, f.first, f.stop) for f in outcome.failures] == [(0, 0, 3), (1, 0, 2)]
    assert all("pineapple" in failure.traceback for failure in outcome.failures)


def test_whether_an_evaluation_fails_depends_on_its_key_alone(
    study: Study, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that raises at its last step keeps the counts of the others, as a shorter path would."""
    sound = solver.path

    def fragile(M: object, y: object, C_values: tuple[float, ...], *rest: object) -> object:
        if C_values[-1] > 1.0:
            raise FloatingPointError("C is too large")
        return sound(M, y, C_values, *rest)

    monkeypatch.setattr(solver, "path", fragile)
    inputs = worker.share(Problem.of(study, task))
    long = worker.evaluate([Unit(Stage.SELECT, 0, 0, ((0, 3),))], inputs)
    short = worker.evaluate([Unit(Stage.SELECT, 0, 0, ((0, 2),))], inputs)
    assert np.array_equal(long.records, short.records)
    assert not short.failures
    assert [(f.first, f.stop) for f in long.failures] == [(2, 3)]


def test_what_is_lost_as_a_whole_fails_on_every_step_that_would_be_scored() -> None:
    units = [unit("select"), unit("refit")]
    outcome = worker.make_failures(units, 2, "lost")
    assert not len(outcome.records)
    assert [f[:6] for f in outcome.failures[:3]] == [(False, 1, 2, path, 0, 4) for path in range(3)]
    assert [f[:6] for f in outcome.failures[3:]] == [(True, 1, 2, path, 3, 4) for path in range(3)]
    assert {f.traceback for f in outcome.failures} == {"lost"}


def test_what_was_not_begun_in_time_is_left_and_the_first_is_always_begun() -> None:
    """The records of both parts are those of the whole."""
    inputs = worker.share(problem("none"))
    units = tuple(Unit(Stage.SELECT, 1, split, ((0, 4), (2, 3))) for split in range(5))
    whole = worker.evaluate(units, inputs)
    assert whole.left == ()
    found, batches = [], 0
    while units:
        outcome = worker.evaluate(units, inputs, seconds=0.0)
        assert outcome.left == units[1:]
        found.append(outcome.records)
        units, batches = outcome.left, batches + 1
    assert batches == 5
    assert np.concatenate(found).tobytes() == whole.records.tobytes()
