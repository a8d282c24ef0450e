"""Runs on disk: whether a folder holds a study's result, loading that result, and replaying its records."""

from dataclasses import replace
from typing import Any, cast

from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.certify import check_certificate
from ckcv_ray.core.intervals import BBC
from ckcv_ray.engine.recorder import make_queue
from ckcv_ray.errors import StoreError
from ckcv_ray.learners.ensemble import Models
from ckcv_ray.records.judged import HELD_OUT, list_held_out_columns
from ckcv_ray.records.record import Outcome
from ckcv_ray.runs.result import Certified, Result
from ckcv_ray.runs.scored import Scored, add_row_values, find_kept
from ckcv_ray.storage import models
from ckcv_ray.storage.files import guard_reading, read_json, read_table
from ckcv_ray.storage.folder import CERTIFICATE, FolderPath, RunFolder
from ckcv_ray.storage.log import Log
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Procedure, Study

MAX_EVALUATIONS = 1 << 28  # each takes about 28 bytes of memory


def is_finished(problem: Problem, folder: RunFolder) -> bool:
    """Return whether a folder holds the finished run of a problem; if not, it can be written.

    Raises:
        StoreError: the folder holds another study, or something else.
        InputError: it cannot be written.
    """
    there, lacking = folder.holds(problem), folder.falls_short(problem)
    if there and folder.finished and not lacking and not folder.list_differing():
        folder.remove_left_lock()  # of a process that was killed after it had written the result
        return True
    folder.files.check_writable()
    folder.check_room(problem)
    return False


def reopen(problem: Problem, out: FolderPath) -> None:
    """Reopen the finished run in ``out`` if some of its evaluations failed; leave an unfinished run alone.

    Raises:
        StoreError: the folder holds another study, or something else.
        InputError: the run has judged its rows.
    """
    folder = RunFolder(out)
    if is_finished(problem, folder) and folder.execution()["failures"]:
        folder.refuse_selection(problem)
        folder.reopen()


def replay(out: FolderPath, problem: Problem | None = None) -> Any:
    """Return a queue with all the records of a folder, which is not changed.

    It is a ``RaceQueue`` with a certification, and a ``FullQueue`` without.

    Raises:
        StoreError: there is no run, or it is damaged, or has too many records to be read.
        RunError: two of its records contradict each other.
    """
    folder = RunFolder(out)
    problem = problem or folder.problem()
    if (count := problem.n_evaluations) > MAX_EVALUATIONS:
        raise StoreError(
            f"{str(folder)!r}: its study has {count:,} evaluations: at most {MAX_EVALUATIONS:,} can be read"
        )
    queue = make_queue(problem)
    for records, failures in Log(folder.files, problem).read():
        queue.add(Outcome(records, tuple(failures), ()))
    return queue


def load_run(out: FolderPath, allow_pickle: bool = False) -> Certified:
    """Return the result of a finished run, from its folder.

    Args:
        out: the run folder.
        allow_pickle: read the models of F* from the pickles instead of Parquet. Opening a pickle executes
            code in it: allow this only for your own runs.

    Raises:
        StoreError: there is no finished run, or a file of it is damaged or does not match the manifest.
    """
    result = cast(Certified, load(out, Study.kind))
    if not allow_pickle:
        return result
    folder = RunFolder(out)
    opened = models.read_pickles(folder.files, result.problem, result.ensemble, folder.manifest())
    return replace(result, models=replace(result.models, best=opened))


def load_scores(out: FolderPath) -> Scored:
    """Return the scores in a finished folder of ``evaluate``.

    Raises:
        StoreError: there are none, or a file is damaged or does not match the manifest.
    """
    return cast(Scored, load(out, Procedure.kind))


def load(out: FolderPath, kind: str = "") -> Result:
    """Return the result in a finished folder, of a study with a certification or without.

    Args:
        out: the run folder.
        kind: of the study, if it has to be of one kind.

    Raises:
        StoreError: as for ``load_run`` and ``load_scores``.
    """
    folder = RunFolder(out)
    identity = folder.require(kind)
    command = f"ckcv {identity.study.command} command again"
    if not folder.finished:
        raise StoreError(f"the run in {str(out)!r} is not finished: run its {command}")
    damaged = folder.list_differing()
    repair = f": running its {command} repairs it" if damaged else ""
    try:
        result = read_result(folder, folder.problem(identity))
    except StoreError as error:
        raise StoreError(f"{error}{repair}") from None
    if damaged:
        file = folder.files.path(damaged[0])
        raise StoreError(f"{file} is missing or does not match the manifest{repair}")
    return result


def read_result(folder: RunFolder, problem: Problem) -> Result:
    """Return the result of a finished run, from Parquet and JSON alone, if each file is valid in itself.

    Raises:
        StoreError: a file is damaged, or belongs to another winner or other splits.
    """
    files, execution = folder.files, folder.execution()
    if not problem.scores:
        table, winner = folder.candidates(problem)
        fitted, content = models.read_models(files, problem, winner.k), read_json(files, CERTIFICATE)
        with guard_reading(files, CERTIFICATE):
            certificate = Certificate.from_json(content)
            check_certificate(certificate, problem, table, fitted)
        return Certified(problem, execution, fitted, table, certificate, folder.judged(problem))
    result = Scored(problem, execution, Models(), replay(str(folder), problem).scores())
    if result.study.interval == BBC:  # which needs the values of rows
        held_out = read_table(files, HELD_OUT, result.run_id, list_held_out_columns(problem))
        with guard_reading(files, HELD_OUT):
            result = add_row_values(result, held_out)
    if find_kept(result) is None:
        return result
    return replace(result, models=Models(full=models.read_full(files, problem, result.setting)))
