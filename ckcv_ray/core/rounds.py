"""The rounds of a search within a budget: which candidates to compare next, given what is known of them.

Candidates are positions (fold size, path, step). What is computed of a path are its first steps, so a set of
candidates is written as the number of steps of each path, (n_paths,), by fold size. The effort of a set on
some splits is the number of its evaluations.

Plain functions of complete rounds: nothing here knows what else has been computed.
"""

from collections.abc import Mapping, Sequence
from math import ceil, inf
from typing import NamedTuple

import numpy as np

from ckcv_ray.core.arrays import Index, Values
from ckcv_ray.core.resampling.base import FoldSize
from ckcv_ray.core.schedule import Lengths, Transfer

MOST_ANCHORS = 3
ANCHORS_WEIGHT = 2.0  # effort of the last round but one, relative to one that compares settings
LAST_WEIGHT = 4.0  # effort of the last round


class SplitMean(NamedTuple):
    """What was computed of the candidates of a fold size."""

    values: Values  # mean over the splits that were, 0 without any, (n_paths, n_steps)
    splits: Index  # their number, (n_paths, n_steps)


class Round(NamedTuple):
    """What one round computes."""

    lengths: dict[int, Lengths]  # number of steps of each path, (n_paths,), by position of the fold size
    n_splits: dict[int, int]  # number of first splits, by position of the fold size


def count_kept(settings: int, keep: float, survivors: int) -> list[int]:
    """Return how many settings take part in each round that compares settings alone, all of them first."""
    counts = [settings]
    while (kept := ceil(keep * counts[-1])) > survivors and kept < counts[-1]:
        counts.append(kept)
    return counts


def weigh_rounds(screens: int) -> list[float]:
    """Return the effort of each round, relative to one that compares settings.

    Args:
        screens: number of rounds that compare settings; one more compares fold sizes, and the last is a race.
    """
    return [1.0] * screens + [ANCHORS_WEIGHT, LAST_WEIGHT]


def share_effort(left: float, screens: int, done: int) -> float:
    """Return the effort of the next round, a weighted share of what is left after those that are over."""
    weights = weigh_rounds(screens)
    return left * weights[done] / sum(weights[done:])


def keep_best(values: Values, most: int, order: Index) -> Lengths:
    """Return the paths up to the last of the best settings, as numbers of steps.

    Args:
        values: of settings, (n_paths, n_steps); inf where one is out of the question.
        most: number of settings to keep.
        order: the number by which equal settings are ordered first, (n_paths,): that of the learner.
    """
    lengths = np.zeros(len(values), np.intp)
    for path, step in rank([values], order)[:most, 1:]:
        lengths[path] = max(lengths[path], step + 1)
    return lengths


def rank(values: Sequence[Values], order: Index) -> Index:
    """Return the positions (size, path, step) of finite values, the smallest first, (candidates, 3).

    Of equal ones the learner that comes first, the smaller step, path, size come first.
    """
    stacked = np.stack(values)
    at = np.argwhere(np.isfinite(stacked))
    size, path, step = at.T
    best_first = np.lexsort((size, path, step, order[path], stacked[size, path, step]))
    return np.asarray(at[best_first])


def list_anchors(k: Sequence[int], open_sizes: Sequence[int], reported: Sequence[int]) -> list[int]:
    """Return positions of fold sizes that stand for all: evenly spaced in log k, and those reported.

    Args:
        k: number of folds of each fold size, ascending.
        open_sizes: positions of those that may win, ascending.
        reported: positions of those whose own best candidate is reported.
    """
    wanted = np.geomspace(k[open_sizes[0]], k[open_sizes[-1]], MOST_ANCHORS)
    nearest = [min(open_sizes, key=lambda j: (abs(k[j] - value), j)) for value in wanted]
    return sorted({*nearest, *reported})


def expect_values(
    settings: Values,
    means: Mapping[int, SplitMean],
    survivors: int,
    screened: int,
    sizes: Sequence[FoldSize],
    transfer: Transfer,
) -> list[Values]:
    """Return the values expected of every candidate, (n_paths, n_steps) for each fold size.

    On the splits that were not computed of a candidate, the error expected is that of its setting in one fold
    size and a + b / n_train with b >= 0, the same for all settings: a learning curve, fitted by least squares
    to what was computed, by units scored.

    Reference: Cortes, Jackel, Solla, Vapnik, Denker, "Learning curves: asymptotic values and rate of
    convergence", NIPS 1993.

    Args:
        settings: values of the settings in one fold size, (n_paths, n_steps); inf where one is out of the
            question.
        means: by position of the fold size, what was computed of it.
        survivors: number of the best settings to which the curve is fitted; others, which were computed on
            the way, may need far more rows.
        screened: the fold size of ``settings``.
        sizes: every fold size.
        transfer: returns the values expected in another size at the same error.
    """
    finite = np.isfinite(settings)
    filled = np.where(finite, settings, 1.0)
    differences, weights = np.zeros(len(sizes)), np.zeros(len(sizes))
    for j, (mean, splits) in means.items():
        if (both := finite & (splits > 0)).any():
            both &= filled <= np.sort(filled[both])[:survivors][-1]
            there = transfer(np.where(both, mean, 1.0), j, screened)
            differences[j] = np.mean((there - filled)[both])
            weights[j] = np.mean(splits[both]) * sizes[j].n_select
    typical = float(np.mean(np.sort(settings[finite])[:survivors])) if finite.any() else 0.0
    inverse = 1.0 / np.array([size.n_train for size in sizes])
    curve = fit_curve(inverse, differences, weights, typical * (1.0 - typical))
    expected = []
    for j, size in enumerate(sizes):
        value = transfer(np.clip(filled + curve[j], 0.0, 1.0), screened, j)
        if j in means:
            mean, splits = means[j]
            value = (splits * mean + (size.n_splits - splits) * value) / size.n_splits
        expected.append(np.where(finite, value, inf))
    return expected


def fit_curve(x: Values, y: Values, weights: Values, noise: float) -> Values:
    """Return a + b x with b >= 0 of least weighted squares, at every x; 0 if all weights are.

    b is shrunk by the share of its square that noise alone is expected to make (James-Stein).

    Args:
        x, y, weights: of the points, (n,).
        noise: variance of a point of weight 1.
    """
    if not weights.any():
        return np.zeros_like(x)
    centre, level = np.average(x, weights=weights), np.average(y, weights=weights)
    spread = float(np.sum(weights * (x - centre) ** 2))
    slope = float(np.sum(weights * (x - centre) * (y - level))) / spread if spread > 0 else 0.0
    if slope > 0:
        slope *= max(0.0, 1.0 - noise / spread / slope**2)
    return np.asarray(level + max(0.0, slope) * (x - centre))


def choose(
    expected: Sequence[Values],
    late: Sequence[Values],
    effort: float,
    n_splits: Sequence[int],
    order: Index,
    reported: Sequence[int],
) -> dict[int, Lengths]:
    """Return the candidates that look best, as many as an effort allows, as steps by fold size.

    At least one is returned, and one of every fold size that is reported.

    Args:
        expected: by fold size the values expected of its candidates, (n_paths, n_steps); inf for none.
        late: the same of candidates that come after all of these.
        effort: evaluations that may be computed.
        n_splits: number of splits of each fold size on which they will be.
        order: of learners; see ``keep_best``.
        reported: positions of the fold sizes that are reported.
    """
    ranked = [tuple(at) for values in (expected, late) for at in rank(values, order).tolist()]
    firsts = [next((at for at in ranked if at[0] == j), None) for j in reported]
    needed = [at for at in firsts if at is not None] or ranked[:1]
    lengths: dict[int, Lengths] = {}
    for i, (size, path, step) in enumerate([*needed, *ranked]):
        steps = lengths.get(size, np.zeros(len(order), np.intp))
        effort -= max(0, step + 1 - int(steps[path])) * n_splits[size]
        if effort < 0 and i >= len(needed):
            break
        steps[path] = max(steps[path], step + 1)
        lengths[size] = steps
    return lengths
