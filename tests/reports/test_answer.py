"""The first screen of a run: what may be quoted, in sixteen lines, and what to do next."""

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from boosting import make as make_booster
from conftest import blobs, unwrap

from ckcv_ray import Execution, Job, Result, Study, Task, load_run, report, run, verify
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.percent import ceil_percent
from ckcv_ray.reports.render import LINE_WIDTH, MAX_LINES
from ckcv_ray.runs.run import run_job
from ckcv_ray.storage.folder import LONGEST_QUESTION
from ckcv_ray.tables.task import Roles

SMALL = {"k": (3, 4), "n_splits": 4, "C": (0.1, 1.0), "gamma": (0.1,)}
PAPER, HELD = Study.of(certify="paper", **SMALL), Study.of(certify="holdout", **SMALL)


def make(study: Study, task: Task) -> Result:
    """Run a study on a task in this process."""
    return run(study, task.X, task.labelled(task.y), groups=task.groups if task.grouped else None)


def noise(n: int, classes: int = 2) -> Task:
    """Rows whose labels follow from nothing."""
    rng = np.random.default_rng(5)
    return Task.of(rng.normal(size=(n, 2)), rng.permutation(np.arange(n) % classes))


def test_what_may_be_quoted_comes_first_with_its_sentence_once() -> None:
    result = make(HELD, blobs(200, shift=2.0))
    shown = unwrap(result.summary())
    first = result.certificate.claims.first
    assert shown.startswith(
        f"May be quoted: in the long run at most {first.limit} of new rows are misclassified"
    )
    sentence, _, counted = first.statement.rpartition(" (")
    assert shown.count(sentence) == 1
    assert counted not in shown
    assert f"measured {100 * first.errors / first.rows:.2f} % wrong" in shown
    assert unwrap(result.summary(details=True)).count(first.statement) == 1


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
def test_it_has_sixteen_lines_that_fit_a_terminal(study: Study, task: Task) -> None:
    lines = make(study, task).summary(folder="runs/one").splitlines()
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= LINE_WIDTH
    assert lines[-1].startswith("then      ckcv report runs/one")


def test_a_bound_that_says_nothing_is_not_quoted() -> None:
    result = make(HELD, noise(150))
    shown = unwrap(result.summary(folder="a b"))
    assert shown.startswith(f"Nothing can be quoted yet. The bound {ceil_percent(result.proven)} (refit) is")
    assert "is misclassified" not in shown
    assert "next on new rows, none of these: --learner all, or other columns" in shown
    assert shown.endswith("then ckcv report 'a b'")


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
    slack = 3 * (result.proven - result.certificate.claims.first.measured)
    assert abs(3 * more.proven - float(found[1])) < slack / 2
    assert float(found[1]) < 3 * result.proven


@pytest.mark.parametrize("grouped", [False, True], ids=["rows", "groups"])
@pytest.mark.parametrize("study", [PAPER, HELD], ids=["paper", "holdout"])
def test_whatever_cannot_be_quoted_there_is_a_next_step(study: Study, grouped: bool) -> None:
    task = noise(120)
    units = np.arange(task.n) // 2 if grouped else None
    shown = unwrap(make(study, Task.of(task.X, task.labelled(task.y), groups=units)).summary())
    assert shown.startswith("Nothing"), shown
    assert " next " in shown, shown


def test_a_question_is_answered_before_a_bound_is_quoted(tmp_path: Path) -> None:
    """Rows of a column named like groups, which is left out: what is proven depends on the answer.

    The folder, which does not hold this column, asks the same.
    """
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
    long = replace(task, grouping=replace(task.grouping, question="\x1b[1m<b>" + 10_000 * "why "))
    run_job(Job(HELD, long, tmp_path / "run"), Execution("serial"))
    question = load_run(tmp_path / "run").problem.all_rows.question
    assert len(question) < LONGEST_QUESTION + 20
    assert "\x1b" not in question
    assert "<b>why" not in Path(report(tmp_path / "run", tmp_path / "page.html")).read_text(encoding="utf-8")


def test_a_claim_at_a_cut_off_says_so_where_the_first_claim_is_about_none() -> None:
    required = HELD.replace(require="sensitivity>=0.5")
    for claim, said in (("refit,sensitivity", True), ("sensitivity,refit", False)):
        shown = unwrap(make(required.replace(claim=claim), blobs(200, shift=2.0)).summary())
        (proven,) = re.findall(r"proven (.*?) by class", shown)
        assert re.search(r"% with cut-off -?[\d.]+", proven) if said else "cut-off" not in proven


def test_the_command_shows_details_on_request(ckcv: Callable[..., Any], patients_run: Path) -> None:
    code, brief, _ = ckcv("status", patients_run)
    assert (code, "L_MS" in brief) == (0, False)
    code, whole, _ = ckcv("status", patients_run, "--details")
    assert code == 0
    assert whole.startswith(brief.splitlines()[0])
    assert all(word in whole for word in ("L_MS", "L_EE", "evaluations", "fits"))
    assert load_run(patients_run).summary(folder=str(patients_run)) == brief.removesuffix("\n")
