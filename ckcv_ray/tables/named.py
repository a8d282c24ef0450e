"""Named learning sets: Breiman's generators, sets of scikit-learn, and those that plug-ins read.

Each has columns x0, x1, ... and y (for scikit-learn, the set's feature names and target), and test rows if
the set defines any.

A plug-in is an installed package with an entry point of the group ``ckcv_ray.sources``. The name of the entry
point is the first word of its sources, such as ``ida`` in ``ida:banana:1``; its object is a function that
takes such a source and returns its ``Columns``, or raises InputError if there is no such set. It is imported
when such a source is read, but never to open a run folder.

References: Breiman, "Bias, variance, and arcing classifiers", report 460, Statistics, Berkeley, 1996
(twonorm, ringnorm, d = 20); Breiman, Friedman, Olshen, Stone, "Classification and Regression Trees", 1984,
section 2.6.2 (waveform, d = 21).
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from warnings import warn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.errors import InputError, convert_errors, expect, suggest
from ckcv_ray.tables.columns import NOTHING_ASKED, REMARKS, DeclaredTypes
from ckcv_ray.tables.read import (
    AS_IT_IS,
    MAX_TABLE_ROWS,
    SUFFIXES,
    Reading,
    check_place,
    find_suffix,
    from_matrix,
    read_file,
)
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import Task, TestRows, make_test_rows

FRESH_ROWS = 20_000
SOURCE_FORMS = "sklearn:NAME, twonorm:n:seed, ringnorm:n:seed, waveform:n:seed"
SOURCE_GROUP = "ckcv_ray.sources"  # entry points under which packages list what they read
PAPER = "ida"  # sets of the paper, which a package in this repository reads

GeneratedSample = tuple[NDArray[np.float64], NDArray[np.int64]]


class Columns(NamedTuple):
    """The columns of a learning set, and test rows with the same columns, or None."""

    learn: pa.Table
    test: pa.Table | None


def is_named(source: str) -> bool:
    """Return whether ``source`` names a set rather than a file; imports no plug-in."""
    family, colon, _ = source.partition(":")
    return family in ("sklearn", PAPER, *GENERATORS) or bool(colon and _find_plug_in(family))


def load_source(source: str) -> Columns:
    """Load the set that ``source`` names: one of ``SOURCE_FORMS``, or of a plug-in.

    Raises:
        InputError: there is no such set, or the plug-in that reads it is missing or fails.
    """
    family, *parts = source.split(":")
    if family == "sklearn" and len(parts) == 1:
        from sklearn import datasets

        named = ("breast_cancer", "iris", "wine", "digits", "diabetes")
        if (name := parts[0]) not in named:
            raise InputError(f"{source}: choose from {', '.join(sorted(named))}{suggest(name, named)}")
        bunch = getattr(datasets, f"load_{name}")()
        y = bunch.target
        if "target_names" in bunch:  # else a set with numbers as target
            y = np.array([str(label) for label in bunch.target_names])[y]
        return Columns(from_matrix(bunch.data, y, [*map(str, bunch.feature_names)], target="target"), None)
    if family in GENERATORS and len(parts) == 2:
        if bad := [part for part in parts if not (part.isascii() and part.isdigit() and len(part) < 19)]:
            raise InputError(f"{source!r}: {bad[0]!r} is not a whole number; the forms are {SOURCE_FORMS}")
        n, seed = map(int, parts)
        if not 6 <= n <= MAX_TABLE_ROWS:
            raise InputError(f"{family}:{n}: the number of rows is outside 6..{MAX_TABLE_ROWS}")
        learn, test = (
            GENERATORS[family](rows, np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(part,))))
            for part, rows in enumerate((n, FRESH_ROWS))
        )
        return Columns(from_matrix(*learn), from_matrix(*test))
    if family not in ("sklearn", *GENERATORS) and (plug_in := _find_plug_in(family)):
        with convert_errors(InputError, f"{plug_in.value} cannot read {source!r}"):  # it may raise anything
            columns: Columns = plug_in.load()(source)
            return columns
    if family == PAPER:
        cure = "run `pip install ./jobs/paper` in a clone of ckcv_ray"
        raise InputError(f"{source!r} needs the package ckcv-ray-paper, which is not installed: {cure}")
    raise InputError(f"{source!r} does not name a set: the forms are {SOURCE_FORMS}")


def _find_plug_in(family: str) -> Any:
    from importlib.metadata import entry_points  # takes 40 ms, and files do not need it

    return next(iter(entry_points(group=SOURCE_GROUP, name=family)), None)


def twonorm(n: int, rng: np.random.Generator) -> GeneratedSample:
    """Draw from two unit normals in 20 dimensions with means a and -a, a = 2/sqrt(20) in each coordinate."""
    y = 2 * rng.integers(2, size=n) - 1
    return rng.normal(size=(n, 20)) + y[:, None] * (2 / np.sqrt(20)), y


def ringnorm(n: int, rng: np.random.Generator) -> GeneratedSample:
    """Draw from two normals in 20 dimensions.

    Class +1: mean 0, covariance 4 I; class -1: mean 2/sqrt(20) in each coordinate, covariance I.
    """
    y = 2 * rng.integers(2, size=n) - 1
    Z = rng.normal(size=(n, 20))
    return np.where(y[:, None] > 0, 2 * Z, Z + 2 / np.sqrt(20)), y


def waveform(n: int, rng: np.random.Generator) -> GeneratedSample:
    """Draw random mixtures of two of three triangles plus unit noise; +1 mixes the left and the middle."""
    position = np.arange(1, 22)
    middle, right, left = (np.maximum(6 - np.abs(position - peak), 0) for peak in (11, 15, 7))
    pairs = np.array([(middle, right), (middle, left), (right, left)], dtype=float)
    kind = rng.integers(3, size=n)
    share = rng.uniform(size=(n, 1))
    X = share * pairs[kind, 0] + (1 - share) * pairs[kind, 1] + rng.normal(size=(n, 21))
    return X, np.where(kind == 1, 1, -1)


GENERATORS = {draw.__name__: draw for draw in (twonorm, ringnorm, waveform)}


def read(source: str | Path, reading: Reading = AS_IT_IS, say: Callable[[str], object] = warn) -> Columns:
    """Read the columns of a file (CSV, Parquet, Feather, Excel, NPZ, svmlight) or of a named set.

    Cells of text tables are text, as written.

    Args:
        source: a file's path, or a named set such as twonorm:400:0.
        reading: what the file does not say about itself.
        say: called with each sentence about how the file was read; by default these are warnings.

    Raises:
        InputError: the source does not exist or cannot be read.
    """
    expect("source", source, str | Path, "a file's path or a named set such as twonorm:400:0")
    if is_named(name := str(source)):
        if given := [option for option, value in reading._asdict().items() if value is not None]:
            raise InputError(f"{given[0]} is for files, and {name!r} is a named set: leave it out")
        return load_source(name)
    check_place(name)
    if find_suffix(Path(source)) not in SUFFIXES:
        family, colon, _ = name.partition(":")
        near = suggest(family, ("sklearn", PAPER, *GENERATORS)) if colon else ""
        raise InputError(
            f"{name!r} is neither a file ending in {', '.join(SUFFIXES)} nor a named set ({SOURCE_FORMS}): "
            f"unpack it, or write it as one of these, such as CSV{near}"
        )
    columns = read_file(name, reading)
    remarks: bytes = (columns.schema.metadata or {}).get(REMARKS, b"")
    for remark in remarks.decode("utf-8", "replace").splitlines():
        say(f"{name!r} {remark}")
    return Columns(columns, None)


def read_task(
    source: str | Path,
    target: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    group: str | Sequence[str] | None = None,
    asked: DeclaredTypes = NOTHING_ASKED,
    weight: str | None = None,
    reading: Reading = AS_IT_IS,
    id: str | None = None,  # noqa: A002
    split_by: str | None = None,
) -> tuple[Task, TestRows | None]:
    """Read a task, and test rows if a named set has any.

    Args:
        source: a file's path, or a named set such as twonorm:400:0.
        target, features, drop, group, weight, id, split_by: as for ``Roles``.
        asked: as for ``Task.from_table``.
        reading: what the file does not say about itself.

    Raises:
        InputError: the source cannot be read or learned from.
    """
    columns = read(source, reading)
    roles = Roles(target, features, drop, group, weight=weight, id=id, split_by=split_by)
    task = Task.from_table(columns.learn, roles, asked, str(source), reading=reading)
    return task, make_test_rows(columns.test, task)
