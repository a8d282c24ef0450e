"""Fault injection: a run disturbed at a random moment must give the same answer, byte for byte.

Each round runs one study with ``ckcv run`` on a separate Ray, injects one kind of fault at a random moment,
repeats the command until it succeeds, and compares candidates, models and certificate with those of an
undisturbed serial run. Consecutive rounds cycle through the kinds:

    worker      SIGKILL to a process that evaluates a batch
    node        a node of a cluster of three is removed without warning
    recorder    SIGKILL to the actor that adds up and writes
    driver      SIGKILL to the driver; the command is run again
    everything  SIGKILL to all processes of the run, the raylet included
    memory      memory runs short, and Ray's monitor kills a task
    files       any file of the folder is truncated, deleted, or has one bit flipped, between two runs, the
                first of them either finished or killed
    disk        the disk is full (a small tmpfs; requires the right to mount one)
    pair        two drivers run the study in one folder at the same time

With ``--store`` the folder is on an object store, moto in memory (``jobs/faults/servers.py``), and all kinds
but the full disk are injected.

    python -m jobs.faults.chaos --rounds 16 --seed 1
    python -m jobs.faults.chaos --rounds 24 --store
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from ckcv_ray.storage.files import LOCK, open_files
from jobs.faults.servers import copy_objects, serve

ROOT = Path(__file__).resolve().parents[2]
RUN = [sys.executable, "-m", "ckcv_ray", "run"]
STUDY = ["twonorm:240:1", "--C", "log:-2:4:9", "--gamma", "log:-4:1:9", "--k", "3:12"]
FILES = ("study.json", "data.parquet", "candidates.parquet", "certificate.json", "ensemble/*")
MARK, BUCKET = "CKCV_CHAOS", "faults"
DEADLINE = 240.0
LINGER = 90.0
TRIES = 6
ENOUGH = 3  # rounds of one kind in which a fault can be expected
SMALL_DISK, LARGE_DISK = "200k", "64m"
RAY_BYTES, HOG_BYTES = 1 << 30, 3 << 28  # memory for Ray; small, since a virtual machine provides it slowly
KILLED = "Selected to kill:"  # in a raylet's log, for each process that its memory monitor kills
console = Console(stderr=True)


class HangError(Exception):
    """A round did not end by its deadline."""


class Round:
    """One run of the study, and the faults injected into it.

    Args:
        folder: an empty folder for the run and its temporary files.
        rng: chooses moments and targets.
        mark: value of an environment variable that identifies the processes of this round.
        options: options of the study besides those of all rounds.
        span: duration of an undisturbed run, in seconds.
        store: whether the run is on the object store named by the environment.
    """

    def __init__(
        self,
        folder: Path,
        rng: np.random.Generator,
        mark: str,
        options: list[str],
        span: float,
        store: bool = False,
    ) -> None:
        self.rng, self.mark, self.span = rng, mark, span
        self.study = [*STUDY, *options]
        self.base, self.out = folder, folder / "run"
        self.address = f"s3://{BUCKET}/{mark}" if store else ""
        self.deadline, self.faults = time.monotonic() + DEADLINE, 0
        self.options: list[str] = ["--workers", "2"]
        self.environment = {**os.environ, MARK: mark, "RAY_TMPDIR": str(folder)}

    def start(self) -> subprocess.Popen[bytes]:
        """Start the run, or resume it."""
        where = ["--backend", "ray", "--out", self.address or str(self.out)]
        return subprocess.Popen(
            [*RUN, *self.study, *where, *self.options],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=(self.base / "stderr").open("ab"),
            start_new_session=True,
        )

    def wait(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for the driver; return its exit code.

        Raises:
            HangError: the driver did not end in time.
        """
        try:
            return process.wait(timeout=max(1.0, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            kill(ours(self.mark))
            raise HangError from None

    def until(self, condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> bool:
        """Wait until a condition holds; return False if the run ended first."""
        while not condition():
            if process.poll() is not None:
                return False
            if time.monotonic() > self.deadline:
                kill(ours(self.mark))
                raise HangError
            time.sleep(0.02)
        return True

    def underway(self, process: subprocess.Popen[bytes], share: float = 1.0) -> bool:
        """Wait for a random moment in the next share of the run; return False if it ended first."""
        started = self.until(lambda: self.count("study.json") > 0, process)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=float(self.rng.uniform(0.0, share * self.span)))
        return started and process.poll() is None

    def count(self, prefix: str) -> int:
        """Count the files of the run whose names start with ``prefix``."""
        return len(open_files(self.address or str(self.out)).list(prefix))

    def choose_file(self) -> tuple[bytes, Callable[[bytes], Any], Callable[[], Any]]:
        """Choose a file, or its object on the store; return its content, and what writes and deletes it."""
        if not self.address:
            found = sorted(file for file in self.out.rglob("[!.]*") if file.is_file())
            file = found[int(self.rng.integers(len(found)))]
            return file.read_bytes(), file.write_bytes, file.unlink
        files = open_files(self.address)
        names = sorted(name for name in files.walk() if name != LOCK)
        name = names[int(self.rng.integers(len(names)))]
        return files.read(name, 1 << 30), partial(files.write, name), partial(files.delete, name)

    def fetch(self) -> None:
        """Copy the run from the store to the disk, to compare it there."""
        if self.address:
            copy_objects(self.address, self.out)

    def finish(self) -> None:
        """Repeat the command until it succeeds.

        Raises:
            HangError: it did not succeed in ``TRIES`` attempts.
        """
        for _ in range(TRIES):
            if self.wait(self.start()) == 0:
                return
        raise HangError


def ours(mark: str, title: bytes = b"") -> list[int]:
    """List the processes that carry this mark and whose title starts with ``title``."""
    marked = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with suppress(OSError):
                variables = (folder / "environ").read_bytes().split(b"\0")
                named = (folder / "cmdline").read_bytes().startswith(title)
                if named and f"{MARK}={mark}".encode() in variables:
                    marked.append(int(folder.name))
    return marked


def kill(processes: list[int]) -> int:
    """Send SIGKILL to all at once; return how many it reached."""
    reached = 0
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
            reached += 1
    return reached


def titled(title: bytes) -> Callable[[Round], None]:
    """Return a fault that kills a random process with this title, twice."""

    def fault(one: Round) -> None:
        process, running = one.start(), list[int]()

        def any_running() -> bool:
            running[:] = ours(one.mark, title)
            return bool(running)

        for _ in range(2):
            if one.underway(process, 0.5) and one.until(any_running, process):
                one.faults += kill([int(one.rng.choice(running))])
        if one.wait(process) != 0:
            one.finish()

    return fault


def driver(one: Round) -> None:
    """Kill the driver; run the command again, and kill its driver too."""
    for _ in range(2):
        process = one.start()
        if one.underway(process):
            one.faults += kill([process.pid])
        process.wait()
    one.finish()


def everything(one: Round) -> None:
    """Kill all processes of the run at once."""
    process = one.start()
    if one.underway(process):
        one.faults += kill(ours(one.mark))
    process.wait()
    one.finish()


def node(one: Round) -> None:
    """Remove one node of three."""
    from ray.cluster_utils import Cluster

    marks = {name: one.environment[name] for name in (MARK, "RAY_TMPDIR")}
    os.environ.update(marks)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        others = [cluster.add_node(num_cpus=1) for _ in range(2)]
        one.options = ["--address", cluster.address]
        process = one.start()
        if one.underway(process):
            cluster.remove_node(others[int(one.rng.integers(2))], allow_graceful=False)
            one.faults += 1
        if one.wait(process) != 0:
            one.finish()
    finally:
        cluster.shutdown()
        for name in marks:
            del os.environ[name]


def memory(one: Round) -> None:
    """Exhaust memory for a few seconds; it suffices again when the command is repeated."""
    total, free = (meminfo(name) for name in ("MemTotal", "MemAvailable"))
    plenty = one.environment
    one.environment = plenty | {
        "RAY_memory_usage_threshold": f"{(total - free + RAY_BYTES) / total:.4f}",
        "RAY_memory_monitor_refresh_ms": "100",
    }
    process = one.start()
    if one.underway(process, 0.5):
        hog = np.ones(HOG_BYTES, np.uint8)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=3.0)
        del hog
    code, one.environment = one.wait(process), plenty
    logs = one.base.glob("ray/session_2*/logs/raylet.out")
    one.faults += sum(log.read_text(errors="replace").count(KILLED) for log in logs)
    if code != 0:
        one.finish()


def meminfo(name: str) -> int:
    """Read a figure of /proc/meminfo, in bytes."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


def files(one: Round) -> None:
    """Damage a file between two runs."""
    if one.rng.random() < 0.5:
        one.finish()
    else:
        process = one.start()
        one.until(lambda: one.count("log/part-") > 1, process)
        kill(ours(one.mark))
        process.wait()
    damage(*one.choose_file(), one.rng)
    one.faults += 1
    one.finish()


def damage(
    content: bytes, write: Callable[[bytes], Any], delete: Callable[[], Any], rng: np.random.Generator
) -> None:
    """Delete, truncate, or flip one bit of something."""
    at, how = int(rng.integers(len(content))), int(rng.integers(3))
    if how == 0:
        delete()
    elif how == 1:
        write(content[:at])
    else:
        write(content[:at] + bytes([content[at] ^ 1 << int(rng.integers(8))]) + content[at + 1 :])


def pair(one: Round) -> None:
    """Let two drivers compute in one folder at the same time; on a disk the lock refuses one of them."""
    both = [one.start() for _ in range(2)]
    one.faults += 1
    codes = [one.wait(process) for process in both]
    if any(codes):
        one.finish()


def disk(one: Round) -> None:
    """Run on a disk that fills up; then enlarge it and repeat the command."""
    one.out.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tmpfs", one.out], check=True)
    try:
        one.out = one.out / "inside"
        code = one.wait(one.start())
        if code not in (0, 1, 2):
            raise RuntimeError(f"a full disk ended the run with exit code {code}")
        one.faults += code == 1
        subprocess.run(["mount", "-o", f"remount,size={LARGE_DISK}", one.out.parent], check=True)
        one.finish()
        subprocess.run(["cp", "-r", one.out, one.base / "copy"], check=True)
        one.out = one.base / "copy"
    finally:
        subprocess.run(["umount", one.base / "run"], check=True)


KINDS: dict[str, Callable[[Round], None]] = {
    "worker": titled(b"ray::_evaluate"),
    "node": node,
    "recorder": titled(b"ray::RemoteRecorder"),
    "driver": driver,
    "everything": everything,
    "memory": memory,
    "files": files,
    "disk": disk,
    "pair": pair,
}


def until_gone(mark: str, seconds: float = LINGER) -> list[int]:
    """Wait for the processes of a round, Ray's included, to end; return those left."""
    end = time.monotonic() + seconds
    while (left := ours(mark)) and time.monotonic() < end:
        time.sleep(0.2)
    return left


def differing_files(out: Path, reference: Path) -> list[str]:
    """List the files that differ from the undisturbed run's, or are missing."""

    def contents(folder: Path) -> dict[str, bytes]:
        files = [file for name in FILES for file in folder.glob(name)]
        return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}

    mine, theirs = contents(out), contents(reference)
    return sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))


@contextmanager
def undisturbed(options: list[str]) -> Iterator[tuple[Path, Path, float]]:
    """Yield a working folder, the serial run to compare with, and the duration of a run on Ray."""
    with tempfile.TemporaryDirectory(prefix="ckcv-chaos-") as folder:
        reference, timed = Path(folder) / "reference", Path(folder) / "timed"
        timed.mkdir()
        one = Round(timed, np.random.default_rng(), timed.name, options, 0.0)
        command = [*RUN, *one.study, "--backend", "serial", "--out", str(reference)]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        one.finish()
        started, ended = ((timed / "run" / name).stat().st_mtime for name in ("study.json", "manifest.json"))
        yield Path(folder), reference, ended - started


def play(kind: str, one: Round, reference: Path) -> dict[str, Any]:
    """Run one round; return its outcome."""
    start = time.monotonic()
    hang = False
    try:
        KINDS[kind](one)
    except HangError:
        hang = True
    one.fetch()
    differing = [] if hang else differing_files(one.out, reference)
    temporary = [str(file) for name in (".*.tmp", ".lock") for file in one.base.rglob(name)]
    outcome = {"kind": kind, "faults": one.faults, "hang": hang, "differing": differing}
    return outcome | {"temporary": temporary, "seconds": time.monotonic() - start, "mark": one.mark}


def main(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; they cycle through the kinds.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Seed of moments and targets.")] = 0,
    kinds: Annotated[str, typer.Option(help="Kinds of faults to use: a,b. [default: all]")] = "",
    splits: Annotated[int, typer.Option(min=1, help="Splits of the study; fewer make shorter rounds.")] = 40,
    store: Annotated[bool, typer.Option("--store", help="Keep the folder on an object store.")] = False,
) -> None:
    """Print one line for each round, and totals; exit with 1 on any mismatch, hang or leftover.

    Also exit with 1 if three rounds or more of one kind injected nothing: then nothing was tried.
    """
    every = [kind for kind in KINDS if not (store and kind == "disk")]
    listed, options = kinds.split(",") if kinds else every, ["--exhaustive", "--n-splits", str(splits)]
    outcomes: list[dict[str, Any]] = []
    with ExitStack() as stack:
        folder, reference, span = stack.enter_context(undisturbed(options))
        if store:
            os.environ.update(stack.enter_context(serve(BUCKET)))
        for i, kind in zip(range(rounds), cycle(listed), strict=False):
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(i,)))
            base = folder / f"{seed}-{i}-{os.getpid()}"
            base.mkdir()
            one = play(kind, Round(base, rng, base.name, options, span, store), reference)
            outcomes.append(one)
            result = "hang" if one["hang"] else ", ".join(one["differing"]) or "identical"
            line = f"round {i}: {one['kind']:<11}{one['faults']:3d} faults {one['seconds']:6.1f} s  {result}"
            console.print(line, highlight=False)
        left = sum(len(until_gone(one["mark"])) for one in outcomes)
    leftovers = left + sum(len(one["temporary"]) for one in outcomes)
    mismatches, hangs = (sum(bool(one[name]) for one in outcomes) for name in ("differing", "hang"))
    by_kind = Counter(one["kind"] for one in outcomes)
    tried = {one["kind"] for one in outcomes if one["faults"]}
    untried = [kind for kind, count in by_kind.items() if count >= ENOUGH and kind not in tried]
    for kind, count in by_kind.items():
        same_kind = [one for one in outcomes if one["kind"] == kind]
        seconds = np.median([one["seconds"] for one in same_kind])
        faults = sum(one["faults"] for one in same_kind)
        print(f"{kind:<11}{count:4d} rounds {faults:5d} faults  {seconds:6.1f} s each")
    print(f"{rounds} rounds, {mismatches} mismatches, {hangs} hangs, {leftovers} leftovers")
    for kind in untried:
        print(f"{kind}: no fault in {by_kind[kind]} rounds, so that it was not tried")
    if mismatches or hangs or leftovers or untried:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
