"""XGBoost, LightGBM and CatBoost: exact paths, their own formats, trust and silence."""

from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest
from boosting import LIBRARIES, NAMES
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import KFold, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ckcv_ray import Execution, InputError, Study, evaluate, load_run, run, trust, verify
from ckcv_ray.errors import LackingError
from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.learners.sklearn import spec, store
from ckcv_ray.learners.sklearn.learner import AnyEstimator
from ckcv_ray.learners.sklearn.paths import LibraryRounds, Plain
from ckcv_ray.learners.sklearn.spec import LIBRARIES as TABLE

SERIAL = Execution("serial")
QUIET: dict[str, dict[str, Any]] = {
    "lightgbm": {"n_jobs": 1, "verbose": -1, "deterministic": True, "force_col_wise": True},
    "xgboost": {"n_jobs": 1, "verbosity": 0},
    "catboost": {"thread_count": 1, "logging_level": "Silent", "allow_writing_files": False},
}
SMALL: dict[str, dict[str, Any]] = {
    "lightgbm": {"learning_rate": 0.2, "min_child_samples": 5, "n_estimators": (2, 6), "num_leaves": (3, 7)},
    "xgboost": {"learning_rate": 0.2, "max_depth": (1, 3), "n_estimators": (2, 6)},
    "catboost": {"learning_rate": 0.2, "depth": (1, 3), "iterations": (2, 6)},
}


def theirs(name: str, number: int = 0, **params: Any) -> Any:
    """An estimator of a library, as its users make it."""
    trust(name)
    module, _, kind = LEARNERS[f"{name}_regressor" if number else name].spec["class"].partition(":")
    return getattr(import_module(module), kind)(**params)


def small_study(name: str) -> Study:
    return Study.of(learner=name, param=SMALL[name], k=(3, 4), n_splits=3)


UNSHARED: dict[str, list[dict[str, Any]]] = {
    "lightgbm": [{"boosting_type": "dart"}, {"early_stopping_round": 3}, {"extra_trees": True}],
    "xgboost": [{"booster": "dart"}, {"early_stopping_rounds": 3}, {"eta": 0.3}],
    "catboost": [{}, {"learning_rate": 0.1, "od_wait": 3}, {"learning_rate": 0.1, "langevin": True}],
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_what_could_differ_has_no_path(name: str) -> None:
    rounds = {TABLE[name].rounds: (2, 5)}
    for params in UNSHARED[name]:
        assert AnyEstimator(param=rounds, estimator=theirs(name, **params)).sharing is Plain
    shared = AnyEstimator(param=rounds, estimator=theirs(name, learning_rate=0.3))
    assert issubclass(shared.sharing, LibraryRounds)


STOPPING: dict[str, dict[str, Any]] = {
    "lightgbm": {"early_stopping_round": 2, "n_estimators": 300, "learning_rate": 0.3},
    "xgboost": {"early_stopping_rounds": 2, "n_estimators": 300, "missing": float("nan")},
    "catboost": {"early_stopping_rounds": 2, "iterations": 300, "learning_rate": 0.3},
}


@pytest.mark.parametrize("kind", ["a short name", "stopping early", "its own categories", "in a pipeline"])
@pytest.mark.parametrize("name", LIBRARIES)
def test_a_run_is_silent_stored_read_and_verified(name, kind, tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    new = FRAME.copy()
    new.loc[0, "ward"], new.loc[1, "ward"], new.loc[2, "age"] = "moon", None, np.nan
    if kind == "a short name":
        study = small_study(name)
    else:
        alone = theirs(name, **(OWN if kind == "its own categories" else STOPPING)[name])
        learner = make_pipeline(StandardScaler(), alone) if kind == "in a pipeline" else alone
        study = Study.of(learner=learner, k=3, n_splits=3)
    result = run(study, FRAME, Y, out="run", execution=SERIAL)
    assert result.execution["failures"] == []
    if kind == "stopping early":
        assert all(1 <= member.model.model.estimator.n_rounds < 300 for member in result.ensemble.members)
    checked = verify("run", rerun=True, execution=SERIAL)
    assert checked.differences == []
    assert f"{name}, whose code fits and reads models (--trust)" in checked.trusted
    assert np.array_equal(load_run("run").predict(new), result.predict(new))
    assert {path.name for path in tmp_path.iterdir()} == {"run"}  # no file of theirs
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_folder_does_not_decide_what_is_imported_or_parsed(name, tmp_path, ckcv, monkeypatch) -> None:
    X, y = load_iris(return_X_y=True)
    run(small_study(name), X, y, out=tmp_path / "run", execution=SERIAL)
    monkeypatch.setattr(spec, "_trusted", {"sklearn"})
    monkeypatch.setattr(store, "unpack", lambda *_: pytest.fail("a model was read"))
    with pytest.raises(LackingError, match=f"ckcv --trust {name}"):
        load_run(tmp_path / "run")
    new = tmp_path / "new.csv"
    new.write_text("x0,x1,x2,x3\n1,2,3,4\n")
    for words in (["status"], ["report"], ["predict", new], ["verify"]):
        code, shown, messages = ckcv(words[0], tmp_path / "run", *words[1:])
        assert code != 0
        assert f"ckcv --trust {name}" in shown + messages


def test_naming_one_of_several_learners_trusts_it_and_a_file_does_not(monkeypatch: Any) -> None:
    monkeypatch.setattr(spec, "_trusted", {"sklearn"})
    content = Study.of(learner="tree,lightgbm", k=3).to_json()
    assert Study.from_json(content)
    monkeypatch.setattr(spec, "_trusted", {"sklearn"})
    with pytest.raises(InputError, match="ckcv --trust lightgbm"):
        Study.from_json(content)


@pytest.mark.parametrize("case", ["classes in a pipeline", "numbers by a short name"])
@pytest.mark.parametrize("name", LIBRARIES)
def test_they_are_scored_as_by_scikit_learn(name: str, case: str) -> None:
    numbers, params = case.startswith("numbers"), {TABLE[name].rounds: 9, "random_state": 1}
    X, y = load_diabetes(return_X_y=True) if numbers else load_iris(return_X_y=True)
    measure, scoring = ("rmse", "neg_root_mean_squared_error") if numbers else ("log_loss", "neg_log_loss")
    folds = (KFold if numbers else StratifiedKFold)(3, shuffle=True, random_state=0)
    alone = theirs(name, int(numbers), **QUIET[name], **params)
    estimator = alone if numbers else make_pipeline(StandardScaler(), alone)
    asked = {"learner": f"{name}_regressor", "param": params} if numbers else {"learner": estimator}
    expected = cross_validate(estimator, X, y, cv=folds, scoring=scoring)["test_score"]
    ours = evaluate(X, y, resampling=folds, measure=measure, execution=SERIAL, **asked)
    np.testing.assert_allclose(ours.of_splits(ours.entries[0], ours.scores[0]), -expected, rtol=1e-6)


def test_keywords_that_no_signature_has_are_kept_and_tried() -> None:
    X, y = load_iris(return_X_y=True)
    study = Study.of(
        learner=theirs("lightgbm", verbose=1, max_bin=15), k=3, n_splits=2, param={"bagging_freq": (0, 1)}
    )
    assert study.learner.spec["params"] == {"max_bin": 15, "verbose": 1}
    assert run(study, X, y, execution=SERIAL).execution["failures"] == []
    by_name = {"learner": "lightgbm:LGBMClassifier", "k": 3}
    assert Study.of(**by_name, param={"max_bin": (15, 63)}).learner.all_values == {"max_bin": (15, 63)}
    for name, value in {"max_dept": 1, "forcedsplits_filename": "/etc/passwd", "machines": "there"}.items():
        with pytest.raises(InputError, match="did you mean"):
            Study.of(**by_name, param={name: (value,)})
    for name in ("forcedsplits_filename", "machines"):
        with pytest.raises(InputError, match="names a file or a host: leave it out"):
            Study.of(learner=theirs("lightgbm", **{name: "/etc/passwd"}), k=3)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_installed_is_said_in_one_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trust(name)
    monkeypatch.setattr("ckcv_ray.learners.sklearn.learner.find_spec", lambda package: None)
    with pytest.raises(InputError, match=rf'^{name} is not installed: pip install "\.\[boosting\]"'):
        Study.of(learner=name)


# Categories of a table given as such, if an estimator asks for them


RNG = np.random.default_rng(0)
N = 120
FRAME = pd.DataFrame(
    {"age": RNG.normal(50.0, 10.0, N), "ward": RNG.choice(["east", "north", "south", "west"], N)}
)
Y = np.where((FRAME["age"] > 50) ^ FRAME["ward"].isin(["north", "west"]), "ill", "well")
FRAME.loc[3, "ward"], FRAME.loc[7, "age"] = None, np.nan
LIGHT = {"n_estimators": 5, "min_child_samples": 3, "cat_smooth": 1, "min_data_per_group": 1}
OWN: dict[str, dict[str, Any]] = {
    "lightgbm": {**LIGHT, "categorical_feature": ["ward"]},
    "xgboost": {"n_estimators": 5, "enable_categorical": True},
    "catboost": {"iterations": 20, "cat_features": ["ward"], "learning_rate": 0.5},
}


@pytest.mark.filterwarnings("ignore:categorical_feature keyword")
@pytest.mark.parametrize("named", ["auto", ["ward"]])
def test_lightgbm_is_given_what_it_makes_of_a_frame(named: Any) -> None:
    frame = FRAME.astype({"ward": "category"})
    alone = theirs("lightgbm", **LIGHT, **QUIET["lightgbm"]).fit(frame, Y)
    options: dict[str, Any] = {"resampling": "kfold:3", "refit": "best", "execution": SERIAL}
    ours = evaluate(FRAME, Y, learner=theirs("lightgbm", **LIGHT, categorical_feature=named), **options)
    assert np.array_equal(ours.predict(FRAME), alone.predict(frame))
    wrong = theirs("lightgbm", **LIGHT, categorical_feature=["age", "ward"])
    why = "categorical_feature does not name the columns that hold categories: it differs in age"
    with pytest.raises(InputError, match=why):
        evaluate(FRAME, Y, learner=wrong, execution=SERIAL)
