"""Which columns are the target, the features, the groups and the weights: what is asked for must be there."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns.formats import GAPS
from ckcv_ray.tables.columns.types import DeclaredTypes
from ckcv_ray.tables.target import is_number, some
from ckcv_ray.validation import expect, quote, suggest

TARGETS = ("target", "y", "label", "class")


class Roles(NamedTuple):
    """What the columns of a table are for.

    Attributes:
        target: name of the column to predict; None for the one column named target, y, label or class.
        features: names of the columns to learn from; None for every column but the target, the groups, the
            weights, and those that number the rows.
        drop: names of columns to leave out.
        group: name of the column whose equal values (text, whole numbers) mark rows that belong together.
        numbers: whether the target has numbers to predict, and not classes.
        weight: name of the column of positive numbers that says what each row weighs in a fit.
        id: name of the column that names the rows, which is not learned from.
    """

    target: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] | None = None
    group: str | None = None
    numbers: bool = False
    weight: str | None = None
    id: str | None = None

    def resolve(self, names: list[str], index: set[str]) -> tuple[str, list[str]]:
        """Return the target and the features of a table with these columns, of which ``index`` name rows.

        Raises:
            InputError: a column is missing, has two purposes, or no feature is left.
        """
        target = target_name(names, self.target)
        check_chosen(names, target, self)
        left_out = {target, self.group, self.weight, self.id, *(self.drop or [])} | (
            index if self.features is None else set()
        )
        wanted = dict.fromkeys(names if self.features is None else self.features)
        chosen = [name for name in wanted if name not in left_out]
        if not chosen:
            raise InputError(
                f"no feature is left besides the target {target!r}: correct --features and --drop"
            )
        return target, chosen


USUAL_ROLES = Roles()


def target_name(names: list[str], target: str | None) -> str:
    """Return the name of the target, by default the one column that is called like one.

    Raises:
        InputError: there is no such column, or none or several are called like one.
    """
    if target is not None:
        check_column(target, names, " for the target")
        return target
    matches = [name for name in TARGETS if name in names]
    if len(matches) != 1:
        which = (
            f"columns {', '.join(matches)} could all be" if matches else f"none of {', '.join(TARGETS)} is"
        )
        raise InputError(
            f"{which} the target: name it with --target; the columns are {some(names)}{hint(names)}"
        )
    return matches[0]


def check_column(name: object, names: Sequence[str], purpose: str = "") -> None:
    """Raise InputError unless a table has a column; ``purpose`` says what it is wanted for."""
    if not (isinstance(name, str) and name in names):
        raise InputError(
            f"there is no column {quote(name)}{purpose}: the columns are {some(names)}"
            f"{suggest(name, names, quote)}"
        )


def check_chosen(names: list[str], target: str, roles: Roles) -> None:
    """Raise InputError unless the columns asked for exist, and each is for one purpose."""
    features, drop = roles.features, roles.drop
    for argument, value in (("features", features), ("drop", drop)):
        expect(argument, value, list | tuple | None, "a list of column names")
        for name in value or ():
            check_column(name, names)
    if target in (drop or ()):
        raise InputError(
            f"column {quote(target)} is the target: leave it out of --drop, or name another as the target"
        )
    for argument, column, purpose, says in (
        ("group", roles.group, "groups", "which rows belong together"),
        ("weight", roles.weight, "weights", "what rows weigh"),
        ("id", roles.id, "names of rows", "which row is which"),
    ):
        expect(argument, column, str | None, "the name of a column")
        if column is None:
            continue
        check_column(column, names, f" for the {purpose}")
        if column == target:
            raise InputError(
                f"column {column!r} is the target, and cannot say {says}: name another column with "
                f"--{argument}"
            )
        if column in (features or ()):
            raise InputError(f"column {column!r} says {says}, and is no feature: leave it out of --features")
    if roles.weight is not None and roles.weight == roles.group:
        raise InputError(
            f"column {roles.group!r} says which rows belong together, and cannot say what rows weigh: name "
            "another column with --weight"
        )


def check_asked(asked: DeclaredTypes, chosen: Sequence[str]) -> None:
    """Raise InputError unless each column that is asked to be of a kind is learned from, and of one kind."""
    seen: set[str] = set()
    for option, names in asked.names.items():
        for name in names:
            if name not in chosen:
                raise InputError(
                    f"--{option} {quote(name)}: the columns that are learned from are {some(chosen)}"
                    f"{suggest(name, chosen, quote)}"
                )
            if name in seen:
                raise InputError(f"column {quote(name)} is given two kinds: leave it out of one")
            seen.add(name)


def check_kept(words: Collection[str]) -> frozenset[str]:
    """Return words of gaps that are kept as text, in lower case.

    Raises:
        InputError: a word is no gap, or the text of an empty cell.
    """
    for word in words:
        if not word.strip():
            raise InputError("keep_values='': an empty cell is a gap in any case: name words, such as NA")
        if word.lower() not in GAPS:
            raise InputError(
                f"keep_values={quote(word)}: it is no word that is taken for an empty cell, as these are, in "
                f"capitals as well: {', '.join(sorted(GAPS - {''}))}: leave it out"
            )
    return frozenset(word.lower() for word in words)


def hint(names: list[str]) -> str:
    """Return a guess at what is wrong in a text file with these columns."""
    if len(names) == 1 and any(mark in names[0] for mark in ";\t"):
        return " (say by --separator what separates the columns)"
    if sum(map(is_number, names)) > len(names) / 2:
        return " (the first line must name the columns)"
    return ""
