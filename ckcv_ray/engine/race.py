"""The queues of searches: a race, which drops what is provably beaten, and rounds within a budget.

Plain classes without files. Adding is idempotent: a duplicate of a record is ignored, and a different record
under the same key stops the run.

Within a budget there are rounds with ever fewer candidates, and a race among the last. What a round computes
is a function of the study and of the complete results of earlier rounds; other records, such as those of an
earlier search with less effort, save computing them again but decide nothing. So the answer is the
same for any number of workers, any order of arrival and after any crash.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import ceil, floor, inf
from time import monotonic

import numpy as np
import pyarrow as pa

from ckcv_ray.core import schedule
from ckcv_ray.core.schedule import Lengths, Round, Schedule, Stage, Unit
from ckcv_ray.core.selection import ABSENT, FAILED, UNKNOWN, Selection
from ckcv_ray.engine.queue import OWN_SECONDS, Batch, Progress, Queue, choose_batch_seconds
from ckcv_ray.errors import Index, Mask, Values
from ckcv_ray.records.candidates import make_candidate_table
from ckcv_ray.records.record import POSITIONS, Failure, Outcome, Records, divide_records
from ckcv_ray.study.problem import Candidate, Problem

FORECAST_SECONDS = 0.5
LEADERLESS_SHARE = 0.5
ANCHOR_SPLITS = 1 / 5  # share of the splits in the round that compares fold sizes
UNITS_PER_ROUND = 32  # a round is divided into about as many parts, to keep several workers busy


class RaceQueue(Queue):
    """The records of one run, what follows from them, and what is left to compute.

    Args:
        problem: the problem to solve.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        least, exhaustive = problem.criterion.least, problem.study.search.exhaustive
        sizes = [
            (size.n_splits, least(problem.units(Stage.SELECT, j))) for j, size in enumerate(problem.sizes)
        ]
        groups = problem.own, exhaustive, problem.learner_of_paths, problem.references
        self.selection = Selection(sizes, problem.learner.space.lengths, *groups)
        costs = np.array([problem.cost(Stage.SELECT, j) for j in range(len(problem.sizes))])
        self.schedule = Schedule(self.selection, costs, self._transfer)
        self._estimates: Iterator[Unit] | None = None
        self._forecast_at, self._left = -inf, inf

    def plan(self, workers: int, least: float = 0.0) -> Batch:
        """Return the next batch of units; empty if none is available now, or none is left.

        While no complete candidate leads, batches are shorter than ``choose_batch_seconds`` says, since
        each result may then change what is worth computing.
        """
        self.workers = workers
        seconds = choose_batch_seconds(self._left or inf, workers, least)
        if self._estimates is None and not self.is_decided():
            early = LEADERLESS_SHARE * max(least, workers * OWN_SECONDS)
            units = iter(self.schedule.next, None)
            return self.fill(units, seconds if self.schedule.has_leaders() else early)
        if self._estimates is None:
            self._estimates = self._estimate_units()
        return self.fill(self._estimates, seconds)

    def add(self, outcome: Outcome) -> Records:
        """Add the outcome of a batch; return its new records."""
        new = super().add(outcome)
        if self.is_decided() or monotonic() - self._forecast_at > FORECAST_SECONDS:
            self._forecast_at = monotonic()
            self._left = self.expect_left()
        return new

    def follow(self, outcome: Outcome, lost: Sequence[Failure]) -> None:
        """Enter values and failures into the selection."""
        records, criterion = outcome.records, self.problem.criterion
        for estimate, size, here in divide_records(records):
            if not estimate:
                split, path, step = (records[name][here] for name in POSITIONS[1:])
                units = self.problem.units(Stage.SELECT, size)
                units = units[split] if isinstance(units, np.ndarray) else units
                values = criterion.value(records["totals"][here], units)
                self.selection.enter(size, split, path, step, values)
        for failure in lost:
            if not failure.estimate:
                steps = slice(failure.first, failure.stop)
                self.selection.fail(failure.size, failure.split, failure.path, steps)
        self.selection.refresh()

    def expect_left(self) -> float:
        """Return the seconds of selection expected to be left for one worker; 0 once decided."""
        return 0.0 if self.is_decided() else self.rates.seconds_for(self.schedule.forecast())

    def is_decided(self) -> bool:
        """Return whether nothing that is left could change what is selected."""
        return all(self.selection.lowest(j) == inf for j in range(len(self.problem.sizes)))

    def progress(self) -> Progress:
        """Return the progress of the run."""
        planned = computed = failed = dropped = 0
        for j, fold in enumerate(self.selection.sizes):
            alive, thresholds = self.selection.alive(j), self.selection.thresholds(j)
            lost = fold.blocked & (fold.low <= thresholds[:, None])
            unknown = fold.values == UNKNOWN
            planned += int(np.sum(fold.values != ABSENT))
            failed += int(np.sum((fold.values == FAILED) | (unknown & lost)))
            computed += int(np.sum(fold.values >= 0))
            dropped += int(np.sum(unknown & ~alive & ~lost))
        leader = self.selection.winner
        best = (self.problem.candidate(leader), leader.l_ms) if leader else None
        counts = planned, computed, failed, dropped, self.ledger.not_converged(), self.fits
        return Progress(*counts, left=self._left, best=best, workers=self.workers)

    def candidates(self) -> pa.Table:
        """Return the table of candidates."""
        return make_candidate_table(self.problem, self.selection, lambda size: self.ledger.totals(size, True))

    def complete(self) -> bool:
        """Return whether the selection is decided and every requested estimate is held or failed."""
        return self.is_decided() and next(self._estimate_units(), None) is None

    def _estimate_units(self) -> Iterator[Unit]:
        """Yield a unit for each split with estimates neither held nor failed, if exhaustive."""
        if not self.problem.study.search.exhaustive:
            return
        every = tuple(enumerate(self.problem.learner.space.lengths))
        for j in range(len(self.problem.sizes)):
            missing = (self.selection.sizes[j].values != ABSENT) & ~self.ledger.done(j, True)
            for i in np.flatnonzero(missing.any(axis=(1, 2))).tolist():
                yield Unit(Stage.ESTIMATE, j, i, every)

    def _transfer(self, values: Values, like: int, size: int) -> Values:
        """Return the values expected in one fold size, given those of another."""
        units = self.problem.units(Stage.SELECT, like), self.problem.units(Stage.SELECT, size)
        return self.problem.criterion.transfer(values, *units)


class BudgetQueue(RaceQueue):
    """Records of one run, the rounds so far, and what is left to compute.

    Args:
        problem: the problem to solve, with a ``Budget``.

    Attributes:
        rounds: what each round computes, the current one last.
        over: number of rounds that are over, except those repeated on a larger part of the rows.
        left: effort that later rounds may cost, in evaluations on all rows.
        racing: whether the last round has begun.
        settings: in the fold size at which settings are compared, the value of each in the last round,
            (n_paths, n_steps); inf for those that no longer take part.
        judged: as ``settings``, but those keep their value from the last round in which they took part.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        assert problem.budget is not None
        self.search = problem.budget
        self.counts = schedule.count_kept(problem.n_settings, self.search.keep, self.search.survivors)
        self.rounds: list[Round] = []
        self.over = 0
        self.order = problem.learner_of_paths  # numbers that order equal candidates first, by path
        self.left = float(self.search.effort or 0)
        self.racing = False
        self.exists: Mask = self.selection.sizes[0].values[0] != ABSENT
        self.settings: Values = np.where(self.exists, 0.0, inf)
        n_paths = len(self.exists)
        self.wanted: list[Lengths] = [np.zeros((fold.n_splits, n_paths), np.intp) for fold in problem.folds]
        self.judged: Values = np.full(self.exists.shape, inf)
        if self.left >= problem.n_evaluations:  # it pays for every candidate, on all splits
            lengths = np.asarray(self.exists.sum(axis=1), np.intp)
            self._begin_race({j: (lengths, size.n_splits) for j, size in enumerate(problem.sizes)})
        else:
            self._begin_round(self._plan_screen())

    def plan(self, workers: int, least: float = 0.0) -> Batch:
        """Return the next batch of the round; empty if none is available now, or none is left."""
        return super().plan(workers, least) if self.racing else Queue.plan(self, workers, least)

    def follow(self, outcome: Outcome, lost: Sequence[Failure]) -> None:
        """Enter values and failures into the selection, and begin the rounds that follow.

        A round that compares settings on a part of the rows is repeated on a larger part if one of them fails
        there: what needs more rows than a part has may be the best on all of them.
        """
        self._exclude(lost)
        if self.racing:
            raced = range(len(self.problem.sizes))  # records of screens may arrive twice, or late
            for estimate, size, _ in divide_records(outcome.records):
                if not estimate and size in raced:
                    self._enter(size)
        while not (self.racing or any(self._list_missing())):  # the current round is complete
            if self.over < len(self.counts):
                ((position, (lengths, n_splits)),) = self.rounds[-1].items()
                if position not in self._list_parts():
                    self._begin_round(self._plan_screen())
                    continue
                values, steps = self.compute_values(position)[:n_splits], np.arange(self.exists.shape[1])
                here = (steps < lengths[:, None]) & self.exists & (values >= 0).all(axis=0)
                mean = np.where(here, values.mean(axis=0), 1.0)
                self.settings = np.where(here, self._transfer(mean, position, self.problem.screened), inf)
                self.judged = np.where(np.isfinite(self.settings), self.settings, self.judged)
            self.over += 1
            if self.over < len(self.counts):
                self._begin_round(self._plan_screen())
            elif self.over == len(self.counts):
                self._begin_round(self._plan_anchors())
            else:
                self._begin_race(self._plan_race())
        self.selection.refresh()

    def _exclude(self, failures: Iterable[Failure]) -> None:
        """Enter failures into the selection, of steps that take part in it."""
        for lost in failures if self.racing else ():
            if lost.size < len(self.problem.sizes) and not lost.estimate:
                wanted = int(self.wanted[lost.size][lost.split, lost.path])
                steps = slice(lost.first, max(lost.first, min(lost.stop, wanted)))
                self.selection.fail(lost.size, lost.split, lost.path, steps)

    def is_decided(self) -> bool:
        """Return whether all rounds are over, and nothing left could change what the last one selects."""
        return self.racing and super().is_decided()

    def expect_left(self) -> float:
        """Return the seconds of selection expected to be left for one worker; inf if not yet known."""
        if self.racing:
            return super().expect_left()
        shares = self.problem.settings_per_learner / self.problem.n_settings
        return Queue.expect_left(self) + self.rates.seconds_for(self.left * self.problem.mean_cost * shares)

    def progress(self) -> Progress:
        """Return the progress of the run, in evaluations that rounds want; the last round drops some."""
        wanted = [self._is_wanted(position) for position in range(len(self.wanted))]

        def count(failures: list[Failure]) -> int:
            steps = ((f, slice(f.first, f.stop)) for f in failures if not f.estimate)
            return sum(int(np.sum(wanted[f.size][f.split, f.path, lost])) for f, lost in steps)

        computed = sum(int(np.sum(mask & self.ledger.known(j))) for j, mask in enumerate(wanted))
        failed = count(self.failures())
        planned = sum(int(np.sum(mask)) for mask in wanted) - (count(super().failures()) - failed)
        dropped = planned - computed - failed if self.is_decided() else 0
        planned += 0 if self.racing else floor(self.left)
        return super().progress()._replace(planned=planned, computed=computed, failed=failed, dropped=dropped)

    def _is_wanted(self, position: int) -> Mask:
        """Return which evaluations rounds want, (n_splits, n_paths, n_steps)."""
        steps = np.arange(self.exists.shape[1])
        return np.asarray(steps < self.wanted[position][..., None]) & self.exists

    def _begin_round(self, following: Round) -> None:
        """Begin a round: its effort is taken from what is left, and what has no record will be computed."""
        self.rounds.append(following)
        self.rates.forget()  # settings that go on may cost a hundredth of the others
        for position, (lengths, n_splits) in following.items():
            here = self.wanted[position][:n_splits]
            self.left -= self._weigh(position, np.maximum(lengths - here, 0).sum(axis=0))
            np.maximum(here, lengths, out=here)
        if not self.racing:
            self.begin(self._list_missing())

    def _list_missing(self) -> Iterator[Unit]:
        """Yield the units of the current round that are neither held nor failed."""
        splits = sum(n_splits for _, n_splits in self.rounds[-1].values())
        for position, (lengths, n_splits) in self.rounds[-1].items():
            done = self.ledger.done(position)
            for split in range(n_splits):
                each = enumerate(lengths.tolist())
                missing = [(path, length) for path, length in each if not done[split, path, :length].all()]
                parts = max(1, min(len(missing), ceil(UNITS_PER_ROUND / splits)))
                for part in range(parts):
                    if paths := tuple(missing[part::parts]):
                        yield Unit(Stage.SELECT, position, split, paths)

    def _list_parts(self) -> tuple[int, ...]:
        """Return the positions at which settings can be compared, all rows of a split first.

        Of its parts, only those on which no setting that takes part failed.
        """
        positions = self.problem.screen_positions
        too_small = {
            failure.size
            for failure in super().failures()
            if not failure.estimate
            and failure.first < self.wanted[failure.size][failure.split, failure.path]  # not only in a trial
            and np.isfinite(self.settings[failure.path, failure.first : failure.stop]).any()
        }
        return tuple(at for at in positions if at < len(self.problem.sizes) or at not in too_small)

    def failures(self) -> list[Failure]:
        """Return the paths that failed, except those on parts of the rows, which exclude nothing."""
        return [failure for failure in super().failures() if failure.size < len(self.problem.sizes)]

    def _begin_race(self, last: Round) -> None:
        """Begin the last round, in which its candidates race: those that can no longer win are dropped."""
        self.racing = True
        self._begin_round(last)
        steps, sizes = np.arange(self.exists.shape[1]), range(len(self.problem.sizes))
        none = np.zeros(len(self.exists), np.intp), 0
        self.selection.finalists = [steps < last.get(j, none)[0][:, None] for j in sizes]
        for size in sizes:
            self._enter(size)
        self._exclude(self.failures())

    def _plan_screen(self) -> Round:
        """Return the round that compares the best settings so far, at one fold size.

        It takes as many splits as its share of the effort allows, on the largest screen that allows enough.
        """
        lengths = schedule.keep_best(self.settings, self.counts[self.over], self.order)
        share, positions = self._share_effort(), self._list_parts()
        most = self.problem.folds[positions[0]].n_splits
        enough = min(self.search.least_splits, most)
        affordable = [int(share / self._weigh(position, lengths)) for position in positions]
        at = next((i for i, splits in enumerate(affordable) if splits >= enough), len(positions) - 1)
        n_splits = min(max(1, affordable[at]), most)
        return {positions[at]: (lengths, n_splits)}

    def _plan_anchors(self) -> Round:
        """Return the round that compares the best settings at fold sizes that stand for all."""
        sizes, expected, share = self.problem.sizes, self._expect_values(), self._share_effort()
        best = min(float(values.min()) for values in expected)
        may_win = [j for j in range(len(sizes)) if self.selection.sizes[j].floor <= best]
        anchors = schedule.list_anchors(
            [size.k for size in sizes], may_win or [self.problem.screened], self.problem.own
        )

        def weigh(lengths: Lengths, part: float) -> float:
            return sum(ceil(part * sizes[j].n_splits) for j in anchors) * self._weigh(anchors[0], lengths)

        kept = [
            schedule.keep_best(self.settings, most + 1, self.order) for most in range(self.search.survivors)
        ]
        lengths = next((few for few in reversed(kept) if weigh(few, ANCHOR_SPLITS) <= share), kept[0])
        part = min(ANCHOR_SPLITS, share / max(weigh(lengths, 1.0), 1.0))
        return {j: (lengths, max(1, round(part * sizes[j].n_splits))) for j in anchors}

    def _plan_race(self) -> Round:
        """Return the round that computes, on all splits, what looks best at any fold size.

        After all that take part come the settings that were left out earlier, as they looked then.
        """
        problem = self.problem
        n_splits = [size.n_splits for size in problem.sizes]
        out = np.isfinite(self.judged) & ~np.isfinite(self.settings)
        late = [
            np.where(out, self._transfer(np.where(out, self.judged, 1.0), problem.screened, j), inf)
            for j in range(len(problem.sizes))
        ]
        chosen = schedule.choose(
            self._expect_values(), late, self._share_effort(), n_splits, self.order, problem.own
        )
        return {j: (lengths, n_splits[j]) for j, lengths in chosen.items()}

    def _share_effort(self) -> float:
        """Return the effort of the next round, a weighted share of what is left."""
        weights = schedule.weigh_rounds(len(self.counts))
        return self.left * weights[self.over] / sum(weights[self.over :])

    def _weigh(self, position: int, lengths: Lengths) -> float:
        """Return the effort of the first steps of paths on one split: evaluations, fewer on fewer rows."""
        evaluations = np.bincount(self.order, lengths, len(self.problem.learners))
        return float(evaluations @ self.problem.weigh(position))

    def _expect_values(self) -> list[Values]:
        """Return the values expected of every candidate, (n_paths, n_steps) for each fold size."""
        problem, means = self.problem, dict[int, tuple[Values, Index]]()
        for j in range(len(problem.sizes)):
            wanted = self._is_wanted(j)
            if wanted.any():
                values = self.compute_values(j)
                known = wanted & (values >= 0)
                splits = known.sum(axis=0)
                means[j] = np.where(known, values, 0.0).sum(axis=0) / np.maximum(splits, 1), splits
        return schedule.expect_values(
            self.settings, means, self.search.survivors, problem.screened, problem.sizes, self._transfer
        )

    def compute_values(self, position: int) -> Values:
        """Return the criterion's values, (n_splits, n_paths, n_steps); -1 where there is no record."""
        known, units = self.ledger.known(position), self.problem.units(Stage.SELECT, position)
        totals = self.ledger.totals(position)[known]
        units = units[np.nonzero(known)[0]] if isinstance(units, np.ndarray) else units
        values = np.full(known.shape, -1.0)
        values[known] = self.problem.criterion.value(totals, units)
        return values

    def _enter(self, size: int) -> None:
        """Enter the values of one fold size that rounds want into the selection."""
        values, wanted = self.compute_values(size), self._is_wanted(size)
        split, path, step = np.nonzero(wanted & (values >= 0))
        if len(split):
            self.selection.enter(size, split, path, step, values[split, path, step])


def describe_failures(failures: Sequence[Failure], problem: Problem) -> str:
    """Describe how many paths failed, and the first of them with its traceback."""
    if not failures:
        return "no failure was recorded"
    first = failures[0]
    lost = Candidate(problem.learner.space.setting(first.path, first.first), problem.folds[first.size].k)
    where = f"{lost}, split {first.split}"
    return f"{len(failures)} paths failed, the first at {where}:\n{first.traceback}"
