"""Runs on disk: whether a folder holds a study's result, loading that result, and replaying its records."""

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import TypeVar

from ckcv_ray.engine.full import FullQueue
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.errors import StoreError
from ckcv_ray.records.record import Outcome
from ckcv_ray.runs.assessed import Assessed
from ckcv_ray.runs.result import Result
from ckcv_ray.storage import models
from ckcv_ray.storage.environment import changes, environment
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.log import Log
from ckcv_ray.study import CERTIFIED, SCORED, Problem

MOST_EVALUATIONS = 1 << 28  # each takes about 28 bytes of memory
REPAIR = ": running its ckcv {} command again repairs it"
HOLDS = {CERTIFIED: "a study of ckcv run", SCORED: "the scores of a ckcv evaluate"}

Adds = TypeVar("Adds", RaceQueue, FullQueue)
AnyPath = str | PathLike[str]


def finished_run(problem: Problem, out: AnyPath | None) -> Result | None:
    """Return the result in the folder ``out``, or None if there is work to do; see ``is_finished``."""
    if out is None or not is_finished(problem, folder := RunFolder(out)):
        return None
    return _loaded(folder, problem)


def finished_scores(problem: Problem, out: AnyPath | None) -> Assessed | None:
    """Return the scores in the folder ``out``, or None if there is work to do; see ``is_finished``."""
    if out is None or not is_finished(problem, folder := RunFolder(out)):
        return None
    return _loaded_scores(folder, problem)


def is_finished(problem: Problem, folder: RunFolder) -> bool:
    """Return whether a folder holds the finished run of a problem; if not, it can be written.

    Raises:
        StoreError: the folder holds another study, more outer splits, or something else.
        InputError: it cannot be written.
    """
    identity = None
    try:
        identity = folder.identity()
    except StoreError as error:
        if not folder.has_files(problem.run_id):  # else it will be repaired
            raise StoreError(f"{error}; for this run choose another --out") from None
    if identity is None or identity.run_id == problem.run_id:
        lacking = folder.lacks_outer_splits(problem)
        if identity is not None and folder.finished and not lacking and not folder.list_differing():
            folder.remove_left_lock()  # of a process that was killed after it had written the result
            return True
        folder.files.check_writable()
        folder.check_room(problem)
        return False
    if identity.study.kind != problem.study.kind:
        raise StoreError(f"{str(folder)!r} holds {HOLDS[identity.study.kind]}: choose another --out")
    differences = problem.study.differences(identity.study)
    if identity.data_digest not in (problem.data_digest, problem.all_rows.digest):
        differences.append("data: another table, or other columns or groups of it")
    reason = "; ".join(differences) or "another version of this package wrote it"
    raise StoreError(f"{str(folder)!r} holds another {problem.study.kind} ({reason}): choose another --out")


def reopen(problem: Problem, out: AnyPath) -> None:
    """Reopen the finished run in ``out`` if some of its evaluations failed; leave an unfinished run alone.

    Raises:
        StoreError: the folder holds another study, or something else.
    """
    folder = RunFolder(out)
    if is_finished(problem, folder) and folder.execution()["failures"]:
        folder.reopen()


def environment_changes(out: AnyPath) -> list[str]:
    """Return how this environment differs from the one a run was made in, as far as its folder records it."""
    folder = RunFolder(out)
    metadata = folder.execution()
    if not metadata:
        return []
    return changes(metadata["environment"], environment(folder.require().study.learner))


def check_count(out: str, count: int) -> None:
    """Raise StoreError if a folder has more evaluations than can be read into memory."""
    if count > MOST_EVALUATIONS:
        raise StoreError(
            f"{out!r}: its study has {count:,} evaluations: at most {MOST_EVALUATIONS:,} can be read"
        )


def replay(out: AnyPath, problem: Problem | None = None) -> RaceQueue:
    """Return an queue with all the records of a folder, which is not changed.

    Raises:
        StoreError: there is no run, or it is damaged.
        RunError: two of its records contradict each other.
    """
    folder = RunFolder(out)
    problem = problem or folder.problem(folder.require(CERTIFIED))
    return _filled(RaceQueue, folder, problem)


def replay_scores(out: AnyPath) -> FullQueue:
    """Return a queue with all the records of a folder of ``evaluate``, which is not changed.

    Raises:
        StoreError: there are none, or they are damaged.
    """
    folder = RunFolder(out)
    return _filled(FullQueue, folder, folder.problem(folder.require(SCORED)))


def _filled(make: Callable[[Problem], Adds], folder: RunFolder, problem: Problem) -> Adds:
    """Return a queue of a problem, with all the records of a folder.

    Raises:
        StoreError: they are damaged, or too many to be read.
        RunError: two of them contradict each other.
    """
    check_count(str(folder), problem.n_evaluations)
    queue = make(problem)
    for records, failures in Log(folder.files, problem).read():
        queue.add(Outcome(records, tuple(failures), ()))
    return queue


def load_run(out: AnyPath, allow_pickle: bool = False) -> Result:
    """Return the result of a finished run, from its folder.

    Args:
        out: the run folder.
        allow_pickle: read the models of F* from the pickles instead of Parquet. Opening a pickle executes
            code in it: allow this only for your own runs.

    Raises:
        StoreError: there is no finished run, or a file of it is damaged or does not match the manifest.
    """
    folder = RunFolder(out)
    identity = folder.require(CERTIFIED)
    if not folder.finished:
        raise StoreError(f"the run in {str(out)!r} is not finished: run its ckcv run command again")
    damaged = folder.list_differing()
    try:
        result = _loaded(folder, folder.problem(identity))
    except StoreError as error:
        raise StoreError(f"{error}{REPAIR.format('run')}" if damaged else str(error)) from None
    _check_undamaged(folder, damaged, "run")
    if not allow_pickle:
        return result
    opened = models.read_pickles(folder.files, result.problem, result.ensemble, folder.manifest())
    return replace(result, models=replace(result.models, best=opened))


def load_scores(out: AnyPath) -> Assessed:
    """Return the scores in a finished folder of ``evaluate``.

    Raises:
        StoreError: there are none, or a file is damaged or does not match the manifest.
    """
    folder = RunFolder(out)
    problem = folder.problem(folder.require(SCORED))
    if not folder.finished:
        raise StoreError(f"the run in {str(out)!r} is not finished: run its ckcv evaluate command again")
    _check_undamaged(folder, folder.list_differing(), "evaluate")
    return _loaded_scores(folder, problem)


def _check_undamaged(folder: RunFolder, damaged: list[str], command: str) -> None:
    """Raise StoreError if there are damaged files; ``command`` is what repairs them."""
    if damaged:
        file = folder.files.path(damaged[0])
        raise StoreError(f"{file} is missing or does not match the manifest{REPAIR.format(command)}")


def _loaded(folder: RunFolder, problem: Problem) -> Result:
    """Return the result in the files of a finished run, if each file is valid in itself."""
    return Result.of(problem, folder.results(problem), folder.execution())


def _loaded_scores(folder: RunFolder, problem: Problem) -> Assessed:
    """Return the scores in the log of a finished run."""
    return Assessed.of(problem, _filled(FullQueue, folder, problem).scores(), folder.execution())
