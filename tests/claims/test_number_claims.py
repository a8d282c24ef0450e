"""What is claimed of predicted numbers: exact coverage, ties, infinite errors, copies, forgeries."""

from math import ceil

import numpy as np
import pytest
from claimed import REFIT, hold_out_rows, predict_held, read_again, run
from hypothesis import example, given
from hypothesis import strategies as st

from ckcv_ray import Result, Study, Task
from ckcv_ray.claims.numbers import Clipped, Within
from ckcv_ray.claims.quantity import Claim
from ckcv_ray.core.arrays import ONE
from ckcv_ray.core.bounds.betting import bound_mean_loss
from ckcv_ray.core.measures import ClippedErrors
from ckcv_ray.core.percent import format_number

N = 120
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 2))
Y = X @ [1.0, 2.0] + RNG.standard_t(2.5, N)
STUDY = Study.of(learner="ridge", param={"alpha": (0.1, 10.0)}, clip=4.0, k=(3,), n_splits=3)
HELD = STUDY.replace(certify="holdout", holdout_share=0.5, claim="refit,within:0.8")


@pytest.fixture(scope="module")
def held() -> Result:
    return run(HELD, Task.of(X, Y, numbers=True))


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_predictions_that_are_not_finite_prove_nothing_if_there_are_many(bad):
    problem = hold_out_rows(HELD.replace(claim="within:0.9"), Task.of(X, Y, numbers=True), range(60))
    one, all_of_them = (predict_held(problem, np.where(np.arange(60) < n, bad, Y[:60] + 1)) for n in (1, 60))
    (claim,), (nothing,) = (Within(0.9).claim(held, REFIT) for held in (one, all_of_them))
    assert (claim.bound, claim.errors, claim.rows) == (pytest.approx(1.0), 1, 60)
    assert nothing.bound is None
    assert nothing.statement.startswith("Nothing can be claimed for the error of 90 % of new rows of")
    assert nothing.limit == "any amount"


def test_numbers_are_shown_in_units_of_the_target(held):
    mean, within, *_ = held.certificate.claims
    assert float(mean.limit) == pytest.approx(4 * mean.bound, rel=1e-3)
    assert float(mean.limit) >= 4 * mean.bound
    assert within.says == f"at most {within.limit}"
    shown = {50.0: "50", 0.12345: "0.1235", 1234567.0: "1234567", 0.0: "0", 1e-7: "1e-07", 2.5: "2.5"}
    assert {value: format_number(value) for value in shown} == shown


def test_a_forged_certificate_of_numbers_is_refused(held):
    values = held.certificate.to_json()
    assert read_again(values, held).to_json() == values
    of_classes = {"claims": [values["claims"][0] | {"quantity": "error"}, values["claims"][1]]}
    without_clip = {"numbers": values["numbers"] | {"clip": 0.0}}
    for forged, words in (
        (of_classes, "the study has 2; these are of one side"),
        (without_clip, "^numbers is "),
    ):
        with pytest.raises(ValueError, match=words):
            read_again(values | forged, held)
    del values["numbers"]
    with pytest.raises(ValueError, match=r"^numbers is None"):
        read_again(values, held)


@given(st.integers(1, 60), st.floats(0.0, 1.0), st.floats(0.01, 0.3))
@example(14, 0.8966094887136224, 0.0625)  # where the bound falls faster than the loss rises
def test_the_contrary_of_a_mean_error_allows_for_losses_that_were_rounded_up(m, share, delta):
    """Were every true error smaller by all that rounding adds, what is refuted would still be false."""
    measure = ClippedErrors(1.0)
    losses = measure.measure_losses(np.zeros(m), np.full(m, share))
    measured = int(losses.sum()) / (ONE * m)
    claim = Claim(Clipped(1.0), "refit", 1.0, delta, "", measured=measured)
    least = Clipped(1.0).find_contrary(claim, m, True)
    exact = 1 - bound_mean_loss([ceil((1 - share) * m * ONE)], m, delta)
    assert least <= exact
