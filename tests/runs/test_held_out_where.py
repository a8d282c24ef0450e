"""Rows held out by a condition on a column, named before anything of them was seen."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ckcv_ray import Certified, Execution, InputError, Job, Study, Task, clopper_pearson, load_run, verify
from ckcv_ray.claims.quantity import bound_count
from ckcv_ray.core.bounds.betting import bound_by_optimised_bet
from ckcv_ray.runs.run import run_job
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.columns import DeclaredTypes
from ckcv_ray.tables.roles import Roles

N = 240
RNG = np.random.default_rng(0)
X, DAYS = RNG.normal(size=(N, 2)), np.sort(RNG.integers(0, 700, N))
TABLE = pa.table(
    {
        "a": X[:, 0],
        "b": X[:, 1],
        "site": np.array(["A", "B", "C"])[np.arange(N) % 3],
        "ward": np.arange(N) % 4 + 1,
        "seen": np.datetime64("2023-01-01") + DAYS,
        "patient": np.arange(N) // 4,
        "outcome": np.where(X[:, 0] + RNG.normal(size=N) > 0, "ill", "well"),
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
    return run_job(Job(*make(where, table, **asked), out), Execution("serial"))


@pytest.mark.parametrize(
    ("where", "held"),
    [
        ("site=B", TABLE["site"].to_numpy() == "B"),
        (" ward = 3 ", TABLE["ward"].to_numpy() == 3),
        ("ward>=3", TABLE["ward"].to_numpy() >= 3),
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
    column = result.study.column
    assert f"Assuming that the {n} rows with {column} " in first.statement
    assert "the condition was named before anything of them was seen, with probability" in first.statement
    assert "over the drawing of such rows" in first.statement
    again = load_run(tmp_path / "run")
    assert (again.problem.run_id, again.certificate) == (result.problem.run_id, result.certificate)
    assert again.problem.held.tolist() == result.problem.held.tolist()
    assert verify(tmp_path / "run", rerun=True, execution=Execution("serial")).differences == []


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


def test_the_order_of_the_table_has_no_part_in_it() -> None:
    order = np.random.default_rng(1).permutation(N)
    first, second = run("site=B", claim="refit,auc"), run("site=B", TABLE.take(order), claim="refit,auc")
    assert sorted(order[second.problem.held].tolist()) == first.problem.held.tolist()
    assert first.claims[0].rows == second.claims[0].rows


def test_a_column_that_is_named_among_the_features_is_learned_from() -> None:
    study, _ = make("ward>=3")
    task = Task.from_table(TABLE, Roles("outcome", ["a", "ward"], split_by="ward"))
    result = run_job(Job(study, task), Execution("serial"))
    assert result.task.features == ("a", "ward")
    assert result.problem.held.tolist() == np.flatnonzero(TABLE["ward"].to_numpy() >= 3).tolist()


def test_losses_of_groups_are_bounded_whatever_their_order() -> None:
    """More than thirty groups, of which an order that was drawn would be bet upon."""
    table = TABLE.set_column(2, "site", pa.array(np.where(np.arange(N) < 80, "A", "B")))
    result = run("site=B", table, group="patient")
    rows = result.judged
    losses, units = rows["loss"].to_numpy(), np.unique(rows["unit"].to_numpy(), return_inverse=True)[1]
    shares = np.bincount(units, losses) / np.bincount(units)
    assert len(shares) == 40
    assert result.claims[0].bound == pytest.approx(bound_by_optimised_bet(shares, 0.05), abs=1e-9)
    assert "40 groups with site = 'B' are independent draws of one source" in result.claims[0].statement


def test_values_are_compared_as_they_are_written() -> None:
    """Truth values by their names, words that are one number apart, and no number that floats cannot tell."""
    flag, code, batch = np.arange(N) % 2 == 0, np.arange(N) % 3, np.arange(N) + 2**53
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
    with pytest.raises(InputError, match="which are not all told apart"):
        hold_out(f"batch>={2**53 + 9}")


@pytest.mark.parametrize(
    ("where", "asked", "said"),
    [
        ("site=D", {}, "met by no row of 240"),
        ("ward>=1", {}, "met by every row of 240"),
        ("seen>=2024-11-30", {}, "hold out at least 10"),
        ("seen=2024-03-01", {}, "has date values, and '=2024-03-01' is none of them: write seen>="),
        ("ward=many", {}, "has number values, and '=many' is none of them: write ward=3.5"),
        ("site>B", {}, "and '>B' is none of them: write site=A"),
        ("site=B", {"group": "patient"}, "divides 60 groups of 'patient', one of them in row 1: leave out"),
        ("site=B", {"holdout_share": 0.5}, "holdout_share=0.5 is for rows that are drawn"),
        ("seen<2024-03-01", {}, "expected a column and a value"),
        ("hospital=B", {}, "there is no column 'hospital'"),
    ],
)
def test_what_cannot_be_held_out_is_refused_with_its_cure(
    where: str, asked: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        Problem.of(*make(where, **asked))


def test_a_task_that_was_read_without_the_column_is_refused() -> None:
    study, _ = make("site=B")
    with pytest.raises(InputError, match="read the task with split_by='site'"):
        Problem.of(study, Task.from_table(TABLE, Roles("outcome", None, APART)))
    paper = Study.of(learner="linear", k=(3,), n_splits=3, certify="paper")
    with pytest.raises(InputError, match="read the task with split_by=None"):
        Problem.of(paper, make("site=B")[1])
