"""The first screen of a run: what may be quoted, in sixteen lines, and what to do next."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from boosting import make as make_booster
from conftest import blobs, unwrap

from ckcv_ray import Execution, Job, Result, Study, Task, load_run, report, run, verify
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.percent import ceil_percent
from ckcv_ray.reports.render import MAX_LINES
from ckcv_ray.runs.run import run_job
from ckcv_ray.storage.folder import LONGEST_QUESTION
from ckcv_ray.tables.task import Roles

SMALL = {"k": (3, 4), "n_splits": 4, "C": (0.1, 1.0), "gamma": (0.1,)}
PAPER, HELD = Study.of(certify="paper", **SMALL), Study.of(certify="holdout", **SMALL)


def make(study: Study, task: Task) -> Result:
    """Run a study on a task in this process."""
    return run(
        study, task.X, task.labelled(task.y), groups=None if task.units.independent else task.row_units
    )


def noise(n: int, classes: int = 2) -> Task:
    """Rows whose labels follow from nothing."""
    rng = np.random.default_rng(5)
    return Task.of(rng.normal(size=(n, 2)), rng.permutation(np.arange(n) % classes))


@pytest.mark.parametrize(
    ("study", "task"),
    [
        (PAPER, blobs(60)),
        (HELD, blobs(200, shift=2.0)),
        (HELD, noise(120)),
        (HELD, noise(120, classes=7)),
        (HELD.replace(claim="vote,sensitivity,specificity"), blobs(200, shift=2.0)),
        (PAPER, Task.of(*(np.repeat(part, 2, axis=0) for part in (blobs(60).X, blobs(60).y)))),
    ],
)
def test_it_has_sixteen_lines(study: Study, task: Task) -> None:
    assert len(make(study, task).summary(folder="runs/one").splitlines()) <= MAX_LINES


def test_the_next_commands_trust_the_packages_that_the_run_needed() -> None:
    booster = make_booster("lightgbm", n_estimators=[2], num_leaves=[3])
    for study, named in ((PAPER, "ckcv "), (PAPER.with_learner(booster), "ckcv --trust lightgbm ")):
        last = make(study, blobs(60)).summary(folder="runs/one").splitlines()[-1]
        assert last.count("ckcv ") == last.count(named) >= 1


def test_a_hold_out_is_advised_with_what_it_would_prove() -> None:
    result = make(PAPER, blobs(300, shift=2.0))
    (bound,) = re.search(r"--certify holdout: about ([\d.]+) %", unwrap(result.summary())).groups()
    expected = clopper_pearson(int(np.ceil(result.error * 150)), 150, 0.05)
    assert bound == ceil_percent(float(expected)).removesuffix(" %")
    assert float(expected) < result.proven
    assert "--certify holdout" not in make(PAPER, blobs(40)).summary()  # too few rows to hold out


def test_no_number_of_rows_is_advised_to_reach_a_constant() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(240, 1))
    y = (X[:, 0] + 4.0 * rng.normal(size=240) > 0).astype(int)
    shown = make(HELD, Task.of(X, y)).summary()
    assert shown.startswith("Nothing")
    assert re.search(r"with [\d,]+ rows: about", shown) is None
    assert "with 480 rows: about" in make(HELD, Task.of(X, (X[:, 0] > 0).astype(int))).summary()


def draw_numbers(n: int, spread: float, grouped: bool) -> Task:
    """Rows of a linear function with noise, two of each group if there are groups."""
    rng = np.random.default_rng(3)
    X, units = rng.normal(size=(n, 2)), rng.normal(size=n // 2 if grouped else n)
    y = X[:, 0] + spread * (np.repeat(units, 2) if grouped else units)
    return Task.of(X, y, groups=np.arange(n) // 2 if grouped else None, numbers=True)


@pytest.mark.parametrize("grouped", [False, True])
def test_of_numbers_and_groups_more_units_are_advised_with_about_what_they_prove(grouped: bool) -> None:
    study = Study.of(learner="ridge", clip=3, certify="holdout", k=(3,), n_splits=3)
    n = 320 if grouped else 160
    result = run_job(Job(study, draw_numbers(n, 0.5, grouped)), Execution("serial"))
    name = "groups" if grouped else "rows"
    next_step = rf"next on new rows, none of these: with 320 {name}: about ([\d.]+), if they are as far off"
    found = re.search(next_step, unwrap(result.summary()))
    assert found is not None, result.summary()
    more = run_job(Job(study, draw_numbers(2 * n, 0.5, grouped)), Execution("serial"))
    slack = 3 * (result.proven - result.certificate.first.measured)
    assert abs(3 * more.proven - float(found[1])) < slack / 2
    assert float(found[1]) < 3 * result.proven


def test_a_question_is_answered_before_a_bound_is_quoted(tmp_path: Path) -> None:
    """The folder, which does not hold the column that was left out, asks the same."""
    rows = blobs(200, shift=3.0)
    columns = pa.table({"a": rows.X[:, 0], "b": rows.X[:, 1], "patient": np.arange(200) // 4, "y": rows.y})
    task = Task.from_table(columns, Roles("y", drop=["patient"]))
    result = run_job(Job(HELD, task, tmp_path / "run"), Execution("serial"))
    for shown in map(unwrap, (result.summary(), load_run(tmp_path / "run").summary())):
        assert shown.startswith("Quote with CAUTION: in the long run at most")
        assert "QUESTION column 'patient' repeats: 50 values in 200 rows" in shown
    page = unescape(Path(report(tmp_path / "run", tmp_path / "page.html")).read_text(encoding="utf-8"))
    assert "Quote with CAUTION: in the long run at most" in page
    assert "column 'patient' repeats: 50 values in 200 rows" in page
    assert verify(tmp_path / "run").ok


def test_the_question_of_a_stranger_s_folder_is_cut(tmp_path: Path) -> None:
    rows = blobs(200, shift=3.0)
    task = Task.of(rows.X, rows.labelled(rows.y))
    long = replace(task, units=replace(task.units, question="\x1b[1m<b>" + 10_000 * "why "))
    run_job(Job(HELD, long, tmp_path / "run"), Execution("serial"))
    question = load_run(tmp_path / "run").problem.all_rows.units.question
    assert len(question) < LONGEST_QUESTION + 20
    assert "\x1b" not in question
    assert "<b>why" not in Path(report(tmp_path / "run", tmp_path / "page.html")).read_text(encoding="utf-8")


def test_a_claim_at_a_cut_off_says_so_where_the_first_claim_is_about_none() -> None:
    required = HELD.replace(require="sensitivity>=0.5")
    for claim, said in (("refit,sensitivity", True), ("sensitivity,refit", False)):
        shown = unwrap(make(required.replace(claim=claim), blobs(200, shift=2.0)).summary())
        (proven,) = re.findall(r"proven (.*?) by class", shown)
        assert re.search(r"% with cut-off -?[\d.]+", proven) if said else "cut-off" not in proven
