"""Prometheus metrics of a run on Ray, served at the metrics port of each node.

ckcv_evaluations_done, ckcv_evaluations_dropped, ckcv_evaluations_failed   of the selection, so far
ckcv_batches_in_flight                                   submitted and not returned
ckcv_fits_total, ckcv_solver_seconds_total               models fitted; time in fits
"""

from collections.abc import Sequence

from ray.util.metrics import Counter, Gauge

from ckcv_ray.engine.progress import Progress
from ckcv_ray.records.record import Outcome


class Metrics:
    """Metrics of this process; further instances continue the same counts."""

    def __init__(self) -> None:
        self._done = Gauge("ckcv_evaluations_done", "Evaluations of the selection computed so far.")
        self._dropped = Gauge("ckcv_evaluations_dropped", "Evaluations dropped as provably beaten so far.")
        self._failed = Gauge("ckcv_evaluations_failed", "Evaluations that failed so far.")
        self._waiting = Gauge("ckcv_batches_in_flight", "Batches submitted and not returned.")
        self._fits = Counter("ckcv_fits_total", "Models fitted.")
        self._solving = Counter("ckcv_solver_seconds_total", "Seconds that workers spent in fits.")

    def count(self, outcomes: Sequence[Outcome], in_flight: int) -> None:
        """Count the outcomes of batches, and set the number of batches in flight."""
        for outcome in outcomes:
            self._fits.inc(outcome.fits) if outcome.fits else None
            self._solving.inc(outcome.solving) if outcome.solving else None
        self._waiting.set(in_flight)

    def show(self, progress: Progress) -> None:
        """Set the metrics of a run's progress."""
        self._done.set(progress.computed)
        self._dropped.set(progress.dropped)
        self._failed.set(progress.failed)
