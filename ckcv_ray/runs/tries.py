"""A first look at what a study may give, by the rows that its run will learn from.

Learners are scored on the same random splits, one split after the other, until the time is over. What is
shown is of the splits that all of them have finished: the scores of an ordinary procedure, whose folder, next
to that of the run, says which rows were seen. Those that the run holds out are not among them.
"""

from dataclasses import replace
from time import monotonic
from typing import NamedTuple, cast

import numpy as np

from ckcv_ray.claims.certify import expect_claims
from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.claims.quantity import Claim
from ckcv_ray.core.draws import TRIED
from ckcv_ray.core.measures import Outputs
from ckcv_ray.core.resampling.drawn import Subsampling
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.evaluate import Inputs, evaluate_inputs, share, warm_up
from ckcv_ray.engine.forecast import Estimate
from ckcv_ray.engine.loop import Stop
from ckcv_ray.engine.queue import Rates
from ckcv_ray.engine.race import describe_failures
from ckcv_ray.engine.worker import LostError, compute_apart
from ckcv_ray.errors import RunError
from ckcv_ray.learners.ensemble import Models
from ckcv_ray.records.record import Failure, Outcome
from ckcv_ray.runs.run import Work, run_work
from ckcv_ray.runs.scored import Entry, Figures, Scored, rank_entries
from ckcv_ray.storage.files import locate
from ckcv_ray.study.problem import OUTER, Problem
from ckcv_ray.study.study import MAX_SEED_OF_SCORES, Execution, Procedure, Study
from ckcv_ray.tables.task import MIN_ROWS, Task

USUAL = "linear,forest,svm"  # what is tried if no learner is named, the quickest first
SPLITS = Subsampling(times=5, share=0.25)
BY_CLASS = "balanced_accuracy"  # the score whose sums are the recalls
MAX_VALUES = 3  # of each option of a learner
FEW_ROWS = 1000  # offered if nothing was finished
SERIAL = Execution("serial")


class Try(NamedTuple):
    """What was finished in time.

    Attributes:
        work: the procedure that was finished, with its evaluations.
        scored: its scores, which are nowhere yet.
        late: the learners that have not finished a split, or failed.
        constant: the mean loss of the best constant on the learning rows, as that of a learner.
    """

    work: Work
    scored: Scored
    late: tuple[str, ...]
    constant: float

    @property
    def ranked(self) -> list[tuple[Entry, Figures]]:
        """What was scored, the best first."""
        return rank_entries(self.scored, self.scored.scores[0])

    def record(self, folder: str) -> None:
        """Write the scores, and the rows that they are of, to a folder."""
        run_work(self.work._replace(folder=locate("out", folder)), SERIAL)


def look(study: Study, problem: Problem, seconds: float, rows: int | None, stop: Stop) -> Try:
    """Score the learners of a study on as many splits of its learning rows as there is time for.

    Args:
        study: the study as it was asked for.
        problem: the study on its task, of which some rows are held out.
        seconds: wall time, after which a fit is ended; it decides how much is shown, and no figure.
        rows: about how many of the learning rows to take, in whole groups; None for all.
        stop: asked between fits.

    Raises:
        InputError: these rows cannot be learned from.
        RunError: no learner has finished a split.
        KeyboardInterrupt: it was stopped.
    """
    began, task = monotonic(), take_rows(problem, rows)
    tried = _make_problem(study, problem, task)
    inputs, labels = share(tried)._replace(fit_timeout=seconds), list(tried.learners)
    warm_up(inputs)
    finished, lost = _fit_splits(inputs, began + seconds, stop)
    kept = [label for number, label in enumerate(labels) if number not in lost]
    if not kept:
        if failures := [failure for failed in lost.values() for failure in failed]:
            raise RunError(f"nothing could be computed: {describe_failures(failures, tried)}")
        cure = f"--rows {FEW_ROWS}" if task.n > FEW_ROWS else "allow more time"
        raise RunError(f"nothing finished in {seconds:g} s: {cure}")
    resampling = replace(SPLITS, times=len(finished))
    made = Problem.of(tried.procedure.replace(learner=",".join(kept), resampling=resampling), task)
    records = np.concatenate([outcome.records for found in finished for outcome in found])
    paths = np.flatnonzero(~np.isin(tried.learner_of_paths, [*lost]))
    records = records[np.isin(records["path"], paths)]
    records["path"] = np.searchsorted(paths, records["path"])
    outcome = Outcome(records, (), (), seconds=monotonic() - began, fits=len(records))
    work = Work(made, expected=Estimate(0.0, Rates(len(kept)), (outcome,), share(made)))
    score, y = made.scores[0], problem.task.y
    constants = (np.full(len(y), constant) for constant in HeldOutPredictions(problem, Models()).constants)
    constant = min(score.of(y, Outputs(label=each.astype(np.int32), value=each)) for each in constants)
    late = tuple(label for label in labels if label not in kept)
    return Try(work, cast(Scored, run_work(work, SERIAL)), late, constant)


def take_rows(problem: Problem, rows: int | None) -> Task:
    """Return rows that a problem learns from: all, or about so many, of which fewer are among more."""
    task = problem.task
    if rows is not None and rows < task.n:
        order = problem.draws.at(*TRIED).make_generator().permutation(task.n_units)
        units = np.searchsorted(np.bincount(task.row_units)[order].cumsum(), rows) + 1
        task = task.without(task.units.rows(np.sort(order[max(units, MIN_ROWS) :])))
    return task.restored()


def _make_problem(study: Study, problem: Problem, task: Task) -> Problem:
    """Return the procedure that is tried: learners as they usually are, or at a few of the values named."""
    measures = (problem.score, BY_CLASS) if task.classes else (problem.score,)
    seed, balance = study.seed % (MAX_SEED_OF_SCORES + 1), study.balance
    procedure = Procedure(study.learner, resampling=SPLITS, measure=measures, seed=seed, balance=balance)
    if not task.schema.plain:
        procedure = replace(procedure, encode=study.encode, fill=study.fill, rare=study.rare)
    usual = Problem.of(procedure, task).procedure
    return Problem.of(usual.with_learner(usual.learner.thinned(MAX_VALUES)), task)


def _fit_splits(
    inputs: Inputs, until: float, stop: Stop
) -> tuple[list[list[Outcome]], dict[int, tuple[Failure, ...]]]:
    """Evaluate one split after the other, as long as they are likely to end in time.

    Args:
        inputs: of the procedure.
        until: when the time is over; of the first split each path has an equal share of what is left.
        stop: asked between fits.

    Returns:
        What each split that was finished gives; and by their numbers the learners that were late in the first
        one, or failed, with their failures.
    """
    problem, finished, lost = inputs.problem, list[list[Outcome]](), dict[int, tuple[Failure, ...]]()
    lengths, learner_of_paths = problem.learner.space.lengths, problem.learner_of_paths.tolist()
    for split in range(SPLITS.times):
        took, found = 0.0, list[Outcome]()
        for path, length in enumerate(lengths):
            if stop():
                raise KeyboardInterrupt
            if (learner := learner_of_paths[path]) in lost:
                continue
            unit, began = Unit(Stage.SELECT, OUTER, split, ((path, length),)), monotonic()
            left = (until - began) / (1 if split else len(lengths) - path)
            try:
                outcome = compute_apart(problem.learner, left, evaluate_inputs, inputs, [unit], seconds=left)
            except LostError:  # it was late, or has ended its process
                if split:
                    return finished, lost
                lost[learner] = ()
                continue
            if outcome.failures:
                lost[learner] = outcome.failures
            found.append(outcome)
            took += monotonic() - began
        if found:
            finished.append(found)
        if not found or until - monotonic() < took:
            break
    return finished, lost


def expect_run(tried: Try, problem: Problem) -> list[Claim]:
    """Return what the run of a problem is expected to prove, if the best is as often wrong on its rows."""
    scored, (best, figures) = tried.scored, tried.ranked[0]
    if not problem.task.classes:
        return expect_claims(problem, [figures.mean / scored.scores[0].largest])
    right, rows = np.split(best.totals[:, scored.problem.columns[BY_CLASS]][:, 1:].sum(axis=0), 2)
    shares = dict(zip(scored.task.classes, 1 - right / np.maximum(rows, 1), strict=True))
    return expect_claims(problem, [shares.get(label, 1.0) for label in problem.task.classes])
