"""The mean of upper bounds as a criterion: its values, the least of them, and what carries over to others."""

from math import fsum, inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckcv_ray.core.bounds import (
    BOUNDS,
    MOST_CHECKED,
    bound_table,
    clopper_pearson,
    reported_bound,
)
from ckcv_ray.core.criteria import MeanBound
from ckcv_ray.core.measures import ZERO_ONE
from ckcv_ray.core.resampling import randomisers
from ckcv_ray.errors import InputError

repeatable = settings(derandomize=True, deadline=None, max_examples=60)
units = st.integers(1, 200)
deltas = st.sampled_from([0.5, 0.05, 1e-4, 1e-12])


# Values


@given(units, deltas, st.integers(2, 5), st.data())
@repeatable
def test_a_value_is_the_bound_on_the_errors_of_all_classes_together(m, delta, n_classes, data):
    shares = data.draw(st.lists(st.floats(0, 1), min_size=n_classes, max_size=n_classes))
    totals = np.floor(np.array(shares) * (m // n_classes)).astype(np.int64)
    value = MeanBound(delta).value(totals[None, None], m)
    assert value.shape == (1, 1)
    assert value.item() == clopper_pearson(int(totals.sum()), m, delta)


@given(units, deltas)
@repeatable
def test_values_ascend_with_the_errors_from_the_least(m, delta):
    criterion = MeanBound(delta)
    values = criterion.value(np.arange(m + 1)[:, None], m)
    assert values.tolist() == bound_table(m, delta).tolist()
    assert criterion.least(m) == values[0] == values.min() > 0
    assert np.all(np.diff(values) >= 0)


@given(units, units, deltas)
@repeatable
def test_the_least_value_falls_as_there_are_more_rows(m, other, delta):
    criterion = MeanBound(delta)
    assert criterion.least(max(m, other)) <= criterion.least(min(m, other))


@pytest.mark.parametrize("bound", BOUNDS)
def test_what_is_minimised_does_not_depend_on_what_is_reported(bound):
    totals = np.array([[0, 0], [3, 1], [10, 10]])
    assert MeanBound(bound=bound).value(totals, 20).tolist() == MeanBound().value(totals, 20).tolist()
    assert MeanBound(bound=bound).least(20) == MeanBound().least(20)


# From one number of rows to another


@given(units, deltas)
@repeatable
def test_a_transfer_to_as_many_rows_changes_nothing(m, delta):
    criterion = MeanBound(delta)
    values = criterion.value(np.arange(m + 1)[:, None], m)
    distinct = np.diff(values, prepend=-1) > 0  # nearer to 1 than floats tell apart, counts are one value
    assert criterion.transfer(values, m, m)[distinct] == pytest.approx(values[distinct], rel=1e-12)


@given(units, units, deltas, st.lists(st.floats(0, 1), min_size=2, max_size=20))
@repeatable
def test_a_transfer_is_monotone_and_stays_between_the_least_and_1(m, other, delta, shares):
    criterion = MeanBound(delta)
    least = criterion.least(m)
    values = least + np.sort(shares) * (1 - least)
    moved = criterion.transfer(values, m, other)
    assert moved.shape == values.shape
    assert np.all(np.diff(moved) >= -1e-15)
    assert np.all((moved >= criterion.least(other)) & (moved <= 1))


@given(st.integers(1, 40), st.integers(1, 8), deltas, st.data())
@repeatable
def test_a_transfer_keeps_the_error_rate_where_it_is_a_count_on_both(m, times, delta, data):
    criterion = MeanBound(delta)
    errors = data.draw(st.integers(0, m - 1))
    few, many = clopper_pearson(errors, m, delta), clopper_pearson(errors * times, m * times, delta)
    if few < 1 - 1e-9:
        assert criterion.transfer(np.array([few]), m, m * times) == pytest.approx(many, rel=1e-9)
    if many < 1 - 1e-9:
        assert criterion.transfer(np.array([many]), m * times, m) == pytest.approx(few, rel=1e-9)


# What is reported


@pytest.mark.parametrize("bound", BOUNDS)
def test_what_is_reported_is_the_bound_asked_for(bound):
    errors, m, seed = (3, 0, 7), 40, 5
    draws = randomisers(m, 3, seed)
    assert MeanBound(0.1, bound).reported(errors, m, seed) == reported_bound(bound, errors, m, 0.1, draws)
    told = {MeanBound(0.1, name).reported(errors, m, seed) for name in BOUNDS}
    assert len(told) == len(BOUNDS)


def test_only_stevens_depends_on_the_seed():
    for bound in BOUNDS:
        one, other = (MeanBound(bound=bound).reported((3, 0, 7), 40, seed) for seed in (1, 2))
        assert (one != other) == (bound == "stevens")


def test_the_papers_figure_is_the_mean_of_its_bounds():
    errors = [3, 0, 7]
    assert MeanBound().reported(errors, 40, 0) == fsum(clopper_pearson(errors, 40)) / 3


# Refusals


def test_the_safe_bound_is_refused_where_it_is_not_checked():
    MeanBound(bound="safe").check(MOST_CHECKED)
    with pytest.raises(
        InputError, match=f"at most {MOST_CHECKED} rows .* has {MOST_CHECKED + 1}: use catoni"
    ):
        MeanBound(bound="safe").check(MOST_CHECKED + 1)
    for bound in set(BOUNDS) - {"safe"}:
        MeanBound(bound=bound).check(10**9)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, nan, inf, 9e-13, "0.05", True, None])
def test_delta_is_a_probability_that_can_be_shared_out(delta):
    with pytest.raises(InputError, match=r"^delta="):
        MeanBound(delta)


@pytest.mark.parametrize("bound", ["hoeffding", "", None, 1, ["safe"]])
def test_a_bound_is_one_of_those_there_are(bound):
    with pytest.raises(InputError, match=r"^bound=.*is not known: choose from clopper_pearson, stevens"):
        MeanBound(bound=bound)


def test_what_it_counts():
    assert MeanBound().measure is ZERO_ONE
    assert (MeanBound().delta, MeanBound().bound) == (0.05, "clopper_pearson")
