"""The command compare: exit codes for a gate, and JSON; an acceptance case holds what it prints."""

from pathlib import Path

import pytest
from command import Command
from conftest import unwrap
from finished import Finished
from tables import write_table


@pytest.fixture
def place(finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a run of trees, one of a constant, and judged rows."""
    monkeypatch.chdir(tmp_path)
    write_table("judged.csv", tmp_path)
    for name in "ab":
        finished("compared", name, to=tmp_path)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("words", "ends", "said"),
    [
        (("a", "b"), 0, "the only use of these rows (SHA-256 "),
        (("b", "a"), 5, "proven worse"),
        (
            ("b", "--predictions", "theirs", "--no-worse", 0.005),
            6,
            "not yet proven: that a new row is misclassified at most 0.5 percentage points more often",
        ),
    ],
)
def test_the_exit_code_is_the_answer(words: tuple[object, ...], ends: int, said: str, ckcv: Command) -> None:
    code, shown, _ = ckcv("compare", *words, "--rows", "judged.csv")
    assert (code, said in unwrap(shown)) == (ends, True), shown
