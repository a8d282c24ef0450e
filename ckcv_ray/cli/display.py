"""Progress display of what takes long: a live line on a terminal, else a plain line every ten seconds."""

from time import monotonic
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ckcv_ray.engine.queue import Progress as RunProgress
from ckcv_ray.runs.progress import describe_progress

PLAIN_SECONDS = 10.0


class Display:
    """Progress line of a run, called with each progress report; a context manager.

    Args:
        console: console to print to.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.started = self.shown = monotonic()
        self.said = ""
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
        self.live = Progress(*columns, console=console, transient=True) if console.is_terminal else None
        self.task = self.live.add_task("starting", total=None) if self.live else None
        self.first: RunProgress | None = None

    def __enter__(self) -> Self:
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.live:
            self.live.stop()

    def __call__(self, progress: RunProgress) -> None:
        """Update the live line, or print a plain one if ten seconds have passed."""
        self.first = self.first or progress
        now = monotonic()
        line = describe_progress(progress, self.first, now - self.started)
        if self.live and self.task is not None:
            completed = progress.computed + progress.dropped + progress.failed
            self.live.update(self.task, description=line, completed=completed, total=progress.planned)
        elif now - self.shown >= PLAIN_SECONDS and line != self.said:
            self.shown, self.said = now, line
            self.console.print(line, soft_wrap=True, markup=False, highlight=False, emoji=False)
