"""The file of durations that ``jobs/check`` keeps: every test of every call of pytest, the longest first."""

from pathlib import Path

import pytest
from conftest import Durations


def report(test: str, seconds: float, when: str = "call") -> pytest.TestReport:
    return pytest.TestReport(test, ("", 0, ""), {}, "passed", None, when, duration=seconds)


def test_calls_add_to_one_file_the_longest_test_first(tmp_path: Path) -> None:
    file = tmp_path / "build" / "durations.txt"
    for reports in (
        [report("a.py::short", 0.25), report("a.py::long", 120.0), report("a.py::long", 3.5, "setup")],
        [report("b.py::test[x y]", 7.0)],
    ):
        durations = Durations(file)
        for one in reports:
            durations.pytest_runtest_logreport(one)
        durations.pytest_sessionfinish()
    assert file.read_text().splitlines() == [
        "  123.500 a.py::long",
        "    7.000 b.py::test[x y]",
        "    0.250 a.py::short",
    ]
