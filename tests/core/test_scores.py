"""Scores: the numbers of scikit-learn, and pooled those of all rows as one set."""

from math import isnan

import numpy as np
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

from ckcv_ray import Execution, evaluate
from ckcv_ray.core.intervals import bound_score
from ckcv_ray.core.measures import (
    OWN,
    VALUE,
    Kind,
    Outputs,
    extend_score,
    list_row_means,
    make_score,
)
from ckcv_ray.errors import InputError


def answers(n, n_classes, seed):
    """Draw classes and answers about them; of two classes the scores agree with the labels."""
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    shares = rng.dirichlet(np.ones(n_classes), n)
    label = shares.argmax(axis=1).astype(np.int32)
    rank = shares[:, 1] - shares[:, 0] if n_classes == 2 else None
    y = np.where(rng.random(n) < 0.7, label, rng.integers(0, n_classes, n))
    y[:n_classes] = np.arange(n_classes)
    return y, Outputs(label, rank, shares)


def numbers(n, seed):
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    y = rng.normal(size=n) + 3
    return y, Outputs(value=y + rng.normal(size=n) / 2)


@pytest.mark.parametrize("score", [one for one in OWN if one.sums], ids=lambda one: one.name)
@given(seed=st.integers(0, 2**32), n=st.integers(12, 60), cut=st.floats(0.2, 0.8))
def test_a_pooled_score_is_that_of_all_rows(score, seed, n, cut):
    """The sums of two parts are those of the whole, whatever the score of each part is."""
    y, said = numbers(n, seed) if score.needs == VALUE else answers(n, 2, seed)
    parts = np.split(np.arange(n), [int(cut * n)])
    cut_of = [(y[part], Outputs(*(None if one is None else one[part] for one in said))) for part in parts]
    sums = np.array([score.sums(*one, 2) for one in cut_of])
    assert score.pooled(sums) == pytest.approx(score.of(y, said), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
@pytest.mark.parametrize("parts", [1, 4, 60])
def test_a_pooled_r2_is_that_of_all_rows_however_far_from_zero(offset, parts):
    """A sum of squares minus a square of sums would have no digits left."""
    rng = np.random.default_rng(parts)
    y = rng.normal(size=60) + offset
    said = y + 0.3 * rng.normal(size=60)
    score = make_score("r2", Kind.REGRESSION)
    cut_of = np.array_split(np.arange(60), parts)
    sums = np.array([score.sums(y[part], Outputs(value=said[part]), 0) for part in cut_of])
    assert score.pooled(sums) == pytest.approx(metrics.r2_score(y - offset, said - offset), rel=1e-6)


def test_undecided_rows_count_as_wrong():
    y = np.array([0, 1, 1, 0])
    said = Outputs(np.array([-1, 1, -1, 0], np.int32))
    assert make_score("zero_one", Kind.BINARY).of(y, said) == 0.5
    assert make_score("accuracy", Kind.BINARY).of(y, said) == 0.5
    assert make_score("f1", Kind.BINARY).of(y, said) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("name", "kind", "messages"),
    [
        (
            "zero_one",
            Kind.REGRESSION,
            "measure='zero_one' is not for numbers: choose absolute, cor2, mape, r2",
        ),
        ("neg_mean_absolute_error", Kind.BINARY, "is not for two classes: choose accuracy"),
        ("f1_macro", Kind.REGRESSION, "is not for numbers: choose absolute"),
        ("roc_auc", Kind.MULTICLASS, "is not for three or more classes: .* such as roc_auc_ovr"),
        ("acuracy", Kind.BINARY, "did you mean accuracy"),
    ],
)
def test_a_score_of_another_kind_is_refused(name, kind, messages):
    with pytest.raises(InputError, match=messages):
        make_score(name, kind)


def test_a_squared_correlation_is_that_of_numpy_and_not_defined_of_something_constant():
    score = make_score("cor2", Kind.REGRESSION)
    y, said = numbers(30, 1)
    assert score.of(y, said) == pytest.approx(np.corrcoef(y, said.value)[0, 1] ** 2, rel=1e-12)
    assert isnan(score.of(np.arange(4.0), Outputs(value=np.ones(4))))
    assert isnan(score.of(np.ones(1), Outputs(value=np.zeros(1))))
    parts = [
        score.sums(np.array([y]), Outputs(value=np.array([2 * y + 1])), 0) for y in (1e9, 1e9 + 1, 1e9 + 3)
    ]
    assert score.pooled(np.array(parts)) == pytest.approx(1.0, rel=1e-12)  # each row by itself, as in loo


@pytest.mark.parametrize(
    "learner", [LinearSVC(), SVC(), GaussianNB()], ids=lambda learner: type(learner).__name__
)
@pytest.mark.parametrize("measure", ["average_precision", "top_k_accuracy"])
def test_several_classes_are_ranked_as_scikit_learn_ranks_them(learner, measure):
    """By decision values where there are any, and by probabilities otherwise: the same to the last digit."""
    X, y = load_iris(return_X_y=True)
    options = {"learner": learner, "resampling": StratifiedKFold(3), "measure": measure}
    found = evaluate(X, y, execution=Execution("serial"), **options)
    expected = cross_validate(learner, X, y, cv=StratifiedKFold(3), scoring=measure)["test_score"]
    assert found.of_splits(found.entries[0], found.scores[0]).tolist() == expected.tolist()


def test_a_class_without_training_rows_ranks_no_row_before_another():
    X, y = load_iris(return_X_y=True)
    scored = np.arange(0, 150, 7)
    splits = [(np.setdiff1d(np.flatnonzero(y != 1), scored), scored)]
    options = {"learner": LinearSVC(), "resampling": splits, "measure": "average_precision"}
    found = evaluate(X, y, execution=Execution("serial"), **options)
    train = splits[0][0]
    decision = LinearSVC().fit(X[train], y[train]).decision_function(X[scored])
    expected = np.mean(
        [
            metrics.average_precision_score(y[scored] == c, values)
            for c, values in enumerate((-decision, np.zeros(len(scored)), decision))
        ]
    )
    assert found.of_splits(found.entries[0], found.scores[0])[0] == pytest.approx(expected, rel=1e-15)


OF_CLASSES = ["zero_one", "accuracy", "cross_entropy", "log_loss", "brier"]


@pytest.mark.parametrize(("kind", "n_classes"), [*zip(Kind, (2, 3, 0), strict=True)])
@settings(max_examples=limit_examples(20))
@given(n=st.integers(4, 15), seed=st.integers(0, 999))
def test_a_mean_over_rows_is_that_of_its_rows(kind, n_classes, n, seed):
    y, said = answers(n, n_classes, seed) if n_classes else numbers(n, seed)
    names = list_row_means(kind)
    assert names == (OF_CLASSES if n_classes else ["squared", "absolute", "mape"])
    for name in (*names, "squared" if n_classes else "clipped:0.3"):  # Brier's, of classes
        score = make_score(name, kind)
        rows, sums, extended = score.rows(y, said), score.sums(y, said, n_classes), extend_score(score)
        assert rows.shape == y.shape
        assert rows.mean() == pytest.approx(score.of(y, said), rel=1e-12, abs=1e-15)
        found = np.array([extended.sums(y, said, n_classes)] * 2)  # a further sum, which changes nothing else
        assert extended.width(n_classes) == 1 + found.shape[1]
        assert found[0, : len(sums)].tolist() == list(sums)
        assert extended.pooled(found) == pytest.approx(score.pooled(np.array([sums])), rel=1e-12)
        if score.bound:
            assert bound_score(extended, found[0], 0.05) == bound_score(score, np.array(sums), 0.05)
        pairs = [score.of(np.full(len(y), target), said) for target in y]
        assert found[0, -1] == pytest.approx(np.mean(pairs), rel=1e-9, abs=1e-15)
