"""What is asked and said of a table: identifiers, groups, spellings, repeats, what gives the target away.

Columns that number the rows are not learned from: of a table that is sorted by its target they give it away.
A column that looks as if it named groups is asked about, by its name or by its values alone. What tells a
name from a measurement are its repeats. Half of the values or more differ, and yet some repeat, as often as
names do and not by chance:

* text that is no number, amount or date;
* whole numbers that fill a range, such as 1, 1, 2, 3, 3, 3, 4, with equal ones in rows next to each other;
* whole numbers of which far more are equal than are nearly so. Of a measurement, such as a price in euros,
  about as many pairs of rows are equal as differ by 1, by 2, or by any other small amount. Where it is
  rounded, more are equal, but then most of those end in 0 or 5.

Labels that may be one class written in several ways are asked about, joined or kept apart: they are one
number, or differ in what is easily written otherwise: Yes and YES, type 1 and type-1, >50K and >50K., 01 and
1.0.

Equal rows are harmless where independent examples happen to be alike, and not where they are one example that
was entered several times. Both look the same, so they are counted: how many there are, and how many would
have to be left out to keep one of each. A column that numbers the rows, such as an id, makes all rows differ
and says nothing about a row: it is not compared.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Index, Values
from ckcv_ray.core.draws import SURVEYED, Draws
from ckcv_ray.core.resampling.base import Split, Strata, arrange
from ckcv_ray.errors import InputError, pluralize, write_option
from ckcv_ray.tables.columns import (
    LOOKS_LIKE_DATE,
    MAX_CLASSES,
    MIN_GROUPS,
    NO_NAMES,
    SPACES,
    Cells,
    Column,
    ColumnError,
    ColumnKind,
    Rows,
    Schema,
    bare,
    find_number_form,
    fold_marks,
    fold_text,
    is_number_type,
    is_text,
    list_distinct,
    number_values,
    unify_zeros,
)
from ckcv_ray.validation import check_choice, quote

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
    """Return the number of values of a column that looks as if it named groups; 0 if it does not.

    The most frequent value does not count, as it may stand for none; see the head of the module.
    """
    if is_name_of_groups(name):
        counts = np.bincount(number_values(_read_names(Cells.of(columns, name))))
        enough = len(counts) >= MANY_NAMES or counts.sum() <= MAX_ROWS_OF_NAME * len(counts)
        if len(counts) >= MIN_GROUPS and enough and _share_repeated(counts) >= MIN_SHARED:
            return len(counts)
    cells = Cells.of(columns.slice(0, MAX_ROWS_SEEN), name)
    counts = np.bincount(number_values(column := _read_names(cells)))
    if len(counts) < MANY_NAMES or len(column) > 2 * len(counts):
        return 0
    repeated = _share_repeated(counts) - counts.max() / len(column) >= MIN_REPEATED
    if not repeated or not _are_names(cells, column):
        return 0
    return len(np.bincount(number_values(_read_names(Cells.of(columns, name)))))  # of all rows


def _read_names(cells: Cells) -> pa.ChunkedArray:
    """Return a column of text or whole numbers without gaps; of another no cells."""
    no_names = pa.chunked_array([], pa.null())
    if cells.written and cells.numbers is not None and np.any(cells.numbers != np.floor(cells.numbers)):
        return no_names  # found at once; what all texts are together takes several times as long
    column = cells.values if cells.declared else cells.infer()
    if pa.types.is_floating(column.type) and np.any((values := column.to_numpy()) != np.floor(values)):
        return no_names
    is_name = is_text(column.type) or is_number_type(column.type)
    return column if is_name and not column.null_count else no_names


def _share_repeated(counts: NDArray[np.intp]) -> float:
    return float(counts[counts > 1].sum() / counts.sum())


def _are_names(cells: Cells, column: pa.ChunkedArray) -> bool:
    """Return whether the values of a column repeat as names do."""
    if is_text(column.type):
        if cells.written and cells.numbers is not None:  # of more digits than numbers have
            return True
        with suppress(ColumnError):  # numbers in several forms
            _, words = find_number_form(cells.known, "")
            return len(words) > len(cells.known) / 2 and not LOOKS_LIKE_DATE.match(cells.known[0])
        return False
    x = np.asarray(column.to_numpy(), np.float64)
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
        return cells.column
    values, codes = list_distinct(cells.encoded)
    if len(values) > MAX_SPELLINGS:
        return cells.infer()
    texts, classes = _find_classes(cells, values)
    rows = np.bincount(codes, minlength=len(values))
    counts: dict[Any, RowCounts] = defaultdict(lambda: defaultdict(int))
    for text, name, count in zip(texts, classes, rows.tolist(), strict=True):
        if name is not None:
            counts[name][text] += count
    several = [ways for ways in counts.values() if len(ways) > 1]
    if not several:
        return _type_as_written(cells)
    if answer == APART:
        return cells.column
    if not answer:
        raise InputError(
            f"the target {target!r} has {_describe_ways(several, 'label')}: say --labels join if they are "
            "one class, --labels apart if each is one of its own, or write them alike"
        )
    called = {name: min(ways, key=lambda text: (-ways[text], text)) for name, ways in counts.items()}
    labels = pa.array([called.get(name) for name in classes], pa.string()).take(pa.array(codes))
    return _type_as_written(
        Cells.of(columns.set_column(columns.column_names.index(target), target, labels), target)
    )


def _type_as_written(cells: Cells) -> pa.ChunkedArray:
    """Return labels as what they are together, such as whole numbers; as text unless each is written so."""
    if cells.written and not is_text(cells.typed.type):
        values, _ = list_distinct(cells.encoded)
        pairs = zip(values, cells.typed.to_pylist(), strict=False)  # an empty cell is the last value
        if all(value is None or str(value) == bare(text) for text, value in pairs):
            return cells.infer()
    return cells.column


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


def _describe_ways(several: list[RowCounts], noun: str) -> str:
    """Say how the first of several is written, and what is different there; the others are counted."""
    ways = sorted(several[0].items(), key=lambda way: (-way[1], way[0]))
    shown = [f"{text[:40]!r} ({pluralize(count, 'row')})" for text, count in ways[:MAX_WAYS]]
    more = f" and {pluralize(len(ways) - MAX_WAYS, 'other')}" if len(ways) > MAX_WAYS else ""
    rest = f", and {pluralize(len(several) - 1, f'other {noun}')} of several forms" if several[1:] else ""
    listed = ", ".join(shown) + more if more or len(shown) > 2 else " and ".join(shown)
    folds: dict[str, Callable[[str], str]] = {
        "case alone": str.casefold,
        "spaces alone": lambda text: "".join(text.split()),
        "case and spaces alone": lambda text: "".join(text.split()).casefold(),
        "hyphens, a point at the end, or signs that are not seen": lambda text: fold_marks(text).casefold(),
    }
    found = (f"differ in {what}" for what, fold in folds.items() if len(set(map(fold, several[0]))) == 1)
    return f"{listed}, which {next(found, 'are one value')}{rest}"


LARGEST_KAPPA = 0.001
MAX_TYPED = 1 << 32  # a seed above it was drawn by --seed random


class Named(Protocol):
    """What has a name."""

    @property
    def name(self) -> str:
        """Its name."""


class Examined(Protocol):
    """What is looked at of a ``Task``, which is made with the help of this module."""

    @property
    def X(self) -> Rows:
        """Inputs, (n, d)."""

    @property
    def y(self) -> NDArray[Any]:
        """Class numbers, or numbers to predict, (n,)."""

    @property
    def schema(self) -> Schema:
        """How the columns are understood."""

    @property
    def target(self) -> Named:
        """What is predicted."""

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 of numbers to predict."""

    @property
    def row_units(self) -> NDArray[np.intp]:
        """The unit of each row, (n,)."""

    @property
    def n_units(self) -> int:
        """Number of groups; of rows if there are none."""


class Repeats(NamedTuple):
    """Rows that equal another row in every column that is compared, including the label.

    With groups, the other row is of another group: rows of one group may be related in any way.
    """

    rows: int  # how many there are
    # how many rows, or groups, are left out to keep one of those that are equal, or that share equal rows.
    # Where some are held out, of these alone: all that equal a learning row, and of others all but one
    copies: int


def find_repeats(task: Examined, held: Index | None = None) -> Repeats:
    """Count the rows that equal another row, and the copies among rows that are held out, if any are."""
    columns = _select_compared(task)
    if not columns.any():
        return Repeats(0, 0)
    items = _number_rows(np.column_stack([task.X[:, columns], task.y]))
    judged = np.full(task.n_units, held is None)
    if held is not None:
        judged[task.row_units[held]] = True
    if task.n_units == len(task.y):
        counts = np.bincount(items)
        return Repeats(int(counts[counts > 1].sum()), _count_copies(items, judged))
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = np.unique(np.column_stack([items, task.row_units]), axis=0)
    shared = np.bincount(pairs[:, 0]) > 1  # items of more than one group
    groups, n = pairs[shared[pairs[:, 0]]], task.n_units
    size = n + int(groups[:, 0].max(initial=-1)) + 1
    edges = coo_array((np.ones(len(groups)), (groups[:, 1], n + groups[:, 0])), shape=(size, size))
    connected = np.asarray(connected_components(edges, directed=False)[1][:n], np.intp)
    return Repeats(int(np.sum(shared[items])), _count_copies(connected, judged))


def _count_copies(number: NDArray[np.intp], judged: NDArray[np.bool_]) -> int:
    """Return how many judged units to leave out so that all are new, by a number that equal units share."""
    alone = np.bincount(number[judged], minlength=int(number.max()) + 1) == np.bincount(number)
    return int(np.sum(judged)) - int(np.sum(alone[np.unique(number)]))


def describe_sorted(task: Examined, seed: int) -> list[str]:
    """Return a list of one sentence if a known seed draws too little from a table that is sorted, else none.

    With a known seed the draws rest on the salt, a digest of which rows there are. If the rows come sorted
    and few of them differ, few salts are likely, and those may draw lucky positions. Kappa is the probability
    of the likeliest table: of a multinomial with the shares of the different rows.
    """
    if seed >= MAX_TYPED:
        return []
    units = task.y[np.unique(task.row_units, return_index=True)[1]] if task.n_units < len(task.y) else task.y
    shares = np.unique(units, return_counts=True)[1] / len(units)
    if np.mean(units[1:] != units[:-1]) >= (1 - np.sum(shares**2)) / 2:
        return []
    n, counts = len(task.y), np.bincount(_number_rows(np.column_stack([task.X, task.y])))
    log_kappa = -(len(counts) - 1) / 2 * np.log(2 * np.pi * n) - np.log(counts / n).sum() / 2
    if log_kappa <= np.log(LARGEST_KAPPA):
        return []
    return [
        f"The rows are sorted by {quote(task.target.name)}, and only {len(counts)} of {n:,} differ: a known "
        "seed may draw positions that flatter such a table. Let --seed random draw one, before any is judged."
    ]


def count_known(X: Rows, task: Examined) -> int:
    """Count the rows of X [rows, d] that are among the learning rows."""
    return int(find_known(X, task).sum())


def find_known(X: Rows, task: Examined) -> NDArray[np.bool_]:
    """Return which rows of X [rows, d] are among the learning rows, (rows,)."""
    columns = _select_compared(task)
    if not columns.any():
        return np.zeros(len(X), dtype=bool)
    items = _number_rows(np.concatenate([task.X[:, columns], X[:, columns]]))
    return np.isin(items[len(task.X) :], items[: len(task.X)])


def count_repeated(X: Rows, task: Examined) -> int:
    """Count the rows of X [rows, d], with the columns of a task, that equal another row of it."""
    columns = _select_compared(task)
    if not columns.any():
        return 0
    counts = np.bincount(_number_rows(X[:, columns]))
    return int(counts[counts > 1].sum())


def _numbers_rows(x: NDArray[np.float64], column: Column) -> bool:
    """Return whether a column numbers or names the rows: every value differs, and says nothing about its row.

    That is a column of whole numbers without wide gaps, or called like a number (patient_id), or of names.
    """
    if column.kind is ColumnKind.NUMBER and not np.all(np.floor(x) == x):  # sooner known than the next
        return False
    if len(np.unique(x)) < len(x) or len(x) < 2:  # gaps are equal
        return False
    if column.kind is not ColumnKind.NUMBER:
        return column.kind is ColumnKind.CATEGORY
    dense = x.max() - x.min() < DENSE * len(x)
    return bool(dense) or is_name_of_groups(column.name) or not column.name.strip("_ ")


def _select_compared(task: Examined) -> NDArray[np.bool_]:
    return ~np.array(
        [_numbers_rows(x, column) for x, column in zip(task.X.T, task.schema, strict=True)], bool
    )


NUMBERED = 8  # columns at once: Arrow's table of different values holds at most 2 GiB


def _number_rows(rows: Rows) -> NDArray[np.intp]:
    """Return a number for each row, the same for equal rows alone."""
    numbers = np.zeros(len(rows), np.int64)
    for first in range(0, rows.shape[1], NUMBERED):  # the number so far stands for the columns before
        values = np.ascontiguousarray(unify_zeros(rows[:, first : first + NUMBERED]))
        items = np.column_stack([numbers, values.view(np.int64)])
        width = pa.binary(items.itemsize * items.shape[1])
        encoded = pa.FixedSizeBinaryArray.from_buffers(width, len(rows), [None, pa.py_buffer(items)])
        numbers = encoded.dictionary_encode().indices.to_numpy().astype(np.int64)
    return np.asarray(numbers, np.intp)


FOLDS, LEAVES = 5, 8
TOO_CLOSE = 1e-4  # to a correlation of 1
GIVES_AWAY = 1 / 50  # of the baseline's error
MIN_SEPARATED = 8  # rows of the smaller class, from which on one cut that separates all rows says enough
MAX_SURVEYED_ROWS = 20_000  # looked at to see whether a column gives the target away
MAX_SURVEYED = 10_000_000  # cells
AWAY = "gives the target away: would it be known for a new row?"


class Surveyed(NamedTuple):
    """What is known of a column."""

    name: str  # of the column
    kind: str  # what it holds, in a word
    missing: int  # number of gaps
    distinct: int  # number of different values
    note: str  # what looks like a mistake; "" if nothing does


def list_row_numbers(names: Iterable[str]) -> list[str]:
    """Say of each column that numbers the rows that it is not learned from."""
    named = [f"column {name[:60]!r}" if name.strip() else "a column without a name" for name in names]
    return [
        f"{column} numbers the rows and is not learned from; --features names it if it is meant"
        for column in named
    ]


def survey(task: Examined) -> list[Surveyed]:
    """Return what is known of each column that is learned from; of plain numbers, of those with a note."""
    said: list[Surveyed] = []
    for x, column, note in zip(task.X.T, task.schema, _notes(task), strict=True):
        if note or not task.schema.plain:
            known = np.sort(x[~np.isnan(x)])
            distinct = int(np.count_nonzero(known[1:] != known[:-1])) + min(1, len(known))
            said.append(Surveyed(column.name, str(column.kind), len(x) - len(known), distinct, note))
    return said


def find_giveaways(task: Examined) -> tuple[str, ...]:
    """Return the names of the columns that give the target away; of a very large table none."""
    if task.X.size > MAX_SURVEYED:
        return ()
    return tuple(column.name for column, note in zip(task.schema, _notes(task), strict=True) if note == AWAY)


def _notes(task: Examined) -> Iterator[str]:
    """Yield for each column the first thing that looks like a mistake."""
    first: dict[bytes, str] = {}
    folds = cache(lambda: _draw_folds(task.y)) if task.n_classes else None
    for x, column in zip(task.X.T, task.schema, strict=True):
        twin = first.setdefault(unify_zeros(x).tobytes(), column.name)
        yield _find_note(x, column, twin, task.y, folds)


def _find_note(
    x: Values, column: Column, twin: str, y: NDArray[Any], folds: Callable[[], list[Split]] | None
) -> str:
    """Return the first thing that looks like a mistake in a column x (n,); the last looks are the slowest.

    ``twin`` is the name of the first column with the same cells, and ``folds`` are of the rows that are
    surveyed; None of numbers to predict.
    """
    if np.all(x == x[0]) or np.all(np.isnan(x)):
        return "is the same in every row"
    if twin != column.name:
        return f"is a copy of {twin[:60]}"
    if column.kind is ColumnKind.NUMBER and _numbers_rows(x, column):
        out = write_option("drop", column.name) if column.name.strip() else "--features"
        return f"seems to number the rows: leave it out with {out}"
    if column.kind is ColumnKind.CATEGORY and 2 * len(np.unique(x)) > len(x):
        return "has another text in most rows: is it a number, a date or a name in an unknown form?"
    if _follows(x, y) if folds is None else _gives_away(x, y, folds):
        return AWAY
    if not column.levels or len(column.levels) > MAX_SPELLINGS:
        return ""
    counts = defaultdict[str, RowCounts](dict)
    rows = np.bincount(x[~np.isnan(x)].astype(np.intp), minlength=len(column.levels))
    for text, count in zip(column.levels, rows.tolist(), strict=True):
        counts[fold_text(text)][text] = count
    several = [ways for ways in counts.values() if len(ways) > 1]
    return f"has {_describe_ways(several, 'value')}: write them alike if they are one" if several else ""


def _follows(x: Values, y: Values) -> bool:
    """Return whether numbers to predict are hardly more than another unit of a column."""
    known = ~np.isnan(x)
    x, y = x[known], y[known]
    if min(len(np.unique(x)), len(np.unique(y))) < LEAVES:
        return False
    return bool(abs(np.corrcoef(x, y)[0, 1]) > 1 - TOO_CLOSE)


def _draw_folds(y: NDArray[np.int32]) -> list[Split]:
    """Deal the rows that are surveyed to folds, class by class; the same for all columns."""
    y = y[:MAX_SURVEYED_ROWS]
    order = arrange(Strata(len(y), y), True, Draws(0).at(*SURVEYED).make_generator())
    return [Split.score(len(y), order[i::FOLDS]) for i in range(FOLDS)]


def _gives_away(x: Values, y: NDArray[np.int32], folds: Callable[[], list[Split]]) -> bool:
    """Return whether one cut separates two classes, or a tree of eight leaves hardly errs in five folds."""
    x, y = x[:MAX_SURVEYED_ROWS], y[:MAX_SURVEYED_ROWS]
    counts = np.sort(np.bincount(y, minlength=2))
    allowed = max(1.0, GIVES_AWAY * (len(y) - int(counts[-1])))
    if counts[0] < FOLDS or counts[:-LEAVES].sum() > allowed:  # each leaf stands for one class
        return False
    known, place = np.unique(x, return_inverse=True)  # gaps are one value, the last
    in_order = y[np.lexsort((y, place))]
    changes = int(np.sum(in_order[1:] != in_order[:-1]))
    pairs = np.bincount(place * len(counts) + y, minlength=len(known) * len(counts))
    least = len(y) - int(pairs.reshape(-1, len(counts)).max(axis=1).sum())  # of the best function
    if len(counts) == 2 and counts[0] >= MIN_SEPARATED and not least and changes == 1:
        return True
    if least > allowed or changes > FOLDS * LEAVES + 2 * FOLDS * allowed:  # then no such tree can do that
        return False
    if np.isnan(known[-1]):
        known[-1] = 2 * known[-2] - known[0] + 1
    wrong = 0
    for train, _, score in folds():
        predicted = predict_by_small_tree(known[place[train]], y[train], known[place[score]])
        wrong += int(np.count_nonzero(predicted != y[score]))
        if wrong > allowed:
            return False
    return True


def predict_by_small_tree(x: Values, y: NDArray[np.int32], x_new: Values) -> NDArray[np.intp]:
    """Return what a classification tree of one column and at most eight leaves predicts.

    The piece is cut next whose Gini impurity falls most by it (Breiman et al., Classification and Regression
    Trees, 1984). Written here, since importing scikit-learn takes longer than a small run.

    Args:
        x, y: column and classes to learn from, (rows,).
        x_new: column of the rows to predict, (new,).

    Returns:
        The predicted classes, (new,).
    """
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    total = np.zeros((len(x) + 1, int(y.max()) + 1))  # of each class before a row
    np.cumsum(np.eye(total.shape[1])[y], axis=0, out=total[1:])
    borders = np.flatnonzero(x[1:] > x[:-1]) + 1

    def cut(start: int, stop: int) -> tuple[float, int, int, int]:
        """Return by how much the best cut of a piece lowers its impurity, the cut, and the piece."""
        at = borders[(borders > start) & (borders < stop)]
        if not len(at):
            return 0.0, start, start, stop
        left, right = total[at] - total[start], total[stop] - total[at]
        pure = np.sum(left**2, axis=1) / (at - start) + np.sum(right**2, axis=1) / (stop - at)
        best = int(np.argmax(pure))
        whole = np.sum((total[stop] - total[start]) ** 2) / (stop - start)
        return float(pure[best] - whole), int(at[best]), start, stop

    pieces = [cut(0, len(x))]
    while len(pieces) < LEAVES and (most := max(pieces))[0] > 1e-9 * len(x):
        _, at, start, stop = most
        pieces.remove(most)
        pieces += [cut(start, at), cut(at, stop)]
    starts = np.sort([start for _, _, start, _ in pieces])
    classes: NDArray[np.intp] = np.argmax(np.diff(total[[*starts, len(x)]], axis=0), axis=1)
    return classes[np.searchsorted((x[starts[1:]] + x[starts[1:] - 1]) / 2, x_new)]
