"""Procedures that predict numbers: the figures of scikit-learn, bounds for clipped errors, clear refusals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_validate
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder

from ckcv_ray import Execution, Procedure, evaluate, load_scores
from ckcv_ray.core.intervals import bound_score
from ckcv_ray.core.measures import Kind, Outputs, make_score
from ckcv_ray.core.schedule import Stage
from ckcv_ray.learners.simple import Ridge
from ckcv_ray.learners.steps import Categories, Encoding
from ckcv_ray.study.problem import OUTER, Problem
from ckcv_ray.tables.task import Task
from ckcv_ray.validation import ONE

SERIAL = Execution("serial")
X, Y = load_diabetes(return_X_y=True)
X, Y = X[::3], Y[::3]
TASK = Task.of(X, Y, numbers=True)


THEIRS = {
    "rmse": "neg_root_mean_squared_error",
    "squared": "neg_mean_squared_error",
    "absolute": "neg_mean_absolute_error",
    "mape": "neg_mean_absolute_percentage_error",
    **{name: name for name in ("r2", "explained_variance", "neg_max_error", "neg_median_absolute_error")},
}


def pairs(procedure, task=TASK):
    problem = Problem.of(procedure, task)
    return [problem.rows(Stage.SELECT, OUTER, number) for number in range(problem.sizes[OUTER].n_splits)]


@pytest.mark.parametrize("resampling", ["kfold:5", "bootstrap:4"])
@pytest.mark.parametrize(
    "estimator",
    [
        LinearRegression(),
        make_pipeline(StandardScaler(), KNeighborsRegressor(3)),
        RandomForestRegressor(7, random_state=1),
    ],
    ids=["linear", "neighbors", "forest"],
)
def test_scores_are_those_of_cross_validate(estimator, resampling):
    """To the last digit, on the same splits, for every score that scikit-learn has."""
    result = evaluate(X, Y, learner=estimator, resampling=resampling, measure=list(THEIRS), execution=SERIAL)
    splits = pairs(result.study)
    found = cross_validate(estimator, X, Y, cv=splits, scoring=list(THEIRS.values()))
    (entry,) = result.entries
    for score in result.scores:
        expected = found[f"test_{THEIRS[score.name]}"]
        sign = 1 if score.greater else -1
        assert np.array_equal(sign * result.of_splits(entry, score), expected), score.name


def test_a_folder_keeps_the_numbers(tmp_path):
    options = {"learner": "ridge,tree_regressor", "measure": "r2,clipped:50"}
    result = evaluate(X, Y, tmp_path / "a", SERIAL, groups=np.arange(len(Y)) // 2, **options)
    again = load_scores(tmp_path / "a")
    assert again.to_json() == result.to_json()
    assert np.array_equal(again.problem.task.y, Y)
    assert again.problem.task.target.kind is Kind.REGRESSION
    assert Procedure.from_json(result.study.to_json()) == result.study


def test_a_procedure_is_known_by_its_numbers():
    digests = [Task.of(X, y, numbers=True).digest for y in (Y, Y.copy(), Y + 1e-9)]
    assert digests[0] == digests[1] != digests[2]
    zeros = (np.where(np.arange(len(Y)) == 0, zero, Y) for zero in (-0.0, 0.0))
    assert len({Task.of(X, y, numbers=True).digest for y in zeros}) == 1


# Claims


@given(st.lists(st.just(0.0) | st.floats(1e-6, 1e4), min_size=1, max_size=60), st.floats(1e-3, 1e4))
def test_a_clipped_error_is_bounded_by_what_is_proven_for_losses(errors, limit):
    score = make_score(f"clipped:{limit!r}", Kind.REGRESSION)
    y, said = np.zeros(len(errors)), Outputs(value=np.array(errors))
    sums = np.array(score.sums(y, said, 0))
    mean = float(np.mean(np.minimum(errors, limit)))
    assert len(sums) == score.n_sums(0)
    assert score.of(y, said) == mean
    assert score.pooled(sums[None]) == pytest.approx(mean)
    assert sums[2] == round(sums[2])
    assert sums[2] * limit / ONE >= np.sum(np.minimum(errors, limit)) * (1 - 1e-12)
    assert mean * (1 - 1e-12) <= bound_score(score, sums, 0.05) <= limit


def relative_error(y, predicted):
    return np.mean(np.abs(predicted - y) / (1 + np.abs(y)))


def test_a_function_of_the_user_sees_the_numbers():
    result = evaluate(X, Y, learner="ridge", measure=["absolute", relative_error], execution=SERIAL)
    (entry,) = result.entries
    for number, (train, scored) in enumerate(pairs(result.study)):
        (model,) = Ridge((1.0,)).fit(X[train], Y[train], [{"alpha": 1.0}])
        predicted = model.predict_outputs(X[scored], frozenset()).value
        assert result.of_splits(entry, result.scores[1])[number] == relative_error(Y[scored], predicted)


# Tables


def test_categories_become_means_of_the_numbers():
    rng = np.random.default_rng(0)
    town, size = rng.choice(["ash", "elm", "oak"], 120), rng.normal(100, 20, 120)
    price = 1000.0 * size + 20_000 * (town == "oak") + rng.normal(0, 5000, 120)
    table = pd.DataFrame({"town": town, "size": size})
    task, train = Task.of(table, price, numbers=True), np.arange(80)
    encoder = Encoding(Categories.TARGET).fit(task, train)
    theirs = TargetEncoder(target_type="continuous").fit(table[["town"]][:80], price[:80])
    assert np.array_equal(encoder.transform(task.X)[:, 0], theirs.transform(table[["town"]].iloc[:])[:, 0])
    assert sorted(row for fold in encoder.folds for row in fold) == train.tolist()
    result = evaluate(table, price, learner="ridge", encode="target", execution=SERIAL)
    assert result.complete
