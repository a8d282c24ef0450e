"""Install the lower bound of every dependency together, and run the commands with them.

The bounds are those of ``pyproject.toml``, its extra ``excel`` included; what the dependencies bring with
them is free. ``--newest`` installs the newest versions that the bounds allow instead. The package registry is
needed.

    python jobs/floors
    python jobs/floors --newest
    python jobs/floors --python python3.13

Exit codes: 0 every command passed; 1 a command failed, or the versions cannot be installed together.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[2]
FLOOR = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?>=(?P<version>[\w.]+)(?:,.*)?")
SPLITS = ("--k", "3,4", "--n-splits", "3")
LEARNERS = {"svm": ("--C", "1,10", "--gamma", "0.1"), "tree": ("--learner", "tree")}
TABLES = ("t.csv", "t.xlsx")
COMMANDS = ("run", "verify", "report", "predict", "evaluate")
WRITE = """
import csv, openpyxl, numpy as np
values = np.random.default_rng(0).normal(size=(90, 2)) + 2 * (np.arange(90) % 2)[:, None]
rows = [[*row, "uvw"[i % 3], ("no", "yes")[i % 2]] for i, row in enumerate(values.round(3).tolist())]
book = openpyxl.Workbook()
for row in [["a", "b", "c", "outcome"], *rows]:
    book.active.append(row)
book.save("t.xlsx")
csv.writer(open("t.csv", "w")).writerows(book.active.values)
"""


def read_floors(file: Path = ROOT / "pyproject.toml") -> dict[str, str]:
    """Return the lower bound of each dependency, those of the extra ``excel`` included.

    Raises:
        ValueError: a dependency has no lower bound, or one that is not written as such.
    """
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    floors = {}
    for wanted in (*project["dependencies"], *project["optional-dependencies"]["excel"]):
        found = FLOOR.fullmatch(wanted)
        if found is None:
            raise ValueError(f"{wanted!r} has no lower bound: expected name>=version")
        floors[found["name"]] = found["version"]
    return floors


def list_commands() -> Iterator[tuple[str, ...]]:
    """Yield the words of every command: two tables, two learners, in one process and on Ray."""
    yield ("--help",)
    yield from ((command, "--help") for command in COMMANDS)
    for backend, table, learner in product(("serial", "ray"), TABLES, LEARNERS):
        run = f"{table}-{learner}-{backend}"
        how = ("--backend", backend, *(("--workers", "2") if backend == "ray" else ()))
        data = (table, "--target", "outcome", *LEARNERS[learner], *how)
        yield ("run", *data, *SPLITS, "--out", run)
        yield ("verify", run, "--rerun")
        yield ("report", run)
        yield ("predict", run, table, "--out", f"{run}.csv")
        yield ("evaluate", *data, "--resampling", "kfold:3", "--out", f"{run}-scores")
        yield ("report", f"{run}-scores")


def install(python: str, folder: Path, newest: bool) -> Path:
    """Make an environment with this package, and return its folder of commands.

    Raises:
        subprocess.CalledProcessError: the versions exclude each other.
    """
    subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
    programs = folder / "bin"
    constraints = folder / "constraints.txt"
    floors = {} if newest else read_floors()
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in floors.items()))
    pip = [str(programs / "python"), "-m", "pip"]
    wanted = ["--upgrade", "--upgrade-strategy", "eager", "-c", str(constraints), f"{ROOT}[excel]"]
    subprocess.run(
        [*pip, "install", "-q", "--disable-pip-version-check", "--prefer-binary", *wanted], check=True
    )
    subprocess.run([*pip, "check", "--disable-pip-version-check"], check=True)
    names = [name.replace("-", "[-_]") for name in read_floors()]
    shown = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True).stdout
    print(" ".join(re.findall(rf"(?mi)^(?:{'|'.join(names)})==.*$", shown)))
    return programs


def pass_commands(programs: Path, folder: Path) -> list[str]:
    """Run every command in a folder, print what fails, and return the names of those that did."""
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = outside | {"NUMBA_CACHE_DIR": str(folder / "compiled"), "RAY_USAGE_STATS_ENABLED": "0"}
    subprocess.run([str(programs / "python"), "-c", WRITE], cwd=folder, check=True)  # t.csv and t.xlsx
    failed = []
    for words in list_commands():
        start, name = perf_counter(), " ".join(words)
        done = subprocess.run(
            [str(programs / "ckcv"), *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        state = "passed" if done.returncode == 0 else f"FAILED with exit code {done.returncode}"
        print(f"{perf_counter() - start:6.1f} s  {state:<8}{name}", flush=True)
        if done.returncode:
            print(done.stdout + done.stderr)
            failed.append(name)
    return failed


def main() -> int:
    """Install, pass every command, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--newest", action="store_true", help="the newest versions, not the lower bounds")
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter to install for (default: this one)"
    )
    options = parser.parse_args()
    versions = "newest versions" if options.newest else "lower bounds"
    with tempfile.TemporaryDirectory(prefix="ckcv-floors-") as folder:
        try:
            programs = install(options.python, Path(folder) / "environment", options.newest)
        except subprocess.CalledProcessError as error:
            print(f"the {versions} cannot be installed together: {error}", file=sys.stderr)
            return 1
        (runs := Path(folder) / "runs").mkdir()
        failed = pass_commands(programs, runs)
    print(
        f"{versions}: {f'{len(failed)} failed: ' + '; '.join(failed) if failed else 'every command passed'}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
