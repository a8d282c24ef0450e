"""What happens to the training rows of a split before a fit: encoding, balancing and class weights.

All of it is fitted in every split to its training rows alone, and is part of each model. No information from
the scored rows can reach it, and neither which rows are scored nor how they are counted changes; so what is
proven covers it, as part of the learner.

Columns with categories, dates or gaps become numbers as by scikit-learn's transformers. What is kept of a
transformer is what it turns each value into: numbers that anybody can read, stored with every model.

Balanced learners are fitted to classes of equal size: after encoding, rows of rarer classes are drawn again,
or others left out. Draws depend only on the numbers of the training rows, like everything random in a fit:
they are the same on every machine.

Weights say how much an error on a row of a class counts in a fit. ``balanced`` gives the K classes weights
inversely proportional to their numbers of training rows, n / (K n_c). Otherwise weights are given by label,
and a class that is not named weighs 1. Both are as in scikit-learn.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from math import ceil, inf
from typing import Any, Self

import numpy as np

from ckcv_ray.core.draws import draw_seeds, make_seed_sequence
from ckcv_ray.core.measures import LABEL_FORM, canonicalize, of_classes, to_text
from ckcv_ray.core.options import Option
from ckcv_ray.errors import Classes, Index, InputError, Label, Rows, Values, read_as
from ckcv_ray.tables.columns import Column, ColumnKind, Schema
from ckcv_ray.tables.task import Task

NAME = "class_weight"
EQUALLY = "equal"
BALANCED = "balanced"
KEY = 1  # key of the draws, separate from those of the learner
PART = 1 << 12  # rows encoded at once, so that their columns fit into a processor's cache
DAY = 86_400_000.0  # milliseconds
PARTS = ("days", "year", "month", "day", "weekday", "hour")  # of a date
MIN_RARE = 2  # rows
RARE = 0.01
UNSEEN, GAP = -1, -2
CROSS_FITS, FEWEST_CROSS_FITS = 5, 2
TargetFolds = tuple[tuple[int, ...], ...]


def _check_class_weight(name: str, value: object) -> str:
    """Return the canonical form of an option: "equal" (also for None), "balanced", or weights by label.

    Raises:
        InputError: it is none of these.
    """
    if value is None or (isinstance(value, str) and value in (EQUALLY, BALANCED)):
        return value or EQUALLY
    return canonicalize(name, value, f"{EQUALLY}, {BALANCED}, or {LABEL_FORM}")


CLASS_WEIGHT = Option(
    _check_class_weight,
    "Weights of the classes in fits: equal, balanced (by their numbers of rows), or sick=10,well=1.",
    panel="Columns",
)


def match_labels(class_weight: str, classes: Sequence[Label]) -> str:
    """Return the canonical form on a task: labels as the task has them, without weights of 1.

    Raises:
        InputError: a name is not a label of the task.
    """
    if class_weight in (EQUALLY, BALANCED):
        return class_weight
    given = of_classes(NAME, class_weight, classes)
    unequal = {str(c): w for c, w in zip(classes, given, strict=True) if w is not None and w != 1.0}
    return to_text(unequal) if unequal else EQUALLY


def compute_weights(class_weight: str, classes: Sequence[Label], y: Classes) -> Values:
    """Return the weight of each class, (n_classes,).

    Args:
        class_weight: canonical form of the option.
        classes: original labels of the classes.
        y: class numbers of the training rows, (n,). As in scikit-learn, "balanced" ignores classes without
            any: the weight of class c is n / (K n_c), with K counting the classes that have some.
    """
    if class_weight == BALANCED:
        rows = np.bincount(y, minlength=len(classes))
        present = rows > 0
        return np.where(present, len(y) / (np.count_nonzero(present) * np.maximum(rows, 1)), 1.0)
    if class_weight == EQUALLY:
        return np.ones(len(classes))
    given = of_classes(NAME, class_weight, classes)
    return np.array([1.0 if weight is None else weight for weight in given])


class Balance(StrEnum):
    """How the classes of a split's training rows are made equal in size."""

    NONE = "none"
    UP = "up"
    DOWN = "down"


def draw_balanced(y: Classes, train: Index, how: Balance) -> Index:
    """Return training rows with as many of each class as of the largest (``UP``) or the smallest (``DOWN``).

    With ``UP`` all rows stay, and rows of other classes are drawn in addition, with replacement; with
    ``DOWN`` rows are drawn without replacement. A class without training rows stays empty.

    Args:
        y: the classes of all rows, (n,).
        train: numbers of the training rows.
        how: ``UP`` or ``DOWN``; with ``NONE`` the rows stay as they are.

    Returns:
        Row numbers, ascending.
    """
    if how is Balance.NONE:
        return train
    rng = np.random.default_rng(make_seed_sequence(train, KEY))
    classes, counts = np.unique(y[train], return_counts=True)
    parts = list[Index]()
    for rows in (train[y[train] == c] for c in classes):
        if how is Balance.UP:
            parts += [rows, rng.choice(rows, int(counts.max()) - len(rows))]
        else:
            parts.append(rng.choice(rows, int(counts.min()), replace=False))
    return np.sort(np.concatenate(parts))


@dataclass(frozen=True)
class Numbers:
    """What a column of numbers x becomes: (x - mean) / scale, and a column with ones where x is missing."""

    fill: float  # replaces a missing x
    missing: bool  # whether a column says where x is missing: only if the training rows had gaps
    mean: float  # 0 for learners that need no scaling
    scale: float  # 1 for these learners

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise ValueError(f"its encoder divides by {self.scale}")

    def columns(self, x: Values, fold: int | None = None) -> Iterator[Values]:
        """Yield the columns that x (rows,) becomes, in any fold."""
        gap = np.isnan(x)
        yield (np.where(gap, self.fill, x) - self.mean) / self.scale
        if self.missing:
            yield gap.astype(np.float64)


@dataclass(frozen=True)
class Levels:
    """What a column of categories becomes."""

    # the number for each level, for one that was never seen, and for a gap; or with ``width`` the position of
    # its column of ones, -1 for none
    value: tuple[float, ...]
    width: int  # number of such columns; 0 for a number

    def __post_init__(self) -> None:
        if self.width and not set(self.value) <= set(range(-1, self.width)):
            raise ValueError("its encoder puts a category into a column that does not exist")

    def columns(self, x: Values, fold: int | None = None) -> Iterator[Values]:
        """Yield the columns that level numbers x (rows,) become, in any fold."""
        found = np.array(self.value)[np.where(np.isnan(x), -1, x).astype(np.intp)]  # the last is for gaps
        if not self.width:
            yield found
        for position in range(self.width):
            yield (found == position).astype(np.float64)


@dataclass(frozen=True)
class Means:
    """What a column of categories becomes if each is replaced by the shares of classes in it.

    A training row gets the shares among the training rows of other folds, since its own class is part of the
    shares among all rows.
    """

    # for each class that is counted, its share in each level, in one that was never seen, and where there is
    # a gap
    of_all: tuple[tuple[float, ...], ...]
    # the same for each fold, of the training rows that are not in it
    of_others: tuple[tuple[tuple[float, ...], ...], ...]

    def columns(self, x: Values, fold: int | None = None) -> Iterator[Values]:
        """Yield the columns that level numbers x become, of training rows of a fold or of new rows."""
        place = np.where(np.isnan(x), -1, x).astype(np.intp)  # the last is for gaps
        for value in self.of_all if fold is None else self.of_others[fold]:
            yield np.array(value)[place]


@dataclass(frozen=True)
class Encoder:
    """A fitted encoder."""

    fitted: tuple[Numbers | Levels | Means, ...]  # one for each column, dates expanded
    schema: Schema  # the columns it was fitted to
    folds: TargetFolds = ()  # numbers of the training rows in each fold of ``Means``; empty if there are none

    def transform(self, X: Rows, fold: int | None = None) -> Rows:
        """Return rows X [rows, d] of a table as numbers without gaps; none depends on another row.

        Args:
            X: new rows, or training rows of a fold.
            fold: the fold of these training rows; None for new rows.
        """
        numbers = np.empty((0, 0))
        for start in range(0, max(1, len(X)), PART):
            raw = expand_dates(X[start : start + PART], self.schema)
            columns = [c for i, column in enumerate(self.fitted) for c in column.columns(raw[:, i], fold)]
            if not start:
                numbers = np.empty((len(X), len(columns)))
            np.stack(columns, axis=1, out=numbers[start : start + PART])
        return numbers

    def task(self, task: Task) -> Task:
        """Return the task whose rows it was fitted to, with numbers as columns."""
        X = self.transform(task.X)
        for fold, rows in enumerate(map(list, self.folds)):
            X[rows] = self.transform(task.X[rows], fold)
        return replace(task, X=X, schema=Schema.of_numbers(f"x{i}" for i in range(X.shape[1])))

    @property
    def text(self) -> str:
        """The encoder as JSON."""
        return json.dumps({"columns": [asdict(column) for column in self.fitted], "folds": self.folds})

    @classmethod
    def from_json(cls, text: str, schema: Schema, n_rows: int) -> Self:
        """Return the encoder for a table with ``n_rows`` from its ``text``, which may come from anybody.

        Raises:
            ValueError: it is not an encoder for these columns.
        """
        columns, content = list_expanded_columns(schema), json.loads(text)
        if not isinstance(content, dict) or set(content) != {"columns", "folds"}:
            raise ValueError("its encoder does not have columns and folds")
        if not isinstance(content["columns"], list) or len(content["columns"]) != len(columns):
            raise ValueError(f"its encoder is not for {len(columns)} columns")
        folds = tuple(read_as(list[tuple[int, ...]], content["folds"]))
        rows = [row for fold in folds for row in fold]
        if len(set(rows)) != len(rows) or not all(0 <= row < n_rows for row in rows):
            raise ValueError(f"its encoder has folds of rows that are not below {n_rows}, or in two folds")
        fitted = list[Numbers | Levels | Means]()
        for given, column in zip(content["columns"], columns, strict=True):
            if not column.levels:
                fitted.append(read_as(Numbers, given))
                continue
            n_values = len(column.levels) + 2  # for each level, for one that was never seen, and for a gap
            if isinstance(given, dict) and "of_all" in given:
                fitted.append(means := read_as(Means, given))
                shapes, n = (np.shape(means.of_all), np.shape(means.of_others)), len(means.of_all)
                suits = shapes == ((n, n_values), (len(folds), n, n_values))
            else:
                fitted.append(levels := read_as(Levels, given))
                suits = len(levels.value) == n_values
            if not suits:
                raise ValueError(
                    f"its encoder of {column.name[:60]!r} has another number of categories, classes or folds"
                )
        return cls(tuple(fitted), schema, folds)


def expand_dates(X: Rows, schema: Schema) -> Rows:
    """Return rows X [rows, d] with each date replaced by its parts, as numbers; gaps stay gaps.

    Without dates, the rows are returned as they are.
    """
    if all(column.kind is not ColumnKind.DATE for column in schema):
        return X
    columns: list[Any] = []
    for x, column in zip(X.T, schema, strict=True):
        if column.kind is not ColumnKind.DATE:
            columns.append(x)
            continue
        gap = np.isnan(x)
        stamps = np.where(gap, 0.0, x).astype(np.int64).astype("datetime64[ms]")
        days, months, years = (stamps.astype(f"datetime64[{unit}]") for unit in "DMY")
        parts = (
            stamps.astype(np.int64) / DAY,
            years.astype(np.int64) + 1970,
            (months - years).astype(np.int64) + 1,
            (days - months).astype(np.int64) + 1,
            (days.astype(np.int64) + 3) % 7,  # 0 is Monday
            (stamps - days).astype(np.int64) / (DAY / 24),
        )
        columns += [np.where(gap, np.nan, part.astype(np.float64)) for part in parts]
    return np.column_stack(columns)


def list_expanded_columns(schema: Schema) -> tuple[Column, ...]:
    """Return what the columns hold once dates are expanded: numbers or categories."""
    columns: list[Column] = []
    for column in schema:
        parts = [Column(f"{column.name}.{part}") for part in PARTS]
        columns += parts if column.kind is ColumnKind.DATE else [column]
    return tuple(columns)


class Categories(StrEnum):
    """How categories become numbers."""

    AUTO = "auto"
    ONEHOT = "onehot"
    ORDINAL = "ordinal"
    TARGET = "target"


class Gaps(StrEnum):
    """What fills gaps in numbers and dates; a column of its own says where they were."""

    MEDIAN = "median"
    MEAN = "mean"
    MOST_FREQUENT = "most_frequent"


@dataclass(frozen=True)
class Encoding:
    """How columns become numbers, fitted in every split."""

    # one column for each category ("onehot"), one number ("ordinal"), the share of each class in it
    # ("target"; with two classes, of the second; with numbers to predict, their mean), or "auto" for what
    # suits the learner
    categories: Categories = Categories.AUTO
    gaps: Gaps = Gaps.MEDIAN  # what fills gaps in numbers and dates. A gap in a category is a category
    rare: float = RARE  # share of the training rows below which categories are joined
    scaled: bool | None = None  # whether numbers are standardised; None: unless it is the ordinal encoding

    @property
    def onehot(self) -> bool:
        """Whether each category has a column of its own."""
        return self.categories is Categories.ONEHOT

    def resolve(self, trees: bool, scaled: bool | None = None) -> "Encoding":
        """Return the encoding with ``auto`` replaced: trees split numbers, other learners need columns.

        ``scaled`` is as for the encoding.
        """
        suited = Categories.ORDINAL if trees else Categories.ONEHOT
        categories = suited if self.categories is Categories.AUTO else self.categories
        return replace(self, categories=categories, scaled=scaled)

    def width(self, schema: Schema, n_classes: int) -> int:
        """Return the largest number of columns that a table can become.

        At most 1 / ``rare`` categories of a column have a share that is not rare; the others are joined.
        """
        most = ceil(1 / self.rare) + 1 if self.rare else inf
        fixed = {Categories.ORDINAL: 1, Categories.TARGET: max(1, len(choose_classes(n_classes)))}
        widths = {ColumnKind.NUMBER: 2, ColumnKind.DATE: 2 * len(PARTS)}
        return sum(
            widths[column.kind]
            if column.kind in widths
            else fixed.get(self.categories, int(min(len(column.levels) + 1, most)))
            for column in schema
        )

    def fit(self, task: Task, train: Index) -> "Encoder":
        """Fit an encoder to some rows of a task; it depends on nothing else.

        Raises:
            InputError: categories are to become shares of classes, and a class has only one row.
        """
        folds, targets = list[Index](), list[Values]()
        if self.categories is Categories.TARGET:
            folds, y = _make_folds(task, train), task.y[train]
            targets = [(y == c).astype(np.float64) for c in choose_classes(task.n_classes)] or [y]
        X, columns = expand_dates(task.X[train], task.schema), list_expanded_columns(task.schema)
        x = X[:, [not column.levels for column in columns]]
        numbers = list[Numbers]()
        if x.shape[1]:
            fills, gaps = self.fit_fills(x), np.isnan(x)
            mean, scale = np.zeros(x.shape[1]), np.ones(x.shape[1])
            if self.categories is not Categories.ORDINAL if self.scaled is None else self.scaled:
                # bit for bit those of scikit-learn's ``StandardScaler``, without its import and checks, which
                # take longer than most fits: variances are from the corrected two passes of Chan, Golub and
                # LeVeque (The American Statistician 37, 1983), and columns count as constant if their
                # variance is within rounding error
                filled, n, eps = np.where(gaps, fills, x), len(x), np.finfo(np.float64).eps
                mean = filled.sum(axis=0) / n
                residuals = filled - mean
                correction = residuals.sum(axis=0)
                residuals **= 2
                variance = (residuals.sum(axis=0) - correction**2 / n) / n
                constant = variance <= n * eps * variance + (n * mean * eps) ** 2
                scale = np.where(constant, 1.0, np.sqrt(variance))
            dates = [column.kind is ColumnKind.DATE for column in task.schema if not column.levels]
            says = [part == 0 for date in dates for part in range(len(PARTS) if date else 1)]
            missing = gaps.any(axis=0) & np.array(says)  # the gaps of a date are told by its first part
            parts = (part.tolist() for part in (fills, missing, mean, scale))
            numbers = [Numbers(*of_column) for of_column in zip(*parts, strict=True)]
        fitted = list[Numbers | Levels | Means]()
        for i, n_levels in enumerate(len(column.levels) for column in columns):
            if not n_levels:
                fitted.append(numbers.pop(0))
            elif self.categories is Categories.TARGET:
                from sklearn.preprocessing import TargetEncoder

                # each target's mean in each level, shrunk towards that of all rows; the last was never seen
                every, means = np.append(np.arange(n_levels + 1.0), np.nan)[:, None], []
                values, encoder = X[:, [i]], TargetEncoder(target_type="continuous")
                for fold in (np.arange(0), *folds):
                    rows = np.delete(np.arange(len(values)), fold)
                    fits = (encoder.fit(values[rows], target[rows]) for target in targets)
                    means.append(tuple(tuple(each.transform(every)[:, 0].tolist()) for each in fits))
                fitted.append(Means(means[0], tuple(means[1:])))
            else:
                fitted.append(self._fit_levels(X[:, i], n_levels))
        rows_of = tuple(tuple(np.sort(train[fold]).tolist()) for fold in folds)
        return Encoder(tuple(fitted), task.schema, rows_of)

    def fit_fills(self, X: Rows) -> Values:
        """Return what fills the gaps of each column of X [rows, d]; 0 where a column holds only gaps.

        Medians equal those of ``SimpleImputer``, which takes four times as long: it sorts, with a mask.
        """
        if self.gaps is Gaps.MEDIAN:
            known = (x[~np.isnan(x)] for x in X.T)
            return np.array([np.median(x) if len(x) else 0.0 for x in known])
        from sklearn.impute import SimpleImputer

        imputer = SimpleImputer(strategy=str(self.gaps), keep_empty_features=True).fit(X)
        return np.asarray(imputer.statistics_, np.float64)

    def _fit_levels(self, values: Values, n_levels: int) -> Levels:
        """Return a number, or a column of ones, for each frequent level and for all rarer ones together.

        This is scikit-learn's ``OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=least)`` or
        ``OrdinalEncoder``, whose checks take longer than most fits. Levels never seen count as rare, or as
        unknown if none is rare. Without columns of ones, gaps have a number of their own.

        Args:
            values: level of each row, NaN for a gap.
            n_levels: number of levels.
        """
        least, ones = max(MIN_RARE, int(np.ceil(self.rare * len(values)))), self.onehot
        rows = np.where(np.isnan(values), n_levels, values).astype(np.intp)
        seen = np.bincount(rows, minlength=n_levels + 1)
        counted = seen if ones else seen[:-1]  # gaps are frequent or rare only with columns of ones
        frequent = np.flatnonzero(counted >= least)
        joined = bool(((counted > 0) & (counted < least)).any())
        unseen = float(len(frequent) if joined else UNSEEN)
        place = np.full(n_levels + 1, unseen)
        place[frequent] = np.arange(len(frequent))
        if not ones and seen[-1]:
            place[-1] = GAP
        width = len(frequent) + joined if ones else 0
        return Levels((*place[:-1].tolist(), unseen, float(place[-1])), width)


def choose_classes(n_classes: int) -> range:
    """Return the classes for which one output each says everything: with two classes, the second."""
    return range(1, 2) if n_classes == 2 else range(n_classes)


def _make_folds(task: Task, train: Index) -> list[Index]:
    """Divide training rows, by position, into folds with all classes, keeping any groups whole.

    Where numbers are predicted, all rows form one class.

    Raises:
        InputError: a class has a single row, or all rows are in one group.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    y, groups = task.y[train], task.row_units[train]
    if not task.classes:
        y = np.zeros(len(train), np.intp)
    of_class = np.bincount(y)
    rarest, n_groups = int(of_class[of_class > 0].min()), len(np.unique(groups))
    grouped = task.n_units < task.n or n_groups < len(train)  # a row that was drawn twice stays in one fold
    if min(rarest, n_groups) < FEWEST_CROSS_FITS:
        what = "a class has a single row" if rarest < FEWEST_CROSS_FITS else "all are of one group"
        raise InputError(f"encode=target divides a split's training rows, and {what}: choose encode=onehot")
    splitter = StratifiedGroupKFold if grouped else StratifiedKFold
    (seed,) = draw_seeds(make_seed_sequence(train), 1)
    folds = splitter(min(CROSS_FITS, rarest, n_groups), shuffle=True, random_state=seed % 2**32)
    return [fold for _, fold in folds.split(y, y, groups if grouped else None) if len(fold)]
