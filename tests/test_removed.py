"""Commands and options that were removed are answered with what to write instead."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran

from ckcv_ray.errors import REMOVED


@pytest.mark.parametrize("name", REMOVED)
def test_what_was_removed_says_what_to_write_instead(name: str, ckcv: Callable[..., Ran]) -> None:
    code, _, said = ckcv(*(name.split()[1:] if name.startswith("ckcv ") else ["run", "t.csv", name]))
    assert code == 2
    assert REMOVED[name] in " ".join(said.split())


def test_the_changelog_tells_the_same() -> None:
    changes = (Path(__file__).parents[1] / "CHANGELOG.md").read_text().partition("### Removed\n")[2]
    told = [line for line in changes.splitlines() if line.startswith(("* `--", "* `ckcv "))]
    assert told == [f"* `{name}`: {instead}." for name, instead in REMOVED.items()]
