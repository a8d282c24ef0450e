"""Estimators as part of a study: named, given as objects, stored as JSON; and what is refused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from ckcv_ray import InputError, Study
from ckcv_ray.learners.sklearn.learner import AnyEstimator
from ckcv_ray.learners.sklearn.spec import as_spec, build

OBJECTS = [
    LogisticRegression(max_iter=9),
    RandomForestClassifier(max_features=None, random_state=3),
    make_pipeline(StandardScaler(with_mean=False), SVC(C=2.0)),
]


@pytest.mark.parametrize("estimator", OBJECTS, ids=lambda one: type(one).__name__)
def test_an_object_is_the_same_study_as_its_json(estimator: object) -> None:
    study = Study.paper(learner=estimator)
    again = Study.from_json(json.loads(json.dumps(study.to_json())))
    assert again == study
    assert study.learner.build().get_params(deep=False).keys() == estimator.get_params(deep=False).keys()
    assert repr(study.learner.build()) == repr(estimator)
    assert as_spec("estimator", build(study.learner.spec)) == study.learner.spec


def test_a_class_by_name_is_an_object_of_it() -> None:
    named = Study.paper(learner="sklearn.ensemble:RandomForestClassifier")
    private = Study.paper(learner="sklearn.ensemble._forest:RandomForestClassifier")
    assert named == private == Study.paper(learner=RandomForestClassifier())
    assert named.learner.spec == {"class": "sklearn.ensemble:RandomForestClassifier"}


def test_a_default_that_is_named_changes_nothing() -> None:
    plain = {"class": "sklearn.linear_model:LogisticRegression"}
    assert AnyEstimator(estimator={**plain, "params": {"C": 1.0}}) == AnyEstimator(estimator=plain)


FOREST = "sklearn.ensemble:RandomForestClassifier"
REFUSED = {
    "no such class": (
        {"learner": "sklearn.ensemble:RandomForest"},
        "sklearn.ensemble:RandomForestClassifier",
    ),
    "no such module": ({"learner": "no_such_package:Model"}, "No module named 'no_such_package'"),
    "a function": ({"learner": "os:system"}, "is not the class of an estimator"),
    "a module": ({"learner": "os:path"}, "is not the class of an estimator"),
    "a transformer": ({"learner": "sklearn.decomposition:PCA"}, "predicts neither classes nor numbers"),
    "no class": ({"learner": "sklearn.ensemble:"}, "expected module:Class"),
    "nothing": ({"learner": "estimator"}, "estimator is not given"),
    "twice": ({"learner": FOREST, "estimator": FOREST}, "given twice"),
    "a function inside": (
        {"learner": make_pipeline(FunctionTransformer(len), LogisticRegression())},
        "steps.func=<built-in function len> cannot be part of a study",
    ),
    "an unknown parameter": ({"learner": "forest", "param": "max_featurs=1"}, "did you mean max_features"),
    "one of another learner": ({"learner": "forest", "param": "C=1"}, "'C' is not a parameter of Random"),
    "a value out of range": ({"learner": "linear", "param": "C=-1"}, r"range \(0.0, inf\]. Got -1"),
    "one bad value of several": (
        {"learner": "forest", "param": "max_features=sqrt,sq"},
        "lists of them, or log2, sqrt",
    ),
    "no values": ({"learner": "linear", "param": "C="}, "expected a parameter and its values"),
    "no parameter": ({"learner": "linear", "param": "0.1"}, "expected a parameter and its values"),
    "a value twice": ({"learner": "linear", "param": "C=1,1"}, "has a value twice"),
    "an empty list": ({"learner": "linear", "param": {"C": []}}, "param C is empty"),
    "a number that is none": ({"learner": "linear", "param": {"C": [float("nan")]}}, "numbers, inf, text"),
    "an object as value": ({"learner": "linear", "param": {"C": [object()]}}, "numbers, inf, text"),
    "a distribution without sample": ({"learner": "linear", "param": "C=loguniform:1:9"}, "give sample"),
    "a distribution reversed": (
        {"learner": "linear", "param": "C=uniform:2:1", "sample": 2},
        "smaller first",
    ),
    "a distribution of text": ({"learner": "linear", "param": "C=uniform:a:b", "sample": 2}, "smaller first"),
    "too many": (
        {"learner": "forest", "param": {n: tuple(range(1, 401)) for n in ("max_depth", "max_leaf_nodes")}},
        "Got 1",
    ),
    "a space too large": (
        {"learner": "forest", "param": {n: tuple(range(2, 802)) for n in ("max_depth", "max_leaf_nodes")}},
        "at most 100,000",
    ),
    "an empty sample": ({"learner": "linear", "sample": 0}, "sample=0 is below 1"),
    "of the SVM": ({"learner": "svm", "param": "C=1"}, "requires learner linear"),
    "options of the SVM": (
        {"learner": "forest", "gamma": 1.0},
        "requires learner svm or svm_nystroem, not forest; parameters of forest are given by param$",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_fitted_is_refused_in_one_sentence(name: str) -> None:
    asked, words = REFUSED[name]
    with pytest.raises(InputError, match=words) as refused:
        Study.paper(**asked)
    assert "\n" not in str(refused.value)


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
