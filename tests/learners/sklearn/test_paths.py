"""Settings that share work predict what fits of scikit-learn at each setting predict, in every label."""

import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest
from boosting import make
from learner_contract import clouds
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer
from sklearn.tree import DecisionTreeClassifier

from ckcv_ray import Study, Task
from ckcv_ray.core.draws import draw_seeds, make_seed_sequence
from ckcv_ray.core.process import one_thread
from ckcv_ray.learners.base import LEARNERS, STATUSES, Status
from ckcv_ray.learners.sklearn.learner import AnyEstimator
from ckcv_ray.learners.sklearn.paths import LibraryRounds, Plain
from ckcv_ray.learners.sklearn.spec import complete_names, prepare
from ckcv_ray.learners.sklearn.store import last_step
from ckcv_ray.study.problem import Problem


def few_values(n: int) -> tuple[Any, Any]:
    """Rows of few distinct values: almost every distance is tied."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(n, 4)).astype(float)
    return X, (X.sum(axis=1) + rng.normal(size=n) > 4).astype(int)


TASKS = {
    "two classes": Task.of(*make_classification(160, 8, random_state=1)),
    "ties": Task.of(*few_values(150)),
    "five classes": Task.of(*make_classification(200, 12, n_informative=8, n_classes=5, random_state=2)),
    "weighted rows": Task.of(
        *make_classification(160, 8, random_state=1),
        sample_weight=np.random.default_rng(0).integers(1, 6, 160).astype(float),
    ),
}
ROUNDS: dict[str, dict[str, Any]] = {
    "lightgbm": {"min_child_samples": 5, "n_estimators": (1, 3, 30), "num_leaves": (3, 7)},
    "xgboost": {"learning_rate": 0.2, "max_depth": (1, 3), "n_estimators": (1, 3, 30)},
    "catboost": {"learning_rate": 0.2, "depth": (1, 3), "iterations": (1, 3, 30)},
}
DRAWING: dict[str, dict[str, Any]] = {  # rounds that draw rows and columns
    "lightgbm": {"subsample": 0.6, "subsample_freq": 1, "colsample_bytree": 0.5},
    "xgboost": {"subsample": 0.6, "colsample_bynode": 0.5, "colsample_bytree": 0.7},
    "catboost": {"rsm": 0.5, "random_strength": 2.0},
}
OF_CLASSES = {"equal": None, "balanced": "balanced", "0=7": {0: 7.0}}  # and how scikit-learn takes them
PATHS = {
    "boosting": LEARNERS["boosting"](
        {"learning_rate": (0.1, 0.5), "max_iter": (1, 3, 10, 25), "min_samples_leaf": 5}
    ),
    "neighbors": LEARNERS["neighbors"]({"n_neighbors": (1, 2, 3, 4, 5, 9, 20, 40), "p": (1, 2)}),
    "boosting of balanced classes": LEARNERS["boosting"](
        {"max_iter": (3, 6), "min_samples_leaf": 5}, class_weight="balanced"
    ),
    "tree": LEARNERS["tree"](),
    "tree of weighted classes": LEARNERS["tree"](class_weight="0=7"),
    "naive Bayes": LEARNERS["naive_bayes"](),
    **{
        f"{type(last).__name__} of sparse rows": AnyEstimator(
            param=param, estimator=make_pipeline(KBinsDiscretizer(3, strategy="uniform"), last)
        )
        for last, param in (
            (KNeighborsClassifier(), {"n_neighbors": (1, 3, 9)}),
            (DecisionTreeClassifier(), {"ccp_alpha": (0.0, 0.02)}),
        )
    },
    **{f"rounds of {name}": make(name, **space) for name, space in ROUNDS.items()},
    **{f"drawing rounds of {name}": make(name, **ROUNDS[name], **more) for name, more in DRAWING.items()},
}


def seeded(estimator: Any, train: np.ndarray) -> dict[str, int]:
    """Seeds for the random states that are None."""
    every = estimator.get_params(deep=True)
    names = sorted(n for n in every if n.rpartition("__")[2] == "random_state" and every[n] is None)
    return dict(zip(names, draw_seeds(make_seed_sequence(train), len(names)), strict=True))


def fit_alone(learner: Any, setting: Any, task: Task, train: np.ndarray) -> Any:
    """Fit scikit-learn's estimator to the training rows with their weights, as its documentation does."""
    estimator = clone(learner.build()).set_params(**complete_names(learner.build(), dict(setting)))
    prepare(estimator)
    estimator.set_params(**seeded(estimator, train))
    if (weights := OF_CLASSES[getattr(learner, "class_weight", "equal")]) is not None:
        last_step(estimator).set_params(class_weight=weights)
    name = f"{estimator.steps[-1][0]}__sample_weight" if hasattr(estimator, "steps") else "sample_weight"
    weighted = {name: task.weighting.named[train]} if task.weighting.columns else {}
    return estimator.fit(task.X[train], task.y[train], **weighted)


CASES = [
    (name, data)
    for (name, learner), data in product(PATHS.items(), TASKS)
    if learner and (learner.weighs_rows or not TASKS[data].weighting.columns)
]


@pytest.mark.parametrize(("name", "data"), CASES)
def test_labels_are_those_of_separate_fits(name: str, data: str) -> None:
    learner, task = PATHS[name], TASKS[data]
    order = np.random.default_rng(3).permutation(task.n)
    train, score = np.sort(order[: task.n // 2]), np.sort(order[task.n // 2 :])
    block = learner.trainer.prepare(learner.trainer.share(task), train, score)
    assert learner.sharing is not Plain
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path, length in enumerate(learner.space.lengths):
            fits = block.fit(path, length)
            labels = fits.labels()
            assert labels.shape == (length, len(score))
            for step in range(length):
                alone = fit_alone(learner, learner.space.setting(path, step), task, train)
                assert np.array_equal(labels[step], np.ravel(alone.predict(task.X[score])))
                if isinstance(fits, LibraryRounds):
                    model = fits.model(step)
                    assert np.array_equal(labels[step], model.predict(task.X[score]).label)
                    shares = model.predict_outputs(task.X[score], learner.outputs).probability
                    assert np.allclose(shares, alone.predict_proba(task.X[score]), rtol=0, atol=1e-7)
                    assert np.allclose(shares.sum(axis=1), 1.0, rtol=0, atol=1e-15)


def test_a_fit_that_did_not_converge_is_counted() -> None:
    learner = LEARNERS["mlp"](
        {"alpha": 0.01, "hidden_layer_sizes": [[4]], "max_iter": (2, 1000), "tol": 0.01}
    )
    block = learner.trainer.prepare(learner.trainer.share(clouds(60, 3)), np.arange(30), np.arange(30, 60))
    ends = [block.fit(path, 1) for path in range(2)]
    assert [STATUSES[fits.status[0]] for fits in ends] == [Status.NOT_CONVERGED, Status.CONVERGED]
    assert ends[0].n_iter[0] == 2 < ends[1].n_iter[0]


@pytest.mark.parametrize(("n", "share"), [(12, 0), (89, 0), (90, 0), (89, 0.33), (90, 0.33)])
def test_no_more_neighbours_are_asked_for_than_training_sets_have_rows(n: int, share: float) -> None:
    study = Study.paper(learner="neighbors", k=(3,), n_splits=2)
    if share:
        study = study.replace(certify="holdout", holdout_share=share)
    problem = Problem.of(study, clouds(n, 2))
    numbers = set(problem.learner.space.settings()["n_neighbors"].tolist())
    assert max(numbers) <= min(size.n_train for size in problem.sizes)
    assert 1 in numbers
    assert (numbers == set(LEARNERS["neighbors"].values["n_neighbors"])) == (n >= 90)
    given = Problem.of(study.replace(param={"n_neighbors": (1, 50)}), clouds(n, 2))
    assert set(given.learner.space.settings()["n_neighbors"].tolist()) == {1, 50}
