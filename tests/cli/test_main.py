"""The command as a whole: help, versions, imports, streams that cannot be written to, names that no file can
have, and what a message suggests for a nearly correct word.
"""

import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import Command, call
from rich.console import Console

import ckcv_ray
from ckcv_ray.cli.data import Display
from ckcv_ray.cli.main import COMMANDS, app, load_command, name_options
from ckcv_ray.cli.output import Messages
from ckcv_ray.engine.backend import RAY
from ckcv_ray.engine.queue import Progress

WIDTH = 80  # of a terminal
SMALL = ("--C", "0.1,1,10", "--gamma", "0.1,1", "--n-splits", "4")
RUN = ("run", "twonorm:40:0", "--k", "3,4", "--backend", "serial", *SMALL)


def shell(line: str, *words: object) -> subprocess.CompletedProcess[bytes]:
    """A line of bash in which "$@" is the command."""
    command = ["bash", "-c", line, "-", sys.executable, "-m", "ckcv_ray", *words]
    return subprocess.run([os.fsencode(str(word)) for word in command], capture_output=True)


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


WRITING = [("status",), ("verify",), ("predict", "twonorm:9:1"), ("predict", "twonorm:9999:1")]
CLOSED = [
    *(("status",), ("predict", "twonorm:9999:1"), ("--help",)),
    ("evaluate", "twonorm:30:1", "--learner", "tree", "--out", "scores"),
]
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


def test_a_report_needs_neither_output_nor_a_backend_of_matplotlib(small: Path) -> None:
    done = shell('MPLBACKEND=nonsense "$@" >&- <&-', "report", small)
    assert done.returncode == 0
    assert done.stderr.startswith(b"report: ")


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


def test_a_live_line_that_is_lost_does_not_stop_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Messages(Terminal()))
    monkeypatch.setenv("TERM", "xterm")
    with Display(Console(stderr=True)) as line:
        assert line.live is not None
        line(Progress(planned=20, computed=10))
        line.live.refresh()


# Completion in shells: commands and the options of each, which is imported for it


@pytest.mark.parametrize(
    ("words", "completed"),
    [("ckcv ", [*COMMANDS]), ("ckcv evaluate table.csv --per", ["--permutations"])],
)
def test_commands_and_options_are_completed(words: str, completed: list[str]) -> None:
    asked = {"_CKCV_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    command = [sys.executable, "-m", "ckcv_ray"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | asked)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == completed


LIBRARIES = ("ray", "numba", "llvmlite", "scipy.special", "scipy.stats", "matplotlib", "pandas", "skops")
SKLEARN = ("base", "ensemble", "linear_model", "neighbors", "svm", "tree")
HEAVY = {*LIBRARIES, *(f"sklearn.{name}" for name in SKLEARN)}
REFUSED = [  # of every kind a line of words that is refused before anything is computed
    "nosuch",
    "run",
    "run t.csv --out x --k abc",
    "run t.csv --out x --workers 0",
    "run t.csv --out s3://bucket",
    "run t.csv --out x --learner forest --param max_features",
    "run none.csv --out x --learner svm,forest",
    "run t.csv --out x --test none.csv",
    "evaluate t.csv --out x --resampling kfold:x",
    "evaluate none.csv --out x --learner ridge",
    "verify x --limit x",
    "predict x none.csv",
]
LINES = ["--help", "--version", *(f"{name} --help" for name in COMMANDS), *REFUSED]
START = """
import contextlib, io, json, sys
import ckcv_ray

lines, heavy = map(json.loads, sys.argv[1:])
ended, loaded = [], {"import ckcv_ray": sorted({*heavy} & {*sys.modules})}
for line in lines:
    from ckcv_ray.cli.main import main
    sys.argv[1:], code, told = line.split(), 0, io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    ended.append([code, told.getvalue()])
    loaded[line] = sorted({*heavy} & {*sys.modules})
print(json.dumps([ended, loaded]))
"""
WITHOUT_RAY = """
import sys
from importlib import metadata

def hidden(name, find=metadata.distribution):
    if name == "ray":
        raise metadata.PackageNotFoundError(name)
    return find(name)

metadata.distribution = hidden
sys.modules["ray"] = None
"""
NO_RAY = "--backend ray, an address and workers need Ray, which is not installed: leave them out, or pip"
FALLBACK = f"ckcv: Ray is not installed, so one process computes everything; for more: pip install '{RAY}'"


class Ended(NamedTuple):
    code: int
    messages: str


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i},{i % 7},{'ab'[i % 2]}\n" for i in range(40))
    (tmp_path / "t.csv").write_text(f"age,dose,target\n{rows}")
    return tmp_path


def start(script: str, lines: list[str], folder: Path) -> tuple[list[Ended], dict[str, list[str]]]:
    """Run command lines in one process; return how each ended, and what of ``HEAVY`` was imported by then."""
    words = [sys.executable, "-c", script, json.dumps(lines), json.dumps(sorted(HEAVY))]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    ended, loaded = json.loads(done.stdout)
    return [Ended(*one) for one in ended], loaded


def test_help_and_refusals_import_nothing_that_takes_long(table: Path) -> None:
    ended, loaded = start(START, LINES, table)
    assert {line: names for line, names in loaded.items() if names} == {}
    assert [one.code for one in ended] == [0] * (len(LINES) - len(REFUSED)) + [2] * len(REFUSED)
    assert list(table.iterdir()) == [table / "t.csv"]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_has_the_first_line_of_each(name: str) -> None:
    assert load_command(name).help.partition("\n\n")[0] == COMMANDS[name]


def test_without_ray_one_process_does_everything(table: Path) -> None:
    run = " ".join(["run", "t.csv", "--k", "3", *SMALL, "--out"])
    done = [
        f"{run} run --backend serial",
        f"{run} auto",
        "verify run --rerun",
        "evaluate t.csv --learner tree --out scores",
        "predict run t.csv --out predicted.csv",
        "status run",
        "report run",
    ]
    ended, loaded = start(WITHOUT_RAY + START, done, table)
    assert [one.code for one in ended] == [0] * len(done), ended
    assert not any(FALLBACK in one.messages for one in ended)
    assert [name for name in loaded[done[2]] if "sklearn" in name] == []  # an SVM is run and verified without
    environment = json.loads((table / "run" / "execution.json").read_text())["environment"]
    assert environment["packages.ray"] == "not installed"


def test_without_ray_what_needs_it_is_refused(table: Path) -> None:
    needed = ("--backend ray", "--address h:1", "--workers 2")
    commands = ["run t.csv --out x", "evaluate t.csv --out x", "verify x --rerun"]
    lines = [f"{command} {words}" for command in commands for words in needed]
    ended, _ = start(WITHOUT_RAY + START, lines, table)
    assert ended == [Ended(2, f"ckcv: {NO_RAY} install '{RAY}'\n")] * len(lines)
    assert list(table.iterdir()) == [table / "t.csv"]


def test_what_is_to_be_installed_is_what_the_package_requires() -> None:
    assert f'    "{RAY}",\n' in (Path(__file__).parents[2] / "pyproject.toml").read_text()


def test_a_message_names_options_as_they_are_given() -> None:
    options = {"k": "--k", "n_splits": "--n-splits", "exhaustive": "--exhaustive", "row_id": "--id"}
    for argument, option in (
        ("n_splits=3 is too few", "--n-splits 3 is too few"),
        ("leave out exhaustive=True, or k=5", "leave out --exhaustive, or --k 5"),
        ("exhaustive=True requires k=3", "--exhaustive requires --k 3"),
        ("row_id='x' is no column", "--id 'x' is no column"),
        ("costs=k=1 and 'k=2', svm.k=3 and --k=4", "costs=k=1 and 'k=2', svm.k=3 and --k=4"),
    ):
        assert name_options(argument, options, {"exhaustive"}) == option
