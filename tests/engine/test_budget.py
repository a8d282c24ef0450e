"""A search within a budget: the same answer for any order of arrival, and what it promises of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from conftest import blobs
from doubles import FIRE
from stores import results

from ckcv_ray import Execution, Job
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.evaluate import evaluate, make_failures, share
from ckcv_ray.engine.forecast import estimate
from ckcv_ray.engine.race import BudgetQueue
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.records.candidates import summarize_search
from ckcv_ray.records.record import Outcome, Records
from ckcv_ray.runs.finished import load, replay
from ckcv_ray.runs.run import run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Study

SERIAL = Execution("serial")
Done = tuple[BudgetQueue, list[Records]]
GRIDS: dict[str, Any] = {
    "C": (0.1, 1.0, 10.0, 100.0),
    "gamma": (0.01, 0.1, 1.0),
    "k": (3, 4, 5, 7),
    "n_splits": 6,
}
STUDY = Study.paper(**GRIDS, search="budget:survivors=3,least_splits=3", effort=150)
SCREENED = Study.paper(**GRIDS, search="budget:survivors=3,least_splits=6", effort=90)  # on half of the rows
WEIGHING = STUDY.replace(criterion="balanced")
LEARNERS = Study.paper(learner="tree,linear", k=(3, 5), n_splits=4, search="budget", effort=700, seed=1)
MANY_LANDMARKS = Study.paper(
    learner="svm_nystroem,linear",
    param={"landmarks": 260},
    C=(0.1, 1.0),
    gamma=(0.1, 1.0),
    k=(3, 4),
    n_splits=12,
).replace(search="budget:survivors=2,least_splits=4", effort=200)
CASES = {
    "plain": (STUDY, 60),
    "screens": (SCREENED, 900),
    "by class": (WEIGHING, 900),
    "learners": (LEARNERS, 80),
    "parts too small": (MANY_LANDMARKS, 900),
    "reported": (STUDY.replace(report_k=(7,)), 60),
}


def finish(queue: BudgetQueue) -> list[Records]:
    """Compute what the queue asks for, one unit after the other; the records of each unit."""
    inputs, records = share(queue.problem), []
    while units := queue.plan(1).units:
        for unit in units:
            outcome = evaluate(inputs, [unit])
            queue.add(outcome)
            records.append(outcome.records)
    return records


LARGE = "parts too small"
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name == LARGE else name for name in CASES]


@pytest.fixture(scope="module", params=NAMES)
def done(request: pytest.FixtureRequest) -> Done:
    study, n = CASES[request.param]
    queue = BudgetQueue(Problem.of(study, blobs(n, shift=0.6)))
    return queue, finish(queue)


def test_it_ends_decided_within_the_effort_with_everything_accounted_for(done: Done) -> None:
    queue, records = done
    one_candidate = max(queue.problem.learner.space.lengths) * max(s.n_splits for s in queue.problem.sizes)
    assert queue.left >= -one_candidate * (1 + len(queue.problem.own))
    assert queue.complete()
    assert queue.expect_left() == 0.0
    at = queue.progress()
    assert at.computed + at.dropped == at.planned
    assert sum(map(len, records)) == queue.fits
    assert len(np.unique(np.concatenate(records)[["size", "split", "path", "step"]])) == at.computed


def test_any_order_of_arrival_gives_the_same_rounds_and_table(done: Done) -> None:
    queue, records = done
    every, table, failures = np.concatenate(records), queue.candidates(), tuple(queue.ledger.failed.values())
    rng = np.random.default_rng(np.random.SeedSequence(3))
    for _ in range(4):
        again = BudgetQueue(queue.problem)
        for i, part in enumerate(np.array_split(rng.permutation(every), 5)):
            again.add(Outcome(part, failures[i::5], ()))
            again.add(Outcome(part[:3], (), ()))
        assert again.candidates().equals(table)
        assert str(again.rounds) == str(queue.rounds)


def test_records_that_no_round_wants_decide_nothing(done: Done) -> None:
    queue, records = done
    problem, again = queue.problem, BudgetQueue(queue.problem)
    every = tuple(enumerate(problem.learner.space.lengths))
    inputs = share(problem)
    for size in range(len(problem.sizes)):
        for split in range(problem.sizes[size].n_splits):
            again.add(evaluate(inputs, [Unit(Stage.SELECT, size, split, every)]))
    for part in records:
        again.add(Outcome(part, (), ()))
    again.add(Outcome(records[0][:0], tuple(queue.ledger.failed.values()), ()))
    assert again.candidates().equals(queue.candidates())


def test_what_is_left_open_could_be_better_and_nothing_else_is(done: Done) -> None:
    queue, _ = done
    table, winner = queue.candidates(), queue.selection.winner
    left, beaten = (table.filter(pc.equal(table["state"], state)) for state in ("open", "beaten"))
    assert pc.all(pc.less_equal(left["lower_bound"], winner.l_ms)).as_py() is not False
    if not queue.problem.own:
        complete = pc.equal(beaten["lower_bound"], beaten["l_ms"])
        worse = pc.greater_equal(beaten["lower_bound"], winner.l_ms)
        assert pc.all(pc.or_(worse, pc.fill_null(complete, False))).as_py() is not False
    searched = summarize_search(table, queue.problem)
    assert searched["not_excluded"] == len(left)
    assert searched["least"] == pc.min(left["lower_bound"]).as_py()


def test_screens_are_parts_of_one_split_each_within_the_one_before() -> None:
    problem = Problem.of(SCREENED, blobs(900))
    first = len(problem.sizes)
    assert len(problem.folds) > first
    for number in range(3):
        whole = problem.split(problem.screened, number)
        for position in range(first, len(problem.folds)):
            part, fold = problem.split(position, number), problem.folds[position]
            assert np.isin(part.train, whole.train).all()
            assert np.isin(part.select, whole.select).all()
            assert (len(part.train), len(part.select)) == (fold.n_train, fold.n_select)
            assert len(part.estimate) == 0
            whole = part
    queue = BudgetQueue(problem)
    assert next(iter(queue.rounds[0])) >= first


@pytest.mark.parametrize("certify", ["paper", "holdout"])
def test_a_deepened_run_is_in_every_byte_one_begun_with_that_effort(certify: str, tmp_path: Path) -> None:
    study, task = STUDY.replace(certify=certify), blobs(60, shift=0.6)
    deep = study.replace(effort=420)
    run_job(Job(deep, task, tmp_path / "begun"), SERIAL)
    if certify == "paper":
        run_job(Job(study, task, tmp_path / "deepened"), SERIAL)
    else:  # stopped before the rows held out are judged
        progress = iter(range(4))
        with pytest.raises(KeyboardInterrupt):
            run_job(Job(study, task, tmp_path / "deepened"), SERIAL, lambda: next(progress, None) is None)
    result = run_job(Job(deep, task, tmp_path / "deepened"), SERIAL)
    assert results(tmp_path / "deepened") == results(tmp_path / "begun")
    assert result.study.effort == 420
    assert load(tmp_path / "deepened").study.effort == 420
    queue = replay(tmp_path / "deepened")
    assert queue.candidates().equals(result.candidates)


def test_a_folder_goes_on_with_its_effort_and_never_with_less(tmp_path: Path) -> None:
    task = blobs(60, shift=0.6)
    run_job(Job(STUDY, task, tmp_path), SERIAL)
    left_out = Study.paper(**GRIDS, search="budget:survivors=3,least_splits=3")
    assert run_job(Job(left_out, task, tmp_path), SERIAL).study.effort == 150
    with pytest.raises(StoreError, match=r"holds a search with effort 150.*effort=140 is too little"):
        run_job(Job(STUDY.replace(effort=140), task, tmp_path), SERIAL)


def test_a_finished_run_is_not_deepened_once_rows_were_judged(tmp_path: Path) -> None:
    study, task = STUDY.replace(certify="holdout", k=(3, 4)), blobs(80, shift=0.6)
    run_job(Job(study, task, tmp_path), SERIAL)
    before = results(tmp_path)
    with pytest.raises(InputError, match="its holdout has judged its rows"):
        run_job(Job(study.replace(effort=300), task, tmp_path), SERIAL)
    assert results(tmp_path) == before


def test_a_failure_leaves_its_candidate_out_and_the_rest_goes_on() -> None:
    problem = Problem.of(STUDY.replace(effort=200), blobs(60, shift=0.6))
    queue, inputs, tables = BudgetQueue(problem), share(problem), []
    for order in (1, -1):
        queue = BudgetQueue(problem)
        while units := queue.plan(1).units:
            for unit in units[::order]:
                lost = unit.split == 1 and any(path == 1 for path, _ in unit.paths)
                failed = make_failures([unit], inputs, FIRE)
                queue.add(failed if lost else evaluate(inputs, [unit]))
        tables.append(queue.candidates())
        assert queue.complete()
        assert queue.progress().failed > 0
    assert tables[0].equals(tables[1])
    winner = queue.selection.winner
    assert winner.path != 1


def test_an_effort_that_completes_no_candidate_is_refused() -> None:
    with pytest.raises(InputError, match=r"effort=5: comparing 12 settings .* takes an effort of"):
        Problem.of(STUDY.replace(effort=5), blobs(60))


@pytest.mark.parametrize(("name", "workers"), [("plain", 1), ("screens", 3), ("learners", 1)])
def test_the_time_that_is_said_to_be_needed_is_just_enough(name: str, workers: int) -> None:
    study, n = CASES[name]
    problem = Problem.of(study, blobs(n))
    expected, least = estimate(problem), problem.least_effort
    needed = expected.expect_rounds(least, workers)
    assert expected.fit_effort(1.001 * needed, workers) >= least
    assert expected.fit_effort(0.98 * needed, workers) < least
    assert expected.fit_effort(1e-9, workers) == 1


@pytest.mark.parametrize("name", ["plain", "by class", "learners"])
def test_with_enough_effort_the_winner_is_that_of_the_race(name: str) -> None:
    study, n = CASES[name]
    task = blobs(n, shift=0.6)
    effort = Problem.of(study, task).n_evaluations
    found, race = (
        run_job(Job(each, task), SERIAL).certificate
        for each in (study.replace(effort=effort), study.replace(search="race"))
    )
    assert (found.setting, found.k, found.l_ee) == (race.setting, race.k, race.l_ee)
    assert (found.search["not_excluded"], found.search["least"]) == (0, None)


@pytest.mark.slow
def test_a_part_on_which_a_setting_fails_is_too_small_and_excludes_nothing(tmp_path: Path) -> None:
    """All training rows of a split are enough, half of them are not."""
    task = blobs(900, shift=0.6)
    problem = Problem.of(MANY_LANDMARKS, task)
    whole, half = problem.screen_positions
    assert problem.folds[whole].n_train >= 260 > problem.folds[half].n_train
    queue = BudgetQueue(problem)
    finish(queue)
    assert [next(iter(each)) for each in queue.rounds[:2]] == [half, whole]
    assert len(queue.rounds) == queue.over + 2  # the repeated one, and the race
    assert queue.failures() == []
    at = queue.progress()
    assert (at.failed, at.computed + at.dropped) == (0, at.planned)
    out = tmp_path / "run"
    result = run_job(Job(MANY_LANDMARKS, task, out), SERIAL)
    assert result.execution["failures"] == []
    assert verify(out, rerun=True, execution=SERIAL).ok
