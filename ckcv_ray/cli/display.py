"""Progress display of what takes long: a live line on a terminal, else a plain line every ten seconds."""

from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

from ckcv_ray.engine.queue import Progress as RunProgress
from ckcv_ray.runs.progress import describe_progress

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
        line = describe_progress(progress, self.first, monotonic() - self.started)
        self.show(line, line, progress.computed + progress.dropped + progress.failed, progress.planned)
