"""Names of claims with arguments, such as ppv:0.02, and conditions on claims, such as sensitivity>=0.9."""

import re
from collections.abc import Collection
from math import ceil
from typing import Any, NamedTuple

from ckcv_ray.core.bounds.binomial import MOST_ROWS, clopper_pearson, divide_delta
from ckcv_ray.core.search import find_first
from ckcv_ray.errors import InputError
from ckcv_ray.validation import quote, sequence

OF_TWO = ("sensitivity", "specificity")  # the recall of the positive class, and of the other
BY_CLASS = (*OF_TWO, "recall")
AUC = "auc"
PREDICTIVE = {  # what follows from both recalls: the number of arguments, and what they are
    "ppv": (1, "a prevalence"),
    "npv": (1, "a prevalence"),
    "net_benefit": (2, "a prevalence and the probability from which on a row is worth flagging"),
}
PREDICTIVE_VALUES = ("ppv", "npv")  # for which a cut-off can be chosen, at a prevalence of their own option
QUANTITIES = (*BY_CLASS, AUC, *PREDICTIVE)
BETTER_THAN = "better"  # than another learner of the study: better:svm
ERROR = "error"
ANSWERED_ERROR, ANSWERED_SHARE = "answered_error", "answered_share"
ANSWERED = (ANSWERED_ERROR, ANSWERED_SHARE)  # of the rows that are confident enough to be answered
CLIPPED_ERROR = "clipped"  # of numbers the mean absolute error, of which at most a clip counts: "clipped:50"
WITHIN = "within"  # of numbers how far off a share of new rows is at most: "within:0.9"
AT_MOST = (ERROR, ANSWERED_ERROR)  # what is proven to be at most a value; all else is at least one
CONDITION_FORM = re.compile(r"\s*([^<>=\s]+)\s*(>=|<=)\s*(\S+)\s*")


class Predictive(NamedTuple):
    """A quantity that follows from sensitivity and specificity where the positive class has a stated share.

    Attributes:
        name: one of ``PREDICTIVE``.
        prevalence: share of the positive class, in (0, 1).
        worth: for net_benefit, the probability from which on a row is worth flagging, in (0, 1); else None.
    """

    name: str
    prevalence: float
    worth: float | None

    def __str__(self) -> str:
        return ":".join([self.name, *(f"{value:.12g}" for value in self[1:] if value is not None)])

    def compute(self, sensitivity: float, specificity: float) -> float:
        """Return it for two recalls in [0, 1]; it increases in both.

        The net benefit is that of Vickers and Elkin (Medical Decision Making 26, 2006): the share of true
        positives less that of false ones, which count as much as ``worth`` / (1 - ``worth``) of one.
        """
        q = self.prevalence
        right, wrong = q * sensitivity, (1 - q) * (1 - specificity)
        if self.name == "npv":
            right, wrong = (1 - q) * specificity, q * (1 - sensitivity)
        if self.worth is not None:
            return right - wrong * self.worth / (1 - self.worth)
        return right / (right + wrong) if right else 0.0

    def count_rows(
        self, least: float, share: float, delta: float, missed: float = 0.0, flagged: float = 0.0
    ) -> int:
        """Return the fewest rows that prove it to be at least a value, at a cut-off that is fixed beforehand.

        Args:
            least: the value.
            share: of these rows that are positive, in (0, 1).
            delta: probability with which the claim may fail; both recalls have equal parts.
            missed: share of the positive rows that are not flagged.
            flagged: share of the others that are flagged.
        """
        each = divide_delta(delta, 2)

        def passes(rows: int) -> bool:
            positives = int(share * rows)
            wrong = [ceil(missed * positives), ceil(flagged * (rows - positives))]
            sensitivity, specificity = 1 - clopper_pearson(wrong, [positives, rows - positives], each)
            return self.compute(sensitivity, specificity) >= least

        return find_first(passes, 1, MOST_ROWS)


class Condition(NamedTuple):
    """A condition on what is proven.

    Attributes:
        name: of a claim, or "error", that of the first one.
        at_least: whether the value is the least allowed; else it is the largest.
        value: in (0, 1); for a net benefit in (-1, 1).
    """

    name: str
    at_least: bool
    value: float

    def __str__(self) -> str:
        return f"{self.name}{'>=' if self.at_least else '<='}{self.value:g}"

    def find_class(self, positive: int) -> int:
        """Return the number, 0 or 1, of the class whose recall it is on, given that of the positive class."""
        return positive if self.name == OF_TWO[0] else 1 - positive


def parse_predictive(name: str) -> Predictive | None:
    """Return the quantity that a claim such as "ppv:0.02" names; None if it names none of ``PREDICTIVE``.

    Raises:
        InputError: its arguments are missing, too many, or outside (0, 1).
    """
    kind, *given = name.split(":")
    if kind not in PREDICTIVE:
        return None
    count, what = PREDICTIVE[kind]
    example = f"{kind}:{':'.join(('0.02', '0.1')[:count])}"
    if len(given) != count:
        raise InputError(f"claim={quote(name)} takes {what}: write {example}")
    values = [_parse_share(f"claim={name}", text, example) for text in given]
    return Predictive(kind, values[0], values[1] if count > 1 else None)


def name_clipped(clip: float) -> str:
    """Return the name of the mean error of numbers of which at most ``clip`` counts: "clipped:50"."""
    return f"{CLIPPED_ERROR}:{clip:.12g}"


def parse_clipped(name: str) -> float | None:
    """Return the clip in the name of a mean error of numbers; None if it names another quantity.

    Raises:
        ValueError: it is no number.
    """
    kind, _, clip = name.partition(":")
    return float(clip) if kind == CLIPPED_ERROR else None


def parse_within(name: str) -> float | None:
    """Return the share of rows in a claim such as "within:0.9"; None if it is about something else.

    Raises:
        InputError: it is missing, or outside (0, 1).
    """
    kind, _, share = name.partition(":")
    return _parse_share(f"claim={name}", share, f"{WITHIN}:0.9") if kind == WITHIN else None


def is_of_numbers(name: str) -> bool:
    """Return whether a quantity is about how far predicted numbers are off."""
    return name.split(":")[0] in (CLIPPED_ERROR, WITHIN)


def is_error(name: str) -> bool:
    """Return whether a quantity is the error of a rule: the share of wrong rows, or of numbers the mean."""
    return name == ERROR or name.split(":")[0] == CLIPPED_ERROR


def name_claim(name: str) -> str:
    """Return the name of a claim in canonical form: "ppv:.020" is "ppv:0.02"."""
    if (share := parse_within(name)) is not None:
        return f"{WITHIN}:{share:.12g}"
    found = parse_predictive(name)
    return name if found is None else str(found)


def find_reference(name: str) -> str:
    """Return the learner that a claim such as "better:svm" compares the winner with; "" for other claims.

    Raises:
        InputError: it names none.
    """
    kind, _, label = name.partition(":")
    if kind != BETTER_THAN:
        return ""
    if not label:
        raise InputError(
            f"claim={quote(name)} takes the label of a learner that the winner is compared with: write "
            f"{BETTER_THAN}:svm"
        )
    return label


def is_quantity(name: str) -> bool:
    """Return whether a claim is about a quantity of a rule, such as its sensitivity, and not its error."""
    return name.split(":")[0] in (*QUANTITIES, BETTER_THAN, *ANSWERED, WITHIN)


def parse_condition(option: str, text: str, bare: Collection[str] = ()) -> Condition:
    """Parse a condition such as "sensitivity>=0.9" or "error<=0.1".

    Args:
        option: of the study, for messages.
        text: the condition.
        bare: names that take no arguments here, such as "ppv" where the prevalence is an option of its own.

    Raises:
        InputError: it is none, or is on the wrong side: an error is at most, all else at least a value.
    """
    found = CONDITION_FORM.fullmatch(text)
    if found is None:
        raise InputError(f"{option}={quote(text)}: expected a condition such as sensitivity>=0.9")
    name, sign, value = found.groups()
    if is_of_numbers(name):
        raise InputError(
            f"{option}={quote(text)} is about numbers, and conditions are on classes: leave it out, and "
            "compare what is proven yourself"
        )
    if (sign == ">=") == (name in AT_MOST):
        word, right = ("most", "<=") if name in AT_MOST else ("least", ">=")
        raise InputError(
            f"{option}={quote(text)}: what is proven of {name} is that it is at {word} a value: write "
            f"{name}{right}{value}"
        )
    if name != ERROR and not is_quantity(name):
        raise InputError(
            f"{option}={quote(text)}: {name} is not known: choose from "
            f"{', '.join((ERROR, *QUANTITIES, f'{BETTER_THAN}:svm', *ANSWERED))}"
        )
    share = _parse_share(f"{option}={text}", value, f"{name}{sign}0.9")
    return Condition(name if name in bare else name_claim(name), sign == ">=", share)


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


def _parse_share(name: str, text: str, example: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0.0 < share < 1.0:
        raise InputError(f"{name}: {quote(text)} is no number between 0 and 1: write {example}")
    return share
