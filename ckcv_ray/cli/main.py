"""Command line: run, plan, status, verify, predict, evaluate, report, fetch.

Results go to standard output, messages to standard error. Exit codes: 0 done; 1 verification found
differences or could not compute something, or a run could not finish; 2 bad input; 3 finished with failed
evaluations; 4 the run folder is damaged or belongs to something else; 129, 130, 138 and 143 interrupted by
SIGHUP, Ctrl-C, SIGUSR1 and SIGTERM.
"""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EDQUOT, EFBIG, EIO, ENOSPC
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from ckcv_ray.cli import evaluate, predict, run, verify
from ckcv_ray.cli.display import DownloadBar
from ckcv_ray.cli.options import complete, option
from ckcv_ray.cli.output import (
    Messages,
    console,
    keep_results_apart,
    open_closed_streams,
    results,
    say,
    silence,
)
from ckcv_ray.cli.run import Folder
from ckcv_ray.cli.supervise import SupervisedError, supervise
from ckcv_ray.errors import CKCVError, InputError, RunError, StoreError
from ckcv_ray.learners.foreign import EndedError, describe_end
from ckcv_ray.learners.sklearn import trust
from ckcv_ray.learners.watch import accept_supervision, note_done
from ckcv_ray.reports import report as write_report
from ckcv_ray.tables.ida import NAME as IDA_NAME
from ckcv_ray.tables.ida import fetch as fetch_archive
from ckcv_ray.version import VERSION

DISK_ERRORS = {ENOSPC, EDQUOT, EFBIG, EIO}
app = typer.Typer(
    name="ckcv",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    help="""Model selection with a certificate.

Selects the hyperparameters of a classifier (C and gamma of an SVM) and the number of folds k together, by
minimising an upper bound on the error. The result is F*, an ensemble of classifiers, and a certificate: what
is proven about its error on new rows. Everything is kept in a run folder.

    ckcv plan patients.csv --target outcome
    ckcv run patients.csv --target outcome --out runs/patients
    ckcv predict runs/patients new.csv
    ckcv verify runs/patients
    ckcv report runs/patients
    ckcv evaluate patients.csv --target outcome --learner forest --resampling kfold:10 --out runs/scores

Run any command with --help to see its options.

Exit codes: 0 done; 1 verification found differences or could not compute something, or a run could not
finish; 2 bad input; 3 finished with failed evaluations; 4 the run folder is damaged or belongs to something
else; 129, 130, 138, 143 interrupted.
""",
)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    trusted: Annotated[
        list[str] | None,
        typer.Option(
            "--trust",
            metavar="PACKAGE",
            help="Package, such as xgboost, that a run folder may import its learner from: this runs the "
            "package's code. Nothing else than scikit-learn is trusted by itself. May be repeated.",
        ),
    ] = None,
) -> None:
    """Handle the options of ckcv itself."""
    for package in trusted or ():
        trust(package)
    if show:
        print(f"ckcv_ray {VERSION}")
        raise typer.Exit


def contained(command: Callable[..., None]) -> Callable[..., None]:
    """Keep what estimators print out of the results of a command, and let it end when it is done, not before.

    Raises:
        RunError: code of an estimator or of a package raised SystemExit, or the like.
    """

    @wraps(command)
    def call(**given: Any) -> None:
        with keep_results_apart():
            try:
                command(**given)
            except (Exception, KeyboardInterrupt):
                raise
            except BaseException as error:
                raise RunError(f"code of an estimator or a package: {describe_end(error)}") from error
            if (stream := results()) is not None:
                stream.flush()
            note_done()

    return call


for command in (run.run, run.plan, run.status, verify.verify, predict.predict, evaluate.evaluate):
    app.command()(contained(command))


@app.command()
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
    print(path)


@app.command()
@contained
def report(
    folder: Folder,
    out: Annotated[Path | None, option("HTML file to write.", "report.html in the folder")] = None,
) -> None:
    """Write an HTML report of a finished run: claims, figures, tables, cost, environment.

    The report is one file, made from the run folder alone. It loads nothing and contains no script; nothing
    is unpickled.

        ckcv report runs/patients
        ckcv report runs/patients --out patients.html
    """
    say(f"report: {write_report(folder, out)}")


def main() -> None:
    """Run the ``ckcv`` command; this package's errors become one message and an exit code."""
    open_closed_streams()
    stream = sys.stderr
    sys.stderr = Messages(stream) if stream is not None else stream
    accept_supervision()
    try:
        if (fit_timeout := _run_command(sys.argv[1:])) is not None:
            sys.exit(supervise(sys.argv[1:], fit_timeout))  # after the command has left its data
    finally:
        sys.stderr = stream


def _run_command(arguments: list[str]) -> float | None:
    """Run a command; return the seconds that a fit may take if another process has to run it, else None."""
    try:
        with _exits():
            app(complete(arguments, "--refit", "1") if "verify" in arguments[:3] else arguments)
    except SupervisedError as asked:
        return asked.fit_timeout
    return None


@contextmanager
def _exits() -> Iterator[None]:
    try:
        try:
            yield
        finally:
            if (stream := results()) is not None:
                stream.flush()  # report its errors here, not from Python's shutdown
    except InputError as error:
        _fail(error, 2)
    except StoreError as error:
        _fail(error, 4)
    except CKCVError as error:
        _fail(error, 1)
    except MemoryError:
        _fail(
            CKCVError("it needs more memory than there is: take fewer rows or columns, or another machine"), 1
        )
    except EndedError as error:
        _fail(CKCVError(f"code of an estimator: {error}"), 1)
    except BrokenPipeError:
        if (stream := results()) is not None:
            silence(stream)
        sys.exit(1)
    except OSError as error:
        if not _output_failed(error):
            raise
        _fail(CKCVError(f"cannot write to standard output: {error.strerror or error}"), 1)


def _output_failed(error: OSError) -> bool:
    """Return whether an error is one of standard output.

    Either standard output still cannot be written to, or the error names no file and says that the disk is
    full or failing.
    """
    unnamed = error.filename is None and error.errno in DISK_ERRORS
    return (stream := results()) is not None and (silence(stream) or unnamed)


def _fail(error: CKCVError, code: int) -> None:
    say(f"ckcv: {error}")
    sys.exit(code)


if __name__ == "__main__":
    main()
