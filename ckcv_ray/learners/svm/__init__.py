"""The Gaussian support vector machine (SVM) with offset: solvers by name, and what they return.

``problem`` states what is minimised and measures any solution. ``path`` is the solver of this package: it
alternates pair steps (``loop``) and Newton steps (``newton``, on the factors of ``factor``).
``decomposition`` does the same if the kernel does not fit into memory. The rest of the package knows a solver
only as an entry of ``SOLVERS`` and ``ON_POINTS``, under the name that a study's JSON has.
"""

from ckcv_ray.learners.base import Status
from ckcv_ray.learners.svm import compiled, decomposition, path
from ckcv_ray.learners.svm.machine_code import list_signatures
from ckcv_ray.learners.svm.problem import Fits, PathSolver, PathSolverOnPoints, Solution

SOLVERS: dict[str, PathSolver] = {"newton": path.path}
ON_POINTS: dict[str, PathSolverOnPoints] = {"newton": decomposition.path_on_points}

list_signatures(compiled.signatures)

__all__ = ["ON_POINTS", "SOLVERS", "Fits", "PathSolver", "PathSolverOnPoints", "Solution", "Status"]
