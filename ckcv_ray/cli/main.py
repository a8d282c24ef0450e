"""The command line: run, plan, status, verify, predict, report, fetch. The only module that prints.

Results go to standard output, messages to standard error. Exit codes: 0 done; 1 a verification differs or
a run could not finish; 2 bad input; 3 finished with failed cells; 4 a damaged or foreign run folder; 130
and 143 interrupted by Ctrl-C and SIGTERM.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict
from errno import EDQUOT, EFBIG, EIO, ENOSPC
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, TextIO

import pyarrow as pa
import typer
from pyarrow import csv, parquet
from rich.console import Console

from ckcv_ray.claims.certificate import repeats_told
from ckcv_ray.cli.display import Display, DownloadBar, duration
from ckcv_ray.cli.options import (
    SOURCES,
    Asked,
    IdaFile,
    asked,
    check_place,
    complete,
    flag,
    option,
    parse_workers,
    study_of,
    taking,
)
from ckcv_ray.cli.restart import persist, without
from ckcv_ray.data import task as data
from ckcv_ray.data.ida import NAME as IDA_NAME
from ckcv_ray.data.ida import fetch as fetch_archive
from ckcv_ray.data.named import is_named
from ckcv_ray.engine.backend import choose_backend, ray_address
from ckcv_ray.engine.estimate import Estimate, estimate
from ckcv_ray.engine.nested import inner_folder
from ckcv_ray.engine.plan import WORKERS as PLANNED
from ckcv_ray.engine.plan import plan as make_plan
from ckcv_ray.engine.plan import wall_seconds
from ckcv_ray.errors import CKCVError, InputError, StoreError, counted, escaped, plain, printable
from ckcv_ray.runs import run as driver
from ckcv_ray.runs.load import environment_changes, finished_run, load_run, reopen, replay
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.verify import verify as verify_folder
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study import Execution, Study
from ckcv_ray.validation import as_path
from ckcv_ray.version import VERSION

HOUR = 3600.0
NO_ROOM = {ENOSPC, EDQUOT, EFBIG, EIO}
GO_ON = "give its ckcv run command again to go on"
STARTING: dict[str, Any] = {
    "run_id": None,
    "state": "starting",
    **dict.fromkeys(("C", "gamma", "k", "l_ms", "l_ee", "proven")),
    "per_k": [],
    **dict.fromkeys(("rows", "repeats", "cells", "fits", "capped", "seconds", "test_error")),
}
CSV = csv.WriteOptions(quoting_style="needed")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that a spreadsheet runs (OWASP, CSV injection)
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
failed cells; 4 a damaged or foreign run folder; 130, 143 interrupted.
""",
)
console = Console(stderr=True)


class Signals:
    """Ctrl-C and SIGTERM while a run is on: the first is a request to stop, the second is obeyed at once.

    An exception raised from a handler can surface anywhere, even inside a library that swallows it;
    so the first signal only leaves a note, which the driver reads between batches.
    """

    def __init__(self) -> None:
        self.received: int | None = None

    def __enter__(self) -> "Signals":
        self.previous = {
            number: signal.signal(number, self.note) for number in (signal.SIGINT, signal.SIGTERM)
        }
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def note(self, number: int, frame: FrameType | None) -> None:
        """Remember the signal; interrupt if it is not the first."""
        if self.received is not None:
            raise KeyboardInterrupt
        self.received = number
        with suppress(OSError):
            os.write(2, b"stopping: what is done is being saved (again to stop at once)\n")

    def stop(self) -> bool:
        """Whether a signal came."""
        return self.received is not None


JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Backend = Annotated[
    str, typer.Option(help="auto (by expected work), ray or serial.", rich_help_panel="Execution")
]
Workers = Annotated[int | None, option("Processes at once.", "every CPU", "Execution")]
Address = Annotated[str | None, option("Ray cluster to join.", "RAY_ADDRESS, else a local Ray", "Execution")]
Folder = Annotated[Path, typer.Argument(help="Run folder.", show_default=False)]


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Options of ckcv itself."""
    if show:
        print(f"ckcv_ray {VERSION}")
        raise typer.Exit


@app.command()
@taking(study=study_of, given=asked)
def run(
    study: Study,
    given: Asked,
    out: Annotated[str, typer.Option(metavar="PATH", help="Run folder to make, or to go on with.")],
    backend: Backend = "auto",
    workers: Workers = None,
    address: Address = None,
    retry_failed: Annotated[
        bool, flag("--retry-failed", "Take up again what failed in a finished run.", "Execution")
    ] = False,
    resume_until_done: Annotated[
        int,
        typer.Option(
            min=0,
            help="Killed, or unable to finish, go on again: at most so many times. Nothing is asked.",
            rich_help_panel="Execution",
        ),
    ] = 0,
    yes: Annotated[bool, flag("--yes", "Do not ask before a long run.", "Execution")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Select (C, gamma, k) on a table of labelled rows, bound the error, and keep F*.

    Given again with the same folder it goes on where it stopped, or returns the result that is there.

        ckcv run patients.csv --target outcome --out runs/patients

        ckcv run ida:titanic:1 --scale none --k 3,4,5,10 --out runs/titanic
    """
    execution, place = Execution(backend, workers, address), check_place(out)
    if resume_until_done:
        words = [*without(sys.argv[1:], "--resume-until-done"), *([] if yes else ["--yes"])]
        raise typer.Exit(persist(words, resume_until_done, _say))
    if retry_failed:
        reopen(study, given.table, place)
    result = _run(study, given, place, execution, yes)
    _show(result.to_json(), result.summary(), as_json)
    for name in result.execution.get("damaged", ()):
        _say(f"{name} was damaged or missing: what it held was made anew")
    _say(f"run folder: {place}")
    if failures := result.execution["failures"]:
        _say(
            f"{counted(len(failures), 'path')} failed, see ckcv report; the same command with --retry-failed "
            "tries again"
        )
        raise typer.Exit(3)


@app.command()
@taking(study=study_of, given=asked)
def plan(
    study: Study,
    given: Asked,
    workers: Annotated[str, option("Numbers of workers to plan for: a,b,c.", "1,8,64,512")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Say what a study will take, without running it: cells, memory, and how long by how many workers.

    From a trial of about two seconds on the data itself. Takes the options of ckcv run.

        ckcv plan patients.csv --target outcome --certify nested

        ckcv plan twonorm:2000:0 --n-splits 500 --workers 1,16
    """
    counts = parse_workers(workers) if workers else PLANNED
    planned = make_plan(study, given.table, counts)
    lines = [
        f"{planned.cells:,} cells in {planned.splits:,} splits of {planned.sizes:,} fold sizes",
        f"memory         about {planned.bytes_per_worker >> 20:,} MiB for each worker",
        f"at most        {duration(planned.seconds_at_most)} for one worker, were nothing dropped",
    ]
    for count, seconds in planned.seconds_by_workers.items():
        lines.append(f"{count:>4} worker{'s' if count > 1 else ' '}   about {duration(seconds)}")
    _show(planned.to_json(), "\n".join(lines), as_json)


@app.command()
def status(folder: Folder, as_json: JsonFlag = False) -> None:
    """Show the result of a finished run, or how far an unfinished one has come."""
    if RunFolder(folder).finished:
        result = load_run(folder)
        return _show(result.to_json(), result.summary(), as_json)
    if RunFolder(folder).starting:
        return _show(STARTING, "a run is starting here: nothing is computed yet", as_json)
    aggregator = replay(folder)
    at, account = aggregator.progress(), RunFolder(folder).execution()
    whole = aggregator.table.whole or aggregator.table
    triple, l_ms = at.best or (None, None)
    best = dict(triple._asdict() if triple else {"C": None, "gamma": None, "k": None}, l_ms=l_ms)
    cells = {name: getattr(at, name) for name in ("planned", "computed", "dropped", "failed")}
    content = STARTING | {
        "run_id": aggregator.run_id,
        "state": "unfinished",
        **best,
        "rows": whole.n,
        "repeats": data.count_repeats(whole),
        "cells": cells,
        "fits": account.get("fits"),
        "capped": at.capped,
        "seconds": account.get("seconds"),
    }
    text = (
        f"run {aggregator.run_id} is not finished: {at.computed:,} of {at.planned:,} cells computed, "
        f"{at.dropped:,} dropped, {at.failed:,} failed\n{_inner_finished(folder, aggregator.study)}"
        f"best so far: {f'{triple}, L_MS {100 * l_ms:.2f} %' if l_ms is not None else 'no complete triple'}\n"
        + ("it is running" if RunFolder(folder).busy else f"{GO_ON}, if it runs on no other machine")
    )
    return _show(content, text, as_json)


@app.command()
def verify(
    folder: Folder,
    refit: Annotated[
        float,
        option(
            "Compute again the evaluations that the result rests on: all of them, or a random share such as "
            "0.1, drawn afresh.",
            "nothing is fitted",
        ),
    ] = 0.0,
    test: Annotated[
        str | None,
        option("The rows the run was measured on: a file, or a named set, of which those to test on."),
    ] = None,
    backend: Backend = "auto",
    workers: Workers = None,
    address: Address = None,
    ida_file: IdaFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Check a finished run, and say what was computed again and what was taken on trust.

    From the Parquet files: digests, sums, bounds, drops, winner, splits, certificate; and from the data each
    model's errors and KKT conditions. The counts of errors on the select sets are taken on trust, unless
    --refit computes them again. Nothing is unpickled. Exit code 1 with the differences, if there are any.

        ckcv verify runs/patients

        ckcv verify runs/patients --refit

        ckcv verify runs/patients --refit 0.1 --backend ray
    """
    execution, signals = Execution(backend, workers, address), Signals()
    rows = _rows_to_test(test, ida_file) if test else None
    try:
        with signals if refit else nullcontext(), Display(console) if refit else nullcontext() as display:
            found = verify_folder(folder, refit, rows, execution, display, signals.stop)
    except KeyboardInterrupt:
        _say("interrupted: nothing is changed by a verification")
        raise typer.Exit(128 + (signals.received or signal.SIGINT)) from None
    _say_environment(folder)
    name, differences = _run_id(folder), [plain(sentence) for sentence in found.differences]
    content = {"run_id": name, "ok": not differences, **asdict(found), "differences": differences}
    lines = differences or [f"run {name}: every figure follows from the data and the log"]
    lines += [f"  computed again: {what}" for what in found.recomputed]
    lines += [f"  taken on trust: {what}" for what in found.trusted]
    _show(content, "\n".join(lines), as_json)
    if differences:
        raise typer.Exit(1)


@app.command()
def predict(
    folder: Folder,
    source: Annotated[str, typer.Argument(metavar="DATA", help=SOURCES, show_default=False)],
    out: Annotated[Path | None, option("File to write, .csv or .parquet.", "CSV on standard output")] = None,
    vote: Annotated[
        bool,
        flag("--vote", "By the majority of F*: proven by the claim vote, else twice that of a random draw."),
    ] = False,
    member: Annotated[
        int | None, option("By one member of F*, that of this split: proven by the claim member:N.")
    ] = None,
    nested: Annotated[
        bool, flag("--nested", "With the ensemble certified by --certify nested, not F*.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Draw a member afresh for each row, by this seed: only to repeat a prediction.",
            show_default="a new one each time",
        ),
    ] = None,
    allow_pickle: Annotated[
        bool,
        flag(
            "--allow-pickle",
            "Take the models of F* from their pickles, if their SHA-256 is the manifest's, not from "
            "Parquet. Opening a pickle runs what is in it: for runs of your own alone.",
        ),
    ] = False,
    csv_safe: Annotated[
        bool,
        flag(
            "--csv-safe",
            "Put an apostrophe before labels that a spreadsheet would run: those that begin with = + - @, "
            "a tab or a carriage return.",
        ),
    ] = False,
    ida_file: IdaFile = None,
) -> None:
    """Classify rows with F*: columns are matched by name, extra ones are ignored.

    Each row is classified by a member drawn afresh for it, as the paper demands, and the seed that repeats
    the draws is printed. After --certify holdout with the claim random, it is the member that a hash of the
    row's values draws: the rule that the held-out rows judged. Columns written: row (counted from 1),
    prediction in the original label, member (the split it was fitted on), its score, and the share of F* that
    agrees. In CSV control characters of labels are written as escapes, a newline as a backslash and an n (and
    then a backslash as two). Of a named set with rows to test on, it is these that are classified.
    """
    if out is not None and as_path("out", out).suffix not in (".csv", ".parquet"):
        raise InputError(f"out={str(out)!r}: the name has to end in .csv or .parquet")
    if csv_safe and out is not None and out.suffix == ".parquet":
        raise InputError(f"csv_safe is for spreadsheets, and out={str(out)!r} is none: leave one of them out")
    result = load_run(folder, allow_pickle)
    chosen = _rows_to_test(source, ida_file)
    if out is not None and out.exists() and not is_named(source) and out.samefile(source):
        raise InputError(f"out={str(out)!r} is the file to predict: give another name")
    if not chosen.num_rows:
        raise InputError(f"{source!r} has no rows to predict")
    X = data.matrix(chosen, list(result.table.features))
    rule = result.rule(seed, vote, nested, member)
    predicted = result.predictions(X, rule, nested)
    table = pa.table(
        {
            "row": range(1, len(X) + 1),
            "prediction": result.named(predicted.sign),
            "member": predicted.member if not vote else pa.nulls(len(X), pa.int64()),
            "score": predicted.score,
            "share": predicted.share,
        }
    )
    _write_table(table, out, RunFolder(folder), csv_safe)
    _say(result.claim_for(rule, nested))
    for sentence in repeats_told(result.certificate.repeats, result.certificate.n_rows):
        _say(sentence)
    if rule.name == "random":
        _say(f"--seed {rule.seed} repeats these draws")
    _say_error_rate(chosen, result, X, predicted.sign)


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
        _say("interrupted: nothing of it is kept")
        raise typer.Exit(128 + signal.SIGINT) from None
    _say("ida: sets are read from this file, unless --ida-file or CKCV_IDA names another")
    print(path)


@app.command()
def report(
    folder: Folder, out: Annotated[Path | None, option("File to write.", "report.html in the folder")] = None
) -> None:
    """Write one HTML page about a finished run: the claim, figures, tables, cost, environment.

    Made from the folder's files alone; nothing is unpickled, and the page loads nothing and runs no script.
    """
    place = RunFolder(folder)
    from ckcv_ray.reports.page import page  # matplotlib is slow to import, and only needed here

    _say(f"report: {place.write_report(page(folder), out)}")


class Messages:
    """Standard error, which may be lost: where it cannot be written to, the work goes on without it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write text, or lose it and all that comes after."""
        try:
            self.stream.write(text)
            self.stream.flush()
        except OSError:
            _silence(self.stream)
        return len(text)

    def flush(self) -> None:
        """Nothing is left to flush."""


def main() -> None:
    """Entry point of the ``ckcv`` command: errors of ours become one message and an exit code."""
    told = sys.stderr
    sys.stderr = Messages(told) if told is not None else told
    try:
        with _exits():
            app(complete(sys.argv[1:], "--refit", "1"))
    finally:
        sys.stderr = told


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
        _silence(sys.stdout)
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
    return sys.stdout is not None and (_silence(sys.stdout) or unnamed)


def _silence(stream: TextIO) -> bool:
    """Whether a stream cannot be written to; it then leads nowhere, so that nothing is left to fail."""
    try:
        stream.flush()
        return False
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return True


def _fail(error: CKCVError, code: int) -> None:
    _say(f"ckcv: {error}")
    sys.exit(code)


def _run(study: Study, given: Asked, out: Path, execution: Execution, yes: bool) -> Result:
    table, test = given
    if finished_run(study, table, out) is not None:
        _say(f"{out} holds this study, finished: here is its result")
        return driver.run_table(study, table, out, execution, test=test)
    _say_environment(out)
    signals = Signals()
    try:
        expected = estimate(study, table)
        _tell_expected(expected, execution, yes)
        with signals, Display(console) as display:
            return driver.run_table(study, table, out, execution, display, test, expected, stop=signals.stop)
    except KeyboardInterrupt:
        kept = f"what is done is kept in {out}; " if out.exists() else ""
        _say(f"interrupted: {kept}give the same command again to go on")
        raise typer.Exit(128 + (signals.received or signal.SIGINT)) from None


def _say_environment(folder: Path) -> None:
    """Where the run was made in another environment, in which numbers may differ in their last bits."""
    with suppress(StoreError):
        if changes := environment_changes(folder):
            _say(f"made in another environment: {plain('; '.join(changes))}. Last bits may differ.")


def _inner_finished(folder: Path, study: Study) -> str:
    """A line on the inner selections, where the protocol has them."""
    if study.outer_splits is None:
        return ""
    finished = sum(RunFolder(inner_folder(folder, i)).finished for i in range(study.outer_splits))
    return f"inner selections: {finished} of {study.outer_splits} finished\n"


def _rows_to_test(source: str, ida_file: Path | None) -> pa.Table:
    """Rows to measure on: those of a named set that are to test on, or all of a file."""
    columns = data.read(source, ida_file)
    return columns.learn if columns.test is None else columns.test


def _run_id(folder: Path) -> str | None:
    with suppress(StoreError):
        identity = RunFolder(folder).identity()
        return identity.run_id if identity else None
    return None


def _tell_expected(expected: Estimate, execution: Execution, yes: bool) -> None:
    """Say how long the run will take, and ask before a long one."""
    backend, seconds = choose_backend(execution, expected.seconds), expected.seconds
    if backend == "serial":
        where = "serial, workers: 1"
    elif execution.workers is None and (address := ray_address(execution)) != "local":
        where = f"one worker; those of the cluster at {address} share it"
    else:
        workers = execution.workers or os.cpu_count() or 1
        seconds, where = wall_seconds(seconds, workers), f"ray, workers: {workers}"
    told = f"about {duration(seconds)}" if seconds >= 1 else "less than a second"
    _say(f"expected: {told} with {where}")
    if seconds > HOUR and not yes and sys.stdin.isatty() and console.is_terminal:
        typer.confirm("Go on?", abort=True, err=True)


def _write_table(table: pa.Table, out: Path | None, folder: RunFolder, safe: bool) -> None:
    sink = pa.output_stream(sys.stdout.buffer) if out is None else pa.BufferOutputStream()
    if out is None or out.suffix == ".csv":
        csv.write_csv(_fit_for_csv(table, safe), sink, CSV)
    else:
        parquet.write_table(table, sink)
    if out is not None:
        folder.write_beside(out, sink.getvalue())


def _fit_for_csv(table: pa.Table, safe: bool) -> pa.Table:
    """Labels without control characters, and, where asked for, none that a spreadsheet would run."""
    if not pa.types.is_string(table["prediction"].type):
        return table
    labels = table["prediction"].combine_chunks().dictionary_encode()
    words = labels.dictionary.to_pylist()
    escape = not all(word.isprintable() for word in words)
    cells = pa.array([_cell(word, escape, safe) for word in words], pa.string())
    column = pa.DictionaryArray.from_arrays(labels.indices, cells).cast(pa.string())
    return table.set_column(table.column_names.index("prediction"), "prediction", column)


def _cell(text: str, escape: bool, safe: bool) -> str:
    """A label as a cell; with control characters backslashes are escaped too: no two labels meet."""
    formula = safe and text.startswith(FORMULA)
    if escape:
        text = "".join(c if c.isprintable() and c != "\\" else escaped(c) for c in text)
    return f"'{text}" if formula else text


def _say_error_rate(columns: pa.Table, result: Result, X: data.Rows, predicted: Any) -> None:
    target = result.table.target
    if target not in columns.column_names:
        return None
    try:
        y = data.signs(columns[target], result.table.labels, target)
    except InputError as error:
        return _say(f"no error rate: {error}")
    wrong, known = int((y != predicted).sum()), data.known_rows(X, result.table)
    doubt = f"; {known} of them were learned from, and say little of new ones" if known else ""
    return _say(f"error rate: {wrong} of {len(y)} rows ({100 * wrong / max(1, len(y)):.2f} %){doubt}")


def _show(content: dict[str, Any], text: str, as_json: bool) -> None:
    print(json.dumps(content, allow_nan=False) if as_json else printable(text))


def _say(text: str) -> None:
    console.print(printable(text), soft_wrap=True, markup=False, highlight=False, emoji=False)


if __name__ == "__main__":
    main()
