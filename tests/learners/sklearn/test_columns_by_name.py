"""Columns selected by name: the estimator is given the columns of the table as they are."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from ckcv_ray import Execution, InputError, Study, Task, evaluate, load_scores, run
from ckcv_ray.core.schedule import Stage
from ckcv_ray.learners.sklearn.learner import AnyEstimator, find_columns
from ckcv_ray.learners.sklearn.paths import fit_model
from ckcv_ray.learners.sklearn.spec import as_spec
from ckcv_ray.study.problem import OUTER
from ckcv_ray.tables.columns import Column, ColumnKind, Schema

SERIAL = Execution("serial")
RNG = np.random.default_rng(0)
N = 90
TABLE = pd.DataFrame(
    {
        "age": RNG.normal(50.0, 10.0, N),
        "dose": RNG.normal(size=N),
        "ward": RNG.choice(["east", "north", "west"], N),
        "inf": RNG.choice(["no", "yes"], N),
    }
)
Y = np.where((TABLE["age"] > 50) ^ (TABLE["ward"] == "west"), "ill", "well")
GAPS = TABLE.copy()
GAPS.loc[[3, 40], "age"] = np.nan
GAPS.loc[[5, 41], "ward"] = None
ONE_HOT = OneHotEncoder(handle_unknown="ignore")
ORDINAL = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
SCALED = StandardScaler()
FILLED = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
NUMBERS, CATEGORIES = ["age", "dose"], ["ward", "inf"]


def select(numbers: Any = SCALED, categories: Any = ONE_HOT) -> ColumnTransformer:
    return ColumnTransformer([("num", numbers, NUMBERS), ("cat", categories, CATEGORIES)])


def logistic(*steps: Any) -> Pipeline:
    return make_pipeline(*steps, LogisticRegression())


ALL, SOME = select(FILLED), ColumnTransformer([("num", FILLED, NUMBERS)], remainder=ONE_HOT)
IS_NUMBER = make_column_selector(dtype_include="number")
IS_WORD = make_column_selector(dtype_exclude=[np.number, "datetime"])
SELECTIONS: dict[str, Any] = {
    "linear": logistic(ALL),
    "forest": make_pipeline(select(FILLED, ORDINAL), RandomForestClassifier(3, random_state=0)),
    "remainder": logistic(SOME),
    "nested": logistic(ColumnTransformer([("all", ALL, NUMBERS + CATEGORIES)])),
    "by kind": logistic(ColumnTransformer([("num", FILLED, IS_NUMBER), ("cat", ONE_HOT, IS_WORD)])),
    "two branches": logistic(FeatureUnion([("one", ALL), ("two", SOME)])),
    "calibrated": CalibratedClassifierCV(make_pipeline(ALL, GaussianNB()), cv=2),
    "after nothing": Pipeline([("on", "passthrough"), ("it", ALL), ("model", GaussianNB())]),
}


def pooled_error(result: Any) -> float:
    return float(result.figures(result.entries[0], result.scores[0]).pooled)


@pytest.mark.parametrize("name", SELECTIONS)
def test_it_is_scored_stored_and_predicts_as_scikit_learn(name: str, tmp_path: Path) -> None:
    learner = SELECTIONS[name]
    options: dict[str, Any] = {"resampling": "kfold:3", "refit": "best", "execution": SERIAL}
    result = evaluate(GAPS, Y, out=tmp_path / "scores", learner=learner, **options)
    splits = [result.problem.rows(Stage.SELECT, OUTER, i) for i in range(3)]
    assert pooled_error(result) == pytest.approx(np.mean(cross_val_predict(learner, GAPS, Y, cv=splits) != Y))
    assert np.array_equal(result.predict(GAPS), learner.fit(GAPS, Y).predict(GAPS))
    assert np.array_equal(load_scores(tmp_path / "scores").predict(GAPS), result.predict(GAPS))


def test_a_new_row_may_have_gaps_and_categories_where_no_row_had() -> None:
    result = evaluate(
        TABLE, Y, learner=logistic(select()), resampling="kfold:3", refit="best", execution=SERIAL
    )
    new = TABLE.head(2).copy()
    new["age"], new["ward"] = [np.nan, np.median(TABLE["age"])], ["south", None]
    new["dose"] = new["dose"].iloc[0]
    new["inf"] = "no"
    first, second = result.predict(new)
    assert first == second  # the median stands for a gap, and no column of ones for what was never seen


def test_gaps_that_the_estimator_does_not_take_are_named() -> None:
    spec = find_columns(as_spec("estimator", choose(("num", "passthrough", ["age"]))), Schema(COLUMNS))
    model, _ = fit_model(AnyEstimator(estimator=spec), Task.of(TABLE[NUMBERS], Y), np.arange(N), {})
    rows = np.array([[np.nan, 0.0]])
    for predict in (model.predict, lambda X: model.predict_outputs(X, frozenset())):
        with pytest.raises(InputError, match=r"rows have gaps, which the estimator does not take .*: fill"):
            predict(rows)
        with pytest.raises(ValueError, match="infinity"):
            predict(np.array([[np.inf, 0.0]]))


def choose(*parts: Any) -> Pipeline:
    return make_pipeline(ColumnTransformer([*parts]), GaussianNB())


AGE, SCALED_AGE, WARD = ("a", "drop", ["age"]), ("a", SCALED, ["age"]), ["ward"]
FREQUENT, NAMES = SimpleImputer(strategy="most_frequent"), choose(("b", "drop", ["age"]))
UNENCODED = r"columntransformer\.a: the categories of ward would be"
REFUSED = {
    "no such column": (
        choose(("a", SCALED, ["agee"])),
        r"columntransformer\.a: there is no column 'agee': the columns are age, dose, ward, inf; did",
    ),
    "to a scaler": (choose(("a", SCALED, ["age", "ward"])), UNENCODED + " taken for quantities: give them"),
    "for a later step to encode": (
        make_pipeline(ColumnTransformer([("a", "passthrough", WARD)]), ONE_HOT, GaussianNB()),
        UNENCODED,
    ),
    "by name, after a step": (
        make_pipeline(ColumnTransformer([SCALED_AGE]), *NAMES.named_steps.values()),
        "columns are selected by name where others than those of the table may be given",
    ),
    "nothing for what was never seen": (
        choose(("a", OneHotEncoder(), WARD)),
        'may be new in rows that are scored: give OneHotEncoder handle_unknown="ignore"',
    ),
    "by a pattern": (choose(("a", "drop", make_column_selector(pattern="a+"))), "name the columns in a list"),
    "one branch without encoding": (
        VotingClassifier([("one", make_pipeline(select(), GaussianNB())), ("two", GaussianNB())]),
        r"\.two: the categories of ward, inf would be",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_selected_is_refused_before_the_fits(name: str) -> None:
    learner, why = REFUSED[name]
    with pytest.raises(InputError, match=why):
        run(Study.of(learner=learner, k=3), TABLE, Y, execution=SERIAL)


def test_a_scale_would_have_no_effect() -> None:
    with pytest.raises(InputError, match="has no effect: the estimator selects columns by name"):
        evaluate(GAPS, Y, learner=SELECTIONS["linear"], execution=SERIAL, scale="standard")


COLUMNS = (
    Column("age"),
    Column("when", ColumnKind.DATE),
    Column("ward", ColumnKind.CATEGORY, ("east", "west")),
    Column("inf"),
)


POSITIONS = [
    ("inf", 3),
    (["inf", "age"], [3, 0]),
    (["age", -1], [0, 3]),
    (make_column_selector(dtype_include=["datetime", object]), [1, 2]),
    (make_column_selector(dtype_exclude=["number", "object", np.datetime64]), []),
    (make_column_selector(), [0, 1, 2, 3]),
]


@pytest.mark.parametrize(("selection", "positions"), POSITIONS)
def test_positions_are_those_of_the_names(selection: Any, positions: Any) -> None:
    found = find_columns(as_spec("estimator", choose(("a", "drop", selection))), Schema(COLUMNS))
    assert found["params"]["steps"][0][1]["params"]["transformers"][0][2] == positions
