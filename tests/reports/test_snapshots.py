"""Three pages as they are read; with CKCV_RECORD=1 they are recorded again, and git shows what changed."""

import os
import re
from html import unescape
from pathlib import Path

import pytest
from finished import Finished

from ckcv_ray.reports.render import make_page

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
