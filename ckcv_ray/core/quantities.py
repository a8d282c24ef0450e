"""What a study knows of a quantity that can be claimed: its name, its arguments, and what it needs.

A claim is named after its quantity, with the arguments after colons: "sensitivity", "ppv:0.02", "better:svm".
Any other name is that of a rule, such as "refit", whose error is claimed. The quantities are classes in
``claims``, one file for each family, which prove, word and size what they declare here; those of other
packages are found through the entry point ``GROUP``. What a study may not ask for is refused on the basis of
these declarations.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from csv import reader
from dataclasses import dataclass, field, fields
from functools import cache, partial
from importlib import import_module
from math import inf
from pkgutil import iter_modules
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, cast

from ckcv_ray.core.measures import Output
from ckcv_ray.errors import InputError, format_number, format_percent, integer, quote, register_part, sequence

GROUP = "ckcv_ray.quantities"
FAMILIES = "ckcv_ray.claims"  # package whose modules register the quantities
QUANTITIES: dict[str, type["Declared"]] = {}
BINARY_RECALLS = ("sensitivity", "specificity")  # recalls of the positive class, and of the other
MAX_BINS = 20  # subgroups that a column of numbers is divided into
NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)
T = TypeVar("T")
Kind = TypeVar("Kind", bound="type[Declared]")


def parse_positive(name: str, text: str, example: str, below: float = inf) -> float:
    """Return a positive number that was given as text, below a limit.

    Raises:
        InputError: the text is not one; ``name`` and ``example`` are for the message.
    """
    value = 0.0
    with suppress(ValueError):
        value = float(text)
    if not 0.0 < value < below:
        lack = "positive number" if below == inf else f"number between 0 and {below:g}"
        raise InputError(f"{name}: {quote(text)} is not a {lack}: write {example}")
    return value


parse_share = partial(parse_positive, below=1.0)


class Kinds(NamedTuple, Generic[T]):
    """A kind of argument: how one is read, and how it is shown."""

    parse: Callable[[str, str, str], T]
    format: Callable[[Any], str] = str


SHARE = Kinds(parse_share, format_percent)
SHARE_OF_ROWS = Kinds(parse_share, lambda share: f"{format_number(100 * share)} %")
POSITIVE = Kinds(parse_positive, format_number)
LABEL = Kinds(lambda name, text, example: text)


def argument(kind: Kinds[T], example: str, takes: str) -> T:
    """Declare a field of a quantity as an argument in its name; ``takes`` says what it is, for messages."""
    return cast("T", field(metadata={"kind": kind, "example": example, "takes": takes}))


@dataclass(frozen=True)
class Declared:
    """What can be claimed of a rule, as far as a study has to know it; its fields are the arguments.

    Attributes:
        name: its name in the study and in the certificate, before the arguments.
        phrase: its name for people; "{0}" stands for the first argument.
        is_error: whether it is the error of a rule, which is claimed by the name of the rule.
        of_numbers: whether it is about predicted numbers rather than predicted classes.
        two_classes: whether it requires exactly two classes.
        by_class: whether it is counted on the rows of one class, given their labels.
        made_of: claims that it is computed from; it takes no share of delta of its own.
        brings: claims at the same cut-off of the scores where one is chosen for it; empty if none can be. If
            it is also made of others, the study states a prevalence where it is required.
        at_most: whether it is proven to be at most a value; otherwise to be at least one.
        needs: what the learner has to output for each row besides its class or number; None for nothing.
        answers: whether it is about the rows that are answered, which the option "answer" asks for.
        rows_alone: which rows have to be independent, as rows in groups are not; "" if groups are allowed.
        share: quantities with the same ``share`` take one share of delta together; "" if it takes its own.
        weighs: whether it needs the weights of rows.
        counted: names the judged rows whose true values alone tell how many prove it; "" if they do not.
        reference: the learner of the study that the winner is compared with; "" if it compares with none.
    """

    name: ClassVar[str]
    phrase: ClassVar[str]
    is_error: ClassVar[bool] = False
    of_numbers: ClassVar[bool] = False
    two_classes: ClassVar[bool] = False
    by_class: ClassVar[bool] = False
    made_of: ClassVar[tuple[str, ...]] = ()
    brings: ClassVar[tuple[str, ...]] = ()
    at_most: ClassVar[bool] = False
    needs: ClassVar[Output | None] = None
    answers: ClassVar[bool] = False
    rows_alone: ClassVar[str] = "rows"
    share: ClassVar[str] = ""
    weighs: ClassVar[bool] = False
    counted: ClassVar[str] = ""
    reference = ""  # not a field here: a quantity that compares has it as its argument

    def __str__(self) -> str:
        """Return its name as claimed, in canonical form: "ppv:0.02"."""
        values = (getattr(self, argument.name) for argument in fields(self))
        return ":".join([self.name, *(v if isinstance(v, str) else f"{v:.12g}" for v in values)])

    @classmethod
    def form(cls) -> str:
        """Return its name with an example of each argument."""
        return ":".join([cls.name, *(argument.metadata["example"] for argument in fields(cls))])

    @classmethod
    def parse(cls, text: str, option: str = "claim") -> Self:
        """Return the quantity that a name such as "ppv:0.02" stands for; ``option`` of the study names it.

        Raises:
            InputError: there are too few or too many arguments, or one is out of range.
        """
        declared = [argument.metadata for argument in fields(cls)]
        given = text.split(":", 1 if any(each["kind"] is LABEL for each in declared) else -1)[1:]
        if len(given) != len(declared) or "" in given:
            takes = " and ".join(each["takes"] for each in declared) or "no argument"
            raise InputError(f"{option}={quote(text)} takes {takes}: write {cls.form()}")
        pairs = zip(declared, given, strict=True)
        return cls(*(each["kind"].parse(f"{option}={text}", value, cls.form()) for each, value in pairs))

    @property
    def title(self) -> str:
        """The phrase that names it, with its arguments."""
        return self.phrase.format(*self.shown)

    @property
    def shown(self) -> list[str]:
        """Its arguments as people read them."""
        return [each.metadata["kind"].format(getattr(self, each.name)) for each in fields(self)]

    def check(self, problem: Any) -> None:
        """Raise InputError if it cannot be proven at all of a problem, say because its rows are too few."""


def register_quantity(kind: Kind) -> Kind:
    """Register a class of quantities under its name, and return it.

    Raises:
        InputError: another class has that name.
    """
    return register_part(kind, QUANTITIES)


@cache
def _load_families() -> None:
    for module in iter_modules(import_module(FAMILIES).__path__):
        import_module(f"{FAMILIES}.{module.name}")


@cache
def _find_installed() -> dict[str, Any]:
    from importlib.metadata import entry_points  # takes 40 ms

    return {point.name: point for point in entry_points(group=GROUP)}


def list_quantities() -> list[type[Declared]]:
    """Return the quantities that can be claimed by name, in order, without those that cannot be loaded."""
    _load_families()
    for name in _find_installed():
        with suppress(InputError):
            find_quantity(name)
    return [QUANTITIES[name] for name in sorted(QUANTITIES) if not QUANTITIES[name].is_error]


def find_quantity(name: str) -> type[Declared] | None:
    """Return the quantity that a name begins with; None if it is that of a rule, or not known here.

    Raises:
        InputError: it belongs to another package, and cannot be loaded.
    """
    _load_families()
    name = name.partition(":")[0]
    if name not in QUANTITIES and (point := _find_installed().get(name)) is not None:
        try:
            register_quantity(point.load())
        except Exception as error:  # a third-party module may raise anything
            what = f"the quantity {name} of {point.value}"
            raise InputError(f"{what} cannot be loaded: {error!r}") from error
    return QUANTITIES.get(name)


def parse_quantity(name: str) -> Declared | None:
    """Return the quantity that a claim such as "ppv:0.02" names; None if the claim is named after a rule.

    Raises:
        InputError: there are too few or too many arguments, or one is out of range.
    """
    kind = find_quantity(name)
    return None if kind is None else kind.parse(name)


class Subgroups(NamedTuple):
    """Groups of rows by the values of a column."""

    column: str
    bins: int = 0  # for numbers: how many groups with about equal numbers of rows; 0 if not asked for
    edges: tuple[float, ...] = ()  # for numbers: where groups begin; ascending, none if not asked for

    def __str__(self) -> str:
        divided = ",".join(map(repr, self.edges)) or (str(self.bins) if self.bins else "")
        return f"{self.column}:{divided}" if divided else self.column


def parse_subgroup(text: str) -> Subgroups:
    """Parse the name of a column, optionally with a colon and a number of bins, or edges: "40,65" or "40.0".

    Raises:
        InputError: there are fewer than two bins, or more than ``MAX_BINS``, or edges do not ascend.
    """
    column, mark, digits = text.rpartition(":")
    if not mark or not all(map(NUMBER.fullmatch, digits.split(","))):
        return Subgroups(text)
    if not digits.isdigit():
        edges = tuple(map(float, digits.split(",")))
        if edges != tuple(sorted(set(edges))):
            raise InputError(f"subgroups={quote(text)}: edges ascend, such as {column}:40,65")
        return Subgroups(column, edges=edges)
    return Subgroups(column, integer(f"subgroups={text}: bins", int(digits[:6]), least=2, most=MAX_BINS))


def parse_subgroups(option: str, value: object) -> tuple[str, ...]:
    """Return columns of subgroups, given as text with commas or as a list, in canonical form.

    Raises:
        InputError: as for ``parse_subgroup``, or a column is named twice.
    """
    listed = next(reader([value])) if isinstance(value, str) and value else value or ()
    texts = list[str]()
    for text in map(str, sequence(option, listed, least=0, kind="columns")):
        if texts and NUMBER.fullmatch(text) and NUMBER.fullmatch(texts[-1].rpartition(":")[2].split(",")[-1]):
            texts[-1] += f",{text}"  # another edge
        else:
            texts.append(text)
    parsed = [*map(parse_subgroup, texts)]
    names = [subgroup.column for subgroup in parsed]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"{option} names column {quote(twice[0])} twice: name it once")
    return tuple(map(str, parsed))
