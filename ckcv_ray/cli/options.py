"""Options that several commands share: the study asked for, and the task it is asked of.

The options of a study come from the fields of its parts (``core.options``).
"""

import os
from collections.abc import Callable, Iterator, Sequence
from csv import reader
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from ckcv_ray.cli.output import say
from ckcv_ray.core.options import Option, options
from ckcv_ray.data.schema import is_number
from ckcv_ray.data.task import Task, TestRows, learning_task, read, rows_to_test
from ckcv_ray.errors import InputError, plain
from ckcv_ray.learners import register_installed
from ckcv_ray.study import SLOTS, Execution, Study, read_toml
from ckcv_ray.validation import as_path

SOURCES = "CSV, Parquet, NPZ (X, y) or svmlight file, or a named set: sklearn:breast_cancer, ida:titanic:1, \
twonorm:400:0 (rows, seed), ringnorm:..., waveform:..."
IN_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"  # set by Ray for what it runs as a job
PARTS = {
    "learner": ("What is fitted: {}.", "Study"),
    "resampling": (
        "complete (random splits, as the paper's method) or rotation (the k splits of one shuffle, as "
        "conventional k-fold cross validation).",
        "Study",
    ),
    "criterion": ("What is minimised over the candidates: {}.", "Study"),
    "certify": (
        "holdout: set a share of the rows aside, touched by nothing before the end, which then bounds "
        "the error closely. nested: select again inside each of several outer splits, and certify the "
        "ensemble of what was selected. The occam bound needs neither, and is always computed.",
        "Certificate",
    ),
}


class Asked(NamedTuple):
    """The task a study is asked of, and rows to test on, if there are any."""

    task: Task
    test: TestRows | None


def option(text: str, default: str | None = None, panel: str | None = None) -> Any:
    """Declare an option whose default stands elsewhere, shown as ``default``."""
    return typer.Option(help=text, show_default=default or False, rich_help_panel=panel)


def flag(name: str, text: str, panel: str | None = None) -> Any:
    """Declare an option that is there or not."""
    return typer.Option(name, help=text, rich_help_panel=panel)


IdaFile = Annotated[
    Path | None,
    typer.Option(
        help="Archive of the ida: sets, .npz or .mat; by default that of CKCV_IDA, else what ckcv fetch got."
    ),
]


def taking(**makers: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command: in place of each parameter named here it takes those of the maker, and is given
    what the maker makes of them.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        taken = {name: signature(make).parameters for name, make in makers.items()}

        @wraps(command)
        def wrapper(**given: Any) -> None:
            made = {
                name: make(**{parameter: given.pop(parameter) for parameter in taken[name]})
                for name, make in makers.items()
            }
            command(**given, **made)

        own = [p for name, p in signature(command).parameters.items() if name not in makers]
        parameters = [*own, *(p for of_maker in taken.values() for p in of_maker.values())]
        parameters.sort(key=lambda p: p.default is not Parameter.empty)
        wrapper.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
        return wrapper

    return decorate


def asked(
    source: Annotated[str, typer.Argument(help=SOURCES, show_default=False)],
    target: Annotated[str | None, option("Column with the labels.", "target, y, label or class")] = None,
    features: Annotated[str | None, option("Columns to learn from: a,b,c.", "all others")] = None,
    drop: Annotated[str | None, option("Columns to leave out: a,b,c.")] = None,
    test: Annotated[
        str | None,
        option(
            "Rows to measure the finished ensemble on: a file, or a named set, of which those to test on.",
            "those of a named set",
        ),
    ] = None,
    ida_file: IdaFile = None,
) -> Asked:
    """Read the task that options name.

    Raises:
        InputError: it cannot be learned from.
    """
    columns = read(source, ida_file)
    task = learning_task(columns.learn, target, _names(features), _names(drop), source)
    others = read(test, ida_file) if test else columns
    rows = others.learn if test and others.test is None else others.test
    return Asked(task, rows_to_test(rows, task))


def study_of(study: Path | None = None, **given: Any) -> Study:
    """Make the study that options describe; those given come before those of a TOML file.

    Raises:
        InputError: one is unknown or out of its range, or does not go with the others.
    """
    values = read_toml(study) if study else {}
    return Study.of(**values | {name: value for name, value in given.items() if value is not None})


def _study_parameters() -> Iterator[Parameter]:
    """A parameter for each choice of a part, and for each option of the parts and of a study, once."""
    for slot, (text, panel) in PARTS.items():
        if len(SLOTS[slot]) > 1:
            names = " or ".join(SLOTS[slot])
            yield _parameter(slot, str, option(text.format(names), next(iter(SLOTS[slot])), panel))
    seen = set()
    for part in [*(part for choices in SLOTS.values() for part in choices.values()), Study]:
        for name, declared in options(part).items():
            if name not in seen:
                seen.add(name)
                yield _declared(name, declared.metadata["option"])
    text = "TOML file with these; options given here come first."
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
study_of.__signature__ = signature(study_of).replace(parameters=list(_study_parameters()))  # type: ignore[attr-defined]


def execution_of(
    backend: Annotated[
        str, typer.Option(help="auto (by expected work), ray or serial.", rich_help_panel="Execution")
    ] = "auto",
    workers: Annotated[int | None, option("Processes at once.", "every CPU", "Execution")] = None,
    address: Annotated[
        str | None, option("Ray cluster to join.", "RAY_ADDRESS, else a local Ray", "Execution")
    ] = None,
) -> Execution:
    """Make the execution that options describe.

    Raises:
        InputError: one is out of its range, or does not go with the others.
    """
    return Execution(backend, workers, address)


def complete(words: Sequence[str], option: str, value: str) -> list[str]:
    """Fill in the value of an option that is given without one."""
    done: list[str] = []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        done.append(word)
        if word == option and not is_number(following):
            done.append(value)
    return done


def parse_workers(text: str) -> tuple[int, ...]:
    """Read numbers of workers from a,b,c.

    Raises:
        InputError: one is no wrapper number of at least 1.
    """
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and 0 < int(part[:9]) == int(part) for part in parts):
        raise InputError(f"workers={text!r}: expected wrapper numbers from 1 like 1,8,64")
    return tuple(map(int, parts))


def check_place(out: str | Path) -> Path:
    """Check a folder to write to.

    Raises:
        InputError: it cannot be one, or would be lost: a job works in a copy that is thrown away.
    """
    place = as_path("out", out)
    if "://" in str(out) or (place.parts and place.parts[0].endswith(":")):
        raise InputError(f"out={str(out)!r}: expected a folder, on a disk of this machine or mounted here")
    if IN_JOB in os.environ and not place.is_absolute():
        raise InputError(
            f"out={str(out)!r} is relative to the job's copy of the working directory, which is thrown away: "
            "give an absolute path on the driver's node, or of a disk mounted there"
        )
    return place


def _names(text: str | None) -> list[str] | None:
    """Column names from a,b,c; one with a comma in quotes, as in a CSV file."""
    return (next(reader([text], skipinitialspace=True)) or [""]) if text is not None else None
