"""Algorithm 1's bookkeeping: sums of bounds, lower bounds, which triples are alive, which one wins.

For one fold size with m = n_select and S splits, a triple (C, gamma, size) has a bound U(x_i; m) for each
split i computed so far. Over the unbroken prefix i = 0 .. p - 1,

    low = fsum([U(x_0), ..., U(x_{p-1})] + [U(0)] * (S - p)) / S

is at most the triple's L_MS whatever the other splits bring, since U(0) is the least bound, and equals it
at p = S. A triple with low above the L_MS of a complete triple is beaten and need not be finished; an
equal one is kept, because ties are settled by the smaller C, then gamma, then k. ``math.fsum`` rounds
correctly, so neither low nor L_MS depends on the order of arrival, and low never falls as p grows.

Whole arrays are compared with ordinary float64 sums; whatever lies within ``NEAR`` of a threshold is
decided by ``fsum``. A fold size whose own best triple is asked for is judged against that alone.

Reference: Anguita et al., ESANN 2012, Algorithm 1; the early drop is exact, not statistical.
"""

from collections.abc import Iterable, Sequence
from math import fsum, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.bounds import bound_table

UNKNOWN = -1
FAILED = -2
NEAR = 1e-9

Counts = NDArray[np.int32]
Mask = NDArray[np.bool_]
Table = NDArray[np.float64]
Index = NDArray[np.intp]


class Leader(NamedTuple):
    """A complete triple by position; tuples compare in the order that settles ties."""

    l_ms: float
    C: int
    gamma: int
    size: int


class Proof(NamedTuple):
    """The shortest prefix of splits that proves a triple beaten, and the lower bound it gives."""

    splits: int
    lower_bound: float


def mean_bound(bounds: Sequence[float], least: float, n_splits: int) -> float:
    """``low`` of the module's head; L_MS itself where ``bounds`` has all n_splits values."""
    return fsum([*bounds, *[least] * (n_splits - len(bounds))]) / n_splits


def shortest_proof(bounds: Sequence[float], least: float, n_splits: int, threshold: float) -> Proof | None:
    """The first prefix of ``bounds`` whose lower bound exceeds ``threshold``; None if there is none."""
    total = 0.0
    for p in range(len(bounds) + 1):
        if (total + (n_splits - p) * least) / n_splits > threshold - NEAR:
            low = mean_bound(bounds[:p], least, n_splits)
            if low > threshold:
                return Proof(p, low)
        if p < len(bounds):
            total += bounds[p]
    return None


class FoldSize:
    """The counts of one fold size and what follows from them.

    Attributes:
        counts: errors on the select set, (n_splits, n_gamma, n_C); UNKNOWN or FAILED where there are none.
        prefix: length of each triple's unbroken prefix of splits, (n_gamma, n_C).
        low: its lower bound on L_MS in float64 sums, (n_gamma, n_C).
        expected: mean bound over the prefix alone, inf where it is empty, (n_gamma, n_C).
        blocked: whether a failed cell follows the prefix, (n_gamma, n_C).
        complete: whether the triple has all its splits, (n_gamma, n_C).
        computed: cells of each path that are known or failed, (n_splits, n_gamma).
    """

    def __init__(self, n_select: int, n_splits: int, n_gamma: int, n_C: int, delta: float) -> None:
        self.n_splits = n_splits
        self.n_select = n_select
        self.bounds = bound_table(n_select, delta)
        self.least = float(self.bounds[0])
        self._bound_of = np.append(self.bounds, [0.0, 0.0])  # UNKNOWN and FAILED, counted from the end
        self.counts: Counts = np.full((n_splits, n_gamma, n_C), UNKNOWN, dtype=np.int32)
        self.refresh()

    def refresh(self) -> None:
        """Derive everything else from ``counts``."""
        unbroken = np.logical_and.accumulate(self.counts >= 0, axis=0)
        total = np.multiply(self._bound_of[self.counts], unbroken).sum(axis=0)
        self.prefix: Index = unbroken.sum(axis=0)
        self.low: Table = (total + (self.n_splits - self.prefix) * self.least) / self.n_splits
        self.expected: Table = np.where(self.prefix > 0, total / np.maximum(self.prefix, 1), inf)
        failed = self.counts == FAILED
        self.blocked: Mask = np.zeros(self.low.shape, np.bool_)
        if failed.any():
            following = np.minimum(self.prefix, self.n_splits - 1)[None]
            self.blocked = np.take_along_axis(failed, following, axis=0)[0]
        self.complete: Mask = np.equal(self.prefix, self.n_splits)
        self.computed: Index = np.sum(self.counts != UNKNOWN, axis=2)

    def prefix_bounds(self, gamma: int, C: int) -> list[float]:
        """Bounds of one triple's unbroken prefix, in the order of the splits."""
        counts = self.counts[: self.prefix[gamma, C], gamma, C]
        return [float(bound) for bound in self.bounds[counts]]

    def exact_low(self, gamma: int, C: int) -> float:
        """Correctly rounded ``low`` of one triple."""
        return mean_bound(self.prefix_bounds(gamma, C), self.least, self.n_splits)

    def leader(self, size: int) -> Leader | None:
        """Best complete triple of this size, named as number ``size``."""
        if not self.complete.any():
            return None
        l_ms = np.where(self.complete, self.low, inf)
        near = np.argwhere(l_ms <= l_ms.min() + NEAR)
        return min(Leader(self.exact_low(g, c), int(c), int(g), size) for g, c in near)

    def alive(self, threshold: float) -> Mask:
        """Incomplete triples that can still reach ``threshold`` or less, (n_gamma, n_C)."""
        open_ = ~self.complete & ~self.blocked
        alive = open_ & (self.low <= threshold)
        for g, c in np.argwhere(open_ & (np.abs(self.low - threshold) <= NEAR)):
            alive[g, c] = self.exact_low(g, c) <= threshold
        return alive

    def proof(self, gamma: int, C: int, threshold: float) -> Proof | None:
        """Shortest proof that one triple is beaten by an L_MS of ``threshold``."""
        return shortest_proof(self.prefix_bounds(gamma, C), self.least, self.n_splits, threshold)


class Selection:
    """All fold sizes of a study, the largest first, and the race between them.

    Args:
        sizes: (n_select, n_splits) of each fold size.
        n_gamma: length of the gamma grid.
        n_C: length of the C grid.
        delta: failure probability of each bound.
        own: positions of the sizes judged against their own best triple alone.
        exhaustive: drop nothing.

    Attributes:
        version: grows whenever what follows from the counts may have changed.
        changed: the version in which that was last so for each size, by its counts or its threshold.
    """

    def __init__(
        self,
        sizes: Sequence[tuple[int, int]],
        n_gamma: int,
        n_C: int,
        delta: float,
        own: Iterable[int] = (),
        exhaustive: bool = False,
    ) -> None:
        self.sizes = [FoldSize(m, n_splits, n_gamma, n_C, delta) for m, n_splits in sizes]
        self.leaders: list[Leader | None] = [None] * len(self.sizes)
        self.own = frozenset(own)
        self.exhaustive = exhaustive
        self.version = 0
        self.changed = [0] * len(self.sizes)
        self._winner: Leader | None = None
        self._stale: set[int] = set()
        self._alive: dict[int, Mask] = {}
        self._lowest: dict[int, float] = {}

    def add(self, size: int, mc_index: int, gamma: int, counts: Counts) -> None:
        """Errors of one path's first cells, in ascending C; FAILED never replaces a count."""
        cells = self.sizes[size].counts[mc_index, gamma, : len(counts)]
        np.copyto(cells, counts, where=(counts >= 0) | (cells == UNKNOWN))
        self._stale.add(size)

    def enter(self, size: int, mc_index: Index, gamma: Index, C: Index, counts: Counts) -> None:
        """Errors of cells of one size, by position; each array of shape (cells,)."""
        self.sizes[size].counts[mc_index, gamma, C] = counts
        self._stale.add(size)

    def refresh(self) -> None:
        """Bring bounds and leaders up to date with the counts added."""
        if not self._stale:
            return
        for size in self._stale:
            self.sizes[size].refresh()
            self.leaders[size] = self.sizes[size].leader(size)
        before, self._winner = self._winner, min((one for one in self.leaders if one), default=None)
        self.version += 1
        for size in self._stale if before == self._winner else range(len(self.sizes)):
            self.changed[size] = self.version
            self._alive.pop(size, None)
            self._lowest.pop(size, None)
        self._stale.clear()

    def winner(self) -> Leader | None:
        """Best complete triple of all."""
        return self._winner

    def threshold(self, size: int) -> float:
        """The L_MS that a triple of this size must not exceed to be alive."""
        leader = self.leaders[size] if size in self.own else self.winner()
        return leader.l_ms if leader else inf

    def alive(self, size: int) -> Mask:
        """Triples of one size that are worth computing further, (n_gamma, n_C)."""
        if size not in self._alive:
            threshold = inf if self.exhaustive else self.threshold(size)
            self._alive[size] = self.sizes[size].alive(threshold)
        return self._alive[size]

    def lowest(self, size: int) -> float:
        """Least lower bound of a living triple of one size; inf where none is alive."""
        if size not in self._lowest:
            self._lowest[size] = float(self.sizes[size].low[self.alive(size)].min(initial=inf))
        return self._lowest[size]
