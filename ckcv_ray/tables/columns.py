"""The columns of a table: how cells are written, what a column holds, and the numbers it becomes.

A table is interpreted once, from the learning rows. Its rows, and those to be predicted later, then become
numbers [rows, d]: a number as it is, a date in milliseconds since 1970, a category as the number of its
level. A gap is nan. What a cell becomes depends only on the cell and the schema, never on other rows or on
labels; and nothing is estimated from rows: that is done inside each split (``learners.steps``).
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property, partial
from itertools import chain
from math import inf, nan
from typing import Any, NamedTuple
from unicodedata import category, normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from ckcv_ray.errors import Index, InputError, Rows, Values, cut_list, pluralize, quote, suggest, write_option

DECIMAL = b"decimal"  # metadata of a table whose cells are as written: its decimal mark; empty for none
REMARKS = b"remarks"  # metadata of a table: how it was read, ends of sentences that begin with its file
SPARSE = b"sparse"  # metadata of a table that was stored without its zeros
HELD = b"held"  # metadata of a column that was not read: the type of its cells
DECLARED = b"declared"  # metadata of a column that was a dictionary: its values are categories
MAX_TABLE_BYTES = 1 << 30
OF_LENGTHS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
MAX_CLASSES = 1_000
LARGEST = 1e150  # the squares of this number and of its inverse still fit in a float


def check_single(names: Iterable[str], used: Collection[str], droppable: bool = False) -> None:
    """Raise InputError if two columns of a table have one of the names that are used.

    They differ: identical ones were joined by ``join_copies``. The message names --drop if they are
    ``droppable``.
    """
    for name, count in Counter(names).items():
        if count > 1 and name in used:
            drop = f", or leave both out with {write_option('drop', name)}" if droppable else ""
            raise InputError(f"two columns are named {name!r}, and differ: rename or remove one{drop}")


def suggest_column(name: object, names: Iterable[str]) -> str:
    """Return the end of a message that suggests the column that was probably meant; "" if none is close.

    That is one whose name differs only in what is often written differently, or else the closest one.
    """
    names = list(names)
    if isinstance(name, str) and (alike := [known for known in names if fold_text(known) == fold_text(name)]):
        unseen = any(not (sign.isascii() or sign.isalnum()) for sign in name + alike[0])
        return f"; did you mean {ascii(alike[0]) if unseen else quote(alike[0])}?"
    return suggest(name, names, quote)


def check_column(name: object, names: Sequence[str], purpose: str = "") -> None:
    """Raise InputError unless a table has a single column of this name, needed for a ``purpose``."""
    if not (isinstance(name, str) and name in names):
        meant = suggest_column(name, names)
        raise InputError(f"there is no column {quote(name)}{purpose}: the columns are {some(names)}{meant}")
    check_single(names, [name])


def name_numbered(names: Sequence[str], features: Iterable[str]) -> list[str]:
    """Return the names of a table's columns, with x0 for 0 where that is a feature, as of an array."""
    known = set(features)
    absent = {name for name in known.difference(names) if name[1:].isdecimal()}
    return [f"x{name}" if name not in known and f"x{name}" in absent else name for name in names]


def list_distinct(column: pa.ChunkedArray) -> tuple[list[Any], Index]:
    """Return the distinct values of a column, with None for an empty cell last, and each row's position."""
    if column.null_count == len(column):  # Arrow cannot join dictionaries of nothing
        return [None], np.zeros(len(column), np.intp)
    unified = column.dictionary_encode().unify_dictionaries().combine_chunks()
    values = unified.dictionary.to_pylist()
    codes = unified.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    return [*values, None], codes.astype(np.intp)


def is_number_type(kind: pa.DataType) -> bool:
    """Return whether a type is that of whole or floating numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def is_plain(kind: pa.DataType) -> bool:
    """Return whether cells of a type are single values: no lists, no bytes of a width the file chooses."""
    if pa.types.is_dictionary(kind):
        return is_value(kind.value_type)
    fixed = pa.types.is_fixed_size_binary(kind) or isinstance(kind, pa.BaseExtensionType)
    return not (fixed or pa.types.is_nested(kind))


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is that of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_value(kind: pa.DataType) -> bool:
    """Return whether cells of a type are numbers, truth values, text, dates or times of day, or all empty."""
    types = pa.types
    dates = types.is_date, types.is_timestamp, types.is_time
    plain = (is_text, is_number_type, types.is_decimal, types.is_boolean, *dates, types.is_null)
    return any(is_one(kind) for is_one in plain)


def some(names: Sequence[object], most: int = 12) -> str:
    """Join the first names for a message."""
    shown = ", ".join(str(name)[:60] for name in names[:most])
    return f"{shown}, ... ({len(names)} in all)" if len(names) > most else shown


def check_bytes(name: str, size: int) -> None:
    """Raise InputError if something takes too many bytes to be read."""
    if size > MAX_TABLE_BYTES:
        raise InputError(f"{name} takes {size >> 20:,} MiB: at most {MAX_TABLE_BYTES >> 20:,} MiB are read")


def check_text(name: str, *columns: pa.ChunkedArray) -> None:
    """Raise InputError if text takes too many bytes once each cell holds its own, without a dictionary."""
    size = 0
    for chunk in chain.from_iterable(column.chunks for column in columns):
        coded = pa.types.is_dictionary(chunk.type)
        texts = chunk.dictionary if coded else chunk
        if pa.types.is_string_view(texts.type):  # Arrow does not give their lengths
            texts = texts.cast(pa.large_string())
        if any(is_one(texts.type) for is_one in OF_LENGTHS):
            lengths = pc.binary_length(texts)
            size += pc.sum(pc.take(lengths, chunk.indices) if coded else lengths).as_py() or 0
    check_bytes(name, size)


def unify_zeros(rows: Rows) -> Rows:
    """Return rows with the same bytes for all zeros, and for all gaps."""
    numbers = rows + 0.0  # -0.0 and 0.0 are one number
    numbers[np.isnan(numbers)] = np.nan
    return numbers


class ColumnKind(StrEnum):
    """What a column holds."""

    NUMBER = "number"
    CATEGORY = "category"
    DATE = "date"


@dataclass(frozen=True)
class Column:
    """How a column is interpreted.

    Attributes:
        name: its name.
        kind: what it holds.
        levels: the text of each level of a category, sorted; empty for other kinds.
        form: how text is read: see ``parse_number`` and ``parse_date``; "" for columns that
            were not text.
        lenient: whether what is not a number is a gap, as ``--numeric`` asks.
        zoned: whether dates are moments that state their offset from UTC; a day alone does not.
        short_decimals: whether every number was text with one or two decimals, or with none but thousands
            separators, and nobody said what these are: a cell with three, as 1.250, may then have one.
    """

    name: str
    kind: ColumnKind = ColumnKind.NUMBER
    levels: tuple[str, ...] = ()
    form: str = ""
    lenient: bool = False
    short_decimals: bool = False
    zoned: bool = False


class DeclaredTypes(NamedTuple):
    """What the user says about columns.

    Attributes:
        categorical, numeric, date: names of the columns of each kind.
        thousands: the thousands separator, a comma or a point, where a number does not tell; "" if that
            is not known.
        labels: what to do with labels that differ only in case or spaces, or are one number: "join" into one
            class, keep "apart" as several; "" to ask.
        drop_unlabelled: whether rows without a label are left out; otherwise they are refused.
        keep_values: words that are otherwise taken for empty cells, such as NA, in upper or lower case: here
            they are text like any other, in every column.
    """

    categorical: Collection[str] = ()
    numeric: Collection[str] = ()
    date: Collection[str] = ()
    thousands: str = ""
    labels: str = ""
    drop_unlabelled: bool = False
    keep_values: Collection[str] = ()

    def kind(self, name: str) -> ColumnKind | None:
        """Return the kind that was requested; None if the values decide."""
        kinds = (ColumnKind.CATEGORY, ColumnKind.NUMBER, ColumnKind.DATE)
        return next((kind for kind, names in zip(kinds, self[:3], strict=True) if name in names), None)


NOTHING_ASKED = DeclaredTypes()
NO_NAMES = frozenset(  # these name neither a label nor a group
    (
        *("", "?", "na", "n/a", "#n/a", "nan", "null", "n.a.", "#na", "#n/a n/a", "<na>", "-nan"),
        *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
    )
)
MINUS = "\u2212"  # as word processors and spreadsheets write a minus
GAPS = NO_NAMES | {"none", "nil", "-", MINUS, "--", ".", "missing"}
NUMBER_DATES = "%Y%m%d"  # dates that may be stored as whole numbers
DAY_FORMATS = (
    *("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y"),
    *("%d %b %Y", "%b %d, %Y", NUMBER_DATES),
)
TIME_FORMS = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", "T%H:%M")
ISO = "iso"
WRITTEN_DATES = "2026-11-23, 23.11.2026, 11/23/2026, 23 Nov 2026 or Nov 23, 2026, with a time or without"
LOOKS_LIKE_DATE = re.compile(
    r"\d{1,4}([./-])\d{1,2}\1\d{1,4}([ T]|$)|\d{1,2} [A-Za-z]{3} \d{4}$|[A-Za-z]{3} \d{1,2}, \d{4}$"
)
ISO_DATE = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?$", re.ASCII
)
ZONE = re.compile(r"[T ]\d\d(:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d(:?\d\d)?)$")  # at the end of a moment
TIME = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d)(?:\.0+)?)?$", re.ASCII)
HYPHEN = re.compile(r"(?<=\w)[-_\u2010-\u2015\u2212](?=\w)")
TRUTH = {"true": 1.0, "false": 0.0}
EITHER_SIGN = f"[+{MINUS}-]?"
DECIMALS = r"(?:\d+\.?\d*|\.\d+)"
POINT = re.compile(rf"{EITHER_SIGN}{DECIMALS}([eE]{EITHER_SIGN}\d+)?$")
COMMA = re.compile(rf"{EITHER_SIGN}\d*,\d+$")
HEX, HEX_END = re.compile(r"0[xX][0-9a-fA-F]{1,16}$"), 2**63  # such as 0x1F, of up to 63 bits
POINTS = re.compile(rf"{EITHER_SIGN}[1-9]\d{{0,2}}(\.\d{{3}})+(,\d+)?$")  # points between thousands
THOUSANDS = re.compile(rf"{EITHER_SIGN}[1-9]\d{{0,2}}(,\d{{3}})+(\.\d*)?$")
NUMBER_FORMS = {  # numbers in each form of ``parse_number``
    "point": POINT,
    "comma": re.compile(rf"(?!{POINTS.pattern})({POINT.pattern}|{COMMA.pattern})"),
    "points": re.compile(rf"{POINTS.pattern}|(?!.*\.){POINT.pattern}|{COMMA.pattern}"),
    "thousands": re.compile(rf"{POINT.pattern}|{THOUSANDS.pattern}"),
}
FOREIGN = {  # what may be numbers or times, and how to write these instead
    rf"{EITHER_SIGN}{DECIMALS}[dD]{EITHER_SIGN}\d+$": "write E for D, as in 0.126E+00",  # as in Fortran
    rf"['\u2019]{EITHER_SIGN}\d[\d.,]*['\u2019]?$": "write numbers without the apostrophe",  # spreadsheets
    r".{0,40}\b\d{4}\b.{0,40}\d\d:\d\d(:\d\d(\.\d+)?)? ?(?!AM\b|PM\b)([A-Z]{2,5}\b|[A-Z][a-z]+/\w+$)": (
        "write the offset of a named time zone, such as +01:00 for CET"
    ),
}
ALL_DIGITS = r"^\s*\d+([eE]\d+)?\s*$"  # such as 12E03
DIGIT_SPACES = " \u00a0\u2009\u202f"  # plain, no-break, thin and narrow
APOSTROPHES = "'\u2019"
SIGNS = r"%\u2030$\u00a2-\u00a5\u058f\u060b\u09f2\u09f3\u0e3f\u17db\u20a0-\u20c0"  # %, per mille, currencies
PERCENT_SIGNS = ("%", "\u2030")
CODES = (  # of currencies, ISO 4217: the most traded ones
    *("AED", "ARS", "AUD", "BRL", "CAD", "CHF", "CLP", "CNY", "COP", "CZK", "DKK", "EUR", "GBP", "HKD"),
    *("HUF", "IDR", "ILS", "INR", "JPY", "KRW", "MXN", "MYR", "NOK", "NZD", "PHP", "PLN", "RON", "RUB"),
    *("SAR", "SEK", "SGD", "THB", "TRY", "TWD", "USD", "ZAR"),
)
UNIT = f"[{SIGNS}]|{'|'.join(CODES)}"
AMOUNT = re.compile(
    rf"(?P<sign>{EITHER_SIGN})(?P<before>{UNIT})?[{DIGIT_SPACES}]?(?P<inner>{EITHER_SIGN})(?P<digits>\d[\d.,{DIGIT_SPACES}{APOSTROPHES}]*?)"
    rf"[{DIGIT_SPACES}]?(?P<after>{UNIT})?$"
)
SEPARATED_DIGITS = re.compile(
    rf"[1-9]\d{{0,2}}(?:([{DIGIT_SPACES}{APOSTROPHES}])\d{{3}})(?:\1\d{{3}})*(?:[.,]\d*)?$"
)
PLAIN = re.compile(r"\d+(?:[.,]\d*)?$|\d{1,3}(?:([.,])\d{3})+(?:[.,]\d*)?$")
LAST_EXACT = 2.0**53  # from here on floats hold only some whole numbers
AMOUNTS = "|"  # between the unit of amounts and the form of their numbers
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KEPT, MARK = b"kept", b"thousands"  # metadata of a table: what was said of its cells, see ``declare_cells``
EMPTY_WORDS = csv.ConvertOptions().null_values  # words that Arrow takes for empty cells of a text table
FIRST_ROWS = 100
FIRST_DAY = -62_135_596_800_000  # in milliseconds since 1970: January 1 of the year 1
Read = tuple[Values, NDArray[np.bool_]]  # numbers, nan for gaps, and which rows are of another kind, (rows,)
CATEGORY = "say {categorical}"
MOSTLY = 0.5  # share of values from which they decide a column's kind, and others are mistakes
MAX_PROBLEMS = 5  # columns whose problems are described in full


class ColumnError(Exception):
    """What is wrong with a column, not naming it.

    Args:
        what: what is wrong.
        mends: how to mend it, each an imperative; {numeric}, say, is that option with the name of the column.
    """

    def __init__(self, what: str, *mends: str) -> None:
        super().__init__(what)
        self.mends = mends

    def describe(self, name: str) -> str:
        """Describe what is wrong with a column of this name, and how to mend it."""
        dropped = f"leave it out with {write_option('drop', name)} or --features"
        options = {option: write_option(option, name) for option in ("numeric", "categorical", "date", "id")}
        mends = (mend.format(**options) for mend in self.mends)
        return f"column {name!r} {self}: {', or '.join([*mends, dropped])}"


def bare(text: str) -> str:
    """Return text without spaces around it, and without the quotes that a space kept in place."""
    text = text.strip()
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1].replace('""', '"').strip() if quoted else text


def drop_gaps(distinct: Iterable[str | None], gaps: Collection[str] = GAPS) -> list[str]:
    """Return the texts that are not gaps."""
    return [text for text in distinct if text is not None and text.lower() not in gaps]


def canonical_text(text: str) -> str:
    """Return the same for texts of one value: True and true, 01 and 1.0, 1,5 and 1.5, 08:00 and 08:00:00.

    Letters with a composed or a combining accent, which look alike, are the same too: Unicode's form C. Whole
    numbers too large for floats to tell apart are compared to their last digit, as they are names.
    """
    if text.lower() in TRUTH:
        return text.lower()
    if POINT.match(text) or (COMMA.match(text) and not THOUSANDS.match(text)):
        number = float(text.replace(",", ".").replace(MINUS, "-"))
        digits = text.lstrip(f"+{MINUS}-0")
        if LAST_EXACT <= abs(number) < inf and digits.isdecimal():
            return f"number {int(digits) if number > 0 else -int(digits)}"
        return f"number {number + 0.0!r}"
    if HEX.match(text) and (whole := int(text, 16)) < HEX_END:
        return f"number {whole if whole >= LAST_EXACT else float(whole)!r}"
    if (moment := parse_date(text)) is not None:
        return f"date {moment!r}"
    if parts := TIME.match(text):
        return "time {:02d}:{}:{}".format(int(parts[1]), parts[2], parts[3] or "00")
    return normalize("NFC", text)


def fold_text(text: str) -> str:
    """Return the same text for all that are one value, or differ in what is often written differently.

    That is case, spaces, hyphens and dashes between words, a point at the end, and zero-width characters.
    """
    value = canonical_text(text)
    if value != normalize("NFC", text):  # a number, a date, a time or a truth value
        return value
    seen = "".join(sign for sign in value if category(sign) != "Cf")
    words = HYPHEN.sub(" ", seen.strip())
    words = words[:-1] if words.endswith(".") and len(words) > 1 else words
    return canonical_text("".join(words.split()).casefold())


def positions_by_value(texts: Sequence[str], key: Callable[[str], str] = canonical_text) -> dict[str, int]:
    """Return the position of each text by its ``canonical_text``, leaving out those that two texts share."""
    ways = [key(text) for text in texts]
    count = Counter(ways)
    return {way: i for i, way in enumerate(ways) if count[way] == 1}


def find_number_form(
    texts: Sequence[str], decimal: str | None = None, thousands: str = ""
) -> tuple[str, list[str]]:
    """Return the form in which most of some texts are numbers, "" for none, and those that are not in it.

    Args:
        texts: at least one.
        decimal: the decimal mark of other columns of the table, if it is known.
        thousands: the thousands separator, "," or ".", if given.

    Raises:
        ColumnError: a comma or a point may mark thousands or decimals.
    """
    units, numbers = list[str](), list[str]()
    for text in texts:  # most columns hold no numbers, as their first text shows
        unit, number = _read_amount(text)
        if number == text and not PLAIN.match(text):
            break
        units.append(unit)
        numbers.append(number)
    if len(units) == len(texts) and numbers != [*texts] and len(set(map(bool, units))) == 1:
        form, bad = find_number_form(numbers, decimal, thousands)
        wrong, fine, odd = set(bad), list[str](), list[str]()
        for text, unit, number in zip(texts, units, numbers, strict=True):
            (odd if unit != units[0] or number in wrong else fine).append(text)
        if odd:
            shown = " and ".join(map(repr, (fine[:1] + odd)[:2]))
            what = f"has amounts in several units or forms, such as {shown}"
            raise ColumnError(what, "write all in one", CATEGORY)
        return f"{units[0]}{AMOUNTS}{form}", []
    found = {form: [text for text in texts if not regex.match(text)] for form, regex in NUMBER_FORMS.items()}
    if thousands and any(thousands in text for text in texts):
        form = "points" if thousands == "." else "thousands"
        found = {form: found[form]}
    form = min(found, key=lambda form: len(found[form]))
    doubtful = form == "comma" and len(found["comma"]) == len(found["thousands"])
    if doubtful and decimal == ".":
        form, doubtful = "thousands", False
    bad = [text for text in found[form] if text.lower() in TRUTH or parse_number(text, form) is None]
    if not thousands:
        points = [text for text in texts if POINTS.match(text)]
        if form == "points":
            doubtful = not any("," in text or text.count(".") > 1 for text in points)
        elif form == "point":
            doubtful = decimal == "," and 0 < len(points) == sum("." in text for text in texts)
        if doubtful:
            mark, pattern = (",", THOUSANDS) if form == "comma" else (".", POINTS)
            text = next(text for text in texts if pattern.match(text))
            raise ColumnError(
                f"has numbers such as {text!r}, whose {mark!r} may mark decimals or thousands",
                f"say --thousands {mark} if it marks thousands",
                "write them without it, or with another decimal mark",
            )
    return ("" if len(bad) == len(texts) else form), bad


def _read_amount(text: str) -> tuple[str, str]:
    """Return the unit and the number of an amount such as $7,000, 16.29% or 1 250,00; (3,400) is negative.

    The number has no spaces or apostrophes. Other text, as plain numbers, has no unit, and stays as it is.
    """
    negative = text.startswith("(") and text.endswith(")")
    found = AMOUNT.match(text[1:-1].strip() if negative else text)
    if found is None or (found["before"] and found["after"]) or (found["sign"] and found["inner"]):
        return "", text
    digits, sign = found["digits"], found["sign"] or found["inner"]
    unit, separated = found["before"] or found["after"] or "", SEPARATED_DIGITS.match(digits)
    if not (separated or PLAIN.match(digits)) or (negative and sign) or not (unit or separated or negative):
        return "", text
    return unit, f"{'-' if negative else sign}{re.sub(f'[{DIGIT_SPACES}{APOSTROPHES}]', '', digits)}"


def find_decimal_mark(form: str) -> str:
    """Return the decimal mark of numbers in a form of ``parse_number``."""
    return "," if form.rpartition(AMOUNTS)[2] in ("comma", "points") else "."


def is_doubtful(text: str, form: str) -> bool:
    """Return whether text is a number in a form, but its decimal mark may mark thousands, as in 1.250."""
    pattern = POINTS if find_decimal_mark(form) == "." else THOUSANDS
    _, number = _read_amount(text)
    may_be = len(re.findall("[.,]", number)) == 1 and pattern.match(number)
    return bool(may_be) and parse_number(text, form) is not None


def parse_number(text: str, form: str = "") -> float | None:
    """Return text as a number; None if it is not one.

    Args:
        text: the text, without spaces around it.
        form: "point" for a decimal point, "comma" for a decimal comma, "points" for one with points between
            thousands, "thousands" for a decimal point with commas between thousands; "" for what a text
            table takes as a number by itself; for amounts, their unit and "|" come first, such as
            "$|thousands". A text table's truth values and its hexadecimal whole numbers, such as 0x1F, are
            numbers in "" and "comma".
    """
    unit, amounts, inner = form.rpartition(AMOUNTS)
    if amounts:
        own, text = _read_amount(text)
        if own != unit and (own or unit in PERCENT_SIGNS):
            return None  # in another unit; a number without % may be a share of 1 or of 100
    if inner in ("", "comma") and text.lower() in TRUTH:
        return TRUTH[text.lower()]
    if inner in ("", "comma") and HEX.match(text):
        return whole if (whole := int(text, 16)) < HEX_END else None
    if inner in ("comma", "points") and "." in text and bool(POINTS.match(text)) is (inner == "comma"):
        return None
    if inner == "thousands" and THOUSANDS.match(text):
        text = text.replace(",", "")
    elif inner == "points" or (inner == "comma" and "." not in text):
        text = text.replace(".", "").replace(",", ".")
    try:
        return None if "_" in text else float(text.replace(MINUS, "-"))
    except ValueError:
        return None


def _find_date_form(texts: Sequence[str]) -> tuple[str, list[str]]:
    """Return the format in which most of some texts are dates, and those that are not."""
    best, fewest, equal = "", list(texts), list[str]()
    for form in (day + time for day in DAY_FORMATS for time in TIME_FORMS):
        if parse_date(texts[0], form) is None and parse_date(texts[-1], form) is None:
            continue
        bad = [text for text in texts if parse_date(text, form) is None]
        if len(bad) < len(fewest):
            best, fewest, equal = form, bad, []
        elif len(bad) == len(fewest) < len(texts):
            equal.append(form)
    if equal:
        two = (text for text in texts if parse_date(text, best) != parse_date(text, equal[0]))
        what = f"has dates such as {next(two, texts[0])!r}, whose month may come first or second"
        raise ColumnError(what, "write them as 2026-11-23", CATEGORY)
    if fewest and len(bad := [text for text in texts if parse_date(text) is None]) < len(fewest):
        return ISO, bad
    return best, fewest


def parse_date(text: str, form: str = ISO) -> float | None:
    """Return text as milliseconds since 1970 in UTC; None if it is not a date.

    Args:
        text: the text, without spaces around it.
        form: a format of ``strptime``; "iso", or "", for dates such as 2026-11-23T12:30:00+01:00.
    """
    is_iso = form in (ISO, "")
    if is_iso and not ISO_DATE.match(text):
        return None
    if form == NUMBER_DATES and POINT.match(text) and (day := float(text.replace(MINUS, "-"))).is_integer():
        text = str(int(day))  # such as 20261123.0
    try:
        moment = datetime.fromisoformat(text) if is_iso else datetime.strptime(text, form)
    except ValueError:
        return None
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH
    milliseconds = float(int(since / timedelta(milliseconds=1)))  # Arrow truncates fractions too
    return milliseconds if milliseconds >= FIRST_DAY else None  # else, by its zone, in the year 0


class Cells:
    """A column as it was read; each distinct text is looked up once.

    Cells of a text table are text, as they were written. Together they are of one kind, such as whole
    numbers, which says how the column is interpreted; what a cell becomes then depends only on its text.

    Attributes:
        values: as they were read; null where a cell of a text table is empty for Arrow.
        stored: type of the values.
        declared: whether it was a dictionary, which means that its values are categories.
        held: what it held if its cells were not read; "" if they were.
        written: whether it is text of a text table.
        decimal: the decimal mark of its table; "" if unknown.
        thousands: the thousands separator, if given.
        gaps: words that mean that a cell is empty, in lower case.
    """

    def __init__(self, columns: pa.Table, name: str) -> None:
        said, marks = columns.schema.metadata or {}, columns.field(name).metadata or {}
        self.declared, self.held = DECLARED in marks, marks.get(HELD, b"").decode()
        self.values, self.stored = columns.column(name), columns.field(name).type
        self.written = DECIMAL in said and is_text(self.stored)
        self.decimal = {b",": ",", b".": "."}.get(said.get(DECIMAL, b""), "")
        self.thousands = said.get(MARK, b"").decode()
        kept = set(said.get(KEPT, b"").decode().split(",")) - {""} if is_text(self.stored) else ()
        self.gaps = GAPS.difference(kept)
        if self.written:  # so that numbers are read all at once
            empty = pa.array([word for word in EMPTY_WORDS if word.lower() in self.gaps], self.stored)
            if pc.any(found := pc.is_in(self.values, empty)).as_py():
                self.values = pc.if_else(found, pa.scalar(None, self.stored), self.values)

    def infer(self) -> pa.ChunkedArray:
        """Return the values; in a text table, as what its cells are together, such as whole numbers."""
        if not self.written or is_text(self.typed.type) or self.mistaken:
            return self.values
        parts = [self.typed.take(chunk.indices) for chunk in self.encoded.chunks]
        return pa.chunked_array(parts, self.typed.type)

    @cached_property
    def kind(self) -> pa.DataType:
        """Type of the values; for cells as they were written, the type that they have together."""
        if not self.written:
            return self.stored
        if self.values.null_count == len(self.values):
            return pa.null()
        return pa.float64() if self.floats is not None else self.typed.type

    @property
    def are_numbers(self) -> bool:
        """Whether the values are numbers, decimal ones and booleans included."""
        kind = self.kind
        return is_number_type(kind) or bool(pa.types.is_boolean(kind) or pa.types.is_decimal(kind))

    @property
    def are_dates(self) -> bool:
        """Whether the values are days or moments."""
        return bool(pa.types.is_date(self.kind) or pa.types.is_timestamp(self.kind))

    @property
    def mistaken(self) -> bool:
        """Whether what was given as the thousands separator is taken for the decimal mark."""
        if not (self.thousands and self.written and self.are_numbers):
            return False
        marked = [text for text in self.known if self.thousands in text]
        return bool(marked) and all(map((THOUSANDS if self.thousands == "," else POINTS).match, marked))

    @cached_property
    def floats(self) -> Values | None:
        """Text as numbers, all at once; None if some has to be read cell by cell, or is not a number."""
        return cast_numbers(self.values, self.decimal == ",")

    @cached_property
    def zoned(self) -> NDArray[np.bool_]:
        """Which moments state their offset from UTC, (rows,)."""
        if not is_text(self.stored):
            return np.full(len(self.values), getattr(self.stored, "tz", None) is not None)
        texts, codes = self.texts
        return np.array([bool(ZONE.search(text or "")) for text in texts], np.bool_)[codes]

    @cached_property
    def encoded(self) -> pa.ChunkedArray:
        """The values as a dictionary, the same for all chunks."""
        return self.values.dictionary_encode().unify_dictionaries()

    @cached_property
    def typed(self) -> pa.Array:
        """The distinct values of cells as they were written, as what they are together.

        That is as Arrow reads a column of a table; but codes such as 12E03, and numbers of more digits than
        floats tell apart, are text.
        """
        if self.values.null_count == len(self.values):
            return pa.nulls(0)
        texts = self.encoded.chunk(0).dictionary
        sink = pa.BufferOutputStream()
        csv.write_csv(pa.table({"": texts}), sink, csv.WriteOptions(quoting_style="all_valid"))
        written = sink.getvalue()
        read = csv.read_csv(
            pa.BufferReader(written),
            csv.ReadOptions(block_size=written.size + 1, use_threads=False),
            csv.ParseOptions(newlines_in_values=True),
            csv.ConvertOptions(null_values=[], decimal_point="," if self.decimal == "," else "."),
        )
        typed = read.column(0).combine_chunks()
        floating = pa.types.is_floating(typed.type)
        large = floating and pc.any(pc.greater_equal(pc.abs(typed), LAST_EXACT)).as_py()
        return texts if _are_digits(texts, with_e=not large) else typed

    @cached_property
    def texts(self) -> tuple[list[str | None], NDArray[np.intp]]:
        """The distinct texts, without spaces around them, None for a gap, and the position of each row's."""
        values = self.values
        if pa.types.is_floating(self.stored):
            numbers = values.drop_null().to_numpy()
            whole = np.isfinite(numbers) & (np.floor(numbers) == numbers) & (np.abs(numbers) < LAST_EXACT)
            if np.all(whole):  # a gap has made them floating
                values = values.cast(pa.int64())
        raw, codes = list_distinct(self.encoded if is_text(values.type) else values.cast(pa.string()))
        stripped = (None if text is None else bare(text) for text in raw)
        texts = [None if text is None or text.lower() in self.gaps else text for text in stripped]
        position = dict[str | None, int]()
        positions = np.array([position.setdefault(text, len(position)) for text in texts], np.intp)
        return list(position), positions[codes]

    @property
    def known(self) -> list[str]:
        """The distinct texts that are not gaps, without spaces around them."""
        return [text for text in self.texts[0] if text is not None]

    def count(self, texts: Collection[str]) -> int:
        """Return how many rows have one of these distinct texts."""
        chosen, (distinct, codes) = set(texts), self.texts
        return int(np.sum(np.array([text in chosen for text in distinct], np.bool_)[codes]))

    def quote(self, row: int) -> str:
        """Return a cell as a message shows it."""
        return repr(str(self.values[row].as_py())[:40])

    def show(self, texts: Sequence[str]) -> str:
        """Return the first of some texts, and its first row, as an example."""
        distinct, codes = self.texts
        return f", such as {texts[0][:40]!r} in row {int(np.argmax(codes == distinct.index(texts[0]))) + 1}"

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of a column of categories, sorted: of cells as they were written, those of their values.

        If a cell would then not find its level, as 0x1F that of 31, they are the texts themselves.
        """
        texts = self.known
        if self.written and not is_text(self.kind):
            values = tuple(sorted(Cells(pa.table({"": self.typed}), "").known))
            number = _make_numbering(values)
            if all(number(text) < len(values) for text in texts):
                return values
        return tuple(sorted(texts))


def refuse_gaps(empty: NDArray[np.bool_], called: str, mend: str) -> None:
    """Raise InputError if cells of a column are empty, (rows,)."""
    if empty.any():
        rows = f"{int(empty.sum()):,} of {len(empty):,} rows, the first in row {int(np.argmax(empty)) + 1}"
        raise InputError(f"{called} has empty cells in {rows}: {mend}")


def read_numbers(cells: Cells, name: str, role: str, otherwise: str) -> Values:
    """Return a column of numbers, which may be written as text, (rows,).

    Args:
        cells: the column.
        name, role: what it is called, and what it is for, such as "the target".
        otherwise: the end of the message if it has no numbers.

    Raises:
        InputError: cells are empty, are not numbers, or are numbers that may be read in two ways.
    """
    called, column = f"{role} {name!r}", cells.infer()
    if is_text(column.type) and (known := cells.known):
        try:
            form, bad = find_number_form(known, cells.decimal, cells.thousands)
        except ColumnError as problem:
            raise InputError(f"{called} {problem}: {problem.mends[0]}") from None
        if form and bad:
            raise InputError(f"{called} has something that is not a number{cells.show(bad)}: fix it")
        if form:
            column = pa.chunked_array([_of_distinct(cells, partial(parse_number, form=form))[0]])
    if not is_number_type(column.type):
        example = next((value for value in column.to_pylist() if value is not None), None)
        raise InputError(f"{called} has type {column.type}, such as {str(example)[:60]!r}{otherwise}")
    values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)
    leave_out = "leave these rows out" + " (--drop-unlabelled)" * (role == "the target")
    refuse_gaps(np.isnan(values), called, f"fill them, or {leave_out}")
    return values


def _read_cells(cells: Cells, column: Column) -> Read:
    """Return the cells of a column as numbers: a category that was never seen has its own level, the last."""
    values, stored, none = cells.values, cells.stored, np.zeros(len(cells.values), np.bool_)
    if cells.held or not is_value(stored):
        raise ColumnError(f"holds {cells.held or stored}, which cannot be read")
    if pa.types.is_null(stored):
        return np.full(len(values), nan), none
    if column.kind is ColumnKind.CATEGORY:
        return _of_distinct(cells, _make_numbering(column.levels))
    written = is_text(stored)
    if column.kind is ColumnKind.DATE:
        if cells.are_dates and not (written and column.form not in ("", ISO)):
            moments = read_moments(cells.infer())
            return moments, written & (moments < FIRST_DAY)  # Arrow reads the year 0 too
        if written or (cells.are_numbers and column.form):
            return _of_distinct(cells, partial(parse_date, form=column.form))
        raise ColumnError(f"holds {stored}, not dates")
    form = column.form or ("comma" if cells.decimal == "," else "")
    mark, unit = find_decimal_mark(form), form.rpartition(AMOUNTS)[0]
    if written and form in ("", "point", "comma"):  # all at once if possible
        three = f"^[^{mark}]*[{mark}].{{3}}$"  # which may be a group of thousands
        trimmed = pc.utf8_trim_whitespace(values) if column.short_decimals else values
        if not (column.short_decimals and pc.any(pc.match_substring_regex(trimmed, three)).as_py()):
            numbers = cells.floats if (cells.decimal == ",") == (form == "comma") else None
            if numbers is None:
                numbers = cast_numbers(values, form == "comma", cells.gaps)
            if numbers is not None:
                return numbers, none
    if written:

        def parse(text: str) -> float | None:
            """Take the mark of 1.250 for thousands if the user said so; otherwise it is not a number."""
            if column.short_decimals and cells.thousands in ("", mark) and is_doubtful(text, form):
                return parse_number(text.replace(mark, ""), form) if cells.thousands else None
            number = parse_number(text, form)
            return nan if number is None and column.lenient else number

        return _of_distinct(cells, parse)
    if not cells.are_numbers:
        raise ColumnError(f"holds {stored}, not numbers")
    if unit in PERCENT_SIGNS and values.null_count < len(values):
        what = f"holds {stored}, which may be of 1 or of 100, and the cells learned from have a {unit}"
        raise ColumnError(what, f"write it as text, such as '12.5{unit}'")
    plain = values.cast(pa.string()) if pa.types.is_decimal(stored) else values
    return np.asarray(plain.cast(pa.float64(), safe=False).to_numpy(), np.float64), none


def check_alike(columns: pa.Table, name: str) -> None:
    """Raise InputError if two names in a column of a text table would become one."""
    cells = Cells(columns, name)
    if not cells.written or (is_text(cells.typed.type) and cells.floats is None):
        return
    first: dict[str, str] = {}
    for text in cells.known:
        known = first.setdefault(canonical_text(text), text)
        if known != text:
            raise InputError(
                f"column {name!r} has {known[:40]!r} and {text[:40]!r}, which are one value written in two "
                f"ways: write them alike if they mean the same, else as words, such as 'no. {known[:40]}'"
            )


def declare_cells(columns: pa.Table, **said: str) -> pa.Table:
    """Return a table with what was said about its cells.

    That is ``kept``, the words of ``GAPS`` that are ordinary text in upper or lower case, with commas between
    them; and ``thousands``, the thousands separator.
    """
    declared = {name.encode(): text.encode() for name, text in said.items()}
    return columns.replace_schema_metadata((columns.schema.metadata or {}) | declared)


def _are_digits(texts: pa.Array | pa.ChunkedArray, with_e: bool = True) -> bool:
    """Return whether texts may be codes: all are digits, if ``with_e`` some with an E among them as 12E03."""
    if with_e and not pc.any(pc.match_substring(texts, "e", ignore_case=True)).as_py():  # the faster check
        return False
    parts = texts[:FIRST_ROWS], texts
    return all(pc.all(pc.match_substring_regex(part, ALL_DIGITS)).as_py() for part in parts)


def cast_numbers(texts: pa.ChunkedArray, comma: bool, gaps: Collection[str] = ()) -> Values | None:
    """Return text as numbers, nan for nulls and words that are ``gaps``; None unless Arrow casts the rest.

    That is what ``parse_number`` reads in the forms "" and "point" (or "comma"), all at once: both
    round to the nearest float, and Arrow casts nothing that the parser refuses, except words for nan that are
    not gaps, such as nan(1). Nor is anything that Arrow casts a date or a truth value.
    """
    if gaps and (numbers := cast_numbers(texts, comma)) is not None:
        return numbers
    if gaps:
        first = cast_numbers(without_gaps(texts.slice(0, FIRST_ROWS), gaps), comma)
        return None if first is None else cast_numbers(without_gaps(texts, gaps), comma)
    if comma:
        if pc.any(pc.match_substring(texts, ".")).as_py():
            return None
        texts = pc.replace_substring(texts, ",", ".")
    try:
        texts.slice(0, FIRST_ROWS).cast(pa.float64())  # Arrow composes a message for each that it cannot cast
        cast = texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    numbers = cast.to_numpy()
    return numbers if np.count_nonzero(np.isnan(numbers)) == cast.null_count else None


def number_values(column: pa.ChunkedArray) -> NDArray[np.intp]:
    """Return a number for each row of a column without gaps, the same only for equal values.

    They count from 0 in the order of first appearance.
    """
    if pa.types.is_floating(column.type):
        column = pa.chunked_array([column.to_numpy() + 0.0])  # -0.0 and 0.0 are one number
    return list_distinct(column)[1]


def decode(coded: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values of a dictionary, which may hold a value, or null, twice.

    Raises:
        InputError: they take too many bytes.
    """
    check_text("a column", coded)
    parts = [chunk.dictionary.take(chunk.indices) for chunk in coded.chunks]
    return pa.chunked_array(parts, coded.type.value_type)


def without_gaps(values: pa.ChunkedArray, gaps: Collection[str]) -> pa.ChunkedArray:
    """Return text without spaces around it, and null in place of words that say that it is missing.

    Chunk by chunk, as each step holds a copy of all text it is given.
    """
    words, null, parts = pa.array(sorted(gaps), values.type), pa.scalar(None, values.type), []
    for chunk in values.chunks:
        trimmed = pc.utf8_trim_whitespace(chunk)
        parts.append(pc.if_else(pc.is_in(pc.utf8_lower(trimmed), words), null, trimmed))
    return pa.chunked_array(parts, values.type)


def _make_numbering(levels: tuple[str, ...]) -> Callable[[str], float]:
    """Return a function from a level, perhaps written differently, to its number; one more if unknown."""
    exact, alike = {level: i for i, level in enumerate(levels)}, positions_by_value(levels)
    return lambda text: float(exact.get(text, alike.get(canonical_text(text), len(levels))))


def read_moments(moments: pa.ChunkedArray) -> Values:
    """Return days or moments as milliseconds since 1970, nan for nulls."""
    zone = getattr(moments.type, "tz", None)
    stamps = moments.cast(pa.timestamp("ms", zone), safe=False).cast(pa.int64())
    return np.asarray(stamps.cast(pa.float64(), safe=False).to_numpy(), np.float64)


def _of_distinct(cells: Cells, parse: Callable[[str], float | None]) -> Read:
    """Return the numbers of texts, each distinct one parsed once; nan and bad where it cannot be."""
    texts, codes = cells.texts
    parsed = [nan if text is None else parse(text) for text in texts]
    numbers, bad = np.array(parsed, np.float64), np.array([number is None for number in parsed], np.bool_)
    return numbers[codes], bad[codes]


@dataclass(frozen=True)
class Schema:
    """How the columns of a table are interpreted, in their order.

    Attributes:
        columns: one for each feature.
        plain: whether all are numbers, without gaps in the rows they were learned from: every
            learner takes these as they are, and a row with a gap cannot be judged.
    """

    columns: tuple[Column, ...]
    plain: bool = False

    @classmethod
    def of_numbers(cls, names: Iterable[str]) -> "Schema":
        """Return the schema of columns of plain numbers."""
        return cls(tuple(map(Column, names)), plain=True)

    @classmethod
    def learn(cls, columns: pa.Table, names: Sequence[str], types: DeclaredTypes) -> tuple["Schema", Values]:
        """Return how the named columns of a table are interpreted, and their rows as numbers [n, d].

        Raises:
            InputError: what is wrong with every column that cannot be learned from, and how to mend each.
        """
        learned, problems = list[Column](), dict[str, str]()
        X = np.empty((columns.num_rows, len(names)))
        for i, name in enumerate(names):
            try:
                column, X[:, i] = learn_column(Cells(columns, name), name, types.kind(name))
                learned.append(column)
            except ColumnError as problem:
                problems[name] = problem.describe(name)
        if problems:
            others = f"; and so on: {some([*problems])}" if len(problems) > MAX_PROBLEMS else ""
            raise InputError("; and ".join([*problems.values()][:MAX_PROBLEMS]) + others)
        return cls(tuple(learned)).settle(X), X

    def apply(self, columns: pa.Table, gaps: bool) -> "NewRows":
        """Return the rows of a table as numbers, its columns matched by name.

        Args:
            columns: a table with the columns of the schema, and perhaps others.
            gaps: whether a row with a gap can be judged.

        Raises:
            InputError: a column is missing, or is of another kind as a whole.
        """
        names = name_numbered(columns.column_names, self.names)
        columns = columns.rename_columns(names).replace_schema_metadata(columns.schema.metadata)
        check_single(names, self.names)
        known, sparse = set(names), SPARSE in (columns.schema.metadata or {})  # there what is absent is zero
        for name in self.names:
            if name not in known and not (sparse and name.startswith("x")):
                check_column(name, names)
        X = np.zeros((columns.num_rows, len(self)))
        bad, strange = np.zeros((2, columns.num_rows), np.bool_)
        example, unseen, reasons = "", "", list[str]()
        for i, column in enumerate(self):
            if column.name not in known:
                continue
            cells = Cells(columns, column.name)
            try:
                X[:, i], wrong = _read_cells(cells, column)
            except ColumnError as problem:
                mends = ", or ".join(problem.mends) or "fix it"
                raise InputError(f"column {column.name!r} {problem}: {mends}") from None
            if column.kind is ColumnKind.DATE:
                wrong |= (cells.zoned != column.zoned) & ~np.isnan(X[:, i])
            wrong |= (np.abs(X[:, i]) > LARGEST) | (np.isnan(X[:, i]) & (not gaps))
            if wrong.any():
                reasons.append(_reason(cells, column, X[:, i], wrong))
            bad |= wrong
            if column.levels and (new := X[:, i] == len(column.levels)).any():
                example = example or f"{cells.quote(int(np.argmax(new)))} in column {column.name!r}"
                strange |= new
        if rows := int(strange.sum()):
            have = pluralize(rows, "row has", "rows have")
            unseen = f"{have} a category that was never seen, such as {example}: it counts as a rare one"
        return NewRows(X, bad, "; ".join(cut_list(reasons, "more columns like these", most=3)), unseen)

    def settle(self, X: Values) -> "Schema":
        """Return the schema, ``plain`` if that is true for rows X [rows, d]."""
        numbers = all(column.kind is ColumnKind.NUMBER for column in self)
        return replace(self, plain=numbers and not np.isnan(X).any())

    def narrow(self, X: Values) -> "Schema":
        """Return how columns are interpreted from some rows X [rows, d] alone: with the categories they hold.

        Raises:
            InputError: a column is empty in all of these rows.
        """
        narrowed: list[Column] = []
        for column, x in zip(self, X.T, strict=True):
            gap = np.isnan(x)
            if gap.all():
                empty = ColumnError("is empty in every row that is learned from")
                raise InputError(empty.describe(column.name))
            held = np.flatnonzero(np.bincount(x[~gap].astype(np.intp))) if column.levels else ()
            narrowed.append(replace(column, levels=tuple(column.levels[i] for i in held)))
        return Schema(tuple(narrowed)).settle(X)

    def translate(self, X: Values, narrowed: "Schema") -> Values:
        """Return rows X [rows, d] in a narrower schema: its missing categories count as never seen."""
        X = X.copy()
        for i, (column, narrower) in enumerate(zip(self, narrowed, strict=True)):
            if column.levels != narrower.levels:
                number = {level: i for i, level in enumerate(narrower.levels)}
                unseen = len(narrower.levels)
                levels = [*(number.get(level, unseen) for level in column.levels), unseen]
                known = ~np.isnan(X[:, i])
                X[known, i] = np.array(levels, np.float64)[X[known, i].astype(np.intp)]
        return X

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, position: int) -> Column:
        return self.columns[position]


class NewRows(NamedTuple):
    """Rows to be predicted, as numbers.

    Attributes:
        X: (rows, d); a category that was never seen has its own level.
        bad: which rows cannot be judged, (rows,).
        reason: what is wrong with the first of each column; "" if all can.
        unseen: says how many rows have a category that was never seen; "" if none.
    """

    X: Values
    bad: NDArray[np.bool_]
    reason: str
    unseen: str = ""

    def check(self) -> None:
        """Raise InputError if a row cannot be judged."""
        if self.reason:
            raise InputError(self.reason)


def _reason(cells: Cells, column: Column, x: Values, wrong: NDArray[np.bool_]) -> str:
    """Return why the first wrong row of a column cannot be judged."""
    row = int(np.argmax(wrong))
    said, form = cells.values[row].as_py(), column.form or ("comma" if cells.decimal == "," else "")
    shown = f"{str(said)[:40]!r} in row {row + 1}"
    if said is None or said != said or (isinstance(said, str) and not drop_gaps([bare(said)], cells.gaps)):
        shown, wanted = f"an empty cell in row {row + 1}", ""
    elif column.kind is ColumnKind.DATE:
        written = "%Y-%m-%d" if column.form in (ISO, "") else column.form
        date = datetime(2026, 11, 23, 12, 30).strftime(f"date such as {written}")
        wanted = f", not a {date}, {'with' if column.zoned else 'without'} a time zone"
    elif column.short_decimals and is_doubtful(bare(str(said)), form):
        mark = find_decimal_mark(form)
        wanted = (
            f", not a number with one or two decimals; say --thousands {mark} if it marks thousands there, "
            f"--thousands {',.'.replace(mark, '')} if decimals"
        )
    else:
        wanted = f", not a number{f' up to {LARGEST:g}' if abs(x[row]) > LARGEST else ''}"
    return f"column {column.name!r} has {shown}{wanted}: fix it"


def learn_column(cells: Cells, name: str, asked: ColumnKind | None) -> tuple[Column, Values]:
    """Return how a column is interpreted, as a kind that may be ``asked`` for, and its numbers (rows,).

    Raises:
        ColumnError: it is empty, or of several kinds; or the largest magnitude, gaps or not, is above 1e150,
            or above 0 and below 1e-150.
    """
    column = _infer(cells, name, asked)
    numbers, bad = _read_cells(cells, replace(column, short_decimals=False))  # none here has three
    if bad.any():  # Arrow reads numbers or dates that are not ours, such as nan(1) and 0000-01-01
        column = _infer_text(cells, name, asked)
        numbers = _read_cells(cells, column)[0]
    if np.isnan(numbers).all():
        raise ColumnError("is empty")
    most = int(np.nanargmax(np.abs(numbers)))
    if not (numbers[most] == 0 or 1 / LARGEST <= abs(numbers[most]) <= LARGEST):
        span = f"{1 / LARGEST:g} to {LARGEST:g}"
        scale = f"magnitudes are from {span}, and no number may stand for a missing value"
        raise ColumnError(f"has {numbers[most]} in row {most + 1}, the largest", f"fix it ({scale})")
    if column.kind is ColumnKind.DATE:
        known = ~np.isnan(numbers)
        zoned = cells.zoned & known
        if zoned.any() and not np.array_equal(zoned, known):
            first = int(np.argmax(zoned))
            what = f"has times with a zone, such as {cells.quote(first)} in row {first + 1}, and without"
            raise ColumnError(what, "write all in one way", CATEGORY)
        column = replace(column, zoned=bool(zoned.any()))
    return column, numbers


def _infer(cells: Cells, name: str, asked: ColumnKind | None) -> Column:
    if cells.declared and not cells.are_dates and asked is None and len(cells.texts[0]) < len(cells.values):
        asked = ColumnKind.CATEGORY
    if asked is ColumnKind.CATEGORY and cells.known and is_value(cells.stored):
        return Column(name, asked, cells.levels)
    if cells.mistaken or is_text(cells.kind):
        return _infer_text(cells, name, asked)
    if cells.are_numbers and asked is ColumnKind.DATE:  # such as 20261123
        form, bad = _find_date_form(cells.known) if cells.known else ("", [])
        if not form or bad:
            raise ColumnError("holds numbers, not all dates such as 20261123", "leave it out of {date}")
        return Column(name, ColumnKind.DATE, form=form)
    if cells.are_numbers:
        if asked is None and cells.written and _are_digits(cells.values):  # these may be codes
            return _infer_text(cells, name, asked)
        form = "comma" if cells.decimal == "," else ""
        one_or_two = f"^[^{find_decimal_mark(form)}]*[{find_decimal_mark(form)}].{{1,2}}$"
        looked_at = (cells.values.slice(0, FIRST_ROWS), cells.values)  # most others are found at once
        found = (pc.all(pc.match_substring_regex(values, one_or_two)).as_py() for values in looked_at)
        short = cells.written and not cells.thousands and all(found)
        return Column(name, form=form, lenient=asked is ColumnKind.NUMBER, short_decimals=short)
    if cells.are_dates:
        if asked is ColumnKind.NUMBER:
            raise ColumnError("holds dates, not numbers", "leave it out of {numeric}")
        return Column(name, ColumnKind.DATE)
    if pa.types.is_time(cells.kind):
        what = f"holds times of day ({cells.kind})"
        raise ColumnError(what, "write them as numbers, such as minutes", CATEGORY)
    if pa.types.is_null(cells.kind) and not cells.held:
        raise ColumnError("is empty")
    raise ColumnError(f"holds {cells.held or cells.kind}, which cannot be learned from")


def _infer_text(cells: Cells, name: str, asked: ColumnKind | None) -> Column:
    known, rows = cells.known, cells.count(cells.known)
    if not known:
        raise ColumnError("is empty")
    if asked in (None, ColumnKind.NUMBER):
        form, bad = find_number_form(known, cells.decimal, cells.thousands)
        wrong, numbers = cells.count(bad), set(known).difference(bad)
        for form_of, cure in FOREIGN.items():
            foreign = [text for text in bad if re.match(form_of, text)]
            if foreign and wrong - cells.count(foreign) <= (1 - MOSTLY) * rows:
                raise ColumnError(f"has what may be numbers or times{cells.show(foreign)}", cure, CATEGORY)
        whole = form.rpartition(AMOUNTS)[2] in ("thousands", "points")
        parts = (_read_amount(text)[1].rpartition(find_decimal_mark(form)) for text in numbers)
        few = all(last.isdigit() and len(last) in (1, 2) if mark else whole for _, mark, last in parts)
        short = bool(numbers) and not cells.thousands and few
        if asked is ColumnKind.NUMBER and not numbers:
            raise ColumnError(f"holds no numbers{cells.show(bad)}", "leave it out of {numeric}")
        if asked is None and not bad and _are_digits(pa.array(known)):
            codes = [text for text in known if "e" in text.lower()]
            what = f"has what may be numbers or codes{cells.show(codes)}"
            raise ColumnError(what, f"say {{numeric}} ({float(codes[0]):g})", CATEGORY)
        if not bad or asked is ColumnKind.NUMBER:
            return Column(name, form=form, lenient=asked is ColumnKind.NUMBER, short_decimals=short)
        if wrong <= (1 - MOSTLY) * rows and form:
            what = f"holds numbers and in {pluralize(wrong, 'row')} something else{cells.show(bad)}"
            raise ColumnError(what, "mend it", "say {numeric} (anything else is a gap)", CATEGORY)
    if asked is ColumnKind.DATE or LOOKS_LIKE_DATE.match(known[0]):
        form, bad = _find_date_form(known)
        if not bad:
            return Column(name, ColumnKind.DATE, form=form)
        others = [text for text in bad if not any(re.match(form, text) for form in FOREIGN)]
        if asked is ColumnKind.DATE or cells.count(others) <= (1 - MOSTLY) * rows:
            what = f"holds dates and in {pluralize(cells.count(bad), 'row')} something else{cells.show(bad)}"
            raise ColumnError(what, f"write all in one way, such as {WRITTEN_DATES}", CATEGORY)
    if len(known) == rows and rows > 2:
        shown = f"{pluralize(rows, 'row')}{cells.show(known)}"
        what = f"has a different text in each of its {shown}, from which nothing can be learned"
        raise ColumnError(what, "say {id} if it names the rows")
    return Column(name, ColumnKind.CATEGORY, cells.levels)
