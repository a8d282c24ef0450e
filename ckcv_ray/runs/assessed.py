"""The result of a procedure of cross validation: the scores of every split, what follows, and its summary."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, isfinite, log10, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.claims.percent import at_most
from ckcv_ray.claims.wording import equal_rows
from ckcv_ray.core.comparison import Compared, corrected_t_test
from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.scores import Score
from ckcv_ray.engine.full import Scores
from ckcv_ray.errors import counted
from ckcv_ray.learners.base import Setting
from ckcv_ray.records.record import Failure
from ckcv_ray.study import Problem, listed
from ckcv_ray.study.problem import OUTER
from ckcv_ray.tables.repeats import Repeats, find_repeats

Values = NDArray[np.float64]
Positions = NDArray[np.intp]
DELTA = 0.05  # of the bounds on the scores of one split


class Figures(NamedTuple):
    """One score of one entry over all splits.

    Attributes:
        name: of the score.
        mean, deviation, error: mean over splits, their standard deviation (n - 1), and the standard error,
            which presumes that splits are independent, as they hardly ever are; nan if it is not complete.
        pooled: the score of all scored rows as one set; None if it cannot be pooled, nan if not complete.
        missing: splits that failed, or whose setting could not be selected.
        undefined: splits in which the score is not defined, such as AUC where a class is missing.
    """

    name: str
    mean: float
    deviation: float
    error: float
    pooled: float | None
    missing: int
    undefined: int


@dataclass(frozen=True, eq=False)
class Entry:
    """What is compared: a learner at one setting, or at the settings selected for it.

    Attributes:
        learner: label of the learner.
        name: the learner, and its setting if there are entries of it at others.
        positions: path and step on each split, (n_splits, 2); -1 where nothing could be selected.
        totals: totals of the scores on each split, (n_splits, n_totals); nan where there are none.
        known: whether there are, (n_splits,); a score that is not defined is nan as well.
        settings: the setting on each split; None where nothing could be selected.
    """

    learner: str
    name: str
    positions: Positions
    totals: Values
    known: NDArray[np.bool_]
    settings: tuple[Setting | None, ...]


@dataclass(frozen=True, eq=False)
class Assessed:
    """The result of a procedure.

    Attributes:
        problem: the procedure on its task.
        totals: totals on the outer splits, (n_splits, n_paths, n_steps, n_totals), nan where there are none.
        known: whether there are, (n_splits, n_paths, n_steps).
        chosen: the path and step selected for each split and learner, (n_splits, n_learners, 2); None
            without a selection.
        failures: what failed, and was not computed later.
        execution: what depends on the run.
    """

    problem: Problem
    totals: Values
    known: NDArray[np.bool_]
    chosen: Positions | None
    failures: tuple[Failure, ...]
    execution: Mapping[str, Any]

    @classmethod
    def of(cls, problem: Problem, scores: Scores, execution: Mapping[str, Any]) -> "Assessed":
        """Create a result from what was computed."""
        return cls(problem, *scores, execution)

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        """Which splits have a part in means over splits, (n_splits,)."""
        numbers = np.arange(self.problem.sizes[OUTER].n_splits)
        return self.problem.study.division.counts(numbers)

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """Numbers of rows that each split fits on and scores, (n_splits, 2)."""
        splits = range(self.problem.sizes[OUTER].n_splits)
        parts = (self.problem.rows(Stage.SELECT, OUTER, split) for split in splits)
        return np.array([[len(train), len(scored)] for train, scored in parts])

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """What is compared, in the order of the learners and their settings."""
        return tuple(self._entries())

    @property
    def one_each(self) -> bool:
        """Whether each learner has one entry; else its settings are listed, and not compared."""
        return self.chosen is not None or self.problem.n_settings == len(self.problem.learners)

    @property
    def scores(self) -> tuple[Score, ...]:
        """The scores that were asked for."""
        asked = set(self.problem.study.measures)
        return tuple(score for score in self.problem.scores if score.name in asked)

    def of_splits(self, entry: Entry, score: Score) -> Values:
        """Return a score on each split, (n_splits,); nan where there is none."""
        return entry.totals[:, self._column(score)]

    def settings_of(self, entry: Entry) -> list[str]:
        """Return the setting on each split as text; "nothing" where none could be selected."""
        return ["nothing" if one is None else _setting(one) for one in entry.settings]

    def figures(self, entry: Entry, score: Score) -> Figures:
        """Summarize a score over all splits; a score that is not complete has no mean."""
        values, missing = self.of_splits(entry, score)[self.counted], ~entry.known[self.counted]
        undefined = int(np.sum(np.isnan(values) & ~missing))
        complete = not (missing.any() or undefined)
        count = len(values)
        mean = float(values.mean()) if complete else nan
        deviation = _deviation(values) if complete else nan
        pooled = None if score.sums is None else self._pooled(entry, score)
        return Figures(
            score.name, mean, deviation, deviation / sqrt(count), pooled, int(missing.sum()), undefined
        )

    @property
    def unbounded(self) -> str:
        """Why nothing is proven of a split's model by the rows that the split scores; "" if something is."""
        study = self.problem.study
        if self.problem.task.grouped:
            return "rows belong to groups"
        if study.division.no_bound:
            return study.division.no_bound
        selected = study.select_by is not None and not study.selects_each
        return "settings were selected by rows of all splits" if selected else ""

    def bounds(self, entry: Entry, score: Score) -> Values:
        """Return what a score of each split's model is at most on new rows, (n_splits,), at 95 %.

        It is at least this if a larger score is better; nan where nothing is proven. Each holds by itself,
        and for a split and a setting that were named before the scores were seen.
        """
        sums, bound = self._sums(entry, score), score.bound
        if bound is None or self.unbounded:
            return np.full(len(sums), nan)
        return np.array([nan if np.isnan(one).any() else bound(one, DELTA) for one in sums])

    def compared(self, score: Score) -> list[tuple[Entry, Entry, Compared]]:
        """Compare each learner that has a mean with the best one, by the corrected resampled t-test."""
        means = [(self.figures(one, score).mean * score.loss, i) for i, one in enumerate(self.entries)]
        known = [(mean, i) for mean, i in means if mean == mean]
        if len(known) < 2 or not self.one_each or self.problem.sizes[OUTER].n_splits < 2:
            return []
        best = self.entries[min(known)[1]]
        others = [self.entries[i] for _, i in known if self.entries[i] is not best]
        fitted, scored = self.rows[self.counted].sum(axis=0)
        ratio = float(scored / fitted)
        ours = self.of_splits(best, score)[self.counted]
        return [
            (one, best, corrected_t_test(self.of_splits(one, score)[self.counted], ours, ratio))
            for one in others
        ]

    def learning_curve(self, entry: Entry, score: Score) -> list[tuple[int, float, float]]:
        """Return numbers of rows fitted on, ascending, with mean and standard deviation over their splits.

        Empty unless the splits are of a ``LearningCurve``; nan where a score is not complete.
        """
        if self.counted.all():
            return []
        values, fitted = self.of_splits(entry, score), self.rows[:, 0]
        sizes = int(np.argmax(self.counted[1:])) + 1 if self.counted[1:].any() else len(values)
        of_size = ((round(fitted[i::sizes].mean()), values[i::sizes]) for i in reversed(range(sizes)))
        return [(size, float(one.mean()), _deviation(one)) for size, one in of_size]

    def table(self) -> pa.Table:
        """Return a row for each entry and split: learner, setting, numbers of rows, and every score."""
        rows = [self._row(entry, split) for entry in self.entries for split in range(len(entry.settings))]
        return pa.Table.from_pylist(rows)

    def to_frame(self) -> Any:
        """Return ``table`` as a pandas data frame."""
        return self.table().to_pandas()

    def to_json(self) -> dict[str, Any]:
        """Return the summary and its cost as JSON values; what is not known is null."""
        costs = {name: self.execution.get(name) for name in ("fits", "seconds")}
        return self.summary_json() | costs

    def summary_json(self) -> dict[str, Any]:
        """Return the summary as JSON values, without what depends on the run; what is not known is null."""
        return {
            "run_id": self.problem.run_id,
            "procedure": self.problem.study.to_json(),
            "rows": self.problem.task.n,
            "repeats": self.repeats,
            "splits": self.problem.sizes[OUTER].n_splits,
            "complete": self.complete,
            "unbounded": self.unbounded or None,
            "entries": [self._entry_json(entry) for entry in self.entries],
            "comparisons": {score.name: self._compared_json(score) for score in self.scores},
        }

    @property
    def repeats(self) -> int:
        """Number of rows that equal another row in every column that does not number the rows."""
        return self._repeats.rows

    @cached_property
    def _repeats(self) -> Repeats:
        return find_repeats(self.problem.task)

    @property
    def doubts(self) -> list[str]:
        """What may make scores too good and bounds untrue: rows that repeat, or seem to belong together."""
        task = self.problem.task
        most = at_most(self._repeats.copies / task.n_units)
        cautions = [
            f"{equal_rows(self.repeats, task.n, task.grouped)}: if they have the same origin (one "
            f"patient, one document), up to {most} of what is scored is not new, a share of wrong rows may "
            "be too small by as much, and no bound is proven."
        ]
        cautions = cautions if self.repeats else []
        questions = [task.question] if task.question else []
        return [*(f"CAUTION: {one}" for one in cautions), *(f"QUESTION: {one}" for one in questions)]

    @property
    def complete(self) -> bool:
        """Whether every score of every entry has a value on every split."""
        figures = [self.figures(entry, score) for entry in self.entries for score in self.scores]
        return not any(one.missing or one.undefined for one in figures)

    def summary(self) -> str:
        """Return the summary as text."""
        return "\n".join(_lines(self))

    def title(self, score: Score) -> str:
        """Return a score's name, of which class it is if of one, and what is better."""
        task, better = self.problem.task, "larger" if score.greater else "smaller"
        of = f"of {task.classes[1]!r}; " if score.of_second and task.n_classes == 2 else ""
        return f"{score.name} ({of}{better} is better)"

    def _entries(self) -> Iterator[Entry]:
        problem = self.problem
        n_splits, names = problem.sizes[OUTER].n_splits, list(problem.learners)
        if self.chosen is not None:
            for number, name in enumerate(names):
                yield self._entry(name, self.chosen[:, number])
            return
        for path, length in enumerate(problem.learner.space.lengths):
            for step in range(length):
                name = names[int(problem.learner_of_paths[path])]
                yield self._entry(name, np.tile([path, step], (n_splits, 1)))

    def _entry(self, name: str, positions: Positions) -> Entry:
        at = np.arange(len(positions)), positions[:, 0], positions[:, 1]
        known = self.known[at] & (positions[:, 0] >= 0)
        totals = np.where(known[:, None], self.totals[at], nan)
        learner = self.problem.learner
        settings = tuple(learner.space.setting(*one) if one[0] >= 0 else None for one in positions.tolist())
        return Entry(name, self._name(name, settings[0]), positions, totals, known, settings)

    def _name(self, learner: str, setting: Setting | None) -> str:
        if self.one_each or setting is None:
            return learner
        return f"{learner} ({_setting(setting)})"

    def _column(self, score: Score) -> int:
        return sum(self.problem.widths[: self.problem.scores.index(score)])

    def _pooled(self, entry: Entry, score: Score) -> float:
        sums = self._sums(entry, score)[self.counted]
        return nan if np.isnan(sums).any() else score.pooled(sums)

    def _sums(self, entry: Entry, score: Score) -> Values:
        """Return the sums of a score on each split, (n_splits, sums)."""
        column = self._column(score)
        width = self.problem.widths[self.problem.scores.index(score)]
        return entry.totals[:, column + 1 : column + width]

    def _row(self, entry: Entry, split: int) -> dict[str, Any]:
        fitted, scored = self.rows[split].tolist()
        setting = entry.settings[split]
        values = {score.name: _number(self.of_splits(entry, score)[split]) for score in self.scores}
        return {
            "learner": entry.learner,
            "setting": None if setting is None else _setting(setting),
            "split": split,
            "rows_fitted": fitted,
            "rows_scored": scored,
            **values,
        }

    def _entry_json(self, entry: Entry) -> dict[str, Any]:
        of_scores = {}
        for score in self.scores:
            found = self.figures(entry, score)
            of_scores[score.name] = {
                **{name: _number(value) for name, value in found._asdict().items() if name != "name"},
                "splits": list(map(_number, self.of_splits(entry, score).tolist())),
                "bounds": list(map(_number, self.bounds(entry, score).tolist())),
            }
        same = all(one == entry.settings[0] for one in entry.settings)
        settings = [None if one is None else dict(one) for one in entry.settings]
        return {
            "learner": entry.learner,
            "setting": settings[0] if same else None,
            "settings": None if same else settings,
            "scores": of_scores,
        }

    def _compared_json(self, score: Score) -> list[dict[str, Any]]:
        return [
            {"of": other.name, "and": best.name, **{n: _number(v) for n, v in test._asdict().items()}}
            for other, best, test in self.compared(score)
        ]


def _deviation(values: Values) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else nan


def _setting(setting: Setting) -> str:
    """Format hyperparameters, without the learner that they are of."""
    return listed({name: value for name, value in setting.items() if name != "learner"})


def _number(value: Any) -> Any:
    """Return a number for JSON: nan and infinity are null."""
    return None if value is None or not isfinite(value) else value


def rounded(bound: float, up: bool) -> str:
    """Format a bound, at least 0, with four digits, rounded to the safe side."""
    if not bound > 0:
        return "0"
    digits = 3 - floor(log10(bound))
    scaled = ceil(bound * 10.0**digits) if up else floor(bound * 10.0**digits)
    return f"{scaled * 10.0**-digits:.{max(0, digits)}f}"


def _lines(result: Assessed) -> Iterator[str]:
    splits = counted(int(result.counted.sum()), "split")
    yield f"{result.problem.study.resampling.name}: {splits} of {counted(result.problem.task.n, 'row')}"
    width = max(len(entry.name) for entry in result.entries)
    tested = bounded = False
    for score in result.scores:
        yield f"\n{result.title(score)}"
        yield f"  {'':<{width}}  {'mean':>9}  {'sd':>9}  {'se':>9}  {'pooled':>9}"
        for entry in result.entries:
            yield f"  {entry.name:<{width}}  {_shown(result.figures(entry, score))}".rstrip()
        for entry in result.entries:
            if curve := result.learning_curve(entry, score):
                points = ", ".join(f"{size} {mean:.4f}" for size, mean, _ in curve)
                yield f"  {entry.name} by rows fitted on: {points}"
        if result.problem.sizes[OUTER].n_splits == 1:
            claims = list(_claims(result, score))
            bounded = bounded or bool(claims)
            yield from claims
        compared = result.compared(score)
        tested = tested or bool(compared)
        for other, best, test in compared:
            yield (
                f"  {other.name} - {best.name}: {_signed(test.difference)}, 95 % interval "
                f"{_signed(test.low)} to {_signed(test.high)}, p {test.p:.3f}"
            )
    for sentence in result.doubts:
        yield f"\n{sentence}"
    if bounded:
        yield (
            "\nA bound holds for one model, of a line that was named before its score was seen, on "
            "rows\nthat are independent."
        )
    if result.unbounded and any(score.bound for score in result.scores):
        yield f"\nNo bound is proven for any model on new rows: {result.unbounded}."
    if tested:
        yield (
            "\nThe test is the corrected resampled t-test (Nadeau, Bengio 2003), a heuristic: splits "
            "share\nrows. A difference found among many comparisons may be chance."
        )


def _claims(result: Assessed, score: Score) -> Iterator[str]:
    """Yield what is proven of the models of a single split."""
    word = "at least" if score.greater else "at most"
    for entry in result.entries:
        (bound,) = result.bounds(entry, score)
        if bound == bound:
            text = rounded(bound, up=not score.greater)
            yield f"  {entry.name}: {word} {text} on new rows, with probability {100 * (1 - DELTA):g} %"


def _shown(found: Figures) -> str:
    if found.missing or found.undefined:
        lost = [
            f"{count} {what}"
            for count, what in ((found.missing, "failed"), (found.undefined, "not defined"))
            if count
        ]
        unknown = found.pooled is None or found.pooled != found.pooled
        pooled = "" if unknown else f"; pooled {found.pooled:.4g}"
        return f"incomplete: {', '.join(lost)}{pooled}"
    figures = (found.mean, found.deviation, found.error, found.pooled)
    return "  ".join(map(_figure, figures))


def _figure(value: float | None) -> str:
    if value is None or value != value:
        return " " * 9
    return f"{value:9.4f}" if _is_usual(value) else f"{value:9.4g}"


def _signed(value: float) -> str:
    return f"{value:+.4f}" if _is_usual(value) else f"{value:+.4g}"


def _is_usual(value: float) -> bool:
    """Return whether four decimals show a number well."""
    return value == 0 or 1e-3 <= abs(value) < 10_000
