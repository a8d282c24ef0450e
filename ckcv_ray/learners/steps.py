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
from numpy.typing import NDArray

from ckcv_ray.core.draws import draw_seeds, make_seed_sequence
from ckcv_ray.core.measures import LABEL_FORM, canonicalize, of_classes, to_text
from ckcv_ray.core.options import Option
from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns import Column, ColumnKind, Schema
from ckcv_ray.tables.task import Task
from ckcv_ray.validation import Classes, Index, Label, Rows, Values, read_as

NAME = "class_weight"
EQUALLY = "equal"
BALANCED = "balanced"


def check_class_weight(name: str, value: object) -> str:
    """Return the canonical form of an option: "equal" (also for None), "balanced", or weights by label.

    Raises:
        InputError: it is none of these.
    """
    if value is None or (isinstance(value, str) and value in (EQUALLY, BALANCED)):
        return value or EQUALLY
    return canonicalize(name, value, f"{EQUALLY}, {BALANCED}, or {LABEL_FORM}")


CLASS_WEIGHT = Option(
    check_class_weight,
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


KEY = 1  # key of the draws, separate from those of the learner


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


PART = 1 << 12  # rows encoded at once, so that their columns fit into a processor's cache
DAY = 86_400_000.0  # milliseconds
PARTS = ("days", "year", "month", "day", "weekday", "hour")  # of a date
TargetFolds = tuple[tuple[int, ...], ...]


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
        found = _map_levels(self.value, x)
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
        for value in self.of_all if fold is None else self.of_others[fold]:
            yield _map_levels(value, x)


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
        first = self._transform_part(X[:PART], fold)
        if len(X) <= PART:
            return first
        numbers = np.empty((len(X), first.shape[1]))
        numbers[:PART] = first
        for start in range(PART, len(X), PART):
            numbers[start : start + PART] = self._transform_part(X[start : start + PART], fold)
        return numbers

    def _transform_part(self, X: Rows, fold: int | None) -> Rows:
        """Return rows as numbers, few enough for their columns to be assembled in the processor's cache."""
        raw = expand_dates(X, self.schema)
        return np.column_stack(
            [c for i, column in enumerate(self.fitted) for c in column.columns(raw[:, i], fold)]
        )

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
        pairs = zip(content["columns"], columns, strict=True)
        return cls(tuple(_read_column(*pair, len(folds)) for pair in pairs), schema, folds)


def _map_levels(value: tuple[float, ...], x: Values) -> Values:
    """Return the value for each level number in x (rows,); the last value is for gaps."""
    return np.array(value)[np.where(np.isnan(x), len(value) - 1, x).astype(np.intp)]


def _read_column(content: Any, column: Column, n_folds: int) -> Numbers | Levels | Means:
    if not column.levels:
        return read_as(Numbers, content)
    n_values = len(column.levels) + 2  # for each level, for one that was never seen, and for a gap
    wrong = f"its encoder of {column.name[:60]!r} has another number of categories, classes or folds"
    if not (isinstance(content, dict) and "of_all" in content):
        levels = read_as(Levels, content)
        if len(levels.value) != n_values:
            raise ValueError(wrong)
        return levels
    means = read_as(Means, content)
    n = len(means.of_all)
    if (np.shape(means.of_all), np.shape(means.of_others)) != ((n, n_values), (n_folds, n, n_values)):
        raise ValueError(wrong)
    return means


def expand_dates(X: Rows, schema: Schema) -> Rows:
    """Return rows X [rows, d] with each date replaced by its parts, as numbers; gaps stay gaps.

    Without dates, the rows are returned as they are.
    """
    if all(column.kind is not ColumnKind.DATE for column in schema):
        return X
    columns: list[Any] = []
    for i, column in enumerate(schema):
        columns += _split_dates(X[:, i]) if column.kind is ColumnKind.DATE else [X[:, i]]
    return np.column_stack(columns)


def list_expanded_columns(schema: Schema) -> tuple[Column, ...]:
    """Return what the columns hold once dates are expanded: numbers or categories."""
    columns: list[Column] = []
    for column in schema:
        parts = [Column(f"{column.name}.{part}") for part in PARTS]
        columns += parts if column.kind is ColumnKind.DATE else [column]
    return tuple(columns)


def _split_dates(milliseconds: Any) -> list[Any]:
    gap = np.isnan(milliseconds)
    stamps = np.where(gap, 0.0, milliseconds).astype(np.int64).astype("datetime64[ms]")
    days, months, years = (stamps.astype(f"datetime64[{unit}]") for unit in "DMY")
    since = days.astype(np.int64)
    parts = (
        stamps.astype(np.int64) / DAY,
        years.astype(np.int64) + 1970,
        (months - years).astype(np.int64) + 1,
        (days - months).astype(np.int64) + 1,
        (since + 3) % 7,  # 0 is Monday
        (stamps - days).astype(np.int64) / (DAY / 24),
    )
    return [np.where(gap, np.nan, part.astype(np.float64)) for part in parts]


MIN_RARE = 2  # rows
RARE = 0.01
UNSEEN, GAP = -1, -2
CROSS_FITS, FEWEST_CROSS_FITS = 5, 2


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
        folds = _make_folds(task, train) if self.categories is Categories.TARGET else ()
        X, columns = expand_dates(task.X[train], task.schema), list_expanded_columns(task.schema)
        categorical = np.array([bool(column.levels) for column in columns])
        kinds = [column.kind for column in task.schema if not column.levels]
        parts = (range(len(PARTS) if kind is ColumnKind.DATE else 1) for kind in kinds)
        says = [part == 0 for each in parts for part in each]  # where gaps are; for a date, its first part
        numbers = iter(self._fit_numbers(X[:, ~categorical], says))
        fitted = (
            self._fit_levels(X[:, [i]], n_levels, task, train, folds) if n_levels else next(numbers)
            for i, n_levels in enumerate(len(column.levels) for column in columns)
        )
        rows_of = tuple(tuple(np.sort(train[fold]).tolist()) for fold in folds)
        return Encoder(tuple(fitted), task.schema, rows_of)

    def _fit_numbers(self, X: Rows, says: Sequence[bool]) -> list[Numbers]:
        if not X.shape[1]:
            return []
        fills, gaps = self.fit_fills(X), np.isnan(X)
        mean, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if self.categories is not Categories.ORDINAL if self.scaled is None else self.scaled:
            mean, scale = fit_scale(np.where(gaps, fills, X))
        parts = fills, gaps.any(axis=0) & np.array(says, np.bool_), mean, scale
        return [Numbers(*numbers) for numbers in zip(*(part.tolist() for part in parts), strict=True)]

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

    def _fit_levels(
        self, values: Rows, n_levels: int, task: Task, train: Index, folds: Sequence[Index]
    ) -> Levels | Means:
        if self.categories is not Categories.TARGET:
            least = max(MIN_RARE, int(np.ceil(self.rare * len(values))))
            return _number_levels(values[:, 0], n_levels, least, self.categories is Categories.ONEHOT)
        every = np.append(np.arange(n_levels + 1.0), np.nan)[:, None]  # the last level was never seen
        y, counted = task.y[train], choose_classes(task.n_classes)
        targets = [(y == target).astype(np.float64) for target in counted] or [y]
        remaining = (np.delete(np.arange(len(train)), fold) for fold in folds)
        of_others = tuple(
            _fit_means(values[rows], [target[rows] for target in targets], every) for rows in remaining
        )
        return Means(_fit_means(values, targets, every), of_others)


def fit_scale(X: Rows) -> tuple[Values, Values]:
    """Return mean and standard deviation [d] of the columns of X [rows, d]; 1 where all rows are about equal.

    They equal those of scikit-learn's ``StandardScaler`` bit for bit, without its import and checks, which
    take longer than most fits: variances are from the corrected two passes of Chan, Golub and LeVeque (The
    American Statistician 37, 1983), and columns count as constant if their variance is within rounding error.
    """
    n, eps = len(X), np.finfo(np.float64).eps
    mean = X.sum(axis=0) / n
    residuals = X - mean
    correction = residuals.sum(axis=0)
    residuals **= 2
    variance = (residuals.sum(axis=0) - correction**2 / n) / n
    constant = variance <= n * eps * variance + (n * mean * eps) ** 2
    return mean, np.where(constant, 1.0, np.sqrt(variance))


def _number_levels(values: Values, n_levels: int, least: int, ones: bool) -> Levels:
    """Return a number for each frequent level and one for all rarer ones, each optionally a column of ones.

    This is scikit-learn's ``OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=least)`` or
    ``OrdinalEncoder``, whose checks take longer than most fits. Levels never seen count as rare, or as
    unknown if none is rare. Without columns of ones, gaps have a number of their own.

    Args:
        values: level of each row, NaN for a gap.
        n_levels: number of levels.
        least: rows that a frequent level has; with columns of ones, also frequent gaps.
        ones: whether there are columns of ones.
    """
    seen = np.bincount(np.where(np.isnan(values), n_levels, values).astype(np.intp), minlength=n_levels + 1)
    counted = seen if ones else seen[:-1]
    frequent = np.flatnonzero(counted >= least)
    joined = bool(((counted > 0) & (counted < least)).any())
    unseen = float(len(frequent) if joined else UNSEEN)
    place = np.full(n_levels + 1, unseen)
    place[frequent] = np.arange(len(frequent))
    if not ones and seen[-1]:
        place[-1] = GAP
    return Levels((*place[:-1].tolist(), unseen, float(place[-1])), len(frequent) + joined if ones else 0)


def choose_classes(n_classes: int) -> range:
    """Return the classes for which one output each says everything: with two classes, the second."""
    return range(1, 2) if n_classes == 2 else range(n_classes)


def _fit_means(
    values: Rows, targets: list[NDArray[np.float64]], every: Rows
) -> tuple[tuple[float, ...], ...]:
    """Return for each target its mean in each category, shrunk towards the mean of all rows."""
    from sklearn.preprocessing import TargetEncoder

    encoders = (TargetEncoder(target_type="continuous").fit(values, y) for y in targets)
    return tuple(tuple(encoder.transform(every)[:, 0].tolist()) for encoder in encoders)


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
