"""The outcome of a study without a certification: the scores of every split, and what they amount to.

Also here: settings by their scores, and the hyperparameters in which they differ.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import inf, isfinite, nan, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.claims.rules import Rule, parse_rule
from ckcv_ray.core.bounds.binomial import bound_both_sides
from ckcv_ray.core.bounds.paired import Compared, compare_scores
from ckcv_ray.core.draws import BEST_OF_ROWS, Draws
from ckcv_ray.core.intervals import BBC, BOOTSTRAPS, INTERVALS, LEVEL, MISS, bound_score
from ckcv_ray.core.measures import Score
from ckcv_ray.core.options import present
from ckcv_ray.core.resampling.base import Term
from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.selection import choose_setting
from ckcv_ray.engine.queue import Scores
from ckcv_ray.errors import Index, InputError, Limits, Values, check_choice, format_score
from ckcv_ray.learners.base import Setting
from ckcv_ray.learners.choice import LABEL
from ckcv_ray.records.judged import read_outputs
from ckcv_ray.runs.result import Result, format_setting, write_values
from ckcv_ray.study.parts import EACH
from ckcv_ray.study.problem import OUTER, check_interval_on
from ckcv_ray.study.study import Procedure
from ckcv_ray.tables.questions import Repeats, find_repeats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCORE_DELTA = 0.05  # of the bounds on the scores of one split
CHOSEN = {
    "best": "the best",
    "one_se": "the simplest within one standard error of the best",
    "tolerance": "the simplest within {} of the best",
}


class Figures(NamedTuple):
    """One score of one entry over all splits.

    Attributes:
        mean, deviation, error: mean over splits, their standard deviation (n - 1), and the standard error,
            which presumes that splits are independent, as they hardly ever are; nan if a split lacks it.
            Where a resampling combines splits into an estimate, the mean is that, and the others are nan.
        pooled: the score of all scored rows as one set; None if it cannot be pooled, nan if a split lacks it.
        missing: splits that failed, or whose setting could not be selected.
        undefined: splits in which the score is not defined, such as AUC where a class is missing.
    """

    mean: float
    deviation: float
    error: float
    pooled: float | None
    missing: int
    undefined: int


class PermutationTest(NamedTuple):
    """How often a mean score with permuted targets is at least as good as the mean score.

    The null hypothesis is that targets do not depend on the other columns (with groups: within groups).
    Ojala, Garriga, "Permutation Tests for Studying Classifier Performance", JMLR 11, 2010, test 1.

    Attributes:
        p: (1 + as_good + undefined) / (1 + n); nan if the mean itself is unknown.
        as_good: number of permutations whose mean is as good or better.
        undefined: number of permutations without a mean, as where a split lacks a class. They count as if
            they were as good, since p may be too large but not too small.
        n: number of permutations.
    """

    p: float
    as_good: int
    undefined: int
    n: int


class Place(NamedTuple):
    """Where a setting ranks by one score.

    Attributes:
        mean, deviation: over splits; the deviation is nan for a single split or an estimate that
            combines splits; both are nan where a split has no score.
        rank: 1 for the best mean among the settings of all learners; equal means share the smallest rank.
            None where there is no mean.
    """

    mean: float
    deviation: float
    rank: int | None


class SettingScores(NamedTuple):
    """The scores of one setting.

    Attributes:
        learner: label of the learner.
        setting: its hyperparameters by name.
        path, step: its position in the search space.
        inner: whether splits are those inside training sets, where a nested resampling selects.
        places: where it ranks by each score, by the score's name.
    """

    learner: str
    setting: Setting
    path: int
    step: int
    inner: bool
    places: Mapping[str, Place]


@dataclass(frozen=True, eq=False)
class Entry:
    """What is compared: a learner at one setting, or at the settings selected for it.

    Attributes:
        learner: label of the learner.
        name: the learner, and its setting if it has entries at others.
        positions: path and step on each split, (n_splits, 2); -1 where nothing could be selected.
        totals: totals of the scores on each split, (n_splits, n_totals); nan where they are missing.
        known: whether there are totals, (n_splits,); those of an undefined score are nan as well.
        settings: the setting on each split; None where nothing could be selected.
    """

    learner: str
    name: str
    positions: Index
    totals: Values
    known: NDArray[np.bool_]
    settings: tuple[Setting | None, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Scored(Result):
    """The outcome of a study without a certification: the scores of every split, as entries and figures.

    Attributes:
        computed: the scores of every split.
    """

    computed: Scores

    @property
    def study(self) -> Procedure:
        """The procedure, in its canonical form for the task."""
        return self.problem.procedure

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The entries compared, in the order of the learners and their settings."""
        problem, computed, found = self.problem, self.computed, list[Entry]()
        names, chosen = list(problem.learners), computed.chosen
        numbers = list(range(len(names)))
        if chosen is None:
            lengths = enumerate(problem.learner.space.lengths)
            places = [(path, step) for path, length in lengths for step in range(length)]
            chosen = np.tile(places, (computed.n_splits, 1, 1))
            numbers = problem.learner_of_paths[chosen[0, :, 0]].tolist()
        for number, positions in zip(numbers, chosen.swapaxes(0, 1), strict=True):
            at = np.arange(len(positions)), positions[:, 0], positions[:, 1]
            known = computed.known[at] & (positions[:, 0] >= 0)
            totals = np.where(known[:, None], computed.totals[at], nan)
            setting, learner = problem.learner.space.setting, names[number]
            settings = tuple(setting(*place) if place[0] >= 0 else None for place in positions.tolist())
            listed = len(numbers) > len(names)  # see ``lists_settings``
            name = f"{learner} ({format_setting(settings[0] or {})})" if listed else learner
            found.append(Entry(learner, name, positions, totals, known, settings))
        return tuple(found)

    @cached_property
    def _kept(self) -> Entry | None:
        if not self.study.choose or (best := self._best) is None:
            return None
        score, same = self.scores[0], [entry for entry in self.entries if entry.learner == best.learner]
        found = [self.figures(entry, score) for entry in same]
        losses = np.array([score.loss * figures.mean for figures in found])
        errors, settings = np.array([one.error for one in found]), [entry.settings[0] or {} for entry in same]
        return same[choose_setting(self.study.choose, losses, errors, settings)]

    @property
    def scores(self) -> tuple[Score, ...]:
        """The scores requested."""
        return tuple(score for score in self.problem.scores if score.name in self.study.measure_names)

    @property
    def complete(self) -> bool:
        """Whether every score of every entry has a value on every split."""
        figures = (self.figures(entry, score) for entry in self.entries for score in self.scores)
        return not any(found.missing or found.undefined for found in figures)

    @cached_property
    def settings(self) -> list[SettingScores]:
        """Mean, standard deviation and rank of every setting, by learner, in the order of its settings.

        With a nested resampling they are those of the inner splits, which score all settings: the mean over
        outer splits of the means over their inner splits, by which one setting for all splits is
        selected, and the deviation over all inner splits.
        """
        inner, problem, nested = self.computed.inner, self.problem, self.computed.inner is not None
        names, space, of_paths = list(problem.learners), problem.learner.space, problem.learner_of_paths
        positions = [(path, step) for path, length in enumerate(space.lengths) for step in range(length)]
        places = [dict[str, Place]() for _ in positions]
        for score in self.scores if inner is None else problem.scores:
            if inner is None:
                found = [self.figures(entry, score)[:2] for entry in self.entries]
            else:
                found, limits = [], list(pairwise(problem.starts.tolist()))
                for path, step in positions:
                    values = inner[:, path, step, problem.columns[score.name].start]
                    mean = float(np.mean([values[first:stop].mean() for first, stop in limits]))
                    found.append((mean, float(values.std(ddof=1)) if len(values) > 1 else nan))
            losses = score.loss * np.array([mean for mean, _ in found])
            known = np.sort(losses[~np.isnan(losses)])
            for of_setting, (mean, deviation), loss in zip(places, found, losses.tolist(), strict=True):
                rank = None if loss != loss else 1 + int(np.searchsorted(known, loss))
                of_setting[score.name] = Place(mean, deviation, rank)
        return [
            SettingScores(names[of_paths[path]], space.setting(path, step), path, step, nested, of_setting)
            for of_setting, (path, step) in zip(places, positions, strict=True)
        ]

    def table(self) -> pa.Table:
        """Return a row for each entry and split: learner, setting, rows, every score."""
        rows = [
            {
                "learner": entry.learner,
                "setting": None if setting is None else format_setting(setting),
                "split": split,
                "rows_fitted": fitted,
                "rows_scored": scored,
                **{score.name: write_values(self.of_splits(entry, score)[split]) for score in self.scores},
            }
            for entry in self.entries
            for split, (setting, (fitted, scored)) in enumerate(
                zip(entry.settings, self._rows.tolist(), strict=True)
            )
        ]
        return pa.Table.from_pylist(rows)

    def rule(self, by: str = "auto", seed: int | None = None) -> Rule:
        """Return the rule of the model fitted on all rows, the only one; see ``Result``."""
        rule = parse_rule(by)
        if self.models.full is None:
            raise InputError(
                "there is no model to predict by: its scores are all that this study keeps; ckcv evaluate "
                "--refit best fits one on all rows"
            )
        if rule.name not in ("auto", "full") or seed is not None:
            asked = rule.name if seed is None else f"seed={seed}"
            raise InputError(f"{asked} is for an ensemble, and this study has one model: leave it out")
        return Rule("full")

    def claim_for(self, rule: Rule) -> str:
        """Return one sentence that says that nothing is proven, and which model it is."""
        return f"by {rule.classifier()}: nothing is proven for it; {describe_kept(self)}"

    def to_json(self) -> dict[str, object]:
        """Return the result as JSON values; what is not known is null."""
        costs = {name: self.execution[name] for name in ("fits", "seconds")}
        settings = [
            {"learner": row.learner, "setting": dict(row.setting), "inner": row.inner}
            | {"scores": write_values(row.places)}
            for row in self.settings
        ]
        return summarize_scores(self) | costs | {"settings": settings}

    def of_splits(self, entry: Entry, score: Score) -> Values:
        """Return a score on each split, (n_splits,); nan where there is none."""
        return entry.totals[:, self.problem.columns[score.name].start]

    def figures(self, entry: Entry, score: Score) -> Figures:
        """Summarize a score over all splits; a score that some split lacks has no mean."""
        terms, totals, at = self._terms, entry.totals, self.problem.columns[score.name]
        used = np.logical_or.reduce([term.splits for term in terms])
        values, missing = totals[used, at.start], ~entry.known[used]
        undefined, pooled = int(np.sum(np.isnan(values) & ~missing)), None
        complete = not (missing.any() or undefined)
        mean = nan
        if complete:
            mean = self._estimate(score, totals, lambda part: float(part[:, at.start].mean()))
        spread = complete and len(terms) == 1 and len(values) > 1
        deviation = float(values.std(ddof=1)) if spread else nan
        if score.sums is not None:
            sums = slice(at.start + 1, at.stop)
            pooled = nan
            if not np.isnan(totals[used, sums]).any():
                pooled = self._estimate(score, totals, lambda part: score.pooled(part[:, sums]))
        error = deviation / sqrt(len(values))
        return Figures(mean, deviation, error, pooled, int(missing.sum()), undefined)

    def bounds(self, entry: Entry, score: Score) -> Values:
        """Return what a score of each split's model is at most on new rows, (n_splits,), at 95 %.

        It is at least this if larger scores are better; nan where nothing is proven. Each bound holds by
        itself, and for a split and a setting that were named before the scores were seen.
        """
        if not score.bound or explain_no_bound(self):
            return np.full(len(entry.totals), nan)
        sums = entry.totals[:, self.problem.columns[score.name]][:, 1:]
        return np.array(
            [nan if np.isnan(row).any() else bound_score(score, row, SCORE_DELTA) for row in sums]
        )

    def interval(self, entry: Entry, score: Score, name: str = "") -> Limits:
        """Return a 95 % interval around the mean of a score; it is approximate except for a single split.

        Args:
            entry, score: what the interval is of.
            name: an interval in ``core.intervals``; by default the study's.

        Raises:
            InputError: the study has none, or none of this name exists for its splits or this score.
        """
        name = name or self.study.interval
        if not name:
            raise InputError("this study has no interval: name one, such as corrected_t")
        if name != self.study.interval:
            measure = self.study.functions.get(score.name, score.name)
            asked = replace(self.study, interval=name, measure=(measure,))
            check_interval_on(asked, self.task)
        if INTERVALS[name].choosing:
            return self._corrected[score.name] if entry is self._best else Limits(nan, nan)
        values = self.of_splits(entry, score)
        if np.isnan(values).any():
            return Limits(nan, nan)
        if INTERVALS[name].exact:  # of a single split
            part, rows = entry.totals[0, self.problem.columns[score.name]][1:].tolist()
            return Limits(*bound_both_sides(int(part), int(rows), MISS))
        fitted, scored = self._rows.sum(axis=0)
        compared = compare_scores(values, np.zeros(len(values)), float(scored / fitted))
        return Limits(compared.low, compared.high)

    def plot(self, axes: "Axes | None" = None, score: str = "") -> "Axes":
        """Draw a score on each split, its mean over them, and its interval if the study has one.

        Args:
            axes: matplotlib axes to draw on; None makes new ones, which a notebook shows.
            score: name of one of the scores; "" for the first.

        Raises:
            InputError: there is no such score, or no split has it.
        """
        by_name = {each.name: each for each in self.scores}
        chosen = by_name[check_choice("score", score, by_name)] if score else self.scores[0]
        drawn: Axes = present("scores", self, chosen, axes)
        return drawn

    @cached_property
    def _terms(self) -> tuple[Term, ...]:
        return self.study.resampling.terms(np.arange(self.computed.n_splits))

    @cached_property
    def _rows(self) -> NDArray[np.intp]:
        """How many rows each split fits on, and how many it scores, (n_splits, 2)."""
        parts = (self.problem.rows(Stage.SELECT, OUTER, i) for i in range(self.computed.n_splits))
        return np.array([[len(train), len(scored)] for train, scored in parts])

    @cached_property
    def _repeats(self) -> Repeats:
        return find_repeats(self.task)

    @property
    def _best(self) -> Entry | None:
        """The entry with the best mean of the first score; None if none has a mean."""
        entry, figures = rank_entries(self, self.scores[0])[0]
        return entry if figures.mean == figures.mean else None

    @cached_property
    def _corrected(self) -> dict[str, Limits]:
        """The best entry's BBC interval, corrected for its being chosen, by the name of the score."""
        if (row_values := self.computed.row_values) is None:
            raise InputError(
                f"interval={BBC} needs the values of rows, which only an evaluation with interval={BBC} keeps"
            )
        first, found = self.scores[0], {name: list[float]() for name in row_values}
        losses = first.loss * row_values[first.name]
        losses = np.where(np.isnan(losses), inf, losses)  # an entry without all values is not chosen
        rng, n = Draws(self.study.seed, self.task.salt).at(*BEST_OF_ROWS).make_generator(), len(losses)
        while len(found[first.name]) < BOOTSTRAPS:
            drawn = rng.integers(n, size=n)
            rest = np.bincount(drawn, minlength=n) == 0
            if rest.any():
                best = int(losses[drawn].sum(axis=0).argmin())
                for name, values in row_values.items():
                    found[name].append(float(values[rest, best].mean()))
        ends = [MISS / 2, 1 - MISS / 2]
        return {name: Limits(*map(float, np.quantile(scores, ends))) for name, scores in found.items()}

    def _estimate(self, score: Score, totals: Values, estimate: Callable[[Values], float]) -> float:
        """Return the weighted sum of what is estimated on each term's splits, corrected as the study does.

        ``totals`` are those of every split, (n_splits, n_totals); ``estimate`` takes those of one term.
        """
        resampling, means = self.study.resampling, [estimate(totals[term.splits]) for term in self._terms]
        first, *rest = (term.factor * mean for term, mean in zip(self._terms, means, strict=True))
        if not resampling.corrected:
            return sum(rest, first)
        last = self.problem.columns[score.name].stop - 1
        without = float(totals[self._terms[-1].splits][:, last].mean())
        losses = [score.loss * mean for mean in means]
        return sum(rest, first) + score.loss * resampling.correct(losses, score.loss * without)

    @property
    def setting(self) -> Setting:
        """The setting of the model that is kept, which has to exist."""
        if self._kept is None or self._kept.settings[0] is None:
            raise InputError("no model is kept: ckcv evaluate --refit best keeps one")
        return self._kept.settings[0]


def find_kept(result: Scored) -> Entry | None:
    """Return the entry whose setting is chosen to be fitted on all rows.

    None if the study asks for none, or no entry has the first score on every split. Only the settings of the
    best entry's learner are compared for simplicity.
    """
    return result._kept


def describe_kept(result: Scored) -> str:
    """Return text: which setting was fitted on all rows, how it was chosen, and what that is worth."""
    kept, score, study = result._kept, result.scores[0], result.study
    if kept is None:
        return f"no setting has {score.name} on every split, so none was fitted on all rows"
    mean = format_score(result.figures(kept, score).mean)
    measured = f"its mean {score.name} by {study.resampling} is {mean}"
    if len(result.entries) == 1:
        return f"{kept.name}; {measured}"
    how, _, tolerance = study.choose.partition(":")
    return (
        f"{kept.name}, {CHOSEN[how].format(tolerance)} of {len(result.entries):,} settings; {measured}, "
        "which is too optimistic: the setting was chosen by it. To see what the choice is worth: "
        f"--resampling nested:5:5 --select-by {score.name}"
    )


def find_shown(result: Scored) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return which splits are shown one by one, (n_splits,), and how many rows each of these scores."""
    shown = result._terms[0].splits  # those of the first mean in the estimate
    return shown, result._rows[shown, 1]


def lists_settings(result: Scored) -> bool:
    """Return whether settings of a learner are separate entries, which are listed but not compared."""
    return len(result.entries) > len(result.problem.learners)


def count_repeats(result: Scored) -> Repeats:
    """Return which rows equal another one in every column except those that number the rows."""
    return result._repeats


def list_short_names(result: Scored) -> list[str]:
    """Return a short name for each entry: its learner, or the values of what differs between settings."""
    if not lists_settings(result):
        return [entry.name for entry in result.entries]
    settings, names = [entry.settings[0] or {} for entry in result.entries], list[str]()
    differing = list_differing(settings)
    for entry, setting in zip(result.entries, settings, strict=True):
        values = ", ".join(str(setting[name]) for name in differing if name in setting)
        names.append(f"{entry.learner}: {values}" if len(result.problem.learners) > 1 else values)
    return names


def rank_entries(result: Scored, score: Score) -> list[tuple[Entry, Figures]]:
    """Return the entries by their mean of a score, the best first; those without a mean come last."""
    found = [(entry, result.figures(entry, score)) for entry in result.entries]
    return sorted(found, key=lambda of: inf if of[1].mean != of[1].mean else of[1].mean * score.loss)


def explain_no_bound(result: Scored) -> str:
    """Return why the rows that a split scores prove nothing about its model; "" if they prove something."""
    study = result.study
    if not result.task.units.independent:
        return "rows belong to groups"
    if study.resampling.no_bound:
        return study.resampling.no_bound
    selected = study.select_by is not None and study.select != EACH
    return "settings were selected by rows of all splits" if selected else ""


def compare_entries(result: Scored, score: Score) -> list[tuple[Entry, Entry, Compared]]:
    """Compare each learner that has a mean with the best one, by the corrected resampled t-test."""
    losses = {entry: result.figures(entry, score).mean * score.loss for entry in result.entries}
    known, n_splits = [entry for entry, loss in losses.items() if loss == loss], result.computed.n_splits
    if len(known) < 2 or lists_settings(result) or n_splits < 2 or len(result._terms) > 1:
        return []
    best = min(known, key=losses.__getitem__)
    fitted, scored = result._rows.sum(axis=0)
    lowest, ratio = result.of_splits(best, score), float(scored / fitted)
    return [
        (entry, best, compare_scores(result.of_splits(entry, score), lowest, ratio))
        for entry in known
        if entry is not best
    ]


def judge_by_permutations(result: Scored, entry: Entry, score: Score) -> PermutationTest | None:
    """Test the mean of a score; None without permutations."""
    if (permuted := result.computed.permuted) is None:
        return None
    path, step = entry.positions[0].tolist()
    column = result.problem.columns[score.name].start
    of_place = permuted[:, :, path, step]
    means = np.array(
        [result._estimate(score, each, lambda part: float(part[:, column].mean())) for each in of_place]
    )
    mean, n = result.figures(entry, score).mean, len(means)
    as_good, undefined = int(np.sum(score.loss * means <= score.loss * mean)), int(np.isnan(means).sum())
    p = nan if np.isnan(mean) else (1 + as_good + undefined) / (1 + n)
    return PermutationTest(p, as_good, undefined, n)


def summarize_scores(result: Scored) -> dict[str, object]:
    """Return the scores as JSON values, without what depends on the run; what is not known is null."""
    entries = list[dict[str, Any]]()
    for entry in result.entries:
        scores = dict[str, Any]()
        for score in result.scores:
            values = result.figures(entry, score)._asdict()
            values |= {"splits": result.of_splits(entry, score), "bounds": result.bounds(entry, score)}
            if (test := judge_by_permutations(result, entry, score)) is not None:
                values["permutations"] = test
            if result.study.interval:
                interval = {"name": result.study.interval, "level": LEVEL}
                values["approximate_interval"] = interval | result.interval(entry, score)._asdict()
            scores[score.name] = write_values(values)
        same = all(setting == entry.settings[0] for setting in entry.settings)
        settings = [None if setting is None else dict(setting) for setting in entry.settings]
        one, several = (settings[0], None) if same else (None, settings)
        entries.append({"learner": entry.learner, "setting": one, "settings": several, "scores": scores})
    return {
        "run_id": result.run_id,
        "procedure": result.study.to_json(),
        "rows": result.task.n,
        "repeats": result._repeats.rows,
        "splits": result.computed.n_splits,
        "complete": result.complete,
        "unbounded": explain_no_bound(result) or None,
        "entries": entries,
        "comparisons": {
            score.name: [
                {"of": of.name, "and": best.name, **write_values(test)}
                for of, best, test in compare_entries(result, score)
            ]
            for score in result.scores
        },
    }


def add_row_values(result: Scored, held_out: pa.Table | None) -> Scored:
    """Return a result with the values of rows, if its interval needs them.

    Args:
        result: the scores.
        held_out: its predictions, entry by entry and split by split; None if not kept.

    Raises:
        ValueError: these are not predictions of the study.
    """
    if result.study.interval != BBC or held_out is None:
        return result
    y, problem, first = result.task.y, result.problem, 0
    shape = result.task.n, len(result.entries)
    values: dict[str, Values] = {score.name: np.full(shape, np.nan) for score in result.scores}
    for number, entry in enumerate(result.entries):
        for split in np.flatnonzero(entry.known).tolist():
            _, scored = problem.rows(Stage.SELECT, OUTER, split)
            part, first = held_out.slice(first, len(scored)), first + len(scored)
            if part["row"].to_pylist() != scored.tolist():
                raise ValueError(f"its rows are not those that split {split} scores for {entry.name}")
            outputs = read_outputs(part)
            for score in result.scores:
                assert score.rows is not None
                values[score.name][scored, number] = score.rows(y[scored], outputs)
    return replace(result, computed=result.computed._replace(row_values=values))


def list_differing(settings: Sequence[Setting]) -> dict[str, list[object]]:
    """Return the distinct values of each hyperparameter that has several.

    Numbers are in ascending order, other values in order of appearance; a missing value is None.
    """
    found = dict[str, list[object]]()
    for name in dict.fromkeys(name for setting in settings for name in setting if name != LABEL):
        values: list[Any] = [*{repr(setting.get(name)): setting.get(name) for setting in settings}.values()]
        if len(values) > 1:
            found[name] = sorted(values) if is_numeric(values) else values
    return found


def is_numeric(values: Sequence[object]) -> bool:
    """Return whether values of a hyperparameter are finite numbers."""
    return all(
        isinstance(value, int | float) and type(value) is not bool and isfinite(value) for value in values
    )


def shorten_setting(setting: Setting | None) -> str:
    """Format hyperparameters to three digits; "" if there are none."""
    return ", ".join(f"{name} = {shorten_value(value)}" for name, value in (setting or {}).items())


def shorten_value(value: object) -> str:
    """Format a hyperparameter to three digits; "" for None."""
    if value is None:
        return ""
    return f"{float(f'{value:.3g}'):g}" if isinstance(value, float | np.floating) else str(value)
