"""The Gaussian support vector machine with offset: a solver by name, and what it returns.

``problem`` states what is minimised and measures any solution. ``path`` is our own solver: pair steps
(``loop``) and Newton steps (``newton``, on the factors of ``factor``) in turn. ``libsvm`` is its rival. All
else in the package knows a solver only as an entry of ``SOLVERS``.
"""

from ckcv_ray.core.svm import libsvm, path
from ckcv_ray.core.svm.problem import Fits, Path, Solution, Status

SOLVERS: dict[str, Path] = {"newton": path.path, "libsvm": libsvm.path}

__all__ = ["SOLVERS", "Fits", "Path", "Solution", "Status"]
