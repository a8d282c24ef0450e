"""Fault injection on an object store: kills of the run and of the server, two runs at once, and the time.

    kills    a small study with its folder on the store; at a random moment the run or a part of the
             server gets SIGKILL (the server is started again). The run is repeated until it succeeds, and its
             results are compared in every byte with those of a run on a disk.
    pairs    two processes run the study in one folder at the same time, with the same comparison
    ratio    wall time of the default study of banana on the store, over that on a disk

The server is moto, in memory (jobs/nightly --tests installs it in build/moto, or CKCV_MOTO names another), or
Ceph's gateway with a monitor and an OSD (Debian's packages radosgw, ceph-mon, ceph-osd and ceph-common). It
listens on loopback, and is ended at the end, by its process ids.

    python jobs/faults/object_store.py --kills 200 --pairs 50 --ratio 3 --server ceph
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import hashlib
import json
import multiprocessing
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
from ckcv_ray.errors import CKCVError
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.files import LOCK, sha256
from ckcv_ray.storage.folder import EXECUTION, MANIFEST
from ckcv_ray.storage.log import LOG
from ckcv_ray.storage.objects import open_files
from ckcv_ray.tables.task import Task
from jobs.faults.servers import BUCKET, DOWN, SERVERS, Moto, Server, serve

STUDY = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.01, 0.1), k=(3, 4, 5), n_splits=12, scale="none")
SOURCE, BANANA = "twonorm:120:1", "ida:banana:1"
SERIAL = Execution("serial")
FLUSH = 0.05  # seconds between two parts of the log: a short run is to have several
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
    names = [name for name in sorted(files.walk()) if name not in (EXECUTION, MANIFEST, LOCK)]
    lines = [f"{name} {sha256(files, name)}" for name in names if not name.startswith(LOG)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def disturb(process: Any, server: Server, fault: str, rng: random.Random) -> None:
    """Inject one fault."""
    if fault == "driver":
        process.kill()
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
    faults = ["driver", "driver", *([] if isinstance(server, Moto) else server.processes)]
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


def run_pairs(pairs: int, folder: Path) -> dict[str, Any]:
    """Let two processes run the study in one folder at the same time; return what differs from a disk."""
    task, _ = read_task(SOURCE)
    expected, wrong = compute(STUDY, task, str(folder / "alone"), FLUSH), list[str]()
    for number in range(pairs):
        address = f"s3://{BUCKET}/pairs/{number}"
        both = [fork(compute, STUDY, task, address, FLUSH) for _ in range(2)]
        answers = [receiver.recv() for _, receiver in both]
        for process, _ in both:
            process.join()
        answers += [ask(digest, address), ask(check, address)]
        if answers != [expected, expected, expected, []]:
            wrong.append(f"{address}: {answers}")
    return {"pairs": pairs, "mismatches_of_pairs": wrong}


def check(address: str) -> list[str]:
    """Return what ``verify`` finds wrong."""
    return verify(address).differences


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
    pairs: Annotated[int, typer.Option(min=0, help="Pairs of runs in one folder.")] = 10,
    ratio: Annotated[int, typer.Option(min=0, help="Runs of the default study of banana to time.")] = 0,
    server: Annotated[str, typer.Option(help=f"Server: {' or '.join(SERVERS)}.")] = "moto",
    seed: Annotated[int, typer.Option(help="Of what is killed, and when.")] = 0,
) -> None:
    """Disturb runs on an object store; print the counts as JSON, and end with code 1 if anything differs."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))  # the server is ended then, too
    found: dict[str, Any] = {"server": server}
    with serve(server, ask) as opened:
        if kills:
            found |= run_kills(opened, kills, opened.folder, random.Random(seed))
        if pairs:
            found |= run_pairs(pairs, opened.folder)
        if ratio:
            found |= run_ratio(opened.folder, ratio)
    print(json.dumps(found, indent=1))
    if found.get("mismatches") or found.get("mismatches_of_pairs"):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
