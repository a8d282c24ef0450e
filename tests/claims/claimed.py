"""What the tests of claims share: a small study, and runs of it in this process."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckcv_ray import Execution, Job, Result, Study, Task
from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.certify import check_certificate
from ckcv_ray.claims.quantity import HeldOutPredictions
from ckcv_ray.claims.rules import Rule
from ckcv_ray.learners.ensemble import Ensemble, Models, Prediction
from ckcv_ray.runs.run import run_job
from ckcv_ray.study.problem import Problem

SMALL = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), n_splits=5)
REFIT = Rule("refit")


def run(study: Study, task: Task, out: Path | None = None) -> Result:
    """Run a study in this process."""
    return run_job(Job(study, task, out), Execution("serial"))


def read_again(values: dict[str, Any], result: Result) -> Certificate:
    """The certificate of a result as it is read from its file, with these values in it."""
    certificate = Certificate.from_json(json.loads(json.dumps(values)))
    check_certificate(certificate, result.problem, result.candidates, result.models)
    return certificate


def predict_held(
    problem: Problem, label: NDArray[Any], score: NDArray[Any] | None = None
) -> HeldOutPredictions:
    """The held-out rows as judged by the model refit, which does not exist: only its predictions do."""
    held, rows = HeldOutPredictions(problem, Models(Ensemble(()))), len(label)
    score = label.astype(float) if score is None else score
    held.make_once(REFIT, lambda: Prediction(label, np.full(rows, -1), score, np.ones(rows)))
    return held
