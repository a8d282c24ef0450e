"""What is predicted: which of some classes a row is of, or a number.

How a column of labels, or of numbers, is read, and all that differs between the two.

Labels that may be one class written in several ways are asked about, joined or kept apart: they are one
number, or differ in what is easily written otherwise: Yes and YES, type 1 and type-1, >50K and >50K., 01 and
1.0.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.measures import LABEL, PROBABILITY, RANK, VALUE, Kind, Output
from ckcv_ray.errors import InputError, cut, cut_list, pluralize, write_option
from ckcv_ray.tables.columns import (
    GAPS,
    LARGEST,
    MAX_CLASSES,
    NO_NAMES,
    SPACES,
    Cells,
    Label,
    bare,
    canonical_text,
    fold_marks,
    fold_text,
    is_number_type,
    is_text,
    list_distinct,
    positions_by_value,
    read_numbers,
    some,
)
from ckcv_ray.tables.limits import MAX_TABLE_BYTES
from ckcv_ray.validation import Classes, Index, Mask, Values, check_choice

MIN_OF_CLASS = 2
MIN_CLASSES = 2
MAX_CLASSES_NAMED, MAX_OF_CLASS = 5, 24  # of classes that are named in one sentence, and of their labels
MAX_SEARCHED = 10_000  # values searched for an example in a message


@dataclass(frozen=True)
class Target:
    """What a task predicts: here a number.

    Attributes:
        name: of its column.
        classes: the original label of each class, in sorted order; none of numbers.
        output: what a model must give for a row.
        outputs: what it may give.
        dtype: how the values of rows are stored.
        gaps: words that stand for an empty cell.
    """

    name: str
    classes: tuple[Label, ...] = ()
    output: ClassVar[Output] = VALUE
    outputs: ClassVar[frozenset[Output]] = frozenset({VALUE})
    dtype: ClassVar[str] = "<f8"
    gaps: ClassVar[frozenset[str]] = GAPS

    @property
    def type(self) -> pa.DataType:
        """The same, of columns."""
        return pa.from_numpy_dtype(np.dtype(self.dtype))

    @property
    def kind(self) -> Kind:
        """Which learners and measures it is for."""
        return {0: Kind.REGRESSION, 2: Kind.BINARY}.get(len(self.classes), Kind.MULTICLASS)

    def word(self, of_classes: str, of_numbers: str) -> str:
        """Return the words that are said of such a target."""
        return of_numbers

    def name_classes(self, chosen: Sequence[int] | Index, counts: Index, unit: str = "row") -> str:
        """Name some classes with their ``counts`` (n_classes,); "" if there are none."""
        named = [f"{cut(repr(self.classes[i]), MAX_OF_CLASS)} ({pluralize(counts[i], unit)})" for i in chosen]
        return ", ".join(cut_list(named, "classes more", MAX_CLASSES_NAMED))

    def check(self, y: Classes, allow_singletons: bool = False) -> None:
        """Raise InputError if a class has a single row; with ``allow_singletons`` if most classes have."""

    def read(self, columns: pa.Table, name: str | None = None) -> Values | Classes:
        """Return the numbers, or the class numbers, in a column of a table, none of whose cells are gaps.

        A label may be written in another way than its class: 01 or 1.0 for 1, True for true, YES for yes.

        Args:
            columns: a table.
            name: of the column; None if it is called as the target.

        Raises:
            InputError: a label is not one of the classes; numbers are as ``read_numbers`` refuses them, too
                large, or one value alone.
        """
        name = self.name if name is None else name
        otherwise = (
            ", and the learner predicts numbers: name a column of numbers, or choose a learner of classes "
            "such as forest"
        )
        y = read_numbers(Cells.of(columns, name), name, "the target", otherwise)
        if (most := np.abs(y).max()) > LARGEST:
            raise InputError(
                f"the target {name!r} has {most:g} in row {np.abs(y).argmax() + 1}: numbers are finite, and "
                f"of magnitude at most {LARGEST:g}"
            )
        if np.all(y == y[0]):
            raise InputError(f"the target {name!r} is {y[0]:g} in every row: there is nothing to learn")
        return y + 0.0

    def decode(self, y: Values | Classes) -> NDArray[np.generic]:
        """Return the original labels of class numbers; numbers that are predicted are their own."""
        return y

    def code(self, y: Values | Classes) -> pa.Array:
        """Return a column of the same, in which each label is held once."""
        return pa.array(y)

    def check_judged(self, y: Values | Classes, predicted: Values | Classes, losses: Values) -> None:
        """Raise ValueError unless these can be rows with their predictions and losses."""
        if not ((losses >= 0) & (losses <= 1)).all():
            raise ValueError("loss has values outside 0..1")


@dataclass(frozen=True)
class ClassTarget(Target):
    """One of some classes, which the rows of y name by their numbers 0 .. n_classes - 1."""

    output: ClassVar[Output] = LABEL
    outputs: ClassVar[frozenset[Output]] = frozenset({LABEL, RANK, PROBABILITY})
    dtype: ClassVar[str] = "<i4"
    gaps: ClassVar[frozenset[str]] = NO_NAMES

    def word(self, of_classes: str, of_numbers: str) -> str:
        """Return the words that are said of classes."""
        return of_classes

    def check(self, y: Classes, allow_singletons: bool = False) -> None:
        """Raise InputError if a class has a single row; with ``allow_singletons`` if most classes have."""
        counts = np.bincount(y, minlength=len(self.classes))
        few = np.flatnonzero(counts < MIN_OF_CLASS).tolist()
        most_scored = len(self.classes) // 2
        if len(few) <= (most_scored if allow_singletons else 0):
            return
        needs = "most classes need" if allow_singletons else "each needs"
        named, it = some([repr(self.classes[i]) for i in few], 3), "it" if len(few) == 1 else "them"
        have = f"class {named} has 1 row" if len(few) == 1 else f"classes {named} have 1 row each"
        cures = (
            f"leave {it} out" if len(self.classes) - len(few) >= MIN_CLASSES else "",
            f"score {it} by ckcv evaluate, which proves nothing" if len(few) <= most_scored else "",
        )
        cure = ", or ".join(filter(None, cures))
        raise InputError(
            f"{have}: {needs} at least {MIN_OF_CLASS}{cure and f' ({cure})'}; the "
            f"target {self.name!r} has {len(self.classes):,} classes ({some(self.classes)})"
            f"{_perhaps_numbers(self.classes)}"
        )

    def read(self, columns: pa.Table, name: str | None = None) -> Classes:
        """Return the class numbers of a column of labels."""
        name = self.name if name is None else name
        return _number_labels(*_encode(columns[name], name), self.classes, name)

    def decode(self, y: Values | Classes) -> NDArray[np.generic]:
        """Return the original labels."""
        return np.array(self.classes)[np.asarray(y, np.intp)]

    def code(self, y: Values | Classes) -> pa.Array:
        """Return a dictionary of labels."""
        return pa.DictionaryArray.from_arrays(pa.array(y), pa.array(self.classes))

    def check_judged(self, y: Values | Classes, predicted: Values | Classes, losses: Values) -> None:
        """Raise ValueError unless these are numbers of classes, -1 where a model is undecided, and 0 or 1."""
        for name, values, least in (("label", y, 0), ("predicted", predicted, -1)):
            if len(values) and not least <= values.min() <= values.max() < len(self.classes):
                raise ValueError(f"{name} has values outside {least}..{len(self.classes) - 1}")
        if not np.isin(losses, (0.0, 1.0)).all():
            raise ValueError("loss has values other than 0 and 1")


def match_labels(column: pa.ChunkedArray, name: str, classes: Sequence[Label]) -> tuple[Classes, list[Label]]:
    """Return the class numbers of predicted labels, -1 for what is no class, and the labels that are none.

    Raises:
        InputError: a label differs from a class by case or spaces alone.
    """
    values, codes = _encode(column, name)
    numbers, near = (_find_classes(values, classes, key) for key in (canonical_text, fold_text))
    strange = [i for i, value in enumerate(values) if numbers[i] < 0 and value is not None]
    if found := [i for i in strange if near[i] >= 0]:
        raise InputError(
            f"column {name!r} holds {values[found[0]]!r}, which differs from the label "
            f"{classes[near[found[0]]]!r} by case or spaces alone: write both in one way"
        )
    return numbers[codes], [values[i] for i in strange]


def find_known(column: pa.ChunkedArray, name: str, gaps: Collection[str]) -> Mask:
    """Return which cells of a column of labels, or of numbers to predict, are none of these ``gaps``."""
    values, codes = _encode(column, name)
    missing = (value is None or value != value or str(value).lower() in gaps for value in values)
    return ~np.array(list(missing))[codes]


def _number_labels(values: list[Any], codes: Index, classes: tuple[Label, ...], target: str) -> Classes:
    """Return the class number of each row, given the distinct labels and the position of each row's."""
    numbers, near = (_find_classes(values, classes, key) for key in (canonical_text, fold_text))
    y = np.where(numbers < 0, near, numbers)[codes]
    if len(y) and y.min() < 0:
        labels = [repr(label) for label in classes]
        listed = " and ".join(labels) if len(labels) == 2 else some(labels)
        raise InputError(f"column {target!r} holds {values[codes[np.argmin(y)]]!r}: the labels are {listed}")
    return y


def _find_classes(values: list[Any], classes: Sequence[Label], make_key: Callable[[str], str]) -> Classes:
    """Return the number of the class that each value is, or is as text by a key; -1 for none, and None."""
    exact = {label: number for number, label in enumerate(classes)} | {None: -1}
    alike = positions_by_value(list(map(str, classes)), make_key)
    found = [exact.get(value, alike.get(make_key(str(value)), -1)) for value in values]
    return np.array(found, np.int32)


def _encode(column: pa.ChunkedArray, target: str) -> tuple[list[Any], Index]:
    """Return the distinct values of a column of labels, None for an empty cell, and each row's position."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    labels = is_text, is_number_type, pa.types.is_boolean, pa.types.is_null
    if not any(is_one(kind) for is_one in labels):
        raise InputError(
            f"the target {target!r} has type {kind}: labels are text or numbers; write it as one of them, or "
            "name another column as target"
        )
    values, codes = list_distinct(column)
    return [value.strip(SPACES) if isinstance(value, str) else value for value in values], codes


def encode_classes(column: pa.ChunkedArray, target: str) -> tuple[tuple[Label, ...], Classes]:
    """Return the classes of a target without gaps, sorted, and the class number of every row."""
    values, codes = _encode(column, target)
    limit = inf if any(isinstance(value, float) for value in values) else 2**63
    counts = np.bincount(codes, minlength=len(values)).tolist()
    totals: Counter[Label] = Counter()
    for value, count in zip(values, counts, strict=True):  # some may differ in spaces alone
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
        raise InputError(f"labels of {target!r} take more than {MAX_TABLE_BYTES >> 20:,} MiB: shorten them")
    return classes, _number_labels(values, codes, classes, target)


def _perhaps_numbers(classes: Sequence[Label]) -> str:
    if any(isinstance(label, bool) or _find_number(label) is None for label in classes):
        return ""
    return "; to predict numbers, choose a learner of numbers such as ridge, in ckcv run with --clip"


def _find_number(label: Label) -> float | None:
    if not isinstance(label, str):
        return float(label)
    _, is_one, number = canonical_text(label).partition("number ")
    return float(number) if is_one else None


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
        return cells.values
    values, codes = list_distinct(cells.encoded)
    if len(values) > MAX_SPELLINGS:
        return cells.infer()
    texts, gaps = ["" if value is None else value.strip(SPACES) for value in values], NO_NAMES & cells.gaps
    classes = [None if text.lower() in gaps else fold_text(text) for text in texts]
    rows = np.bincount(codes, minlength=len(values))
    counts: dict[str | None, RowCounts] = defaultdict(lambda: defaultdict(int))
    for text, name, count in zip(texts, classes, rows.tolist(), strict=True):
        if name is not None:
            counts[name][text] += count
    several = [ways for ways in counts.values() if len(ways) > 1]
    if not several:
        return _type_as_written(cells)
    if answer == APART:
        return cells.values
    if not answer:
        raise InputError(
            f"the target {target!r} has {describe_ways(several, 'label')}: say --labels join if they are "
            "one class, --labels apart if each is one of its own, or write them alike"
        )
    called = {name: min(ways, key=lambda text: (-ways[text], text)) for name, ways in counts.items()}
    labels = pa.array([called.get(name) for name in classes], pa.string()).take(pa.array(codes))
    joined = columns.set_column(columns.column_names.index(target), target, labels)
    return _type_as_written(Cells.of(joined, target))


def _type_as_written(cells: Cells) -> pa.ChunkedArray:
    """Return labels as what they are together, such as whole numbers; as text unless each is written so."""
    if cells.written and not is_text(cells.typed.type):
        values, _ = list_distinct(cells.encoded)
        pairs = zip(values, cells.typed.to_pylist(), strict=False)  # an empty cell is the last value
        if all(value is None or str(value) == bare(text) for text, value in pairs):
            return cells.infer()
    return cells.values


def describe_ways(several: list[RowCounts], noun: str) -> str:
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
