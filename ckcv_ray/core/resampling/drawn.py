"""Resamplings whose splits are drawn independently: a share of the rows, or with replacement."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import ClassVar

import numpy as np

from ckcv_ray.core.draws import Draws
from ckcv_ray.core.options import Option, option
from ckcv_ray.core.resampling import base
from ckcv_ray.core.resampling.base import EMPTY, FoldSize, Resampling, Split, Strata, Term
from ckcv_ray.errors import Index, InputError, proportion

SHARE = Option(proportion, "Share of the rows to score.", float)
APPARENT, OUT_OF_BAG = 0.368, 0.632  # Efron's weights: 1 / e, and the share of rows in a draw
TIMES = Option(base.check_n_splits, "Number of splits.", int)


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
            InputError: a split would score no unit, or all.
        """
        count = ceil(self.share * n - 1e-9)
        if not 0 < count < n:
            raise InputError(f"resampling={self} has no rows to fit, or to score, of {n}: change the share")
        return count

    def split(self, units: Strata, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return a split; if stratified, the rows to score are spread evenly over rows grouped by class."""
        order = base.arrange(units, self.stratify, draws.make_generator(number))
        count = self.count_scored(units.n)
        if not self.stratify:
            return Split.score(units.n, order[:count])
        places = ((np.arange(count) + 0.5) * units.n / count).astype(np.intp)
        return Split.score(units.n, order[places])


@dataclass(frozen=True)
class SingleSplit(Sample):
    """One split: a share of the rows, rounded up, is scored.

    Despite its name it is not a certification: ``Holdout`` keeps rows from the selection, and makes a claim.

    Attributes:
        share: share of the rows to score, in (0, 1).
        stratify: whether each part gets the same share of every class.
    """

    name: ClassVar[str] = "holdout"
    in_text: ClassVar[tuple[str, ...]] = ("share",)
    times = 1

    share: float = option(0.3, SHARE)
    stratify: bool = option(False, base.STRATIFY)


@dataclass(frozen=True)
class Subsampling(Sample):
    """Repeated sub-sampling: as ``SingleSplit``, drawn again in each split.

    Attributes:
        times: number of splits.
        share, stratify: as for ``SingleSplit``.
    """

    name: ClassVar[str] = "subsampling"
    in_text: ClassVar[tuple[str, ...]] = ("times", "share")

    times: int = option(100, TIMES)
    share: float = option(0.25, SHARE)
    stratify: bool = option(False, base.STRATIFY)


@dataclass(frozen=True)
class Bootstrap(Resampling):
    """n rows drawn with replacement are fitted on, and those that were not drawn are scored (out of bag).

    Every row is equally likely not to be drawn.

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

    def split(self, units: Strata, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return a split; should all rows be drawn, it is drawn again."""
        rng = draws.make_generator(number)
        while len(np.unique(drawn := rng.integers(units.n, size=units.n))) == units.n:
            pass
        return Split(np.sort(drawn), EMPTY, np.setdiff1d(np.arange(units.n), drawn))


@dataclass(frozen=True)
class Bootstrap632(Bootstrap):
    """The .632 estimate: .632 of the score of the rows not drawn, and .368 of the apparent score.

    The first ``times`` splits are those of ``Bootstrap``; the last fits on all rows and scores them.

    The pooled figure is the paper's; the mean figure averages, over draws, the score of the rows not drawn.

    Reference: Efron, Estimating the error rate of a prediction rule: improvement on cross-validation, Journal
    of the American Statistical Association 78 (1983), 316-331.

    Attributes:
        times: number of draws.
    """

    name: ClassVar[str] = "bootstrap632"
    undrawn: ClassVar[str] = base.FITTED_ON
    note: ClassVar[str] = (
        "The mean is the .632 estimate: 0.632 of the mean over draws on the rows not drawn, and 0.368 of "
        "the score of the model of all rows on these rows (the last split). It has no standard error, and "
        "is optimistic for learners that fit their rows closely."
    )

    def count_splits(self, n: int) -> int:
        """Return ``times`` + 1."""
        return self.times + 1

    def split(self, units: Strata, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return a split."""
        if number < self.times:
            return super().split(units, size, number, draws)
        every = np.arange(units.n)
        return Split(every, EMPTY, every)

    def terms(self, splits: Index) -> tuple[Term, ...]:
        """Return the terms of the estimate, first that of the rows not drawn."""
        drawn = np.asarray(splits < self.times)
        return Term(OUT_OF_BAG, drawn), Term(APPARENT, ~drawn)


@dataclass(frozen=True)
class Bootstrap632Plus(Bootstrap632):
    """The .632+ estimate: .632 corrected by how far a model overfits, relative to what can be learned.

    Let err be the apparent score, gamma that of the same model if targets had nothing to do with what it
    predicts, Err1 the score of the rows not drawn, all of them losses, and Err1' the smaller of Err1 and
    gamma. The relative overfitting rate is R = (Err1' - err) / (gamma - err), or 0 unless Err1' and gamma
    exceed err. (Err1' - err) * .368 * .632 R / (1 - .368 R) is added to the .632 estimate. Splits are those
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
    """The apparent score, corrected by how much better a draw's model scores on its own rows than on all.

    The first ``times`` splits fit on the draws of ``Bootstrap`` and score all rows, the next ``times`` fit on
    the same draws and score the rows drawn, and the last fits on all rows and scores them.

    Reference: Harrell, Lee, Mark, Multivariable prognostic models, Statistics in Medicine 15 (1996), 361-387,
    section 6; Efron (1983).

    Attributes:
        times: number of draws, each of which is fitted on twice.
    """

    name: ClassVar[str] = "optimism"
    undrawn: ClassVar[str] = base.FITTED_ON
    note: ClassVar[str] = (
        "The mean is the score of the model of all rows on these rows (the last split), corrected by the "
        "optimism: what models of bootstrap draws score on the rows drawn, less what they score on all rows, "
        "on average. It has no standard error, and is optimistic for learners that fit their rows closely."
    )

    def count_splits(self, n: int) -> int:
        """Return 2 * ``times`` + 1."""
        return 2 * self.times + 1

    def split(self, units: Strata, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return a split."""
        part, draw = divmod(number, self.times)
        every = np.arange(units.n)
        if number == 2 * self.times:
            return Split(every, EMPTY, every)
        drawn = super().split(units, size, draw, draws).train
        return Split(drawn, EMPTY, drawn if part else every)

    def terms(self, splits: Index) -> tuple[Term, ...]:
        """Return the terms of the estimate, first that of the draws' models on all rows."""
        parts = splits // self.times
        return Term(1.0, parts == 0), Term(1.0, parts == 2), Term(-1.0, parts == 1)
