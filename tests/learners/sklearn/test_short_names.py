"""Every short name is run, stored, verified and used on three classes; and how fits end is counted."""

from pathlib import Path

import numpy as np
import pytest
from learner_contract import clouds

from ckcv_ray import Execution, Study, load_run, verify
from ckcv_ray.learners.base import STATUSES, Status
from ckcv_ray.learners.sklearn.named import MLP, NAMED
from ckcv_ray.runs.run import Job, run_job

TASK = clouds(60, 3)
SERIAL = Execution("serial")
SMALL = {"boosting": "max_iter=2,4", "forest": "n_estimators=2,4", "extra_trees": "n_estimators=2,4"}


@pytest.mark.parametrize("name", [learner.name for learner in NAMED])
def test_a_short_name_is_run_and_verified(name: str, tmp_path: Path) -> None:
    study = Study.of(learner=name, param=SMALL.get(name), sample=2, k=(3,), n_splits=2)
    result = run_job(Job(study, TASK, tmp_path / "run"), SERIAL)
    assert result.execution["failures"] == []
    assert verify(tmp_path / "run", refit=1, execution=SERIAL).differences == []
    again = load_run(tmp_path / "run")
    voted = (one.ensemble.vote(TASK.X).label for one in (again, result))
    assert np.array_equal(*voted)


def test_a_fit_that_did_not_converge_is_counted() -> None:
    learner = MLP({"alpha": 0.01, "hidden_layer_sizes": [[4]], "max_iter": (2, 1000), "tol": 0.01})
    block = learner.prepare(learner.share(TASK), np.arange(30), np.arange(30, 60))
    ends = [block.fit(path, 1) for path in range(2)]
    assert [STATUSES[fits.status[0]] for fits in ends] == [Status.NOT_CONVERGED, Status.CONVERGED]
    assert ends[0].n_iter[0] == 2 < ends[1].n_iter[0]
