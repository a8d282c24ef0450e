"""Runs in shards: divide a study, compute one shard, and find out what is missing.

The folder alone connects those who compute: no process waits for another one, and none has to live longer
than its shard. When nothing is missing, an ordinary run on the folder has only refits and claims left.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import numpy as np

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.threads import one_thread
from ckcv_ray.engine.backend import SerialBackend, start_backend
from ckcv_ray.engine.evaluate import share
from ckcv_ray.engine.loop import Stop, work
from ckcv_ray.engine.progress import Listener
from ckcv_ray.engine.shards import (
    Items,
    ShardQueue,
    ShardRecorder,
    Tally,
    check_divisible,
    divide_work,
)
from ckcv_ray.errors import InputError, StoreError, pluralize
from ckcv_ray.runs.load import AnyPath
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.log import Log
from ckcv_ray.storage.shards import MOST_SHARDS, SHARDS, ShardFolder, ShardPlan, read_plan, write_plan
from ckcv_ray.study import Problem
from ckcv_ray.tables.readers.objects import is_address
from ckcv_ray.validation import integer


class Division(NamedTuple):
    """A run that is divided into shards.

    Attributes:
        plan: what each shard computes.
        evaluations: of all shards.
    """

    plan: ShardPlan
    evaluations: int


class ShardStates(NamedTuple):
    """How far the shards of a run are.

    Attributes:
        shards: number of shards.
        missing: numbers of those that have not computed everything, ascending.
        running: numbers of those that a process computes, as far as is known, ascending.
    """

    shards: int
    missing: tuple[int, ...]
    running: tuple[int, ...]

    @property
    def waiting(self) -> tuple[int, ...]:
        """Numbers of the shards that have something left to compute and that no process computes."""
        return tuple(number for number in self.missing if number not in self.running)

    @property
    def complete(self) -> bool:
        """Whether everything is computed, and no process that might still write is left."""
        return not (self.missing or self.running)

    def describe(self) -> str:
        """Say which shards run, and which are missing."""
        parts = [f"{len(self.running):,} running"] if self.running else []
        if self.waiting:
            parts.append(f"{len(self.waiting):,} not computed: {list_ranges(self.waiting)}")
        return f"{pluralize(self.shards, 'shard')}, {', '.join(parts) or 'all computed'}"


def divide_run(problem: Problem, out: AnyPath, count: int) -> Division:
    """Write the study, the data and the plan of the shards into a run folder; repeated, it repairs them.

    The plan depends on the study, the data and the number of shards alone.

    Args:
        problem: the problem to divide, of which the folder holds no result (see ``runs.load.is_finished``).
        out: run folder.
        count: number of shards, 1 .. 10,000.

    Raises:
        InputError: the search cannot be divided, the folder is on an object store, or there are more shards
            than paths on splits.
        StoreError: the folder is in use, or is divided into another number of shards.
    """
    count = integer("shards", count, least=1, most=MOST_SHARDS)
    check_divisible(problem)
    if not problem.scores or problem.study.choose:  # else no model is kept
        problem.check_models()
    folder, items = open_on_disk(out), Items(problem)
    if count > (most := items.count):
        raise InputError(
            f"shards={count}: the study has {pluralize(most, 'path')} to fit, counted on every split, and a "
            f"shard computes at least one: give {most} or fewer"
        )
    plan = ShardPlan(problem.run_id, divide_work([items], count))
    _begin(folder, problem, plan)
    return Division(plan, items.evaluations)


def open_on_disk(out: AnyPath) -> RunFolder:
    """Open a run folder that several processes write to.

    Raises:
        InputError: it is on an object store, which has one writer.
    """
    if is_address(out):
        raise InputError(
            f"{str(out)!r}: a run folder on an object store has one writer, and shards are many: give a "
            "folder on a disk that all nodes share, and copy the finished run with ckcv copy"
        )
    return RunFolder(out)


def compute_shard(out: AnyPath, number: int, listen: Listener | None, stop: Stop) -> int:
    """Compute what is left of one shard into its own log; return how many evaluations failed.

    Args:
        out: run folder, which was divided.
        number: of the shard, from 1.
        listen: called with a Progress of each of its ranges of work.
        stop: called between batches; once it returns True, what is done is kept.

    Raises:
        InputError: there is no such shard, or the folder is on an object store.
        StoreError: the folder holds no shards, or another process computes this one.
        KeyboardInterrupt: it was stopped.
    """
    folder = open_on_disk(out)
    problem, plan = _read(folder)
    if not 1 <= number <= plan.count:
        raise InputError(f"number={number}: the run in {str(folder)!r} has shards 1 to {plan.count:,}")
    if folder.finished:
        return 0
    failed = 0
    with _lock(folder, number) as shard:
        for at, first, stop_at in plan.shards[number - 1]:
            queue = ShardQueue(_count_items(folder, problem, plan, at), first, stop_at)
            failed += _compute(queue, folder, shard, listen, stop)
    return failed


def find_states(out: AnyPath) -> ShardStates:
    """Return how far the shards of a run are; nothing in the folder is changed.

    A log that cannot be read counts as empty: its shard computes it again.

    Raises:
        StoreError: the folder holds no shards.
    """
    folder = RunFolder(out)
    problem, plan = _read(folder)
    busy = [number for number in range(1, plan.count + 1) if ShardFolder(folder.files, number).busy]
    every = [] if folder.finished else [problem]
    missing = [_find_missing(_count_items(folder, each, plan, at), folder) for at, each in enumerate(every)]
    unfinished = (
        number
        for number, pieces in enumerate(plan.shards, start=1)
        if any(np.diff(np.searchsorted(missing[at], ends))[0] for at, *ends in (pieces if every else ()))
    )
    return ShardStates(plan.count, tuple(unfinished), tuple(busy))


def count_recorded(problem: Problem, out: AnyPath) -> int:
    """Return how many evaluations the log of a run holds, or that failed."""
    return Log(RunFolder(out).files, problem).count_rows()


def list_ranges(numbers: tuple[int, ...]) -> str:
    """Return ascending numbers as text, such as 3, 7-9: as the option --array of sbatch takes them."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return ",".join("-".join(map(str, ends)) for ends in ranges)


def _begin(folder: RunFolder, problem: Problem, plan: ShardPlan) -> None:
    """Write study, data and plan into the folder of a run."""
    folder.acquire()
    try:
        if folder.holds(problem.run_id):
            folder.repair(problem)
        else:
            folder.begin(problem)
        _check_plan(folder, plan)
        write_plan(folder.files, plan)
    finally:
        folder.release()


def _check_plan(folder: RunFolder, plan: ShardPlan) -> None:
    """Raise StoreError if the folder has another number of shards; a damaged plan is replaced."""
    try:
        known = read_plan(folder.files, plan.run_id)
    except StoreError:
        return
    if known is not None and known.count != plan.count:
        raise StoreError(
            f"{str(folder)!r} is divided into {pluralize(known.count, 'shard')} already: give --shards "
            f"{known.count}, or choose another --out"
        )


def _read(folder: RunFolder) -> tuple[Problem, ShardPlan]:
    """Return the problem of a run and the plan of its shards.

    Raises:
        StoreError: there is none, or the plan does not divide the work of the study.
    """
    identity = folder.require()
    plan = read_plan(folder.files, identity.run_id)
    if plan is None:
        raise StoreError(
            f"{str(folder)!r} is not divided into shards: ckcv submit divides a study, and ckcv evaluate "
            "--shards a procedure"
        )
    problem = folder.problem(identity)
    if len(plan.list_stops()) != 1:
        raise _refuse_plan(folder)
    return problem, plan


def _count_items(folder: RunFolder, problem: Problem, plan: ShardPlan, at: int) -> Items:
    """Return the work of the run, which is what the plan divides.

    Raises:
        StoreError: it is not.
    """
    items = Items(problem)
    if items.count != plan.list_stops()[at]:
        raise _refuse_plan(folder)
    return items


def _refuse_plan(folder: RunFolder) -> StoreError:
    return StoreError(
        f"{folder.files.path(SHARDS)} does not divide the work of the study: repeat the command that "
        "submitted it"
    )


def _find_missing(items: Items, folder: RunFolder) -> Index:
    """Return the numbers of the items of which a folder lacks an evaluation, ascending."""
    tally = Tally(items, 0, 0 if folder.finished else items.count)
    run_log = Log(folder.files, items.problem)
    for log in (run_log, *(shard for _, shard in run_log.list_shards())):
        with suppress(StoreError):  # what is damaged counts as missing
            for records, failures in log.read_own():
                tally.enter(records, failures)
    return tally.list_missing()


def _compute(
    queue: ShardQueue, folder: RunFolder, shard: ShardFolder, listen: Listener | None, stop: Stop
) -> int:
    """Compute what is left of a range of work; return how many of its evaluations failed."""
    log = Log(shard.files, queue.problem, place="")
    recorder = ShardRecorder(queue, log, Log(folder.files, queue.problem))
    if len(queue.tally.list_missing()):
        try:
            with one_thread(), start_backend(SerialBackend, share(queue.problem)) as backend:
                work(backend, recorder, listen, stop)
        finally:
            recorder.flush()
    return queue.tally.count()[-1]


@contextmanager
def _lock(folder: RunFolder, number: int) -> Iterator[ShardFolder]:
    """Lock the folder of a shard."""
    shard = ShardFolder(folder.files, number)
    shard.acquire()
    try:
        yield shard
    finally:
        shard.release()
