"""Classes with a single row: scored without a certification, and refused with one."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ckcv_ray import Execution, Study, evaluate, run
from ckcv_ray.core.schedule import Stage
from ckcv_ray.errors import InputError
from ckcv_ray.study.problem import OUTER

SERIAL = Execution("serial")
X = np.random.default_rng(7).normal(size=(40, 3))
LABELS = np.array(["a"] * 20 + ["b"] * 19 + ["c"])


def test_a_row_of_a_class_that_was_not_learned_is_wrong():
    """Its probability is 0, as scikit-learn's cross_val_predict has it; AUC is not defined there."""
    options = {"learner": "linear", "measure": "accuracy,log_loss,roc_auc_ovr", "resampling": "kfold:4"}
    result = evaluate(X, LABELS, execution=SERIAL, **options)
    (entry,), estimator = result.entries, make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    expected = []
    for number in range(4):
        train, scored = result.problem.rows(Stage.SELECT, OUTER, number)
        fitted = clone(estimator).fit(X[train], LABELS[train])
        shares = np.zeros((len(scored), 3))
        shares[:, np.searchsorted(["a", "b", "c"], fitted.classes_)] = fitted.predict_proba(X[scored])
        y = LABELS[scored]
        expected.append(
            (accuracy_score(y, fitted.predict(X[scored])), log_loss(y, shares, labels=list("abc")))
        )
    found = [result.of_splits(entry, score) for score in result.scores]
    np.testing.assert_allclose(np.transpose(found[:2]), expected, rtol=1e-9)
    assert np.isnan(found[2]).sum() == 3  # splits that do not score the row


@pytest.mark.parametrize("learner", ["svm", "forest", "neighbors", "linear", "naive_bayes", "constant"])
@pytest.mark.parametrize("stratify", [False, True])
def test_every_learner_is_scored(learner, stratify):
    result = evaluate(X, LABELS, learner=learner, resampling="kfold:3", stratify=stratify, execution=SERIAL)
    assert result.complete
    assert result.entries


def test_certified_studies_refuse_it():
    with pytest.raises(InputError, match="class 'c' has 1 row: each needs at least 2"):
        run(Study.of(k=(3,), n_splits=3, C=(1,), gamma=(1,)), X, LABELS)


def test_numbers_are_not_taken_for_classes():
    with pytest.raises(InputError, match=r"1 row each: most classes need at least 2; .* to predict numbers"):
        evaluate(X, np.arange(40) * 0.5, execution=SERIAL)
