"""Forms of text: what is a gap, how numbers and dates are written, and what reads them."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

GAPS = frozenset(
    ("", "?", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "-", "--", ".", "n.a.", "missing")
)
DAY_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%d %b %Y", "%Y%m%d")
TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", "T%H:%M")
LOOKS_LIKE_DATE = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}([ T]|$)|\d{1,2} [A-Za-z]{3} \d{4}$")
POINT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$")
COMMA = re.compile(r"[+-]?([1-9]\d{0,2}(\.\d{3})+|\d*),\d+$")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


Parser = Callable[[str], float | None]


class ColumnError(Exception):
    """What is wrong with a column, without its name."""


def known_texts(distinct: Iterable[str | None]) -> list[str]:
    """Return the texts that are no gaps."""
    return [text for text in distinct if text is not None and text.lower() not in GAPS]


def form_of_numbers(texts: Sequence[str], name: str) -> tuple[str, list[str]]:
    """Return the form in which most of some texts are numbers, "" for none, and those that are not in it.

    Raises:
        ColumnError: a comma may be that of thousands or of decimals.
    """
    found = {}
    for form, pattern in (("point", None), ("comma", COMMA), ("thousands", THOUSANDS)):
        found[form] = [text for text in texts if not (POINT.match(text) or (pattern and pattern.match(text)))]
    form = min(found, key=lambda form: len(found[form]))
    bad = [text for text in found[form] if number_parser("point")(text) is None]
    if form != "point" and len(found["comma"]) == len(found["thousands"]):
        both = next(text for text in texts if THOUSANDS.match(text))
        raise ColumnError(
            f"has numbers such as {both!r}, whose comma may be that of decimals or of thousands: write them "
            f"with a point, or without, or {leave_out(name)}"
        )
    return ("" if len(bad) == len(texts) else form), bad


def number_parser(form: str) -> Parser:
    """Return what reads text as numbers: "point", "comma" for decimals, or "thousands" with commas."""

    def parse(text: str) -> float | None:
        if form == "comma" and COMMA.match(text):
            text = text.replace(".", "").replace(",", ".")
        elif form == "thousands" and THOUSANDS.match(text):
            text = text.replace(",", "")
        try:
            return None if "_" in text else float(text)
        except ValueError:
            return None

    return parse


def form_of_dates(texts: Sequence[str], name: str) -> tuple[str, list[str]]:
    """Return the format in which most of some texts are dates, and those that are none.

    Raises:
        ColumnError: all are dates in two formats that do not agree.
    """
    best, fewest = "", list(texts)
    equal: list[str] = []
    for form in (day + time for day in DAY_FORMATS for time in TIMES):
        parse = date_parser(form)
        if parse(texts[0]) is None and parse(texts[-1]) is None:
            continue
        bad = [text for text in texts if parse(text) is None]
        if len(bad) < len(fewest):
            best, fewest, equal = form, bad, []
        elif len(bad) == len(fewest) < len(texts):
            equal.append(form)
    for other in equal:
        one, two = date_parser(best), date_parser(other)
        if differing := [text for text in texts if one(text) != two(text)]:
            raise ColumnError(
                f"has dates such as {differing[0]!r}, whose month may come first or second: write them as "
                f"2026-11-23, or say --categorical {name[:60]}, or {leave_out(name)}"
            )
    return best, fewest


def date_parser(form: str) -> Parser:
    """Return what reads text as milliseconds since 1970, by a format of ``strptime``; None if it is none."""

    def parse(text: str) -> float | None:
        try:
            moment = datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            return None
        return (moment - EPOCH).total_seconds() * 1000

    return parse


def leave_out(name: str) -> str:
    """Say how to leave a column out."""
    return f"leave it out with --drop {name[:60]} or --features"
