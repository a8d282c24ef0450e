"""Model selection with a certificate: complete k-fold cross validation in which k itself is tuned."""

from typing import Any

from ckcv_ray.core.bounds import clopper_pearson
from ckcv_ray.core.criteria import Balanced, MeanBound, MeanCost, MeanError
from ckcv_ray.core.divisions import (
    Bootstrap,
    DrawnFolds,
    KFold,
    LearningCurve,
    LeaveOneOut,
    LeavePOut,
    RepeatedKFold,
    SingleSplit,
    Subsampling,
)
from ckcv_ray.core.named_divisions import NestedSplits, Splits
from ckcv_ray.core.resampling import Complete, Rotation
from ckcv_ray.data.task import Task, TestRows, read_task
from ckcv_ray.engine.forecast import Plan, plan
from ckcv_ray.engine.progress import Progress
from ckcv_ray.errors import CKCVError, InputError, RunError, StoreError
from ckcv_ray.learners import Choice
from ckcv_ray.learners.sklearn import AnyEstimator, trust
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.reports import report
from ckcv_ray.runs.assessed import Assessed
from ckcv_ray.runs.load import load_run, load_scores
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.run import Job, assess, evaluate, run, run_many
from ckcv_ray.runs.verification import Verification
from ckcv_ray.runs.verify import verify
from ckcv_ray.study import All, Execution, Holdout, Inner, Nested, Occam, Race, Study
from ckcv_ray.version import VERSION


def __getattr__(name: str) -> Any:
    """Import on request what needs scikit-learn, which takes a second."""
    if name != "CKCVClassifier":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ckcv_ray.estimator import CKCVClassifier

    return CKCVClassifier


__version__ = VERSION
__all__ = [
    "All",
    "AnyEstimator",
    "Assessed",
    "Balanced",
    "Bootstrap",
    "CKCVClassifier",
    "CKCVError",
    "Choice",
    "Complete",
    "DrawnFolds",
    "Execution",
    "GaussianSVM",
    "Holdout",
    "Inner",
    "InputError",
    "Job",
    "KFold",
    "LearningCurve",
    "LeaveOneOut",
    "LeavePOut",
    "MeanBound",
    "MeanCost",
    "MeanError",
    "Nested",
    "NestedSplits",
    "Occam",
    "Plan",
    "Progress",
    "Race",
    "RepeatedKFold",
    "Result",
    "Rotation",
    "RunError",
    "SingleSplit",
    "Splits",
    "StoreError",
    "Study",
    "Subsampling",
    "Task",
    "TestRows",
    "Verification",
    "__version__",
    "assess",
    "clopper_pearson",
    "evaluate",
    "load_run",
    "load_scores",
    "plan",
    "read_task",
    "report",
    "run",
    "run_many",
    "trust",
    "verify",
]
