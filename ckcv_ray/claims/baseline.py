"""The baseline: the error of the constant that always predicts the most common class, to compare bounds with.

The most common class is that of the learning rows (the first of equal ones): nothing else has been seen when
it is chosen. Its error is counted on the rows that a claim rests on: the learning rows for ``paper``, of
which a bound that is not below it says nothing beyond the constant, and the held-out rows for holdout,
where it is proven or not that a rule errs less often than every constant (``claim.Gate``).

With groups of related rows, claims are about the groups' error rates, where each group counts once: so does
the error of the constant, and the most common class is the one that makes it smallest on the learning rows.

With numbers the constant is the median of the learning rows, and its error the mean clipped one; with groups
too, each counts once.
"""

from collections import Counter
from collections.abc import Sequence
from math import fsum, isfinite
from typing import NotRequired

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict  # pydantic accepts typing.TypedDict from Python 3.12 on

from ckcv_ray.core.arrays import ONE, Classes
from ckcv_ray.core.percent import format_number, format_percent
from ckcv_ray.core.schedule import Stage
from ckcv_ray.errors import cut
from ckcv_ray.learners.ensemble import Models
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.columns import Label
from ckcv_ray.tables.task import Groups
from ckcv_ray.validation import Count, Fraction, check_part

LEARNING, HELD_OUT = "learning rows", "held-out rows"
MAX_OF_LABEL = 60


class Baseline(TypedDict):
    """Error of always predicting the most common class of the learning rows, or the median of their numbers.

    Attributes:
        on: the rows it is counted on: "learning rows" or "held-out rows".
        predicted: number of the class predicted, a position in ``labels``; 0 with numbers.
        errors: rows of another class, or with another number.
        rows: all of these rows.
        error: the error rate, in [0, 1]; with groups, the mean of the groups' error rates; with numbers the
            mean error as a share of the clip.
        value, clip: of numbers, the one predicted, and the largest error that counts; absent with classes.
    """

    on: str
    predicted: Count
    errors: Count
    rows: Count
    error: Fraction
    value: NotRequired[float]
    clip: NotRequired[float]


def compute_baselines(problem: Problem) -> tuple[Baseline, ...]:
    """Return the baseline on the learning rows and, if rows were held out, that on the held-out rows."""
    task, held, weights = problem.task, problem.take_held_rows(), _weigh_rows(problem.task.groups)
    on = {LEARNING: (task.y, task.groups)} | ({} if held is None else {HELD_OUT: (held.y, held.units)})
    if problem.clip is None:
        commonest = int(np.argmax(np.bincount(task.y, weights, minlength=task.n_classes)))
        return tuple(_count_baseline(name, commonest, *rows) for name, rows in on.items())
    value = float(np.median(task.y))
    if task.grouped:  # of which each counts once: the least number that half of them are up to
        value = float(np.quantile(task.y, 0.5, weights=weights, method="inverted_cdf"))
    made = list[Baseline]()
    for name, (y, groups) in on.items():
        losses = problem.make_loss_measure(groups).measure_losses(y, np.full(len(y), value))
        error, other = int(losses.sum()) / (ONE * len(losses)), int(np.sum(y != value))
        of_rows = Baseline(on=name, predicted=0, errors=other, rows=len(y), error=error)
        made.append({**of_rows, "value": value, "clip": problem.clip})
    return tuple(made)


def quote_constant(baseline: Baseline, labels: Sequence[Label]) -> str:
    """Return what is always predicted: a label in quotes, or a number."""
    if "value" in baseline:
        return format_number(baseline["value"])
    return quote_label(labels[baseline["predicted"]])


def name_constant(baseline: Baseline, labels: Sequence[Label]) -> str:
    """Return a phrase that names the constant: "always predicting 'benign'", or a number."""
    return f"always predicting {quote_constant(baseline, labels)}"


def describe_error(baseline: Baseline) -> str:
    """Return the error of the constant: a share of rows, or how far off it is on average."""
    clip = baseline.get("clip")
    return format_percent(baseline["error"]) if clip is None else format_number(clip * baseline["error"])


def check_baselines(baselines: Sequence[Baseline], n_rows: int, n_classes: int, held: bool) -> None:
    """Raise ValueError unless these are baselines of a table, on the held-out rows too if ``held``."""
    expected = (LEARNING, HELD_OUT) if held else (LEARNING,)
    if tuple(baseline["on"] for baseline in baselines) != expected:
        raise ValueError(f"baselines: expected one on the {' and one on the '.join(expected)}")
    if sum(baseline["rows"] for baseline in baselines) != n_rows:
        raise ValueError(f"baselines: expected {n_rows} rows in all")
    for number, baseline in enumerate(baselines):
        name = f"baselines.{number}"
        if n_classes:
            check_baseline_class(f"{name}.predicted", baseline["predicted"], n_classes)
        if {"value", "clip"} & baseline.keys() != (set() if n_classes else {"value", "clip"}):
            raise ValueError(f"{name}: value and clip are given with numbers, and only then")
        if baseline.get("clip", 1.0) <= 0 or not isfinite(baseline.get("value", 0.0)):
            raise ValueError(f"{name}: its value is not finite, or its clip not positive")
        check_part(f"{name}.errors", baseline["errors"], baseline["rows"], "rows")


def check_baseline_class(name: str, number: int | None, n_classes: int) -> None:
    """Raise ValueError if a class number of a file is that of no class; None, for no class, is none."""
    if number is not None and not 0 <= number < n_classes:
        raise ValueError(f"{name}: the class number {number} is outside 0..{n_classes - 1}")


class ScoredConstants(TypedDict):
    """The class that each model predicts for every row it was scored on, if it is wrong about some of them.

    Such a model may know its learning rows by heart, and is a constant for any other row.

    Attributes:
        members: of F*, on their estimate sets; None for a model that predicts more than one class.
        refit: of the model refit, on the held-out rows; None also if there is no such model.
    """

    members: tuple[int | None, ...]
    refit: int | None


def find_scored_constants(problem: Problem, models: Models, k: int) -> ScoredConstants:
    """Return which models are constants on the rows they were scored on; k is the winner's."""
    X, size = problem.task.X, problem.sizes.index(problem.find_size(k))
    held, refit = problem.take_held_rows(), None
    if problem.task.has_numbers:  # a constant is what it is: its error says so
        return ScoredConstants(members=(None,) * len(models.best.members), refit=None)
    if models.refit is not None and held is not None:
        (refit,) = models.refit.constants_scored(lambda _: held.X)
    members = models.best.constants_scored(lambda i: X[problem.rows(Stage.REFIT, size, i)[1]])
    return ScoredConstants(members=members, refit=refit)


def describe_constants(
    constants: Sequence[int | None],
    refit: int | None,
    labels: Sequence[Label],
    scored: ScoredConstants | None = None,
) -> list[str]:
    """Return sentences if members of F* are constants, and one if the model refit is.

    Args:
        constants: for each member the class that it predicts for every learning row; None if there are more.
        refit: the same of the model refit; None also if there is no such model.
        labels: the original label of each class.
        scored: the same of the rows that models were scored on. Of few rows some models may be constants by
            chance, so members are mentioned if at least half of them are, and more than on all learning rows.
    """
    members, statements = Counter(number for number in constants if number is not None), list[str]()
    if len(members) == 1 and members.total() == len(constants):
        (number,) = members
        says = f"All members of F* predict {quote_label(labels[number])} for every learning row"
        statements.append(f"{says}: the winner is a constant.")
    elif members:
        statements.append(_count_constants(members, constants, "learning row", labels, "these are constants"))
    if refit is not None:
        statements.append(
            f"The model refit predicts {quote_label(labels[refit])} for every learning row: it is a constant."
        )
    if scored is None:
        return statements
    on_scored = Counter(number for number in scored["members"] if number is not None)
    if on_scored.total() > members.total() and 2 * on_scored.total() >= len(scored["members"]):
        says = "on rows that they have not learned from, these look like constants"
        statements.append(
            _count_constants(on_scored, scored["members"], "row they were scored on", labels, says)
        )
    if refit is None and scored["refit"] is not None:
        statements.append(
            f"The model refit predicts {quote_label(labels[scored['refit']])} for every held-out row: on "
            "rows that it has not learned from, it looks like a constant."
        )
    return statements


def _count_constants(
    members: Counter[int], of: Sequence[int | None], row: str, labels: Sequence[Label], says: str
) -> str:
    each = ", ".join(f"{quote_label(labels[number])}: {members[number]:,}" for number in sorted(members))
    single = f"{members.total():,} of {len(of):,} members of F* predict a single class"
    return f"{single} for every {row} ({each}): {says}."


def _count_baseline(on: str, commonest: int, y: Classes, groups: Groups) -> Baseline:
    wrong, weights = y != commonest, _weigh_rows(groups)
    error = fsum(weights[wrong]) / fsum(weights)
    return Baseline(on=on, predicted=commonest, errors=int(np.sum(wrong)), rows=len(y), error=error)


def _weigh_rows(groups: Groups) -> NDArray[np.float64]:
    """Return how much each row counts: every group as much as any other."""
    return np.asarray(1 / np.bincount(groups)[groups])


def quote_label(label: Label | None) -> str:
    """Return a label in quotes, cut to a length."""
    return cut(repr(label), MAX_OF_LABEL)
