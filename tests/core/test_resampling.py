"""Complete k-fold splits: partitions, reproducible, all of them where they are few, fair where drawn."""

from itertools import permutations
from math import comb, log
from time import process_time

import numpy as np
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.draws import Draws, hold_out, order_held_out
from ckcv_ray.core.resampling.base import FoldSize, Split, Strata
from ckcv_ray.core.resampling.complete import Complete, Rotation
from ckcv_ray.errors import InputError

repeatable = settings(derandomize=True, deadline=None, max_examples=limit_examples(200))
rows_and_folds = st.integers(3, 80).flatmap(lambda n: st.tuples(st.just(n), st.integers(3, n)))


def count_complete(n, k, n_splits):
    return Complete((k,), n_splits).fold_sizes(n)[0].n_splits


def take_split(resampling, n, number, seed):
    return resampling.split(Strata(n), resampling.fold_sizes(n)[0], number, Draws(seed))


def split_complete(n, k, number, n_splits, seed):
    return take_split(Complete((k,), n_splits), n, number, seed)


def as_sets(split):
    return tuple(tuple(part.tolist()) for part in split)


@given(rows_and_folds, st.integers(1, 60), st.integers(0, 2**40), st.data())
@repeatable
def test_every_split_is_an_ascending_partition_of_the_stated_sizes(shape, n_splits, seed, data):
    n, k = shape
    m = n // k
    number = data.draw(st.integers(0, count_complete(n, k, n_splits) - 1))
    split = split_complete(n, k, number, n_splits, seed)
    assert isinstance(split, Split)
    assert [len(part) for part in split] == [n - 2 * m, m, m]
    assert sorted(np.concatenate(split).tolist()) == list(range(n))
    for part in split:
        assert part.dtype == np.intp
        assert np.all(np.diff(part) > 0)


@pytest.mark.parametrize(
    ("n", "k", "total"), [(3, 3, 6), (4, 3, 12), (5, 3, 20), (6, 4, 30), (6, 3, 90), (7, 3, 210)]
)
def test_all_splits_are_taken_where_they_are_few(n, k, total):
    m = n // k
    every = {(tuple(sorted(p[:m])), tuple(sorted(p[m : 2 * m]))) for p in permutations(range(n))}
    assert len(every) == total
    for n_splits in (total, total + 1, 10**6):
        assert count_complete(n, k, n_splits) == total
        taken = [as_sets(split_complete(n, k, i, n_splits, 0))[1:] for i in range(total)]
        assert taken == sorted(every)


def test_one_split_fewer_than_all_is_drawn_from_the_seed():
    assert count_complete(6, 4, 29) == 29
    for n_splits, different in ((29, 20), (30, 1)):  # all thirty need no seed
        per_seed = {
            tuple(as_sets(split_complete(6, 4, i, n_splits, seed)) for i in range(n_splits))
            for seed in range(20)
        }
        assert len(per_seed) == different
        assert any(len(set(splits)) < 29 for splits in per_seed) == (n_splits == 29), "with replacement"


def test_drawn_splits_are_uniform_over_all_that_exist():
    """Chi squared over the 30 splits of six rows in four folds, rejecting a fair draw once in 1e6."""
    tally = {}
    for seed in range(150):
        for i in range(29):
            split = as_sets(split_complete(6, 4, i, 29, seed))
            tally[split] = tally.get(split, 0) + 1
    assert len(tally) == 30
    assert stats.chisquare(list(tally.values())).pvalue > 1e-6


@pytest.mark.slow
@given(rows_and_folds, st.integers(0, 2**64))
@repeatable
def test_rotation_gives_every_fold_every_part_once(shape, seed):
    n, k = shape
    m = n // k
    splits = [take_split(Rotation((k,)), n, i, seed) for i in range(k)]
    for i, split in enumerate(splits):
        train, select, estimate = as_sets(split)
        assert sorted(train + select + estimate) == list(range(n))
        assert (len(select), len(estimate)) == (m, m)
        assert all(part == tuple(sorted(part)) for part in (train, select, estimate))
        assert estimate == as_sets(splits[(i + 1) % k])[1]
    assert len({row for split in splits for row in split.select.tolist()}) == k * m


# What is drawn apart from the splits


@given(st.integers(2, 500), st.floats(0.01, 0.99), st.integers(0, 2**64))
@repeatable
def test_held_out_rows_are_distinct_ascending_and_as_many_as_asked(n, share, seed):
    """A smaller share holds out some of the same rows, as it may follow one that left too few of a class."""
    held, fewer = hold_out(n, share, Draws(seed)), hold_out(n, share / 2, Draws(seed))
    assert len(held) == int(share * n)
    assert (np.diff(held) > 0).all()
    assert set(fewer.tolist()) <= set(held.tolist()) <= set(range(n))
    np.testing.assert_array_equal(held, np.sort(order_held_out(n, len(held), Draws(seed))))


def plain_sizes(n, k, n_splits):
    """By the definition: values of k with equal floor(n / k) are one procedure, named by the smallest."""
    groups = {}
    for one in sorted(k or range(3, n + 1)):
        groups.setdefault(n // one, []).append(one)
    return tuple(
        FoldSize(min(ks), max(ks), m, n - 2 * m, min(n_splits, comb(n, m) * comb(n - m, m)))
        for m, ks in sorted(groups.items(), reverse=True)
    )


@given(st.integers(3, 300), st.none() | st.sets(st.integers(3, 300), min_size=1), st.integers(1, 10**6))
@repeatable
def test_sizes_are_those_of_the_definition(n, asked, n_splits):
    k = None if asked is None else tuple(one for one in asked if one <= n) or (3,)
    sizes, wanted = Complete(k, n_splits).fold_sizes(n), sorted(k or range(3, n + 1))
    assert sizes == plain_sizes(n, k, n_splits)
    assert [one for size in sizes for one in wanted if size.holds(one)] == wanted
    assert all(size.k == size.k_first for size in sizes)
    rotated = Rotation(k).fold_sizes(n)
    assert rotated == tuple(FoldSize(one, one, n // one, n - 2 * (n // one), one) for one in wanted)


def test_a_million_rows_have_about_2000_sizes_that_are_soon_found():
    """Neither the numbers of folds are listed one by one, nor are the splits of so many rows counted."""
    n = 10**6
    started = process_time()
    sizes = Complete(n_splits=10**6).fold_sizes(n)
    assert process_time() - started < 2
    assert len(sizes) == len({n // k for k in range(3, n + 1)}) == 1997
    assert [size.k_first for size in sizes[1:]] == [size.k_last + 1 for size in sizes[:-1]]
    assert (sizes[0].k_first, sizes[-1].k_last) == (3, n)
    assert all(n // size.k_first == n // size.k_last == size.n_select for size in sizes)
    assert {size.n_splits for size in sizes} == {10**6}


@pytest.mark.parametrize("kind", [Complete, Rotation])
def test_3_to_n_has_one_canonical_form_and_k_is_inside_it(kind):
    for n in (6, 7, 30):
        assert kind(tuple(range(3, n + 1))).canonical(n, 9, 0.05) == kind().canonical(n, 9, 0.05) == kind()
        assert kind(tuple(range(3, n + 1))).canonical(n + 1, 9, 0.05).k == tuple(range(3, n + 1))
    for k in (0, 2, 401):
        with pytest.raises(
            InputError, match=rf"^k={k} is outside 3\.\.400: there are 400 rows to learn from$"
        ):
            kind((3, k)).canonical(400, 9, 0.05)


# auto: the numbers of folds that suit the number of units

auto = st.tuples(st.integers(1_301, 10**6), st.integers(1, 5_000), st.floats(1e-6, 0.5))


@pytest.mark.parametrize("kind", [Complete, Rotation])
def test_auto_takes_every_k_of_up_to_1300_units(kind):
    for n, compared in ((3, 1), (100, 10**6), (1_300, 143)):
        assert kind("auto").canonical(n, compared, 0.05) == kind(None)
        assert kind("auto").canonical(1_301, compared, 0.05) != kind(None)


@given(auto)
@repeatable
def test_the_ladder_of_auto_ascends_by_a_tenth_until_no_bound_could_be_below_a_twentieth(asked):
    """Of m rows without an error the bound is 1 - (delta / settings)^(1 / m), at most -ln(...) / m."""
    n, compared, delta = asked
    ladder = Complete("auto").canonical(n, compared, delta).k
    assert ladder[:8] == tuple(range(3, 11))
    last = ladder[-1]
    following = [*ladder[1:], last + max(1, last // 10)]
    assert [b - a for a, b in zip(ladder, following, strict=True)] == [max(1, k // 10) for k in ladder]
    assert len({n // k for k in ladder}) == len(ladder)
    if last > 10:
        assert clopper_pearson(0, n // last, delta / compared) <= 0.05 * (n / last) / (n // last)
    assert following[-1] > 10
    assert log(compared / delta) / (n / following[-1]) > 0.05
