"""How ``--help`` arranges options: in panels, those that are used most come first."""

from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand

PANELS = ("Study", "SVM", "Other learners", "Certificate", "Columns", "Procedure", "Search", "Execution")
FIRST = (  # of the options that are in no panel, in this order
    *("target", "features", "drop", "group", "certify", "budget", "learner", "resampling", "measure"),
    *("out", "details", "as_json"),
)


class Command(TyperCommand):
    """A command whose options are listed by panel."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the arguments and options in the order of ``--help``; see ``TyperCommand``."""
        return sorted(hide_types(super().get_params(ctx)), key=_rank)


def hide_types(parameters: Iterable[Any]) -> list[Any]:
    """Return parameters; those without a value, such as --json, are shown without a type."""
    listed = list(parameters)
    for parameter in listed:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return listed


def _rank(parameter: Any) -> tuple[int, int]:
    """Return where a parameter stands: its panel, and its place among those that are in none."""
    panel = getattr(parameter, "rich_help_panel", None)
    if panel is not None:
        return 1 + (PANELS.index(panel) if panel in PANELS else len(PANELS)), 0
    return 0, FIRST.index(parameter.name) if parameter.name in FIRST else len(FIRST)
