"""Estimates that combine splits, forward splits and stratified groups: the numbers of scikit-learn."""

from itertools import product
from math import isnan

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import Ridge
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    log_loss,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
    zero_one_loss,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeRegressor

from ckcv_ray import Execution, evaluate, verify
from ckcv_ray.core.schedule import Stage
from ckcv_ray.runs.scored import compare_entries
from ckcv_ray.study.problem import OUTER

SERIAL = Execution("serial")
X, Y = (part[::6] for part in load_breast_cancer(return_X_y=True))
NUMBERS, TARGET = (part[::4] for part in load_diabetes(return_X_y=True))
CLASSES = {
    "zero_one": lambda y, labels, shares: zero_one_loss(y, labels),
    "accuracy": lambda y, labels, shares: accuracy_score(y, labels),
    "f1": lambda y, labels, shares: f1_score(y, labels),
    "auc": lambda y, labels, shares: roc_auc_score(y, shares[:, 1]),
    "log_loss": lambda y, labels, shares: log_loss(y, shares, labels=[0, 1]),
}
VALUES = {
    "rmse": lambda y, values, _: root_mean_squared_error(y, values),
    "r2": lambda y, values, _: r2_score(y, values),
}
TABLES = {"classes": (X, Y, GaussianNB(), CLASSES), "numbers": (NUMBERS, TARGET, Ridge(), VALUES)}


def score(table, measure, train, scored):
    """The score of a model that is fitted on some rows, on others."""
    A, y, model, measures = TABLES[table]
    fitted = clone(model).fit(A[train], y[train])
    shares = fitted.predict_proba(A[scored]) if measures is CLASSES else None
    return measures[measure](y[scored], fitted.predict(A[scored]), shares)


def draws(result, times):
    """The rows of each bootstrap draw."""
    return [result.problem.rows(Stage.SELECT, OUTER, number)[0] for number in range(times)]


def compute(table, resampling, **options):
    A, y, model, measures = TABLES[table]
    return evaluate(
        A, y, learner=model, resampling=resampling, measure=list(measures), execution=SERIAL, **options
    )


@pytest.mark.parametrize("table", TABLES)
def test_the_632_estimate_is_that_of_efron(table):
    result = compute(table, "bootstrap632:7", seed=1)
    every, drawn = np.arange(len(TABLES[table][1])), draws(result, 7)
    for one in result.scores:
        out = [score(table, one.name, train, np.setdiff1d(every, train)) for train in drawn]
        expected = 0.368 * score(table, one.name, every, every) + 0.632 * np.mean(out)
        assert result.figures(result.entries[0], one).mean == pytest.approx(expected, rel=1e-12, abs=0)


def correct(err, out, gamma):
    """The .632+ estimate of a loss, as weights of both parts: Efron, Tibshirani (1997), 28 to 32."""
    capped = min(out, gamma)
    R = (capped - err) / (gamma - err) if capped > err and gamma > err else 0.0
    weight = 0.632 / (1 - 0.368 * R)
    return (1 - weight) * err + weight * capped + 0.632 * (out - capped)


def predict_all(model, A, y, train, losses):
    """The loss of each prediction of a model with each target: of all rows, (targets, predictions)."""
    fitted = clone(model).fit(A[train], y[train])
    if "log" in losses:
        eps = np.finfo(float).eps
        return -np.log(np.clip(fitted.predict_proba(A)[:, y].T, eps, 1 - eps))
    predicted = fitted.predict(A)
    return {
        "zero": lambda: y[:, None] != predicted[None, :],
        "square": lambda: (y[:, None] - predicted[None, :]) ** 2,
        "absolute": lambda: np.abs(y[:, None] - predicted[None, :]),
    }[losses]().astype(float)


@pytest.mark.parametrize(
    ("table", "measure", "losses", "model"),
    [
        ("classes", "zero_one", "zero", GaussianNB()),
        ("classes", "accuracy", "zero", KNeighborsClassifier(1)),
        ("classes", "log_loss", "log", GaussianNB(var_smoothing=0.1)),
        ("numbers", "squared", "square", Ridge()),
        ("numbers", "absolute", "absolute", DecisionTreeRegressor(random_state=0)),
    ],
)
@pytest.mark.parametrize("rows", [slice(None), slice(0, 24)])
def test_the_632_plus_estimate_is_that_of_efron_and_tibshirani(table, measure, losses, model, rows):
    A, y = (part[rows] for part in TABLES[table][:2])
    options = {"resampling": "bootstrap632plus:7", "measure": measure, "execution": SERIAL}
    result = evaluate(A, y, learner=model, **options)
    every, drawn = np.arange(len(y)), draws(result, 7)
    pairs = predict_all(model, A, y, every, losses)
    out = [np.diag(predict_all(model, A, y, train, losses)) for train in drawn]
    left = [np.setdiff1d(every, train) for train in drawn]
    means = [part[rest].mean() for part, rest in zip(out, left, strict=True)]
    pooled = np.concatenate([part[rest] for part, rest in zip(out, left, strict=True)]).mean()
    found = result.figures(result.entries[0], result.scores[0])
    for estimate, of_draws in ((found.mean, np.mean(means)), (found.pooled, pooled)):
        expected = correct(np.diag(pairs).mean(), of_draws, pairs.mean())
        loss = 1 - estimate if measure == "accuracy" else estimate
        assert loss == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("table", TABLES)
def test_the_optimism_is_that_of_harrell(table):
    result = compute(table, "optimism:6", seed=1)
    every, drawn = np.arange(len(TABLES[table][1])), draws(result, 6)
    for one in result.scores:
        on_drawn = [score(table, one.name, train, train) for train in drawn]
        on_all = [score(table, one.name, train, every) for train in drawn]
        expected = score(table, one.name, every, every) - np.mean(np.subtract(on_drawn, on_all))
        assert result.figures(result.entries[0], one).mean == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("resampling", ["bootstrap632:5", "bootstrap632plus:5", "optimism:5"])
def test_an_estimate_that_combines_splits_has_no_deviation_and_no_test(resampling, tmp_path):
    measure = "zero_one,log_loss" if "plus" in resampling else "zero_one,auc"
    options = {"learner": "naive_bayes,constant", "measure": measure, "execution": SERIAL}
    result = evaluate(X, Y, tmp_path / "run", resampling=resampling, **options)
    for entry, one in product(result.entries, result.scores):
        assert np.isnan(result.figures(entry, one)[1:3]).all()
    assert result.complete
    assert not compare_entries(result, result.scores[0])
    assert result.study.resampling.note in " ".join(result.summary().split())
    assert verify(tmp_path / "run", rerun=True, execution=SERIAL).ok


def test_an_estimate_is_incomplete_if_any_of_its_splits_is():
    def fail_on_all(y, predicted):
        return float("nan") if len(y) == len(Y) and np.array_equal(y, Y) else 0.0

    options = {"learner": "naive_bayes", "resampling": "bootstrap632:4", "execution": SERIAL}
    result = evaluate(X, Y, measure=fail_on_all, **options)
    found = result.figures(result.entries[0], result.scores[0])
    assert (found.missing, found.undefined, isnan(found.mean)) == (0, 1, True)


@pytest.mark.parametrize("learner", ["svm", "svm_nystroem", "neighbors"])
def test_rows_that_are_fitted_on_are_scored_as_any_others(learner):
    options = {"param": {"landmarks": 20}} if learner == "svm_nystroem" else {}
    options |= {"resampling": "bootstrap632:1", "measure": "accuracy", "execution": SERIAL}
    result = evaluate(X, Y, learner=learner, **options)
    trainer, every = result.problem.learner.trainer, np.arange(len(Y))
    block = trainer.prepare(trainer.share(result.problem.task), every, every[:9])
    right = block.fit(0, 1).model(0).predict(result.problem.task.X).label == result.problem.task.y
    assert result.of_splits(result.entries[0], result.scores[0])[-1] == right.mean()


@pytest.mark.parametrize(
    ("resampling", "more"),
    [("kfold:4", {}), ("repeated_kfold:3x2", {}), ("nested:3:2", {"select_by": "zero_one"})],
)
def test_stratified_groups_stay_whole_and_share_classes(resampling, more):
    groups = np.random.default_rng(0).integers(0, 30, len(Y))
    options = {"learner": "naive_bayes", "execution": SERIAL, "resampling": resampling, **more}
    result = evaluate(X, Y, groups=groups, stratify=True, **options)
    assert result.complete
    for size, part in enumerate(result.problem.sizes):
        for number in range(part.n_splits):
            train, scored = result.problem.rows(Stage.SELECT, size, number)
            assert not np.intersect1d(groups[train], groups[scored]).size
            if size == OUTER:
                assert abs(Y[scored].mean() - Y.mean()) < 0.08
