"""Command predict."""

from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pyarrow as pa
import typer

from ckcv_ray.claims.wording import repeats_statement
from ckcv_ray.cli.options import SOURCES, IdaFile, flag, option, with_options
from ckcv_ray.cli.output import say, write_table
from ckcv_ray.cli.run import Folder
from ckcv_ray.cli.verify import rows_to_test_of
from ckcv_ray.data.named import is_named
from ckcv_ray.data.schema import Classes, Rows, class_numbers, matrix
from ckcv_ray.data.task import known_rows
from ckcv_ray.errors import InputError
from ckcv_ray.learners.ensemble import Prediction
from ckcv_ray.runs.load import load_run
from ckcv_ray.runs.result import Result
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.validation import as_path


class By(NamedTuple):
    """Choice of the rule that classifies; see ``Result.rule``."""

    seed: int | None
    vote: bool
    nested: bool
    member: int | None
    all_members: bool


def by_of(
    vote: Annotated[
        bool,
        flag(
            "--vote",
            "Classify by majority vote of F*. What is proven is the claim vote, else twice the bound of a "
            "random draw.",
        ),
    ] = False,
    member: Annotated[
        int | None,
        option("Classify with one member of F*, that of split N. What is proven is the claim member:N."),
    ] = None,
    nested: Annotated[
        bool, flag("--nested", "Use the ensemble certified by --certify nested instead of F*.")
    ] = False,
    all_members: Annotated[
        bool,
        flag(
            "--all-members",
            "Draw among all members, as the paper does, and not only among those with the closest claim.",
        ),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Draw a member at random for each row, with this seed; only to repeat a prediction.",
            show_default="a new one each time",
        ),
    ] = None,
) -> By:
    """Collect the options that choose a rule."""
    return By(seed, vote, nested, member, all_members)


@with_options(by=by_of)
def predict(
    folder: Folder,
    by: By,
    source: Annotated[str, typer.Argument(metavar="DATA", help=SOURCES, show_default=False)],
    out: Annotated[Path | None, option("File to write, .csv or .parquet.", "CSV on standard output")] = None,
    allow_pickle: Annotated[
        bool,
        flag(
            "--allow-pickle",
            "Load the models of F* from their pickle files instead of Parquet, if their SHA-256 matches the "
            "manifest. Unpickling can run any code: use it only for runs of your own.",
        ),
    ] = False,
    csv_safe: Annotated[
        bool,
        flag(
            "--csv-safe",
            "Put an apostrophe before labels that a spreadsheet would execute: those that begin with = + - "
            "@, a tab or a carriage return.",
        ),
    ] = False,
    ida_file: IdaFile = None,
) -> None:
    """Classify rows with the ensemble F* of a finished run.

    Columns are matched by name; extra ones are ignored. Each row is classified by a member of F* drawn at
    random for that row, among the members that the first claim is about, and the seed that repeats the draws
    is printed. After --certify holdout with the claim random, the member is drawn by a hash of the row's
    values instead: the rule that the held-out rows certify.

        ckcv predict runs/patients new.csv
        ckcv predict runs/patients new.csv --vote --out predictions.csv

    Columns written: row (counted from 1), prediction (the original label), member (the split it was fitted
    on), score (of that member), share (of F* that agrees). In CSV, control characters in labels are escaped:
    a newline becomes a backslash and an n, and backslashes are then doubled. Of a named set with test rows,
    only those are classified.
    """
    _check_out(out, csv_safe)
    result = load_run(folder, allow_pickle)
    chosen = rows_to_test_of(source, ida_file)
    if out is not None and out.exists() and not is_named(source) and out.samefile(source):
        raise InputError(f"out={str(out)!r} is the file to predict: choose another name")
    if not chosen.num_rows:
        raise InputError(f"{source!r} has no rows to predict")
    X = matrix(chosen, list(result.task.features))
    rule = result.rule(*by)
    predicted = result.predictions(X, rule, by.nested)
    write_table(_table(result, predicted, by.vote), out, RunFolder(folder), csv_safe)
    say(result.claim_for(rule, by.nested))
    for sentence in repeats_statement(result.certificate.repeats, result.certificate.n_rows):
        say(sentence)
    if rule.name == "random" and len(rule.splits) != 1:  # of one member nothing is drawn
        say(f"--seed {rule.seed} repeats these draws")
    _say_error_rate(chosen, result, X, predicted.label)


def _check_out(out: Path | None, csv_safe: bool) -> None:
    if out is not None and as_path("out", out).suffix not in (".csv", ".parquet"):
        raise InputError(f"out={str(out)!r}: the name has to end in .csv or .parquet")
    if csv_safe and out is not None and out.suffix == ".parquet":
        raise InputError(f"csv_safe is for CSV files, and out={str(out)!r} is not one: leave one of them out")


def _table(result: Result, predicted: Prediction, vote: bool) -> pa.Table:
    rows = len(predicted.label)
    score = pa.array(predicted.score, from_pandas=True)  # null for a learner without scores
    return pa.table(
        {
            "row": range(1, rows + 1),
            "prediction": result.task.labelled(predicted.label),
            "member": predicted.member if not vote else pa.nulls(rows, pa.int64()),
            "score": score,
            "share": predicted.share,
        }
    )


def _say_error_rate(columns: pa.Table, result: Result, X: Rows, predicted: Classes) -> None:
    target = result.task.target
    if target not in columns.column_names:
        return None
    try:
        y = class_numbers(columns[target], result.task.classes, target)
    except InputError as error:
        return say(f"no error rate: {error}")
    wrong, known = int(np.sum(y != predicted)), known_rows(X, result.task)
    caveat = f"; {known} of them are learning rows, and say little about new ones" if known else ""
    return say(f"error rate: {wrong} of {len(y)} rows ({100 * wrong / max(1, len(y)):.2f} %){caveat}")
