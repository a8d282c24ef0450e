"""The command compare: exit codes for a gate, and JSON; an acceptance case holds what it prints."""

import json
from pathlib import Path

import numpy as np
import pytest
from command import Command
from conftest import unwrap
from finished import Finished
from pyarrow import csv
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


@pytest.mark.usefixtures("place")
def test_the_result_is_one_json_object(ckcv: Command) -> None:
    rows = csv.read_csv("judged.csv")
    csv.write_csv(rows.append_column("patient", [np.arange(len(rows)) // 2]), "judged.csv")
    words = ("--rows", "judged.csv", "--group", "patient", "--json", "--uses", 2)
    code, shown, _ = ckcv("compare", "a", "b", *words)
    content = json.loads(shown)
    assert (code, content["answer"], content["groups"]) == (0, "better", len(rows) // 2)
    assert content["use"]["shares"] == 2
