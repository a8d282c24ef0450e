"""What evaluates batches of units: the face of a backend, the serial one, and which of them to take.

A backend evaluates batches in whatever order it likes; nothing it does can change a result.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import inf
from os import PathLike
from typing import Any, NamedTuple, Protocol

from ckcv_ray.core.schedule import Unit
from ckcv_ray.engine.evaluate import Inputs, evaluate
from ckcv_ray.engine.progress import Listener
from ckcv_ray.engine.recorder import Recorder
from ckcv_ray.learners.ensemble import Outcome
from ckcv_ray.study import Execution, Problem

SERIAL_SECONDS = 20.0
TOGETHER = 3  # studies under way at once where several are run

Out = str | PathLike[str] | None
MakeRecorder = Callable[[Problem, Out], Recorder]


class Backend(Protocol):
    """Evaluates batches of units; the order in which they come back is its own affair.

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

    def start(self, inputs: Inputs) -> None:
        """Share what every worker is given."""

    def submit(self, units: list[Unit]) -> None:
        """Take a batch."""

    def in_flight(self) -> int:
        """Return the number of batches taken and not handed back."""

    def wait(self) -> Iterable[Any]:
        """Wait a while for a batch to be done, and hand back outcomes, if any are there."""

    def close(self) -> None:
        """Give everything back; safe to call at any time, and twice."""


class SerialBackend:
    """One batch at a time, in this process."""

    name = "serial"
    workers = 1
    window = 1
    least_seconds = 0.006
    listener: Listener | None = None

    def start(self, inputs: Inputs) -> None:
        """Keep the inputs at hand."""
        self.inputs = inputs
        self.queue: deque[list[Unit]] = deque()

    def submit(self, units: list[Unit]) -> None:
        """Put a batch into the queue."""
        self.queue.append(units)

    def in_flight(self) -> int:
        """Return the length of the queue."""
        return len(self.queue)

    def wait(self) -> Iterable[Outcome]:
        """Evaluate the oldest batch."""
        return [evaluate(self.queue.popleft(), self.inputs)]

    def close(self) -> None:
        """Forget what is queued."""
        self.queue = deque()


class Session(NamedTuple):
    """What runs one or several studies.

    Attributes:
        backend: makes a backend.
        recorder: makes the recorder of a run, in this process or as an actor.
        together: studies that may be under way at once.
    """

    backend: Callable[[], Backend]
    recorder: MakeRecorder
    together: int

    def inside(self) -> "Session":
        """Return what runs studies inside one: their recorders are in this process."""
        return self._replace(recorder=Recorder)


SERIAL = Session(SerialBackend, Recorder, 1)


def choose_backend(execution: Execution, seconds: float) -> str:
    """Return the name of the backend for work of about ``seconds``: "auto" takes ray where it pays."""
    if execution.backend != "auto":
        return execution.backend
    asked = execution.address is not None or (execution.workers or 1) > 1
    return "ray" if asked or (execution.workers != 1 and seconds > SERIAL_SECONDS) else "serial"


@contextmanager
def session(execution: Execution, seconds: float = inf, single: bool = False) -> Iterator[Session]:
    """Open what runs studies; a Ray of our own is shut down at the end.

    Args:
        execution: which backend.
        seconds: how much work is expected.
        single: whether it is for one study alone, whose recorder is then an actor on Ray.
    """
    if choose_backend(execution, seconds) == "serial":
        yield SERIAL
        return
    address = _reachable(execution)
    from ckcv_ray.engine.ray_backend import RayBackend, connected, remote_recorder

    with connected(execution.workers, address):
        recorder = remote_recorder if single else Recorder
        yield Session(lambda: RayBackend(execution.workers), recorder, TOGETHER)


def ray_address(execution: Execution) -> str:
    """Return where Ray is, or "local"."""
    return execution.address or os.environ.get("RAY_ADDRESS") or "local"


def _reachable(execution: Execution) -> str:
    """The address, for a Ray that is about to be imported."""
    address = ray_address(execution)
    if address == "local":  # read when ray is imported: without it a local Ray listens on every interface
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    return address
