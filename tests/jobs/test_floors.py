"""The job that installs the bounds of the dependencies: what it installs and runs. Nothing is installed."""

import tomllib

import pytest
from packaging.requirements import Requirement

from ckcv_ray.cli import main as cli
from jobs.floors.__main__ import ROOT, list_commands, read_floors


def test_the_floors_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["excel"]]
    floors = {one.name: one.specifier for one in map(Requirement, wanted)}
    read = read_floors()
    assert read.keys() == floors.keys()
    assert all(f">={read[name]}" in str(floors[name]).split(",") for name in read)


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
