"""Backends, which evaluate batches of units: the serial one, and how one is chosen.

A backend may evaluate batches in any order; nothing it does can change a result. The address of a Ray cluster
is checked here, without importing Ray.
"""

import os
import socket
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache, partial
from importlib.util import find_spec
from math import inf
from typing import Any, NamedTuple

from ckcv_ray.core.process import one_thread
from ckcv_ray.engine.evaluate import Inputs, evaluate_apart
from ckcv_ray.engine.loop import Backend
from ckcv_ray.engine.queue import Batch, Listener
from ckcv_ray.engine.recorder import Recorder
from ckcv_ray.errors import InputError
from ckcv_ray.records.record import Outcome
from ckcv_ray.storage.folder import FolderPath
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Execution

SERIAL_SECONDS = 20.0
REACH_SECONDS = 5.0
RAY = "ray>=2.56,<3"  # what to install

MakeRecorder = Callable[[Problem, FolderPath | None], Recorder[Any]]


class SerialBackend:
    """Evaluates one batch at a time, in this process or in its worker.

    Args:
        fit_timeout: seconds that one fit may take; None for no limit.
    """

    name = "serial"
    workers = 1
    window = 1
    least_seconds = 0.006
    listener: Listener | None = None
    fit_timeout: float | None = None

    def __init__(self, fit_timeout: float | None = None) -> None:
        self.fit_timeout = fit_timeout

    def start(self, inputs: Inputs) -> None:
        """Store the inputs."""
        self.inputs = inputs._replace(fit_timeout=self.fit_timeout)
        self.queue: deque[Batch] = deque()

    def submit(self, batch: Batch) -> None:
        """Append a batch to the queue."""
        self.queue.append(batch)

    def in_flight(self) -> int:
        """Return the length of the queue."""
        return len(self.queue)

    def wait(self) -> Sequence[Outcome]:
        """Evaluate the oldest batch."""
        batch = self.queue.popleft()
        return evaluate_apart(batch.units, self.inputs, batch.seconds)

    def close(self) -> None:
        """Clear the queue."""
        self.queue = deque()


class Session(NamedTuple):
    """Factories for what one or several runs need."""

    backend: Callable[[], Backend]  # makes a backend
    recorder: MakeRecorder  # makes the recorder of a run, in this process or as an actor
    together: int  # number of studies that may be computed at the same time


SERIAL = Session(SerialBackend, Recorder, 1)


@contextmanager
def start_backend(make: Callable[[], Backend], inputs: Inputs) -> Iterator[Backend]:
    """Make a backend and share the inputs with its workers; close it at the end."""
    with closing(make()) as backend:
        backend.start(inputs)
        yield backend


def choose_backend(execution: Execution, seconds: float) -> str:
    """Return the name of the backend for about ``seconds`` of work: "auto" chooses Ray where that pays.

    If Ray is not installed, "auto" is serial, and a warning says so once where Ray would pay.

    Raises:
        InputError: what is requested needs Ray, which is not installed.
    """
    if execution.backend == "serial":
        return "serial"
    requested = execution.backend == "ray" or execution.address or (execution.workers or 1) > 1
    if not requested and (execution.workers == 1 or seconds <= SERIAL_SECONDS):
        return "serial"
    with suppress(ImportError):  # from what looks for modules
        if find_spec("ray") is not None:
            return "ray"
    if requested:
        raise InputError(
            "backend=ray, an address and workers need Ray, which is not installed: leave them out, or pip "
            f"install '{RAY}'"
        )
    warn_once(f"Ray is not installed, so one process computes everything; for more: pip install '{RAY}'")
    return "serial"


@cache
def warn_once(text: str) -> None:
    """Give a warning, once per process."""
    warnings.warn(text, RuntimeWarning, stacklevel=1)


@contextmanager
def session(execution: Execution, seconds: float = inf, single: bool = False) -> Iterator[Session]:
    """Open a session; a Ray instance started for it is shut down at the end.

    Args:
        execution: backend, workers, cluster address.
        seconds: expected seconds of work.
        single: whether it is for a single study, whose recorder is then an actor on Ray.
    """
    if choose_backend(execution, seconds) == "serial":
        with one_thread():  # once for all batches: it takes as long as a small fit
            yield SERIAL._replace(backend=partial(SerialBackend, execution.fit_timeout))
        return
    address = find_ray_address(execution)
    if address == "local":  # importing ray reads it
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # it only listens on loopback
    from ckcv_ray.engine import ray_backend

    with ray_backend.connect(execution.workers, address):
        make = partial(ray_backend.RayBackend, execution.workers, execution.fit_timeout)
        recorder = ray_backend.remote_recorder if single else Recorder
        yield Session(make, recorder, ray_backend.MAX_CONCURRENT_STUDIES)


def find_ray_address(execution: Execution) -> str:
    """Return the address of the Ray cluster, or "local"."""
    return execution.address or os.environ.get("RAY_ADDRESS") or "local"


def reach(address: str) -> None:
    """Raise InputError if no Ray cluster answers at an address; ray.init would try for a minute."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        if host.startswith("ray://"):
            raise ValueError("Ray Client is not supported")
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:  # the last two: invalid host names and ports
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"address={address!r}: no Ray cluster answers there ({reason}): expected host:port, or auto for "
            "that of this machine"
        ) from None
