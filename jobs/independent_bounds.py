"""The bounds of a certificate, written a second time for ``jobs/check_certificate.py`` with numpy alone.

U(x; m) is the Clopper-Pearson bound after x wrong of m rows, by bisection on a sum of binomial weights.
A(x; m), which may be averaged over splits, is made from U at the largest eleven-bit level with

    E max(0, 1 - lam (A(X) - p)) <= delta,    X ~ Bin(m, p), for some lam > 0 and every p

(docs/theory/bounds.md has the proofs). Nothing here is shared with the package, whose bounds come from scipy.
"""

from bisect import bisect_left
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from math import comb, exp, fsum, ldexp, lgamma, log, log2, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = 5_000  # the largest m that A is made for
Array = NDArray[Any]
log_factorial = np.vectorize(lambda n: lgamma(n + 1), otypes=[float])


def bound_count(x: Any, m: Any, delta: float, v: Any = 1.0) -> Array:
    """Return the p with F(x - 1; p) + v f(x; p) = delta, by bisection: U(x; m), or for v < 1 Stevens' bound.

    Args:
        x, m: wrong rows, and all rows.
        delta: probability that the bound fails.
        v: 1, or draws from (0, 1).
    """
    x, m, v = np.broadcast_arrays(*(np.asarray(values, float) for values in (x, m, v)))
    choose = log_factorial(m) - log_factorial(x) - log_factorial(m - x)
    low, high = np.where(delta < 0.5, np.maximum(x - 1, 0) / np.maximum(m, 1), 0.0), np.ones(x.shape)
    for _ in range(64):
        p, term, total, left = (low + high) / 2, np.ones(x.shape), v.copy(), x.copy()
        with np.errstate(all="ignore"):
            while np.any((left > 0) & (term > 1e-20 * total)):
                term = term * left / (m - left + 1) * (1 - p) / p  # for the count left - 1, relative to x
                total, left = total + term, np.maximum(left - 1, 0)
            F = np.exp(choose + x * np.log(p) + (m - x) * np.log1p(-p)) * total
        above = np.nan_to_num(F, nan=1.0, posinf=1.0) > delta
        low, high = np.where(above, p, low), np.where(above, high, p)
    return np.where((m == 0) | ((x == m) & (v == 1)), 1.0, high)


def value_loss(x: float, m: int, delta: float) -> float:
    """Return the p with I_p(x + 1, m - x) = 1 - delta, by bisection: U(x; m) at a total loss of x.

    The integral is the hypergeometric series of I_q(m - x, x + 1) at q = 1 - p, whose terms are positive.
    """
    if x >= m:
        return 1.0
    left, n, (low, high) = m - x, np.arange(200 * m), (0.0, 1.0)
    scale = lgamma(m + 1) - lgamma(x + 1) - lgamma(left + 1)
    for _ in range(52):
        p = (low + high) / 2
        terms = np.cumprod((m + 1 + n) / (left + 1 + n) * (1 - p))
        F = exp(scale + left * log(1 - p) + (x + 1) * log(p)) * (1 + float(terms.sum()))
        low, high = (p, high) if delta < F else (low, p)
    return high


@cache
def tabulate(m: int, delta: float) -> Array:
    """Return U(0; m), .. U(m; m)."""
    return bound_count(np.arange(m + 1), m, delta)


@cache
def find_table(m: int, delta: float) -> Array | None:
    """Return A(.; m) of the largest level, from delta / 100, that is safe; None if no level is.

    Args:
        m: rows of each split.
        delta: probability that the mean of such bounds is below the mean risk.
    """
    x, points = np.arange(m + 1), list_points(m)

    @cache
    def make_table(level: float) -> tuple[Array, float]:
        """Return A at a level, and the lam with the least expectation at its worst point; it is convex."""
        A = x / m + np.maximum.accumulate(tabulate(m, level) - x / m)
        low, high = log(1e-3), log(1 / level + 10 * (m + 1))
        for _ in range(24):
            middle = (low + high) / 2
            rises = expect(A, exp(middle), points, at_points)[1] >= 0
            low, high = (low, middle) if rises else (middle, high)
        return A, exp(high)

    at_points, first = weigh(m, points), max(0, int(-log2(delta)) - 1)
    grid = [ldexp(i, -11 - e) for e in range(first, first + 10) for i in range(2048, 1024, -1)]
    levels = [level for level in grid if max(delta / 100, 1e-100) < level <= delta]
    likely = bisect_left(levels, True, key=lambda level: is_safe(*make_table(level), delta, 0))
    return next(
        (make_table(level)[0] for level in levels[likely:] if is_safe(*make_table(level), delta, 8)), None
    )


def list_points(m: int) -> Array:
    """Return the points p at which tables are compared."""
    fine = np.linspace(0, min(7 / sqrt(m), pi / 2), 672)
    return np.sin(np.union1d(np.linspace(0, pi / 2, max(512, min(2048, 500_000 // m))), fine)) ** 2


def weigh(m: int, p: Array) -> Array:
    """Return the binomial weights of 0 .. m for each p."""
    x, q = np.arange(m + 1), np.clip(p, 1e-300, 1 - 1e-16)[:, None]
    choose = lgamma(m + 1) - log_factorial(x) - log_factorial(m - x)
    return np.asarray(np.exp(choose + x * np.log(q) + (m - x) * np.log1p(-q)))


def expect(A: Array, lam: float, p: Array, weights: Array) -> tuple[Array, float]:
    """Return E max(0, 1 - lam (A(X) - p)) at each p, and the derivative of the largest by lam."""
    loss = 1 - lam * (A - p[:, None])
    G = np.sum(weights * np.maximum(loss, 0), axis=1)
    worst = np.argmax(G)
    return G, float(np.sum((weights[worst] * (p[worst] - A))[loss[worst] > 0]))


def is_safe(A: Array, lam: float, delta: float, rounds: int) -> bool:
    """Return whether a table is safe on the points and, in ``rounds``, on others closer to the peaks."""
    m, p = len(A) - 1, list_points(len(A) - 1)
    peak = float((G := expect(A, lam, p, weigh(m, p))[0]).max())
    for past in range(rounds):
        tops = np.argsort(G)[-40 if past or m > 200 else 0 :]
        p = np.unique(np.linspace(p[np.maximum(tops - 1, 0)], p[np.minimum(tops + 1, len(p) - 1)], 9))
        peak = max(peak, float((G := expect(A, lam, p, weigh(m, p))[0]).max()))
    return peak <= delta * (1 - 1e-9 * (rounds > 0))


def rank(wrong: Array) -> float:
    """Return the number of the set of positions of the wrong rows, divided by the number of all sets."""
    positions = np.flatnonzero(wrong).tolist()
    number = 1 + sum(comb(c, i) for i, c in enumerate(positions, start=1))
    return float(Fraction(number, comb(len(wrong), len(positions))))


def cover(table: Array) -> Array:
    """Return the least concave function that is at least a table."""
    x = at = np.arange(len(table))
    while np.any(bent := np.diff(np.diff(table[at]) / np.diff(at)) >= 0):
        at = np.delete(at, np.flatnonzero(bent) + 1)
    return np.maximum(table, np.interp(x, at, table[at]))


def bound_safe(losses: Any, m: int, delta: float, shares: bool) -> float:
    """Return the bound on the mean risk from A; 1 where there is none.

    Args:
        losses: wrong rows of each split; with ``shares`` sums of losses in [0, 1].
        m: rows, or groups, of each split.
        delta: probability that the bound fails.
        shares: see above.
    """
    A = find_table(m, delta) if 1 <= m <= MOST else None
    if A is None:
        return 1.0
    A = cover(A) if shares else A
    return min(1.0, fsum(np.interp(losses, np.arange(m + 1), A)) / len(losses))


def share_delta(ks: Iterable[int], k: int, settings: int) -> float:
    """Return the share of delta of a candidate: 1 / settings, times the share of k among numbers of folds.

    Args:
        ks: the smallest number of folds of each fold size.
        k: that of the candidate.
        settings: all settings of its learner, times the number of learners.
    """
    total = sum(-(-(1 << 128) // ((other - 2) * (other - 1))) for other in ks)
    return float(Fraction(1 << 128, total * settings * (k - 2) * (k - 1)))


def count_copies(
    columns: dict[str, Any], y: Array, units: Array, stored: int, judged: set[int]
) -> tuple[int, int]:
    """Return the rows that equal another (of another unit), and the judged units that are not new.

    These are all that equal an unjudged one, and all but one of others that are equal.

    Columns that number or name the rows, in which all values differ, are not compared.

    Args:
        columns: features by name, each (n,), with None or nan for a gap.
        y: class of each row.
        units: number of each row's unit: of the row, or of its group.
        stored: the number of such rows that the folder has. If it is 0, whole numbers that all differ may
            not be row numbers: their name decides.
        judged: the units held out; all units if none are.
    """
    values = [tuple(None if x != x else x for x in column) for column in columns.values()]
    distinct = [column for column in values if len(set(column)) == len(column)]
    rows = list(zip(*(column for column in values if column not in distinct), y.tolist(), strict=True))
    numbers = any(isinstance(x, float) and x % 1 for column in distinct for x in column)
    if numbers or len(rows[0]) == 1 or (distinct and not stored):
        return 0, 0
    units_of_row: dict[Any, set[int]] = {row: set() for row in rows}
    for row, unit in zip(rows, units.tolist(), strict=True):
        units_of_row[row].add(unit)
    parts = [found for found in units_of_row.values() if len(found) > 1]
    for found in parts[:] if len(set(units.tolist())) < len(units) else []:
        touching = [part for part in parts if part & found]
        parts = [part for part in parts if not part & found] + [found.union(*touching)]
    return sum(len(units_of_row[row]) > 1 for row in rows), sum(
        len(part & judged) - (part <= judged) for part in parts
    )
