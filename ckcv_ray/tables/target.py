"""Columns of a table: conversion to features and to classes.

Every check raises an InputError that names the column and the row, and says how to fix it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from math import inf, isfinite, nan
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Classes, Index
from ckcv_ray.errors import InputError, pluralize, write_option
from ckcv_ray.tables.columns.formats import (
    GAPS,
    NO_NAMES,
    ColumnError,
    bare,
    canonical_text,
    choose_number_parser,
    drop_gaps,
    find_number_form,
    fold_text,
    positions_by_value,
)
from ckcv_ray.tables.readers.limits import MAX_TABLE_BYTES
from ckcv_ray.validation import quote, suggest

MIN_OF_CLASS = 2
MIN_CLASSES = 2
MIN_GROUPS = 6
MAX_CLASSES = 1_000
LARGEST = 1e150  # the squares of this number and of its inverse still fit in a float
SPACES = " \u00a0"
MAX_SEARCHED = 10_000  # values searched for an example in a message
NUMBER_TYPES = (pa.types.is_integer, pa.types.is_floating)

Label = str | int | float | bool
Rows = NDArray[np.float64]


def check_classes(
    classes: tuple[Label, ...], y: Classes, target: str, allow_singletons: bool = False
) -> None:
    """Raise InputError if a class has a single row; with ``allow_singletons`` if most classes have."""
    counts = np.bincount(y, minlength=len(classes))
    few = np.flatnonzero(counts < MIN_OF_CLASS).tolist()
    most_scored = len(classes) // 2
    if len(few) <= (most_scored if allow_singletons else 0):
        return
    needs = "most classes need" if allow_singletons else "each needs"
    named, it = some([repr(classes[i]) for i in few], 3), "it" if len(few) == 1 else "them"
    have = f"class {named} has 1 row" if len(few) == 1 else f"classes {named} have 1 row each"
    cures = (
        f"leave {it} out" if len(classes) - len(few) >= MIN_CLASSES else "",
        f"score {it} by ckcv evaluate, which proves nothing" if len(few) <= most_scored else "",
    )
    cure = ", or ".join(filter(None, cures))
    raise InputError(
        f"{have}: {needs} at least {MIN_OF_CLASS}{cure and f' ({cure})'}; the "
        f"target {target!r} has {len(classes):,} classes ({some(classes)}){_perhaps_numbers(classes)}"
    )


def _perhaps_numbers(classes: Sequence[Label]) -> str:
    if any(isinstance(label, bool) or _find_number(label) is None for label in classes):
        return ""
    return "; to predict numbers, choose a learner of numbers such as ridge, in ckcv run with --clip"


def number_classes(column: pa.ChunkedArray, classes: tuple[Label, ...], target: str) -> Classes:
    """Return the class numbers of a column of labels.

    A label may be written in another way than its class: 01 or 1.0 for 1, True for true, YES for yes.

    Raises:
        InputError: a label is not one of the classes.
    """
    return _number_labels(*_encode(column, target), classes, target)


def _number_labels(values: list[Any], codes: Index, classes: tuple[Label, ...], target: str) -> Classes:
    """Return the class number of each row, given the distinct labels and the position of each row's."""
    exact = {label: number for number, label in enumerate(classes)}
    texts = [str(label) for label in classes]
    alike, folded = positions_by_value(texts), positions_by_value(texts, fold_text)
    found = (
        exact.get(value, alike.get(canonical_text(str(value)), folded.get(fold_text(str(value)), -1)))
        for value in values
    )
    numbers = np.array([-1 if value is None else number for value, number in zip(values, found, strict=True)])
    if len(codes) and numbers[codes].min() < 0:
        unknown = values[codes[int(np.argmin(numbers[codes]))]]
        labels = [repr(label) for label in classes]
        listed = " and ".join(labels) if len(labels) == 2 else some(labels)
        raise InputError(f"column {target!r} holds {unknown!r}: the labels are {listed}")
    return np.asarray(numbers[codes], dtype=np.int32)


class GapWords(NamedTuple):
    """Words in a column that were taken for empty cells."""

    column: str  # its name
    rows: dict[str, int]  # in how many rows each word stands; "" is a cell that is empty
    n: int  # number of rows of the table

    @classmethod
    def of(cls, column: pa.ChunkedArray, name: str, taken: NDArray[np.bool_]) -> "GapWords":
        """Return the words in those cells of a column that were taken for empty ones, (rows,)."""
        values, codes = list_distinct(column.filter(pa.array(taken)))
        rows: Counter[str] = Counter()
        for value, count in zip(values, np.bincount(codes, minlength=len(values)).tolist(), strict=True):
            rows[bare(value) if isinstance(value, str) else ""] += count
        return cls(name, {word: rows[word] for word in sorted(rows) if rows[word]}, len(column))

    @property
    def words(self) -> list[str]:
        """The words, without that of an empty cell."""
        return [word for word in self.rows if word]

    def list_words(self) -> str:
        """Say in how many rows each word stands, such as "'NA' in 12 and 'none' in 3"."""
        return " and ".join(f"{word!r} in {self.rows[word]:,}" for word in self.words)

    def share(self, words: Iterable[str]) -> str:
        """Say of how many rows some words are a share, such as "of 300 rows (4 %)"."""
        rows = sum(self.rows[word] for word in words)
        return f"of {self.n:,} rows ({format(100 * rows / self.n, '.3g')} %)"

    def advise(self) -> str:
        """Name the option that keeps the words."""
        keeps = "keeps it" if len(self.words) == 1 else "keeps them"
        return f"{write_option('keep-values', ','.join(self.words))} {keeps}"

    def describe(self) -> str:
        """Say which words of a feature were taken for empty cells, and how to keep them."""
        were = "was taken for an empty cell" if len(self.words) == 1 else "were taken for empty cells"
        like = ", like cells that are empty" if "" in self.rows else ""
        listed = f"{self.list_words()} {self.share(self.words)}"
        return f"column {self.column[:60]!r}: {listed} {were}{like}: {self.advise()}"

    def describe_labels(self) -> tuple[str, str]:
        """Say in how many rows labels were taken for empty cells, and name the option that keeps words."""
        words = f", {self.list_words()} of them" if self.words else ""
        kept = f"; {self.advise()} as {'a label' if len(self.words) == 1 else 'labels'}" if words else ""
        return f"{sum(self.rows.values()):,} {self.share(self.rows)}{words}", kept


def rows_with_label(
    column: pa.ChunkedArray, target: str, numbers: bool = False, kept: Collection[str] = ()
) -> NDArray[np.bool_]:
    """Return which cells of a column of labels, or of numbers to predict, are no gaps.

    Words that are ``kept`` are none.
    """
    values, codes = _encode(column, target)
    gaps = (GAPS if numbers else NO_NAMES).difference(kept)
    missing = (value is None or value != value or str(value).lower() in gaps for value in values)
    return ~np.array(list(missing))[codes]


def check_single(names: Iterable[str], used: Collection[str], droppable: bool = False) -> None:
    """Raise InputError if two columns of a table have one of the names that are used.

    They differ: those that are identical were joined by ``join_copies``. The message names --drop if they are
    ``droppable``.
    """
    for name, count in Counter(names).items():
        if count > 1 and name in used:
            drop = f", or leave both out with {write_option('drop', name)}" if droppable else ""
            raise InputError(f"two columns are named {name!r}, and differ: rename or remove one{drop}")


def suggest_column(name: object, names: Iterable[str]) -> str:
    """Return the end of a message that offers the column that was probably meant; "" if none is near.

    That is one whose name differs in what is easily written otherwise, or the nearest one.
    """
    names = list(names)
    if isinstance(name, str) and (alike := [known for known in names if fold_text(known) == fold_text(name)]):
        unseen = any(not (sign.isascii() or sign.isalnum()) for sign in name + alike[0])
        return f"; did you mean {ascii(alike[0]) if unseen else quote(alike[0])}?"
    return suggest(name, names, quote)


def choose_name(names: Sequence[str], taken: Iterable[str]) -> str:
    """Return a name, other than those taken, for a column that has none: one of ``names`` if possible."""
    known = set(taken)
    candidates = (*names, *(f"{names[0]}_{i}" for i in range(len(known) + 1)))
    return next(name for name in candidates if name not in known)


def _encode(column: pa.ChunkedArray, target: str) -> tuple[list[Any], Index]:
    """Return the distinct values of a column of labels, None for an empty cell, and each row's position."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    allowed = (pa.types.is_string, pa.types.is_large_string, pa.types.is_boolean, *NUMBER_TYPES)
    if not any(is_one(kind) for is_one in (*allowed, pa.types.is_null)):
        raise InputError(
            f"the target {target!r} has type {kind}: labels are text or numbers; write it as one of them, or "
            "name another column as target"
        )
    values, codes = list_distinct(column)
    return [value.strip(SPACES) if isinstance(value, str) else value for value in values], codes


def list_distinct(column: pa.ChunkedArray) -> tuple[list[Any], Index]:
    """Return the distinct values of a column, None for an empty cell as the last, and each row's position."""
    if pa.types.is_null(column.type):  # Arrow cannot join dictionaries of nothing
        return [None], np.zeros(len(column), np.intp)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    unified = column.unify_dictionaries().combine_chunks()
    if isinstance(unified, pa.ChunkedArray):  # of no rows
        return [None], np.zeros(0, np.intp)
    values = unified.dictionary.to_pylist()
    codes = unified.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    return [*values, None], codes.astype(np.intp)


def encode_classes(column: pa.ChunkedArray, target: str) -> tuple[tuple[Label, ...], Classes]:
    """Return the classes of a target without gaps, sorted, and the class number of every row."""
    values, codes = _encode(column, target)
    limit = inf if any(isinstance(value, float) for value in values) else 2**63
    counts = np.bincount(codes, minlength=len(values)).tolist()
    totals: Counter[Label] = Counter()
    for value, count in zip(values, counts, strict=True):  # a dictionary may hold a value twice
        if count:
            totals[value + 0.0 if isinstance(value, float) else value] += count  # -0.0 equals 0.0
    for value in totals:
        if not isinstance(value, str) and not (isfinite(value) and abs(value) < limit):
            row = int(np.argmax(codes == values.index(value))) + 1
            raise InputError(
                f"the target {target!r} has {value} in row {row}: labels are text or finite numbers"
            )
    if not MIN_CLASSES <= len(totals) <= MAX_CLASSES:
        found = sorted(totals)[:MAX_SEARCHED]
        raise InputError(
            f"the target {target!r} has {pluralize(len(totals), 'class', 'classes')} "
            f"({some(found, of=len(totals))}): expected {MIN_CLASSES} to {MAX_CLASSES:,}"
            f"{_perhaps_numbers(found)}"
        )
    ordered = sorted(totals)
    numbers = {label: _find_number(label) for label in ordered}
    if None not in numbers.values():  # texts that are all numbers are sorted by what they are worth
        ordered.sort(key=lambda label: (numbers[label], label))
    classes = tuple(ordered)
    if len(codes) * max(len(str(label)) for label in classes) > MAX_TABLE_BYTES:
        raise InputError(
            f"the labels of {target!r} take more than {MAX_TABLE_BYTES >> 20:,} MiB: shorten them"
        )
    return classes, _number_labels(values, codes, classes, target)


def _find_number(label: Label) -> float | None:
    if not isinstance(label, str):
        return float(label)
    _, is_one, number = canonical_text(label).partition("number ")
    return float(number) if is_one else None


def parse_numbers(
    column: pa.ChunkedArray,
    target: str,
    thousands: str = "",
    kept: Collection[str] = (),
    decimal: str | None = None,
) -> Rows:
    """Return a target of numbers, (n,) float64.

    ``thousands`` is the mark between thousands, if it was said, and ``decimal`` that of decimals in the
    table, if it is known. Words that are ``kept`` are no gaps, and no numbers.

    Raises:
        InputError: it has text, empty cells, numbers that are too large, or one value alone.
    """
    if is_text(column.type):
        gaps = GAPS.difference(kept)
        column = parse_text_numbers(column, target, "the target", thousands, gaps, decimal)
    if not any(is_one(column.type) for is_one in NUMBER_TYPES):
        example = next((value for value in column[:MAX_SEARCHED].to_pylist() if value is not None), None)
        raise InputError(
            f"the target {target!r} has type {column.type}, such as {str(example)[:60]!r}, and the learner "
            "predicts numbers: name a column of numbers, or choose a learner of classes such as forest"
        )
    y = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)
    if np.isnan(y).any():
        row = int(np.argmax(np.isnan(y))) + 1
        raise InputError(
            f"the target {target!r} has empty cells, the first in row {row}: fix them, or leave these rows "
            "out with --drop-unlabelled"
        )
    if (most := np.abs(y).max()) > LARGEST:
        raise InputError(
            f"the target {target!r} has {most:g} in row {np.abs(y).argmax() + 1}: numbers are finite, and of "
            f"magnitude at most {LARGEST:g}"
        )
    if np.all(y == y[0]):
        raise InputError(f"the target {target!r} is {y[0]:g} in every row: there is nothing to learn")
    return y + 0.0


def parse_text_numbers(
    column: pa.ChunkedArray,
    name: str,
    role: str,
    thousands: str = "",
    gaps: Collection[str] = GAPS,
    decimal: str | None = None,
) -> pa.ChunkedArray:
    """Return numbers that are written as text as numbers; text of another kind as it is.

    Args:
        column: of text.
        name: of the column.
        role: what the column is, for messages, such as "the target".
        thousands: the mark between thousands, if it was said.
        gaps: words that say that a cell is empty.
        decimal: the decimal mark of the table, if it is known.

    Raises:
        InputError: some cells are no numbers, or numbers may be read in two ways.
    """
    values, codes = list_distinct(column)
    texts = [None if value is None else bare(value) for value in values]
    known = drop_gaps(texts, gaps)
    try:
        form, bad = find_number_form(known, name, decimal, thousands) if known else ("", known)
    except ColumnError as problem:
        raise InputError(f"{role} {name!r} {problem}") from None
    if not form:
        return column
    if bad:
        row = int(np.argmax(codes == texts.index(bad[0]))) + 1
        raise InputError(f"{role} {name!r} has {bad[0][:60]!r} in row {row}, which is no number: fix it")
    parse, number = choose_number_parser(form), set(known)
    numbers = [parse(text) if text in number else nan for text in texts]
    return pa.chunked_array([np.array(numbers, np.float64)[codes]])


def check_spread(X: NDArray[np.float64], names: list[str], plain: bool) -> None:
    """Raise InputError if no column varies, or if one has numbers too small to compute with.

    Where columns are encoded in each split (not ``plain``), numbers are scaled there, or need not be.
    """
    first = X[:1]
    if np.all((first == X) | (np.isnan(first) & np.isnan(X))):
        raise InputError(f"nothing varies from row to row in {some(names)}: there is nothing to learn from")
    if not plain:
        return
    most = np.abs(X).max(axis=0)
    if len(small := np.flatnonzero((most > 0) & (most < 1 / LARGEST))):
        name, value = names[small[0]], most[small[0]]
        raise InputError(
            f"column {name!r} has no magnitude above {value:g}: at least {1 / LARGEST:g} is needed; "
            f"change its unit, or leave it out with {write_option('drop', name)} or --features"
        )


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is that of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_value(kind: pa.DataType) -> bool:
    """Return whether cells of a type are numbers, truth values, text, dates or times of day, or all empty."""
    types = pa.types
    dates = types.is_date, types.is_timestamp, types.is_time
    plain = (is_text, *NUMBER_TYPES, types.is_decimal, types.is_boolean, *dates, types.is_null)
    return any(is_one(kind) for is_one in plain)


def is_number(value: str) -> bool:
    """Return whether text can be read as a float."""
    try:
        float(value)
    except ValueError:
        return False
    return True


def some(names: Any, most: int = 12, of: int = 0) -> str:
    """Join the first names for a message, which may be the first ``of`` more."""
    shown, count = [str(name)[:60] for name in names[:most]], max(of, len(names))
    return ", ".join(shown) + (f", ... ({count} in all)" if count > most else "")


def unify_zeros(rows: Rows) -> Rows:
    """Return rows with the same bytes for all zeros, and for all gaps."""
    numbers = rows + 0.0  # -0.0 and 0.0 are one number
    numbers[np.isnan(numbers)] = np.nan
    return numbers
