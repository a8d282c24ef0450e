"""What the columns of a table hold: numbers, categories or dates, with gaps; and the numbers they become.

A table is understood once, from the learning rows. Its rows, and those to be predicted later, then become
numbers [rows, d]: a number as it is, a date in milliseconds since 1970, a category as the number of its
level. A gap is nan. Nothing here depends on labels, and nothing is estimated from rows: that is done inside
each split (``learners.encoding``).
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Values
from ckcv_ray.errors import InputError, pluralize, write_option
from ckcv_ray.tables.columns.formats import (
    DASH,
    E_CODE,
    FORTRAN,
    LOOKS_LIKE_DATE,
    NAMED_ZONE,
    QUOTED,
    SHEET_ERROR,
    WRITTEN_DATES,
    Column,
    ColumnError,
    ColumnKind,
    DeclaredTypes,
    advise_dropping,
    bare,
    drop_gaps,
    find_date_form,
    find_number_form,
    has_short_decimals,
    has_thousands,
    write_example,
)
from ckcv_ray.tables.columns.parse import Cells, are_codes, have_short_decimals, read_cells
from ckcv_ray.tables.readers.limits import SPARSE, find_withheld
from ckcv_ray.tables.target import LARGEST, check_single, is_text, some, suggest_column
from ckcv_ray.validation import read_as

MOSTLY = 0.5  # share of a column's values from which they are its kind, and others a mistake


class OddCellsError(ColumnError):
    """Cells that are none of the numbers of their column, which several columns may have.

    Attributes:
        example: the first.
        sort: the same for those of one cure.
    """

    def __init__(self, name: str, rows: int, example: str, sort: Hashable) -> None:
        super().__init__(
            f"holds numbers and in {pluralize(rows, 'row')} something else{example}{_advise(sort, name)}, or "
            f"{advise_dropping(name)}"
        )
        self.example, self.sort = example, sort


@dataclass(frozen=True)
class Schema:
    """How the columns of a table are understood, in their order.

    Attributes:
        columns: one for each feature.
        plain: whether all of them are numbers, and have no gaps in the rows they were learned from: every
            learner takes these as they are, and a row with a gap cannot be judged.
    """

    columns: tuple[Column, ...]
    plain: bool = False

    @classmethod
    def of_numbers(cls, names: Iterable[str]) -> "Schema":
        """Return the schema of columns of plain numbers."""
        return cls(tuple(map(Column, names)), plain=True)

    @classmethod
    def from_json(cls, content: Any) -> "Schema":
        """Return the schema that JSON values describe, as if there were gaps.

        Raises:
            ValueError: they describe none.
        """
        return cls(tuple(read_as(list[Column], content)))

    def to_json(self) -> list[dict[str, Any]]:
        """Return how the columns are understood as JSON values, which ``from_json`` reads."""
        return [asdict(column) for column in self]

    @classmethod
    def learn(cls, columns: pa.Table, names: Sequence[str], types: DeclaredTypes) -> tuple["Schema", Values]:
        """Return how the named columns of a table are understood, and their rows as numbers [n, d].

        Raises:
            InputError: what is wrong with every column that cannot be learned from, and how to mend each.
        """
        learned: list[Column] = []
        X = np.empty((columns.num_rows, len(names)))
        problems: dict[str, ColumnError] = {}
        position = {name: i for i, name in enumerate(columns.column_names)}
        for i, name in enumerate(names):
            cells = Cells.of(columns, position[name], types.thousands)
            try:
                if held := find_withheld(columns, name):
                    raise ColumnError(_not_learned_from(held, name))
                column, X[:, i] = _learn_column(cells, name, types.kind(name))
                learned.append(column)
            except ColumnError as problem:
                problems[name] = problem
        if problems:
            raise InputError("; and ".join(_join_problems(problems)))
        return cls(tuple(learned)).settle(X), X

    def apply(self, columns: pa.Table, gaps: bool | None = None, thousands: str = "") -> "NewRows":
        """Return the rows of a table as numbers, its columns matched by name.

        Args:
            columns: a table with the columns of the schema, and perhaps others.
            gaps: whether a row with a gap can be judged; by default unless the columns are ``plain``.
            thousands: the mark between thousands in a column of ``short_decimals``; "" if that is not known.

        Raises:
            InputError: a column is missing, or of another kind as a whole.
        """
        gaps = not self.plain if gaps is None else gaps
        names = columns.column_names
        position = {name: i for i, name in enumerate(names)}
        check_single(names, self.names)
        sparse = SPARSE in (columns.schema.metadata or {})  # what is absent is zero
        absent = (name for name in self.names if name not in position)
        if missing := [name for name in absent if not (sparse and name.startswith("x"))]:
            what = f"is no column {missing[0]!r}"
            if len(missing) > 1:
                what = f"are no columns {some([repr(name) for name in missing])}"
            raise InputError(
                f"there {what}: the columns are {some(names)}{suggest_column(missing[0], names)}"
            )
        X = np.zeros((columns.num_rows, len(self)))
        bad, strange = np.zeros((2, columns.num_rows), np.bool_)
        reason = example = unseen = ""
        for i, column in enumerate(self):
            if column.name not in position:
                continue
            cells = Cells.of(columns, position[column.name], thousands)
            try:
                if held := find_withheld(columns, column.name):
                    raise ColumnError(f"holds {held}, which cannot be read")
                X[:, i], wrong = read_cells(cells, column)
            except ColumnError as problem:
                raise InputError(f"column {column.name!r} {problem}: fix it") from None
            if column.kind is ColumnKind.DATE:
                wrong |= (cells.zoned != column.zoned) & ~np.isnan(X[:, i])
            wrong |= np.isinf(X[:, i]) | (np.abs(X[:, i]) > LARGEST) | (np.isnan(X[:, i]) & (not gaps))
            if wrong.any() and not reason:
                reason = _reason(cells, column, X[:, i], wrong)
            bad |= wrong
            if column.levels and (new := X[:, i] == len(column.levels)).any():
                example = example or f"{_cell(cells.values, int(np.argmax(new)))} in column {column.name!r}"
                strange |= new
        if (rows := int(strange.sum())) == 1:
            unseen = f"1 row has a category that was never seen, {example}: it counts as a rare one"
        elif rows:
            unseen = (
                f"{rows:,} rows have categories that were never seen, such as {example}: they count as rare "
                "ones"
            )
        return NewRows(X, bad, reason, unseen)

    def settle(self, X: Values) -> "Schema":
        """Return the schema, ``plain`` if it is for rows X [rows, d]."""
        numbers = all(column.kind is ColumnKind.NUMBER for column in self)
        return replace(self, plain=numbers and not np.isnan(X).any())

    def narrow(self, X: Values) -> "Schema":
        """Return how columns are understood by some rows X [rows, d] alone: with the categories they hold.

        Raises:
            InputError: a column is empty in all of these rows.
        """
        narrowed: list[Column] = []
        for column, x in zip(self, X.T, strict=True):
            gap = np.isnan(x)
            if gap.all():
                out = advise_dropping(column.name)
                raise InputError(f"column {column.name!r} is empty in every row that is learned from: {out}")
            known = x[~gap].astype(np.intp)
            rows = np.bincount(known, minlength=len(column.levels)) if column.levels else ()
            levels = tuple(level for level, count in zip(column.levels, rows, strict=True) if count)
            narrowed.append(replace(column, levels=levels))
        return Schema(tuple(narrowed)).settle(X)

    def translate(self, X: Values, narrowed: "Schema") -> Values:
        """Return rows X [rows, d] as a narrower schema has them: other categories were never seen."""
        X = X.copy()
        for i, (column, narrower) in enumerate(zip(self, narrowed, strict=True)):
            if column.levels != narrower.levels:
                number = {level: i for i, level in enumerate(narrower.levels)}
                unseen = len(narrower.levels)
                levels = [*(number.get(level, unseen) for level in column.levels), unseen]
                known = ~np.isnan(X[:, i])
                X[known, i] = np.array(levels, np.float64)[X[known, i].astype(np.intp)]
        return X

    @property
    def as_stored(self) -> "Schema":
        """How columns are understood that ``format_column`` returned, whose numbers are no text."""
        forms = ("" if column.kind is ColumnKind.NUMBER else column.form for column in self)
        stored = (replace(column, form=form) for column, form in zip(self, forms, strict=True))
        return replace(self, columns=tuple(stored))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self)

    @property
    def is_default(self) -> bool:
        """Whether columns of plain numbers, without a word about how they are written, are understood so."""
        return self == Schema.of_numbers(self.names)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, position: int) -> Column:
        return self.columns[position]


class NewRows(NamedTuple):
    """Rows to be predicted, as numbers.

    Attributes:
        X: (rows, d); a category that was never seen has a level of its own.
        bad: which rows cannot be judged, (rows,).
        reason: why the first of them cannot; "" if all can.
        unseen: says in how many rows a category was never seen; "" if all were.
    """

    X: Values
    bad: NDArray[np.bool_]
    reason: str
    unseen: str = ""

    def check(self) -> None:
        """Raise InputError if a row cannot be judged."""
        if self.reason:
            raise InputError(self.reason)


def _cell(values: pa.ChunkedArray, row: int) -> str:
    return repr(str(values[row].as_py())[:40])


def _reason(cells: Cells, column: Column, numbers: Values, wrong: NDArray[np.bool_]) -> str:
    """Say why the first wrong row of a column cannot be judged."""
    row = int(np.argmax(wrong))
    said = cells.values[row].as_py()
    if np.isinf(numbers[row]):
        wrong_here = f"{numbers[row]} in row {row + 1}"
    elif said is None or said != said or (isinstance(said, str) and not drop_gaps([bare(said)], cells.gaps)):
        empty = int(np.isnan(numbers).sum())
        wrong_here = f"{pluralize(empty, 'empty cell')}, the first in row {row + 1}"
    elif isinstance(said, str) and (mark := cells.find_doubtful_mark(said, column)):
        return (
            f"column {column.name!r} has {said[:40]!r} in row {row + 1}, whose mark may be that of "
            f"thousands: no cell learned from has three decimals; say --thousands {mark} if it is, "
            f"--thousands {',.'.replace(mark, '')} if it is that of decimals, or write it with two decimals"
        )
    elif column.kind is ColumnKind.DATE and not np.isnan(numbers[row]):
        here, there = ("no", "one") if column.zoned else ("a", "none")
        wrong_here = (
            f"{str(said)[:40]!r} in row {row + 1}, which has {here} time zone, and those learned from {there}"
        )
    elif not isinstance(said, str) and isfinite(said) and abs(said) > LARGEST:
        wrong_here = f"{said} in row {row + 1}, and magnitudes are at most {LARGEST:g}"
    else:
        kind = f"date such as {write_example(column.form)}" if column.kind is ColumnKind.DATE else column.kind
        wrong_here = f"{str(said)[:40]!r} in row {row + 1}, not a {kind}"
    return f"column {column.name!r} has {wrong_here}: fix it"


def format_column(values: Values, column: Column) -> pa.Array:
    """Return numbers as a column that is understood as ``column`` again, if that kind is asked for.

    Categories are a dictionary, so that a long one is held once.
    """
    gap = np.isnan(values)
    if column.kind is ColumnKind.CATEGORY:
        unseen = f"{max(column.levels, key=len, default='')}?"  # longer than any level: a level of none
        levels = pa.array([*column.levels, unseen], pa.string())
        codes = pa.array(np.where(gap, 0, values).astype(np.int64), mask=gap)
        return pa.DictionaryArray.from_arrays(codes, levels)
    if column.kind is ColumnKind.DATE:
        kind = pa.timestamp("ms", "UTC" if column.zoned else None)
        return pa.array(np.where(gap, 0, values).astype(np.int64), kind, mask=gap)
    return pa.array(values, mask=gap) if gap.any() else pa.array(np.ascontiguousarray(values))


def _learn_column(cells: Cells, name: str, asked: ColumnKind | None) -> tuple[Column, Values]:
    column = _infer(cells, name, asked)
    numbers, bad = read_cells(cells, replace(column, short_decimals=False))  # none here has three
    if bad.any():  # Arrow takes for a number or a date what is none for us, such as nan(1) and 0000-01-01
        column = _infer_text(cells, name, asked)
        numbers = read_cells(cells, column).values
    out = advise_dropping(name)
    if len(numbers) and np.isnan(numbers).all():
        raise ColumnError(f"is empty: {out}")
    limit = f"magnitudes are at most {LARGEST:g}, and no number may stand for a missing value; "
    for wrong, what in ((np.isinf(numbers), ""), (np.abs(numbers) > LARGEST, limit)):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ColumnError(f"has {numbers[row]} in row {row + 1}: {what}fix it, or {out}")
    if column.kind is ColumnKind.DATE:
        known = ~np.isnan(numbers)
        zoned = cells.zoned & known
        if zoned.any() and not np.array_equal(zoned, known):
            first, second = int(np.argmax(zoned)), int(np.argmax(known & ~zoned))
            raise ColumnError(
                f"has times with a zone, such as {_cell(cells.values, first)} in row {first + 1}, and "
                f"without: {_cell(cells.values, second)} in row {second + 1}: write all in one way, or say "
                f"{write_option('categorical', name)}, or {out}"
            )
        column = replace(column, zoned=bool(zoned.any()))
    return column, numbers


def _infer(cells: Cells, name: str, asked: ColumnKind | None) -> Column:
    if cells.declared and not cells.are_dates and asked is None and len(cells.texts[0]) < len(cells.values):
        return _infer_text(cells, name, ColumnKind.CATEGORY)
    may_have = cells.are_numbers and cells.written and cells.thousands
    if may_have and has_thousands(cells.known, cells.thousands):  # which Arrow took for decimals
        return _infer_text(cells, name, asked)
    has_values = cells.are_numbers or cells.are_dates or pa.types.is_time(cells.kind)
    if has_values and asked is ColumnKind.CATEGORY:
        return Column(name, asked, cells.levels)
    if cells.are_numbers:
        if asked is ColumnKind.DATE:  # such as 20261123
            known = cells.known
            form, bad = find_date_form(known, name) if known else ("", known)
            if form and not bad:
                return Column(name, ColumnKind.DATE, form=form)
            raise ColumnError(
                "holds numbers, of which not all are dates such as 20261123: leave it out of "
                f"{write_option('date', name)}"
            )
        if asked is None and cells.are_codes:
            raise ColumnError(_ask_about_codes(cells, name))
        form = "comma" if cells.comma else ""
        short = cells.written and not cells.thousands and have_short_decimals(cells, form)
        return Column(name, form=form, lenient=asked is ColumnKind.NUMBER, short_decimals=short)
    if cells.are_dates:
        if asked is ColumnKind.NUMBER:
            raise ColumnError(f"holds dates, not numbers: leave it out of {write_option('numeric', name)}")
        return Column(name, ColumnKind.DATE)
    if is_text(cells.kind):
        return _infer_text(cells, name, asked)
    if pa.types.is_null(cells.kind):
        raise ColumnError(f"is empty: {advise_dropping(name)}")
    raise ColumnError(_not_learned_from(str(cells.kind), name))


def _not_learned_from(kind: str, name: str) -> str:
    return f"holds {kind}, which cannot be learned from: {advise_dropping(name)}"


def _infer_text(cells: Cells, name: str, asked: ColumnKind | None) -> Column:
    """Decide what a column of text holds, from its distinct values and those of each row."""
    out = advise_dropping(name)
    distinct, codes = cells.texts
    if not (known := cells.known):
        raise ColumnError(f"is empty: {out}")
    counts = np.bincount(codes, minlength=len(distinct))
    rows_of = {text: int(counts[i]) for i, text in enumerate(distinct) if text is not None}
    rows = sum(rows_of.values())
    if asked is ColumnKind.CATEGORY:
        return Column(name, ColumnKind.CATEGORY, cells.levels)
    if asked in (None, ColumnKind.NUMBER):
        form, bad = find_number_form(known, name, cells.decimal, cells.thousands)
        wrong = sum(rows_of[text] for text in bad)
        foreign = [text for text in bad if FORTRAN.match(text) or QUOTED.match(text)]
        if foreign and wrong - sum(rows_of[text] for text in foreign) <= (1 - MOSTLY) * rows:
            cure = "E for D, as in 0.126E+00" if FORTRAN.match(foreign[0]) else "them without the apostrophe"
            raise ColumnError(
                f"has what may be numbers{_such_as(foreign, distinct, codes)}: write {cure}, if they are, or "
                f"say {write_option('categorical', name)}, or {out}"
            )
        numbers = set(known).difference(bad)
        short = bool(numbers) and not cells.thousands and has_short_decimals(numbers, form)
        if asked is ColumnKind.NUMBER and len(bad) < len(known):
            return Column(name, ColumnKind.NUMBER, form=form, lenient=True, short_decimals=short)
        if asked is ColumnKind.NUMBER:
            raise ColumnError(f"holds no numbers{_such_as(bad, distinct, codes)}: {out}, or from --numeric")
        if not bad and are_codes(pa.array(known)):
            raise ColumnError(_ask_about_codes(cells, name))
        if not bad:
            return Column(name, ColumnKind.NUMBER, form=form, short_decimals=short)
        if wrong <= (1 - MOSTLY) * rows and form:
            sorts = {text: _sort_odd(text, name) for text in bad}
            text = next((text for text in bad if sorts[text]), bad[0])
            raise OddCellsError(name, wrong, _such_as([text], distinct, codes), sorts[text] or frozenset(bad))
    if asked in (None, ColumnKind.DATE) and (named := [text for text in known if NAMED_ZONE.search(text)]):
        raise ColumnError(
            f"has times whose zone is a name{_such_as(named, distinct, codes)}: write it as in +01:00, or "
            f"say {write_option('categorical', name)}, or {out}"
        )
    if asked is ColumnKind.DATE or LOOKS_LIKE_DATE.match(known[0]):
        form, bad = find_date_form(known, name)
        wrong = sum(rows_of[text] for text in bad)
        if not bad:
            return Column(name, ColumnKind.DATE, form=form)
        if asked is ColumnKind.DATE or wrong <= (1 - MOSTLY) * rows:
            raise ColumnError(
                f"holds dates and in {pluralize(wrong, 'row')} what is none"
                f"{_such_as(bad, distinct, codes)}: dates are written as {WRITTEN_DATES}; mend it, or say "
                f"{write_option('categorical', name)}, or {out}"
            )
    if len(known) == rows and rows > 2:
        raise ColumnError(
            f"has another text in each of its {pluralize(rows, 'row')}{_such_as(known, distinct, codes)}, "
            f"of which nothing can be learned: {out}, or say {write_option('id', name)} if it names the rows"
        )
    return Column(name, ColumnKind.CATEGORY, cells.levels)


def _ask_about_codes(cells: Cells, name: str) -> str:
    distinct, codes = cells.texts
    code = [text for text in distinct if text is not None and re.match(E_CODE, text)]
    return (
        f"has what may be numbers or codes{_such_as(code, distinct, codes)}: say "
        f"{write_option('numeric', name)} ({float(code[0]):g}), {write_option('categorical', name)}, or "
        f"{advise_dropping(name)}"
    )


def _sort_odd(text: str, name: str) -> str:
    sorts = {"header": text == name.strip(), "error": SHEET_ERROR.match(text), "dash": DASH.match(text)}
    return next((sort for sort, is_one in sorts.items() if is_one), "")


def _advise(sort: Hashable, *names: str) -> str:
    """Say how to mend a sort of odd cells in some columns of numbers."""
    numeric = write_option("numeric", *names)
    match sort:
        case "header":
            return ", its name, as in a second header: skip that line with --skip-rows and its number"
        case "error":
            return f", an error in a spreadsheet: mend it there, or, only if it is a gap, say {numeric}"
        case "dash":
            return f", a dash alone: write 0 if it is zero, or, if it is a gap, say {numeric}"
    category = (
        write_option("categorical", *names) if len(names) == 1 else "or --categorical or --drop as well"
    )
    return f": mend it, or say {numeric} (what is none is a gap), {category}"


def _join_problems(problems: dict[str, ColumnError]) -> list[str]:
    """Say what is wrong with columns: of several with odd cells of one cure once."""
    alike: dict[Hashable, list[str]] = defaultdict(list)
    for name, problem in problems.items():
        alike[(problem.sort,) if isinstance(problem, OddCellsError) else name].append(name)
    said = list[str]()
    for names in alike.values():
        first = problems[names[0]]
        if isinstance(first, OddCellsError) and len(names) > 1:
            said.append(
                f"columns {some(names)} hold numbers and in some rows something else{first.example} of "
                f"{names[0]!r}{_advise(first.sort, *names)}"
            )
        else:
            said.append(f"column {names[0]!r} {first}")
    return said


def _such_as(bad: Sequence[str], distinct: Sequence[str | None], codes: NDArray[Any]) -> str:
    row = int(np.argmax(codes == distinct.index(bad[0])))
    return f", such as {bad[0][:40]!r} in row {row + 1}"
