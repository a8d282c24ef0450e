"""Forests grown tree by tree: each tree is scikit-learn's, bit for bit, or scikit-learn fits the forest."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from ckcv_ray.learners.sklearn import growth as module
from ckcv_ray.learners.sklearn.growth import growth

DATA = {
    "iris": load_iris(return_X_y=True),
    "two classes": make_classification(90, 7, n_informative=4, random_state=3),
}
KNOWN = [
    RandomForestClassifier(max_features=0.5),
    RandomForestClassifier(criterion="log_loss", min_samples_leaf=3),
    RandomForestClassifier(bootstrap=False, max_depth=2),
    RandomForestClassifier(class_weight="balanced", min_samples_split=6),
    ExtraTreesClassifier(),
    ExtraTreesClassifier(bootstrap=True, max_features=None),
]
LEFT = [
    {"ccp_alpha": 0.02},
    {"max_leaf_nodes": 4},
    {"max_samples": 0.5},
    {"min_impurity_decrease": 0.01},
    {"min_samples_leaf": 0.1},
    {"min_samples_split": 0.1},
    {"min_weight_fraction_leaf": 0.1},
    {"class_weight": "balanced_subsample"},
    {"oob_score": True},
]


def fitted(forest: Any, data: str, count: int) -> tuple[Any, Any, Any]:
    X, y = DATA[data]
    return forest.set_params(n_estimators=count, random_state=5).fit(X, y), X, y


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("forest", KNOWN, ids=str)
def test_every_tree_is_that_of_the_whole_forest(forest: Any, data: str) -> None:
    whole = [tree.tree_.__getstate__() for tree in fitted(forest, data, 6)[0].estimators_]
    grown = growth(*fitted(forest, data, 1))
    assert grown is not None
    for mine, theirs in zip((tree.__getstate__() for tree in grown.trees(6)), whole, strict=True):
        for name in theirs["nodes"].dtype.names:
            np.testing.assert_array_equal(mine["nodes"][name], theirs["nodes"][name])
        np.testing.assert_array_equal(mine["values"], theirs["values"])


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("options", LEFT, ids=str)
def test_what_is_not_known_is_left_to_scikit_learn(options: dict[str, Any]) -> None:
    assert growth(*fitted(RandomForestClassifier(**options), "iris", 1)) is None


def test_another_first_tree_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    forest, X, y = fitted(RandomForestClassifier(), "iris", 1)
    assert growth(forest, X, y) is not None
    assert growth(forest, X[::-1].copy(), y) is None
    monkeypatch.setattr(module.Growth, "_weights", lambda self, seed: None)
    assert growth(forest, X, y) is None


@pytest.mark.parametrize("error", [AttributeError, ImportError, TypeError])
def test_another_version_of_scikit_learn_is_not_an_error(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*given: Any) -> Any:
        raise error("gone")

    monkeypatch.setattr(module.Growth, "_tree", missing)
    assert growth(*fitted(RandomForestClassifier(), "iris", 1)) is None
