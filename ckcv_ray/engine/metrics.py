"""Figures of a run on Ray for Prometheus; Ray offers them at each node's metrics port.

ckcv_evaluations_done, ckcv_evaluations_dropped, ckcv_evaluations_failed   of the selection, so far
ckcv_batches_in_flight                                   handed out and not back
ckcv_fits_total, ckcv_solver_seconds_total               models fitted; time in fits
"""

from collections.abc import Sequence

from ray.util.metrics import Counter, Gauge

from ckcv_ray.engine.progress import Progress
from ckcv_ray.learners.ensemble import Outcome


class Metrics:
    """The figures of one process; made again they go on counting."""

    def __init__(self) -> None:
        self._done = Gauge("ckcv_evaluations_done", "Evaluations of the selection computed so far.")
        self._dropped = Gauge("ckcv_evaluations_dropped", "Evaluations proven not to matter so far.")
        self._failed = Gauge("ckcv_evaluations_failed", "Evaluations that failed so far.")
        self._waiting = Gauge("ckcv_batches_in_flight", "Batches handed out and not back.")
        self._fits = Counter("ckcv_fits_total", "Models fitted.")
        self._solving = Counter("ckcv_solver_seconds_total", "Seconds of the workers in fits.")

    def count(self, outcomes: Sequence[Outcome], in_flight: int) -> None:
        """Count batches that came back, while so many are out."""
        for outcome in outcomes:
            self._fits.inc(outcome.fits) if outcome.fits else None
            self._solving.inc(outcome.solving) if outcome.solving else None
        self._waiting.set(in_flight)

    def show(self, moment: Progress) -> None:
        """Show how far a run has come."""
        self._done.set(moment.computed)
        self._dropped.set(moment.dropped)
        self._failed.set(moment.failed)
