"""The first screen of the page: six answers, for a study with a certification and for one without."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from conftest import blobs

from ckcv_ray import Execution, Study, evaluate
from ckcv_ray.core.percent import ceil_percent
from ckcv_ray.reports.about import About
from ckcv_ray.reports.answer import make_answer
from ckcv_ray.reports.page import make_title, open_run, open_scores
from ckcv_ray.reports.write import make_page
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
    assert found.number == ceil_percent(result.proven)


def test_a_bound_not_below_the_baseline_is_no_number_to_quote(tmp_path: Path) -> None:
    result = certify(tmp_path, 0.0)
    found = open_run(result)
    assert (found.state, found.kicker) == ("worthless", "Nothing to quote yet")
    assert found.quotable[0].startswith("Nothing can be quoted yet. ")
    assert "is not below" in found.quotable[0]
    assert found.advice.command.startswith("run …")
    assert all(f"{text}." in found.advice.sentences for text in make_answer(result).advice)
    assert found.advice.sentences
    page = make_page(tmp_path / "run")
    assert "The number to quote" not in text_of(page)
    assert 'class="number"' not in page


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


def test_a_title_names_the_target_and_the_table(tmp_path: Path) -> None:
    result = certify(tmp_path, 2.0)
    assert make_title(result, About()) == f"Prediction of {result.task.target}"
    named = replace(result, execution=result.execution | {"source": "a.csv"})
    assert make_title(named, About()) == f"Prediction of {result.task.target} from a.csv"
    assert make_title(named, About("Mine")) == "Mine"
