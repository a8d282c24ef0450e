"""The process beside this one that calls other people's code."""

import os
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from ckcv_ray import RunError, Study
from ckcv_ray.engine.worker import LostError, Worker, compute_apart
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import Task


@pytest.mark.parametrize("kind", [ValueError, EOFError, OSError, RecursionError])
def test_an_error_of_any_kind_is_told_and_the_process_goes_on(kind: type[Exception]) -> None:
    def fail(shared: object) -> None:
        raise kind("no such thing")

    with closing(Worker()) as worker:
        before = worker.call(lambda shared: os.getpid(), None)
        with pytest.raises(RunError, match=f"{kind.__name__}: no such thing"):
            worker.call(fail, None)
        assert worker.call(lambda shared: os.getpid(), None) == before != os.getpid()


def test_a_process_that_ends_is_told_and_has_a_successor() -> None:
    with closing(Worker()) as worker:
        before = worker.call(lambda shared: os.getpid(), None)
        with pytest.raises(LostError, match="it ended its process: exit code 3"):
            worker.call(lambda shared: os._exit(3), None)
        assert worker.call(lambda shared: os.getpid(), None) != before


@pytest.mark.parametrize("ward", [(1, 2, 3, 4), ("A", None, "B", "A")], ids=["numbers", "text with gaps"])
@pytest.mark.parametrize("others", ["", ",linear"], ids=["alone", "of several"])
def test_fits_of_others_and_of_limited_time_are_made_there(ward: tuple[Any, ...], others: str) -> None:
    """On every table: also where steps around a learner encode the columns."""
    table = pa.table({"ward": ward * 10, "y": ("a", "b") * 20})
    task = Task.from_table(table, Roles("y"))
    for learner, apart in (("own_estimators:Crashes", True), ("tree", False)):
        made = Problem.of(Study.of(learner=learner + others, k=3, n_splits=2), task).learner
        for seconds in (None, 60.0):
            process = compute_apart(made, seconds, lambda shared: os.getpid(), None)
            assert (process != os.getpid()) == (apart or seconds is not None)
