"""A figure beside another is of the same rows and the same rule, whatever the study, wherever it is shown."""

import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import unwrap

from ckcv_ray import Execution, Job, Result, Study, Task
from ckcv_ray.core.percent import ceil_percent
from ckcv_ray.reports.answer import make_answer
from ckcv_ray.reports.facts import Stored, tell
from ckcv_ray.reports.write import make_page
from ckcv_ray.runs.judged import GRID, calibrate, judge_rows, trace_roc
from ckcv_ray.runs.run import run_job

SMALL: dict[str, Any] = {"k": (3,), "n_splits": 3, "C": (1.0,), "gamma": (0.1,)}
HELD: dict[str, Any] = {**SMALL, "certify": "holdout"}
RECALLS = "sensitivity,specificity"
ALONE = {**HELD, "claim": RECALLS}


def overlap(n: int, groups: bool = False, classes: int = 2) -> Task:
    """Rows of classes that overlap, so that every rule errs, and each in another way."""
    rng = np.random.default_rng(2)
    y = np.arange(n) % classes
    X = rng.normal(size=(n, 2)) + 1.2 * y[:, None]
    units = rng.permutation(np.arange(n) // 3) if groups else None  # of unequal classes
    return Task.of(X, np.array(["ash", "birch", "cedar"])[y], groups=units)


STUDIES: dict[str, tuple[dict[str, Any], Task]] = {
    "paper": ({**SMALL, "certify": "paper"}, overlap(90)),
    "three classes": ({**SMALL, "certify": "paper"}, overlap(90, classes=3)),
    "groups": ({**SMALL, "certify": "paper"}, overlap(120, groups=True)),
    "refit": (HELD, overlap(200)),
    "vote": ({**HELD, "claim": "vote"}, overlap(200)),
    "refit of three": (HELD, overlap(200, classes=3)),
    "refit of groups": (HELD, overlap(240, groups=True)),
    "stevens": ({**HELD, "holdout_bound": "stevens"}, overlap(200)),
    "recalls": ({**HELD, "claim": f"refit,{RECALLS}"}, overlap(200)),
    "recalls alone": (ALONE, overlap(200)),
    "cut-off": ({**ALONE, "require": "sensitivity>=0.8"}, overlap(300)),
    "cut-off and error": ({**HELD, "claim": f"refit,{RECALLS}", "require": "sensitivity>=0.8"}, overlap(300)),
    "specificity": ({**ALONE, "require": "specificity>=0.8", "positive": "ash"}, overlap(300)),
}
COUNTS = re.compile(r"'(\w+)' (\d+) of (\d+)")


@pytest.fixture(params=STUDIES.values(), ids=STUDIES, scope="module")
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    options, task = request.param
    place = tmp_path_factory.mktemp("run") / "run"
    return run_job(Job(Study.of(**options), task, place), Execution("serial")), place


def list_facts(result: Result) -> dict[str, str]:
    """Return the lines of the first screen by their names."""
    lines = result.summary().splitlines()
    joined = "\n".join(lines).replace("\n" + " " * 10, " ")
    return {line[:10].strip(): line[10:] for line in joined.splitlines()}


def test_the_errors_of_the_classes_add_up_to_what_is_measured(finished: tuple[Result, Path]) -> None:
    result, place = finished
    first, shown = result.certificate.claims.first, list_facts(result)
    by_class = {label: (int(wrong), int(rows)) for label, wrong, rows in COUNTS.findall(shown["by class"])}
    assert set(by_class) == set(result.task.classes)
    wrong, rows = (sum(part) for part in zip(*by_class.values(), strict=True))
    if first.quantity == ERROR:
        assert (wrong, rows) == (first.errors, first.rows)
        assert f"{wrong} of {rows}" in shown["measured"]
    else:
        missed, of_class = by_class[first.label]
        assert f"({of_class - missed} of {of_class} held-out rows right)" in shown["measured"]
    facts = " ".join(tell(Stored(result, "0" * 64), "classes"))
    said = re.findall(r"Class '(\w+)', measured: (\d+) of (\d+)", facts)
    assert {label: (int(part), int(whole)) for label, part, whole in said} == by_class
    details = unwrap(result.summary(details=True))
    for label, (part, whole) in by_class.items():
        assert re.search(rf"'{label}' predicted as [^:]+: {part} of {whole} \(", details)
    page = re.sub(r"\s+", " ", unescape(re.sub("<[^>]*>", " ", make_page(place))))
    assert f"{wrong} of {rows} rows are wrong" in page
    confusion = np.array(result.to_json()["confusion"])
    assert (rows - confusion.trace()) == wrong


def test_of_groups_the_mean_is_that_of_the_groups_that_were_judged(finished: tuple[Result, Path]) -> None:
    result, _ = finished
    judged, first = result.finished.judged, result.certificate.claims.first
    if result.certificate.sample.groups is None or judged is None:
        assert first.errors is not None
        return
    rows = judged.to_pandas()
    rows = rows[rows["classifier"] == first.classifier]
    expected = rows.groupby("unit")["loss"].mean().mean()
    assert f"{100 * expected:.2f} % wrong (mean over groups" in unwrap(result.summary())


def test_what_is_proven_stands_beside_figures_of_its_rule_alone(finished: tuple[Result, Path]) -> None:
    """A bound of another cut-off is not in the table of what was measured."""
    result, place = finished
    page = unescape(make_page(place))
    table = page[page.index("<h3>By class</h3>") :].partition("</table>")[0]
    first = result.certificate.claims.first
    for claim in result.certificate.claims:
        if claim.label is None or claim.bound == 1:
            continue
        shown = f"at least {100 * (1 - claim.bound):.2f}"[:-1] in table
        same = (claim.classifier, claim.get("cut_off")) == (first.classifier, first.get("cut_off"))
        assert shown == same
    for interval in result.intervals if first.certification == "holdout" else []:
        assert ("cut-off" in interval.describe()) == (interval.cut_off is not None)


def rare(n: int) -> Task:
    """Rows of which few are of the second class, which are found easily at the price of false alarms."""
    rng = np.random.default_rng(4)
    sick = rng.permutation(n) < 0.12 * n
    return Task.of(rng.normal(size=(n, 2)) + 1.5 * sick[:, None], np.where(sick, "sick", "healthy"))


@pytest.mark.parametrize("asked", [{"require": "sensitivity>=0.6"}, {"accept": "specificity>=0.9"}])
def test_what_was_asked_and_is_proven_decides_the_headline(asked: dict[str, str], tmp_path: Path) -> None:
    study = Study.of(**HELD, claim=f"refit,{RECALLS}", **asked)
    result = run_job(Job(study, rare(500), tmp_path / "run"), Execution("serial"))
    assert result.proven >= result.baseline
    answer = make_answer(result)
    assert answer.verdict.startswith("The error cannot be quoted; proven are: sensitivity (recall of 'sick')")
    assert any("not to be quoted alone" in caution for caution in answer.cautions)
    name = "sensitivity" if "require" in asked else "specificity"
    assert f"the {name}" in answer.sentence
    assert "ckcv predict" in result.summary(folder="runs/a")
    page = make_page(tmp_path / "run")
    assert re.findall('<p class="number">([^<]*)', page) != [ceil_percent(result.proven)]


def test_the_report_prints_no_large_number_that_may_not_be_quoted(finished: tuple[Result, Path]) -> None:
    result, place = finished
    shown = re.findall('<p class="number">([^<]*)', make_page(place))
    assert len(shown) == (make_answer(result).quoted is not None)
    assert ("Nothing can be quoted" in result.summary()) == (not shown)


@pytest.mark.parametrize("learner", ["svm", "naive_bayes"])
def test_the_positive_class_turns_every_figure(learner: str, tmp_path: Path) -> None:
    """The AUC is the same; rates, probabilities and captions are those of the class that is named."""
    grid = {name: SMALL[name] for name in ("k", "n_splits", *(("C", "gamma") if learner == "svm" else ()))}
    results = []
    for label in ("ash", "birch"):
        study = Study.of(learner=learner, **grid, certify="holdout", claim="refit", positive=label)
        results.append(run_job(Job(study, overlap(200), tmp_path / label), Execution("serial")))
        captions = re.sub("<[^>]*>", "", make_page(tmp_path / label))
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
    if learner == "naive_bayes":
        low, high = calibrate(first), calibrate(second)
        means = [np.average(one.mean, weights=one.rows) for one in (low, high)]
        assert means[0] == pytest.approx(1 - means[1])
        assert np.average(low.observed, weights=low.rows) == pytest.approx(np.mean(first.y == 0))


def test_classes_that_are_never_found_are_a_caution(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    y = np.array(["ash", "birch", "cedar"])[np.where(rng.random(240) < 0.06, 2, np.arange(240) % 2)]
    X = rng.normal(size=(240, 2)) + 4.0 * (y == "birch")[:, None]  # nothing tells cedar from ash
    result = run_job(Job(Study.of(**HELD), Task.of(X, y), tmp_path / "run"), Execution("serial"))
    counts = result.class_counts
    assert counts[2].sum() > 0 == counts[2, 2]
    rows = f"'cedar' ({counts[2].sum()} rows)"
    (said,) = (text for text in make_answer(result).cautions if text.startswith("Never found"))
    assert rows in said
    assert result.summary().startswith("Quote with CAUTION")
    assert any(rows in text for text in tell(Stored(result, "0" * 64), "cautions"))
