"""F*: stored and read back in every bit, predicting each row alone, drawing members fairly."""

import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scipy.stats import chi2

from ckcv_ray.learners import ensemble as ensembles
from ckcv_ray.learners.ensemble import (
    UNDECIDED,
    Ensemble,
    Member,
    from_arrow,
    label,
    mistakes,
    to_arrow,
    to_pickles,
)
from ckcv_ray.learners.svm.scaling import Scaling, identity

N, D = 40, 3
AWKWARD = [0.0, -0.0, 5e-324, 1e-300, 0.1, 1 / 3, -2 / 3, 1.7976931348623157e308]

seeds = st.integers(0, 2**32 - 1)


def make_member(rng, X, mc_index=0, n_support=None):
    """A member with weights of no particular machine."""
    n_support = int(rng.integers(1, len(X))) if n_support is None else n_support
    support = np.sort(rng.choice(len(X), size=n_support, replace=False)).astype(np.int64)
    return Member(
        k=5,
        mc_index=mc_index,
        C=float(rng.uniform(0.1, 10)),
        gamma=float(rng.uniform(0.01, 2)),
        scaling=Scaling(rng.normal(size=X.shape[1]), rng.uniform(0.5, 2, size=X.shape[1])),
        support=support,
        vectors=X[support],
        dual_coef=rng.normal(size=n_support),
        offset=float(rng.normal()),
        errors=(int(rng.integers(5)), int(rng.integers(5))),
        n_estimate=(int(rng.integers(5, 9)), int(rng.integers(5, 9))),
    )


def make_ensemble(seed=0, n_members=5, d=D):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, d))
    return Ensemble(tuple(make_member(rng, X, i) for i in range(n_members))), X


def constant(value, d=D):
    """A member that gives every row the same decision value."""
    nothing = np.empty(0)
    return Member(
        k=3,
        mc_index=0,
        C=1.0,
        gamma=1.0,
        scaling=identity(d),
        support=nothing.astype(np.int64),
        vectors=np.empty((0, d)),
        dual_coef=nothing,
        offset=value,
        errors=(0, 0),
        n_estimate=(1, 1),
    )


def constants(*values):
    return Ensemble(tuple(replace(constant(value), mc_index=i) for i, value in enumerate(values)))


def bits(value):
    """Type, shape and every bit of a value, whatever it is made of."""
    if isinstance(value, (tuple, list)):
        return [bits(part) for part in value]
    if isinstance(value, (Member, Ensemble)):
        return {name: bits(part) for name, part in vars(value).items()}
    array = np.asarray(value)
    return type(value).__name__, array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes()


def test_bits_tell_zeros_apart():
    assert bits((0.0, np.zeros(2))) == bits((0.0, np.zeros(2)))
    assert bits(0.0) != bits(-0.0)
    assert bits(constant(1.0)) != bits(constant(np.nextafter(1.0, 2.0).item()))


# Stored and read back


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(1, 6))
def test_arrow_and_back_is_exact(seed, n_members):
    ensemble, X = make_ensemble(seed, n_members)
    assert bits(from_arrow(to_arrow(ensemble), X)) == bits(ensemble)


def test_parquet_and_back_is_exact_for_awkward_numbers(tmp_path):
    X = np.resize(AWKWARD, (8, D))
    odd = Member(
        k=3,
        mc_index=7,
        C=0.1,
        gamma=5e-324,
        scaling=Scaling(np.array(AWKWARD[:D]), np.array([5e-324, 1 / 3, np.finfo(float).max])),
        support=np.arange(8),
        vectors=X,
        dual_coef=np.array(AWKWARD),
        offset=-0.0,
        errors=(0, 2**40),
        n_estimate=(0, 2**40),
    )
    ensemble = Ensemble((odd, constant(1 / 3)))
    file = tmp_path / "models.parquet"
    parquet.write_table(to_arrow(ensemble), file)
    again = from_arrow(parquet.read_table(file), X)
    assert bits(again) == bits(ensemble)
    assert pa.types.is_floating(to_arrow(ensemble).schema.field("offset").type)


def test_what_is_read_back_predicts_in_the_same_bits():
    ensemble, X = make_ensemble(3)
    again = from_arrow(to_arrow(ensemble), X)
    assert bits(again.keyed(X)) == bits(ensemble.keyed(X))
    assert bits(again.vote(X)) == bits(ensemble.vote(X))


def test_pickles_stand_alone_and_predict_the_same():
    ensemble, X = make_ensemble(4)
    files = to_pickles(ensemble, X)
    assert sorted(files) == [f"model-{i:05d}.pkl" for i in range(5)]
    for member in ensemble.members:
        loaded = pickle.loads(files[f"model-{member.mc_index:05d}.pkl"])
        assert bits(loaded) == bits(member)
        assert bits(loaded.decision(X)) == bits(member.decision(X))
        assert bits(loaded.predict(X)) == bits(member.predict(X))


def test_a_pickle_holds_the_support_and_not_the_learning_set():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, D))
    content = to_pickles(Ensemble((make_member(rng, X, n_support=2),)), X)["model-00000.pkl"]
    assert len(content) < 5000


# The decision function


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_the_decision_is_the_sum_that_defines_it(seed):
    (member,), X = (lambda e: (e[0].members, e[1]))(make_ensemble(seed, 1))

    def scaled(row):
        return (row - member.scaling.centre) / member.scaling.scale

    expected = [
        member.offset
        + sum(
            b * np.exp(-member.gamma * np.sum((scaled(x) - scaled(v)) ** 2))
            for b, v in zip(member.dual_coef, member.vectors, strict=True)
        )
        for x in X[:5]
    ]
    assert member.decision(X[:5]) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_member_without_support_is_constant():
    X = np.random.default_rng(0).normal(size=(4, D))
    assert constant(-1.0).decision(X).tolist() == [-1.0] * 4
    assert constant(0.5).predict(X).tolist() == [1] * 4


# Each row alone


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


@settings(max_examples=60, deadline=None)
@given(
    seeds,
    st.integers(1, 20),
    st.integers(1, 9),
    st.permutations(range(N)),
    st.lists(st.integers(0, N), max_size=8),
)
def test_neither_order_nor_batches_change_a_prediction(seed, n_members, d, order, cuts):
    ensemble, X = make_ensemble(seed, n_members, d)
    assert_rows_stand_alone(ensemble.keyed, X, np.array(order), cuts)


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(1, 20), st.permutations(range(N)), st.lists(st.integers(0, N), max_size=8))
def test_neither_order_nor_batches_change_a_vote(seed, n_members, order, cuts):
    ensemble, X = make_ensemble(seed, n_members)
    assert_rows_stand_alone(ensemble.vote, X, np.array(order), cuts)


@pytest.mark.parametrize("n_members", [1, 2, 7, 8, 9, 20, 100])
@pytest.mark.parametrize("verb", ["keyed", "vote"])
def test_a_row_alone_is_predicted_as_among_others(verb, n_members):
    ensemble, X = make_ensemble(1, n_members)
    assert_rows_stand_alone(getattr(ensemble, verb), X, np.arange(N)[::-1], range(1, N))


def test_the_size_of_the_internal_block_does_not_matter(monkeypatch):
    ensemble, X = make_ensemble(2)
    whole = ensemble.decisions(X)
    for block in (1, 50, 97):
        monkeypatch.setattr(ensembles, "BLOCK", block)
        assert bits(ensemble.decisions(X)) == bits(whole)


def test_the_layout_of_the_rows_in_memory_does_not_matter():
    ensemble, X = make_ensemble(5)
    whole = ensemble.keyed(X)
    wide = np.repeat(X, 2, axis=1)
    for rows in (np.asfortranarray(X), wide[:, ::2], X[::-1].copy()[::-1]):
        assert bits(ensemble.keyed(rows)) == bits(whole)
        assert bits(ensemble.vote(rows)) == bits(ensemble.vote(X))


def test_no_rows_give_no_predictions():
    ensemble, X = make_ensemble(6)
    for prediction in (ensemble.keyed(X[:0]), ensemble.vote(X[:0])):
        assert [len(part) for part in prediction] == [0, 0, 0, 0]


def test_nothing_is_written_into_the_arguments():
    ensemble, X = make_ensemble(7)
    before = bits(ensemble), bits(X)
    for member in ensemble.members:
        for array in (member.vectors, member.dual_coef, member.support, *member.scaling):
            array.flags.writeable = False
    X.flags.writeable = False
    ensemble.keyed(X)
    ensemble.vote(X)
    ensemble.error_rates(X, np.ones(N, dtype=np.int8))
    to_arrow(ensemble)
    assert (bits(ensemble), bits(X)) == before


# The member that decides


@settings(max_examples=30, deadline=None)
@given(seeds, seeds)
def test_a_prediction_is_that_of_the_member_it_names(seed, draw):
    ensemble, X = make_ensemble(seed)
    predicted = ensemble.keyed(X, draw)
    decisions = np.array([member.decision(X) for member in ensemble.members])
    rows = np.arange(N)
    assert bits(predicted.score) == bits(decisions[predicted.member, rows])
    assert np.array_equal(predicted.sign, np.where(predicted.score > UNDECIDED, 1, -1))
    agree = np.where(decisions > UNDECIDED, 1, -1) == predicted.sign
    assert predicted.share == pytest.approx(agree.mean(axis=0))
    assert np.all(predicted.share >= 1 / len(ensemble.members))


@settings(max_examples=30, deadline=None)
@given(seeds, seeds, st.integers(1, 30))
def test_minus_zero_is_zero(seed, draw, n_members):
    ensemble, X = make_ensemble(seed, n_members)
    zeros = np.random.default_rng(seed).random(X.shape) < 0.5
    plus, minus = np.where(zeros, 0.0, X), np.where(zeros, -0.0, X)
    assert plus.tobytes() != minus.tobytes()
    assert bits(ensemble.keyed(minus, draw).member) == bits(ensemble.keyed(plus, draw).member)
    assert np.array_equal(ensemble.keyed(minus, draw).sign, ensemble.keyed(plus, draw).sign)


def test_equal_rows_draw_the_same_member():
    ensemble, X = make_ensemble(8, 30)
    doubled = ensemble.keyed(np.concatenate([X, X])).member
    assert np.array_equal(doubled[:N], doubled[N:])


def p_value(counts):
    """Of the counts being drawn evenly, by Pearson's chi-square."""
    expected = counts.sum() / len(counts)
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1)


@pytest.mark.parametrize("n_members", [2, 5, 20, 100])
def test_members_are_drawn_evenly(n_members):
    """10 000 distinct rows: a fair draw fails this once in a million fixed seeds."""
    X = np.random.default_rng(0).normal(size=(10_000, 2))
    ensemble = Ensemble(tuple(constant(1.0, d=2) for _ in range(n_members)))
    for seed in (0, 1):
        counts = np.bincount(ensemble.keyed(X, seed).member, minlength=n_members)
        assert len(counts) == n_members
        assert p_value(counts) > 1e-6


def test_members_are_drawn_evenly_on_rows_of_few_whole_numbers():
    X = np.array([(a, b) for a in range(100) for b in range(100)], dtype=float)
    ensemble = Ensemble(tuple(constant(1.0, d=2) for _ in range(16)))
    assert p_value(np.bincount(ensemble.keyed(X).member, minlength=16)) > 1e-6


def test_another_seed_draws_independently():
    """Two fair draws of 10 members agree on a row with probability 1/10: 6 standard deviations are 0.018."""
    X = np.random.default_rng(0).normal(size=(10_000, 2))
    ensemble = Ensemble(tuple(constant(1.0, d=2) for _ in range(10)))
    agree = np.mean(ensemble.keyed(X, 0).member == ensemble.keyed(X, 1).member)
    assert abs(agree - 0.1) < 0.018


# The vote


@pytest.mark.parametrize(
    ("values", "sign", "share"),
    [
        ((1.0,), 1, 1.0),
        ((-1.0,), -1, 1.0),
        ((1.0, -9.0), -1, 0.5),
        ((9.0, -1.0), -1, 0.5),
        ((1.0, 1.0, -9.0), 1, 2 / 3),
        ((-1.0, -1.0, 9.0), -1, 2 / 3),
        ((1.0, -1.0, 1.0, -1.0), -1, 0.5),
        ((0.0, 1.0), -1, 0.5),
        ((0.0, 0.0, 1.0), -1, 2 / 3),
        ((0.0, 1.0, 1.0), 1, 2 / 3),
    ],
)
def test_the_majority_decides_and_a_tie_gives_the_first_class(values, sign, share):
    predicted = constants(*values).vote(np.zeros((2, D)))
    assert predicted.sign.tolist() == [sign, sign]
    assert predicted.member.tolist() == [-1, -1]
    assert predicted.share == pytest.approx([share, share])
    assert predicted.score == pytest.approx([np.mean(values)] * 2)


@pytest.mark.parametrize("half", [1, 2, 5, 10, 50])
def test_every_even_split_of_the_members_gives_the_first_class(half):
    assert constants(*[1.0] * half, *[-1.0] * half).vote(np.zeros((1, D))).sign.tolist() == [-1]
    assert constants(*[1.0] * (half + 1), *[-1.0] * half).vote(np.zeros((1, D))).sign.tolist() == [1]


# The undecided

NEAR = [0.0, -0.0, 1e-10, -1e-10, 1e-9, -1e-9, np.nextafter(1e-9, 0)]
CLEAR = [np.nextafter(1e-9, 1), 2e-9, 1.0, 1e300]


@pytest.mark.parametrize("value", NEAR)
def test_a_decision_within_1e_9_gives_the_first_class_and_counts_as_an_error(value):
    assert label(np.array([value])).tolist() == [-1]
    assert mistakes(np.array([value]), np.array([-1], dtype=np.int8)) == (1, 0)
    assert mistakes(np.array([value]), np.array([1], dtype=np.int8)) == (0, 1)


@pytest.mark.parametrize("value", CLEAR)
def test_a_decision_beyond_1e_9_counts_by_its_sign(value):
    assert label(np.array([value, -value])).tolist() == [1, -1]
    assert label(np.array([value])).dtype == np.int8
    assert mistakes(np.array([value, -value]), np.array([1, -1], dtype=np.int8)) == (0, 0)
    assert mistakes(np.array([value, -value]), np.array([-1, 1], dtype=np.int8)) == (1, 1)


@given(
    st.lists(st.tuples(st.sampled_from([*NEAR, *CLEAR, -1.0, -2e-9]), st.sampled_from([-1, 1])), max_size=20)
)
def test_mistakes_add_up_row_by_row(rows):
    decision = np.array([value for value, _ in rows], dtype=float)
    y = np.array([sign for _, sign in rows], dtype=np.int8)
    expected = [0, 0]
    for value, sign in rows:
        expected[int(sign > 0)] += int(abs(value) <= 1e-9 or (value > 0) != (sign > 0))
    assert mistakes(decision, y) == tuple(expected)
    assert all(type(count) is int for count in mistakes(decision, y))


# Error rates


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_error_rates_are_the_members_mean_and_the_votes(seed):
    ensemble, X = make_ensemble(seed)
    y = np.where(np.random.default_rng(seed).random(N) < 0.5, 1, -1).astype(np.int8)
    error, vote_error = ensemble.error_rates(X, y)
    assert error == pytest.approx(np.mean([np.mean(member.predict(X) != y) for member in ensemble.members]))
    assert vote_error == pytest.approx(np.mean(ensemble.vote(X).sign != y))
    assert vote_error <= 2 * error + 1e-12


def test_equal_rows_meet_one_member_by_the_key_and_any_when_drawn_afresh():
    ensemble, _ = make_ensemble(3, n_members=20)
    X = np.zeros((400, D))
    assert len(set(ensemble.keyed(X, 5).member.tolist())) == 1
    drawn = ensemble.random(X, 5)
    assert p_value(np.bincount(drawn.member, minlength=20)) > 1e-6
    assert bits(drawn) == bits(ensemble.random(X, 5))
    assert drawn.member.tolist() != ensemble.random(X, 6).member.tolist()
