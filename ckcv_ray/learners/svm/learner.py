"""The Gaussian support vector machine as a learner: a path for each gamma, whose steps are the costs C.

The two classes, 0 and 1, are -1 and +1 internally. All C of one gamma share the kernel, and each starts from
the previous solution; all gammas of a split share its distances; without scaling all splits share one matrix.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.measures import ZERO_ONE, Kind, Measure
from ckcv_ray.core.options import Option, check_options, option, thinned
from ckcv_ray.data.schema import Index, Rows
from ckcv_ray.data.task import Task
from ckcv_ray.errors import InputError
from ckcv_ray.learners.base import Checked, Setting
from ckcv_ray.learners.ensemble import judge
from ckcv_ray.learners.svm import SOLVERS, Fits, machine_code, model
from ckcv_ray.learners.svm.blocks import Dense, Points, block_bytes, prepare
from ckcv_ray.learners.svm.kernels import squared_distances
from ckcv_ray.learners.svm.model import SVMModel
from ckcv_ray.learners.svm.optimality import check_model
from ckcv_ray.learners.svm.scaling import Scaling, fit_scaling
from ckcv_ray.validation import MOST, check_choice, grid, integer, number

SHARED_BYTES = 1 << 29
SCALES = ("standard", "none")
Signs = NDArray[np.int8]


class Shared(NamedTuple):
    """What all workers share: X [n, d], y [n] as -1 and +1, and, without scaling and if they fit into
    ``SHARED_BYTES``, the squared distances [n, n].
    """

    X: Rows
    y: Signs
    distances: Rows | None


def _tolerance(name: str, value: Any) -> float:
    tolerance = number(name, value)
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"{name}={tolerance!r} is outside (0, 1): LIBSVM's default is 0.001")
    return tolerance


@dataclass(frozen=True)
class GaussianSVM:
    """The C-SVM with offset and the kernel ``exp(-gamma |x - z|^2)``, for two classes.

    Attributes:
        C: costs, positive; sorted, made unique, rounded to 12 significant digits.
        gamma: kernel widths, like ``C``.
        scale: "standard" (fitted only on the training rows of each split) or "none".
        solver: name of the solver.
        tolerance: largest KKT violation of a converged fit.
        max_iter: iterations after which a fit is stopped; such fits are counted and reported.

    Raises:
        InputError: a field of the wrong type or outside its range.
    """

    name: ClassVar[str] = "svm"
    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.BINARY})
    convergence_advice: ClassVar[str] = "raise max_iter or narrow the grid"
    schema: ClassVar[pa.Schema] = model.SCHEMA

    C: tuple[float, ...] = option(
        tuple(10.0 ** (e / 2) for e in range(-4, 9)),
        Option(
            grid,
            "Values of C to try: a list such as 0.1,1,10, or log:-2:4:13 for 13 values from 10^-2 to 10^4.",
            shown="log:-2:4:13",
        ),
    )
    gamma: tuple[float, ...] = option(
        tuple(10.0 ** (e / 2) for e in range(-8, 3)),
        Option(grid, "Values of gamma to try, in the same form as C.", shown="log:-4:1:11"),
    )
    scale: str = option(
        "standard",
        Option(
            lambda name, value: check_choice(name, value, SCALES),
            "Scaling of the features: standard (fitted on each split's training rows alone) or none.",
            shown="standard",
        ),
    )
    solver: str = option(
        "newton",
        Option(
            lambda name, value: check_choice(name, value, SOLVERS),
            "Solver of the SVM: newton (this package's own) or libsvm.",
            shown="newton",
        ),
    )
    tolerance: float = option(
        1e-3, Option(_tolerance, "Largest KKT violation of a converged fit.", float, "0.001")
    )
    max_iter: int = option(
        10_000_000,
        Option(
            lambda name, value: integer(name, value, least=1, most=MOST),
            "Iterations after which a fit is stopped and counted as not converged.",
            int,
            "10000000",
        ),
    )

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def lengths(self) -> Sequence[int]:
        """The number of costs, for each gamma."""
        return [len(self.C)] * len(self.gamma)

    def setting(self, path: int, step: int) -> Setting:
        """Return C and gamma at a position."""
        return {"C": self.C[step], "gamma": self.gamma[path]}

    def settings(self) -> dict[str, NDArray[Any]]:
        """Return C and gamma of all positions, path by path."""
        return {"C": np.tile(self.C, len(self.gamma)), "gamma": np.repeat(self.gamma, len(self.C))}

    def thinned(self, most: int) -> Self:
        """Return the learner with at most ``most`` values in each grid, evenly spaced."""
        return thinned(self, most)

    def share(self, task: Task) -> Shared:
        """Compute what all workers share."""
        fits = self.scale == "none" and 8 * task.n**2 <= SHARED_BYTES
        distances = np.ascontiguousarray(squared_distances(task.X, task.X)) if fits else None
        return Shared(task.X, signs(task), distances)

    def prepare(self, shared: Shared, train: Index, score: Index) -> "Block":
        """Prepare the distances of a split."""
        scaling = fit_scaling(shared.X[train], self.scale)
        kernel = prepare(shared.X, shared.distances, scaling, train, score)
        y = shared.y[train].astype(np.float64)
        return Block(self, shared, train, score, y, scaling, kernel)

    def cost(self, n_train: int) -> float:
        """Return the squared number of training rows."""
        return float(n_train) ** 2

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the bytes of a split's block, solver included."""
        return block_bytes(n_train, n_score, d, len(self.C))

    def check(self, model: SVMModel, task: Task, train: Index, converged: bool) -> Checked:
        """Check the scaling, the dual variables and the KKT conditions of a model."""
        allowed = self.scale, self.solver, self.tolerance
        return check_model(model, task.X[train], signs(task)[train], train, *allowed, converged=converged)

    def setting_of(self, model: SVMModel) -> Setting:
        """Return C and gamma of a model."""
        return {"C": model.C, "gamma": model.gamma}

    def table(self, models: Sequence[SVMModel]) -> pa.Table:
        """Return a table with a row of ``schema`` for each model."""
        return model.to_table(models)

    def from_table(self, table: pa.Table, task: Task) -> list[SVMModel]:
        """Return the models stored in a table; see ``base.Learner``."""
        return model.from_table(table, task)

    def most_values(self, task: Task) -> int:
        """Return the number of values of a model whose support vectors are all rows."""
        return 2 * sum(task.X.shape) + len(self.schema)

    def same(self, a: SVMModel, b: SVMModel) -> bool:
        """Return whether two models are equal in every bit."""
        return model.same(a, b)

    def load(self) -> None:
        """Load the compiled solver, compiling it first if necessary."""
        machine_code.load()

    def state(self) -> dict[str, str]:
        """Return a digest of what determines the machine code of the solver."""
        return {"machine_code": machine_code.state()}


class Block(NamedTuple):
    """One prepared split: training rows with their labels and scaling, scored rows, and the distances."""

    learner: GaussianSVM
    shared: Shared
    train: Index
    score: Index
    y: Rows
    scaling: Scaling
    kernel: Dense | Points

    def fit(self, path: int, length: int) -> "PathFits":
        """Fit the first ``length`` costs at one gamma."""
        learner, gamma = self.learner, self.learner.gamma[path]
        solver = learner.solver, learner.tolerance, learner.max_iter
        return PathFits(self, gamma, self.kernel.fit(gamma, self.y, learner.C[:length], *solver))


class PathFits(NamedTuple):
    """The fits of one gamma at its first costs."""

    block: Block
    gamma: float
    fits: Fits

    @property
    def status(self) -> NDArray[np.int8]:
        """Position of each fit's status."""
        return self.fits.status

    @property
    def n_iter(self) -> NDArray[np.int64]:
        """Iterations of each fit."""
        return self.fits.n_iter

    def totals(self, measure: Measure) -> NDArray[np.int64]:
        """Count errors by class in compiled code; for any other measure, evaluate the models."""
        block = self.block
        y = block.shared.y[block.score]
        if measure is ZERO_ONE:
            return block.kernel.errors(self.gamma, self.fits, y)
        X, classes = block.shared.X[block.score], (y == 1).astype(np.int32)
        models = map(self.model, range(len(self.fits.offset)))
        return np.array([judge(model, X, classes, measure, 2) for model in models])

    def model(self, step: int) -> SVMModel:
        """Return the model at one cost."""
        block, b = self.block, self.fits.b[step]
        used = np.flatnonzero(b)
        support = block.train[used]
        return SVMModel(
            C=block.learner.C[step],
            gamma=self.gamma,
            scaling=block.scaling,
            support=support.astype(np.int64),
            vectors=block.shared.X[support],
            dual_coef=b[used],
            offset=float(self.fits.offset[step]),
        )


def signs(task: Task) -> Signs:
    """Return the classes 0 and 1 of a task as -1 and +1."""
    return np.where(task.y == 1, 1, -1).astype(np.int8)
