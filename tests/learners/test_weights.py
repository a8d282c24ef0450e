"""Weights of rows and of classes in fits, and balanced rows, against fits of scikit-learn (``test_paths``:
exact paths).
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, chisquare
from sklearn.datasets import load_diabetes, make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import KFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ckcv_ray import Execution, Procedure, Task, evaluate
from ckcv_ray.core.schedule import Stage
from ckcv_ray.extend import NystroemSVM
from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.learners.sklearn.paths import fit_model
from ckcv_ray.learners.steps import Balance, draw_balanced
from ckcv_ray.study.problem import OUTER, Problem
from ckcv_ray.tables.roles import Roles

RNG = np.random.default_rng(0)
X, Y = make_classification(160, 8, random_state=1)
WEIGHTS = RNG.integers(1, 6, 160).astype(float)
NUMBERS, TARGETS = (part[:160] for part in load_diabetes(return_X_y=True))
FOLDS = KFold(5, shuffle=True, random_state=0)


@pytest.mark.parametrize(
    ("learner", "measure", "peer", "step"),
    [
        ("linear", "neg_log_loss", LogisticRegression(C=1.0, max_iter=10_000), "logisticregression"),
        ("ridge", "neg_mean_squared_error", Ridge(), "ridge"),
    ],
)
def test_scores_are_those_of_cross_validate(learner: str, measure: str, peer: Any, step: str) -> None:
    rows, targets = (X, Y) if learner == "linear" else (NUMBERS, TARGETS)
    options = {"learner": learner, "measure": measure, "resampling": FOLDS}
    if learner == "linear":
        options |= {"param": {"C": (1.0,)}}
    found = evaluate(rows, targets, sample_weight=WEIGHTS, **options)
    pipeline, weights = make_pipeline(StandardScaler(), peer), {f"{step}__sample_weight": WEIGHTS}
    theirs = cross_validate(pipeline, rows, targets, cv=FOLDS, scoring=measure, params=weights)
    unweighted = evaluate(rows, targets, **options)
    scores, others = (one.of_splits(one.entries[0], one.scores[0]) for one in (found, unweighted))
    assert np.allclose(scores, theirs["test_score"], rtol=1e-6 if learner == "linear" else 1e-11)
    assert not np.allclose(others, theirs["test_score"], rtol=1e-3)


def fit_all(task: Task, learner: Any) -> Any:
    every = np.arange(task.n)
    return learner.trainer.prepare(learner.trainer.share(task), every, every[:0]).fit(0, 1)


def test_weights_of_a_class_are_class_weights() -> None:
    by_row = Task.of(X, Y, sample_weight=np.where(Y == 1, 4.0, 1.0))
    plain = NystroemSVM(landmarks=20)
    weighted = fit_all(by_row, plain).model(0)
    by_class = fit_all(Task.of(X, Y), NystroemSVM(landmarks=20, class_weight="1=4")).model(0)
    assert np.array_equal(weighted.dual_coef, by_class.dual_coef)


def test_encoded_learners_and_choices_hand_weights_on() -> None:
    ward = np.where(RNG.random(160) < 0.5, "east", "west")
    columns = pa.table({"x": X[:, 0], "z": X[:, 1], "ward": ward, "y": Y, "w": WEIGHTS})
    study, found = Procedure.of(learner="linear,tree", measure="accuracy", resampling="kfold:3"), []
    for weight in ("w", None):
        task = Task.from_table(columns, Roles("y", features=["x", "z", "ward"], weight=weight))
        trainer = Problem.of(study, task).learner.trainer
        block = trainer.prepare(trainer.share(task), np.arange(80), np.arange(80, 160))
        found.append([block.fit(path, 1).model(0) for path in range(2)])
    (linear, tree), (plain_linear, plain_tree) = found
    assert linear.encoder.text == plain_linear.encoder.text
    for weighted, plain in ((linear, plain_linear), (tree, plain_tree)):
        assert weighted.model.content != plain.model.content


def test_a_class_without_training_rows_needs_no_weight() -> None:
    three = Task.of(X, np.arange(160) % 3)
    rows = np.flatnonzero(three.y != 1)
    for name in ("linear", "boosting", "tree"):
        learner = LEARNERS[name](class_weight="0=2,1=5").canonical(three)
        model, _ = fit_model(learner, three, rows, learner.space.setting(0, 0))
        assert set(model.predict(X).label) <= {0, 2}


# Balanced rows


LABELS = np.where(X[:, 0] + RNG.normal(size=160) > 1.3, "ill", "well")
TASK = Task.of(X, LABELS)


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=60),
    st.integers(0, 2**32),
    st.sampled_from([Balance.UP, Balance.DOWN]),
)
def test_classes_are_equal_and_rows_are_training_rows(classes, seed, how):
    y = np.array(classes)
    train = np.random.default_rng(seed).choice(len(y), 1 + len(y) // 2)  # with repeats, as a bootstrap's
    drawn = draw_balanced(y, train, how)
    before = np.unique(y[train], return_counts=True)[1]
    after = np.unique(y[drawn], return_counts=True)[1]
    assert set(after) == {before.max() if how is Balance.UP else before.min()}
    assert set(y[drawn]) == set(y[train])
    given, kept = np.bincount(train, minlength=len(y)), np.bincount(drawn, minlength=len(y))
    if how is Balance.UP:
        assert np.all(kept >= given)
        largest = np.isin(y, np.unique(y[train])[before == before.max()])
        assert np.array_equal(kept[largest], given[largest])
    else:
        assert np.all(kept <= given)
    assert np.array_equal(drawn, np.sort(drawn))
    assert np.array_equal(drawn, draw_balanced(y, train, how))


@pytest.mark.parametrize("how", [Balance.UP, Balance.DOWN])
def test_rows_of_a_class_are_drawn_as_likely(how):
    train, rng, draws = np.arange(0, 160, 2), np.random.default_rng(0), 400
    # one draw for each order of the training rows
    drawn = [draw_balanced(TASK.y, rng.permutation(train), how) for _ in range(draws)]
    y, times = TASK.y[train], np.bincount(np.concatenate(drawn), minlength=TASK.n)[train]
    counts = np.bincount(y)
    rare, common = times[y == counts.argmin()], times[y == counts.argmax()]
    if how is Balance.UP:
        assert np.all(common == draws)
        assert chisquare(rare - draws).pvalue > 1e-3
    else:  # without replacement counts vary less than the multinomial's, by 1 - counts.min() / counts.max()
        assert np.all(rare == draws)
        expected, spread = draws * counts.min() / counts.max(), 1 - counts.min() / counts.max()
        statistic = np.sum((common - expected) ** 2) / expected / spread
        assert chi2.sf(statistic, counts.max() - 1) > 1e-3


@pytest.mark.parametrize("how", [Balance.UP, Balance.DOWN])
@pytest.mark.parametrize("resampling", ["kfold:5", "bootstrap:4"])
def test_scores_are_those_of_scikit_learn_fitted_to_these_rows(how, resampling):
    """Scored rows are as they are."""
    options = {"resampling": resampling, "measure": "balanced_accuracy", "execution": Execution("serial")}
    result = evaluate(X, LABELS, learner="naive_bayes", balance=how, **options)
    (entry,), (score,) = result.entries, result.scores
    expected = []
    for number in range(result.computed.n_splits):
        train, scored = result.problem.rows(Stage.SELECT, OUTER, number)
        rows = draw_balanced(TASK.y, train, how)
        model = GaussianNB().fit(X[rows], TASK.y[rows])
        expected.append(balanced_accuracy_score(TASK.y[scored], model.predict(X[scored])))
    np.testing.assert_array_equal(result.of_splits(entry, score), expected)
