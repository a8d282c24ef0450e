"""Checks of what public functions are given (kinds, numbers, lists, paths, arrays) and of what JSON holds.

Every check of an argument raises an InputError that says what was got under which name, and what is allowed.
"""

import json
import math
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import islice
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.errors import CKCVError, InputError, cut

T = TypeVar("T")
STRICT = {"strict": True, "allow_inf_nan": False}
MOST_SHOWN = 200
MOST_LISTED = 100_000
MOST_GRID = 10_000
MOST = 2**31 - 1
ROOM = "x" * 64  # as long as any name inside a run folder


def quoted(value: object) -> str:
    """A value as a message shows it; Python does not write numbers of more than 4300 digits."""
    try:
        text = repr(value)
    except ValueError:
        return "<a number of thousands of digits>"
    return cut(text, MOST_SHOWN)


def expect(name: str, value: object, kind: Any, what: str) -> None:
    """Raise InputError unless the value is of the kind: a class, or a union of some; ``what`` in words."""
    if not isinstance(value, kind):
        raise InputError(f"{name}={quoted(value)} is not {what}")


def number(name: str, value: Any) -> float:
    """A real number as a float; a truth value is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name}={quoted(value)} is not a number")
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{name}={quoted(value)} is too large: values are finite") from None


def integer(name: str, value: Any, least: int, most: int) -> int:
    """A whole number in least .. most; a truth value is none."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"{name}={quoted(value)} is not a whole number")
    found = int(value)
    if found < least:
        raise InputError(f"{name}={quoted(found)} is below {least}, the least allowed")
    if found > most:
        raise InputError(f"{name}={quoted(found)} is above {most}, the most allowed")
    return found


def truth(name: str, value: Any) -> bool:
    """A truth value."""
    if not isinstance(value, bool):
        raise InputError(f"{name}={quoted(value)} is not true or false")
    return value


def check_choice(name: str, value: object, allowed: Iterable[str]) -> str:
    """One of the names allowed."""
    names = tuple(allowed)
    if not (isinstance(value, str) and value in names):
        raise InputError(f"{name}={quoted(value)} is not known: choose from {', '.join(names)}")
    return value


def sequence(
    name: str, values: Any, least: int, most: int = MOST_LISTED, kind: str = "numbers"
) -> tuple[Any, ...]:
    """A list of least .. most values as a tuple; text and mappings are none."""
    single = isinstance(values, str | bytes | bytearray | Mapping) or getattr(values, "ndim", 1) == 0
    if single or not isinstance(values, Iterable):
        raise InputError(f"{name}={quoted(values)} is not a sequence: give a list of {kind}")
    listed = tuple(islice(values, most + 1))
    check_count(name, len(listed), most)
    if len(listed) < least:
        raise InputError(f"{name} is empty: give at least one value")
    return listed


def check_count(name: str, count: int, most: int) -> None:
    """Raise InputError where there are more than ``most`` values."""
    if count > most:
        raise InputError(f"{name} has more than {most:,} values, the most allowed")


def grid(name: str, values: Any) -> tuple[float, ...]:
    """Positive numbers: sorted, unique, rounded to 12 significant digits. Text is read by ``parse_grid``."""
    if isinstance(values, str):
        values = parse_grid(values, name)
    if isinstance(values, Real) and not isinstance(values, bool):
        values = (values,)
    numbers = [number(name, value) for value in sequence(name, values, least=1, most=MOST_GRID)]
    for found in numbers:
        if not (math.isfinite(found) and found > 0):
            raise InputError(f"{name}={found!r} is not allowed: values are positive and finite")
    return tuple(sorted({float(f"{found:.12g}") for found in numbers}))


def folds(name: str, values: Any, least: int) -> tuple[int, ...]:
    """Numbers of folds: sorted and unique. Text is read by ``parse_folds``."""
    if isinstance(values, str):
        values = parse_folds(values, name) or ()
    if isinstance(values, Real) and not isinstance(values, bool):
        values = (values,)
    return tuple(sorted({integer(name, n, least=0, most=MOST) for n in sequence(name, values, least)}))


def parse_grid(text: str, name: str) -> tuple[float, ...]:
    """Numbers from ``0.1,1,10``, or ``log:a:b:count`` for powers of ten evenly spaced in the exponent.

    Raises:
        InputError: the text is neither.
    """
    form = f"{name}={text!r}: expected numbers like 0.1,1,10 or log:-2:4:13 (13 values from 10^-2 to 10^4)"
    try:
        check_count(name, text.count(",") + 1, MOST_GRID)
        if not text.startswith("log:"):
            return tuple(float(part) for part in text.split(","))
        low, high, count = text[4:].split(":")
        first, last, steps = float(low), float(high), int(count)
        if steps < 1 or (steps == 1 and first != last) or steps > MOST_GRID:
            raise InputError(form)
        return tuple(10.0 ** (first + (last - first) * i / max(1, steps - 1)) for i in range(steps))
    except InputError:
        raise
    except (ValueError, OverflowError):
        raise InputError(form) from None


def parse_folds(text: str, name: str) -> tuple[int, ...] | None:
    """Whole numbers from ``3,4,5`` or a range ``3:20``; ``3:n`` gives None, for all of them.

    Raises:
        InputError: the text is neither.
    """
    every = ", or 3:n for all" if name == "k" else ""
    form = f"{name}={text!r}: expected whole numbers like 3,4,5,10, or a range like 3:20{every}"
    if text == "3:n" and name == "k":
        return None
    check_count(name, text.count(",") + 1, MOST_LISTED)
    try:
        if ":" not in text:
            return tuple(int(part) for part in text.split(","))
        first, last = (int(part) for part in text.split(":"))
    except ValueError:
        raise InputError(form) from None
    if not 0 <= first <= last or last - first >= MOST_LISTED:
        raise InputError(form)
    return tuple(range(first, last + 1))


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
