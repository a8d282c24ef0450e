"""Files of estimators: equal bytes for equal estimators, and nothing in them is run or followed blindly."""

import io
import json
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import skops.io
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import all_estimators

from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.learners.sklearn.learner import NAMED
from ckcv_ray.learners.sklearn.store import pack, unpack

X, Y = make_classification(80, 5, random_state=0)
X = np.abs(X)
# Those that need other rows, or other classifiers inside them; and one that holds functions.
OTHERS = {
    "ClassifierChain",
    "MultiOutputClassifier",
    "SelfTrainingClassifier",
    "StackingClassifier",
    "TunedThresholdClassifierCV",
    "VotingClassifier",
}
INSIDE = {"FixedThresholdClassifier", "OneVsOneClassifier", "OneVsRestClassifier", "OutputCodeClassifier"}
CLASSIFIERS = {name: kind for name, kind in all_estimators("classifier") if name not in OTHERS}


def quietly(fit: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_of_scikit_learn_can_be_stored(name: str) -> None:
    kind = CLASSIFIERS[name]

    def fitted() -> Any:
        estimator = kind(LogisticRegression()) if name in INSIDE else kind()
        few = {"random_state": 0, "n_estimators": 5}
        estimator.set_params(**{n: v for n, v in few.items() if n in estimator.get_params()})
        return estimator.fit(X, Y)

    one, other = quietly(fitted), quietly(fitted)
    content = pack(one)
    assert content == pack(other)
    again = quietly(lambda: unpack(content, X.shape[1]))
    assert pack(again) == content
    assert np.array_equal(quietly(lambda: again.predict(X)), quietly(lambda: one.predict(X)))


@pytest.mark.parametrize("learner", NAMED)
def test_packing_leaves_the_estimator_as_it_is(learner: Any) -> None:
    estimator = quietly(lambda: learner().build().fit(X, Y))
    before = quietly(lambda: estimator.predict(X))
    pack(estimator)
    assert np.array_equal(quietly(lambda: estimator.predict(X)), before)


def rewritten(content: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
    """The archive with other content of its files, given the name and the content of each."""
    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(sink, "w") as new:
        for info in old.infolist():
            new.writestr(info, change(info.filename, old.read(info)))
    return sink.getvalue()


def forged(content: bytes, field: str, value: int | None) -> bytes:
    """The archive with another first value of a field of a structured array, or without a change."""

    def change(name: str, inside: bytes) -> bytes:
        loaded = np.load(io.BytesIO(inside)) if name.endswith(".npy") else np.empty(0)
        if field not in (loaded.dtype.names or ()):
            return inside
        array = np.zeros(loaded.shape, loaded.dtype)  # without what is in the padding
        for column in loaded.dtype.names:
            array[column] = loaded[column]
        if value is not None:
            array[field][0] = value
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(array))
        return head.getvalue() + array.tobytes()

    return rewritten(content, change)


def test_a_pickle_inside_is_refused() -> None:
    class Own(LogisticRegression):
        pass

    with pytest.raises(ValueError, match=r"test_packing\.\S*Own, a type that is not known to be harmless"):
        unpack(pack(Own().fit(X, Y)), 5)


TREES = {
    "a child outside": ("tree", "left_child", 10**6),
    "a child before the first": ("tree", "right_child", -7),
    "a child that is its parent": ("tree", "left_child", 0),
    "a column that does not exist": ("tree", "feature", 5),
    "a column before the first": ("tree", "feature", -3),
    "a tree of a forest": ("forest", "right_child", 10**6),
    "boosting: a child outside": ("boosting", "left", 10**6),
    "boosting: a circle": ("boosting", "right", 0),
    "boosting: a column that does not exist": ("boosting", "feature_idx", 5),
    "boosting: categories": ("boosting", "is_categorical", 1),
}


@pytest.mark.parametrize("name", TREES)
def test_a_tree_that_leaves_its_arrays_is_refused(name: str) -> None:
    learner, field, value = TREES[name]
    small = {"n_estimators": 3} if learner == "forest" else {"max_iter": 3} if learner == "boosting" else {}
    content = pack(quietly(lambda: LEARNERS[learner]().build().set_params(**small).fit(X, Y)))
    assert unpack(forged(content, field, None), 5) is not None
    with pytest.raises(ValueError, match="a tree "):
        unpack(forged(content, field, value), 5)


def put(**values: Any) -> Callable[[Any], None]:
    return lambda estimator: vars(estimator).update(values)


def drop_columns(estimator: Any) -> None:
    del estimator.n_features_in_


def hold_other(estimator: Any) -> None:
    estimator._predictors[0][0] = MinMaxScaler()


MORE_COLUMNS = put(n_features_in_=6)
SMALL = GradientBoostingClassifier(n_estimators=2)
HISTOGRAMS = HistGradientBoostingClassifier(max_iter=2)
COLUMNS = {
    "a tree of other columns": (DecisionTreeClassifier(), MORE_COLUMNS),
    "a tree that is none": (DecisionTreeClassifier(), put(tree_=MinMaxScaler())),
    "a tree without columns": (DecisionTreeClassifier(), drop_columns),
    "a tree of a forest": (RandomForestClassifier(2), lambda forest: MORE_COLUMNS(forest.estimators_[0])),
    "a stage of boosting": (SMALL, lambda boosting: MORE_COLUMNS(boosting.estimators_[1, 0])),
    "histograms of no columns": (HISTOGRAMS, drop_columns),
    "histograms of categories": (HISTOGRAMS, put(_preprocessor=MinMaxScaler())),
    "no histogram": (HISTOGRAMS, hold_other),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_tree_that_is_given_other_columns_than_it_tests_is_refused(name: str) -> None:
    estimator, change = COLUMNS[name]
    fitted = clone(estimator).set_params(random_state=0).fit(X, Y)
    assert unpack(pack(fitted), 5) is not None
    change(fitted)
    with pytest.raises(ValueError, match="a tree has "):
        unpack(pack(fitted), 5)


def test_trees_may_be_of_more_columns_than_the_table_in_a_pipeline() -> None:
    fitted = make_pipeline(PolynomialFeatures(), PolynomialFeatures(), RandomForestClassifier(2)).fit(X, Y)
    assert np.array_equal(unpack(pack(fitted), 5).predict(X), fitted.predict(X))


def other_schema(content: bytes, change: Callable[[Any], Any]) -> bytes:
    def rewrite(name: str, inside: bytes) -> bytes:
        if name != "schema.json":
            return inside
        return json.dumps(change(json.loads(inside)), separators=(",", ":")).encode()

    return rewritten(content, rewrite)


def renamed(schema: Any) -> Any:
    schema["__class__"], schema["__module__"] = "system", "os"
    return schema


def nested(schema: Any) -> Any:
    for _ in range(900):
        schema = {
            "__class__": "list",
            "__module__": "builtins",
            "__loader__": "ListNode",
            "content": [schema],
        }
    return schema


HOSTILE: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda content: b"",
    "no archive": lambda content: b"PK" + content,
    "cut short": lambda content: content[: len(content) // 2],
    "more after it": lambda content: content + b"x",
    "as skops writes it": lambda content: skops.io.dumps(LogisticRegression().fit(X, Y)),
    "a function of another module": lambda content: other_schema(content, renamed),
    "nested deeply": lambda content: other_schema(content, nested),
    "no schema": lambda content: other_schema(content, lambda schema: []),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_content_is_refused(name: str) -> None:
    content = pack(LogisticRegression().fit(X, Y))
    with pytest.raises(Exception) as refused:
        unpack(HOSTILE[name](content), 5)
    assert not isinstance(refused.value, MemoryError)  # others are turned into one of a damaged file
