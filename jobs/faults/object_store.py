"""Fault injection on an object store: kills of the run and of the server, races of writers, and the time.

    kills    a small study with its folder on the store; at a random moment the run or a part of the
             server gets SIGKILL (the server is started again), or the run is stopped for longer than a writer
             may be silent. The run is repeated until it succeeds, and its results are compared in every byte
             with those of a run on a disk.
    races    two processes begin to write to one folder at the same moment, every second time to one whose
             writer has died without a word: one of them may write, and what a stale one writes is refused.
    ratio    wall time of the default study of banana on the store, over that on a disk

The server is moto, in memory (jobs/nightly --tests installs it in build/moto, or CKCV_MOTO names another), or
Ceph's gateway with a monitor and an OSD (Debian's packages radosgw, ceph-mon, ceph-osd and ceph-common). It
listens on loopback, and is ended at the end, by its process ids.

    python jobs/faults/object_store.py --kills 200 --races 1000 --ratio 3 --server ceph
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import hashlib
import json
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Annotated, Any

import typer

from ckcv_ray import Execution, Study, read_task
from ckcv_ray.errors import CKCVError, RunError, StoreError
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.storage.object_files import ObjectFiles
from ckcv_ray.storage.places import open_files
from ckcv_ray.tables.task import Task
from jobs.faults.servers import BUCKET, DOWN, SERVERS, Moto, Server, serve

STUDY = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.01, 0.1), k=(3, 4, 5), n_splits=12, scale="none")
SOURCE, BANANA = "twonorm:120:1", "ida:banana:1"
SERIAL = Execution("serial")
LEASE, RACE_LEASE = "1.0", "0.3"
FLUSH = 0.05  # seconds between two parts of the log: a short run is to have several
SILENT = 1.5  # seconds for which a run is stopped: longer than its time to live
TRIES, DEADLINE = 12, 240.0
FORK = multiprocessing.get_context(
    "fork"
)  # before the client is used in this process: children begin at once


def fork(function: Callable[..., Any], *arguments: Any) -> tuple[Any, Connection]:
    """Call a function in a child process; return the process, and where what it returns arrives."""
    receiver, sender = FORK.Pipe(duplex=False)

    def call() -> None:
        try:
            sender.send(function(*arguments))
        except CKCVError as error:
            sender.send(error)

    process = FORK.Process(target=call)
    process.start()
    sender.close()
    return process, receiver


def ask(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns in a child process: this one never uses the client, and so may fork."""
    process, receiver = fork(function, *arguments)
    try:
        return receiver.recv()
    except EOFError:
        return None  # it was killed
    finally:
        process.join()


def compute(study: Study, task: Task, address: str, flush: float) -> str:
    """Run a study, or go on with it, and return the digest of its results."""
    from ckcv_ray.engine import recorder

    recorder.FLUSH_SECONDS, recorder.FLUSH_SHARE = flush, 0.0
    run_job(Job(study, task, address), SERIAL)
    return digest(address)


def digest(address: str) -> str:
    """Return the digest of all files of a run that may not depend on where or how it was made."""
    files = open_files(address)
    names = [name for name in files.tree() if not name.endswith(("execution.json", "manifest.json"))]
    lines = [f"{name} {files.sha256(name)}" for name in names if "log/" not in name]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def disturb(process: Any, server: Server, fault: str, rng: random.Random) -> None:
    """Inject one fault."""
    if fault == "driver":
        process.kill()
    elif fault == "silence":
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(SILENT)
            os.kill(process.pid, signal.SIGCONT)
    else:
        server.kill(fault)
        time.sleep(rng.uniform(*DOWN))
        server.start(fault)


def run_kills(server: Server, kills: int, folder: Path, rng: random.Random) -> dict[str, Any]:
    """Run the study with one fault after another; return the counts."""
    task, _ = read_task(SOURCE)
    started = time.monotonic()
    expected = compute(STUDY, task, str(folder / "disk"), FLUSH)
    whole = f"s3://{BUCKET}/runs/whole"
    assert ask(compute, STUDY, task, whole, FLUSH) == expected
    started = time.monotonic()
    ask(compute, STUDY, task, f"{whole}-again", FLUSH)
    span = time.monotonic() - started
    faults = ["driver", "driver", "silence", *([] if isinstance(server, Moto) else server.processes)]
    counts, ends, wrong = Counter[str](), Counter[str](), list[str]()
    for number in range(kills):
        address, fault = f"s3://{BUCKET}/runs/{number}", rng.choice(faults)
        process, receiver = fork(compute, STUDY, task, address, FLUSH)
        time.sleep(rng.uniform(0.0, span))
        disturb(process, server, fault, rng)
        counts[fault] += 1
        answer, tries = None, 0
        while True:
            with suppress(EOFError):
                answer = receiver.recv()
            process.join()
            if isinstance(answer, str) or tries == TRIES:
                break
            ends["said" if isinstance(answer, CKCVError) else "killed"] += 1
            answer, tries = None, tries + 1
            process, receiver = fork(compute, STUDY, task, address, FLUSH)
        ends["by itself" if not tries else "again"] += 1
        if answer != expected:
            wrong.append(f"{address}: {answer}")
        state = "the same" if answer == expected else f"DIFFERS: {answer}"
        print(f"{number + 1}/{kills} {fault}: {tries} more, {state}", file=sys.stderr, flush=True)
    return {"kills": kills, "faults": counts, "ends": ends, "mismatches": wrong, "seconds_of_a_run": span}


def race(barrier: Any, races: int, who: bytes) -> tuple[list[str], list[str]]:
    """Begin to write to one folder after another; return those written to, and those written to once more.

    The second time both processes have begun. One that was not given the processor for the whole time that a
    writer may be silent was overtaken by then, and may not write.
    """
    os.environ["CKCV_LEASE_SECONDS"] = RACE_LEASE
    begun, kept = list[str](), list[str]()
    for number in range(races):
        files = open_files(f"s3://{BUCKET}/races/{number}")
        barrier.wait(DEADLINE)
        with suppress(StoreError):
            files.lock.acquire()
            files.write("who", who)
            begun.append(str(number))
        barrier.wait(DEADLINE)
        with suppress(RunError):
            files.write("who", who)
            kept.append(str(number))
        barrier.wait(DEADLINE)
        files.lock.release()
    return begun, kept


def leave_writers(races: int) -> bool:
    """Let a writer of every second folder die without a word."""
    os.environ["CKCV_LEASE_SECONDS"] = RACE_LEASE
    for number in range(1, races, 2):
        files = open_files(f"s3://{BUCKET}/races/{number}")
        files.lock.acquire()
        files.write("who", b"dead")
        assert isinstance(files, ObjectFiles)
        files.lease._stopped.set()
    return True


def check_stale(races: int) -> list[str]:
    """Return what is wrong after races: who is in a folder, and whether a dead writer can still write."""
    wrong = []
    for number in range(races):
        address = f"s3://{BUCKET}/races/{number}"
        before = open_files(address).read("who", 99)
        if number % 2:  # those that had a writer before
            stale = open_files(address)
            assert isinstance(stale, ObjectFiles)
            stale.journal.refresh()
            stale.journal.number -= 1  # as it knew it before the last writer came
            stale.lease.epoch, stale.lease._renewed = 1, float("inf")
            try:
                stale.write("who", b"stale")
                wrong.append(f"{address}: a stale writer wrote")
            except CKCVError:
                pass
        if open_files(address).read("who", 99) != before or before not in (b"first", b"second"):
            wrong.append(f"{address}: {before!r}")
    return wrong


def run_races(races: int) -> dict[str, Any]:
    """Let two processes race; return how many folders had one writer, two at a time, two in turn, or none."""
    barrier = FORK.Barrier(2)
    ask(leave_writers, races)
    racers = [fork(race, barrier, races, who) for who in (b"first", b"second")]
    begun, kept = zip(*(receiver.recv() for _, receiver in racers), strict=True)
    for process, _ in racers:
        process.join()
    writers, begun_by = (
        Counter(number for numbers in found for number in numbers) for found in (kept, begun)
    )
    wrong = ask(check_stale, races)
    return {
        "races": races,
        "won": [len(numbers) for numbers in kept],
        "both": [number for number, count in writers.items() if count > 1],
        "none": races - len(writers),
        "overtaken": [number for number, count in begun_by.items() if count > 1],
        "wrong": wrong,
    }


def measure(address: str, task: Task) -> float:
    """Return the seconds of the default study."""
    start = time.perf_counter()
    run_job(Job(Study.paper(scale="none"), task, address), SERIAL)
    return time.perf_counter() - start


def run_ratio(folder: Path, rounds: int) -> dict[str, Any]:
    """Compare the wall time of the default study of banana on the store with that on a disk, alternately."""
    task, _ = read_task(BANANA)
    disk, store = [], []
    for number in range(rounds):
        disk.append(ask(measure, str(folder / f"banana{number}"), task))
        store.append(ask(measure, f"s3://{BUCKET}/banana/{number}", task))
    return {"disk": disk, "store": store, "ratio": min(store) / min(disk)}


def main(
    kills: Annotated[int, typer.Option(min=0, help="Runs that are disturbed.")] = 20,
    races: Annotated[int, typer.Option(min=0, help="Races of two writers.")] = 100,
    ratio: Annotated[int, typer.Option(min=0, help="Runs of the default study of banana to time.")] = 0,
    server: Annotated[str, typer.Option(help=f"Server: {' or '.join(SERVERS)}.")] = "moto",
    seed: Annotated[int, typer.Option(help="Of what is killed, and when.")] = 0,
) -> None:
    """Disturb runs on an object store; print the counts as JSON, and end with code 1 if anything differs."""
    os.environ["CKCV_LEASE_SECONDS"] = LEASE
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))  # the server is ended then, too
    found: dict[str, Any] = {"server": server}
    with serve(server, ask) as opened:
        if kills:
            found |= run_kills(opened, kills, opened.folder, random.Random(seed))
        if races:
            found |= run_races(races)
        if ratio:
            found |= run_ratio(opened.folder, ratio)
    print(json.dumps(found, indent=1))
    if found.get("mismatches") or found.get("both") or found.get("none") or found.get("wrong"):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
