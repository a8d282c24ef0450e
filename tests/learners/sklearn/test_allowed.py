"""What a study may hold of scikit-learn: the table is that of the installed version, nothing else passes."""

import inspect
import json
import os
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC

from ckcv_ray import Study
from ckcv_ray.errors import InputError
from ckcv_ray.learners.sklearn.spec import ESTIMATOR, STEPS, as_spec, build, check_estimator, name_type, table
from ckcv_ray.learners.sklearn.store import pack, unpack
from jobs import estimators

LOGISTIC = {"class": "sklearn.linear_model:LogisticRegression"}
X = np.random.default_rng(0).normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(np.int32)


def quietly(make: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


@pytest.mark.skipif(table().version != sklearn.__version__, reason="it is of another scikit-learn")
def test_the_table_is_that_of_every_class_and_parameter() -> None:
    """So a new version of scikit-learn opens nothing before somebody has looked."""
    stored = json.loads(estimators.FILE.read_text())
    made = estimators.make_table()
    assert {name: stored[name] for name in made} == made


@pytest.mark.skipif(table().version != sklearn.__version__, reason="it is of another scikit-learn")
@pytest.mark.parametrize("path", ["sklearn.svm:SVC", "sklearn.ensemble:AdaBoostClassifier"])
def test_what_fits_hold_is_in_the_table(path: str) -> None:
    types, loaders = estimators.list_types(estimators.list_estimators()[path])
    own = {name_type(one) for one in (path, *table().parts.get(path, ()))}
    assert types <= own | table().types
    assert loaders <= table().loaders


def test_no_parameter_that_is_a_path_a_cache_or_text_to_evaluate_takes_a_value() -> None:
    for path, parameters in table().parameters.items():
        for name, values in parameters.items():
            if name in estimators.KEPT:
                assert values is None, f"{path} {name}"
            else:
                assert not estimators.FORBIDDEN & set(values or ()), f"{path} {name}"


@pytest.mark.parametrize("path", sorted(table().parameters))
def test_making_a_listed_class_only_stores_its_parameters(path: str) -> None:
    """As scikit-learn asks of its estimators, so that making one from a folder does nothing."""
    parameters, inside = table().parameters[path], {"class": "sklearn.naive_bayes:GaussianNB"}
    kind = estimators.list_estimators().get(path)
    if kind is None:
        return  # another version of scikit-learn has no such class
    needed = [
        name
        for name, one in inspect.signature(kind).parameters.items()
        if one.default is inspect.Parameter.empty and name in parameters
    ]
    params: dict[str, Any] = {}
    for name in needed:
        values = parameters[name] or ()
        params[name] = [["one", inside]] if STEPS in values else inside if ESTIMATOR in values else []
    made = quietly(lambda: build({"class": path, "params": params}))  # some are deprecated
    assert type(made) is kind
    assert {name for name in vars(made) if name.endswith("_") and not name.startswith("_")} == set()


class Cache:
    def cache(self, function: Any) -> Any:
        return function


REFUSED: dict[str, Any] = {
    "a cache in a folder": Pipeline([("m", LogisticRegression())], memory="somewhere"),
    "a cache": Pipeline([("m", LogisticRegression())], memory=Cache()),
    "a function": make_pipeline(FunctionTransformer(os.system), LogisticRegression()),
    "text to evaluate": GridSearchCV(LogisticRegression(), {"C": [1.0]}, pre_dispatch="exit()"),
    "a function that scores": GridSearchCV(LogisticRegression(), {"C": [1.0]}, scoring=max),
    "a cache in a grid": GridSearchCV(make_pipeline(LogisticRegression()), {"memory": ["somewhere"]}),
    "a word of another": LogisticRegression(solver="rbf"),
    "columns as a kernel": SVC(kernel="precomputed"),
    "another optimiser": MLPClassifier(solver="evolution"),
    "something deep": partial(BaggingClassifier, BaggingClassifier(SVC(kernel="__import__('os')")))(),
    "a class that is not listed": {"class": "sklearn.utils._testing:MinimalClassifier"},
    "text": {"class": "sklearn.feature_extraction.text:CountVectorizer", "params": {"input": "filename"}},
    "an unknown parameter": {**LOGISTIC, "params": {"fit": 1}},
    "a mapping": {**LOGISTIC, "params": {"class_weight": {"a": 1}}},
    "no step": {"class": "sklearn.pipeline:Pipeline", "params": {"steps": ["memory"]}},
    "a step of its own kind": {
        "class": "sklearn.pipeline:Pipeline",
        "params": {"steps": [["a", "os.system"]]},
    },
    "an estimator for a number": {**LOGISTIC, "params": {"C": LOGISTIC}},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_be_a_path_or_code_is_no_part_of_a_study(name: str) -> None:
    with pytest.raises(InputError):
        as_spec("estimator", REFUSED[name])


def test_depth_is_limited() -> None:
    spec: Any = LOGISTIC
    for _ in range(100):
        spec = {"class": "sklearn.ensemble:BaggingClassifier", "params": {"estimator": spec}}
    with pytest.raises(InputError, match="nested too deeply"):
        check_estimator("estimator", spec)


PIPELINE = make_pipeline(StandardScaler(), BaggingClassifier(LogisticRegression()))
SPACES: dict[str, tuple[Any, str]] = {
    "memory": (["somewhere"], "keeps the default"),
    "standardscaler": (["os.system"], "expected drop or passthrough"),
    "baggingclassifier__estimator__solver": (["exit()"], "cannot be part of a study"),
    "baggingclassifier__estimator__C": (["exit()"], "cannot be part of a study"),
    "steps": ([["passthrough"]], "not a step"),
}


@pytest.mark.parametrize("name", SPACES)
def test_a_search_space_sets_what_a_study_may_hold_and_nothing_else(name: str) -> None:
    values, messages = SPACES[name]
    with pytest.raises(InputError, match=messages):
        Study.paper(learner=PIPELINE, param={name: values})


def test_what_people_use_is_allowed() -> None:
    grid = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1, 10], "svc__kernel": ["rbf"]})
    for estimator in (PIPELINE, grid, MLPClassifier((5, 5)), BaggingClassifier(SVC(gamma="auto"))):
        spec = as_spec("estimator", estimator)
        assert as_spec("estimator", build(spec)) == spec
    Study.paper(learner=PIPELINE, param={"standardscaler": ["passthrough"], "n_estimators": (2, 3)})


def test_a_model_of_another_class_than_the_study_s_is_refused_before_it_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = pack(LogisticRegression().fit(X, Y))
    assert unpack(content, 2, [LOGISTIC["class"]]).classes_.tolist() == [0, 1]
    monkeypatch.setattr(BaseEstimator, "__setstate__", lambda self, state: pytest.fail("it was built"))
    with pytest.raises(ValueError, match=r"_logistic\.LogisticRegression, a type that is not known"):
        unpack(content, 2, ["sklearn.ensemble:RandomForestClassifier"])


def test_the_parts_of_a_class_are_those_of_its_fits() -> None:
    content = pack(RandomForestClassifier(2, random_state=0).fit(X, Y))
    unpack(content, 2, ["sklearn.ensemble:RandomForestClassifier"])
    with pytest.raises(ValueError, match="not known to be harmless"):
        unpack(content, 2, ["sklearn.tree:DecisionTreeClassifier"])


@pytest.mark.parametrize("algorithm", ["auto", "ball_tree", "kd_tree", "brute"])
def test_neighbours_are_read_without_a_fit(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = KNeighborsClassifier(3, algorithm=algorithm, metric="minkowski", p=3).fit(X, Y)
    content, before = pack(fitted), fitted.predict_proba(X + 0.1)
    monkeypatch.setattr(KNeighborsClassifier, "fit", lambda *args: pytest.fail("it was fitted"))
    assert np.array_equal(unpack(content, 2).predict_proba(X + 0.1), before)


def shorten(machine: SVC) -> None:
    machine._dual_coef_ = machine._dual_coef_[:, :1].copy()


def add_columns(boosting: GradientBoostingClassifier) -> None:
    boosting.estimators_ = np.repeat(boosting.estimators_, 3, axis=1)


def put(**values: Any) -> Callable[[Any], None]:
    return lambda estimator: vars(estimator).update(values)


COMPILED: dict[str, tuple[Any, Callable[[Any], None]]] = {
    "too few coefficients": (SVC(), shorten),
    "another kind of machine": (SVC(), put(_impl="nu_svr")),
    "columns as a kernel": (SVC(), put(kernel="precomputed")),
    "more trees than classes": (GradientBoostingClassifier(n_estimators=2), add_columns),
    "neighbours of no class": (KNeighborsClassifier(algorithm="brute"), put(_y=np.full(40, 10**6))),
    "more neighbours than rows": (KNeighborsClassifier(), put(n_samples_fit_=10**9)),
    "a metric that is called": (KNeighborsClassifier(), put(effective_metric_params_={"func": [1]})),
    "a billion threads": (RandomForestClassifier(2), put(n_jobs=10**9)),
}


@pytest.mark.parametrize("name", COMPILED)
def test_what_compiled_code_would_follow_is_checked(name: str) -> None:
    estimator, change = COMPILED[name]
    change(quietly(lambda: estimator.fit(X, Y)))
    with pytest.raises(ValueError):
        unpack(pack(estimator), 2)


def test_powers_that_nobody_could_store_are_not_computed() -> None:
    pipeline = make_pipeline(PolynomialFeatures(2), LinearDiscriminantAnalysis()).fit(X, Y)
    assert len(unpack(pack(pipeline), 2).predict(X)) == len(X)
    pipeline[0].degree = 10**9
    with pytest.raises(ValueError, match="more than 65,536 columns"):
        unpack(pack(pipeline), 2)
