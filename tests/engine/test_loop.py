"""The loop between a backend and a supply: its calls, what it adds when it is stopped, its reports."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from conftest import blobs

from ckcv_ray.engine import loop
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.engine.evaluate import share
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


class Remote:
    """A recorder, with the number of calls by their names."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder, self.calls = recorder, Counter[str]()

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self.recorder, name)


@pytest.fixture
def crowd() -> Crowd:
    backend = Crowd()
    backend.start(share(PROBLEM))
    return backend


def test_a_supply_is_called_once_for_all_that_arrived_and_all_that_goes_out(crowd: Crowd) -> None:
    supply = Remote(Recorder(PROBLEM))
    batches = loop.work(crowd, supply, None, lambda: False)
    assert supply.recorder.queue.complete()
    assert supply.calls == {"exchange": crowd.waits + 1}
    assert batches > 2 * crowd.waits  # else nothing would be saved


def test_what_arrived_is_added_when_it_is_stopped(crowd: Crowd) -> None:
    recorder, calls = Recorder(PROBLEM), iter(range(99))
    with pytest.raises(KeyboardInterrupt):
        loop.work(crowd, recorder, None, lambda: next(calls) == 1)
    assert crowd.in_flight() == 0
    assert crowd.waits == 1
    assert len(recorder.records()) == recorder.queue.fits > 0


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
