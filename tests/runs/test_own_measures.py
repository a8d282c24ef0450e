"""Functions of the user that see probabilities: those of the model, in the order of the sorted labels."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss

from ckcv_ray import Execution, evaluate
from ckcv_ray.errors import InputError
from ckcv_ray.runs.load import load_scores

SERIAL = Execution("serial")
X, Y = load_iris(return_X_y=True)
X, LABELS = X[::3], np.array(["setosa", "versicolor", "virginica"])[Y[::3]]


def surprise(y, predicted, probability):
    return log_loss(y, probability, labels=["setosa", "versicolor", "virginica"])


def doubt(y, predicted, *, probability):
    probability[:] = probability.max(axis=1, keepdims=True)  # its own copy
    return 1.0 - float(np.mean(probability))


def test_a_function_gets_the_probabilities(tmp_path):
    options = {"learner": "naive_bayes", "resampling": "kfold:4"}
    measures = [doubt, surprise, "log_loss"]
    result = evaluate(X, LABELS, tmp_path / "run", SERIAL, measure=measures, **options)
    (entry,) = result.entries
    doubts, own, named = (result.of_splits(entry, score) for score in result.scores)
    np.testing.assert_array_equal(own, named)
    assert np.all((doubts > 0) & (doubts < 2 / 3))
    again = load_scores(tmp_path / "run")
    assert again.summary_json() == result.summary_json()


def test_a_class_without_training_rows_has_probability_zero():
    seen = []

    def spy(y, predicted, probability):
        seen.append((y, probability))
        return 0.0

    fitted = np.flatnonzero(LABELS != "versicolor")[::2]
    scored = np.setdiff1d(np.arange(len(X)), fitted)
    split = [(fitted, scored)]
    evaluate(X, LABELS, resampling=split, measure=spy, learner="forest", execution=SERIAL)
    ((y, probability),) = seen
    assert np.array_equal(y, LABELS[scored])
    assert np.all(probability[:, 1] == 0)
    np.testing.assert_allclose(probability.sum(axis=1), 1)


def test_without_probabilities_such_a_function_is_refused():
    with pytest.raises(InputError, match="measure=surprise needs probabilities, which learner=svm does not"):
        evaluate(X, LABELS, measure=surprise, learner="svm", execution=SERIAL)
    with pytest.raises(InputError, match="measure=surprise has a parameter probability, of classes, and the"):
        evaluate(X, X[:, 0], measure=surprise, learner="ridge", execution=SERIAL)


def test_a_function_selects_by_probabilities():
    """Selected by a function as by the score of its name."""
    options = {"learner": "neighbors", "param": {"n_neighbors": (1, 5, 9)}, "resampling": "nested_halves:3"}
    own = evaluate(X, LABELS, measure=surprise, execution=SERIAL, **options)
    named = evaluate(X, LABELS, measure="log_loss", execution=SERIAL, **options)
    assert own.entries[0].settings == named.entries[0].settings
