"""The loop between a backend and a supply: its calls and reports, seconds per unit of cost, and batches."""

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from math import inf
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from conftest import blobs
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine import forecast, loop
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.engine.evaluate import evaluate, share
from ckcv_ray.engine.forecast import plan_problem
from ckcv_ray.engine.queue import OWN_SECONDS, Rates, choose_batch_seconds
from ckcv_ray.engine.recorder import Recorder
from ckcv_ray.errors import RunError
from ckcv_ray.learners.svm.trainer import SVMTrainer
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Execution, Study

PROBLEM = Problem.of(Study.of(C=(0.1, 1.0), gamma=(0.1, 1.0), k=(3, 4), n_splits=4), blobs(24))


class Crowd(SerialBackend):
    """Several workers that all finish at once; counts how often it waits."""

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


def test_what_was_not_begun_in_time_is_left_and_the_first_is_always_begun() -> None:
    """The records of both parts are those of the whole."""
    inputs = share(PROBLEM)
    units = tuple(Unit(Stage.SELECT, 1, split, ((0, 2), (1, 1))) for split in range(4))
    whole = evaluate(inputs, units)
    assert whole.left == ()
    found = []
    while units:
        outcome = evaluate(inputs, units, seconds=0.0)
        assert outcome.left == units[1:]
        found.append(outcome.records)
        units = outcome.left
    assert np.concatenate(found).tobytes() == whole.records.tobytes()


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
    seconds, own = choose_batch_seconds(left, workers, least), workers * OWN_SECONDS
    assert choose_batch_seconds(inf, workers, least) == max(1.0, least, own)
    assert seconds >= min(max(least, own), inf if workers == 1 else left / workers / 2)
    if workers > 1:
        assert seconds <= max(own, left / workers / 2)
        shared = choose_batch_seconds(left, workers, least, waiting)
        assert shared <= min(seconds, max(own, waiting / workers))


SMALL = Study.paper(C=(0.1, 1.0), gamma=(0.1, 1.0), n_splits=4)
SERIAL = Execution("serial")


@pytest.mark.parametrize(
    "study",
    [
        SMALL,
        Study.paper(C=(0.1, 1.0), gamma=(1.0,), k=(3, 5), resampling="rotation"),
        Study.paper(C=(0.1, 1.0), gamma=(1.0,), n_splits=3, certify="holdout"),
    ],
    ids=["every k", "rotation", "holdout"],
)
def test_the_evaluations_planned_are_those_of_the_run(study):
    task = blobs(36)
    planned, result = forecast.plan(study, task.X, task.y), run_job(Job(study, task), SERIAL)
    assert planned.evaluations == result.execution["evaluations"]["planned"]
    assert planned.evaluations == planned.splits * len(study.learner.C) * len(study.learner.gamma)
    assert 0 < planned.sizes <= planned.splits


def test_a_notebook_shows_a_plan_as_a_card_and_a_shell_its_fields():
    rows = blobs(60)
    planned = forecast.plan(SMALL.replace(certify="holdout"), rows.X, rows.y, workers=(1, 8))
    text = " ".join(re.sub("<[^>]*>", " ", planned._repr_html_()).split())
    for cost in (planned.counts, *map(" ".join, planned.costs.items()), *planned.list_needs()):
        assert " ".join(cost.split()) in text
    assert "8 workers about 5 s (ray)" in text
    assert repr(planned).startswith(f"Plan(evaluations={planned.evaluations}, splits=")


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc to tell memory")
def test_hundred_million_evaluations_take_seconds_and_no_more_memory():
    """Against the same study in small: what is listed anywhere would show."""
    code = (
        "import json, sys; from ckcv_ray import Study; from ckcv_ray.tables.named import read_task\n"
        "from ckcv_ray.engine.forecast import plan_problem; from ckcv_ray.study.problem import Problem\n"
        "task, _ = read_task('twonorm:400:0')\n"
        "planned = plan_problem(Problem.of(Study.paper(n_splits=int(sys.argv[1])), task))\n"
        "lines = open('/proc/self/status').read().splitlines()\n"
        "print(json.dumps(planned.to_json()))\n"
        "print(next(int(line.split()[1]) >> 10 for line in lines if line.startswith('VmHWM')))"
    )
    peaks, counts = [], []
    for n_splits in ("20", "19000"):
        done = subprocess.run(
            [sys.executable, "-c", code, n_splits], capture_output=True, text=True, check=True
        )
        messages, peak = done.stdout.splitlines()
        peaks.append(int(peak))
        counts.append(json.loads(messages)["evaluations"])
    assert counts[1] > 10**8 > 10**6 > counts[0]
    assert peaks[1] < peaks[0] + 150


def test_a_plan_of_what_fails_says_what_failed(monkeypatch):
    """Otherwise it took nobody knows how long, and JSON has no number for that."""

    def broken(*_):
        raise FloatingPointError("the matrix is a pineapple")

    monkeypatch.setattr(SVMTrainer, "prepare", broken)
    with pytest.raises(RunError, match=r"nothing could be computed: .* paths failed, the first at .*"):
        plan_problem(Problem.of(SMALL, blobs(30)))
