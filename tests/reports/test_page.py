"""The HTML page: it says what the summary says, loads nothing, takes no name for markup, and reads as before.

Three pages are kept as text; with CKCV_RECORD=1 they are recorded again, and git shows the change.
"""

import hashlib
import os
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import Ran, blobs
from doubles import FIRE, Failing, k_of, run_with
from finished import KINDS, SERIAL, Finished
from pages import FORBIDDEN, HOSTILE, Page
from sklearn.datasets import load_iris

from ckcv_ray import evaluate, load_run, report
from ckcv_ray.errors import ceil_percent
from ckcv_ray.reports import facts
from ckcv_ray.reports.facts import DETAILS, PAGE, tell_data
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
    assert f"paths failed: {FIRE}; tracebacks are in" in text


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
    text, task = make_page(finished("hostile")), load_run(finished("hostile")).task
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


# The options of ckcv report, and what describes data and scores


def test_what_a_person_says_stands_on_the_page_as_text(
    finished: Finished, tmp_path: Path, ckcv: Command
) -> None:
    purpose = tmp_path / "purpose.txt"
    purpose.write_text("To tell <b>early</b>\nwho recovers.\n\nNot for children.\n")
    words = ("--title", "A & B", "--author", "Dr. <i>", "--purpose", purpose, "--out", tmp_path / "page.html")
    assert ckcv("report", finished("held"), *words)[0] == 0
    page = (tmp_path / "page.html").read_text()
    assert "<h1><bdi>A &amp; B</bdi></h1>" in page
    assert "author: Dr. &lt;i&gt;" in page
    assert "To tell &lt;b&gt;early&lt;/b&gt; who recovers." in page
    assert page.count('class="purpose"') == 2


def test_a_short_report_has_the_number_and_its_conditions_and_no_search(
    finished: Finished, tmp_path: Path
) -> None:
    long = make_page(finished("held"))
    short = Path(report(finished("held"), tmp_path / "s.html", short=True)).read_text()
    assumptions = load_run(finished("held")).certificate.assumptions
    for words in ("The number to quote", "May I quote it?", "By class", *assumptions):
        assert words in short
    assert ("Glossary" in short, "Glossary" in long) == (False, True)
    assert short.count("<svg") < long.count("<svg")


def test_data_are_described_column_by_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 60
    table = pa.table(
        {
            "age": pa.array([None if i % 6 == 0 else float(i) for i in range(n)]),
            "ward": [("north", "south", "north")[i % 3] for i in range(n)],
            "admitted": [f"2024-01-{1 + i % 28:02d}" for i in range(n)],
        }
    )
    result = evaluate(table, np.arange(n) % 3 == 0, tmp_path / "run", SERIAL, learner="tree")
    assert tell_data(result, 0, DETAILS).tables == []  # of a screen: of many rows they take long
    (columns,) = tell_data(result, 0, PAGE).tables
    age, ward, admitted = columns.rows
    assert age[:4] == ("age", "number", "10", "16.67 %")
    assert ward[-1] == "north (66.67 %)"
    assert (admitted[1], admitted[-1][:8]) == ("date", "2024-01-")
    monkeypatch.setattr(facts, "MAX_DESCRIBED", 1)
    assert "Columns: the first 1 of 3" in make_page(tmp_path / "run")


def test_what_failed_of_scores_is_listed(tmp_path: Path) -> None:
    options = {"learner": "neighbors", "resampling": "holdout:0.9", "param": {"n_neighbors": (5, 40)}}
    evaluate(*load_iris(return_X_y=True), tmp_path / "failing", SERIAL, **options)
    page = make_page(tmp_path / "failing")
    assert "Some scores are incomplete" in page
    assert "Expected n_neighbors" in page
