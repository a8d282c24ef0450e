"""The weighted error, beside its contract: shares of its bound, and weights in a folder."""

from pathlib import Path

import numpy as np
import pytest
from claimed import run
from numpy.typing import NDArray
from pyarrow import parquet

from ckcv_ray import Study, Task, load_run
from ckcv_ray.core.bounds.betting import bound_by_betting
from ckcv_ray.errors import InputError, StoreError

RNG = np.random.default_rng(34)
N = 160
X = RNG.normal(size=(N, 3))
Y = (X[:, 0] + 0.7 * RNG.normal(size=N) > 0).astype(int)
WEIGHTS = np.where(X[:, 1] > 0.4, 3.0, 0.5)
TASK = Task.of(X, Y, sample_weight=WEIGHTS)
STUDY = Study.of(
    learner="linear", k=(3,), n_splits=3, certify="holdout", holdout_share=0.5, claim="refit,weighted_error:3"
)


# The bound


@pytest.mark.parametrize("shares", [np.ones(3), np.full(4, 1.1), np.full(4, -0.1), np.zeros(4), [np.nan] * 4])
def test_shares_are_one_for_each_loss_from_0_to_1(shares: NDArray[np.float64]) -> None:
    with pytest.raises(InputError, match="expected one for each of 4 losses, from 0 to 1 and not all 0"):
        bound_by_betting(np.zeros(4), 0.05, shares)


# Its folder


def test_weights_that_are_not_positive_are_no_judged_rows(tmp_path: Path) -> None:
    run(STUDY, TASK, tmp_path / "run")
    file = tmp_path / "run" / "judged.parquet"
    table = parquet.read_table(file)
    weights = np.where(np.arange(len(table)) == 3, -1.0, table["weight"].to_numpy())
    place = table.column_names.index("weight")
    parquet.write_table(table.set_column(place, table.schema.field(place), [weights]), file)
    with pytest.raises(StoreError, match="weight has values that are not positive"):
        load_run(tmp_path / "run")
