"""Whatever a file holds, its reader reads it or refuses it: with an error of ours, in one line, in bounds.

Readers take turns of some seconds, each with a file that means harm (``jobs/faults/fuzz_hostile.py``) and then with
files that are nearly right (``jobs/faults/fuzz_inputs.py``), made by hypothesis, which also shrinks what was found.
They are read in a child process, so that a crash of native code is a finding and not the end of the job. The
parent watches the child's memory and clock. A finding is an input on which

    an error    is raised that is not of the CKCVError tree
    a message   is empty, or has line breaks or control characters, or is very long
    a file      is left behind
    a crash     ends the child
    a hang      lasts beyond the deadline
    memory      of the child, of which a fresh one has about 300 MiB, goes beyond --most-mib

Findings are one where reader, kind and innermost frame are the same. Each is kept with its files; for those
of a run folder, the whole folder.

    csv, parquet, npz, svmlight    data.read, then learning_table, rows_to_test, and the way into a run folder
    ida, mat                       the IDA archive in its two forms, likewise
    toml, words                    a study's TOML; grids and folds as the command line has them
    run                            status, verify, predict and report of a finished run, harmed

    python jobs/faults/fuzz.py --minutes 10 --seed 0
"""

import faulthandler
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import hypothesis
import numpy as np
import pyarrow as pa
import typer
from hypothesis import HealthCheck, Phase
from hypothesis.errors import Flaky
from hypothesis.strategies import SearchStrategy
from pyarrow import parquet
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ckcv_ray import study
from ckcv_ray.data import task as data
from ckcv_ray.errors import CKCVError, RunError
from ckcv_ray.reports import page as report
from ckcv_ray.runs import load as archive
from ckcv_ray.runs import run as driver
from ckcv_ray.runs import verify
from ckcv_ray.storage import folder as store
from jobs.faults.fuzz_hostile import hostile
from jobs.faults.fuzz_inputs import CLASSES, SEEN, SHAPED, Case, cases, run_case

PACKAGE = str(Path(data.__file__).parent)
READERS = (*SHAPED, "run")
TURN_SECONDS = 10.0
POLL_SECONDS = 0.02
LONGEST_MESSAGE = 1600
GUARD = 3
SCRATCH = "/dev/shm" if os.path.isdir("/dev/shm") else None  # where fsync is free
STUDY: dict[str, Any] = {"C": (0.1, 1.0), "gamma": (0.1, 1.0), "k": (3, 4), "n_splits": 3}
RUNS: dict[str, dict[str, Any]] = {
    "paper": {"report_k": (3,)},
    "holdout": {"protocol": "holdout", "claims": ("random", "vote", "member:0")},
    "nested": {"protocol": "nested", "outer_splits": 2},
    "rotation": {"resampling": "rotation", "n_splits": study.N_SPLITS},
}
console = Console(stderr=True)


class Fault(NamedTuple):
    """What was wrong with one call: its kind, the innermost frame, and all there is to read."""

    kind: str
    frame: str
    told: str


class FoundError(Exception):
    """Tells hypothesis to look for a smaller input."""


class OverError(BaseException):
    """Tells hypothesis that the turn is over."""


class Calls:
    """Calls made on one input: how many were refused, and what was wrong."""

    def __init__(self) -> None:
        self.refused, self.faults = 0, list[Fault]()

    @contextmanager
    def allowed(self, counted: bool = True) -> Iterator[None]:
        """Allow the errors of ours, and note all others."""
        try:
            yield
        except CKCVError as error:
            self.refused += counted
            self.judge(str(error), error, lines=isinstance(error, RunError))
        except Exception as error:
            self.faults.append(Fault(type(error).__name__, innermost(error), full(error)))

    def judge(self, message: str, error: BaseException | None = None, lines: bool = False) -> None:
        """Note a message that a terminal cannot show as one line."""
        if message and (lines or message.isprintable()) and len(message) <= LONGEST_MESSAGE:
            return
        frame, told = (innermost(error), full(error)) if error else ("verify", "")
        self.faults.append(Fault("message", frame, f"{message[:LONGEST_MESSAGE]!r}\n{told[-20_000:]}"))


def innermost(error: BaseException) -> str:
    """The last frame, and the last one in this package."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(PACKAGE)]
    shown = (f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in (frames[-1], *ours[-1:]))
    return " < ".join(dict.fromkeys(shown))


def full(error: BaseException) -> str:
    """The traceback, less the middle of it where that is long."""
    text = "".join(traceback.format_exception(error))
    return text if len(text) < 20_000 else f"{text[:10_000]}\n...\n{text[-10_000:]}"


def read_table(calls: Calls, folder: Path, source: str, ida_file: Path | None = None) -> None:
    """Read columns; learn from them, test on them, and keep them in a run folder."""
    with calls.allowed():
        columns = data.read(source, ida_file).learn
        with calls.allowed(counted=False):
            data.rows_to_test(columns, known_table(tuple(columns.column_names)))
        table = data.learning_table(columns, source=source)
        data.rows_to_test(columns, table)
        with tempfile.TemporaryDirectory(dir=SCRATCH) as other:
            run = store.RunFolder(Path(other))
            run.begin(study.Study(), table, "fuzz")
            run.table(store.Identity(study.Study(), table.digest, "fuzz"))


@lru_cache
def known_table(names: tuple[str, ...]) -> data.Table:
    """A sound learning set with as many as may be of these columns."""
    features = [name for name in ("x", "x0", "x1") if name in names] or ["x"]
    return data.learning_table(pa.table(dict.fromkeys(features, SEEN) | {"y": CLASSES}))


def read_file(calls: Calls, folder: Path) -> None:
    """A table in a file."""
    read_table(calls, folder, str(next(folder.iterdir())))


def read_ida(calls: Calls, folder: Path) -> None:
    """A named set of the IDA archive."""
    read_table(calls, folder, "ida:toy:1", next(folder.iterdir()))


def read_study(calls: Calls, folder: Path) -> None:
    """A study from TOML, and all that is asked of it before a run."""
    with calls.allowed():
        use_study(study.read_toml(folder / "study.toml"))


def use_study(values: dict[str, Any]) -> None:
    """From fields to the run_id."""
    asked = study.Study.from_json(values)
    study.run_id(asked, "digest")
    again = study.Study.from_json(json.loads(json.dumps(asked.to_json(), allow_nan=False)))
    if asked != again:
        raise AssertionError(f"{asked} was read back as {again}")
    asked.differences(study.Study())
    asked.for_rows(30).sizes(30)


def read_words(calls: Calls, folder: Path) -> None:
    """A grid and numbers of folds, as the command line takes them."""
    text = (folder / "words").read_bytes().decode(errors="replace")
    for name, parse in (("C", study.parse_grid), ("k", study.parse_folds), ("report_k", study.parse_folds)):
        with calls.allowed():
            use_study({name: parse(text, name)})


def read_run(calls: Calls, folder: Path) -> None:
    """status, predict, verify and report."""
    with calls.allowed():
        archive.replay(folder).progress()
        archive.environment_changes(folder)
    with calls.allowed():
        result = archive.load_run(folder)
        json.dumps(result.to_json(), allow_nan=False)
        result.summary()
        rows = np.zeros((3, len(result.table.features)))
        for vote in (False, True):
            result.predict(rows, vote=vote)
            result.claim_for(result.rule(vote=vote))
        if result.nested is not None:
            result.predict(rows, nested=True)
    with calls.allowed():
        for difference in verify.verify(folder).differences:
            calls.judge(difference)
    with calls.allowed():
        report.page(folder)


CALLS: dict[str, Callable[[Calls, Path], None]] = {
    **dict.fromkeys(("csv", "parquet", "npz", "svmlight"), read_file),
    **dict.fromkeys(("ida", "mat"), read_ida),
    "toml": read_study,
    "words": read_words,
    "run": read_run,
}


def seal(folder: Path) -> None:
    """Make digests and run_id agree with the files again, as far as these can be read."""
    for run in (*folder.glob("nested/*"), folder):
        with suppress(Exception):
            content = json.loads((run / "study.json").read_bytes())
            columns = parquet.read_table(run / "data.parquet")
            target = columns.schema.metadata[b"target"].decode()
            content["data"] = data.learning_table(columns, target).digest
            content["run_id"] = study.run_id(study.Study.from_json(content["study"]), content["data"])
            (run / "study.json").write_text(json.dumps(content))
        for file in run.rglob("*.parquet"):
            with suppress(Exception):
                table = parquet.read_table(file)
                metadata = {**table.schema.metadata, b"run_id": content["run_id"].encode()}
                table = table.replace_schema_metadata(metadata)
                parquet.write_table(table, file, compression="zstd", write_page_checksum=True)
        names = store.RunFolder(run).files()
        digests = {name: sha256((run / name).read_bytes()).hexdigest() for name in names}
        (run / "manifest.json").write_text(json.dumps(digests, indent=2) + "\n")


def serve(pipe: Any, told: Path, most_mib: int) -> None:
    """The child: read what the parent says, tell what came of it, until the pipe is closed."""
    with told.open("w") as log, open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(log.fileno(), 2)
        faulthandler.enable(log)
        faulthandler.register(signal.SIGUSR1, log)
        resource.setrlimit(resource.RLIMIT_DATA, (GUARD * most_mib << 20,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(EOFError):
            while True:
                reader, folder, sealed = pipe.recv()
                if sealed:
                    seal(folder)
                before, calls = set(folder.rglob("*")), Calls()
                CALLS[reader](calls, folder)
                if left := sorted(str(file.relative_to(folder)) for file in set(folder.rglob("*")) - before):
                    calls.faults.append(Fault("left behind", left[0], "\n".join(left)))
                pipe.send((calls.refused, calls.faults))
    os._exit(0)


class Child:
    """A process that reads inputs, and is made anew once it is gone or has grown."""

    def __init__(self, scratch: Path, most_mib: int, deadline: float) -> None:
        self.told, self.most_mib, self.deadline = scratch / "told", most_mib, deadline
        self.start()

    def start(self) -> None:
        """Fork: all that it needs is imported by then."""
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, self.told, self.most_mib), daemon=True)
        self.process.start()
        other.close()

    def stop(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.join()
        self.pipe.close()

    def read(self, reader: str, folder: Path, sealed: bool) -> tuple[int, list[Fault], float]:
        """How many calls were refused, what was wrong, and the peak in MiB."""
        status = Path(f"/proc/{self.process.pid}")
        with suppress(OSError):
            (status / "clear_refs").write_text("5")  # the peak begins anew
        end, refused, faults = time.monotonic() + self.deadline, 0, list[Fault]()
        self.pipe.send((reader, folder, sealed))
        while not self.pipe.poll(POLL_SECONDS):
            if (over := self.peak() > self.most_mib) or time.monotonic() > end:
                peak = self.peak()
                return 0, [self.interrupted("memory" if over else "hang")], peak
        peak = self.peak()
        try:
            refused, faults = self.pipe.recv()
        except EOFError:
            self.process.join()
            return 0, [self.interrupted(f"crash {-(self.process.exitcode or 0)}")], peak
        if peak > self.most_mib:
            faults.append(Fault("memory", "", f"a peak of {peak:.0f} MiB, for a moment"))
        if peak > self.most_mib / 2:
            self.stop()
            self.start()
        return refused, faults, peak

    def peak(self) -> float:
        """Largest resident size since the input came, in MiB: ru_maxrss without what a fork passes on."""
        with suppress(OSError, StopIteration):
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
            return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
        return 0.0

    def interrupted(self, kind: str) -> Fault:
        """Where it is, or was; and a new child in its place."""
        with suppress(OSError):
            os.kill(self.process.pid or 0, signal.SIGUSR1)
            self.process.join(0.5)
        told = self.told.read_text(errors="replace")
        frames = [line.strip() for line in told.splitlines() if line.startswith("  File ")]
        ours = [frame for frame in frames if PACKAGE in frame]
        shown = (frame.rpartition("/")[2].replace('"', "") for frame in (*frames[:1], *ours[:1]))
        self.stop()
        self.start()
        return Fault(kind, " < ".join(dict.fromkeys(shown)), told)


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
    """Small runs of every protocol, and their files."""
    y = np.arange(24) % 2
    inputs = np.random.default_rng(0).normal(size=(24, 2)) + y[:, None]
    for name, fields in RUNS.items():
        asked = study.Study(**STUDY | fields)
        driver.run(asked, inputs, np.array(["no", "yes"])[y], folder / name, study.Execution("serial"))
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
