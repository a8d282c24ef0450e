"""Criteria: their values, the least of them, and what carries over to other numbers of rows."""

from dataclasses import replace
from fractions import Fraction
from math import ceil, fsum, inf, nan

import numpy as np
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.criteria import Balanced, MeanBound, MeanCost, MeanError, MeanGroupError, MeanShare
from ckcv_ray.errors import ONE, InputError

repeatable = settings(derandomize=True, deadline=None, max_examples=limit_examples(60))
deltas = st.sampled_from([0.5, 0.05, 1e-4, 1e-12])
COSTS = MeanCost(costs={"a": 3, "b": 1}).on(("a", "b"))


def value_losses(losses, m, delta):
    """Clopper-Pearson's formula at total losses."""
    totals = np.asarray(losses) / ONE
    return [float(beta.isf(delta, x + 1, m - x)) if x < m else 1.0 for x in totals.tolist()]


VALUES = {  # at errors of two classes, or errors and losses, of m units
    MeanBound: lambda wrong, m, delta: clopper_pearson(wrong.sum(axis=1), m, delta),
    MeanCost: lambda wrong, m, delta: value_losses(wrong @ np.array(COSTS.losses), m, delta),
    MeanShare: lambda totals, m, delta: value_losses(totals[:, -1], m, delta),
    MeanError: lambda wrong, m, delta: wrong.sum(axis=1) / m,
    MeanGroupError: lambda totals, m, delta: totals[:, -1] / ONE / m,
}


@pytest.mark.parametrize("kind", VALUES)
@given(st.integers(1, 200) | st.sampled_from([850, 6_000]), deltas, st.lists(st.floats(0, 0.99), max_size=9))
@repeatable
def test_values_are_those_of_the_definition_and_ascend_from_the_least(kind, m, delta, shares):
    criterion = replace(COSTS, delta=delta) if kind is MeanCost else kind(delta)
    of_groups = kind in (MeanShare, MeanGroupError)
    losses = np.floor(np.array([0, *sorted(shares), 1]) * m * (ONE if of_groups else 1)).astype(np.int64)
    totals = np.column_stack([0 * losses + 7, losses] if of_groups else [losses - losses // 3, losses // 3])
    values = criterion.value(totals, m)
    assert values == pytest.approx(VALUES[kind](totals, m, delta), rel=1e-9)
    assert criterion.value(totals[None], m).tolist() == [values.tolist()]
    assert values[0] == criterion.least(m) == values.min()
    assert np.all(np.diff(values) >= 0)
    assert 1 - m * 2.0**-52 <= values[-1] <= 1 or kind is MeanCost


# From one number of rows to another


@pytest.mark.parametrize("criterion", [MeanBound(), MeanShare(0.05), COSTS, Balanced()], ids=repr)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 8), st.lists(st.floats(0, 1), min_size=2))
@repeatable
def test_a_transfer_keeps_the_order_and_returns_what_it_was_given(criterion, a, b, times, shares):
    here, there = [np.array([[m, 2 * m]] * 3) if criterion.by_class else 3 * m for m in (a, b)]
    least = np.min(criterion.least(here))
    values = least + np.sort(shares) * (1 - least)
    moved = criterion.transfer(values, here, there)
    assert moved.shape == values.shape
    assert np.all(np.diff(moved) >= -1e-12)
    assert np.all((moved >= np.min(criterion.least(there)) - 1e-12) & (moved <= 1))
    inside = values < 1 - 1e-9
    assert criterion.transfer(values, here, here)[inside] == pytest.approx(values[inside], abs=1e-9)
    more = here * times
    back = criterion.transfer(criterion.transfer(values, here, more), more, here)
    assert back == pytest.approx(values, abs=3e-2)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, nan, inf, 9e-13, "0.05", True, None])
def test_delta_is_a_probability_that_can_be_shared_out(delta):
    with pytest.raises(InputError, match=r"^delta="):
        MeanBound(delta)


@given(st.data(), st.integers(1, 5), st.integers(2, 4), deltas)
@repeatable
def test_balanced_is_the_mean_of_the_bounds_of_the_classes(data, n_splits, n_classes, delta):
    counts = st.lists(st.integers(0, 40), min_size=n_classes, max_size=n_classes)
    rows = np.array(data.draw(st.lists(counts, min_size=n_splits, max_size=n_splits)))
    wrong = np.floor(rows * data.draw(st.floats(0, 1))).astype(np.int64)
    criterion = Balanced(delta)
    values = criterion.value(wrong, rows)
    for i in range(n_splits):
        bounds = [clopper_pearson(int(x), int(m), delta) for x, m in zip(wrong[i], rows[i], strict=True)]
        assert values[i] == pytest.approx(fsum(bounds) / len(bounds), rel=1e-12)
        assert values[i] == criterion.value(wrong[i : i + 1], rows[i : i + 1])[0]  # in every bit
    assert criterion.least(rows).tolist() == criterion.value(0 * rows, rows).tolist()
    assert np.all((values >= criterion.least(rows)) & (values <= criterion.value(rows, rows)))
    assert np.all(criterion.value(rows, rows) == 1)


def test_weights_are_shares_of_the_largest_cost_rounded_up():
    criterion = MeanCost(costs={"b": 10, "a": 3, "c": 0}).on(("a", "b", "c"))
    assert criterion.costs == "a=3,b=10,c=0"
    assert criterion.losses == (ceil(ONE * Fraction(3, 10)), ONE, 0)


@pytest.mark.parametrize(("costs", "others"), [("a=1", ""), ("", "'a,b', ")])
def test_every_class_has_a_cost(costs, others):
    with pytest.raises(InputError, match=f"no cost is given for {others}'1': .*--criterion cost:.*1=1"):
        MeanCost(costs=costs).on(("a,b" if others else "a", 1))


@given(st.integers(1, 10**6), st.data())
@repeatable
def test_a_mean_error_is_the_share_of_wrong_rows_and_equal_counts_have_equal_means(m, data):
    """However errors are distributed over splits and classes, in every bit."""
    criterion, n_splits = MeanError(), data.draw(st.integers(1, 6))
    wrong = np.array(data.draw(st.lists(st.integers(0, m), min_size=n_splits, max_size=n_splits)))
    values = criterion.value(np.column_stack([wrong // 3, wrong - wrong // 3]), m)
    assert np.all((values >= 0) & (values <= 1))
    level, more = divmod(int(wrong.sum()), n_splits)
    even = np.where(np.arange(n_splits) < more, level + 1, level)
    assert fsum(values) == fsum(criterion.value(even[:, None], m))
    assert criterion.transfer(values, m, 7).tolist() == values.tolist()
