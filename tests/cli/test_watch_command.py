"""Command watch: exit codes, JSON, and what is refused; an acceptance case holds what it prints."""

import io
import json
import sys
from pathlib import Path

import pytest
from command import Command
from finished import Finished
from tables import write_table


@pytest.fixture
def run(finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run, and beside it rows with somebody's predictions, of which half are wrong."""
    monkeypatch.chdir(tmp_path)
    write_table("judged.csv", tmp_path)
    return finished("watched", to=tmp_path)


NAMES = ("--id", "id", "--prediction", "theirs")


def test_an_alarm_ends_with_5_whenever_it_is_looked_at(ckcv: Command, run: Path) -> None:
    head, *lines = Path("judged.csv").read_text().splitlines()
    for part in (lines[:40], lines[40:]):
        Path("part.csv").write_text("\n".join([head, *part]))
        code, shown, _ = ckcv("watch", run, "part.csv", *NAMES, "--json")
    found = json.loads(shown)
    assert (code, found["alarm"], found["rows"], found["added"]) == (5, True, 200, 160)
    assert found["findings"][0]["state"] == "alarm"
    assert [ckcv(command, run)[0] for command in ("watch", "verify", "status")] == [5, 0, 0]


def test_rows_without_predictions_may_come_from_standard_input(
    ckcv: Command, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = Path("judged.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, shown, messages = ckcv("watch", run, "-", "--id", "id", "--stream", "live.jsonl")
    assert (code, Path("live.jsonl").exists()) == (0, True)
    by = "by the model fitted on the learning rows"
    assert by in shown
    assert f"there is no column 'prediction': predicted here, {by}" in messages


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("judged.csv", "--id", "nobody"), "there is no column 'nobody' with the names of the rows (--id)"),
        (("judged.csv", *NAMES, "--label", "death"), "no column 'death' with the true labels (--label)"),
        (("judged.csv", *NAMES, "--seed", "1"), "seed is for ckcv predict: a stream has no draws"),
        (("--skip-rows", "2"), "separator, sheet, skip_rows and encoding are for a file of rows: name one"),
        (("judged.csv", *NAMES, "--delta", "1.5"), "--delta 1.5 is outside (0, 1)"),
        (("judged.csv", *NAMES, "--member", "2"), "is certified, so there is nothing to watch"),
        (("judged.csv", *NAMES, "--stream", "r/log/s.jsonl"), "--stream 'r/log/s.jsonl' is in a run"),
        (("nowhere.csv", *NAMES), "nowhere.csv"),
    ],
)
def test_options_that_cannot_be_met_are_refused_in_a_sentence(
    arguments: tuple[str, ...], words: str, ckcv: Command, run: Path
) -> None:
    code, shown, messages = ckcv("watch", run, *arguments)
    assert (code, shown) == (2, "")
    assert words in " ".join(messages.split()), messages
