"""Old phrases stay out of the package, the jobs and the documentation."""

import re
from functools import cache
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


@cache
def texts() -> dict[str, str]:
    """Return the text of every place, in small letters, by its path."""
    found = {}
    for place in map(ROOT.joinpath, PLACES):
        for file in place.rglob("*") if place.is_dir() else [place]:
            if file.is_file() and file.suffix in KINDS:
                found[str(file.relative_to(ROOT))] = file.read_text().lower()
    return found


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_is_not_used(phrase: str) -> None:
    pattern = re.compile(r"(?<!\w)" + r"[\s#%]+".join(map(re.escape, phrase.split())) + r"(?!\w)")
    first = phrase.split()[0]  # found sooner than the pattern
    texts_with_first = {name: text for name, text in texts().items() if first in text}
    assert [
        f"{name}: {match[0]!r}" for name, text in texts_with_first.items() for match in pattern.finditer(text)
    ] == []


def test_the_files_are_found() -> None:
    """An empty list of files would pass every test above."""
    assert {"README.md", "ckcv_ray/cli/main.py", "jobs/check", "docs/index.md"} <= set(texts())
