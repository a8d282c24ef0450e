"""Rows divided by a column: blocks of later times, and folds that a table names."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import call
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from sklearn.model_selection import PredefinedSplit, TimeSeriesSplit

from ckcv_ray import (
    Execution,
    InputError,
    Procedure,
    StoreError,
    Task,
    evaluate,
    load_scores,
    verify,
)
from ckcv_ray.core.resampling.base import BY_COLUMN
from ckcv_ray.core.resampling.folds import ColumnFolds, ForwardSplits, KFold, NestedSplits
from ckcv_ray.study.problem import OUTER, Problem

SERIAL = Execution("serial")
N, DAY = 60, np.timedelta64(1, "D")
RNG = np.random.default_rng(np.random.SeedSequence(7))
FRAME = pd.DataFrame(
    {
        "x": RNG.normal(size=N),
        "z": RNG.normal(size=N),
        "day": np.datetime64("2026-01-01") + RNG.integers(40, size=N) * DAY,
        "week": RNG.integers(12, size=N),
        "site": RNG.choice(["Rome", "Oslo", "Bern"], size=N),
    }
)
Y = np.where(FRAME.x + RNG.normal(size=N) > 0, "ill", "well")
PATIENTS = RNG.integers(20, size=N)


BY_FOLD = {"resampling": "column:fold"}


def make_splits(frame: pd.DataFrame, groups: Any = None, **options: Any) -> list[Any]:
    """Return the splits of the rows of a frame."""
    study = Procedure.of(learner="naive_bayes", **options)
    y = np.resize([0, 1], len(frame))
    task = Task.of(frame, y, groups, split_by=study.resampling.column)
    problem = Problem.of(study, task)
    return [problem.split(OUTER, number) for number in range(problem.sizes[OUTER].n_splits)]


def list_splits(when: Any, patients: Any, times: int, gap: float) -> list[tuple[list[int], list[int]]]:
    """Return the rows that splits fit on and score, one by one."""
    moments, found = sorted(set(when)), []
    block = len(moments) // (times + 1)
    for start in range(len(moments) - times * block, len(moments), block or 1):
        scored = [i for i, moment in enumerate(when) if moment in moments[start : start + block]]
        ill = {patients[i] for i in scored}
        earlier = [i for i, moment in enumerate(when) if moment < moments[start] - gap]
        found.append(([i for i in earlier if patients[i] not in ill], scored))
    return found


@given(data=st.data(), n=st.integers(12, 60), times=st.integers(1, 4), gap=st.sampled_from([0, 1, 2.5]))
def test_what_is_earlier_than_a_gap_and_of_other_groups_is_fitted_on(data, n, times, gap):
    when = data.draw(st.lists(st.integers(0, 30), min_size=n, max_size=n))
    patients = [*range(6), *data.draw(st.lists(st.integers(0, 9), min_size=n - 6, max_size=n - 6))]
    frame = pd.DataFrame({"when": when, "x": np.arange(n) % 5})
    expected = list_splits(when, patients, times, gap)
    if len(expected) < times or not all(train for train, _ in expected):
        with pytest.raises(InputError, match="nothing to fit on"):
            make_splits(frame, patients, resampling=f"time:{times}", time="when", gap=gap)
        return
    found = make_splits(frame, patients, resampling=f"time:{times}", time="when", gap=gap)
    assert [(split.train.tolist(), split.estimate.tolist()) for split in found] == expected


@given(st.permutations(range(20)), st.integers(2, 6))
def test_different_times_are_divided_as_by_scikit_learn(order, times):
    frame, by_time = pd.DataFrame({"when": order, "x": np.arange(20) % 3}), np.argsort(order)
    splits = make_splits(frame, resampling=f"time:{times}", time="when")
    for split, (train, scored) in zip(splits, TimeSeriesSplit(times).split(order), strict=True):
        assert np.array_equal(split.train, np.sort(by_time[train]))
        assert np.array_equal(split.estimate, np.sort(by_time[scored]))


@given(st.lists(st.integers(0, 4), min_size=10, max_size=40).filter(lambda folds: len(set(folds)) > 1))
def test_folds_of_a_column_are_those_of_scikit_learn(folds):
    """Whether they are numbers or names."""
    for column in (folds, [f"fold {fold}" for fold in folds]):
        splits = make_splits(pd.DataFrame({"fold": column, "x": np.arange(len(folds)) % 3}), **BY_FOLD)
        for split, (train, scored) in zip(splits, PredefinedSplit(folds).split(), strict=True):
            assert np.array_equal(split.train, train)
            assert np.array_equal(split.estimate, scored)


def test_a_group_with_rows_in_two_folds_is_not_fitted_on():
    fold, patients = np.arange(40) % 4, np.arange(40) // 3
    for number, split in enumerate(make_splits(pd.DataFrame({"fold": fold, "x": fold}), patients, **BY_FOLD)):
        apart = ~np.isin(patients, patients[fold == number])
        assert np.array_equal(split.train, np.flatnonzero(apart & (fold != number)))


OF_DAYS = {"resampling": "time:3", "time": "day", "gap": "36h"}
OF_SITES = {"resampling": "column:site"}


@pytest.mark.parametrize("options", [OF_DAYS, OF_SITES], ids=["times", "folds"])
def test_scores_stand_in_a_folder_whatever_the_order_of_the_table(tmp_path, options):
    options = options | {"learner": "naive_bayes", "save_predictions": True}
    found = evaluate(FRAME, Y, tmp_path / "s", SERIAL, **options)
    assert set(found.task.features) == set(FRAME) - {found.study.resampling.column}
    assert found.study.resampling.no_bound == BY_COLUMN
    order = RNG.permutation(N)
    shuffled = evaluate(FRAME.iloc[order].reset_index(drop=True), Y[order], execution=SERIAL, **options)
    assert shuffled.table().equals(found.table())
    again = load_scores(tmp_path / "s")
    assert again.run_id == found.run_id
    assert again.table().equals(found.table())
    assert verify(tmp_path / "s", rerun=True).verdict == "every figure follows from the data"
    column, file = found.study.resampling.column, tmp_path / "s" / "data.parquet"
    kept = parquet.read_table(file)
    assert pa.types.is_timestamp(kept.schema.field("day").type)
    reordered = kept[column].take(pa.array(np.argsort(kept[column].to_numpy())))
    parquet.write_table(kept.set_column(kept.column_names.index(column), column, reordered), file)
    with pytest.raises(StoreError, match="is not the data of this run: its digest differs"):
        load_scores(tmp_path / "s")


def test_a_column_is_learned_from_if_it_is_named(tmp_path):
    table = tmp_path / "t.csv"
    FRAME.assign(y=Y, row=np.arange(N)).to_csv(table, index=False)
    of_days = "--resampling time:3 --time day --gap 2d --features x,day,row --refit best"
    words = [*of_days.split(), "--learner", "tree", "--out", tmp_path / "s"]
    assert call("evaluate", table, "--target", "y", *words) == 0
    found = load_scores(tmp_path / "s")
    assert found.task.features == ("x", "day", "row")
    assert len(found.predict(FRAME.assign(row=0))) == N


def test_rows_in_values_of_a_column_are_counted():
    """There are more days than patients."""
    task = Task.of(FRAME, Y, PATIENTS, split_by="day")
    problem = Problem.of(Procedure.of(learner="tree", **OF_DAYS), task)
    n_train, rows = problem.sizes[OUTER].n_train, np.sort(FRAME.day.value_counts())
    assert task.n_units < n_train < len(rows)
    assert problem.most_rows_in(n_train) == rows[-n_train:].sum()
    assert problem.compute_cost(n_train) == problem.prepared["tree"].cost(round(N * n_train / len(rows)))


def no(message: str, frame: pd.DataFrame = FRAME, groups: Any = None, **options: Any) -> tuple[Any, ...]:
    return message, frame, groups, OF_DAYS | options


BLANK, SOON = FRAME.copy(), FRAME.assign(day=FRAME.day.dt.strftime("%Y-%m-%d"))
BLANK.loc[4, ["day", "site"]] = None
SOON.loc[0, "day"] = "soon"
SITE = {"time": None, "gap": None, "resampling": "column:site"}
REFUSED = [
    no("there is no column 'days' .* did you mean 'day'", time="days"),
    no("column 'day', which divides the rows, has empty cells in 1 of", BLANK),
    no("holds dates and in 1 row what is none, such as 'soon' in row 1: write all as", SOON),
    no("kind date, and gap=3: expected dates and a gap such as 30d", gap=3),
    no("kind number, and gap=36h: .* numbers and a gap in their unit", time="week"),
    no("nothing to score, of 11 times: ask for fewer", time="week", gap=None, resampling="time:12"),
    no("has nothing to fit on in split 0: other rows are in its gap", gap="400d"),
    no("in its gap, or of groups that it scores; leave gap or", groups=np.arange(N) % 6, gap=None),
    no("gap=36h is for times: name their column with time", time=None),
    no("time='day' is for resampling=time:5, .* not kfold:3: leave one of them out", resampling="kfold:3"),
    no("resampling=column:site: the column has 1 value, and there are 2 to", FRAME.assign(site=1), **SITE),
]


@pytest.mark.parametrize(("message", "frame", "groups", "options"), REFUSED)
def test_what_cannot_divide_rows_is_refused(message, frame, groups, options):
    with pytest.raises(InputError, match=message):
        evaluate(frame, Y, groups=groups, execution=SERIAL, learner="naive_bayes", **options)


def test_a_task_and_its_study_name_the_same_column():
    for study, column in ((Procedure.of(**OF_DAYS), None), (Procedure.of(), "day")):
        task = Task.of(FRAME, Y, split_by=column)
        with pytest.raises(InputError, match=f"read the task with split_by={study.resampling.column!r}"):
            Problem.of(study, task)
    for resampling in (ForwardSplits(column="day"), ColumnFolds("site")):
        with pytest.raises(InputError, match="a nested resampling is made of two that are drawn"):
            NestedSplits(resampling, KFold(3))
    with pytest.raises(InputError, match="column 'y' cannot be --resampling or --holdout-where and --target"):
        Task.of(FRAME, pd.Series(Y, name="y"), split_by="y")
