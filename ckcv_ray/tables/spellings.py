"""Labels that may be one class written in several ways: asked about, joined or kept apart.

They are one number, or differ in what is easily written otherwise: Yes and YES, type 1 and type-1, >50K and
>50K., 01 and 1.0.
"""

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa

from ckcv_ray.errors import InputError, pluralize
from ckcv_ray.tables.columns.formats import NO_NAMES, bare, fold_marks, fold_text
from ckcv_ray.tables.columns.parse import Cells, infer_column
from ckcv_ray.tables.target import MOST_CLASSES, SPACES, distinct, is_text
from ckcv_ray.validation import check_choice

ANSWERS = JOIN, APART = "join", "apart"
MOST_SPELLINGS = 10 * MOST_CLASSES  # of more than this the classes are too many in any case
MOST_WAYS = 4

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
    values, codes = distinct(cells.encoded)
    if len(values) > MOST_SPELLINGS:
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
    if not cells.written or is_text(cells.typed.type):
        return columns.column(target)
    values, _ = distinct(cells.encoded)
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
        categories: at most ``MOST_SPELLINGS``, of more it is not said.
        rows: number of rows of each.
    """
    counts: dict[str, RowCounts] = defaultdict(dict)
    if len(categories) <= MOST_SPELLINGS:
        for text, count in zip(categories, rows, strict=True):
            counts[fold_text(text)][text] = count
    several = [ways for ways in counts.values() if len(ways) > 1]
    return f"has {_describe_ways(several, 'value')}: write them alike if they are one" if several else ""


def _describe_ways(several: list[RowCounts], noun: str) -> str:
    """Say how the first of several is written, and what is different there; the others are counted."""
    ways = sorted(several[0].items(), key=lambda way: (-way[1], way[0]))
    shown = [f"{text[:40]!r} ({pluralize(count, 'row')})" for text, count in ways[:MOST_WAYS]]
    more = f" and {pluralize(len(ways) - MOST_WAYS, 'other')}" if len(ways) > MOST_WAYS else ""
    rest = f", and {pluralize(len(several) - 1, f'other {noun}')} of several forms" if several[1:] else ""
    listed = ", ".join(shown) + more if more or len(shown) > 2 else " and ".join(shown)
    return f"{listed}, which {_compare([text for text, _ in ways])}{rest}"


def _compare(texts: list[str]) -> str:
    if len({text.casefold() for text in texts}) == 1:
        return "differ in case alone"
    if len({"".join(text.split()) for text in texts}) == 1:
        return "differ in spaces alone"
    if len({"".join(text.split()).casefold() for text in texts}) == 1:
        return "differ in case and spaces alone"
    if len({fold_marks(text).casefold() for text in texts}) == 1:
        return "differ in hyphens, a point at the end, or signs that are not seen"
    return "are one value"
