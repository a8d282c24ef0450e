"""Totals of wrong rows by class, against counting them one by one."""

from fractions import Fraction
from math import ceil

import numpy as np
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ckcv_ray.core.measures import GRAIN, UNDECIDED, ZERO_ONE, ClippedErrors, ZeroOne
from ckcv_ray.validation import ONE


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
