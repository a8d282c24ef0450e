"""Fuzzing: a reader must read any file or refuse it with one of our errors, in one line, within limits.

Readers take turns of some seconds with nearly valid files that hypothesis makes and, at a finding, shrinks
(``fuzz_inputs``). A turn is a child process of limited memory and time, so that a crash of native code is a
finding and does not end the job. A finding is an input on which

    an error    is raised that is not a CKCVError
    a message   is empty, or has line breaks or control characters, or is very long
    a file      is left behind
    a crash     ends the child
    a hang      exceeds the deadline
    memory      of the child (about 300 MiB when new) exceeds 2 GiB

It is kept with its traceback, and its reader gets no further turn. Run folders are altered by ``hostile``.

    csv, parquet, npz, svmlight    data.read, Task.from_table, make_test_rows, and storing in a run folder
    ida                            the IDA archive, likewise
    toml, words                    a study's TOML; grids and fold numbers as given on the command line

    python -m jobs.faults.fuzz --minutes 10 --seed 0
"""

import faulthandler
import json
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any

import hypothesis
import numpy as np
import pyarrow as pa
import typer
from hypothesis import HealthCheck, Phase
from rich.console import Console

from ckcv_paper.archive import VARIABLE
from ckcv_ray import CKCVError, Study, Task
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import read_toml, run_id
from ckcv_ray.tables import read as reading
from ckcv_ray.tables.named import read
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import make_test_rows
from jobs.faults.fuzz_inputs import CLASSES, SEEN, SHAPED, Case, cases
from jobs.frame import AsJson

TURN_SECONDS = 10.0
MOST_MIB, DEADLINE = 2048, 60.0  # memory and seconds that an input may take
GUARD = 3  # times the memory that a reader may use: it gets no more
OWN_SHARE = 0.05  # of the free memory, for reading a table: as if there were little
FORK = multiprocessing.get_context("fork")  # everything that a child needs is already imported
COLUMNS = ("inputs", "refused", "accepted", "findings", "peak_mib")
LONGEST_MESSAGE = 1600
MAX_ALONE = 40  # rows of a table that are reread one by one
THIRTY = Task.of(np.arange(30.0)[:, None], np.arange(30) % 2)
SCRATCH = "/dev/shm" if os.path.isdir("/dev/shm") else None  # there, fsync costs nothing
console = Console(stderr=True)


class FaultError(Exception):
    """What a reader must not do."""


class OverError(BaseException):
    """Signal to hypothesis that the turn is over."""


# The readers, each called as by a user


def is_refused(call: Callable[[], object]) -> bool:
    """Return whether a call ends with one of the package's errors; any other error propagates.

    Raises:
        FaultError: the message is not one readable line.
    """
    try:
        call()
    except CKCVError as error:
        message = str(error)
        if not message.isprintable() or not 0 < len(message) <= LONGEST_MESSAGE:
            raise FaultError(f"message: {message[:LONGEST_MESSAGE]!r}") from error
        return True
    return False


def make_task(source: str) -> Task:
    """Read columns, and use them as learning set and as test set.

    A row alone has to become the same numbers as among the learning rows.
    """
    columns = read(source, say=str).learn
    names = tuple(columns.column_names)
    is_refused(lambda: make_test_rows(columns, known_task(names)))
    if "patient" in names:
        is_refused(lambda: Task.from_table(columns, Roles(group="patient"), source=source))
    task = Task.from_table(columns, source=source)
    make_test_rows(columns, task)
    again = np.concatenate([task.read(columns.slice(i, 1)).X for i in range(min(task.n, MAX_ALONE))])
    if not np.array_equal(task.X[:MAX_ALONE], again, equal_nan=True):
        raise FaultError(f"cells are read as {again.tolist()}, and were as {task.X.tolist()}")
    return task


def use_table(source: str) -> None:
    """Read a table, store it in a run folder, and read that, without the columns as other commands do."""
    problem = Problem.of(Study(), make_task(source))
    with tempfile.TemporaryDirectory(dir=SCRATCH) as other:
        run = RunFolder(Path(other))
        run.begin(problem)
        run.problem()


@lru_cache
def known_task(names: tuple[str, ...]) -> Task:
    """Return a valid learning set with as many of these columns as possible."""
    features = [name for name in ("x", "x0", "x1") if name in names] or ["x"]
    return Task.from_table(pa.table(dict.fromkeys(features, SEEN) | {"y": CLASSES}))


def use_study(options: dict[str, Any]) -> None:
    """Build a study from options, its run_id and a problem; write it to JSON and read it back."""
    study = Study.paper(**options)
    run_id(study, "digest")
    again = Study.from_json(json.loads(json.dumps(study.to_json(), allow_nan=False)))
    if study != again:
        raise FaultError(f"{study} was read back as {again}")
    study.differences(Study())
    Problem.of(study, THIRTY)


def is_file_refused(reader: str, file: Path) -> bool:
    """Read a file as a user would; return whether it is refused."""
    if reader == "words":
        text = file.read_bytes().decode(errors="replace")
        refused = [is_refused(partial(use_study, {name: text})) for name in ("C", "k", "report_k")]
        return any(refused)
    if reader == "toml":
        return is_refused(lambda: use_study(read_toml(file)))
    if reader == "ida":
        os.environ[VARIABLE] = str(file)
    return is_refused(lambda: use_table("ida:toy:1" if reader == "ida" else str(file)))


# Turns


class Reader:
    """A reader, counts of its inputs (in memory that its children share), and its finding.

    Args:
        name: a name in ``SHAPED``.
        scratch: folder of the input that is read, and of what a dying child wrote.
        keep: folder of findings.
    """

    def __init__(self, name: str, scratch: Path, keep: Path) -> None:
        self.name, self.kept = name, keep / name
        self.file, self.log = scratch / "input" / SHAPED[name].name, scratch / "log"
        self.counts = FORK.Array("d", len(COLUMNS))

    def take_turn(self, seed: int, seconds: float) -> None:
        """Try inputs for some seconds in a child; what ends it is a finding on the input that it left."""
        child = FORK.Process(target=self._try_inputs, args=(seed, seconds))
        child.start()
        child.join()
        if child.exitcode:
            self.keep(f"ended with {child.exitcode}\n{self.log.read_text(errors='replace')}")
        self.counts[3] = self.kept.exists()

    def keep(self, details: str) -> None:
        """Keep the input that was read as a finding, unless a smaller one is kept."""
        kept = self.kept / self.file.name
        if not kept.exists() or self.file.stat().st_size < kept.stat().st_size:
            self.kept.mkdir(exist_ok=True)
            shutil.copy(self.file, kept)
            (self.kept / "finding.txt").write_text(details, errors="replace")

    # In the child

    def _try_inputs(self, seed: int, seconds: float) -> None:
        """Try inputs for some seconds, and as long again to shrink a finding."""
        end = time.monotonic() + seconds

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=100_000,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
            print_blob=False,
            report_multiple_bugs=False,
        )
        @hypothesis.given(cases(self.name))
        def one(case: Case) -> None:
            if time.monotonic() > end + seconds * self.kept.exists():
                raise OverError
            self._read(case.content, log)

        with self.log.open("w") as log, open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 1)
            faulthandler.enable(log)
            resource.setrlimit(resource.RLIMIT_DATA, (GUARD * MOST_MIB << 20,) * 2)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            reading.OWN_SHARE = OWN_SHARE
            with suppress(Exception, OverError):  # a finding is kept where it is found
                one()
        os._exit(0)

    def _read(self, content: bytes, log: Any) -> None:
        """Read one input, and keep it if the reader does what it must not, an error that propagates."""
        shutil.rmtree(self.file.parent, ignore_errors=True)
        self.file.parent.mkdir()
        self.file.write_bytes(content)
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        faulthandler.dump_traceback_later(DEADLINE, exit=True, file=log)
        try:
            refused = is_file_refused(self.name, self.file)
            if left := sorted(set(self.file.parent.rglob("*")) - {self.file}):
                raise FaultError(f"left behind: {left}")
            lines = Path("/proc/self/status").read_text().splitlines()
            peak = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
            if peak > MOST_MIB:
                raise FaultError(f"a peak of {peak:.0f} MiB")
        except Exception:
            self.keep(traceback.format_exc())
            raise
        finally:
            faulthandler.cancel_dump_traceback_later()
            self.counts[0] += 1
        self.counts[1 if refused else 2] += 1
        self.counts[4] = max(self.counts[4], peak)


def fuzz(readers: list[Reader], seed: int, seconds: float) -> None:
    """Give readers turns until the time is up, at least one each."""
    start, turn, number = time.monotonic(), min(TURN_SECONDS, seconds / len(readers)), 0
    while number < len(readers) or time.monotonic() - start < seconds:
        reader = readers[number % len(readers)]
        if not reader.counts[3]:
            reader.take_turn(seed + number, turn)
        elif all(other.counts[3] for other in readers):
            return
        number += 1


def main(
    minutes: Annotated[float, typer.Option(min=0.0, help="Duration, in minutes.")] = 10.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the inputs.")] = 0,
    only: Annotated[str, typer.Option(help=f"Readers to try: {','.join(SHAPED)}.")] = "",
    keep: Annotated[
        Path | None, typer.Option(help="Empty folder for findings; by default a new one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print a line for each reader; exit with 1 if anything was found."""
    names = only.split(",") if only else [*SHAPED]
    if unknown := set(names) - set(SHAPED):
        raise typer.BadParameter(f"{', '.join(unknown)}: choose from {', '.join(SHAPED)}")
    kept = keep or Path(tempfile.mkdtemp(prefix="ckcv-fuzz-found-"))
    with tempfile.TemporaryDirectory(prefix="ckcv-fuzz-", dir=SCRATCH) as scratch:
        readers = [Reader(name, Path(scratch), kept) for name in names]
        fuzz(readers, seed, 60 * minutes)
    rows = {one.name: dict(zip(COLUMNS, map(round, one.counts[:]), strict=True)) for one in readers}
    findings = sum(row["findings"] for row in rows.values())
    if as_json:
        print(json.dumps({"findings": findings, "by_reader": rows}))
    else:
        print(f"{'reader':<10}" + "".join(f"{name:>9}" for name in ("inputs", *COLUMNS[1:4], "peak MiB")))
        for name, row in rows.items():
            print(f"{name:<10}" + "".join(f"{count:9d}" for count in row.values()))
    if findings:
        console.print(f"findings kept in {kept}", highlight=False)
        raise typer.Exit(1)
    if keep is None:
        kept.rmdir()


if __name__ == "__main__":
    typer.run(main)
