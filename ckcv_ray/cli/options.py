"""How commands declare options, and options that several commands share.

Options of studies, of either kind, are made from the fields of their parts (``core.options``).
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import Field
from functools import wraps
from inspect import Parameter, Signature, signature
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from ckcv_ray.core.measures import Kind
from ckcv_ray.core.options import USUAL_PANEL, options
from ckcv_ray.engine.backend import choose_backend, reach
from ckcv_ray.errors import InputError, Named, StoreError, as_path, boolean
from ckcv_ray.learners.base import ANY
from ckcv_ray.storage.files import STUDY, open_files
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study.study import AnyStudy, Execution, Procedure, Study, list_parts, read_toml
from ckcv_ray.tables.objects import is_address, parse_address

IN_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"  # set by Ray in the processes of a job

Given = TypeVar("Given")
JsonFlag = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
DetailsFlag = Annotated[
    bool, typer.Option("--details", help="Print every figure and claim after what may be quoted.")
]
SLOT_HELP = {
    "learner": "{}, or any other of scikit-learn as module:Class. Several, as a,b, are compared; all: those "
    "that suit the table.",
    "resampling": "How rows are divided: complete (random splits for each k, as in the paper) or rotation "
    "(usual k-fold).",
    "criterion": "What is minimised: a bound on error, balanced, clipped (numbers) or "
    "cost:sick=10,healthy=1; or mean_error.",
    "search": "How candidates are compared: {}. A race finds the best of all; a budget says how many it has "
    "not excluded. Its rounds: budget:keep=0.5,survivors=8,least_splits=3.",
    "certify": "Where the proven bound comes from: paper (the run's own counts), or holdout (rows kept "
    "aside: half of up to 400 rows, else a third).",
}
SLOT_PANELS = {"resampling": USUAL_PANEL, "criterion": USUAL_PANEL, "search": "Search"}  # none: most used


def make_option(
    text: str,
    shown: str | None = None,
    panel: str | None = None,
    check: Callable[..., object] | None = None,
    value: object = None,
) -> Any:
    """Declare an option whose default value is shown as ``shown``; ``check`` refuses or reads values."""
    text = f"{text} [default: {shown}]" if shown else text
    return typer.Option(value, help=text, show_default=False, rich_help_panel=panel, callback=check)


def make_argument(name: str, text: str, check: Callable[[Given], Given]) -> object:
    """Declare an argument, with this name in ``--help``; ``check`` refuses values."""
    return typer.Argument(metavar=name, help=text, show_default=False, callback=check)


def make_flag(name: str, text: str, panel: str | None = None) -> bool:
    """Declare an option without a value."""
    flag: bool = typer.Option(False, name, help=text, rich_help_panel=panel)
    return flag


def normalize_folder(value: str | None) -> str | None:
    """Return the path of a run folder in its shortest form; an address stays as it is."""
    return value if value is None or is_address(value) else str(Path(value))


Folder = Annotated[
    str,  # not a Path, which would turn s3://x into s3:/x
    make_argument(
        "FOLDER", "Run folder, such as runs/patients or s3://bucket/runs/patients.", normalize_folder
    ),
]


def with_options(**makers: Callable[..., object]) -> Callable[[Callable[..., Given]], Callable[..., Given]]:
    """Replace parameters of a command by the parameters of functions that compute them.

    Args:
        makers: by name of the command's parameter, the function whose result it takes. They are called in
            this order: what takes long comes last, so that mistakes elsewhere are refused earlier.
    """

    def decorate(command: Callable[..., Given]) -> Callable[..., Given]:
        taken = {name: signature(make).parameters for name, make in makers.items()}

        @wraps(command)
        def wrapper(**given: Any) -> Given:
            computed = {
                name: make(**{parameter: given.pop(parameter) for parameter in taken[name]})
                for name, make in makers.items()
            }
            return command(**given, **computed)

        declared = signature(command).parameters
        parameters = [p for name in declared if name in makers for p in taken[name].values()]
        parameters += [p for name, p in declared.items() if name not in makers]
        parameters.sort(key=lambda p: p.default is not Parameter.empty)
        wrapper.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
        return wrapper

    return decorate


def choose_folder(source: str, ending: str, run_id: str) -> str:
    """Return a folder in the working directory for a run, named after its table.

    Args:
        source: the table: patients.csv gives patients_run.
        ending: "run" or "scores".
        run_id: that of the run: a folder that holds it is continued; if it holds another, the next number is
            taken, as in patients_run_2.

    Raises:
        InputError: it is a Ray job.
    """
    stem = re.sub(r"\W+", "_", Path(source).name.partition(".")[0]).strip("_") or "table"
    return number_folder(f"{stem}_{ending}", run_id)


def number_folder(name: str, run_id: str) -> str:
    """Return the first of x_run, x_run_2 and so on that is free, or holds this run; see ``choose_folder``."""
    folders = map(check_out, chain([name], (f"{name}_{number}" for number in count(2))))
    return next(one for one in folders if not open_files(one).exists() or find_run_id(one) == run_id)


def find_run_id(folder: str) -> str | None:
    """Return the identity of the run in a folder; None if there is none that can be read."""
    with suppress(StoreError):
        if (identity := RunFolder(folder).identity()) is not None:
            return identity.run_id
    return None


def check_out(out: str) -> str:
    """Check the path or address of a run folder, and return it in its shortest form.

    Raises:
        InputError: it is neither, or is relative in a Ray job, whose working directory is deleted.
    """
    if is_address(out):
        return str(parse_address("out", out))
    path = as_path("out", out)
    if path.parts and path.parts[0].endswith(":"):
        raise InputError(
            f"out={out!r}: expected a folder on a disk of this machine or mounted here, or an address such "
            "as s3://bucket/runs/x"
        )
    if IN_JOB in os.environ and not path.is_absolute():
        raise InputError(
            f"out={str(out)!r} is relative to the job's copy of the working directory, which is deleted: "
            "give an absolute path on the driver's node, or on a disk mounted there, or an address such as "
            "s3://bucket/runs/x"
        )
    return str(path)


def check_run_place(out: str | None) -> str | None:
    """Check the path or address of a run folder, and that a run can be written to a path.

    A store is not contacted before the study and the table are known to be valid.

    Raises:
        InputError: it is neither, or cannot be written.
        StoreError: there is something else.
    """
    if out is None:
        return None
    path = check_out(out)
    if not is_address(path) and not (files := RunFolder(path).files).exists(STUDY):
        files.check_writable()
    return path


OUT = make_option("Run folder to write, or s3://bucket/x.", "named after the table", check=check_run_place)


def list_offered(slot: str, kind: type[AnyStudy | Execution] = Study) -> dict[str, type[Named]]:
    """Return the parts that ``--help`` names; an estimator is chosen by its class, as in "module:Class".

    Learners of numbers only are named where a procedure is requested.
    """
    left_out = {Kind.REGRESSION} if slot == "learner" and kind is not Procedure else None
    parts = list_parts(slot).items()
    return {name: part for name, part in parts if name != ANY and getattr(part, "kinds", ()) != left_out}


def _parameters(kind: type[AnyStudy | Execution]) -> Iterator[Parameter]:
    """Yield a parameter for each choice of a part, each option of the parts, and each of the study."""
    offered = {slot: list_offered(slot, kind) for slot in getattr(kind, "slots", ())}
    for slot, choices in offered.items():
        if len(choices) > 1:
            text, default = SLOT_HELP[slot].format(", ".join(choices)), next(iter(choices))
            yield _parameter(slot, str, text, default, SLOT_PANELS.get(slot))
    parts = [part for choices in offered.values() for part in choices.values()]
    first: dict[str, tuple[str, Field[object]]] = {}
    for part in (*parts, kind):  # several learners may have an option
        panel = getattr(part, "panel", USUAL_PANEL)
        first |= {name: (panel, f) for name, f in options(part).items() if name not in first}
    for name, (panel, field) in first.items():
        option, own = field.metadata["option"], field.default
        shown: str | None = option.default_text
        if shown is None and own not in ((), "", None, False):
            shown = ",".join(map(str, own)) if isinstance(own, tuple) else str(own)
        if kind is Procedure and option.single_default is not None:  # it may select nothing
            shown = f"{option.single_default}; {shown} where one is selected"
        if not option.inside:
            where = panel if option.panel == USUAL_PANEL else option.panel
            yield _parameter(name, option.kind, option.help, shown, where)


def _parameter(
    name: str, kind: type, text: str, default: str | None, panel: str | None = "Study"
) -> Parameter:
    shown = make_option(text, default, panel)
    if kind is bool:
        shown.param_decls = (f"--{name.replace('_', '-')}",)  # without --no-name
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=shown, annotation=kind | None)


def _make_execution(**given: Any) -> Execution:
    """Make an execution from options.

    Raises:
        InputError: an option is out of its range, does not apply to the backend, or needs Ray, which is not
            installed; or no cluster answers at the address.
    """
    execution = Execution(**given)
    choose_backend(execution, seconds=0.0)  # refuses what needs Ray before anything is read
    if execution.address is not None:
        reach(execution.address)
    return execution


def _make_study(study: Path | None = None, **given: Any) -> Study:
    """Make a study from options, which take precedence over those of a TOML file.

    Raises:
        InputError: an option is unknown, out of its range, or does not apply to the chosen parts.
    """
    in_file = {} if study is None else read_toml(study)
    try:
        return _choose_defaults(in_file | given)
    except InputError as error:
        try:
            _choose_defaults(in_file)
        except InputError as of_file:
            if str(of_file) == str(error):
                raise InputError(f"{str(study)!r}: {error}") from None
        raise


def _choose_defaults(values: Mapping[str, Any]) -> Study:
    make = Study.paper if boolean("paper", values.get("paper", False)) else Study.of
    return make(**{name: value for name, value in values.items() if name != "paper"})


def _take(
    make: Callable[..., Given], kind: type[AnyStudy | Execution], *more: Parameter
) -> Callable[..., Given]:
    """Return a function of the options of a kind, which ``with_options`` finds; those not given are None."""

    def wrapper(**given: Any) -> Given:
        return make(**{name: value for name, value in given.items() if value is not None})

    wrapper.__signature__ = Signature([*_parameters(kind), *more])  # type: ignore[attr-defined]
    return wrapper


make_execution, make_procedure = _take(_make_execution, Execution), _take(Procedure.of, Procedure)
make_study = _take(
    _make_study,
    Study,
    _parameter("study", Path, "TOML file with study options; those given here take precedence.", None),
    _parameter("paper", bool, "The paper's defaults: every k, and all rows.", None),
)
