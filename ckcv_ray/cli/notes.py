"""Notes before a run: what was understood of a table's columns, and whether the environment has changed."""

from contextlib import suppress
from pathlib import Path

from ckcv_ray.cli.output import say
from ckcv_ray.errors import StoreError, plain, pluralize
from ckcv_ray.runs.load import environment_changes
from ckcv_ray.tables.named import is_named
from ckcv_ray.tables.survey import survey
from ckcv_ray.tables.task import Task

MOST_SURVEYED = 10_000_000  # cells
MOST_SHOWN = 40  # columns
LONGEST_NAME = 30


def say_columns(task: Task, held: int = 0) -> None:
    """Print what was understood of the columns of a table, and what looks like a mistake in them.

    Args:
        task: the rows to look at.
        held: how many others are held out, and must not be looked at before they certify.
    """
    if is_named(task.source) or task.X.size > MOST_SURVEYED:
        return
    columns = survey(task)
    if not columns:
        return
    shown = columns[:MOST_SHOWN]
    width = max(len("column"), *(len(one.name) for one in shown))
    width = min(width, LONGEST_NAME)
    say(f"{'column':<{width}}  {'kind':<8}  {'missing':>8}  {'distinct':>8}")
    for one in shown:
        figures = f"{one.kind:<8}  {one.missing:>8,}  {one.distinct:>8,}"
        say(f"{plain(one.name)[:width]:<{width}}  {figures}  {one.note}".rstrip())
    if more := len(columns) - len(shown):
        say(f"and {pluralize(more, 'column')} more")
    if held:
        say(f"(of the {pluralize(task.n, 'row')} to learn from: nobody looks at those held out)")


def say_environment(folder: Path) -> None:
    """Print a message if the run was made in another environment, where last bits may differ."""
    with suppress(StoreError):
        if changes := environment_changes(folder):
            say(
                f"the run was made in another environment: {plain('; '.join(changes))}. Last bits may differ."
            )
