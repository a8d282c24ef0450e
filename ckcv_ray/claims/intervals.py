"""Two-sided exact intervals of what was measured on held-out rows, which people expect with an estimate.

The wrong rows of a classifier that is fixed without them are binomial, and two Clopper-Pearson bounds at
delta / 2 contain their probability with a probability of at least 1 - delta. Each interval holds by itself,
several of them not jointly, and none is a claim of the study. There are none where counts are not binomial:
scored rows of cross validation, rows of groups, a recall at a cut-off that was chosen by the same rows.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ckcv_ray.claims.claim import Claim, claims_nothing, name_quantity
from ckcv_ray.claims.percent import ceil_percent, floor_percent, format_level, format_percent
from ckcv_ray.core.bounds.binomial import bound_both_sides
from ckcv_ray.study import BINARY_RECALLS, BY_CLASS, ERROR, Condition, Holdout
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

    quantity: str
    label: Label | None
    classifier: str
    part: int
    rows: int
    low: float
    high: float
    level: float
    cut_off: float | None = None

    def describe(self) -> str:
        """Return the figure and its interval in words."""
        name = name_quantity(self.quantity, self.label)
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
        wrong, rows, name = claim["errors"], claim["rows"], claim["quantity"]
        held = claim["certification"] == Holdout.name and not claims_nothing(claim)
        fixed = "cut_off" not in claim or is_fixed_for(name, required)
        if wrong is None or not rows or not held or not fixed or name not in (ERROR, *BY_CLASS):
            continue
        part = wrong if name == ERROR else rows - wrong
        ends = bound_both_sides(part, rows, delta)
        about = name, claim["label"], claim["classifier"]
        found.append(MeasuredInterval(*about, part, rows, *ends, 1 - delta, claim.get("cut_off")))
    return found


def is_fixed_for(quantity: str, required: Condition | None) -> bool:
    """Return whether a cut-off that was chosen for a condition is fixed given the rows of other classes.

    One chosen for a recall depends on the rows of its class alone; for a predictive value, on all.
    """
    return required is not None and required.name in BINARY_RECALLS and required.name != quantity
