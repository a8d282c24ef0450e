"""The job that installs the bounds of the dependencies: what it installs and runs. Nothing is installed."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from ckcv_ray.cli import main as cli
from jobs.floors.__main__ import COMMANDS, ROOT, list_commands, read_floors


def test_the_floors_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["excel"]]
    floors = {one.name: one.specifier for one in map(Requirement, wanted)}
    read = read_floors()
    assert read.keys() == floors.keys()
    assert all(f">={read[name]}" in str(floors[name]).split(",") for name in read)


def test_a_dependency_without_a_floor_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text('[project]\ndependencies = ["numpy<3"]\noptional-dependencies = {excel = []}\n')
    with pytest.raises(ValueError, match=re.escape("'numpy<3' has no lower bound: expected name>=version")):
        read_floors(file)


def test_every_command_is_passed_on_each_table_learner_and_backend() -> None:
    steps = list(list_commands())
    assert ("--help",) in steps
    assert {words[0] for words in steps[1:]} == set(COMMANDS)
    assert {"run", "verify", "report", "predict", "evaluate"} <= set(COMMANDS)
    for command in ("run", "evaluate"):
        cases = {
            (words[1], "tree" in words, words[words.index("--backend") + 1])
            for words in steps
            if words[0] == command and "--backend" in words
        }
        tables, backends = ("t.csv", "t.xlsx"), ("serial", "ray")
        assert cases == {(t, tree, b) for t in tables for tree in (False, True) for b in backends}


@pytest.mark.parametrize("words", list(list_commands()), ids=" ".join)
def test_the_options_of_each_command_are_known(words: tuple[str, ...]) -> None:
    name, *options = words
    if not name.startswith("-"):
        known = {option for parameter in cli.load_command(name).params for option in parameter.opts} | {
            "--help"
        }
        assert {option for option in options if option.startswith("--")} <= known


@pytest.mark.parametrize("file", ["crontab", "ckcv-nightly.service"])
def test_the_schedules_run_a_whole_night(file: str) -> None:
    assert "jobs/night --out" in (ROOT / "docs" / "nightly" / file).read_text()
    night = (ROOT / "jobs" / "night").read_text()
    for job in ("jobs/nightly", "jobs.faults.hostile", "./jobs/check --night", "jobs/floors --newest"):
        assert f"{job} " in night.replace("\n", " ")


def test_it_needs_nothing_installed_to_say_what_it_does() -> None:
    command = [sys.executable, "-S", str(ROOT / "jobs" / "floors"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, env={})
    assert done.returncode == 0, done.stderr
    assert "--newest" in done.stdout
