"""The progress of a run as a line of text, for a terminal and for a notebook."""

from math import isfinite

from ckcv_ray.claims.percent import at_most, nearest
from ckcv_ray.engine.progress import Progress


def describe_progress(progress: Progress, first: Progress, seconds: float) -> str:
    """Describe one moment of a run: rate, share dropped, time left, best candidate so far.

    Args:
        progress: the moment.
        first: the first report of this run, from which the rate is counted.
        seconds: wall time since the run began.
    """
    rate = (progress.computed - first.computed) / max(seconds, 1e-9)
    parts = [
        f"{progress.computed:,} evaluations{f', {rate:,.0f}/s' if rate >= 1 else ''}",
        f"{nearest(progress.dropped / progress.planned)} dropped",
        f"{duration(progress.left / progress.workers)} left"
        if isfinite(progress.left)
        else "time left unknown",
    ]
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    if progress.best:
        candidate, l_ms = progress.best
        parts.append(f"best L_MS {at_most(l_ms)} at {candidate}")
    return " | ".join(parts)


def duration(seconds: float) -> str:
    """Format seconds in a suitable unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
