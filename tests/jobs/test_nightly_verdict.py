"""When a speed is an alarm, in simulated histories; and the trial of the alarm."""

import math
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import typer
from nights import MACHINE, figures

from jobs.nightly import figures as nightly_figures
from jobs.nightly import trial as nightly_trial
from jobs.nightly.history import Night
from jobs.nightly.verdict import FLOOR, LEAST, WINDOW, Verdict, allowed, judge


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


@pytest.mark.parametrize(("false", "missed", "code"), [(0, 1, 0), (1, 0, 1), (0, 2, 1)])
def test_the_trial_counts_alarms(false: int, missed: int, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On fake nights: passed with no alarm among the quiet ones and nine of ten slow ones detected."""
    speeds = {f"quiet-{i:02d}": 50.0 if i == 4 and false else 100.0 for i in range(1, 7)}
    speeds |= {f"slower-{i:02d}": 100.0 if i <= missed else 80.0 for i in range(1, 11)}
    nights: list[Night] = []

    def one(out: Path, name: str, share: float) -> Verdict:
        assert bool(share) == name.startswith("slower")
        when = datetime(2026, 8, 1, tzinfo=UTC)
        night = Night(name, when, "abc", "1", "tiny", MACHINE, tuple(figures(speeds[name])))
        if not share:
            nights.append(night)
        return judge([*nights, night] if share else nights, name, 0.15)

    monkeypatch.setattr(nightly_trial, "night_in_process", one)
    with pytest.raises(typer.Exit) as ended:
        nightly_trial.main(6, 10)
    assert ended.value.exit_code == code


def test_the_planted_slowdown_is_a_quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 4.0, 4.5, 5.0])
    monkeypatch.setattr(nightly_trial, "process_time", lambda: next(clock))
    monkeypatch.setattr(nightly_trial.paths, "path", lambda *args: args)
    nightly_trial.plant(nightly_trial.SLOWER)
    assert nightly_trial.paths.path(1, 2) == (1, 2)  # type: ignore[call-arg, arg-type]
    assert list(clock) == [], "four seconds of work, and one of waiting"


@pytest.mark.parametrize(
    ("called", "alarms"),
    [
        ({}, ("studies, old, speed: not measured, but was in night 1",)),
        ({("studies", "old"): "new"}, ()),
        ({("studies", "old"): None}, ()),
    ],
)
def test_what_is_renamed_or_closed_is_no_alarm(
    called: dict[tuple[str, str], str | None], alarms: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nightly_figures, "CASES", called)
    nights = [
        Night(name, datetime(2026, 8, int(name), tzinfo=UTC), "abc", "1", "tiny", MACHINE, (speed,))
        for name, case in (("1", "old"), ("2", "new"))
        for speed in [figures(100.0)[0]._replace(group="studies", case=case, name="speed")]
    ]
    verdict = judge(nights, "2", 0.15)
    assert verdict.alarms == alarms
    assert verdict.lines[0].before == list(called.values()).count("new")
