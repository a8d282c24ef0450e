"""The trial of a search within a budget: what its rounds take, from paths on ever more rows of one split.

Settings may differ a hundredfold in what they cost, and few rows do not say what fits on all rows take.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic

import numpy as np

from ckcv_ray.core.arrays import Values
from ckcv_ray.core.rounds import count_kept, weigh_rounds
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.budget import BudgetQueue
from ckcv_ray.engine.evaluate import Inputs, evaluate
from ckcv_ray.records.record import Outcome

FEW_PATHS = 3  # that could follow the first one
FEWEST_ROWS_SHARE = 1 / 4  # of the time, that trying all paths on the fewest rows may take


@dataclass(frozen=True)
class RoundSeconds:
    """Seconds that the rounds of a search within a budget take on one worker.

    A search spends most of its effort on a few settings.
    """

    shares: Values  # share of the effort that each round has, (n_rounds,)
    each: Values  # seconds of a unit of effort in each round but the last, (n_rounds - 1,)
    evaluations: Values  # of the last round, if the best 0, 1, 2, ... settings take part, (n_settings + 1,)
    seconds: Values  # the same

    def __call__(self, effort: float) -> float:
        """Return the seconds of a search with this effort."""
        *before, last = effort * self.shares
        return float(np.dot(before, self.each) + np.interp(last, self.evaluations, self.seconds))


class PathTimes:
    """Measured times of the paths of a learner, and what they let expect.

    The first path is tried on more rows than others, and tells how the time of all of them grows with rows.

    Args:
        paths: its paths, the first one first.
        weights: cost of an evaluation on ever more rows, relative to one on all rows, by level.
    """

    def __init__(self, paths: list[int], weights: list[float]) -> None:
        self.paths, self.weights = paths, weights
        self.pace: dict[int, float] = {}  # of the first path, by level
        self.measured: dict[int, tuple[int, float]] = {}  # the highest level and its time, by path

    def add(self, path: int, level: int, seconds: float) -> None:
        """Add the seconds of an evaluation, measured at a level at least as high as earlier ones."""
        self.measured[path] = level, seconds
        if path == self.paths[0]:
            self.pace[level] = seconds

    def grow(self, level: int) -> float:
        """Return the time at a level relative to other levels, as the first path had it, else as weighed."""
        below = [known for known in self.pace if known <= level] or [min(self.pace, default=level)]
        return self.pace.get(below[-1], 1.0) * self.weights[level] / self.weights[below[-1]]

    def expect(self, path: int, level: int) -> float:
        """Return the seconds expected of an evaluation: those of the first path if this one was not tried."""
        if path in self.measured:
            known, seconds = self.measured[path]
            return seconds * self.grow(level) / self.grow(known)
        return self.grow(level) if self.pace else 0.0

    def expect_all(self) -> Values:
        """Return the seconds expected of an evaluation on all rows, (n_paths,).

        What the first path of a split computed for all of them is divided among them.
        """
        each = np.array([self.expect(path, len(self.weights) - 1) for path in self.paths])
        levels = [self.measured.get(path, (None, 0.0))[0] for path in self.paths]
        like_first = [time for time, level in zip(each[1:], levels[1:], strict=True) if level == levels[0]]
        shared = max(0.0, each[0] - float(np.mean(like_first))) if like_first else 0.0
        each[0] -= shared
        return np.asarray(each + shared / len(each))


class Trial:
    """A trial of a search within a budget.

    Args:
        queue: of the search.
        inputs: inputs of the evaluations.
        deadline: when it is to end, as ``monotonic`` tells it.
    """

    def __init__(self, queue: BudgetQueue, inputs: Inputs, deadline: float) -> None:
        problem = queue.problem
        self.queue, self.inputs, self.deadline = queue, inputs, deadline
        self.positions = problem.screen_positions[::-1]  # ever more rows
        self.lengths = problem.learner.space.lengths
        self.times = []
        for learner in range(len(problem.learners)):
            mine = np.flatnonzero(problem.learner_of_paths == learner).tolist()
            weights = [float(problem.weigh(position)[learner]) for position in self.positions]
            self.times.append(PathTimes([mine[i] for i in reverse_bits(len(mine))], weights))
        self.tried: set[tuple[int, int]] = set()  # level and path

    def run(self) -> Iterator[Outcome]:
        """Evaluate paths of each learner, in an equal share of the time."""
        for left, times in zip(range(len(self.times), 0, -1), self.times, strict=True):
            yield from self.climb(times, monotonic() + (self.deadline - monotonic()) / left)

    def climb(self, times: PathTimes, until: float) -> Iterator[Outcome]:
        """Evaluate paths of a learner on ever more rows.

        The first climbs as far as a few more could follow in time, and the others do on as many rows as all
        of them can in the time that is left. All are tried on the fewest rows before that if this takes
        little of the time, lest one of them takes far longer than the others.
        """
        first, *rest = times.paths
        top = len(self.positions) - 1

        def count_seconds(paths: list[int], level: int) -> float:
            return sum(times.expect(path, level) * self.lengths[path] for path in paths)

        yield self.evaluate(times, first, 0)
        if times.measured and count_seconds(rest, 0) <= FEWEST_ROWS_SHARE * (until - monotonic()):
            yield from (self.evaluate(times, path, 0) for path in rest)
        level = 0
        while level < top and FEW_PATHS * count_seconds([first], level + 1) <= until - monotonic():
            level += 1
            yield self.evaluate(times, first, level)
        lower = (at for at in range(level, 0, -1) if count_seconds(rest, at) <= until - monotonic())
        if all_follow := next(lower, None):
            yield from (self.evaluate(times, path, all_follow) for path in rest)
        elif len(times.measured) == 1:
            yield from (
                self.evaluate(times, path, level)
                for path in rest
                if count_seconds([path], level) <= until - monotonic()
            )

    def evaluate(self, times: PathTimes, path: int, level: int) -> Outcome:
        """Evaluate a path, and keep its time unless it failed: on so few rows it may have to."""
        unit = Unit(Stage.SELECT, self.positions[level], 0, ((path, self.lengths[path]),))
        outcome = evaluate([unit], self.inputs)
        self.tried.add((level, path))
        if not outcome.failures:
            times.add(path, level, outcome.seconds / self.lengths[path])
        return outcome

    def measure_rounds(self) -> RoundSeconds:
        """Return what rounds take: the later, the fewer and better the settings.

        Which are better is taken from the largest part on which all paths of a learner were tried; if there
        is none, they are taken to be alike.
        """
        problem, search, exists = self.queue.problem, self.queue.search, self.queue.exists
        each, values, alike = np.zeros(len(exists)), np.full(exists.shape, np.inf), False
        for times in self.times:
            each[times.paths] = times.expect_all()
            levels = range(len(self.positions))
            whole = [i for i in levels if all((i, path) in self.tried for path in times.paths)]
            if whole:
                found = self.queue.compute_values(self.positions[whole[-1]])[0][times.paths]
                values[times.paths] = np.where(found < 0, np.inf, found)
            alike |= not np.isfinite(values[times.paths]).any()
        if alike:
            each[:] = np.average(each, weights=self.lengths)
        at = np.nonzero(exists)
        best = at[0][np.argsort(values[at], kind="stable")]  # the path of each setting, the best first
        counts = count_kept(problem.n_settings, search.keep, search.survivors)
        larger = np.mean([problem.cost(Stage.SELECT, j) for j in range(len(problem.sizes))], axis=0)
        larger /= problem.cost(Stage.SELECT, problem.screened)
        later = each * larger[problem.learner_of_paths]  # in all fold sizes
        n_splits = sum(size.n_splits for size in problem.sizes)
        shares = np.array(weigh_rounds(len(counts)))
        compared = [each[best[:count]].mean() for count in counts]
        return RoundSeconds(
            shares=shares / shares.sum(),
            each=np.array([*compared, later[best[: search.survivors]].mean()]),
            evaluations=np.arange(problem.n_settings + 1.0) * n_splits,
            seconds=np.concatenate([[0.0], np.cumsum(later[best]) * n_splits]),
        )


def reverse_bits(n: int) -> list[int]:
    """Return 0 .. n-1 in bit-reversed order, in which every prefix covers the range."""
    bits = max(1, (n - 1).bit_length())
    order = sorted(range(1 << bits), key=lambda i: int(f"{i:0{bits}b}"[::-1], 2))
    return [i for i in order if i < n]
