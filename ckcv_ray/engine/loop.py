"""The loop between what says what to compute and what computes it."""

from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Protocol

from ckcv_ray.core.schedule import Unit
from ckcv_ray.engine.backend import Backend
from ckcv_ray.engine.progress import Listener, Progress
from ckcv_ray.learners.ensemble import Outcome

LISTEN_SECONDS = 0.1

Stop = Callable[[], bool]


class Supply(Protocol):
    """What says which units come next, and takes what comes back: a recorder, or what stands for one."""

    def plan(self, workers: int, least: float) -> list[Unit]:
        """Return the next batch of work; empty if none is available now."""

    def add(self, outcome: Outcome) -> object:
        """Take what a batch gave back."""

    def progress(self) -> Progress:
        """Return how far the work has come."""


def work(backend: Backend, supply: Supply, listen: Listener | None, stop: Stop) -> int:
    """Keep the backend supplied until nothing is left to compute; return how many batches that took.

    Raises:
        KeyboardInterrupt: ``stop`` said so.
    """
    listeners = [one for one in (backend.listener, listen) if one is not None]
    reported, batches = -inf, 0
    while True:
        if stop():
            raise KeyboardInterrupt
        batches += _submit(backend, supply)
        if not backend.in_flight():
            break
        for outcome in backend.wait():
            supply.add(outcome)
        if monotonic() - reported > LISTEN_SECONDS:
            _tell(listeners, supply)
            reported = monotonic()
    _tell(listeners, supply)
    return batches


def _submit(backend: Backend, supply: Supply) -> int:
    """Submit as many batches as the backend is to be kept supplied with."""
    batches = 0
    while backend.in_flight() < backend.window:
        units = supply.plan(backend.workers, backend.least_seconds)
        if not units:
            break
        backend.submit(units)
        batches += 1
    return batches


def _tell(listeners: list[Listener], supply: Supply) -> None:
    if listeners:
        moment = supply.progress()  # which looks at every evaluation there is
        for listen in listeners:
            listen(moment)
