"""The loop between a backend and a supply: its calls and reports, seconds per unit of cost, and batches."""

from itertools import pairwise
from math import inf
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from conftest import blobs
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine import loop
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.engine.evaluate import share
from ckcv_ray.engine.queue import Queue, Rates, choose_batch_seconds, shortest
from ckcv_ray.engine.recorder import Recorder
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Study

PROBLEM = Problem.of(Study.of(C=(0.1, 1.0), gamma=(0.1, 1.0), k=(3, 4), n_splits=4), blobs(24))


class Crowd(SerialBackend):
    """Several workers, all of which finish at once; counts how often it waits."""

    workers = window = 4
    least_seconds = 0.0
    waits = 0

    def wait(self) -> list[Any]:
        self.waits += 1
        return [outcome for _ in range(len(self.queue)) for outcome in super(Crowd, self).wait()]


@pytest.fixture
def crowd() -> Crowd:
    backend = Crowd()
    backend.start(share(PROBLEM))
    return backend


def test_a_supply_is_called_once_for_all_that_arrived_and_all_that_goes_out(crowd: Crowd) -> None:
    recorder = Recorder(PROBLEM)
    supply = Mock(wraps=recorder)
    batches = loop.work(crowd, supply, None, lambda: False)
    assert recorder.queue.complete()
    assert [name for name, *_ in supply.method_calls] == ["exchange"] * (crowd.waits + 1)
    assert batches > 2 * crowd.waits  # else nothing would be saved


@pytest.mark.parametrize(("cost", "apart"), [(0.001, 0.1), (0.5, 25.0)])
def test_reports_take_at_most_a_fiftieth_of_the_time(
    crowd: Crowd, cost: float, apart: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report ends ``apart`` seconds before the next begins, by a clock that moves with what is done."""
    now, begun = [100.0], list[float]()
    monkeypatch.setattr(loop, "monotonic", lambda: now[0])
    wait = crowd.wait

    def wait_long() -> list[Any]:
        now[0] += 0.04
        return [outcome._replace(seconds=0.0) for outcome in wait()] if now[0] > 160 else []

    def listen(progress: object) -> None:
        begun.append(now[0])
        now[0] += cost

    monkeypatch.setattr(crowd, "wait", wait_long)
    loop.work(crowd, Recorder(PROBLEM), listen, lambda: False)
    pauses = [second - first - cost for first, second in pairwise(begun[:-1])]
    assert min(pauses) >= apart - 1e-9
    assert min(pauses) <= apart + 0.041


def test_a_supply_returns_no_more_batches_than_asked_and_none_that_is_empty() -> None:
    recorder = Recorder(PROBLEM)
    batches = recorder.exchange((), 3, 4)
    assert len(batches) == 3
    more = recorder.exchange((), 10**6, 4)
    units = [unit for batch in (*batches, *more) for unit in batch.units]
    assert all(batch.units for batch in more)
    assert len(units) == len(set(units))
    assert recorder.exchange((), 10**6, 4) == []


def test_a_batch_is_divided_as_it_was_measured() -> None:
    rates = Rates(3)
    rates.add(10.0, np.array([2.0, 1.0, 5.0]), by_learner=(3.0, 1.0, 0.0))
    assert rates.seconds.tolist() == [7.5, 2.5, 0.0]
    rates.add(4.0, np.array([0.0, 0.0, 8.0]), by_learner=(1.0, 0.0, 1.0))  # nothing came of the first learner
    assert rates.seconds.tolist() == [7.5, 2.5, 4.0]
    assert rates.per_cost == pytest.approx([3.75, 2.5, 4 / 13])


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


class Units(Queue):
    """A queue of n units, each of which takes so many seconds."""

    def __init__(self, n: int, length: float = 1.0) -> None:
        self.problem: Any = SimpleNamespace(cost_of_unit=lambda unit: np.array([length]))
        self.rates = Rates()
        self.begin(Unit(Stage.SELECT, 0, split, ((0, 1),)) for split in range(n))

    def progress(self) -> Any:
        raise NotImplementedError


@given(st.integers(1, 30), st.integers(1, 9))
def test_equal_shares_of_all_units_leave_none_and_what_comes_back_is_first(n: int, workers: int) -> None:
    queue = Units(n)
    shares = [queue.plan(workers).units for _ in range(workers)]
    assert [unit.split for share in shares for unit in share] == list(range(n))
    assert max(map(len, shares)) == -(-n // workers)
    queue.rates.add(1.0, np.array([1.0]))
    queue._wait(shares[0])
    assert queue.plan(1).units == shares[0][:1]
    assert queue.plan(1).units == shares[0][1:2]


@given(length=st.floats(0.1, 10), seconds=st.floats(0.1, 10))
def test_a_batch_is_as_near_to_its_length_as_whole_units_are(length: float, seconds: float) -> None:
    """Else the last batches of many workers are longer than asked by most of a unit, and others wait."""
    queue = Units(200, length)
    queue.rates.add(1.0, np.array([1.0]))
    taken = len(queue.fill(queue._issue(), seconds).units)
    nearest = min(range(1, 200), key=lambda n: abs(n * length - seconds))
    assert abs(taken * length - seconds) <= abs(nearest * length - seconds) + 1e-9
