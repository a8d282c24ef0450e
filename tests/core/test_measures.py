"""Totals of wrong rows by class, against counting them one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckcv_ray.core.measures import UNDECIDED, ZERO_ONE, Kind

repeatable = settings(derandomize=True, deadline=None, max_examples=60)


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


@given(scored())
@repeatable
def test_wrong_rows_are_counted_by_their_class(case):
    n_classes, y, predicted = case
    totals = ZERO_ONE.totals(y, predicted, n_classes)
    assert totals.shape == (len(predicted), ZERO_ONE.columns(n_classes)) == (len(predicted), n_classes)
    for found, row in zip(totals, predicted, strict=True):
        expected = [0] * n_classes
        for true, told in zip(y, row, strict=True):
            expected[true] += int(true != told)
        assert found.tolist() == expected == ZERO_ONE.totals(y, row, n_classes).tolist()


@given(scored(), st.integers(0, 12))
@repeatable
def test_totals_add_over_sets_of_rows(case, cut):
    n_classes, y, predicted = case
    parts = (slice(None, cut), slice(cut, None))
    added = sum(ZERO_ONE.totals(y[part], predicted[:, part], n_classes) for part in parts)
    assert np.array_equal(added, ZERO_ONE.totals(y, predicted, n_classes))


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_undecided_is_wrong_in_every_class(n_classes):
    y = np.arange(n_classes, dtype=np.int32).repeat(2)
    undecided = np.full(len(y), UNDECIDED, dtype=np.int32)
    assert ZERO_ONE.totals(y, undecided, n_classes).tolist() == [2] * n_classes
    assert ZERO_ONE.totals(y, y, n_classes).tolist() == [0] * n_classes


def test_what_it_is_for():
    assert ZERO_ONE.kinds == {Kind.BINARY, Kind.MULTICLASS}
    assert Kind.REGRESSION not in ZERO_ONE.kinds
    assert ZERO_ONE.bounded
