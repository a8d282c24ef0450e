"""Class weights: the box constraint of a row is C times the weight of its class.

``balanced`` gives the K classes weights inversely proportional to their numbers of training rows,
n / (K n_c), as scikit-learn does. Otherwise weights are given by label, and a class that is not named weighs
1, also as in scikit-learn.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.by_label import FORM, canonical, of_classes, read, written
from ckcv_ray.errors import InputError
from ckcv_ray.learners.svm.problem import EQUAL, Weights
from ckcv_ray.validation import MOST, quoted

NAME = "class_weight"
EQUALLY = "equal"
BALANCED = "balanced"


def check_class_weight(name: str, value: Any) -> str:
    """Return the canonical form of an option: "equal" (also for None), "balanced", or weights by label.

    Raises:
        InputError: it is none of these.
    """
    if value is None or (isinstance(value, str) and value in (EQUALLY, BALANCED)):
        return value or EQUALLY
    return canonical(name, value, f"{EQUALLY}, {BALANCED}, or {FORM}")


def check_products(class_weight: str, C: tuple[float, ...], n_classes: int = 2) -> None:
    """Raise InputError unless the product of every C and every weight is positive and finite."""
    if class_weight == EQUALLY:
        return
    balanced = class_weight == BALANCED
    given = [1 / n_classes, float(MOST)] if balanced else list(read(class_weight).values())
    for product, end in ((C[0] * min(given), C[0]), (C[-1] * max(given), C[-1])):
        if not (math.isfinite(product) and product > 0):
            raise InputError(
                f"{NAME}={quoted(class_weight)} with C={end!r}: the product of C and a weight must be "
                "positive and finite: choose less extreme values"
            )


def of_task(class_weight: str, classes: Sequence[Any]) -> str:
    """Return the canonical form on a task: labels as the task has them, without weights of 1.

    Raises:
        InputError: a name is not a label of the task.
    """
    if class_weight in (EQUALLY, BALANCED):
        return class_weight
    given = of_classes(NAME, class_weight, classes)
    unequal = {str(c): w for c, w in zip(classes, given, strict=True) if w is not None and w != 1.0}
    return written(unequal) if unequal else EQUALLY


def weights_by_class(class_weight: str, classes: Sequence[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Return the weight of each class, (n_classes,).

    Args:
        class_weight: canonical form of the option.
        classes: original labels of the classes.
        y: class numbers of the training rows, (n,). Of classes that have none, "balanced" knows nothing, as
            in scikit-learn: the weight of class c is n / (K n_c), with the K classes that have some.
    """
    if class_weight == BALANCED:
        rows = np.bincount(y, minlength=len(classes))
        present = rows > 0
        return np.where(present, len(y) / (np.count_nonzero(present) * np.maximum(rows, 1)), 1.0)
    if class_weight == EQUALLY:
        return np.ones(len(classes))
    given = of_classes(NAME, class_weight, classes)
    return np.array([1.0 if weight is None else weight for weight in given])


def weights(class_weight: str, classes: Sequence[Any], y: NDArray[Any]) -> Weights:
    """Return the weights of the two classes.

    Args:
        class_weight: canonical form of the option.
        classes: original labels of the classes -1 and +1.
        y: classes of the training rows, -1 or +1, (n,).
    """
    if class_weight == EQUALLY:
        return EQUAL
    if class_weight == BALANCED:
        positive = int(np.count_nonzero(y > 0))
        if positive in (0, len(y)):  # the fit is constant
            return EQUAL
        return Weights(len(y) / (2 * (len(y) - positive)), len(y) / (2 * positive))
    return Weights(*(1.0 if w is None else w for w in of_classes(NAME, class_weight, classes)))
