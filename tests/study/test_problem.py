"""A study on a task: its canonical form, what auto stands for, its sizes, its rows by stage, refusals."""

import pickle
import re
from dataclasses import replace
from itertools import product
from math import nan
from typing import Any

import numpy as np
import pytest
from conftest import blobs, limit_examples, unwrap
from hypothesis import given, settings
from hypothesis import strategies as st

from ckcv_ray import Execution, Job, verify
from ckcv_ray.core.draws import Draws, hold_out
from ckcv_ray.core.options import options
from ckcv_ray.core.resampling.base import Strata
from ckcv_ray.core.resampling.complete import Complete
from ckcv_ray.core.schedule import Stage
from ckcv_ray.engine.evaluate import estimate_memory
from ckcv_ray.engine.forecast import plan_problem
from ckcv_ray.errors import InputError
from ckcv_ray.runs.run import run_job
from ckcv_ray.study.parts import EFFORT_PER_SETTING, EFFORT_PER_SPLIT, RACE_WORK, Auto, Budget, Holdout, Race
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import SLOTS, Study, run_id
from ckcv_ray.tables.task import Task

COMBINATIONS = [
    {"resampling": resampling, "certify": certify}
    for resampling, certify in product(SLOTS["resampling"], SLOTS["certify"])
]
folds = st.lists(st.integers(3, 30), min_size=1, max_size=8).map(tuple)


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


@pytest.mark.parametrize("parts", COMBINATIONS, ids=str)
def test_rows_are_those_of_the_stage(parts):
    problem = Problem.of(Study.paper(**parts, k=(3, 7), seed=5), blobs(40))
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


def test_whole_groups_are_held_out() -> None:
    problem = Problem.of(Study.paper(certify="holdout", holdout_share=0.6, seed=5, **GRIDS), TASK)
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
    (TASK, {"report_k": 21}, "^report_k=21 is outside 3..20: there are 20 groups to"),
    (TASK, {"criterion": "balanced"}, "criterion=balanced counts rows as independent, .* leave it out"),
    (TASK, {"criterion": "cost:-1=1,1=2"}, "criterion=cost counts rows as independent"),
    *(
        (TASK, HOLD | {"claim": claim}, f"claim={claim} counts rows .* leave it out, or --group")
        for claim in ("sensitivity", "recall", "auc")
    ),
    *((TASK, HOLD | {"holdout_share": each}, "^holdout_share=") for each in (0, 1.5, nan, "most", True)),
    (TASK, HOLD | {"holdout_share": 0.8}, "16 of 20 groups held out leave 4: .* hold out 14 at most"),
    *(
        (blobs(n), HOLD | {"holdout_share": share}, f"^9 rows of {n} held .* 10, .* half of 20.* --paper")
        for n, share in ((19, "auto"), (30, 0.33), (99, 0.1))
    ),
]


@pytest.mark.parametrize(("task", "options", "message"), REFUSED)
def test_what_does_not_go_with_a_task_is_refused(task: Task, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Problem.of(Study.paper(**options, **GRIDS), task)


def test_costs_are_of_rows_and_memory_is_an_upper_bound() -> None:
    problem, plain = (Problem.of(Study.paper(**GRIDS), task) for task in (TASK, blobs(N)))
    assert problem.compute_cost(20) == plain.compute_cost(N)
    assert [plain.most_rows_in(n) for n in range(N + 1)] == list(range(N + 1))
    most = max(
        problem.learner.trainer.memory(len(train), len(score), 2)
        for j, size in enumerate(problem.sizes)
        for number in range(size.n_splits)
        for train, score in [problem.rows(Stage.REFIT, j, number)]
    )
    assert estimate_memory(problem) >= most
    largest = np.sort(SIZES)[::-1]
    assert [problem.most_rows_in(n) for n in (0, 1, 5, 20)] == [0, largest[0], largest[:5].sum(), N]


counts = st.tuples(st.integers(3, 10**6), st.integers(1, 10**4), st.integers(1, 2_000), st.integers(1, 500))
QUICK = {"learner": "naive_bayes"}


def make_task(n: int, labels: int = 0) -> Task:
    """Return n rows of one column; ``labels`` shuffles which class each of them has."""
    y = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(labels,))).permutation(np.arange(n) % 2)
    return Task.of(np.arange(float(n))[:, None], y)


@given(counts, st.integers(1, 10**9))
@settings(derandomize=True, deadline=None, max_examples=limit_examples(100))
def test_auto_races_where_that_is_cheap_and_else_has_the_budget_of_the_help(numbers, effort):
    units, n_settings, sizes, n_splits = numbers
    text = options(Budget)["effort"].metadata["option"].default_text
    of_setting, of_split = map(int, re.findall(r"\d+", text))
    default = Budget((3, 5), of_setting * n_settings + of_split * n_splits)
    is_cheap = units**3 * n_settings * sizes <= RACE_WORK
    assert Auto((3, 5)).resolve(*numbers) == (Race((3, 5)) if is_cheap else default)
    assert Budget((3, 5)).resolve(*numbers) == default
    assert Auto(exhaustive=True).resolve(*numbers) == Race(exhaustive=True)
    assert Auto(effort=effort).resolve(*numbers) == Budget(effort=effort)
    assert Budget(effort=effort, keep=0.5).resolve(*numbers) == Budget(effort=effort, keep=0.5)
    assert Race().resolve(*numbers) == Race()


# What a study that says auto is stored as


def test_rows_that_are_held_out_do_not_count_among_those_to_learn_from():
    """1,900 rows leave 1,273 to learn from, of which every k is taken; 2,000 leave 1,340."""
    few, many = (Problem.of(Study.of(**QUICK), make_task(n)) for n in (1_900, 2_000))
    assert few.study.certification == many.study.certification == Holdout(0.33)
    assert few.study == Study.paper(**QUICK, certify="holdout").replace(**few.study.options())
    assert few.study.resampling == Complete()
    n, n_settings = many.task.n_units, many.n_settings
    assert many.study.resampling == Complete("auto").canonical(n, n_settings, 0.05)
    assert few.study.search == many.study.search == Race()


def test_auto_is_stored_as_what_it_resolved_to():
    task = make_task(40_000)
    found = Problem.of(Study.of(**QUICK, n_splits=3), task)
    again = Problem.of(Study.from_json(found.study.to_json()), task)
    assert (again.run_id, again.study) == (found.run_id, found.study)
    assert "auto" not in {part["name"] for part in found.study.to_json().values() if isinstance(part, dict)}
    assert isinstance(found.study.resampling.k, tuple)
    assert isinstance(found.study.search, Budget)
    assert found.study.search.effort == EFFORT_PER_SETTING * found.n_settings + EFFORT_PER_SPLIT * 3
    assert isinstance(found.study.certification, Holdout)


@pytest.mark.parametrize("n", [60, 1_999, 40_000])
def test_labels_have_no_part_in_what_auto_stands_for(n):
    first, second = (Problem.of(Study.of(**QUICK), make_task(n, labels)) for labels in (0, 1))
    assert not np.array_equal(first.all_rows.y, second.all_rows.y)
    assert first.study == second.study
    assert first.sizes == second.sizes


@pytest.mark.parametrize(("n", "share"), [(20, 0.5), (400, 0.5), (401, 0.33), (5_000, 0.33)])
def test_auto_holds_out_half_of_few_rows_and_a_third_of_many(n, share):
    auto = Holdout("auto")
    assert auto.canonical(n) == Holdout(share)
    assert Holdout() == auto
    assert Holdout(claim=("vote", "auc")).canonical(n) == Holdout(share, ("vote", "auc"))
    assert Holdout("0.25") == Holdout(0.25) == Holdout(0.25).canonical(n)


@pytest.mark.parametrize(("learner", "classes"), [("svm", 2), ("linear", 3)])
def test_a_class_that_is_held_out_whole_is_never_predicted_and_a_caution(learner, classes, tmp_path):
    """It is no reason to draw again: the draw would depend on labels."""
    task = blobs(40)
    held = Problem.of(Study.of(), task).held[:2]
    y = task.y.copy() if classes == 3 else np.zeros(40, int)
    y[held] = classes - 1
    study = Study.of(learner=learner, k=(3,), n_splits=3)
    other = replace(Task.of(task.X, y), salt=task.salt)
    result = run_job(Job(study, other, tmp_path / "run"), Execution("serial"))
    wrong = result.predict(task.X, by="refit") != y
    assert wrong[held].all()
    assert result.certificate.first.errors == np.sum(wrong[Problem.of(study, other).held])
    said = f"All rows held out, so never predicted, and all count as wrong: {classes - 1} (2 rows)."
    assert said in unwrap(result.summary())
    assert verify(tmp_path / "run").ok
    for asked in ({"claim": "refit,recall"}, {"claim": "auc"}):
        if classes == 2 or "recall" in str(asked):
            assert plan_problem(Problem.of(study.replace(**asked), other)).evaluations > 0


def test_claims_are_names_in_their_order_each_once():
    for asked, claims in ((["vote", "vote", "refit"], ("vote", "refit")), ((), ("refit",))):
        assert Holdout(claim=asked) == Holdout(claim=claims) == Holdout(claim=",".join(claims))
        assert Holdout(claim=asked).claim == claims
    for claim in (1, {"vote": 1}, [None], b"vote"):
        with pytest.raises(InputError, match=r"^claim="):
            Holdout(claim=claim)
