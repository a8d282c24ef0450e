"""What a finished study knows, as values: winner, claims and models, or the scores of every split."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite, nan, sqrt
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ckcv_ray.claims.certificate import Certificate, Finished
from ckcv_ray.claims.quantity import Acceptance, MeasuredInterval, decide
from ckcv_ray.claims.rules import CutOff
from ckcv_ray.core.arrays import Classes, Index, Values
from ckcv_ray.core.bounds.paired import Compared, compare_scores
from ckcv_ray.core.draws import BEST_OF_ROWS, Draws
from ckcv_ray.core.intervals import (
    BBC,
    INTERVALS,
    Limits,
    Scored,
    bound_score,
    compute_interval,
    correct_best,
)
from ckcv_ray.core.measures import Score
from ckcv_ray.core.resampling.base import Term
from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.selection import choose_setting
from ckcv_ray.engine.full import Scores
from ckcv_ray.errors import InputError
from ckcv_ray.learners.base import Setting
from ckcv_ray.learners.ensemble import Ensemble, Models
from ckcv_ray.records.candidates import find_winner, per_k, per_learner
from ckcv_ray.records.judged import read_outputs
from ckcv_ray.records.record import Failure
from ckcv_ray.study.needs import check_interval_on
from ckcv_ray.study.parts import Paper
from ckcv_ray.study.problem import OUTER, Problem, describe_setting
from ckcv_ray.study.study import Study
from ckcv_ray.tables.questions import Repeats, find_repeats
from ckcv_ray.tables.task import Task

SCORE_DELTA = 0.05  # of the bounds on the scores of one split


class Figures(NamedTuple):
    """One score of one entry over all splits.

    Attributes:
        name: of the score.
        mean, deviation, error: mean over splits, their standard deviation (n - 1), and the standard error,
            which presumes that splits are independent, as they hardly ever are; nan if it is not complete.
            Where a resampling combines splits to an estimate, the mean is that, and the others are nan.
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


class PermutationTest(NamedTuple):
    """How often a mean score with permuted targets is at least as good as the mean score.

    The null hypothesis is that targets do not depend on the other columns (with groups: within groups).
    Ojala, Garriga, "Permutation Tests for Studying Classifier Performance", JMLR 11, 2010, test 1.

    Attributes:
        p: (1 + as_good + undefined) / (1 + n); nan if the mean itself is not known.
        as_good: number of permutations whose mean is as good or better.
        undefined: number of permutations without a mean, as where a split lacks a class. They count as if
            they were as good, since p may be too large, and not too small.
        n: number of permutations.
    """

    p: float
    as_good: int
    undefined: int
    n: int


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
    positions: Index
    totals: Values
    known: NDArray[np.bool_]
    settings: tuple[Setting | None, ...]


@dataclass(frozen=True, eq=False, repr=False)
class ResultValues:
    """What a finished study knows.

    A study with a certification has candidates, models and a certificate; one without has the scores of every
    split, as entries and figures. What a study has not raises an InputError.

    Attributes:
        problem: the study on its task.
        execution: what depends on the run: seconds, fits, evaluations, environment, error on test rows.
        finished: candidates, models and certificate; None without a certification.
        computed: the scores of every split; None with a certification.
        full: of a study without a certification, the model fitted on all rows, if it asks for one.
        row_values: by the name of each score its value of each row at each entry, (rows, entries), nan where
            there is none, of a study whose interval needs them; else None.
    """

    problem: Problem
    execution: dict[str, Any]
    finished: Finished | None = None
    computed: Scores | None = None
    full: Ensemble | None = None
    row_values: Mapping[str, Values] | None = None

    @property
    def study(self) -> Study:
        """The study, in its canonical form for the task."""
        return self.problem.study

    @property
    def task(self) -> Task:
        """The learning task."""
        return self.problem.task

    @property
    def run_id(self) -> str:
        """Identifier of the study and the data."""
        return self.problem.run_id

    @property
    def candidates(self) -> pa.Table:
        """The outcome of each setting and fold size, as an Arrow table."""
        return self._finished.candidates

    @property
    def models(self) -> Models:
        """F*, and the other models that the study has."""
        return self._finished.models

    @property
    def certificate(self) -> Certificate:
        """The claims."""
        return self._finished.certificate

    @property
    def decisions(self) -> tuple[Acceptance, ...]:
        """Whether what is proven meets each of the study's conditions."""
        certification = self.study.certification
        accepted = () if certification is None else certification.accepted
        claims, held = self.certificate.claims.claims, len(self.problem.order_held_units())
        return tuple(decide(condition, claims, held, self.task.grouped) for condition in accepted)

    @property
    def intervals(self) -> list[MeasuredInterval]:
        """Exact intervals of what was counted on held-out rows, each by itself, at the level of the study."""
        if self.task.grouped:
            return []
        required, delta = self.problem.required, self.certificate.winner.delta
        found = (claim.find_interval(required, delta) for claim in self.certificate.claims)
        return [interval for interval in found if interval is not None]

    @property
    def ensemble(self) -> Ensemble:
        """F*."""
        return self.models.best

    @property
    def setting(self) -> Setting:
        """The winner's hyperparameters by name."""
        return self.certificate.winner.setting

    @property
    def position(self) -> tuple[int, int]:
        """The winner's path and step in the learner's search space."""
        return find_winner(self.candidates)

    @property
    def k(self) -> int:
        """The winner's number of folds."""
        return self.certificate.winner.k

    @property
    def l_ms(self) -> float:
        """The criterion at the winner, on the select sets: by default the mean bound on the error."""
        return self.certificate.winner.l_ms

    @property
    def l_ee(self) -> float:
        """The criterion on the estimate sets: by default the paper's figure."""
        return self.certificate.winner.l_ee

    @property
    def error(self) -> float:
        """Mean error rate of the members of F* on their estimate sets: what is estimated, not proven.

        With groups, the mean over groups of their error rates; with numbers, their mean error as a share of
        the clip.
        """
        return self.certificate.counts.error

    @cached_property
    def class_counts(self) -> NDArray[np.int64] | None:
        """Rows that the first claim counts, by class and by the class that its rule predicts.

        The last column is of undecided rows: (n_classes, n_classes + 1). None with numbers, and where too
        many rows are judged for a file.
        """
        counts, n_classes = self.certificate.counts, self.task.n_classes
        if not n_classes:
            return None
        if self.certificate.claims.first.certification == Paper.name:
            return counts.tabulate()
        if (rows := self._claimed_rows) is None:
            return None
        return tabulate_predictions(rows["label"].to_numpy(), rows["predicted"].to_numpy(), n_classes)

    @cached_property
    def measured_error(self) -> float:
        """Error on the rows that the first claim counts, by its rule: an estimate, and no bound.

        With groups, the mean over groups of their error rates; with numbers, the mean error as a share of the
        clip.
        """
        first, sample = self.certificate.claims.first, self.certificate.sample
        if sample.numbers is None and sample.groups is not None and (rows := self._claimed_rows) is not None:
            units = np.unique(rows["unit"], return_inverse=True)[1]
            return float(np.mean(np.bincount(units, rows["loss"]) / np.bincount(units)))
        if sample.numbers is not None or sample.groups is not None or not first.rows:
            return self.error if first.measured is None else first.measured
        return (first.errors or 0) / first.rows

    @cached_property
    def _claimed_rows(self) -> pa.Table | None:
        """The judged rows that the first claim counts, as its rule classifies them; None if none are kept."""
        judged, first = self._finished.judged, self.certificate.claims.first
        if judged is None or first.certification == Paper.name:
            return None
        rows = judged.filter(pc.equal(judged["classifier"], first.classifier))
        if first.cut_off is None:
            return rows
        label = CutOff(first.cut_off, self.problem.positive).classify(rows["score"].to_numpy())
        return rows.set_column(rows.column_names.index("predicted"), "predicted", pa.array(label))

    def per_k(self) -> list[dict[str, Any]]:
        """Return the outcome of every fold size."""
        return per_k(self.candidates, self.problem)

    def per_learner(self) -> list[dict[str, Any]]:
        """Return the outcome of each learner: its best candidate, or a lower bound of all it has.

        ``setting``, ``k``, ``l_ms`` are those of its best candidate, None if that is not known because the
        learner was beaten before. ``lower_bound`` is what L_MS is at least for each of its candidates.
        """
        return per_learner(self.candidates, self.problem)

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        """Which splits have a part in means over splits, (n_splits,)."""
        return self.study.resampling.counts(np.arange(self.n_splits))

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The means over splits whose weighted sum is the estimate of a score."""
        return self.study.resampling.terms(np.arange(self.n_splits))

    @property
    def n_splits(self) -> int:
        """Number of splits that are scored."""
        return self.problem.sizes[OUTER].n_splits

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """Numbers of rows that each split fits on and scores, (n_splits, 2)."""
        parts = (self.problem.rows(Stage.SELECT, OUTER, split) for split in range(self.n_splits))
        return np.array([[len(train), len(scored)] for train, scored in parts])

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """What is compared, in the order of the learners and their settings."""
        names, chosen, of_paths = list(self.problem.learners), self.chosen, self.problem.learner_of_paths
        if chosen is not None:
            return tuple(self._make_entry(name, chosen[:, number]) for number, name in enumerate(names))
        return tuple(
            self._make_entry(names[int(of_paths[path])], np.tile([path, step], (self.n_splits, 1)))
            for path, length in enumerate(self.problem.learner.space.lengths)
            for step in range(length)
        )

    @property
    def chosen(self) -> Index | None:
        """The path and step selected for each split and learner, (n_splits, n_learners, 2), if any were."""
        return self._computed.chosen

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What failed on a split, and was not computed later."""
        return self._computed.failures

    @property
    def one_each(self) -> bool:
        """Whether each learner has one entry; else its settings are listed, and not compared."""
        return self.chosen is not None or self.problem.n_settings == len(self.problem.learners)

    @cached_property
    def kept(self) -> Entry | None:
        """The entry whose setting is chosen to be fitted on all rows.

        None if the study asks for none, or no entry has the first score on every split. Only the settings of
        the best entry's learner are compared in simplicity.
        """
        if self.computed is None or not self.study.choose:
            return None
        score = self.scores[0]
        found = [self.figures(entry, score) for entry in self.entries]
        losses = np.array([score.loss * figures.mean for figures in found])
        if np.isnan(losses).all():
            return None
        best = self.entries[int(np.nanargmin(losses))]
        same = [i for i, entry in enumerate(self.entries) if entry.learner == best.learner]
        settings = [self.entries[i].settings[0] or {} for i in same]
        errors = np.array([found[i].error for i in same])
        return self.entries[same[choose_setting(self.study.choose, losses[same], errors, settings)]]

    @property
    def scores(self) -> tuple[Score, ...]:
        """The scores that were asked for."""
        return tuple(score for score in self.problem.scores if score.name in self.study.measure_names)

    @property
    def complete(self) -> bool:
        """Whether every score of every entry has a value on every split."""
        figures = (self.figures(entry, score) for entry in self.entries for score in self.scores)
        return not any(found.missing or found.undefined for found in figures)

    def of_splits(self, entry: Entry, score: Score) -> Values:
        """Return a score on each split, (n_splits,); nan where there is none."""
        return entry.totals[:, self.problem.columns[score.name].start]

    def list_settings(self, entry: Entry) -> list[str]:
        """Return the setting on each split as text; "nothing" where none could be selected."""
        return ["nothing" if setting is None else format_setting(setting) for setting in entry.settings]

    def figures(self, entry: Entry, score: Score) -> Figures:
        """Summarize a score over all splits; a score that is not complete has no mean."""
        terms, totals, at = self.terms, entry.totals, self.problem.columns[score.name]
        used = np.logical_or.reduce([term.splits for term in terms])
        values, missing = totals[used, at.start], ~entry.known[used]
        undefined, pooled = int(np.sum(np.isnan(values) & ~missing)), None
        complete = not (missing.any() or undefined)
        mean = self._estimate(score, totals, lambda part: _average(part, at.start)) if complete else nan
        spread = complete and len(terms) == 1 and len(values) > 1
        deviation = float(values.std(ddof=1)) if spread else nan
        if score.sums is not None:
            sums = slice(at.start + 1, at.stop)
            pooled = nan
            if not np.isnan(totals[used, sums]).any():
                pooled = self._estimate(score, totals, lambda part: score.pooled(part[:, sums]))
        error = deviation / sqrt(len(values))
        return Figures(score.name, mean, deviation, error, pooled, int(missing.sum()), undefined)

    def rank(self, score: Score) -> list[tuple[Entry, Figures]]:
        """Return the entries by their mean of a score, the best first; those without a mean come last."""
        found = [(entry, self.figures(entry, score)) for entry in self.entries]
        return sorted(found, key=lambda of: inf if of[1].mean != of[1].mean else of[1].mean * score.loss)

    @property
    def unbounded(self) -> str:
        """Why nothing is proven of a split's model by the rows that the split scores; "" if something is."""
        study = self.study
        if self.task.grouped:
            return "rows belong to groups"
        if study.resampling.no_bound:
            return study.resampling.no_bound
        selected = study.select_by is not None and not study.selects_each
        return "settings were selected by rows of all splits" if selected else ""

    def bounds(self, entry: Entry, score: Score) -> Values:
        """Return what a score of each split's model is at most on new rows, (n_splits,), at 95 %.

        It is at least this if a larger score is better; nan where nothing is proven. Each holds by itself,
        and for a split and a setting that were named before the scores were seen.
        """
        sums = self._sums(entry, score)
        if not score.bound or self.unbounded:
            return np.full(len(sums), nan)
        return np.array(
            [nan if np.isnan(row).any() else bound_score(score, row, SCORE_DELTA) for row in sums]
        )

    def interval(self, entry: Entry, score: Score, name: str = "") -> Limits:
        """Return a 95 % interval around the mean of a score, which is approximate but for a single split.

        Args:
            entry, score: what it is of.
            name: of an interval in ``core.intervals``; that of the study unless it is given.

        Raises:
            InputError: the study has none, or there is none of this name for its splits or this score.
        """
        name = name or self.study.interval
        if not name:
            raise InputError("this study has no interval: name one, such as corrected_t")
        if name != self.study.interval:
            measure = self.study.functions.get(score.name, score.name)
            asked = replace(self.study, interval=name, measures=(measure,))
            check_interval_on(name, asked.resampling, self.task)
        if INTERVALS[name].choosing:
            return self._corrected[score.name] if entry is self._best else Limits(nan, nan)
        fitted, scored = self.rows.sum(axis=0)
        values, ratio = self.of_splits(entry, score), float(scored / fitted)
        return compute_interval(name, Scored(values, self._sums(entry, score), ratio))

    @property
    def _best(self) -> Entry | None:
        """The entry with the best mean of the first score; None if none has a mean."""
        entry, figures = self.rank(self.scores[0])[0]
        return entry if figures.mean == figures.mean else None

    @cached_property
    def _corrected(self) -> dict[str, Limits]:
        """The interval of the best entry that allows for its being chosen, by the name of the score."""
        if self.row_values is None:
            raise InputError(
                f"interval={BBC} is computed where a study asks for it: evaluate with interval={BBC} and "
                "save_predictions=True"
            )
        first, draws = self.scores[0], Draws(self.study.seed, self.task.salt).at(*BEST_OF_ROWS)
        losses = first.loss * self.row_values[first.name]
        return {name: correct_best(losses, values, draws) for name, values in self.row_values.items()}

    @property
    def predicted(self) -> tuple[Entry, ...]:
        """The entries of which predictions are kept: all, or the one that is chosen."""
        kept = None if self.study.interval == BBC else self.kept
        return self.entries if kept is None else (kept,)

    def compare_entries(self, score: Score) -> list[tuple[Entry, Entry, Compared]]:
        """Compare each learner that has a mean with the best one, by the corrected resampled t-test."""
        losses = {entry: self.figures(entry, score).mean * score.loss for entry in self.entries}
        known = [entry for entry, loss in losses.items() if loss == loss]
        if len(known) < 2 or not self.one_each or self.n_splits < 2 or len(self.terms) > 1:
            return []
        best = min(known, key=losses.__getitem__)
        fitted, scored = self.rows.sum(axis=0)
        lowest, ratio = self.of_splits(best, score), float(scored / fitted)
        return [
            (entry, best, compare_scores(self.of_splits(entry, score), lowest, ratio))
            for entry in known
            if entry is not best
        ]

    def test_by_permutations(self, entry: Entry, score: Score) -> PermutationTest | None:
        """Test the mean of a score; None without permutations."""
        if (permuted := self._computed.permuted) is None:
            return None
        path, step = entry.positions[0].tolist()
        column = self.problem.columns[score.name].start
        of_place = permuted[:, :, path, step]
        means = np.array(
            [self._estimate(score, each, lambda part: _average(part, column)) for each in of_place]
        )
        mean, n = self.figures(entry, score).mean, len(means)
        as_good, undefined = int(np.sum(score.loss * means <= score.loss * mean)), int(np.isnan(means).sum())
        p = nan if np.isnan(mean) else (1 + as_good + undefined) / (1 + n)
        return PermutationTest(p, as_good, undefined, n)

    def _estimate(self, score: Score, totals: Values, estimate: Callable[[Values], float]) -> float:
        """Return the weighted sum of what is estimated on the splits of each term, as the study corrects it.

        Args:
            score: what is estimated.
            totals: of every split, (n_splits, n_totals).
            estimate: takes the totals of the splits of a term.
        """
        resampling, means = self.study.resampling, [estimate(totals[term.splits]) for term in self.terms]
        first, *rest = (term.factor * mean for term, mean in zip(self.terms, means, strict=True))
        if not resampling.corrected:
            return sum(rest, first)
        last = self.problem.columns[score.name].stop - 1
        without = _average(totals[self.terms[-1].splits], last)
        losses = [score.loss * mean for mean in means]
        return sum(rest, first) + score.loss * resampling.correct(losses, score.loss * without)

    @cached_property
    def repeats(self) -> Repeats:
        """Rows that equal another row in every column that does not number the rows."""
        return find_repeats(self.task)

    @property
    def _finished(self) -> Finished:
        if self.finished is None:
            raise InputError("this study has no certification, and so no winner: it has entries and figures")
        return self.finished

    @property
    def _computed(self) -> Scores:
        if self.computed is None:
            raise InputError("this study has a certification, and no scores of splits: it has candidates")
        return self.computed

    def _make_entry(self, learner: str, positions: Index) -> Entry:
        at = np.arange(len(positions)), positions[:, 0], positions[:, 1]
        known = self._computed.known[at] & (positions[:, 0] >= 0)
        totals = np.where(known[:, None], self._computed.totals[at], nan)
        setting = self.problem.learner.space.setting
        settings = tuple(setting(*place) if place[0] >= 0 else None for place in positions.tolist())
        first = settings[0]
        name = learner if self.one_each or first is None else f"{learner} ({format_setting(first)})"
        return Entry(learner, name, positions, totals, known, settings)

    def _sums(self, entry: Entry, score: Score) -> Values:
        return entry.totals[:, self.problem.columns[score.name]][:, 1:]


def format_setting(setting: Setting) -> str:
    """Format hyperparameters, without the learner that they are of."""
    return describe_setting({name: value for name, value in setting.items() if name != "learner"})


def shorten_setting(setting: Mapping[str, Any] | None) -> str:
    """Format hyperparameters with three digits; "" if there are none."""
    return ", ".join(f"{name} = {shorten_value(value)}" for name, value in (setting or {}).items())


def shorten_value(value: object) -> str:
    """Format a hyperparameter with three digits; "" for None."""
    if value is None:
        return ""
    return f"{float(f'{value:.3g}'):g}" if isinstance(value, float | np.floating) else str(value)


def to_number(value: Any) -> Any:
    """Return a number for JSON, where nan and infinity are null."""
    return None if value is None or not isfinite(value) else value


def _average(totals: Values, column: int) -> float:
    """Return the mean of one of the totals of splits, (n_splits, n_totals)."""
    return float(totals[:, column].mean())


def tabulate_predictions(y: Classes, label: Classes, n_classes: int) -> NDArray[np.int64]:
    """Return rows by class y and predicted class, the undecided (-1) last, (n_classes, n_classes + 1)."""
    counts = np.zeros((n_classes, n_classes + 1), np.int64)
    np.add.at(counts, (y, np.where(label < 0, n_classes, label)), 1)
    return counts


AnyResult = TypeVar("AnyResult", bound=ResultValues)


def add_row_values(result: AnyResult, held_out: pa.Table | None) -> AnyResult:
    """Return a result with the values of rows, if its interval needs them.

    Args:
        result: of a study without a certification.
        held_out: its predictions, entry by entry and split by split; None if none are kept.

    Raises:
        ValueError: these are not predictions of the study.
    """
    if result.study.interval != BBC or held_out is None:
        return result
    y, problem, first = result.task.y, result.problem, 0
    shape = result.task.n, len(result.entries)
    values: dict[str, Values] = {score.name: np.full(shape, np.nan) for score in result.scores}
    for number, entry in enumerate(result.predicted):
        for split in np.flatnonzero(entry.known).tolist():
            _, scored = problem.rows(Stage.SELECT, OUTER, split)
            part, first = held_out.slice(first, len(scored)), first + len(scored)
            if part["row"].to_pylist() != scored.tolist():
                raise ValueError(f"its rows are not those that split {split} scores for {entry.name}")
            outputs = read_outputs(part)
            for score in result.scores:
                assert score.rows is not None
                values[score.name][scored, number] = score.rows(y[scored], outputs)
    return replace(result, row_values=values)
