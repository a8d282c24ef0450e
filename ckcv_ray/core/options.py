"""Options: the fields of a study's parts, each declared once with its check, its default and its help.

The options of the command line and of TOML files come from these declarations. Functions in higher layers
that render results and plans, and are imported only when needed, are listed here by name (``SHOWN``).
"""

from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields, is_dataclass
from importlib import import_module
from typing import Any, ClassVar, Generic, TypeVar, cast

USUAL_PANEL = "Study"
T = TypeVar("T")


@dataclass(frozen=True)
class Option(Generic[T]):
    """The declaration of a field, apart from its default.

    Attributes:
        check: takes the field's name and a value (for lists also text); returns the value in canonical form,
            or raises InputError.
        help: help text for the command line.
        kind: type of one value on the command line: str (also for lists), int, float or bool.
        default_text: the default as shown on the command line; None for the field's own.
        single_default: the same for a learner that is not selected from several settings, if it differs.
        panel: heading under which ``--help`` lists the option, by default that of its part; None for the most
            used options.
        may_grow: whether the value may be raised in an existing run folder: it is not part of the run_id.
        inside: the option inside whose value this one is written, as in "budget:keep=0.5"; "" if on its own.
    """

    check: Callable[[str, Any], T]
    help: str
    kind: type = str
    default_text: str | None = None
    panel: str | None = USUAL_PANEL
    may_grow: bool = False
    single_default: str | None = None
    inside: str = ""


def option(
    default: object, declared: Option[T] | Callable[[str, object], T], *rest: object, **more: object
) -> T:
    """Declare a field of a frozen dataclass as an option, shared with others or made as ``Option`` is."""
    made = declared if isinstance(declared, Option) else Option(declared, *rest, **more)  # type: ignore[arg-type]
    return cast("T", field(default=default, metadata={"option": made}))


def options(part: object) -> dict[str, Field[object]]:
    """Return the fields of a part (a class or an object) that are options, by name."""
    return {f.name: f for f in fields(part) if "option" in f.metadata}  # type: ignore[arg-type]


def list_names(part: object) -> list[str]:
    """Return the names under which the options of a part are given, each once."""
    return list(dict.fromkeys(f.metadata["option"].inside or name for name, f in options(part).items()))


def list_inside(part: object, whole: str) -> dict[str, Field[object]]:
    """Return the fields of a part that are written inside the value of an option, by name."""
    return {name: f for name, f in options(part).items() if f.metadata["option"].inside == whole}


def check_options(part: object) -> None:
    """Convert every option of a frozen part to its canonical form; None stays where it is the default.

    Raises:
        InputError: an option has the wrong type or is out of range.
    """
    for name, declared in options(part).items():
        if (value := getattr(part, name)) is not None or declared.default is not None:
            object.__setattr__(part, name, declared.metadata["option"].check(name, value))


class HasOptions:
    """The base of whatever has options, which are checked when it is created."""

    panel: ClassVar[str] = USUAL_PANEL  # of those of its options that name no other

    def __post_init__(self) -> None:
        check_options(self)


def get_values(part: object, fixed: bool = False) -> dict[str, object]:
    """Return the values of a part's options, by name; ``fixed`` leaves out those that may grow."""
    return {
        name: getattr(part, name)
        for name, declared in options(part).items()
        if not (fixed and declared.metadata["option"].may_grow)
    }


def options_to_json(part: object, fixed: bool) -> dict[str, object]:
    """Return a part's options as JSON values; ``fixed`` leaves out those that may grow."""
    return {name: value_to_json(value) for name, value in get_values(part, fixed).items()}


def value_to_json(value: object, fixed: bool = False) -> object:
    """Return a value as JSON: a tuple as a list, a part as its name and its options."""
    if isinstance(value, tuple):
        return [value_to_json(item) for item in value]
    if is_dataclass(value) and hasattr(value, "name"):
        return {"name": value.name, **options_to_json(value, fixed)}
    return value


def thin_values(values: tuple[T, ...], most: int) -> tuple[T, ...]:
    """Return at most ``most`` of the values, evenly spaced, including the first and the last."""
    if len(values) <= most:
        return values
    return tuple(values[i * (len(values) - 1) // max(1, most - 1)] for i in range(most))


SHOWN = {
    "alarm": "runs.later.find_alarm",
    "calibration": "runs.judged.calibrate",
    "card": "reports.render.make_card",
    "cautions": "reports.facts.list_cautions",
    "plan": "reports.render.make_plan_card",
    "plot": "reports.figures.Plots",
    "scores": "reports.figures.plot_scores",
    "summary": "reports.render.summarize",
}


def present(what: str, *shown: Any) -> Any:
    """Return what one of the functions in ``SHOWN`` makes."""
    module, _, function = SHOWN[what].rpartition(".")
    return getattr(import_module(f"ckcv_ray.{module}"), function)(*shown)
