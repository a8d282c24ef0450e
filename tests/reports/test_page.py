"""The HTML page: it says what the summary says, loads nothing, takes no name for markup, and reads as it did.

Three pages are kept as they are read; with CKCV_RECORD=1 they are recorded again, and git shows the change.
"""

import hashlib
import os
import re
from collections.abc import Callable
from functools import cache
from html import unescape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import Ran, blobs, unwrap
from doubles import FIRE, Failing, k_of, run_with
from finished import KINDS, SERIAL, Finished
from pages import FORBIDDEN, HOSTILE, Page

from ckcv_ray import evaluate, load_run
from ckcv_ray.errors import ceil_percent
from ckcv_ray.reports.render import make_page
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study.study import Study
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import Task, TestRows

Command = Callable[..., Ran]
SMALL = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4, 5, 20, 21), n_splits=5, report_k=(5,))
NAMES = ("</style><script>1</script>", "{{ 7 * 7 }} & <b>", "長い名前 שלום العربية", "w" * 5000)
PLAIN, TARGET = blobs(30, d=len(NAMES)), "<title>&\"' target"
COLUMNS = dict(zip(NAMES, PLAIN.X.T, strict=True)) | {TARGET: np.where(PLAIN.y == 1, *HOSTILE)}
OF_STRANGERS = Task.from_table(pa.table(COLUMNS), Roles(TARGET), source='"><script>2</script>.csv')
KINDS["hostile"] = SMALL, OF_STRANGERS


@cache
def show_once(out: Path) -> str:
    """The page of a run that nothing below changes, made once."""
    return make_page(out)


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with rows to test on; nothing below changes it."""
    task, out = blobs(40, seed=3, shift=2.0), tmp_path_factory.mktemp("report") / "run"
    run_job(Job(SMALL.replace(seed=3), task, out, TestRows(task.X, task.y)), SERIAL)
    return out


def test_a_provisional_run_says_so_beside_what_is_proven(tmp_path: Path) -> None:
    lose = Failing(lambda unit, problem: k_of(problem, unit) == 4)
    result = run_with(lose, SMALL, blobs(30, seed=1), tmp_path / "run")
    assert result.certificate.provisional
    assert {row["k_first"] for row in result.to_json()["per_k"] if row["state"] == "failed"} == {4}
    text = Page(make_page(tmp_path / "run")).text
    assert "Provisional: evaluations failed; the bound is proven nevertheless" in text
    assert ceil_percent(result.certificate.first.bound) in text
    assert "The number to quote" not in text
    assert FIRE in text
    assert f"{result.execution['evaluations']['failed']:,} evaluations failed" in text


def test_the_page_is_a_function_of_the_folder(
    tested: Path, monkeypatch: pytest.MonkeyPatch, ckcv: Command
) -> None:
    first = make_page(tested)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    assert ckcv("report", tested)[0] == 0
    text, seal = (tested / "report.html").read_text().rsplit("<!--", 1)
    assert (text, seal) == (
        first,
        f" SHA-256 of all before: {hashlib.sha256(text.encode()).hexdigest()} -->\n",
    )
    assert str(tested) not in first
    assert verify(tested).differences == []
    assert "report.html" not in RunFolder(tested).names()


def test_nothing_is_loaded_or_executed_and_names_from_the_data_are_text(finished: Finished) -> None:
    text, task = show_once(finished("hostile")), load_run(finished("hostile")).task
    shown = Page(text)
    for name in (*task.classes, *task.features, task.target.name, "<script>2</script>.csv"):
        assert str(name) in shown.text
    assert not FORBIDDEN & set(shown.tags)
    for name, value in shown.attributes:
        assert not name.startswith("on"), (name, value)
        if name in ("src", "href", "xlink:href", "action"):
            assert value.startswith("#"), (name, value)
    assert not re.findall(r"url\((?!#)|@import", text)
    assert "http" not in text.replace("http-equiv", "")
    assert "default-src 'none'" in text
    assert 'name="viewport"' in text


def test_every_figure_has_words_and_a_table(tested: Path) -> None:
    text = show_once(tested)
    shown = Page(text)
    assert len(shown.labels) == 6  # of what was measured, and of the search
    assert all("table below" in label for label in shown.labels)
    assert shown.tags.count("figure") == 6
    assert shown.text.count("The same as a table") == 6
    assert "currentColor" in text
    ids = [value for name, value in shown.attributes if name == "id"]
    assert len(ids) == len(set(ids))


PAGES = Path(__file__).with_name("pages")
OF_A_RUN = re.compile(
    r'<section id="(cost|environment|files|glossary)">.*?</section>|<svg.*?</svg>', re.DOTALL
)


def read_lines(page: str) -> str:
    """Return the text of a page, the cells of a row in one line, without what differs between runs."""
    shown = OF_A_RUN.sub("", page[page.index("<main>") :])
    shown = re.sub(r"</(td|th|dt)>", " | ", shown)
    lines = (" ".join(line.split()) for line in unescape(re.sub("<[^>]*>", "", shown)).splitlines())
    return "".join(f"{line}\n" for line in lines if line)


@pytest.mark.parametrize(
    ("case", "folder"),
    [("what is claimed of two classes", "a"), ("numbers", "r"), ("evaluated by nested:3:3", "s")],
)
def test_a_page_reads_as_it_did(case: str, folder: str, finished: Finished) -> None:
    shown = read_lines(make_page(finished(case, folder)))
    file = PAGES / f"{case.replace(' ', '_').replace(':', '_')}.txt"
    if os.environ.get("CKCV_RECORD"):
        file.write_text(shown)
    assert shown == file.read_text()


def test_a_score_that_no_split_has_has_no_figure_of_splits(tmp_path: Path) -> None:
    task, out = blobs(12), tmp_path / "scores"
    evaluate(task.X, task.y, out, learner="naive_bayes", resampling="loo", measure="roc_auc")
    assert "There is none: roc_auc is not defined on any single split." in unwrap(make_page(out))
