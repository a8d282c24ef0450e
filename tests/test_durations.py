"""The file of durations that ``jobs/check`` keeps: every test of every call of pytest, the longest first."""

from pathlib import Path

import numpy as np
import pytest
from durations import Clock, Durations, read_clocks

from jobs import night_tests
from jobs.night_tests import read_durations


def report(test: str, passed: float, own: float | None = None) -> pytest.TestReport:
    extra = {} if own is None else {"own_seconds": own}
    return pytest.TestReport(test, ("", 0, ""), {}, "passed", None, "call", duration=passed, **extra)


def test_calls_add_to_one_file_the_longest_test_first(tmp_path: Path) -> None:
    file = tmp_path / "build" / "durations.txt"
    for reports in (
        [report("a.py::short", 0.25, 0.25), report("a.py::long", 120.0, 99.5), report("a.py::long", 3.5)],
        [report("b.py::test[x y]", 7.0, 0.5)],
    ):
        durations = Durations(file)
        for one in reports:
            durations.pytest_runtest_logreport(one)
        durations.pytest_sessionfinish()
    assert file.read_text().splitlines() == [
        "   99.500   123.500 a.py::long",
        "    0.500     7.000 b.py::test[x y]",
        "    0.250     0.250 a.py::short",
    ]
    assert read_durations(file) == {"a.py::long": 99.5, "b.py::test[x y]": 0.5, "a.py::short": 0.25}


@pytest.fixture(scope="module")
def shared() -> int:
    return sum(range(3_000_000))


def test_what_tests_share_is_in_the_time_of_none(shared: int, request: pytest.FixtureRequest) -> None:
    clock = Clock()
    clock.began, began = read_clocks(), read_clocks()
    work = clock.pytest_fixture_setup(request._get_active_fixturedef("shared"))
    next(work)
    sum(range(1_000_000))
    with pytest.raises(StopIteration):
        next(work)
    assert np.all(clock.began - began > 0)


def test_the_list_of_the_night_is_made_from_durations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    durations = tmp_path / "durations.txt"
    durations.write_text(
        "    9.000     9.000 b.py::test_long\n"
        "    9.000     9.000 tests/test_documentation.py::test_a_block_runs[a]\n"
        "    1.900     8.000 b.py::test_mended\n"
    )
    (tmp_path / "night.txt").write_text("a.py::test_of_another_check\nb.py::test_mended\n")
    monkeypatch.setattr(night_tests, "TESTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["night_tests.py", str(durations)])
    night_tests.main()
    assert (tmp_path / "night.txt").read_text() == "a.py::test_of_another_check\nb.py::test_long\n"
    assert "2 tests" in capsys.readouterr().out
