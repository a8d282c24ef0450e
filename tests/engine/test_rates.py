"""Seconds per unit of cost, measured for each learner; how long a batch is for them; what waits."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.queue import Batch, Rates, Waiting, choose_batch_seconds, fill, shortest


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


@given(LEFT, LEFT, st.integers(1, 500), st.floats(0.0, 1.0))
def test_a_batch_is_worth_its_dispatch_and_leaves_to_others_what_they_could_share(
    left: float, waiting: float, workers: int, least: float
) -> None:
    seconds, worth = choose_batch_seconds(left, workers, least), shortest(workers, least)
    assert choose_batch_seconds(inf, workers, least) == max(1.0, worth)
    assert seconds >= (worth if workers == 1 else min(worth, left / workers / 2))
    if workers > 1:
        assert seconds <= max(shortest(workers, 0.0), left / workers / 2)
        shared = choose_batch_seconds(left, workers, least, waiting)
        assert shared <= min(seconds, max(shortest(workers, 0.0), waiting / workers))


def units(n: int) -> list[Unit]:
    return [Unit(Stage.SELECT, 0, split, ((0, 1 + split % 3),)) for split in range(n)]


def cost_of(unit: Unit) -> np.ndarray:
    return np.array([0.1, 0.3 * unit.split])


@given(st.integers(0, 30), st.data())
def test_units_are_issued_once_in_order_whatever_comes_back(n: int, data: st.DataObject) -> None:
    waiting, done = Waiting(units(n), cost_of, 2), list[Unit]()
    while len(done) < n:
        left = [unit for unit in units(n) if unit not in done]
        assert waiting.cost == pytest.approx(sum(map(cost_of, left)), rel=1e-12)
        batch = fill(iter(waiting), lambda unit: 1.0, data.draw(st.integers(1, 5))).units
        assert list(batch) == left[: len(batch)]
        begun = data.draw(st.integers(1, len(batch)))
        done += batch[:begun]
        if begun < len(batch):
            waiting = waiting.put_back(batch[begun:])
    assert waiting.cost.tolist() == [0.0, 0.0]
    assert fill(iter(waiting), lambda unit: 1.0, 1.0) == Batch()


@given(st.integers(1, 30), st.integers(1, 9))
def test_equal_shares_of_all_units_leave_none(n: int, workers: int) -> None:
    waiting = Waiting(units(n), cost_of, 2)
    shares = [waiting.share(workers) for _ in range(workers)]
    assert [unit for share in shares for unit in share] == units(n)
    assert max(map(len, shares)) == -(-n // workers)


@given(length=st.floats(0.1, 10), seconds=st.floats(0.1, 10))
def test_a_batch_is_as_near_to_its_length_as_whole_units_are(length: float, seconds: float) -> None:
    """Else the last batches of many workers are longer than asked by most of a unit, and others wait."""
    taken = len(fill(iter(units(200)), lambda unit: length, seconds).units)
    nearest = min(range(1, 200), key=lambda n: abs(n * length - seconds))
    assert abs(taken * length - seconds) <= abs(nearest * length - seconds) + 1e-9


def test_what_was_measured_before_counts_a_tenth() -> None:
    rates = Rates(2)
    rates.add(100.0, np.array([50.0, 0.0]))
    rates.forget()
    assert rates.per_cost.tolist() == [2.0, np.inf]
    rates.add(5.0, np.array([5.0, 0.0]))
    assert rates.per_cost[0] == pytest.approx((10.0 + 5.0) / (5.0 + 5.0))
    rates.add(1.0, np.array([0.0, 4.0]))
    assert rates.per_cost[1] == 0.25
    assert (rates.seconds.sum(), rates.cost.sum()) == (106.0, 59.0)
