"""Algorithm 1 written as the paper's plain loop with scikit-learn, on the same splits, agrees in all."""

from itertools import product

import pytest
from alike import algorithm_1
from conftest import blobs

from ckcv_ray import Execution, Job, Study
from ckcv_ray.runs.run import run_job


@pytest.mark.parametrize(("seed", "scale"), [*product((0, 1), ("standard", "none"))])
def test_the_plain_loop_gives_the_same_answer(seed: int, scale: str) -> None:
    study = Study.paper(
        C=(0.1, 1.0, 10.0, 100.0),
        gamma=(0.01, 0.1, 1.0),
        k=(3, 4, 5, 10),
        n_splits=4,
        seed=seed,
        scale=scale,
        tolerance=1e-6,
    )
    task = blobs(60, d=3, seed=seed, shift=1.5)
    l_ms, winner, l_ee, counts = algorithm_1(study, task)
    result = run_job(Job(study, task), Execution("serial"))
    assert (result.setting["C"], result.setting["gamma"], result.k) == winner
    assert result.l_ms == pytest.approx(l_ms, rel=1e-12)
    assert result.l_ee == pytest.approx(l_ee, rel=1e-12)
    assert list(result.certificate.counts.errors) == counts


def test_the_conventional_rotation_gives_the_same_answer() -> None:
    study = Study.paper(
        C=(0.1, 1.0, 10.0), gamma=(0.01, 0.1, 1.0), k=(5, 7), resampling="rotation", tolerance=1e-6
    )
    task = blobs(62, d=3, shift=1.5)
    l_ms, winner, l_ee, counts = algorithm_1(study, task)
    result = run_job(Job(study, task), Execution("serial"))
    assert (result.setting["C"], result.setting["gamma"], result.k) == winner
    assert (result.l_ms, result.l_ee) == pytest.approx((l_ms, l_ee), rel=1e-12)
    assert list(result.certificate.counts.errors) == counts
    assert len(counts) == result.k
