"""The process beside this one that calls code of others."""

import os
from collections.abc import Iterator

import pytest

from ckcv_ray import RunError
from ckcv_ray.engine.worker import LostError, Worker


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.close()


@pytest.mark.parametrize("kind", [ValueError, EOFError, OSError, RecursionError])
def test_an_error_of_any_kind_is_told_and_the_process_goes_on(worker: Worker, kind: type[Exception]) -> None:
    def fail(shared: object) -> None:
        raise kind("no such thing")

    before = worker.call(lambda shared: os.getpid(), None)
    with pytest.raises(RunError, match=f"{kind.__name__}: no such thing"):
        worker.call(fail, None)
    assert worker.call(lambda shared: os.getpid(), None) == before != os.getpid()


def test_a_process_that_ends_is_told_and_has_a_successor(worker: Worker) -> None:
    before = worker.call(lambda shared: os.getpid(), None)
    with pytest.raises(LostError, match="it ended its process: exit code 3"):
        worker.call(lambda shared: os._exit(3), None)
    assert worker.call(lambda shared: os.getpid(), None) != before
