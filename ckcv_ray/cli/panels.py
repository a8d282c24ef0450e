"""How a command speaks of its options: in the panels of ``--help``, and in messages."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from typer.core import TyperCommand

from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.removed import explain_removed

HELP_PANELS = ("Study", "SVM", "Other learners", "Certificate", "Columns", "Procedure", "Search", "Execution")
FIRST = (  # of the options that are in no panel, in this order
    *("target", "features", "drop", "group", "certify", "budget", "learner", "resampling", "measure"),
    *("out", "details", "as_json"),
)


class Command(TyperCommand):
    """A command whose options are listed by panel, and named in messages as they are given."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the arguments and options in the order of ``--help``; see ``TyperCommand``."""
        return sorted(hide_types(super().get_params(ctx)), key=_rank)

    def make_context(self, *given: Any, **extra: Any) -> Any:
        """Parse arguments; see ``TyperCommand``."""
        with self._name_options():
            return super().make_context(*given, **extra)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments; an option that was removed says what to write instead; see ``TyperCommand``."""
        if gone := explain_removed(*(word.partition("=")[0] for word in args if word.startswith("--"))):
            raise InputError(gone)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; see ``TyperCommand``."""
        with self._name_options():
            return super().invoke(ctx)

    @contextmanager
    def _name_options(self) -> Iterator[None]:
        """Name arguments of functions as options in the message of an error."""
        try:
            yield
        except (InputError, StoreError) as error:
            flags = {p.name for p in self.params if getattr(p, "is_flag", False)}
            error.args = (name_options(str(error), {p.name: p.opts[0] for p in self.params}, flags),)
            raise


def name_options(message: str, options: Mapping[str, str], flags: Container[str] = ()) -> str:
    """Return a message in which arguments of functions, such as k=3, are named as options: --k 3.

    Args:
        message: of an error.
        options: the option of each argument.
        flags: the arguments whose option has no value, so that exhaustive=True is --exhaustive.
    """
    names = "|".join(map(re.escape, options))

    def name_option(found: re.Match[str]) -> str:
        if found[1] in flags and found[2]:
            return options[found[1]]
        return f"{options[found[1]]} {found[2] or ''}"

    return re.sub(rf"(?<![\w.:,/='\"-])({names})=(?:(True)\b|(?=\S))", name_option, message)


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
        return 1 + (HELP_PANELS.index(panel) if panel in HELP_PANELS else len(HELP_PANELS)), 0
    return 0, FIRST.index(parameter.name) if parameter.name in FIRST else len(FIRST)
