"""Write a single model of a run as a file for other programs, then compare it with the model.

The file holds a fitted estimator of scikit-learn; classes are numbers, in the order of the task's labels.
"""

from pathlib import Path
from typing import Any

import numpy as np

from ckcv_ray.claims.rules import ONE_MODEL, find_member
from ckcv_ray.errors import InputError, RunError, format_percent
from ckcv_ray.learners.base import Model
from ckcv_ray.learners.choice import PreparedModel
from ckcv_ray.learners.sklearn.store import FittedEstimator
from ckcv_ray.runs.result import Result
from ckcv_ray.storage.pages import write_new


def convert_model(model: Model) -> object:
    """Return a fitted estimator of scikit-learn that predicts class numbers, or numbers, as a model does.

    A Gaussian SVM becomes a scaling and an SVC, with the same support vectors and coefficients.

    Raises:
        InputError: there is none; the message says why.
    """
    from ckcv_ray.learners.svm.model import SVMModel  # imports numba

    if isinstance(model, PreparedModel) and model.encoder is None:
        return convert_model(model.model)
    if isinstance(model, PreparedModel):
        raise InputError(
            "the model's columns are encoded (categories, dates or gaps), which an exported file would lack: "
            "use ckcv predict, or run on columns of numbers without gaps"
        )
    if isinstance(model, SVMModel) and model.n_classes == 2:
        return _convert_svm(model)
    if isinstance(model, FittedEstimator) and not model.foreign:
        return model.estimator
    kind = type(model.estimator).__name__ if isinstance(model, FittedEstimator) else type(model).__name__
    raise InputError(
        f"a model of {kind} cannot be exported: estimators of scikit-learn can, and the SVM of two classes"
    )


def _convert_svm(model: Any) -> Any:
    """Return a scaling and an SVC, fitted on two rows, with the support vectors put in their place."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    scaler = StandardScaler()
    centre, scale = model.scaling
    scaler.mean_, scaler.scale_, scaler.var_ = centre, scale, scale**2
    scaler.n_features_in_, scaler.n_samples_seen_ = len(centre), len(model.vectors)
    (dual_coef,), vectors = model.dual_coef, model.scaling.apply(model.vectors)
    positive = dual_coef > 0
    order = np.argsort(positive, kind="stable")  # the first class comes first
    svc = SVC(C=model.C, gamma=model.gamma).fit(vectors[[positive.argmin(), positive.argmax()]], [0, 1])
    fitted = {
        "_n_support": np.bincount(positive).astype(np.int32),
        "support_": model.support[order].astype(np.int32),
        "support_vectors_": vectors[order],
        "dual_coef_": dual_coef[None, order],
        "_dual_coef_": -dual_coef[None, order],  # libsvm takes the first class as +1
        "intercept_": model.offset,
        "_intercept_": -model.offset,
        "shape_fit_": vectors.shape,
    }
    for name, value in fitted.items():
        setattr(svc, name, value)
    return make_pipeline(scaler, svc)


CHECKED_ROWS, SEED = 10_000, 0
MIN_EQUAL = 0.99  # share of rows on which the file has to agree with the model


def export(result: Result, out: str | Path, by: str = "auto") -> float:
    """Write a single model of a finished run as an estimator for skops, and compare the file with it.

    Return the share of ``CHECKED_ROWS`` rows on which the file agrees with the model. The rows are drawn from
    the table; half of them have noise added to each column, a tenth of its deviation.

    Args:
        result: the run's result.
        out: the file to write.
        by: which model: "auto" for what rows are classified with, "refit", "full" or "member:7".

    Raises:
        InputError: it is not a single model, or cannot be written in this way.
        RunError: the file gives other labels than the model.
    """
    import skops.io

    rule = result.rule(by)
    if rule.cut_off is not None:
        raise InputError(
            "what is proven is about a cut-off of the model's scores, which the file would lack: --refit "
            "exports the model with its own cut-off"
        )
    number = find_member(rule.name)
    if number < 0 and rule.name not in ONE_MODEL:
        raise InputError(
            f"{rule.classifier()} is not a single model: choose --member 0 or --refit after --certify holdout"
        )
    model = rule.ensemble(result.models).members[max(0, number)].model
    content = skops.io.dumps(convert_model(model))
    written = skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))
    X, rng = result.task.X, np.random.default_rng(SEED)
    rows = X[rng.integers(len(X), size=CHECKED_ROWS)]
    rows[::2] += rng.normal(size=rows[::2].shape) * X.std(axis=0) / 10
    share = float(np.mean(np.isclose(rule.predict(result.models, rows).label, written.predict(rows))))
    if share < MIN_EQUAL:
        raise RunError(
            f"not written: the file agrees with the model on only {format_percent(share)} of the rows"
        )
    write_new("out", out, content)
    return share
