"""Commands judge, compare and watch: rows with labels, on which predictions are judged."""

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from ckcv_ray.apps.judge import Asked, judge_table
from ckcv_ray.cli import data, options
from ckcv_ray.cli.options import Folder, JsonFlag, make_argument, make_flag, make_option, with_options
from ckcv_ray.cli.output import NOT_YET_PROVEN, PROVEN_WORSE, say, show
from ckcv_ray.core.quantities import parse_subgroups
from ckcv_ray.errors import InputError
from ckcv_ray.runs import later
from ckcv_ray.tables.predictions import PredictionColumns
from ckcv_ray.tables.read import Reading

NUMBERS, GROUPS = "Numbers", "Groups and weights"
LIVE = f"Live rows with their labels; leave it out to look only at the stream. {data.SOURCES}"


def choose_columns(
    label: str = typer.Option(..., "--label", help="Column with the true labels or numbers."),
    prediction: str | None = make_option("Column with the predictions."),
    score: str | None = make_option("Column of scores for two classes: larger for the positive one."),
    against: str | None = make_option("Column with other predictions, to be proven worse than those judged."),
    group: str | None = make_option(
        "Column, or columns (center,id), that say which rows belong together.", "rows are independent", GROUPS
    ),
    weight: str | None = make_option("Column of weights, for --claim weighted_error:4.", panel=GROUPS),
    subgroups: str | None = make_option(
        "Columns whose groups get claims too: sex,age:40,65 (edges; a single one as 40.0)."
    ),
) -> PredictionColumns:
    """Return what each column is."""
    named = parse_subgroups("subgroups", subgroups)
    return PredictionColumns(label, prediction, score, against, group, weight, named)


class ClaimOptions(NamedTuple):
    """What is to be claimed: the fields of ``Asked``."""

    claim: str = make_option(
        "What is claimed; several as a,b share delta: error, sensitivity, specificity, recall, auc, ppv (of "
        "this source, or ppv:0.02 at a prevalence), npv:0.02; for numbers within:0.9.",
        "the error; for scores alone, the auc",
        value="",
    )
    cut_off: float | None = make_option("Score from which a row counts as positive, fixed beforehand.")
    positive: str | None = make_option("Label of the positive class.", "the second, sorted")
    require: str = make_option("Choose the cut-off on these rows: sensitivity>=0.9.", value="")
    accept: str = make_option("What must be proven: error<=0.1; else exit code 5 or 6.", value="")
    clip: float | None = make_option("Judge numbers; a larger error counts as this one.", panel=NUMBERS)
    baseline: float | None = make_option("Constant prediction to compare with.", panel=NUMBERS)
    largest_group: float | None = make_option(
        "Most rows that a group can have, fixed beforehand: the error is then about rows.", panel=GROUPS
    )
    delta: float = typer.Option(0.05, help="Probability that anything claimed is false.")
    seed: str = typer.Option("0", help="Seed of the pairs of an AUC, or random.")
    empty_wrong: bool = make_flag("--empty-wrong", "Count rows without a label or prediction as wrong.")


@with_options(columns=choose_columns, asked=ClaimOptions, reading=data.make_reading)
def judge(
    source: Annotated[str, make_argument("TABLE", "Labels and predictions.", data.check_source)],
    reading: Reading,
    columns: PredictionColumns,
    asked: ClaimOptions,
    out: Path | None = make_option("HTML page to write as well."),
    details: options.DetailsFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Prove how often somebody else's predictions are wrong, on rows that nothing has seen.

    All rows of the table count, and nothing is fitted: how the predictions were made is up to you, as long as
    it was finished without these rows. What is measured comes with an exact two-sided interval, and what is
    proven with a sentence that you may quote, including its conditions.

        ckcv judge test.csv --label outcome --prediction answer
        ckcv judge test.csv --label outcome --score risk --cut-off 0.5 --claim auc
        ckcv judge test.csv --label outcome --score risk --require 'sensitivity>=0.9'
        ckcv judge test.csv --label price --prediction guess --clip 50 --baseline 200
    """
    found = judge_table(data.read_new_rows(source, reading), columns, Asked(**asked._asdict()), source)
    show(found.to_json(), found.summary(details), as_json)
    if out is not None:
        say(f"page: {found.report(out)}")
    data.exit_unless_accepted(found.decisions)


@with_options(choice=data.choose_rule, reading=data.make_reading)
def watch(
    folder: Folder,
    choice: tuple[str, int | None],
    reading: Reading,
    source: Annotated[str | None, make_argument("DATA", LIVE, data.check_source)] = None,
    row_id: str = typer.Option("id", "--id", help="Column that names the rows."),
    prediction: str = typer.Option(
        "prediction",
        "--prediction",
        help="Column with the predictions. Without it, rows with all features are predicted here.",
    ),
    label: str | None = make_option("Column with the true labels.", "the target of the run"),
    delta: float | None = make_option(
        "Probability that anything reported is ever false, fixed with the first rows.", "that of the study"
    ),
    stream: Path | None = make_option(
        "File that keeps the stream, outside run folders.", "stream.jsonl in the run folder"
    ),
    as_json: JsonFlag = False,
) -> None:
    """Compare live rows, once their labels are known, with what a finished run has certified.

    Rows are appended to the stream of the run, a file that only grows and in which each row counts once. What
    is said holds at all times, however often it is looked at: the error measured with its limits, whether the
    certificate still holds, and the error on each class. delta is shared: half of it goes to the error, the
    classes share the rest. With groups, a group counts once, and only the error is watched.

    An alarm says that the error is larger than certified (exit code 5). The options that choose what
    classifies rows, such as --vote, are those of ckcv predict.

        ckcv watch runs/patients labels.csv --id patient
        ckcv watch runs/patients march.csv --id patient --prediction answer
        ckcv watch runs/patients --json

    DATA may be - for CSV on standard input.
    """
    by, seed = choice
    if seed is not None:
        raise InputError("seed is for ckcv predict: a stream has no draws to repeat")
    rows = data.read_rows_if_named(source, reading, "a file of rows: name one")
    found = later.watch(folder, rows, row_id, prediction, label, by, delta, stream)
    say(*found.notes)
    show(found.to_json(), found.summary(), as_json)
    if found.alarm:
        raise typer.Exit(PROVEN_WORSE)


@with_options(reading=data.make_reading)
def compare(
    folder: Folder,
    reading: Reading,
    rows: Annotated[
        str,
        typer.Option(
            help=f"Judged rows, with their labels. {data.SOURCES}",
            show_default=False,
            callback=data.check_source,
        ),
    ],
    reference: Annotated[
        str | None, make_argument("[OTHER]", "Run folder to compare with.", options.normalize_folder)
    ] = None,
    predictions: str | None = make_option(
        "Column of the judged rows with somebody else's predictions, instead of OTHER."
    ),
    no_worse: float | None = make_option(
        "Prove that the run errs at most this much more often, such as 0.01 (1 percentage point).",
        "prove that it errs less often",
    ),
    group: str | None = make_option(
        "Column, or columns (center,id), that say which judged rows belong together.", "rows are independent"
    ),
    delta: float = typer.Option(
        0.05, help="Probability that an answer is proven and false; half for each direction."
    ),
    uses: int = typer.Option(
        1, help="Number of comparisons on these rows, fixed at the first: each gets delta / N."
    ),
    ledger: Path | None = make_option(
        "File in which uses of judged rows are counted.", "uses.json in the folder of each run"
    ),
    thousands: str = data.THOUSANDS,
    as_json: JsonFlag = False,
) -> None:
    """Prove on judged rows that a run errs less often than another, or at most a margin more.

    The rows are labelled, and neither has learned from them. Each classifies them by the rule that ckcv
    predict uses. The run is proven better by an exact sign test on the rows that only one of the two gets
    wrong; with a margin or groups, by bounds on the difference. What is proven about better and about worse
    is false with probability at most delta, together.

    Exit codes, for a gate in CI: 0 proven; 6 not yet proven, with the number of rows that is expected to
    prove it; 5 proven worse.

    Each comparison on the same rows is a new chance of a false proof, so each is counted, row by row, and
    a second one on some of the same rows needs --uses, named at the first. The same comparison again is the
    same use. Rows that a run has learned from do not count.

        ckcv compare runs/new runs/old --rows judged.csv
        ckcv compare runs/new runs/old --rows judged.csv --no-worse 0.01 --uses 10
        ckcv compare runs/new --predictions physician --rows judged.csv
    """
    question = later.Question(no_worse, group, delta, uses)
    columns = data.read_new_rows(rows, reading)
    found = later.compare(folder, columns, reference, predictions, question, ledger, thousands)
    show(found.to_json(), "\n".join(found.describe()), as_json)
    if code := {later.WORSE: PROVEN_WORSE, later.OPEN: NOT_YET_PROVEN}.get(found.answer):
        raise typer.Exit(code)
