"""Facts are told once, the same in every form; the first screen says what may be quoted and done next."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import BY_DAY, CASES
from conftest import blobs, unwrap
from finished import SERIAL, Finished
from pages import Page

from ckcv_ray import Certified, Job, Result, Scored, Study, Task, load_run
from ckcv_ray.errors import ceil_percent
from ckcv_ray.reports.facts import CAUTION, DETAILS, FIRST, FOLDER, QUESTION, Fact, Section, facts
from ckcv_ray.reports.render import LINE_WIDTH, MARKUP, make_page, report
from ckcv_ray.runs.finished import load
from ckcv_ray.runs.judged import GRID, judge_rows, trace_roc
from ckcv_ray.runs.result import find_quoted, find_verdict, tabulate_claimed
from ckcv_ray.runs.run import run_job
from ckcv_ray.storage.folder import LONGEST_QUESTION

SMALL: dict[str, Any] = {"k": (3,), "n_splits": 3, "C": (1.0,), "gamma": (0.1,)}
HELD: dict[str, Any] = {**SMALL, "certify": "holdout"}
TOGETHER = [{"measured", "baseline", "better", "proven", "by class"}, {"operating point", "wrong"}]
COUNTS = re.compile(r"'(\w+)' (\d+) of (\d+)")
CASE = pytest.mark.parametrize(
    "case",
    [
        pytest.param(name, marks=[] if name in BY_DAY else [pytest.mark.night])
        for name, lines in CASES.items()
        if "--out" in lines and name not in ("refusals", "what was removed")
    ],
)


def list_folders(finished: Finished, case: str) -> Iterator[Path]:
    return (study.parent for study in sorted(finished(case).parent.glob("*/study.json")))


@cache
def read(folder: Path) -> tuple[Result, list[Section]]:
    result = load(folder)
    return result, facts(result)


@cache
def show(folder: Path) -> str:
    return make_page(folder)


def list_told(sections: list[Section], level: int = 3) -> list[Fact]:
    return [fact for section in sections for fact in section.facts if fact.level <= level]


def find(sections: list[Section], name: str) -> Fact:
    return next(fact for fact in list_told(sections) if fact.name == name)


GRID_OF_TWO = {"k": (3, 4), "n_splits": 4, "C": (0.1, 1.0), "gamma": (0.1,)}
PAPER, HOLDOUT = Study.of(certify="paper", **GRID_OF_TWO), Study.of(certify="holdout", **GRID_OF_TWO)


def compute(study: Study, task: Task) -> Result:
    return run_job(Job(study, task), SERIAL)


@CASE
def test_every_form_shows_the_same_facts(case: str, finished: Finished, tmp_path: Path) -> None:
    for folder in list_folders(finished, case):
        result, sections = read(folder)
        if isinstance(result, Scored) and result.study.save_predictions:  # the page alone shows them
            sections = [section for section in sections if section.name != "performance"]
        page, markdown = Page(show(folder)).text, Path(report(folder, tmp_path / "told.md")).read_text()
        brief, whole = (unwrap(result.summary(details, FOLDER)) for details in (False, True))
        for fact in list_told(sections):
            assert unwrap(fact.text) in page
            assert MARKUP.sub(r"\\\1", fact.text) in markdown
            assert fact.level > DETAILS or unwrap(fact.text) in whole
        tables = [table for section in sections for table in section.tables]
        for table in tables:
            cells = (cell for row in table.rows for cell in row)
            for cell in (table.title, table.note.split("\n")[0], *table.heads, *cells):
                assert unwrap(cell) in page
                assert MARKUP.sub(r"\\\1", cell) in markdown
            assert (table.title in whole) or table.level > DETAILS
        first = [fact for fact in list_told(sections, FIRST) if fact.name not in (CAUTION, "or")]
        assert all(unwrap(fact.text) in brief for fact in first)
        assert "None" not in brief + whole
        if isinstance(result, Certified):
            lines = result.summary(folder="a b").splitlines()
            assert max(map(len, lines)) <= LINE_WIDTH
            assert lines[-1].startswith("then      ckcv ")
            assert "report 'a b'" in lines[-1]
            (verdict,) = (fact.text for fact in first if fact.name == "verdict")
            assert brief.startswith(unwrap(verdict)) or brief.startswith(("ACCEPTED", "NOT ACCEPTED"))
            statement = result.certificate.first.statement
            assert whole.count(unwrap(statement)) == 1
            assert "Nothing can be quoted" not in brief or any(fact.name == "next" for fact in first)


@CASE
def test_facts_side_by_side_are_of_one_rule_and_one_may_be_quoted(case: str, finished: Finished) -> None:
    for folder in list_folders(finished, case):
        result, sections = read(folder)
        told = list_told(sections)
        for names in TOGETHER:
            assert len({(fact.rule, fact.rows) for fact in told if fact.name in names and fact.rule}) <= 1
        numbers = [fact for fact in told if fact.name == "number"]
        assert re.findall('<p class="number"><bdi>([^<]*)', show(folder)) == [f.text for f in numbers]
        if isinstance(result, Certified):
            check_counts(result, sections)
            quoted, why_not = find_quoted(result)
            assert [fact.value for fact in numbers] == ([] if quoted is None else [quoted.bound])
            assert ("Nothing can be quoted" in result.summary()) == (quoted is None)
            assert bool(why_not) or quoted is result.certificate.first
            check_verdict(result, told)


def check_verdict(result: Certified, told: list[Fact]) -> None:
    """A word and JSON say of the verdict what the first screen does."""
    content, verdict = result.to_json(), find_verdict(result)
    assert content["may_be_quoted"] == (not find_quoted(result)[1])
    assert {fact.text for fact in told if fact.name == CAUTION} <= {*content["cautions"]}
    assert (verdict == "not accepted") == result.summary().startswith("NOT ACCEPTED")
    if verdict != "not accepted":
        (said,) = (fact.text for fact in told if fact.name == "verdict")
        names = {fact.name for fact in told}
        assert (verdict == "nothing yet") == ("number" not in names)
        assert (verdict == "may be quoted") == said.startswith("May be quoted: ")
        assert verdict != "with caution" or names & {CAUTION, QUESTION}
        assert verdict == "with caution" or not said.startswith("Quote with CAUTION: ")


def check_counts(result: Result, sections: list[Section]) -> None:
    """Recount, from the judged rows, what is told about the first claim, and compare it with JSON."""
    first, said, content = result.certificate.first, find(sections, "baseline"), result.to_json()
    assert said.value == content["baseline"]["error"]
    assert find(sections, "fits").value == content["fits"]
    judged = result.judged
    if judged is not None and first.held_out and result.certificate.numbers is None:
        rows = judged.to_pandas()
        rows = rows[rows["classifier"] == first.classifier]
        if first.cut_off is None and first.quantity.is_error:
            mean = rows.groupby("unit")["loss"].mean().mean()
            assert find(sections, "measured").value == pytest.approx(mean)
            assert f"{100 * mean:.2f} % wrong" in find(sections, "measured").text
    if tabulate_claimed(result) is not None:
        counts = np.array(find(sections, "by class").value)
        assert counts[:, :-1].tolist() == content["confusion"]
        (table,) = (table for section in sections for table in section.tables if table.title == "By class")
        told = {row[0].partition(": ")[2]: row[1] for row in table.rows}
        assert len(told) == len(table.rows)
        for number, label in enumerate(result.task.classes):
            right = int(counts[number, number])
            assert told[f"‘{label}’ found"] == f"{right:,} of {counts[number].sum():,}"
            assert told[f"‘{label}’ predicted, and right"] == f"{right:,} of {counts[:, number].sum():,}"
        proven = [*table.heads, "proven"].index("proven")
        shown = {cell for row in table.rows for cell in row[proven : proven + 1]} - {"–"}
        of_rule = [claim for claim in result.claims if claim.quantity.by_class and claim.shares_rule(first)]
        assert shown == {f"at least {claim.limit}" for claim in of_rule if claim.bound is not None}
        wrong, total = int(counts.sum() - counts.diagonal().sum()), int(counts.sum())
        assert find(sections, "wrong").text.startswith(f"{wrong:,} of {total:,} rows")
        rows, listed = counts.sum(axis=1), COUNTS.findall(find(sections, "by class").text)
        assert len(listed) == len(rows)
        for label, part, of in listed:
            number = result.task.classes.index(label)
            assert (int(part), int(of)) == (rows[number] - counts[number, number], rows[number])
        if first.quantity.is_error:
            assert (wrong, total) == (first.errors, first.rows)


def test_what_was_asked_and_is_proven_decides_the_headline() -> None:
    """Few rows are sick, and are found easily at the price of false alarms."""
    rng = np.random.default_rng(4)
    sick = rng.permutation(500) < 60
    task = Task.of(rng.normal(size=(500, 2)) + 1.5 * sick[:, None], np.where(sick, "sick", "healthy"))
    result = compute(
        Study.of(**HELD, claim="refit,sensitivity,specificity", require="sensitivity>=0.6"), task
    )
    assert result.proven >= result.certificate.baseline.error
    sections = facts(result)
    verdict = find(sections, "verdict").text
    assert verdict.startswith("The error cannot be quoted; what is proven: sensitivity (recall of 'sick')")
    assert any("not to be quoted alone" in fact.text for fact in list_told(sections) if fact.name == CAUTION)
    assert "the sensitivity" in find(sections, "claim").text
    assert "ckcv predict" in result.summary(folder="runs/a")
    assert find(sections, "number").text != ceil_percent(result.proven)


def test_the_positive_class_turns_every_figure(tmp_path: Path) -> None:
    """The AUC is the same; rates, probabilities and captions are those of the class that is named."""
    y, results = np.arange(200) % 2, []
    X = np.random.default_rng(2).normal(size=(200, 2)) + 1.2 * y[:, None]
    task = Task.of(X, np.array(["ash", "birch"])[y])
    for label in ("ash", "birch"):
        study = Study.of(learner="naive_bayes", k=(3,), n_splits=3, certify="holdout", positive=label)
        results.append(run_job(Job(study, task, tmp_path / label), SERIAL))
        captions = Page(make_page(tmp_path / label)).text
        assert f"if it is of the class ‘{label}’" in captions
        assert f"A larger score speaks for ‘{label}’" in captions
        assert f"sensitivity: ‘{label}’ found" in captions
    first, second = (judge_rows(result) for result in results)
    one, two = trace_roc(first), trace_roc(second)
    assert one.areas[0] == pytest.approx(two.areas[0])
    assert one.point == pytest.approx((1 - two.point[1], 1 - two.point[0]))
    for roc in (one, two):  # the models classify by their scores, so that they work on the curve
        near = np.abs(GRID - roc.point[0]).argmin()
        curve = roc.curves[0]
        assert curve[max(0, near - 1)] - 0.02 <= roc.point[1] <= curve[min(100, near + 1)] + 0.02
    low, high = (np.array([each[2:5] for each in one.calibration.bins]) for one in (first, second))
    rows, found, mean = low.T
    assert found.sum() == np.sum(first.y == 0)
    assert rows @ mean == pytest.approx(len(first.y) - high[:, 0] @ high[:, 2])


def test_the_question_of_a_stranger_s_folder_is_cut(tmp_path: Path) -> None:
    task = blobs(200, shift=3.0)
    long = replace(task, units=replace(task.units, question="\x1b[1m<b>" + 10_000 * "why "))
    run_job(Job(HOLDOUT, long, tmp_path / "run"), SERIAL)
    question = load_run(tmp_path / "run").problem.all_rows.units.question
    assert len(question) < LONGEST_QUESTION + 20
    assert "\x1b" not in question
    assert "<b>why" not in make_page(tmp_path / "run")


def test_an_error_that_may_not_be_quoted_is_not_told_as_proven_beside_the_first_claim() -> None:
    result = compute(HOLDOUT.replace(claim="specificity,refit"), blobs(90, seed=1, shift=0.0))
    (error,) = (claim for claim in result.claims if claim.quantity.is_error)
    told = unwrap(result.summary(details=True))
    assert f"CAUTION The bound {error.limit} (refit) is a figure, not to be quoted alone" in told
    assert "proven error" not in told
