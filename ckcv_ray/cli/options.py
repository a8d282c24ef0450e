"""How commands declare options, and options that several of them share."""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from ckcv_ray.engine.address import reach
from ckcv_ray.engine.backend import choose_backend
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.study import Execution
from ckcv_ray.tables.readers.objects import is_address, parse_address
from ckcv_ray.tables.target import is_number
from ckcv_ray.validation import as_path

MOST_FOLDERS = 999  # named after one table
IN_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"  # set by Ray in the processes of a job

Given = TypeVar("Given")


def make_option(
    text: str,
    default: str | None = None,
    panel: str | None = None,
    check: Callable[[Any], Any] | None = None,
    hidden: bool = False,
) -> Any:
    """Declare an option whose default is set elsewhere and shown as ``default``; ``check`` refuses values."""
    shown = f"{text} [default: {default}]" if default else text
    return typer.Option(help=shown, show_default=False, rich_help_panel=panel, callback=check, hidden=hidden)


def flag(name: str, text: str, panel: str | None = None) -> Any:
    """Declare an option without a value."""
    return typer.Option(name, help=text, rich_help_panel=panel)


JsonFlag = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
DetailsFlag = Annotated[
    bool, typer.Option("--details", help="Print every figure and claim after what may be quoted.")
]


def normalize_folder(value: str | None) -> str | None:
    """Return the path of a run folder in its shortest form; an address stays as it is."""
    return value if value is None or is_address(value) else str(Path(value))


Folder = Annotated[
    str,  # and no Path, which would make s3:/x of s3://x
    typer.Argument(
        metavar="FOLDER",
        help="Run folder, such as runs/patients or s3://bucket/runs/patients.",
        show_default=False,
        callback=normalize_folder,
    ),
]
OutFolder = Annotated[
    str | None,
    make_option(
        "Run folder to write, or s3://bucket/x.",
        "named after the table",
        check=lambda out: out if out is None else check_run_place(out),
    ),
]


def with_options(
    **makers: Callable[..., Any],
) -> Callable[[Callable[..., Given]], Callable[..., Given]]:
    """Replace parameters of a command by the parameters of functions that compute them.

    Args:
        makers: by name of the command's parameter, the function whose result it takes. They are called in
            this order: what takes long comes last, so that a mistake elsewhere is refused before.
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


def make_execution(
    backend: Annotated[
        str,
        make_option("serial, ray, or auto (by estimated time).", "auto", "Execution"),
    ] = "auto",
    workers: Annotated[
        int | None, make_option("Number of worker processes.", "every CPU", "Execution")
    ] = None,
    address: Annotated[
        str | None,
        make_option(
            "Ray cluster: host:port, or auto.",
            "RAY_ADDRESS or local",
            "Execution",
        ),
    ] = None,
    fit_timeout: Annotated[
        float | None,
        make_option(
            "Seconds that one fit may take, such as 60, on Ray; a longer one has failed.",
            "no limit",
            "Execution",
        ),
    ] = None,
) -> Execution:
    """Make an execution from options.

    Raises:
        InputError: an option is out of its range, does not apply to the backend, or needs Ray, which is not
            installed; or no cluster answers at the address.
    """
    execution = Execution(backend, workers, address, fit_timeout)
    choose_backend(execution, seconds=0.0)  # refuses what needs Ray before anything is read
    if address is not None:
        reach(address)
    return execution


def complete(arguments: Sequence[str], option: str, value: str) -> list[str]:
    """Add the value of an option that is given without one."""
    completed: list[str] = []
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        completed.append(argument)
        if argument == option and not is_number(following):
            completed.append(value)
    return completed


def parse_workers(text: str) -> tuple[int, ...]:
    """Parse numbers of workers from a,b,c.

    Raises:
        InputError: one is not an integer of at least 1.
    """
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and 0 < int(part[:9]) == int(part) for part in parts):
        raise InputError(f"workers={text!r}: expected integers from 1, such as 1,8,64")
    return tuple(map(int, parts))


def choose_folder(source: str, ending: str, run_id: str) -> str:
    """Return a folder in the working directory for a run, named after its table.

    Args:
        source: the table: patients.csv gives patients_run.
        ending: "run" or "scores".
        run_id: of the run: a folder that holds it is gone on with; with another in it, the next number is
            taken, as in patients_run_2.

    Raises:
        InputError: it is a Ray job, or there are more than ``MOST_FOLDERS``.
    """
    stem = re.sub(r"\W+", "_", Path(source).name.partition(".")[0]).strip("_") or "table"
    for number in range(1, MOST_FOLDERS + 1):
        folder = check_out(f"{stem}_{ending}{'' if number == 1 else f'_{number}'}")
        if not Path(folder).exists() or _holds(folder, run_id):
            return folder
    raise InputError(f"{stem}_{ending} and {MOST_FOLDERS - 1} more are taken: name a folder with --out")


def _holds(folder: str, run_id: str) -> bool:
    from ckcv_ray.storage.folder import RunFolder  # which takes long to import

    with suppress(StoreError):
        identity = RunFolder(folder).identity()
        return identity is not None and identity.run_id == run_id
    return False


def check_run_place(out: str) -> str:
    """Check the path or address of a run folder, and that a run can be written to a path.

    A store is not asked before the study and the table are known to be good.

    Raises:
        InputError: it is neither, or cannot be written.
        StoreError: there is something else.
    """
    from ckcv_ray.storage.folder import RunFolder  # which takes long to import

    path = check_out(out)
    if not is_address(path):
        RunFolder(path).check_place()
    return path


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
