"""Selection: the bookkeeping of Algorithm 1, and the best mean score inside training sets.

Algorithm 1 needs sums of values, lower bounds, the candidates still alive, and the winner.

For one fold size with S splits, a candidate (path, step, size) has a value v_i of the criterion, such as the
bound U(x_i; m), for each split i computed so far. With the unbroken prefix i = 0 .. p - 1,

    low = fsum([v_0, ..., v_{p-1}, least_p, ..., least_{S-1}]) / S

is at most the candidate's L_MS whatever the values of the other splits, since no value is below the least one
of its split, such as U(0; m), and equals it at p = S. Where a value depends on how many rows of each class a
split scores, its least value differs from split to split. A candidate with low above the L_MS of a complete
one is beaten and need not be completed; an equal one is kept, because ties are broken by the learner that
comes first, then by the smaller step, then path, then k. ``math.fsum`` rounds correctly, so neither low nor
L_MS depends on the order of arrival, and low never decreases as p grows.

Arrays are compared by ordinary float64 sums; anything within ``NEAR`` of a threshold is decided by ``fsum``.
If the best candidate of a fold size is to be reported, that size is compared only with that candidate. If the
best candidate of a learner is to be known, that learner's candidates are compared with it. Paths may differ
in length: the arrays are as long as the longest, and steps beyond the end of a path are ABSENT.

Reference: Anguita et al., ESANN 2012, Algorithm 1; dropping candidates early is exact, not statistical.

Which of several settings to keep: the one with the least mean loss, or the simplest that is about as good.

References: Breiman, Friedman, Olshen, Stone, "Classification and Regression Trees", 1984, section 3.4.3 (one
standard error); Kuhn, "Building predictive models in R using the caret package", Journal of Statistical
Software 28, 2008 (a tolerance in percent of the best).
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from math import fsum, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ckcv_ray.errors import Index, InputError, Mask, Values, quote

UNKNOWN = -1.0  # these three replace values, which are never negative
FAILED = -2.0
ABSENT = -3.0
NEAR = 1e-9


class Leader(NamedTuple):
    """A complete candidate by position; leaders of one learner compare in the order that breaks ties."""

    l_ms: float
    step: int
    path: int
    size: int


class Proof(NamedTuple):
    """The shortest prefix of splits that proves a candidate beaten, and the resulting lower bound."""

    splits: int
    lower_bound: float


class Least(NamedTuple):
    """The least values of the splits of a fold size."""

    values: list[float]  # the least value of each split, (n_splits,)
    rest: list[float]  # their sum from each split on, up to rounding, (n_splits + 1,)

    @classmethod
    def of(cls, least: ArrayLike, n_splits: int) -> "Least":
        """Return the least values of ``n_splits`` splits, given one for all of them or one for each."""
        each = np.broadcast_to(np.asarray(least, dtype=np.float64), n_splits)
        if np.all(each == each[0]):
            rest = np.arange(n_splits, -1, -1) * each[0]
        else:
            rest = np.concatenate([np.cumsum(each[::-1])[::-1], [0.0]])
        return cls(each.tolist(), rest.tolist())


def mean_bound(bounds: Sequence[float], least: Least) -> float:
    """Compute ``low`` in the module docstring; it is L_MS itself if ``bounds`` has a value for each split."""
    return fsum([*bounds, *least.values[len(bounds) :]]) / len(least.values)


def find_shortest_proof(bounds: Sequence[float], least: Least, threshold: float) -> Proof | None:
    """Find the first prefix of ``bounds`` whose lower bound exceeds ``threshold``; None if there is none."""
    total, n_splits = 0.0, len(least.values)
    for p in range(len(bounds) + 1):
        if (total + least.rest[p]) / n_splits > threshold - NEAR:
            low = mean_bound(bounds[:p], least)
            if low > threshold:
                return Proof(p, low)
        if p < len(bounds):
            total += bounds[p]
    return None


class Standings:
    """The values of one fold size and what is derived from them.

    Attributes:
        least: the least values of the splits.
        floor: the lower bound on any candidate's L_MS.
        values: values of the criterion, (n_splits, n_paths, n_steps), or UNKNOWN, FAILED or ABSENT.
        prefix: length of each candidate's unbroken prefix of splits, (n_paths, n_steps).
        low: lower bound on each candidate's L_MS, by float64 sums, (n_paths, n_steps).
        expected: mean value over the prefix alone, inf if it is empty, (n_paths, n_steps).
        blocked: whether a failure follows the prefix, or the candidate does not exist, (n_paths, n_steps).
        complete: whether the candidate has values for all splits, (n_paths, n_steps).
        computed: number of evaluations of each path that are known or failed, (n_splits, n_paths).
        begun: number of each path's evaluations that are known without a gap from the first, likewise.
    """

    def __init__(
        self, n_splits: int, lengths: Sequence[int], least: ArrayLike, learners: ArrayLike = 0
    ) -> None:
        self.n_splits = n_splits
        self._learners: Index = np.broadcast_to(np.asarray(learners, dtype=np.intp), len(lengths))
        self.least = Least.of(least, n_splits)
        self.floor = mean_bound((), self.least)
        self._absent: Mask = np.arange(max(lengths)) >= np.array(lengths)[:, None]
        nothing = np.where(self._absent, ABSENT, UNKNOWN).astype(np.float64)
        self.values: Values = np.broadcast_to(nothing, (n_splits, *nothing.shape))  # one copy until written
        self.refresh()

    def open(self) -> Values:
        """Return ``values`` in writable form."""
        if not self.values.flags.writeable:
            self.values = self.values.copy()
        return self.values

    def refresh(self) -> None:
        """Derive everything else from ``values``."""
        known = self.values >= 0
        unbroken = np.logical_and.accumulate(known, axis=0)
        total = np.multiply(self.values, unbroken).sum(axis=0)
        self.prefix: Index = unbroken.sum(axis=0)
        self.low: Values = (total + np.take(self.least.rest, self.prefix)) / self.n_splits
        self.expected: Values = np.where(self.prefix > 0, total / np.maximum(self.prefix, 1), inf)
        failed = self.values == FAILED
        self.blocked: Mask = self._absent
        if failed.any():
            following = np.minimum(self.prefix, self.n_splits - 1)[None]
            self.blocked = self._absent | np.take_along_axis(failed, following, axis=0)[0]
        self.complete: Mask = np.equal(self.prefix, self.n_splits)
        self.computed: Index = np.sum(known | failed, axis=2)
        self.begun: Index = np.logical_and.accumulate(known, axis=2).sum(axis=2)

    def prefix_values(self, path: int, step: int) -> list[float]:
        """Return the values of one candidate's unbroken prefix, in the order of the splits."""
        values: list[float] = self.values[: self.prefix[path, step], path, step].tolist()
        return values

    def exact_low(self, path: int, step: int) -> float:
        """Return the correctly rounded ``low`` of one candidate."""
        return mean_bound(self.prefix_values(path, step), self.least)

    def leader(self, size: int, paths: Mask | None = None) -> Leader | None:
        """Return the best complete candidate of this size, at position ``size``, or among some paths only."""
        complete = self.complete if paths is None else self.complete & paths[:, None]
        if not complete.any():
            return None
        l_ms = np.where(complete, self.low, inf)
        near = np.argwhere(l_ms <= l_ms.min() + NEAR)
        leaders = (Leader(self.exact_low(p, s), int(s), int(p), size) for p, s in near)
        return min(leaders, key=self.order)

    def order(self, leader: Leader) -> tuple[float, int, Leader]:
        """Return the key by which the best of several leaders comes first."""
        return leader.l_ms, int(self._learners[leader.path]), leader

    def alive(self, thresholds: Values) -> Mask:
        """Return which incomplete candidates can still reach a threshold or less, (n_paths, n_steps).

        Args:
            thresholds: the threshold of each path, (n_paths,).
        """
        open_, each = ~self.complete & ~self.blocked, thresholds[:, None]
        alive = open_ & (self.low <= each)
        for p, s in np.argwhere(open_ & (np.abs(self.low - each) <= NEAR)):
            alive[p, s] = self.exact_low(p, s) <= thresholds[p]
        return alive

    def proof(self, path: int, step: int, threshold: float) -> Proof | None:
        """Return the shortest proof that one candidate is beaten by an L_MS of ``threshold``."""
        if self.floor > threshold:
            return Proof(0, self.floor)  # as for many sizes: found without looking at any value
        return find_shortest_proof(self.prefix_values(path, step), self.least, threshold)


class Selection:
    """All fold sizes of a study, the largest first, and the comparison of their candidates.

    Args:
        sizes: for each fold size, its number of splits and their least value, or that of each split.
        lengths: number of steps of each path.
        separate: positions of the sizes that are compared only with their own best candidate.
        exhaustive: whether to drop nothing.
        learners: position of each path's learner among those that are compared.
        known: positions of the learners whose own best candidate is to be known.

    Attributes:
        winner: the best complete candidate of all sizes; None if there is none yet.
        version: increases whenever what is derived from the values may have changed.
        changed: the version in which the values or the threshold of each size last changed.
        finalists: by size, the candidates that are worth computing at all; None for all of them.
    """

    def __init__(
        self,
        sizes: Sequence[tuple[int, ArrayLike]],
        lengths: Sequence[int],
        separate: Iterable[int] = (),
        exhaustive: bool = False,
        learners: ArrayLike = 0,
        known: Iterable[int] = (),
    ) -> None:
        self.learners: Index = np.broadcast_to(np.asarray(learners, dtype=np.intp), len(lengths))
        self.sizes = [Standings(n_splits, lengths, least, self.learners) for n_splits, least in sizes]
        self.leaders: list[Leader | None] = [None] * len(self.sizes)
        self.own = frozenset(separate)
        self.finalists: list[Mask] | None = None
        self.exhaustive = exhaustive
        self.version = 0
        self.changed = [0] * len(self.sizes)
        self.winner: Leader | None = None
        self._paths: list[Mask] = [self.learners == learner for learner in known]
        self._best: list[Leader | None] = [None] * len(self._paths)
        self._stale: set[int] = set()
        self._alive: dict[int, Mask] = {}
        self._lowest: dict[int, float] = {}

    def enter(self, size: int, split: Index, path: Index, step: Index, values: Values) -> None:
        """Enter the values of evaluations of one size by position; each array has shape (evaluations,)."""
        self.sizes[size].open()[split, path, step] = values
        self._stale.add(size)

    def fail(self, size: int, split: int, path: int, steps: slice) -> None:
        """Enter the failure of some steps of a path; a failure never replaces a value."""
        here = self.sizes[size].open()[split, path, steps]
        here[here == UNKNOWN] = FAILED
        self._stale.add(size)

    def refresh(self) -> None:
        """Update bounds and leaders from the values entered."""
        if not self._stale:
            return
        for size in self._stale:
            self.sizes[size].refresh()
            self.leaders[size] = self.sizes[size].leader(size)
        before, order = (self.winner, self._best), self.sizes[0].order
        self.winner = min(filter(None, self.leaders), key=order, default=None)
        found = ([fold.leader(size, paths) for size, fold in enumerate(self.sizes)] for paths in self._paths)
        self._best = [min(filter(None, leaders), key=order, default=None) for leaders in found]
        self.version += 1
        for size in self._stale if before == (self.winner, self._best) else range(len(self.sizes)):
            self.changed[size] = self.version
            self._alive.pop(size, None)
            self._lowest.pop(size, None)
        self._stale.clear()

    def threshold(self, size: int) -> float:
        """Return the L_MS that a candidate of this size must not exceed to be the best."""
        leader = self.leaders[size] if size in self.own else self.winner
        return leader.l_ms if leader else inf

    def thresholds(self, size: int) -> Values:
        """Return the L_MS that a candidate of each path must not exceed to be worth computing, (n_paths,)."""
        found = np.full(len(self.learners), self.threshold(size))
        for paths, best in zip(self._paths, self._best, strict=True):
            found[paths] = np.maximum(found[paths], best.l_ms if best else inf)
        return found

    def alive(self, size: int) -> Mask:
        """Return which candidates of one size are worth computing further, (n_paths, n_steps)."""
        if size not in self._alive:
            thresholds = np.full(len(self.learners), inf) if self.exhaustive else self.thresholds(size)
            self._alive[size] = self.sizes[size].alive(thresholds)
            if self.finalists is not None:
                self._alive[size] &= self.finalists[size]
        return self._alive[size]

    def lowest(self, size: int) -> float:
        """Return the smallest lower bound of the candidates alive in one size; inf if none is alive."""
        if size not in self._lowest:
            self._lowest[size] = float(self.sizes[size].low[self.alive(size)].min(initial=inf))
        return self._lowest[size]


def select_settings(losses: Values, starts: Index, learner_of_paths: Index, each: bool) -> Index:
    """Return the path and the step that is selected for each outer split and learner.

    Args:
        losses: loss of every inner split at every setting, (inner splits, paths, steps), nan where there is
            none: a setting with a gap among the splits that count is not selected.
        starts: number of the first inner split of each outer one, and finally of all splits, (n_outer + 1,).
        learner_of_paths: position of each path's learner, (paths,).
        each: whether to select again in each outer split, instead of once by the mean over all of them.

    Returns:
        (n_outer, n_learners, 2); -1 where a learner has no complete setting. Of equal settings, the one with
        the smaller step, then path, is selected.
    """
    means = np.array([losses[a:b].mean(axis=0) for a, b in pairwise(starts.tolist())])
    if not each:
        means = np.repeat(means.mean(axis=0, keepdims=True), len(means), axis=0)
    n_learners = int(learner_of_paths.max()) + 1
    selected = np.full((len(means), n_learners, 2), -1)
    for learner in range(n_learners):
        paths = np.flatnonzero(learner_of_paths == learner)
        by_step = np.where(np.isnan(means[:, paths]), np.inf, means[:, paths]).transpose(0, 2, 1)
        flat = by_step.reshape(len(means), -1)
        best = flat.argmin(axis=1)
        step, path = np.unravel_index(best, by_step.shape[1:])
        found = np.isfinite(flat[np.arange(len(means)), best])
        selected[found, learner] = np.stack([paths[path], step], axis=-1)[found]
    return selected


BEST_MEAN, ONE_SE, TOLERANCE = "best", "one_se", "tolerance"
EXPECTED = "expected best, one_se (within one standard error of the best), or tolerance:2% (within 2 % of it)"
SMALLER, LARGER = 1, -1
SIMPLER = {  # which values of a hyperparameter make a simpler model, in the order in which they decide
    "max_depth": SMALLER,
    "max_leaf_nodes": SMALLER,
    "num_leaves": SMALLER,
    "depth": SMALLER,
    "n_components": SMALLER,
    "degree": SMALLER,
    "ccp_alpha": LARGER,
    "min_samples_leaf": LARGER,
    "n_neighbors": LARGER,
    "C": SMALLER,
    "alpha": LARGER,
    "gamma": SMALLER,
    "shrinkage": LARGER,
    "var_smoothing": LARGER,
    "hidden_layer_sizes": SMALLER,
    "n_estimators": SMALLER,
    "iterations": SMALLER,
    "max_iter": SMALLER,
    "learning_rate": SMALLER,
    "max_features": SMALLER,
}


def check_choose(choose: object) -> str:
    """Return how a setting is chosen, in its canonical form, such as "one_se" or "tolerance:2%".

    Raises:
        InputError: it is none of these.
    """
    if choose in (BEST_MEAN, ONE_SE):
        return str(choose)
    word, _, rest = choose.partition(":") if isinstance(choose, str) else ("", "", "")
    with suppress(ValueError):
        if word == TOLERANCE and rest.endswith("%") and 0 <= (percent := float(rest[:-1])) < inf:
            return f"{TOLERANCE}:{percent:g}%"
    raise InputError(f"choose={quote(choose)}: {EXPECTED}")


def choose_setting(
    choose: str, means: Values, errors: Values, settings: Sequence[Mapping[str, object]]
) -> int:
    """Return the position of the setting to keep.

    Args:
        choose: "best", "one_se" or "tolerance:2%".
        means: mean loss of each setting, (n,); nan where unknown, but at least one is known.
        errors: standard errors of the means, (n,).
        settings: hyperparameters of each setting, (n,), all of one learner.
    """
    best = int(np.nanargmin(means))
    if choose == BEST_MEAN:
        return best
    share = float(choose.partition(":")[2].removesuffix("%") or 0) / 100
    limit = means[best] + (errors[best] if choose == ONE_SE else share * abs(means[best]))
    names = list_simplifying(settings)
    close = np.flatnonzero(means <= limit).tolist()
    return int(min(close, key=lambda i: (*(_weigh(name, settings[i]) for name in names), means[i], i)))


def list_simplifying(settings: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the hyperparameters in which settings differ and for which it is known what is simpler."""
    names = (name for name in SIMPLER if name in settings[0])
    return [name for name in names if len({str(setting.get(name)) for setting in settings}) > 1]


def _weigh(name: str, setting: Mapping[str, object]) -> float:
    """Return a number that is smaller for a simpler value; text, such as "sqrt", counts as 0."""
    value = setting[name]
    if value is None:  # no limit, or no penalty
        return inf
    size = sum(value) if isinstance(value, list | tuple) else value
    return SIMPLER[name] * float(size) if isinstance(size, int | float) else 0.0
