"""What ``ckcv evaluate`` keeps: the model of the setting that is chosen, and predictions of scored rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ckcv_ray import Execution, Procedure, Study, Task, assess, evaluate, verify
from ckcv_ray.core.measures import Kind
from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.selection import choose_setting
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.records import judged
from ckcv_ray.records.judged import HELD_OUT
from ckcv_ray.runs.load import load_scores
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.models import FULL, make_model_table
from ckcv_ray.study.problem import OUTER

SERIAL = Execution("serial")
IRIS, SPECIES = (values[::3] for values in load_iris(return_X_y=True))
PATIENTS, PROGRESS = (values[::6] for values in load_diabetes(return_X_y=True))
LOGISTIC = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def score(name: str = "linear", out: Path | None = None, **options: Any) -> Any:
    """Score a learner on its table, and fit it on all rows."""
    numbers = LEARNERS[name].kinds == {Kind.REGRESSION} if name in LEARNERS else False
    X, y = (PATIENTS, PROGRESS) if numbers else (IRIS, SPECIES)
    asked = {"resampling": "kfold:3", "refit": "best", "learner": name} | options
    return evaluate(X, y, out=out, execution=SERIAL, **asked)


def split(result: Any) -> list[Any]:
    problem = result.problem
    return [problem.rows(Stage.SELECT, OUTER, i) for i in range(result.n_splits)]


def test_the_setting_and_the_model_are_those_of_a_grid_search() -> None:
    C = [0.01, 0.1, 1.0, 10.0]
    result = score(param={"C": C}, measure="log_loss", resampling="kfold:5")
    search = GridSearchCV(LOGISTIC, {"logisticregression__C": C}, scoring="neg_log_loss", cv=split(result))
    search.fit(IRIS, SPECIES)
    assert result.kept.settings[0]["C"] == search.best_params_["logisticregression__C"]
    assert np.array_equal(result.predict(IRIS), search.predict(IRIS))
    assert result.figures(result.kept, result.scores[0]).mean == pytest.approx(-search.best_score_, abs=1e-15)


def test_a_model_at_another_setting_is_not_taken_for_the_chosen_one(tmp_path: Path) -> None:
    """Its digest agrees, as a forger would see to: the setting is compared with what the log gives."""
    out = tmp_path / "scores"
    one, chosen = score(param={"C": [0.001]}), score(out=out, param={"C": [0.001, 10.0]})
    folder = RunFolder(out)
    folder.write_manifest(folder.execution(), {FULL: make_model_table(chosen.problem, one.full)})
    with pytest.raises(StoreError, match="another setting"):
        load_scores(out)
    assert verify(out).differences


def test_without_it_no_model_is_kept(tmp_path: Path) -> None:
    result = score(refit=None, out=tmp_path / "scores")
    assert not list((tmp_path / "scores").glob("ensemble/*"))
    with pytest.raises(InputError, match="--refit best"):
        result.predict(IRIS)


MEANS = np.array([0.30, 0.20, 0.21, 0.19, np.nan, 0.25])
ERRORS = np.array([0.01, 0.01, 0.01, 0.02, np.nan, 0.01])
SETTINGS = [{"C": C, "kernel": "rbf"} for C in (0.1, 1.0, 10.0, 100.0, 1e-3, 0.5)]


@pytest.mark.parametrize(
    ("choose", "position"),
    [
        ("best", 3),
        ("one_se", 1),
        ("tolerance:0%", 3),
        ("tolerance:6%", 1),
        ("tolerance:40%", 5),
        ("tolerance:90%", 0),
    ],
)
def test_the_simplest_of_those_that_are_about_as_good(choose: str, position: int) -> None:
    assert choose_setting(choose, MEANS, ERRORS, SETTINGS) == position


# Predictions


def keep(out: Path, X: Any = IRIS, y: Any = SPECIES, **options: Any) -> tuple[Any, dict[str, Any]]:
    """Score with predictions kept; the result, and the columns of the file."""
    result = evaluate(X, y, out=out, save_predictions=True, execution=SERIAL, **options)
    table = parquet.read_table(out / HELD_OUT)
    return result, {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


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
    lost = [HELD_OUT, *([FULL] if "refit" in options else [])]
    names = (*lost, "splits.parquet", "scores.parquet", "scores.json")
    before = [(out / name).read_bytes() for name in names]
    for name in ("manifest.json", *lost):
        (out / name).unlink()
    keep(out, **options)
    assert [(out / name).read_bytes() for name in names] == before


def test_what_cannot_be_kept_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="save_predictions"):
        Study.of(save_predictions=True)
    monkeypatch.setattr(judged, "MAX_TABLE_ROWS", 100)
    study = Procedure.of(resampling="loo", learner="tree", save_predictions=True)
    with pytest.raises(InputError, match="at most 100 can be kept"):
        assess(study, Task.of(IRIS, SPECIES), tmp_path / "scores", SERIAL)
