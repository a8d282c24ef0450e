"""The command as a whole: help, versions, streams that cannot be written to, names no file can have."""

import inspect
import os
import re
import shlex
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from command import RUN, Command, shell
from conftest import call

import ckcv_ray
from ckcv_ray.cli.main import COMMANDS, app, load_command

WIDTH = 80  # of a terminal


def test_help_teaches(ckcv: Command) -> None:
    for words in ((), ("run",), ("plan",), ("status",), ("verify",), ("predict",), ("report",)):
        code, shown, _ = ckcv(*words, "--help")
        assert code == 0
        assert len(shown) > 200
        example = " ".join(("ckcv", *words))
        assert any(f"{line.strip()} ".startswith(f"{example} ") for line in shown.splitlines())
    assert "log:-2:4:13" in ckcv("run", "--help-all")[1]
    assert "twonorm:400:0" in ckcv("run", "--help")[1]  # some names of sets would become emoji


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_an_example_fits_into_a_line_of_a_terminal(name: str | None) -> None:
    """One that is wrapped cannot be pasted; there are two columns before it."""
    text = str(app.info.help if name is None else load_command(name).help)
    examples = re.findall(r"(?m)^ {4}(ckcv .*|curl .*)$", inspect.cleandoc(text))
    assert examples
    assert [line for line in examples if len(line) + 2 > WIDTH] == []


def test_the_package_is_the_command() -> None:
    messages = subprocess.run([sys.executable, "-m", "ckcv_ray", "--version"], capture_output=True, text=True)
    assert messages.stdout.split() == ["ckcv_ray", ckcv_ray.__version__]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("small") / "run"
    assert call(*RUN, "--out", out) == 0
    return out


def test_lost_messages_do_not_stop_the_work(small: Path, tmp_path: Path) -> None:
    for i, line in enumerate(('"$@" 2>/dev/full', '"$@" 2>&-', '"$@" 2> >(exit)')):
        done = shell(line, *RUN, "--out", tmp_path / str(i))
        assert (done.returncode, b"model     C = " in done.stdout) == (0, True), line
        certificates = [folder / "certificate.json" for folder in (small, tmp_path / str(i))]
        assert certificates[0].read_bytes() == certificates[1].read_bytes()
    for code, *words in ((4, "status", tmp_path / "none"), (2, "run", "none.csv", "--out", "x"), (2, "no")):
        assert shell('"$@" 2>/dev/full', *words).returncode == code


WRITING = [
    *(("status",), ("status", "--json"), ("verify",), ("predict", "twonorm:9:1")),
    ("predict", "twonorm:9999:1"),
]
EVALUATE = ("evaluate", "twonorm:30:1", "--learner", "tree", "--out", "scores")
CLOSED = [("status",), ("predict", "twonorm:9999:1"), ("--help",), EVALUATE]
LOST = {">/dev/full": b"No space left on device", ">&-": b"Bad file descriptor"}


@pytest.mark.parametrize(
    ("words", "output"),
    [
        *product(WRITING, (">/dev/full", ">/dev/full 2>/dev/full")),
        *product(CLOSED, (">&-", "| true; exit ${PIPESTATUS[0]}")),
    ],
    ids=str,
)
def test_results_that_cannot_be_written_are_one_exit_code_and_said_to_be_lost(
    small: Path, tmp_path: Path, words: tuple[str, ...], output: str
) -> None:
    given = (words[0], small, *words[1:]) if words[0] in ("status", "verify", "predict") else words
    done = shell(f'cd {shlex.quote(str(tmp_path))}; "$@" {output}', *given)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    assert (b"cannot write" in done.stderr) == (output in LOST)
    if output in LOST:
        assert done.stderr.endswith(b"ckcv: cannot write to standard output: " + LOST[output] + b"\n")


def test_a_command_without_output_needs_none(small: Path) -> None:
    done = shell('"$@" >&- <&-', "report", small)
    assert done.returncode == 0
    assert done.stderr.startswith(b"report: ")


def test_help_and_version_that_cannot_be_written_are_said_to_be_lost() -> None:
    for words in (("--help",), ("run", "--help"), ("--version",)):
        done = shell('"$@" >/dev/full', *words)
        messages = b"ckcv: cannot write to standard output: No space left on device\n"
        assert (done.returncode, done.stderr) == (1, messages)


def test_a_path_that_is_not_utf8_is_refused_before_the_run_begins(tmp_path: Path) -> None:
    strange = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    for where, words, code in (
        (tmp_path, (*RUN, "--out", strange), 2),
        (tmp_path, ("run", f"{strange}.csv", "--out", "run"), 2),
        (tmp_path, ("status", strange), 4),
        (strange, (*RUN, "--out", "run"), 2),
    ):
        os.makedirs(where, exist_ok=True)
        before = os.listdir(where)
        done = shell(f'cd {shlex.quote(str(where))}; "$@"', *words)
        assert (done.returncode, done.stdout) == (code, b"")
        assert done.stderr.count(b"\n") == 1
        assert b"no file can have this name" in done.stderr
        assert os.listdir(where) == before


# Completion in shells: commands and the options of each, which is imported for it


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("ckcv ", [*COMMANDS]),
        ("ckcv evaluate table.csv --per", ["--permutations"]),
    ],
)
def test_commands_and_options_are_completed(words: str, completed: list[str]) -> None:
    asked = {"_CKCV_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    command = [sys.executable, "-m", "ckcv_ray"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | asked)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == completed
