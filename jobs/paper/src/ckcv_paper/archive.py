"""Reader of the IDA benchmarks, the source ``ida:NAME:R``: realization R of a set, with its test rows.

The columns are x0, x1, ... and y. The archive is the file that CKCV_IDA names, else the downloaded one, in
one of two formats: ``.npz`` with arrays NAME/x, NAME/t, NAME/train and NAME/test, rows counted from 0; or
``.mat`` with a struct NAME of these four, rows counted from 1, which has to be the public archive (see
``download``): a damaged file can crash the reader of this form.

Reference: Rätsch, Onoda, Müller, Machine Learning 42(3), 2001.
"""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO
from os import environ
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_paper import download
from ckcv_ray.errors import InputError, convert_errors
from ckcv_ray.tables.named import Columns
from ckcv_ray.tables.read import MAX_CELLS, check_size, from_matrix, npz

VARIABLE = "CKCV_IDA"
FORM = "ida:NAME:R, such as ida:banana:1"
PARTS = ("x", "t", "train", "test")


class Benchmark(NamedTuple):
    """One set with its R realizations.

    Attributes:
        x: inputs, (n, d).
        t: labels -1 or +1, (n,).
        train: numbers of the learning rows, counted from 0, (R, n_train).
        test: numbers of the test rows, likewise, (R, n_test).
    """

    x: NDArray[np.float64]
    t: NDArray[np.int8]
    train: NDArray[np.int64]
    test: NDArray[np.int64]


def read(source: str, archive: Path | None = None) -> Columns:
    """Read the realization that ``source`` names, such as ``ida:banana:1``.

    Args:
        source: of the form ``FORM``; realizations count from 1.
        archive: the archive's file; by default the environment's CKCV_IDA, else the downloaded one.

    Raises:
        InputError: there is no such set or realization, or the archive is missing or damaged.
    """
    _, *parts = source.split(":")
    if len(parts) != 2:
        raise InputError(f"{source!r} does not name a set: the form is {FORM}")
    name, number = parts
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise InputError(f"{source!r}: {number!r} is not a whole number; the form is {FORM}")
    x, t, train, test = read_set(find_archive(source) if archive is None else archive, name)
    if not 1 <= (realization := int(number)) <= len(train):
        raise InputError(f"{source} is outside 1..{len(train)}, the realizations in the archive")
    learn, rest = train[realization - 1], test[realization - 1]
    return Columns(from_matrix(x[learn], t[learn]), from_matrix(x[rest], t[rest]))


def find_archive(source: str) -> Path:
    """Return the path of the archive.

    Raises:
        InputError: none is named, and none was downloaded.
    """
    if named := environ.get(VARIABLE):
        return Path(named)
    if (downloaded := download.locate()).is_file():
        return downloaded
    raise InputError(
        f"{source} needs the IDA archive: `python -m ckcv_paper fetch` downloads it; or set {VARIABLE} to "
        "its path"
    )


def read_set(path: Path, name: str) -> Benchmark:
    """Read one set of an archive.

    Raises:
        InputError: the archive cannot be read, or has no such set.
    """
    with convert_errors(InputError, f"cannot read the IDA archive {str(path)!r}"):
        if path.suffix.lower() == ".mat":
            status = path.stat()
            return _one_set(name, _mat_arrays(path, status.st_mtime_ns, status.st_size), first=1)
        with npz(path) as archive:
            return _one_set(name, archive, first=0)


@lru_cache(maxsize=1)  # sets are read one after the other, each for all its realizations
def _mat_arrays(path: Path, changed: int, size: int) -> dict[str, NDArray[Any]]:
    """Return the arrays STRUCT/PART of the public archive."""
    from scipy.io import loadmat

    content = path.read_bytes()
    if (got := hashlib.sha256(content).hexdigest()) != download.SHA256:
        raise ValueError(
            f"its SHA-256 is {got}, and not {download.SHA256}: of files of MATLAB the public archive alone "
            "is read, which `python -m ckcv_paper fetch` downloads"
        )
    structs = {name: value for name, value in loadmat(BytesIO(content)).items() if not name.startswith("_")}
    return {
        f"{name}/{part}": value[part].item()
        for name, value in structs.items()
        for part in value.dtype.names or ()
    }


def _one_set(name: str, archive: Mapping[str, NDArray[Any]], first: int) -> Benchmark:
    """Take a set, its rows counted from ``first``, from the arrays of an archive."""
    names = {key.split("/")[0] for key in archive}
    if name not in names:
        raise InputError(
            f"ida:{name} is not in the archive: choose from {', '.join(sorted(names)) or 'none'}"
        )
    parts = {part: archive[key] for part in PARTS if (key := f"{name}/{part}") in archive}
    return _benchmark(name, parts, first)


def _benchmark(name: str, parts: Mapping[str, Any], first: int) -> Benchmark:
    """Check the parts of a set, its rows counted from ``first``, and count them from 0."""
    for part in PARTS:
        if part not in parts:
            raise ValueError(f"{name} has no {part!r}")
        if not isinstance(parts[part], np.ndarray) or parts[part].dtype.kind not in "iuf":
            raise ValueError(f"{part!r} of {name} is not an array of numbers")
        if parts[part].size > MAX_CELLS // 4:
            raise ValueError(
                f"{part!r} of {name} has {parts[part].size:,} values: at most {MAX_CELLS // 4:,} can be read"
            )
    # MATLAB stores integers in the smallest type that fits, where 0 - 1 may be 255.
    x, t, train, test = (np.asarray(parts[part], dtype=np.float64) for part in PARTS)
    fits = x.ndim == train.ndim == test.ndim == 2 and t.shape in ((len(x),), (len(x), 1))
    if not (fits and len(train) == len(test)):
        shapes = ", ".join(f"{part} {parts[part].shape}" for part in PARTS)
        raise ValueError(f"{name} has {shapes}: expected (n, d), (n,), (R, n_train), (R, n_test)")
    check_size(f"ida:{name}", *x.shape)
    if not np.isin(t, (-1, 1)).all():
        raise ValueError(f"{name} has labels other than -1 and 1")
    for rows in (train, test):
        if not np.all((rows >= first) & (rows < first + len(x)) & (rows == np.floor(rows))):
            raise ValueError(f"{name} has row numbers outside {first}..{first + len(x) - 1}")
    return Benchmark(
        x, t.ravel().astype(np.int8), train.astype(np.int64) - first, test.astype(np.int64) - first
    )
