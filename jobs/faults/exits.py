"""Exit codes under load: a prediction that is refused, or made, must end with its own code, not by a signal.

A thread of a library that asks for the interpreter while that shuts down aborts the process (exit code 134).
This is a matter of moments, so predictions are repeated on one processor that two busy processes share.
Nothing is timed.

    python jobs/faults/exits.py --rounds 30
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from ckcv_ray.errors import pluralize

ROOT = Path(__file__).resolve().parents[2]
CKCV = (sys.executable, "-m", "ckcv_ray")
RUN = ("run", "rows.csv", "--C", "1", "--gamma", "0.1", "--k", "3", "--n-splits", "3", "--backend", "serial")
EXPECTED = {"rows.csv": 0, "others.csv": 2, "words.csv": 2, "none.csv": 2}  # file to predict: exit code
BUSY = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"  # not longer than this process


def write_tables(folder: Path) -> None:
    """Write rows that can be predicted, and three tables that cannot: other columns, words only, no rows."""
    rows = [f"{i % 7}.5,{i * 3 % 11}.25,{'no' if i % 7 < 3 else 'yes'}" for i in range(60)]
    tables = {
        "rows.csv": ["a,b,y", *rows],
        "others.csv": ["a,c", *(row.rsplit(",", 1)[0] for row in rows)],
        "words.csv": ["a,b", *["x,y"] * 60],
        "none.csv": ["a,b"],
    }
    for name, lines in tables.items():
        (folder / name).write_text("\n".join(lines) + "\n")


@contextmanager
def load() -> Iterator[None]:
    """Keep one processor busy with two processes, and run what this process starts on the same one."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()
        os.sched_setaffinity(0, allowed)


def main(
    rounds: Annotated[int, typer.Option(min=1, help="Times that each table is predicted.")] = 30,
) -> None:
    """Predict under load, and compare each exit code with the expected one; exit code 1 if one differs."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    differing: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder))
        command = [*CKCV, *RUN, "--out", "run"]
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        with load():
            for _ in range(rounds):
                for name, expected in EXPECTED.items():
                    command = [*CKCV, "predict", "run", name]
                    done = subprocess.run(
                        command, cwd=folder, env=environment, capture_output=True, text=True
                    )
                    if done.returncode != expected:
                        differing[f"{name}: exit code {done.returncode}, expected {expected}"] += 1
                        print(done.stderr, file=sys.stderr)
    for difference, count in differing.items():
        print(f"{count} x {difference}")
    print(f"{pluralize(rounds * len(EXPECTED), 'prediction')}, {differing.total()} with another exit code")
    if differing:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
