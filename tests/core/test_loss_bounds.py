"""Bounds on losses in [0, 1]: concave, between counts, valid for any distribution of the losses."""

from itertools import product

import numpy as np
import pytest

from ckcv_ray.core.bounds.betting import average_safe, bound_mean_loss, choose_loss_method, make_concave_table
from ckcv_ray.core.bounds.binomial import MAX_CHECKED, catoni, find_safe_level, make_safe_table
from ckcv_ray.validation import ONE

SIZES = [1, 2, 7, 33, 133, 850, 6_000]


@pytest.mark.parametrize("m", SIZES)
def test_the_method_depends_on_m_and_delta_alone_and_is_the_smaller_at_a_tenth(m: int) -> None:
    name = choose_loss_method(m, 0.05)
    other = catoni(0.1, m, 0.05)
    if name == "safe":
        assert bound_mean_loss([round(0.1 * m * ONE)], m, 0.05) <= other + 1e-9
    elif m <= 5_000 and find_safe_level(m, 0.05) is not None:
        assert np.interp(0.1 * m, np.arange(m + 1), make_concave_table(m, 0.05)) > other


@pytest.mark.parametrize("m", SIZES)
def test_whole_losses_are_counts(m: int) -> None:
    counts = [0, m // 3, m // 2, m]
    safe = 1.0 if m > MAX_CHECKED else min(1.0, float(make_safe_table(m, 0.05)[counts].mean()))
    expected = safe if choose_loss_method(m, 0.05) == "safe" else catoni(sum(counts) / (4 * m), m, 0.05)
    assert bound_mean_loss([c * ONE for c in counts], m, 0.05) == pytest.approx(expected, abs=1e-12)
    bounds = [bound_mean_loss([total], m, 0.05) for total in range(0, m * ONE + 1, m * ONE // 64)]
    assert 0 < bounds[0] <= bounds[-1] <= 1
    assert bounds == sorted(bounds)
    assert average_safe(counts, m, 0.05) == pytest.approx(safe, abs=1e-12)


@pytest.mark.parametrize("values", [(0.0, 0.5), (0.0, 0.25, 1.0), (0.3, 0.7), (0.0, 0.01, 1.0)])
@pytest.mark.parametrize("m", [3, 6])
def test_the_bound_holds_exactly_for_independent_losses(values: tuple[float, ...], m: int) -> None:
    """The probability of failure, a finite sum over all tuples of losses, for many distributions."""
    drawn = np.array(list(product(range(len(values)), repeat=m)))
    totals = np.array([round(value * ONE) for value in values])[drawn].sum(axis=1).tolist()
    bounds = np.array([bound_mean_loss([total], m, 0.05) for total in totals])
    rng = np.random.default_rng(0)
    for _ in range(30):
        weights = rng.dirichlet(np.full(len(values), 0.5))
        assert np.prod(weights[drawn], axis=1)[bounds < weights @ values].sum() <= 0.05
