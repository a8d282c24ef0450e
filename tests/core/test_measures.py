"""Totals and scores against counting and scikit-learn, and numbers by class label in one canonical text."""

from fractions import Fraction
from math import ceil, isnan

import numpy as np
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC

from ckcv_ray import Execution, evaluate
from ckcv_ray.core.intervals import bound_score
from ckcv_ray.core.measures import (
    GRAIN,
    OWN,
    UNDECIDED,
    VALUE,
    ZERO_ONE,
    ClippedErrors,
    Kind,
    Outputs,
    ZeroOne,
    canonicalize,
    extend_score,
    make_score,
    of_classes,
    parse_pairs,
)
from ckcv_ray.errors import ONE, InputError


@st.composite
def scored(draw):
    """Classes of some rows, and several predictions of them, undecided ones among them."""
    n_classes, n = draw(st.integers(2, 5)), draw(st.integers(0, 12))
    y = draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n))
    one = st.lists(st.integers(UNDECIDED, n_classes - 1), min_size=n, max_size=n)
    predicted = draw(st.lists(one, min_size=1, max_size=4))
    return (
        n_classes,
        np.array(y, dtype=np.int32),
        np.array(predicted, dtype=np.int32).reshape(len(predicted), n),
    )


@given(scored(), st.data())
@settings(derandomize=True, deadline=None, max_examples=limit_examples(60))
def test_the_loss_of_groups_is_the_sum_of_their_shares_of_wrong_rows_rounded_up(case, data):
    n_classes, y, predicted = case
    groups = data.draw(st.lists(st.integers(0, 4), min_size=len(y), max_size=len(y)))
    if not groups:
        return
    measure = ZeroOne(groups=np.array(groups, dtype=np.intp))
    totals = measure.totals(y, predicted, n_classes)
    assert totals.shape == (len(predicted), measure.columns(n_classes))
    assert totals.dtype == np.int64
    assert np.array_equal(totals[:, :n_classes], ZERO_ONE.totals(y, predicted, n_classes))
    for loss, row in zip(totals[:, -1].tolist(), predicted, strict=True):
        shares = []
        for group in set(groups):
            rows = [i for i, of in enumerate(groups) if of == group]
            shares.append(Fraction(sum(int(row[i] != y[i]) for i in rows), len(rows)))
        assert loss == sum(ceil(share * ONE) for share in shares)
        assert sum(shares) <= Fraction(loss, ONE) < sum(shares) + Fraction(len(shares), ONE)


# Numbers: the absolute error, at most the clip, divided by it


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.floats(1e-3, 1e6), st.randoms())
def test_clipped_errors_are_rounded_up_by_less_than_a_grain_and_added_in_any_order(y, clip, random):
    measure, numbers = ClippedErrors(clip), np.array(y)
    losses = measure.measure_losses(numbers, np.zeros(len(y)))
    exact = np.minimum(np.abs(numbers) / clip, 1.0)
    assert np.all(losses / ONE >= exact)
    assert np.all(losses / ONE < exact + 1.001 * GRAIN / ONE)
    assert np.all((losses >= 0) & (losses <= ONE))
    order = random.sample(range(len(y)), len(y))
    (total,) = measure.totals(numbers, np.zeros(len(y)), 0)
    assert total == losses.sum() == measure.totals(numbers[order], np.zeros(len(y)), 0)[0]


def test_predictions_that_are_no_numbers_count_as_the_largest_error():
    predicted = np.array([np.nan, np.inf, -np.inf, 3.0])
    assert ClippedErrors(2.0).measure_losses(np.full(4, 3.0), predicted).tolist() == [ONE, ONE, ONE, 0]


labels = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).map(str.strip).filter(bool)


@given(st.dictionaries(labels, st.floats(1e-300, 1e300), min_size=1, max_size=6), st.randoms())
def test_any_labels_in_any_order_come_back(numbers, random):
    items = list(numbers.items())
    random.shuffle(items)
    text = canonicalize("w", dict(items))
    assert text == canonicalize("w", numbers) == canonicalize("w", text)
    rounded = {label: float(f"{value:.12g}") for label, value in numbers.items()}
    assert dict(parse_pairs(text)) == rounded
    assert of_classes("w", text, sorted(numbers)) == [rounded[label] for label in sorted(numbers)]


def test_the_canonical_text():
    assert canonicalize("w", "b=2, a = 0.5") == "a=0.5,b=2"
    assert canonicalize("w", {np.int64(3): 1 / 3, np.str_(" x "): 1e20}) == "3=0.333333333333,x=1e+20"
    assert canonicalize("w", 'a"b=1') == '"a""b=1"'


REFUSED = (
    "",
    "sick=ten",
    '"sick"=1',
    " =1",
    "a=1,a=2",
    "sick=0",
    {"sick": float("inf")},
    3.0,
    {1: 2, "1": 3},
)


@pytest.mark.parametrize("values", [*REFUSED, dict.fromkeys(range(1001), 1.0)])
def test_what_is_refused(values):
    with pytest.raises(InputError, match=r"^w=.*: expected LABEL=NUMBER .* each number positive and finite"):
        canonicalize("w", values)


@pytest.mark.parametrize("number", ["-1e-300", "nan", "inf"])
def test_a_number_may_be_0_and_none_is_below_it_or_infinite(number):
    assert canonicalize("w", {"a": -0.0, "b": 0}, zero=True) == "a=0,b=0"
    with pytest.raises(InputError, match="each number 0 or more and finite"):
        canonicalize("w", f"a={number}", zero=True)


@pytest.mark.parametrize(
    ("text", "classes", "found"),
    [
        ("b=2", ("a", "b ", "c"), [None, 2, None]),
        ("1.0=2", (0, 1), [None, 2]),
        ("1=2,0=3", (0.0, 1.0), [3, 2]),
        ("1=2", ("0", "1"), [None, 2]),
        ("true=2,FALSE=3", (False, True), [3, 2]),
        ("1.0=3,1=2", (1, "1.0"), [2, 3]),
    ],
)
def test_labels_are_matched_by_their_text_and_numbers_by_value(text, classes, found):
    assert of_classes("w", text, classes) == found


def test_labels_that_do_not_match_are_refused():
    with pytest.raises(InputError, match=r"w names '1', not a label .* are 'False', 'True'"):
        of_classes("w", "1=2", (False, True))
    with pytest.raises(InputError, match="names a label of the target twice"):
        of_classes("w", "1=2,1.0=2", (0, 1))


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


def test_a_class_without_rows_has_no_part_in_the_mean_recall():
    score, said = make_score("balanced_accuracy", Kind.BINARY), Outputs(np.array([0, 0, 1], np.int32))
    assert score.pooled(np.array([score.sums(np.zeros(3, int), said, 2)])) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("neg_mean_absolute_error", Kind.BINARY, "is not for two classes: choose accuracy"),
        ("f1", Kind.MULTICLASS, "is not for three or more classes"),
        ("roc_auc", Kind.MULTICLASS, "is not for three or more classes: .* such as roc_auc_ovr"),
        ("acuracy", Kind.BINARY, "did you mean accuracy"),
    ],
)
def test_a_score_of_another_kind_is_refused(name, kind, message):
    with pytest.raises(InputError, match=message):
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
    names = [score.name for score in OWN if score.rows is not None and kind in score.kinds]
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
