"""What evaluates batches of tasks: the face of a backend, the serial one, and which of them to take.

A backend evaluates batches in whatever order it likes; nothing it does can change a result.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any, Protocol

from ckcv_ray.data.task import Table
from ckcv_ray.engine import evaluate as worker
from ckcv_ray.engine.aggregator import Aggregator, Listener
from ckcv_ray.study import Execution, Study, Task

SERIAL_SECONDS = 20.0
TOGETHER = 3  # studies under way at once where several are run


class Backend(Protocol):
    """Evaluates batches of tasks; the order in which they come back is its own affair.

    Attributes:
        workers: batches at once; window: batches to keep it supplied with.
        least_seconds: length of a batch below which dispatching it costs more than it is worth.
        listener: who of the backend wants to know how far the run has come, as ``run``'s ``listen`` does.
    """

    name: str
    workers: int
    window: int
    least_seconds: float
    listener: Listener | None

    def start(self, study: Study, table: Table, out: Path | None) -> Aggregator:
        """Share the data, and make the aggregator (or what stands for one)."""

    def submit(self, tasks: list[Task]) -> None:
        """Take a batch."""

    def in_flight(self) -> int:
        """Batches taken and not handed back."""

    def wait(self) -> Iterable[Any]:
        """Wait a while for a batch to be done, and hand back what ``Aggregator.add`` takes, if any is."""

    def close(self) -> None:
        """Give everything back; safe to call at any time, and twice."""


class SerialBackend:
    """One batch at a time, in this process."""

    name = "serial"
    workers = 1
    window = 1
    least_seconds = 0.006
    listener: Listener | None = None

    def start(self, study: Study, table: Table, out: Path | None) -> Aggregator:
        """Keep the data at hand."""
        self.study = study
        self.data = worker.share(table.X, table.y, study)
        self.queue: deque[list[Task]] = deque()
        return Aggregator(study, table, out)

    def submit(self, tasks: list[Task]) -> None:
        """Put a batch into the queue."""
        self.queue.append(tasks)

    def in_flight(self) -> int:
        """Length of the queue."""
        return len(self.queue)

    def wait(self) -> Iterable[worker.Outcome]:
        """Evaluate the oldest batch."""
        return [worker.evaluate(self.queue.popleft(), self.study, self.data)]

    def close(self) -> None:
        """Forget what is queued."""
        self.queue = deque()


def choose_backend(execution: Execution, seconds: float) -> str:
    """Name of the backend for work of about ``seconds``: "auto" takes ray where it pays or is asked for."""
    if execution.backend != "auto":
        return execution.backend
    asked = execution.address is not None or (execution.workers or 1) > 1
    return "ray" if asked or (execution.workers != 1 and seconds > SERIAL_SECONDS) else "serial"


def make_backend(execution: Execution, seconds: float) -> Backend:
    """The backend that ``execution`` names, for work of about ``seconds``."""
    if choose_backend(execution, seconds) == "serial":
        return SerialBackend()
    address = _reachable(execution)
    from ckcv_ray.engine.ray_backend import RayBackend

    return RayBackend(execution.workers, address)


@contextmanager
def session(execution: Execution) -> Iterator[tuple[Callable[[], Backend], int]]:
    """What makes the backends of studies that run side by side, and how many may."""
    if choose_backend(execution, inf) == "serial":
        yield SerialBackend, 1
        return
    address = _reachable(execution)
    from ckcv_ray.engine.ray_backend import RayBackend, connected

    with connected(execution.workers, address):
        yield lambda: RayBackend(execution.workers, address, apart=False), TOGETHER


def ray_address(execution: Execution) -> str:
    """Where Ray is, or "local"."""
    return execution.address or os.environ.get("RAY_ADDRESS") or "local"


def _reachable(execution: Execution) -> str:
    """The address, for a Ray that is about to be imported."""
    address = ray_address(execution)
    if address == "local":  # read when ray is imported: without it a local Ray listens on every interface
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    return address
