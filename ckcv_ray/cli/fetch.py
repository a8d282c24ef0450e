"""Command fetch."""

import signal
from typing import Annotated

import typer

from ckcv_ray.cli.display import DownloadBar
from ckcv_ray.cli.options import option
from ckcv_ray.cli.output import console, results, say
from ckcv_ray.data.ida import NAME as IDA_NAME
from ckcv_ray.data.ida import fetch as fetch_archive


def fetch(
    url: Annotated[
        str | None, option("Download the same file from this URL instead.", "Zenodo, then GitHub")
    ] = None,
) -> None:
    """Download the public archive of the IDA benchmark data, for sources such as ida:twonorm:37.

    It holds 13 data sets in 100 realizations each (20 for image and splice), 8.9 MB, doi
    10.5281/zenodo.18110. The file's SHA-256 is checked, the file is kept in your cache folder, and its path
    is printed. No other command downloads anything.

        ckcv fetch
        ckcv run ida:twonorm:37 --scale none --out runs/twonorm37

    Without network access, download benchmarks.mat on another computer and name it with --ida-file or
    CKCV_IDA; both take precedence over the cache.
    """
    try:
        with DownloadBar(console, IDA_NAME) as bar:
            path = fetch_archive(url, bar)
    except KeyboardInterrupt:
        say("interrupted: no part of the file is kept")
        raise typer.Exit(128 + signal.SIGINT) from None
    say("ida: sources are read from this file, unless --ida-file or CKCV_IDA names another")
    print(path, file=results())
