"""The error of a rule: how often it is wrong on new rows, or on average on the rows of a new group.

Nothing has used the rows held out, so the errors of a rule on them are binomial. With groups of related rows
the units are groups, and what is bounded is the mean loss of a new group: its share of wrong rows.
"""

from collections.abc import Iterator

import numpy as np

from ckcv_ray.claims.better import foresee_gate
from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.claims.quantity import (
    Claim,
    Counts,
    Need,
    Quantity,
    bound_wrong,
    name_loss_bound,
    name_wrong_bound,
)
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.arrays import ONE
from ckcv_ray.core.measures import GroupShares
from ckcv_ray.core.percent import format_percent
from ckcv_ray.core.quantities import register_quantity
from ckcv_ray.study.problem import Problem


@register_quantity
class Error(Quantity):
    """The probability that a rule misclassifies a new row; of groups the mean share of a new group's rows."""

    name = phrase = "error"
    is_error = at_most = guarded = is_binomial = True
    rows_alone = ""

    def count(self, held: HeldOutPredictions, rule: Rule) -> Counts:
        """Return which rows are wrong, or the share of each group's rows that are."""
        y, predicted = held.rows.y, held.predict(rule).label
        wrong = predicted != y
        losses = GroupShares(held.rows.units).measure_losses(y, predicted) / ONE if held.grouped else wrong
        return Counts(np.asarray(losses, float)[held.order], int(np.sum(wrong)), len(wrong))

    def bound(self, held: HeldOutPredictions, counts: Counts, copies: int) -> float | None:
        """Return the bound by counts, or of groups by their losses."""
        if held.grouped:
            return super().bound(held, counts, copies)
        return bound_wrong(held, counts.losses > 0, held.delta, copies)

    def state(self, held: HeldOutPredictions, claim: Claim, who: str) -> str:
        """Return what is proven, as a clause."""
        return state_error(claim, who, held.grouped)

    def explain(self, held: HeldOutPredictions, counts: Counts) -> str:
        """Return what was counted, and by which bound it is proven."""
        seen, m = f"{counts.errors} of {counts.rows}", len(counts.losses)
        if held.grouped:
            return f"{seen} rows of {m} previously unused groups wrong, {name_loss_bound(m, 'group')}"
        return f"{seen} previously unused rows wrong, {name_wrong_bound(held.certification)}"

    def headline(self, claim: Claim, grouped: bool) -> str:
        """Return what a claim proves, as a clause for the first screen."""
        of = "a new group's rows are misclassified on average" if grouped else "new rows are misclassified"
        return f"in the long run {claim.says} of {of}"

    def measure(self, claim: Claim, on: str, mean: float, grouped: bool) -> str:
        """Say how many rows were wrong."""
        if claim.errors is None or not claim.rows:
            return f"{format_percent(mean)} wrong (mean of the members of F*)"
        of = "mean over groups; " if grouped else ""
        return f"{format_percent(mean)} wrong ({of}{claim.errors:,} of {claim.rows:,} {on})"

    def foresee(self, problem: Problem, name: str, delta: float) -> Iterator[Need]:
        """Yield what it takes to prove that a rule is better than every constant."""
        yield foresee_gate(problem, name, delta)


def state_error(claim: Claim, who: str, grouped: bool) -> str:
    """Return what a claim about an error proves, as a clause."""
    if grouped:
        return f"of a new group's rows, each classified by {who}, on average {claim.says} are misclassified"
    return f"{who} misclassifies a new row with probability {claim.says}"
