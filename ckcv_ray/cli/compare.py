"""Command compare."""

from pathlib import Path
from typing import Annotated

import typer

from ckcv_ray.cli.data_options import SOURCES, Thousands, check_source, make_reading, read_new_rows
from ckcv_ray.cli.exits import NOT_YET_PROVEN, PROVEN_WORSE
from ckcv_ray.cli.options import Folder, JsonFlag, make_option, normalize_folder, with_options
from ckcv_ray.cli.output import show
from ckcv_ray.runs.compare import compare as compare_runs
from ckcv_ray.runs.comparison import OPEN, WORSE, Question
from ckcv_ray.tables.readers.files import Reading

EXIT_CODES = {WORSE: PROVEN_WORSE, OPEN: NOT_YET_PROVEN}  # what is proven ends with 0


def ask(
    no_worse: Annotated[
        float | None,
        make_option(
            "Prove that the run errs at most this much more often, such as 0.01 (1 percentage point).",
            "prove that it errs less often",
        ),
    ] = None,
    group: Annotated[
        str | None,
        make_option(
            "Column, or columns (center,id), that say which judged rows belong together.",
            "rows are independent",
        ),
    ] = None,
    delta: Annotated[
        float, typer.Option(help="Probability that an answer is proven and false; half for each direction.")
    ] = 0.05,
    uses: Annotated[
        int,
        typer.Option(help="Number of comparisons on these rows, named at the first: each has delta / N."),
    ] = 1,
) -> Question:
    """Return what is asked.

    Raises:
        InputError: a value is outside its range.
    """
    return Question(no_worse, group, delta, uses)


@with_options(question=ask, reading=make_reading)
def compare(
    folder: Folder,
    question: Question,
    reading: Reading,
    rows: Annotated[
        str,
        typer.Option(
            help=f"Judged rows, with their labels. {SOURCES}", show_default=False, callback=check_source
        ),
    ],
    reference: Annotated[
        str | None,
        typer.Argument(
            metavar="[OTHER]",
            help="Run folder to compare with.",
            show_default=False,
            callback=normalize_folder,
        ),
    ] = None,
    predictions: Annotated[
        str | None,
        make_option("Column of the judged rows with somebody else's predictions, instead of OTHER."),
    ] = None,
    ledger: Annotated[
        Path | None,
        make_option("File in which uses of judged rows are counted.", "uses.json in the folder of each run"),
    ] = None,
    thousands: Thousands = None,
    as_json: JsonFlag = False,
) -> None:
    """Prove on judged rows that a run errs less often than another one, or not more often by a margin.

    The rows are labelled, and neither has learned from them. Each classifies them by the rule that ckcv
    predict uses. The run is proven better by an exact sign test on the rows that only one of the two has
    wrong; with a margin or groups by bounds on the difference. What is proven of better and of worse is false
    with probability at most delta, together.

    Exit codes, for a gate in CI: 0 proven; 6 not yet proven, with the number of rows that is expected to
    prove it; 5 proven worse.

    Each comparison on the same rows is a new chance of a false proof, so each is counted, row by row, and
    a second one on some of the same rows needs --uses, named at the first. The same comparison again is the
    same use. Rows that a run has learned from do not count.

        ckcv compare runs/new runs/old --rows judged.csv
        ckcv compare runs/new runs/old --rows judged.csv --no-worse 0.01 --uses 10
        ckcv compare runs/new --predictions physician --rows judged.csv
    """
    columns = read_new_rows(rows, reading)
    found = compare_runs(folder, columns, reference, predictions, question, ledger, thousands or "")
    show(found.to_json(), "\n".join(found.describe()), as_json)
    if code := EXIT_CODES.get(found.answer, 0):
        raise typer.Exit(code)
