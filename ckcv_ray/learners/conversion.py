"""Fitted models as estimators of scikit-learn, which other programs read.

Classes are numbers, in the order of the task's labels.
"""

from typing import Any

import numpy as np

from ckcv_ray.errors import InputError
from ckcv_ray.learners.choice import ChosenModel
from ckcv_ray.learners.encoding.learner import EncodedModel
from ckcv_ray.learners.sklearn.model import FittedEstimator


def convert_model(model: Any) -> Any:
    """Return a fitted estimator of scikit-learn that predicts class numbers, or numbers, as a model does.

    A Gaussian SVM becomes a scaling and an SVC, with the same support vectors and coefficients.

    Raises:
        InputError: there is none, and it is said why.
    """
    from ckcv_ray.learners.svm.model import SVMModel  # imports numba

    if isinstance(model, ChosenModel):
        return convert_model(model.model)
    if isinstance(model, EncodedModel):
        raise InputError(
            "the model's columns are encoded (categories, dates or gaps), which an exported file would lack: "
            "use ckcv predict, or run on columns of numbers without gaps"
        )
    if isinstance(model, SVMModel):
        return _convert_svm(model)
    if isinstance(model, FittedEstimator) and not model.foreign:
        return model.estimator
    kind = type(model.estimator).__name__ if isinstance(model, FittedEstimator) else type(model).__name__
    raise InputError(
        f"a model of {kind} cannot be exported: estimators of scikit-learn can, and the SVM of two classes"
    )


def _convert_svm(model: Any) -> Any:
    """Return a scaling and an SVC with what a fit would have set, the first class's support vectors first."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    d = model.vectors.shape[1]
    scaler = StandardScaler()
    centre, scale = model.scaling
    scaler.mean_, scaler.scale_, scaler.var_ = centre, scale, scale**2
    scaler.n_features_in_, scaler.n_samples_seen_ = d, len(model.vectors)
    order = np.argsort(model.dual_coef > 0, kind="stable")
    positive = int(np.sum(model.dual_coef > 0))
    svc = SVC(C=model.C, gamma=model.gamma)
    coefficients, offset = model.dual_coef[None, order], np.array([model.offset])
    fitted = {
        "_sparse": False,
        "_gamma": model.gamma,
        "_effective_probability": False,
        "_n_support": np.array([len(order) - positive, positive], np.int32),
        "_dual_coef_": -coefficients,  # libsvm takes the first class as +1
        "_intercept_": -offset,
        "_probA": np.zeros(0),
        "_probB": np.zeros(0),
        "_num_iter": np.zeros(1, np.int32),
        "n_iter_": np.zeros(1, np.int32),
        "n_features_in_": d,
        "class_weight_": np.ones(2),
        "classes_": np.array([0, 1]),
        "support_": model.support[order].astype(np.int32),
        "support_vectors_": model.scaling.apply(model.vectors)[order],
        "dual_coef_": coefficients,
        "intercept_": offset,
        "fit_status_": 0,
        "shape_fit_": (len(order), d),
    }
    for name, value in fitted.items():
        setattr(svc, name, value)
    return make_pipeline(scaler, svc)
