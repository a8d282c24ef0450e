"""Which columns are the target, the features, the groups and the weights: what is asked for must be there."""

from collections.abc import Collection, Sequence
from csv import Error, reader
from typing import NamedTuple

from ckcv_ray.errors import InputError, write_row
from ckcv_ray.tables.columns.formats import GAPS
from ckcv_ray.tables.columns.types import DeclaredTypes
from ckcv_ray.tables.target import check_single, is_number, some, suggest_column
from ckcv_ray.validation import expect, quote, sequence

TARGETS = ("target", "y", "label", "class")


class Roles(NamedTuple):
    """What the columns of a table are for.

    Attributes:
        target: name of the column to predict; None for the one column named target, y, label or class.
        features: names of the columns to learn from; None for every column but the target, the groups, the
            weights, and those that number the rows.
        drop: names of columns to leave out.
        group: name of the column whose equal values (text, whole numbers) mark rows that belong together, or
            names of several, whose values then agree together: a list, or a row of a CSV file (center,id).
            If a column has a name that reads like such a row, it is meant.
        numbers: whether the target has numbers to predict, and not classes.
        weight: name of the column of positive numbers that says what each row weighs in a fit.
        id: name of the column that names the rows, which is not learned from.
    """

    target: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] | None = None
    group: str | Sequence[str] | None = None
    numbers: bool = False
    weight: str | None = None
    id: str | None = None

    def resolve(self, names: list[str], index: set[str]) -> tuple[str, list[str]]:
        """Return the target and the features of a table with these columns, of which ``index`` name rows.

        Raises:
            InputError: a column is missing, has two purposes, or no feature is left.
        """
        target = target_name(names, self.target)
        groups = find_groups(self.group, names)
        check_chosen(names, target, groups, self)
        left_out = {target, *groups, self.weight, self.id, *(self.drop or [])} | (
            index if self.features is None else set()
        )
        wanted = dict.fromkeys(names if self.features is None else self.features)
        chosen = [name for name in wanted if name not in left_out]
        if not chosen:
            raise InputError(
                f"no feature is left besides the target {target!r}: correct --features and --drop"
            )
        check_single(names, set(chosen), droppable=True)
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
    check_single(names, matches)
    return matches[0]


def split_names(text: str) -> list[str]:
    """Return the names of columns in a,b,c; names that contain a comma are quoted, as in a CSV file."""
    try:
        return next(reader([text], skipinitialspace=True)) or [""]
    except Error as error:
        raise InputError(f"{quote(text)} is no row of names: {error}") from None


def find_groups(group: str | Sequence[str] | None, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns that together say which rows belong together; see ``Roles.group``.

    Raises:
        InputError: it is no name, and no list of names.
    """
    if group is None:
        return ()
    expect("group", group, str | list | tuple, "the name of a column, or a list of them")
    if isinstance(group, str):
        return (group,) if group in names else tuple(dict.fromkeys(split_names(group)))
    return sequence("group", group, least=1, kind="column names")


def name_groups(groups: Sequence[str], names: Sequence[str] = ()) -> str | None:
    """Return the one name of these columns together; None of none.

    Raises:
        InputError: another one of the columns ``names`` has it.
    """
    name = groups[0] if len(groups) == 1 else write_row(groups) if groups else None
    if len(groups) > 1 and name in names:
        raise InputError(f"a column is named {name!r}, as the groups by these columns would be: rename it")
    return name


def check_column(name: object, names: Sequence[str], purpose: str = "") -> None:
    """Raise InputError unless a table has a single column of this name, which is wanted for a ``purpose``."""
    if not (isinstance(name, str) and name in names):
        raise InputError(
            f"there is no column {quote(name)}{purpose}: the columns are {some(names)}"
            f"{suggest_column(name, names)}"
        )
    check_single(names, [name])


def check_chosen(names: list[str], target: str, groups: Sequence[str], roles: Roles) -> None:
    """Raise InputError unless the columns asked for exist, and each is for one purpose."""
    features, drop, known = roles.features, roles.drop, list(dict.fromkeys(names))
    for argument, value in (("features", features), ("drop", drop)):
        expect(argument, value, list | tuple | None, "a list of column names")
        for name in value or ():
            check_column(name, known)
    if target in (drop or ()):
        raise InputError(
            f"column {quote(target)} is the target: leave it out of --drop, or name another as the target"
        )
    for argument, column, purpose, says in (
        *(("group", group, "groups", "which rows belong together") for group in groups),
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
    if roles.weight in groups:
        raise InputError(
            f"column {roles.weight!r} says which rows belong together, and cannot say what rows weigh: name "
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
                    f"{suggest_column(name, chosen)}"
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
