"""From a study and data to a result: compute and store; refit and certify, or score every split.

A proof by judged rows does not cover what was chosen after they were judged. So a run looks at the folders
next to its own, and says whether a finished run there has judged, or seen, rows that it judges; it refuses
nothing. The study in each folder is read first, then the names of its columns, and its table only if it
shares the name of the target and of columns that are learned from.

A first look scores learners on the same random splits of the rows that a run will learn from, one after the
other, until time is up. It shows scores on the splits that all of them have finished: the scores of an
ordinary procedure, whose folder, next to that of the run, says which rows were seen. The rows that the run
holds out are not among them.

In a notebook one line, that of a terminal, shows progress while a run computes, updated in place with the
time left. IPython is used only where it already runs this process: elsewhere nothing is imported or shown.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from html import escape
from importlib import import_module
from math import isfinite
from threading import Event
from time import monotonic
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from ckcv_ray import errors
from ckcv_ray.claims.certify import expect_claims
from ckcv_ray.claims.quantity import Claim, HeldOutPredictions
from ckcv_ray.core.draws import TRIED
from ckcv_ray.core.measures import CLIPPED, Outputs
from ckcv_ray.core.process import is_notebook, one_thread
from ckcv_ray.core.resampling.base import Resampling, Splits
from ckcv_ray.core.resampling.drawn import Subsampling
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.backend import SERIAL, Session, session, start_backend, warn_once
from ckcv_ray.engine.evaluate import Inputs, share, warm_up
from ckcv_ray.engine.evaluate import evaluate as evaluate_units
from ckcv_ray.engine.forecast import Estimate, estimate
from ckcv_ray.engine.loop import Stop, work
from ckcv_ray.engine.queue import Listener, Progress
from ckcv_ray.engine.race import describe_failures
from ckcv_ray.engine.worker import LostError, compute_apart
from ckcv_ray.learners.ensemble import Models
from ckcv_ray.learners.sklearn.spec import HERE, list_foreign
from ckcv_ray.records.record import Outcome
from ckcv_ray.runs.finished import finish, is_finished, measure, read_result, reopen
from ckcv_ray.runs.result import Certified, Result, Scored, rank_entries
from ckcv_ray.storage.execution import Before, EarlierRun
from ckcv_ray.storage.files import find_next_to, locate, read_footer
from ckcv_ray.storage.folder import DATA, MANIFEST, FolderPath, RunFolder
from ckcv_ray.storage.pieces import MAX_TWINS
from ckcv_ray.study.problem import OUTER, Problem
from ckcv_ray.study.study import MAX_SEED_OF_SCORES, AnyStudy, Execution, Procedure, Study, check_kind
from ckcv_ray.tables.read import read_rows
from ckcv_ray.tables.task import MIN_ROWS, Task, TestRows, Words, hash_columns, make_test_rows, mix

MAX_LOOKED_AT, MAX_ROWS_THERE = 200, 1_000_000
MAX_CHECK_SECONDS = 60.0  # for trying in the worker whether models can be stored
START_SECONDS = 10.0  # that it may take besides a fit, where fits have a limit
MAX_CELLS_KEPT = 50_000  # of a table whose rows are kept in memory for the next run
TRY = "try-"  # begins the name of a first look's folder; the run_id of the run follows
TRIED_LEARNERS = "linear,forest,svm"  # what is tried if no learner is named, the quickest first
TRIED_SPLITS = Subsampling(times=5, share=0.25)
BY_CLASS = "balanced_accuracy"  # the score whose sums are the recalls
MAX_TRIED_VALUES = 3  # of each option of a learner
FEW_ROWS = 1000  # suggested if nothing was finished
ColumnHashes = dict[str, Words]
UNIMPORTABLE = f"no other process can import the learner, whose class is of {HERE}"
WAITING = 4  # studies queued in the pool for each that may run at once
FIRST_SECONDS = 1.0  # a run that ends sooner shows nothing
UPDATE_SECONDS = 0.5


def _find_before(problem: Problem, folder: str) -> Before:
    """Return which finished runs next to a folder judged, or saw, rows that the run of a problem judges.

    Nothing is fitted, imported or written on the word of a folder. One that cannot be read, or has more than
    ``MAX_ROWS_THERE`` rows, is passed over, as are all but the ``MAX_LOOKED_AT`` finished last.
    """
    hashes, runs, passed_over = ColumnHashes(), list[EarlierRun](), dict[str, str]()
    try:
        places = find_next_to(folder, MANIFEST)
    except (errors.CKCVError, OSError) as error:
        places, passed_over = {}, {"..": errors.plain(str(error))}
    for name, address in list(places.items())[:MAX_LOOKED_AT]:
        try:
            runs += _find_rows(name, RunFolder(address), problem, hashes)
        except (errors.CKCVError, OSError) as error:
            passed_over[name] = errors.plain(str(error))
    return {
        "at": datetime.now(UTC).isoformat(),
        "rows": problem.all_rows.n if problem.held is None else len(problem.held),
        "runs": sorted(runs, key=lambda run: run["at"]),
        "passed_over": passed_over,
        "older": max(0, len(places) - MAX_LOOKED_AT),
    }


def _find_rows(name: str, folder: RunFolder, problem: Problem, hashes: ColumnHashes) -> Iterator[EarlierRun]:
    """Yield the run in a folder if it has rows that the run of the problem judges.

    ``hashes`` are those made so far of the problem's columns; more are added.
    """
    if not folder.finished:  # it has judged nothing
        return
    place, task = (str(folder), json.dumps(folder.manifest())), problem.all_rows
    run_id, columns, n_rows = _read_table(*place)
    own = run_id == problem.run_id or name.startswith(f"{TRY}{problem.run_id}")  # whose rows it learns from
    if own or task.target.name not in columns or columns.isdisjoint(task.features):
        return
    if n_rows > MAX_ROWS_THERE:
        raise errors.StoreError(f"it has {n_rows:,} rows, and at most {MAX_ROWS_THERE:,} are looked at")
    small = n_rows * len(columns) <= MAX_CELLS_KEPT
    target, features, there, judged, scored = (_read_rows if small else _read_rows.__wrapped__)(*place)
    shared = [task.target.name, *sorted({*task.features} & features)]
    if target != task.target.name or shared == [target]:
        return
    rows = mix(np.sum([there[name] for name in shared], axis=0))
    if lacking := set(shared) - hashes.keys():
        hashes |= hash_columns(task.columns(), lacking)
    judging = mix(np.sum([hashes[name] for name in shared], axis=0))
    judging = judging if problem.held is None else judging[problem.held]
    known = np.isin(judging, rows[judged])
    was_judged = bool(known.any())
    known = known if was_judged else np.isin(judging, rows)
    if not known.any():
        return
    execution, (_, counts) = folder.execution(), np.unique(rows, return_counts=True)
    yield {
        "folder": name,
        "command": "evaluate" if scored else "run",
        "run_id": run_id,
        "at": execution["before"]["at"] if "before" in execution else execution["finished"],
        "judged": was_judged,
        "rows": int(known.sum()),
        "twins": bool(counts[counts > 1].sum() > MAX_TWINS * len(rows)),
    }


@lru_cache(maxsize=MAX_LOOKED_AT)  # many runs in one process look at the same folders
def _read_table(address: str, manifest: str) -> tuple[str, frozenset[str], int]:
    """Return the run, the columns and the number of rows of the data file that a manifest identifies."""
    folder = RunFolder(address)
    run_id = folder.require().run_id
    said = read_footer(folder.files, DATA)
    return run_id, frozenset(said.schema.to_arrow_schema().names), said.num_rows


@lru_cache(maxsize=MAX_LOOKED_AT)
def _read_rows(address: str, manifest: str) -> tuple[str, frozenset[str], ColumnHashes, errors.Index, bool]:
    """Return a finished run's target, features, hashes of both, the rows judged, and if it scored all."""
    folder = RunFolder(address)
    problem = folder.problem(folder.require())
    task, every = problem.all_rows, np.arange(problem.all_rows.n)
    judged = every[:0] if problem.scores else every if problem.held is None else problem.held
    hashes = hash_columns(task.columns(), [task.target.name, *task.features])
    return task.target.name, frozenset(task.features), hashes, judged, bool(problem.scores)


def never() -> bool:
    """Do not stop."""
    return False


class Job(NamedTuple):
    """A study to run on a task, alone or among others.

    Attributes:
        study: what decides the result.
        task: the rows to learn from: ``Task.of(X, y)``, or ``read_task(source)``.
        out: run folder; continued if it already holds this study. None keeps everything in memory.
        test: rows on which to measure the finished ensemble.
        listen: called with a Progress about ten times a second, and at the end.
    """

    study: AnyStudy
    task: Task
    out: FolderPath | None = None
    test: TestRows | None = None
    listen: Listener | None = None


class Work(NamedTuple):
    """A checked job."""

    problem: Problem
    folder: str | None = None  # absolute path of the run folder
    test: TestRows | None = None
    listen: Listener | None = None
    expected: Estimate | None = None  # what ``estimate`` returned, if it was already called
    stop: Stop = never  # called between batches; True interrupts the run, and keeps what is done
    keep: bool = False  # whether the result is to hold the records of all evaluations
    known: tuple[Outcome, ...] = ()  # evaluations that need not be computed


def run(
    study: Study,
    X: ArrayLike,
    y: ArrayLike,
    out: FolderPath | None = None,
    execution: Execution | None = None,
    listen: Listener | None = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Certified:
    """Select among the learner's settings and k, bound the error, and return the ensemble F*.

    Algorithm 1 of Anguita et al., ESANN 2012.

    Args:
        study: learner, resampling, criterion, certification and seed.
        X: inputs (n, d), an array or a data frame, whose columns keep their names (see ``Task.of``).
        y: labels (n,), text or numbers; for a learner of numbers such as "ridge" the numbers to predict.
        out: run folder; continued if it already holds this study. None keeps everything in memory.
        execution: backend, workers, cluster address.
        listen: called with a Progress about ten times a second, and at the end; None shows a line of it in a
            notebook, and nothing elsewhere.
        groups: the group of each row (n,), text or whole numbers, if rows belong together, such as the visits
            of one patient; bounds are then about a new group's rows.
        sample_weight: what each row weighs in fits (n,), positive; bounds are about unweighted rows, except
            the one on the weighted error (``claim="weighted_error:4"``).

    Raises:
        InputError: the data or the study are invalid.
        StoreError: the folder is damaged, in use, or holds another study.
        RunError: the run could not finish.
    """
    check_kind(study, Study)
    numbers, column = study.predicts_numbers, study.column
    task = Task.of(X, y, groups, numbers=numbers, sample_weight=sample_weight, split_by=column)
    with watch_run(listen) as watched:
        return run_job(Job(study, task, out, listen=watched), execution)


def run_job(job: Job, execution: Execution | None = None, stop: Stop = never) -> Certified:
    """Run one job, as ``run`` does.

    Args:
        job: study, task and folder.
        execution: backend, workers, cluster address.
        stop: called between batches; once it returns True, what is done is kept and the run is interrupted.

    Raises:
        KeyboardInterrupt: it was stopped.
    """
    return cast(Certified, run_work(check_job(job)._replace(stop=stop), execution))


def run_many(
    jobs: Iterable[Job], execution: Execution | None = None, stop: Stop = never
) -> Iterator[Certified]:
    """Run jobs concurrently in one session of the backend, and yield their results in the order of the jobs.

    On Ray a few jobs run at once, so that no worker is idle when one of them starts or ends. Called again
    with the same folders, it reads finished jobs and continues the others.

    Args:
        jobs: consumed as needed; a list is checked before any job starts.
        execution: as for ``run``.
        stop: called between batches; once it returns True, what is done is kept and the jobs are interrupted.

    Raises:
        CKCVError: raised by the first job that fails; the others keep what is done.
        KeyboardInterrupt: the jobs were stopped.
    """
    execution = _check_execution(execution)
    errors.expect("jobs", jobs, Iterable, "a list of Job(study, task, out)")
    if isinstance(jobs, Sequence):
        runs, jobs = dict[str, str](), [*jobs]
        for problem, folder, *_ in map(check_job, jobs):
            if folder is not None and runs.setdefault(folder, problem.run_id) != problem.run_id:
                differ = f"out={errors.quote(folder)} is of two jobs that differ"
                raise errors.InputError(f"{differ}: give each its own folder")
            if folder is not None:
                is_finished(problem, RunFolder(folder))
    stopped = Event()
    works = (check_job(job)._replace(stop=lambda: stopped.is_set() or stop()) for job in jobs)
    with session(execution) as opened, one_thread(), ThreadPoolExecutor(opened.together) as pool:
        waiting = deque[Future[Result]]()
        try:
            for work in works:
                waiting.append(pool.submit(run_work, work, opened=opened))
                if len(waiting) >= WAITING * opened.together:
                    yield cast(Certified, waiting.popleft().result())
            while waiting:
                yield cast(Certified, waiting.popleft().result())
        finally:
            stopped.set()
            pool.shutdown(cancel_futures=True)


def evaluate(
    X: object,
    y: ArrayLike,
    out: FolderPath | None = None,
    execution: Execution | None = None,
    listen: Listener | None = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    **options: object,
) -> Scored:
    """Score a learner on every split of a resampling.

    Args:
        X: inputs (n, d), an array or a data frame, whose columns keep their names (see ``Task.of``).
        y: labels (n,), text or numbers; for a learner of numbers such as "ridge" the numbers to predict.
        out: folder for the scores; continued if it holds the same procedure. None keeps them in memory.
        execution: backend, workers, cluster address.
        listen: called with a Progress about ten times a second, and at the end; None shows a line of it in a
            notebook, and nothing elsewhere.
        groups: the group of each row (n,), if rows belong together: groups stay whole.
        sample_weight: what each row weighs in fits (n,), positive; scores are of rows, unweighted.
        options: of ``Procedure.of``: ``resampling="kfold:10"`` (or a splitter of scikit-learn,
            which alone sees the groups; a column is one of X), ``time="date"``, ``gap="30d"``,
            ``measure="accuracy,auc"``, ``select_by``, ``select``, ``seed``,
            ``stratify``, ``permutations``, and those of the learner, ``learner="forest"``.

    Raises:
        InputError: the data or an option are invalid.
        StoreError: the folder is damaged, in use, or holds something else.
        RunError: a record contradicts another one.
    """
    X = read_rows(X)
    given: Any = options.get("resampling")
    if given is not None and not isinstance(given, str | Resampling):
        try:
            pairs = given.split(X, y, groups) if hasattr(given, "split") else given
            options["resampling"] = Splits.of(pairs, len(errors.as_array("y", y)))
        except errors.InputError:
            raise
        except Exception as error:  # of any kind: it is the user's code
            raise errors.InputError(
                f"resampling={errors.quote(given)}: expected text such as 'kfold:10', a splitter such as "
                f"KFold(10), or pairs of rows to fit and rows to score ({type(error).__name__}: {error})"
            ) from error
        groups = None
    study = Procedure.of(**options)
    numbers = study.predicts_numbers
    task = Task.of(
        X, y, groups, numbers=numbers, allow_singletons=True, sample_weight=sample_weight,
        split_by=study.column,
    )  # fmt: skip
    with watch_run(listen) as watched:
        return assess(study, task, out, execution, watched)


def assess(
    study: Procedure,
    task: Task,
    out: FolderPath | None = None,
    execution: Execution | None = None,
    listen: Listener | None = None,
    stop: Stop = never,
    retry_failed: bool = False,
) -> Scored:
    """Compute the scores of a study on a task, or return those that its folder holds; see ``evaluate``.

    Args:
        study: the procedure.
        task: the rows.
        out, execution, listen: as for ``evaluate``.
        stop: called between batches; once it returns True, what is done is kept and the run is interrupted.
        retry_failed: compute again what failed in a finished run.

    Raises:
        KeyboardInterrupt: it was stopped.
    """
    work = check_job(Job(study, task, out, listen=listen), Procedure)._replace(stop=stop)
    if retry_failed and work.folder is not None:
        reopen(work.problem, work.folder)
    return cast(Scored, run_work(work, execution))


def check_job(job: Job, kind: type[AnyStudy] = Study) -> Work:
    """Check a job of a study with a certification, or of the other kind.

    Raises:
        InputError: it is not a Job, or its parts do not match.
    """
    errors.expect("job", job, Job, "a Job: Job(study, task, out)")
    check_kind(job.study, kind)
    problem = Problem.of(job.study, job.task)
    test = problem.recode(make_test_rows(job.test, problem.all_rows))
    errors.expect("listen", job.listen, Callable | None, "a function that takes a Progress")  # type: ignore[arg-type]
    folder = locate("out", job.out) if job.out is not None else None
    if folder is not None and job.study.effort is None and problem.budget is not None:
        there = RunFolder(folder).effort(problem)  # a run continues with its own
        problem = problem if there is None else problem.with_effort(there)
    return Work(problem, folder, test, job.listen)  # absolute: processes may differ in working directory


def run_work(work: Work, execution: Execution | None = None, opened: Session | None = None) -> Result:
    """Run a checked job, or return the result that its folder holds.

    Args:
        work: problem and folder.
        execution: backend, workers, cluster address.
        opened: the session to run in, instead of one created from ``execution``.
    """
    execution = _check_execution(execution)
    result = find_result(work)
    return result if result is not None else compute(work, execution, opened)


def find_result(work: Work) -> Result | None:
    """Return the result that the folder of a job holds, measured on its test rows, or None if there is none.

    Raises:
        StoreError: the folder holds another study, or something else.
        InputError: it cannot be written.
    """
    if work.folder is None or not is_finished(work.problem, folder := RunFolder(work.folder)):
        return None
    result = read_result(folder, work.problem)
    measured = result.execution["test"]
    if work.test is None or (measured is not None and measured["digest"] == work.test.digest):
        return result
    tested = measure(cast(Certified, result).ensemble, work.test, {})
    return replace(result, execution=result.execution | {"test": tested})


def compute(job: Work, execution: Execution, opened: Session | None = None) -> Result:
    """Run a checked job whose folder holds no result; see ``run_work``.

    "auto" chooses the backend after a trial in this process.
    """
    problem, expected, timeout = job.problem, job.expected, execution.fit_timeout
    if HERE in list_foreign(problem.learner.by_label.values()):
        alone = replace(execution, backend="serial", workers=None, address=None, fit_timeout=None)
        on_ray = opened is not None and opened.together > SERIAL.together
        if on_ray or execution not in (alone, replace(alone, backend="auto")):
            cure = "define it in a module, or ask for no workers and no fit_timeout"
            raise errors.InputError(f"{UNIMPORTABLE}: {cure}")
        warn_once(f"{UNIMPORTABLE}: all is fitted here, and a fit that crashes ends this process")
        execution = alone
    if not problem.scores or problem.procedure.choose:  # else no model is kept
        seconds = MAX_CHECK_SECONDS if timeout is None else min(MAX_CHECK_SECONDS, START_SECONDS + timeout)
        with suppress(LostError):  # evaluations will meet the same failure
            compute_apart(problem.learner, timeout, Problem.check_models, problem, seconds=seconds)
    if opened is None and expected is None and execution.backend == "auto":
        expected = estimate(problem, fit_timeout=timeout)
    seconds = expected.seconds if expected else 0.0
    with (  # the backend before the recorder: if the data are too large for it, nothing is written
        session(execution, seconds, single=True) if opened is None else nullcontext(opened) as own,
        start_backend(own.backend, share(problem) if expected is None else expected.inputs) as backend,
        closing(own.recorder(problem, job.folder)) as recorder,
    ):
        recorder.open()
        if expected is not None:
            recorder.add_trial(expected.outcomes)
        recorder.add_trial(job.known)
        work(backend, recorder, job.listen, job.stop)
        if not problem.scores and recorder.begin_again():  # rows are judged by what has been tried twice
            work(backend, recorder, job.listen, job.stop)
        before = None if problem.scores or job.folder is None else _find_before(problem, str(job.folder))
        result = finish(problem, backend, recorder, job.test, job.listen, job.stop, before)
        result = replace(result, execution=result.execution | {"folder": job.folder})
        return replace(result, records=recorder.records()) if job.keep else result


def _check_execution(execution: Execution | None) -> Execution:
    errors.expect("execution", execution, Execution | None, 'an Execution, such as Execution("serial")')
    return execution or Execution()


def look(study: Study, problem: Problem, seconds: float, rows: int | None, stop: Stop) -> Work:
    """Score the learners of a study on as many splits of its learning rows as there is time for.

    Args:
        study: the study as requested.
        problem: the study on its task, with some rows held out.
        seconds: wall time, after which a fit is stopped; it decides how much is shown, but no figure.
        rows: roughly how many learning rows to take, in whole groups; None for all.
        stop: asked between fits.

    Returns:
        What was finished: the procedure of the learners neither late nor failed, and its evaluations.

    Raises:
        InputError: these rows cannot be learned from.
        RunError: no learner has finished a split.
        KeyboardInterrupt: it was stopped.
    """
    began, task = monotonic(), problem.task
    if rows is not None and rows < task.n:  # a smaller sample is part of a larger one
        order = problem.draws.at(*TRIED).make_generator().permutation(task.n_units)
        units = np.searchsorted(np.bincount(task.row_units)[order].cumsum(), rows) + 1
        task = task.without(task.units.rows(np.sort(order[max(units, MIN_ROWS) :])))
    task = task.restored()
    names = ("zero_one", BY_CLASS) if task.classes else (f"{CLIPPED}{problem.clip!r}",)
    seed, balance = study.seed % (MAX_SEED_OF_SCORES + 1), study.balance
    procedure = Procedure(study.learner, resampling=TRIED_SPLITS, measure=names, seed=seed, balance=balance)
    if not task.schema.plain:
        procedure = replace(procedure, encode=study.encode, fill=study.fill, rare=study.rare)
    # learners are tried as by default, or at a few of the values named
    usual = Problem.of(procedure, task).procedure
    tried = Problem.of(usual.with_learner(usual.learner.thinned(MAX_TRIED_VALUES)), task)
    inputs = share(tried)._replace(fit_timeout=seconds)
    warm_up(inputs)
    found, lost = _try_splits(inputs, began + seconds, stop)
    kept = [label for number, label in enumerate(tried.learners) if number not in lost]
    if not kept:
        if failures := [failure for outcome in found for failure in outcome.failures]:
            raise errors.RunError(f"nothing could be computed: {describe_failures(failures, tried)}")
        cure = f"--rows {FEW_ROWS}" if task.n > FEW_ROWS else "allow more time"
        raise errors.RunError(f"nothing finished in {seconds:g} s: {cure}")
    records = np.concatenate([outcome.records for outcome in found])
    paths = np.flatnonzero(~np.isin(tried.learner_of_paths, [*lost]))
    records = records[np.isin(records["path"], paths)]
    records["path"] = np.searchsorted(paths, records["path"])
    resampling = replace(TRIED_SPLITS, times=int(records["split"].max()) + 1)
    made = Problem.of(tried.procedure.replace(learner=",".join(kept), resampling=resampling), task)
    return Work(made, known=(Outcome(records, (), (), monotonic() - began, len(records)),))


def _try_splits(inputs: Inputs, until: float, stop: Stop) -> tuple[list[Outcome], set[int]]:
    """Evaluate one split after the other until time is up; an unfinished split is left out.

    Returns:
        What each path gives on each split; and the numbers of the learners that failed or were late in the
        first split, in which each path has an equal share of the time left.
    """
    problem, found, lost = inputs.problem, list[Outcome](), set[int]()
    lengths = problem.learner.space.lengths
    for split in range(TRIED_SPLITS.times):
        of_split = list[Outcome]()
        for path, length in enumerate(lengths):
            if stop():
                raise KeyboardInterrupt
            if (learner := int(problem.learner_of_paths[path])) in lost:
                continue
            unit = Unit(Stage.SELECT, OUTER, split, ((path, length),))
            left = (until - monotonic()) / (1 if split else len(lengths) - path)
            try:
                outcome = compute_apart(problem.learner, left, evaluate_units, inputs, [unit], seconds=left)
            except LostError:  # it was late, or ended its process
                if split:
                    return found, lost
                lost.add(learner)
                continue
            of_split.append(outcome)
            if outcome.failures:
                lost.add(learner)
        found += of_split
    return found, lost


def expect_run(scored: Scored, problem: Problem) -> tuple[list[Claim], float]:
    """Return what the run of a problem is expected to prove, if the best is wrong as often on its rows.

    Then the mean loss of the best constant on the learning rows, as for a learner.
    """
    score, y = scored.scores[0], problem.task.y
    values = (np.full(len(y), value) for value in HeldOutPredictions(problem, Models()).constants)
    constant = min(score.of(y, Outputs(label=each.astype(np.int32), value=each)) for each in values)
    best, figures = rank_entries(scored, score)[0]
    if not problem.task.classes:
        return expect_claims(problem, [figures.mean / score.largest]), constant
    right, rows = np.split(best.totals[:, scored.problem.columns[BY_CLASS]][:, 1:].sum(axis=0), 2)
    shares = dict(zip(scored.task.classes, 1 - right / np.maximum(rows, 1), strict=True))
    return expect_claims(problem, [shares.get(label, 1.0) for label in problem.task.classes]), constant


def describe_progress(progress: Progress, first: Progress, seconds: float) -> str:
    """Describe one moment of a run: its stage, rate, share dropped, time left, best candidate so far.

    Args:
        progress: the moment.
        first: the first report of this run, from which the rate is counted.
        seconds: wall time since the run began.
    """
    rate = (progress.computed - first.computed) / max(seconds, 1e-9)
    seconds_left = progress.left / progress.workers
    left = f"{errors.duration(seconds_left)} left" if seconds_left >= 1 else "less than 1 s left"
    parts = [
        progress.stage,
        f"{progress.computed:,} evaluations{f', {rate:,.0f}/s' if rate >= 1 else ''}",
        f"{errors.format_percent(progress.dropped / progress.planned)} dropped",
        left if isfinite(seconds_left) else "time left unknown",
    ]
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    if progress.best:
        candidate, l_ms = progress.best
        parts.append(f"best L_MS {errors.ceil_percent(l_ms)} at {candidate}")
    return " | ".join(parts)


@contextmanager
def watch_run(listen: Listener | None) -> Iterator[Listener | None]:
    """Give a run its listener: the one given, or in a notebook one that shows a line in the cell's output."""
    if listen is not None or not is_notebook():
        yield listen
        return
    began, seen, handle = monotonic(), list[Progress](), cast(Any, None)  # the first report and the last
    due, how = began + FIRST_SECONDS, "stopped"

    def show(text: str) -> None:
        nonlocal handle
        at = seen[-1]
        done = at.computed + at.dropped + at.failed
        bar = (
            f'<div style="max-width:44em"><progress aria-label="progress of the run" style="width:100%" '
            f'value="{done}" max="{at.planned}"></progress><div>{escape(text)}</div></div>'
        )
        content = {"text/plain": text, "text/html": bar}
        if handle is None:
            display = import_module("IPython.display").display  # already loaded: this is its kernel
            handle = display(content, raw=True, display_id=True)
        else:
            handle.update(content, raw=True)

    def notice(progress: Progress) -> None:
        nonlocal due
        seen[1:] = [progress]
        if (now := monotonic()) >= due:  # else one was shown a moment ago
            due = now + UPDATE_SECONDS
            show(describe_progress(progress, seen[0], now - began))

    try:
        yield notice
        how = "finished"
    finally:
        if handle is not None:  # else it showed nothing
            show(f"{how} after {errors.duration(monotonic() - began)}: {seen[-1].computed:,} evaluations")
