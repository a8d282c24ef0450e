"""F*: stored and read back in every bit, predicting each row alone, drawing members fairly."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import bits, make_constant, make_model, task_of
from pyarrow import parquet

from ckcv_ray.core.measures import UNDECIDED, ZERO_ONE
from ckcv_ray.learners.base import Predicted
from ckcv_ray.learners.ensemble import (
    Ensemble,
    Member,
    count_classes,
    find_only_class,
    from_arrow,
    from_pickles,
    judge,
    make_schema,
    to_arrow,
    to_pickles,
)
from ckcv_ray.learners.svm.learner import GaussianSVM

N, D = 40, 3
SVM = GaussianSVM()

seeds = st.integers(0, 2**32 - 1)


def make_member(rng, X, split=0, n_support=None):
    model, errors = make_model(rng, X, n_support), (int(rng.integers(5)), int(rng.integers(5)))
    return Member(5, split, model, errors, (int(rng.integers(5, 9)), int(rng.integers(5, 9))))


def make_ensemble(seed=0, n_members=5, d=D):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, d))
    return Ensemble(tuple(make_member(rng, X, i) for i in range(n_members))), X


def constant(value):
    return Member(3, 0, make_constant(value), (0, 0), (1, 1))


class Says:
    """A model that gives the rows these classes, whatever they are, in order; without a score."""

    def __init__(self, *labels):
        self.labels = labels

    def predict(self, X):
        label = np.resize(np.array(self.labels, dtype=np.int32), len(X))
        return Predicted(label, np.full(len(X), np.nan))


def saying(*members):
    """An ensemble of members that give rows these of six classes."""
    none = (0,) * 6
    return Ensemble(tuple(Member(3, i, Says(*labels), none, none) for i, labels in enumerate(members)))


def test_parquet_and_back_is_exact_for_any_number_of_classes(tmp_path):
    ensemble, X = make_ensemble(0, 2)
    odd = replace(ensemble.members[0], split=7, totals=(0, 2**40, 1), n_estimate=(0, 2**40, 1))
    ensemble = Ensemble((odd, ensemble.members[1], constant(1 / 3)))
    file = tmp_path / "models.parquet"
    parquet.write_table(to_arrow(ensemble, SVM, task_of(X)), file)
    again = from_arrow(parquet.read_table(file), SVM, task_of(X))
    assert bits(again) == bits(ensemble)
    columns = make_schema(SVM, task_of(X))
    assert to_arrow(ensemble, SVM, task_of(X)).schema == columns
    assert columns.names == ["k", "split", "errors", "n_estimate", *SVM.codec.columns(task_of(X)).names]


def test_pickles_stand_alone_and_predict_the_same():
    ensemble, X = make_ensemble(4)
    files = to_pickles(ensemble, SVM, task_of(X))
    assert sorted(files) == [f"model-{i:05d}.pkl" for i in range(5)]
    for member in ensemble.members:
        loaded = pickle.loads(files[f"model-{member.split:05d}.pkl"])
        assert bits(loaded) == bits(member)
        assert bits(loaded.model.predict(X)) == bits(member.model.predict(X))
    contents = [files[name] for name in sorted(files, reverse=True)]
    assert bits(from_pickles(contents)) == bits(ensemble)


def assert_rows_stand_alone(verb, X, order, cuts):
    """The predictions of X are those of its rows in another order, and in batches cut anywhere."""
    whole, shuffled = verb(X), verb(X[order])
    batches = [verb(rows) for rows in np.split(X, sorted(cuts))]
    for name, expected, mixed, parts in zip(
        whole._fields, whole, shuffled, zip(*batches, strict=True), strict=True
    ):
        assert bits(mixed) == bits(expected[order]), f"{name} depends on the order"
        joined = np.concatenate(parts)
        worst = np.abs(joined - expected).max()
        assert bits(joined) == bits(expected), f"{name} depends on the batches by {worst:.1e}"


@settings(max_examples=limit_examples(60), deadline=None)
@given(seeds, st.integers(1, 20), st.permutations(range(N)), st.lists(st.integers(0, N), max_size=8))
def test_neither_order_nor_batches_change_a_vote(seed, n_members, order, cuts):
    ensemble, X = make_ensemble(seed, n_members)
    assert_rows_stand_alone(ensemble.vote, X, np.array(order), cuts)


# More than two classes, and models without scores


@settings(max_examples=limit_examples(40), deadline=None)
@given(seeds, st.integers(2, 5), st.integers(1, 7))
def test_votes_of_several_classes_are_counted_one_by_one(seed, n_classes, n_members):
    rng = np.random.default_rng(seed)
    said = rng.integers(-1, n_classes, size=(n_members, N))
    ensemble, X, y = saying(*said), np.zeros((N, D)), rng.integers(n_classes, size=N)
    found, labels = ensemble.vote(X), np.maximum(said, 0)
    assert np.array_equal(ensemble.predict(X)[0], labels)
    for i in range(N):
        counts = [int(np.sum(labels[:, i] == c)) for c in range(n_classes)]
        assert found.label[i] == counts.index(max(counts))
        assert found.share[i] == pytest.approx(max(counts) / n_members)
    error, vote_error = ensemble.error_rates(X, y)
    assert error == pytest.approx(np.mean(labels != y))
    assert vote_error == pytest.approx(np.mean(found.label != y))
    drawn = ensemble.random(X, seed)
    assert np.array_equal(drawn.label, labels[drawn.member, np.arange(N)])


@settings(max_examples=limit_examples(40), deadline=None)
@given(seeds, st.integers(2, 5))
def test_a_model_is_judged_by_class_and_undecided_rows_are_wrong(seed, n_classes):
    rng = np.random.default_rng(seed)
    said, y = rng.integers(-1, n_classes, size=N), rng.integers(n_classes, size=N).astype(np.int32)
    errors, rows = judge(Says(*said), np.zeros((N, D)), y, ZERO_ONE, n_classes), count_classes(y, n_classes)
    assert errors == tuple(int(np.sum((y == c) & (said != c))) for c in range(n_classes))
    assert rows == tuple(int(np.sum(y == c)) for c in range(n_classes))
    assert all(type(count) is int for count in (*errors, *rows))


@pytest.mark.parametrize("said", [[0], [2], [0, 1], [2, 1, 2], [UNDECIDED, 2]])
@given(rows=st.lists(st.integers(0, 2), min_size=1, max_size=8))
def test_a_member_with_one_class_alone_is_no_better_than_that_constant(said, rows):
    y = np.array(rows, dtype=np.int32)
    member = Member(
        3, 0, None, judge(Says(*said), np.zeros((len(y), D)), y, ZERO_ONE, 3), count_classes(y, 3)
    )
    found = find_only_class(member)
    if found is not None:
        assert found in said
        assert np.sum(y != found) <= sum(member.errors)
    elif len(said) == 1:  # it has nothing right, or there is nothing else to predict
        assert said[0] not in rows or set(rows) == {said[0]}
