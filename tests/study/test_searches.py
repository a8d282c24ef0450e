"""Searches: what auto stands for, by numbers alone, and what a study that says auto is stored as."""

import re

import numpy as np
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ckcv_ray import InputError, Study, Task
from ckcv_ray.core.criteria import Balanced
from ckcv_ray.core.options import options
from ckcv_ray.core.resampling.complete import Complete, Rotation, choose_k
from ckcv_ray.study.parts import EFFORT_PER_SETTING, EFFORT_PER_SPLIT, RACE_WORK, Auto, Budget, Holdout, Race
from ckcv_ray.study.problem import Problem

repeatable = settings(derandomize=True, deadline=None, max_examples=limit_examples(100))
counts = st.tuples(st.integers(3, 10**6), st.integers(1, 10**4), st.integers(1, 2_000), st.integers(1, 500))
QUICK = {"learner": "naive_bayes"}


def make_task(n: int, labels: int = 0) -> Task:
    """Return n rows of one column; ``labels`` shuffles which class each of them has."""
    y = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(labels,))).permutation(np.arange(n) % 2)
    return Task.of(np.arange(float(n))[:, None], y)


@given(counts)
@repeatable
def test_auto_races_where_that_is_cheap_and_else_has_the_default_budget(numbers):
    units, n_settings, sizes, n_splits = numbers
    found = Auto(Balanced(0.1), (3, 5)).resolve(*numbers)
    if units**3 * n_settings * sizes <= RACE_WORK:
        assert found == Race(Balanced(0.1), (3, 5))
    else:
        default = EFFORT_PER_SETTING * n_settings + EFFORT_PER_SPLIT * n_splits
        assert found == Budget(Balanced(0.1), (3, 5), default)


@given(counts, st.integers(1, 10**9))
@repeatable
def test_auto_with_everything_is_a_race_and_with_an_effort_a_budget(numbers, effort):
    assert Auto(exhaustive=True).resolve(*numbers) == Race(exhaustive=True)
    assert Auto(effort=effort).resolve(*numbers) == Budget(effort=effort)
    assert Budget(effort=effort, keep=0.5).resolve(*numbers) == Budget(effort=effort, keep=0.5)
    assert Race().resolve(*numbers) == Race()


@given(counts)
@repeatable
def test_a_default_effort_is_enough_for_the_default_rounds(numbers):
    """It is that of the help."""
    _, n_settings, _, n_splits = numbers
    found = Budget().resolve(*numbers)
    text = options(Budget)["effort"].metadata["option"].default_text
    of_setting, of_split = map(int, re.findall(r"\d+", text))
    assert found.effort == of_setting * n_settings + of_split * n_splits
    assert found == Budget(effort=found.effort)


# What a study that says auto is stored as


@pytest.mark.parametrize("asked", [{}, {"learner": "tree,linear"}, {"resampling": "rotation"}], ids=str)
def test_where_auto_is_the_published_algorithm_the_run_id_is_too(asked):
    task = make_task(200)
    of_auto = Problem.of(Study.of(certify="paper", **asked), task)
    published = Problem.of(Study.paper(**asked), task)
    assert of_auto.study == published.study
    assert of_auto.run_id == published.run_id
    assert of_auto.study.to_json() == published.study.to_json()


def test_rows_that_are_held_out_do_not_count_among_those_to_learn_from():
    """1,900 rows leave 1,273 to learn from, of which every k is taken; 2,000 leave 1,340."""
    few, many = (Problem.of(Study.of(**QUICK), make_task(n)) for n in (1_900, 2_000))
    assert few.study.certification == many.study.certification == Holdout(0.33)
    assert few.study == Study.paper(**QUICK, certify="holdout").replace(**few.study.options())
    assert few.study.resampling == Complete()
    n, n_settings = many.task.n_units, many.n_settings
    assert many.study.resampling == Complete(choose_k(n, n_settings, 0.05))
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


def test_groups_are_counted_and_not_rows():
    rows = make_task(1_999)
    grouped = Task.of(rows.X, rows.y, groups=np.arange(1_999) // 40)  # 50 groups
    study = Problem.of(Study.of(**QUICK), grouped).study
    assert study.certification == Holdout(0.5)
    assert study.resampling == Complete()


def test_a_reported_k_outside_the_ladder_is_refused():
    task = make_task(4_000)
    ladder = Problem.of(Study.of(**QUICK), task).study.resampling.k
    outside = ladder[-1] + 1
    for resampling, kind in (("complete", Complete), ("rotation", Rotation)):
        study = Study.of(**QUICK, resampling=resampling, report_k=(3, outside))
        assert study.resampling == kind("auto")
        with pytest.raises(
            InputError, match=rf"^report_k={outside} is not among k=3,4,.*,{ladder[-1]}: add it to k to have"
        ):
            Problem.of(study, task)
        inside = Problem.of(study.replace(report_k=(3, ladder[-1])), task)
        assert len(inside.own) == 2
