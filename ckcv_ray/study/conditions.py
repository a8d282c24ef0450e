"""Conditions on what is proven, such as sensitivity>=0.9, which is sensitivity:0.9 as well."""

import re
from collections.abc import Collection
from typing import Any, NamedTuple

from ckcv_ray.errors import InputError
from ckcv_ray.study.quantities import (
    CLIPPED_ERROR,
    DECLARED,
    ERROR,
    OF_TWO,
    find_quantity,
    name_claim,
    parse_positive,
    parse_share,
)
from ckcv_ray.validation import quote, sequence

NAMES = tuple(quantity.form for quantity in DECLARED if quantity.name != CLIPPED_ERROR)
CONDITION_FORM = re.compile(r"\s*([^<>=\s]+)\s*(>=|<=)\s*(\S+)\s*")


class Condition(NamedTuple):
    """A condition on what is proven.

    Attributes:
        name: of a claim, or "error", that of the first one.
        at_least: whether the value is the least allowed; else it is the largest.
        value: in (0, 1); of numbers positive, in units of the target.
    """

    name: str
    at_least: bool
    value: float

    def __str__(self) -> str:
        return f"{self.name}{'>=' if self.at_least else '<='}{self.value:g}"

    def find_class(self, positive: int) -> int:
        """Return the number, 0 or 1, of the class whose recall it is on, given that of the positive class."""
        return positive if self.name == OF_TWO[0] else 1 - positive


def parse_condition(
    option: str, text: str, bare: Collection[str] = (), known: Collection[str] = NAMES
) -> Condition:
    """Parse a condition such as "sensitivity>=0.9", "sensitivity:0.9", or of numbers "clipped<=20".

    Args:
        option: of the study, for messages.
        text: the condition.
        bare: names that take no arguments here, such as "ppv" where the prevalence is an option of its own;
            the clip of numbers always is one.
        known: the names, with their arguments, that are allowed, for messages.

    Raises:
        InputError: it is none, or is on the wrong side: an error is at most, all else at least a value.
    """
    found = CONDITION_FORM.fullmatch(text)
    name, sign, value = found.groups() if found else _read_without_sign(option, text.strip(), bare, known)
    quantity = find_quantity(name)
    if quantity is None:
        raise InputError(f"{option}={quote(text)}: {name} is not known: choose from {', '.join(known)}")
    if (sign == ">=") == quantity.at_most:
        word, right = ("most", "<=") if quantity.at_most else ("least", ">=")
        raise InputError(
            f"{option}={quote(text)}: what is proven of {name} is that it is at {word} a value: write "
            f"{name}{right}{value}"
        )
    if not quantity.of_numbers:
        example = f"{name}{sign}{0.05 if quantity.at_most else 0.9}"
        share = parse_share(f"{option}={text}", value, example)
        return Condition(name if name in bare else name_claim(name), sign == ">=", share)
    of_clip = name.partition(":")[0] == CLIPPED_ERROR
    if of_clip and name != CLIPPED_ERROR:
        raise InputError(
            f"{option}={quote(text)}: the clip is an option of its own: write {CLIPPED_ERROR}<={value}"
        )
    most = parse_positive(f"{option}={text}", value, f"{name}<=20")
    return Condition(name if of_clip else name_claim(name), False, most)


def _read_without_sign(
    option: str, text: str, bare: Collection[str], known: Collection[str]
) -> tuple[str, str, str]:
    """Return name, sign and value of a condition such as "sensitivity:0.9"; see ``parse_condition``."""
    name, *given = text.split(":")
    quantity = find_quantity(name)
    taken = 0 if quantity is None or name in (*bare, CLIPPED_ERROR) else len(quantity.arguments)
    if quantity is None or len(given) < taken:
        example = "error<=0.05" if known == (ERROR,) else "sensitivity>=0.9"
        raise InputError(f"{option}={quote(text)}: expected a condition such as {example}")
    sign, value = ("<=", 20 if quantity.of_numbers else 0.05) if quantity.at_most else (">=", 0.9)
    if len(given) == taken:
        raise InputError(
            f"{option}={quote(text)} lacks its value: a shell takes {sign[0]} for itself, so quote it, as "
            f"'{text}{sign}{value}', or write {text}:{value}"
        )
    name, _, share = text.rpartition(":")
    return name, sign, share


def parse_conditions(option: str, value: Any) -> tuple[str, ...]:
    """Return conditions, given as text with commas or as a list, in canonical form.

    Raises:
        InputError: as ``parse_condition``.
    """
    listed = value.split(",") if isinstance(value, str) else value
    texts = sequence(option, listed, least=0, kind="conditions")
    return tuple(
        dict.fromkeys(str(parse_condition(option, str(text))) for text in texts if str(text).strip())
    )
