"""What the tests of claims share: a small study, and runs of it in this process."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ckcv_ray import Execution, Job, Result, Study, Task
from ckcv_ray.claims.quantity import Claim
from ckcv_ray.engine.loop import Stop
from ckcv_ray.runs.run import never, run_job

SMALL = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), n_splits=5)


def run(study: Study, task: Task, out: Path | None = None, stop: Stop = never) -> Result:
    """Run a study in this process."""
    return run_job(Job(study, task, out), Execution("serial"), stop)


def changed(task: Task, y: NDArray[np.int32], X: NDArray[np.float64] | None = None) -> Task:
    """The task with other class numbers, and other inputs where they are given; the draws are the same."""
    return replace(Task.of(task.X if X is None else X, task.labelled(y)), salt=task.salt)


def make_claim(quantity: str, bound: float, label: str | None = None) -> Claim:
    """A claim about the model refit of which nothing is said but this."""
    unsaid = {"errors": None, "rows": None, "delta": 0.05, "statement": ""}
    named = {"quantity": quantity, "label": label, "certification": "holdout", "classifier": "refit"}
    return Claim(**named, bound=bound, **unsaid)
