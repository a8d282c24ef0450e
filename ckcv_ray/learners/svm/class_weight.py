"""Class weights of the SVM: the box constraint of a row is C times the weight of its class."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.by_label import of_classes, parse_numbers_by_label
from ckcv_ray.errors import InputError
from ckcv_ray.learners.class_weight import BALANCED, EQUALLY, NAME
from ckcv_ray.learners.svm.problem import EQUAL, Weights
from ckcv_ray.validation import MOST, quote


def check_products(class_weight: str, C: tuple[float, ...], n_classes: int = 2) -> None:
    """Raise InputError unless the product of every C and every weight is positive and finite."""
    if class_weight == EQUALLY:
        return
    balanced = class_weight == BALANCED
    given = [1 / n_classes, float(MOST)] if balanced else list(parse_numbers_by_label(class_weight).values())
    for product, end in ((C[0] * min(given), C[0]), (C[-1] * max(given), C[-1])):
        if not (math.isfinite(product) and product > 0):
            raise InputError(
                f"{NAME}={quote(class_weight)} with C={end!r}: the product of C and a weight must be "
                "positive and finite: choose less extreme values"
            )


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
