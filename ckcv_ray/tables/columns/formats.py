"""Forms of text: what is a gap, how numbers and dates are written, and what reads them.

Kinds of columns: numbers, categories and dates, and how each column is understood.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from math import inf
from typing import NamedTuple
from unicodedata import category, normalize

from ckcv_ray.errors import write_option


class ColumnKind(StrEnum):
    """What a column holds."""

    NUMBER = "number"
    CATEGORY = "category"
    DATE = "date"


@dataclass(frozen=True)
class Column:
    """How a column is understood.

    Attributes:
        name: its name.
        kind: what it holds.
        levels: the text of each level of a category, sorted; empty for other kinds.
        form: how text is read: see ``formats.number_parser`` and ``formats.date_parser``; "" for columns that
            were not text.
        lenient: whether what is no number is a gap, as ``--numeric`` asks.
        zoned: whether dates are moments that say how far they are from UTC; a day alone does not.
        short_decimals: whether every number was text with one or two decimals, or none but thousands, and
            nobody said what marks thousands: a cell with three, such as 1.250, may then have such a mark.
    """

    name: str
    kind: ColumnKind = ColumnKind.NUMBER
    levels: tuple[str, ...] = ()
    form: str = ""
    lenient: bool = False
    short_decimals: bool = False
    zoned: bool = False


class DeclaredTypes(NamedTuple):
    """What the user says of columns.

    Attributes:
        categorical, numeric, date: names of the columns of each kind.
        thousands: the mark between thousands, a comma or a point, where a number does not tell; "" if that
            is not known.
        labels: what labels are that differ in case or spaces alone, or are one number: "join" for one class,
            "apart" for several; "" to ask.
        drop_unlabelled: whether rows without a label are left out; otherwise they are refused.
        keep_values: words that are otherwise taken for empty cells, such as NA, in any case of letters: here
            they are text like any other, in every column.
    """

    categorical: Collection[str] = ()
    numeric: Collection[str] = ()
    date: Collection[str] = ()
    thousands: str = ""
    labels: str = ""
    drop_unlabelled: bool = False
    keep_values: Collection[str] = ()

    @property
    def names(self) -> dict[str, Collection[str]]:
        """The names of the columns of each kind, by the option that says so."""
        return {"categorical": self.categorical, "numeric": self.numeric, "date": self.date}

    def kind(self, name: str) -> ColumnKind | None:
        """Return the kind that was asked for; None if the values decide."""
        kinds = (ColumnKind.CATEGORY, ColumnKind.NUMBER, ColumnKind.DATE)
        asked = zip(kinds, self.names.values(), strict=True)
        return next((kind for kind, names in asked if name in names), None)


NOTHING_ASKED = DeclaredTypes()
NO_NAMES = frozenset(  # what names no label, and no group
    (
        *("", "?", "na", "n/a", "#n/a", "nan", "null", "n.a.", "#na", "#n/a n/a", "<na>", "-nan"),
        *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
    )
)
MINUS = "\u2212"  # as word processors and spreadsheets write it
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
NAMED_ZONE = re.compile(  # at the end of a moment, such as CET or Europe/Rome; AM and PM are none
    r"\b\d{4}\b.*\d\d:\d\d(:\d\d(\.\d+)?)? ?(?!AM\b|PM\b)([A-Z]{2,5}\b|[A-Z][a-z]+/\w+$)"
)
TIME = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d)(?:\.0+)?)?$", re.ASCII)
HYPHEN = re.compile(r"(?<=\w)[-_\u2010-\u2015\u2212](?=\w)")
TRUTH = {"true": 1.0, "false": 0.0}
EITHER_SIGN = f"[+{MINUS}-]?"
DECIMALS = r"(?:\d+\.?\d*|\.\d+)"
POINT = re.compile(rf"{EITHER_SIGN}{DECIMALS}([eE]{EITHER_SIGN}\d+)?$")
COMMA = re.compile(rf"{EITHER_SIGN}\d*,\d+$")
HEX = re.compile(r"0[xX][0-9a-fA-F]{1,16}$")
POINTS = re.compile(rf"{EITHER_SIGN}[1-9]\d{{0,2}}(\.\d{{3}})+(,\d+)?$")  # points of thousands
THOUSANDS = re.compile(rf"{EITHER_SIGN}[1-9]\d{{0,2}}(,\d{{3}})+(\.\d*)?$")
FORTRAN = re.compile(rf"{EITHER_SIGN}{DECIMALS}[dD]{EITHER_SIGN}\d+$")
QUOTED = re.compile(rf"['\u2019]{EITHER_SIGN}\d[\d.,]*['\u2019]?$")  # as spreadsheets write text
SHEET_ERROR = re.compile(r"#[^\W\d_]+(/0)?[!?]$|#NV$|Err:\d{3}$")
DASH = re.compile(rf"[{MINUS}\u2010-\u2015-]+$")
E_CODE = r"^\s*\d+[eE]\d+\s*$"  # such as 12E03
ALL_DIGITS = r"^\s*\d+([eE]\d+)?\s*$"
DIGIT_SPACES = " \u00a0\u2009\u202f"  # plain, no-break, thin and narrow
APOSTROPHES = "'\u2019"
SIGNS = r"%\u2030$\u00a2-\u00a5\u058f\u060b\u09f2\u09f3\u0e3f\u17db\u20a0-\u20c0"  # %, per mille, currencies
PERCENT_SIGNS = ("%", "\u2030")
CODES = (  # of currencies, ISO 4217: those that are traded most
    *("AED", "ARS", "AUD", "BRL", "CAD", "CHF", "CLP", "CNY", "COP", "CZK", "DKK", "EUR", "GBP", "HKD"),
    *("HUF", "IDR", "ILS", "INR", "JPY", "KRW", "MXN", "MYR", "NOK", "NZD", "PHP", "PLN", "RON", "RUB"),
    *("SAR", "SEK", "SGD", "THB", "TRY", "TWD", "USD", "ZAR"),
)
UNIT = f"[{SIGNS}]|{'|'.join(CODES)}"
AMOUNT = re.compile(
    rf"(?P<sign>{EITHER_SIGN})(?P<before>{UNIT})?[{DIGIT_SPACES}]?(?P<inner>{EITHER_SIGN})(?P<digits>\d[\d.,{DIGIT_SPACES}{APOSTROPHES}]*?)"
    rf"[{DIGIT_SPACES}]?(?P<after>{UNIT})?$"
)
GROUPED_DIGITS = re.compile(
    rf"[1-9]\d{{0,2}}(?:([{DIGIT_SPACES}{APOSTROPHES}])\d{{3}})(?:\1\d{{3}})*(?:[.,]\d*)?$"
)
PLAIN = re.compile(r"\d+(?:[.,]\d*)?$|\d{1,3}(?:([.,])\d{3})+(?:[.,]\d*)?$")
LAST_EXACT = 2.0**53  # from here on floats hold only some whole numbers
AMOUNTS = "|"  # between the unit of amounts and the form of their numbers
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Parser = Callable[[str], float | None]


class ColumnError(Exception):
    """What is wrong with a column, without its name."""


def bare(text: str) -> str:
    """Return text without spaces around it, and without the quotes that a space has kept in place."""
    text = text.strip()
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1].replace('""', '"').strip() if quoted else text


def drop_gaps(distinct: Iterable[str | None], gaps: Collection[str] = GAPS) -> list[str]:
    """Return the texts that are no gaps."""
    return [text for text in distinct if text is not None and text.lower() not in gaps]


def canonical_text(text: str) -> str:
    """Return the same for texts of one value: True and true, 01 and 1.0, 1,5 and 1.5, 08:00 and 08:00:00.

    So are letters with an accent of their own or one after them, which look alike: Unicode's form C. Whole
    numbers of which floats hold only some are compared to their last digit, as they are names.
    """
    if text.lower() in TRUTH:
        return text.lower()
    if POINT.match(text) or (COMMA.match(text) and not THOUSANDS.match(text)):
        number = _to_float(text.replace(",", "."))
        digits = text.lstrip(f"+{MINUS}-0")
        if LAST_EXACT <= abs(number) < inf and digits.isdecimal():
            return f"number {int(digits) if number > 0 else -int(digits)}"
        return f"number {number + 0.0!r}"
    if (whole := _hexadecimal(text)) is not None:
        return f"number {whole if whole >= LAST_EXACT else float(whole)!r}"
    if (moment := _iso(text)) is not None:
        return f"date {moment!r}"
    if parts := TIME.match(text):
        return "time {:02d}:{}:{}".format(int(parts[1]), parts[2], parts[3] or "00")
    return normalize("NFC", text)


def fold_text(text: str) -> str:
    """Return the same for texts that are one value, or that differ in what is easily written otherwise.

    That is case, spaces, hyphens and dashes between words, a point at the end, and signs of no width.
    """
    value = canonical_text(text)
    if value != normalize("NFC", text):  # a number, a date, a time or a truth value
        return value
    return canonical_text(fold_marks(value).casefold())


def fold_marks(text: str) -> str:
    """Return text without spaces, hyphens between words, a point at the end, and signs of no width."""
    seen = "".join(sign for sign in text if category(sign) != "Cf")
    words = HYPHEN.sub(" ", seen.strip())
    return "".join((words[:-1] if words.endswith(".") and len(words) > 1 else words).split())


def positions_by_value(
    texts: Sequence[str], make_key: Callable[[str], str] = canonical_text
) -> dict[str, int]:
    """Return the position of each text by its ``canonical_text``, without those that two texts share."""
    ways = [make_key(text) for text in texts]
    count = Counter(ways)
    return {way: i for i, way in enumerate(ways) if count[way] == 1}


def find_number_form(
    texts: Sequence[str], name: str, decimal: str | None = None, thousands: str = ""
) -> tuple[str, list[str]]:
    """Return the form in which most of some texts are numbers, "" for none, and those that are not in it.

    Args:
        texts: at least one.
        name: of the column.
        decimal: the decimal mark of other columns of the table, if it is known.
        thousands: the mark between thousands, "," or ".", if that was said.

    Raises:
        ColumnError: a comma or a point may be that of thousands or of decimals.
    """
    if amounts := _list_amounts(texts):
        return _form_of_amounts(texts, amounts, name, decimal, thousands), []
    found = {
        "point": [text for text in texts if not POINT.match(text)],
        "comma": [
            text
            for text in texts  # a point, or none, that cannot be one of thousands
            if not (COMMA.match(text) or (POINT.match(text) and not POINTS.match(text)))
        ],
        "points": [text for text in texts if not (_has_points(text) or COMMA.match(text))],
        "thousands": [text for text in texts if not (POINT.match(text) or THOUSANDS.match(text))],
    }
    if thousands and any(thousands in text for text in texts):
        found = {form: found[form] for form in (("points",) if thousands == "." else ("thousands",))}
    form = min(found, key=lambda form: len(found[form]))
    doubtful = form == "comma" and len(found["comma"]) == len(found["thousands"])
    if doubtful and decimal == ".":
        form, doubtful = "thousands", False
    parse = choose_number_parser(form)
    bad = [text for text in found[form] if text.lower() in TRUTH or parse(text) is None]
    if thousands:
        return ("" if len(bad) == len(texts) else form), bad
    if doubtful:
        raise _ambiguous("comma", next(text for text in texts if THOUSANDS.match(text)), name)
    points = [text for text in texts if "." in text and _has_points(text)]
    certain = any("," in text or text.count(".") > 1 for text in points)
    if form == "points" and not certain:
        raise _ambiguous("point", points[0], name)
    if form == "point" and decimal == "," and points and len(points) == sum("." in text for text in texts):
        raise _ambiguous("point", points[0], name)
    return ("" if len(bad) == len(texts) else form), bad


class Amount(NamedTuple):
    """A number with a unit, or with spaces or apostrophes between thousands."""

    unit: str  # such as "%" or "EUR"; "" for none
    number: str  # what is left, without these spaces and apostrophes
    grouped: bool  # whether there were any


def split_amount(text: str) -> Amount | None:
    """Return the parts of an amount such as $7,000, 1 250,00 EUR, 16.29% or (3,400), which is negative.

    None of other text, of plain numbers as well: these are read by their own forms.
    """
    negative = text.startswith("(") and text.endswith(")")
    found = AMOUNT.match(text[1:-1].strip() if negative else text)
    if found is None or (found["before"] and found["after"]) or (found["sign"] and found["inner"]):
        return None
    digits, sign = found["digits"], found["sign"] or found["inner"]
    grouped = bool(GROUPED_DIGITS.match(digits))
    if not (grouped or PLAIN.match(digits)) or (negative and sign):
        return None
    unit = found["before"] or found["after"] or ""
    if not (unit or grouped or negative):
        return None
    number = re.sub(f"[{DIGIT_SPACES}{APOSTROPHES}]", "", digits)
    return Amount(unit, f"{'-' if negative else sign}{number}", grouped)


def _list_amounts(texts: Iterable[str]) -> list[Amount]:
    amounts = list[Amount]()
    for text in texts:
        amount = split_amount(text) or (Amount("", text, False) if PLAIN.match(text) else None)
        if amount is None:
            return []
        amounts.append(amount)
    units = {amount.unit for amount in amounts}
    written = any(amount.unit or amount.grouped for amount in amounts) or any("(" in text for text in texts)
    return amounts if written and ("" not in units or len(units) == 1) else []


def _form_of_amounts(
    texts: Sequence[str], amounts: Sequence[Amount], name: str, decimal: str | None, thousands: str
) -> str:
    """Return the form of texts that are amounts: their unit, and the form of their numbers."""
    if len(units := {amount.unit: text for text, amount in zip(texts, amounts, strict=True)}) > 1:
        (_, first), (_, second), *_ = sorted(units.items())
        raise ColumnError(
            f"has amounts in several units, such as {first!r} and {second!r}: write all in one, or say "
            f"{write_option('categorical', name)}, or {advise_dropping(name)}"
        )
    form, bad = find_number_form([amount.number for amount in amounts], name, decimal, thousands)
    if bad:
        example = next(text for text, amount in zip(texts, amounts, strict=True) if amount.number == bad[0])
        raise ColumnError(
            f"has amounts whose points and commas differ in meaning, such as {example!r}: write all in one "
            f"way, or say {write_option('categorical', name)}, or {advise_dropping(name)}"
        )
    return f"{amounts[0].unit}{AMOUNTS}{form}"


def find_decimal_mark(form: str) -> str:
    """Return the decimal mark of numbers in a form of ``number_parser``."""
    return "," if form.rpartition(AMOUNTS)[2] in ("comma", "points") else "."


def has_short_decimals(texts: Iterable[str], form: str) -> bool:
    """Return whether all of some numbers in a form have one or two decimals, or only marks of thousands."""
    mark = find_decimal_mark(form)
    whole = form.rpartition(AMOUNTS)[2] in ("thousands", "points")
    decimals = (_split_number(text).rpartition(mark) for text in texts)
    return all(last.isdigit() and len(last) in (1, 2) if found else whole for _, found, last in decimals)


def is_doubtful(text: str, form: str) -> bool:
    """Return whether the decimal mark of a number in a form may be one between thousands, as in 1.250."""
    pattern = POINTS if find_decimal_mark(form) == "." else THOUSANDS
    number = _split_number(text)
    return bool(len(re.findall("[.,]", number)) == 1 and pattern.match(number))


def _split_number(text: str) -> str:
    amount = split_amount(text)
    return text if amount is None else amount.number


def has_thousands(texts: Iterable[str], mark: str) -> bool:
    """Return whether a mark, a comma or a point, may stand between thousands wherever it does."""
    form = THOUSANDS if mark == "," else POINTS
    written = [text for text in texts if mark and mark in text]
    return bool(written) and all(map(form.match, written))


def _has_points(text: str) -> bool:
    """Return whether text is a number whose points, if any, may be those of thousands."""
    return bool(POINTS.match(text) or (POINT.match(text) and "." not in text))


def _ambiguous(mark: str, text: str, name: str) -> ColumnError:
    said, clear = (",", "a point") if mark == "comma" else (".", "a comma, or with two decimals")
    return ColumnError(
        f"has numbers such as {text!r}, whose {mark} may be that of decimals or of thousands: say "
        f"--thousands {said} if it is that of thousands, or write them with {clear}, or without, or "
        f"{advise_dropping(name)}"
    )


def choose_number_parser(form: str) -> Parser:
    """Return what reads text as numbers.

    Args:
        form: "point" for a decimal point, "comma" for a decimal comma, "points" for one with points between
            thousands, "thousands" for a decimal point with commas between thousands; "" for what a text
            table takes as a number by itself; after a unit and "|" that of amounts in this unit, such as
            "$|thousands". A text table's truth values and its whole numbers to the base
            16, such as 0x1F, are numbers in "" and "comma".
    """
    unit, amounts, inner = form.rpartition(AMOUNTS)
    if amounts:
        plain = choose_number_parser(inner)

        def parse_amount(text: str) -> float | None:
            amount = split_amount(text)
            if amount is None:  # a number without a % may be of 1 or of 100
                return None if unit in PERCENT_SIGNS else plain(text)
            same = amount.unit == unit or (not amount.unit and unit not in PERCENT_SIGNS)
            return plain(amount.number) if same else None

        return parse_amount

    def parse(text: str) -> float | None:
        if form in ("", "comma") and text.lower() in TRUTH:
            return TRUTH[text.lower()]
        if form in ("", "comma") and HEX.match(text):
            return _hexadecimal(text)
        if form == "comma" and POINTS.match(text):
            return None
        if form == "points" and "." in text and not POINTS.match(text):
            return None
        if form == "thousands" and THOUSANDS.match(text):
            text = text.replace(",", "")
        elif form == "points" or (form == "comma" and "." not in text):
            text = text.replace(".", "").replace(",", ".")
        try:
            return None if "_" in text else _to_float(text)
        except ValueError:
            return None

    return parse


def _to_float(text: str) -> float:
    """Return a number that is written with a point, and perhaps with another sign for minus."""
    return float(text.replace(MINUS, "-"))


def _hexadecimal(text: str) -> int | None:
    """Return a whole number of up to 63 bits to the base 16, such as 0x1F; None if text is none."""
    return whole if HEX.match(text) and (whole := int(text, 16)) < 2**63 else None


def find_date_form(texts: Sequence[str], name: str) -> tuple[str, list[str]]:
    """Return the format in which most of some texts are dates, and those that are none.

    Raises:
        ColumnError: the month may come first or second.
    """
    best, fewest = "", list(texts)
    equal: list[str] = []
    for form in (day + time for day in DAY_FORMATS for time in TIME_FORMS):
        parse = choose_date_parser(form)
        if parse(texts[0]) is None and parse(texts[-1]) is None:
            continue
        bad = [text for text in texts if parse(text) is None]
        if len(bad) < len(fewest):
            best, fewest, equal = form, bad, []
        elif len(bad) == len(fewest) < len(texts):
            equal.append(form)
    if equal:
        first, second = choose_date_parser(best), choose_date_parser(equal[0])
        example = next((text for text in texts if first(text) != second(text)), texts[0])
        raise ColumnError(
            f"has dates such as {example!r}, whose month may come first or second: write them as "
            f"2026-11-23, or say {write_option('categorical', name)}, or {advise_dropping(name)}"
        )
    if fewest and len(bad := [text for text in texts if _iso(text) is None]) < len(fewest):
        return ISO, bad
    return best, fewest


def choose_date_parser(form: str) -> Parser:
    """Return what reads text as milliseconds since 1970 in UTC; None if it is no date.

    Args:
        form: a format of ``strptime``; "iso", or "", for dates such as 2026-11-23T12:30:00+01:00.
    """

    def parse(text: str) -> float | None:
        if form == NUMBER_DATES and POINT.match(text) and _to_float(text).is_integer():  # such as 20261123.0
            text = str(int(_to_float(text)))
        try:
            moment = datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            return None
        return (moment - EPOCH).total_seconds() * 1000

    return _iso if form in (ISO, "") else parse


def write_example(form: str) -> str:
    """Return a date written in a form of ``date_parser``."""
    return datetime(2026, 11, 23, 12, 30).strftime("%Y-%m-%d" if form in (ISO, "") else form)


def _iso(text: str) -> float | None:
    if not ISO_DATE.match(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH
    return float(int(since / timedelta(milliseconds=1)))  # as Arrow cuts fractions off


def advise_dropping(name: str) -> str:
    """Say how to leave a column out."""
    if not name.strip():
        return "give it a name, or list the others in --features"
    return f"leave it out with {write_option('drop', name)} or --features"
