"""Problems: a study applied to a task and checked once, the only place where the two are combined.

Also here: the scores of one split, from what its models predict for the scored rows.

Where the parts of a study lack what they need of each other or of a task, the study is refused, in a sentence
that says what it is needed for. Models of numbers are compared by a bound on the mean absolute error, each
error counting at most a clip: without one, a single row that is very far off could outweigh all others, and
nothing could be proven.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import ceil, isfinite, nan
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.core import measures
from ckcv_ray.core.criteria import CLIP_IS, Criterion, MeanClippedError, UnitCounts
from ckcv_ray.core.draws import PART, PERMUTATIONS, Draws, hold_out, order_held_out
from ckcv_ray.core.intervals import CORRECTED_T, INTERVALS
from ckcv_ray.core.measures import CLASSES, NUMBERS, TWO, ClippedErrors, Kind, Losses, Measure, Output, Score
from ckcv_ray.core.resampling.base import EMPTY, FoldSize, Split
from ckcv_ray.core.resampling.complete import CertifiableFolds, check_folds
from ckcv_ray.core.schedule import Stage, Unit, count_kept, weigh_rounds
from ckcv_ray.core.selection import BEST_MEAN, ONE_SE, Leader, list_simplifying
from ckcv_ray.errors import Index, InputError, Numbers, Rows, Values, expect, pluralize
from ckcv_ray.learners.base import ANY, Fits, Learner, Setting
from ckcv_ray.learners.choice import LABEL, Prepared, PreparedLearner
from ckcv_ray.learners.steps import Balance, Encoding, expand_dates
from ckcv_ray.study.parts import CLAIMS, MIN_HELD_OUT, Budget, Certification, Condition, Holdout
from ckcv_ray.study.study import AnyStudy, BaseStudy, Procedure, Study, run_id
from ckcv_ray.tables.columns import some
from ckcv_ray.tables.roles import RowUnits
from ckcv_ray.tables.task import MIN_ROWS, Task, TestRows, check_subgroups

VOTE = CLAIMS[-1]
SAME_SCORE = "constant"  # the learner whose score is the same for every row
LEAVE_OUT = "leave it out"
MAX_CLIP = 1_000  # times the range of the target: losses are in steps of a millionth of the clip
OUTPUTS = {  # what a score is computed from, in words
    Output.PROBABILITY: "probabilities",
    Output.RANK: "scores that order the rows",
    Output.RANKS: "a score for each of several classes",
}


class _Scoring:
    """The scores of rows that one split scores, as a measure: for each score its value, and then its sums."""

    kinds: ClassVar[frozenset[Kind]] = frozenset(Kind)

    def __init__(self, scores: Sequence[Score], X: Rows, y: Numbers, n_classes: int) -> None:
        self.scores, self.X, self.y, self.n_classes = scores, X, y, n_classes
        self.needs = frozenset(score.needs for score in scores)

    def columns(self, n_classes: int) -> int:
        """Return the number of totals."""
        return sum(score.width(n_classes) for score in self.scores)

    def totals(self, y: Numbers, predicted: Numbers, n_classes: int) -> Values:
        """Return the totals of labels (..., rows); see ``core.measures.Measure``."""
        labels = np.asarray(predicted, np.int32).reshape(-1, predicted.shape[-1])
        each = [self.totals_of(measures.Outputs(row)) for row in labels]
        return np.array(each).reshape(*predicted.shape[:-1], -1)

    def totals_of(self, outputs: measures.Outputs) -> list[float]:
        """Return the totals of a model's outputs."""
        totals: list[float] = []
        for score in self.scores:
            value = score.of(self.y, outputs)
            totals.append(value if isfinite(value) else nan)
            if score.sums is not None:
                totals += score.sums(self.y, outputs, self.n_classes)
        return totals


OUTER, INNER, PERMUTED = 0, 1, 1  # positions of the fold sizes without a certification
SCREENED_K = 5  # a budget compares settings at the fold size nearest to this one
MIN_SCREEN = 200  # units below which training and select sets are not halved
Costs = NDArray[np.float64]


class Candidate(NamedTuple):
    """What is selected: a setting of the learner and a number of folds."""

    setting: Setting
    k: int

    def __str__(self) -> str:
        return describe_setting({**self.setting, "k": self.k})


def describe_setting(setting: Setting) -> str:
    """Format hyperparameters as text: "C = 0.1, gamma = 10"."""
    shown = ((name, f"{value:g}" if isinstance(value, float) else value) for name, value in setting.items())
    return ", ".join(f"{name} = {value}" for name, value in shown)


@dataclass(frozen=True)
class Problem:
    """A study applied to a task, checked once.

    What is divided, held out and counted are units: rows, or groups if the task has any. Fold sizes count
    units; splits and held-out rows are given as rows.

    Without a certification there are one or two fold sizes: splits of all rows have numbers below
    ``sizes[OUTER].n_splits``, and those inside their training sets follow one another, outer split by outer
    split, below ``sizes[INNER].n_splits``.

    With permutations, which exclude a selection, the splits of all rows are scored again for each
    permutation, one after the other: below ``sizes[PERMUTED].n_splits``.

    Attributes:
        asked: the study, of either kind, in canonical form for these rows.
        task: the learning rows.
        all_rows: all rows of the table, including those held out, as the table is interpreted.
        held: numbers of the rows held out, ascending; None if there are none.
        sizes: fold sizes in units, the largest first; without a certification the largest sets that splits
            fit on and score.
        run_id: identifier of study and data.
        scores: what is measured without a certification; the last may only select. Else none.
    """

    asked: AnyStudy
    task: Task
    all_rows: Task
    held: Index | None
    sizes: tuple[FoldSize, ...]
    run_id: str
    scores: tuple[Score, ...] = ()

    @classmethod
    def of(cls, study: AnyStudy, task: Task) -> "Problem":
        """Apply a study to a task, checking that they are compatible.

        Raises:
            InputError: a part does not support the task, or a field its number of rows.
        """
        expect("study", study, AnyStudy, "a Study, such as Study.of(k=(3, 5, 10))")
        expect("task", task, Task, "a Task: make one with Task.of(X, y)")
        if task.split_by.column != (study.column or ""):
            raise InputError(f"read the task with split_by={study.column!r}: its study divides rows by that")
        if isinstance(study, Procedure):
            return cls._of_procedure(study, task)
        study = replace(study, certification=check_certified(study, task))
        held, learned = divide(study, task)
        check_subgroups(study.certification.subgroups, learned)
        learning = np.arange(task.n) if held is None else np.delete(np.arange(task.n), held)
        numbers = _recode_table(task, learned)  # as columns are encoded for learners that need numbers alone
        if not numbers.schema.plain:
            numbers = study.encoding.resolve(trees=False).fit(numbers, learning).task(numbers)
        learner, criterion = study.learner.canonical(numbers), study.criterion.on(task.classes)
        n, settings, report_k = learned.n_units, sum(learner.space.lengths), study.search.report_k
        check_folds("report_k", report_k, n, task.unit)
        assert isinstance(study.resampling, CertifiableFolds)
        resampling = study.resampling.canonical(n, settings, criterion.delta, task.unit)
        for k in report_k:
            if resampling.k is not None and k not in resampling.k:
                asked = ",".join(map(str, resampling.k))
                raise InputError(f"report_k={k} is not among k={asked}: add it to k to have it computed")
        sizes = resampling.fold_sizes(n)
        search = study.search.resolve(n, settings, len(sizes), max(size.n_splits for size in sizes))
        study = replace(study, learner=learner, criterion=criterion, resampling=resampling, search=search)
        made = cls(study, learned, task, held, sizes, run_id(study, identify_data(task, learned)))
        made.check_effort()
        made._check_rows()
        for quantity in study.certification.quantities.values():
            quantity.check(made)
        return made

    @classmethod
    def _of_procedure(cls, study: Procedure, task: Task) -> "Problem":
        """Apply a study without a certification to a task."""
        _check_fits(study, task, stored=study.choose != "")
        kind = task.target.kind
        names = dict.fromkeys((*study.measure_names, *filter(None, [study.select_by])))
        functions = {name: own.score(kind, task.labelled) for name, own in study.functions.items()}
        scores = tuple(functions.get(name) or measures.make_score(name, kind) for name in names)
        for score in scores:
            _check_need(study.learner, task, f"measure={score.name}", output=score.needs)
        outer = getattr(study.resampling, "outer", study.resampling)
        scores = tuple(map(measures.extend_score, scores)) if outer.corrected else scores
        learner, numbers = study.learner, task  # as columns are encoded for learners that need numbers alone
        if not task.schema.plain:
            numbers = study.encoding.resolve(trees=False).fit(task, np.arange(task.n)).task(task)
        if study.select_by is None and not study.choose:  # nothing is selected
            # As many columns as their kinds say: an encoder's number depends on the rows it is fitted to.
            X = task.X if task.schema.plain else expand_dates(task.X, task.schema)
            learner = learner.usual(replace(task, X=X))
        study = study.with_learner(learner.canonical(numbers))
        check_procedure(study, scores, task)
        task = _fill_new_rows(study, task)
        sizes = study.resampling.fold_sizes(task.divided.n_units)
        made = cls(study, task, task, None, sizes, run_id(study, task.digest), scores)
        more, n_splits = sizes if study.permutations else (), study.permutations * sizes[OUTER].n_splits
        if (inner := study.resampling.inner) is not None:
            more, n_splits = inner.fold_sizes(len(made._divide(OUTER, 0).train)), int(made.starts[-1])
        made = replace(made, sizes=(*sizes, *(size._replace(n_splits=n_splits) for size in more)))
        made._check_rows()
        return made

    @property
    def study(self) -> Study:
        """The study, if it has a certification."""
        assert isinstance(self.asked, Study)
        return self.asked

    @property
    def procedure(self) -> Procedure:
        """The study, if it has scores."""
        assert isinstance(self.asked, Procedure)
        return self.asked

    @property
    def budget(self) -> Budget | None:
        """The search, if it is within a budget."""
        search = None if self.scores else self.study.search
        return search if isinstance(search, Budget) else None

    def permute(self, number: int) -> "Problem":
        """Return the problem with its targets permuted, within groups if there are any.

        As in scikit-learn's ``permutation_test_score``, the splits are those of the permuted targets: the
        same, unless they depend on the targets.
        """
        task = self.task
        order = self.draws.at(*PERMUTATIONS).make_generator(number).permutation(task.n)
        groups = next(iter(task.units.columns.values()), None)
        if groups is not None:
            order[np.argsort(groups, kind="stable")] = order[np.argsort(groups[order], kind="stable")]
        task = replace(task, y=task.y[order])
        return replace(self, task=task, all_rows=task)

    def check_models(self) -> None:
        """Check that the models of every learner can be stored; it may fit one to a few rows.

        Raises:
            InputError: they cannot.
        """
        for each in self.prepared.values():
            each.learner.check_storable(partial(each.encode, self.task))

    @property
    def draws(self) -> Draws:
        """The source of every draw."""
        return Draws(self.asked.seed, self.task.salt)

    @property
    def criterion(self) -> Criterion:
        """What is minimised on this task: with groups, the form of the study's criterion for them."""
        grouped = None if self.task.units.independent else self.study.criterion.for_groups()
        return grouped or self.study.criterion

    def measure(self, row_units: RowUnits) -> Losses:
        """Return the criterion's measure for rows of these units."""
        of_rows = self.criterion.measure if self.clip is None else ClippedErrors(self.clip)
        return of_rows if self.task.units.independent else replace(of_rows, groups=row_units)

    @property
    def clip(self) -> float | None:
        """The error from which on predicted numbers are all equally wrong; None with classes or scores."""
        criterion = None if self.scores else self.study.criterion
        return criterion.clip if isinstance(criterion, MeanClippedError) else None

    @property
    def has_losses(self) -> bool:
        """Whether a model's total is not a count of rows: with groups, or numbers and a certification."""
        return self.clip is not None or not self.task.units.independent

    def make_measure(self, rows: Index) -> Measure:
        """Return what is totalled over some of the rows: the criterion's measure, or the scores."""
        if self.scores:
            return _Scoring(self.scores, self.task.X[rows], self.task.y[rows], self.task.n_classes)
        return self.measure(self.task.row_units[rows])

    def compute_totals(self, fits: Fits, measure: Measure, length: int) -> Numbers:
        """Return the totals of each fit, (length, ``n_totals``).

        Scores ask the models where labels, which may come from shared work, are not enough.
        """
        if not isinstance(measure, _Scoring) or measure.needs == {Output.LABEL}:
            return fits.totals(measure)
        outputs = (fits.model(step).predict_outputs(measure.X, measure.needs) for step in range(length))
        return np.array([measure.totals_of(each) for each in outputs])

    @property
    def n_totals(self) -> int:
        """Number of totals of an evaluation."""
        return self.make_measure(EMPTY).columns(self.task.n_classes)

    @cached_property
    def columns(self) -> dict[str, slice]:
        """Columns of the totals of each score, by its name: the score itself, then its sums."""
        ends = np.cumsum([score.width(self.task.n_classes) for score in self.scores]).tolist()
        starts = [0, *ends[:-1]]
        return {score.name: slice(*at) for score, *at in zip(self.scores, starts, ends, strict=True)}

    @property
    def total_type(self) -> type[np.number]:
        """Type of a total: sums of losses take 64 bits, and scores are not counts."""
        if self.scores:
            return np.float64
        return np.int64 if self.has_losses else np.int32

    @property
    def positive(self) -> int:
        """Number of the class that sensitivity is about: the second of two, unless the study names one."""
        named = None if self.scores else self.certification.positive
        return 1 if named is None else measures.find_class("positive", named, self.task.classes)

    @property
    def certification(self) -> Certification:
        """The source of claims, if there is one."""
        return self.study.certification

    @property
    def required(self) -> Condition | None:
        """The condition that a cut-off of the scores is chosen for, if there is one."""
        return self.certification.required

    @property
    def n_evaluations(self) -> int:
        """Number of evaluations: of the selection, and of what it selects."""
        selects = self.scores and self.procedure.select_by is not None
        selected = len(self.learners) * self.sizes[OUTER].n_splits if selects else 0
        sizes = self.sizes[INNER:] if selects else self.sizes
        return sum(size.n_splits for size in sizes) * self.n_settings + selected

    @property
    def own(self) -> tuple[int, ...]:
        """Positions of the fold sizes whose own best candidate is reported."""
        report = self.study.search.report_k
        return tuple(j for j, size in enumerate(self.sizes) if any(size.holds(k) for k in report))

    @property
    def references(self) -> tuple[int, ...]:
        """Positions of the learners that claims compare the winner with, whose own best has to be known."""
        labels = filter(None, (quantity.reference for quantity in self.certification.quantities.values()))
        return tuple(map(list(self.learners).index, labels))

    def find_estimate_rows(self, k: int, split: int) -> Index:
        """Return the rows of the estimate set of a split into k folds, which its member has not seen."""
        return self.rows(Stage.REFIT, self.sizes.index(self.find_size(k)), split)[1]

    def units(self, stage: Stage, size: int) -> UnitCounts:
        """Return the units that every split of a fold size scores, as the criterion counts them.

        They are the number of rows in a scored set or, if the criterion is ``by_class``, those of each class,
        (n_splits, n_classes); for these the splits are drawn on first use.
        """
        if not self.criterion.by_class:
            return self.folds[size].n_select
        if size not in self._class_rows:
            y, n_classes = self.task.y, self.task.n_classes
            splits = (self.split(size, number) for number in range(self.folds[size].n_splits))
            self._class_rows[size] = np.array(
                [[np.bincount(y[rows], minlength=n_classes) for rows in split[1:]] for split in splits]
            )
        return self._class_rows[size][:, int(stage is not Stage.SELECT)]

    def find_size(self, k: int) -> FoldSize:
        """Return the fold size of ``k``, one of the study's numbers of folds."""
        return next(size for size in self.sizes if size.holds(k))

    @cached_property
    def screened(self) -> int:
        """Position of the fold size at which a search within a budget compares settings."""
        return min(range(len(self.sizes)), key=lambda j: (abs(self.sizes[j].k - SCREENED_K), j))

    @cached_property
    def folds(self) -> tuple[FoldSize, ...]:
        """Fold sizes by position, and screens: ``screened`` with half the training units of the previous.

        There are no screens without a budget, or if units are few.
        """
        if self.budget is None:
            return self.sizes
        whole = self.sizes[self.screened]
        folds, n_train, n_select = [*self.sizes], whole.n_train // 2, whole.n_select
        while n_train >= MIN_SCREEN:
            n_select = max(n_select // 2, min(n_select, MIN_SCREEN))
            folds.append(whole._replace(n_train=n_train, n_select=n_select))
            n_train //= 2
        return tuple(folds)

    @property
    def screen_positions(self) -> tuple[int, ...]:
        """Positions at which settings can be compared: on all rows of a split, and on ever fewer."""
        return (self.screened, *range(len(self.sizes), len(self.folds)))

    def weigh(self, position: int) -> Costs:
        """Return the cost of an evaluation at a position for each learner, relative to one on all rows."""
        if position < len(self.sizes):
            return np.ones(len(self.learners))
        return self.cost(Stage.SELECT, position) / self.cost(Stage.SELECT, self.screened)

    @property
    def mean_cost(self) -> Costs:
        """Cost of an evaluation on all rows of a split by each learner, on average over fold sizes."""
        return np.asarray(np.mean([self.cost(Stage.SELECT, j) for j in range(len(self.sizes))], axis=0))

    def split(self, size: int, number: int) -> Split:
        """Return the rows of split ``number`` of the fold size at position ``size``.

        If a column divides the rows, rows whose group has scored rows are not fitted on.
        """
        split, groups = Split(*map(self.task.divided.rows, self._divide(size, number))), self.task.row_units
        if not self.task.split_by.column or self.task.units.independent:
            return split
        return split._replace(train=split.train[~np.isin(groups[split.train], groups[split.estimate])])

    def rows(self, stage: Stage, size: int, number: int) -> tuple[Index, Index]:
        """Return the training rows and the scored rows of a split."""
        split = self.split(size, number)
        if self.scores:
            return split.train, split.estimate
        return (split.train, split.select) if stage is Stage.SELECT else split.merge_select()

    @cached_property
    def starts(self) -> Index:
        """Number of the first split inside each outer one, and finally how many there are; 0 without any."""
        inner, n = self.asked.resampling.inner, self.sizes[OUTER].n_splits
        if inner is None:
            return np.zeros(n + 1, np.intp)
        counts = [inner.count_splits(len(self._divide(OUTER, number).train)) for number in range(n)]
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)

    def candidate(self, leader: Leader) -> Candidate:
        """Return the candidate at a leader's position, with the smallest k of its fold size."""
        return Candidate(self.learner.space.setting(leader.path, leader.step), self.sizes[leader.size].k)

    @cached_property
    def every_row(self) -> Task:
        """All rows of the table, including those held out, as the learning rows are interpreted."""
        return _recode_table(self.all_rows, self.task)

    @cached_property
    def data_digest(self) -> str:
        """SHA-256 of the table, and of how the learning rows are interpreted."""
        return identify_data(self.all_rows, self.task)

    def take_held_rows(self) -> TestRows | None:
        """Return the rows held out, if any are."""
        return None if self.held is None else self.every_row.take_test_rows(self.held)

    def order_held_units(self) -> Index:
        """Return the positions of the units held out, among these as sorted by number, in the order drawn.

        Where a condition holds them out, that is the order of their numbers.
        """
        n = self.all_rows.n_units
        if self.certification.where is not None:
            return np.arange(n - self.task.n_units)
        drawn = order_held_out(n, n - self.task.n_units, self.draws)
        return np.searchsorted(np.sort(drawn), drawn)

    def recode(self, test: TestRows | None) -> TestRows | None:
        """Return test rows of the table as the learning rows are interpreted."""
        return None if test is None else replace(test, X=self.task.recode(test.X, self.all_rows))

    def with_effort(self, effort: int) -> "Problem":
        """Return the problem of a budget with another effort, which has the same run_id.

        Raises:
            InputError: it is too little to select one candidate.
        """
        assert self.budget is not None
        made = replace(self, asked=replace(self.study, search=replace(self.budget, effort=effort)))
        made.check_effort()
        return made

    @property
    def least_effort(self) -> int:
        """The least effort of a search within a budget: to compare all settings and complete a candidate.

        An effort that pays for every evaluation is enough.
        """
        search = self.budget
        assert search is not None
        ratio = np.max(self.weigh(self.screen_positions[-1]))
        screens = len(count_kept(self.n_settings, search.keep, search.survivors))
        weights, splits = weigh_rounds(screens), max(size.n_splits for size in self.sizes)
        least = ceil(sum(weights) * max(self.n_settings * ratio / weights[0], splits / weights[-1]))
        return min(least, self.n_evaluations)

    def check_effort(self) -> None:
        """Raise InputError if a budget is below the least that selects one candidate, naming it."""
        search = self.budget
        if search is None or search.effort is None or search.effort >= self.least_effort:
            return
        splits = max(size.n_splits for size in self.sizes)
        raise InputError(
            f"effort={search.effort}: comparing {self.n_settings:,} settings and completing one candidate on "
            f"{pluralize(splits, 'split')} takes an effort of {self.least_effort:,} or more: allow more, or "
            "ask for fewer splits (n_splits)"
        )

    @cached_property
    def prepared(self) -> dict[str, Prepared]:
        """The learners that are compared, by label, with the steps that rows of this table go through."""
        steps, singles = (self.asked.encoding, Balance(self.asked.balance)), self.asked.learner.by_label
        return {label: Prepared.of(single, *steps, self.task) for label, single in singles.items()}

    @cached_property
    def learner(self) -> Learner:
        """What is fitted: the study's learner, or those of a choice, with these steps if there are any."""
        if len(self.prepared) > 1:
            return PreparedLearner(dict[str | None, Prepared](self.prepared.items()))
        (only,) = self.prepared.values()
        plain = (only.encoding, only.balance) == (None, Balance.NONE)
        return only.learner if plain else PreparedLearner({None: only})

    @property
    def scaling(self) -> list[str]:
        """How numbers are scaled for each estimator that is named by its class: its options say it."""
        says = {
            "none": "numbers are given to {} as they are; --scale standard standardises them in each split",
            "standard": "numbers are standardised in each split for {}; --scale none leaves them",
        }
        named = [(label, single) for label, single in self.learners.items() if single.name == ANY]
        return [says[vars(single)["scale"]].format(label) for label, single in named]

    @cached_property
    def n_settings(self) -> int:
        """Number of settings of the learner, or of all learners that are compared."""
        return int(self.settings_per_learner.sum())

    @cached_property
    def learners(self) -> Mapping[str, Learner]:
        """The learners that are compared, by label: of equal ones the first wins."""
        return self.asked.learner.by_label

    @cached_property
    def learner_of_paths(self) -> Index:
        """For each path the position of its learner among those that are compared, (n_paths,)."""
        counts = [len(learner.space.lengths) for learner in self.learners.values()]
        return np.repeat(np.arange(len(counts)), counts)

    @cached_property
    def settings_per_learner(self) -> Index:
        """Number of settings of each learner, (n_learners,)."""
        return np.array([sum(learner.space.lengths) for learner in self.learners.values()])

    def find_learner(self, setting: Setting) -> tuple[int, Learner]:
        """Return the learner that a setting is of, after its position."""
        number = 0 if len(self.learners) == 1 else list(self.learners).index(setting[LABEL])
        return number, list(self.learners.values())[number]

    def most_rows_in(self, units: ArrayLike) -> Index:
        """Return the largest number of rows that this many units can have, some of which may be repeats."""
        largest_first = np.sort(np.bincount(self.task.divided.row_units))[::-1]
        times, rest = np.divmod(units, self.task.divided.n_units)
        return np.asarray(times * self.task.n + np.append(0, np.cumsum(largest_first))[rest])

    def cost(self, stage: Stage, size: int) -> Costs:
        """Return the relative cost of a fit by each learner, (n_learners,).

        Costs of different learners cannot be compared.
        """
        return self._costs[int(stage is not Stage.SELECT)][size]

    def compute_cost(self, units: int) -> Costs:
        """Return the relative cost of a fit by each learner on this many units, (n_learners,)."""
        rows = round(units * self.task.n / self.task.divided.n_units)  # on average
        costs = [each.learner.trainer.cost(each.count_rows(rows)) for each in self.prepared.values()]
        return np.array(costs, np.float64)

    def cost_of_fits(self, stage: Stage, size: int, paths: ArrayLike, fits: ArrayLike) -> Costs:
        """Return the summed cost of fits by each learner, (n_learners,), given how many on which paths."""
        learners = self.learner_of_paths[np.asarray(paths, dtype=np.intp)]
        return np.asarray(self.cost(stage, size) * np.bincount(learners, fits, len(self.learners)))

    def cost_of_unit(self, unit: Unit) -> Costs:
        """Return the cost of a unit's scored steps by each learner, (n_learners,)."""
        if len(self.learners) == 1:  # a batch has hundreds of units
            return self.cost(unit.stage, unit.size) * unit.evaluations
        paths, scored = zip(*((path, n - unit.first(n)) for path, n in unit.paths), strict=True)
        return self.cost_of_fits(unit.stage, unit.size, paths, scored)

    @cached_property
    def _costs(self) -> list[list[Costs]]:
        """Costs of fits by fold size, without the units of MS and with them."""
        units = ((fold.n_train, fold.n_train + fold.n_select) for fold in self.folds)
        return [list(map(self.compute_cost, each)) for each in zip(*units, strict=True)]

    @cached_property
    def _class_rows(self) -> dict[int, Index]:
        """Rows of each class in MS and EE by fold size, each (n_splits, 2, n_classes)."""
        return {}

    def _check_rows(self) -> None:
        """Raise InputError if a split has no training rows, or may lack those that a learner needs.

        How many are left out to balance classes depends on the split: about as many as of all rows.
        """
        units = min(size.n_train for size in self.sizes)
        if self.scores:  # the first split may have fewer than most
            units = min(units, len(self._divide(OUTER, 0).train))
        fewest = int(np.sort(np.bincount(self.task.row_units))[:units].sum())
        if self.task.split_by.column:  # a gap leaves fewer in the first split, groups in any
            n_splits = 1 if self.task.units.independent else self.sizes[OUTER].n_splits
            counts = [len(self.split(OUTER, number).train) for number in range(n_splits)]
            if not (fewest := min(counts)):
                raise InputError(
                    f"resampling={self.asked.resampling} has nothing to fit on in split {counts.index(0)}: "
                    "other rows are in its gap, or of groups that it scores; leave gap or groups out"
                )
        for each in self.prepared.values():
            each.learner.check_rows(int(min(1.0, each.share) * fewest))

    def _divide(self, size: int, number: int) -> Split:
        """Return a split in units; a screen has the first of the split's units in its own order."""
        draws, inner = self.draws, self.asked.resampling.inner
        if not self.scores and size >= len(self.sizes):
            whole, fold = self._divide(self.screened, number), self.folds[size]
            rng = draws.at(*PART).make_generator(number)
            train, select = rng.permutation(whole.train), rng.permutation(whole.select)
            return Split(np.sort(train[: fold.n_train]), np.sort(select[: fold.n_select]), EMPTY)
        if size == OUTER or inner is None:
            return self.asked.resampling.split(self.task.strata, self.sizes[size], number, draws)
        outer = int(np.searchsorted(self.starts, number, side="right")) - 1
        train, inside = self._divide(OUTER, outer).train, number - int(self.starts[outer])
        split = inner.split(self.task.strata.take(train), self.sizes[size], inside, draws.inside(outer))
        return Split(*(train[part] for part in split))


def divide(study: AnyStudy, task: Task) -> tuple[Index | None, Task]:
    """Return the rows that a study holds out of a task, None if none, and the learning rows by themselves.

    Raises:
        InputError: too few rows are held out, or left to learn from; or a condition holds them out that is
            met by no row, by all, or by only some rows of a group.
    """
    if isinstance(study, Procedure) or not isinstance(study.certification, Holdout):
        return None, _fill_new_rows(study, task)
    n, where = task.n_units, study.certification.where
    if where is None:
        share = study.certification.canonical(n).holdout_share
        units = hold_out(n, float(share), Draws(study.seed, task.salt))
    else:
        rows = task.split_by.find_rows(where.sign, where.value)
        if rows.all() or not rows.any():
            met = "every row" if rows.any() else "no row"
            raise InputError(
                f"holdout_where={where} is met by {met} of {task.n:,}: name a value that {where.column!r} "
                "has in some of them"
            )
        both = np.intersect1d(task.row_units[rows], task.row_units[~rows])
        if len(both):
            raise InputError(
                f"holdout_where={where} divides {pluralize(len(both), 'group')} of {task.units.name!r}, one "
                f"of them in row {int(np.argmax(np.isin(task.row_units, both))) + 1}: leave out of the table "
                "those rows of such groups that do not meet it"
            )
        units = np.unique(task.row_units[rows])
    if len(units) < MIN_HELD_OUT or n < MIN_HELD_OUT + MIN_ROWS:
        paper = f"--paper runs from {MIN_ROWS} rows on (--k 3 --n-splits 90 takes every split once), and "
        raise InputError(
            f"{pluralize(len(units), task.unit)} of {n:,} held out would prove next to nothing: hold out at "
            f"least {MIN_HELD_OUT}, which are half of {2 * MIN_HELD_OUT}. With fewer {task.unit}s "
            f"{task.target.word(paper, '')}ckcv evaluate gives scores, without a proof"
        )
    held = task.units.rows(units)
    learned = task.without(held)
    if learned.schema.plain and not task.schema.plain:
        learned = replace(learned, fills=tuple(study.encoding.fit_fills(learned.X).tolist()))
    return held, _fill_new_rows(study, learned)


def _fill_new_rows(study: AnyStudy, learned: Task) -> Task:
    """Return learning rows with fills for other rows' gaps in numbers and dates, where they have no gaps.

    A learner that selects columns by name is given them as they are, and has seen no gap there; others encode
    each column in every split.
    """
    learners = study.learner.by_label.values()
    if learned.schema.plain or all(each.prepare(learned, Encoding())[1] is not None for each in learners):
        return learned
    known = np.array([not column.levels for column in learned.schema]) & ~np.isnan(learned.X).any(axis=0)
    if not known.any():
        return learned
    fills = np.full(len(known), np.nan)
    fills[known] = study.encoding.fit_fills(learned.X[:, known])
    return replace(learned, fills=tuple(fills.tolist()))


def _recode_table(table: Task, learned: Task) -> Task:
    if table.schema == learned.schema and learned.fills is None:
        return table
    X = np.ascontiguousarray(learned.recode(table.X, table))
    return replace(learned, X=X, y=table.y, units=table.units, weighting=table.weighting)


def identify_data(table: Task, learned: Task) -> str:
    """Return the SHA-256 of a table, and of how its learning rows are interpreted if that differs."""
    if table.schema == learned.schema:
        return table.digest
    columns = [] if learned.schema.plain else [[column.name, column.levels] for column in learned.schema]
    return hashlib.sha256(json.dumps([table.digest, columns]).encode()).hexdigest()


def check_certified(study: Study, task: Task) -> Certification:
    """Return a study's certification in canonical form for a task, checking that all that is asked fits.

    Raises:
        InputError: a part does not suit such a task, or another part.
    """
    criterion, certification = study.criterion, study.certification
    _check_fits(study, task, stored=True)
    check = partial(_check_need, study.learner, task)
    instead = task.target.word("choose one of classes, such as error", CLIP_IS)
    rows = "rows" if criterion.for_groups() is None else ""
    check(f"criterion={criterion.name}", criterion.measure.kinds, rows=rows, instead=instead)
    if VOTE in certification.claim:
        check(f"claim={VOTE}", CLASSES)
    for claim, quantity in certification.quantities.items():
        kinds = NUMBERS if quantity.of_numbers else TWO if quantity.two_classes else CLASSES
        required = quantity.made_of or (quantity.by_class and quantity.two_classes)
        source = f"answer={certification.answer}" if quantity.answers else f"claim={claim}"
        source = f"require={certification.require}" if certification.require and required else source
        recall = quantity.by_class and source == f"claim={claim}" and task.n_classes > 2
        instead = "claim recall, which is of every class" if recall else LEAVE_OUT
        check(source, kinds, quantity.needs, quantity.rows_alone, instead)
    for condition in certification.accepted:
        check(f"accept={condition}", NUMBERS if condition.kind.of_numbers else CLASSES)
    if certification.require:
        check(f"require={certification.require}", TWO, Output.RANK, orders=True)
    if certification.answer:
        output = Output.RANK if task.n_classes == 2 else Output.RANKS
        check(f"answer={certification.answer}", CLASSES, output, "rows")
    if certification.positive is not None:
        check(f"positive={certification.positive!r}", TWO)
    if certification.subgroups:
        check(f"subgroups={','.join(certification.subgroups)}", rows="rows of a subgroup")
    if isinstance(certification, Holdout) and certification.holdout_bound != Holdout.holdout_bound:
        check(f"holdout_bound={certification.holdout_bound}", CLASSES, rows="rows")
    limit = (criterion.clip or 0.0) if isinstance(criterion, MeanClippedError) else 0.0
    if limit > MAX_CLIP * (spread := float(np.ptp(task.y))) > 0:
        raise InputError(
            f"clip={limit:g} is over {MAX_CLIP:,} times the range of the target, {spread:g}, and errors are "
            "counted in millionths of it: give the largest error that matters"
        )
    if certification.positive is not None:
        number = measures.find_class("positive", certification.positive, task.classes)
        label = None if number == 1 else str(task.classes[number])
        certification = replace(certification, positive=label)  # type: ignore[type-var]
    return certification.canonical(task.n_units)


def _check_need(
    learner: Learner,
    task: Task,
    option: str,  # what needs something of them, with its value
    kinds: frozenset[Kind] = frozenset(Kind),  # of target
    output: Output | None = None,  # of every learner
    rows: str = "",  # those that it counts as independent; "" if it is defined for groups as well
    instead: str = LEAVE_OUT,  # what to do where it is not met
    orders: bool = False,  # whether a score that is the same for every row will not do
) -> None:
    if task.target.kind not in kinds:
        wanted = "classes" if kinds == CLASSES else " or ".join(sorted(kinds))
        found = f"{task.n_classes} classes ({some(task.classes)})" if task.n_classes else "numbers"
        raise InputError(
            f"{option} is for {wanted}, and the target {task.target.name!r} has {found}: {instead}"
        )
    if rows:
        task.units.check_independent(
            f"{option} counts {rows} as independent, which rows of groups are not: leave it out, or --group"
        )
    for label, single in learner.by_label.items():
        gives = "none" if output in OUTPUTS and output not in single.outputs else ""
        gives = "every row the same" if orders and label == SAME_SCORE else gives
        if output is not None and gives:
            raise InputError(
                f"{option} needs {OUTPUTS[output]}, and learner {label} gives {gives}: leave one "
                "of them out, or choose a learner such as linear or forest"
            )


def _check_fits(study: BaseStudy, task: Task, stored: bool) -> None:
    """Raise InputError unless learners suit a task, its weights of rows, and equal classes.

    If models are ``stored``, they may name each row only once.
    """
    learners, balance = study.learner.by_label, study.balance
    others = "choose one of classes, such as svm or forest", "choose one of numbers, such as ridge"
    instead = task.target.word(*others) if len(learners) == 1 else LEAVE_OUT
    if balance != Balance.NONE:
        _check_need(study.learner, task, f"balance={balance}", CLASSES)
    for label, single in learners.items():
        _check_need(single, task, f"learner {label}", single.kinds, instead=instead)
        if task.weighting.columns and not single.weighs_rows:
            raise InputError(
                f"learner {label} does not use weights of rows: choose one that does, such as "
                f"{task.target.word('linear', 'ridge')}, or leave out the weights"
            )
        if stored and balance == Balance.UP and not single.codec.stores_repeats:
            raise InputError(
                f"balance=up draws rows again, and a stored model of learner {label} names each row once: "
                "choose class_weight=balanced, which is the same on average, or balance=down"
            )


def check_procedure(study: Procedure, scores: Sequence[Score], task: Task) -> None:
    """Raise InputError unless a resampling divides such a task, and its splits can tell what is asked."""
    resampling, permutations, interval = study.resampling, study.permutations, study.interval
    unfit = [score.name for score in scores if score.rows is None]
    if resampling.corrected and unfit:
        fit = (
            score.name for score in measures.OWN if score.rows is not None and task.target.kind in score.kinds
        )
        raise InputError(
            f"resampling={resampling} needs measures that are means over rows, and {unfit[0]} is not: choose "
            f"from {', '.join(fit)}, or choose bootstrap632"
        )
    if permutations and task.n_units < task.n:
        rows = np.lexsort((task.y, task.row_units))
        same_group, same_target = (np.diff(values[rows]) == 0 for values in (task.row_units, task.y))
        if np.all(same_target[same_group]):
            raise InputError(
                f"permutations={permutations} permutes targets within groups, and each group has a single "
                "one: leave it out"
            )
    if resampling.names_rows:
        task.units.check_independent("given splits name rows, and groups stay whole: leave groups out")
    if resampling.in_order and np.any(np.diff(task.row_units) < 0):
        raise InputError(
            f"resampling={resampling} scores what follows in the table, and rows of other groups stand "
            f"between those of a group of {task.units.name!r}: sort the table by group, or leave groups out"
        )
    if resampling.stratify:
        if not resampling.stratifies_groups:
            task.units.check_independent(
                f"stratify keeps groups whole in kfold and repeated_kfold, not in {resampling.name}: "
                "choose one of these, or leave out stratify or the groups"
            )
        _check_need(study.learner, task, "stratify", CLASSES)
    if interval and INTERVALS[interval].scores:
        task.units.check_independent(
            f"interval={interval} takes rows as independent, and rows of a group are not: leave groups "
            "or the interval out, or choose interval=corrected_t"
        )
    asks_for_several = interval == CORRECTED_T or study.choose == ONE_SE
    has_one = asks_for_several and resampling.count_splits(task.divided.n_units) < 2
    if interval == CORRECTED_T and has_one:
        raise InputError(f"interval={interval} requires two splits, and {resampling} has one: raise it")
    if study.choose == ONE_SE and (resampling.combined or has_one):
        raise InputError(
            f"choose={ONE_SE} needs the standard error of several splits, and {resampling} has none: choose "
            "best or tolerance:2%, or a resampling such as kfold:10"
        )
    for label, single in study.learner.by_label.items() if study.choose not in ("", BEST_MEAN) else ():
        settings = [setting for path in single.space.paths for setting in path]
        if len(settings) > 1 and not list_simplifying(settings):
            raise InputError(
                f"choose={study.choose} keeps the simplest of the settings that are about as good, and for "
                f"{label} it is not known which value of {', '.join(settings[0])} is simpler: choose best"
            )
