"""Weights of classes: what an error on a row of a class weighs in a fit.

``balanced`` gives the K classes weights inversely proportional to their numbers of training rows,
n / (K n_c), as scikit-learn does. Otherwise weights are given by label, and a class that is not named weighs
1, also as in scikit-learn.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.by_label import LABEL_FORM, canonicalize, of_classes, to_text
from ckcv_ray.core.options import Option

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
    return canonicalize(name, value, f"{EQUALLY}, {BALANCED}, or {LABEL_FORM}")


CLASS_WEIGHT = Option(
    check_class_weight,
    "Weights of the classes in fits: equal, balanced (by their numbers of rows), or sick=10,well=1.",
    default_text=EQUALLY,
    panel="Columns",
)


def match_labels(class_weight: str, classes: Sequence[Any]) -> str:
    """Return the canonical form on a task: labels as the task has them, without weights of 1.

    Raises:
        InputError: a name is not a label of the task.
    """
    if class_weight in (EQUALLY, BALANCED):
        return class_weight
    given = of_classes(NAME, class_weight, classes)
    unequal = {str(c): w for c, w in zip(classes, given, strict=True) if w is not None and w != 1.0}
    return to_text(unequal) if unequal else EQUALLY


def compute_weights(class_weight: str, classes: Sequence[Any], y: NDArray[Any]) -> NDArray[np.float64]:
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
