"""Which models can be stored: each is stored and predicts alike, or is refused before the fits."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, f_classif, mutual_info_classif
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

from ckcv_ray import Execution, evaluate
from ckcv_ray.errors import InputError
from ckcv_ray.learners.sklearn import learner as learners
from ckcv_ray.runs.load import load_scores

SERIAL = Execution("serial")
X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[::8, :4], Y[::8]
TWO = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=2))]
STORED = {
    "SelectKBest": make_pipeline(SelectKBest(f_classif, k=2), GaussianNB()),
    "SelectFromModel": make_pipeline(SelectFromModel(DecisionTreeClassifier(max_depth=2)), GaussianNB()),
    "RFE": make_pipeline(RFE(DecisionTreeClassifier(max_depth=2), n_features_to_select=2), GaussianNB()),
    "PolynomialFeatures": make_pipeline(PolynomialFeatures(), StandardScaler(), GaussianNB()),
    "FunctionTransformer": make_pipeline(FunctionTransformer(np.sqrt), GaussianNB()),
    "FixedThresholdClassifier": FixedThresholdClassifier(GaussianNB(), threshold=0.3),
    "VotingClassifier": VotingClassifier(TWO),
    "soft VotingClassifier": VotingClassifier(TWO, voting="soft", weights=[1, 2]),
    "StackingClassifier": StackingClassifier(TWO, GaussianNB(), cv=2),
    "StackingClassifier of its rows": StackingClassifier(TWO, GaussianNB(), cv=2, passthrough=True),
    "KBinsDiscretizer": make_pipeline(
        KBinsDiscretizer(2, quantile_method="averaged_inverted_cdf"), LogisticRegression()
    ),
    "SimpleImputer": make_pipeline(SimpleImputer(add_indicator=True), GaussianNB()),
    "trees of polynomials": make_pipeline(PolynomialFeatures(), GradientBoostingClassifier(n_estimators=2)),
    "forest of polynomials": make_pipeline(PolynomialFeatures(), ExtraTreesClassifier(n_estimators=2)),
    "histograms of polynomials": make_pipeline(
        PolynomialFeatures(), HistGradientBoostingClassifier(max_iter=2)
    ),
}
REFUSED = {
    "TunedThresholdClassifierCV": (TunedThresholdClassifierCV(GaussianNB(), cv=2), "function"),
    "GridSearchCV": (
        GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2),
        "MaskedArray",
    ),
    "SplineTransformer": (make_pipeline(SplineTransformer(3), GaussianNB()), "function"),
}
DRAWING = make_pipeline(SelectKBest(mutual_info_classif), GaussianNB())
OPTIONS: dict[str, Any] = {"resampling": "kfold:3", "execution": SERIAL}


@pytest.mark.parametrize("name", STORED)
def test_it_is_stored_and_predicts_alike(name: str, tmp_path: Path) -> None:
    result = evaluate(X, Y, out=tmp_path / "scores", learner=STORED[name], refit="best", **OPTIONS)
    assert np.array_equal(load_scores(tmp_path / "scores").predict(X), result.predict(X))


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_before_the_fits_and_scored_without_a_model(name: str, tmp_path: Path) -> None:
    learner, why = REFUSED[name]
    with pytest.raises(InputError, match=f"cannot be stored: .*{why}"):
        evaluate(X, Y, out=tmp_path / "model", learner=learner, refit="best", **OPTIONS)
    assert not (tmp_path / "model").exists()
    result = evaluate(X, Y, out=tmp_path / "scores", learner=learner, **OPTIONS)
    assert np.all(np.isfinite(result.of_splits(result.entries[0], result.scores[0])))


def test_what_draws_random_numbers_is_refused_however_long_the_trial_takes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(learners, "MAX_SECONDS", 0.0)
    slow = GridSearchCV(DRAWING, {"selectkbest__k": [1, 2]}, cv=2)
    with pytest.raises(InputError, match="cannot be stored"):
        evaluate(X, Y, out=tmp_path / "model", learner=slow, refit="best", **OPTIONS)
