"""Claims about subgroups named beforehand, such as women, or patients above 60: error and recalls.

Given which held-out rows belong to a subgroup, they are independent draws from its distribution: the wrong
ones of a fixed rule are binomial. delta is divided equally among the columns, then among the subgroups of a
column that are claimed, then among the error and the recalls of a subgroup: all hold jointly. Which subgroups
are claimed is decided by how many rows belong to each, never by labels; edges of bins come from the learning
rows. The rule decides by its own cut-off: one that was chosen on the same rows would depend on their labels.

Where numbers are predicted, what is claimed of a subgroup is its mean error, of which at most the clip
counts, by its rows in the order in which they were drawn.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.claims.error import Error
from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.claims.numbers import Clipped
from ckcv_ray.claims.quantity import Quantity
from ckcv_ray.claims.recalls import Recall
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.arrays import ONE
from ckcv_ray.core.bounds.betting import bound_losses
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.measures import ClippedErrors
from ckcv_ray.core.percent import format_percent
from ckcv_ray.tables.subgroups import divide_rows, parse_subgroup
from ckcv_ray.tables.target import Label
from ckcv_ray.validation import STRICT, check_fraction, check_part

Losses = NDArray[np.int64]  # 1 for a wrong row; of numbers in units of 1 / ``ONE``
MIN_OF_SUBGROUP = 10  # rows of one that is claimed: fewer prove no error below a quarter


@dataclass(frozen=True)
class SubgroupClaim:
    """A bound on the error, or on a recall, of one rule in one subgroup.

    Attributes:
        subgroup: its name, such as "sex = f" or "41.5 <= age < 60".
        quantity: "error", at most ``bound``; or "recall", at least 1 - ``bound``; of numbers such as
            "clipped:50", at most ``bound`` times the clip.
        label: label of the class that a recall is about; None for an error.
        classifier: the rule, as in ``Claim``.
        errors, rows: wrong rows and all rows of the subgroup among those held out; of a class for a recall.
            With numbers there are no wrong rows.
        bound: in [0, 1]; None where the subgroup has too few rows for a claim.
        delta: probability with which the bound may fail; None without one.
        measured: of numbers the mean error of its rows, as a share of the clip; 0 without rows; else None.
    """

    __pydantic_config__: ClassVar = {**STRICT, "extra": "forbid"}

    subgroup: str
    quantity: Quantity
    label: Label | None
    classifier: str
    errors: int = 0
    rows: int = 0
    bound: float | None = None
    delta: float | None = None
    measured: float | None = None

    @property
    def limit(self) -> str:
        """What is proven, without its name: "at most 5.00 %", or "nothing"."""
        if self.bound is None:
            return f"nothing: takes {MIN_OF_SUBGROUP} rows"
        return f"{self.quantity.side} {self.quantity.format(self.bound)}" if self.bound < 1 else "nothing"

    @property
    def rate(self) -> str:
        """What was measured: the share of rows that are wrong, of a recall right, or the mean error."""
        if self.measured is not None:
            return self.quantity.format_measured(self.measured)
        part = self.errors if self.label is None else self.rows - self.errors
        return format_percent(part / self.rows) if self.rows else "–"

    def check(self, name: str, n_held: int) -> None:
        """Raise ValueError if its numbers cannot be."""
        check_part(f"{name}.errors", self.errors, self.rows, "rows")
        check_part(f"{name}.rows", self.rows, n_held, "rows")
        check_fraction(f"{name}.bound", self.bound or 0.0)
        check_fraction(f"{name}.measured", self.measured or 0.0)

    def to_json(self) -> dict[str, Any]:
        """Return its fields as JSON values; ``measured`` is absent without one."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values["quantity"] = str(self.quantity)
        return {name: value for name, value in values.items() if name != "measured" or value is not None}


def claim_subgroups(held: HeldOutPredictions) -> Iterator[SubgroupClaim]:
    """Yield what is claimed of each subgroup of the study: of one with too few rows, without bounds."""
    problem, certification, y = held.problem, held.certification, held.rows.y
    rule = Rule(certification.rule_of_quantities)
    predicted = held.predict(rule).label
    of_all: Quantity = Error()
    losses = (predicted != y).astype(np.int64)
    if problem.clip is not None:
        losses, of_all = ClippedErrors(problem.clip).measure_losses(y, predicted), Clipped(problem.clip)
    for subgroups in map(parse_subgroup, certification.subgroups):
        parts = divide_rows(subgroups, problem.task, held.rows.X)
        claimed = sum(int(part.rows.sum()) >= MIN_OF_SUBGROUP for part in parts)
        delta = held.delta / len(certification.subgroups) / max(1, claimed) / (1 + problem.task.n_classes)
        for part in parts:
            enough = int(part.rows.sum()) >= MIN_OF_SUBGROUP
            of_classes = [(Recall(), label, y == number) for number, label in enumerate(problem.task.classes)]
            for quantity, label, rows in [(of_all, None, np.ones(len(y), bool)), *of_classes]:
                drawn = losses[held.order][(part.rows & rows)[held.order]]
                claim = _count(SubgroupClaim(part.name, quantity, label, rule.name), drawn)
                yield replace(claim, bound=_bound(claim, drawn, delta), delta=delta) if enough else claim


def _count(claim: SubgroupClaim, losses: Losses) -> SubgroupClaim:
    """Return the claim with its counts, from the losses of its rows in the order drawn."""
    m, total = len(losses), int(losses.sum())
    if claim.quantity.is_mean:
        return replace(claim, rows=m, measured=total / (ONE * max(m, 1)))
    return replace(claim, errors=total, rows=m)


def _bound(claim: SubgroupClaim, losses: Losses, delta: float) -> float:
    if claim.quantity.is_mean:
        return bound_losses(losses / ONE, delta)
    return float(clopper_pearson(claim.errors, claim.rows, delta))
