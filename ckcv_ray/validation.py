"""Checks of what public functions are given (kinds, numbers, paths, arrays) and of what JSON files hold.

Every check of an argument raises an InputError that says what was got under which name, and what is allowed.
"""

import json
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.errors import CKCVError, InputError, cut

T = TypeVar("T")
STRICT = {"strict": True, "allow_inf_nan": False}
MOST_SHOWN = 200
ROOM = "x" * 64  # as long as any name inside a run folder


def told(value: object) -> str:
    """A value as a message shows it; Python does not write numbers of more than 4300 digits."""
    try:
        text = repr(value)
    except ValueError:
        return "<a number of thousands of digits>"
    return cut(text, MOST_SHOWN)


def expect(name: str, value: object, kind: Any, what: str) -> None:
    """Raise InputError unless the value is of the kind: a class, or a union of some; ``what`` in words."""
    if not isinstance(value, kind):
        raise InputError(f"{name}={told(value)} is not {what}")


def number(name: str, value: Any) -> float:
    """A real number as a float; a truth value is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name}={told(value)} is not a number")
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{name}={told(value)} is too large: values are finite") from None


def whole(name: str, value: Any, least: int, most: int) -> int:
    """A whole number in least .. most; a truth value is none."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"{name}={told(value)} is not a whole number")
    found = int(value)
    if found < least:
        raise InputError(f"{name}={told(found)} is below {least}, the least allowed")
    if found > most:
        raise InputError(f"{name}={told(found)} is above {most}, the most allowed")
    return found


def as_path(name: str, value: Any, error: type[CKCVError] = InputError) -> Path:
    """A path from text or a Path, whether or not anything is there.

    Raises:
        InputError: it is neither.
        error: no file can have that name: it is empty, too long, not in UTF-8, or holds a null character.
    """
    expect(name, value, str | Path, "a path: give text or a pathlib.Path")
    try:
        if value == "":
            raise ValueError("it is empty")
        place = Path(value).absolute() / ROOM
        str(place).encode()
        place.lstat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except UnicodeEncodeError:
        raise error(
            f"{name}={str(value)!r}: no file can have this name here: the path is not in UTF-8: rename it, "
            "or name another"
        ) from None
    except (OSError, ValueError) as reason:
        told_by_system = getattr(reason, "strerror", None) or reason
        raise error(f"{name}={str(value)!r}: no file can have this name: {told_by_system}") from None
    return Path(value)


def as_array(name: str, values: Any) -> NDArray[Any]:
    """An array from whatever numpy takes for one, but none that would lose a mask or its shape."""
    if np.ma.isMaskedArray(values):
        raise InputError(f"{name} is a masked array: fill the masked values, or leave their rows out")
    if hasattr(values, "toarray"):
        raise InputError(f"{name} is a sparse matrix: give {name}.toarray()")
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{name} is not an array: {error}") from None


def read_as(kind: type[T], values: Any) -> T:
    """JSON values as a typed dict or a dataclass; nothing is converted but lists to tuples.

    Raises:
        ValueError: they are not of this type, or a number is not finite; the message names the first place.
    """
    from pydantic import ValidationError  # takes 40 ms, which workers need not pay

    try:
        (value,) = _adapter(kind).validate_json(json.dumps([values]))  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"][1:])) or "all of it"
        raise ValueError(f"{where}: {first['msg']}") from None
    result: T = value
    return result


@cache
def _adapter(kind: type) -> Any:
    """What checks values of this type; as the item of a tuple it hands its settings down to all within."""
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(tuple[kind], config=ConfigDict(**STRICT))  # type: ignore[valid-type, typeddict-item]
