"""What makes usual figures untrue: scores that are not defined, rows that repeat, functions that change."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import KFold, TimeSeriesSplit, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ckcv_ray import Execution, Procedure, StoreError, evaluate
from ckcv_ray.core.schedule import Stage
from ckcv_ray.runs.run import assess
from ckcv_ray.study.problem import OUTER
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import Task

SERIAL = Execution("serial")
X, Y = (part[:200] for part in load_breast_cancer(return_X_y=True))


@pytest.mark.parametrize(
    ("measure", "splitter"), [("auc", TimeSeriesSplit(4)), ("average_precision", KFold(5))]
)
def test_rows_are_ranked_as_scikit_learn_ranks_them(measure, splitter):
    """By the probability of the second class: a difference of two makes ties of those near 1."""
    result = evaluate(X, Y, learner=GaussianNB(), resampling=splitter, measure=measure, execution=SERIAL)
    scoring = "roc_auc" if measure == "auc" else measure
    found = cross_validate(GaussianNB(), X, Y, cv=splitter, scoring=scoring)["test_score"]
    assert np.array_equal(result.to_frame()[measure].to_numpy(), found, equal_nan=True)


@pytest.mark.parametrize("resampling", ["time:3", "kfold:3"])
def test_dates_that_do_not_ascend_are_a_caution_where_rows_are_taken_in_their_order(resampling):
    """One date by which the table is sorted is enough: others may be dates of birth."""
    n = 60
    ascending = np.datetime64("2020-01-01") + np.arange(n)
    shuffled = ascending[np.random.default_rng(3).permutation(n)]
    for columns, expected in (({"seen": ascending, "born": shuffled}, False), ({"born": shuffled}, True)):
        inputs = pa.table({"size": X[:n, 0], **columns})
        result = evaluate(inputs, Y[:n], learner="tree", resampling=resampling, execution=SERIAL)
        said = "not in ascending order of 'born'" in " ".join(result.summary().split())
        assert said == (expected and resampling == "time:3")


def test_rows_that_repeat_and_columns_that_look_like_groups_are_pointed_out():
    result = evaluate(np.tile(X[:30], (3, 1)), np.tile(Y[:30], 3), learner="tree", resampling="holdout:0.3",
                      execution=SERIAL)  # fmt: skip
    assert result.to_json()["repeats"] == 90
    assert "CAUTION 90 of 90 rows equal another row in every column" in " ".join(result.summary().split())
    table = pa.table({"patient": np.arange(60) // 3, "x": X[:60, 0], "y": Y[:60]})
    study = Procedure.of(resampling="holdout:0.3", learner="tree")
    asked = assess(study, Task.from_table(table, Roles("y")), None, SERIAL)
    assert "QUESTION column 'patient' repeats" in " ".join(asked.summary().split())


def loss_of(value):
    def loss(y, predicted):
        return value

    return loss


def test_a_function_is_known_by_what_it_encloses(tmp_path):
    options = {"learner": "tree", "resampling": "kfold:3", "execution": SERIAL}
    first, again = (evaluate(X, Y, tmp_path / "a", measure=loss_of(0.25), **options) for _ in range(2))
    assert first.to_frame()["loss"].tolist() == [0.25] * 3
    assert again.run_id == first.run_id
    with pytest.raises(StoreError, match="measure: requested"):
        evaluate(X, Y, tmp_path / "a", measure=loss_of(0.75), **options)


# Classes with a single row: scored without a certification, and refused with one


ROWS = np.random.default_rng(7).normal(size=(40, 3))
SINGLE = np.array(["a"] * 20 + ["b"] * 19 + ["c"])


def test_a_row_of_a_class_that_was_not_learned_is_wrong():
    """Its probability is 0, as scikit-learn's cross_val_predict has it; AUC is not defined there."""
    options = {"learner": "linear", "measure": "accuracy,log_loss,roc_auc_ovr", "resampling": "kfold:4"}
    result = evaluate(ROWS, SINGLE, execution=SERIAL, **options)
    (entry,), estimator = result.entries, make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    expected = []
    for number in range(4):
        train, scored = result.problem.rows(Stage.SELECT, OUTER, number)
        fitted = clone(estimator).fit(ROWS[train], SINGLE[train])
        shares = np.zeros((len(scored), 3))
        shares[:, np.searchsorted(["a", "b", "c"], fitted.classes_)] = fitted.predict_proba(ROWS[scored])
        y = SINGLE[scored]
        expected.append(
            (accuracy_score(y, fitted.predict(ROWS[scored])), log_loss(y, shares, labels=list("abc")))
        )
    found = [result.of_splits(entry, score) for score in result.scores]
    np.testing.assert_allclose(np.transpose(found[:2]), expected, rtol=1e-9)
    assert np.isnan(found[2]).sum() == 3  # splits that do not score the row


# Functions of the user that see probabilities: those of the model, in the order of the sorted labels


FLOWERS, KINDS = load_iris(return_X_y=True)
FLOWERS, SPECIES = FLOWERS[::3], np.array(["setosa", "versicolor", "virginica"])[KINDS[::3]]


def surprise(y, predicted, probability):
    return log_loss(y, probability, labels=["setosa", "versicolor", "virginica"])


def alter(y, predicted, *, probability):
    probability[:] = 0  # its own copy
    return 1.0


def test_a_function_sees_the_probabilities_and_selects_by_them():
    options = {"learner": "neighbors", "param": {"n_neighbors": (1, 5, 9)}, "resampling": "nested_halves:3"}
    own = evaluate(FLOWERS, SPECIES, measure=[surprise, alter, "log_loss"], execution=SERIAL, **options)
    named = evaluate(FLOWERS, SPECIES, measure="log_loss", execution=SERIAL, **options)
    assert own.entries[0].settings == named.entries[0].settings
    by_function, _, by_name = (own.of_splits(own.entries[0], score) for score in own.scores)
    np.testing.assert_array_equal(by_function, by_name)
