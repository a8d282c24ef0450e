"""What every resampling promises: a line in ``EVERY`` is all that a new one needs."""

from collections import Counter
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rolling_origin import RollingOrigin
from scipy.stats import chisquare
from sklearn.model_selection import StratifiedKFold, TimeSeriesSplit

from ckcv_ray import Execution, InputError, Study, evaluate, load_scores
from ckcv_ray.core.draws import Draws
from ckcv_ray.core.resampling.base import NOT_DRAWN, Splits, Strata
from ckcv_ray.core.resampling.folds import (
    FORMS,
    ColumnFolds,
    DrawnFolds,
    ForwardSplits,
    KFold,
    LeaveOneOut,
    NestedSplits,
    RepeatedKFold,
    add_strata,
    parse_resampling,
    register_resampling,
)
from ckcv_ray.extend import Bootstrap, Bootstrap632, OptimismBootstrap, SingleSplit, Subsampling
from ckcv_ray.runs.result import explain_no_bound

PLAIN = (
    *("holdout:0.3", "kfold:3", "kfold:4:last", "repeated_kfold:3x2", "drawn_folds:3", "time:2", "time:2:1"),
    "column:fold",
    *("loo", "subsampling:2:0.25", "bootstrap:2", "bootstrap632:2", "bootstrap632plus:2", "optimism:2"),
    "nested_halves:3",
)
STRATIFIED = ("holdout:0.5", "kfold:3", "repeated_kfold:3x2", "subsampling:2:0.4")
EVERY = [
    *map(parse_resampling, PLAIN),
    *(add_strata(parse_resampling(text)) for text in STRATIFIED),
    NestedSplits(LeaveOneOut(), KFold(2)),
    NestedSplits(KFold(3), KFold(2, remainder="last")),
    RollingOrigin(4),
    ForwardSplits(2, 0.5, "when"),
]
PARTITIONS = (KFold, LeaveOneOut, DrawnFolds)
FITTED_ON = (Bootstrap632, OptimismBootstrap)  # that score rows that were fitted on as well
FORWARD = (ForwardSplits, RollingOrigin)


def splits(resampling, n, seed=0, strata=None):
    (size,) = resampling.fold_sizes(n)
    units = Strata(n, strata)
    return [resampling.split(units, size, number, Draws(seed)) for number in range(size.n_splits)]


def check_rows(found, expected):
    """Check splits against those of scikit-learn."""
    for one, (train, score) in zip(found, expected, strict=True):
        assert np.array_equal(one.train, train)
        assert np.array_equal(one.estimate, score)


def labels(n, seed=0, classes=3):
    return np.random.default_rng(seed).integers(0, classes, n)


@pytest.mark.parametrize("resampling", EVERY, ids=repr)
@given(n=st.integers(6, 40), seed=st.integers(0, 2**32))
def test_every_split_fits_on_some_rows_and_scores_others(resampling, n, seed):
    strata = labels(n)
    found = splits(resampling, n, seed, strata)
    assert len(found) == resampling.count_splits(n)
    for train, select, estimate in found:
        assert len(train)
        assert len(estimate)
        assert not len(select)
        assert isinstance(resampling, FITTED_ON) or not np.intersect1d(train, estimate).size
        for rows in (train, estimate):
            assert 0 <= rows.min() <= rows.max() < n
            assert np.all(np.diff(rows) >= 0)
            assert isinstance(resampling, Bootstrap) or np.all(np.diff(rows) > 0)
        if not isinstance(resampling, (Bootstrap, *FORWARD)):
            assert len(train) + len(estimate) == n
    if isinstance(resampling, PARTITIONS):
        assert sorted(np.concatenate([one.estimate for one in found])) == list(range(n))


@pytest.mark.parametrize("resampling", EVERY, ids=repr)
def test_a_split_depends_on_its_number_and_the_seed_alone(resampling):
    strata, (size,) = labels(30), resampling.fold_sizes(30)
    forwards, others = splits(resampling, 30, 3, strata), splits(resampling, 30, 4, strata)
    for number in reversed(range(len(forwards))):
        again = resampling.split(Strata(30, strata), size, number, Draws(3))
        assert all(map(np.array_equal, again, forwards[number]))
    same = all(all(map(np.array_equal, *pair)) for pair in zip(forwards, others, strict=True))
    outer = resampling.outer if isinstance(resampling, NestedSplits) else resampling
    assert same == isinstance(outer, (LeaveOneOut, *FORWARD))


@given(n=st.integers(6, 200), folds=st.integers(2, 6))
def test_sizes_of_folds(n, folds):
    spread = [len(one.estimate) for one in splits(KFold(folds), n)]
    assert spread == [n // folds + (i < n % folds) for i in range(folds)]
    last = [len(one.estimate) for one in splits(KFold(folds, remainder="last"), n)]
    assert last == [n // folds] * (folds - 1) + [n - (folds - 1) * (n // folds)]


def sets_scored(resampling, n, seeds, strata=None):
    """How often each split scores each set of rows, over seeds; of sets of the most frequent size."""
    counts = [Counter() for _ in range(resampling.count_splits(n))]
    for seed in range(seeds):
        for count, one in zip(counts, splits(resampling, n, seed, strata), strict=True):
            count[tuple(one.estimate.tolist())] += 1
    sizes = [Counter(map(len, count.elements())).most_common(1)[0][0] for count in counts]
    return [
        [count[rows] for rows in combinations(range(n), size)]
        for count, size in zip(counts, sizes, strict=True)
    ]


HALVES = np.array([0, 0, 0, 1, 1, 1])  # classes of six rows


@pytest.mark.parametrize("resampling", EVERY, ids=repr)
def test_a_resampling_has_bounds_if_and_only_if_each_set_of_rows_is_as_likely_to_be_scored(resampling):
    """Whatever the classes of the rows, which are sorted here; tested at a level of 1e-6."""
    counts = sets_scored(resampling, 6, 400, HALVES)
    drawn = [one for seed in range(9) for one in splits(resampling, 6, seed, HALVES)]
    twice = any(np.any(np.diff(one.estimate) == 0) for one in drawn)
    fitted_on = any(np.intersect1d(one.train, one.estimate).size for one in drawn)
    alike = not (twice or fitted_on) and all(chisquare(one).pvalue > 1e-6 for one in counts)
    assert alike == (not resampling.no_bound)


def test_a_resampling_of_somebody_else_is_used_by_its_name(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    serial = Execution("serial")
    scores = evaluate(X, y, tmp_path / "rolling", serial, learner="naive_bayes", resampling="rolling:4")
    assert scores.study.resampling == RollingOrigin(4)
    assert scores.table()["rows_fitted"].to_pylist() == [6, 12, 18, 24]
    assert load_scores(tmp_path / "rolling").table().equals(scores.table())
    assert explain_no_bound(scores) == NOT_DRAWN
    with pytest.raises(InputError, match=r"certify=paper requires resampling complete .* not rolling"):
        Study.paper(resampling="rolling:4")


def test_a_name_is_of_one_resampling():
    class Other(KFold):
        pass

    assert register_resampling(KFold) is KFold
    with pytest.raises(InputError, match="the name 'kfold' is already used by KFold"):
        register_resampling(Other)


@given(n=st.integers(12, 120), folds=st.integers(2, 5), seed=st.integers(0, 99))
def test_stratified_folds_share_every_class(n, folds, seed):
    strata = labels(n, seed)
    found = splits(KFold(folds, stratify=True), n, seed, strata)
    counts = np.array([np.bincount(strata[one.estimate], minlength=3) for one in found])
    assert np.all(counts.max(axis=0) - counts.min(axis=0) <= 1)
    sizes = counts.sum(axis=1)
    assert sizes.max() - sizes.min() <= 1
    if np.bincount(strata).min() >= folds:
        theirs = [len(score) for _, score in StratifiedKFold(folds).split(strata, strata)]
        assert sorted(theirs) == sorted(sizes)


@given(n=st.integers(4, 120), times=st.integers(2, 9), gap=st.integers(0, 9))
def test_forward_splits_are_those_of_scikit_learn(n, times, gap):
    try:
        expected = list(TimeSeriesSplit(times, gap=gap).split(np.zeros(n)))
    except ValueError:
        with pytest.raises(InputError, match="leaves nothing to fit on"):
            ForwardSplits(times, gap).count_splits(n)
        return
    (size,) = ForwardSplits(times, gap).fold_sizes(n)
    assert (size.n_train, size.n_select) == tuple(map(len, expected[-1]))
    check_rows(splits(ForwardSplits(times, gap), n), expected)


@pytest.mark.parametrize("resampling", EVERY, ids=repr)
def test_terms_of_an_estimate_are_of_a_score_as_a_whole(resampling):
    """If every split has the same score, that is the estimate; each split that counts has a part in it."""
    numbers = np.arange(resampling.count_splits(30))
    terms = resampling.terms(numbers)
    assert sum(term.factor for term in terms) == pytest.approx(1, abs=1e-15)
    used = np.sum([term.splits for term in terms], axis=0)
    assert np.all(used[terms[0].splits] == 1)
    assert resampling.combined == (len(terms) > 1) == isinstance(resampling, FITTED_ON)
    if resampling.combined:
        assert np.all(used == 1)
        with pytest.raises(InputError, match="drawn and take means over splits"):
            NestedSplits(resampling, KFold(3))


def test_resamplings_are_named_by_text():
    for text, resampling in (
        ("kfold:4:last", KFold(4, remainder="last")),
        ("repeated_kfold:10x5", RepeatedKFold(10, 5)),
        ("nested_halves:5", NestedSplits(KFold(5), SingleSplit(0.5))),
        ("column:city: site", ColumnFolds("city: site")),
        ("column:spread", ColumnFolds("spread")),
    ):
        assert parse_resampling(text) == resampling
    for text in FORMS.split(", "):
        resampling = parse_resampling(text)
        assert str(resampling) == (text if resampling.inner is None else "nested")
    for text in ("complete", "rotation"):
        assert str(parse_resampling(text)) == text


TEXTS = {
    "tenfold": "is not known: expected holdout:0.3, kfold:10",
    "complete:5": "is not known: expected",
    "time:5:-1": "gap=-1",
    "time:0": "times=0",
    "kfold:1": "folds=1",
    "kfold:2.5": "is not known: expected",
    "holdout:1.5": "share=1.5 is not a share",
}
FEW_UNITS = [
    (KFold(20), "kfold:20 has more folds than the 12 units"),
    (DrawnFolds(11), "drawn_folds:11 of 12 units leaves a fold empty nearly always"),
    (ForwardSplits(12), "leaves nothing to fit on in its first split, or nothing to score, of 12"),
    (SingleSplit(0.0), "or to score"),
    (Subsampling(3, 0.95), "no rows to fit"),
]
PAIRS = [
    ([], "gives no splits"),
    ([([0, 1], [1, 2])], "scores 2, of which it fits on 1"),
    ([([0, 12], [1])], "row numbers from 0 to 11"),
    ([([0.5], [1])], "row numbers from 0 to 11"),
]
REFUSED = [
    *((partial(parse_resampling, text), f"^resampling={text!r}.*{why}") for text, why in TEXTS.items()),
    *((partial(resampling.count_splits, 12), why) for resampling, why in FEW_UNITS),
    *((partial(Splits.of, pairs, 12), why) for pairs, why in PAIRS),
]


@pytest.mark.parametrize(("ask", "message"), REFUSED)
def test_texts_units_and_splits_that_do_not_do_are_refused(ask, message):
    with pytest.raises(InputError, match=message):
        ask()


def test_given_splits_are_taken_as_they_are():
    pairs = list(StratifiedKFold(3).split(np.zeros(12), [0, 1] * 6))
    resampling = Splits.of(pairs, 12)
    assert resampling.no_bound
    check_rows(splits(resampling, 12), pairs)
    assert resampling.digest == Splits.of(pairs, 12).digest != Splits.of(pairs[:2], 12).digest
    mask = np.arange(12) < 4
    (one,) = splits(Splits.of([(~mask, mask)], 12), 12)
    assert one.estimate.tolist() == [0, 1, 2, 3]
