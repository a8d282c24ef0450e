"""Model selection with a certificate: complete k-fold cross validation in which k itself is tuned.

A name is imported when it is first used: importing the package and starting the command line load nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ckcv_ray.version import VERSION

_NAMES = {  # by module; repeated below for type checkers, and tests/test_public_names.py compares the two
    "apps.judge": "judge",
    "core.bounds.binomial": "clopper_pearson",
    "core.resampling.complete": "Complete",
    "core.resampling.folds": "KFold NestedSplits",
    "tables.named": "read_task",
    "tables.task": "Task TestRows",
    "engine.forecast": "Plan plan",
    "engine.queue": "Progress",
    "errors": "CKCVError InputError RunError StoreError",
    "estimator": "CKCVClassifier",
    "learners.sklearn.spec": "trust",
    "learners.svm.learner": "GaussianSVM",
    "reports.render": "report",
    "runs.finished": "load_run load_scores",
    "runs.later": "WatchedRun watch",
    "runs.result": "Certified Result Scored",
    "runs.run": "Job assess evaluate run run_many",
    "runs.verify": "Verification verify",
    "study.parts": "Budget Holdout Paper Race",
    "study.study": "Execution Procedure Study",
}
_MODULES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names.split()}
__version__ = VERSION

if TYPE_CHECKING:
    from ckcv_ray.apps.judge import judge as judge
    from ckcv_ray.core.bounds.binomial import clopper_pearson as clopper_pearson
    from ckcv_ray.core.resampling.complete import Complete as Complete
    from ckcv_ray.core.resampling.folds import KFold as KFold
    from ckcv_ray.core.resampling.folds import NestedSplits as NestedSplits
    from ckcv_ray.engine.forecast import Plan as Plan
    from ckcv_ray.engine.forecast import plan as plan
    from ckcv_ray.engine.queue import Progress as Progress
    from ckcv_ray.errors import CKCVError as CKCVError
    from ckcv_ray.errors import InputError as InputError
    from ckcv_ray.errors import RunError as RunError
    from ckcv_ray.errors import StoreError as StoreError
    from ckcv_ray.estimator import CKCVClassifier as CKCVClassifier
    from ckcv_ray.learners.sklearn.spec import trust as trust
    from ckcv_ray.learners.svm.learner import GaussianSVM as GaussianSVM
    from ckcv_ray.reports.render import report as report
    from ckcv_ray.runs.finished import load_run as load_run
    from ckcv_ray.runs.finished import load_scores as load_scores
    from ckcv_ray.runs.later import WatchedRun as WatchedRun
    from ckcv_ray.runs.later import watch as watch
    from ckcv_ray.runs.result import Certified as Certified
    from ckcv_ray.runs.result import Result as Result
    from ckcv_ray.runs.result import Scored as Scored
    from ckcv_ray.runs.run import Job as Job
    from ckcv_ray.runs.run import assess as assess
    from ckcv_ray.runs.run import evaluate as evaluate
    from ckcv_ray.runs.run import run as run
    from ckcv_ray.runs.run import run_many as run_many
    from ckcv_ray.runs.verify import Verification as Verification
    from ckcv_ray.runs.verify import verify as verify
    from ckcv_ray.study.parts import Budget as Budget
    from ckcv_ray.study.parts import Holdout as Holdout
    from ckcv_ray.study.parts import Paper as Paper
    from ckcv_ray.study.parts import Race as Race
    from ckcv_ray.study.study import Execution as Execution
    from ckcv_ray.study.study import Procedure as Procedure
    from ckcv_ray.study.study import Study as Study
    from ckcv_ray.tables.named import read_task as read_task
    from ckcv_ray.tables.task import Task as Task
    from ckcv_ray.tables.task import TestRows as TestRows

else:  # type checkers would take this for every name, or none
    __all__ = sorted(_MODULES)

    def __getattr__(name: str) -> Any:
        """Import a public name (PEP 562)."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return value

    def __dir__() -> list[str]:
        """Return the public names, imported or not, and whatever else the module holds."""
        return sorted({*__all__, *globals()})
