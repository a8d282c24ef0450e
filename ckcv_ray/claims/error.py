"""The error of a rule: how often it is wrong on new rows, on those of a new group, or by weight.

By weight it is how often a rule is wrong where rows occur as their weights say: they come from a source in
which rows occur otherwise than where the classifier will be used, such as a sample in which rare cases are as
many as common ones. The error there is E(w wrong) / E(w) over new rows of the source. No weight may be above
W, which the user states: rows cannot show what the largest one of all new rows is. It is bounded by betting,
where a row counts for w / W; the mean of the weights need not be known (docs/theory/bounds.md, "Errors by
weight").
"""

from dataclasses import dataclass

import numpy as np

from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.claims.quantity import Counts, Quantity
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.quantities import POSITIVE, argument, register_quantity
from ckcv_ray.errors import InputError
from ckcv_ray.study.problem import Problem
from ckcv_ray.validation import ONE


@register_quantity
class Error(Quantity):
    """The probability that a rule misclassifies a new row; of groups the mean share of a new group's rows."""

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


@register_quantity
@dataclass(frozen=True)
class RowError(Quantity):
    """How often rows of new groups are misclassified, where a group counts by its rows: E[size x] / E[size].

    The largest size that a group can have is stated beforehand; the largest one found is no such limit.
    """

    most: float = argument(POSITIVE, "50", "the largest number of rows that a group can have")

    name = "row_error"
    phrase = "error of rows (groups of up to {0})"
    measured_as = "{rate} wrong ({part:,} of {rows:,} {on})"
    states = (
        "a new row, in a group of at most {0}, is misclassified by {who} with probability {claim.says}: "
        "groups count by their rows"
    )
    seen = "{claim.errors} of {claim.rows} rows of {units:,} previously unused groups wrong, {bound}"
    at_most = is_mean = guarded = True
    rows_alone = ""

    def count(self, held: HeldOutPredictions, rule: Rule) -> Counts:
        """Return the share wrong of each group, with the groups' sizes as shares of the largest."""
        counts, sizes = Error().count(held, rule), np.unique(held.rows.row_units, return_counts=True)[1]
        errors, rows = counts.errors or 0, counts.rows or 1
        return counts._replace(measured=errors / rows, shares=(sizes / self.most)[held.order])

    def check(self, problem: Problem) -> None:
        """Raise InputError if rows are no groups, or a group is larger than is stated."""
        units = problem.all_rows.units
        if units.independent:
            raise InputError(f"claim={self} counts groups by their rows: name their column with --group")
        if (largest := int(np.bincount(units.row_units).max())) > self.most:
            raise InputError(
                f"claim={self} says that no group has more than {self.most:g} rows, and one of "
                f"{units.name!r} has {largest:,}: state the largest that there can be, also among groups "
                "that are not here"
            )

    def count_flawless(self, problem: Problem, n: int) -> Counts:
        """Return that no row is wrong, in groups like those to learn from."""
        return Counts(np.zeros(n), shares=np.resize(np.bincount(problem.task.row_units), n) / self.most)


@register_quantity
@dataclass(frozen=True)
class WeightedError(Quantity):
    """The error where rows occur in proportion to weights, of which the largest is stated."""

    most: float = argument(POSITIVE, "4", "the largest weight that a new row can have")

    name = "weighted_error"
    phrase = "weighted error (weights up to {0})"
    measured_as = "{rate} wrong by weight ({part:,} of {rows:,} {on})"
    states = (
        "a new row, drawn with a chance in proportion to its weight {task.weighting.column!r}, is "
        "misclassified by {who} with probability {claim.says}, if weights are known and none is above {0}"
    )
    seen = "{claim.errors} of {claim.rows} previously unused rows wrong, {claim.rate} by weight, {bound}"
    at_most = is_mean = guarded = weighs = True

    def count(self, held: HeldOutPredictions, rule: Rule) -> Counts:
        """Return which rows are wrong, with their weights as shares of the largest one."""
        wrong, weights = held.predict(rule).label != held.rows.y, held.weights
        measured = float(np.sum(weights * wrong) / np.sum(weights))
        losses, shares = wrong[held.order].astype(float), (weights / self.most)[held.order]
        return Counts(losses, int(np.sum(wrong)), len(wrong), measured, shares)

    def check(self, problem: Problem) -> None:
        """Raise InputError if rows have no weights, or one is above what is stated."""
        weighting = problem.all_rows.weighting
        weights = weighting.named
        if weights is None:
            raise InputError(
                f"claim={self} is by the weights of rows, and there are none: name their column with --weight"
            )
        if len(above := np.flatnonzero(weights > self.most)):
            raise InputError(
                f"claim={self} says that no weight is above {self.most:g}, and {weighting.column!r} has "
                f"{weights[above[0]]:g} in row {above[0] + 1}: state the largest weight that there can be, "
                "also in rows that are not here"
            )

    def count_flawless(self, problem: Problem, n: int) -> Counts:
        """Return that no row is wrong, by weights like those of the rows to learn from."""
        weights = problem.task.weighting.named
        assert weights is not None
        return Counts(np.zeros(n), shares=np.resize(weights, n) / self.most)


def describe_weights(problem: Problem) -> str:
    """Say what weights of rows are used for; "" if all rows weigh the same."""
    if not problem.certification.weighs_rows:
        return problem.all_rows.weighting.describe()
    return (
        f"Rows are weighted by {problem.task.weighting.column!r} in fits and in the weighted error alone, "
        "which holds if weights are known, and not estimated from the rows held out; all else is of "
        "unweighted rows."
    )
