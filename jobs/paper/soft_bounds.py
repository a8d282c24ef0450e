"""Losses of a margin, and an upper confidence bound on the mean of losses in [0, 1], for ``losses``.

With the margin z = y f(x):

    ramp            clip((1 - z) / 2, 0, 1)
    clipped linear  clip(1 - z, 0, 1)

are the ramp losses min(1 - s, max(0, 1 - z)) / (1 - s) of Collobert et al. at s = -1 and s = 0. The bound
takes m losses of independent rows, in an order that must not depend on them, and fails with probability at
most delta.

References: Collobert, Sinz, Weston, Bottou, ICML 2006; Waudby-Smith, Ramdas, JRSS B 86, 2024. (Their package
confseq is published without wheels; this is their one-sided bound, in a few lines.)
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Values

HALVINGS = 50
CAP = 0.75  # share of the bet that could lose all capital; the authors suggest 1/2 and 3/4


def ramp(z: Values) -> Values:
    """Compute the ramp loss of margins, any shape: the probability that the random label is wrong."""
    return np.clip((1 - z) / 2, 0, 1)


def clipped_linear(z: Values) -> Values:
    """Compute the clipped linear loss of margins, any shape."""
    return np.clip(1 - z, 0, 1)


def betting(losses: Values, delta: float) -> Values:
    """Return an upper bound by betting on a small mean, (..., m) to (...), after Waudby-Smith and Ramdas.

    Against the hypothesis that the mean is u, the capital after t rows is prod_i<=t (1 + b_i (u - loss_i)),
    with b_i = min(sqrt(2 ln(1/delta) / (m s2_i)), CAP / (1 - u)) and s2_i an estimate of the variance from
    the rows before i. If the mean is u, the capital is a positive martingale: it ever reaches 1/delta with
    probability at most delta (Ville). It grows with u, so that a single crossing separates rejected values of
    u from the others.
    """
    level, m = np.log(1 / delta), losses.shape[-1]
    bets = np.sqrt(2 * level / (m * _variance_before(losses)))

    def rejected(u: Values) -> NDArray[np.bool_]:
        b = np.minimum(bets, (CAP / (1 - u))[..., None])
        capital = np.cumsum(np.log1p(b * (u[..., None] - losses)), axis=-1)
        return np.asarray(capital.max(axis=-1) >= level)

    return _crossing(rejected, np.zeros(losses.shape[:-1]), np.ones(losses.shape[:-1]))


def _variance_before(losses: Values) -> Values:
    """Compute, for each row, the variance of the rows before it and of a 1/2 with squared deviation 1/4."""
    rows = np.arange(2, losses.shape[-1] + 2)
    mean = (0.5 + np.cumsum(losses, axis=-1)) / rows
    variance = (0.25 + np.cumsum((losses - mean) ** 2, axis=-1)) / rows
    return np.concatenate([np.full_like(variance[..., :1], 0.25), variance[..., :-1]], axis=-1)


def _crossing(rejected: Callable[[Values], NDArray[np.bool_]], low: Values, high: Values) -> Values:
    """Find where ``rejected`` becomes true between low and high, elementwise, from above: the safe side."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        beyond = rejected(middle)
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return high
