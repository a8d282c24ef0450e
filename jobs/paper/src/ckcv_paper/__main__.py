"""The command of this package: ``python -m ckcv_paper fetch``.

The path of the archive goes to standard output, messages to standard error. Exit codes: 0 done; 2 it cannot
be downloaded; 130 interrupted.
"""

import signal
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import DownloadColumn

from ckcv_paper.download import NAME
from ckcv_paper.download import fetch as fetch_archive
from ckcv_ray.cli.display import Line
from ckcv_ray.errors import InputError

app = typer.Typer(
    name="ckcv_paper",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    help="The data of the paper: the IDA benchmarks, which ckcv reads as ida:NAME:R.",
)


class DownloadBar(Line):
    """Progress line of a download; a ``download.DownloadProgress``.

    Args:
        console: console to print to.
        name: name of the file.
    """

    def __init__(self, console: Console, name: str) -> None:
        super().__init__(console, name, DownloadColumn())
        self.name = name
        self.total = self.done = 0

    def update(self, n: int) -> None:
        """Add ``n`` bytes; pooch counts the last chunk as if it were full."""
        self.done = min(self.done + n, self.total or self.done + n)
        of = f" of {self.total / 1e6:.1f}" if self.total else ""
        self.show(self.name, f"{self.name}: {self.done / 1e6:.1f}{of} MB", self.done, self.total or None)

    def reset(self) -> None:
        """Count from zero again."""
        self.done = 0

    def close(self) -> None:
        """Do nothing: the line is removed when the context ends."""


@app.callback()
def group() -> None:
    """Keep ``fetch`` a command of its own, although it is the only one."""


@app.command()
def fetch(
    url: Annotated[
        str | None,
        typer.Option(
            help="Download the same file from this URL instead.", show_default="Zenodo, then GitHub"
        ),
    ] = None,
) -> None:
    """Download the public archive of the IDA benchmark data, for sources such as ida:twonorm:37.

    It holds 13 data sets in 100 realizations each (20 for image and splice), 8.9 MB, doi
    10.5281/zenodo.18110. The file's SHA-256 is checked, the file is kept in your cache folder, and its path
    is printed. Nothing else of ckcv downloads anything.

        python -m ckcv_paper fetch
        ckcv run ida:twonorm:37 --scale none --out runs/twonorm37

    Without network access, download benchmarks.mat on another computer and set CKCV_IDA to its path, which
    takes precedence over the cache.
    """
    try:
        with DownloadBar(Console(stderr=True), NAME) as bar:
            path = fetch_archive(url, bar)
    except KeyboardInterrupt:
        print("interrupted: no part of the file is kept", file=sys.stderr)
        raise typer.Exit(128 + signal.SIGINT) from None
    except InputError as error:
        print(f"ckcv_paper: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    print("ida: sources are read from this file, unless CKCV_IDA names another", file=sys.stderr)
    print(path)


if __name__ == "__main__":
    app()
