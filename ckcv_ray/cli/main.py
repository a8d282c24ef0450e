"""Command line: the commands of ckcv.

Results go to standard output, messages to standard error; exit codes are in the reference.
"""

import gc
import os
import re
import sys
import warnings
from collections.abc import Container, Mapping
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ckcv_ray.cli import output
from ckcv_ray.cli.output import contain_command, say
from ckcv_ray.errors import InputError, StoreError, explain_removed, plain
from ckcv_ray.version import VERSION

if TYPE_CHECKING:
    from typer import _click

HELP_PANELS = (  # in the order of ``--help-all``, which also shows the options in none
    *("Study", "SVM", "Other learners", "Certificate", "Procedure", "Search", "Columns"),
    *("If a table is refused", "Execution"),
)
FIRST = (  # the options in no panel, in this order
    *("target", "features", "drop", "group", "certify", "budget", "learner", "resampling", "measure"),
    *("out", "details", "as_json"),
)
COMMANDS = {  # the commands and their help
    "run": "Select hyperparameters and k on labelled rows, bound the error, and write a run folder.",
    "report": "Write an HTML report of a finished run, or the form of a reporting guideline.",
    "predict": "Classify rows, or predict numbers, with what a finished run or evaluation has fitted.",
    "verify": "Check a finished run, and report what was recomputed and what was taken on trust.",
    "evaluate": "Score learners by a usual procedure of cross validation, without a certificate.",
    "compare": "Prove on judged rows that a run errs less often than another, or at most a margin more.",
    "watch": "Compare live rows, once their labels are known, with what a finished run has certified.",
    "judge": "Prove how often somebody else's predictions are wrong, on rows that nothing has seen.",
    "plan": "Estimate the evaluations, memory and time that a study needs, without running it.",
    "status": "Show the result of a finished run, or the progress of an unfinished one.",
    "list": "List the run folders in a folder and below it: what they are about, and what may be quoted.",
    "export": "Write a single model of a finished run or evaluation as a file for other programs.",
}
PANELS = {  # panels of ``ckcv --help``, with their commands and the module of each
    "Everyday": {
        "run": "run",
        "report": "report",
        "predict": "predict",
        "verify": "folders",
        "evaluate": "run",
    },
    "Later": {"compare": "judge", "watch": "judge", "judge": "judge"},
    "Look": {"plan": "run", "status": "folders", "list": "folders"},
    "Hand over": {"export": "report"},
}
# Between two collections of garbage: importing makes many objects and hardly any garbage. With Python's 700 a
# tenth of the time of a report goes into looking for some.
YOUNG_OBJECTS = 10_000


class Command(TyperCommand):
    """A command whose options are listed by panel, and named in messages as they are given."""

    shows_all = False

    def get_params(self, ctx: "_click.Context") -> "list[_click.Parameter]":
        """Return the arguments and options in the order of ``--help``; see ``TyperCommand``."""
        listed = sorted(_hide_types(super().get_params(ctx)), key=_rank)
        if any(getattr(parameter, "rich_help_panel", None) in HELP_PANELS for parameter in listed):
            every: Any = copy(self.get_help_option(ctx))
            every.name, every.opts, every.callback = "help_all", ["--help-all"], self._show_all
            every.help = f"Show all {sum(p.param_type_name == 'option' for p in listed)} options and exit."
            listed.append(every)
        return listed

    def _show_all(self, ctx: Any, parameter: Any, asked: bool) -> None:
        if asked and not ctx.resilient_parsing:
            self.shows_all = True
            ctx.command.get_help_option(ctx).callback(ctx, parameter, asked)

    def format_help(self, ctx: "_click.Context", formatter: "_click.HelpFormatter") -> None:
        """Show the most used options, or all; see ``TyperCommand``."""
        listed: list[Any] = self.params
        for parameter in listed:
            further = getattr(parameter, "rich_help_panel", None) in HELP_PANELS
            parameter.hidden = further and not self.shows_all
        super().format_help(ctx, formatter)

    def parse_args(self, ctx: "_click.Context", args: list[str]) -> list[str]:
        """Parse arguments; see ``TyperCommand``.

        Raises:
            InputError: an option was removed (the message says what to write instead), or is given twice, and
                only the last would count.
        """
        own: dict[str, Any] = {name: parameter for parameter in self.params for name in parameter.opts}
        options = [word.partition("=")[0] for word in args if word.startswith("--")]
        strange = [name for name in options if name not in own]
        of_command = [f"ckcv {ctx.info_name} {option}" for option in strange]
        if gone := explain_removed(*of_command, *strange):
            raise InputError(gone)
        given = [own[name] for name in options if name in own]  # by whichever name
        if twice := [one for one in given if given.count(one) > 1 and not (one.multiple or one.is_flag)]:
            named = " or ".join(twice[0].opts)
            raise InputError(f"{named} is given twice: give it once, with commas between values")
        return super().parse_args(ctx, args)


def name_options(message: str, options: Mapping[str, str], flags: Container[str] = ()) -> str:
    """Return a message in which arguments of functions, such as k=3, are named as options: --k 3.

    Args:
        message: of an error.
        options: the option of each argument.
        flags: the arguments whose option has no value, so that exhaustive=True is --exhaustive.
    """
    names = "|".join(map(re.escape, options))
    return re.sub(
        rf"(?<![\w.:,/='\"-])({names})=(?:(True)\b|(?=\S))",
        lambda found: options[found[1]] + ("" if found[1] in flags and found[2] else f" {found[2] or ''}"),
        message,
    )


def _hide_types(parameters: "list[_click.Parameter]") -> "list[_click.Parameter]":
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


def _rank(parameter: "_click.Parameter") -> tuple[int, int]:
    """Return where a parameter stands: its panel, and its place among those in none."""
    panel = getattr(parameter, "rich_help_panel", None)
    if panel is not None:
        return 1 + (HELP_PANELS.index(panel) if panel in HELP_PANELS else len(HELP_PANELS)), 0
    return 0, FIRST.index(parameter.name) if parameter.name in FIRST else len(FIRST)


class Commands(TyperGroup):
    """The commands of ckcv, each imported when it runs or shows its help, but not to list them all."""

    chosen: "_click.Command | None" = None

    def get_params(self, ctx: "_click.Context") -> "list[_click.Parameter]":
        """Return the options of ckcv itself; see ``TyperGroup``."""
        return _hide_types(super().get_params(ctx))

    def resolve_command(
        self, ctx: "_click.Context", args: list[str]
    ) -> "tuple[str | None, _click.Command | None, list[str]]":
        """Return the command that is named, imported, and its arguments; see ``TyperGroup``."""
        if gone := explain_removed(f"ckcv {args[0]}"):
            raise InputError(gone)
        name, _, rest = super().resolve_command(ctx, args)
        self.chosen = load_command(name) if name else None
        return name, self.chosen, rest

    def invoke(self, ctx: "_click.Context") -> object:
        """Run the command that is named; arguments of functions are options in the message of an error."""
        try:
            return super().invoke(ctx)
        except (InputError, StoreError) as error:
            listed = self.chosen.params if self.chosen is not None else []
            flags = {p.name for p in listed if getattr(p, "is_flag", False)}
            options = {name: p.opts[0] for p in listed for name in (p.name, p.opts[0].strip("-"))}
            error.args = (name_options(str(error), options, flags),)
            raise


app = typer.Typer(
    name="ckcv",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""Model selection with a certificate.

Selects the hyperparameters of a classifier (C and gamma of an SVM) and the number of folds k together, by
minimising an upper bound on the error. The result is F*, an ensemble of classifiers, and a certificate: what
is proven about its error on new rows. Everything is kept in a run folder.

    ckcv plan patients.csv --target outcome
    ckcv run patients.csv --target outcome
    ckcv predict patients_run new.csv
    ckcv watch patients_run labels.csv
    ckcv verify patients_run
    ckcv judge test.csv --label outcome --prediction answer
    ckcv compare patients_run patients_run_2 --rows judged.csv
    ckcv report patients_run
    ckcv evaluate patients.csv --target outcome --learner forest

Run any command with --help to see the options used most, and if there are more, with --help-all to see all.
Exit code 0 means done, and 2 bad input; the command-line reference has the others.
""",
)


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Print the version and exit."),
    trusted: list[str] | None = typer.Option(
        None,
        "--trust",
        metavar="PACKAGE",
        help="Package, such as xgboost, that a run folder may import its learner from: this runs the "
        "package's code. Without it, only scikit-learn is trusted. May be repeated.",
    ),
) -> None:
    """Handle the options of ckcv itself."""
    if trusted:
        from ckcv_ray.learners.sklearn.spec import trust

        for package in trusted:
            trust(package)
    if show:
        print(f"ckcv_ray {VERSION}")
        raise typer.Exit


def load_command(name: str) -> "_click.Command":
    """Import a command and return it with its options."""
    from ckcv_ray.learners.base import register_installed

    say(*map(plain, register_installed()))
    (module,) = (commands[name] for commands in PANELS.values() if name in commands)
    command = getattr(import_module(f"ckcv_ray.cli.{module}"), "list_folders" if name == "list" else name)
    alone = typer.Typer(add_completion=False, rich_markup_mode=app.rich_markup_mode)
    alone.command(name, cls=Command)(contain_command()(command))
    return typer.main.get_command(alone)


for _panel, _commands in PANELS.items():
    for _name in _commands:  # listed here; ``Commands`` replaces each by the command
        app.command(_name, help=COMMANDS[_name], rich_help_panel=_panel)(lambda: None)


def main() -> None:
    """Run the ``ckcv`` command; this package's errors become one message and an exit code."""
    # Streams that are closed (``>&-``) are opened, so that no file takes their place. What is written to
    # standard output then fails, as on a full disk; messages are dropped.
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            os.dup2(opened, number)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", closefd=False))
    stream, shown, thresholds = sys.stderr, warnings.showwarning, gc.get_threshold()
    gc.set_threshold(YOUNG_OBJECTS, *thresholds[1:])
    sys.stderr = output.Messages(stream)
    warnings.showwarning = output.show_warning
    try:
        with output.exit_by_code():
            app(prog_name="ckcv")
    finally:
        sys.stderr, warnings.showwarning = stream, shown
        gc.set_threshold(*thresholds)


if __name__ == "__main__":
    main()
