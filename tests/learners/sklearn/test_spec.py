"""Estimators as part of a study: named, given as objects, stored as JSON; and what no study may hold."""

import inspect
import json
import os
import subprocess
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest, f_classif, mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from ckcv_ray import Execution, InputError, Procedure, Study, evaluate
from ckcv_ray.learners.sklearn import spec
from ckcv_ray.learners.sklearn.learner import AnyEstimator
from ckcv_ray.learners.sklearn.spec import MODULES, as_spec, build, load_words

SERIAL = Execution("serial")
X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[::4, :6], Y[::4]
LOGISTIC = {"class": "sklearn.linear_model:LogisticRegression"}
BAYES = {"class": "sklearn.naive_bayes:GaussianNB"}
PIPELINE = make_pipeline(StandardScaler(with_mean=False), BaggingClassifier(LogisticRegression()))
FOREST = "sklearn.ensemble:RandomForestClassifier"
HELD: dict[str, Any] = {
    "a default that is named": RandomForestClassifier(max_features=None, random_state=3, bootstrap=True),
    "nested": PIPELINE,
    "lists": MLPClassifier((5, 5)),
    "a word": BaggingClassifier(SVC(gamma="auto")),
    "a grid": GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1, np.inf], "svc": ["drop"]}),
    "grids": GridSearchCV(LogisticRegression(), [{"C": [1e-6]}, {"C": np.array([0.1, 1.0])}]),
    "an array": GaussianNB(priors=np.array([0.5, 0.5])),
    "steps with names of words": Pipeline([("inf", StandardScaler()), ("numpy:exp", GaussianNB())]),
}


@pytest.mark.parametrize("name", HELD)
def test_an_object_is_the_same_study_as_its_json(name: str) -> None:
    study = Procedure.of(learner=HELD[name])
    again = Procedure.from_json(json.loads(json.dumps(study.to_json(), allow_nan=False)))
    assert again == study
    assert as_spec("estimator", study.learner.build()) == study.learner.spec


def test_what_is_random_is_the_same_in_every_state_of_the_global_generator() -> None:
    scores = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002
        state = np.random.get_state()[1].tolist()  # noqa: NPY002
        learner = make_pipeline(SelectKBest(mutual_info_classif, k=1), GaussianNB())
        result = evaluate(np.round(X), Y, learner=learner, measure="log_loss", execution=SERIAL)
        assert np.random.get_state()[1].tolist() == state  # noqa: NPY002
        scores.append(result.of_splits(result.entries[0], result.scores[0]))
    assert np.array_equal(*scores)


def test_a_class_by_name_is_an_object_of_it() -> None:
    named = Study.paper(learner=FOREST)
    private = Study.paper(learner="sklearn.ensemble._forest:RandomForestClassifier")
    assert named == private == Study.paper(learner=RandomForestClassifier())
    assert named.learner.spec == {"class": FOREST}
    assert AnyEstimator(estimator={**LOGISTIC, "params": {"C": 1.0}}) == AnyEstimator(estimator=LOGISTIC)


def list_classes() -> dict[str, type]:
    """Every class of scikit-learn that a study may name."""
    found = {}
    for module in MODULES:
        for name, kind in vars(import_module(f"sklearn.{module}")).items():
            path = f"sklearn.{module}:{name}"
            if isinstance(kind, type) and not inspect.isabstract(kind) and name[0].isupper():
                with suppress(InputError):
                    found[path] = spec._import_class("class", path)
    return found


def test_making_any_class_only_stores_its_parameters() -> None:
    """As scikit-learn asks of its estimators, so that making one from a folder does nothing."""
    classes = list_classes()
    assert len(classes) > 180
    for path, kind in classes.items():
        params: dict[str, Any] = {}
        for name, one in inspect.signature(kind).parameters.items():
            if one.default is inspect.Parameter.empty and one.kind is not inspect.Parameter.VAR_KEYWORD:
                columns = [[0]] if kind is ColumnTransformer else []
                params[name] = [["one", BAYES, *columns]] if name in spec.STEPS else BAYES
                params[name] = {} if name in spec.GRIDS else params[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some are deprecated
            made = spec._make("class", {"class": path, "params": params})
        assert type(made) is kind
        assert {name for name in vars(made) if name.endswith("_") and not name.startswith("_")} == set(), path


def test_no_word_names_a_file_or_turns_another_value_into_code() -> None:
    """A parameter that takes any text, such as a path or a cache, has no words."""
    every = set[str]()
    for kind in list_classes().values():
        names = spec._list_defaults(kind)
        every = every.union(*(spec._list_words(object.__new__(kind), name) or () for name in names))
    assert every.isdisjoint({"file", "filename", "content", *spec.FORBIDDEN})
    assert {word for word in every if not word.strip("+").replace("_", "").replace("-", "").isalnum()} == {
        "revised simplex"
    }
    for name, value in load_words().items():
        if name.startswith("numpy:"):
            assert isinstance(value, np.ufunc)
            assert (value.nin, value.nout) == (1, 1)


def with_step(path: str, **params: Any) -> Any:
    steps = [["one", {"class": path, "params": params}], ["model", BAYES]]
    return {"class": "sklearn.pipeline:Pipeline", "params": {"steps": steps}}


def with_columns(columns: Any) -> Any:
    scaled = [["a", {"class": "sklearn.preprocessing:StandardScaler"}, columns]]
    return with_step("sklearn.compose:ColumnTransformer", transformers=scaled)


def nested(depth: int) -> Any:
    inside: Any = LOGISTIC
    for _ in range(depth):
        inside = {"class": "sklearn.ensemble:BaggingClassifier", "params": {"estimator": inside}}
    return inside


FUNCTION = "sklearn.preprocessing:FunctionTransformer"
HELD_BY_NONE: dict[str, tuple[Any, str]] = {
    "a cache in a folder": (Pipeline([("m", GaussianNB())], memory="somewhere"), "memory='somewhere'"),
    "a function": (make_pipeline(FunctionTransformer(os.system), GaussianNB()), "func=<built-in function"),
    "a function with an argument": (with_step(FUNCTION, func="numpy:exp", kw_args={"out": 1}), "kw_args"),
    "text to evaluate": (GridSearchCV(LogisticRegression(), {"C": [1.0]}, pre_dispatch="exit()"), "pre_dis"),
    "a function that scores": (GridSearchCV(LogisticRegression(), {"C": [1.0]}, scoring=max), "scoring="),
    "a cache in a grid": (GridSearchCV(make_pipeline(GaussianNB()), {"memory": ["here"]}), "memory='here'"),
    "a function in a grid": (
        GridSearchCV(make_pipeline(SelectKBest(), GaussianNB()), {"selectkbest__score_func": [f_classif]}),
        "selectkbest__score_func of a grid takes no function",
    ),
    "nothing for a grid": (GridSearchCV(LogisticRegression(), {"D": [1.0]}), "lists of values by parameter"),
    "columns as a kernel": (SVC(kernel="precomputed"), "kernel='precomputed'"),
    "a value out of range": (LogisticRegression(C=-1.0), r"range \(0.0, inf\]. Got -1"),
    "something deep": (BaggingClassifier(BaggingClassifier(SVC(kernel="__import__('os')"))), "kernel="),
    "a class elsewhere": ({"class": "sklearn.utils._testing:MinimalClassifier"}, "are in its modules"),
    "a method": ({"class": "sklearn.linear_model:LogisticRegression.__init__"}, "is not the class of"),
    "an unknown parameter": ({**LOGISTIC, "params": {"fit": 1}}, "unexpected keyword argument 'fit'"),
    "an estimator for a number": ({**LOGISTIC, "params": {"C": LOGISTIC}}, "'C' parameter of Logistic"),
    "a step of text": (
        {"class": "sklearn.pipeline:Pipeline", "params": {"steps": [["a", "os.system"]]}},
        "is not a step",
    ),
    "something without end": (nested(100), "nested too deeply"),
    **{
        f"columns {columns}": (with_columns(columns), "are not columns")
        for columns in (
            *([[0]], [0.5], {"pattern": "a"}, slice(0, 3)),
            *({"kinds": kinds} for kinds in ("number", ["text"], [["number"]], [1], None)),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", HELD_BY_NONE)
def test_what_may_be_a_path_or_code_is_no_part_of_a_study(name: str) -> None:
    given, messages = HELD_BY_NONE[name]
    with pytest.raises(InputError, match=messages):
        as_spec("estimator", given)
    if isinstance(given, dict):
        with pytest.raises(InputError, match=messages):
            build(given)


def test_what_a_file_names_is_not_imported_unless_it_is_trusted(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(
        "from sklearn.naive_bayes import GaussianNB\nprint('imported')\nclass Theirs(GaussianNB): pass\n"
    )
    content = Study.paper(learner=FOREST).to_json()
    content["learner"]["estimator"] = {"class": "theirs:Theirs"}
    code = (
        "import json, sys, ckcv_ray\n"
        "if len(sys.argv) > 2: ckcv_ray.trust(sys.argv[2])\n"
        "try: print(ckcv_ray.Study.from_json(json.loads(sys.argv[1])).learner.build())\n"
        "except ckcv_ray.InputError as error: print(error)"
    )

    def said(*given: str) -> str:
        command = [sys.executable, "-c", code, json.dumps(content), *given]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert "ckcv --trust theirs" in said()
    assert "imported" not in said()
    assert said("theirs").split() == ["imported", "Theirs()"]
    assert "ckcv --trust theirs" in said("others")
