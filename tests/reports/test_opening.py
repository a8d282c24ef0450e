"""The first screen of the page: six answers, for a study with a certification and for one without."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import blobs

from ckcv_ray import Execution, Study, evaluate, run
from ckcv_ray.claims.percent import at_most
from ckcv_ray.reports import opening
from ckcv_ray.reports.about import About
from ckcv_ray.reports.answer import make_answer
from ckcv_ray.reports.explanation import describe_method, describe_models
from ckcv_ray.reports.opening import make_title, open_run, open_scores
from ckcv_ray.runs.report import make_page
from ckcv_ray.runs.run import Job, run_job

SERIAL = Execution("serial")
GRID: dict[str, Any] = {"C": (0.1, 1.0), "gamma": (0.1, 1.0), "k": (3, 4), "n_splits": 4}
QUESTIONS = (
    "May I quote it?",
    "What is it about?",
    "What voids it?",
    "How do I check it?",
    "What do I do next?",
)


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<style>.*?</style>|<[^>]*>", " ", page, flags=re.DOTALL))


def certify(tmp_path: Path, shift: float, rows: int = 60, **options: Any) -> Any:
    task = blobs(rows, shift=shift)
    return run_job(Job(Study.paper(**GRID, **options), task, tmp_path / "run"), SERIAL)


def test_the_six_questions_come_before_everything_else(tmp_path: Path) -> None:
    certify(tmp_path, 2.0)
    shown = text_of(make_page(tmp_path / "run"))
    top = shown[: shown.index("In figures")]
    assert "The number to quote" in top
    assert all(question in top for question in QUESTIONS)
    assert "ckcv verify RUN_FOLDER" in top


def test_a_number_that_says_something_may_be_quoted_and_applied(tmp_path: Path) -> None:
    result = certify(tmp_path, 3.0, rows=120, certify="holdout", holdout_share=0.5)
    found, answer = open_run(result), make_answer(result)
    assert (found.state, found.kicker) == ("quote", "The number to quote")
    assert found.quotable[0] == f"{answer.verdict}."
    assert found.advice.command.startswith("predict")
    assert all(any(text in sentence for sentence in found.advice.sentences) for text in answer.advice)
    assert found.number == at_most(result.proven)


def test_a_bound_not_below_the_baseline_is_no_number_to_quote(tmp_path: Path) -> None:
    result = certify(tmp_path, 0.0)
    found = open_run(result)
    assert (found.state, found.kicker) == ("worthless", "Nothing to quote yet")
    assert found.quotable[0].startswith("Nothing can be quoted yet. ")
    assert "is not below" in found.quotable[0]
    assert found.advice.command.startswith("run …")
    assert all(f"{text}." in found.advice.sentences for text in make_answer(result).advice)
    assert found.advice.sentences
    assert "The number to quote" not in text_of(make_page(tmp_path / "run"))


def test_groups_are_advised_to_be_more(tmp_path: Path) -> None:
    task = blobs(60, shift=1.0)
    groups = np.arange(60) // 4  # too few to hold some out
    study = Study.paper(**GRID)
    result = run(study, task.X, task.y, tmp_path / "run", SERIAL, groups=groups)
    found = open_run(result)
    assert "more of them, better columns" in found.advice.sentences[0]
    assert "rows of new groups" in found.subject[0]
    assert any("groups by" in sentence for sentence in found.subject)


def test_a_provisional_number_says_so(tmp_path: Path) -> None:
    result = certify(tmp_path, 3.0)
    assert result.finished is not None
    winner = replace(result.certificate.winner, provisional=True)
    certified = result.finished._replace(certificate=replace(result.certificate, winner=winner))
    found = open_run(replace(result, finished=certified))
    assert found.state == "provisional"
    assert found.kicker.startswith("Provisional")


def test_a_claim_about_a_quantity_is_at_least(tmp_path: Path) -> None:
    result = certify(tmp_path, 2.0, rows=120, certify="holdout", claim="sensitivity")
    found = open_run(result)
    assert "is at least" in found.quotable[0]
    assert "on new rows, at least; proven" in found.name


def test_cautions_are_part_of_the_answer(tmp_path: Path) -> None:
    task = blobs(60, shift=3.0)
    X, y = np.vstack([task.X, task.X[:6]]), np.concatenate([task.y, task.y[:6]])
    result = run(Study.paper(**GRID), X, y, tmp_path / "run", SERIAL)
    found = open_run(result)
    assert found.state == "quote"
    assert found.quotable[0].startswith("Quote with CAUTION")
    assert any("equal another row" in sentence for sentence in found.quotable)


def test_an_estimate_is_called_one(tmp_path: Path) -> None:
    task = blobs(60, shift=1.0)
    result = evaluate(task.X, task.y, tmp_path / "run", SERIAL, learner="tree,naive_bayes")
    found = open_scores(result, ["a doubt"])
    best = result.rank(result.scores[0])[0]
    assert found.kicker == "An estimate, not a bound"
    assert found.number == f"{best[1].mean:.4f}"
    assert best[0].name in found.name
    assert "It is the best of 2" in found.quotable[1]
    assert list(found.notes) == ["a doubt"]
    assert found.advice.command.startswith("run …")


def test_a_score_that_is_not_known_is_no_number(tmp_path: Path) -> None:
    task = blobs(40)
    options = {"learner": "naive_bayes", "resampling": "loo", "measure": "auc"}
    result = evaluate(task.X, task.y, tmp_path / "run", SERIAL, **options)
    found = open_scores(result, [])
    assert (found.state, found.number) == ("worthless", "–")
    assert found.quotable[0].startswith("No:")


@pytest.mark.parametrize("refit", [None, "best"])
def test_numbers_are_predicted_by_a_model_on_all_rows(refit: str | None, tmp_path: Path) -> None:
    task = blobs(40)
    result = evaluate(
        task.X,
        1e5 * task.X[:, 0],
        tmp_path / "run",
        SERIAL,
        learner="linear_regression",
        measure="rmse",
        refit=refit,
    )
    found = open_scores(result, [])
    assert found.advice.command == ("predict RUN_FOLDER NEW_ROWS.csv" if refit else "evaluate … --refit best")
    assert found.subject[0].startswith("Prediction of a number")
    assert opening._format_score(123456.0) == "1.235e+05"


def test_a_title_names_the_target_and_the_table(tmp_path: Path) -> None:
    result = certify(tmp_path, 2.0)
    assert make_title(result, About()) == f"Prediction of {result.task.target}"
    named = replace(result, execution=result.execution | {"source": "a.csv"})
    assert make_title(named, About()) == f"Prediction of {result.task.target} from a.csv"
    assert make_title(named, About("Mine")) == "Mine"


def test_of_many_classes_some_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 5
    X = rng.normal(size=(60, 2)) + y[:, None]
    result = evaluate(X, y, tmp_path / "run", SERIAL, learner="naive_bayes")
    assert "0, 1 and 3 more classes" in open_scores(result, []).subject[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "pays for the selection"),
        ({"certify": "holdout"}, "that nothing used before"),
        ({"resampling": "rotation"}, "cut into k parts"),
    ],
)
def test_the_method_is_three_sentences(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    if options.get("resampling"):
        options = options | {"n_splits": None}
    grid = {name: value for name, value in GRID.items() if options.get(name, 0) is not None}
    study = Study.paper(**grid, **{name: value for name, value in options.items() if value is not None})
    result = run_job(Job(study, blobs(60), tmp_path / "run"), SERIAL)
    method = describe_method(result)
    assert len(method) == 3
    assert any(words in sentence for sentence in method)
    kept = {name for name, _ in describe_models(result)}
    extra = {"holdout": {"refit", "full"}}
    assert kept == {"F*"} | extra.get(str(options.get("certify")), set())
    assert all(sentence.endswith(".") for sentence in method)
