"""Benchmark of a run of millions of evaluations: whether it slows down, and whether its memory grows.

Two million evaluations of a small set, none dropped, on two workers: memory of the driver, of the recorder
and of Ray's control store (GCS) in each tenth of the selection, its evaluations per second, and the size of
the run folder. The same number of fits on TR + MS follows, which build and score complete models; their rate
is reported separately.

    python jobs/benchmarks/long.py
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import tempfile
import time
from contextlib import suppress
from typing import Annotated, NamedTuple

import numpy as np
import typer

from ckcv_ray import Execution, Job, Progress, Study, read_task
from ckcv_ray.runs.run import run_job
from ckcv_ray.study import Problem

WATCHED = {"recorder": b"ray::Recorder", "gcs": b"gcs_server"}
TENTHS = 10


class Moment(NamedTuple):
    """Evaluations and fits done after ``seconds``; memory of each process in MiB."""

    seconds: float
    evaluations: int
    fits: int
    memory: dict[str, int]


def memory() -> dict[str, int]:
    """Measure the resident memory of this process and of those of Ray, MiB."""
    sizes = {"driver": _resident(Path("/proc/self"))}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError, StopIteration):
                title = (folder / "cmdline").read_bytes()
                for name, mark in WATCHED.items():
                    if mark in title.split(b"\0")[0]:
                        sizes[name] = max(sizes.get(name, 0), _resident(folder))
    return sizes


def _resident(folder: Path) -> int:
    lines = (folder / "status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmRSS"))


class Watch:
    """Records the progress of a run, about once a second."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self.start = time.monotonic()

    def __call__(self, at: Progress) -> None:
        """Record a moment, if the last is more than a second ago."""
        now = time.monotonic() - self.start
        if not self.moments or now > self.moments[-1].seconds + 1.0:
            self.moments.append(Moment(now, at.computed, at.fits, memory()))


def tenths(moments: list[Moment]) -> list[tuple[float, dict[str, int]]]:
    """Return evaluations per second in each tenth of the selection, and its peak memory."""
    done, seconds = np.array([(m.evaluations, m.seconds) for m in moments]).T
    edges = np.linspace(done[0], done[-1], TENTHS + 1)
    times = np.interp(edges, done, seconds)
    rates = np.diff(edges) / np.diff(times)
    shown = []
    for i, rate in enumerate(rates):
        inside = [m.memory for m in moments if times[i] <= m.seconds <= times[i + 1]]
        names = sorted({name for one in inside for name in one})
        shown.append((float(rate), {name: max(one.get(name, 0) for one in inside) for name in names}))
    return shown


def main(
    evaluations: Annotated[int, typer.Option(min=1000, help="Evaluations of the selection.")] = 2_000_000,
    source: Annotated[str, typer.Option(help="A small set.")] = "twonorm:60:0",
    workers: Annotated[int, typer.Option(min=1)] = 2,
    least: Annotated[float, typer.Option(help="Last tenth over first; below it, exit code 1.")] = 0.8,
) -> None:
    """Print rate and memory for each tenth of the selection."""
    study, (task, _) = Study.paper(exhaustive=True), read_task(source)
    tried = Problem.of(study, task)
    study = study.replace(n_splits=round(evaluations / (len(tried.sizes) * tried.n_settings)))
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        result = run_job(Job(study, task, out, listen=watch), Execution("ray", workers))
        files = [file for file in out.rglob("*") if file.is_file()]
        size = sum(file.stat().st_size for file in files)
    planned, seconds = result.execution["evaluations"]["planned"], result.execution["seconds"]
    selecting = [moment for moment in watch.moments if moment.evaluations < planned]
    if len(selecting) < TENTHS:
        print("the run was too short to divide into tenths: use more evaluations")
        return
    shown = tenths(selecting)
    for i, (rate, memory_used) in enumerate(shown, 1):
        listed = "  ".join(f"{name} {mib:4d} MiB" for name, mib in memory_used.items())
        print(f"tenth {i:2d}  {rate:8,.0f} evaluations/s  {listed}")
    first, last = selecting[-1], watch.moments[-1]
    listed = "  ".join(f"{name} {mib:4d} MiB" for name, mib in last.memory.items())
    print(f"estimate  {(last.fits - first.fits) / (last.seconds - first.seconds):8,.0f} fits/s   {listed}")
    ratio = shown[-1][0] / shown[0][0]
    print(f"{planned:,} evaluations, {result.execution['fits']:,} fits in {seconds:,.0f} s")
    print(f"last tenth / first: {ratio:.2f}   folder: {size / 2**20:.1f} MiB in {len(files)} files")
    if ratio < least:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
