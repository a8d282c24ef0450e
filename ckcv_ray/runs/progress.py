"""Show progress in a notebook while a run computes: one line, updated in place, with the time left.

IPython is used only where it already runs this process, and only in a notebook: elsewhere nothing is
imported, printed or shown. The line is the one that a terminal shows.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from importlib import import_module
from math import isfinite
from time import monotonic
from typing import Any

from ckcv_ray.engine.queue import Listener, Progress
from ckcv_ray.errors import ceil_percent, duration, format_percent


def describe_progress(progress: Progress, first: Progress, seconds: float) -> str:
    """Describe one moment of a run: its stage, rate, share dropped, time left, best candidate so far.

    Args:
        progress: the moment.
        first: the first report of this run, from which the rate is counted.
        seconds: wall time since the run began.
    """
    rate = (progress.computed - first.computed) / max(seconds, 1e-9)
    seconds_left = progress.left / progress.workers
    left = f"{duration(seconds_left)} left" if seconds_left >= 1 else "less than 1 s left"
    parts = [
        progress.stage,
        f"{progress.computed:,} evaluations{f', {rate:,.0f}/s' if rate >= 1 else ''}",
        f"{format_percent(progress.dropped / progress.planned)} dropped",
        left if isfinite(seconds_left) else "time left unknown",
    ]
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    if progress.best:
        candidate, l_ms = progress.best
        parts.append(f"best L_MS {ceil_percent(l_ms)} at {candidate}")
    return " | ".join(parts)


FIRST_SECONDS = 1.0  # a run that ends sooner shows nothing
UPDATE_SECONDS = 0.5


def is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, whose front end shows HTML."""
    find_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return find_shell is not None and getattr(find_shell(), "kernel", None) is not None


@contextmanager
def watch_run(listen: Listener | None) -> Iterator[Listener | None]:
    """Yield the listener of a run: the one given, or in a notebook one that shows a line."""
    if listen is not None or not is_notebook():
        yield listen
        return
    line = NotebookLine()
    try:
        yield line
    except BaseException:
        line.end("stopped")
        raise
    line.end("finished")


class NotebookLine:
    """Progress of a run in the output of a cell, called with each progress report."""

    def __init__(self) -> None:
        self.started = monotonic()
        self.due = self.started + FIRST_SECONDS
        self.first: Progress | None = None
        self.last: Progress | None = None
        self.handle: Any = None

    def __call__(self, progress: Progress) -> None:
        """Show one progress report, unless the one before was shown a moment ago."""
        self.first, self.last = self.first or progress, progress
        now = monotonic()
        if now >= self.due:
            self.due = now + UPDATE_SECONDS
            self._show(progress, describe_progress(progress, self.first, now - self.started))

    def end(self, how: str) -> None:
        """Say how the run ended, and after how long; nothing if it showed nothing."""
        if self.handle is not None and self.last is not None:
            seconds = duration(monotonic() - self.started)
            self._show(self.last, f"{how} after {seconds}: {self.last.computed:,} evaluations")

    def _show(self, progress: Progress, text: str) -> None:
        done = progress.computed + progress.dropped + progress.failed
        bar = (
            f'<div style="max-width:44em"><progress aria-label="progress of the run" style="width:100%" '
            f'value="{done}" max="{progress.planned}"></progress><div>{escape(text)}</div></div>'
        )
        content = {"text/plain": text, "text/html": bar}
        if self.handle is None:
            display = import_module("IPython.display").display  # already loaded: this is its kernel
            self.handle = display(content, raw=True, display_id=True)
        else:
            self.handle.update(content, raw=True)
