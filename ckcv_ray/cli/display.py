"""Progress for people, of a run or of a download.

A live line on a terminal, a plain line every ten seconds elsewhere.
"""

from math import isfinite
from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from ckcv_ray.engine.progress import Progress as Moment

PLAIN_SECONDS = 10.0


class Line:
    """A line that shows how far something has come; a context manager.

    Args:
        console: where to show it.
        description: what it says at first.
        columns: of the live line, after the description.
    """

    def __init__(self, console: Console, description: str, *columns: ProgressColumn) -> None:
        self.console = console
        self.started = self.shown = monotonic()
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
        """Bring the live line up to date; or print the plain one, if it is time to."""
        now = monotonic()
        if self.live and self.task is not None:
            self.live.update(self.task, description=description, completed=completed, total=total)
        elif now - self.shown >= PLAIN_SECONDS:
            self.shown = now
            self.console.print(plain, soft_wrap=True, markup=False, highlight=False, emoji=False)


class Display(Line):
    """Shows the moments of a run; called with each.

    Args:
        console: where to show them.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(console, "starting", TimeElapsedColumn())
        self.first: Moment | None = None

    def __call__(self, moment: Moment) -> None:
        """Show a moment, if it is time to."""
        self.first = self.first or moment
        line = self.line(moment, monotonic() - self.started)
        self.show(line, line, moment.computed + moment.dropped + moment.failed, moment.planned)

    def line(self, moment: Moment, seconds: float) -> str:
        """One moment in words: rate, time left, share dropped, best candidate so far."""
        done = moment.computed - (self.first.computed if self.first else 0)
        parts = [
            f"{moment.computed:,} evaluations, {done / max(seconds, 1e-9):,.0f}/s",
            f"{100 * moment.dropped / moment.planned:.0f} % dropped",
            f"{duration(moment.left / moment.workers)} left"
            if isfinite(moment.left)
            else "time left unknown",
        ]
        if moment.failed:
            parts.append(f"{moment.failed:,} failed")
        if moment.best:
            candidate, l_ms = moment.best
            parts.append(f"best L_MS {100 * l_ms:.2f} % at {candidate}")
        return " | ".join(parts)


class DownloadBar(Line):
    """Shows how far a download has come; a ``fetch.Progress``.

    Args:
        console: where to show it.
        name: of the file.
    """

    def __init__(self, console: Console, name: str) -> None:
        super().__init__(console, name, DownloadColumn())
        self.name = name
        self.total = self.done = 0

    def update(self, n: int) -> None:
        """So many bytes more have come; pooch counts the last chunk as if it were full."""
        self.done = min(self.done + n, self.total or self.done + n)
        of = f" of {self.total / 1e6:.1f}" if self.total else ""
        self.show(self.name, f"{self.name}: {self.done / 1e6:.1f}{of} MB", self.done, self.total or None)

    def reset(self) -> None:
        """Count from zero again."""
        self.done = 0

    def close(self) -> None:
        """All bytes have come; the line goes when the context ends."""


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
