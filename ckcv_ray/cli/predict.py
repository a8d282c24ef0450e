"""The command predict."""

from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pyarrow as pa
import typer

from ckcv_ray.claims.wording import repeats_statement
from ckcv_ray.cli.options import SOURCES, IdaFile, flag, option, taking
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
    """Which rule classifies; see ``Result.rule``."""

    seed: int | None
    vote: bool
    nested: bool
    member: int | None


def by_of(
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
) -> By:
    """Take the options that choose a rule."""
    return By(seed, vote, nested, member)


@taking(by=by_of)
def predict(
    folder: Folder,
    by: By,
    source: Annotated[str, typer.Argument(metavar="DATA", help=SOURCES, show_default=False)],
    out: Annotated[Path | None, option("File to write, .csv or .parquet.", "CSV on standard output")] = None,
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
    _check_out(out, csv_safe)
    result = load_run(folder, allow_pickle)
    chosen = rows_to_test_of(source, ida_file)
    if out is not None and out.exists() and not is_named(source) and out.samefile(source):
        raise InputError(f"out={str(out)!r} is the file to predict: give another name")
    if not chosen.num_rows:
        raise InputError(f"{source!r} has no rows to predict")
    X = matrix(chosen, list(result.task.features))
    rule = result.rule(*by)
    predicted = result.predictions(X, rule, by.nested)
    write_table(_table(result, predicted, by.vote), out, RunFolder(folder), csv_safe)
    say(result.claim_for(rule, by.nested))
    for sentence in repeats_statement(result.certificate.repeats, result.certificate.n_rows):
        say(sentence)
    if rule.name == "random":
        say(f"--seed {rule.seed} repeats these draws")
    _say_error_rate(chosen, result, X, predicted.label)


def _check_out(out: Path | None, csv_safe: bool) -> None:
    if out is not None and as_path("out", out).suffix not in (".csv", ".parquet"):
        raise InputError(f"out={str(out)!r}: the name has to end in .csv or .parquet")
    if csv_safe and out is not None and out.suffix == ".parquet":
        raise InputError(f"csv_safe is for spreadsheets, and out={str(out)!r} is none: leave one of them out")


def _table(result: Result, predicted: Prediction, vote: bool) -> pa.Table:
    rows = len(predicted.label)
    score = pa.array(predicted.score, from_pandas=True)  # a learner without scores has none
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
    doubt = f"; {known} of them were learned from, and say little of new ones" if known else ""
    return say(f"error rate: {wrong} of {len(y)} rows ({100 * wrong / max(1, len(y)):.2f} %){doubt}")
