"""Runs on groups of related rows: the harm without groups, and what is fitted and counted."""

from typing import Any

import numpy as np
import pytest
from conftest import blobs

from ckcv_ray import Execution, Job, Study, Task, run
from ckcv_ray.core.schedule import Stage
from ckcv_ray.engine.evaluate import share
from ckcv_ray.learners.ensemble import judge
from ckcv_ray.learners.svm import blocks
from ckcv_ray.runs.run import run_job
from ckcv_ray.study.problem import Problem

SERIAL = Execution("serial")
RNG = np.random.default_rng(np.random.SeedSequence(4))
GROUPS = RNG.permutation(np.repeat(np.arange(24), RNG.integers(1, 5, size=24)))
N = len(GROUPS)
TASK = Task.of(blobs(N).X, blobs(N).y, groups=GROUPS)
SMALL = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4, 6), n_splits=4, report_k=4)


def test_a_mean_error_is_that_of_the_groups() -> None:
    certificate = run_job(Job(SMALL.replace(criterion="mean_error"), TASK), SERIAL).certificate
    assert certificate.groups is not None
    losses = np.array(certificate.groups["losses"])
    assert certificate.l_ee == pytest.approx(np.mean(losses / certificate.n_select), rel=1e-12)
    assert certificate.l_ee == pytest.approx(certificate.error, rel=1e-12)
    assert "a group, each group counted once" in certificate.statements[0]
    assert "of a new group's rows" in certificate.first.statement


# What groups are for


# Learners


@pytest.mark.parametrize("scale", ["standard", "none"])
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "points"])
def test_compiled_losses_are_those_of_the_models(scale: str, dense: bool, monkeypatch: Any) -> None:
    if not dense:
        monkeypatch.setattr(blocks, "DENSE_BYTES", 0)
    problem = Problem.of(SMALL.replace(scale=scale), TASK)
    inputs = share(problem)
    for j, size in enumerate(problem.sizes):
        for number in range(size.n_splits):
            train, score = problem.rows(Stage.SELECT, j, number)
            measure = problem.measure(TASK.row_units[score])
            block = problem.learner.trainer.prepare(inputs.shared, train, score)
            for path, length in enumerate(problem.learner.space.lengths):
                fits = block.fit(path, length)
                models = [fits.model(step) for step in range(length)]
                expected = [judge(m, TASK.X[score], TASK.y[score], measure, 2) for m in models]
                assert fits.totals(measure).tolist() == [list(totals) for totals in expected]


def test_training_sets_of_one_class_are_fitted() -> None:
    """Where groups are of one class and few, some training sets lack the other."""
    groups = np.repeat(np.arange(7), [2, 2, 2, 2, 2, 2, 8])
    y = (groups == 6).astype(int)
    X = RNG.normal(size=(len(groups), 2)) + 3 * y[:, None]
    result = run(SMALL.replace(report_k=(), k=3), X, y, groups=groups, execution=SERIAL)
    splits = [result.problem.split(0, i).train for i in range(4)]
    assert any(len(set(result.task.y[train])) == 1 for train in splits)
    assert result.certificate.provisional is False
