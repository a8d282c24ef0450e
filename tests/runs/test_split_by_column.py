"""Rows divided by a column: blocks of later times, named folds, and rows held out by a condition."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import call
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from sklearn.model_selection import PredefinedSplit

from ckcv_ray import (
    Certified,
    Execution,
    InputError,
    Job,
    Procedure,
    StoreError,
    Study,
    Task,
    clopper_pearson,
    evaluate,
    load_run,
    load_scores,
    verify,
    watch,
)
from ckcv_ray.claims.quantity import bound_count
from ckcv_ray.cli.report import fill_form
from ckcv_ray.core.bounds.betting import bound_by_optimised_bet
from ckcv_ray.core.resampling.base import BY_COLUMN
from ckcv_ray.core.resampling.folds import ColumnFolds, KFold, NestedSplits
from ckcv_ray.reports.facts import facts
from ckcv_ray.runs.run import run_job
from ckcv_ray.study.problem import OUTER, Problem
from ckcv_ray.tables.columns import DeclaredTypes
from ckcv_ray.tables.roles import Roles

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


@given(st.lists(st.integers(0, 4), min_size=10, max_size=40).filter(lambda folds: len(set(folds)) > 1))
def test_folds_of_a_column_are_those_of_scikit_learn(folds):
    names = [f"fold {fold}" for fold in folds]
    splits = make_splits(pd.DataFrame({"fold": names, "x": np.arange(len(folds)) % 3}), **BY_FOLD)
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


def no(message: str, frame: pd.DataFrame = FRAME, groups: Any = None, **options: Any) -> tuple[Any, ...]:
    return message, frame, groups, OF_DAYS | options


BLANK, SOON = FRAME.copy(), FRAME.assign(day=FRAME.day.dt.strftime("%Y-%m-%d"))
BLANK.loc[4, ["day", "site"]] = None
SOON.loc[0, "day"] = "soon"
REFUSED = [
    no("column 'day', which divides the rows, has empty cells in 1 of", BLANK),
    no("holds dates and in 1 row something else, such as 'soon' in row 1: write all in one way", SOON),
    no("kind date, and gap=3: expected dates and a gap such as 30d", gap=3),
    no("nothing to score, of 11 times: ask for fewer", time="week", gap=None, resampling="time:12"),
    no("has nothing to fit on in split 0: other rows are in its gap", gap="400d"),
    no("gap=36h is for times: name their column with time", time=None),
    no("time='day' is for resampling=time:5, .* not kfold:3: leave one of them out", resampling="kfold:3"),
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
    with pytest.raises(InputError, match="read the task with split_by='site'"):
        Problem.of(make("site=B")[0], Task.from_table(TABLE, Roles("outcome", None, APART)))
    with pytest.raises(InputError, match="a nested resampling combines two that are drawn"):
        NestedSplits(ColumnFolds("site"), KFold(3))


# Rows held out by a condition that was named before anything of them was seen


H = 240
RANDOM = np.random.default_rng(0)
X, DAYS = RANDOM.normal(size=(H, 2)), np.sort(RANDOM.integers(0, 700, H))
TABLE = pa.table(
    {
        "a": X[:, 0],
        "b": X[:, 1],
        "site": np.array(["A", "B", "C"])[np.arange(H) % 3],
        "ward": np.arange(H) % 4 + 1,
        "seen": np.datetime64("2023-01-01") + DAYS,
        "patient": np.arange(H) // 4,
        "outcome": np.where(X[:, 0] + RANDOM.normal(size=H) > 0, "ill", "well"),
    }
)
APART = ["site", "ward", "seen", "patient"]


def make(where: str, table: pa.Table = TABLE, **asked: Any) -> tuple[Study, Task]:
    """Return a study that holds rows out by a condition, and its task."""
    group = asked.pop("group", None)
    study = Study.of(learner="linear", k=(3,), n_splits=3, certify="holdout", holdout_where=where, **asked)
    drop = [name for name in APART if name not in (study.column, group)]
    return study, Task.from_table(table, Roles("outcome", None, drop, group, split_by=study.column))


def run(where: str, table: pa.Table = TABLE, out: Path | None = None, **asked: Any) -> Certified:
    return run_job(Job(*make(where, table, **asked), out), SERIAL)


@pytest.mark.parametrize(
    ("where", "held"),
    [
        ("site=B", TABLE["site"].to_numpy() == "B"),
        (" ward >= 3 ", TABLE["ward"].to_numpy() >= 3),
        ("seen>2024-03-01 00:00", TABLE["seen"].to_numpy() > np.datetime64("2024-03-01")),
    ],
)
def test_the_rows_that_meet_it_certify_and_their_column_is_not_learned_from(
    where: str, held: np.ndarray, tmp_path: Path
) -> None:
    result = run(where, out=tmp_path / "run")
    assert result.problem.held.tolist() == np.flatnonzero(held).tolist()
    assert result.task.features == ("a", "b")
    first, n = result.claims[0], int(held.sum())
    assert (first.rows, first.bound) == (n, clopper_pearson(first.errors, n, 0.05))
    assert f"Assuming that the {n} rows with {result.study.column} " in first.statement
    assert "the condition was named before anything of them was seen, with probability" in first.statement
    assert load_run(tmp_path / "run").problem.held.tolist() == result.problem.held.tolist()
    assert verify(tmp_path / "run", rerun=True, execution=SERIAL).differences == []


def test_what_is_proven_of_some_rows_alone_names_them(tmp_path: Path) -> None:
    among, out = "for rows with site = 'B'", tmp_path / "run"
    result = run("site=B", out=out, claim="refit,sensitivity,specificity")
    told = {fact.name: fact.text for section in facts(result) for fact in section.facts}
    assert told["verdict"].endswith(f" %, {among}")
    assert told["rows"].endswith(f"{len(result.problem.held)} held out by site = 'B'")
    assert result.claim_for(result.rule()).startswith(
        f"by the model fitted on the learning rows, {among}: proven to be wrong at most"
    )
    assert among not in result.claim_for(result.rule("full"))  # of which nothing is proven
    rows = TABLE.append_column("id", pa.array([f"p{i}" for i in range(H)])).drop(["site"])
    lines = [line for line in watch(out, rows).summary().splitlines() if "certified is at most" in line]
    assert len(lines) == 3
    assert all(among in line for line in lines)
    fill_form(out, "tripod-ai", tmp_path / "form.md")
    form = (tmp_path / "form.md").read_text()
    assert "evaluates it internally" not in form
    for item in ("10", "12a", "16", "21"):
        (section,) = re.findall(rf"^## [^\n]*, {item}: .*?(?=^## )", form, re.DOTALL | re.MULTILINE)
        assert "held out by site = 'B'" in section


def test_unlike_probabilities_are_bounded_on_average() -> None:
    """Of independent rows with unlike probabilities Clopper-Pearson fails with one right row alone."""
    h, delta = 12, 0.05
    sure = [1.0] * (h - 1)

    def miss(last: float, one_law: bool) -> float:
        mean = (sum(sure) + last) / h
        chances = {h - 1: 1 - last, h: last}
        return sum(p for x, p in chances.items() if bound_count(x, h, delta, one_law=one_law) < mean)

    grid = np.linspace(0, 1, 2001)
    assert max(miss(last, False) for last in grid) <= delta
    assert max(miss(last, True) for last in grid) > delta


def test_losses_of_groups_are_bounded_whatever_their_order() -> None:
    """More than thirty groups, of which an order that was drawn would be bet upon."""
    table = TABLE.set_column(2, "site", pa.array(np.where(np.arange(H) < 80, "A", "B")))
    result = run("site=B", table, group="patient")
    shares = result.judged.to_pandas().groupby("unit")["loss"].mean().to_numpy()
    assert len(shares) == 40
    assert result.claims[0].bound == pytest.approx(bound_by_optimised_bet(shares, 0.05), abs=1e-9)
    assert "40 groups with site = 'B' are independent draws of one source" in result.claims[0].statement


def test_values_are_compared_as_they_are_written() -> None:
    """Truth values by their names, words that are one number apart, and no number that floats cannot tell."""
    flag, code, batch = np.arange(H) % 2 == 0, np.arange(H) % 3, np.arange(H) + 2**53
    table = pa.table(
        {"a": X[:, 0], "flag": flag, "code": np.array(["7", "007", "<5=x"])[code], "batch": batch}
    ).append_column("outcome", TABLE["outcome"])

    def hold_out(where: str) -> list[int]:
        study = Study.of(learner="linear", k=(3,), n_splits=3, certify="holdout", holdout_where=where)
        asked = DeclaredTypes(categorical=["code"] if study.column == "code" else [])
        task = Task.from_table(table, Roles("outcome", ["a"], split_by=study.column), asked)
        return Problem.of(study, task).held.tolist()

    assert hold_out("flag=True") == np.flatnonzero(flag).tolist()
    assert hold_out("code=007") == np.flatnonzero(code == 1).tolist()
    assert hold_out("code = <5=x") == np.flatnonzero(code == 2).tolist()
    with pytest.raises(InputError, match="too large to be told apart"):
        hold_out(f"batch>={2**53 + 9}")


@pytest.mark.parametrize(
    ("where", "asked", "said"),
    [
        ("site=D", {}, "met by no row of 240"),
        ("ward>=1", {}, "met by every row of 240"),
        ("seen=2024-03-01", {}, "has date values: say, for example, seen>=2025-01-31, not '=2024-03-01'"),
        ("site>B", {}, "has category values: say, for example, site=A, not '>B'"),
        ("site=B", {"group": "patient"}, "divides 60 groups of 'patient', one of them in row 1: leave out"),
        ("site=B", {"holdout_share": 0.5}, "holdout_share=0.5 is for rows that are drawn"),
        ("seen<2024-03-01", {}, "expected a column and a value"),
    ],
)
def test_what_cannot_be_held_out_is_refused_with_its_cure(
    where: str, asked: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        Problem.of(*make(where, **asked))
