"""The loop that passes batches from a recorder to a backend, and outcomes back."""

from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Protocol

from ckcv_ray.engine.backend import Backend
from ckcv_ray.engine.batches import Batch
from ckcv_ray.engine.progress import Listener, Progress
from ckcv_ray.records.record import Outcome

LISTEN_SECONDS = 0.1

Stop = Callable[[], bool]


class Supply(Protocol):
    """Source of units and receiver of their outcomes: a queue, or the recorder of one."""

    def plan(self, workers: int, least: float) -> Batch:
        """Return the next batch of work; empty if none is available now."""

    def add(self, outcome: Outcome) -> object:
        """Add the outcome of a batch."""

    def progress(self) -> Progress:
        """Return the progress of the work."""


def work(backend: Backend, supply: Supply, listen: Listener | None, stop: Stop, seconds: float = inf) -> int:
    """Keep the backend supplied until nothing is left to compute; return the number of batches.

    No batch is submitted after ``seconds``.

    Raises:
        KeyboardInterrupt: ``stop`` returned True.
    """
    listeners = [listener for listener in (backend.listener, listen) if listener is not None]
    reported, batches, end = -inf, 0, monotonic() + seconds
    while True:
        if stop():
            raise KeyboardInterrupt
        batches += _submit(backend, supply, end)
        if not backend.in_flight():
            break
        for outcome in backend.wait():
            supply.add(outcome)
        if monotonic() - reported > LISTEN_SECONDS:
            _report(listeners, supply)
            reported = monotonic()
    _report(listeners, supply)
    return batches


def _submit(backend: Backend, supply: Supply, end: float) -> int:
    """Submit batches up to the backend's window; return their number."""
    batches = 0
    while backend.in_flight() < backend.window and monotonic() < end:
        batch = supply.plan(backend.workers, backend.least_seconds)
        if not batch.units:
            break
        backend.submit(batch)
        batches += 1
    return batches


def _report(listeners: list[Listener], supply: Supply) -> None:
    if listeners:
        progress = supply.progress()  # once for all listeners: it looks at every evaluation
        for listen in listeners:
            listen(progress)
