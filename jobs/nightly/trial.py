"""The nightly alarm on trial: silent where nothing changed, and raised where the solver is slower.

Tiny nights (``--plan tiny``, studies and solver), each in a process of its own as in earnest: twenty in a row
in which nothing changes, then ten more, each held against those twenty, in which every path of the solver is
followed by a busy wait of a quarter of its time. Passed: no alarm in the former, and one about a speed in
nine of ten of the latter. The slowdown is this job's alone; the package knows nothing of it.

    python jobs/nightly/trial.py
    python jobs/nightly/trial.py --nights 6 --planted 2
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import os
import shutil
import time
from concurrent.futures import ProcessPoolExecutor
from math import ceil
from multiprocessing import get_context
from tempfile import TemporaryDirectory
from time import process_time
from typing import Annotated, Any, cast

import typer

from ckcv_ray.learners.svm import SOLVERS
from ckcv_ray.learners.svm.problem import Fits
from jobs.nightly.figures import Role
from jobs.nightly.night import hold
from jobs.nightly.verdict import LEAST, Verdict

SLOWER = 0.25
FOUND = 0.9
REPEATS = 3
GROUPS = ["studies", "solver"]
THRESHOLD = 0.15


def plant(share: float) -> None:
    """Make every path of this process's solver take so much longer."""
    path = SOLVERS["newton"]

    def slowed(*args: Any) -> Fits:
        start = process_time()
        fits = path(*args)
        end = start + (1 + share) * (process_time() - start)
        while process_time() < end:
            pass
        return fits

    SOLVERS["newton"] = cast(Any, slowed)


def night(out: Path, name: str, share: float) -> Verdict:
    """One tiny night, in this process."""
    if share:
        plant(share)
    return hold(out, name, THRESHOLD, GROUPS, "tiny", REPEATS, "trial")


def apart(out: Path, name: str, share: float) -> Verdict:
    """One tiny night, in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(night, out, name, share).result()


def planted(history: Path, name: str) -> Verdict:
    """A night with a slower solver, held against this history, which stays as it was."""
    with TemporaryDirectory() as scratch:
        shutil.copytree(history, scratch, dirs_exist_ok=True)
        return apart(Path(scratch), name, SLOWER)


def slow(verdict: Verdict) -> bool:
    """Whether it raises the alarm about a speed."""
    return any(line.alarm for line in verdict.lines if line.figure.role == Role.RATIO)


def line(verdict: Verdict, seconds: float) -> str:
    """A night: its alarms, the speed that came closest to one, and what was measured again."""
    judged = [one for one in verdict.lines if one.change is not None and one.threshold is not None]
    again = sum(one.figure.role == Role.FIRST for one in verdict.lines)
    said = f"alarms: {len(verdict.alarms)}   measured again: {again}   {seconds:4.0f} s"
    if judged:
        worst = max(judged, key=lambda one: (one.change or 0.0) - (one.threshold or 0.0))
        said += f"   {worst.change:+7.1%} of {worst.threshold:6.1%}   {worst.figure.label}"
    return f"{verdict.night.name:<12}{said}"


def main(
    nights: Annotated[int, typer.Option(min=LEAST + 1, help="In which nothing changes.")] = 20,
    planted_nights: Annotated[
        int, typer.Option("--planted", min=1, help="In which the solver is slower.")
    ] = 10,
) -> None:
    """Print a line for each night, and whether the trial is passed.

    In a line: alarms; what was measured again; and of the speed closest to an alarm how much more time it
    took than the median, and how much more is an alarm.

    Exit codes: 0 passed; 1 not.
    """
    with TemporaryDirectory() as folder:
        history, verdicts = Path(folder), []
        for i in range(nights + planted_nights):
            start = time.monotonic()
            name = f"quiet-{i + 1:02d}" if i < nights else f"slower-{i - nights + 1:02d}"
            verdicts.append(apart(history, name, 0.0) if i < nights else planted(history, name))
            print(line(verdicts[-1], time.monotonic() - start), flush=True)
    false = sum(bool(verdict.alarms) for verdict in verdicts[:nights])
    found = sum(map(slow, verdicts[nights:]))
    passed = not false and found >= ceil(FOUND * planted_nights)
    print(
        f"{nights} nights in which nothing changed: {false} with an alarm; "
        f"{planted_nights} with a solver slower by {SLOWER:.0%}: {found} found"
    )
    print(f"load {' '.join(f'{one:.1f}' for one in os.getloadavg())}; {'passed' if passed else 'not passed'}")
    raise typer.Exit(not passed)


if __name__ == "__main__":
    typer.run(main)
