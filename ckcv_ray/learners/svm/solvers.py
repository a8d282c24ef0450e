"""Solvers of the SVM by name: ``SOLVERS`` of a kernel matrix, ``ON_POINTS`` of rows, and their protocols."""

from typing import Protocol

from ckcv_ray.learners.svm import decomposition, path
from ckcv_ray.learners.svm.kernels import Complement
from ckcv_ray.learners.svm.memory import Matrix, Vector
from ckcv_ray.learners.svm.problem import EQUAL, Solutions, Weights


class PathSolver(Protocol):
    """A solver: the fits of one training block for ascending C."""

    def __call__(
        self,
        M: Complement,
        y: Vector,
        C_values: tuple[float, ...],
        tolerance: float,
        max_iter: int,
        weights: Weights = EQUAL,
    ) -> Solutions:
        """Solve for every C in turn.

        Args:
            M: 1 - K of the n training rows, symmetric, never written to. With sum b = 0, Kb = -Mb.
            y: labels -1.0 or +1.0, shape (n,); a single class gives the constant classifier.
            C_values: ascending, positive.
            tolerance: largest KKT violation, in the solver's arithmetic, of a converged fit.
            max_iter: iterations after which a fit is returned as it is, with status NOT_CONVERGED.
            weights: of the two classes, positive.
        """


class PathSolverOnPoints(Protocol):
    """A solver that never holds all of K, for training sets too large for ``PathSolver``."""

    def __call__(
        self,
        X: Matrix,
        gamma: float,
        y: Vector,
        C_values: tuple[float, ...],
        tolerance: float,
        max_iter: int,
        *,
        weights: Weights = EQUAL,
    ) -> Solutions:
        """Solve for every C in turn, on the scaled rows X [n, d]; otherwise as ``PathSolver``."""


SOLVERS: dict[str, PathSolver] = {"newton": path.path}
ON_POINTS: dict[str, PathSolverOnPoints] = {"newton": decomposition.path_on_points}
