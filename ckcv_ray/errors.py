"""What is refused, and how it is said: exceptions, text for messages, checks of arguments and of JSON values.

All exceptions are caught by ``except CKCVError``. Every check of an argument raises an InputError that gives
the argument's name, its value and what is allowed. Text is counts, percentages, numbers in units of the
target, and times. Kinds of arrays, and how values are compared, are defined here too. Removed commands and
options are listed in one table, which the command line, studies and CHANGELOG.md share.
"""

import json
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from decimal import ROUND_FLOOR, Decimal
from difflib import get_close_matches
from functools import cache
from itertools import islice
from math import ceil, floor, log10
from numbers import Integral, Real
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

MAX_CHARACTERS = 1500
MAX_NAMED = 100
MAX_OF_NAME = 200
LIST_OPTIONS = ("features", "drop", "categorical", "numeric", "date")  # lists of column names
# percentages have two digits after the point wherever people read a number. Bounds, and means of bounds, are
# rounded up: rounded down they would say more than was computed. Lower bounds and levels are rounded down for
# the same reason, estimates and shares to the nearest.
DIGITS = 2
NUMBER_DIGITS = 4  # of numbers that are not percentages
SCALE = 100 * 10**DIGITS
NOT_SET = "–"
SLACK = 1e-9  # in units of the last digit: 0.423 is 42.30 %, although 0.423 * 10_000 is above 4230


def plain(text: str) -> str:
    """Return text of any origin as one printable line for terminals and logs, cut in the middle if long."""
    return cut("".join(c if c.isprintable() else escape_text(c) for c in cut(text)))


def printable(text: str) -> str:
    """Return text of any origin, escaping characters that could control a terminal; lines are kept."""
    return "".join(c if c.isprintable() or c in "\n\t" else escape_text(c) for c in text)


def name_reason(traceback: str) -> str:
    """Return type and message of the exception of a traceback, or the first line of another reason."""
    last = traceback.rpartition("Traceback (most recent call last):\n")[2].splitlines()
    return plain(next((line for line in last if line[:1].strip()), "unknown"))


def escape_text(text: str) -> str:
    """Return text with everything but printable ASCII as Python escapes."""
    return text.encode("unicode_escape").decode()


def cut(text: str, most: int = MAX_CHARACTERS) -> str:
    """Return text without its middle if it has more than ``most`` characters."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


def cut_list(sentences: list[str], rest: str, most: int = MAX_NAMED) -> list[str]:
    """Return the first sentences, and if there are more, one that counts them, such as "7 {others}"."""
    more = len(sentences) - most
    return sentences[:most] + ([f"{more:,} {rest}"] if more > 0 else [])


def pluralize(number: int, singular: str, many: str | None = None) -> str:
    """Format a count with its noun in the singular or the plural: "1 class", "3 classes"."""
    return f"{number:,} {singular if number == 1 else many or f'{singular}s'}"


def write_option(option: str, *names: str) -> str:
    """Write an option and column names so that a shell reads the names, such as --group 'patient id'.

    Options that take several names read them as a line of a CSV file. Names too long for a message are cut.
    """
    shown = [cut(name, MAX_OF_NAME) for name in names]
    text = write_row(shown) if option in LIST_OPTIONS else shown[0]
    said = shlex.quote(text)
    return f"--{option}={said}" if text.startswith("-") else f"--{option} {said}"


def write_row(texts: Iterable[str]) -> str:
    """Write texts as a row of a CSV file, as options that take several column names read them."""
    return ",".join(
        '"{}"'.format(text.replace('"', '""'))
        if text.strip() != text or any(mark in text for mark in ',"\r\n')
        else text
        for text in texts
    )


def write_install(extra: str) -> str:
    """Return the command that installs an extra: the package is not in a registry, but in its clone."""
    return f'pip install ".[{extra}]" in the clone of ckcv_ray'


def ceil_percent(bound: float) -> str:
    """Format an upper bound, rounded up."""
    return f"{ceil(SCALE * bound - SLACK) / 10**DIGITS:.{DIGITS}f} %"


def floor_percent(bound: float) -> str:
    """Format a lower bound, rounded down."""
    return f"{floor(SCALE * bound + SLACK) / 10**DIGITS:.{DIGITS}f} %"


def format_percent(value: float) -> str:
    """Format an estimate or a share, rounded to the nearest."""
    return f"{round(SCALE * value) / 10**DIGITS:.{DIGITS}f} %"


def format_level(delta: float) -> str:
    """Format the level 1 - delta, rounded down, without trailing zeros, with more digits above 99.9 %."""
    digits = max(DIGITS, -floor(log10(delta)) - 1)
    level = (100 * (1 - Decimal(repr(delta)))).quantize(Decimal(10) ** -digits, ROUND_FLOOR)
    return f"{level.normalize():f} %"


def duration(seconds: float) -> str:
    """Format seconds in a suitable unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"


def round_bound(bound: float, up: bool = True) -> str:
    """Format a bound in units of the target, at least 0, with four digits, rounded to the safe side."""
    if not bound > 0:
        return "0"
    digits = NUMBER_DIGITS - 1 - floor(log10(bound))
    scaled = ceil(bound * 10.0**digits) if up else floor(bound * 10.0**digits)
    return f"{scaled * 10.0**-digits:.{max(0, digits)}f}"


def format_number(value: float) -> str:
    """Format a number in units of the target with four digits, or all before the point: "50", "0.1235"."""
    if not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{NUMBER_DIGITS}g}"
    text = f"{value:.{max(0, NUMBER_DIGITS - 1 - floor(log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_about(count: float) -> str:
    """Format an expected number of rows, with two digits: "1,100"."""
    return f"{float(f'{count:.2g}'):,.0f}"


def format_score(value: float | None, layout: str = "") -> str:
    """Format a number with four decimals, or four digits where decimals suit it badly; "–" if unknown."""
    if value is None or value != value:
        return NOT_SET
    usual = value == 0 or 1e-3 <= abs(value) < 10_000
    return f"{value:{layout}.4{'f' if usual else 'g'}}"


def format_row(*values: str | float | None) -> tuple[str, ...]:
    """Format the cells of a row: text, counts, and shares in percent; None and nan are unknown."""
    return tuple(
        NOT_SET if value is None or value != value
        else value if isinstance(value, str)
        else format_percent(value) if isinstance(value, float)
        else f"{value:,}"
        for value in values
    )  # fmt: skip


class CKCVError(Exception):
    """Base class of every error that this package raises deliberately."""


class InputError(CKCVError, ValueError):
    """Invalid input that the user can correct; the message says how."""

    def __init__(self, message: str) -> None:
        super().__init__(plain(message))  # it quotes names and values of any origin


class AbsentError(InputError):
    """A name that is not known here, or a package that is not installed or may not be imported."""


class StoreError(CKCVError):
    """A run folder that is damaged, in use, or belongs to something else."""

    def __init__(self, message: str) -> None:
        super().__init__(plain(message))


class LackingError(StoreError):
    """A run folder that names a part of a study or a package that is missing here, or may not be imported."""


class RunError(CKCVError):
    """A run that could not finish; completed work is kept. Its message may hold a traceback."""


class UnreachableError(RunError):
    """An object store that does not answer, or refuses: what it holds is unknown, not damaged."""

    def __init__(self, message: str) -> None:
        super().__init__(plain(message))


@contextmanager
def convert_errors(kind: type[CKCVError], message: str) -> Iterator[None]:
    """Convert any exception that a reader raises for a bad file into an error of this kind.

    Its message is ``message`` and the first line of the reason. A store that cannot be reached says nothing
    about a file, so its error is passed on.
    """
    try:
        yield
    except (kind, UnreachableError):
        raise
    except MemoryError:
        raise kind(f"{message}: reading it needs more memory than there is") from None
    except Exception as error:  # readers raise many kinds: zipfile, EOF, type, key, recursion, Arrow errors
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise kind(f"{message}: {reason}") from None


T = TypeVar("T")
Kind = TypeVar("Kind", bound="type[Named]")
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


class Named(Protocol):
    """A part that files and texts refer to by its name."""

    name: ClassVar[str]


def register_part(kind: Kind, registry: dict[str, T]) -> Kind:
    """Register a class of parts under its name, by which files and texts refer to it, and return it.

    Raises:
        InputError: another class has that name; the same class may be imported again.
    """
    known = cast("type[Named]", registry.get(kind.name, kind))
    if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise InputError(f"the name {kind.name!r} is already used by {known.__qualname__}: choose another")
    registry[kind.name] = cast("T", kind)
    return kind


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


REMOVED = {  # commands and options from before the first release, with what to write instead
    "--outer-splits": "write --holdout-share 0.5, which proves as much as nested outer splits did",
    "--outer-share": "write --holdout-share with the share of the rows that are to judge, such as 0.5",
    "--nested": "without it, ckcv predict applies the model that the certificate is about",
    "ckcv new": "ckcv plan TABLE --write-study mine.toml writes a study file",
    "ckcv copy": "copy the files or objects of the run with any program, such as aws s3 sync: the copy is "
    "the run, and ckcv verify checks it",
    "ckcv clean": "a resumed run removes what an earlier one left, and nothing else needs removing",
    "ckcv serve": "the guide Recipes answers rows over HTTP with a few lines around load_run(...).predict",
    "--pdf": "open the HTML report in a browser, and print it",
    "--sign": "sign the manifest of the run folder with ssh-keygen -Y sign -n ckcv manifest.json",
    "ckcv submit": "--workers divides the work among processes, --address among nodes of a Ray cluster",
    "ckcv shard": "ckcv run computes the whole study, and resumes it where a job was stopped",
    "ckcv gather": "ckcv run resumes a study, and shows its result as soon as everything is computed",
    "--shards": "--workers divides the work among processes, --address among nodes of a Ray cluster",
    "--slurm": "sbatch docs/guides/slurm.sbatch runs a study on Ray in an allocation of Slurm",
    "--call-sbatch": "sbatch docs/guides/slurm.sbatch runs a study on Ray in an allocation of Slurm",
    "--best-prefix": "write --all-members, which the claim of F* is about",
    "--bound": "leave it out; L_EE is the mean of Clopper-Pearson bounds, as in the paper",
    "--first-uniform": "leave it out; --certify holdout has tighter bounds",
    "--resume-until-done": "jobs/run_study.py --times 5 resumes by itself, with the options of ckcv run",
    "--spare": "leave it out: what early rounds of a budget do not need is used",
    "--unlabelled": "leave it out: nothing is proven of the model fitted on all rows",
    "ckcv verify --refit": "write --rerun, which runs the whole study again; models are always fitted again",
    "--costs": "write --criterion cost:sick=10,healthy=1",
    "--prevalence": 'write it with what is required: --require "ppv:0.02>=0.3"',
    "--tolerance": "write --param tolerance=0.0001",
    "--max-iter": "write --param max_iter=5000",
    "--solver": "write --param solver=newton",
    "--landmarks": "write --param landmarks=200",
    "--alpha": "write --param alpha=0.1,1,10",
    "--keep": "write --search budget:keep=0.5",
    "--survivors": "write --search budget:survivors=8",
    "--least-splits": "write --search budget:least_splits=3",
    "--refer": 'write ckcv run --answer "error<=0.05": predict then says which rows it is confident of',
}


def explain_removed(*names: str) -> str:
    """Return a sentence about the first of these names that was removed; "" if none was."""
    return next((f"{name} was removed: {REMOVED[name]}" for name in names if name in REMOVED), "")
