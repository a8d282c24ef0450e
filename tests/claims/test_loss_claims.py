"""What is claimed where rows have losses: of predicted numbers, of groups, and of weighted rows."""

from dataclasses import replace
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from claimed import REFIT, predict_held, run
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import parquet

from ckcv_ray import StoreError, Study, Task, load_run
from ckcv_ray.claims.certify import compute_baselines
from ckcv_ray.claims.error import Clipped, Within
from ckcv_ray.claims.quantity import Claim
from ckcv_ray.core.bounds.betting import bound_mean_loss
from ckcv_ray.core.measures import ClippedErrors
from ckcv_ray.study.problem import Problem
from ckcv_ray.validation import ONE

N = 120
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 2))
Y = X @ [1.0, 2.0] + RNG.standard_t(2.5, N)
NUMBERS = Task.of(X, Y, numbers=True)
HELD = Study.of(
    learner="ridge", param={"alpha": (0.1, 10.0)}, clip=4.0, k=(3,), n_splits=3,
    certify="holdout", holdout_share=0.5, claim="refit,within:0.8",
)  # fmt: skip


# Numbers


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_predictions_that_are_not_finite_prove_nothing_if_there_are_many(bad):
    problem = Problem.of(HELD.replace(claim="within:0.9"), NUMBERS)
    problem = replace(problem, task=problem.all_rows.take_part(np.arange(60, N)), held=np.arange(60))
    one, all_of_them = (predict_held(problem, np.where(np.arange(60) < n, bad, Y[:60] + 1)) for n in (1, 60))
    (claim,), (nothing,) = (Within(0.9).claim(held, REFIT) for held in (one, all_of_them))
    assert (claim.bound, claim.errors, claim.rows) == (pytest.approx(1.0), 1, 60)
    assert nothing.bound is None
    assert nothing.statement.startswith("Nothing can be claimed for the error of 90 % of new rows of")
    assert nothing.limit == "any amount"


@given(st.integers(1, 60), st.floats(0.0, 1.0), st.floats(0.01, 0.3))
@example(14, 0.8966094887136224, 0.0625)  # where the bound falls faster than the loss rises
def test_the_contrary_of_a_mean_error_allows_for_losses_that_were_rounded_up(m, share, delta):
    losses = ClippedErrors(1.0).measure_losses(np.zeros(m), np.full(m, share))
    claim = Claim(Clipped(1.0), "refit", 1.0, delta, "", measured=int(losses.sum()) / (ONE * m))
    exact = 1 - bound_mean_loss([ceil((1 - share) * m * ONE)], m, delta)
    assert Clipped(1.0).find_least(claim, m, True) <= exact


# Groups

SMALL = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4, 6), n_splits=5)


def test_the_constant_is_judged_by_groups_as_the_claims_are() -> None:
    """Nine rows of one group are of class 1; five groups of a row each, of class 0: most groups are of 0."""
    y, groups = np.repeat([1, 0, 1], [9, 5, 2]), [0] * 9 + [1, 2, 3, 4, 5] + [6, 6]
    task = Task.of(np.tile(np.arange(16.0), 2)[:, None], np.tile(y, 2), groups=np.array([*groups, *groups]))
    (baseline,) = compute_baselines(Problem.of(SMALL.replace(k=3), task))
    assert (baseline.predicted, baseline.errors, baseline.rows) == (0, 22, 32)
    assert baseline.error == pytest.approx(2 / 7)


# Weights


def test_weights_that_are_not_positive_are_no_judged_rows(tmp_path: Path) -> None:
    study = Study.of(learner="linear", k=(3,), n_splits=3, certify="holdout", claim="weighted_error:3")
    weights = np.where(X[:, 1] > 0.4, 3.0, 0.5)
    run(study, Task.of(X, Y > 0, sample_weight=weights), tmp_path / "run")
    file = tmp_path / "run" / "judged.parquet"
    table = parquet.read_table(file)
    weights = np.where(np.arange(len(table)) == 3, -1.0, table["weight"].to_numpy())
    place = table.column_names.index("weight")
    parquet.write_table(table.set_column(place, table.schema.field(place), [weights]), file)
    with pytest.raises(StoreError, match="weight has values that are not positive"):
        load_run(tmp_path / "run")
