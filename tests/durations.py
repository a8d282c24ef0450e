"""Seconds that each test takes, in one file: ``jobs/check`` keeps it, ``jobs/night_tests.py`` reads it."""

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest


def read_clocks() -> np.ndarray:
    """Return the processor time of this process and of those it has waited for, and the time that passed."""
    return np.array([sum(os.times()[:4]), perf_counter()])


class Clock:
    """Adds the seconds of its own to each report: those of fixtures that tests share are nobody's.

    They are of the processor; while Ray runs, whose workers are not seen, those that passed.
    """

    def __init__(self) -> None:
        self.began = read_clocks()

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
            report.own_seconds = float(
                passed if ray and ray.is_initialized() else processor
            )  # xdist sends no numpy
        return report


class Durations:
    """Adds the seconds of each test to a file, the longest first; another call of pytest adds its own.

    A line has the processor time of the test itself, the time that passed with its fixtures, and its name.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.seconds: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        own, passed = self.seconds[report.nodeid]
        self.seconds[report.nodeid] = [own + getattr(report, "own_seconds", 0.0), passed + report.duration]

    def pytest_sessionfinish(self) -> None:
        earlier = self.file.read_text().splitlines() if self.file.exists() else []
        lines = earlier + [f"{own:9.3f} {passed:9.3f} {test}" for test, (own, passed) in self.seconds.items()]
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text("".join(f"{line}\n" for line in sorted(lines, reverse=True)))
