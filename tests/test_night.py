"""The lists of what is run by night and by day, and the table of what must keep working."""

import re
from pathlib import Path

import pytest
from conftest import COLLECTED, NIGHT, read_names

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "contributing" / "what_must_keep_working.md"
MAX_SLOW_BY_DAY = 60
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`( \(night\))?")


def test_the_list_of_the_night_is_sorted_and_names_tests_that_exist(request: pytest.FixtureRequest) -> None:
    names = read_names("night.txt")
    assert names == sorted(set(names))
    assert [name for name in names if not (ROOT / name.partition("::")[0]).exists()] == []
    if not any("::" in argument for argument in request.config.args):  # else files are not collected whole
        collected = request.config.stash[COLLECTED]
        files = {name.partition("::")[0] for name in collected}
        assert {name for name in names if name.partition("::")[0] in files} <= collected


def test_what_runs_by_day_though_it_is_slow_is_little() -> None:
    by_day = read_names("day.txt")
    assert len(by_day) <= MAX_SLOW_BY_DAY
    assert {*by_day} <= {*read_names("night.txt")}, "these are not slow"


def test_the_table_of_what_must_keep_working_names_files_and_tests_that_exist() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    rows = [row for row in rows if not row.startswith("| what |")]
    assert len(rows) > 50
    for row in rows:
        what, where, tests = row.strip("| ").split(" | ")
        assert all((ROOT / file).exists() for file in re.findall(r"`([^`]+)`", where)), what
        found = TEST.findall(tests)
        assert found or "no test" in tests, what
        for file, function, by_night in found:
            assert function == "" or f"def {function}(" in (ROOT / file).read_text(), f"{file}::{function}"
            assert by_night or f"{file}::{function}" not in NIGHT, f"{what}: this is left to the night"
