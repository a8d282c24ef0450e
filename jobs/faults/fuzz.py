"""Whatever a file holds, its reader reads it or refuses it: with an error of ours, in one line, in bounds.

Readers take turns of some seconds, each with a file that means harm (``fuzz_hostile``) and then with files
that are nearly right (``fuzz_inputs``), made by hypothesis, which also shrinks what was found. They are read
in a child process, so that a crash of native code is a finding and not the end of the job. The parent watches
the child's memory and clock. A finding is an input on which

    an error    is raised that is not of the CKCVError tree
    a message   is empty, or has line breaks or control characters, or is very long
    a file      is left behind
    a crash     ends the child
    a hang      lasts beyond the deadline
    memory      of the child, of which a fresh one has about 300 MiB, goes beyond --most-mib

Findings are one where reader, kind and innermost frame are the same. Each is kept with its files; for those
of a run folder, the whole folder.

    csv, parquet, npz, svmlight    data.read, then learning_task, rows_to_test, and the way into a run folder
    ida, mat                       the IDA archive in its two forms, likewise
    toml, words                    a study's TOML; grids and folds as the command line has them
    run                            status, verify, predict and report of a finished run, harmed

    python jobs/faults/fuzz.py --minutes 10 --seed 0
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import json
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import hypothesis
import numpy as np
import typer
from hypothesis import HealthCheck, Phase
from hypothesis.errors import Flaky
from hypothesis.strategies import SearchStrategy
from rich.console import Console

from ckcv_ray import Execution, Study, run
from jobs.faults.fuzz_child import Child
from jobs.faults.fuzz_hostile import hostile
from jobs.faults.fuzz_inputs import SHAPED, cases, run_case
from jobs.faults.fuzz_parts import Case
from jobs.faults.fuzz_readers import SCRATCH, Fault

READERS = (*SHAPED, "run")
TURN_SECONDS = 10.0
STUDY = Study.of(C=(0.1, 1.0), gamma=(0.1, 1.0), k=(3, 4), n_splits=3)
RUNS: dict[str, dict[str, Any]] = {
    "occam": {"report_k": (3,)},
    "holdout": {"certify": "holdout", "claim": ("random", "vote", "member:0")},
    "nested": {"certify": "nested", "outer_splits": 2},
    "rotation": {"resampling": "rotation"},
}
console = Console(stderr=True)


class FoundError(Exception):
    """Tells hypothesis to look for a smaller input."""


class OverError(BaseException):
    """Tells hypothesis that the turn is over."""


@dataclass
class Tally:
    """What became of one reader's inputs."""

    inputs: int = 0
    refused: int = 0
    accepted: int = 0
    findings: int = 0
    peak_mib: float = 0.0


@dataclass
class Fuzzer:
    """Inputs tried, and what was found."""

    child: Child
    scratch: Path
    keep: Path
    tallies: dict[str, Tally]
    sizes: dict[tuple[str, str, str], int] = field(default_factory=dict)
    shrunk: set[tuple[str, str, str]] = field(default_factory=set)

    def play(self, reader: str, case: Case, note: str = "") -> list[tuple[str, str, str]]:
        """Have one input read; the names of what was found."""
        folder = self.scratch / "input"
        shutil.rmtree(folder, ignore_errors=True)
        if case.base:
            shutil.copytree(self.scratch / "runs" / case.base, folder)
        folder.mkdir(exist_ok=True)
        for name, content in case.files.items():
            (folder / name).unlink(missing_ok=True)
            if content is not None:
                (folder / name).write_bytes(content)
        refused, faults, peak = self.child.read(reader, folder, case.sealed)
        tally = self.tallies[reader]
        tally.inputs += 1
        tally.refused += bool(refused)
        tally.accepted += not (refused or faults)
        tally.peak_mib = max(tally.peak_mib, peak)
        return [self.note(reader, fault, case, folder, note) for fault in faults]

    def note(self, reader: str, fault: Fault, case: Case, folder: Path, note: str) -> tuple[str, str, str]:
        """Keep a finding that is new, or was had from a larger input before."""
        key = (reader, fault.kind, fault.frame)
        size = sum(len(content or b"") for content in case.files.values())
        if key not in self.sizes:
            self.tallies[reader].findings += 1
            told = f"found: {reader}: {fault.kind} at {fault.frame} {note}"
            console.print(told, markup=False, highlight=False, soft_wrap=True)
        elif self.sizes[key] <= size:
            return key
        self.sizes[key] = size
        kept = self.keep / f"{list(self.sizes).index(key):03d}-{reader}-{fault.kind.replace(' ', '-')}"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(folder, kept / "input")
        lines = [f"{reader}: {fault.kind} at {fault.frame}", note]
        lines += [f"{name}: {content and content[:400]!r}" for name, content in case.files.items()]
        lines += [f"put over the run {case.base}{', sealed' * case.sealed}"] if case.base else []
        (kept / "finding.txt").write_text("\n".join([*lines, "", fault.told]), errors="replace")
        return key

    def turn(self, reader: str, strategy: SearchStrategy[Case], seed: int, seconds: float) -> None:
        """Inputs of one reader for some seconds, and as long again to shrink the first new finding."""
        end, quarry = time.monotonic() + seconds, None

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=100_000,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
            print_blob=False,
        )
        @hypothesis.given(strategy)
        def one(case: Case) -> None:
            nonlocal quarry
            if time.monotonic() > end + (seconds if quarry else 0.0):
                raise OverError
            found = self.play(reader, case)
            new = [key for key in found if key not in self.shrunk and key[1] not in ("hang", "memory")]
            quarry = quarry or next(iter(new), None)
            if quarry in found:
                raise FoundError

        try:
            one()
        except (OverError, FoundError, Flaky, ExceptionGroup):
            if quarry:
                self.shrunk.add(quarry)


def finished_runs(folder: Path) -> dict[str, dict[str, bytes]]:
    """Small runs of every certification and resampling, and their files."""
    y = np.arange(24) % 2
    inputs = np.random.default_rng(0).normal(size=(24, 2)) + y[:, None]
    for name, options in RUNS.items():
        study, labels = STUDY.replace(**options), np.array(["no", "yes"])[y]
        run(study, inputs, labels, folder / name, Execution("serial"))
    files = {name: [file for file in (folder / name).rglob("*") if file.is_file()] for name in RUNS}
    return {
        name: {file.relative_to(folder / name).as_posix(): file.read_bytes() for file in files[name]}
        for name in RUNS
    }


def fuzz(fuzzer: Fuzzer, readers: list[str], seed: int, seconds: float) -> None:
    """Turns of the readers until the time is up: each has one at least, and a full one begins with harm."""
    start, turn = time.monotonic(), min(TURN_SECONDS, seconds / len(readers))
    runs = finished_runs(fuzzer.scratch / "runs") if "run" in readers else {}
    harm = {reader: hostile(reader, runs) for reader in readers}
    number = 0
    while number < len(readers) or time.monotonic() - start < seconds:
        reader = readers[number % len(readers)]
        if turn == TURN_SECONDS and harm[reader]:
            note, make = harm[reader].pop(0)
            fuzzer.play(reader, make(), note)
        strategy = run_case(runs) if reader == "run" else cases(reader)
        fuzzer.turn(reader, strategy, seed + number, turn)
        tally = fuzzer.tallies[reader]
        told = f"{tally.inputs:7d} inputs {tally.findings:4d} findings {tally.peak_mib:7.0f} MiB"
        console.print(f"turn {number}: {reader:<10}{told}", highlight=False)
        number += 1


def main(
    minutes: Annotated[float, typer.Option(min=0.0, help="How long.")] = 10.0,
    seed: Annotated[int, typer.Option(min=0, help="Decides the inputs.")] = 0,
    only: Annotated[str, typer.Option(help="Some of the readers: a,b.")] = ",".join(READERS),
    most_mib: Annotated[int, typer.Option(min=512, help="Memory a reader may take, in MiB.")] = 2048,
    deadline: Annotated[float, typer.Option(min=0.1, help="Seconds for one input.")] = 60.0,
    keep: Annotated[Path | None, typer.Option(help="Folder for findings; by default a new one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print a line for each reader; exit code 1 if anything was found."""
    readers, start = only.split(","), time.monotonic()
    if unknown := set(readers) - set(READERS):
        raise typer.BadParameter(f"{', '.join(unknown)}: choose from {', '.join(READERS)}")
    kept = keep or Path(tempfile.mkdtemp(prefix="ckcv-fuzz-found-"))
    with tempfile.TemporaryDirectory(prefix="ckcv-fuzz-", dir=SCRATCH) as scratch:
        child = Child(Path(scratch), most_mib, deadline)
        tallies = {name: Tally() for name in readers}
        fuzzer = Fuzzer(child, Path(scratch), kept, tallies)
        try:
            fuzz(fuzzer, readers, seed, 60 * minutes)
        finally:
            child.stop()
    inputs, findings = (sum(getattr(t, name) for t in tallies.values()) for name in ("inputs", "findings"))
    sums = {"seconds": round(time.monotonic() - start, 1), "inputs": inputs, "findings": findings}
    peak = max(tally.peak_mib for tally in tallies.values())
    if as_json:
        by_reader = {name: asdict(tally) for name, tally in tallies.items()}
        print(json.dumps({**sums, "peak_mib": peak, "by_reader": by_reader}))
    else:
        print(f"{'reader':<10}{'inputs':>9}{'refused':>9}{'accepted':>9}{'findings':>9}{'peak MiB':>9}")
        for name, t in tallies.items():
            print(f"{name:<10}{t.inputs:9d}{t.refused:9d}{t.accepted:9d}{t.findings:9d}{t.peak_mib:9.0f}")
    if findings:
        console.print(f"kept in {kept}", highlight=False)
        raise typer.Exit(1)
    if keep is None:
        kept.rmdir()


if __name__ == "__main__":
    typer.run(main)
