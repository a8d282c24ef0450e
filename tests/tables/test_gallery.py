"""The gallery: every table is refused in a sentence, or runs; and the documentation is true."""

from pathlib import Path

import pytest
from gallery import GALLERY, page, said_of

from ckcv_ray import Execution, Job, Study
from ckcv_ray.runs.run import run_job

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "gallery.md"
SMALL = Study.paper(learner="tree", k=(3,), n_splits=2)


@pytest.mark.parametrize("exhibit", GALLERY, ids=lambda one: one.title)
def test_a_table_runs_or_is_refused_in_a_sentence(exhibit, tmp_path):
    kinds, said = said_of(exhibit)
    if kinds == "refused":
        assert len(said) > 40
        return
    task = exhibit.task(tmp_path)
    result = run_job(Job(SMALL, task), Execution("serial"))
    assert result.execution["failures"] == []
    columns = exhibit.read(tmp_path)
    assert len(result.predict(columns, by="vote")) == columns.num_rows


def test_the_page_shows_what_is_true():
    assert PAGE.read_text() == page(), "python tests/tables/gallery.py docs/guides/gallery.md writes it again"
