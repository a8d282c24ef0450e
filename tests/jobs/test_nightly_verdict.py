"""When a speed is an alarm, in simulated histories."""

import math
from datetime import UTC, datetime

import numpy as np
import pytest
from nights import MACHINE, figures

from jobs.nightly.history import Night
from jobs.nightly.verdict import FLOOR, LEAST, WINDOW, allowed, judge


@pytest.mark.parametrize("nights", range(LEAST, WINDOW + 1))
def test_an_unchanged_figure_is_quiet_and_a_fifth_is_detected(nights: int) -> None:
    """As ``allowed`` says of a spread of 2 %: rates of 20 000 simulated histories, to 4 standard errors."""
    rng, tries = np.random.default_rng(nights), 20_000
    ratios = 100 * np.exp(0.02 * rng.standard_normal((tries, nights + 2)))
    limits = np.array([allowed(list(row[:nights]), 0.15) for row in ratios])
    slower = np.median(ratios[:, :nights], axis=1)[:, None] / ratios[:, nights:] - 1
    alarms = (slower > limits[:, None]).all(axis=1).mean()
    found = ((1 + slower) * 1.2 - 1 > limits[:, None]).all(axis=1).mean()
    assert alarms < 0.001 + 4 * math.sqrt(0.001 / tries)
    assert found > 0.95 - 4 * math.sqrt(0.05 / tries)


def test_a_threshold_follows_the_spread_and_never_exceeds_the_one_requested() -> None:
    steady, restless = [100.0] * 10, [90.0, 110.0] * 5
    assert allowed(steady, 0.15) == FLOOR
    assert allowed(steady, 0.04) == 0.04
    assert allowed(restless, 0.15) == 0.15
    assert FLOOR < allowed([99.0, 101.0] * 5, 0.15) < allowed([98.5, 101.5] * 5, 0.15) < 0.15
    assert allowed([99.0, 100.0, 101.0], 1.0) > allowed([99.0, 100.0, 101.0] * 3, 1.0), (
        "fewer nights are less certain"
    )


def test_the_median_is_that_of_ten_nights() -> None:
    speeds = (10.0, 10.0, *range(96, 105), 500.0, 100.5)
    began = [datetime(2026, 8, 1 + i, tzinfo=UTC) for i in range(len(speeds))]
    nights = [
        Night(f"{when:%d}", when, "abc", "1", "tiny", MACHINE, tuple(figures(speed)))
        for when, speed in zip(began, speeds, strict=True)
    ]
    verdict = judge(nights, "13", 0.15)
    assert verdict.compared == tuple(f"{day:02d}" for day in range(3, 13))
    assert (verdict.lines[0].median, verdict.lines[0].before, verdict.alarms) == (100.5, 10, ())
    assert len(verdict.lines[0].values) == 13, "the trend shows all of them"
    assert judge(nights, "04", 0.15).lines[0].median == 10.0, "a night is compared with those before it"
