"""How the command line starts: without imports that take long, and without Ray if it is not installed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from command import SMALL

from ckcv_ray.cli.main import COMMANDS, load_command
from ckcv_ray.engine.backend import RAY

LIBRARIES = ("ray", "numba", "llvmlite", "scipy.special", "scipy.stats", "matplotlib", "pandas", "skops")
SKLEARN = ("base", "ensemble", "linear_model", "neighbors", "svm", "tree")
HEAVY = {*LIBRARIES, *(f"sklearn.{name}" for name in SKLEARN)}
REFUSED = [  # of every kind a line of words that is refused before anything is computed
    "nosuch",
    "run",
    "run t.csv --out x --k abc",
    "run t.csv --out x --C x",
    "run t.csv --out x --delta 2",
    "run t.csv --out x --workers 0",
    "run t.csv --out s3://bucket",
    "run t.csv --out x --learner forest --delta 2",
    "run t.csv --out x --learner forest --param max_features",
    "run none.csv --out x",
    "run none.csv --out x --learner svm,forest",
    "run t.csv --out x --test none.csv",
    "plan t.csv --workers a",
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

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "ray":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def hidden(name, find=metadata.distribution):
    if name == "ray":
        raise metadata.PackageNotFoundError(name)
    return find(name)

metadata.distribution = hidden
sys.meta_path.insert(0, Hidden())
"""
NO_RAY = "--backend ray, an address and workers need Ray, which is not installed: leave them out, or pip"
FALLBACK = f"ckcv: Ray is not installed, so one process computes everything; for more: pip install '{RAY}'"


class Ended(NamedTuple):
    code: int
    messages: str


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = "".join(f"{i},{i % 7},{'ab'[i % 2]}\n" for i in range(40))
    (tmp_path / "t.csv").write_text(f"x,z,target\n{rows}")
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
    assert "ray" not in loaded[done[-1]]
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
