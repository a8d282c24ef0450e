"""A study on a task: its canonical form, its fold sizes, its rows by stage, and what is refused."""

import pickle
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from conftest import blobs, limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ckcv_ray.core.criteria import MeanBound
from ckcv_ray.core.draws import Draws, hold_out
from ckcv_ray.core.measures import Kind
from ckcv_ray.core.resampling.base import Strata
from ckcv_ray.core.resampling.complete import split_complete, split_rotation
from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.selection import Leader
from ckcv_ray.engine.evaluate import estimate_memory
from ckcv_ray.errors import InputError
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.study.options import SLOTS
from ckcv_ray.study.problem import Candidate, Problem
from ckcv_ray.study.study import Study, run_id
from ckcv_ray.tables.task import Task

repeatable = settings(derandomize=True, deadline=None, max_examples=limit_examples(40))
COMBINATIONS = [
    {"resampling": resampling, "certify": certify}
    for resampling, certify in product(SLOTS["resampling"], SLOTS["certify"])
    if resampling in SLOTS["certify"][certify].resamplings
]
folds = st.lists(st.integers(3, 30), min_size=1, max_size=8).map(tuple)


def three_classes(n=30):
    X = np.random.default_rng(0).normal(size=(n, 2))
    return Task.of(X, ["a", "b", "c"] * (n // 3))


@pytest.mark.parametrize("n", [6, 7, 30])
def test_3_to_n_has_one_canonical_form(n):
    listed = Study.paper(k=range(3, n + 1))
    one, other = Problem.of(listed, blobs(n)), Problem.of(Study(), blobs(n))
    assert one.study == other.study == Study()
    assert one.run_id == other.run_id == run_id(Study(), blobs(n).digest)
    assert one.sizes == other.sizes
    assert Problem.of(listed, blobs(n + 1)).study.resampling.k == tuple(range(3, n + 1))


@pytest.mark.parametrize("parts", COMBINATIONS, ids=str)
@settings(derandomize=True, deadline=None, max_examples=15)
@given(k=st.none() | folds, n=st.integers(60, 80), seed=st.integers(0, 2**40))
def test_a_problem_of_a_canonical_study_is_the_same_problem(parts, k, n, seed):
    task = blobs(n)
    problem = Problem.of(Study.paper(k=k, seed=seed, **parts), task)
    again = Problem.of(problem.study, task)
    assert (again.study, again.sizes, again.run_id) == (problem.study, problem.sizes, problem.run_id)
    assert problem.run_id == run_id(problem.study, task.digest)
    assert problem.sizes == problem.study.resampling.fold_sizes(problem.task.n)


def test_the_run_id_is_that_of_all_rows_those_held_out_among_them():
    task = blobs(30)
    study = Study.paper(certify="holdout", holdout_share=0.5)
    other = replace(task, X=task.X.copy())
    row = int(Problem.of(study, task).held[0])
    other.X[row] += 1.0
    other = replace(other)  # its digest is made anew
    one, two = Problem.of(study, task), Problem.of(study, other)
    assert one.task.digest == two.task.digest
    assert one.run_id != two.run_id


def test_a_learner_for_two_classes_does_not_go_with_three_and_the_message_names_both(monkeypatch):
    monkeypatch.setitem(SLOTS, "learner", {GaussianSVM.name: GaussianSVM})  # none of another test's
    assert Problem.of(Study.paper(k=3), three_classes()).task.n_classes == 3
    monkeypatch.setattr(GaussianSVM, "kinds", frozenset({Kind.BINARY}))
    with pytest.raises(InputError) as refused:
        Problem.of(Study(), three_classes())
    assert str(refused.value) == (
        "the target 'y' has 3 classes (a, b, c), and learner svm is for two classes: leave out the rows "
        "of other classes"
    )


def test_a_measure_that_is_not_for_the_task_is_named(monkeypatch):
    monkeypatch.setattr(type(MeanBound.measure), "kinds", frozenset({Kind.REGRESSION}))
    with pytest.raises(InputError, match=r"has 2 classes \(-1, 1\), and criterion error is for numbers"):
        Problem.of(Study(), blobs(30))


@pytest.mark.parametrize("wrong", [None, "study", Study, {}])
def test_a_problem_is_of_a_study_and_a_task(wrong):
    with pytest.raises(InputError, match=r"^study=.*is not a Study"):
        Problem.of(wrong, blobs(30))
    with pytest.raises(InputError, match=r"^task=.*is not a Task"):
        Problem.of(Study(), wrong)


@pytest.mark.parametrize("parts", COMBINATIONS, ids=str)
def test_counts_are_those_of_splits_paths_and_steps(parts):
    problem = Problem.of(study_of(parts), blobs(40))
    assert problem.n_settings == 6
    assert problem.n_totals == 2
    assert problem.n_evaluations == 6 * sum(size.n_splits for size in problem.sizes)
    assert problem.learner is problem.study.learner


def study_of(parts, **more):
    return Study.paper(C=(1, 2, 3), gamma=(0.5, 1), **parts, **more)


@pytest.mark.parametrize("parts", COMBINATIONS, ids=str)
def test_rows_are_those_of_the_stage(parts):
    problem = Problem.of(study_of(parts, k=(3, 7), seed=5), blobs(40))
    for j, size in enumerate(problem.sizes):
        for number in range(size.n_splits):
            split = problem.split(j, number)
            expected = problem.study.resampling.split(Strata(problem.task.n), size, number, problem.draws)
            assert [part.tolist() for part in split] == [part.tolist() for part in expected]
            train, score = problem.rows(Stage.SELECT, j, number)
            assert (train.tolist(), score.tolist()) == (split.train.tolist(), split.select.tolist())
            for stage in (Stage.ESTIMATE, Stage.REFIT):
                train, score = problem.rows(stage, j, number)
                assert train.tolist() == sorted([*split.train, *split.select])
                assert score.tolist() == split.estimate.tolist()


def test_a_fit_costs_what_the_learner_says_of_its_rows():
    problem = Problem.of(Study.paper(k=(3, 10)), blobs(30))
    assert [problem.cost(Stage.SELECT, j) for j in (0, 1)] == [10.0**2, 24.0**2]
    for stage in (Stage.ESTIMATE, Stage.REFIT):
        assert [problem.cost(stage, j) for j in (0, 1)] == [20.0**2, 27.0**2]


def test_a_candidate_is_named_by_its_setting_and_its_smallest_k():
    problem = Problem.of(Study.paper(C=(0.1, 10), gamma=(0.5, 2), k=(5, 6, 11)), blobs(30))
    assert problem.candidate(Leader(0.5, 1, 0, 0)) == Candidate({"C": 10.0, "gamma": 0.5}, 5)
    found = problem.candidate(Leader(0.5, 0, 1, 2))
    assert found == ({"C": 0.1, "gamma": 2.0}, 11)
    assert str(found) == "C = 0.1, gamma = 2, k = 11"


@given(st.none() | folds, st.lists(st.integers(3, 30), max_size=4))
@repeatable
def test_sizes_of_their_own_are_those_of_the_folds_reported(k, wanted):
    report = tuple(one for one in wanted if k is None or one in k)
    problem = Problem.of(Study.paper(k=k, report_k=report), blobs(30))
    held = {30 // one for one in report}
    assert problem.own == tuple(j for j, size in enumerate(problem.sizes) if size.n_select in held)


# Rows held out, and parts of the rows


def test_rows_held_out_are_seen_by_no_worker():
    task = blobs(40)
    problem = Problem.of(Study.paper(certify="holdout", holdout_share=0.25), task)
    assert problem.all_rows is task
    assert len(problem.held) == 10
    left = np.setdiff1d(np.arange(40), problem.held)
    assert np.array_equal(problem.task.X, task.X[left])
    rows = problem.take_held_rows()
    assert np.array_equal(rows.X, task.X[problem.held])
    assert np.array_equal(rows.y, task.y[problem.held])
    sent = pickle.loads(pickle.dumps(problem.for_workers()))
    assert sent.take_held_rows() is None
    assert np.array_equal(sent.all_rows.X, problem.task.X)
    assert (sent.run_id, sent.sizes, sent.study) == (problem.run_id, problem.sizes, problem.study)


def test_another_study_on_the_same_rows_certifies_nothing():
    problem = Problem.of(Study.paper(certify="holdout", holdout_share=0.25), blobs(40))
    other = problem.with_study(problem.study.replace(n_splits=3))
    assert other.task.n == other.all_rows.n == 30
    assert other.held is None
    assert other.study == Study.paper(n_splits=3)


# Groups: whole groups in every part of every split, fold sizes and costs in groups


RNG = np.random.default_rng(np.random.SeedSequence(0))
SIZES = RNG.integers(1, 7, size=20)
GROUPS = RNG.permutation(np.repeat(np.arange(20), SIZES))
N = len(GROUPS)
TASK = Task.of(blobs(N).X, blobs(N).y, groups=GROUPS)
GRIDS = {"C": (1.0,), "gamma": (1.0,)}


def groups_in(rows: np.ndarray, task: Task = TASK) -> set[int]:
    """The groups of some rows, which must have all rows of each."""
    assert not task.units.independent
    assert np.all(np.diff(rows) > 0)
    groups = np.unique(task.row_units[rows])
    assert np.array_equal(np.flatnonzero(np.isin(task.row_units, groups)), rows)
    return set(groups.tolist())


@pytest.mark.parametrize("resampling", ["complete", "rotation"])
@pytest.mark.parametrize("certify", ["paper", "holdout"])
def test_every_part_of_every_split_is_made_of_whole_groups(resampling: str, certify: str) -> None:
    share = {"holdout_share": 0.5} if certify == "holdout" else {}
    problem = Problem.of(Study.paper(resampling=resampling, certify=certify, **share, **GRIDS), TASK)
    task = problem.task
    for j, size in enumerate(problem.sizes):
        for number in range(min(size.n_splits, 4)):
            train, select, estimate = (groups_in(part, task) for part in problem.split(j, number))
            assert train | select | estimate == set(range(task.n_units))
            assert (len(train), len(select), len(estimate)) == (size.n_train, size.n_select, size.n_select)
            assert len(train) + len(select) + len(estimate) == task.n_units
            together, scored = problem.rows(Stage.REFIT, j, number)
            assert groups_in(together, task) == train | select
            assert groups_in(scored, task) == estimate


def test_splits_of_groups_are_those_of_as_many_rows() -> None:
    draws = {
        "complete": lambda k, i: split_complete(20, k, i, 20, Draws(3, TASK.salt)),
        "rotation": lambda k, i: split_rotation(20, k, i, Draws(3, TASK.salt)),
    }
    for name, draw in draws.items():
        problem = Problem.of(Study.paper(resampling=name, k=(3, 7), seed=3, **GRIDS), TASK)
        for j, k in enumerate((3, 7)):
            for drawn, part in zip(draw(k, 1), problem.split(j, 1), strict=True):
                assert sorted(groups_in(part)) == drawn.tolist()


def test_whole_groups_are_held_out() -> None:
    problem = Problem.of(Study.paper(certify="holdout", holdout_share=0.6, seed=5, **GRIDS), TASK)
    assert problem.held is not None
    assert sorted(groups_in(problem.held)) == hold_out(20, 0.6, Draws(5, TASK.salt)).tolist()
    assert np.array_equal(problem.take_held_rows().row_units, TASK.row_units[problem.held])
    assert problem.task.n_units == 8
    assert problem.for_workers().task.row_units is problem.task.row_units


def test_k_goes_up_to_the_number_of_groups() -> None:
    problem = Problem.of(Study.paper(resampling="rotation", **GRIDS), TASK)
    assert [size.k for size in problem.sizes] == list(range(3, 21))
    assert Problem.of(Study.paper(k=range(3, 21), **GRIDS), TASK).study.resampling.k is None


HOLD = {"certify": "holdout"}
REFUSED = [
    *(
        (blobs(400), {"report_k": k}, rf"^report_k={k} is outside 3\.\.400: there are 400 rows")
        for k in (0, 1, 2, 401, 10**6)
    ),
    (blobs(40), {"k": (3, 4), "report_k": (3, 5)}, r"report_k=5 is not among k=3,4: add it"),
    *(
        (TASK, {name: 21}, f"^{name}=21 is outside 3..20: there are 20 groups to")
        for name in ("k", "report_k")
    ),
    (TASK, {"criterion": "balanced"}, "criterion=balanced is not defined for groups .* leave out --group"),
    (TASK, {"criterion": "cost:-1=1,1=2"}, "criterion=cost is not defined for groups"),
    *(
        (TASK, HOLD | {"claim": claim}, f"claim={claim} counts rows .* leave it out, or --group")
        for claim in ("sensitivity", "recall", "auc")
    ),
    (TASK, HOLD | {"holdout_share": 0.8}, "16 of 20 groups held out leave 4: .* hold out 14 at most"),
    (TASK, HOLD | {"holdout_share": 0.04}, "0 groups of 20 held out would prove an error of at most 100 in"),
]


@pytest.mark.parametrize(("task", "options", "message"), REFUSED)
def test_what_does_not_go_with_a_task_is_refused(task: Task, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Problem.of(Study.paper(**options, **GRIDS), task)


def test_costs_are_of_rows_and_memory_is_an_upper_bound() -> None:
    problem, plain = (Problem.of(Study.paper(**GRIDS), task) for task in (TASK, blobs(N)))
    assert problem.compute_cost(20) == plain.compute_cost(N)
    assert [plain.rows_in(n) for n in range(N + 1)] == [plain.most_rows_in(n) for n in range(N + 1)]
    most = max(
        problem.learner.trainer.memory(len(train), len(score), 2)
        for j, size in enumerate(problem.sizes)
        for number in range(size.n_splits)
        for train, score in [problem.rows(Stage.REFIT, j, number)]
    )
    assert estimate_memory(problem) >= most
    largest = np.sort(SIZES)[::-1]
    assert [problem.most_rows_in(n) for n in (0, 1, 5, 20)] == [0, largest[0], largest[:5].sum(), N]


def test_without_groups_nothing_is_different() -> None:
    problem = Problem.of(Study.paper(**GRIDS), blobs(30))
    assert problem.criterion is problem.study.criterion
    assert problem.measure(None) is problem.criterion.measure
    assert (problem.n_totals, problem.total_type) == (2, np.int32)
    grouped = Problem.of(Study.paper(**GRIDS), TASK)
    assert (grouped.n_totals, grouped.total_type) == (3, np.int64)
