"""The benchmark of every night: what raises its alarm and what does not, and how it is scheduled."""

import configparser
import errno
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
import pyarrow.compute as pc
import pytest
import typer
import yaml
from filelock import FileLock
from pyarrow import parquet
from typer.testing import CliRunner

from ckcv_ray.errors import InputError
from jobs.nightly import __main__ as command
from jobs.nightly import figures as nightly_figures
from jobs.nightly import night as one_night
from jobs.nightly import trial as nightly_trial
from jobs.nightly.figures import PLANS, Figure, Plan, Role
from jobs.nightly.history import COLUMNS, Night
from jobs.nightly.verdict import FLOOR, LEAST, WINDOW, Verdict, allowed, judge

ROOT = Path(__file__).resolve().parents[2]
SCHEDULE = ROOT / "docs" / "nightly"
MACHINE = {"processor": "A", "cores": 2, "python": "3.11.7", "packages": {"numpy": "2.4"}, "blas": ["b 1"]}
SPEED = ("studies", "twonorm:60:0", "speed")
SPEED_LABEL = "studies, twonorm:60:0, speed"
EXACT = {"winner": [1.0, 0.01, 3], "L_MS": 0.15835779655291074, "cells planned": 72}
Run = Callable[..., tuple[int, dict[str, Any]]]


def figures(speed: float = 100.0, seconds: float = 1.0, **exact: Any) -> list[Figure]:
    """What a night finds."""
    values = EXACT | exact
    return [
        Figure(*SPEED, Role.RATIO, speed, json.dumps(speed)),
        Figure("solver", "twonorm:60:0", "speed", Role.RATIO, 80.0, "80.0"),
        Figure("studies", "twonorm:60:0", "seconds", Role.SHOWN, seconds, json.dumps(seconds)),
        *(Figure("studies", "twonorm:60:0", n, Role.EXACT, None, json.dumps(v)) for n, v in values.items()),
    ]


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a night on faked measurements; its exit code and what it said."""
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

        monkeypatch.setattr(one_night, "measure", measure)
        monkeypatch.setattr(one_night, "machine", lambda: machine)
        words = ["--out", str(tmp_path), "--only", "studies,solver", "--commit", "abc", "--json", *options]
        if "--night" not in options:
            words += ["--night", next(names)]
        done = CliRunner().invoke(command.app, words)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        told = json.loads(done.stdout) if done.stdout else {"said": done.stderr}
        return done.exit_code, told | ({"measured": measured} if len(measured) > 1 else {})

    return run


def top(out: Path) -> str:
    """The page as far as its first section."""
    return (out / "nightly.html").read_text().split("<section>")[0]


def test_a_quiet_night(night: Run, tmp_path: Path) -> None:
    for speed in (100.0, 98.0, 103.0):
        code, told = night(figures(speed))
        assert (code, told["alarms"]) == (0, [])
    assert told["compared"] == ["night-00", "night-01"]
    assert "Quiet" in top(tmp_path)
    assert "ALARM" not in top(tmp_path)


def test_a_slowdown_raises_the_alarm(night: Run, tmp_path: Path) -> None:
    for speed in (100.0, 104.0, 98.0):
        night(figures(speed))
    code, told = night(figures(80.0))
    assert code == 1
    assert told["alarms"] == [
        f"{SPEED_LABEL}: 25.0% slower, 80 times the rival; the median of 3 nights is 100, and more than "
        "15.0% is an alarm",
    ]
    assert f"{SPEED_LABEL}: 25.0% slower" in top(tmp_path)
    assert "<title>ALARM" in top(tmp_path)


def test_a_speed_is_judged_after_three_nights(night: Run, tmp_path: Path) -> None:
    for before in range(3):
        code, told = night(figures(100.0 if before < 2 else 50.0))
        assert (code, told["alarms"]) == (0, []), "too few nights to say so"
        assert told["figures"][0]["threshold"] is None
        if before:
            assert "no answer changed, 2 speeds not judged yet" in top(tmp_path)
            assert f"not judged yet: {before} of 3 nights" in (tmp_path / "nightly.html").read_text()
    assert night(figures(50.0))[0] == 1


def test_what_is_suspect_is_measured_again_and_that_counts(night: Run, tmp_path: Path) -> None:
    for _ in range(3):
        night(figures())
    code, told = night(figures(80.0, L_MS=0.2), again=figures(99.0, L_MS=0.3))
    assert told["measured"] == [(["studies", "solver"], 5), (["studies"], 15)]
    (alarm,) = told["alarms"]
    assert "L_MS: 0.2, it was" in alarm, "an answer is judged as it was found"
    note = f"{SPEED_LABEL}: 80 times the rival was suspect; measured again for longer, 99 counts"
    assert (code, told["notes"]) == (1, [note])
    assert f"S{note[1:]}." in top(tmp_path)
    code, told = night(figures(L_MS=0.2))
    assert (code, told["alarms"]) == (0, []), "what was measured at first is not missed"
    assert (
        parquet.read_table(tmp_path / "history")
        .filter(pc.field("name") == "speed, at first")
        .to_pylist()[0]["role"]
        == "first"
    )


def test_a_suspect_that_cannot_be_measured_again_stays_one(night: Run) -> None:
    for _ in range(3):
        night(figures())
    failed = [Figure("studies", "", "traceback", Role.FAILED, None, '"RuntimeError: a path"')]
    code, told = night(figures(80.0), again=failed)
    assert (code, len(told["alarms"])) == (1, 2)


@pytest.mark.parametrize("nights", range(LEAST, WINDOW + 1))
def test_a_quiet_figure_is_quiet_and_a_fifth_is_found(nights: int) -> None:
    """As ``allowed`` says of a spread of 2 %: rates of 20 000 made-up histories, to four standard errors."""
    rng, tries = np.random.default_rng(nights), 20_000
    ratios = 100 * np.exp(0.02 * rng.standard_normal((tries, nights + 2)))
    limits = np.array([allowed(list(row[:nights]), 0.15) for row in ratios])
    slower = np.median(ratios[:, :nights], axis=1)[:, None] / ratios[:, nights:] - 1
    alarms = (slower > limits[:, None]).all(axis=1).mean()
    found = ((1 + slower) * 1.2 - 1 > limits[:, None]).all(axis=1).mean()
    assert alarms < 0.001 + 4 * math.sqrt(0.001 / tries)
    assert found > 0.95 - 4 * math.sqrt(0.05 / tries)


def test_a_threshold_follows_the_spread_and_is_never_above_the_one_asked_for() -> None:
    steady, restless = [100.0] * 10, [90.0, 110.0] * 5
    assert allowed(steady, 0.15) == FLOOR
    assert allowed(steady, 0.04) == 0.04
    assert allowed(restless, 0.15) == 0.15
    assert FLOOR < allowed([99.0, 101.0] * 5, 0.15) < allowed([98.5, 101.5] * 5, 0.15) < 0.15
    assert allowed([99.0, 100.0, 101.0], 1.0) > allowed([99.0, 100.0, 101.0] * 3, 1.0), (
        "fewer nights say less"
    )


@pytest.mark.parametrize("name", EXACT)
def test_any_other_winner_bound_or_count_raises_the_alarm(name: str, night: Run, tmp_path: Path) -> None:
    other = {"winner": [1.0, 0.01, 4], "L_MS": 0.15835779655291077, "cells planned": 71}[name]
    night(figures())
    code, told = night(figures(**{name: other}))
    assert code == 1
    (alarm,) = told["alarms"]
    assert alarm.startswith(f"studies, twonorm:60:0, {name}: {json.dumps(other)}, it was")
    assert alarm in top(tmp_path)
    assert night(figures(**{name: other}))[0] == 0, "what was told once is the new answer"


@pytest.mark.parametrize(
    ("speed", "threshold", "code"),
    [(87.1, "0.15", 0), (86.8, "0.15", 1), (95.0, "0.04", 1), (60.0, "1", 0), (150.0, "0.15", 0)],
)
def test_noise_below_the_threshold_raises_none(speed: float, threshold: str, code: int, night: Run) -> None:
    for before in (100.0, 90.0, 110.0):
        night(figures(before))
    assert night(figures(speed), "--threshold", threshold)[0] == code


def test_a_night_that_is_slow_as_a_whole_raises_none(night: Run) -> None:
    for _ in range(3):
        night(figures(seconds=1.0))
    assert night(figures(seconds=5.0))[0] == 0


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
    assert len(verdict.lines[0].values) == 13, "the trend shows them all"
    assert judge(nights, "04", 0.15).lines[0].median == 10.0, "a night is held against those before it"


def test_few_nights_are_told(night: Run, tmp_path: Path) -> None:
    code, told = night(figures())
    assert (code, told["compared"]) == (0, [])
    assert "Compared with nothing." in top(tmp_path)
    assert "measured, with nothing to compare it with" in top(tmp_path)
    night(figures())
    assert "median of 1 night (night-00), answers with night night-00" in top(tmp_path)


@pytest.mark.parametrize(
    "other",
    [
        {"processor": "B"},
        {"cores": 64},
        {"python": "3.12.1"},
        {"packages": {"numpy": "2.5"}},
    ],
    ids=str,
)
def test_another_kind_of_machine_has_a_history_of_its_own(other: dict[str, Any], night: Run) -> None:
    night(figures())
    code, told = night(figures(50.0, L_MS=0.2), machine=MACHINE | other)
    assert (code, told["compared"]) == (0, [])
    assert "the first night on this kind of machine" in told["notes"][0]
    name = next(iter(other)).replace("packages", "numpy")
    assert f"{name} was" in told["notes"][1]
    assert night(figures())[1]["compared"] == ["night-00"]
    assert night(figures(50.0, L_MS=0.2), machine=MACHINE | other)[1]["compared"] == ["night-01"]


def test_what_is_no_longer_measured_raises_the_alarm(night: Run) -> None:
    night(figures())
    code, told = night([figure for figure in figures() if figure.name != "L_MS"])
    assert code == 1
    assert told["alarms"] == ["studies, twonorm:60:0, L_MS: not measured, as it was in night night-00"]
    assert night(figures(), "--only", "solver")[0] == 0, "what is not asked for is not missed"
    assert night(figures(), "--only", "studies")[1]["compared"] == ["night-00", "night-01", "night-02"]


def test_a_benchmark_that_fails_raises_the_alarm_and_sinks_no_other(
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
    code, told = night(found)
    assert code == 1
    assert told["alarms"] == ["the benchmark studies did not come to its end: RuntimeError: a path <failed>"]
    assert "RuntimeError: a path &lt;failed&gt;" in top(tmp_path)
    assert night(figures())[0] == 0


def test_a_night_that_is_there_is_judged_again_and_not_measured(night: Run, tmp_path: Path) -> None:
    for _ in range(3):
        night(figures())
    assert night(figures(50.0), "--night", "b")[0] == 1
    night(figures(), "--night", "c")
    before = {file: file.read_bytes() for file in (tmp_path / "history").iterdir()}
    code, told = night(None, "--night", "b")
    assert (code, len(told["alarms"]), told["compared"]) == (1, 1, ["night-00", "night-01", "night-02"])
    assert "Night b" in top(tmp_path)
    assert night(None, "--night", "b", "--only", "studies")[0] == 1
    assert night(None, "--night", "b", "--only", "solver,overhead") == (
        2,
        {"said": "nightly: night 'b' is there, without overhead: give another --night\n"},
    )
    assert {file: file.read_bytes() for file in (tmp_path / "history").iterdir()} == before


def test_two_nights_at_once_do_not_both_write(night: Run, tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    with FileLock(tmp_path / "history" / ".lock"):
        code, told = night(None)
    assert code == 4
    assert "in use by another night" in told["said"]
    (tmp_path / "history" / ".part-x.parquet-abc.tmp").write_text("half")
    assert night(figures())[0] == 0
    assert [file.name for file in (tmp_path / "history").iterdir()] == ["part-night-01.parquet"]


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[60] ^= 1
    file.write_bytes(content)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-20]),
    "flipped": flip,
    "empty": lambda file: file.write_bytes(b""),
    "copied": lambda file: file.with_name("part-copy.parquet").write_bytes(file.read_bytes()),
    "strange": lambda file: (file.parent / "notes.txt").write_text("mine"),
    "another table": lambda file: parquet.write_table(COLUMNS.empty_table(), file),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_part_is_named(how: str, night: Run, tmp_path: Path) -> None:
    night(figures())
    night(figures())
    DAMAGE[how](tmp_path / "history" / "part-night-00.parquet")
    code, told = night(None)
    assert code == 4
    bad = {"copied": "part-copy.parquet", "strange": "notes.txt"}.get(how, "part-night-00.parquet")
    assert bad in told["said"]


def test_the_history_is_a_table_of_figures(night: Run, tmp_path: Path) -> None:
    before = datetime.now(UTC)
    night(figures())
    night(figures(90.0))
    table = parquet.read_table(tmp_path / "history")
    assert table.schema.equals(COLUMNS)
    rows = table.filter(table["name"].to_numpy() == "L_MS").to_pylist()
    assert [(row["night"], row["commit"], row["text"]) for row in rows] == [
        (f"night-0{i}", "abc", "0.15835779655291074") for i in (0, 1)
    ]
    assert json.loads(rows[0]["machine"]) == MACHINE
    assert before <= rows[0]["began"] <= rows[1]["began"] <= datetime.now(UTC)


def test_the_page_loads_nothing_and_draws_every_number(night: Run, tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--night", "../x"), "night='../x'"),
        (("--night", ""), "night=''"),
        (("--only", "studies,nothing"), "only='nothing'"),
        (("--plan", "nothing"), "plan='nothing'"),
        (("--out", "/dev/null/x"), "cannot write"),
    ],
    ids=str,
)
def test_bad_input_is_refused(options: tuple[str, ...], said: str, night: Run) -> None:
    code, told = night(None, *options)
    assert code == 2
    assert said in told["said"]


def test_a_history_keeps_to_its_plan(night: Run) -> None:
    night(figures(), "--plan", "tiny")
    assert night(figures())[1]["plan"] == "tiny"
    code, told = night(None, "--plan", "generators")
    assert (code, "this history is one of the plan 'tiny'" in told["said"]) == (2, True)


def test_a_missing_archive_is_told_before_anything_is_measured(
    night: Run, cache: Path, tmp_path: Path
) -> None:
    code, told = night(None, "--plan", "ida")
    assert (code, "CKCV_IDA" in told["said"]) == (2, True)
    assert not list((tmp_path / "history").iterdir())


def test_in_a_job_a_relative_folder_is_refused(night: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    code, told = night(None, "--out", "runs/nightly")
    assert (code, "give an absolute path" in told["said"]) == (2, True)


def test_a_full_disk_is_no_alarm(night: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(final: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(final))

    monkeypatch.setattr(one_night, "write_whole", full)
    code, told = night(figures())
    assert (code, "nightly.html: No space left" in told["said"]) == (2, True)
    monkeypatch.undo()
    assert night(None, "--night", "night-00")[0] == 0, "the night is there, and its page can be made"


def test_without_git_the_commit_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?", command.commit_here())
    monkeypatch.setattr(command, "ROOT", tmp_path)
    with pytest.raises(InputError, match="--commit"):
        command.commit_here()


@pytest.mark.parametrize("group", ["studies", "solver"])
def test_the_benches_give_the_same_answers_again(group: str) -> None:
    found, again = (nightly_figures.measure(PLANS["tiny"], [group], 1) for _ in range(2))
    assert {figure.role for figure in found} == {Role.RATIO, Role.EXACT, Role.SHOWN}
    assert all(one.value and one.value > 0 for one in found if one.role == Role.RATIO)
    assert [one for one in found if one.role == Role.EXACT] == [
        one for one in again if one.role == Role.EXACT
    ]


def test_whole_runs_on_ray_give_figures(ray_session: None) -> None:
    found = {figure.name: figure for figure in nightly_figures.measure(PLANS["tiny"], ["overhead"], 1)}
    assert (found["speed"].role, found["winner"].role) == (Role.RATIO, Role.EXACT)


def test_a_real_night_and_the_next(tmp_path: Path) -> None:
    """Through the command line: the second night is held against the first, and answers as it did."""
    script = [sys.executable, str(ROOT / "jobs" / "nightly"), "--out", str(tmp_path)]
    options = ["--plan", "tiny", "--only", "studies", "--repeats", "1", "--threshold", "100", "--commit", "x"]
    nights = [
        subprocess.run([*script, *options, "--night", name], capture_output=True, text=True)
        for name in ("first", "second")
    ]
    assert [done.returncode for done in nights] == [0, 0], nights
    assert "there is nothing to compare it with" in nights[0].stdout
    assert "median of 1 night (first), answers with night first" in nights[1].stdout
    assert "not judged yet: 1 of 3 nights" in nights[1].stdout
    assert "night second: no answer changed, 2 speeds not judged yet" in nights[1].stdout


@pytest.mark.parametrize(("false", "missed", "code"), [(0, 1, 0), (1, 0, 1), (0, 2, 1)])
def test_the_trial_counts_alarms(false: int, missed: int, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On faked nights: no alarm among the quiet ones and nine of ten slow ones found, or it is not passed."""
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

    monkeypatch.setattr(nightly_trial, "apart", one)
    with pytest.raises(typer.Exit) as ended:
        nightly_trial.main(6, 10)
    assert ended.value.exit_code == code


def test_the_planted_slowdown_is_a_quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 4.0, 4.5, 5.0])
    monkeypatch.setattr(nightly_trial, "process_time", lambda: next(clock))
    monkeypatch.setitem(nightly_trial.SOLVERS, "newton", lambda *args: args)
    nightly_trial.plant(nightly_trial.SLOWER)
    assert nightly_trial.SOLVERS["newton"](1, 2) == (1, 2)  # type: ignore[call-arg, arg-type]
    assert list(clock) == [], "four seconds of work, and one of waiting"


def options_known(words: list[str]) -> bool:
    """Whether the job takes the options that follow its name."""
    at = words.index("jobs/nightly")
    given = {word for word in words[at:] if word.startswith("--")}
    return (ROOT / words[at] / "__main__.py").is_file() and given <= set(
        re.findall(r"--[a-z-]+", help_text())
    )


def help_text() -> str:
    return CliRunner().invoke(command.app, ["--help"], env={"COLUMNS": "200"}).stdout


def test_the_crontab_runs_the_job() -> None:
    lines = (SCHEDULE / "crontab").read_text().splitlines()
    (line,) = [line for line in lines if re.match(r"[0-9*]", line)]
    *when, command = line.split(maxsplit=5)
    assert when == ["30", "2", "*", "*", "*"]
    assert "%" not in command, "cron takes it for the end of a line"
    assert options_known(shlex.split(command))


def unit(name: str) -> configparser.ConfigParser:
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment, method-assign]
    parsed.read(SCHEDULE / name)
    return parsed


def test_the_systemd_units_run_the_job() -> None:
    service, timer = unit("ckcv-nightly.service"), unit("ckcv-nightly.timer")
    assert service["Service"]["Type"] == "oneshot"
    words = shlex.split(service["Service"]["ExecStart"])
    assert words[0].startswith(service["Service"]["WorkingDirectory"])
    assert options_known(words)
    assert f"/var/lib/{service['Service']['StateDirectory']}" in words
    assert timer["Timer"]["OnCalendar"] == "*-*-* 02:30:00 UTC"
    assert timer["Install"]["WantedBy"] == "timers.target"


def test_the_cron_job_submits_under_the_id_of_the_night(tmp_path: Path) -> None:
    """Its script runs here, with a ``ray`` that only says what it is told."""
    spec = yaml.safe_load((SCHEDULE / "cronjob.yaml").read_text())["spec"]
    job = spec["jobTemplate"]["spec"]
    (container,) = job["template"]["spec"]["containers"]
    assert (spec["concurrencyPolicy"], job["backoffLimit"]) == ("Forbid", 0)
    fake = tmp_path / "ray"
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "COMMIT": "abc"}
    today = datetime.now(UTC).date()
    command = [*container["command"], *container["args"]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    words = done.stdout.splitlines()
    assert words[:2] == ["job", "submit"]
    night = words[words.index("--night") + 1]
    assert night in (str(today), str(datetime.now(UTC).date()))
    assert words[words.index("--submission-id") + 1] == f"nightly-{night}"
    assert options_known(words)
    assert Path(words[words.index("--out") + 1]).is_absolute()
