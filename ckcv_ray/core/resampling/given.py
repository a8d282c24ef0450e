"""Splits that somebody else has made, such as a splitter object of scikit-learn."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.draws import Draws
from ckcv_ray.core.options import Option, option
from ckcv_ray.core.resampling.base import EMPTY, FoldSize, Resampling, Split, Units
from ckcv_ray.errors import InputError
from ckcv_ray.validation import as_array, quote


@dataclass(frozen=True, eq=False)
class Splits(Resampling):
    """Splits that somebody else has made, such as a splitter object of scikit-learn.

    Attributes:
        sets: the splits.
        digest: SHA-256 of the sets, which is their part of a procedure's identity.
    """

    name: ClassVar[str] = "given"
    names_rows: ClassVar[bool] = True
    undrawn: ClassVar[str] = "splits were given"  # nobody knows how they were made

    sets: tuple[Split, ...] = field(default=(), repr=False)
    digest: str = option("", Option(lambda _, value: str(value), "Digest of the sets."))

    @classmethod
    def of(cls, pairs: Iterable[tuple[Any, Any]], n: int) -> Self:
        """Take pairs of rows to fit and rows to score, of n rows.

        Raises:
            InputError: there are none, a number is no row, or a row is in both parts of a split.
        """
        sets = tuple(Split(_check_rows(train, n), EMPTY, _check_rows(score, n)) for train, score in pairs)
        if not sets:
            raise InputError("the splitter gives no splits")
        for number, split in enumerate(sets):
            if not (len(split.train) and len(split.estimate)):
                raise InputError(f"split {number} of the splitter has no rows to fit, or none to score")
            if len(both := np.intersect1d(split.train, split.estimate)):
                raise InputError(
                    f"split {number} of the splitter fits on row {both[0]} and scores it: its parts overlap "
                    f"in {len(both)} rows, and no error measured on them is one on new rows"
                )
        parts = chain.from_iterable((split.train, split.estimate) for split in sets)
        content = b"".join(len(part).to_bytes(8, "little") + part.astype("<i8").tobytes() for part in parts)
        return cls(sets, hashlib.sha256(content).hexdigest())

    def count_splits(self, n: int) -> int:
        """Return the number of splits."""
        largest = max((int(part.max()) for split in self.sets for part in split if len(part)), default=0)
        if largest >= n:
            raise InputError(f"the splits that were given name row {largest}, and there are {n} rows")
        return len(self.sets)

    def split(self, units: Units, size: FoldSize, number: int, draws: Draws) -> Split:
        """Return a split."""
        return self.sets[number]


def take_splits(resampling: Any, X: Any, y: ArrayLike, groups: ArrayLike | None) -> Splits | None:
    """Return the splits of a splitter, or of pairs of rows; None if the resampling is neither.

    Raises:
        InputError: the splitter raises, or gives something else than pairs of rows.
    """
    if resampling is None or isinstance(resampling, str | Resampling):
        return None
    splits = hasattr(resampling, "split") and not isinstance(resampling, type)
    if isinstance(resampling, type) or not (splits or isinstance(resampling, Iterable)):
        raise InputError(
            f"resampling={quote(resampling)}: expected text such as 'kfold:10', a splitter such as "
            "KFold(10), or a list of pairs: the rows to fit and the rows to score"
        )
    try:
        pairs = list(resampling.split(X, y, groups) if splits else resampling)
    except Exception as error:  # of any kind: it is code of the user's
        raise InputError(f"the splitter raised {type(error).__name__}: {error}") from error
    for number, pair in enumerate(pairs):
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(map(np.ndim, pair))):
            raise InputError(
                f"split {number} is {quote(pair)}: expected the rows to fit and the rows to score"
            )
    return Splits.of(pairs, len(as_array("y", y)))


def _check_rows(part: Any, n: int) -> Index:
    rows = np.asarray(part)
    if not len(rows):
        return EMPTY
    if rows.dtype == bool and rows.shape == (n,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not 0 <= rows.min() <= rows.max() < n:
        raise InputError(f"a splitter gives row numbers from 0 to {n - 1}, not {str(part)[:60]}")
    return np.sort(rows).astype(np.intp)
