"""What a verification finds, and how files and models are compared with what is made again.

Values are the same if they are equal in every bit, or have one structure, equal words and integers, and
numbers that are equal but for rounding.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from ckcv_ray.core.arrays import ROUNDING, agree
from ckcv_ray.errors import CKCVError, LackingError, cut, plain, pluralize
from ckcv_ray.learners.ensemble import Ensemble, Member
from ckcv_ray.records.record import NO_RECORD, Ledger
from ckcv_ray.storage import formats
from ckcv_ray.storage.files import Content
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.task import Task

MAX_SHOWN = 240  # characters of a value
LONGEST_REASON = 200


@dataclass
class Verification:
    """What a verification found.

    Attributes:
        differences: everything that is not as it should be, one sentence each; empty if the run is verified.
        recomputed: what was computed again, from the data or from the log.
        trusted: what was taken on trust, or not looked at.
        unverified: what a claim rests on and could not be computed here, or comes out otherwise here under
            other versions, one sentence each. A run with any is not verified, whatever else agrees.
        assumed: what figures rest on that was taken on trust, a phrase each.
    """

    differences: list[str] = field(default_factory=list)
    recomputed: list[str] = field(default_factory=list)
    trusted: list[str] = field(default_factory=list)
    unverified: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing differs, and nothing that a claim rests on was left out."""
        return not self.differences and not self.unverified

    @property
    def verdict(self) -> str:
        """What the verification says of the figures, as a clause, if nothing differs."""
        if not self.assumed:
            return "every figure follows from the data"
        return f"nothing contradicts the files; taken on trust: {', '.join(self.assumed)}"

    def note_other(self, sentences: Iterable[str], elsewhere: bool) -> None:
        """Note what comes out otherwise than in the run; ``elsewhere``: other versions may be why."""
        if elsewhere:
            why = "not verified here, where versions or processor are not those of the run"
            self.unverified.extend(f"{sentence}; {why}" for sentence in sentences)
        else:
            self.differences.extend(sentences)

    @contextmanager
    def note_errors(self, *passed: type[CKCVError]) -> Iterator[None]:
        """Note what is raised as a difference, or as what could not be verified; ``passed`` is raised."""
        try:
            yield
        except passed:
            raise
        except LackingError as error:
            self.unverified.append(str(error))
        except CKCVError as error:
            self.differences.append(str(error))
        except Exception as error:  # a stranger's models and learners may raise anything
            self.unverified.append(cut(f"the verification ended with {type(error).__name__}: {error}"))


@dataclass(frozen=True)
class Limit:
    """How long a verification may take."""

    seconds: float = inf  # the limit; it is looked at between fits
    say: Callable[[str], object] | None = None  # told about the cost before anything is fitted
    began: float = field(default_factory=monotonic)  # on that clock, in seconds

    @property
    def over(self) -> bool:
        """Whether the time is over."""
        return monotonic() - self.began > self.seconds

    def announce(self, fits: int, task: Task, execution: Mapping[str, Any]) -> None:
        """Say how many fits on a task are made again at most, and how long as many took in the run."""
        expected = fits * execution["worker_seconds"] / max(1, execution["fits"])
        rows, columns = task.X.shape
        if self.say is not None:
            self.say(
                f"to verify: {pluralize(fits, 'fit')} on up to {rows:,} rows and "
                f"{pluralize(columns, 'column')}, about {expected:,.1f} s by what the run took; limit "
                f"{self.seconds:,.0f} s (--limit)"
            )


def compare_file(folder: RunFolder, name: str, made: Content, left_out: str = "") -> Iterator[str]:
    """Yield where a file of a folder has other values than what was made again, a sentence for each part.

    Args:
        folder: the folder.
        name: of the file: JSON, Parquet, or anything else, which has to be equal in every bit.
        made: its content, made again.
        left_out: a part of it that is not compared.

    Raises:
        StoreError: it is missing or damaged.
    """
    if not name.endswith((".json", ".parquet")):
        if folder.sha256(name) != hashlib.sha256(made).hexdigest():
            yield f"{name} is not what the models in it give"
        return
    if name.endswith(".json"):
        stored, again = formats.read_json(folder.files, name), json.loads(bytes(made))
    else:
        again = parquet.ParquetFile(pa.BufferReader(made)).read(use_threads=False)
        stored = formats.read_table(folder.files, name, folder.require().run_id, again.schema)
        if len(stored) != len(again):
            yield f"{name} has {len(stored):,} rows, made again it has {len(again):,}"
            return
        stored, again = ({key: table[key] for key in again.column_names} for table in (stored, again))
    for key in dict.fromkeys((*again, *stored)):
        if key != left_out:
            for where, *values in _find_differences(key, stored.get(key), again.get(key)):
                was, is_now = (cut(repr(value), MAX_SHOWN) for value in values)
                yield plain(f"{name}: {where} is {was}, made again it is {is_now}")
                break


def _find_differences(where: str, a: Any, b: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield where two values differ by more than rounding, as a dotted name, with the two values there."""
    if isinstance(a, pa.ChunkedArray) and isinstance(b, pa.ChunkedArray):
        if not a.equals(b):
            pairs = ((one.as_py(), other.as_py()) for one, other in zip(a, b, strict=True))
            for i, pair in enumerate(pairs):
                yield from _find_differences(f"{where}.{i}", *pair)
    elif isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        for key in a:
            yield from _find_differences(f"{where}.{key}", a[key], b[key])
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, pair in enumerate(zip(a, b, strict=True)):
            yield from _find_differences(f"{where}.{i}", *pair)
    elif not agree(a, b, ROUNDING):
        yield where, a, b


def compare_member(problem: Problem, stored: Member, computed: Member) -> str:
    """Return how a stored model differs from the one fitted again, as a clause; "" if by rounding alone.

    Equal predictions are not enough: a forged model is right for these rows, and wrong elsewhere.
    """
    X, errors = problem.every_row.X, f"makes {sum(computed.errors):,} errors (stored: {sum(stored.errors):,})"
    if problem.learner.codec.same(stored.model, computed.model, ROUNDING):
        if stored.k != computed.k:
            return f"its k is {stored.k}, and the log gives {computed.k}"
        known, again = ((member.totals, member.n_estimate) for member in (stored, computed))
        return "" if known == again else f"its counts are not those that it has: it {errors}"
    try:
        before, after = (Ensemble((member,)).alone(X).label for member in (stored, computed))
    except Exception as error:  # of a stranger's model, of any kind
        says = f"it cannot predict the rows of the table: {type(error).__name__}: {error}"
        return cut(says, LONGEST_REASON)
    if not problem.task.classes:
        return f"fitted again, what it predicts differs by up to {abs(before - after).max():.2g}"
    otherwise = int((before != after).sum())
    if not otherwise:
        return f"fitted again, it predicts all {len(X):,} rows alike, but its content differs"
    return f"fitted again, it classifies {otherwise:,} of {len(X):,} rows otherwise, and {errors}"


def compare_records(log: Ledger, again: Ledger) -> Iterator[str]:
    """Yield a sentence if records that both ledgers have differ by more than rounding."""
    made = again.records()
    logged = log.look_up(made)
    known = logged[:, -1] != NO_RECORD
    before, after = logged[known, :-1], made["totals"][known]
    if not agree(before, after, ROUNDING):
        differing = int((before != after).any(axis=1).sum())
        yield f"the log: {differing:,} of {pluralize(len(after), 'evaluation')} give other results"
