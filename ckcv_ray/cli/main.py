"""The command line: run, plan, status, verify, predict, report, fetch.

Results go to standard output, messages to standard error. Exit codes: 0 done; 1 a verification differs or
a run could not finish; 2 bad input; 3 finished with failed evaluations; 4 a damaged or foreign run folder;
130 and 143 interrupted by Ctrl-C and SIGTERM.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, EFBIG, EIO, ENOSPC
from pathlib import Path
from typing import Annotated

import typer

from ckcv_ray.cli import predict, run, verify
from ckcv_ray.cli.display import DownloadBar
from ckcv_ray.cli.options import complete, option
from ckcv_ray.cli.output import Messages, console, say, silence
from ckcv_ray.cli.run import Folder
from ckcv_ray.data.ida import NAME as IDA_NAME
from ckcv_ray.data.ida import fetch as fetch_archive
from ckcv_ray.errors import CKCVError, InputError, StoreError
from ckcv_ray.reports import report as write_report
from ckcv_ray.version import VERSION

NO_ROOM = {ENOSPC, EDQUOT, EFBIG, EIO}
app = typer.Typer(
    name="ckcv",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    help="""Model selection with a certificate.

Tunes the SVM's C and gamma and the number of folds k together, by minimising an upper bound on the
error, and returns the ensemble F* with what may be claimed for it.

    ckcv plan patients.csv --target outcome
    ckcv run patients.csv --target outcome --out runs/patients
    ckcv predict runs/patients new.csv
    ckcv verify runs/patients
    ckcv report runs/patients

Exit codes: 0 done; 1 a verification differs, or a run could not finish; 2 bad input; 3 finished with
failed evaluations; 4 a damaged or foreign run folder; 130, 143 interrupted.
""",
)


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Options of ckcv itself."""
    if show:
        print(f"ckcv_ray {VERSION}")
        raise typer.Exit


for command in (run.run, run.plan, run.status, verify.verify, predict.predict):
    app.command()(command)


@app.command()
def fetch(
    url: Annotated[str | None, option("Another address of the same file.", "Zenodo, then GitHub")] = None,
) -> None:
    """Download the public archive of the IDA benchmarks, for sources such as ida:twonorm:37.

    All 13 sets in their 100 realizations (20 of image and splice), 8.9 MB, doi 10.5281/zenodo.18110. The file
    is checked by its SHA-256 and kept in your cache folder; its path is printed. No other command ever
    downloads anything.

        ckcv fetch

        ckcv run ida:twonorm:37 --scale none --out runs/twonorm37

    Without a network here, download benchmarks.mat elsewhere and name it with --ida-file or CKCV_IDA; both
    come before the cache.
    """
    try:
        with DownloadBar(console, IDA_NAME) as bar:
            path = fetch_archive(url, bar)
    except KeyboardInterrupt:
        say("interrupted: nothing of it is kept")
        raise typer.Exit(128 + signal.SIGINT) from None
    say("ida: sets are read from this file, unless --ida-file or CKCV_IDA names another")
    print(path)


@app.command()
def report(
    folder: Folder, out: Annotated[Path | None, option("File to write.", "report.html in the folder")] = None
) -> None:
    """Write one HTML page about a finished run: the claim, figures, tables, cost, environment.

    Made from the folder's files alone; nothing is unpickled, and the page loads nothing and runs no script.
    """
    say(f"report: {write_report(folder, out)}")


def main() -> None:
    """Run the ``ckcv`` command: errors of ours become one message and an exit code."""
    stream = sys.stderr
    sys.stderr = Messages(stream) if stream is not None else stream
    try:
        with _exits():
            app(complete(sys.argv[1:], "--refit", "1"))
    finally:
        sys.stderr = stream


@contextmanager
def _exits() -> Iterator[None]:
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # what is wrong with it is told here, not by Python as it ends
    except InputError as error:
        _fail(error, 2)
    except StoreError as error:
        _fail(error, 4)
    except CKCVError as error:
        _fail(error, 1)
    except BrokenPipeError:
        silence(sys.stdout)
        sys.exit(1)
    except OSError as error:
        if not _output_failed(error):
            raise
        _fail(CKCVError(f"cannot write to standard output: {error.strerror or error}"), 1)


def _output_failed(error: OSError) -> bool:
    """Whether an error is one of standard output: files have names, and what it could not write is gone, or
    cannot be written now either.
    """
    unnamed = error.filename is None and error.errno in NO_ROOM
    return sys.stdout is not None and (silence(sys.stdout) or unnamed)


def _fail(error: CKCVError, code: int) -> None:
    say(f"ckcv: {error}")
    sys.exit(code)


if __name__ == "__main__":
    main()
