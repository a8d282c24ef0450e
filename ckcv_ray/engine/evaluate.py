"""Evaluation of units, giving records of totals. Plain functions; no Ray, no files.

A record depends only on the study, the data and its key: every path starts from scratch at its first step,
and nothing is carried over from another path, split or batch.

The selected setting gives one model on all rows that were not held out, which held-out rows certify, and one
on all rows, which no rows are left to judge: what is known about it follows from how often it differs from
the first. What the winner is compared with is fitted like the first, at its learner's own best setting.
"""

import resource
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from math import inf
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.measures import Measure, Output
from ckcv_ray.core.process import end_process_after, one_thread
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.core.selection import Leader
from ckcv_ray.engine.worker import LostError, compute_apart
from ckcv_ray.errors import Index, Numbers, RunError
from ckcv_ray.learners.base import Block, Model, end_forks
from ckcv_ray.learners.ensemble import Ensemble, Member, count_classes, judge
from ckcv_ray.records.candidates import sort_complete
from ckcv_ray.records.judged import HeldOut
from ckcv_ray.records.record import Failure, Outcome, Records, record_type
from ckcv_ray.study.problem import OUTER, PERMUTED, Problem
from ckcv_ray.tables.task import Task, TestRows

INTERPRETER_BYTES = 300 << 20
WARM_ROWS = 24
MAX_LOST = 2  # times that a path may end this machine's worker before it has failed
ALONE_SECONDS = 5.0  # for single paths after a loss, before asking whether to go on
KIBIBYTE = 1 if sys.platform == "darwin" else 1024  # the unit of ru_maxrss
Prepared = tuple[Block, Index, Measure]  # a split: its block, the rows to score, and what scores them


class Inputs(NamedTuple):
    """Inputs that every worker receives once."""

    problem: Problem
    shared: object  # what its learner shares between splits
    fit_timeout: float | None = None  # seconds; a longer fit ends its process


class Evaluated(NamedTuple):
    """Result of one path: totals [n, columns], iterations and statuses [n] of the steps from ``first`` on."""

    unit: Unit
    path: int
    first: int
    totals: Numbers = np.empty(0)
    n_iter: NDArray[np.int64] = np.empty(0, np.int64)
    status: NDArray[np.int8] = np.empty(0, np.int8)
    members: tuple[Member, ...] = ()
    failure: Failure | None = None
    solving: float = 0.0
    held_out: tuple[HeldOut, ...] = ()


def share(problem: Problem) -> Inputs:
    """Make the inputs of the workers: only the learning rows, not those held out."""
    seen = problem if problem.held is None else replace(problem, all_rows=problem.task, held=None)
    return Inputs(seen, problem.learner.trainer.share(problem.task))


def estimate_memory(problem: Problem) -> int:
    """Return the bytes that a worker needs besides the inputs: for the interpreter and the largest split."""
    d = problem.task.X.shape[1]
    units = [(train, s.n_select) for s in problem.sizes for train in (s.n_train, s.n_train + s.n_select)]
    rows, needs = problem.most_rows_in(units).tolist(), problem.learner.trainer.memory
    return INTERPRETER_BYTES + max(needs(train, score, d) for train, score in rows)


def warm_up(inputs: Inputs) -> None:
    """Fit one setting on a few rows, so that loading and setup do not count as slow fits."""
    with suppress(LostError):  # evaluations that count record it
        compute_apart(inputs.problem.learner, inputs.fit_timeout, _warm_up, inputs)


def _warm_up(inputs: Inputs) -> None:
    problem = inputs.problem
    problem.learner.trainer.load()
    few = np.arange(min(WARM_ROWS, problem.task.n))
    with one_thread(), suppress(Exception, SystemExit):  # evaluations that count report errors
        shared = problem.learner.trainer.share(problem.task.take_part(few))  # for all rows it takes seconds
        block = problem.learner.trainer.prepare(shared, few, few)
        for path in np.unique(problem.learner_of_paths, return_index=True)[1].tolist():
            with suppress(Exception, SystemExit), _limit_fits(inputs.fit_timeout, 1):
                problem.compute_totals(block.fit(path, 1), problem.make_measure(few), 1)


def _limit_fits(fit_timeout: float | None, fits: int) -> AbstractContextManager[None]:
    """Return a context in which fits end the process if they exceed the time that each may take."""
    return nullcontext() if fit_timeout is None else end_process_after(fit_timeout * fits)


def evaluate_apart(units: Sequence[Unit], inputs: Inputs, seconds: float = inf) -> list[Outcome]:
    """Evaluate units as ``evaluate`` does, in the worker if they may end their process.

    If they do, paths are evaluated one by one; one that alone ends it ``MAX_LOST`` times has failed.
    """
    problem, timeout = inputs.problem, inputs.fit_timeout
    compute = partial(compute_apart, problem.learner, timeout, evaluate, inputs)
    alone = [unit._replace(paths=(path,)) for unit in units for path in unit.paths]
    with suppress(LostError):
        return [compute(units, seconds)]
    start, outcomes, known = perf_counter(), list[Outcome](), int(len(alone) == 1)
    for number, unit in enumerate(alone):
        if outcomes and perf_counter() - start > max(seconds, ALONE_SECONDS):
            outcomes[-1] = outcomes[-1]._replace(left=tuple(alone[number:]))
            break
        for lost in range(known + 1, MAX_LOST + 1):
            try:
                outcomes.append(compute([unit], inf))
                break
            except LostError as error:
                if lost == MAX_LOST:
                    outcomes.append(make_failures([unit], inputs, f"lost {lost} times: {error}"))
    return outcomes


def evaluate(inputs: Inputs, units: Sequence[Unit], seconds: float = inf) -> Outcome:
    """Evaluate units one by one on one thread; a path that raises an error becomes a Failure.

    After ``seconds`` no unit except the first is begun; the outcome names those that are left.
    """
    problem = inputs.problem
    problem.learner.trainer.load()
    start, done, results = perf_counter(), 0, list[Evaluated]()
    by_learner = np.zeros(len(problem.learners))
    with one_thread():
        while done < len(units) and (not done or perf_counter() - start <= seconds):
            for result, taken in _paths(units[done], inputs):
                results.append(result)
                by_learner[problem.learner_of_paths[result.path]] += taken
            done += 1
    records = _records(results, problem)
    return Outcome(
        records,
        tuple(result.failure for result in results if result.failure),
        tuple(member for result in results for member in result.members),
        seconds=perf_counter() - start,
        fits=len(records),
        solving=sum(result.solving for result in results),
        peak=KIBIBYTE * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        by_learner=tuple(by_learner.tolist()),
        left=tuple(units[done:]),
        held_out=tuple(held for result in results for held in result.held_out),
    )


def make_failures(units: Iterable[Unit], inputs: Inputs, reason: str) -> Outcome:
    """Return the outcome of units of which every path failed, as when they are lost with their worker."""
    if inputs.fit_timeout is not None:
        reason += f"\n(a fit may take {inputs.fit_timeout:g} seconds: fit_timeout)"
    paths = ((unit, path, length) for unit in units for path, length in unit.paths)
    failures = (_make_failure(unit, path, unit.first(length), length, reason) for unit, path, length in paths)
    return Outcome(np.empty(0, record_type(inputs.problem)), tuple(failures), ())


def _paths(unit: Unit, inputs: Inputs) -> Iterator[tuple[Evaluated, float]]:
    """Yield the result of each path of a unit, and its seconds.

    After an error, the result is that of the longest prefix of the path that can be computed, and the rest is
    a failure. So whether an evaluation fails depends on its key, not on how long a path was requested.
    """
    prepared: Prepared | None = None
    for path, length in unit.paths:
        start = perf_counter()
        with end_forks():
            try:
                if prepared is None:
                    with _limit_fits(inputs.fit_timeout, length):
                        prepared = _prepare(unit, inputs)
                result = _path(unit, inputs, prepared, path, length)
            except (Exception, SystemExit):  # other paths continue; the failure holds the traceback
                reason, end = traceback.format_exc(), unit.first(length)
                result = Evaluated(unit, path, end)
                if prepared is not None and unit.stage is not Stage.REFIT:
                    for shorter in range(length - 1, 0, -1):
                        with suppress(Exception, SystemExit):  # the first error is told, that at full length
                            result, end = _path(unit, inputs, prepared, path, shorter), shorter
                            break
                result = result._replace(failure=_make_failure(unit, path, end, length, reason))
        yield result, perf_counter() - start


def _prepare(unit: Unit, inputs: Inputs) -> Prepared:
    problem, shared, size, split = inputs.problem, inputs.shared, unit.size, unit.split
    if problem.scores and problem.procedure.permutations and size == PERMUTED:
        permutation, split = divmod(split, problem.sizes[OUTER].n_splits)
        problem, size = problem.permute(permutation), OUTER
        shared = problem.learner.trainer.share(problem.task)
    train, score = problem.rows(unit.stage, size, split)
    return problem.learner.trainer.prepare(shared, train, score), score, problem.make_measure(score)


def _path(unit: Unit, inputs: Inputs, prepared: Prepared, path: int, length: int) -> Evaluated:
    problem, task, (block, score, measure) = inputs.problem, inputs.problem.task, prepared
    with _limit_fits(inputs.fit_timeout, length):
        start = perf_counter()
        fits = block.fit(path, length)
        solving = perf_counter() - start
        if unit.stage is Stage.SELECT:
            totals = problem.compute_totals(fits, measure, length)
            return Evaluated(unit, path, 0, totals, fits.n_iter, fits.status, solving=solving)
        first = unit.first(length)
        if problem.scores:
            learner = list(problem.learners.values())[int(problem.learner_of_paths[path])]
            needs = frozenset({task.target.output} | {Output.PROBABILITY} & learner.outputs)
            outputs = fits.model(first).predict_outputs(task.X[score], needs)
            held = HeldOut(path, first, unit.split, outputs._replace(rank=None))
            return Evaluated(unit, path, first, solving=solving, held_out=(held,))
        y, n_classes, kept = task.y[score], task.n_classes, tuple[Member, ...]()
        models = [fits.model(step) for step in range(first, length)]
        judged = [judge(model, task.X[score], y, measure, n_classes) for model in models]
        if unit.stage is Stage.REFIT:  # of the last step alone
            k, rows = problem.sizes[unit.size].k, count_classes(y, n_classes)
            kept = (Member(k, unit.split, models[0], judged[0], rows),)
        totals, status = np.array(judged), fits.status[first:]
        return Evaluated(unit, path, first, totals, fits.n_iter[first:], status, kept, solving=solving)


def _make_failure(unit: Unit, path: int, first: int, stop: int, reason: str) -> Failure:
    return Failure(unit.stage is not Stage.SELECT, unit.size, unit.split, path, first, stop, reason)


def _records(results: Sequence[Evaluated], problem: Problem) -> Records:
    results = [result for result in results if len(result.n_iter)]
    paths = np.zeros(len(results), record_type(problem))
    if not results:
        return paths
    lengths = [len(result.n_iter) for result in results]
    paths["estimate"] = [result.unit.stage is not Stage.SELECT for result in results]
    paths["size"] = [result.unit.size for result in results]
    paths["split"] = [result.unit.split for result in results]
    paths["path"] = [result.path for result in results]
    paths["step"] = [result.first for result in results] - (np.cumsum(lengths) - lengths)
    records: Records = paths.repeat(lengths)
    records["step"] += np.arange(len(records), dtype=np.int32)
    for name in ("totals", "n_iter", "status"):
        records[name] = np.concatenate([getattr(result, name) for result in results])
    return records


def one_model(
    problem: Problem, winner: Leader, fit_timeout: float | None = None
) -> tuple[Ensemble | None, Ensemble | None]:
    """Fit the winner's setting on all rows that were not held out, and on all rows; both None if none were.

    Raises:
        RunError: a fit failed.
    """
    held = problem.take_held_rows()
    if held is None:
        return None, None
    refit = _fit_and_score(problem, winner, problem.task, held, fit_timeout)
    none = TestRows(held.X[:0], held.y[:0])
    return refit, _fit_and_score(problem, winner, problem.every_row, none, fit_timeout)


def fit_references(
    problem: Problem, winner: Leader, table: pa.Table, fit_timeout: float | None = None
) -> Ensemble | None:
    """Fit each learner that the winner is compared with on all rows not held out, at its best setting.

    The winner's own learner is left out, as is any of which no candidate could be completed.

    Args:
        problem: the problem that was solved.
        winner: position of the winner.
        table: its candidates.
        fit_timeout: seconds that a fit may take; None for no limit.

    Raises:
        RunError: a fit failed.
    """
    held, members = problem.take_held_rows(), list[Member]()
    for number in problem.references:
        if number == problem.learner_of_paths[winner.path]:
            continue
        for row in sort_complete(table, problem, number).slice(0, 1).to_pylist():
            assert held is not None
            size = problem.sizes.index(problem.find_size(row["k_first"]))
            best = Leader(row["l_ms"], row["step"], row["path"], size)
            (fitted,) = _fit_and_score(problem, best, problem.task, held, fit_timeout).members
            members.append(replace(fitted, split=len(members)))
    return Ensemble(tuple(members)) if members else None


def fit_on_all_rows(problem: Problem, path: int, step: int, fit_timeout: float | None = None) -> Ensemble:
    """Fit a setting of a study without a certification on all rows; no row is left to count its errors on.

    Raises:
        RunError: the fit failed.
    """
    none = (0,) * problem.task.n_classes
    totals = (*none, *([] if problem.task.units.independent else [0]))  # groups also have a loss
    return Ensemble((Member(0, 0, _fit(problem, path, step, problem.task, fit_timeout), totals, none),))


def _fit_and_score(
    problem: Problem, winner: Leader, task: Task, scored: TestRows, fit_timeout: float | None
) -> Ensemble:
    model = _fit(problem, winner.path, winner.step, task, fit_timeout)
    n_classes, k = task.n_classes, problem.sizes[winner.size].k
    totals = judge(model, scored.X, scored.y, problem.measure(scored.row_units), n_classes)
    return Ensemble((Member(k, 0, model, totals, count_classes(scored.y, n_classes)),))


def _fit(problem: Problem, path: int, step: int, task: Task, fit_timeout: float | None) -> Model:
    setting = path, step, task, fit_timeout
    fit = partial(compute_apart, problem.learner, fit_timeout, _fit_one, problem, *setting)
    try:
        with suppress(LostError):  # it is then tried once more
            return fit()
        return fit()
    except RunError as error:
        raise RunError(f"one model could not be fitted on {task.n} rows at once: {error}") from None


def _fit_one(problem: Problem, path: int, step: int, task: Task, fit_timeout: float | None) -> Model:
    trainer, every = problem.learner.trainer, np.arange(task.n)
    try:
        trainer.load()
        with one_thread(), _limit_fits(fit_timeout, step + 1):
            return trainer.prepare(trainer.share(task), every, every[:1]).fit(path, step + 1).model(step)
    except (Exception, SystemExit):  # a learner may raise anything
        raise RunError(traceback.format_exc()) from None
