"""The simulation of many workers: every fit is made once, and the driver's costs are paid by the clock."""

import pytest
from conftest import blobs

from ckcv_ray import Study
from ckcv_ray.study.problem import Problem
from jobs.benchmarks.simulate import Costs, MadeUp, measure, simulate

NOTHING = Costs(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@pytest.fixture(scope="module")
def made_up() -> MadeUp:
    study = Study.of(C=(0.1, 1.0), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=40, scale="none", exhaustive=True)
    return measure(Problem.of(study, blobs(24)))


@pytest.mark.parametrize("workers", [1, 7, 100])
def test_every_fit_is_made_once_and_no_worker_works_more_than_there_is_time(
    made_up: MadeUp, workers: int
) -> None:
    found = simulate(made_up, workers, NOTHING)
    assert found.fits == made_up.problem.n_evaluations
    assert 0 < found.work <= workers * found.seconds


@pytest.mark.parametrize("name", Costs._fields)
def test_each_cost_is_paid(made_up: MadeUp, name: str) -> None:
    """A minute each, beside which what the queue takes is nothing."""
    found = simulate(made_up, 3, NOTHING._replace(**{name: 60.0}))
    assert found.seconds > 60.0
    if name == "transfer":
        assert found.driver < 60.0
    else:
        assert found.driver >= 60.0
    if name in ("submit", "fetch"):
        assert found.driver >= 60.0 * found.batches
