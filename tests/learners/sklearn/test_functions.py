"""Functions as parameters, by name from a closed list; slices and infinity."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.feature_selection import SelectKBest, SelectPercentile, chi2, f_classif, mutual_info_classif
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ckcv_ray import Execution, Study, evaluate
from ckcv_ray.core.schedule import Stage
from ckcv_ray.errors import InputError
from ckcv_ray.learners.sklearn import store
from ckcv_ray.learners.sklearn.spec import FUNCTIONS, as_spec, build, make_value
from ckcv_ray.runs.load import load_scores
from ckcv_ray.study.problem import OUTER

SERIAL = Execution("serial")
X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[::4, :6], Y[::4]
ESTIMATORS = {
    "default score": make_pipeline(SelectKBest(k=3), GaussianNB()),
    "chi2": make_pipeline(SelectPercentile(chi2, percentile=50), GaussianNB()),
    "mutual information": make_pipeline(SelectKBest(mutual_info_classif, k=2), GaussianNB()),
    "logarithm": make_pipeline(FunctionTransformer(np.log1p, inverse_func=np.expm1), GaussianNB()),
    "slice": make_pipeline(ColumnTransformer([("first", StandardScaler(), slice(0, 3))]), GaussianNB()),
    "infinity": make_pipeline(StandardScaler(), LogisticRegression(C=np.inf, max_iter=1000)),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_study_holds_it_and_makes_it_again(name: str) -> None:
    spec = as_spec("estimator", ESTIMATORS[name])
    text = json.dumps(spec, allow_nan=False)
    assert as_spec("estimator", build(json.loads(text))) == spec
    study = Study.without_certification(learner=ESTIMATORS[name])
    assert Study.from_json(json.loads(json.dumps(study.to_json()))) == study


@pytest.mark.parametrize("name", ESTIMATORS)
def test_it_is_scored_stored_and_predicts_as_scikit_learn(name: str, tmp_path: Path) -> None:
    out = tmp_path / "scores"
    options = {"resampling": "kfold:3", "refit": "best", "save_predictions": True, "execution": SERIAL}
    result = evaluate(X, Y, out=out, learner=ESTIMATORS[name], **options)
    loaded = load_scores(out)
    assert np.array_equal(loaded.predict(X), result.predict(X))
    if name != "mutual information":  # whose noise has a seed here
        splits = [result.problem.rows(Stage.SELECT, OUTER, i) for i in range(3)]
        theirs = cross_val_predict(ESTIMATORS[name], X, Y, cv=splits)
        assert np.mean(theirs != Y) == pytest.approx(
            result.figures(result.entries[0], result.scores[0]).pooled
        )


def test_what_is_random_is_the_same_in_every_state_of_the_global_generator() -> None:
    scores = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002
        state = np.random.get_state()[1].tolist()  # noqa: NPY002
        result = evaluate(
            np.round(X),
            Y,
            learner=make_pipeline(SelectKBest(mutual_info_classif, k=1), GaussianNB()),
            measure="log_loss",
            execution=SERIAL,
        )
        assert np.random.get_state()[1].tolist() == state  # noqa: NPY002
        scores.append(result.of_splits(result.entries[0], result.scores[0]))
    assert np.array_equal(*scores)


@pytest.mark.parametrize(
    "value",
    [
        {"function": "os:system"},
        {"function": "numpy:save"},
        {"function": "numpy:load"},
        {"function": "builtins:eval"},
        {"function": "sklearn.feature_selection:SelectKBest"},
        {"function": "numpy:log1p", "more": 1},
        {"function": ["numpy:log1p"]},
        {"function": None},
    ],
)
def test_a_study_names_no_other_function(value: Any) -> None:
    transformer = {"class": "sklearn.preprocessing:FunctionTransformer", "params": {"func": value}}
    steps = [["one", transformer], ["model", {"class": "sklearn.naive_bayes:GaussianNB"}]]
    with pytest.raises(InputError, match="function"):
        build({"class": "sklearn.pipeline:Pipeline", "params": {"steps": steps}})
    with pytest.raises(InputError, match="function"):
        make_value(value)


@pytest.mark.parametrize("function", [np.save, eval, partial(f_classif), lambda rows: rows])
def test_other_functions_are_refused_as_objects(function: Any) -> None:
    with pytest.raises(InputError, match="cannot be part of a study"):
        as_spec("estimator", make_pipeline(FunctionTransformer(function), GaussianNB()))


@pytest.mark.parametrize("params", [{"kw_args": {"out": 1}}, {"func": None, "inv_kw_args": {"a": 2}}])
def test_a_function_gets_no_arguments(params: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="kw_args"):
        as_spec("estimator", make_pipeline(FunctionTransformer(**params), GaussianNB()))


def test_a_parameter_that_takes_no_function_refuses_one() -> None:
    spec = {"class": "sklearn.naive_bayes:GaussianNB", "params": {"priors": {"function": "numpy:log1p"}}}
    with pytest.raises(InputError, match="takes no function"):
        build(spec)


@pytest.mark.parametrize("ends", [[0, 3], [0, 3, 0], [0, 3, 1.5], [0, True, None], "0:3", [0, [1], None]])
def test_a_slice_has_three_plain_ends(ends: Any) -> None:
    scaler = {"class": "sklearn.preprocessing:StandardScaler"}
    columns = {
        "class": "sklearn.compose:ColumnTransformer",
        "params": {"transformers": [["a", scaler, {"slice": ends}]]},
    }
    with pytest.raises(InputError, match="slice"):
        build(columns)


def test_ends_of_a_slice_may_be_numbers_of_numpy() -> None:
    columns = slice(np.int64(0), np.int64(3))
    given = make_pipeline(ColumnTransformer([("first", StandardScaler(), columns)]), GaussianNB())
    assert as_spec("estimator", given) == as_spec("estimator", ESTIMATORS["slice"])


def test_infinity_in_the_grid_of_a_search_is_a_number() -> None:
    inner = LogisticRegression()
    made = build(as_spec("estimator", GridSearchCV(inner, {"C": [1e-6, np.inf]})))
    assert made.param_grid == {"C": [1e-6, np.inf]}
    several = build(as_spec("estimator", GridSearchCV(inner, [{"C": [1.0]}, {"C": [np.inf]}])))
    assert several.param_grid == [{"C": [1.0]}, {"C": [np.inf]}]


def test_a_grid_takes_no_function() -> None:
    grid = GridSearchCV(ESTIMATORS["default score"], {"selectkbest__score_func": [f_classif, chi2]})
    with pytest.raises(InputError, match="selectkbest__score_func of a grid takes no function"):
        as_spec("estimator", grid)


@pytest.mark.parametrize("name", ["inf", "-inf"])
def test_a_name_of_a_step_is_text(name: str) -> None:
    made = build(as_spec("estimator", Pipeline([(name, StandardScaler()), ("model", GaussianNB())])))
    assert [step for step, _ in made.steps] == [name, "model"]
    skipped = build(as_spec("estimator", Pipeline([(name, "passthrough"), ("model", GaussianNB())])))
    assert list(skipped.named_steps) == [name, "model"]


def test_a_pair_of_infinities_is_no_step() -> None:
    given = make_pipeline(IsotonicRegression(y_min=-np.inf, y_max=np.inf))
    assert build(as_spec("estimator", given))[-1].get_params()["y_min"] == -np.inf
    spec = {"class": "sklearn.naive_bayes:GaussianNB", "params": {"priors": ["-inf", "inf"]}}
    assert build(spec).priors == [-np.inf, np.inf]


def test_a_model_file_holds_no_other_function() -> None:
    content = store.pack(make_pipeline(FunctionTransformer(np.log1p), GaussianNB()).fit(X, Y))
    assert store.unpack(content, X.shape[1]) is not None
    other = store.pack(make_pipeline(FunctionTransformer(np.isnan), GaussianNB()).fit(X, Y))
    with pytest.raises(ValueError, match=r"function numpy\.isnan, which is not known to be harmless"):
        store.unpack(other, X.shape[1])


def test_the_list_names_functions_of_numbers_alone() -> None:
    for name in FUNCTIONS:
        found = make_value({"function": name})
        if name.startswith("numpy:"):
            assert isinstance(found, np.ufunc)
            assert (found.nin, found.nout) == (1, 1)


def test_infinity_on_the_command_line_and_in_a_search() -> None:
    study = Study.without_certification(learner="linear", param="C=1,inf")
    assert {setting["C"] for path in study.learner.space.paths for setting in path} == {1, "inf"}
    options = {"param": {"C": [1.0, np.inf]}, "resampling": "kfold:3", "execution": SERIAL}
    result = evaluate(X, Y, learner="linear", **options)
    assert {entry.settings[0]["C"] for entry in result.entries} == {1.0, "inf"}
    assert json.dumps(result.to_json(), allow_nan=False)
