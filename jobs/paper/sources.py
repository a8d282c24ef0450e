"""Sources of learning sets whose true errors are known or can be measured, some made to break the bounds.

twonorm, ringnorm, waveform   Breiman's generators
crescents        two interlocking half circles with noise, like the banana set
noise            labels by the toss of a coin
eight            one feature with eight values, each with its own share of labels
rare             2 % of the rows are positive
constant         labels that are negative except at a rate just above what 66 rows without an error exclude
flipped_refit    labels that a feature gives except at a rate just above what a certificate without an error
                 excludes at 200 rows
tripled          every row three times
visits           subjects with five visits each, nearly equal, with one label: related rows
grouped          the same, with the subjects named as groups
shifted          the share of positive rows is 0.2 in the learning sets and 0.6 among new patterns
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray import clopper_pearson
from ckcv_ray.tables.named import GENERATORS, GeneratedSample

FRESH_ROWS = 20_000
NOISE = 0.45
VISITS = 5
DELTA = 0.05
ABOVE = 1 + 1e-9
RARE = 0.02
LEARNED, SHIFTED = 0.2, 0.6
EIGHT = (0.02, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9, 0.98)
Matrix = NDArray[Any]


class Rows(NamedTuple):
    """A learning set: X [n, d], y [n] of -1 and +1, and groups [n] if they are declared."""

    X: Matrix
    y: Matrix
    groups: Matrix | None = None


class Fresh(NamedTuple):
    """New patterns."""

    X: Matrix  # patterns, [T, d]
    weight: Matrix  # probability of each pattern with label -1 and with label +1, [T, 2]; the sum is 1
    exact: bool = False  # whether these are all patterns there are, rather than a sample


class Source(NamedTuple):
    """A distribution of learning sets and of new patterns."""

    draw: Callable[[int, np.random.Generator], Rows]
    fresh: Callable[[np.random.Generator], Fresh]
    holds: str = "all"  # which bounds are proven for it: "all", "by class" or "none"
    rare: bool = False  # parts of a learning set may lack a class, so that some studies are refused


def sampled(generator: Callable[[int, np.random.Generator], GeneratedSample]) -> Source:
    """Make a source of independent rows, with new patterns from the same generator."""
    return Source(lambda n, rng: Rows(*generator(n, rng)), partial(sample, generator))


def sample(
    generator: Callable[[int, np.random.Generator], GeneratedSample], rng: np.random.Generator
) -> Fresh:
    """Draw new patterns."""
    X, y = generator(FRESH_ROWS, rng)
    return Fresh(X, np.column_stack([y < 0, y > 0]) / FRESH_ROWS)


def listed(positive: tuple[float, ...], rare: bool = False) -> Source:
    """Make a source with one feature of few values, equally frequent: all errors are known exactly.

    Args:
        positive: the share of positive labels at each value.
        rare: as in Source.
    """
    share = np.array(positive)
    X = np.linspace(-1, 1, len(share))[:, None]

    def draw(n: int, rng: np.random.Generator) -> Rows:
        at = rng.integers(len(share), size=n)
        return Rows(X[at], np.where(rng.uniform(size=n) < share[at], 1, -1))

    every = Fresh(X, np.column_stack([1 - share, share]) / len(share), exact=True)
    return Source(draw, lambda rng: every, rare=rare)


def flipped(rate: float) -> Source:
    """Make a source whose best classifier errs at a known rate, wherever it is applied."""
    return listed((rate,) * 4 + (1 - rate,) * 4)


def crescents(n: int, rng: np.random.Generator) -> GeneratedSample:
    """Draw from a banana-like source: two interlocking half circles, with noise."""
    y = 2 * rng.integers(2, size=n) - 1
    angle = rng.uniform(0, np.pi, size=n)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.where(y[:, None] > 0, X, np.array([1.0, 0.5]) - X)
    return X + rng.normal(scale=NOISE, size=(n, 2)), y


def noise(n: int, rng: np.random.Generator) -> GeneratedSample:
    """Draw labels that have nothing to do with the features."""
    return rng.normal(size=(n, 2)), 2 * rng.integers(2, size=n) - 1


def coins(rng: np.random.Generator) -> Fresh:
    """Draw new patterns of ``noise``, each with both labels: every classifier errs on exactly half."""
    X, _ = noise(FRESH_ROWS, rng)
    return Fresh(X, np.full((len(X), 2), 0.5 / len(X)))


def normals(n: int, rng: np.random.Generator, positive: float) -> GeneratedSample:
    """Draw from two normals in the plane, the positive one wider, with a given share of positive labels."""
    y = np.where(rng.uniform(size=n) < positive, 1, -1)
    Z = rng.normal(size=(n, 2))
    return np.where(y[:, None] > 0, 1.5 * Z + 1.5, Z), y


def balanced(rng: np.random.Generator, positive: float) -> Fresh:
    """Draw new patterns of ``normals``, equally many of either class, weighted by the share of the class."""
    X, y = normals(FRESH_ROWS, rng, 0.5)
    shares = np.column_stack([(1 - positive) * (y < 0) / np.sum(y < 0), positive * (y > 0) / np.sum(y > 0)])
    return Fresh(X, shares)


def tripled(n: int, rng: np.random.Generator) -> Rows:
    """Draw a third of the rows, and repeat each three times."""
    X, y = crescents(n // 3, rng)
    return Rows(np.repeat(X, 3, axis=0), np.repeat(y, 3))


def visits(n: int, rng: np.random.Generator) -> GeneratedSample:
    """Draw subjects with five visits each: one label, and features that differ little."""
    X, y = crescents(n // VISITS, rng)
    X = np.repeat(X, VISITS, axis=0)
    return X + rng.normal(scale=0.05, size=X.shape), np.repeat(y, VISITS)


def grouped(n: int, rng: np.random.Generator) -> Rows:
    """Draw visits whose subjects are named."""
    return Rows(*visits(n, rng), np.repeat(np.arange(n // VISITS), VISITS))


SOURCES: Mapping[str, Source] = {
    **{name: sampled(generator) for name, generator in GENERATORS.items()},
    "crescents": sampled(crescents),
    "noise": sampled(noise)._replace(fresh=coins),
    "eight": listed(EIGHT),
    "rare": sampled(partial(normals, positive=RARE))._replace(
        fresh=partial(balanced, positive=RARE), rare=True
    ),
    "constant": listed((ABOVE * clopper_pearson(0, 66, DELTA),) * 8, rare=True),
    "flipped_refit": flipped(ABOVE * clopper_pearson(0, 100, DELTA)),
    "tripled": Source(tripled, partial(sample, crescents), holds="none"),
    "visits": sampled(visits)._replace(holds="none"),
    "grouped": sampled(visits)._replace(draw=grouped),
    "shifted": Source(
        lambda n, rng: Rows(*normals(n, rng, LEARNED)), partial(balanced, positive=SHIFTED), holds="by class"
    ),
}


class Setting(NamedTuple):
    """A source and the number of rows drawn from it."""

    source: str
    n: int

    def __str__(self) -> str:
        return f"{self.source}:{self.n}"

    def generator(self, run: int) -> np.random.Generator:
        """Return the generator of a run, which depends only on the setting and the run."""
        key = (*self.source.encode(), self.n, run)
        return np.random.default_rng(np.random.SeedSequence(2012, spawn_key=key))


GENERATED = tuple(
    Setting(name, n) for n in (100, 200, 400) for name in ("crescents", "ringnorm", "twonorm", "waveform")
)
HOSTILE = tuple(
    Setting(name, n)
    for name, n in {
        "noise": 200, "eight": 200, "rare": 400, "constant": 200, "flipped_refit": 200,
        "tripled": 60, "visits": 300, "grouped": 300, "shifted": 200,
    }.items()
)  # fmt: skip
