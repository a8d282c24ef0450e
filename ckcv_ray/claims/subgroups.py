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
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.claims.error import Error
from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.claims.numbers import Clipped
from ckcv_ray.claims.quantity import MIN_OF_SUBGROUP, Quantity, SubgroupClaim
from ckcv_ray.claims.recalls import Recall
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.arrays import ONE
from ckcv_ray.core.bounds.betting import bound_losses
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.measures import ClippedErrors
from ckcv_ray.tables.subgroups import divide_rows, parse_subgroup

Losses = NDArray[np.int64]  # 1 for a wrong row; of numbers in units of 1 / ``ONE``


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
