"""Results in MLflow: what was asked, what was found, and what is proven, in the active run of MLflow."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from os import PathLike
from typing import Any

from ckcv_ray.errors import InputError, cut
from ckcv_ray.runs.report import make_page
from ckcv_ray.runs.result import Result
from ckcv_ray.storage.folder import CERTIFICATE, RunFolder
from ckcv_ray.storage.pages import REPORT
from ckcv_ray.validation import expect
from ckcv_ray.version import VERSION

MLFLOW = "mlflow-skinny>=3.5"  # what to install
NOTHING_PROVEN = "nothing is proven of a procedure without a certification: its scores are measured"
TEXT_LIMIT = 4900  # characters of a parameter or a tag: MLflow takes 5,000 of tags
PREFIX = "ckcv."


def log(result: Result, folder: str | PathLike[str] | None = None) -> str:
    """Log a result to the active run of MLflow, or to one of its own; return MLflow's identifier of the run.

    Parameters are the options of the study and, with the prefix ``selected.``, the winner. Metrics are
    ``l_ms``, ``l_ee``, ``error``, ``proven`` (the bound to quote), ``baseline`` and ``test_error``, as the
    result has them; without a certification the mean of each score of the best entry. Tags with the prefix
    ``ckcv.`` are run_id, statement (of the first claim), data_digest and version. Artifacts are
    ``result.json``, ``certificate.json`` and, with a folder, ``report.html``.

    Args:
        result: of ``run``, ``evaluate``, ``load_run`` or ``load_scores``.
        folder: its run folder, for the report; nothing is written there.

    Raises:
        InputError: MLflow is not installed, or the folder holds another run.
        StoreError: the folder holds no finished run, or it is damaged.
    """
    expect("result", result, Result, "a Result, as of run, evaluate or load_run")
    if folder is not None and RunFolder(folder).require().run_id != result.run_id:
        raise InputError(f"folder={str(folder)!r} holds another run than the result, {result.run_id}")
    page = None if folder is None else make_page(folder, result)
    try:
        import mlflow
    except ImportError:
        raise InputError(
            f"log needs MLflow, which is not installed: install the extra mlflow, or pip install '{MLFLOW}'"
        ) from None
    with _enter_run(mlflow) as identifier:
        mlflow.log_params(_list_parameters(result))
        mlflow.log_metrics(_list_metrics(result))
        mlflow.set_tags(_list_tags(result))
        mlflow.log_dict(result.to_json(), "result.json")
        if result.finished is not None:
            mlflow.log_dict(result.certificate.to_json(), CERTIFICATE)
        if page is not None:
            mlflow.log_text(page, REPORT)
    return identifier


@contextmanager
def _enter_run(mlflow: Any) -> Iterator[str]:
    """Give the identifier of the active run, or of a new one that ends with the context."""
    if (active := mlflow.active_run()) is not None:
        yield str(active.info.run_id)
        return
    with mlflow.start_run() as started:
        yield str(started.info.run_id)


def _list_parameters(result: Result) -> dict[str, str]:
    """Return the options of a study, and what was selected, as text."""
    if result.finished is None:
        asked, selected = result.study.to_json(), {}
    else:
        asked, selected = result.study.options(), {**result.setting, "k": result.k}
    asked |= {f"selected.{name}": value for name, value in selected.items()}
    return {_name(name): _write(value) for name, value in asked.items()}


def _list_metrics(result: Result) -> dict[str, float]:
    """Return the figures of a result that are known."""
    if result.finished is None:
        entry, _ = result.rank(result.scores[0])[0]
        found = {score.name: result.figures(entry, score).mean for score in result.scores}
    else:
        figures = ("l_ms", "l_ee", "error", "proven", "baseline", "test_error")
        found = {name: getattr(result, name) for name in figures}
    known = {_name(name): float(value) for name, value in found.items() if value is not None}
    return {name: value for name, value in known.items() if isfinite(value)}


def _list_tags(result: Result) -> dict[str, str]:
    """Return what identifies a result, and its first claim in words."""
    certified = result.finished is not None
    tags = {
        "run_id": result.run_id,
        "statement": result.certificate.claims.first["statement"] if certified else NOTHING_PROVEN,
        "data_digest": result.problem.data_digest,
        "version": VERSION,
    }
    return {PREFIX + name: cut(text, TEXT_LIMIT) for name, text in tags.items()}


def _name(name: str) -> str:
    """Return a name with the characters that MLflow allows."""
    return re.sub(r"[^\w\-. :/]", "_", name)


def _write(value: Any) -> str:
    return cut(value if isinstance(value, str) else json.dumps(value, default=str), TEXT_LIMIT)
