"""The quantities that can be claimed, each declared once: what it needs, and what can be said of it.

A claim is named by its quantity, with the arguments after colons: "sensitivity", "ppv:0.02", "better:svm". A
name that is none of these is that of a rule, such as "refit", of which the error is claimed. What a
study may not ask for at once is refused from what is declared here. The proofs are in ``claims``.
"""

from dataclasses import dataclass, replace
from enum import Enum
from math import ceil, inf
from typing import NamedTuple

from ckcv_ray.core.bounds.binomial import MAX_ROWS, clopper_pearson, find_first
from ckcv_ray.errors import InputError
from ckcv_ray.validation import quote

ERROR = "error"
CLIPPED_ERROR = "clipped"  # of numbers the mean absolute error, of which at most a clip counts: "clipped:50"
BINARY_RECALLS = ("sensitivity", "specificity")  # the recall of the positive class, and of the other
AUC = "auc"
PREDICTIVE_VALUES = ("ppv", "npv")  # for which a cut-off can be chosen, at a prevalence of their own option
BETTER_THAN = "better"  # than another learner of the study: better:svm
ANSWERED_ERROR, ANSWERED_SHARE = "answered_error", "answered_share"
ANSWERED = (ANSWERED_ERROR, ANSWERED_SHARE)  # of the rows that are confident enough to be answered
WEIGHTED_ERROR = "weighted_error"  # by weights of which the largest is stated: "weighted_error:4"
WITHIN = "within"  # of numbers how far off a share of new rows is at most: "within:0.9"
RECALLS = "recalls"  # the share of delta of all recalls, and of what follows from them


class Argument(Enum):
    """Kinds of arguments of a quantity, with an example."""

    PREVALENCE = "0.02"
    WORTH = "0.1"
    SHARE_OF_ROWS = "0.9"
    LABEL = "svm"
    NUMBER = "50"
    WEIGHT = "4"


@dataclass(frozen=True)
class Quantity:
    """What can be claimed of a rule."""

    name: str  # in the study and in the certificate, before the arguments
    phrase: str  # names it for people; "{}" stands for an argument
    arguments: tuple[Argument, ...] = ()
    takes: str = "no argument"  # what they are, for messages
    is_error: bool = False  # whether it is the error of a rule, which is claimed by the name of the rule
    of_numbers: bool = False  # whether predicted numbers have it; else predicted classes do
    two_classes: bool = False  # whether it takes exactly two classes
    by_class: bool = False  # whether it is counted on the rows of one class, given their labels
    follows: bool = False  # whether it is computed from both recalls, and takes no share of delta
    at_most: bool = False  # whether it is proven to be at most a value; else at least one
    is_mean: bool = False  # whether it is a mean of losses, which is ``measured``
    counted: str = "scored rows wrong"  # what its ``errors`` are
    ranks: bool = False  # whether it needs scores that order the rows
    rows_alone: str = "rows"  # which have to be independent, as those of groups are not; "": groups count
    share: str = ""  # the quantities of one ``share`` have one share of delta together; "" for each its own

    @property
    def form(self) -> str:
        """Its name with an example of each argument, as it is claimed."""
        return ":".join([self.name, *(argument.value for argument in self.arguments)])

    @property
    def of_label(self) -> bool:
        """Whether a claim of it names a class."""
        return self.by_class or self.follows


AT_PREVALENCE = Quantity(
    name="ppv",
    phrase="PPV at a prevalence of {}",
    arguments=(Argument.PREVALENCE,),
    takes="a prevalence",
    two_classes=True,
    follows=True,
    rows_alone="rows of a class",
    share=RECALLS,
)
RECALL = Quantity(name="recall", phrase="recall", by_class=True, rows_alone="rows of a class", share=RECALLS)
ANSWERING = Quantity(
    name=ANSWERED_ERROR,
    phrase="error of the rows answered",
    at_most=True,
    counted="rows answered wrong",
    share="answered",
)
DECLARED = (
    Quantity(name=ERROR, phrase="error", is_error=True, at_most=True, rows_alone=""),
    Quantity(
        name=CLIPPED_ERROR,
        phrase="mean error (above {0} counts as {0})",
        arguments=(Argument.NUMBER,),
        takes="the largest error that counts",
        is_error=True,
        of_numbers=True,
        at_most=True,
        is_mean=True,
    ),
    *(replace(RECALL, name=name, phrase=name, two_classes=True) for name in BINARY_RECALLS),
    RECALL,
    Quantity(
        name=AUC,
        phrase="AUC",
        two_classes=True,
        counted="pairs not in order",
        ranks=True,
        rows_alone="rows of a class",
    ),
    AT_PREVALENCE,
    replace(AT_PREVALENCE, name="npv", phrase="NPV at a prevalence of {}"),
    replace(
        AT_PREVALENCE,
        name="net_benefit",
        phrase="net benefit at a prevalence of {} (a row is worth flagging from {} on)",
        arguments=(Argument.PREVALENCE, Argument.WORTH),
        takes="a prevalence and the probability from which on a row is worth flagging",
    ),
    Quantity(
        name=BETTER_THAN,
        phrase="share of wins against {}",
        arguments=(Argument.LABEL,),
        takes="the label of a learner that the winner is compared with",
        counted="rows that one alone has right lost",
        rows_alone="",
    ),
    Quantity(
        name=WEIGHTED_ERROR,
        phrase="weighted error (weights up to {})",
        arguments=(Argument.WEIGHT,),
        takes="the largest weight that a new row can have",
        at_most=True,
        is_mean=True,
    ),
    ANSWERING,
    replace(
        ANSWERING,
        name=ANSWERED_SHARE,
        phrase="share of rows answered",
        at_most=False,
        counted="held-out rows not answered",
    ),
    Quantity(
        name=WITHIN,
        phrase="error of {} of new rows",
        arguments=(Argument.SHARE_OF_ROWS,),
        takes="a share of new rows",
        of_numbers=True,
        at_most=True,
        counted="held-out rows further off",
    ),
)
BY_NAME = {quantity.name: quantity for quantity in DECLARED}
BY_CLASS = tuple(quantity.name for quantity in DECLARED if quantity.by_class)


class Named(NamedTuple):
    """A quantity with its arguments; as text it is the name of a claim in canonical form."""

    quantity: Quantity
    arguments: tuple[float | str, ...]

    def __str__(self) -> str:
        given = (value if isinstance(value, str) else f"{value:.12g}" for value in self.arguments)
        return ":".join([self.quantity.name, *given])


class Predictive(NamedTuple):
    """A quantity that follows from both recalls where the positive class has a stated share."""

    name: str  # that of a quantity that ``follows`` from the recalls
    prevalence: float  # share of the positive class, in (0, 1)
    worth: float | None  # for net_benefit, the probability from which on a row is worth flagging

    def __str__(self) -> str:
        return ":".join([self.name, *(f"{value:.12g}" for value in self[1:] if value is not None)])

    @property
    def by_constants(self) -> float:
        """The largest value that classifying no row, or every row, as positive reaches."""
        if self.worth is not None:
            return max(0.0, self.compute(1.0, 0.0))
        return self.prevalence if self.name == "ppv" else 1 - self.prevalence

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

        def passes(rows: int) -> bool:
            positives = int(share * rows)
            wrong = [ceil(missed * positives), ceil(flagged * (rows - positives))]
            sensitivity, specificity = 1 - clopper_pearson(wrong, [positives, rows - positives], delta / 2)
            return self.compute(sensitivity, specificity) >= least

        return find_first(passes, 1, MAX_ROWS)


def find_quantity(name: str) -> Quantity | None:
    """Return the quantity that a claim is about, whatever its arguments; None if it is named by a rule."""
    return BY_NAME.get(name.split(":")[0])


def parse_quantity(name: str) -> Named | None:
    """Return the quantity that a claim such as "ppv:0.02" names; None if it is named by a rule.

    Raises:
        InputError: arguments are missing, too many, or out of range.
    """
    if (quantity := find_quantity(name)) is None:
        return None
    asked = quantity.arguments
    given = name.split(":", 1 if Argument.LABEL in asked else -1)[1:]
    if len(given) != len(asked) or "" in given:
        raise InputError(f"claim={quote(name)} takes {quantity.takes}: write {quantity.form}")
    return Named(
        quantity, tuple(_parse_argument(name, quantity, *pair) for pair in zip(asked, given, strict=True))
    )


def _parse_argument(name: str, quantity: Quantity, argument: Argument, text: str) -> float | str:
    if argument is Argument.LABEL:
        return text
    if argument not in (Argument.NUMBER, Argument.WEIGHT):
        return parse_share(f"claim={name}", text, quantity.form)
    return parse_positive(f"claim={name}", text, quantity.form)


def parse_positive(name: str, text: str, example: str) -> float:
    """Return a positive number that was given as text.

    Raises:
        InputError: it is none; ``name`` and ``example`` are for the message.
    """
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < inf:
        raise InputError(f"{name}: {quote(text)} is no positive number: write {example}")
    return value


def parse_share(name: str, text: str, example: str) -> float:
    """Return a number between 0 and 1 that was given as text.

    Raises:
        InputError: it is none; ``name`` and ``example`` are for the message.
    """
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0.0 < share < 1.0:
        raise InputError(f"{name}: {quote(text)} is no number between 0 and 1: write {example}")
    return share


def name_claim(name: str) -> str:
    """Return the name of a claim in canonical form: "ppv:.020" is "ppv:0.02"."""
    return str(parse_quantity(name) or name)


def is_quantity(name: str) -> bool:
    """Return whether a claim is about a quantity of a rule, such as its sensitivity, and not its error."""
    quantity = find_quantity(name)
    return quantity is not None and not quantity.is_error


def is_error(name: str) -> bool:
    """Return whether a quantity is the error of a rule: the share of wrong rows, or of numbers the mean."""
    quantity = find_quantity(name)
    return quantity is not None and quantity.is_error


def is_of_numbers(name: str) -> bool:
    """Return whether a quantity is about how far predicted numbers are off."""
    quantity = find_quantity(name)
    return quantity is not None and quantity.of_numbers


def name_clipped(clip: float) -> str:
    """Return the name of the mean error of numbers of which at most ``clip`` counts: "clipped:50"."""
    return str(Named(BY_NAME[CLIPPED_ERROR], (clip,)))


def parse_predictive(name: str) -> Predictive | None:
    """Return what follows from the recalls that a claim such as "ppv:0.02" names; None for other claims."""
    named = parse_quantity(name)
    if named is None or not named.quantity.follows:
        return None
    prevalence, *worth = (float(value) for value in named.arguments)
    return Predictive(named.quantity.name, prevalence, worth[0] if worth else None)


def parse_clipped(name: str) -> float | None:
    """Return the clip in the name of a mean error of numbers; None if it names another quantity."""
    return _parse_number(name, CLIPPED_ERROR)


def parse_within(name: str) -> float | None:
    """Return the share of rows in a claim such as "within:0.9"; None if it is about something else."""
    return _parse_number(name, WITHIN)


def parse_largest_weight(name: str) -> float | None:
    """Return the largest weight in a claim such as "weighted_error:4"; None if it is about something else."""
    return _parse_number(name, WEIGHTED_ERROR)


def find_reference(name: str) -> str:
    """Return the learner that a claim such as "better:svm" compares the winner with; "" for other claims."""
    named = parse_quantity(name)
    return str(named.arguments[0]) if named is not None and named.quantity.name == BETTER_THAN else ""


def _parse_number(name: str, of: str) -> float | None:
    """Return the number in the name of a claim of one quantity; None if it names another one."""
    named = parse_quantity(name)
    return float(named.arguments[0]) if named is not None and named.quantity.name == of else None
