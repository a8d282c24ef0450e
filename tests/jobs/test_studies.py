"""Worked examples on real data: the numbers of scikit-learn on the same splits, of theory, or of caret."""

import warnings
from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, zero_one_loss
from sklearn.model_selection import ParameterGrid, cross_validate
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ckcv_ray import Execution, KFold, Study, evaluate, run
from ckcv_ray.core.schedule import Stage
from ckcv_ray.study.problem import INNER, OUTER
from jobs.faults import check_against_peers as peers

SERIAL = Execution("serial")
GRID = {"C": tuple(10.0**e for e in range(-3, 3)), "fit_intercept": (True, False)}
FEW = {"max_features": ("sqrt", 0.5), "min_samples_leaf": (1, 3), "n_estimators": (10, 30)}


def pairs(result, size=OUTER):
    problem = result.problem
    return [problem.rows(Stage.SELECT, size, number) for number in range(problem.sizes[size].n_splits)]


# Selection by nested halves

THEIRS = {
    "zero_one": lambda y, model, X: zero_one_loss(y, model.predict(X)),
    "squared": lambda y, model, X: brier_score_loss(y, model.predict_proba(X)[:, 1]),
    "cross_entropy": lambda y, model, X: log_loss(y, model.predict_proba(X)),
}


def fitted(setting, X, y):
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, **setting)).fit(X, y)


@pytest.mark.parametrize(("loss", "select"), [*product(THEIRS, ("one", "each"))])
def test_nested_halves_select_and_evaluate_as_written_out_with_scikit_learn(loss, select):
    X, y = load_breast_cancer(return_X_y=True)
    options = {"resampling": "nested_halves:3", "measure": (*THEIRS,), "select_by": loss, "select": select}
    result = evaluate(X, y, learner="linear", param=GRID, execution=SERIAL, **options)
    settings = list(ParameterGrid(GRID))
    outer, inner = pairs(result), pairs(result, INNER)
    assert len(outer) == len(inner) == 3
    losses = np.empty((len(outer), len(settings)))
    for i, ((rest, _), (first, second)) in enumerate(zip(outer, inner, strict=True)):
        assert sorted([*first, *second]) == rest.tolist()
        assert abs(len(first) - len(second)) <= 1
        losses[i] = [THEIRS[loss](y[second], fitted(one, X[first], y[first]), X[second]) for one in settings]
    best = losses.argmin(axis=1) if select == "each" else [losses.mean(axis=0).argmin()] * 3
    (entry,) = result.entries
    for split, ((rest, scored), position) in enumerate(zip(outer, best, strict=True)):
        assert dict(entry.settings[split]) == settings[position]
        model = fitted(settings[position], X[rest], y[rest])
        for score in result.scores:
            ours = result.of_splits(entry, score)[split]
            assert ours == pytest.approx(THEIRS[score.name](y[scored], model, X[scored]), rel=1e-12)


# A neural network and a random forest


NETWORK = MLPClassifier(
    (7,), activation="logistic", solver="sgd", alpha=0.0, batch_size=1, max_iter=35, random_state=1
)
FOUR = KFold(4, remainder="last")


@pytest.mark.parametrize(
    ("learner", "resampling", "step", "sizes"),
    [
        (NETWORK, FOUR, 5, [7, 7, 7, 9]),  # from the same initial weights in every fold
        (NETWORK, FOUR, 1, [37, 37, 37, 39]),
        (RandomForestClassifier(3, random_state=0), "kfold:10", 1, [15] * 10),
    ],
    ids=["network of few rows", "network", "forest"],
)
def test_iris_is_scored_as_by_scikit_learn_on_the_same_folds(learner, resampling, step, sizes):
    X, y = (part[::step] for part in load_iris(return_X_y=True))
    options = {"resampling": resampling, "measure": ("zero_one", "accuracy")}
    result = evaluate(X, y, learner=learner, execution=SERIAL, **options)
    splits, (entry,), (error, accuracy) = pairs(result), result.entries, result.scores
    assert [len(scored) for _, scored in splits] == sizes
    assert np.array_equal(np.sort(np.concatenate([scored for _, scored in splits])), np.arange(len(y)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 35 epochs are what is asked for
        found = cross_validate(learner, X, y, cv=splits, scoring="accuracy")["test_score"]
    assert np.array_equal(result.of_splits(entry, accuracy), found)
    assert result.figures(entry, error).pooled == pytest.approx((1 - found) @ sizes / len(y))


# Bias


def test_the_bias_of_the_k_fold_estimate_is_that_of_fewer_rows():
    """The least squares fit to m rows of d normal columns has a known expected error; k-fold estimates it."""
    n, d, numbers = 20, 2, [2, 4, 10]
    differences = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, d))
        y = X.sum(axis=1) + rng.normal(size=n)
        fit = LinearRegression().fit(X, y)
        truth = 1.0 + np.sum((fit.coef_ - 1.0) ** 2) + fit.intercept_**2
        options = {"learner": "linear_regression", "measure": "squared", "seed": seed, "execution": SERIAL}
        scored = [evaluate(X, y, resampling=KFold(k), **options) for k in numbers]
        differences.append([one.figures(one.entries[0], one.scores[0]).pooled - truth for one in scored])

    def error(m):
        return (m + 1) * (m - 2) / (m * (m - d - 2))

    bias = np.mean(differences, axis=0)
    expected = [error(n - n // k) - error(n) for k in numbers]
    assert np.all(np.abs(bias - expected) < 4 * np.std(differences, axis=0, ddof=1) / np.sqrt(120))
    assert bias[0] > bias[2]


# Tuned k


@pytest.mark.parametrize(
    ("learner", "options"), [("forest", {"param": FEW}), ("svm", {"C": "log:-1:3:9", "gamma": "log:-4:-1:7"})]
)
def test_k_is_tuned_for_a_forest_and_for_an_svm(learner, options):
    third = Study.paper(k="3:4", n_splits=3, certify="holdout", holdout_share=1 / 3)
    result = run(
        third.replace(learner=learner, **options), *load_breast_cancer(return_X_y=True), execution=SERIAL
    )
    assert result.certificate.k in (3, 4)
    proven = result.certificate.first
    assert (proven.certification, proven.classifier) == ("holdout", "refit")
    assert 0 < proven.bound < 0.2
    assert result.problem.study.learner.name == learner


# The job that compares figures with those of caret


def test_the_figures_of_caret(monkeypatch):
    monkeypatch.setattr(peers, "RESAMPLINGS", ("kfold:10", "bootstrap:8"))
    compared = peers.compare()
    assert compared.figures > 200
    assert compared.differing == ()


def test_what_differs_is_said():
    compared = peers.Compared().add([0.5, np.nan], [0.5, np.nan], "same").add([0.5], [0.5 + 1e-9], "apart")
    assert compared.figures == 3
    assert [what.partition(":")[0] for what in compared.differing] == ["apart"]
    assert peers.Compared().add([np.nan], [0.5], "undefined").differing
