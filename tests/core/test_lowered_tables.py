"""Tables of claims: lowered as far as the condition allows, and U on the first split."""

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import binom
from test_joint_laws import DELTA, Pair, counts, risks, worst

from ckcv_ray.core.bounds.averaging import FINENESS, MOST_LOWERED, lower_table, satisfies
from ckcv_ray.core.bounds.binomial import (
    average_terms,
    best_prefix,
    bound_claim,
    compute_credit,
    safe_table,
    smallest_mean,
    tabulate_claim,
)
from ckcv_ray.core.bounds.losses import ONE, best_loss_prefix, bound_loss_claim, concave_table, loss_method

CELLS = [(5, 0.05), (20, 0.05), (33, 1e-3), (66, 0.05), (66, 1e-6), (133, 0.05), (200, 0.01), (10, 1e-9)]


def expectation(A: np.ndarray, lam: float, p: np.ndarray) -> np.ndarray:
    """The left side of the condition at each p, by scipy's weights."""
    f = binom.pmf(np.arange(len(A)), len(A) - 1, p[:, None])
    return np.vecdot(f, np.maximum(0, 1 - lam * (A - p[:, None])))


@pytest.mark.parametrize(("m", "delta"), CELLS)
def test_a_lowered_table_satisfies_the_condition_and_is_nowhere_above_the_one_before(m, delta):
    A, lam = tabulate_claim(m, delta)
    before = safe_table(m, delta)
    assert satisfies(A, lam, delta)
    edges = np.concatenate([A, A - 1 / lam, A + 1e-9])
    p = np.union1d(np.linspace(0, 1, 2001), edges[(edges >= 0) & (edges <= 1)])
    assert expectation(A, lam, p).max() <= delta
    assert np.all(np.diff(A) >= 0)
    assert np.all(before + FINENESS >= A)
    assert np.any(before - FINENESS > A)
    assert np.all(np.rint(A / FINENESS) == A / FINENESS)


@pytest.mark.parametrize(
    ("m", "gains"),
    [
        (20, (1.7, 1.2, 0.7, 0.2)),
        (33, (1.1, 0.8, 0.5, 0.2)),
        (66, (0.5, 0.35, 0.25, 0.1)),
        (133, (0.08, 0.1, 0.1, 0.06)),
    ],
)
def test_it_gains_what_the_design_study_found(m, gains):
    """In points of percent, at risks of .02, .05, .1, .2."""
    lower = safe_table(m, 0.05) - tabulate_claim(m, 0.05).A
    found = [100 * binom.pmf(np.arange(m + 1), m, p) @ lower for p in (0.02, 0.05, 0.1, 0.2)]
    np.testing.assert_allclose(found, gains, atol=0.06)


def test_the_lowest_bounds_cannot_be_lowered_further():
    """Each of the lowest bounds alone, lowered by a thousandth, breaks the condition."""
    A, lam = tabulate_claim(20, 0.05)
    for x in range(3):
        lower = A.copy()
        lower[x] -= 1e-3
        assert not satisfies(lower, lam, 0.05)


def test_what_cannot_be_lowered_stays():
    m = MOST_LOWERED + 1
    large = safe_table(m, 0.05)
    assert lower_table(large, 70.0, 0.05) is large
    unsafe = np.zeros(11)
    assert lower_table(unsafe, 10.0, 0.05) is unsafe
    assert tabulate_claim(1, 1e-9) == (pytest.approx(np.ones(2)), np.inf)
    assert bound_claim("safe", [0], 1, 1e-9, u=0.2) == 1.0


@pytest.mark.parametrize("n_splits", [2, 3])
def test_all_prefixes_of_lowered_bounds_hold_together(n_splits):
    A = tabulate_claim(3, DELTA).A

    def fails(splits: Sequence[Pair]) -> bool:
        return bool(np.any(np.cumsum([A[x] - p for p, x in splits]) < 0))

    largest = worst(fails, counts(3, risks(A, n_splits, others=3)), n_splits, exchangeable=True)
    assert 0.1 * DELTA < largest <= DELTA


# U on the first split


def fail_with_u(A: np.ndarray, lam: float, splits: Sequence[Pair]) -> float:
    """The probability over U that some prefix fails, that of one split with U."""
    slack = np.cumsum([A[x] - p for p, x in splits])
    p, x = splits[0]
    return 1.0 if np.any(slack < 0) else float(np.clip(1 - lam * (A[x] - p), 0, 1))


@pytest.mark.parametrize(("n_splits", "m"), [(1, 3), (1, 4), (2, 3), (2, 4), (3, 3)])
def test_with_u_on_the_first_all_prefixes_hold_under_any_exchangeable_law(n_splits, m):
    """A linear program over the joint laws of splits; U is summed exactly."""
    A, lam = tabulate_claim(m, DELTA)
    laws = counts(m, risks(A, min(n_splits, 2), others=3))
    largest = worst(lambda splits: fail_with_u(A, lam, splits), laws, n_splits, exchangeable=True)
    assert 0.5 * DELTA < largest <= DELTA * (1 + 1e-9)


@pytest.mark.parametrize("u", [0.0, 0.3, 1.0])
def test_u_lowers_the_first_bound_alone(u):
    A, lam = tabulate_claim(20, 0.05)
    assert bound_claim("safe", [2], 20, 0.05, u) == pytest.approx(A[2] - (1 - u) / lam)
    assert bound_claim("safe", [2, 2], 20, 0.05, u) == A[2]
    assert best_prefix("safe", [2, 2], 20, 0.05, u).length == (2 if u == 1 else 1)
    assert best_prefix("safe", [4, 0], 20, 0.05, u).length == 2
    assert compute_credit(0.5, np.inf) == 0
    assert average_terms([0.01], credit=0.5) == 0.0
    assert smallest_mean([0.5, 0.3, 0.4], credit=0.2) == 1
    assert smallest_mean([0.5, 0.3, 0.45]) == 2


@pytest.mark.parametrize("u", [0.2, 1.0])
def test_u_lowers_the_first_bound_on_losses(u):
    m = 40
    assert loss_method(m, 0.05, claimed=True) == "safe"
    A, lam = concave_table(m, 0.05, claimed=True), tabulate_claim(m, 0.05).lam
    assert bound_loss_claim([3 * ONE], m, 0.05, u) == pytest.approx(A[3] - (1 - u) / lam)
    assert best_loss_prefix([3 * ONE] * 2, m, 0.05, u).length == (2 if u == 1 else 1)


def test_catonis_bound_makes_no_use_of_u():
    assert best_prefix("catoni", [3, 4], 40, 0.05, 0.1) == best_prefix("catoni", [3, 4], 40, 0.05)
    assert loss_method(6_000, 0.05, claimed=True) == "catoni"
    assert best_loss_prefix([ONE], 6_000, 0.05, 0.1) == best_loss_prefix([ONE], 6_000, 0.05)


def test_losses_of_claims_are_bounded_by_the_majorant_of_the_lowered_table():
    majorant, A = concave_table(30, 0.05, claimed=True), tabulate_claim(30, 0.05).A
    assert np.all(majorant >= A)
    assert np.all(np.diff(majorant, 2) <= 1e-12)
    assert np.all(majorant <= concave_table(30, 0.05) + FINENESS)
