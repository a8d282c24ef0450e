"""Command predict, and its tables: written to a file or standard output, and recognised in files."""

from csv import reader
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray
from pyarrow import csv, parquet

from ckcv_ray import errors
from ckcv_ray.claims.rules import Rule, orient_scores
from ckcv_ray.cli.data import THOUSANDS, DataSource, choose_rule, make_reading, read_new_rows
from ckcv_ray.cli.options import Folder, make_flag, make_option, with_options
from ckcv_ray.cli.output import results, say
from ckcv_ray.errors import InputError, Rows, Values, format_percent, pluralize, quote
from ckcv_ray.learners.ensemble import Prediction
from ckcv_ray.reports.facts import CAUTION, QUESTION, tell_verdict
from ckcv_ray.runs.finished import load, load_run
from ckcv_ray.runs.judged import calibrate
from ckcv_ray.runs.result import Certified, Marks, Result, compute_probabilities, find_verdict, mark_rows
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.pages import check_page, write_page
from ckcv_ray.tables.columns import Cells, NewRows, check_column, declare_cells, is_text, name_numbered, some
from ckcv_ray.tables.questions import find_known
from ckcv_ray.tables.read import Reading
from ckcv_ray.tables.roles import Units, Weighting, find_groups
from ckcv_ray.tables.task import Task

PROBABILITY = "probability_"  # begins the name of the column of a class
WRITTEN = ("row", "prediction", "member", "score", "share", "flag", "answered")
PREDICTIONS = "a file of predictions"
LONGEST_HEADER = 1 << 16
CSV = csv.WriteOptions(quoting_style="needed")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # start of a cell that a spreadsheet runs (OWASP, CSV injection)
WRITTEN_ANYWAY = "is a column that is written anyway: rename it in the data"


class Output(NamedTuple):
    """Where predictions are written: to a file, or to standard output as CSV."""

    out: Path | None = make_option(
        "File to write, .csv or .parquet, or -.",
        "CSV on standard output",
        check=lambda out: None if str(out) == "-" else out,
    )
    csv_safe: bool = make_flag(
        "--csv-safe",
        "Put an apostrophe before labels that a spreadsheet would execute: those that begin with = + - "
        "@, a tab or a carriage return.",
    )
    probabilities: bool = make_flag(
        "--probabilities", "Write the probability of each class too; nothing is proven of it."
    )

    @property
    def is_csv(self) -> bool:
        """Whether they are written as CSV."""
        return self.out is None or self.out.suffix == ".csv"

    def check(self, folder: str) -> None:
        """Raise InputError if predictions cannot be written to the file, before they are made."""
        if self.out is None:
            return
        if errors.as_path("out", self.out).suffix not in (".csv", ".parquet"):
            raise InputError(f"out={str(self.out)!r}: the name has to end in .csv or .parquet")
        check_page(RunFolder(folder).files, self.out, PREDICTIONS, are_predictions)

    def write(self, table: pa.Table, folder: RunFolder) -> None:
        """Write predictions; in CSV, control characters in text are escaped, and formulas if asked."""
        stream: Any = results()
        sink = stream.buffer if self.out is None else BytesIO()
        if self.is_csv:
            for i, field in enumerate(table.schema):
                if is_text(field.type):
                    labels = table.column(i).combine_chunks().dictionary_encode()
                    texts = labels.dictionary.to_pylist()
                    escape = not all(text.isprintable() for text in texts)
                    cells = pa.array([_format_cell(one, escape, self.csv_safe) for one in texts], pa.string())
                    column = pa.DictionaryArray.from_arrays(labels.indices, cells).cast(pa.string())
                    table = table.set_column(i, field.name, column)
            names = [_format_cell(name, not name.isprintable(), self.csv_safe) for name in table.column_names]
            csv.write_csv(table.rename_columns(names), sink, CSV)
        else:
            parquet.write_table(table, sink)
        if self.out is not None:
            write_page(folder.files, self.out, sink.getvalue(), PREDICTIONS, are_predictions)


def are_predictions(file: Path) -> bool:
    """Return whether a file has the columns of predictions; one more, a kept column, may be among them."""
    try:
        if file.suffix == ".csv":
            with file.open(encoding="utf-8", newline="") as stream:
                names = next(reader([stream.readline(LONGEST_HEADER)]), [])
        else:
            names = parquet.read_schema(file).names
    except Exception:  # readers may raise anything
        return False
    return names[:1] == ["row"] and any(tuple(names[at : at + 2]) == WRITTEN[1:3] for at in (1, 2))


def _format_cell(text: str, escape: bool, safe: bool) -> str:
    """Format text as a CSV cell; ``escape`` includes backslashes, so that texts stay distinct."""
    formula = safe and text.startswith(FORMULA)
    if escape:
        text = "".join(c if c.isprintable() and c != "\\" else errors.escape_text(c) for c in text)
    return f"'{text}" if formula else text


@with_options(choice=choose_rule, reading=make_reading, output=Output)
def predict(
    folder: Folder,
    choice: tuple[str, int | None],
    reading: Reading,
    source: DataSource,
    output: Output,
    thousands: str = THOUSANDS,
    keep: str | None = typer.Option(
        None, "--keep", "--id", help="Column to write as well, such as the one that names the rows: patient."
    ),
    strict: bool = make_flag(
        "--strict", "Refuse the whole file if a row cannot be judged, instead of marking it."
    ),
    allow_pickle: bool = make_flag(
        "--allow-pickle",
        "Load the models of F* from their pickle files instead of Parquet, if their SHA-256 matches the "
        "manifest. Unpickling can run any code: use it only for runs of your own.",
    ),
) -> None:
    """Classify rows, or predict numbers, with what a finished run or evaluation has fitted.

    Columns are matched by name; extra ones are ignored. A row that cannot be judged, such as one with a word
    where there were numbers, gets no prediction and is counted. Each row is classified by a member of F*
    drawn at random for that row, and the seed that repeats the draws is printed. After --certify holdout,
    rows are classified by what its first claim is about: the model fitted on all rows that were not held out,
    unless another --claim was named. After ckcv evaluate --refit best nothing is proven of its one model.

        ckcv predict runs/patients new.csv
        ckcv predict runs/patients new.csv --vote --out predictions.csv

    DATA may be - for CSV on standard input.

    Columns written: row (counted from 1), prediction (the original label, or a number), member (the split it
    was fitted on; empty for the majority, and for a model of no split), of classes score (of that model,
    with two of them: larger for the positive one) and share (of F* that agrees; empty for a model of no
    split), of a run with --claim within:0.9 low and high (the prediction less and plus what nine in ten new
    rows are off at most), where a cut-off was chosen flag (whether the score reaches it), of a run with
    --answer answered (whether its confidence is that of the rows that something is proven of), and with
    --probabilities a column probability_LABEL for each class. In CSV, control characters in labels are
    escaped: a newline becomes a backslash and an n, and backslashes are then doubled. Of a named set with
    test rows, only those are classified.
    """
    output.check(folder)
    result = load_run(folder, True) if allow_pickle else load(folder)
    table, rows, remarks = _read_table(result.task, source, reading, thousands, keep, strict)
    rule, X = result.rule(*choice), rows.X[~rows.bad]
    predicted = rule.predict(result.models, X)
    shares = compute_probabilities(result, X, rule, predicted) if output.probabilities else None
    marks, told = mark_rows(result, X, rule, predicted)
    if keep in marks:
        raise InputError(f"keep={quote(keep)} {WRITTEN_ANYWAY}")
    oriented = predicted._replace(score=orient_scores(predicted.score, result.problem.positive))
    written = _tabulate(result.task, rows, oriented, shares, marks, output.is_csv)
    written = written if keep is None else written.add_column(1, keep, table[keep])
    output.write(written, RunFolder(folder))
    _say_remarks(result, rule, marks, told, remarks, output.probabilities)
    _say_error_rate(result, rule, table.filter(pa.array(~rows.bad)), X, predicted.label, marks)


def _read_table(
    task: Task, source: str, reading: Reading, thousands: str, keep: str | None, strict: bool
) -> tuple[pa.Table, NewRows, list[str]]:
    """Return the rows to predict, as they are and as numbers, and how columns and rows were taken."""
    table = declare_cells(read_new_rows(source, reading), thousands=thousands)
    if not table.num_rows:
        raise InputError(f"{source!r} has no rows to predict")
    if keep is not None:
        check_column(keep, table.column_names, " to keep")
        if keep in WRITTEN or keep.startswith(PROBABILITY):
            raise InputError(f"keep={quote(keep)} {WRITTEN_ANYWAY}")
        if held := Cells(table, keep).held:
            raise InputError(f"column {keep!r} holds {held}, which cannot be kept: leave out --keep")
    rows = task.read(table)
    if strict or rows.bad.all():
        rows.check()
    names = name_numbered(table.column_names, task.features)
    others = (*find_groups(task.units.name, names), task.weighting.column, task.split_by.column)
    used = {*task.features, task.target.name, keep, *others}
    ignored = [name for name in names if name not in used]
    remarks = [f"{pluralize(len(ignored), 'column')} ignored: {some(ignored)}"] if ignored else []
    remarks += [rows.unseen] if rows.unseen else []
    if rows.reason:
        remarks.append(f"{int(rows.bad.sum())} of {len(rows.bad)} rows could not be judged: {rows.reason}")
    return table, rows, remarks


def _tabulate(
    task: Task, rows: NewRows, predicted: Prediction, probabilities: Values | None, marks: Marks, is_csv: bool
) -> pa.Table:
    """Return the table to write, with a row for each row of the data, empty where it could not be judged."""
    labels = task.labelled(predicted.label)
    if is_csv and task.classes and labels.dtype.kind in "bf":
        labels = labels.astype(str)  # True and 1.0, where Arrow would write true and 1
    columns = {"prediction": labels, "member": pa.array(predicted.member, mask=predicted.member < 0)}
    if task.classes:
        # nan, of a learner without scores, is null
        columns["score"] = pa.array(predicted.score, from_pandas=True)
        columns["share"] = pa.array(predicted.share, from_pandas=True)
    columns |= {name: pa.array(mark) for name, mark in marks.items()}
    if probabilities is not None:
        names = [f"{PROBABILITY}{label}" for label in task.classes]
        columns |= dict(zip(names, map(pa.array, probabilities.T), strict=True))
    written = pa.table(columns).take(pa.array(np.cumsum(~rows.bad) - 1, mask=rows.bad))
    return written.add_column(0, "row", pa.array(range(1, len(rows.bad) + 1)))


def _say_remarks(
    result: Result, rule: Rule, marks: Marks, told: list[str], remarks: list[str], probabilities: bool
) -> None:
    """Say what is proven of the predictions, and the remarks on columns and rows."""
    certified = result if isinstance(result, Certified) else None
    covered = certified is not None and certified.claims[0].covers(rule)
    if rule.name == "random" and not rule.repeats:
        same = result.task.target.word("; --vote gives the same in every call", "")
        say(f"drawn: one member for each row, different in every call{same}")
    say(*told)
    if certified is not None and find_verdict(certified) != "may be quoted":
        about = {"accepted", CAUTION, QUESTION} | ({"verdict"} if covered else set())
        facts = [fact for fact in tell_verdict(certified).facts if fact.name in about]
        say(*(f"{fact.name}: {fact.text}" if fact.name.isupper() else fact.text for fact in facts))
    if (answered := marks.get("answered")) is not None:
        say(f"{int(answered.sum())} of {len(answered)} rows answered")
    if probabilities:
        _, learner = result.problem.find_learner(result.setting)
        calibrated = "CalibratedClassifierCV" in str(getattr(learner, "spec", ""))
        how = "calibrated inside each fit" if calibrated else "not recalibrated"
        say(f"probabilities: as {learner.name} gives them, {how}; nothing is proven of them")
        found = calibrate(certified) if certified is not None and covered else None
        if found is not None and found.n_outside:
            say(found.verdict)
    say(*remarks)
    if rule.name == "random":
        say(f"--seed {rule.seed} repeats these draws")


def _say_error_rate(
    result: Result, rule: Rule, table: pa.Table, X: Rows, predicted: NDArray[Any], marks: Marks
) -> None:
    """Say how wrong predictions of labelled rows are, in the mean that a certification bounds."""
    problem, task, names = result.problem, result.task, table.column_names
    learned = problem.every_row if rule.name == "full" else task
    target, clip, weights, how = learned.target, problem.clip, None, ""
    if target.name not in names:
        return None
    try:
        labelled = learned.find_labelled(table)
        labels = table.filter(pa.array(labelled)) if target.classes else table
        y, weighs = target.read(labels), not problem.scores and problem.certification.weighs_rows
        groups = () if weighs or problem.scores else find_groups(task.units.name, names)
        needed = (task.weighting.column,) if weighs else groups
        if lacking := [name for name in needed if name not in names]:
            mean = "by weight" if weighs else "over groups"
            how = f", and not the mean {mean} that is bounded, for lack of column {lacking[0]!r}"
        elif weighs:
            weights, how = Weighting.read(labels, task.weighting.column).named, " by weight"
        elif groups:
            units = Units.read(labels, groups)
            weights, how = (
                units.weigh_rows(units.row_units),
                f", mean over {pluralize(units.n_units, 'group')}",
            )
    except InputError as error:
        return say(f"no {target.word('error rate', 'error')}: {error}")
    rows, known = pluralize(len(y), "row"), find_known(X if len(y) == len(X) else X[labelled], learned).sum()
    caveat = f"; {known} of them equal learning rows, and say little about new ones" if known else ""
    if not target.classes:
        rmse = f"root mean squared error: {float(np.sqrt(np.mean((y - predicted) ** 2))):.4g}"
        if clip is None:
            return say(f"{rmse} on {rows}{caveat}")
        mean = np.average(np.minimum(np.abs(y - predicted), clip), weights=weights)
        counts = f"where an error above {errors.format_number(clip)} counts as {errors.format_number(clip)}"
        say(f"mean error: {mean:.4g} on {rows}, {counts}{how}{caveat}")
        return say(f"{rmse}, for which nothing is proven")
    if not labelled.all():
        say(f"{pluralize(int(np.sum(~labelled)), 'row')} without a label: not in the error rate")
        predicted, marks = predicted[labelled], {name: mark[labelled] for name, mark in marks.items()}
    wrong = y != predicted
    if (answered := marks.get("answered")) is not None:
        of_answered, n = int(np.sum(wrong & answered)), int(np.sum(answered))
        say(f"wrong and answered: {of_answered} of {n} rows ({format_percent(of_answered / max(1, n))})")
    found = f"{int(np.sum(wrong))} of {len(y)} rows"
    rate = format_percent(float(np.average(wrong, weights=weights)) if len(y) else 0.0)
    shown = f"{found} ({rate}){how}" if weights is None else f"{rate}{how} ({found} wrong)"
    return say(f"error rate: {shown}{caveat}")
