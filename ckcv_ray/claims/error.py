"""The error of a rule: how often it is wrong on new rows, on those of a new group, or by weight; and how far
off predicted numbers are, on average, and most of them.

The error by weight is how often a rule is wrong where rows occur as often as their weights say: the data come
from a source with other frequencies than where the classifier will be used, such as a sample in which rare
cases are as many as common ones. The error there is E(w wrong) / E(w) over new rows of the source. No weight
may be above W, which the user states: rows cannot show the largest weight of all new rows. The error is
bounded by betting, where a row counts for w / W; the mean of the weights need not be known
(docs/theory/bounds.md, "Errors by weight").

The loss of a predicted number is min(|y - f(x)|, clip) / clip, in [0, 1]: the row takes the place of a group,
and its loss that of the group's share of wrong rows. How far off a share tau of new rows is: with k the
smallest number for which P(Bin(h, tau) >= k) <= d, h being the number of held-out rows, it is the k-th
smallest of their absolute errors; no k is enough below ln(d) / ln(tau) rows (docs/theory/bounds.md, "How far
off numbers are"). Of rows with the same origin one counts, not known which: the smallest errors are left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, inf
from sys import float_info

import numpy as np

from ckcv_ray.claims.quantity import Claim, Counts, HeldOutPredictions, Need, Quantity
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.bounds.betting import bound_mean_loss
from ckcv_ray.core.bounds.binomial import bound_table, clopper_pearson, count_without
from ckcv_ray.core.measures import GRAIN
from ckcv_ray.core.quantities import POSITIVE, SHARE_OF_ROWS, argument, register_quantity
from ckcv_ray.errors import ONE, Index, InputError, Values, format_level, format_number, round_bound
from ckcv_ray.study.problem import Problem


@register_quantity
class Error(Quantity):
    """The probability that a rule misclassifies a new row; for groups, the mean share of a new one's rows."""

    name = phrase = "error"
    counted = "judged rows"
    is_error = at_most = guarded = is_binomial = True
    rows_alone = ""
    states = (
        "{who} misclassifies a new row with probability {claim.says}",
        "of a new group's rows, each classified by {who}, on average {claim.says} are misclassified",
    )
    quoted = (
        "in the long run {claim.says} of new rows are misclassified",
        "in the long run {claim.says} of a new group's rows are misclassified on average",
    )
    seen = (
        "{claim.errors} of {claim.rows} previously unused rows wrong, {bound}",
        "{claim.errors} of {claim.rows} rows of {units} previously unused groups wrong, {bound}",
    )
    measured_as = (
        "{mean} wrong ({part:,} of {rows:,} {on})",
        "{mean} wrong (mean over groups; {part:,} of {rows:,} {on})",
    )

    def count(self, held: HeldOutPredictions, rule: Rule) -> Counts:
        """Return which rows are wrong, or the share of each group's rows that are."""
        y, predicted = held.rows.y, held.predict(rule).label
        losses = held.problem.measure(held.rows.row_units).measure_losses(y, predicted) / ONE
        return Counts(losses[held.order], int(np.sum(predicted != y)), len(y))


class Weighed(Quantity):
    """An error in which units count by their weight, whose maximum is stated beforehand.

    The largest weight found among some units is not such a maximum.
    """

    most: float
    at_most = is_mean = guarded = True

    def weigh(self, row_units: Index, weights: Values | None) -> Values:
        """Return the weight of each row, or the number of rows of each group, given the group of each row."""
        if weights is None or not self.weighs:
            return np.unique(row_units, return_counts=True)[1].astype(float)
        return weights

    def count(self, held: HeldOutPredictions, rule: Rule) -> Counts:
        """Return the share of each unit that is wrong, with its weight as a share of the maximum."""
        wrong, weights = held.predict(rule).label != held.rows.y, held.weights if self.weighs else None
        shares = self.weigh(held.rows.row_units, weights)[held.order] / self.most
        measured = float(np.average(wrong, weights=weights))
        return Error().count(held, rule)._replace(measured=measured, shares=shares)

    def count_flawless(self, problem: Problem, n: int) -> Counts:
        """Return the counts of n units with no row wrong, weighted like the learning units."""
        weights = self.weigh(problem.task.row_units, problem.task.weighting.named)
        return Counts(np.zeros(n), shares=np.resize(weights, n) / self.most)

    def check(self, problem: Problem) -> None:
        """Raise InputError if no column gives weights or groups, or one of these is larger than stated."""
        rows = problem.all_rows
        kind, column = ("weight", rows.weighting.column) if self.weighs else ("group", rows.units.name)
        if column is None:
            raise InputError(f"claim={self} is about rows that have {kind}s: name their column with --{kind}")
        if (largest := float(self.weigh(rows.row_units, rows.weighting.named).max())) > self.most:
            limit = f"no weight is above {self.most:g}, and {column!r} has one of {largest:g}"
            if not self.weighs:
                limit = f"no group has more than {self.most:g} rows, and one of {column!r} has {largest:g}"
            cure = "state the largest possible, including any not in this table"
            raise InputError(f"claim={self} says that {limit}: {cure}")


@register_quantity
@dataclass(frozen=True)
class RowError(Weighed):
    """How often rows of new groups are misclassified, each group by its rows: E[size x] / E[size]."""

    most: float = argument(POSITIVE, "50", "the largest number of rows that a group can have")

    name = "row_error"
    phrase = "error of rows (groups of up to {0})"
    measured_as = "{rate} wrong ({part:,} of {rows:,} {on})"
    states = (
        "a new row, in a group of at most {0}, is misclassified by {who} with probability {claim.says}: "
        "groups count by their rows"
    )
    seen = Error.seen
    rows_alone = ""


@register_quantity
@dataclass(frozen=True)
class WeightedError(Weighed):
    """The error where rows occur in proportion to weights."""

    most: float = argument(POSITIVE, "4", "the largest weight that a new row can have")

    name = "weighted_error"
    phrase = "weighted error (weights up to {0})"
    measured_as = "{rate} wrong by weight ({part:,} of {rows:,} {on})"
    states = (
        "a new row, drawn with a chance in proportion to its weight {task.weighting.column!r}, is "
        "misclassified by {who} with probability {claim.says}, if weights are known and none is above {0}"
    )
    seen = "{claim.errors} of {claim.rows} previously unused rows wrong, {claim.rate} by weight, {bound}"
    weighs = True


@register_quantity
@dataclass(frozen=True)
class Clipped(Quantity):
    """The mean absolute error of predicted numbers, with each error counted up to a clip: "clipped:50"."""

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

    def find_least(self, claim: Claim, units: int, has_losses: bool) -> float:
        """Return a lower bound on the mean error as a share of the clip."""
        rounding = units * (GRAIN + 1)  # by which losses, and then groups' means, may have been rounded up
        right = ceil((1 - (claim.measured or 0.0)) * units * ONE) + rounding
        return 1 - bound_mean_loss([min(units * ONE, right)], units, claim.delta)

    def count(self, held: HeldOutPredictions, rule: Rule) -> Counts:
        """Return the clipped error of each row, or the mean of each group's, as shares of the clip."""
        measure = held.problem.measure(held.rows.row_units)
        losses = measure.measure_losses(held.rows.y, held.predict(rule).label)
        return Counts(losses[held.order] / ONE, measured=int(losses.sum()) / (ONE * len(losses)))

    def scale(self, value: float) -> float:
        """Return the bound that a condition asks for, given in units of the target."""
        return value / self.clip


@register_quantity
@dataclass(frozen=True)
class Within(Quantity):
    """How far off at most a share of new rows is: "within:0.9"."""

    width_of: float = argument(SHARE_OF_ROWS, "0.9", "a share of new rows")

    name = "within"
    phrase = "error of {0} of new rows"
    of_numbers = at_most = True
    measured_as = "{part:,} of {rows:,} {on} are further off"
    states = "at least {0} of new rows are predicted to within {claim.limit} by {who}"
    quoted = "in the long run at least {0} of new rows are off by {claim.says}"
    seen = "{claim.errors:,} of {claim.rows:,} previously unused rows are further off, {bound}"
    counted = "judged rows"
    largest = float_info.max

    def format(self, bound: float) -> str:
        """Format the limit in units of the target."""
        return round_bound(bound) if bound < self.largest else "any amount"

    def count(self, held: HeldOutPredictions, rule: Rule) -> Counts:
        """Return the absolute error of each row, and how many are further off than the proven distance."""
        errors = np.abs(held.predict(rule).label - held.rows.y)
        width, _ = self.bound(replace(held, copies=0), Counts(errors))
        return Counts(errors, int(np.sum(~(errors <= (inf if width is None else width)))), len(errors))

    def bound(self, held: HeldOutPredictions, counts: Counts) -> tuple[float | None, str]:
        """Return the distance, in units of the target; None if too few rows are held out."""
        counted = count_without(held.copies, len(counts.losses))
        few = bound_table(counted, held.delta) <= 1 - self.width_of  # how many may be further off
        beyond = int(np.count_nonzero(few)) - 1  # the bound increases with the count
        width = float(np.sort(counts.losses)[len(counts.losses) - 1 - beyond]) if few[0] else inf
        found = width if width < self.largest else None  # also for predictions that are not finite
        return found, "order statistic"

    def find_asked(self, problem: Problem) -> tuple[str, float]:
        """Return the option that asks for it and whose name holds the share, for any distance at all."""
        return f"claim={self}", 0.0

    def foresee(self, problem: Problem) -> Iterator[Need]:
        """Yield how many rows it takes: the distance itself is not known beforehand."""
        delta, beyond = problem.study.delta_of_claim, 1 - self.width_of
        need = self.need(problem, lambda n: 0.0 if clopper_pearson(0, n, delta) <= beyond else None)
        takes = f"it takes at least {need.needed:,} {need.of}, and there are {need.rows:,}"
        yield need._replace(lines=[f"{self.title}, with probability {format_level(delta)}: {takes}"])


def describe_weights(problem: Problem) -> str:
    """Say what the weights of rows are used for; "" if all rows weigh the same."""
    if not problem.certification.weighs_rows:
        return problem.all_rows.weighting.describe()
    return (
        f"Rows are weighted by {problem.task.weighting.column!r} only in fits and in the weighted error, "
        "which holds if weights are known, and not estimated from the rows held out; all else is about "
        "unweighted rows."
    )
