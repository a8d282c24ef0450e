"""Whether probabilities are calibrated: of the rows that are given about 30 %, about 30 % are of the class.

If they are, a row is of a class with the probability that it is given, independently of the other rows. How
many of n rows are, chosen by these probabilities alone, is then a sum of events of mean probability p, and
its tails are no heavier than those of Bin(n, p) (Hoeffding, Annals of Mathematical Statistics 27, 1956); at
the counts 1 and n - 1, where that does not hold, one tail alone can miss. So the exact interval of the share
found, at level 1 - delta/b, misses p with probability at most delta/b, and any of b of them at most delta.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ckcv_ray.core.arrays import Classes, Values
from ckcv_ray.core.bounds.binomial import bound_both_sides
from ckcv_ray.core.percent import ceil_percent, floor_percent, format_level, format_number, format_row
from ckcv_ray.errors import pluralize

TENTHS = np.arange(1, 10) / 10  # where bins may end
MIN_ROWS = 10  # of a bin
HEADS = ("probability of", "found", "share", "mean", "interval", "the mean is")


class Bin(NamedTuple):
    """Rows with similar probabilities of a class, and how many of them are of it."""

    label: int  # number of the class
    edges: tuple[float, float]  # of its tenths that have rows: from the first to below the second, or to 1
    rows: int
    found: int  # rows of the class
    mean: float  # of the probabilities
    interval: tuple[float, float] | None = None  # of the share found; None without intervals
    side: str | None = None  # where the mean lies: "inside", or else "too low" or "too high"


class Calibration(NamedTuple):
    """Predicted probabilities and the shares found, of the positive one of two classes or of each of more."""

    bins: tuple[Bin, ...]
    rows: str  # a phrase that says which rows they are of
    delta: float  # probability that any mean is outside its interval if the probabilities are calibrated
    refusal: str = ""  # why there are no intervals; "" if there are

    @property
    def n_outside(self) -> int:
        """How many means are outside their intervals."""
        return sum(each.side not in ("inside", None) for each in self.bins)

    @property
    def verdict(self) -> str:
        """What follows of the probabilities, in words."""
        if self.refusal:
            return f"not judged: {self.refusal}"
        if not self.n_outside:
            return "deviations as large as these can be noise: calibration is not shown either"
        some = f"{self.n_outside} of {pluralize(len(self.bins), 'bin')}"
        return (
            f"The probabilities are not calibrated: in {some} their mean lies outside the interval of the "
            f"share found; if they were, this would happen in at most {format_number(100 * self.delta)} % of "
            "such tables"
        )

    @property
    def note(self) -> str:
        """What bins and intervals are, in sentences."""
        said = f"Of {self.rows}. Bins are tenths, joined until each has {MIN_ROWS} rows."
        each, joint = format_level(self.delta / len(self.bins)), format_level(self.delta)
        exact = f" Intervals are exact (Clopper-Pearson), each at {each}, all together at {joint}."
        return said + exact * (not self.refusal)

    def tabulate(self, names: Sequence[object]) -> tuple[Sequence[str], list[tuple[str, ...]]]:
        """Return the heads and rows of a table, with the names of classes."""
        rows = []
        for label, edges, n, found, mean, interval, side in self.bins:
            of = " to ".join(f"{format_number(100 * edge)} %" for edge in edges)
            first = f"{names[label]}: {of}", f"{found:,} of {n:,}"
            ends = interval and f"{floor_percent(interval[0])} to {ceil_percent(interval[1])}"
            rows.append(format_row(*first, found / n, mean, ends, side))
        return HEADS, rows


def make_bins(y: Classes, probability: Values, positive: int, delta: float) -> tuple[Bin, ...]:
    """Return bins of the probabilities of one of two classes, or of all, with intervals of the shares found.

    They are tenths, each joined to the next until it has ``MIN_ROWS`` rows, and at the end to the one before:
    so they depend on numbers of rows, and never on labels.

    Args:
        y: classes of the rows, (rows,).
        probability: of each class, in [0, 1], (rows, n_classes).
        positive: number of the class of two.
        delta: probability that the interval of any bin may miss; 0 without intervals.
    """
    n_classes, bins = probability.shape[1], list[Bin]()
    for label in range(n_classes) if n_classes > 2 else [positive]:
        tenth, stops = np.searchsorted(TENTHS, probability[:, label], side="right"), [0]
        for stop in range(1, 11):
            if np.sum((stops[-1] <= tenth) & (tenth < stop)) >= MIN_ROWS:
                stops.append(stop)
        for first, stop in pairwise([0, *stops[1:-1], 10]):
            rows = np.flatnonzero((first <= tenth) & (tenth < stop))
            edges = float(tenth[rows].min() / 10), float((tenth[rows].max() + 1) / 10)
            found, mean = int(np.sum(y[rows] == label)), float(np.mean(probability[rows, label]))
            bins.append(Bin(label, edges, len(rows), found, mean))
    for i, (_, _, n, found, mean, *_) in enumerate(bins if delta else ()):
        low, high = interval = bound_both_sides(found, n, delta / len(bins))
        side = "too low" if mean < low else "too high" if mean > high else "inside"
        bins[i] = bins[i]._replace(interval=interval, side=side)
    return tuple(bins)
