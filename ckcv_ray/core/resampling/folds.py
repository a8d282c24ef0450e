"""Resamplings whose splits are scored, without a certification.

Splits take turns: folds, single rows that are left out, and folds inside folds. Or they are drawn apart from
each other: a share of the rows, or with replacement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import ceil
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.draws import Draws
from ckcv_ray.core.options import Option, option
from ckcv_ray.core.resampling.base import (
    BY_POSITION,
    EMPTY,
    MAX_SPLITS,
    FoldSize,
    Resampling,
    Split,
    Term,
    Units,
    arrange,
    check_n_splits,
)
from ckcv_ray.errors import InputError
from ckcv_ray.validation import MOST, boolean, check_choice, integer, proportion

FITTED_ON = "some splits score rows that they fit on"
FOLDS = Option(partial(integer, least=2, most=MAX_SPLITS), "Number of folds.", int, "10")
STRATIFY = Option(boolean, "Give each part the same share of every class.", bool)
MAX_NESTED = 10_000
REMAINDERS = ("spread", "last")
MAX_EMPTY = 3.0  # folds expected to be empty, up to which folds are drawn until none is
SHARE = Option(proportion, "Share of the rows to score.", float, "0.3")
APPARENT, OUT_OF_BAG = 0.368, 0.632  # Efron's weights: 1 / e, and the share of rows in a draw
TIMES = Option(check_n_splits, "Number of splits.", int, "100")


class Folds(Resampling):
    """Folds that take turns to be scored."""

    folds: int

    def count_splits(self, n: int) -> int:
        """Return the number of folds."""
        if self.folds > n:
            raise InputError(f"resampling={self} has more folds than the {n} units there are to divide")
        return self.folds


@dataclass(frozen=True)
class KFold(Folds):
    """Rows are shuffled once and cut into k folds, which take turns to be scored.

    Folds in the order of the table are those of a splitter of scikit-learn: see ``Splits``.

    Attributes:
        folds: their number, 2 .. n.
        remainder: of n by the number of folds: one row more in each of the first folds ("spread"), or all of
            it in the last ("last").
        stratify: whether rows are dealt to the folds class by class: in each the rows of a class differ by
            one at most. Groups are dealt whole, as by ``deal_groups``.
    """

    name: ClassVar[str] = "kfold"
    in_text: ClassVar[tuple[str, ...]] = ("folds",)
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {"last": {"remainder": "last"}}
    undrawn: ClassVar[str] = ""
    stratifies_groups = True

    folds: int = option(10, FOLDS)
    remainder: str = option(
        "spread",
        Option(
            partial(check_choice, allowed=REMAINDERS),
            "Where the rows go that are left over by folds of one size: spread over the first, or last.",
        ),
    )
    stratify: bool = option(False, STRATIFY)

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return the split that scores fold ``number``."""
        rng = draws.make_generator(0)
        if self.stratify and units.class_rows is not None:
            order = arrange(units, False, rng)
            class_rows = np.ascontiguousarray(units.class_rows, np.intp)
            dealt = deal_groups(class_rows.tobytes(), order.tobytes(), self.folds)
            return Split.score(units.n, np.flatnonzero(dealt == number))
        order = arrange(units, self.stratify, rng)
        if self.stratify:
            return Split.score(units.n, order[number :: self.folds])
        if self.remainder == "last":
            rows = units.n // self.folds
            stop = units.n if number == self.folds - 1 else (number + 1) * rows
            return Split.score(units.n, order[number * rows : stop])
        return Split.score(units.n, np.array_split(order, self.folds)[number])


@dataclass(frozen=True)
class RepeatedKFold(Folds):
    """k-fold cross validation repeated with another shuffle.

    Attributes:
        folds, repeats: number of folds, and of shuffles.
        stratify: as of ``KFold``.
    """

    name: ClassVar[str] = "repeated_kfold"
    in_text: ClassVar[tuple[str, ...]] = ("folds", "repeats")
    separator: ClassVar[str] = "x"
    undrawn: ClassVar[str] = ""
    stratifies_groups = True

    folds: int = option(10, FOLDS)
    repeats: int = option(5, Option(check_n_splits, "Number of repetitions.", int, "5"))
    stratify: bool = option(False, STRATIFY)

    def count_splits(self, n: int) -> int:
        """Return folds times repeats."""
        return super().count_splits(n) * self.repeats

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return a split; those of one shuffle follow each other."""
        repeat, fold = divmod(number, self.folds)
        return KFold(self.folds, stratify=self.stratify).split(units, size, fold, draws.inside(repeat))


@dataclass(frozen=True)
class DrawnFolds(Folds):
    """The number of its fold is drawn for each row, as by ``sample(1:k, n, replace = TRUE)`` in R.

    Folds differ in size at random, and each row is scored once. Numbers are drawn again while a fold is
    empty. Classes have no part in it: a fold may leave too few rows of a class to learn from, which is then
    recorded as a failure.

    Attributes:
        folds: their number, 2 .. n.
    """

    name: ClassVar[str] = "drawn_folds"
    in_text: ClassVar[tuple[str, ...]] = ("folds",)
    undrawn: ClassVar[str] = ""

    folds: int = option(10, FOLDS)

    def count_splits(self, n: int) -> int:
        """Return the number of folds."""
        if super().count_splits(n) * (1 - 1 / self.folds) ** n > MAX_EMPTY:
            raise InputError(
                f"resampling={self} of {n} units leaves a fold empty nearly always: ask for fewer folds, or "
                f"for kfold:{self.folds}"
            )
        return self.folds

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return the split that scores fold ``number``."""
        rng = draws.make_generator(0)
        while not np.bincount(fold := rng.integers(self.folds, size=units.n), minlength=self.folds).all():
            pass
        return Split.score(units.n, np.flatnonzero(fold == number))


@dataclass(frozen=True)
class ForwardSplits(Resampling):
    """Blocks of later rows, each scored by what is fitted on all rows before it, as by TimeSeriesSplit.

    The last rows are scored, in ``times`` blocks of floor(n / (times + 1)) rows. Of groups, which are divided
    whole, the rows must follow each other.

    Attributes:
        times: number of blocks that are scored.
        gap: number of rows before a block that are not fitted on.
    """

    name: ClassVar[str] = "time"
    in_text: ClassVar[tuple[str, ...]] = ("times", "gap")
    undrawn: ClassVar[str] = BY_POSITION
    in_order = True
    note: ClassVar[str] = (
        "Each split fits on rows of the table and scores rows that follow them: what comes later is not "
        "drawn like what came before, and no certificate covers it."
    )

    times: int = option(5, Option(check_n_splits, "Number of splits.", int, "5"))
    gap: int = option(
        0,
        Option(
            partial(integer, least=0, most=MOST),
            "Rows between those that are fitted on and those that are scored.",
            int,
            "0",
        ),
    )

    def count_splits(self, n: int) -> int:
        """Return ``times``."""
        block = n // (self.times + 1)
        if not block or n - self.times * block <= self.gap:
            raise InputError(
                f"resampling={self} leaves nothing to fit on in its first split, or nothing to score, of {n} "
                "units: ask for fewer splits, or for a smaller gap"
            )
        return self.times

    def fold_sizes(self, n: int) -> tuple[FoldSize, ...]:
        """Return the only fold size, with the training set of the last split, the largest."""
        n_splits, block = self.count_splits(n), n // (self.times + 1)
        return (FoldSize(0, 0, block, n - block - self.gap, n_splits),)

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return the split that scores block ``number``."""
        block = units.n // (self.times + 1)
        start = units.n - (self.times - number) * block
        return Split(np.arange(start - self.gap), EMPTY, np.arange(start, start + block))


@dataclass(frozen=True)
class LeaveOneOut(Resampling):
    """Each row is scored once, by what is fitted on all others."""

    name: ClassVar[str] = "loo"
    undrawn: ClassVar[str] = BY_POSITION

    def count_splits(self, n: int) -> int:
        """Return n."""
        return n

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return the split that scores row ``number``."""
        return Split.score(units.n, np.array([number]))


class Sample(Resampling):
    """Splits that score a share of the rows, rounded up."""

    undrawn: ClassVar[str] = ""

    share: float
    times: int

    def count_splits(self, n: int) -> int:
        """Return the number of splits."""
        self.count_scored(n)
        return self.times

    def count_scored(self, n: int) -> int:
        """Return how many of n units each split scores.

        Raises:
            InputError: none of them, or all.
        """
        count = ceil(self.share * n - 1e-9)
        if not 0 < count < n:
            raise InputError(
                f"resampling={self} has no rows to fit on, or none to score, of {n}: change the share"
            )
        return count

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return a split; if stratified, the rows to score are taken evenly from them class by class."""
        order = arrange(units, self.stratify, draws.make_generator(number))
        count = self.count_scored(units.n)
        if not self.stratify:
            return Split.score(units.n, order[:count])
        places = ((np.arange(count) + 0.5) * units.n / count).astype(np.intp)
        return Split.score(units.n, order[places])


@dataclass(frozen=True)
class SingleSplit(Sample):
    """One split: a share of the rows, rounded up, is scored.

    Its name is that of no certification: ``Holdout`` keeps rows from the selection, and makes a claim.

    Attributes:
        share: of the rows to score, in (0, 1).
        stratify: whether each part gets the same share of every class.
    """

    name: ClassVar[str] = "holdout"
    in_text: ClassVar[tuple[str, ...]] = ("share",)
    times = 1

    share: float = option(0.3, SHARE)
    stratify: bool = option(False, STRATIFY)


@dataclass(frozen=True)
class Subsampling(Sample):
    """Repeated sub-sampling: as ``SingleSplit``, drawn again in each split.

    Attributes:
        times: number of splits.
        share, stratify: as of ``SingleSplit``.
    """

    name: ClassVar[str] = "subsampling"
    in_text: ClassVar[tuple[str, ...]] = ("times", "share")

    times: int = option(100, TIMES)
    share: float = option(0.25, SHARE)
    stratify: bool = option(False, STRATIFY)


@dataclass(frozen=True)
class Bootstrap(Resampling):
    """n rows drawn with replacement are fitted on, and those that were not drawn are scored (out of bag).

    Every row is as likely not to be drawn.

    Attributes:
        times: number of splits.
    """

    name: ClassVar[str] = "bootstrap"
    in_text: ClassVar[tuple[str, ...]] = ("times",)
    undrawn: ClassVar[str] = ""

    times: int = option(100, TIMES)

    def count_splits(self, n: int) -> int:
        """Return ``times``."""
        return self.times

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return a split; should every row be drawn, it is drawn again."""
        rng = draws.make_generator(number)
        while len(np.unique(drawn := rng.integers(units.n, size=units.n))) == units.n:
            pass
        return Split(np.sort(drawn), EMPTY, np.setdiff1d(np.arange(units.n), drawn))


@dataclass(frozen=True)
class Bootstrap632(Bootstrap):
    """The .632 estimate: .632 of the score of the rows not drawn, and .368 of the apparent score.

    The first ``times`` splits are those of ``Bootstrap``; the last fits on all rows and scores them.

    The pooled figure is that of the paper; the mean takes the mean over draws of the rows not drawn.

    Reference: Efron, Estimating the error rate of a prediction rule: improvement on cross-validation, Journal
    of the American Statistical Association 78 (1983), 316-331.

    Attributes:
        times: number of draws.
    """

    name: ClassVar[str] = "bootstrap632"
    undrawn: ClassVar[str] = FITTED_ON
    note: ClassVar[str] = (
        "The mean is the .632 estimate: 0.632 of the mean over draws on the rows not drawn, and 0.368 of the "
        "score of the model of all rows on these rows (the last split). It has no standard error, and is too "
        "good for learners that fit their rows closely."
    )

    def count_splits(self, n: int) -> int:
        """Return ``times`` + 1."""
        return self.times + 1

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return a split."""
        every = np.arange(units.n)
        return (
            super().split(units, size, number, draws) if number < self.times else Split(every, EMPTY, every)
        )

    def counts(self, numbers: Index) -> NDArray[np.bool_]:
        """Return which splits score the rows not drawn."""
        return np.asarray(numbers < self.times)

    def terms(self, numbers: Index) -> tuple[Term, ...]:
        """Return the terms of the estimate."""
        drawn = self.counts(numbers)
        return Term(OUT_OF_BAG, drawn), Term(APPARENT, ~drawn)


@dataclass(frozen=True)
class Bootstrap632Plus(Bootstrap632):
    """The .632+ estimate: .632 corrected by how far a model overfits, relative to what can be learned.

    With err the apparent score, gamma that of the same model if targets had nothing to do with what it
    predicts, Err1 the score of the rows not drawn, all of them losses, and Err1' the smaller of Err1 and
    gamma, the relative overfitting rate is R = (Err1' - err) / (gamma - err), or 0 unless Err1' and gamma
    exceed err. To the .632 estimate is added (Err1' - err) * .368 * .632 R / (1 - .368 R). Splits are those
    of ``Bootstrap632``.

    Reference: Efron, Tibshirani, Improvements on cross-validation: the .632+ bootstrap method, Journal of the
    American Statistical Association 92 (1997), 548-560, equations 28 to 32.

    Attributes:
        times: number of draws.
    """

    name: ClassVar[str] = "bootstrap632plus"
    corrected: ClassVar[bool] = True
    note: ClassVar[str] = (
        "The mean is the .632+ estimate: the .632 estimate (0.632 of the mean over draws on the rows not "
        "drawn, and 0.368 of the score of the model of all rows on these rows, the last split), corrected by "
        "how far that model overfits relative to its score if targets had nothing to do with what it "
        "predicts. It has no standard error."
    )

    def correct(self, means: Sequence[float], no_information: float) -> float:
        """Return what is added to the .632 estimate."""
        out_of_bag, apparent = means
        least = min(out_of_bag, no_information)
        if not (least > apparent and no_information > apparent):
            return 0.0
        overfitting = (least - apparent) / (no_information - apparent)
        share = APPARENT * OUT_OF_BAG * overfitting / (1 - APPARENT * overfitting)
        return (least - apparent) * share


@dataclass(frozen=True)
class OptimismBootstrap(Bootstrap):
    """The apparent score, corrected by how much better a draw's model scores its own rows than all rows.

    The first ``times`` splits fit on the draws of ``Bootstrap`` and score all rows, the next ``times`` fit on
    the same draws and score the rows drawn, and the last fits on all rows and scores them.

    Reference: Harrell, Lee, Mark, Multivariable prognostic models, Statistics in Medicine 15 (1996), 361-387,
    section 6; Efron (1983).

    Attributes:
        times: number of draws, each of which is fitted on twice.
    """

    name: ClassVar[str] = "optimism"
    undrawn: ClassVar[str] = FITTED_ON
    note: ClassVar[str] = (
        "The mean is the score of the model of all rows on these rows (the last split), corrected by the "
        "optimism: what models of bootstrap draws score on the rows drawn, less what they score on all rows, "
        "on average. It has no standard error, and is too good for learners that fit their rows closely."
    )

    def count_splits(self, n: int) -> int:
        """Return 2 * ``times`` + 1."""
        return 2 * self.times + 1

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return a split."""
        part, draw = divmod(number, self.times)
        every = np.arange(units.n)
        if number == 2 * self.times:
            return Split(every, EMPTY, every)
        drawn = super().split(units, size, draw, draws).train
        return Split(drawn, EMPTY, drawn if part else every)

    def counts(self, numbers: Index) -> NDArray[np.bool_]:
        """Return which splits score all rows by the model of a draw."""
        return np.asarray(numbers < self.times)

    def terms(self, numbers: Index) -> tuple[Term, ...]:
        """Return the terms of the estimate."""
        parts = numbers // self.times
        return Term(1.0, parts == 2), Term(1.0, parts == 0), Term(-1.0, parts == 1)


def _check_drawn(name: str, part: Any) -> Resampling:
    if not isinstance(part, Resampling) or part.selects or part.names_rows or part.inner is not None:
        raise InputError(
            f"a nested resampling is made of two that are drawn, such as kfold:5, not {part!r:.60}"
        )
    if part.combined:
        raise InputError(
            f"{part} combines splits to an estimate, and a nested resampling takes means over splits: use "
            "another, such as bootstrap:50"
        )
    return part


@dataclass(frozen=True)
class NestedSplits(Resampling):
    """A resampling with another inside each of its training sets, in which settings are selected.

    Attributes:
        outer: divides all rows.
        inner: divides the rows that a split of ``outer`` fits on.
    """

    name: ClassVar[str] = "nested"

    outer: Resampling = option(KFold(5), Option(_check_drawn, "Resampling of all rows."))
    inner: Resampling = option(KFold(5), Option(_check_drawn, "Resampling inside each training set."))

    @property
    def stratify(self) -> bool:
        """Whether either part gives each of its parts the same share of every class."""
        return self.outer.stratify or self.inner.stratify

    @property
    def stratifies_groups(self) -> bool:
        """Whether the parts that give each part the same share of every class can do so with groups."""
        return all(part.stratifies_groups for part in (self.outer, self.inner) if part.stratify)

    @property
    def in_order(self) -> bool:
        """Whether either part takes rows in the order of the table as their order in time."""
        return self.outer.in_order or self.inner.in_order

    @property
    def no_bound(self) -> str:
        """Return why the outer splits have no bound; those inside only select."""
        return self.outer.no_bound

    def count_splits(self, n: int) -> int:
        """Return the number of outer splits."""
        if (count := self.outer.count_splits(n)) > MAX_NESTED:
            raise InputError(f"a nested resampling selects in at most {MAX_NESTED:,} splits, not {count:,}")
        return count

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return an outer split."""
        return self.outer.split(units, size, number, draws)


@lru_cache(maxsize=16)
def deal_groups(class_rows: bytes, order: bytes, folds: int) -> Index:
    """Deal whole groups to folds so that each fold has a similar share of every class, (n_groups,).

    Groups are dealt one by one, those whose classes differ most in number first, each to the fold that makes
    the shares of the classes vary least over folds: the least mean over classes of the standard deviation. Of
    equal folds that with the fewest rows is taken, then the first. So no fold is empty if there are as many
    groups. Every fold asks for the same, so the last results are kept.

    Source: scikit-learn's StratifiedGroupKFold, whose ties are within 1e-5; counts make these exact.

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
        squares = (held**2).sum(axis=0) + 2 * held * added + added**2  # over folds, were it in each of them
        variances = folds * squares - (held.sum(axis=0) + added) ** 2
        deviation = (np.sqrt(variances) / n_rows).mean(axis=1)
        fold[group] = best = np.lexsort((held.sum(axis=1), deviation))[0]
        held[best] += added
    fold.setflags(write=False)
    return fold
