"""A single model of a run as a file for other programs, compared with the model after it is written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.claims.percent import nearest
from ckcv_ray.errors import InputError, RunError, convert_errors, write_install
from ckcv_ray.learners.conversion import convert_model
from ckcv_ray.learners.ensemble import Prediction
from ckcv_ray.runs.result import Result
from ckcv_ray.storage.files import write_atomically
from ckcv_ray.tables.target import Rows
from ckcv_ray.validation import as_path, check_choice

FORMATS = ("skops", "onnx", "pmml")
ONNX_INSTALL = write_install("onnx")
PMML = (
    "to=pmml: files in PMML are written by sklearn2pmml, which needs Java: export to skops, and give the "
    "estimator that skops.io.load reads to sklearn2pmml"
)
CHECKED_ROWS, SEED = 10_000, 0
LEAST_EQUAL = 0.99  # share of labels that have to be the model's
CLOSE = 1e-3  # of numbers, relative to their spread

Predictor = Callable[[Rows], NDArray[Any]]


class Exported(NamedTuple):
    """What was written.

    Attributes:
        share: of ``CHECKED_ROWS`` rows, those for which the file gives what the model gives.
        labels: what the class numbers of the file stand for, in order; none where numbers are predicted.
        by: phrase that names the model.
    """

    share: float
    labels: tuple[Any, ...]
    by: str


def export(result: Result, to: str, out: str | Path, by: str = "auto") -> Exported:
    """Write a single model of a finished run, and compare the file with it.

    The rows that both predict are drawn from the table, half of them with noise added to each column.

    Args:
        result: of the run.
        to: "skops", "onnx" (by skl2onnx, checked by onnxruntime), or "pmml", which is refused with advice.
        out: the file.
        by: which model: "auto" for what rows are classified with, "refit", "full" or "member:7".

    Raises:
        InputError: it is not a single model, or cannot be written in that format; a package is missing.
        RunError: the file gives other labels than the model.
    """
    check_choice("to", to, FORMATS)
    path = as_path("out", out)
    if to == "pmml":
        raise InputError(PMML)
    if path.exists():
        raise InputError(f"out={str(path)!r} exists: name another file, or remove it")
    model, predict, by = _find_model(result, by)
    estimator = convert_model(model)
    rows = _draw_rows(result.task.X)
    content, read = _write_skops(estimator) if to == "skops" else _write_onnx(estimator, rows.shape[1])
    ours, theirs = predict(rows), np.asarray(read(rows)).reshape(-1)
    limit = CLOSE * float(np.ptp(ours)) if result.task.has_numbers else 0.0
    share = float(np.mean(np.abs(ours - theirs) <= limit))
    if share < LEAST_EQUAL:
        raise RunError(f"not written: the file predicts as the model for {nearest(share)} of the rows only")
    try:
        write_atomically(path, content)
    except OSError as error:
        raise InputError(f"out={str(path)!r} cannot be written: {error.strerror or error}") from None
    return Exported(share, () if result.task.has_numbers else tuple(result.task.classes), by)


def _find_model(result: Result, by: str) -> tuple[Any, Predictor, str]:
    """Return a single model, a function that predicts as it does, and a phrase that names it."""
    rule = result.rule(by)

    def predict(rows: Rows) -> NDArray[Any]:
        predicted: Prediction = result.classify(rows, rule)
        return predicted.label

    if rule.cut_off is not None:
        raise InputError(
            "what is proven is about a cut-off of the model's scores, which the file would lack: --refit "
            "exports the model with its own cut-off"
        )
    if result.full is not None:
        return result.full.members[0].model, predict, rule.classifier()
    members = rule.ensemble(result.models).members
    if rule.name.startswith("member:"):
        member = members[int(rule.name.partition(":")[2])]
    elif rule.name in ("refit", "full"):
        (member,) = members
    else:
        raise InputError(
            f"{rule.classifier()} is no single model: choose --member 0, or, after --certify holdout, --refit"
        )
    return member.model, predict, rule.classifier()


def _draw_rows(X: Rows) -> Rows:
    """Return rows like those of X [n, d], half of them with noise of a tenth of each column's deviation."""
    rng = np.random.default_rng(SEED)
    rows = X[rng.integers(len(X), size=CHECKED_ROWS)]
    rows[::2] += rng.normal(size=rows[::2].shape) * X.std(axis=0) / 10
    return rows.astype(np.float32).astype(np.float64)  # ONNX takes them in single precision


def _write_skops(estimator: Any) -> tuple[bytes, Predictor]:
    """Return a file of skops, and what predicts by it."""
    import skops.io

    content = skops.io.dumps(estimator)
    return content, skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content)).predict


def _write_onnx(estimator: Any, d: int) -> tuple[bytes, Predictor]:
    """Return a file of ONNX, and what predicts by it with onnxruntime."""
    try:
        from onnxruntime import InferenceSession
        from skl2onnx import to_onnx
    except ImportError as error:
        raise InputError(f"to=onnx needs {error.name}, which is not installed: {ONNX_INSTALL}") from None
    refused = f"skl2onnx cannot write {type(estimator).__name__}: export to skops"
    with convert_errors(InputError, refused), catch_warnings():
        simplefilter("ignore")  # it reads attributes that scikit-learn deprecates
        content = to_onnx(estimator, np.zeros((1, d), np.float32)).SerializeToString()
    session = InferenceSession(content, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name

    def predict(rows: Rows) -> NDArray[Any]:
        return np.asarray(session.run(None, {name: rows.astype(np.float32)})[0])

    return content, predict
