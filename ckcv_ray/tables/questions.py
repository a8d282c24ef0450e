"""Columns that identify what a row is of, and measure nothing: numbers of the rows, and names of groups.

Numbers of the rows are not learned from: of a table that is sorted by its target they give it away. A column
that looks as if it named groups is asked about, by its name or by its values alone.

What tells a name from a measurement are its repeats. Half of the values or more differ, and yet some repeat,
as often as names do and not by chance:

* text that is no number, amount or date;
* whole numbers that fill a range, such as 1, 1, 2, 3, 3, 3, 4, with equal ones in rows next to each other;
* whole numbers of which far more are equal than are nearly so. Of a measurement, such as a price in euros,
  about as many pairs of rows are equal as differ by 1, by 2, or by any other small amount. Where it is
  rounded, more are equal, but then most of those end in 0 or 5.

Labels that may be one class written in several ways are asked about, joined or kept apart: they are one
number, or differ in what is easily written otherwise: Yes and YES, type 1 and type-1, >50K and >50K., 01 and
1.0.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Values
from ckcv_ray.errors import InputError, pluralize, write_option
from ckcv_ray.tables.columns.formats import (
    LOOKS_LIKE_DATE,
    NO_NAMES,
    ColumnError,
    bare,
    find_number_form,
    fold_marks,
    fold_text,
)
from ckcv_ray.tables.columns.parse import Cells, infer_column, number_values
from ckcv_ray.tables.target import MAX_CLASSES, MIN_GROUPS, SPACES, is_text, list_distinct
from ckcv_ray.validation import check_choice

ENTITIES = frozenset(
    (
        *("patient", "subject", "customer", "client", "person", "participant", "user", "account"),
        *("household", "family", "animal", "donor", "device", "machine", "document", "group"),
    )
)
NUMBER_WORDS = ("id", "ids", "no", "nr", "num", "number", "key", "code")
ROW_NAMES = frozenset(("", "row", "rows", "rowname", "rownames", "rownumber", "index", "unnamed", "obs"))
TIME_NAMES = frozenset(
    ("time", "t", "date", "year", "quarter", "month", "week", "day", "hour", "minute", "second", "age")
)
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
MIN_SHARED = 1 / 3  # share of rows whose value occurs again, for a column that is named like groups
MANY_NAMES, MAX_ROWS_OF_NAME = 20, 100  # fewer values of more rows each are kinds of things, and not names
MIN_REPEATED = 0.05  # share of rows whose value occurs again, for a column of any name
MIN_FILLED = 0.95  # share of a range's numbers that occur
MAX_NEAR, MIN_TIMES = 10, 20  # how far numbers that are near differ; how many times more are equal
MIN_ROUND = ((10, 0.3), (5, 0.5))  # share of numbers that are multiples, from which they are rounded
MAX_ROWS_SEEN = 20_000  # of a column of any name, to see whether it looks like groups
MIN_NUMBERED = 20  # rows: fewer may be numbered by chance, as the steps of a dose are
DENSE = 2  # numbers of rows are less than twice as far apart as there are rows


def is_row_number(x: Values, name: str) -> bool:
    """Return whether a column x (n,) numbers the rows, so that it must not be learned from unasked.

    That is a column that goes up by one from row to row, from 0 or 1, in 20 rows or more, unless it is named
    as a time; or one that is named as a number of rows or of what the rows are, and has another whole number
    in each: without wide gaps, or rising.
    """
    steps = np.diff(x)
    if not len(steps) or np.isnan(x).any() or not np.all(np.floor(x) == x):
        return False
    words = [word.lower() for word in WORD.findall(name)]
    if len(x) >= MIN_NUMBERED and x[0] in (0, 1) and np.all(steps == 1):
        return not any(word in TIME_NAMES for word in words)
    if "".join(words) not in ROW_NAMES and not is_name_of_groups(name):
        return False
    if np.all(steps > 0):
        return True
    return len(np.unique(x)) == len(x) and bool(np.ptp(x) < DENSE * len(x))


def ask_about_groups(columns: pa.Table, known: Container[str | None]) -> str:
    """Ask about the first column that looks as if it named groups; "" if there is none.

    Columns that are named as groups are come first.

    Args:
        columns: a table.
        known: names of columns that are something else.
    """
    counts = Counter(columns.column_names)
    left = [name for name in counts if counts[name] == 1 and name not in known]
    for name in sorted(left, key=is_name_of_groups, reverse=True):
        if count := _count_names(columns, name):
            return (
                f"column {name[:60]!r} repeats: {count:,} values in {columns.num_rows:,} rows. If rows of "
                "one value belong together, such as visits of one patient, say "
                f"{write_option('group', name)}: without it nothing here is proven."
            )
    return ""


def is_name_of_groups(name: str) -> bool:
    """Return whether a column's name is that of something with several rows: patient, subject_id, userNo."""
    words = [word.lower() for word in WORD.findall(name)]
    if not words:
        return False
    last, before = words[-1], words[:-1]
    if last in ENTITIES or last in ("id", "ids", "uid", "pid") or words[0] == "id":
        return True
    if last in NUMBER_WORDS and any(word in ENTITIES for word in before):
        return True
    return any(last.removesuffix(ending) in ENTITIES for ending in NUMBER_WORDS if last.endswith(ending))


def _count_names(columns: pa.Table, name: str) -> int:
    """Return the number of values of a column that looks as if it named groups; 0 if it does not."""
    if is_name_of_groups(name):
        counts = _count_rows(_read_names(columns, name))
        enough = len(counts) >= MANY_NAMES or counts.sum() <= MAX_ROWS_OF_NAME * len(counts)
        if len(counts) >= MIN_GROUPS and enough and _share_repeated(counts) >= MIN_SHARED:
            return len(counts)
    seen = columns.select([name]).slice(0, MAX_ROWS_SEEN)
    return len(_count_rows(_read_names(columns, name))) if _look_like_names(seen, name) else 0


def _read_names(columns: pa.Table, name: str) -> pa.ChunkedArray | None:
    """Return a column of text or whole numbers without gaps; None if it is another."""
    cells = Cells.of(columns, name)
    if cells.written and cells.numbers is not None and np.any(cells.numbers != np.floor(cells.numbers)):
        return None  # found at once; what all texts are together takes several times as long
    column = cells.infer()
    kind = column.type
    if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)) or column.null_count:
        return None
    if pa.types.is_floating(kind) and np.any((values := column.to_numpy()) != np.floor(values)):
        return None
    return column


def _count_rows(column: pa.ChunkedArray | None) -> NDArray[np.intp]:
    if column is None or not len(column):
        return np.zeros(0, np.intp)
    counts = np.bincount(number_values(column))
    return counts[counts > 0]


def _share_repeated(counts: NDArray[np.intp]) -> float:
    return float(counts[counts > 1].sum() / counts.sum())


def _look_like_names(columns: pa.Table, name: str) -> bool:
    """Return whether the values of a column look like names that repeat; see the head of the module.

    The most frequent value does not count, as it may stand for none.
    """
    column = _read_names(columns, name)
    counts = _count_rows(column)
    if column is None or not (len(counts) >= MANY_NAMES and len(column) <= 2 * len(counts)):
        return False
    if _share_repeated(counts) - counts.max() / len(column) < MIN_REPEATED:
        return False
    if not is_text(column.type):
        return _are_names(np.asarray(column.to_numpy(), np.float64))
    cells = Cells.of(columns, name)
    if cells.written and cells.numbers is not None:  # of more digits than numbers have
        return True
    texts = cells.known
    try:
        _, words = find_number_form(texts, name)
    except ColumnError:  # numbers in several forms
        return False
    return len(words) > len(texts) / 2 and not LOOKS_LIKE_DATE.match(texts[0])


def _are_names(x: Values) -> bool:
    """Return whether whole numbers x (n,) repeat as names do."""
    values, counts = np.unique(x, return_counts=True)
    if len(values) >= MIN_FILLED * (values[-1] - values[0] + 1):
        return bool(1 + np.count_nonzero(np.diff(x)) == len(values))
    repeated = values[counts > 1]
    if any(np.mean(repeated % base == 0) >= share for base, share in MIN_ROUND):
        return False
    pairs = counts * (counts - 1) // 2
    ordered = np.sort(x)
    until = np.searchsorted(ordered, ordered + MAX_NEAR, side="right")
    near = int((until - np.arange(1, len(x) + 1)).sum() - pairs.sum())
    return bool(pairs.sum() - pairs.max() >= MIN_TIMES * near / (2 * MAX_NEAR))


ANSWERS = JOIN, APART = "join", "apart"
MAX_SPELLINGS = 10 * MAX_CLASSES  # of more than this the classes are too many in any case
MAX_WAYS = 4

RowCounts = dict[str, int]  # rows of each way of writing a class


def read_labels(columns: pa.Table, target: str, answer: str = "") -> pa.ChunkedArray:
    """Return a column of labels; of a text table as what its cells are together, if they are written so.

    Labels such as 1 and 2 become numbers, True and False truth values; 01, 1.50 and TRUE stay the texts that
    predictions are to hold.

    Args:
        columns: a table.
        target: name of its column of labels.
        answer: "join" to make one class of labels that are written in several ways, called as most of its
            rows are (of ways as frequent, as the first one, sorted); "apart" to take each way as a class of
            its own, as text; "" to ask.

    Raises:
        InputError: labels are written in several ways, and there is no answer.
    """
    if answer:
        check_choice("labels", answer, ANSWERS)
    cells = Cells.of(columns, target)
    if not is_text(cells.stored) or (answer == APART and not cells.written):
        return columns.column(target)
    values, codes = list_distinct(cells.encoded)
    if len(values) > MAX_SPELLINGS:
        return infer_column(columns, target)
    texts, classes = _find_classes(cells, values)
    rows = np.bincount(codes, minlength=len(values))
    counts: dict[Any, RowCounts] = defaultdict(lambda: defaultdict(int))
    for text, name, count in zip(texts, classes, rows.tolist(), strict=True):
        if name is not None:
            counts[name][text] += count
    several = [ways for ways in counts.values() if len(ways) > 1]
    if not several:
        return _type_as_written(columns, target) if cells.written else columns.column(target)
    if answer == APART:
        return columns.column(target)
    if not answer:
        raise InputError(
            f"the target {target!r} has {_describe_ways(several, 'label')}: say --labels join if they are "
            "one class, --labels apart if each is one of its own, or write them alike"
        )
    called = {name: min(ways, key=lambda text: (-ways[text], text)) for name, ways in counts.items()}
    names = list(called.values())
    position = {name: i for i, name in enumerate(called)}
    written = [None if name is None else position[name] for name in classes]
    labels = pa.DictionaryArray.from_arrays(pa.array(written, pa.int32()).take(pa.array(codes)), names)
    return _type_as_written(columns.set_column(columns.column_names.index(target), target, labels), target)


def _type_as_written(columns: pa.Table, target: str) -> pa.ChunkedArray:
    """Return labels as what they are together, such as whole numbers; as text unless each is written so."""
    cells = Cells.of(columns, target)
    if cells.written and not is_text(cells.typed.type):
        values, _ = list_distinct(cells.encoded)
        pairs = zip(values, cells.typed.to_pylist(), strict=False)  # an empty cell is the last value
        if all(value is None or str(value) == bare(text) for text, value in pairs):
            return infer_column(columns, target)
    return columns.column(target)


def _find_classes(cells: Cells, values: list[Any]) -> tuple[list[str], list[Any]]:
    """Return distinct labels without spaces around them, and what is the same for those of one class.

    That is None for a label that is missing.
    """
    typed = cells.typed.to_pylist() if cells.written and not is_text(cells.typed.type) else None
    if typed is not None:  # texts are what their value is, to its last digit
        texts = ["" if value is None else bare(value) for value in values]
        return texts, [None if value != value else value for value in [*typed, None]]
    texts, gaps = ["" if value is None else value.strip(SPACES) for value in values], NO_NAMES & cells.gaps
    return texts, [None if text.lower() in gaps else fold_text(text) for text in texts]


def describe_spellings(categories: tuple[str, ...], rows: list[int]) -> str:
    """Say which categories may be one, written in several ways; "" if none are.

    Args:
        categories: at most ``MAX_SPELLINGS``, of more it is not said.
        rows: number of rows of each.
    """
    counts: dict[str, RowCounts] = defaultdict(dict)
    if len(categories) <= MAX_SPELLINGS:
        for text, count in zip(categories, rows, strict=True):
            counts[fold_text(text)][text] = count
    several = [ways for ways in counts.values() if len(ways) > 1]
    return f"has {_describe_ways(several, 'value')}: write them alike if they are one" if several else ""


def _describe_ways(several: list[RowCounts], noun: str) -> str:
    """Say how the first of several is written, and what is different there; the others are counted."""
    ways = sorted(several[0].items(), key=lambda way: (-way[1], way[0]))
    shown = [f"{text[:40]!r} ({pluralize(count, 'row')})" for text, count in ways[:MAX_WAYS]]
    more = f" and {pluralize(len(ways) - MAX_WAYS, 'other')}" if len(ways) > MAX_WAYS else ""
    rest = f", and {pluralize(len(several) - 1, f'other {noun}')} of several forms" if several[1:] else ""
    listed = ", ".join(shown) + more if more or len(shown) > 2 else " and ".join(shown)
    return f"{listed}, which {_compare([text for text, _ in ways])}{rest}"


def _compare(texts: list[str]) -> str:
    folds: dict[str, Callable[[str], str]] = {
        "case alone": str.casefold,
        "spaces alone": lambda text: "".join(text.split()),
        "case and spaces alone": lambda text: "".join(text.split()).casefold(),
        "hyphens, a point at the end, or signs that are not seen": lambda text: fold_marks(text).casefold(),
    }
    found = (f"differ in {what}" for what, fold in folds.items() if len(set(map(fold, texts))) == 1)
    return next(found, "are one value")
