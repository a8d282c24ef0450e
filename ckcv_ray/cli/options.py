"""Options that several commands share: data, study and execution.

The options of a study come from the fields of its parts (``core.options``).
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from csv import reader
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import pyarrow as pa
import typer

from ckcv_ray.cli.output import say
from ckcv_ray.core.named_divisions import FORMS
from ckcv_ray.core.options import Option, options
from ckcv_ray.core.scores import SCORE_NAMES
from ckcv_ray.data.columns import Asked
from ckcv_ray.data.files import Reading
from ckcv_ray.data.schema import is_number
from ckcv_ray.data.task import Task, TestRows, learning_task, make_test_rows, read
from ckcv_ray.errors import InputError, plain
from ckcv_ray.learners import AnyEstimator, register_installed
from ckcv_ray.study import SLOTS, Execution, Study, named_parts, read_toml
from ckcv_ray.study.procedure import Procedure
from ckcv_ray.validation import as_path

SOURCES = (
    "File with one row per example: .csv or .tsv (also .gz, .bz2, .zst), .parquet, .feather, .xlsx, .npz "
    "(arrays X and y) or .svmlight. Or a named "
    "set: sklearn:breast_cancer, ida:titanic:1, twonorm:400:0 (400 rows, seed 0), ringnorm:400:0, "
    "waveform:400:0."
)
IN_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"  # set by Ray in the processes of a job
PARTS = {
    "learner": (
        "Learner to fit: {}; or any other of scikit-learn, such as sklearn.naive_bayes:BernoulliNB. Several, "
        "such as a,b, are compared with each other; all compares those that suit the size of the table.",
        "Study",
    ),
    "resampling": (
        "How rows are split: complete (random splits for each k, the paper's method) or rotation (the k "
        "splits of one shuffle, conventional k-fold cross validation).",
        "Study",
    ),
    "criterion": (
        "What is minimised over the candidates. error: the bound on the error, the paper's. balanced: the "
        "mean of the bounds on each class's error. cost:sick=10,healthy=1: the bound on a decision's cost. "
        "mean_error: the share of wrong rows itself, which is no bound.",
        "Study",
    ),
    "certify": (
        "Source of the proven bound. occam: the run's own counts; it costs nothing and is always computed. "
        "holdout: a share of the rows, unused until the end; gives a close bound. nested: the selection is "
        "repeated in each of several outer splits, and the ensemble of what was selected is certified.",
        "Certificate",
    ),
}


class Data(NamedTuple):
    """The learning task, and test rows if there are any."""

    task: Task
    test: TestRows | None


COLUMNS = "Columns"
Given = TypeVar("Given")


def option(text: str, default: str | None = None, panel: str | None = None) -> Any:
    """Declare an option whose default is set elsewhere and shown as ``default``."""
    return typer.Option(help=text, show_default=default or False, rich_help_panel=panel)


def flag(name: str, text: str, panel: str | None = None) -> Any:
    """Declare an option without a value."""
    return typer.Option(name, help=text, rich_help_panel=panel)


IdaFile = Annotated[
    Path | None,
    option("Archive with the ida: sets, .npz or .mat.", "CKCV_IDA, else the file of ckcv fetch"),
]


def with_options(
    **makers: Callable[..., Any],
) -> Callable[[Callable[..., Given]], Callable[..., Given]]:
    """Replace parameters of a command by the parameters of functions that compute them.

    Args:
        makers: by name of the command's parameter, the function whose result it takes.
    """

    def decorate(command: Callable[..., Given]) -> Callable[..., Given]:
        taken = {name: signature(make).parameters for name, make in makers.items()}

        @wraps(command)
        def wrapper(**given: Any) -> Given:
            computed = {
                name: make(**{parameter: given.pop(parameter) for parameter in taken[name]})
                for name, make in makers.items()
            }
            return command(**given, **computed)

        others = [p for name, p in signature(command).parameters.items() if name not in makers]
        parameters = [*(p for of_maker in taken.values() for p in of_maker.values()), *others]
        parameters.sort(key=lambda p: p.default is not Parameter.empty)
        wrapper.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
        return wrapper

    return decorate


def reading_of(
    separator: Annotated[
        str | None, option("What separates the columns of text tables, such as ;.", "found", panel=COLUMNS)
    ] = None,
    sheet: Annotated[str | None, option("Sheet of Excel workbooks.", "its only one", panel=COLUMNS)] = None,
) -> Reading:
    """Collect what files do not say about themselves."""
    return Reading(separator, sheet)


def asked_of(
    categorical: Annotated[
        str | None, option("Columns of categories although they hold numbers, such as ward.", panel=COLUMNS)
    ] = None,
    numeric: Annotated[
        str | None,
        option(
            "Columns of numbers although some cells hold text, which are then gaps, such as dose.",
            panel=COLUMNS,
        ),
    ] = None,
    date: Annotated[str | None, option("Columns of dates, such as admitted.", panel=COLUMNS)] = None,
) -> Asked:
    """Collect the columns whose kind is said."""
    return Asked(*(tuple(_names(names) or ()) for names in (categorical, numeric, date)))


class Table(NamedTuple):
    """A task, the test rows that came with it, and how its file was read."""

    task: Task
    test: pa.Table | None
    ida_file: Path | None
    reading: Reading


@with_options(asked=asked_of, reading=reading_of)
def table_of(
    asked: Asked,
    reading: Reading,
    source: Annotated[str, typer.Argument(metavar="DATA", help=SOURCES, show_default=False)],
    target: Annotated[
        str | None, option("Column with the labels, such as outcome.", "target, y, label or class")
    ] = None,
    features: Annotated[str | None, option("Columns to learn from, such as age,dose.", "all others")] = None,
    drop: Annotated[str | None, option("Columns to leave out, such as id,name.")] = None,
    group: Annotated[
        str | None,
        option(
            "Column that says which rows belong together, such as patient: bounds are then about a new "
            "patient's rows. It is not learned from.",
            "rows are independent",
        ),
    ] = None,
    row_id: Annotated[
        str | None,
        typer.Option(
            "--id", help="Column that names the rows. It is not learned from.", rich_help_panel=COLUMNS
        ),
    ] = None,
    ida_file: IdaFile = None,
) -> Table:
    """Read a task from options.

    Raises:
        InputError: the data cannot be read or learned from.
    """
    columns = read(source, ida_file, reading)
    left_out = [*(_names(drop) or []), *([row_id] if row_id else [])]
    task = learning_task(columns.learn, target, _names(features), left_out, source, group, asked)
    return Table(task, columns.test, ida_file, reading)


@with_options(table=table_of)
def data_of(
    table: Table,
    test: Annotated[
        str | None,
        option(
            "Rows to measure the finished ensemble on: a file such as new.csv, or a named set, of which the "
            "test rows are taken.",
            "the test rows of a named set",
        ),
    ] = None,
    unlabelled: Annotated[
        str | None,
        option(
            "Rows without labels, such as new.csv: with --certify holdout they certify the model fitted on "
            "all rows, by how often it differs from the one certified.",
            panel="Certificate",
        ),
    ] = None,
) -> Data:
    """Read the task and the test rows from options.

    Raises:
        InputError: the data cannot be read or learned from.
    """
    task, rows, ida_file, reading = table
    if unlabelled:
        task = task.with_unlabelled(read(unlabelled, ida_file, reading.fitting(unlabelled)).learn)
    if test:
        others = read(test, ida_file, reading.fitting(test))
        rows = others.learn if others.test is None else others.test
    return Data(task, make_test_rows(rows, task))


def study_of(study: Path | None = None, **given: Any) -> Study:
    """Make a study from options, which take precedence over those of a TOML file.

    Raises:
        InputError: an option is unknown, out of its range, or does not apply to the chosen parts.
    """
    values = read_toml(study) if study else {}
    return Study.of(**values | {name: value for name, value in given.items() if value is not None})


def procedure_of(
    resampling: Annotated[
        str,
        typer.Option(
            help=f"How rows are divided: {FORMS}. Those that are nested select settings inside each training "
            "set, and need --select-by.",
            rich_help_panel="Procedure",
        ),
    ] = "kfold:10",
    measure: Annotated[
        str,
        typer.Option(
            help=f"What is measured on every split, such as accuracy,auc: {', '.join(SCORE_NAMES)}, or any "
            "scorer of scikit-learn.",
            rich_help_panel="Procedure",
        ),
    ] = "zero_one",
    select_by: Annotated[
        str | None,
        option("Measure by which settings are selected.", "every setting is scored", "Procedure"),
    ] = None,
    select: Annotated[
        str,
        typer.Option(
            help="What is selected: one setting, the best on average over all splits, or another in each.",
            rich_help_panel="Procedure",
        ),
    ] = "one",
    stratify: Annotated[
        bool, flag("--stratify", "Give each part of a split the same share of every class.", "Procedure")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the splits.", rich_help_panel="Procedure")] = 0,
    **learner: Any,
) -> Procedure:
    """Make a procedure of cross validation from options.

    Raises:
        InputError: an option is unknown or out of its range.
    """
    given = {name: value for name, value in learner.items() if value is not None}
    return Procedure.of(resampling, measure, select_by, select, seed, stratify, **given)


def offered(slot: str) -> dict[str, Any]:
    """Return the parts that ``--help`` names; an estimator is chosen by its class, as in "module:Class"."""
    return {name: part for name, part in named_parts(slot).items() if part is not AnyEstimator}


def _parameters(slots: Iterable[str], own: Iterable[str]) -> Iterator[Parameter]:
    """Generate a parameter for each choice of a part, each option of the parts, and some of a study."""
    for slot in slots:
        text, panel = PARTS[slot]
        if len(choices := offered(slot)) > 1:
            names = " or ".join(choices)
            yield _parameter(slot, str, option(text.format(names), next(iter(choices)), panel))
    declared = [one for slot in slots for part in offered(slot).values() for one in options(part).items()]
    declared += [(name, one) for name, one in options(Study).items() if name in own]
    first: dict[str, Any] = {}
    for name, one in declared:  # several learners may have an option
        first.setdefault(name, one)
    for name, one in first.items():
        yield _declared(name, one.metadata["option"])


def _study_parameters() -> Iterator[Parameter]:
    """Generate a parameter for each choice of a part, and for each option of the parts and of a study."""
    yield from _parameters(SLOTS, options(Study))
    text = "TOML file with study options; those on the command line take precedence."
    yield _parameter("study", Path, option(text, None, "Study"))


def _declared(name: str, declared: Option) -> Parameter:
    if declared.kind is bool:
        return _parameter(name, bool, flag(f"--{name.replace('_', '-')}", declared.help, declared.panel))
    return _parameter(name, declared.kind, option(declared.help, declared.shown, declared.panel))


def _parameter(name: str, kind: type, shown: Any) -> Parameter:
    annotation = Annotated[kind | None, shown]  # type: ignore[valid-type]
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=annotation)


for broken in register_installed():
    say(plain(broken))
procedure_of.__signature__ = signature(procedure_of).replace(  # type: ignore[attr-defined]
    parameters=[
        *(one for name, one in signature(procedure_of).parameters.items() if name != "learner"),
        *_parameters(["learner"], ("encode", "fill", "rare")),
    ]
)
study_of.__signature__ = signature(study_of).replace(parameters=list(_study_parameters()))  # type: ignore[attr-defined]


def execution_of(
    backend: Annotated[
        str,
        typer.Option(
            help="Where to compute: serial (one process), ray, or auto (by estimated time).",
            rich_help_panel="Execution",
        ),
    ] = "auto",
    workers: Annotated[
        int | None, option("Number of worker processes, such as 4.", "every CPU", "Execution")
    ] = None,
    address: Annotated[
        str | None,
        option(
            "Ray cluster to join: host:port, or auto for the one on this machine.",
            "RAY_ADDRESS, else a local Ray",
            "Execution",
        ),
    ] = None,
    fit_timeout: Annotated[
        float | None,
        option(
            "Seconds that one fit may take, such as 60: the worker of a longer one is killed, and the fit is "
            "recorded as failed. On Ray only.",
            "no limit",
            "Execution",
        ),
    ] = None,
) -> Execution:
    """Make an execution from options.

    Raises:
        InputError: an option is out of its range, or does not apply to the backend.
    """
    return Execution(backend, workers, address, fit_timeout)


def complete(arguments: Sequence[str], option: str, value: str) -> list[str]:
    """Add the value of an option that is given without one."""
    completed: list[str] = []
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        completed.append(argument)
        if argument == option and not is_number(following):
            completed.append(value)
    return completed


def parse_workers(text: str) -> tuple[int, ...]:
    """Parse numbers of workers from a,b,c.

    Raises:
        InputError: one is not an integer of at least 1.
    """
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and 0 < int(part[:9]) == int(part) for part in parts):
        raise InputError(f"workers={text!r}: expected integers from 1, such as 1,8,64")
    return tuple(map(int, parts))


def check_out(out: str | Path) -> Path:
    """Check the path of a run folder.

    Raises:
        InputError: it is no local path, or is relative in a Ray job, whose working directory is deleted.
    """
    path = as_path("out", out)
    if "://" in str(out) or (path.parts and path.parts[0].endswith(":")):
        raise InputError(f"out={str(out)!r}: expected a folder on a disk of this machine or mounted here")
    if IN_JOB in os.environ and not path.is_absolute():
        raise InputError(
            f"out={str(out)!r} is relative to the job's copy of the working directory, which is deleted: "
            "give an absolute path on the driver's node, or on a disk mounted there"
        )
    return path


def _names(text: str | None) -> list[str] | None:
    """Parse column names from a,b,c; names that contain a comma are quoted, as in a CSV file."""
    return (next(reader([text], skipinitialspace=True)) or [""]) if text is not None else None
