"""The work itself: one split's paths to records of integers. Plain functions; no Ray, no files.

A record depends on the Study, the data and its own key alone: every path starts at the grid's smallest C
from nothing, and nothing is carried over from another path, split or batch.
"""

import resource
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.resampling import Index, Split
from ckcv_ray.core.threads import one_thread
from ckcv_ray.data.task import fit_scaling
from ckcv_ray.learners.ensemble import Member, mistakes
from ckcv_ray.learners.svm import Solution
from ckcv_ray.learners.svm.blocks import Dense, Points, block_bytes, prepare
from ckcv_ray.learners.svm.kernels import Matrix, squared_distances
from ckcv_ray.learners.svm.machine_code import load
from ckcv_ray.learners.svm.scaling import Scaling
from ckcv_ray.storage.log import RECORD, Failure, Records
from ckcv_ray.study import Path, Stage, Study, Task

SHARED_BYTES = 1 << 29
INTERPRETER_BYTES = 300 << 20
KIBIBYTE = 1 if sys.platform == "darwin" else 1024  # the unit of ru_maxrss


@dataclass(frozen=True)
class LearningSet:
    """What every worker shares: X [n, d], y [n] in {-1, +1}, and without scaling, where they fit into
    ``SHARED_BYTES``, the squared distances [n, n].
    """

    X: Matrix
    y: NDArray[np.int8]
    distances: Matrix | None


class Outcome(NamedTuple):
    """What a batch of tasks gives back; what follows the members is for the log, not for the result.

    seconds: in all; solving: of those, in kernels and fits; peak: memory of this process so far, bytes.
    """

    records: Records
    failures: tuple[Failure, ...]
    members: tuple[Member, ...]
    seconds: float = 0.0
    fits: int = 0
    solving: float = 0.0
    peak: int = 0


class Block(NamedTuple):
    """One split made ready: who trains, with which labels and scaling, who is scored, and their distances."""

    train: Index
    score: Index
    y: Matrix
    scaling: Scaling
    kernel: Dense | Points


def share(X: Matrix, y: NDArray[np.int8], study: Study) -> LearningSet:
    """Put together what the workers share."""
    fits = study.scaling == "none" and 8 * len(X) ** 2 <= SHARED_BYTES
    return LearningSet(X, y, np.ascontiguousarray(squared_distances(X, X)) if fits else None)


def memory(study: Study, n: int, d: int) -> int:
    """Bytes a worker needs, the shared data aside: the interpreter's and those of the largest split."""
    splits = [(s.n_train, s.n_select) for s in study.sizes(n)]
    splits += [(s.n_train + s.n_select, s.n_select) for s in study.sizes(n)]
    return INTERPRETER_BYTES + max(block_bytes(*split, d, len(study.C)) for split in splits)


def warm_up(study: Study) -> None:
    """Have the solver compiled, or read from its cache, on a toy: the first fit would pay for it."""
    toy = replace(study, k=(3,), report_k=(), C=study.C[:1], gamma=study.gamma[:1])
    X, y = np.arange(12.0)[:, None], np.tile(np.array([-1, 1], np.int8), 6)
    evaluate([Task(Stage.SELECT, 3, 0, ((0, 1),))], toy, share(X, y, toy))


def evaluate(tasks: Iterable[Task], study: Study, data: LearningSet) -> Outcome:
    """Run tasks one after the other on one thread; a path that raises becomes a Failure."""
    load()
    start = perf_counter()
    with one_thread():
        results = [result for task in tasks for result in _paths(task, study, data)]
    records = _records(results, study)
    members = tuple(member for result in results for member in result.members)
    failures = tuple(result.failure for result in results if result.failure)
    solving = sum(result.solving for result in results)
    peak = KIBIBYTE * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Outcome(records, failures, members, perf_counter() - start, len(records), solving, peak)


class Result(NamedTuple):
    """What became of one path: counts [n, 2], iterations and statuses [n] of the C from ``first`` on."""

    estimate: bool
    path: Path
    first: int
    errors: NDArray[np.int64]
    n_iter: NDArray[np.int64]
    status: NDArray[np.int8]
    members: tuple[Member, ...] = ()
    failure: Failure | None = None
    solving: float = 0.0


def _paths(task: Task, study: Study, data: LearningSet) -> Iterator[Result]:
    """Each path of a task; what can be had of it, where something goes wrong."""
    block: Block | None = None
    for position, n_C in task.paths:
        try:
            block = block or _prepare(task, study, data)
            result = _path(task, study, data, block, study.gamma[position], n_C)
        except Exception:  # whatever it was, the other paths go on and the record says what happened
            result = _beginning(task, study, data, block, position, n_C, traceback.format_exc())
        yield result


def _beginning(
    task: Task, study: Study, data: LearningSet, block: Block | None, gamma: int, n_C: int, reason: str
) -> Result:
    """The longest beginning of a path that does not raise, and the rest as a failure.

    So whether a cell fails depends on its key, not on the length of the path it was asked for with.
    """
    key, estimate = Path(study.gamma[gamma], task.k, task.mc_index), task.stage is not Stage.SELECT
    if block is not None and task.stage is not Stage.REFIT:
        for length in range(n_C - 1, 0, -1):
            with suppress(Exception):  # the reason for the failure is the first one, at full length
                result = _path(task, study, data, block, study.gamma[gamma], length)
                return result._replace(failure=Failure(estimate, key, length, n_C, reason))
    first = n_C - 1 if task.stage is Stage.REFIT else 0
    nothing = np.empty((0, 2), np.int64), np.empty(0, np.int64), np.empty(0, np.int8)
    return Result(estimate, key, first, *nothing, failure=Failure(estimate, key, first, n_C, reason))


def _prepare(task: Task, study: Study, data: LearningSet) -> Block:
    split = study.split(len(data.X), task.k, task.mc_index)
    train, score = roles(task.stage, split)
    scaling = fit_scaling(data.X[train], study.scaling)
    kernel = prepare(data.X, data.distances, scaling, train, score)
    return Block(train, score, data.y[train].astype(np.float64), scaling, kernel)


def roles(stage: Stage, split: Split) -> tuple[Index, Index]:
    """The rows that train and the rows that are scored."""
    if stage is Stage.SELECT:
        return split.train, split.select
    return np.sort(np.concatenate([split.train, split.select])), split.estimate


def _path(task: Task, study: Study, data: LearningSet, block: Block, gamma: float, n_C: int) -> Result:
    C_values, key = study.C[:n_C], Path(gamma, task.k, task.mc_index)
    start = perf_counter()
    fits = block.kernel.fit(study, gamma, block.y, C_values)
    solving = perf_counter() - start
    if task.stage is Stage.SELECT:
        errors = block.kernel.errors(gamma, fits, data.y[block.score])
        return Result(False, key, 0, errors, fits.n_iter, fits.status, solving=solving)
    first = n_C - 1 if task.stage is Stage.REFIT else 0
    members = [_member(task, data, block, gamma, C_values[c], fits.solution(c)) for c in range(first, n_C)]
    errors = np.array([member.errors for member in members])
    kept = tuple(members) if task.stage is Stage.REFIT else ()
    return Result(True, key, first, errors, fits.n_iter[first:], fits.status[first:], kept, solving=solving)


def _member(
    task: Task, data: LearningSet, block: Block, gamma: float, C: float, solution: Solution
) -> Member:
    """The model of one solution, with its errors on the rows it did not see."""
    used = np.flatnonzero(solution.b)
    support = block.train[used]
    y_score = data.y[block.score]
    member = Member(
        k=task.k,
        mc_index=task.mc_index,
        C=C,
        gamma=gamma,
        scaling=block.scaling,
        support=support.astype(np.int64),
        vectors=data.X[support],
        dual_coef=solution.b[used],
        offset=solution.offset,
        errors=(0, 0),
        n_estimate=(int(np.sum(y_score < 0)), int(np.sum(y_score > 0))),
    )
    return replace(member, errors=mistakes(member.decision(data.X[block.score]), y_score))


def _records(results: Sequence[Result], study: Study) -> Records:
    """The records of all paths in one array."""
    lengths = [len(result.n_iter) for result in results]
    records = np.empty(sum(lengths), RECORD)
    if not len(records):
        return records
    C_values = [study.C[result.first : result.first + n] for result, n in zip(results, lengths, strict=True)]
    errors = np.concatenate([result.errors for result in results])
    gamma, k, mc_index = zip(*[result.path for result in results], strict=True)
    records["estimate"] = np.repeat([result.estimate for result in results], lengths)
    records["C"] = np.concatenate(C_values)
    records["gamma"] = np.repeat(gamma, lengths)
    records["k"], records["mc_index"] = np.repeat(k, lengths), np.repeat(mc_index, lengths)
    records["errors_negative"], records["errors_positive"] = errors[:, 0], errors[:, 1]
    records["n_iter"] = np.concatenate([result.n_iter for result in results])
    records["status"] = np.concatenate([result.status for result in results])
    return records


def failed(tasks: Iterable[Task], study: Study, reason: str) -> Outcome:
    """The outcome of tasks that were lost as a whole."""
    failures = tuple(
        Failure(
            task.stage is not Stage.SELECT,
            Path(study.gamma[g], task.k, task.mc_index),
            n_C - 1 if task.stage is Stage.REFIT else 0,
            n_C,
            reason,
        )
        for task in tasks
        for g, n_C in task.paths
    )
    return Outcome(np.empty(0, RECORD), failures, ())
