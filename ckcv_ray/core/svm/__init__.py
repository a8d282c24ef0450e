"""The Gaussian support vector machine with offset: a solver by name, and what it returns.

``problem`` states what is minimised and measures any solution; each other module is a solver with one
function ``path``. All else in the package knows a solver only as an entry of ``SOLVERS``.
"""

from ckcv_ray.core.svm import libsvm
from ckcv_ray.core.svm.problem import Path, Solution, Status

SOLVERS: dict[str, Path] = {"libsvm": libsvm.path}

__all__ = ["SOLVERS", "Path", "Solution", "Status"]
