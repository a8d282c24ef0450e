"""Stevens' bound on one count without a number that is drawn: from the positions of the wrong rows.

Let h independent rows be in an order that is drawn without regard to them, and x of them be wrong. Given x,
each of the C(h, x) sets of positions is equally likely, whatever the risk p. Number these sets from 1; with
the number of the set that occurred,

    V = number / C(h, x)

is uniform on 1 / C(h, x), .. 1 given x: P(V <= v) <= v for every v. Stevens' bound increases with v, so with
V it fails no more often than with a uniform draw, which is with probability delta (``binomial.stevens``).
The larger C(h, x), the closer V is to uniform; without an error V is 1, which gives Clopper-Pearson.

The sets are numbered in colexicographic order: with positions c_1 < .. < c_x, counted from 0, the number is
1 + C(c_1, 1) + .. + C(c_x, x) (Knuth, The Art of Computer Programming 4A, section 7.2.1.3).
"""

from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.bounds.binomial import stevens

Wrong = NDArray[np.bool_]
SHARPEST = 1 << 60  # V is rounded up once what is left of it is a smaller part than 1 / SHARPEST


def bound_in_order(wrong: Wrong, delta: float) -> float:
    """Compute Stevens' upper bound with V from the positions of the wrong rows.

    Args:
        wrong: whether each row is wrong, (h,), in an order that is drawn without regard to the rows.
        delta: allowed failure probability of the bound.

    Returns:
        A float in (0, 1]; 1 for no rows.
    """
    x, h = int(np.sum(wrong)), len(wrong)
    return float(stevens(x, h, rank_positions(wrong), delta))


def rank_positions(wrong: Wrong) -> float:
    """Compute V: the number of the set of positions of the wrong rows, divided by that of all such sets.

    The integers are exact. Once the positions that are left change V by less than 1 / ``SHARPEST``, V is
    rounded up: never too small, it keeps the bound valid.
    """
    positions: list[Any] = np.flatnonzero(wrong).tolist()
    sets, below = comb(len(wrong), len(positions)), 0
    for i in range(len(positions), 0, -1):
        below += comb(positions[i - 1], i)
        left = comb(positions[i - 1], i - 1)  # sets with the same last positions
        if left * SHARPEST < sets:
            return (below + left) / sets
    return (below + 1) / sets
