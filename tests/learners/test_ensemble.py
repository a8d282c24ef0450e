"""F*: stored and read back in every bit, votes of its members, and what a member got right."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from learner_contract import clouds
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
seeds = st.integers(0, 2**32 - 1)


class Says:
    """A model that gives rows these classes in order, whatever the rows; without a score."""

    def __init__(self, *labels):
        self.labels = labels

    def predict(self, X):
        label = np.resize(np.array(self.labels, dtype=np.int32), len(X))
        return Predicted(label, np.full(len(X), np.nan))


def saying(*members):
    """An ensemble of members that give rows these classes, of six."""
    none = (0,) * 6
    return Ensemble(tuple(Member(3, i, Says(*labels), none, none) for i, labels in enumerate(members)))


def test_it_is_the_same_from_parquet_and_from_pickles_in_any_order(tmp_path):
    svm, task, rows = GaussianSVM(C=(0.1, 10.0), gamma=(1.0,)), clouds(N, 3), np.arange(N)
    fits, counts = svm.trainer.prepare(svm.trainer.share(task), rows, rows).fit(0, 2), (0, 2**40, 1)
    ensemble = Ensemble(tuple(Member(5, 7 - i, fits.model(i), counts, counts) for i in range(2)))
    parquet.write_table(to_arrow(ensemble, svm, task), tmp_path / "models.parquet")
    files = to_pickles(ensemble, svm, task)
    assert sorted(files) == ["model-00006.pkl", "model-00007.pkl"]
    unpickled = from_pickles(files[name] for name in sorted(files, reverse=True))
    assert [member.split for member in unpickled.members] == [6, 7]
    stored = from_arrow(parquet.read_table(tmp_path / "models.parquet"), svm, task)
    for again in (stored.members, unpickled.members[::-1]):
        for one, other in zip(again, ensemble.members, strict=True):
            assert replace(one, model=None) == replace(other, model=None)
            assert svm.codec.same(one.model, other.model)
    columns = make_schema(svm, task)
    assert to_arrow(ensemble, svm, task).schema == columns
    assert columns.names == ["k", "split", "errors", "n_estimate", *svm.codec.columns(task).names]


class Leans:
    """A model whose score is a multiple of the first column."""

    def __init__(self, factor):
        self.factor = factor

    def predict(self, X):
        score = X[:, 0] * self.factor
        return Predicted((score > 0).astype(np.int32), score)


def test_the_vote_for_a_row_has_the_same_bits_alone():
    rng, none = np.random.default_rng(0), (0, 0)
    ensemble = Ensemble(tuple(Member(3, i, Leans(rng.normal()), none, none) for i in range(20)))
    X = rng.normal(size=(N, D))
    alone = zip(*(ensemble.vote(X[i : i + 1]) for i in range(N)), strict=True)
    for whole, parts in zip(ensemble.vote(X), alone, strict=True):
        assert whole.tobytes() == np.concatenate(parts).tobytes()


@settings(max_examples=limit_examples(40), deadline=None)
@given(seeds, st.integers(2, 5), st.integers(1, 7))
def test_votes_of_several_classes_are_counted_one_by_one(seed, n_classes, n_members):
    rng = np.random.default_rng(seed)
    said = rng.integers(-1, n_classes, size=(n_members, N))
    ensemble, X = saying(*said), np.zeros((N, D))
    found, labels = ensemble.vote(X), np.maximum(said, 0)
    assert np.array_equal(ensemble.predict(X)[0], labels)
    for i in range(N):
        counts = [int(np.sum(labels[:, i] == c)) for c in range(n_classes)]
        assert found.label[i] == counts.index(max(counts))
        assert found.share[i] == pytest.approx(max(counts) / n_members)
    drawn = ensemble.random(X, seed)
    assert np.array_equal(drawn.label, labels[drawn.member, np.arange(N)])


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
