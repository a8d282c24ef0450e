"""Checks of the arguments of public functions (types, numbers, lists, paths, arrays) and of JSON values.

Kinds of arrays, and how values are compared, are defined here too.

Every check of an argument raises an InputError that gives the argument's name, its value and what is allowed.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache
from itertools import islice
from numbers import Integral, Real
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.errors import AbsentError, CKCVError, InputError, cut

T = TypeVar("T")
OPTIONAL = {"optional": True}  # a field that is absent from a file where it has its default
STRICT = {"strict": True, "allow_inf_nan": False}
MAX_QUOTED = 200
MAX_LISTED = 100_000
MAX_GRID = 10_000
MOST = 2**31 - 1
SAMPLE_NAME = "x" * 64  # as long as any name inside a run folder

# kinds of arrays, by what they hold; shapes are given where they are used
Values = NDArray[np.float64]
Rows = NDArray[np.float64]  # X [rows, columns]
Index = NDArray[np.intp]  # row numbers, or other positions
Mask = NDArray[np.bool_]
Classes = NDArray[np.int32]  # class numbers; -1 for an undecided model
Counts = NDArray[np.integer]
Numbers = NDArray[np.number]
Label = str | int | float | bool  # of a class, as in a table
ONE = 1 << 32  # a loss of 1: losses are integers, whose sums are exact in any order
ROUNDING = 1e-9  # see ``agree``: other processors and versions round differently


class Limits(NamedTuple):
    """The two ends of an interval; nan where unknown."""

    low: float
    high: float


def quote(value: object) -> str:
    """Format a value for a message."""
    try:
        return cut(repr(value), MAX_QUOTED)
    except ValueError:  # Python does not write integers of more than 4300 digits
        return "<a number of thousands of digits>"


def expect(name: str, value: object, kind: type | UnionType, description: str) -> None:
    """Raise InputError unless the value is a ``kind`` (a class or a union), in words ``description``."""
    if not isinstance(value, kind):
        raise InputError(f"{name}={quote(value)} is not {description}")


def number(name: str, value: object) -> float:
    """Return a real number as a float; booleans are refused."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name}={quote(value)} is not a number")
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{name}={quote(value)} is too large: values must be finite") from None


def proportion(name: str, value: object) -> float:
    """Return a number from 0 to below 1."""
    if not 0.0 <= (result := number(name, value)) < 1.0:
        raise InputError(f"{name}={quote(value)} is not a share: expected a number from 0 to below 1")
    return result


def inner_share(name: str, value: object) -> float:
    """Return a number in (0, 1)."""
    if not 0.0 < (result := number(name, value)) < 1.0:
        raise InputError(f"{name}={quote(value)} is outside (0, 1): give a share between these, such as 0.1")
    return result


def integer(name: str, value: object, least: int, most: int) -> int:
    """Return an integer in least .. most; booleans are refused."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"{name}={quote(value)} is not a whole number")
    result = int(value)
    if result < least:
        raise InputError(f"{name}={quote(result)} is below {least}, the minimum")
    if result > most:
        raise InputError(f"{name}={quote(result)} is above {most}, the maximum")
    return result


def text(name: str, value: object, what: str = "the name of a column") -> str:
    """Return text."""
    expect(name, value, str, what)
    return str(value)


def boolean(name: str, value: object) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool):
        raise InputError(f"{name}={quote(value)} is not true or false")
    return value


def check_choice(name: str, value: object, allowed: Iterable[str]) -> str:
    """Return one of the allowed names."""
    names = tuple(allowed)
    if not (isinstance(value, str) and value in names):
        raise AbsentError(
            f"{name}={quote(value)} is not known: choose from {', '.join(names)}{suggest(value, names)}"
        )
    return value


def suggest(value: object, names: Iterable[str], show: Callable[[str], str] = str) -> str:
    """Return the end of a message that suggests the name nearest to a value; empty if none is near.

    Args:
        value: what was given.
        names: what could have been meant; case is ignored.
        show: formats the name; ``quote`` for names that are data.
    """
    if not isinstance(value, str):
        return ""
    folded = {name.casefold(): name for name in reversed(tuple(names))}
    near = get_close_matches(value.casefold(), folded, n=1)
    return f"; did you mean {show(folded[near[0]])}?" if near else ""


def sequence(
    name: str, values: object, least: int, most: int = MAX_LISTED, kind: str = "numbers"
) -> tuple[Any, ...]:
    """Return a list of least .. most values as a tuple; text and mappings are refused."""
    single = isinstance(values, str | bytes | bytearray | Mapping) or getattr(values, "ndim", 1) == 0
    if single or not isinstance(values, Iterable):
        raise InputError(f"{name}={quote(values)} is not a sequence: give a list of {kind}")
    listed = tuple(islice(values, most + 1))
    check_count(name, len(listed), most)
    if len(listed) < least:
        raise InputError(f"{name} is empty: give at least one value")
    return listed


def check_count(name: str, count: int, most: int) -> None:
    """Raise InputError if there are more than ``most`` values."""
    if count > most:
        raise InputError(f"{name} has more than {most:,} values, the maximum")


def grid(name: str, values: object) -> tuple[float, ...]:
    """Return positive numbers, sorted, unique, to 12 significant digits; ``parse_grid`` reads text."""
    if isinstance(values, str):
        values = parse_grid(values, name)
    if isinstance(values, Real) and not isinstance(values, bool):
        values = (values,)
    numbers = [number(name, value) for value in sequence(name, values, least=1, most=MAX_GRID)]
    for value in numbers:
        if not (math.isfinite(value) and value > 0):
            raise InputError(f"{name}={value!r} is not allowed: values must be positive and finite")
    return tuple(sorted({float(f"{value:.12g}") for value in numbers}))


def folds(name: str, values: object, least: int) -> tuple[int, ...]:
    """Return numbers of folds, sorted and unique; ``parse_folds`` reads text."""
    if isinstance(values, str):
        values = parse_folds(values, name)
    if isinstance(values, Real) and not isinstance(values, bool):
        values = (values,)
    return tuple(sorted({integer(name, n, least=0, most=MOST) for n in sequence(name, values, least)}))


def parse_grid(text: str, name: str) -> tuple[float, ...]:
    """Read numbers from ``0.1,1,10``, or ``log:a:b:count``: powers of ten with evenly spaced exponents.

    Raises:
        InputError: the text is neither.
    """
    form = f"{name}={text!r}: expected numbers like 0.1,1,10 or log:-2:4:13 (13 values from 10^-2 to 10^4)"
    check_count(name, text.count(",") + 1, MAX_GRID)
    try:
        if not text.startswith("log:"):
            return tuple(float(part) for part in text.split(","))
        low, high, count = text[4:].split(":")
        first, last, steps = float(low), float(high), int(count)
        if steps < 1 or (steps == 1 and first != last) or steps > MAX_GRID:
            raise ValueError
        return tuple(10.0 ** (first + (last - first) * i / max(1, steps - 1)) for i in range(steps))
    except (ValueError, OverflowError):
        raise InputError(form) from None


def parse_folds(text: str, name: str) -> tuple[int, ...]:
    """Read integers from ``3,4,5`` or a range ``3:20``.

    Raises:
        InputError: the text is neither.
    """
    every = ", or 3:n for all" if name == "k" else ""
    form = f"{name}={text!r}: expected whole numbers like 3,4,5,10, or a range like 3:20{every}"
    check_count(name, text.count(",") + 1, MAX_LISTED)
    try:
        if ":" not in text:
            return tuple(int(part) for part in text.split(","))
        first, last = (int(part) for part in text.split(":"))
    except ValueError:
        raise InputError(form) from None
    if not 0 <= first <= last or last - first >= MAX_LISTED:
        raise InputError(form)
    return tuple(range(first, last + 1))


def parse_seconds(name: str, text: str) -> float:
    """Read a time such as 90s, 10m or 1.5h, in seconds.

    Raises:
        InputError: it is not a time, or not positive.
    """
    number_text, unit = text[:-1], text[-1:]
    try:
        seconds = float(number_text) * {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}[unit]
    except (KeyError, ValueError):
        raise InputError(f"{name}={quote(text)}: expected a time such as 90s, 10m, 2h or 1d") from None
    if not 0.0 < seconds < math.inf:
        raise InputError(f"{name}={quote(text)} is not a positive time: give one such as 10m")
    return seconds


def as_path(name: str, value: object, error: type[CKCVError] = InputError) -> Path:
    """Return a path from text or a Path, whether or not it exists.

    Raises:
        InputError: the value is neither.
        error: no file can have this name: it is empty, too long, not UTF-8, or has a null character.
    """
    expect(name, value, str | Path, "a path: give text or a pathlib.Path")
    assert isinstance(value, str | Path)
    try:
        if value == "":
            raise ValueError("it is empty")
        path = Path(value).absolute() / SAMPLE_NAME
        str(path).encode()
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except (OSError, ValueError) as reason:
        message = getattr(reason, "strerror", None) or reason
        raise error(f"{name}={str(value)!r}: no file can have this name: {message}") from None
    return Path(value)


def as_array(name: str, values: object) -> NDArray[Any]:
    """Convert anything numpy accepts to an array, unless that would lose a mask or the shape."""
    if np.ma.isMaskedArray(values):
        raise InputError(f"{name} is a masked array: fill the masked values, or leave their rows out")
    if hasattr(values, "toarray"):
        raise InputError(f"{name} is a sparse matrix: give {name}.toarray()")
    try:
        return np.asarray(values)
    except Exception as error:  # of any kind: other libraries' arrays raise their own
        raise InputError(f"{name} is not an array: {error}") from None


def agree(a: object, b: object, rounding: float = 0.0) -> bool:
    """Return whether two values have the same structure, equal words and integers, and close numbers.

    Args:
        a, b: arrays, numbers and words, and lists, tuples and mappings of these.
        rounding: how far apart two floats may be: this multiple of the larger one, or of 1 if that is more.
            Where both are of single precision, two units in their last place are also allowed.
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(agree(a[name], b[name], rounding) for name in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(agree(*pair, rounding) for pair in zip(a, b, strict=True))
    if isinstance(a, str | bytes) or isinstance(b, str | bytes):  # as arrays they would lose zeros at the end
        return type(a) is type(b) and bool(a == b)
    x, y = np.asarray(a), np.asarray(b)
    if (x.dtype.kind, x.dtype.names, x.shape) != (y.dtype.kind, y.dtype.names, y.shape):
        return False
    if x.dtype.names:
        return all(agree(x[name], y[name], rounding) for name in x.dtype.names)
    if x.dtype.kind != "f" or not rounding:
        return np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
    finite = np.isfinite(x) & np.isfinite(y)
    if not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return False
    x, y = x[finite], y[finite]
    allowed = max(rounding, 2 * float(np.finfo(np.result_type(x, y)).eps))
    return bool(np.all(np.abs(x - y) <= allowed * np.maximum(1.0, np.maximum(np.abs(x), np.abs(y)))))


class Limited:
    """The limits of a value in a file, under their names in pydantic: annotates its type, for ``read_as``."""

    def __init__(self, **limits: float | str) -> None:
        self.limits = limits

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return handler(source) | self.limits


Sha256 = Annotated[str, Limited(pattern="^[0-9a-f]{64}$")]
Fraction = Annotated[float, Limited(ge=0, le=1)]
Probability = Annotated[float, Limited(gt=0, lt=1)]
Count = Annotated[int, Limited(ge=0, le=MOST)]


@dataclass(frozen=True)
class Stored:
    """A value in a file: when read it must have no other fields, at any depth, and no other types."""

    __pydantic_config__: ClassVar = {**STRICT, "extra": "forbid"}

    def to_json(self) -> dict[str, object]:
        """Return its fields as JSON values, without optional ones that have their default."""
        values = {each: getattr(self, each.name) for each in fields(self)}
        return {
            each.name: to_values(value)
            for each, value in values.items()
            if each.metadata != OPTIONAL or value is not each.default
        }


def to_values(value: object) -> object:
    """Return a field's value as JSON; what JSON cannot express, such as a quantity, by its name."""
    match value:
        case Stored():
            return value.to_json()
        case dict():
            return {name: to_values(inner) for name, inner in value.items()}
        case list() | tuple():
            return [to_values(inner) for inner in value]
        case str() | int() | float() | None:
            return value
    return str(value)


def read_as(kind: type[T], values: object) -> T:
    """Return JSON values as a typed dict or a dataclass; only lists are converted, to tuples.

    Raises:
        ValueError: they are not of this type, or a number is not finite; the message begins with where.
    """
    from pydantic import ValidationError  # takes 40 ms, which workers do not need

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
    """Return a validator of this type, as the item of a tuple so that its settings apply at every depth."""
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(tuple[kind], config=ConfigDict(**STRICT))  # type: ignore[valid-type, typeddict-item]
