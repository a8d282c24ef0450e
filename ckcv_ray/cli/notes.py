"""What commands say before a run (columns as they are understood, a changed environment) and after it."""

from contextlib import suppress

import typer

from ckcv_ray.cli.exits import PROVEN_WORSE
from ckcv_ray.cli.output import say, show
from ckcv_ray.errors import StoreError, plain, pluralize
from ckcv_ray.runs.load import environment_changes
from ckcv_ray.runs.result import Result
from ckcv_ray.study import Paper, Problem
from ckcv_ray.tables.named import is_named
from ckcv_ray.tables.subgroups import parse_subgroup
from ckcv_ray.tables.survey import MOST_SURVEYED, list_row_numbers, survey
from ckcv_ray.tables.task import Task

MOST_SHOWN_COLUMNS = 40  # columns
LONGEST_NAME = 30


def say_columns(problem: Problem) -> None:
    """Print what was understood of the columns of a table, and what looks like a mistake in them."""
    for line in (
        *describe_reading(problem),
        *describe_columns(problem.task, problem.all_rows.n - problem.task.n),
    ):
        say(line)


def describe_reading(problem: Problem) -> list[str]:
    """Return what is said of the reading of a table: columns that number the rows, and words taken for gaps.

    Of a column without other gaps these are gaps by another name, and are said where it has subgroups.
    """
    task, certification = problem.task, problem.study.certification
    divided = {parse_subgroup(name).column for name in (certification.subgroups if certification else ())}
    words = (found.describe() for found in task.gap_words if len(found.rows) > 1 or found.column in divided)
    return [*list_row_numbers(task), *words]


def describe_columns(task: Task, held: int) -> list[str]:
    """Return the columns of a table as they are understood; of a named set or a very large table nothing.

    Args:
        task: the rows to look at.
        held: how many others are held out, and must not be looked at before they certify.
    """
    if is_named(task.source) or task.X.size > MOST_SURVEYED:
        return []
    columns = survey(task)
    if not columns:
        return []
    shown = columns[:MOST_SHOWN_COLUMNS]
    width = max(len("column"), *(len(column.name) for column in shown))
    width = min(width, LONGEST_NAME)
    lines = [f"{'column':<{width}}  {'kind':<8}  {'missing':>8}  {'distinct':>8}"]
    for column in shown:
        figures = f"{column.kind:<8}  {column.missing:>8,}  {column.distinct:>8,}"
        lines.append(f"{plain(column.name)[:width]:<{width}}  {figures}  {plain(column.note)}".rstrip())
    if more := len(columns) - len(shown):
        lines.append(f"and {pluralize(more, 'column')} more")
    if held:
        lines.append(f"(of the {pluralize(task.n, 'row')} to learn from: nobody looks at those held out)")
    return lines


def say_environment(folder: str) -> None:
    """Print a message if the run was made in another environment, where last bits may differ."""
    with suppress(StoreError):
        if changes := environment_changes(folder):
            say(
                f"the run was made in another environment: {plain('; '.join(changes))}. Last bits may differ."
            )


def show_result(result: Result, folder: str, as_json: bool, details: bool = False) -> None:
    """Print a result, and what was repaired; end with code 3 if anything failed, 5 if it is not accepted."""
    show(result.to_json(), result.summary(details, folder), as_json)
    for name in result.execution.get("damaged", ()):
        say(f"{name} was damaged or missing: its contents were recomputed")
    say(f"run folder: {folder}")
    if failures := result.execution["failures"]:
        (*_, traceback) = failures[0]
        scored = result.finished is None
        incomplete = ", and their scores are incomplete" if scored else ""
        again = scored or result.study.certify == Paper.name
        say(
            f"{pluralize(len(failures), 'path')} failed{incomplete}: "
            f"{' '.join(traceback.splitlines()[-1:])}; ckcv report shows the tracebacks"
            + (", and the same command with --retry-failed tries again" if again else "")
        )
        raise typer.Exit(3)
    if result.finished is not None and not all(decision.met for decision in result.decisions):
        raise typer.Exit(PROVEN_WORSE)
