"""What a person says of a report, and one page: the options of ckcv report."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import unwrap
from finished import SERIAL, Finished
from sklearn.datasets import load_iris

from ckcv_ray import evaluate, load_run, report
from ckcv_ray.reports import facts
from ckcv_ray.reports.facts import tell_data
from ckcv_ray.reports.render import make_page


def test_what_a_person_says_stands_on_the_page_as_text(finished: Finished, tmp_path: Path, ckcv: Any) -> None:
    purpose = tmp_path / "purpose.txt"
    purpose.write_text("To tell <b>early</b>\nwho recovers.\n\nNot for children.\n")
    words = ("--title", "A & B", "--author", "Dr. <i>", "--purpose", purpose, "--out", tmp_path / "page.html")
    assert ckcv("report", finished("held"), *words)[0] == 0
    page = (tmp_path / "page.html").read_text()
    assert "<h1><bdi>A &amp; B</bdi></h1>" in page
    assert "author: Dr. &lt;i&gt;" in page
    assert "To tell &lt;b&gt;early&lt;/b&gt; who recovers." in page
    assert page.count('class="purpose"') == 2


def test_a_purpose_that_is_too_long_is_refused(finished: Finished, tmp_path: Path, ckcv: Any) -> None:
    file, out = tmp_path / "purpose.txt", tmp_path / "p.html"
    file.write_bytes(b"a" * (1 << 22 | 1))
    code, _, said = ckcv("report", finished("held"), "--purpose", file, "--out", out)
    assert (code, out.exists()) == (2, False)
    assert "cannot be read: it has more than 4 MiB" in unwrap(said)


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
    assert tell_data(result, 0, facts.DETAILS).tables == []  # of a screen: of many rows they take long
    (columns,) = tell_data(result, 0, facts.PAGE).tables
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
