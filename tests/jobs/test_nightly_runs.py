"""The benchmark of every night as it runs, and how it is scheduled."""

import os
import re
import shlex
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from ckcv_ray.errors import InputError
from ckcv_ray.storage.files import open_files
from jobs.nightly import __main__ as command
from jobs.nightly import figures as nightly_figures
from jobs.nightly.figures import PLANS, Role

ROOT = Path(__file__).resolve().parents[2]
SCHEDULE = ROOT / "docs" / "nightly"


def test_complete_runs_on_ray_give_figures(ray_session: None) -> None:
    found = {figure.name: figure for figure in nightly_figures.measure(PLANS["tiny"], ["overhead"], 1)}
    assert (found["speed"].role, found["winner"].role) == (Role.RATIO, Role.EXACT)


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
    *when, command = line.split(maxsplit=5)
    assert when == ["30", "2", "*", "*", "*"]
    assert "%" not in command, "cron takes it for the end of a line"
    assert options_known(shlex.split(command))


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
    command = [*container["command"], *container["args"]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    words = done.stdout.splitlines()
    assert words[:2] == ["job", "submit"]
    night = words[words.index("--night") + 1]
    assert night in (str(today), str(datetime.now(UTC).date()))
    assert words[words.index("--submission-id") + 1] == f"nightly-{night}"
    assert options_known(words)
    with pytest.raises(InputError, match="a bucket of 3 to 63"):  # until the user names one
        open_files(words[words.index("--out") + 1])
