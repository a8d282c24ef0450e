"""Completion in shells: commands and the options of each, which is imported for it."""

import subprocess
import sys
from os import environ

import pytest

from ckcv_ray.cli.main import COMMANDS


def complete(words: str, place: int, **more: str) -> subprocess.CompletedProcess[str]:
    asked = {"_CKCV_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place)}
    command = [sys.executable, "-m", "ckcv_ray"]
    return subprocess.run(command, capture_output=True, text=True, env=environ | asked | more)


def test_commands_are_completed() -> None:
    assert complete("ckcv ", 1).stdout.split() == [*COMMANDS]
    assert complete("ckcv re", 1).stdout.split() == ["report"]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("ckcv run table.csv --ta", {"--target"}),
        ("ckcv evaluate table.csv --per", {"--permutations"}),
        ("ckcv predict run new.csv --vo", {"--vote"}),
    ],
)
def test_options_are_completed(words: str, options: set[str]) -> None:
    completed = complete(words, len(words.split()) - 1)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert {*completed.stdout.split()} == options


def test_the_script_that_asks_for_completions_can_be_shown() -> None:
    command = [sys.executable, "-m", "ckcv_ray", "--show-completion", "bash"]
    asked = environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    shown = subprocess.run(command, capture_output=True, text=True, env=asked)
    assert shown.returncode == 0
    assert "_CKCV_COMPLETE=complete_bash" in shown.stdout
