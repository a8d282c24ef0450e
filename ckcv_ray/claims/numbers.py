"""Claims about predicted numbers: how far off they are on average, and how far off most of them are.

**On average.** The loss of a row is min(|y - f(x)|, clip) / clip, in [0, 1]: the row takes the place of a
group, and its loss that of a group's share of wrong rows.

**A share tau of new rows.** With k the least number of h rows held out for which P(Bin(h, tau) >= k) <= d,
it is the k-th smallest of their absolute errors; no k is enough below ln(d) / ln(tau) rows (docs/theory/
bounds.md, "How far off numbers are"). Of rows that have the same origin one counts, and it is not known
which: those of the smallest errors are left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, isfinite
from sys import float_info

import numpy as np

from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.claims.quantity import Claim, Counts, Need, Quantity, foresee_rows
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.bounds.betting import bound_mean_loss
from ckcv_ray.core.bounds.binomial import bound_table, clopper_pearson, count_without
from ckcv_ray.core.measures import GRAIN
from ckcv_ray.core.quantities import POSITIVE, SHARE_OF_ROWS, argument, register_quantity
from ckcv_ray.errors import format_level, format_number, round_bound
from ckcv_ray.study.problem import Problem
from ckcv_ray.validation import ONE, Values


@register_quantity
@dataclass(frozen=True)
class Clipped(Quantity):
    """The mean absolute error of predicted numbers, of which at most a clip counts: "clipped:50"."""

    clip: float = argument(POSITIVE, "50", "the largest error that counts")

    name = "clipped"
    phrase = "mean error (above {0} counts as {0})"
    measured_as = "off by {rate} on average ({on})", "off by {rate} on average ({on}, mean over groups)"
    is_error = of_numbers = at_most = is_mean = guarded = True
    rows_alone = ""
    states = (
        "the number predicted for a new row by {who} is off by {claim.says} on average, where an error above "
        "{0} counts as {0}",
        "the numbers predicted for a new group's rows by {who} are off by {claim.says} on average, where an "
        "error above {0} counts as {0}",
    )
    quoted = (
        "new rows are off by {claim.says} on average (above {0} counts as {0})",
        "the rows of a new group are off by {claim.says} on average (above {0} counts as {0})",
    )

    def format(self, bound: float) -> str:
        """Format the limit in units of the target."""
        return round_bound(self.clip * bound)

    def format_measured(self, mean: float) -> str:
        """Format a mean error in units of the target."""
        return format_number(self.clip * mean)

    def count(self, held: HeldOutPredictions, rule: Rule) -> Counts:
        """Return the clipped error of each row, or the mean of each group's, as shares of the clip."""
        measure = held.problem.measure(held.rows.row_units)
        losses = measure.measure_losses(held.rows.y, held.predict(rule).label)
        return Counts(losses[held.order] / ONE, measured=int(losses.sum()) / (ONE * len(losses)))

    def scale(self, value: float) -> float:
        """Return the bound that a condition asks for, given in units of the target."""
        return value / self.clip

    def find_contrary(self, claim: Claim, held: int, has_losses: bool) -> float | None:
        """Return a lower bound on the mean error as a share of the clip."""
        if claim.measured is None:
            return None
        rounding = held * (GRAIN + 1)  # by which losses, and then groups' means, may be rounded up
        right = min(held * ONE, ceil((1 - claim.measured) * held * ONE) + rounding)
        return 1 - bound_mean_loss([right], held, claim.delta)


@register_quantity
@dataclass(frozen=True)
class Within(Quantity):
    """How far off a share of new rows is at most: "within:0.9"."""

    width_of: float = argument(SHARE_OF_ROWS, "0.9", "a share of new rows")

    name = "within"
    phrase = "error of {0} of new rows"
    of_numbers = at_most = True
    measured_as = "{part:,} of {rows:,} {on} are further off"
    states = "at least {0} of new rows are predicted to within {claim.limit} by {who}"
    quoted = "in the long run at most {claim.quantity.beyond} of new rows are off by more than {claim.limit}"
    seen = "{claim.errors:,} of {claim.rows:,} previously unused rows are further off, {bound}"
    counted = "judged rows"
    largest = float_info.max

    @property
    def beyond(self) -> str:
        """The share of new rows of which nothing is said."""
        return f"{format_number(100 * (1 - self.width_of))} %"

    def format(self, bound: float) -> str:
        """Format the limit in units of the target."""
        return round_bound(bound) if bound < self.largest else "any amount"

    def count(self, held: HeldOutPredictions, rule: Rule) -> Counts:
        """Return the absolute error of each row, and how many are further off than what is proven."""
        errors = np.abs(held.predict(rule).label - held.rows.y)
        width = self._find_width(errors, held.delta, 0)
        return Counts(errors, int(np.sum(~(errors <= width))), len(errors))

    def bound(self, held: HeldOutPredictions, counts: Counts) -> tuple[float | None, str]:
        """Return the distance, in units of the target; None if too few rows are held out."""
        width = self._find_width(counts.losses, held.delta, held.copies)
        return width if isfinite(width) else None, "order statistic"

    def _find_width(self, errors: Values, delta: float, copies: int) -> float:
        counted = count_without(copies, len(errors))
        few = bound_table(counted, delta) <= 1 - self.width_of  # may be further off
        beyond = int(np.count_nonzero(few)) - 1  # the bound increases with the count
        width = float(np.sort(errors)[len(errors) - 1 - beyond]) if few[0] else np.inf
        return width if width < self.largest else np.inf  # of predictions that are not finite too

    def scale(self, value: float) -> float:
        """Return the bound that a condition asks for: the value itself."""
        return value

    def find_asked(self, problem: Problem) -> tuple[str, float]:
        """Return the option that asks for it, whose name has the share: for any distance at all."""
        return f"claim={self}", 0.0

    def foresee(self, problem: Problem) -> Iterator[Need]:
        """Yield how many rows it takes: the distance itself is not known before."""
        delta, beyond = problem.study.delta_of_claim, 1 - self.width_of
        need = foresee_rows(
            problem, self, delta, lambda n: 0.0 if clopper_pearson(0, n, delta) <= beyond else None
        )
        takes = f"it takes {need.needed:,} {need.of} at least, and there are {need.rows:,}"
        yield need._replace(lines=[f"{self.title}, with probability {format_level(delta)}: {takes}"])
