"""The work of a study as a list, its division among shards, and what of a part is missing."""

import numpy as np
import pytest
from conftest import blobs

from ckcv_ray.core.schedule import Stage
from ckcv_ray.engine.evaluate import evaluate, make_failures, share
from ckcv_ray.engine.queues import make_queue
from ckcv_ray.engine.shards import Items, ShardQueue, Tally, check_divisible, divide_work
from ckcv_ray.errors import InputError
from ckcv_ray.study import Problem, Study

GRID = {"C": (0.1, 1.0, 10.0), "gamma": (0.1, 1.0)}
CERTIFIED = Study.paper(**GRID, k=(3, 4, 5), n_splits=4)
STUDIES = {
    "race": CERTIFIED,
    "exhaustive": CERTIFIED.replace(exhaustive=True),
    "learners": Study.of(learner="tree,svm", C=(1.0, 10.0), gamma=(0.1,), k=(3, 5), n_splits=3),
    "kfold": Study.without_certification("kfold:5", learner="svm", **GRID, refit="best"),
    "inner": Study.without_certification("nested:3:2", learner="svm", **GRID),
    "permuted": Study.without_certification("kfold:3", learner="svm", permutations=4),
}
PROBLEMS = {name: Problem.of(study, blobs(60)) for name, study in STUDIES.items()}


def list_work(name):
    return [Items(PROBLEMS[name])]


def list_evaluations(units):
    """Every evaluation of some units, by position."""
    return [
        (unit.stage is not Stage.SELECT, unit.size, unit.split, path, step)
        for unit in units
        for path, length in unit.paths
        for step in range(length)
    ]


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_every_item_is_in_exactly_one_shard(name, count):
    every = list_work(name)
    shards = divide_work(every, count)
    assert len(shards) == count
    pieces = [(at, item) for pieces in shards for at, first, stop in pieces for item in range(first, stop)]
    assert pieces == [(at, item) for at, items in enumerate(every) for item in range(items.count)]


@pytest.mark.parametrize("name", PROBLEMS)
def test_as_many_shards_as_items_have_one_each(name):
    every = list_work(name)
    most = sum(items.count for items in every)
    assert all(len(pieces) == 1 and pieces[0][2] - pieces[0][1] == 1 for pieces in divide_work(every, most))


def test_shards_cost_about_the_same():
    (items,) = list_work("race")
    weights = items.weigh(items.sum_costs())
    assert weights.sum() == pytest.approx(1.0)
    sums = [weights[first:stop].sum() for ((_, first, stop),) in divide_work([items], 5)]
    assert max(sums) - min(sums) <= 2 * weights.max()


def test_each_learner_weighs_the_same():
    """Their costs cannot be compared."""
    (items,) = list_work("learners")
    weights = items.weigh(items.sum_costs())
    learners = np.tile(items.problem.learner_of_paths, items.count // len(items.lengths))
    assert np.bincount(learners, weights) == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("name", PROBLEMS)
def test_units_are_the_evaluations_of_the_items(name):
    for items in list_work(name):
        found = list_evaluations(items.list_units(np.arange(items.count)))
        assert len(found) == len(set(found)) == items.evaluations
        positions = np.array(found)
        located = items.locate(*(positions[:, i] for i in range(4)))
        assert sorted(set(located.tolist())) == list(range(items.count))


def test_an_evaluation_that_no_shard_computes_is_nowhere():
    (items,) = list_work("race")
    assert items.locate(True, np.array([0]), np.array([0]), np.array([0])).tolist() == [-1]
    (inner,) = list_work("inner")
    assert inner.locate(False, np.array([0, 1]), np.array([0, 0]), np.array([0, 0])).tolist() == [-1, 0]


@pytest.mark.parametrize("name", ["race", "exhaustive", "kfold", "permuted"])
def test_a_queue_with_all_of_it_has_nothing_left_to_compute(name):
    (items,) = list_work(name)
    outcome = evaluate(list(items.list_units(np.arange(items.count))), share(items.problem))
    queue = make_queue(items.problem)
    queue.add(outcome)
    assert queue.complete()


def test_splits_are_units_where_they_are_many():
    few = Items(PROBLEMS["race"])
    assert all(len(unit.paths) == 1 for unit in few.list_units(np.arange(few.count)))
    many = Items(Problem.of(CERTIFIED.replace(n_splits=17), blobs(60)))
    units = list(many.list_units(np.arange(1, many.count)))
    assert [len(unit.paths) for unit in units[:2]] == [1, 2]  # the rest of a split, and a whole one


def test_a_tally_knows_what_is_missing():
    items = Items(PROBLEMS["race"])
    tally = Tally(items, 2, 9)
    assert tally.list_missing().tolist() == [2, 3, 4, 5, 6, 7, 8]
    assert tally.count() == (7 * 3, 0, 0)
    units = list(items.list_units(np.arange(items.count)))
    outcome = evaluate(units[1:4], share(items.problem))
    tally.enter(outcome.records[:-1], ())  # of item 3 the last step is lacking
    assert tally.list_missing().tolist() == [3, 4, 5, 6, 7, 8]
    lost = make_failures(units[4:6] + units[20:22], items.problem.n_totals, "it broke").failures
    tally.enter(outcome.records[:0], lost)
    assert tally.list_missing().tolist() == [3, 6, 7, 8]
    assert tally.count() == (7 * 3, 5, 6)
    tally.enter(evaluate(units[4:5], share(items.problem)).records, ())
    assert tally.count() == (7 * 3, 8, 3)  # what failed once, and was computed later, has not failed


def test_a_queue_computes_what_is_missing():
    items = Items(PROBLEMS["race"])
    queue = ShardQueue(items, 0, 4)
    queue.tally.enter(evaluate([next(items.list_units(np.array([1])))], share(items.problem)).records, ())
    queue.begin_missing()
    while (batch := queue.plan(1)).units:
        queue.add(evaluate(batch.units, share(items.problem), batch.seconds))
    progress = queue.progress()
    assert (progress.planned, progress.computed, progress.failed, progress.fits) == (12, 12, 0, 9)
    assert progress.left == 0.0


def test_a_budget_cannot_be_divided():
    with pytest.raises(InputError, match="depends on the results of earlier rounds"):
        check_divisible(Problem.of(CERTIFIED.replace(search="budget", effort=300), blobs(60)))
    check_divisible(PROBLEMS["race"])
