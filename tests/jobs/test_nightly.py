"""The nightly benchmark: what raises an alarm on fake measurements, a real night, and how it is scheduled."""

import json
import math
import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from ckcv_ray.errors import InputError
from ckcv_ray.storage.files import open_files
from jobs.nightly import __main__ as command
from jobs.nightly import figures as nightly_figures
from jobs.nightly.figures import PLANS, Figure, Plan, Role
from jobs.nightly.nights import LEAST, WINDOW, allowed

ROOT = Path(__file__).resolve().parents[2]
SCHEDULE = ROOT / "docs" / "nightly"
Run = Callable[..., tuple[int, dict[str, Any]]]
draw_trend = command.draw_trend
MACHINE = {"processor": "A", "cores": 2, "python": "3.11.7", "packages.numpy": "2.4", "blas.numpy": "b 1"}
SPEED_LABEL = "studies, twonorm:60:0, speed"
EXACT = {"winner": [1.0, 0.01, 3], "L_MS": 0.15835779655291074, "evaluations planned": 72}


def figures(speed: float = 100.0, seconds: float = 1.0, **exact: Any) -> list[Figure]:
    """Return the figures of a night."""
    values = EXACT | exact
    return [
        Figure("studies", "twonorm:60:0", "speed", Role.RATIO, speed, json.dumps(speed)),
        Figure("solver", "twonorm:60:0", "speed", Role.RATIO, 80.0, "80.0"),
        Figure("studies", "twonorm:60:0", "seconds", Role.SHOWN, seconds, json.dumps(seconds)),
        *(Figure("studies", "twonorm:60:0", n, Role.EXACT, None, json.dumps(v)) for n, v in values.items()),
    ]


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without plots, which take most of the time of a night of fake measurements."""
    monkeypatch.setattr(command, "draw_trend", lambda line: "")


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a night on fake measurements; return its exit code and output."""
    names = (f"night-{i:02d}" for i in range(100))

    def run(
        found: list[Figure] | None = None,
        *options: str,
        machine: dict[str, Any] = MACHINE,
        again: list[Figure] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        measured: list[tuple[list[str], int]] = []

        def measure(plan: Plan, groups: list[str], repeats: int) -> list[Figure]:
            assert found is not None, "nothing should be measured"
            measured.append((groups, repeats))
            now = found if len(measured) == 1 or again is None else again
            return [figure for figure in now if figure.group in groups]

        monkeypatch.setattr(command, "measure", measure)
        monkeypatch.setattr(command, "machine", lambda: machine)
        arguments = ["--out", str(tmp_path), "--only", "studies,solver", "--commit", "abc", "--json"]
        arguments += options
        if "--night" not in options:
            arguments += ["--night", next(names)]
        done = CliRunner().invoke(command.app, arguments)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        result = json.loads(done.stdout) if done.stdout else {"stderr": done.stderr}
        return done.exit_code, result | ({"measured": measured} if len(measured) > 1 else {})

    return run


def top(out: Path) -> str:
    """Return the page up to its first section."""
    return (out / "nightly.html").read_text().split("<section>")[0]


def test_a_slowdown_raises_the_alarm(night: Run, tmp_path: Path) -> None:
    for before, speed in enumerate((100.0, 104.0, 98.0)):
        code, result = night(figures(speed, seconds=1.0 + before))
        assert (code, result["alarms"], result["figures"][0]["threshold"]) == (0, [], None)
        assert "ALARM" not in top(tmp_path)
        if before:
            assert "no answer changed, 2 speeds with too few nights" in top(tmp_path)
            assert f"too few nights: {before} of 3" in (tmp_path / "nightly.html").read_text()
    assert result["compared"] == ["night-00", "night-01"]
    code, result = night(figures(80.0))
    alarm = f"{SPEED_LABEL}: 25.0% slower, 80 times the baseline; the median of 3 nights is 100, the"
    assert (code, result["alarms"]) == (1, [f"{alarm} threshold 15.0%"])
    assert f"{SPEED_LABEL}: 25.0% slower" in top(tmp_path)
    assert "<title>ALARM" in top(tmp_path)


def test_what_is_suspect_is_measured_again_and_that_counts(night: Run) -> None:
    for _ in range(3):
        night(figures())
    code, result = night(figures(80.0, L_MS=0.2), again=figures(99.0, L_MS=0.3))
    assert result["measured"] == [(["studies", "solver"], 5), (["studies"], 15)]
    (alarm,) = result["alarms"]
    assert "L_MS: 0.2, was" in alarm, "the first answer counts"
    assert (code, result["figures"][0]["value"]) == (1, 99.0)


def test_any_other_bound_raises_the_alarm(night: Run, tmp_path: Path) -> None:
    name, other = "L_MS", 0.15835779655291077
    night(figures())
    code, result = night(figures(**{name: other}))
    assert code == 1
    (alarm,) = result["alarms"]
    assert alarm.startswith(f"studies, twonorm:60:0, {name}: {json.dumps(other)}, was")
    assert alarm in top(tmp_path)
    assert night(figures(**{name: other}))[0] == 0, "a change that was reported is the new answer"


def test_another_kind_of_machine_has_a_separate_history(night: Run) -> None:
    other = {"packages.numpy": "2.5"}
    night(figures())
    code, result = night(figures(50.0, L_MS=0.2), machine=MACHINE | other)
    assert (code, result["compared"]) == (0, [])
    assert "the first night on this kind of machine" in result["notes"][0]
    assert "packages.numpy was" in result["notes"][1]
    assert night(figures())[1]["compared"] == ["night-00"]
    assert night(figures(50.0, L_MS=0.2), machine=MACHINE | other)[1]["compared"] == ["night-01"]


def test_a_benchmark_that_fails_raises_the_alarm_and_affects_no_other(
    night: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(plan: Plan, repeats: int) -> Iterator[Figure]:
        yield figures()[0]
        raise RuntimeError("a path <failed>")

    def well(plan: Plan, repeats: int) -> list[Figure]:
        return [figures()[1]]

    monkeypatch.setattr(nightly_figures, "GROUPS", {"studies": fail, "solver": well})
    found = nightly_figures.measure(PLANS["tiny"], ["studies", "solver"], 1)
    assert [figure.role for figure in found] == [Role.RATIO, Role.FAILED, Role.RATIO]
    night(figures())
    code, result = night(found)
    assert code == 1
    assert result["alarms"] == ["the benchmark studies failed: RuntimeError: a path <failed>"]
    assert "RuntimeError: a path &lt;failed&gt;" in top(tmp_path)
    assert night(figures())[0] == 0


def test_an_existing_night_is_judged_again_and_not_measured(night: Run, tmp_path: Path) -> None:
    for _ in range(3):
        night(figures())
    assert night(figures(50.0), "--night", "b")[0] == 1
    night(figures(), "--night", "c")
    before = {file: file.read_bytes() for file in (tmp_path / "history").iterdir()}
    code, result = night(None, "--night", "b")
    assert (code, len(result["alarms"]), result["compared"]) == (1, 1, ["night-00", "night-01", "night-02"])
    assert "Night b" in top(tmp_path)
    assert night(None, "--night", "b", "--only", "studies")[0] == 1
    assert night(None, "--night", "b", "--only", "solver,overhead") == (
        2,
        {"stderr": "nightly: night 'b' exists without overhead: choose another --night\n"},
    )
    assert {file: file.read_bytes() for file in (tmp_path / "history").iterdir()} == before


def test_the_page_loads_nothing_and_draws_every_number(
    night: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "draw_trend", draw_trend)
    night(figures())
    night(figures(50.0, winner="<script>alert(1)</script>"), "--commit", "<b>")
    page = (tmp_path / "nightly.html").read_text()
    assert not re.findall(r"<script|<link|<img|\bsrc=|@import|url\((?!#)", page)
    assert not re.findall(r"""(?:href|src)=["'](?!#)""", page)
    assert "prefers-color-scheme: dark" in page
    assert "&lt;b&gt;" in page
    drawn = re.findall(r'aria-label="([^"]*)"', page)
    assert len(drawn) == 3
    assert f"{SPEED_LABEL}: 50 in night night-01, median before 100; 2 nights" in drawn


@pytest.mark.parametrize("nights", [LEAST, WINDOW])
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


# A real night, and the schedules


def test_a_real_night_and_the_next(tmp_path: Path) -> None:
    """Through the command line: the second night is compared with the first, and gives the same answers."""
    script = [sys.executable, str(ROOT / "jobs" / "nightly"), "--out", str(tmp_path)]
    options = ["--plan", "tiny", "--only", "studies", "--repeats", "1", "--threshold", "100", "--commit", "x"]
    nights = [
        subprocess.run([*script, *options, "--night", name], capture_output=True, text=True)
        for name in ("first", "second")
    ]
    assert [done.returncode for done in nights] == [0, 0], nights
    assert "there is nothing to compare with" in nights[0].stdout
    assert "median of 1 night (first), answers with night first" in nights[1].stdout
    assert "too few nights: 1 of 3" in nights[1].stdout
    assert "night second: no answer changed, 2 speeds with too few nights" in nights[1].stdout


def options_known(words: list[str]) -> bool:
    """Return whether the job accepts the options that follow its name."""
    (at,) = (i for i, word in enumerate(words) if word.endswith(("jobs/night", "jobs/nightly")))
    given = {word for word in words[at:] if word.startswith("--")}
    shown = CliRunner().invoke(command.app, ["--help"], env={"COLUMNS": "200"}).stdout
    return given <= {*re.findall(r"--[a-z-]+", shown)}


def test_the_crontab_runs_the_job() -> None:
    lines = (SCHEDULE / "crontab").read_text().splitlines()
    (line,) = [line for line in lines if re.match(r"[0-9*]", line)]
    *when, shown = line.split(maxsplit=5)
    assert when == ["30", "2", "*", "*", "*"]
    assert "%" not in shown, "cron takes it for the end of a line"
    assert options_known(shlex.split(shown))


@pytest.mark.parametrize("file", ["crontab", "ckcv-nightly.service"])
def test_the_schedules_run_a_whole_night(file: str) -> None:
    assert "jobs/night --out" in (SCHEDULE / file).read_text()
    night = (ROOT / "jobs" / "night").read_text()
    for job in ("jobs/nightly", "jobs.faults.hostile", "./jobs/check --night", "jobs/floors --newest"):
        assert f"{job} " in night.replace("\n", " ")


def test_the_cron_job_submits_under_the_id_of_the_night(tmp_path: Path) -> None:
    """Its script runs here, with a ``ray`` that only prints its arguments."""
    spec = yaml.safe_load((SCHEDULE / "cronjob.yaml").read_text())["spec"]
    job = spec["jobTemplate"]["spec"]
    (container,) = job["template"]["spec"]["containers"]
    assert (spec["concurrencyPolicy"], job["backoffLimit"]) == ("Forbid", 0)
    fake = tmp_path / "ray"
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    given = {one["name"]: one.get("value", "") for one in container["env"]}
    environment = os.environ | given | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    today = datetime.now(UTC).date()
    words = [*container["command"], *container["args"]]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    words = done.stdout.splitlines()
    assert words[:2] == ["job", "submit"]
    night = words[words.index("--night") + 1]
    assert night in (str(today), str(datetime.now(UTC).date()))
    assert words[words.index("--submission-id") + 1] == f"nightly-{night}"
    assert options_known(words)
    with pytest.raises(InputError, match="a bucket of 3 to 63"):  # until the user names one
        open_files(words[words.index("--out") + 1])
