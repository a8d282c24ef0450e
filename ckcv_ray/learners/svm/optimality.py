"""Whether a model is the SVM of its training rows: what can be checked without refitting.

The KKT conditions determine the SVM up to the tolerance. Where they do not, because a fit was stopped before
it met them, its C is so large that rounding decides them, or the study's tolerance is wide, the check says
so, and the verification fits the model again.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Index
from ckcv_ray.learners.base import Checked, Status
from ckcv_ray.learners.svm.model import SVMModel
from ckcv_ray.learners.svm.pairwise import PairwiseSVM
from ckcv_ray.learners.svm.problem import Weights, describe
from ckcv_ray.learners.svm.scaling import Scaling
from ckcv_ray.tables.target import Rows
from ckcv_ray.tables.task import Task

CONSTRAINT_TOLERANCE = 1e-9
KKT_ROUNDING = 1e-12  # of a decision value, per 1 + sum |b|
OTHER_SCALING = "its scaling is not that of its training rows"
MOST_OPEN = 0.01  # of a decision value, what tolerance and rounding may leave open; the margin is 1


def check_model(
    model: SVMModel,
    X: Rows,
    y: NDArray[np.int8],
    train: Index,
    scaling: Scaling,
    tolerance: float,
    weights: Weights,
    *,
    converged: bool,
) -> Checked:
    """Check a model against its training rows.

    Args:
        model: the SVM.
        X, y: inputs and signs of its training rows.
        train: their row numbers in the learning set, ascending.
        scaling: that of the training rows.
        tolerance: of the learner: the largest KKT violation of a converged fit.
        weights: of the two classes, for these training rows.
        converged: whether its fit is known to have converged.
    """
    checked = Checked(list(_dual(model, y, train, scaling, weights)), [])
    if np.isin(model.support, train).all():
        _optimality(model, X, y.astype(np.float64), train, tolerance, weights, converged, checked)
    return checked


def check_pairs(
    model: PairwiseSVM,
    task: Task,
    train: Index,
    scaling: Scaling,
    tolerance: float,
    weights: NDArray[np.float64],
    *,
    converged: bool,
) -> Checked:
    """Check the SVM of each pair of classes against the training rows of the two.

    Args:
        model: the SVMs.
        task: the learning rows.
        train: numbers of the training rows, ascending.
        scaling: that of all training rows.
        tolerance: of the learner: the largest KKT violation of a converged fit.
        weights: of the classes, for these training rows, (n_classes,).
        converged: whether every pair's fit is known to have converged.
    """
    checked = Checked([] if model.scaling.is_close(scaling, CONSTRAINT_TOLERANCE) else [OTHER_SCALING], [])
    classes = task.y[train]
    for (first, second), svm in model.pairs():
        rows = train[(classes == first) | (classes == second)]
        y = np.where(task.y[rows] == second, 1, -1).astype(np.int8)
        of_pair = Weights(float(weights[first]), float(weights[second]))
        known = model.scaling, tolerance, of_pair
        found = (
            check_model(svm, task.X[rows], y, rows, *known, converged=converged)
            if len(rows)
            else _without_rows(svm)
        )
        name = f"classes {task.classes[first]!r} and {task.classes[second]!r}"
        checked.differences.extend(f"{name}: {sentence}" for sentence in found.differences)
        checked.trusted.extend(f"{name}: {sentence}" for sentence in found.trusted)
    return checked


def _without_rows(model: SVMModel) -> Checked:
    """Check a model of two classes that have no training rows."""
    decides = len(model.support) or model.offset != 0
    return Checked(["it decides between classes without training rows"] if decides else [], [])


def _dual(
    model: SVMModel, y: NDArray[np.int8], train: Index, scaling: Scaling, weights: Weights
) -> Iterator[str]:
    """Yield what is wrong with support vectors, scaling and dual variables, given the training rows."""
    inside = np.isin(model.support, train)
    if not inside.all():
        yield "a support vector is not among its training rows"
    if not model.scaling.is_close(scaling, CONSTRAINT_TOLERANCE):
        yield OTHER_SCALING
    positions = np.searchsorted(train, model.support[inside])
    if np.any(model.dual_coef[inside] * y[positions] <= 0):
        yield "a dual variable does not have the sign of its label"
    size = np.abs(model.dual_coef)
    bound = model.C * weights.of(model.dual_coef)
    outside = np.any(size > bound * (1 + CONSTRAINT_TOLERANCE))
    if outside or abs(model.dual_coef.sum()) > CONSTRAINT_TOLERANCE * size.sum():
        yield "its dual variables are outside the box or do not sum to zero"


def _optimality(
    model: SVMModel,
    X: Rows,
    y: Rows,
    train: Index,
    tolerance: float,
    weights: Weights,
    converged: bool,
    checked: Checked,
) -> None:
    """Check the KKT conditions; extend ``checked``."""
    if (y == y[0]).all():
        if len(model.support) or model.offset != y[0]:
            checked.differences.append(
                "its training rows are of one class, but it does not predict that class everywhere"
            )
        return
    b = np.zeros(len(train))
    b[np.searchsorted(train, model.support)] = model.dual_coef
    Kb = model.decision(X) - model.offset
    optimum = describe(Kb, y, b, model.C, 0, Status.CONVERGED, weights)
    rounding = KKT_ROUNDING * (1 + float(np.abs(b).sum()))
    violated = optimum.violation > tolerance + rounding
    if tolerance + rounding > MOST_OPEN:
        checked.trusted.append(
            f"its KKT conditions: at C = {model.C:g} and tolerance {tolerance:g} much passes for optimal"
        )
    elif violated and not converged:
        checked.trusted.append("that its fit was stopped at the iteration limit: it is not optimal")
    if abs(optimum.offset - model.offset) > rounding:
        checked.differences.append(
            f"its offset is {model.offset!r}; by the KKT conditions it is {optimum.offset!r}"
        )
    if violated and converged:
        checked.differences.append(
            f"it violates the KKT conditions of its training rows by {optimum.violation:.3g}, at "
            f"most {tolerance:g} is allowed: it is not the model fitted to them"
        )
