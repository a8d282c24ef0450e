"""Progress for people, of a run or of a download.

A live line on a terminal, a plain line every ten seconds elsewhere.
"""

from math import isfinite
from time import monotonic
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from ckcv_ray.aggregator import Progress as Moment

PLAIN_SECONDS = 10.0


class Display:
    """Shows the moments of a run on a console; use as a context manager, call with each moment.

    Args:
        console: where to show them.
        workers: processes that share the work left.
    """

    def __init__(self, console: Console, workers: int) -> None:
        self.console = console
        self.workers = workers
        self.started = self.shown = monotonic()
        self.first: Moment | None = None
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
        self.live = Progress(*columns, console=console, transient=True) if console.is_terminal else None
        self.task = self.live.add_task("starting", total=None) if self.live else None

    def __enter__(self) -> "Display":
        if self.live:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live:
            self.live.stop()

    def __call__(self, moment: Moment) -> None:
        """Show a moment, if it is time to."""
        now = monotonic()
        self.first = self.first or moment
        line = self.line(moment, now - self.started)
        if self.live and self.task is not None:
            decided = moment.computed + moment.dropped + moment.failed
            self.live.update(self.task, description=line, completed=decided, total=moment.planned)
        elif now - self.shown >= PLAIN_SECONDS:
            self.shown = now
            _print(self.console, line)

    def line(self, moment: Moment, seconds: float) -> str:
        """One moment in words: rate, time left, share dropped, best triple so far."""
        done = moment.computed - (self.first.computed if self.first else 0)
        parts = [
            f"{moment.computed:,} cells, {done / max(seconds, 1e-9):,.0f}/s",
            f"{100 * moment.dropped / moment.planned:.0f} % dropped",
            f"{duration(moment.left / self.workers)} left" if isfinite(moment.left) else "time left unknown",
        ]
        if moment.failed:
            parts.append(f"{moment.failed:,} failed")
        if moment.best:
            (C, gamma, k), l_ms = moment.best
            parts.append(f"best L_MS {100 * l_ms:.2f} % at C={C:g} gamma={gamma:g} k={k}")
        return " | ".join(parts)


class DownloadBar:
    """Shows how far a download has come; a context manager, and a ``fetch.Progress``.

    Args:
        console: where to show it.
        name: of the file.
    """

    def __init__(self, console: Console, name: str) -> None:
        self.console = console
        self.name = name
        self.total = self.done = 0
        self.shown = monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), DownloadColumn())
        self.live = Progress(*columns, console=console, transient=True) if console.is_terminal else None
        self.task = self.live.add_task(name, total=None) if self.live else None

    def __enter__(self) -> "DownloadBar":
        if self.live:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live:
            self.live.stop()

    def update(self, n: int) -> None:
        """So many bytes more have come; pooch counts the last chunk as if it were full."""
        self.done = min(self.done + n, self.total or self.done + n)
        now = monotonic()
        if self.live and self.task is not None:
            self.live.update(self.task, completed=self.done, total=self.total or None)
        elif now - self.shown >= PLAIN_SECONDS:
            self.shown = now
            of = f" of {self.total / 1e6:.1f}" if self.total else ""
            _print(self.console, f"{self.name}: {self.done / 1e6:.1f}{of} MB")

    def reset(self) -> None:
        """Count from zero again."""
        self.done = 0

    def close(self) -> None:
        """All bytes have come; the line goes when the context ends."""


def _print(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True, markup=False, highlight=False, emoji=False)


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
