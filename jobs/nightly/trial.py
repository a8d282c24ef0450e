"""Test of the nightly alarm: no alarm if nothing has changed, an alarm if the solver is slower.

Tiny nights (``--plan tiny``, studies and solver), each in a separate process as real nights are: twenty
consecutive ones without a change, then ten more, each compared with those twenty, in which every path of the
solver is followed by a busy wait of a quarter of its time. The trial is passed if none of the former raises
an alarm, and nine of ten of the latter raise one about a speed. The slowdown is added by this job only; the
package has no code for it.

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

from ckcv_ray.learners.svm import path as paths
from ckcv_ray.learners.svm.problem import Solutions
from ckcv_ray.storage.files import LocalFiles
from jobs.nightly.figures import Role
from jobs.nightly.night import run_night
from jobs.nightly.verdict import LEAST, Verdict

SLOWER = 0.25
FOUND = 0.9
REPEATS = 3
GROUPS = ["studies", "solver"]
THRESHOLD = 0.15


def plant(share: float) -> None:
    """Make every path of the solver in this process take longer by this share."""
    path = paths.path

    def slowed(*args: Any) -> Solutions:
        start = process_time()
        fits = path(*args)
        end = start + (1 + share) * (process_time() - start)
        while process_time() < end:
            pass
        return fits

    paths.path = cast(Any, slowed)


def night(out: Path, name: str, share: float) -> Verdict:
    """Run one tiny night in this process."""
    if share:
        plant(share)
    return run_night(LocalFiles(out), name, THRESHOLD, GROUPS, "tiny", REPEATS, "trial")


def night_in_process(out: Path, name: str, share: float) -> Verdict:
    """Run one tiny night in a separate process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(night, out, name, share).result()


def planted(history: Path, name: str) -> Verdict:
    """Run a night with a slower solver, compared with this history, which is not modified."""
    with TemporaryDirectory() as scratch:
        shutil.copytree(history, scratch, dirs_exist_ok=True)
        return night_in_process(Path(scratch), name, SLOWER)


def slow(verdict: Verdict) -> bool:
    """Return whether a night raised an alarm about a speed."""
    return any(line.alarm for line in verdict.lines if line.figure.role == Role.RATIO)


def line(verdict: Verdict, seconds: float) -> str:
    """Format a night: its alarms, the figures measured again, and the speed closest to an alarm."""
    judged = [one for one in verdict.lines if one.change is not None and one.threshold is not None]
    again = sum(one.figure.role == Role.FIRST for one in verdict.lines)
    text = f"alarms: {len(verdict.alarms)}   measured again: {again}   {seconds:4.0f} s"
    if judged:
        worst = max(judged, key=lambda one: (one.change or 0.0) - (one.threshold or 0.0))
        text += f"   {worst.change:+7.1%} of {worst.threshold:6.1%}   {worst.figure.label}"
    return f"{verdict.night.name:<12}{text}"


def main(
    nights: Annotated[int, typer.Option(min=LEAST + 1, help="Nights without a change.")] = 20,
    planted_nights: Annotated[
        int, typer.Option("--planted", min=1, help="Nights with a slower solver.")
    ] = 10,
) -> None:
    """Print a line for each night, and whether the trial is passed.

    A line shows the number of alarms and of figures measured again; and, for the speed closest to an alarm,
    how much more time it took than the median, and the threshold.

    Exit codes: 0 passed; 1 not passed.
    """
    with TemporaryDirectory() as folder:
        history, verdicts = Path(folder), []
        for i in range(nights + planted_nights):
            start = time.monotonic()
            name = f"quiet-{i + 1:02d}" if i < nights else f"slower-{i - nights + 1:02d}"
            verdicts.append(night_in_process(history, name, 0.0) if i < nights else planted(history, name))
            print(line(verdicts[-1], time.monotonic() - start), flush=True)
    false = sum(bool(verdict.alarms) for verdict in verdicts[:nights])
    found = sum(map(slow, verdicts[nights:]))
    passed = not false and found >= ceil(FOUND * planted_nights)
    print(
        f"{nights} nights without a change: {false} with an alarm; "
        f"{planted_nights} with a solver slower by {SLOWER:.0%}: {found} detected"
    )
    print(f"load {' '.join(f'{one:.1f}' for one in os.getloadavg())}; {'passed' if passed else 'not passed'}")
    raise typer.Exit(not passed)


if __name__ == "__main__":
    typer.run(main)
