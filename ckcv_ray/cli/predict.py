"""Command predict."""

from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.percent import nearest
from ckcv_ray.cli.data_options import DataSource, reading_of
from ckcv_ray.cli.options import flag, option, with_options
from ckcv_ray.cli.output import say
from ckcv_ray.cli.predictions import WRITTEN, check_table, write_table
from ckcv_ray.cli.run import Folder
from ckcv_ray.cli.verify import rows_to_test_of
from ckcv_ray.core.arrays import Classes, Index
from ckcv_ray.errors import InputError, pluralize
from ckcv_ray.learners.ensemble import Prediction
from ckcv_ray.runs.load import load_run
from ckcv_ray.runs.result import Result
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.tables.named import is_named
from ckcv_ray.tables.readers.files import HELD, Reading
from ckcv_ray.tables.repeats import count_known
from ckcv_ray.tables.target import Rows, class_numbers, rows_with_label, some
from ckcv_ray.tables.task import Task
from ckcv_ray.validation import MOST, as_path, integer, quote


def choose_rule(
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
            "Draw among all members of F*, as the paper does, whatever the first claim is about.",
        ),
    ] = False,
    best_prefix: Annotated[
        bool,
        flag(
            "--best-prefix",
            "Draw only among the members that the closest claim about drawn members names: those of the best "
            "prefix.",
        ),
    ] = False,
    refit: Annotated[
        bool,
        flag(
            "--refit",
            "Use the model fitted on all rows that were not held out. What is proven is the claim refit.",
        ),
    ] = False,
    full: Annotated[
        bool,
        flag(
            "--full",
            "Use the model fitted on all rows, those held out included. What is proven is the claim full, "
            "which needs unlabelled rows.",
        ),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Draw a member at random for each row, with this seed; only to repeat a prediction, since "
            "each call with it draws the same members.",
            show_default="a new one each time",
        ),
    ] = None,
) -> tuple[str, int | None]:
    """Return what the options choose: ``by`` and ``seed`` of ``Result.rule``.

    Raises:
        InputError: two of them exclude each other, or the member is below 0.
    """
    given = {
        "vote": "vote" if vote else None,
        "member": None if member is None else f"member:{integer('member', member, least=0, most=MOST)}",
        "refit": "refit" if refit else None,
        "full": "full" if full else None,
        "all_members": "random" if all_members else None,
        "best_prefix": "best_prefix" if best_prefix else None,
    }
    chosen = {name: by for name, by in given.items() if by is not None}
    exclusive = [*chosen, *(["nested"] if nested and (refit or full) else [])]
    if len(exclusive) > 1:
        raise InputError(f"{' and '.join(exclusive)} exclude each other: choose one of them")
    by = next(iter(chosen.values()), "auto")
    if nested:
        by = "nested" if by in ("auto", "random") else f"nested:{by}"
    return by, seed


@with_options(choice=choose_rule, reading=reading_of)
def predict(
    folder: Folder,
    choice: tuple[str, int | None],
    reading: Reading,
    source: DataSource,
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
    refer: Annotated[
        bool,
        flag(
            "--refer",
            "Mark the rows to refer to a person, on which the certified model and the one fitted on all rows "
            "differ, in a column referred, and say what is proven of the others.",
        ),
    ] = False,
    keep: Annotated[
        str | None, option("Column of the data to write as well, such as the one that names the rows: id.")
    ] = None,
    strict: Annotated[
        bool, flag("--strict", "Refuse the whole file if a row cannot be judged, instead of marking it.")
    ] = False,
) -> None:
    """Classify rows with the ensemble F* of a finished run.

    Columns are matched by name; extra ones are ignored. A row that cannot be judged, such as one with a word
    where there were numbers, gets no prediction and is counted. Each row is classified by a member of F*
    drawn at random for that row, and the seed that repeats the draws is printed. After --certify holdout,
    rows are classified by what its first claim is about: the model fitted on all rows that were not held out,
    unless another --claim was named.

        ckcv predict runs/patients new.csv
        ckcv predict runs/patients new.csv --vote --out predictions.csv
        ckcv predict runs/certified new.csv --refer --out predictions.csv

    Columns written: row (counted from 1), prediction (the original label), member (the split it was fitted
    on; empty for the majority, and for a model of no split), score (of that model), share (of F* that agrees;
    empty for a model of no split), and with --refer referred (true or false). In CSV, control characters in
    labels are escaped: a newline becomes a backslash and an n, and backslashes are then doubled. Of a named
    set with test rows, only those are classified.
    """
    _check_out(out, csv_safe)
    by, seed = choice
    if refer and by.startswith("nested"):
        raise InputError("refer and nested exclude each other: choose one of them")
    if out is not None:
        if out.exists() and not is_named(source) and Path(source).exists() and out.samefile(source):
            raise InputError(f"out={str(out)!r} is the file to predict: choose another name")
        check_table(out, RunFolder(folder))
    result = load_run(folder, allow_pickle)
    chosen = rows_to_test_of(source, reading)
    if not chosen.num_rows:
        raise InputError(f"{source!r} has no rows to predict")
    kept = None if keep is None else _kept(chosen, keep)
    given = result.task.read(chosen)
    if strict or given.bad.all():
        given.check()
    X, judged = given.X[~given.bad], np.flatnonzero(~given.bad)
    rule = result.rule(by, seed)
    predicted = result.classified(X, rule)
    table, claim = _table(result, predicted, judged), result.claim_for(rule)
    referred = None
    if refer:
        referred, proven = result.referred(X, rule), result.claim_for_referral(rule)
        table = table.append_column("referred", pa.array(referred))
        claim = f"{claim}\n{int(referred.sum())} of {len(referred)} rows {proven}"
    table = _with_unjudged(table, chosen.num_rows)
    if kept is not None:
        table = table.add_column(1, keep, kept)
    write_table(table, out, RunFolder(folder), csv_safe)
    say(claim)
    _say_columns(chosen, result.task, keep)
    if given.unseen:
        say(given.unseen)
    if given.reason:
        say(f"{int(given.bad.sum())} of {len(given.bad)} rows could not be judged: {given.reason}")
    _say_conditions(result.certificate, rule.nested)
    if rule.name == "random" and len(rule.splits) != 1:  # of one member nothing is drawn
        say(f"--seed {rule.seed} repeats these draws")
    learned = result.problem.every_row if rule.name == "full" else result.task
    if learned.target in chosen.column_names:
        labels = chosen[learned.target].take(pa.array(judged))
        _say_error_rate(labels, learned, X, predicted.label, referred)


def _check_out(out: Path | None, csv_safe: bool) -> None:
    if out is not None and as_path("out", out).suffix not in (".csv", ".parquet"):
        raise InputError(f"out={str(out)!r}: the name has to end in .csv or .parquet")
    if csv_safe and out is not None and out.suffix == ".parquet":
        raise InputError(f"csv_safe is for CSV files, and out={str(out)!r} is not one: leave one of them out")


def _say_conditions(certificate: Certificate, nested: bool) -> None:
    """Say how the bound compares with a constant, and that rows repeat."""
    constant = certificate.describe_nested_constants() if nested else certificate.describe_constants()
    for sentence in [*constant, *certificate.describe_repeats()]:
        say(sentence)


def _kept(columns: pa.Table, name: str) -> pa.ChunkedArray:
    """Return the column to be written as well."""
    if name not in columns.column_names:
        raise InputError(
            f"there is no column {quote(name)} to keep: the columns are {some(columns.column_names)}"
        )
    if name in WRITTEN:
        raise InputError(f"keep={quote(name)} is a column that is written anyway: rename it in the data")
    if held := (columns.schema.field(name).metadata or {}).get(HELD):
        raise InputError(f"column {name!r} holds {held.decode()}, which cannot be kept: leave out --keep")
    return columns[name]


def _with_unjudged(table: pa.Table, rows: int) -> pa.Table:
    """Return the table with a row for each row of the data, empty where it could not be judged."""
    if table.num_rows == rows:
        return table
    place = np.full(rows, -1)
    place[table["row"].to_numpy() - 1] = np.arange(table.num_rows)
    every = table.take(pa.array(place, mask=place < 0))
    return every.set_column(0, "row", pa.array(range(1, rows + 1)))


def _say_columns(columns: pa.Table, task: Task, keep: str | None) -> None:
    """Name the columns that are ignored."""
    used = {*task.features, task.target, keep, task.group}
    if ignored := [name for name in columns.column_names if name not in used]:
        say(f"{pluralize(len(ignored), 'column')} ignored: {some(ignored)}")


def _table(result: Result, predicted: Prediction, judged: Index) -> pa.Table:
    return pa.table(
        {
            "row": judged + 1,
            "prediction": result.task.labelled(predicted.label),
            "member": pa.array(predicted.member, mask=predicted.member < 0),
            "score": pa.array(predicted.score, from_pandas=True),  # nan, of a learner without scores, is null
            "share": pa.array(predicted.share, from_pandas=True),
        }
    )


def _say_error_rate(
    labels: pa.ChunkedArray, learned: Task, X: Rows, predicted: Classes, referred: NDArray[np.bool_] | None
) -> None:
    try:
        labelled = rows_with_label(labels, learned.target)
        y = class_numbers(labels.filter(pa.array(labelled)), learned.classes, learned.target)
    except InputError as error:
        return say(f"no error rate: {error}")
    if not labelled.all():
        say(f"{pluralize(int(np.sum(~labelled)), 'row')} without a label: not in the error rate")
        X, predicted = X[labelled], predicted[labelled]
        referred = None if referred is None else referred[labelled]
    wrong, known = int(np.sum(y != predicted)), count_known(X, learned)
    if referred is not None:
        kept = int(np.sum((y != predicted) & ~referred))
        say(f"wrong and not referred: {kept} of {len(y)} rows ({nearest(kept / max(1, len(y)))})")
    caveat = f"; {known} of them are learning rows, and say little about new ones" if known else ""
    return say(f"error rate: {wrong} of {len(y)} rows ({nearest(wrong / max(1, len(y)))}){caveat}")
