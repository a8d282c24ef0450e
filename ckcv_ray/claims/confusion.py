"""The confusion matrix: how often rows of each class are predicted as each of the classes.

Rows are counted over the members of F*, each on its estimate set. These sets share rows, so that the matrix
is an estimate like the mean error, not a count of independent rows.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ckcv_ray.core.schedule import Stage
from ckcv_ray.learners.ensemble import Ensemble, check_predicted
from ckcv_ray.study import Problem

CountMatrix = tuple[tuple[int, ...], ...]  # rows by their class (a line) and by the class predicted


class Mistake(NamedTuple):
    """Rows of one class that are predicted as another.

    Attributes:
        actual, predicted: class numbers; None if undecided.
        rows: how many; share: of the rows of the actual class.
    """

    actual: int
    predicted: int | None
    rows: int
    share: float


def count_confusion(problem: Problem, ensemble: Ensemble, k: int) -> CountMatrix:
    """Count the rows of the members' estimate sets by their class and the class that is predicted.

    Rows on which a member is undecided are in no column.

    Args:
        problem: what was solved.
        ensemble: F*.
        k: its number of folds.

    Raises:
        RunError: a member predicts a class that does not exist.
    """
    task, n_classes = problem.task, problem.task.n_classes
    counts = np.zeros((n_classes, n_classes), np.int64)
    size = problem.sizes.index(problem.find_size(k))
    for member in ensemble.members:
        _, scored = problem.rows(Stage.REFIT, size, member.split)
        predicted = member.model.predict(task.X[scored]).label
        check_predicted(member, predicted)
        decided = predicted >= 0
        np.add.at(counts, (task.y[scored][decided], predicted[decided]), 1)
    return tuple(map(tuple, counts.tolist()))


def derive_confusion(errors: Sequence[int], rows: Sequence[int]) -> CountMatrix:
    """Return the matrix of two classes from the wrong rows and all rows of each."""
    (first, second), (n_first, n_second) = errors, rows
    return ((n_first - first, first), (second, n_second - second))


def list_mistakes(matrix: CountMatrix, rows: Sequence[int]) -> list[Mistake]:
    """Return the mistakes that were made, the largest share of a class first.

    Args:
        matrix: counts by actual and predicted class.
        rows: all rows of each actual class.
    """
    found = [
        Mistake(actual, predicted, count, count / n)
        for actual, (counts, n) in enumerate(zip(matrix, rows, strict=True))
        for predicted, count in [*enumerate(counts), (None, n - sum(counts))]
        if count and predicted != actual
    ]
    return sorted(found, key=lambda mistake: -mistake.share)


def check_confusion(matrix: CountMatrix, rows: Sequence[int]) -> None:
    """Raise ValueError unless a matrix fits the number of rows of each class.

    Whether its right rows are those of the members' counts is left to a verification, which names the member.
    """
    n_classes = len(rows)
    if len(matrix) != n_classes or any(len(counts) != n_classes for counts in matrix):
        raise ValueError(f"confusion: expected {n_classes} rows and columns, one for each class")
    for number, counts in enumerate(matrix):
        if min(counts) < 0 or sum(counts) > rows[number]:
            raise ValueError("confusion: it has more rows than there are, or a negative number of them")
