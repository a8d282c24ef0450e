"""The command of this package: ``python -m ckcv_paper fetch``.

The path of the archive goes to standard output, messages to standard error. Exit codes: 0 done; 2 it cannot
be downloaded; 130 interrupted.
"""

import signal
import sys
from typing import Annotated

import typer

from ckcv_paper.download import fetch as fetch_archive
from ckcv_ray.errors import InputError

app = typer.Typer(
    name="ckcv_paper",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    help="The data of the paper: the IDA benchmarks, which ckcv reads as ida:NAME:R.",
)


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
        path = fetch_archive(url)
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
