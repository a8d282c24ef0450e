"""Numbers by class label, such as weights and costs: ``sick=10,well=1``, or a mapping.

The canonical form is text, sorted by label, with numbers to 12 significant digits: hashable, the same for
every order, and the same in JSON, in TOML and on the command line. A label is written as ``str`` writes it.
One that has a comma, a quotation mark or a line break, or begins or ends with a blank, is quoted as in a CSV
file; otherwise blanks around it do not count.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ckcv_ray.errors import InputError, cut
from ckcv_ray.validation import check_count, number, quote

MOST_LABELS = 1_000
MOST_TEXT = 400
SPECIAL = ',"\r\n'
LABEL_FORM = "LABEL=NUMBER for one label or more, such as sick=10,well=1"
# csv.reader does not say which cells were quoted, whose outer blanks belong to the label
CELL = re.compile(r' *(?:"([^"]*(?:""[^"]*)*)" *|([^", \r\n][^,\r\n]*))(?=,|\Z)')  # quoted or bare


def canonicalize(name: str, values: Any, form: str = LABEL_FORM, zero: bool = False) -> str:
    """Return the canonical text of numbers by label, given as text or as a mapping.

    Args:
        name: name of the option, for messages.
        values: the numbers.
        form: what is allowed, for messages.
        zero: whether a number may be 0; else all must be positive.

    Raises:
        InputError: it is neither, is empty, names a label twice, or a number is not in its range.
    """
    pairs = _parse_pairs(name, values, form) if isinstance(values, str) else _items(name, values, form)
    given: dict[str, float] = {}
    for label, value in pairs:
        if label in given:
            raise InputError(f"{name}={quote(values)} names {quote(label)} twice: name each label once")
        given[label] = _in_range(f"{name} of {quote(label)}", value, zero)
    if not given:
        raise InputError(f"{name}={quote(values)} is empty: expected {form}")
    return to_text(given)


def parse_numbers_by_label(text: str) -> dict[str, float]:
    """Return the numbers in canonical text, by label."""
    return dict(_parse_pairs("", text, LABEL_FORM))


def to_text(numbers: Mapping[str, float]) -> str:
    """Return numbers by label as canonical text."""
    return ",".join(_cell(label, f"{value:.12g}") for label, value in sorted(numbers.items()))


def of_classes(name: str, text: str, classes: Sequence[Any]) -> list[float | None]:
    """Return the number of each class from canonical text; None for a class that is not named.

    Raises:
        InputError: a name is not a label of these classes, or two names are one label.
    """
    found: dict[int, tuple[str, float]] = {}
    for label, value in parse_numbers_by_label(text).items():
        position = find_class(name, label, classes)
        if position in found:
            raise InputError(
                f"{name} names {quote(str(classes[position]))} twice, as {quote(found[position][0])} and "
                f"as {quote(label)}: name each label once"
            )
        found[position] = label, value
    return [found[i][1] if i in found else None for i in range(len(classes))]


def find_class(name: str, label: str, classes: Sequence[Any]) -> int:
    """Return the number of the class with a label.

    A label is named by its text; a number also by an equal one, as 1 and 1.0, and True and False in any case.

    Raises:
        InputError: there is none.
    """
    for is_label in (_is_text, _is_equal):
        for position, known in enumerate(classes):
            if is_label(label, known):
                return position
    raise InputError(
        f"{name} names {quote(label)}, which is no label of the target: the labels are {some_labels(classes)}"
    )


def some_labels(classes: Sequence[Any]) -> str:
    """Format the labels of classes for a message, up to a number and a length."""
    more = f", ... ({len(classes)} in all)" if len(classes) > 12 else ""
    return cut(", ".join(quote(str(known)) for known in classes[:12]), MOST_TEXT) + more


def _is_text(text: str, label: Any) -> bool:
    return text == str(label)


def _is_equal(text: str, label: Any) -> bool:
    if isinstance(label, str):
        return False
    if isinstance(label, bool):
        return text.casefold() == str(label).casefold()
    try:
        return bool(float(text) == label)
    except ValueError:
        return False


def _parse_pairs(name: str, text: str, form: str) -> list[tuple[str, float]]:
    """Parse LABEL=NUMBER,LABEL=NUMBER; a label may contain "="."""
    try:
        pairs = [_pair(*cell) for cell in islice(_cells(text), MOST_LABELS + 1)]
    except ValueError:
        raise InputError(f"{name}={quote(text)}: expected {form}") from None
    check_count(name, len(pairs), MOST_LABELS)
    return pairs


def _cells(text: str) -> Iterator[tuple[str | None, str]]:
    """Generate the cells of a line: what is quoted, or None and what is not.

    Raises:
        ValueError: a cell is empty, or a quotation mark has no partner.
    """
    end = -1
    while end < len(text) and text:
        cell = CELL.match(text, end + 1)
        if cell is None:
            raise ValueError("not a cell")
        yield cell[1], cell[2]
        end = cell.end()


def _pair(inside: str | None, bare: str) -> tuple[str, float]:
    """Split a cell at its last "=".

    Raises:
        ValueError: there is no label or no number.
    """
    label, _, value = (bare if inside is None else inside.replace('""', '"')).rpartition("=")
    label = label.strip() if inside is None else label
    if not label:
        raise ValueError("no label")
    return label, float(value)


def _items(name: str, values: Any, form: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(values, Mapping):
        raise InputError(f"{name}={quote(values)}: expected {form}, or a mapping of labels to numbers")
    check_count(name, len(values), MOST_LABELS)
    return ((_text(name, label), value) for label, value in values.items())


def _text(name: str, label: Any) -> str:
    """Return a label as text, whether it is Python's or numpy's."""
    plain = label.item() if hasattr(label, "item") else label
    if not isinstance(plain, str | bool | int | float) or plain == "":
        raise InputError(f"{name} names {quote(label)}: labels are text or numbers")
    return str(plain)


def _in_range(what: str, value: Any, zero: bool) -> float:
    given = number(what, value)
    if not (math.isfinite(given) and (given > 0 or (zero and given == 0))):
        allowed = "0 or more, and finite" if zero else "positive and finite"
        raise InputError(f"{what} is {given!r}: it must be {allowed}")
    return abs(given)  # -0.0 is 0.0


def _cell(label: str, value: str) -> str:
    pair = f"{label}={value}"
    special = label != label.strip() or any(character in label for character in SPECIAL)
    return '"' + pair.replace('"', '""') + '"' if special else pair
