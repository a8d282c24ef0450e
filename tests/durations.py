"""Seconds that each test takes, in one file: ``jobs/check`` keeps it, ``jobs/night_tests.py`` reads it.

By day a test may take ``MOST`` seconds, and a folder or file what ``limits.toml`` says, or the check fails.
Seconds are processor time, scaled to a machine that counts as fast as the one where limits were set.
"""

import os
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pytest

LIMITS = Path(__file__).with_name("limits.toml")
MOST = 3.0  # seconds of a test by day
COUNT, REFERENCE = 3_000_000, 0.06  # numbers that are added up, and the seconds that it took


def measure_slowness() -> float:
    """Return how many times as long a loop takes here as where the limits were set; 1 if it is faster."""
    taken = list[float]()
    for _ in range(3):
        began = process_time()
        sum(range(COUNT))
        taken.append(process_time() - began)
    return max(1.0, min(taken) / REFERENCE)


def read_clocks() -> np.ndarray:
    """Return the processor time of this process and of those it has waited for, and the elapsed time."""
    return np.array([sum(os.times()[:4]), perf_counter()])


class Clock:
    """Adds each test's own seconds to its report: those of shared fixtures count for none.

    They are processor time; while Ray runs, whose workers are not seen, elapsed time.
    """

    def __init__(self) -> None:
        self.began, self.slowness = read_clocks(), measure_slowness()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[Any]:
        self.began = read_clocks()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[Any]:
        began = read_clocks()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self.began += read_clocks() - began

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[Any]:
        report = yield
        if call.when == "call":
            processor, passed = read_clocks() - self.began
            ray = sys.modules.get("ray")
            seconds = passed if ray and ray.is_initialized() else processor
            report.own_seconds = float(seconds) / self.slowness  # xdist sends no numpy
        return report


class Durations:
    """Adds the seconds of each test to a file, the longest first; another call of pytest adds its own.

    A line has the processor time of the test itself, the elapsed time with its fixtures, and its name.
    """

    def __init__(self, file: Path, by_day: bool) -> None:
        self.file, self.by_day = file, by_day
        self.seconds: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self.beyond = list[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        own, passed = self.seconds[report.nodeid]
        self.seconds[report.nodeid] = [own + getattr(report, "own_seconds", 0.0), passed + report.duration]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        earlier = self.file.read_text().splitlines() if self.file.exists() else []
        lines = earlier + [f"{own:9.3f} {passed:9.3f} {test}" for test, (own, passed) in self.seconds.items()]
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text("".join(f"{line}\n" for line in sorted(lines, reverse=True)))
        if self.by_day:
            self.beyond = find_beyond({test: own for test, (own, _) in self.seconds.items()})
            session.exitstatus = session.exitstatus or int(bool(self.beyond))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self.beyond:
            terminalreporter.write_line(f"TOO LONG {line}")


def find_beyond(seconds: dict[str, float]) -> list[str]:
    """Return what takes longer than it may, in words: tests, given their seconds by name, and folders."""
    limits, folders = tomllib.loads(LIMITS.read_text()), defaultdict[str, float](float)
    beyond = list[str]()
    for test, own in seconds.items():
        file = test.partition("::")[0]
        folders[str(Path(file).parent)] += own
        if own > (most := limits["tests"].get(file, MOST)):
            beyond.append(f"{test}: {own:.1f} s of {most:g}")
    found = ((folder, folders[folder], most) for folder, most in limits["folders"].items())
    return beyond + [f"{folder}: {own:.0f} s of {most:g}" for folder, own, most in found if own > most]
