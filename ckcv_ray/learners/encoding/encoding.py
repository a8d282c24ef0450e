"""How columns become numbers in every split: scikit-learn's transformers, fitted to its training rows.

What is kept of a transformer is what it makes of each value (``learners.encoding.encoder``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, inf

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Index, Values
from ckcv_ray.errors import InputError
from ckcv_ray.learners.encoding.encoder import (
    PARTS,
    Encoder,
    Levels,
    Means,
    Numbers,
    expand_dates,
    find_gap_columns,
    list_expanded_columns,
)
from ckcv_ray.learners.seeds import draw_seeds, make_seed_sequence
from ckcv_ray.tables.columns.schema import Schema
from ckcv_ray.tables.columns.types import ColumnKind
from ckcv_ray.tables.target import Rows
from ckcv_ray.tables.task import Task

LEAST_RARE = 2  # rows
RARE = 0.01
UNSEEN = -1
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
    # ("target"; of two classes, of the second; of numbers to predict, their mean), or "auto" for what suits
    # the learner
    categories: Categories = Categories.AUTO
    gaps: Gaps = Gaps.MEDIAN  # what fills gaps in numbers and dates. A gap in a category is a category
    rare: float = RARE  # share of the training rows below which categories are joined
    scaled: bool | None = None  # whether numbers are standardised; None for all encodings but the ordinal one

    def resolve(self, trees: bool, scaled: bool | None = None) -> "Encoding":
        """Return the encoding with ``auto`` replaced: trees split numbers, other learners need columns.

        ``scaled`` as for the encoding.
        """
        suited = Categories.ORDINAL if trees else Categories.ONEHOT
        categories = suited if self.categories is Categories.AUTO else self.categories
        return replace(self, categories=categories, scaled=scaled)

    def fit_fills(self, X: Rows) -> tuple[float, ...]:
        """Return what stands for a gap in each column of rows X [rows, d], which have none."""
        from sklearn.impute import SimpleImputer

        return tuple(SimpleImputer(strategy=str(self.gaps)).fit(X).statistics_.tolist())

    def width(self, schema: Schema, n_classes: int) -> int:
        """Return the largest number of columns that a table can become.

        Of a column at most 1 / ``rare`` categories have a share that is not rare; the others are joined.
        """
        most = ceil(1 / self.rare) + 1 if self.rare else inf
        fixed = {Categories.ORDINAL: 1, Categories.TARGET: max(1, len(_choose_classes(n_classes)))}
        widths = {ColumnKind.NUMBER: 2, ColumnKind.DATE: 2 * len(PARTS)}
        return sum(
            widths[column.kind]
            if column.kind in widths
            else fixed.get(self.categories, int(min(len(column.levels) + 1, most)))
            for column in schema
        )

    def fit(self, task: Task, train: Index) -> "Encoder":
        """Fit an encoder to some rows of a task, on which alone it depends.

        Raises:
            InputError: categories are to become shares of classes, and a class has a single row.
        """
        folds = _make_folds(task, train) if self.categories is Categories.TARGET else ()
        X, columns = expand_dates(task.X[train], task.schema), list_expanded_columns(task.schema)
        categorical = np.array([bool(column.levels) for column in columns])
        numbers = iter(self._fit_numbers(X[:, ~categorical], find_gap_columns(task.schema)))
        fitted = (
            self._fit_levels(X[:, [i]], n_levels, task, train, folds) if n_levels else next(numbers)
            for i, n_levels in enumerate(len(column.levels) for column in columns)
        )
        rows_of = tuple(tuple(np.sort(train[fold]).tolist()) for fold in folds)
        return Encoder(tuple(fitted), task.schema, rows_of)

    def _fit_numbers(self, X: Rows, says: Sequence[bool]) -> list[Numbers]:
        if not X.shape[1]:
            return []
        fills, gaps = self._find_fills(X), np.isnan(X)
        mean, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if self.categories is not Categories.ORDINAL if self.scaled is None else self.scaled:
            mean, scale = fit_scale(np.where(gaps, fills, X))
        parts = fills, gaps.any(axis=0) & np.array(says, np.bool_), mean, scale
        return [Numbers(*numbers) for numbers in zip(*(part.tolist() for part in parts), strict=True)]

    def _find_fills(self, X: Rows) -> Values:
        """Return what fills the gaps of each column of X [rows, d]; 0 where there is nothing but gaps.

        Medians are those of ``SimpleImputer``, which takes four times as long: it sorts, with a mask.
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
        least = max(LEAST_RARE, int(np.ceil(self.rare * len(values))))
        if self.categories is Categories.ONEHOT:
            return _number_frequent(values[:, 0], n_levels, least)
        from sklearn.preprocessing import OrdinalEncoder

        unseen_and_gap = (float(n_levels), np.nan)
        every = np.append(np.arange(float(n_levels)), unseen_and_gap)[:, None]
        if self.categories is Categories.TARGET:
            y, counted = task.y[train], _choose_classes(task.n_classes)
            targets = [y] if task.has_numbers else [(y == target).astype(np.float64) for target in counted]
            remaining = (np.delete(np.arange(len(train)), fold) for fold in folds)
            of_others = tuple(
                _fit_means(values[rows], [target[rows] for target in targets], every) for rows in remaining
            )
            return Means(_fit_means(values, targets, every), of_others)
        ordinal = OrdinalEncoder(
            handle_unknown="use_encoded_value",
            unknown_value=UNSEEN,
            encoded_missing_value=-2,
            min_frequency=least,
        )
        place = ordinal.fit(values).transform(every)[:, 0]
        joined = ordinal.infrequent_categories_[0]
        if joined is not None and not np.isnan(joined[0]):  # what was never seen is rare
            place[place == UNSEEN] = place[int(joined[0])]
        return Levels(tuple(place.tolist()), 0)


def fit_scale(X: Rows) -> tuple[Values, Values]:
    """Return mean and standard deviation [d] of the columns of X [rows, d]; 1 where all rows are about equal.

    Those of scikit-learn's ``StandardScaler``, bit for bit, without its import and checks, which take longer
    than most fits: variances by the corrected two passes of Chan, Golub and LeVeque (The American
    Statistician 37, 1983), and columns as constant where their variance is within its rounding error.
    """
    n, eps = len(X), np.finfo(np.float64).eps
    mean = X.sum(axis=0) / n
    residuals = X - mean
    correction = residuals.sum(axis=0)
    residuals **= 2
    variance = (residuals.sum(axis=0) - correction**2 / n) / n
    constant = variance <= n * eps * variance + (n * mean * eps) ** 2
    return mean, np.where(constant, 1.0, np.sqrt(variance))


def _number_frequent(values: Values, n_levels: int, least: int) -> Levels:
    """Return one column for each frequent level and for gaps if frequent, and one for all that are rarer.

    That is scikit-learn's ``OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=least)``, whose
    checks take longer than most fits. What was never seen is rare, or in no column if nothing is.

    Args:
        values: level of each row, NaN for a gap.
        n_levels: number of levels.
        least: rows that a frequent level has.
    """
    seen = np.bincount(np.where(np.isnan(values), n_levels, values).astype(np.intp), minlength=n_levels + 1)
    frequent = np.flatnonzero(seen >= least)
    joined = bool(((seen > 0) & (seen < least)).any())
    unseen = float(len(frequent) if joined else UNSEEN)
    place = np.full(n_levels + 1, unseen)
    place[frequent] = np.arange(len(frequent))
    return Levels((*place[:-1].tolist(), unseen, float(place[-1])), len(frequent) + joined)


def _choose_classes(n_classes: int) -> range:
    """Return the classes whose shares say all."""
    return range(1, 2) if n_classes == 2 else range(n_classes)


def _fit_means(
    values: Rows, targets: list[NDArray[np.float64]], every: Rows
) -> tuple[tuple[float, ...], ...]:
    """Return for each target its mean in each category, drawn towards the mean of all rows."""
    from sklearn.preprocessing import TargetEncoder

    encoders = (TargetEncoder(target_type="continuous").fit(values, y) for y in targets)
    return tuple(tuple(encoder.transform(every)[:, 0].tolist()) for encoder in encoders)


def _make_folds(task: Task, train: Index) -> list[Index]:
    """Divide training rows, by position, into folds with all classes, of whole groups where there are any.

    Where numbers are predicted, there is one class of rows.

    Raises:
        InputError: a class has a single row, or all rows are of one group.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    y, groups = task.y[train], task.groups[train]
    if task.has_numbers:
        y = np.zeros(len(train), np.intp)
    of_class = np.bincount(y)
    rarest, n_groups = int(of_class[of_class > 0].min()), len(np.unique(groups))
    grouped = task.grouped or n_groups < len(train)  # a row that was drawn twice stays in one fold
    if min(rarest, n_groups) < FEWEST_CROSS_FITS:
        what = "a class has a single row" if rarest < FEWEST_CROSS_FITS else "all are of one group"
        raise InputError(
            f"encode=target divides the training rows of a split into folds, and {what}: choose encode=onehot"
        )
    splitter = StratifiedGroupKFold if grouped else StratifiedKFold
    (seed,) = draw_seeds(make_seed_sequence(train), 1)
    folds = splitter(min(CROSS_FITS, rarest, n_groups), shuffle=True, random_state=seed % 2**32)
    return [fold for _, fold in folds.split(y, y, groups if grouped else None) if len(fold)]
