"""Progress display of what takes long: a live line on a terminal, else a plain line every ten seconds."""

from math import isfinite
from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from ckcv_ray.claims.percent import at_most, nearest
from ckcv_ray.engine.progress import Progress as RunProgress

PLAIN_SECONDS = 10.0


class Line:
    """Progress line; a context manager.

    Args:
        console: console to print to.
        description: initial text.
        columns: columns of the live line, after the description.
    """

    def __init__(self, console: Console, description: str, *columns: ProgressColumn) -> None:
        self.console = console
        self.started = self.shown = monotonic()
        self.said = ""
        every = (TextColumn("{task.description}"), BarColumn(bar_width=24), *columns)
        self.live = Progress(*every, console=console, transient=True) if console.is_terminal else None
        self.task = self.live.add_task(description, total=None) if self.live else None

    def __enter__(self) -> Self:
        if self.live:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live:
            self.live.stop()

    def show(self, description: str, plain: str, completed: int, total: int | None) -> None:
        """Update the live line, or print the plain one if ten seconds have passed."""
        now = monotonic()
        if self.live and self.task is not None:
            self.live.update(self.task, description=description, completed=completed, total=total)
        elif now - self.shown >= PLAIN_SECONDS and plain != self.said:
            self.shown, self.said = now, plain
            self.console.print(plain, soft_wrap=True, markup=False, highlight=False, emoji=False)


class Display(Line):
    """Progress line of a run, called with each progress report.

    Args:
        console: console to print to.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(console, "starting", TimeElapsedColumn())
        self.first: RunProgress | None = None

    def __call__(self, progress: RunProgress) -> None:
        """Show one progress report."""
        self.first = self.first or progress
        line = self.line(progress, monotonic() - self.started)
        self.show(line, line, progress.computed + progress.dropped + progress.failed, progress.planned)

    def line(self, progress: RunProgress, seconds: float) -> str:
        """Format one progress report: rate, share dropped, time left, best candidate so far."""
        done = progress.computed - (self.first.computed if self.first else 0)
        rate = done / max(seconds, 1e-9)
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
