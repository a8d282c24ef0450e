"""Options that say what is learned from: files, columns and their roles.

Also what commands say of a changed environment, while they compute, and of a result.
"""

import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from tempfile import NamedTemporaryFile
from time import monotonic
from typing import Annotated, NamedTuple

import pyarrow as pa
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ckcv_ray.claims.quantity import Acceptance
from ckcv_ray.cli.options import make_argument, make_flag, make_option, with_options
from ckcv_ray.cli.output import NOT_YET_PROVEN, PROVEN_WORSE, Signals, say, show
from ckcv_ray.engine.queue import Progress as RunProgress
from ckcv_ray.errors import InputError, StoreError, check_choice, name_reason, plain, pluralize
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.run import describe_progress
from ckcv_ray.storage.execution import find_changes, read_environment
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study.study import AnyStudy, Procedure
from ckcv_ray.tables.columns import MAX_TABLE_BYTES, DeclaredTypes, some
from ckcv_ray.tables.named import Columns, is_named, read
from ckcv_ray.tables.read import AS_IT_IS, Reading, check_place
from ckcv_ray.tables.roles import GapWords, Roles, split_names
from ckcv_ray.tables.task import Task, TestRows, join_copies, make_test_rows

SOURCES = (
    "Table: .csv, .tsv, .txt or .dat (also .gz, .bz2, .zst), .parquet, .feather, .xlsx, .npz (arrays X and "
    "y) or .svmlight; s3:// too. Or a named set: "
    "sklearn:breast_cancer, twonorm:400:0, ringnorm:400:0, waveform:400:0."
)
COLUMNS = "Columns"
READING = "If a table is refused"
STDIN_BYTES = 1 << 20
THOUSANDS = make_option(
    "Thousands separator: , or .",
    "inferred from the numbers",
    READING,
    lambda mark: mark and check_choice("thousands", mark, (",", ".")),
    "",
)
PLAIN_SECONDS = 10.0


def check_source(source: str | None) -> str | None:
    """Return the name of a file or of a named set.

    Raises:
        InputError: there is no such file; this is said before any other is read.
    """
    if source is not None and not is_named(source):
        check_place(source)
    return source


DATA = make_argument("DATA", SOURCES, check_source)
DataSource = Annotated[str, DATA]


def make_reading(
    separator: str | None = make_option(
        "Separator, such as ;. A space stands for any number of spaces.", "found", panel=READING
    ),
    sheet: str | None = make_option("Sheet of Excel workbooks.", "its only one", panel=READING),
    skip_rows: str | None = make_option(
        "Lines of text tables, or rows of sheets, to leave out, counted from 1 with the header, such as 2 "
        "(units) or 1-3,last (totals); none keeps all.",
        "none; units and totals are refused",
        panel=READING,
    ),
    encoding: str | None = make_option(
        "Encoding of text, such as cp1251.", "UTF-8, or cp1252 if it looks so; else refused", panel=READING
    ),
) -> Reading:
    """Collect what files do not say about themselves."""
    return Reading(separator, sheet, skip_rows, encoding)


def _read_columns(source: str, reading: Reading, tell: Callable[[str], object] = say) -> Columns:
    """Read a table without copies of a column; tell which columns had copies, and how it was read."""
    columns = read(source, reading, tell)
    joined = join_copies(columns.learn)
    if copies := Counter(columns.learn.column_names) - Counter(joined.column_names):
        tell(f"identical columns with the same name, one of which is kept: {some(list(copies))}")
    return columns._replace(learn=joined)


def read_new_rows(source: str, reading: Reading = AS_IT_IS) -> pa.Table:
    """Read rows to predict or to measure on: the test rows of a named set if it has any, else all."""
    if source != "-":
        columns = _read_columns(source, reading)
        return columns.learn if columns.test is None else columns.test
    with NamedTemporaryFile(suffix=".csv") as file:  # messages name standard input instead
        while (content := sys.stdin.buffer.read(STDIN_BYTES)) and file.tell() <= MAX_TABLE_BYTES:
            file.write(content)
        file.flush()
        name, shown = repr(file.name), "standard input"
        try:
            return _read_columns(file.name, reading, lambda said: say(said.replace(name, shown))).learn
        except InputError as error:
            raise InputError(str(error).replace(name, shown)) from None


def read_rows_if_named(source: str | None, reading: Reading, needed: str) -> pa.Table | None:
    """Read rows as above; return None without a source.

    Raises:
        InputError: they cannot be read, or only the reading is given, for which a file is ``needed``.
    """
    if source is not None:
        return read_new_rows(source, reading)
    if reading != AS_IT_IS:
        raise InputError(f"separator, sheet, skip_rows and encoding are for {needed}")
    return None


def declare_types(
    categorical: str | None = make_option(
        "Columns of numbers to take as categories, such as ward.", panel=READING
    ),
    numeric: str | None = make_option(
        "Columns of numbers in which text counts as a gap, such as dose.", panel=READING
    ),
    date: str | None = make_option("Columns of dates, such as admitted.", panel=READING),
    thousands: str = THOUSANDS,
    labels: str | None = make_option(
        "Labels that differ only in case or spaces, or are the same number (01, 1): join or apart.",
        "required where there are any",
        panel=READING,
    ),
    drop_unlabelled: bool = make_flag(
        "--drop-unlabelled", "Leave out rows without a label; otherwise they are refused.", READING
    ),
    keep_values: str | None = make_option("Words that are not empty cells, such as NA,none.", panel=READING),
) -> DeclaredTypes:
    """Collect what is said about columns."""
    listed = (categorical, numeric, date, keep_values)
    categories, numbers, dates, kept = (() if text is None else tuple(split_names(text)) for text in listed)
    return DeclaredTypes(categories, numbers, dates, thousands, labels or "", drop_unlabelled, kept)


class Chosen(NamedTuple):
    """What is said about a table: what each of its columns is, and how it is read."""

    asked: DeclaredTypes
    reading: Reading
    target: str | None = make_option("Column to predict.", "target, y, label or class")
    features: str | None = make_option("Columns to learn from, such as age,dose.", "all others")
    drop: str | None = make_option("Columns to leave out, such as id,name.")
    group: str | None = make_option(
        "Column that says which rows belong together, or several: center,id. Bounds are about new groups.",
        "rows are independent",
    )
    weight: str | None = make_option("Column of row weights for fits.", "all are the same", panel=COLUMNS)
    row_id: str | None = typer.Option(
        None, "--id", help="Column that names the rows; not learned from.", rich_help_panel=COLUMNS
    )

    def read(self, source: str, study: AnyStudy, test: str | None = None) -> tuple[Task, TestRows | None]:
        """Return the task of a table for a study, and test rows; say how many rows are left out.

        Test rows come from another table, if one is named, or else from the named set; a procedure has none.

        Raises:
            InputError: the data cannot be read or learned from.
        """
        named, dropped = (None if text is None else split_names(text) for text in (self.features, self.drop))
        roles = Roles(self.target, named, dropped, self.group, weight=self.weight, id=self.row_id)
        roles = roles._replace(numbers=study.predicts_numbers, split_by=study.column)
        columns, scores = _read_columns(source, self.reading), isinstance(study, Procedure)
        table = columns.learn
        task = Task.from_table(table, roles, self.asked, source, scores, self.reading)
        if task.n < table.num_rows:
            found = GapWords.of(table[task.target.name], task.target.name, ~task.find_labelled(table))
            left = f"left out: {found.describe(not roles.numbers)}; {task.n:,} are learned from"
            say(f"rows without {task.target.name!r} {left}")
        rows = read_new_rows(test, self.reading.adapt(test)) if test else None if scores else columns.test
        test_rows = make_test_rows(rows, task)
        if test and not task.schema.plain and (unseen := task.read(rows).unseen):
            say(unseen)
        return task, test_rows


choose_columns = with_options(asked=declare_types, reading=make_reading)(Chosen)
TEST = make_option(
    "Rows to measure the finished ensemble on: a table or a named set.",
    "the test rows of a named set",
    panel="Certificate",
    check=check_source,
)


def say_environment(folder: str) -> None:
    """Print a message if the run was made in another environment, where the last bits may differ."""
    with suppress(StoreError):
        run = RunFolder(folder)
        here, metadata = read_environment(run.require().study.learner), run.execution()
        if changes := "; ".join(find_changes(metadata["environment"], here) if metadata else ()):
            say(f"the run was made in another environment: {plain(changes)}. Last bits may differ.")


class Display(Progress):
    """Progress of a run: a live line on a terminal, or else a plain one every ten seconds; a context manager.

    Args:
        console: console to print to.
    """

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
        super().__init__(*columns, console=console, transient=True, disable=not console.is_terminal)
        self.began = self.shown = monotonic()
        self.line = self.add_task("starting", total=None)
        self.said = ""
        self.first: RunProgress | None = None

    def __call__(self, progress: RunProgress) -> None:
        """Show a progress report."""
        self.first = self.first or progress
        now = monotonic()
        line = describe_progress(progress, self.first, now - self.began)
        completed = progress.computed + progress.dropped + progress.failed
        self.update(self.line, description=line, completed=completed, total=progress.planned)
        if self.disable and now - self.shown >= PLAIN_SECONDS and line != self.said:
            self.shown, self.said = now, line
            say(line)

    def stop(self) -> None:
        """Remove the live line; without a terminal there is none, and rich would print an empty one."""
        if not self.disable:
            super().stop()


@contextmanager
def end_if_interrupted(out: str | None, unsaved: str = "no work was saved") -> Iterator[Signals]:
    """When a computation is interrupted, say what is saved in a folder, if any; exit as the shell expects."""
    signals = Signals()
    try:
        yield signals
    except KeyboardInterrupt:
        saved = f"completed work is saved in {out}; run the same command again to resume"
        say(f"interrupted: {saved if out and RunFolder(out).files.exists() else unsaved}")
        raise typer.Exit(128 + (signals.received or signal.SIGINT)) from None


def show_result(result: Result, folder: str, as_json: bool, details: bool = False) -> None:
    """Print a result, and what was repaired; exit with 3 if anything failed, 5 or 6 if it is not accepted."""
    show(result.to_json(), result.summary(details, folder), as_json)
    for name in result.execution["damaged"]:
        say(f"{name} was damaged or missing: its contents were recomputed")
    say(f"run folder: {folder}")
    if failures := result.execution["failures"]:
        traceback, again = failures[0][-1], result.problem.held is None
        incomplete = "" if result.claims else ", and their scores are incomplete"
        say(
            f"{pluralize(len(failures), 'path')} failed{incomplete}: "
            f"{name_reason(traceback)}; ckcv report shows the tracebacks"
            + (", and the same command with --retry-failed tries again" if again else "")
        )
        raise typer.Exit(3)
    exit_unless_accepted(result.decisions)


def exit_unless_accepted(decisions: Sequence[Acceptance]) -> None:
    """Exit with 5 if the contrary of what has to be proven is proven, with 6 if it is not proven."""
    if not all(decision.met for decision in decisions):
        refuted = any(decision.refuted for decision in decisions)
        raise typer.Exit(PROVEN_WORSE if refuted else NOT_YET_PROVEN)


def choose_rule(
    vote: bool = make_flag(
        "--vote",
        "Classify by majority vote of F*. What is proven is the claim vote, else twice the bound of a "
        "random draw.",
    ),
    member: int | None = typer.Option(
        None, min=0, help="Classify with one member of F*, that of split N: nothing is proven of it alone."
    ),
    all_members: bool = make_flag(
        "--all-members", "Draw among all members of F*, as the paper does, whatever the first claim is about."
    ),
    refit: bool = make_flag(
        "--refit",
        "Use the model fitted on all rows that were not held out. What is proven is the claim refit.",
    ),
    full: bool = make_flag(
        "--full",
        "Use the model fitted on all rows, those held out included. Nothing is proven of this model.",
    ),
    seed: int | None = typer.Option(
        None,
        min=0,
        help="Draw a member at random for each row, with this seed; only to repeat a prediction, since "
        "each call with it draws the same members. [default: a new one each time]",
    ),
) -> tuple[str, int | None]:
    """Return what the options choose: ``by`` and ``seed`` of ``Result.rule``.

    Raises:
        InputError: two of them exclude each other.
    """
    given = {"vote": vote, "member": member is not None, "refit": refit, "full": full}
    chosen = [name for name, is_given in {**given, "all_members": all_members}.items() if is_given]
    if len(chosen) > 1:
        raise InputError(f"{' and '.join(chosen)} exclude each other: choose one of them")
    rules = {"member": f"member:{member}", "all_members": "random"}
    (by,) = chosen or ["auto"]
    return rules.get(by, by), seed
