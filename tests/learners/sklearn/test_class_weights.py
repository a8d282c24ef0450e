"""Class weights: the fits are scikit-learn's with the same weights, whatever the labels are called."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from ckcv_ray import InputError, Study, Task
from ckcv_ray.core.draws import Draws
from ckcv_ray.core.resampling.complete import split_complete
from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.learners.sklearn.learner import EstimatorLearner
from ckcv_ray.learners.sklearn.paths import fit_model
from ckcv_ray.learners.sklearn.store import last_step

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = np.where(X[:, 0] + X[:, 1] + RNG.normal(size=120) > 1.2, "sick", "well")
TASK = Task.of(X, Y)
SPLIT = split_complete(TASK.n, 4, 0, 1, Draws(0))
SPACES: dict[str, dict[str, Any]] = {
    "linear": {"C": (0.1, 1.0)},
    "boosting": {"max_iter": (3, 6), "min_samples_leaf": (5,), "max_leaf_nodes": (7,)},
    "forest": {"n_estimators": (4, 8), "max_features": ("sqrt",)},
    "extra_trees": {"n_estimators": (4, 8), "max_features": ("sqrt",)},
    "tree": {"ccp_alpha": (0.0, 0.01), "criterion": ("gini",)},
}
WEIGHTS = {"balanced": "balanced", "sick=7": {0: 7.0, 1: 1.0}, "well=0.25,sick=2": {0: 2.0, 1: 0.25}}


def learner_of(name: str, **options: Any) -> EstimatorLearner:
    space = SPACES[name] | ({} if name == "linear" else {"random_state": (0,)})
    learner: EstimatorLearner = LEARNERS[name](param=space, **options).canonical(TASK)
    return learner


@pytest.mark.parametrize(("name", "text"), [*product(SPACES, WEIGHTS)])
def test_every_setting_of_a_path_is_the_weighted_fit(name: str, text: str) -> None:
    learner = learner_of(name, class_weight=text)
    block = learner.trainer.prepare(learner.trainer.share(TASK), SPLIT.train, SPLIT.select)
    differ = 0
    for path, settings in enumerate(learner.space.paths):
        labels = block.fit(path, len(settings)).labels()
        for setting, found in zip(settings, labels, strict=True):
            estimator = clone(learner.template(setting).estimator)
            plain = clone(estimator).fit(X[SPLIT.train], TASK.y[SPLIT.train])
            last_step(estimator).set_params(class_weight=WEIGHTS[text])
            estimator.fit(X[SPLIT.train], TASK.y[SPLIT.train])
            np.testing.assert_array_equal(found, estimator.predict(X[SPLIT.select]))
            differ += np.sum(plain.predict(X[SPLIT.select]) != found)
    assert differ  # the weights matter here


def test_a_class_without_training_rows_needs_no_weight() -> None:
    three = Task.of(X, np.arange(120) % 3)
    rows = np.flatnonzero(three.y != 1)
    for name in SPACES:
        learner = LEARNERS[name](param=SPACES[name], class_weight="0=2,1=5").canonical(three)
        model, _ = fit_model(learner, three, rows, learner.space.setting(0, 0))
        assert set(model.predict(X).label) <= {0, 2}


def test_in_a_study_of_several_each_that_has_weights_takes_them() -> None:
    study = Study.paper(learner="tree,neighbors,svm", class_weight="balanced", k=3)
    tree, neighbors, svm = study.learner.learners  # type: ignore[attr-defined]
    assert tree.class_weight == svm.class_weight == "balanced"
    assert not hasattr(neighbors, "class_weight")
    one = Study.paper(learner="tree,svm", k=3, **{"tree.class_weight": "balanced"})
    tree, svm = one.learner.learners  # type: ignore[attr-defined]
    assert (tree.class_weight, svm.class_weight) == ("balanced", "equal")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learner": "sklearn.neighbors:KNeighborsClassifier"}, "KNeighborsClassifier has no class weights"),
        ({"learner": "tree", "param": "class_weight=balanced"}, "class_weight is given twice"),
        ({"learner": "neighbors"}, "class_weight='balanced' requires learner"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Study.paper(class_weight="balanced", **options)
