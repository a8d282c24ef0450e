"""Two-sided exact intervals of what was measured on held-out rows, which people expect with an estimate.

The wrong rows of a classifier that is fixed without them are binomial, and two Clopper-Pearson bounds at
delta / 2 contain their probability with a probability of at least 1 - delta. Each interval holds by itself,
several of them not jointly, and none is a claim of the study. There are none where counts are not binomial:
scored rows of cross validation, rows of groups, a recall at a cut-off that was chosen by the same rows.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ckcv_ray.claims.quantity import Claim, Quantity
from ckcv_ray.core.bounds.binomial import bound_both_sides
from ckcv_ray.core.percent import ceil_percent, floor_percent, format_level, format_percent
from ckcv_ray.study import Condition
from ckcv_ray.tables.target import Label


class MeasuredInterval(NamedTuple):
    """A share of held-out rows, with its exact interval.

    Attributes:
        quantity, label, classifier: what was measured, as in ``Claim``.
        part, rows: rows that count, and all rows: wrong ones for an error, else right ones.
        low, high: ends of the interval, in [0, 1].
        level: the probability 1 - delta with which such an interval contains what it is of.
        cut_off: of the scores, as in ``Claim``; None for the learner's own.
    """

    quantity: Quantity
    label: Label | None
    classifier: str
    part: int
    rows: int
    low: float
    high: float
    level: float
    cut_off: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {**self._asdict(), "quantity": str(self.quantity)}

    def describe(self) -> str:
        """Return the figure and its interval in words."""
        name = self.quantity.name_of(self.label)
        share, ends = format_percent(self.part / self.rows), format_ends(self.low, self.high)
        rule = self.classifier if self.cut_off is None else f"{self.classifier}, cut-off {self.cut_off:.6g}"
        return f"{name} {share} ({self.part:,} of {self.rows:,} held-out rows), {ends} ({rule})"


def format_ends(low: float, high: float) -> str:
    """Format an interval, rounded outwards: "68.36 % to 81.90 %"."""
    return f"{floor_percent(low)} to {ceil_percent(high)}"


def describe_intervals(delta: float) -> str:
    """Return the sentence that says what intervals at a level are."""
    return (
        f"exact {format_level(delta)} intervals (Clopper-Pearson, two-sided), each by itself and not "
        "jointly; they are of what was measured, and no claims"
    )


def list_intervals(
    claims: Iterable[Claim], required: Condition | None, grouped: bool, delta: float
) -> list[MeasuredInterval]:
    """Return the intervals of what was counted on held-out rows for claims, in their order.

    Args:
        claims: of a certificate.
        required: what the cut-off was chosen for, if one was.
        grouped: whether rows belong to groups; there are no intervals then.
        delta: probability with which an interval may miss.
    """
    if grouped:
        return []
    found = []
    for claim in claims:
        fixed = claim.cut_off is None or is_fixed_for(str(claim.quantity), required)
        counted = claim.quantity.is_binomial and (claim.quantity.is_error or claim.quantity.by_class)
        if not (claim.held_out and counted and fixed and claim.rows) or claim.bound is None:
            continue
        wrong = claim.errors or 0
        part = wrong if claim.quantity.is_error else claim.rows - wrong
        ends, about = (
            bound_both_sides(part, claim.rows, delta),
            (claim.quantity, claim.label, claim.classifier),
        )
        found.append(MeasuredInterval(*about, part, claim.rows, *ends, 1 - delta, claim.cut_off))
    return found


def is_fixed_for(quantity: str, required: Condition | None) -> bool:
    """Return whether a cut-off that was chosen for a condition is fixed given the rows of other classes.

    One chosen for a recall depends on the rows of its class alone; for a predictive value, on all.
    """
    return required is not None and required.kind.by_class and required.name != quantity
