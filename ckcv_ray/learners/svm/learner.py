"""The Gaussian support vector machine as a learner: a path for each gamma, whose steps are the costs C.

Two classes, 0 and 1, are -1 and +1 internally. All C of one gamma share the kernel, and each starts from
the previous solution; all gammas of a split share its distances; without scaling all splits share one matrix.
With more classes there is a path for each pair of them (``one_against_one``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.measures import ZERO_ONE, GroupShares, Kind, Measure
from ckcv_ray.core.options import Option, check_options, option, thinned
from ckcv_ray.errors import InputError
from ckcv_ray.learners.base import Checked, Setting
from ckcv_ray.learners.class_weight import CLASS_WEIGHT, EQUALLY, of_task, weights_by_class
from ckcv_ray.learners.ensemble import judge
from ckcv_ray.learners.svm import SOLVERS, Fits, machine_code, model, pairwise
from ckcv_ray.learners.svm.blocks import Dense, Points, block_bytes, prepare
from ckcv_ray.learners.svm.class_blocks import Options
from ckcv_ray.learners.svm.class_weight import check_products, weights
from ckcv_ray.learners.svm.kernels import squared_distances
from ckcv_ray.learners.svm.model import SVMModel
from ckcv_ray.learners.svm.one_against_one import ClassesBlock, prepare_block
from ckcv_ray.learners.svm.optimality import Limits, check_model, check_pairs
from ckcv_ray.learners.svm.pairwise import PairwiseSVM
from ckcv_ray.learners.svm.problem import Weights
from ckcv_ray.learners.svm.scaling import Scaling, fit_scaling
from ckcv_ray.tables.target import Index, Label, Rows
from ckcv_ray.tables.task import Task
from ckcv_ray.validation import MOST, check_choice, grid, integer, number

SHARED_BYTES = 1 << 29
SCALES = ("standard", "none")
Signs = NDArray[np.int8]


class Shared(NamedTuple):
    """What all workers share: X [n, d], y [n] (of two classes -1 and +1, of more their numbers), without
    scaling and if they fit into ``SHARED_BYTES`` the squared distances [n, n], and the original labels.
    """

    X: Rows
    y: NDArray[Any]
    distances: Rows | None
    classes: tuple[Label, ...]


def _tolerance(name: str, value: Any) -> float:
    tolerance = number(name, value)
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"{name}={tolerance!r} is outside (0, 1): LIBSVM's default is 0.001")
    return tolerance


@dataclass(frozen=True)
class GaussianSVM:
    """The C-SVM with offset and the kernel ``exp(-gamma |x - z|^2)``; of several classes, one for each pair.

    Attributes:
        C: costs, positive; sorted, made unique, rounded to 12 significant digits.
        gamma: kernel widths, like ``C``.
        scale: "standard" (fitted only on the training rows of each split) or "none".
        solver: name of the solver.
        tolerance: largest KKT violation of a converged fit.
        max_iter: iterations after which a fit is stopped; such fits are counted and reported.
        class_weight: factors of C by class: "balanced" (n / (K n_c), from the n training rows of each split,
            n_c of them of class c, one of K), or by label as a mapping or as text such as "sick=10,well=1",
            where a class that is not named weighs 1; "equal" or None for equal weights.

    Raises:
        InputError: a field of the wrong type or outside its range.
    """

    name: ClassVar[str] = "svm"
    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.BINARY, Kind.MULTICLASS})
    ranks: ClassVar[bool] = True
    probabilities: ClassVar[bool] = False
    convergence_advice: ClassVar[str] = "raise max_iter or narrow the grid"
    gaps: ClassVar[bool] = False

    C: tuple[float, ...] = option(
        tuple(10.0 ** (e / 2) for e in range(-4, 9)),
        Option(
            grid,
            "Values of C to try: a list such as 0.1,1,10, or log:-2:4:13 for 13 values from 10^-2 to 10^4.",
            shown="log:-2:4:13",
            alone="1",
        ),
    )
    gamma: tuple[float, ...] = option(
        tuple(10.0 ** (e / 2) for e in range(-8, 3)),
        Option(
            grid,
            "Values of gamma to try, in the same form as C.",
            shown="log:-4:1:11",
            alone="1 / number of columns",
        ),
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

    class_weight: str | Mapping[Label, float] | None = option(EQUALLY, CLASS_WEIGHT)

    def __post_init__(self) -> None:
        check_options(self)
        check_products(self._class_weight, self.C)

    @property
    def _class_weight(self) -> str:
        """The canonical form of ``class_weight``."""
        assert isinstance(self.class_weight, str)
        return self.class_weight

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

    def canonical(self, task: Task) -> Self:
        """Return the learner with class weights as the task's labels; see ``base.Learner``."""
        check_products(self._class_weight, self.C, task.n_classes)
        return replace(self, class_weight=of_task(self._class_weight, task.classes))

    def on_part(self, task: Task) -> Self:
        """Return the learner itself: its canonical form depends on the labels alone."""
        return self

    def thinned(self, most: int) -> Self:
        """Return the learner with at most ``most`` values in each grid, evenly spaced."""
        return thinned(self, most)

    def usual(self, task: Task) -> "GaussianSVM":
        """Return the learner at C = 1 and gamma = 1 / d for d columns, unless other values were given."""
        default = GaussianSVM()
        C = (1.0,) if self.C == default.C else self.C
        gamma = (1.0 / task.X.shape[1],) if self.gamma == default.gamma else self.gamma
        return replace(self, C=C, gamma=gamma)

    def on_encoded(self) -> "GaussianSVM":
        """Return the learner itself."""
        return self

    def share(self, task: Task) -> Shared:
        """Compute what all workers share."""
        fits = self.scale == "none" and 8 * task.n**2 <= SHARED_BYTES
        distances = np.ascontiguousarray(squared_distances(task.X, task.X)) if fits else None
        y = signs(task) if task.n_classes == 2 else task.y
        return Shared(task.X, y, distances, task.classes)

    def prepare(self, shared: Shared, train: Index, score: Index) -> "Block | ClassesBlock":
        """Prepare the distances of a split."""
        scaling = fit_scaling(shared.X[train], self.scale)
        if len(shared.classes) > 2:
            return self._prepare_classes(shared, train, score, scaling)
        kernel = prepare(shared.X, shared.distances, scaling, train, score)
        y = shared.y[train].astype(np.float64)
        return Block(self, shared, train, score, y, scaling, kernel, self.weights(shared.classes, y))

    def _prepare_classes(self, shared: Shared, train: Index, score: Index, scaling: Scaling) -> ClassesBlock:
        options = Options(self.C, self.solver, self.tolerance, self.max_iter)
        of_class = weights_by_class(self._class_weight, shared.classes, shared.y[train])
        rows = shared.X, shared.y.astype(np.int32, copy=False), shared.distances, (train, score)
        return prepare_block(*rows, self.gamma, options, scaling, of_class)

    def weights(self, classes: tuple[Label, ...], y: NDArray[Any]) -> Weights:
        """Return the class weights for training rows with classes y, -1 or +1, given the original labels."""
        return weights(self._class_weight, classes, y)

    def cost(self, n_train: int) -> float:
        """Return the squared number of training rows."""
        return float(n_train) ** 2

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the bytes of a split's block, solver included."""
        return block_bytes(n_train, n_score, d, len(self.C))

    def check(self, model: SVMModel | PairwiseSVM, task: Task, train: Index, converged: bool) -> Checked:
        """Check the scaling, the dual variables and the KKT conditions of a model."""
        scaling, limits = fit_scaling(task.X[train], self.scale), Limits(self.solver, self.tolerance)
        if isinstance(model, PairwiseSVM):
            of_class = weights_by_class(self._class_weight, task.classes, task.y[train])
            return check_pairs(model, task, train, scaling, limits, of_class, converged=converged)
        y = signs(task)[train]
        of_two = self.weights(task.classes, y)
        return check_model(model, task.X[train], y, train, scaling, limits, of_two, converged=converged)

    def setting_of(self, model: SVMModel | PairwiseSVM) -> Setting:
        """Return C and gamma of a model."""
        return {"C": model.C, "gamma": model.gamma}

    def columns(self, task: Task) -> pa.Schema:
        """Return the columns of the table of its models: for more than two classes, lists for each pair."""
        return _tables(task).SCHEMA

    def table(self, models: Sequence[Any], task: Task) -> pa.Table:
        """Return a table with a row of ``columns`` for each model."""
        return _tables(task).to_table(models)

    def from_table(self, table: pa.Table, task: Task) -> list[Any]:
        """Return the models stored in a table; see ``base.Learner``."""
        return list(_tables(task).from_table(table, task))

    def most_values(self, task: Task) -> int:
        """Return the number of values of a model whose support vectors are all rows."""
        return int(_tables(task).most_values(task))

    def same(self, a: Any, b: Any) -> bool:
        """Return whether two models are equal in every bit."""
        if isinstance(a, PairwiseSVM) or isinstance(b, PairwiseSVM):
            return isinstance(a, PairwiseSVM) and isinstance(b, PairwiseSVM) and pairwise.same(a, b)
        return model.same(a, b)

    def load(self) -> None:
        """Load the compiled solver, compiling it first if necessary."""
        machine_code.load()

    def state(self) -> dict[str, str]:
        """Return a digest of what determines the machine code of the solver."""
        return {"machine_code": machine_code.state()}


class Block(NamedTuple):
    """One prepared split: rows to train on and to score, labels, scaling, distances, and class weights."""

    learner: GaussianSVM
    shared: Shared
    train: Index
    score: Index
    y: Rows
    scaling: Scaling
    kernel: Dense | Points
    weights: Weights

    def fit(self, path: int, length: int) -> "PathFits":
        """Fit the first ``length`` costs at one gamma."""
        learner, gamma = self.learner, self.learner.gamma[path]
        solver = learner.solver, learner.tolerance, learner.max_iter, self.weights
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
        """Count errors by class, and by group, in compiled code; for other measures, evaluate the models."""
        block = self.block
        y = block.shared.y[block.score]
        if measure is ZERO_ONE:
            return block.kernel.errors(self.gamma, self.fits, y)
        if isinstance(measure, GroupShares):
            errors = block.kernel.errors_of(measure.parts, self.gamma, self.fits, y)
            return measure.with_loss(errors.sum(axis=0), errors.sum(axis=2).T)
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


def _tables(task: Task) -> Any:
    """Return the module with the table of the models of a task."""
    return model if task.n_classes == 2 else pairwise


def signs(task: Task) -> Signs:
    """Return the classes 0 and 1 of a task as -1 and +1."""
    return np.where(task.y == 1, 1, -1).astype(np.int8)
