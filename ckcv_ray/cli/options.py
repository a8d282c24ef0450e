"""Options that several commands share: the study asked for, and the table it is asked of."""

import os
from collections.abc import Callable, Sequence
from csv import reader
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from ckcv_ray.data import task as data
from ckcv_ray.errors import InputError
from ckcv_ray.study import Study, parse_folds, parse_grid, read_toml
from ckcv_ray.validation import as_path

SOURCES = "CSV, Parquet, NPZ (X, y) or svmlight file, or a named set: sklearn:breast_cancer, ida:titanic:1, \
twonorm:400:0 (rows, seed), ringnorm:..., waveform:..."
IN_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"  # set by Ray for what it runs as a job


class Asked(NamedTuple):
    """The table a study is asked of, and rows to test on, if there are any."""

    table: data.Table
    test: data.TestRows | None


def option(text: str, default: str | None = None, panel: str | None = None) -> Any:
    """An option whose default stands in the Study, shown as ``default``."""
    return typer.Option(help=text, show_default=default or False, rich_help_panel=panel)


def flag(name: str, text: str, panel: str | None = None) -> Any:
    """An option that is there or not."""
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
        def whole(**given: Any) -> None:
            made = {
                name: make(**{parameter: given.pop(parameter) for parameter in taken[name]})
                for name, make in makers.items()
            }
            command(**given, **made)

        own = [p for name, p in signature(command).parameters.items() if name not in makers]
        parameters = [*own, *(p for of_maker in taken.values() for p in of_maker.values())]
        parameters.sort(key=lambda p: p.default is not Parameter.empty)
        whole.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
        whole.__annotations__ = {p.name: p.annotation for p in parameters}
        return whole

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
    """The table that options name.

    Raises:
        InputError: it cannot be learned from.
    """
    columns = data.read(source, ida_file)
    table = data.learning_table(columns.learn, target, _names(features), _names(drop), source)
    others = data.read(test, ida_file) if test else columns
    rows = others.learn if test and others.test is None else others.test
    return Asked(table, data.rows_to_test(rows, table))


def study_of(
    C: Annotated[
        str | None, option("Costs: 0.1,1,10 or log:FIRST:LAST:COUNT.", "log:-2:4:13", "Study")
    ] = None,
    gamma: Annotated[str | None, option("Kernel widths, likewise.", "log:-4:1:11", "Study")] = None,
    k: Annotated[str | None, option("Folds: 3,4,5,10, a range 3:20, or 3:n.", "3:n", "Study")] = None,
    n_splits: Annotated[int | None, option("Random splits for each k.", "20", "Study")] = None,
    delta: Annotated[float | None, option("Failure probability of a bound.", "0.05", "Study")] = None,
    seed: Annotated[int | None, option("Of the splits.", "0", "Study")] = None,
    resampling: Annotated[
        str | None,
        option(
            "complete (random splits, as the paper's method) or rotation (the k splits of one shuffle, as "
            "conventional k-fold cross validation).",
            "complete",
            "Study",
        ),
    ] = None,
    scale: Annotated[
        str | None,
        option("standard (fitted on each split's training rows alone) or none.", "standard", "Study"),
    ] = None,
    report_k: Annotated[
        str | None, option("Values of k whose own best triple is reported too.", None, "Study")
    ] = None,
    solver: Annotated[
        str | None, option("Solver of the machine: newton (ours) or libsvm.", "newton", "Study")
    ] = None,
    tolerance: Annotated[float | None, option("KKT violation of a fit.", "0.001", "Study")] = None,
    max_iter: Annotated[
        int | None, option("Iterations after which a fit is capped.", "10000000", "Study")
    ] = None,
    bound: Annotated[
        str | None,
        option(
            "What L_EE is the mean of: clopper_pearson (the paper's), stevens, safe or catoni. "
            "What is minimised is Clopper-Pearson always.",
            "clopper_pearson",
            "Certificate",
        ),
    ] = None,
    certify: Annotated[
        str | None,
        option(
            "holdout: set a share of the rows aside, touched by nothing before the end, which then bounds "
            "the error closely. nested: select anew inside each of several outer splits, and certify the "
            "ensemble of what was selected. The occam bound needs neither, and is always computed.",
            None,
            "Certificate",
        ),
    ] = None,
    holdout_share: Annotated[float | None, option("The share set aside.", "0.33", "Certificate")] = None,
    claim: Annotated[
        str | None,
        option(
            "What it certifies, delta shared: random (the member that ckcv predict draws for a row, by a "
            "hash of its values), vote (the majority of F*), member:7; several as a,b.",
            "random",
            "Certificate",
        ),
    ] = None,
    outer_splits: Annotated[
        int | None, option("Outer splits of nested; each costs a run on two thirds.", "5", "Certificate")
    ] = None,
    exhaustive: Annotated[
        bool | None,
        typer.Option("--exhaustive", help="Compute every cell; drop nothing.", rich_help_panel="Study"),
    ] = None,
    study: Annotated[
        Path | None, option("TOML file with these; options given here come first.", None, "Study")
    ] = None,
) -> Study:
    """The study that options describe.

    Raises:
        InputError: one is out of its range.
    """
    given = {
        "C": C and parse_grid(C, "C"),
        "gamma": gamma and parse_grid(gamma, "gamma"),
        "report_k": report_k and parse_folds(report_k, "report_k"),
        "n_splits": n_splits,
        "delta": delta,
        "seed": seed,
        "resampling": resampling,
        "scaling": scale,
        "solver": solver,
        "tolerance": tolerance,
        "max_iter": max_iter,
        "bound": bound,
        "protocol": certify,
        "holdout_share": holdout_share,
        "claims": claim and tuple(claim.split(",")),
        "outer_splits": outer_splits,
        "exhaustive": exhaustive,
    }
    values = read_toml(study) if study else {}
    values |= {name: value for name, value in given.items() if value is not None}
    if k is not None:
        values["k"] = parse_folds(k, "k")
    return Study.from_json(values)


def complete(words: Sequence[str], option: str, value: str) -> list[str]:
    """The words of a command, with the value filled in after an option that is given without one."""
    done: list[str] = []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        done.append(word)
        if word == option and not data.is_number(following):
            done.append(value)
    return done


def parse_workers(text: str) -> tuple[int, ...]:
    """Numbers of workers from a,b,c.

    Raises:
        InputError: one is no whole number of at least 1.
    """
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and 0 < int(part[:9]) == int(part) for part in parts):
        raise InputError(f"workers={text!r}: expected whole numbers from 1 like 1,8,64")
    return tuple(map(int, parts))


def check_place(out: str | Path) -> Path:
    """A folder to write to.

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
