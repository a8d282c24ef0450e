"""Small tables for golden values, drawn from a seed."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


class Sample(NamedTuple):
    """Inputs (n, d), an array or a table of columns; labels or numbers (n,); and groups (n,), if any."""

    X: Any
    y: NDArray[Any]
    groups: NDArray[Any] | None = None


def generator(seed: int, *key: int) -> np.random.Generator:
    """Return a generator of random numbers."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def cloud(n: int, d: int = 3) -> Sample:
    """Draw two overlapping clouds."""
    rng = generator(7, n, d)
    y = np.where(np.arange(n) % 2, 1, -1)
    return Sample(rng.normal(size=(n, d)) + y[:, None] / 2, y)


def lattice(n: int) -> Sample:
    """Draw few distinct rows, so that many candidates make the same errors."""
    rng = generator(8, n)
    X = rng.integers(0, 2, size=(n, 2)).astype(float)
    return Sample(X, np.where(X.sum(axis=1) + rng.random(n) > 1.2, "yes", "no"))


def clouds(n: int, n_classes: int) -> Sample:
    """Draw overlapping clouds of several classes, the last of them rare."""
    rng = generator(9, n, n_classes)
    rare = n_classes - 1
    y = np.arange(n) % n_classes
    y[(y == rare) & (np.arange(n) % 3 > 0)] = 0
    return Sample(rng.normal(size=(n, 2)) + rng.normal(size=(n_classes, 2))[y], y)


def visits(n: int) -> Sample:
    """Draw two clouds whose rows are the visits of patients: one to four of each."""
    rng = generator(10, n)
    patient = np.repeat(np.arange(n), rng.integers(1, 5, size=n))[:n]
    y = patient % 2
    return Sample(rng.normal(size=(n, 2)) + y[:, None] + rng.normal(size=(n, 2))[patient] / 2, y, patient)


def prices(n: int) -> Sample:
    """Draw numbers to predict, linear in two of three columns."""
    rng = generator(11, n)
    X = rng.normal(size=(n, 3))
    return Sample(X, np.round(10 + X @ [3.0, -2.0, 0.0] + rng.normal(size=n), 3))


def patients(n: int) -> Sample:
    """Draw a table of numbers with gaps, categories with gaps and a rare one, and dates."""
    rng = generator(12, n)
    y = np.arange(n) % 2
    age = np.round(50 + 10 * rng.normal(size=n) + 8 * y, 1)
    ward = np.array(["north", "south", "west"])[rng.integers(0, 3, size=n) * (1 - y) + y * (np.arange(n) % 2)]
    ward[5] = "attic"
    day = np.datetime64("2024-01-01") + rng.integers(0, 300, size=n).astype("timedelta64[D]")
    columns = {
        "age": pa.array(age, mask=rng.random(n) < 0.15),
        "ward": pa.array(ward, mask=rng.random(n) < 0.1),
        "admitted": pa.array(day),
        "dose": pa.array(np.round(rng.normal(size=n) + y, 2)),
    }
    return Sample(pa.table(columns), np.where(y == 1, "ill", "well"))


def wards(n: int) -> Sample:
    """Draw categories of which several have one or two rows, and a number."""
    rng = generator(14, n)
    y = np.arange(n) % 2
    ward = np.array(["north", "south", "west"])[rng.integers(0, 3, size=n)]
    ward[2:9] = ["attic", "attic", "cellar", "tower", "tower", "yard", "lodge"]
    floor = np.array(["first", "second"])[np.where(rng.random(n) < 0.7, y, 1 - y)]
    columns = {"ward": ward, "floor": floor, "dose": np.round(rng.normal(size=n) + y, 2)}
    return Sample(pa.table(columns), np.where(y == 1, "ill", "well"))


def counts(n: int, n_classes: int = 2) -> Sample:
    """Draw whole numbers, whose bytes are the same on every processor."""
    rng = generator(13, n, n_classes)
    y = np.arange(n) % n_classes
    return Sample(rng.integers(0, 9, size=(n, 2)).astype(float) + y[:, None], y)
