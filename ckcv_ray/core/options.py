"""Options: the fields of a study's parts, each declared once with its check, its default and its help.

The command line and TOML files take their options from these declarations.
"""

from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, TypeVar

Part = TypeVar("Part")


@dataclass(frozen=True)
class Option:
    """What is known of a field beside its default.

    Attributes:
        check: takes the field's name and a value, text included where the value is a list; returns it in its
            canonical form, or raises InputError.
        help: a sentence for the command line.
        kind: type of one value on the command line: str (also for lists), int, float or bool.
        shown: the default as the command line shows it.
        panel: heading it stands under.
    """

    check: Callable[[str, Any], Any]
    help: str
    kind: type = str
    shown: str | None = None
    panel: str = "Study"


def option(default: Any, option: Option) -> Any:
    """Declare a field of a frozen dataclass as an option."""
    return field(default=default, metadata={"option": option})


def options(part: Any) -> dict[str, Field[Any]]:
    """Return the fields of a part (a class or an object) that are options, by name."""
    return {f.name: f for f in fields(part) if "option" in f.metadata}


def check_options(part: Any) -> None:
    """Bring every option of a frozen part into its canonical form.

    Raises:
        InputError: one is of the wrong type or outside its range.
    """
    for name, declared in options(part).items():
        object.__setattr__(part, name, declared.metadata["option"].check(name, getattr(part, name)))


def values(part: Any) -> dict[str, Any]:
    """Return the options of a part with their values."""
    return {name: getattr(part, name) for name in options(part)}


def described(part: Any) -> dict[str, Any]:
    """Return a part as JSON values: its name and its options."""
    listed = {name: list(v) if isinstance(v, tuple) else v for name, v in values(part).items()}
    return {"name": part.name, **listed}


def thinned(part: Part, most: int) -> Part:
    """Return a part with at most ``most`` values in each list of its options, evenly spaced."""
    lists = {name: value for name, value in values(part).items() if isinstance(value, tuple)}
    return replace(part, **{name: _spaced(value, most) for name, value in lists.items()})  # type: ignore[type-var]


def _spaced(values: tuple[Any, ...], most: int) -> tuple[Any, ...]:
    """At most so many of the values, the first and the last among them."""
    if len(values) <= most:
        return values
    return tuple(values[i * (len(values) - 1) // (most - 1)] for i in range(most))
