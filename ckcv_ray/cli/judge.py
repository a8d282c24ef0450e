"""Command judge: predictions that somebody else made."""

from pathlib import Path
from typing import Annotated

import typer

from ckcv_ray.apps.judge import Asked, judge_table
from ckcv_ray.cli import data
from ckcv_ray.cli.options import DetailsFlag, JsonFlag, make_argument, make_flag, make_option, with_options
from ckcv_ray.cli.output import say, show
from ckcv_ray.core.quantities import parse_subgroups
from ckcv_ray.tables.predictions import PredictionColumns
from ckcv_ray.tables.read import Reading

NUMBERS, GROUPS = "Numbers", "Groups and weights"


def choose_columns(
    label: str = typer.Option(..., "--label", help="Column with what is true."),
    prediction: str | None = make_option("Column with what was predicted."),
    score: str | None = make_option("Column of scores, of two classes: larger for the positive one."),
    against: str | None = make_option("Column with other predictions of the same rows, to be proven better."),
    group: str | None = make_option(
        "Column, or columns (center,id), that say which rows belong together.", "rows are independent", GROUPS
    ),
    weight: str | None = make_option("Column of weights, for --claim weighted_error:4.", panel=GROUPS),
    subgroups: str | None = make_option(
        "Columns whose groups are claimed too: sex,age:40,65 (edges; a single one as 40.0)."
    ),
) -> PredictionColumns:
    """Return which columns are what."""
    named = parse_subgroups("subgroups", subgroups)
    return PredictionColumns(label, prediction, score, against, group, weight, named)


def ask(
    claim: str = make_option(
        "What is claimed; several as a,b share delta: error, sensitivity, specificity, recall, auc, ppv (of "
        "this source, or ppv:0.02 at a prevalence), npv:0.02; of numbers within:0.9.",
        "the error, or the auc of scores alone",
        value="",
    ),
    cut_off: float | None = make_option("Score from which on a row is positive, named beforehand."),
    positive: str | None = make_option("Label that sensitivity is of.", "the second, sorted"),
    require: str = make_option("Choose the cut-off by these rows: sensitivity>=0.9.", value=""),
    accept: str = make_option("What must be proven: error<=0.1; else exit code 5 or 6.", value=""),
    clip: float | None = make_option("Predict numbers; a larger error counts as this one.", panel=NUMBERS),
    baseline: float | None = make_option("Number to be compared with, if always predicted.", panel=NUMBERS),
    largest_group: float | None = make_option(
        "Rows that a group can have at most, named beforehand: the error is of rows.", panel=GROUPS
    ),
    delta: float = typer.Option(0.05, help="Probability that anything claimed is false."),
    seed: str = typer.Option("0", help="Seed of the pairs of an AUC, or random."),
    empty_wrong: bool = make_flag("--empty-wrong", "Count rows without a label or prediction as wrong."),
) -> Asked:
    """Return what is to be claimed."""
    fields = (claim, cut_off, positive, require, accept, clip, baseline, largest_group, delta, seed)
    return Asked(*fields, empty_wrong)


@with_options(columns=choose_columns, asked=ask, reading=data.make_reading)
def judge(
    source: Annotated[str, make_argument("TABLE", "Labels and predictions.", data.check_source)],
    columns: PredictionColumns,
    asked: Asked,
    reading: Reading,
    out: Path | None = make_option("Write a page as well: a file of HTML."),
    details: DetailsFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Prove how often predictions that somebody else made are wrong, on rows that nothing has seen.

    All rows of the table count, and nothing is fitted: how the predictions were made is up to you, as long as
    it was finished without these rows. What is measured has an exact two-sided interval, and what is proven
    a sentence that you may quote, with its conditions.

        ckcv judge test.csv --label outcome --prediction answer
        ckcv judge test.csv --label outcome --score risk --cut-off 0.5 --claim auc
        ckcv judge test.csv --label outcome --score risk --require 'sensitivity>=0.9'
        ckcv judge test.csv --label price --prediction guess --clip 50 --baseline 200
    """
    found = judge_table(data.read_new_rows(source, reading), columns, asked, source)
    show(found.to_json(), found.summary(details), as_json)
    if out is not None:
        say(f"page: {found.report(out)}")
    data.exit_unless_accepted(found.decisions)
