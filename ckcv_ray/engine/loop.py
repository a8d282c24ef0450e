"""The loop that passes batches from a recorder to a backend, and outcomes back."""

from collections.abc import Callable, Sequence
from math import inf
from time import monotonic
from typing import Protocol

from ckcv_ray.engine.evaluate import Inputs
from ckcv_ray.engine.queue import Batch, Listener, Supply
from ckcv_ray.records.record import Outcome

LISTEN_SECONDS = 0.1
LISTEN_SHARE = 0.02  # of the time, at most: progress looks at every one of maybe millions of evaluations

Stop = Callable[[], bool]


class Backend(Protocol):
    """Evaluates batches of units; results may come back in any order."""

    name: str
    workers: int  # number of batches evaluated at once
    window: int  # number of batches to keep it supplied with
    fit_timeout: float | None  # seconds that a fit may take; None for no limit
    least_seconds: float  # length of a batch below which dispatching it is not worth the cost
    listener: Listener | None  # its own progress callback, called like the ``listen`` of ``run``

    def start(self, inputs: Inputs) -> None:
        """Share the inputs with every worker."""

    def submit(self, batch: Batch) -> None:
        """Submit a batch."""

    def in_flight(self) -> int:
        """Return the number of batches submitted but not returned."""

    def wait(self) -> Sequence[Outcome]:
        """Wait a short time for a batch to finish; return the outcomes available."""

    def close(self) -> None:
        """Release all resources; safe to call at any time, and twice."""


def work(backend: Backend, supply: Supply, listen: Listener | None, stop: Stop) -> int:
    """Keep the backend supplied until nothing is left to compute; return the number of batches.

    Raises:
        KeyboardInterrupt: ``stop`` returned True; outcomes that had arrived are added.
    """
    listeners = [listener for listener in (backend.listener, listen) if listener is not None]
    due, batches = -inf, _exchange(backend, supply, (), stop)
    while backend.in_flight():
        batches += _exchange(backend, supply, backend.wait(), stop)
        if (begin := monotonic()) > due:
            _report(listeners, supply)
            due = monotonic() + max(LISTEN_SECONDS, (monotonic() - begin) / LISTEN_SHARE)
    _report(listeners, supply)
    return batches


def _exchange(backend: Backend, supply: Supply, outcomes: Sequence[Outcome], stop: Stop) -> int:
    """Add outcomes, and submit batches up to the backend's window; return their number."""
    stopped = stop()
    most = 0 if stopped else backend.window - backend.in_flight()
    batches = supply.exchange(outcomes, most, backend.workers, backend.least_seconds)
    if stopped:
        raise KeyboardInterrupt
    for batch in batches:
        backend.submit(batch)
    return len(batches)


def _report(listeners: list[Listener], supply: Supply) -> None:
    if listeners:
        progress = supply.progress()  # once for all listeners
        for listen in listeners:
            listen(progress)
