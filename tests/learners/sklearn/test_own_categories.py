"""Categories of a table given as such to the boosting libraries, if one of their estimators asks for them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from boosting import marks
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ckcv_ray import Execution, Study, evaluate, run, trust
from ckcv_ray.errors import InputError
from ckcv_ray.learners.sklearn.learner import find_columns
from ckcv_ray.learners.sklearn.spec import build
from ckcv_ray.runs.load import load_run, load_scores
from ckcv_ray.runs.verify import verify
from ckcv_ray.tables.columns.schema import Schema

SERIAL = Execution("serial")
RNG = np.random.default_rng(0)
N = 120
TABLE = pd.DataFrame(
    {"age": RNG.normal(50.0, 10.0, N), "ward": RNG.choice(["east", "north", "south", "west"], N)}
)
Y = np.where((TABLE["age"] > 50) ^ TABLE["ward"].isin(["north", "west"]), "ill", "well")
TABLE.loc[3, "ward"], TABLE.loc[7, "age"] = None, np.nan
LIGHT = {"n_estimators": 5, "min_child_samples": 3, "cat_smooth": 1, "min_data_per_group": 1}
SPECS: dict[str, Any] = {
    "lightgbm": {
        "class": "lightgbm.sklearn:LGBMClassifier",
        "params": {**LIGHT, "categorical_feature": ["ward"]},
    },
    "xgboost": {
        "class": "xgboost.sklearn:XGBClassifier",
        "params": {"n_estimators": 5, "enable_categorical": True},
    },
    "catboost": {
        "class": "catboost.core:CatBoostClassifier",
        "params": {"iterations": 20, "cat_features": ["ward"], "learning_rate": 0.5},
    },
}
EACH = [pytest.param(name, marks=marks(name)) for name in SPECS]


def make(name: str, **params: Any) -> Any:
    """Return an estimator of a library."""
    trust(name)
    return build({**SPECS[name], "params": {**SPECS[name]["params"], **params}})


@pytest.mark.parametrize("name", EACH)
def test_a_model_is_stored_read_and_verified_and_takes_any_row(name: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"resampling": "kfold:3", "refit": "best", "execution": SERIAL}
    result = evaluate(TABLE, Y, out=tmp_path / "scores", learner=make(name), **options)
    new = TABLE.copy()
    new.loc[0, "ward"], new.loc[1, "ward"], new.loc[2, "age"] = "moon", None, np.nan
    assert np.array_equal(load_scores(tmp_path / "scores").predict(new), result.predict(new))
    study = Study.of(learner=make(name), k=3, n_splits=3, certify="holdout")
    certified = run(study, TABLE, Y, tmp_path / "run", SERIAL)
    assert np.array_equal(load_run(tmp_path / "run").predict(new), certified.predict(new))
    assert verify(tmp_path / "run", refit=1.0, execution=SERIAL).differences == []


@pytest.mark.filterwarnings("ignore:categorical_feature keyword")
def test_lightgbm_is_given_what_it_makes_of_a_frame() -> None:
    from lightgbm import LGBMClassifier

    frame = TABLE.astype({"ward": "category"})
    silent = {"verbose": -1, "n_jobs": 1, "deterministic": True, "force_col_wise": True}
    theirs = LGBMClassifier(**LIGHT, **silent).fit(frame, Y)
    options: dict[str, Any] = {"resampling": "kfold:3", "refit": "best", "execution": SERIAL}
    ours = evaluate(TABLE, Y, learner=make("lightgbm"), **options)
    assert np.array_equal(ours.predict(TABLE), theirs.predict(frame))


def test_all_categories_are_those_that_are_named() -> None:
    options: dict[str, Any] = {"resampling": "kfold:4", "execution": SERIAL, "measure": "log_loss"}
    every = evaluate(TABLE, Y, learner=make("lightgbm", categorical_feature="auto"), **options)
    named = evaluate(TABLE, Y, learner=make("lightgbm"), **options)
    figures = (result.of_splits(result.entries[0], result.scores[0]) for result in (every, named))
    assert np.array_equal(*figures)


@pytest.mark.parametrize("names", [["age"], ["age", "ward"]])
def test_the_columns_are_those_with_categories(names: list[str]) -> None:
    why = "categorical_feature does not name the columns that hold categories: it differs in age"
    with pytest.raises(InputError, match=why):
        evaluate(TABLE, Y, learner=make("lightgbm", categorical_feature=names), execution=SERIAL)


def test_positions_are_of_encoded_columns_and_xgboost_needs_no_categories() -> None:
    schema = Schema.of_numbers(["age", "dose"])
    light = {"class": "lightgbm.sklearn:LGBMClassifier", "params": {"categorical_feature": [0]}}
    assert find_columns(light, schema) is None
    assert find_columns(SPECS["xgboost"], schema) is None


def test_a_pipeline_by_name_that_ends_with_a_booster_is_scored() -> None:
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    columns = ColumnTransformer([("words", words, ["ward"])], remainder="passthrough")
    last = build({"class": "lightgbm.sklearn:LGBMClassifier", "params": LIGHT})
    result = evaluate(TABLE, Y, learner=make_pipeline(columns, last), resampling="kfold:3", execution=SERIAL)
    assert np.all(np.isfinite(result.of_splits(result.entries[0], result.scores[0])))
