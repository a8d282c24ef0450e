"""A first look at what a study may give, by the rows that its run will learn from.

Learners are scored on the same random splits, one split after the other, until the time is over. What is
shown is of the splits that all of them have finished: the scores of an ordinary procedure, whose folder, next
to that of the run, says which rows were seen. Those that the run holds out are not among them.
"""

from dataclasses import replace
from time import monotonic

import numpy as np

from ckcv_ray.claims.certify import expect_claims
from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.claims.quantity import Claim
from ckcv_ray.core.draws import TRIED
from ckcv_ray.core.measures import Outputs, Score
from ckcv_ray.core.resampling.drawn import Subsampling
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.evaluate import Inputs, evaluate, share, warm_up
from ckcv_ray.engine.loop import Stop
from ckcv_ray.engine.race import describe_failures
from ckcv_ray.engine.worker import LostError, compute_apart
from ckcv_ray.errors import RunError
from ckcv_ray.learners.ensemble import Models
from ckcv_ray.records.record import Outcome
from ckcv_ray.runs.scored import Scored, rank_entries
from ckcv_ray.study.problem import OUTER, Problem
from ckcv_ray.study.study import MAX_SEED_OF_SCORES, Procedure, Study
from ckcv_ray.tables.task import MIN_ROWS, Task

USUAL = "linear,forest,svm"  # what is tried if no learner is named, the quickest first
SPLITS = Subsampling(times=5, share=0.25)
BY_CLASS = "balanced_accuracy"  # the score whose sums are the recalls
MAX_VALUES = 3  # of each option of a learner
FEW_ROWS = 1000  # offered if nothing was finished


def look(
    study: Study, problem: Problem, seconds: float, rows: int | None, stop: Stop
) -> tuple[Problem, Outcome]:
    """Score the learners of a study on as many splits of its learning rows as there is time for.

    Args:
        study: the study as it was asked for.
        problem: the study on its task, of which some rows are held out.
        seconds: wall time, after which a fit is ended; it decides how much is shown, and no figure.
        rows: about how many of the learning rows to take, in whole groups; None for all.
        stop: asked between fits.

    Returns:
        What was finished: the procedure of the learners neither late nor failed on its rows, and its
        evaluations.

    Raises:
        InputError: these rows cannot be learned from.
        RunError: no learner has finished a split.
        KeyboardInterrupt: it was stopped.
    """
    began, task = monotonic(), take_rows(problem, rows)
    tried = _make_problem(study, problem, task)
    inputs = share(tried)._replace(fit_timeout=seconds)
    warm_up(inputs)
    found, lost = _fit_splits(inputs, began + seconds, stop)
    kept = [label for number, label in enumerate(tried.learners) if number not in lost]
    if not kept:
        if failures := [failure for outcome in found for failure in outcome.failures]:
            raise RunError(f"nothing could be computed: {describe_failures(failures, tried)}")
        cure = f"--rows {FEW_ROWS}" if task.n > FEW_ROWS else "allow more time"
        raise RunError(f"nothing finished in {seconds:g} s: {cure}")
    records = np.concatenate([outcome.records for outcome in found])
    paths = np.flatnonzero(~np.isin(tried.learner_of_paths, [*lost]))
    records = records[np.isin(records["path"], paths)]
    records["path"] = np.searchsorted(paths, records["path"])
    resampling = replace(SPLITS, times=int(records["split"].max()) + 1)
    made = Problem.of(tried.procedure.replace(learner=",".join(kept), resampling=resampling), task)
    return made, Outcome(records, (), (), monotonic() - began, len(records))


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


def _fit_splits(inputs: Inputs, until: float, stop: Stop) -> tuple[list[Outcome], set[int]]:
    """Evaluate one split after the other until the time is over; what was begun of one more is left out.

    Returns:
        What each path gives on each split; and the numbers of the learners that have failed, or were late in
        the first split, of which each path has an equal share of what is left.
    """
    problem, found, lost = inputs.problem, list[Outcome](), set[int]()
    lengths = problem.learner.space.lengths
    for split in range(SPLITS.times):
        of_split = list[Outcome]()
        for path, length in enumerate(lengths):
            if stop():
                raise KeyboardInterrupt
            if (learner := int(problem.learner_of_paths[path])) in lost:
                continue
            unit = Unit(Stage.SELECT, OUTER, split, ((path, length),))
            left = (until - monotonic()) / (1 if split else len(lengths) - path)
            try:
                outcome = compute_apart(problem.learner, left, evaluate, inputs, [unit], seconds=left)
            except LostError:  # it was late, or has ended its process
                if split:
                    return found, lost
                lost.add(learner)
                continue
            of_split.append(outcome)
            if outcome.failures:
                lost.add(learner)
        found += of_split
    return found, lost


def score_constant(problem: Problem, score: Score) -> float:
    """Return the mean loss of the best constant on the learning rows, as that of a learner."""
    y = problem.task.y
    constants = (np.full(len(y), value) for value in HeldOutPredictions(problem, Models()).constants)
    return min(score.of(y, Outputs(label=each.astype(np.int32), value=each)) for each in constants)


def expect_run(scored: Scored, problem: Problem) -> list[Claim]:
    """Return what the run of a problem is expected to prove, if the best is as often wrong on its rows."""
    best, figures = rank_entries(scored, scored.scores[0])[0]
    if not problem.task.classes:
        return expect_claims(problem, [figures.mean / scored.scores[0].largest])
    right, rows = np.split(best.totals[:, scored.problem.columns[BY_CLASS]][:, 1:].sum(axis=0), 2)
    shares = dict(zip(scored.task.classes, 1 - right / np.maximum(rows, 1), strict=True))
    return expect_claims(problem, [shares.get(label, 1.0) for label in problem.task.classes])
