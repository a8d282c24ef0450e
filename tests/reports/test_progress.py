"""The progress of a run in words, and as a line in a notebook, with modules that stand in for IPython's."""

import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from conftest import blobs

from ckcv_ray import CKCVClassifier, Execution, evaluate
from ckcv_ray.core.process import is_notebook
from ckcv_ray.engine.queue import Progress
from ckcv_ray.runs import run as progress
from ckcv_ray.runs.run import describe_progress, watch_run
from ckcv_ray.study.problem import Candidate

ROWS = blobs(60, shift=2.0)
SMALL = {"k": (3, 4), "n_splits": 3}
BEGUN = Progress(planned=4000, computed=1000)
SERIAL = Execution("serial")


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, dict[str, str]]]:
    """What a notebook shows, by the number of the output; its shell has a kernel, and no update waits."""
    shown: list[tuple[int, dict[str, str]]] = []

    def display(content: dict[str, str], **_: bool) -> SimpleNamespace:
        number = len({one for one, _ in shown})
        shown.append((number, content))
        return SimpleNamespace(update=lambda later, **_: shown.append((number, later)))

    modules: dict[str, Any] = {"IPython": ModuleType("IPython"), "IPython.display": ModuleType("display")}
    modules["IPython"].get_ipython = lambda: SimpleNamespace(kernel=object())
    modules["IPython.display"].display = display
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(progress, "UPDATE_SECONDS", 0.0)
    return shown


def test_a_moment_of_a_run_in_words() -> None:
    line = describe_progress(BEGUN, BEGUN, 5.0)
    assert line == "searching | 1,000 evaluations | 0.00 % dropped | time left unknown"
    best = Candidate({"metric": "pooled", "shrinkage": 0.1}, 5), 0.1234
    later = BEGUN._replace(computed=2000, dropped=1000, failed=3, left=400.0, workers=2, best=best)
    assert describe_progress(later, BEGUN, 5.0) == (
        "searching | 2,000 evaluations, 200/s | 25.00 % dropped | 3 min left | 3 failed | "
        "best L_MS 12.34 % at metric = pooled, shrinkage = 0.1, k = 5"
    )
    assert "| less than 1 s left |" in describe_progress(later._replace(left=0.4), BEGUN, 5.0)


def test_a_notebook_shows_one_line_that_says_how_the_run_ended(outputs: list[Any]) -> None:
    CKCVClassifier(**SMALL).fit(ROWS.X, ROWS.y)
    assert len(outputs) > 1
    assert {number for number, _ in outputs} == {0}
    *moments, (_, end) = outputs
    assert all("evaluations" in content["text/plain"] for _, content in moments)
    assert re.fullmatch(r"finished after \d+ s: [\d,]+ evaluations", end["text/plain"])
    for _, content in outputs:
        done, planned = map(int, re.findall(r'(?:value|max)="(\d+)"', content["text/html"]))
        assert 0 <= done <= planned


def test_a_run_that_stops_says_so(outputs: list[Any]) -> None:
    listening = watch_run(None)
    listening.__enter__()(BEGUN)
    assert not listening.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert outputs[-1][1]["text/plain"] == "stopped after 0 s: 1,000 evaluations"


def test_names_from_the_data_are_text(outputs: list[Any]) -> None:
    listening = watch_run(None)
    listening.__enter__()(BEGUN._replace(best=(Candidate({"<script>": 1}, 3), 0.1)))
    assert "&lt;script&gt;" in outputs[0][1]["text/html"]


def test_a_listener_and_a_terminal_show_nothing(outputs: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Progress] = []
    evaluate(ROWS.X, ROWS.y, execution=SERIAL, resampling="kfold:3", listen=heard.append)
    assert heard
    assert is_notebook()
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", SimpleNamespace)  # a shell without a kernel
    assert not is_notebook()
    CKCVClassifier(**SMALL).fit(ROWS.X, ROWS.y)
    assert outputs == []
