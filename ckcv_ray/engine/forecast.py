"""What a run will take: time, from a short trial whose records the run can use, and rows of rare classes.

The cost of a plan does not grow with the number of evaluations: they are counted, not listed, and for a large
study the trial uses a thinned one. What the rounds of a search within a budget take follows from paths on
ever more rows of one split: the costs of settings may differ a hundredfold, and few rows do not tell what
fits on all rows take.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import nan
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ckcv_ray import errors
from ckcv_ray.claims.certify import list_needs
from ckcv_ray.claims.quantity import Need
from ckcv_ray.core.options import present
from ckcv_ray.core.schedule import Stage, Unit, weigh_rounds
from ckcv_ray.engine.evaluate import Inputs, estimate_memory, evaluate_apart, share, warm_up
from ckcv_ray.engine.queue import OWN_SECONDS, Queue, Rates, choose_batch_seconds
from ckcv_ray.engine.race import BudgetQueue, describe_failures
from ckcv_ray.engine.recorder import make_queue
from ckcv_ray.errors import MOST, Index, RunError, Values, duration, format_percent, integer, pluralize
from ckcv_ray.records.record import Outcome
from ckcv_ray.study.parts import Paper
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Study, check_kind
from ckcv_ray.tables.roles import MIN_CLASSES
from ckcv_ray.tables.task import Task

GOLDEN_RATIO = (1 + 5**0.5) / 2
MAX_UNLEARNED = 0.05  # probability that a class is never learned from which on this is said
FEW_PATHS = 3  # that could follow the first path
FEWEST_ROWS_SHARE = 1 / 4  # share of the time that trying all paths on the fewest rows may take
TRIAL_SECONDS = 2.0
WORKERS = (1, 8, 64, 512)
MAX_TRIAL_EVALUATIONS = 500_000
MAX_CLAIMS = 6  # that are shown, those of the rarest classes first
MAX_SIZES, MAX_VALUES, MAX_SPLITS = 48, 12, 20
RAY_SECONDS = 5.0
FEW_FOLDS, FEW_SPLITS = (3, 5, 10), 5  # a race that is quick even on many rows
MIN_SECONDS = 0.05
TRIAL_SHARE = 0.02  # of a run's time, for a trial that turns the time into an effort
PLANNED_SHARE = 0.85  # share of a budget that is planned: later fits may take longer than those of the trial


@dataclass(frozen=True)
class _RoundSeconds:
    """Seconds that the rounds of a search within a budget take on one worker.

    A search spends most of its effort on a few settings.
    """

    shares: Values  # share of the effort that each round has, (n_rounds,)
    each: Values  # seconds per unit of effort in each round but the last, (n_rounds - 1,)
    evaluations: Values  # in the last round, if the best 0, 1, 2, ... settings take part, (n_settings + 1,)
    seconds: Values  # the same, in seconds

    def __call__(self, effort: float) -> float:
        """Return the seconds of a search with this effort."""
        *before, last = effort * self.shares
        return float(np.dot(before, self.each) + np.interp(last, self.evaluations, self.seconds))


class _Trial:
    """A trial of a search within a budget, which has to end at a deadline, on the clock of ``monotonic``.

    The first path of each learner is tried on more rows than others, and tells how the time of all paths
    grows with rows.

    Attributes:
        positions: the positions of ever more rows, by level.
        costs: cost of an evaluation, relative to one on all rows, (levels, n_paths).
        seconds: seconds of an evaluation, (levels, n_paths); nan where it was not tried, or failed.
        tried: whether it was tried, (levels, n_paths).
        paths: the paths of each learner, the first one first.
    """

    def __init__(self, queue: BudgetQueue, inputs: Inputs, deadline: float) -> None:
        problem, of_paths = queue.problem, queue.problem.learner_of_paths
        self.queue, self.inputs, self.deadline = queue, inputs, deadline
        self.positions, self.lengths = problem.screen_positions[::-1], np.array(problem.learner.space.lengths)
        self.costs = np.array([problem.weigh(position) for position in self.positions])[:, of_paths]
        self.seconds, self.tried = np.full(self.costs.shape, nan), np.zeros(self.costs.shape, np.bool_)
        each = (np.flatnonzero(of_paths == learner) for learner in range(len(problem.learners)))
        self.paths = [mine[spread(len(mine))] for mine in each]

    def expect(self, paths: Index, level: int) -> Values:
        """Return the seconds expected of an evaluation by each path of a learner, (n_paths,).

        They grow with the level as the first path's do, or else as costs; untried paths are like the first.
        """
        pace, costs = self.seconds[:, paths[0]], self.costs[:, paths[0]]
        growth, known = np.ones(len(pace)), np.flatnonzero(np.isfinite(pace))
        if len(known):
            near = known[np.maximum(np.searchsorted(known, np.arange(len(pace)), side="right") - 1, 0)]
            growth = pace[near] * costs / costs[near]
        measured = np.isfinite(self.seconds[:, paths])
        last = measured.cumsum(axis=0).argmax(axis=0)
        own = self.seconds[last, paths] * growth[level] / growth[last]
        return np.where(measured.any(axis=0), own, growth[level] if len(known) else 0.0)

    def run(self) -> Iterator[Outcome]:
        """Evaluate paths of each learner, in an equal share of the time, on ever more rows.

        The first climbs as far as a few more could follow in time; the others then use as many rows as all
        of them can in the time left. All are tried on the fewest rows before that if this takes
        little of the time, lest one of them takes far longer than the others.
        """
        for number, paths in enumerate(self.paths):
            end = monotonic() + (self.deadline - monotonic()) / (len(self.paths) - number)
            (first, *rest), lengths = paths.tolist(), self.lengths[paths]
            yield self.evaluate(first, 0)
            needed = (self.expect(paths, 0) * lengths)[1:].sum()
            if np.isfinite(self.seconds[0, first]) and needed <= FEWEST_ROWS_SHARE * (end - monotonic()):
                yield from (self.evaluate(path, 0) for path in rest)
            level, top = 0, len(self.positions) - 1
            while level < top:
                if FEW_PATHS * (self.expect(paths, level + 1) * lengths)[0] > end - monotonic():
                    break
                level += 1
                yield self.evaluate(first, level)
            every = ((at, self.expect(paths, at) * lengths) for at in range(level, 0, -1))
            lower = (at for at, seconds in every if seconds[1:].sum() <= end - monotonic())
            if all_follow := next(lower, None):
                yield from (self.evaluate(path, all_follow) for path in rest)
            elif np.isfinite(self.seconds[:, paths]).any(axis=0).sum() == 1:
                each = zip(rest, (self.expect(paths, level) * lengths)[1:], strict=True)
                some = (path for path, seconds in each if seconds <= end - monotonic())
                yield from (self.evaluate(path, level) for path in some)

    def evaluate(self, path: int, level: int) -> Outcome:
        """Evaluate a path, and keep its time unless it failed: on so few rows a failure may be inevitable."""
        unit = Unit(Stage.SELECT, self.positions[level], 0, ((path, int(self.lengths[path])),))
        (outcome,) = evaluate_apart([unit], self.inputs)
        self.tried[level, path] = True
        if not outcome.failures:
            self.seconds[level, path] = outcome.seconds / self.lengths[path]
        return outcome

    def measure_rounds(self) -> _RoundSeconds:
        """Return what rounds take: the later they are, the fewer and better their settings.

        Which are better is judged on the largest part on which all paths of a learner were tried; if there
        is none, they are assumed to be alike.
        """
        queue, problem, exists = self.queue, self.queue.problem, self.queue.exists
        each, values, alike = np.zeros(len(exists)), np.full(exists.shape, np.inf), False
        for paths in self.paths:
            expected = self.expect(paths, len(self.positions) - 1)
            last = np.isfinite(self.seconds[:, paths]).cumsum(axis=0).argmax(axis=0)
            like_first = expected[1:][last[1:] == last[0]]
            # what the first path of a split computed for all of them is divided among them
            shared = max(0.0, expected[0] - float(np.mean(like_first))) if len(like_first) else 0.0
            expected[0] -= shared
            each[paths] = expected + shared / len(expected)
            whole = np.flatnonzero(self.tried[:, paths].all(axis=1))
            if len(whole):
                found = queue.compute_values(self.positions[whole[-1]])[0][paths]
                values[paths] = np.where(found < 0, np.inf, found)
            alike |= not np.isfinite(values[paths]).any()
        if alike:
            each[:] = each @ self.lengths / self.lengths.sum()
        at = np.nonzero(exists)
        best = at[0][np.argsort(values[at], kind="stable")]  # the path of each setting, best first
        larger = problem.mean_cost / problem.cost(Stage.SELECT, problem.screened)
        later = each * larger[problem.learner_of_paths]  # in all fold sizes
        n_splits = sum(size.n_splits for size in problem.sizes)
        shares = np.array(weigh_rounds(len(queue.counts)))
        compared = [each[best[:count]].mean() for count in queue.counts]
        return _RoundSeconds(
            shares=shares / shares.sum(),
            each=np.array([*compared, later[best[: queue.search.survivors]].mean()]),
            evaluations=np.arange(problem.n_settings + 1.0) * n_splits,
            seconds=np.concatenate([[0.0], np.cumsum(later[best]) * n_splits]),
        )


def spread(n: int) -> Index:
    """Return 0 .. n-1 in an order in which every prefix covers the range."""
    return np.argsort(np.arange(n) * GOLDEN_RATIO % 1.0)


@dataclass(frozen=True)
class Estimate:
    """Estimate of a run from a short trial on the data."""

    seconds: float  # seconds of work expected to be left for one worker, drops taken into account
    rates: Rates  # seconds per unit of an evaluation's relative cost
    outcomes: tuple[Outcome, ...]  # of the trial; the run need not recompute their records
    inputs: Inputs  # inputs of the evaluations
    refits: float  # seconds of refitting the winner, and of all evaluations on estimate sets if exhaustive
    rounds: _RoundSeconds | None = None  # what a search within a budget takes; None for a race

    @property
    def is_known(self) -> bool:
        """Whether any evaluation of the trial succeeded."""
        return any(len(outcome.records) for outcome in self.outcomes)

    def expect_selection(self, problem: Problem) -> float:
        """Return the seconds that all evaluations of a problem, of which this is a part, would take."""
        if self.rounds is not None:
            return float(self.rounds.seconds[-1])
        costs = [problem.compute_cost(size.n_train) * size.n_splits for size in problem.sizes]
        return self.rates.seconds_for(problem.settings_per_learner * np.sum(costs, axis=0))

    def expect_rounds(self, effort: int, workers: int) -> float:
        """Return the wall time in seconds that a search within a budget is planned to take with an effort."""
        assert self.rounds is not None
        problem = self.inputs.problem
        ends = effort < problem.n_evaluations
        seconds = self.rounds(effort) if ends else self.expect_selection(problem)
        return (seconds + self.refits) / (PLANNED_SHARE * workers)

    def fit_effort(self, seconds: float, workers: int) -> int:
        """Return the effort of a search that is planned to take this wall time, from 1 to everything."""
        every = self.inputs.problem.n_evaluations
        if self.expect_rounds(every, workers) <= seconds:
            return every
        return max(1, bisect_right(range(1, every), seconds, key=lambda n: self.expect_rounds(n, workers)))


@dataclass(frozen=True)
class Plan:
    """Resources that a study needs.

    Attributes:
        evaluations: evaluations of the selection.
        splits: splits of the data that they belong to.
        sizes: distinct fold sizes.
        bytes_per_worker: memory a worker needs for the largest split.
        seconds_at_most: seconds for one worker if nothing were dropped.
        seconds_by_workers: expected seconds by number of workers; 1 means a single process without Ray.
        claims: the rows that each claim needs, and how many it will have.
        effort: that of a search within a budget; None for a race.
        seconds_by_effort: expected seconds on one worker with less and more effort; empty for a race, which
            a search becomes if its effort pays for everything.
        few_folds: expected seconds on one worker of a race over ``FEW_FOLDS`` with ``FEW_SPLITS`` splits.
    """

    evaluations: int
    splits: int
    sizes: int
    bytes_per_worker: int
    seconds_at_most: float
    seconds_by_workers: dict[int, float]
    claims: tuple[Need, ...] = ()
    effort: int | None = None
    seconds_by_effort: dict[int, float] = field(default_factory=dict)
    few_folds: float = 0.0

    def to_json(self) -> dict[str, object]:
        """Return the fields as JSON values."""
        return asdict(self) | {"claims": [need._asdict() for need in self.claims]}

    @property
    def counts(self) -> str:
        """What there is to compute, in words."""
        evaluations, splits = pluralize(self.evaluations, "evaluation"), pluralize(self.splits, "split")
        return f"{evaluations} in {splits} of {pluralize(self.sizes, 'fold size')}"

    @property
    def costs(self) -> dict[str, str]:
        """What the study takes, in words, by name; numbers of workers are aligned."""
        return {
            "memory": f"about {self.bytes_per_worker >> 20:,} MiB per worker",
            "at most": f"{duration(self.seconds_at_most)} on one worker, if no candidate were dropped",
        } | {
            f"{n:>4} worker{'s' * (n > 1)}": f"about {duration(time)} ({'ray' if n > 1 else 'serial'})"
            for n, time in self.seconds_by_workers.items()
        }

    def list_needs(self) -> list[str]:
        """Return lines on the rows that the first claims need."""
        more = len(self.claims) - MAX_CLAIMS
        others = [f"and {pluralize(more, 'more claim')}, about classes with no fewer rows"] * (more > 0)
        return [*(line for need in self.claims[:MAX_CLAIMS] for line in need.lines), *others]

    def _repr_html_(self) -> str:
        """Return the plan for a notebook: a card with what it takes, and the rows that claims need."""
        card: str = present("plan", self)
        return card


def estimate(problem: Problem, limit: float = 0.0, fit_timeout: float | None = None) -> Estimate:
    """Compute for about two seconds, and forecast the rest from what is measured.

    The first split is evaluated path by path, so that even on many rows the trial can end after any path; but
    a race's trial tries a path of every learner.

    Args:
        problem: what is to be computed.
        limit: seconds that the whole run may take; the trial takes a fiftieth of them if that is longer.
        fit_timeout: seconds that a fit may take; None for no limit.
    """
    inputs, queue = share(problem)._replace(fit_timeout=fit_timeout), make_queue(problem)
    warm_up(inputs)
    deadline = monotonic() + max(TRIAL_SECONDS, TRIAL_SHARE * limit)
    trial = _Trial(queue, inputs, deadline) if isinstance(queue, BudgetQueue) else None
    in_rounds, tried = trial is not None and not queue.racing, list[Outcome]()
    for outcome in trial.run() if trial else _try_units(queue, inputs, deadline):
        tried.append(outcome)
        queue.add(outcome)
    rates, failed = queue.rates, [failure.path for outcome in tried for failure in outcome.failures]
    lost = problem.learner_of_paths[np.array(failed, np.intp)]
    rates.per_cost[lost[rates.per_cost[lost] == np.inf]] = 0.0  # all fits of a learner failed; others go on
    rounds = trial.measure_rounds() if trial else None
    left = rounds(queue.search.effort or 0) if rounds is not None and in_rounds else queue.expect_left()
    refits = 0.0
    if not problem.scores:  # with several learners, the winner is assumed to be the one that takes longest
        longest = [max(learner.space.lengths) for learner in problem.learners.values()]
        of_winner = problem.sizes[0].n_splits * np.array(longest) * problem.cost(Stage.REFIT, 0)
        refits = max(rates.seconds_for(cost) for cost in np.diag(of_winner))
        if problem.study.search.exhaustive:
            costs = [size.n_splits * problem.cost(Stage.ESTIMATE, j) for j, size in enumerate(problem.sizes)]
            refits += rates.seconds_for(problem.settings_per_learner * np.sum(costs, axis=0))
    return Estimate(left + refits, rates, tuple(tried), inputs, refits, rounds)


def plan(
    study: Study,
    X: ArrayLike,
    y: ArrayLike,
    workers: Sequence[int] = WORKERS,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Plan:
    """Plan a study on inputs X [n, d] and labels y [n], in about two seconds for any size of study.

    Args:
        study: learner, resampling, criterion, certification and seed.
        X, y, groups, sample_weight: as for ``run``.
        workers: numbers of workers to estimate the time for.

    Raises:
        InputError: the study does not apply to the data, or ``workers`` are not integers of at least 1.
        RunError: every evaluation of the trial failed.
    """
    check_kind(study, Study)
    numbers, column = study.predicts_numbers, study.column
    task = Task.of(X, y, groups, numbers=numbers, sample_weight=sample_weight, split_by=column)
    return plan_problem(Problem.of(study, task), workers)


def plan_problem(problem: Problem, workers: Sequence[int] = WORKERS) -> Plan:
    """Plan a problem, in about two seconds for any size of study.

    Raises:
        InputError: ``workers`` are not integers of at least 1.
        RunError: every evaluation of the trial failed.
    """
    counts = [integer("workers", count, 1, MOST) for count in errors.sequence("workers", workers, least=1)]
    tried, study, sizes = problem, problem.study, problem.sizes
    if problem.n_evaluations > MAX_TRIAL_EVALUATIONS and problem.budget is None:
        # a study of fewer fold sizes, splits and values is tried
        kept = np.linspace(0, len(sizes) - 1, min(len(sizes), MAX_SIZES)).astype(int)
        options: dict[str, Any] = {"k": tuple(sizes[j].k for j in kept), "report_k": ()}
        if isinstance(n_splits := study.options().get("n_splits"), int):
            options["n_splits"] = min(n_splits, MAX_SPLITS)
        thinned = study.replace(**options).with_learner(study.learner.thinned(MAX_VALUES))
        tried = Problem.of(replace(thinned, certification=Paper()), problem.task)
    expected = estimate(tried)
    if not expected.is_known:
        failures = [failure for outcome in expected.outcomes for failure in outcome.failures]
        raise RunError(f"nothing could be computed: {describe_failures(failures, tried)}")
    every, some = map(expected.expect_selection, (problem, tried))
    seconds = sum(outcome.seconds for outcome in expected.outcomes) + expected.seconds
    if problem.budget is None:
        seconds *= every / some
    stages, effort = 2 if study.search.exhaustive else 1, study.effort
    by_effort: dict[int, float] = {}
    if effort is not None and (rounds := expected.rounds) is not None and effort < problem.n_evaluations:
        for another in (max(problem.least_effort, effort // 4), min(4 * effort, problem.n_evaluations)):
            if another != effort:
                by_effort[another] = min(seconds + rounds(another) - rounds(effort), every)
    splits = sum(size.n_splits for size in sizes)
    return Plan(
        evaluations=splits * problem.n_settings,
        splits=splits,
        sizes=len(sizes),
        bytes_per_worker=estimate_memory(problem),
        seconds_at_most=max(seconds, every * stages),
        seconds_by_workers={
            count: estimate_wall_seconds(seconds, count) if count > 1 else seconds for count in counts
        },
        claims=tuple(list_needs(problem)),
        effort=effort,
        seconds_by_effort=by_effort,
        few_folds=len(FEW_FOLDS) * FEW_SPLITS * problem.n_settings * every / problem.n_evaluations,
    )


def estimate_wall_seconds(work: float, workers: int) -> float:
    """Return the wall time on Ray for seconds of work, including its start and the driver's limit."""
    batch = choose_batch_seconds(work, workers, MIN_SECONDS)
    return RAY_SECONDS + max(work / workers, batch, work / batch * OWN_SECONDS)


def _try_units(queue: Queue, inputs: Inputs, deadline: float) -> Iterator[Outcome]:
    """Evaluate units up to the refits, the first of them path by path, and every learner at least once."""
    problem, tried = queue.problem, set[int]()
    to_try = 0 if problem.scores else len(problem.learners)
    while (batch := queue.plan(1)).units and batch.units[0].stage is Stage.SELECT:
        for planned in batch.units:
            units = [planned]
            if not tried:  # every prefix then covers the range of paths, after one path of every learner
                order = spread(len(planned.paths))
                learners = problem.learner_of_paths[[planned.paths[i][0] for i in order]]
                first = np.unique(learners, return_index=True)[1]
                later = np.setdiff1d(np.arange(len(order)), first)
                paths = [planned.paths[order[i]] for i in (*np.sort(first), *later)]
                units = [planned._replace(paths=(path,)) for path in paths]
            for unit in units:
                yield from evaluate_apart([unit], inputs)
                tried.update(problem.learner_of_paths[[path for path, _ in unit.paths]].tolist())
                if monotonic() > deadline and len(tried) >= to_try:
                    return


def describe_rare_classes(task: Task, held: int) -> list[str]:
    """Return a sentence about classes in a single row or group, and one about those in few.

    All of it depends only on how many rows, or groups, each class has, and on nothing that is drawn: advice
    given after a draw, because of what it gave, would amount to another draw.

    Args:
        task: all rows.
        held: rows, or groups, of the task that are held out; 0 without a hold-out.
    """
    if not task.classes:
        return []
    n, unit, said = task.n_units, task.unit, list[str]()
    pairs = np.unique(task.y * np.int64(n) + task.row_units)  # units with rows of each class
    units = np.bincount(pairs // n, minlength=task.n_classes)
    rarest_first = np.argsort(units, kind="stable")
    lone = rarest_first[units[rarest_first] == 1]
    if len(lone):
        leave_out = ", or leave it out" if task.n_classes - len(lone) >= MIN_CLASSES else ""
        said.append(
            f"rare: {task.target.name_classes(lone, units, unit)}; if the only {unit} of a class is judged, "
            f"the class was not learned, and its rows count as wrong: add {unit}s of it{leave_out}"
        )
    counted = map(np.arange, units)
    all_held = np.array([np.prod((held - drawn) / (n - drawn)) for drawn in counted])  # probabilities
    chance = 1 - float(np.prod(1 - all_held[units > 1]))
    if chance > MAX_UNLEARNED:
        least = MAX_UNLEARNED / len(units)
        few = [i for i in rarest_first if units[i] > 1 and all_held[i] > least]
        said.append(
            f"rare: {task.target.name_classes(few, units, unit)}; with probability {format_percent(chance)} "
            f"all {unit}s of one of them are among the {held:,} of {n:,} held out, so that it is never "
            "predicted: before a first run, hold out fewer rows, or none with --paper"
        )
    return said
