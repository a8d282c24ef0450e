"""Resamplings whose splits take turns: folds, single rows that are left out, and folds inside folds.

This module also parses the names of all resamplings, including two that are composed of others.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import inf
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from ckcv_ray import errors
from ckcv_ray.core.draws import Draws
from ckcv_ray.core.options import option, options
from ckcv_ray.core.resampling import base, complete, drawn
from ckcv_ray.core.resampling.base import EMPTY, FoldSize, Resampling, Split, Splits, Strata
from ckcv_ray.errors import MOST, Index, InputError, check_choice, integer, number, parse_seconds, quote, text

MAX_NESTED = 10_000
MAX_EMPTY = 3.0  # most empty folds expected for which folds are drawn again until none is empty


@dataclass(frozen=True)
class Folds(Resampling):
    """Folds that take turns to be scored.

    Attributes:
        folds: their number, 2 .. n.
    """

    folds: int = option(10, partial(integer, least=2, most=base.MAX_SPLITS), "Number of folds.", int)

    def count_splits(self, n: int) -> int:
        """Return the number of folds."""
        if self.folds > n:
            raise InputError(f"resampling={self} has more folds than the {n} units there are to divide")
        return self.folds


@dataclass(frozen=True)
class KFold(Folds):
    """Rows are shuffled once and cut into k folds, which take turns to be scored.

    For folds in the order of the table, use a splitter of scikit-learn: see ``Splits``.

    Attributes:
        remainder: where the rows left over by n / folds go: one more in each of the first folds ("spread"),
            or all in the last ("last").
        stratify: whether rows are dealt to the folds class by class: folds differ by at most one row in each
            class. Groups are dealt whole, by ``deal_groups``.
    """

    name: ClassVar[str] = "kfold"
    in_text: ClassVar[tuple[str, ...]] = ("folds", "remainder")
    undrawn: ClassVar[str] = ""
    stratifies_groups = True

    remainder: str = option(
        "spread",
        partial(check_choice, allowed=("spread", "last")),
        "Where rows left over by equal folds go: spread over the first folds, or last.",
    )
    stratify: bool = option(False, base.STRATIFY)

    def split(self, units: Strata, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return the split that scores fold ``number``."""
        rng = draws.make_generator(0)
        if self.stratify and units.class_rows is not None:
            order = base.arrange(units, False, rng)
            class_rows = np.ascontiguousarray(units.class_rows, np.intp)
            dealt = deal_groups(class_rows.tobytes(), order.tobytes(), self.folds)
            return Split.score(units.n, np.flatnonzero(dealt == number))
        order = base.arrange(units, self.stratify, rng)
        if self.stratify:
            return Split.score(units.n, order[number :: self.folds])
        if self.remainder == "last":
            ends = units.n // self.folds * np.arange(1, self.folds)
            return Split.score(units.n, np.split(order, ends)[number])
        return Split.score(units.n, np.array_split(order, self.folds)[number])


@dataclass(frozen=True)
class RepeatedKFold(Folds):
    """k-fold cross validation, repeated with other shuffles.

    Attributes:
        repeats: number of shuffles.
        stratify: as for ``KFold``.
    """

    name: ClassVar[str] = "repeated_kfold"
    in_text: ClassVar[tuple[str, ...]] = ("folds", "repeats")
    separator: ClassVar[str] = "x"
    undrawn: ClassVar[str] = ""
    stratifies_groups = True

    repeats: int = option(5, base.check_n_splits, "Number of repetitions.", int)
    stratify: bool = option(False, base.STRATIFY)

    def count_splits(self, n: int) -> int:
        """Return ``folds`` times ``repeats``."""
        return super().count_splits(n) * self.repeats

    def split(self, units: Strata, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return a split; those of one shuffle are consecutive."""
        repeat, fold = divmod(number, self.folds)
        return KFold(self.folds, stratify=self.stratify).split(units, size, fold, draws.inside(repeat))


class DrawnFolds(Folds):
    """Each row's fold number is drawn at random, as by ``sample(1:k, n, replace = TRUE)`` in R.

    Folds differ in size at random, and each row is scored once. Numbers are drawn again while a fold is
    empty. Classes play no part: a fold may leave too few rows of a class to learn from, which is then
    recorded as a failure.
    """

    name: ClassVar[str] = "drawn_folds"
    in_text: ClassVar[tuple[str, ...]] = ("folds",)
    undrawn: ClassVar[str] = ""

    def count_splits(self, n: int) -> int:
        """Return the number of folds."""
        if super().count_splits(n) * (1 - 1 / self.folds) ** n > MAX_EMPTY:
            raise InputError(
                f"resampling={self} of {n} units leaves a fold empty nearly always: ask for fewer folds, or "
                f"for kfold:{self.folds}"
            )
        return self.folds

    def split(self, units: Strata, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return the split that scores fold ``number``."""
        rng = draws.make_generator(0)
        while not np.bincount(fold := rng.integers(self.folds, size=units.n), minlength=self.folds).all():
            pass
        return Split.score(units.n, np.flatnonzero(fold == number))


def read_gap(name: str, value: object) -> float | str:
    """Return a number of at least 0, or a time such as 30d or 12h, kept as text."""
    if isinstance(value, str) and value[-1:].isalpha():
        parse_seconds(name, value)
        return value
    with suppress(ValueError):
        value = float(value) if isinstance(value, str) else value
    if not 0 <= (gap := number(name, value)) < inf:
        raise InputError(f"{name}={value}: expected a number of 0 or more, or a time such as 30d or 12h")
    return int(gap) if gap.is_integer() else gap


@dataclass(frozen=True)
class ForwardSplits(Resampling):
    """Blocks of later rows, each scored by what is fitted on all rows before it, as by TimeSeriesSplit.

    The last rows are scored, in ``times`` blocks of floor(n / (times + 1)) rows. Groups are kept whole, and
    the rows of a group must be consecutive. With a column, its n distinct times are divided instead of rows.

    Attributes:
        times: number of blocks that are scored.
        gap: how much before each block is not fitted on: a number of rows, or with a column a number in its
            unit, or for dates a time such as "30d".
        column: name of the column of times; None for the order of the table.
    """

    name: ClassVar[str] = "time"
    in_text: ClassVar[tuple[str, ...]] = ("times", "gap")
    undrawn: ClassVar[str] = base.BY_POSITION
    note: ClassVar[str] = (
        "Each split fits on rows of the table and scores rows that follow them: what comes later is not "
        "drawn like what came before, and no certificate covers it."
    )

    times: int = option(5, base.check_n_splits, "Number of splits.", int)
    gap: float | str = option(0, read_gap, "Time between what is fitted on and what is scored.")
    column: str | None = option(None, text, "Column of times.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.column is None:
            integer("gap", self.gap, least=0, most=MOST)

    def __str__(self) -> str:
        return super().__str__() + ("" if self.column is None else f" ({self.column})")

    @property
    def in_order(self) -> bool:
        """Whether there is no column of times."""
        return self.column is None

    def count_splits(self, n: int) -> int:
        """Return ``times``."""
        return self.fold_sizes(n)[0].n_splits

    def fold_sizes(self, n: int) -> tuple[FoldSize, ...]:
        """Return the only fold size, with the training set of the last split, which is the largest."""
        block, skipped = n // (self.times + 1), int(self.gap) if self.column is None else 0
        if not block or n - self.times * block <= skipped:
            raise InputError(
                f"resampling={self} leaves nothing to fit on in its first split, or nothing to score, of {n} "
                f"{'units' if self.in_order else 'times'}: ask for fewer splits, or for a smaller gap"
            )
        return (FoldSize(0, 0, block, n - block - skipped, self.times),)

    def split(self, units: Strata, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return the split that scores block ``number``."""
        gap = 1000 * parse_seconds("gap", self.gap) if isinstance(self.gap, str) else self.gap
        if units.kind == "category" or (gap and isinstance(self.gap, str) != (units.kind == "date")):
            raise InputError(
                f"time={self.column!r} is a column of kind {units.kind}, and gap={self.gap}: expected dates "
                "and a gap such as 30d or 12h, or numbers and a gap in their unit"
            )
        times = np.arange(units.n) if units.values is None else units.values
        block = units.n // (self.times + 1)
        start = units.n - (self.times - number) * block
        return Split(np.flatnonzero(times < times[start] - gap), EMPTY, np.arange(start, start + block))


@dataclass(frozen=True)
class LeaveOneOut(Resampling):
    """Each row is scored once, by what is fitted on all others."""

    name: ClassVar[str] = "loo"
    undrawn: ClassVar[str] = base.BY_POSITION

    def count_splits(self, n: int) -> int:
        """Return n."""
        return n

    def split(self, units: Strata, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return the split that scores row ``number``."""
        return Split.score(units.n, np.array([number]))


@dataclass(frozen=True)
class ColumnFolds(LeaveOneOut):
    """Folds given by a column, each scored by what is fitted on all others, as by PredefinedSplit.

    Attributes:
        column: name of the column.
    """

    name: ClassVar[str] = "column"
    in_text: ClassVar[tuple[str, ...]] = ("column",)
    separator: ClassVar[str] = "\n"  # names may contain any other character

    column: str | None = option("fold", text, "Column that names the fold of each row.")

    def count_splits(self, n: int) -> int:
        """Return the number of folds."""
        if not 2 <= n <= MAX_NESTED:
            raise InputError(
                f"resampling={self}: the column has {errors.pluralize(n, 'value')}, and there are 2 to "
                f"{MAX_NESTED:,} folds: name another column"
            )
        return n


def _check_drawn(name: str, part: Any) -> Resampling:
    drawn = part if isinstance(part, Resampling) and not (part.selects or part.names_rows) else None
    if drawn is None or drawn.inner is not None or drawn.combined or drawn.column is not None:
        raise InputError(
            "a nested resampling combines two that are drawn and take means over splits, such as kfold:5, "
            f"not {part!r:.60}"
        )
    return drawn


@dataclass(frozen=True)
class NestedSplits(Resampling):
    """A resampling with another one inside each of its training sets, on which settings are selected.

    Attributes:
        outer: divides all rows.
        inner: divides the rows that a split of ``outer`` fits on.
    """

    name: ClassVar[str] = "nested"

    outer: Resampling = option(KFold(5), _check_drawn, "Resampling of all rows.")
    inner: Resampling = option(KFold(5), _check_drawn, "Resampling inside each training set.")

    @property
    def stratify(self) -> bool:
        """Whether either part gives each of its parts the same share of every class."""
        return self.outer.stratify or self.inner.stratify

    @property
    def stratifies_groups(self) -> bool:
        """Whether the parts that stratify by class can do so with groups."""
        return all(part.stratifies_groups for part in (self.outer, self.inner) if part.stratify)

    @property
    def in_order(self) -> bool:
        """Whether either part takes the order of rows in the table as their order in time."""
        return self.outer.in_order or self.inner.in_order

    @property
    def no_bound(self) -> str:
        """Return why the outer splits have no bound; the inner ones only select."""
        return self.outer.no_bound

    def count_splits(self, n: int) -> int:
        """Return the number of outer splits."""
        if (count := self.outer.count_splits(n)) > MAX_NESTED:
            raise InputError(f"a nested resampling selects in at most {MAX_NESTED:,} splits, not {count:,}")
        return count

    def split(self, units: Strata, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return an outer split."""
        return self.outer.split(units, size, number, draws)


@lru_cache(maxsize=16)
def deal_groups(class_rows: bytes, order: bytes, folds: int) -> Index:
    """Deal whole groups to folds so that each fold has a similar share of every class, (n_groups,).

    Groups are dealt one by one, those whose classes differ most in number first, each to the fold that makes
    the shares of the classes vary least over folds: the least mean over classes of the standard deviation. Of
    equal folds, the one with the fewest rows is taken, then the first. So no fold is empty if there are as
    many groups as folds. All folds ask for the same result, so the last results are cached.

    Source: scikit-learn's StratifiedGroupKFold, where ties are within 1e-5; here counts make them exact.

    Args:
        class_rows: number of rows of each class in each group, the bytes of (n_groups, n_classes).
        order: all groups, in the order in which equal ones are dealt, the bytes of (n_groups,).
        folds: number of folds, at most n_groups.
    """
    drawn = np.frombuffer(order, np.intp)
    rows = np.frombuffer(class_rows, np.intp).reshape(len(drawn), -1)
    n_classes = rows.shape[1]
    spread = n_classes * (rows**2).sum(axis=1) - rows.sum(axis=1) ** 2
    n_rows = np.maximum(rows.sum(axis=0), 1)
    held = np.zeros((folds, n_classes), np.intp)
    fold = np.empty(len(drawn), np.intp)
    for group in drawn[np.argsort(-spread[drawn], kind="stable")]:
        added = rows[group]
        squares = (held**2).sum(axis=0) + 2 * held * added + added**2  # for each fold, if it were dealt there
        variances = folds * squares - (held.sum(axis=0) + added) ** 2
        deviation = (np.sqrt(variances) / n_rows).mean(axis=1)
        fold[group] = best = np.lexsort((held.sum(axis=1), deviation))[0]
        held[best] += added
    fold.setflags(write=False)
    return fold


Kind = TypeVar("Kind", bound=type[Resampling])
RESAMPLINGS: dict[str, Any] = {
    kind.name: kind
    for kind in (
        complete.Complete,
        complete.Rotation,
        drawn.SingleSplit,
        KFold,
        RepeatedKFold,
        DrawnFolds,
        ForwardSplits,
        ColumnFolds,
        LeaveOneOut,
        drawn.Subsampling,
        drawn.Bootstrap,
        drawn.Bootstrap632,
        drawn.Bootstrap632Plus,
        drawn.OptimismBootstrap,
        NestedSplits,
        Splits,
    )
}
CERTIFIABLE = {name: kind for name, kind in RESAMPLINGS.items() if kind.selects}
NESTED: dict[str, tuple[Callable[..., NestedSplits], int]] = {  # and how many numbers may follow the name
    "nested_halves": (lambda k=5: NestedSplits(KFold(k), drawn.SingleSplit(0.5)), 1),
    "nested": (lambda outer=5, inner=5: NestedSplits(KFold(outer), KFold(inner)), 2),
}
FORMS = (
    "holdout:0.3, kfold:10, kfold:4:last, repeated_kfold:10x5, drawn_folds:10, time:5, time:5:2, "
    "column:fold, loo, subsampling:50:0.25, bootstrap:50, bootstrap632:50, bootstrap632plus:50, "
    "optimism:50, nested_halves:5, nested:5:3"
)


def register_resampling(kind: Kind) -> Kind:
    """Register a resampling under its name, by which text and the files of a run refer to it; a decorator.

    Raises:
        InputError: another resampling has that name.
    """
    return errors.register_part(kind, RESAMPLINGS)


def parse_resampling(text: str) -> Resampling:
    """Return the resampling that text such as kfold:10 names; values that are left out have defaults.

    Raises:
        InputError: the text names no resampling, or a value is out of range.
    """
    name, _, rest = text.strip().partition(":") if isinstance(text, str) else ("", "", "")
    kind: Any = RESAMPLINGS.get(name)
    make, most = NESTED.get(name, (kind, 0))
    fields = [options(kind)[field].metadata["option"] for field in kind.in_text] if kind else []
    reads = [int] * most or [field.kind for field in fields]
    words = rest.split(kind.separator if kind else ":") if rest else []
    try:
        if make not in (None, Splits) and len(words) <= len(reads):
            return cast(Resampling, make(*(read(word) for read, word in zip(reads, words, strict=False))))
    except InputError as error:
        raise InputError(f"resampling={quote(text)}: {error}") from None
    except ValueError:  # a word is not a number
        pass
    raise InputError(
        f"resampling={quote(text)} is not known: expected {FORMS}; with a certification "
        f"{', '.join(CERTIFIABLE)}{errors.suggest(name, RESAMPLINGS)}"
    )


def add_strata(resampling: Resampling) -> Resampling:
    """Return the form of a resampling that gives each part the same share of every class.

    Raises:
        InputError: there is no such form.
    """
    if isinstance(resampling, NestedSplits):
        return NestedSplits(add_strata(resampling.outer), add_strata(resampling.inner))
    if "stratify" not in options(resampling) or getattr(resampling, "remainder", "spread") != "spread":
        able = [name for name, kind in RESAMPLINGS.items() if "stratify" in options(kind)]
        raise InputError(f"stratify is for {', '.join(able)}, not {resampling}: leave it out")
    return replace(resampling, stratify=True)  # type: ignore[type-var]
