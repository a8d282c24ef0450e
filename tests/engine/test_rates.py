"""Seconds per unit of cost, measured for each learner, and how long a batch is for them."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray.engine.batches import Rates, batch_seconds, shortest


def test_a_batch_is_divided_as_it_was_measured() -> None:
    rates = Rates(3)
    rates.add(10.0, np.array([2.0, 1.0, 5.0]), by_learner=(3.0, 1.0, 0.0))
    assert rates.seconds.tolist() == [7.5, 2.5, 0.0]
    rates.add(4.0, np.array([0.0, 0.0, 8.0]), by_learner=(1.0, 0.0, 1.0))  # nothing came of the first learner
    assert rates.seconds.tolist() == [7.5, 2.5, 4.0]
    assert rates.per_cost == pytest.approx([3.75, 2.5, 4 / 13])


def test_a_batch_that_was_not_measured_is_divided_by_cost() -> None:
    rates = Rates(2)
    rates.add(9.0, np.array([1.0, 2.0]))
    assert rates.seconds.tolist() == [3.0, 6.0]


def test_a_single_learner_has_the_whole_time() -> None:
    rates = Rates()
    rates.add(3.0, np.array([6.0]), by_learner=(2.5,))
    assert (rates.seconds.tolist(), rates.per_cost.tolist()) == ([3.0], [0.5])


def test_time_is_unknown_only_for_work_of_a_learner_without_a_rate() -> None:
    rates = Rates(2)
    assert rates.seconds_for(np.zeros(2)) == 0.0
    assert rates.seconds_for(np.array([1.0, 0.0])) == inf
    rates.add(2.0, np.array([4.0, 0.0]))
    assert rates.seconds_for(np.array([8.0, 0.0])) == 4.0
    assert rates.seconds_for(np.array([8.0, 1.0])) == inf
    rates.add(5.0, np.zeros(2))  # a batch without any result
    assert rates.seconds.tolist() == [2.0, 0.0]


LEFT = st.floats(1e-3, 1e6)


@given(LEFT, st.integers(2, 500), st.floats(0.0, 1.0))
def test_no_worker_computes_alone_what_others_could_share(left, workers, least):
    seconds = batch_seconds(left, workers, least)
    assert seconds <= max(shortest(workers, 0.0), left / workers / 2)


@given(LEFT, st.integers(1, 500), st.floats(0.0, 1.0))
def test_a_batch_is_worth_its_dispatch_where_that_much_is_left(left, workers, least):
    assert batch_seconds(left, workers, least) >= min(shortest(workers, least), left / workers / 2)
    assert batch_seconds(inf, workers, least) == max(1.0, shortest(workers, least))


@given(LEFT, st.floats(0.0, 1.0))
def test_a_single_worker_has_nobody_to_share_with(left, least):
    assert batch_seconds(left, 1, least) >= shortest(1, least)
