"""A first look shows what was finished in time, of rows that the run learns from, as a procedure does."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from conftest import blobs

from ckcv_ray import Execution, Study, Task
from ckcv_ray.claims.certify import expect_claims
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.engine.worker import LostError
from ckcv_ray.errors import RunError
from ckcv_ray.runs import run as running
from ckcv_ray.runs.run import assess, never, run_work
from ckcv_ray.runs.scored import Scored, rank_entries
from ckcv_ray.study.problem import Problem

SERIAL = Execution("serial")
STUDY = Study.of(learner="naive_bayes,tree,linear", k=(3,), n_splits=2)
TASK = blobs(120)


class Time:
    """A clock that goes on by what fits take, in this process: seconds of each path, in their order."""

    def __init__(self, *seconds: float) -> None:
        self.now, self.seconds, self.asked = 0.0, seconds, list[tuple[int, int]]()

    def compute(
        self, learner: Any, timeout: float, function: Any, inputs: Any, units: Any, seconds: float
    ) -> Any:
        ((path, _),), split = units[0].paths, units[0].split
        self.asked.append((split, path))
        self.now += min(self.seconds[path], seconds)
        if self.seconds[path] > seconds:
            raise LostError("it did not answer in time")
        return function(inputs, units)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Time]:
    def make(*seconds: float) -> Time:
        time = Time(*seconds)
        monkeypatch.setattr(running, "monotonic", lambda: time.now)
        monkeypatch.setattr(running, "compute_apart", time.compute)
        monkeypatch.setattr(running, "warm_up", lambda inputs: None)
        return time

    return make


def look(study: Study = STUDY, task: Task = TASK) -> Scored:
    return cast(Scored, run_work(running.look(study, Problem.of(study, task), 30.0, None, never), SERIAL))


def list_values(result: Any) -> list[Any]:
    """Learners and settings, with the score on each split."""
    return [(e.name, *result.of_splits(e, result.scores[0])) for e in result.entries]


@pytest.mark.parametrize(
    ("seconds", "kept", "n_splits"),
    [
        ((2, 2, 2), ["naive_bayes", "tree", "linear"], 5),  # 30 in all
        ((2, 4, 4), ["naive_bayes", "tree", "linear"], 3),
        ((20, 1, 1), ["tree", "linear"], 5),  # each has its share
        ((99, 99, 7), ["linear"], 1),
    ],
)
def test_time_decides_how_much_is_shown_and_each_figure_is_that_of_the_procedure(
    seconds: tuple[float, ...], kept: list[str], n_splits: int, clock: Callable[..., Time]
) -> None:
    time = clock(*seconds)
    found = look()
    assert list(found.problem.learners) == kept
    assert found.computed.n_splits == n_splits
    assert time.now <= 30
    assert list_values(found) == list_values(assess(found.study, found.task))


def test_what_was_begun_in_a_split_that_did_not_end_is_not_shown(clock: Callable[..., Time]) -> None:
    time = clock(1, 1, 1)

    def slower(*given: Any, **more: Any) -> Any:
        time.seconds = (1, 1, 99) if len(time.asked) > 7 else time.seconds
        return time.compute(*given, **more)

    running.compute_apart = slower  # undone with the clock
    found = look()
    assert time.asked[-1] == (2, 2)
    assert (found.computed.n_splits, len(found.problem.learners)) == (2, 3)


@pytest.mark.parametrize(("n", "cure"), [(120, "allow more time"), (3200, "--rows 1000")])
def test_where_nothing_is_finished_it_says_so(n: int, cure: str, clock: Callable[..., Time]) -> None:
    clock(99, 99, 99)
    with pytest.raises(RunError, match=f"^nothing finished in 30 s: {cure}$"):
        look(task=blobs(n))


def test_fewer_rows_are_among_more() -> None:
    problem = Problem.of(STUDY, TASK)
    taken = [{*map(tuple, running.take_rows(problem, rows).X)} for rows in (20, 40, None)]
    assert [len(rows) for rows in taken] == [20, 40, 60]
    assert taken[0] < taken[1] < taken[2] == {*map(tuple, problem.task.X)}


def test_what_is_expected_are_the_bounds_on_as_many_wrong_rows() -> None:
    study = STUDY.replace(claim="refit,recall,auc", holdout_share=0.5)
    problem = Problem.of(study, TASK)
    error, *recalls = expect_claims(problem, [0.1, 0.2])
    n = np.bincount(problem.task.y).tolist()  # as many are held out
    wrong = [round(0.1 * n[0]), round(0.2 * n[1])]
    assert (error.errors, error.rows) == (sum(wrong), 60)
    assert error.bound == clopper_pearson(sum(wrong), 60, 0.05 / 3)
    found = [(claim.label, claim.errors, claim.rows, claim.bound) for claim in recalls]
    assert found == [
        (c, w, m, clopper_pearson(w, m, 0.05 / 6)) for c, w, m in zip((-1, 1), wrong, n, strict=True)
    ]
    assert error.gate is not None
    assert error.gate.passed


def test_numbers_are_compared_by_the_clipped_error(clock: Callable[..., Time]) -> None:
    clock(1, 1)
    X = np.random.default_rng(0).normal(size=(120, 3))
    task = Task.of(X, X[:, 0] + 5, numbers=True)
    study = Study.of(learner="forest_regressor,ridge", clip=2, k=(3,), n_splits=2)
    found = look(study, task)
    (score,), problem = found.scores, Problem.of(study, task)
    (best, figures), _ = rank_entries(found, score)
    assert (best.learner, score.name) == ("ridge", "clipped:2.0")
    assert figures.mean < 0.1 < running.score_constant(problem, score) < 2
    (claim,) = running.expect_run(found, problem)
    assert claim.bound is not None
    assert figures.mean / 2 < claim.bound < 0.2
