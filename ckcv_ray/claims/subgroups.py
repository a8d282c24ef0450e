"""Claims about subgroups named beforehand, such as women, or patients above 60: error and recalls.

Given which held-out rows belong to a subgroup, they are independent draws from its distribution: the wrong
ones of a fixed rule are binomial. delta is divided equally among the columns, then among the subgroups of a
column that are claimed, then among the error and the recalls of a subgroup: all hold jointly. Which subgroups
are claimed is decided by how many rows belong to each, never by labels; edges of bins come from the learning
rows. The rule decides by its own cut-off: one that was chosen on the same rows would depend on their labels.

Where numbers are predicted, what is claimed of a subgroup is its mean error, of which at most the clip
counts, by its rows in the order in which they were drawn.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NotRequired

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict  # pydantic accepts typing.TypedDict from Python 3.12 on

from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.arrays import ONE, Classes
from ckcv_ray.core.bounds.betting import bound_losses
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.measures import ClippedErrors
from ckcv_ray.study import ERROR, Problem, name_clipped
from ckcv_ray.tables.subgroups import Subgroup, divide_rows, parse_subgroup
from ckcv_ray.tables.target import Label, Rows

MIN_OF_SUBGROUP = 10  # rows of one that is claimed: fewer prove no error below a quarter


class SubgroupClaim(TypedDict):
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
        measured: of numbers the mean error of its rows, as a share of the clip; 0 without rows.
    """

    subgroup: str
    quantity: str
    label: Label | None
    classifier: str
    errors: int
    rows: int
    bound: float | None
    delta: float | None
    measured: NotRequired[float]


def claim_subgroups(
    problem: Problem, rule: Rule, X: Rows, y: NDArray[Any], predicted: NDArray[Any]
) -> Iterator[SubgroupClaim]:
    """Yield what is claimed of each subgroup of the study, from rows that nothing used.

    Args:
        problem: whose study names subgroups.
        rule: what classified the rows.
        X, y, predicted: the rows [rows, d], their classes or numbers, and those that the rule predicts.
    """
    certification = problem.study.certification
    assert certification is not None
    if problem.clip is not None:
        losses, drawn = ClippedErrors(problem.clip).measure_losses(y, predicted), problem.order_held_units()
    for subgroups in map(parse_subgroup, certification.subgroups):
        parts = divide_rows(subgroups, problem.task, X)
        share = problem.study.delta / certification.n_shares / len(certification.subgroups)
        claimed = sum(int(part.rows.sum()) >= MIN_OF_SUBGROUP for part in parts)
        each = share / max(1, claimed) / (1 + problem.task.n_classes)
        for part in parts:
            if problem.clip is None:
                yield from _claim_part(part, problem.task.classes, rule, y, predicted, each)
            else:
                yield _claim_mean(part, problem.clip, rule, losses[drawn][part.rows[drawn]], each)


def _claim_mean(
    part: Subgroup, clip: float, rule: Rule, losses: NDArray[np.int64], delta: float
) -> SubgroupClaim:
    """Return the mean error of one subgroup, from the losses of its rows in the order drawn."""
    m = len(losses)
    enough = m >= MIN_OF_SUBGROUP
    return SubgroupClaim(
        subgroup=part.name,
        quantity=name_clipped(clip),
        label=None,
        classifier=rule.name,
        errors=0,
        rows=m,
        bound=bound_losses(losses / ONE, delta) if enough else None,
        delta=delta if enough else None,
        measured=int(losses.sum()) / (ONE * max(m, 1)),
    )


def _claim_part(
    part: Subgroup, classes: Sequence[Label], rule: Rule, y: Classes, predicted: Classes, delta: float
) -> Iterator[SubgroupClaim]:
    """Yield the error and the recalls of one subgroup; without bounds if it has too few rows."""
    enough = int(part.rows.sum()) >= MIN_OF_SUBGROUP
    for number in range(-1, len(classes)):
        rows = part.rows if number < 0 else part.rows & (y == number)
        wrong, m = int(np.sum((predicted != y) & rows)), int(rows.sum())
        yield SubgroupClaim(
            subgroup=part.name,
            quantity=ERROR if number < 0 else "recall",
            label=None if number < 0 else classes[number],
            classifier=rule.name,
            errors=wrong,
            rows=m,
            bound=clopper_pearson(wrong, m, delta) if enough else None,
            delta=delta if enough else None,
        )
