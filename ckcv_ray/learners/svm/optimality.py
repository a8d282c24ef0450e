"""Whether a model is the SVM of its training rows: what can be checked without refitting.

The KKT conditions determine the SVM up to the tolerance. Where they do not, because a fit was stopped before
it met them or its C is so large that rounding decides them, the check reports that.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.data.schema import Index, Rows
from ckcv_ray.learners.base import Checked, Status
from ckcv_ray.learners.svm.model import SVMModel
from ckcv_ray.learners.svm.problem import describe
from ckcv_ray.learners.svm.scaling import fit_scaling

SUM_TOLERANCE = 1e-9
KKT_ROUNDING = {"newton": 1e-12, "libsvm": 1e-6}  # of a decision value, per 1 + sum |b|; LIBSVM: float32
MOST_ROUNDING = 0.1  # of a decision value; the margin is 1


def check_model(
    model: SVMModel,
    X: Rows,
    y: NDArray[np.int8],
    train: Index,
    scale: str,
    solver: str,
    tolerance: float,
    *,
    converged: bool,
) -> Checked:
    """Check a model against its training rows.

    Args:
        model: the SVM.
        X, y: inputs and signs of its training rows.
        train: their row numbers in the learning set, ascending.
        scale, solver, tolerance: options of the learner.
        converged: whether its fit is known to have converged.
    """
    checked = Checked(list(_dual(model, X, y, train, scale)), [])
    if np.isin(model.support, train).all():
        unit = KKT_ROUNDING[solver]
        _optimality(model, X, y.astype(np.float64), train, unit, tolerance, converged, checked)
    return checked


def _dual(model: SVMModel, X: Rows, y: NDArray[np.int8], train: Index, scale: str) -> Iterator[str]:
    """Yield what is wrong with support vectors, scaling and dual variables, given the training rows."""
    inside = np.isin(model.support, train)
    if not inside.all():
        yield "a support vector is not among its training rows"
    scaling = fit_scaling(X, scale)
    if not all(np.allclose(a, b, SUM_TOLERANCE, 0) for a, b in zip(scaling, model.scaling, strict=True)):
        yield "its scaling is not that of its training rows"
    positions = np.searchsorted(train, model.support[inside])
    if np.any(model.dual_coef[inside] * y[positions] <= 0):
        yield "a dual variable does not have the sign of its label"
    size = np.abs(model.dual_coef)
    outside = np.any(size > model.C * (1 + SUM_TOLERANCE))
    if outside or abs(model.dual_coef.sum()) > SUM_TOLERANCE * size.sum():
        yield "its dual variables are outside the box or do not sum to zero"


def _optimality(
    model: SVMModel,
    X: Rows,
    y: Rows,
    train: Index,
    rounding_unit: float,
    tolerance: float,
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
    optimum = describe(Kb, y, b, model.C, 0, Status.CONVERGED)
    rounding = rounding_unit * (1 + float(np.abs(b).sum()))
    violated = optimum.violation > tolerance + rounding
    if rounding > MOST_ROUNDING:
        checked.trusted.append(f"its KKT conditions: at C = {model.C:g} rounding decides them")
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
