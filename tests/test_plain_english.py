"""Old phrases stay out of the package, the jobs and the documentation."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("ckcv_ray", "jobs", "docker", "docs", "README.md", "cluster.yaml")
KINDS = {".py", ".md", ".html", ".sh", ".yaml", ".toml", ".service", ".timer", ""}
PHRASES = (
    "anew",
    "beside",
    "told",
    "so many",
    "given again",
    "entered once",
    "ever after",
    "whole, or not at all",
    "whole or not at all",
    "take hold of",
    "take up what",
    "handed out",
    "for now or for good",
    "in the place of",
    "come and go",
    "go on again",
    "nothing is asked",
    "expected: about",
    "nothing lost",
    "what it will take",
    "watching it",
    "at the door",
    "goes with",
    "go together",
    "rival",
    "rivals",
    "harm",
    "harms",
    "drawn afresh",
    "ckcv_cells",
)


def texts() -> Iterator[Path]:
    for place in map(ROOT.joinpath, PLACES):
        files = place.rglob("*") if place.is_dir() else [place]
        yield from (file for file in files if file.is_file() and file.suffix in KINDS)


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_is_not_used(phrase: str) -> None:
    pattern = re.compile(
        r"(?<!\w)" + r"[\s#%]+".join(map(re.escape, phrase.split())) + r"(?!\w)", re.IGNORECASE
    )
    found = [
        f"{file.relative_to(ROOT)}: {match[0]!r}"
        for file in texts()
        for match in pattern.finditer(file.read_text())
    ]
    assert found == []


def test_the_files_are_found() -> None:
    """An empty list of files would pass every test above."""
    names = {str(file.relative_to(ROOT)) for file in texts()}
    assert {"README.md", "ckcv_ray/cli/main.py", "jobs/check", "docs/index.md"} <= names
