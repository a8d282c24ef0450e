"""Model selection with a certificate: complete k-fold cross validation in which k itself is tuned."""

from ckcv_ray.core.bounds import clopper_pearson
from ckcv_ray.errors import CKCVError, InputError, RunError, StoreError
from ckcv_ray.runs.load import load_run
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.run import Job, run, run_many
from ckcv_ray.study import Execution, Study
from ckcv_ray.version import VERSION

__version__ = VERSION
__all__ = [
    "CKCVError",
    "Execution",
    "InputError",
    "Job",
    "Result",
    "RunError",
    "StoreError",
    "Study",
    "__version__",
    "clopper_pearson",
    "load_run",
    "run",
    "run_many",
]
