"""Named learning sets: the IDA benchmarks, Breiman's generators, and sets of scikit-learn.

Each has columns x0, x1, ... and y (of scikit-learn: the set's feature names and target), and test rows if the
set defines any.

The IDA benchmarks are read from an archive in one of two formats: ``.npz`` with arrays NAME/x, NAME/t,
NAME/train and NAME/test, rows counted from 0; or ``.mat`` (see ``fetch``) with a struct NAME of these four,
rows counted from 1.

References: Rätsch, Onoda, Müller, Machine Learning 42(3), 2001 (IDA); Breiman, "Bias, variance, and
arcing classifiers", report 460, Statistics, Berkeley, 1996 (twonorm, ringnorm, d = 20); Breiman,
Friedman, Olshen, Stone, "Classification and Regression Trees", 1984, section 2.6.2 (waveform, d = 21).
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from os import environ
from pathlib import Path
from subprocess import PIPE, run
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.errors import InputError, raising
from ckcv_ray.tables import ida as fetch
from ckcv_ray.tables import matlab
from ckcv_ray.tables.readers.files import check_matlab_size, from_matrix, npz
from ckcv_ray.tables.readers.limits import MOST_CELLS, MOST_ROWS, check_size

IDA_VARIABLE = "CKCV_IDA"
IDA_PARTS = ("x", "t", "train", "test")
MATLAB_SECONDS = 30.0
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
FRESH_ROWS = 20_000
FORMS = "sklearn:NAME, ida:NAME:R, twonorm:n:seed, ringnorm:n:seed, waveform:n:seed"

Sample = tuple[NDArray[np.float64], NDArray[np.int64]]


class Columns(NamedTuple):
    """The columns of a learning set, and test rows with the same columns, or None."""

    learn: pa.Table
    test: pa.Table | None


class Benchmark(NamedTuple):
    """One IDA set with its R realizations.

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


def is_named(source: str) -> bool:
    """Return whether ``source`` names a set rather than a file."""
    return source.split(":")[0] in ("sklearn", "ida", *GENERATORS)


def load(source: str, ida_file: Path | None = None) -> Columns:
    """Load the set that ``source`` names, such as ``ida:banana:1``.

    Args:
        source: one of ``FORMS``.
        ida_file: the IDA archive; by default the environment's CKCV_IDA, else the fetched one.

    Raises:
        InputError: there is no such set, or the archive is missing or damaged.
    """
    family, *parts = source.split(":")
    if family == "sklearn" and len(parts) == 1:
        return Columns(_sklearn(parts[0]), None)
    if family == "ida" and len(parts) == 2:
        return _ida(parts[0], _number(parts[1], source), ida_file)
    if family in GENERATORS and len(parts) == 2:
        return _generated(family, _number(parts[0], source), _number(parts[1], source))
    raise InputError(f"{source!r} does not name a set: the forms are {FORMS}")


def twonorm(n: int, rng: np.random.Generator) -> Sample:
    """Draw from two unit normals in 20 dimensions with means a and -a, a = 2/sqrt(20) in each coordinate."""
    y = _signs(n, rng)
    return rng.normal(size=(n, 20)) + y[:, None] * (2 / np.sqrt(20)), y


def ringnorm(n: int, rng: np.random.Generator) -> Sample:
    """Draw from two normals in 20 dimensions.

    Class +1: mean 0, covariance 4 I; class -1: mean 2/sqrt(20) in each coordinate, covariance I.
    """
    y = _signs(n, rng)
    Z = rng.normal(size=(n, 20))
    return np.where(y[:, None] > 0, 2 * Z, Z + 2 / np.sqrt(20)), y


def waveform(n: int, rng: np.random.Generator) -> Sample:
    """Draw random mixtures of two of three triangles plus unit noise; +1 mixes the left and the middle."""
    position = np.arange(1, 22)
    middle, right, left = (np.maximum(6 - np.abs(position - peak), 0) for peak in (11, 15, 7))
    pairs = np.array([(middle, right), (middle, left), (right, left)], dtype=float)
    kind = rng.integers(3, size=n)
    share = rng.uniform(size=(n, 1))
    X = share * pairs[kind, 0] + (1 - share) * pairs[kind, 1] + rng.normal(size=(n, 21))
    return X, np.where(kind == 1, 1, -1)


GENERATORS: Mapping[str, Callable[[int, np.random.Generator], Sample]] = {
    "twonorm": twonorm,
    "ringnorm": ringnorm,
    "waveform": waveform,
}


def _signs(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return 2 * rng.integers(2, size=n) - 1


def _generated(family: str, n: int, seed: int) -> Columns:
    if not 6 <= n <= MOST_ROWS:
        raise InputError(f"{family}:{n}: the number of rows is outside 6..{MOST_ROWS}")
    learn, test = (
        GENERATORS[family](rows, np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(part,))))
        for part, rows in enumerate((n, FRESH_ROWS))
    )
    return Columns(from_matrix(*learn), from_matrix(*test))


def _sklearn(name: str) -> pa.Table:
    from sklearn import datasets

    named = ("breast_cancer", "iris", "wine", "digits", "diabetes")
    loaders = {n: getattr(datasets, f"load_{n}") for n in named}
    if name not in loaders:
        raise InputError(f"sklearn:{name} is not known: choose from {', '.join(sorted(loaders))}")
    bunch = loaders[name]()
    names = [str(feature) for feature in bunch.feature_names]
    if "target_names" not in bunch:  # of numbers
        return from_matrix(bunch.data, bunch.target, names, target="target")
    labels = np.array([str(label) for label in bunch.target_names])[bunch.target]
    return from_matrix(bunch.data, labels, names, target="target")


def _ida(name: str, realization: int, ida_file: Path | None) -> Columns:
    path = _ida_archive(name, ida_file)
    with raising(InputError, f"cannot read the IDA archive {str(path)!r}"):
        read = _ida_mat if path.suffix.lower() == ".mat" else _ida_npz
        x, t, train, test = read(path, name)
    if not 1 <= realization <= len(train):
        raise InputError(
            f"ida:{name}:{realization} is outside 1..{len(train)}, the realizations in the archive"
        )
    rows, others = train[realization - 1], test[realization - 1]
    return Columns(from_matrix(x[rows], t[rows]), from_matrix(x[others], t[others]))


def _ida_archive(name: str, ida_file: Path | None) -> Path:
    if given := ida_file or environ.get(IDA_VARIABLE):
        return Path(given)
    if (fetched := fetch.cached()).is_file():
        return fetched
    raise InputError(
        f"ida:{name} needs the IDA archive: `ckcv fetch` downloads it; or give --ida-file FILE, "
        f"or set {IDA_VARIABLE}"
    )


def _ida_npz(path: Path, name: str) -> Benchmark:
    with npz(path) as archive:
        return _one_set(name, archive, first=0)


def _ida_mat(path: Path, name: str) -> Benchmark:
    status = path.stat()
    return _one_set(name, _mat_arrays(path, status.st_mtime_ns, status.st_size), first=1)


@lru_cache(maxsize=1)  # sets are read one after the other, each for all its realizations
def _mat_arrays(path: Path, changed: int, size: int) -> dict[str, NDArray[Any]]:
    """Read the arrays STRUCT/PART of a ``.mat`` in a separate process."""
    check_matlab_size(path)
    with NamedTemporaryFile(suffix=".npz") as output:
        program = [sys.executable, "-P", matlab.__file__, str(path)]
        done = run(program, stdout=output, stderr=PIPE, timeout=MATLAB_SECONDS, env=environ | ONE_THREAD)
        if done.returncode:
            lines = done.stderr.decode(errors="replace").splitlines()
            raise ValueError(lines[-1] if lines else f"its reader ended with code {done.returncode}")
        with npz(Path(output.name)) as archive:
            return dict(archive)


def _one_set(name: str, archive: Mapping[str, NDArray[Any]], first: int) -> Benchmark:
    _check_held(name, {key.split("/")[0] for key in archive})
    parts = {part: archive[key] for part in IDA_PARTS if (key := f"{name}/{part}") in archive}
    return _benchmark(name, parts, first)


def _check_held(name: str, held: Iterable[str]) -> None:
    if name not in held:
        raise InputError(f"ida:{name} is not in the archive: choose from {', '.join(sorted(held)) or 'none'}")


def _benchmark(name: str, parts: Mapping[str, Any], first: int) -> Benchmark:
    """Check the parts of a set, its rows counted from ``first``, and count them from 0."""
    for part in IDA_PARTS:
        if part not in parts:
            raise ValueError(f"{name} has no {part!r}")
        if not isinstance(parts[part], np.ndarray) or parts[part].dtype.kind not in "iuf":
            raise ValueError(f"{part!r} of {name} is not an array of numbers")
        if parts[part].size > MOST_CELLS // 4:
            raise ValueError(
                f"{part!r} of {name} has {parts[part].size:,} values: at most {MOST_CELLS // 4:,} can be read"
            )
    # MATLAB stores integers in the smallest type that fits, where 0 - 1 may be 255.
    x, t, train, test = (np.asarray(parts[part], dtype=np.float64) for part in IDA_PARTS)
    fits = x.ndim == train.ndim == test.ndim == 2 and t.shape in ((len(x),), (len(x), 1))
    if not (fits and len(train) == len(test)):
        shapes = ", ".join(f"{part} {parts[part].shape}" for part in IDA_PARTS)
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


def _number(text: str, source: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InputError(f"{source!r}: {text!r} is not a whole number; the forms are {FORMS}")
    return int(text)
