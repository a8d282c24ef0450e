"""Predictions for the rows that each split scores: those of scikit-learn, the same after any interruption."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ckcv_ray import Execution, Procedure, Study, evaluate, verify
from ckcv_ray.core.schedule import Stage
from ckcv_ray.errors import InputError
from ckcv_ray.records import judged
from ckcv_ray.records.judged import HELD_OUT
from ckcv_ray.runs.run import assess
from ckcv_ray.study.problem import OUTER
from ckcv_ray.tables.task import Task

SERIAL = Execution("serial")
IRIS, SPECIES = (values[::3] for values in load_iris(return_X_y=True))
PATIENTS, PROGRESS = (values[::6] for values in load_diabetes(return_X_y=True))
LOGISTIC = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def keep(out: Path, X: Any = IRIS, y: Any = SPECIES, **options: Any) -> tuple[Any, dict[str, Any]]:
    """Score with predictions kept; the result, and the columns of the file."""
    result = evaluate(X, y, out=out, save_predictions=True, execution=SERIAL, **options)
    table = parquet.read_table(out / HELD_OUT)
    return result, {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


def split(result: Any) -> list[Any]:
    problem = result.problem
    return [problem.rows(Stage.SELECT, OUTER, i) for i in range(result.n_splits)]


def test_predictions_of_classes_are_those_of_scikit_learn(tmp_path: Path) -> None:
    result, kept = keep(tmp_path / "scores", learner=LOGISTIC, resampling="kfold:5")
    order, splits = np.argsort(kept["row"]), split(result)
    theirs = cross_val_predict(LOGISTIC, IRIS, SPECIES, cv=splits)
    shares = cross_val_predict(LOGISTIC, IRIS, SPECIES, cv=splits, method="predict_proba")
    assert np.array_equal(kept["row"][order], np.arange(len(IRIS)))
    assert np.array_equal(kept["prediction"][order], theirs)
    assert np.array_equal(np.stack(kept["probability"])[order], shares)
    assert np.array_equal(kept["truth"][order], SPECIES)


def test_predictions_of_numbers_are_those_of_scikit_learn(tmp_path: Path) -> None:
    options = {"learner": LinearRegression(), "resampling": "kfold:4"}
    result, kept = keep(tmp_path / "scores", PATIENTS, PROGRESS, **options)
    theirs = cross_val_predict(LinearRegression(), PATIENTS, PROGRESS, cv=split(result))
    assert np.array_equal(kept["prediction"][np.argsort(kept["row"])], theirs)
    assert "probability" not in kept


@pytest.mark.parametrize(
    "options",
    [
        {"learner": "tree,svm", "resampling": "bootstrap:3", "measure": "accuracy"},
        {"learner": "naive_bayes", "resampling": "nested:3:2", "select_by": "log_loss", "select": "each"},
        {"learner": "tree", "resampling": "kfold:3", "refit": "best", "measure": "log_loss,accuracy"},
    ],
)
def test_the_file_agrees_with_the_log_and_is_written_again_alike(
    options: dict[str, Any], tmp_path: Path
) -> None:
    out = tmp_path / "scores"
    result, kept = keep(out, **options)
    entries = 1 if "refit" in options else len(result.entries)
    assert len(kept["row"]) == entries * sum(len(scored) for _, scored in split(result))
    found = verify(out)
    assert found.differences == []
    assert any("from the log, the table and the models" in line for line in found.recomputed)
    names = (HELD_OUT, "splits.parquet", "scores.json")
    before = [(out / name).read_bytes() for name in names]
    for lost in ("manifest.json", HELD_OUT):
        (out / lost).unlink()
    keep(out, **options)
    assert [(out / name).read_bytes() for name in names] == before


def test_what_cannot_be_kept_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="save_predictions"):
        Study.of(save_predictions=True)
    monkeypatch.setattr(judged, "MAX_TABLE_ROWS", 100)
    study = Procedure.of(resampling="loo", learner="tree", save_predictions=True)
    with pytest.raises(InputError, match="at most 100 can be kept"):
        assess(study, Task.of(IRIS, SPECIES), tmp_path / "scores", SERIAL)
