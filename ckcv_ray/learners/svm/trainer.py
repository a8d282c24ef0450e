"""Fits of the Gaussian SVM on splits of a task: shared data, prepared splits, paths, and checks of models.

This is what imports numba. ``learner`` imports it when something is to be fitted or checked.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.measures import ZERO_ONE, GroupShares, Measure
from ckcv_ray.learners.base import Checked, Trainer
from ckcv_ray.learners.class_weight import weights_by_class
from ckcv_ray.learners.ensemble import judge
from ckcv_ray.learners.svm import machine_code
from ckcv_ray.learners.svm.blocks import Dense, Points, block_bytes, prepare
from ckcv_ray.learners.svm.class_weight import weights
from ckcv_ray.learners.svm.kernels import squared_distances
from ckcv_ray.learners.svm.model import SVMModel
from ckcv_ray.learners.svm.one_against_one import ClassesBlock, prepare_block
from ckcv_ray.learners.svm.optimality import check_model, check_pairs
from ckcv_ray.learners.svm.pairwise import PairwiseSVM
from ckcv_ray.learners.svm.problem import Fits, Options, Weights, signs
from ckcv_ray.learners.svm.scaling import Scaling, fit_scaling
from ckcv_ray.tables.target import Index, Label, Rows
from ckcv_ray.tables.task import Task

SHARED_BYTES = 1 << 29


class Shared(NamedTuple):
    """What all workers share: X [n, d], y [n] (of two classes -1 and +1, of more their numbers), without
    scaling and if they fit into ``SHARED_BYTES`` the squared distances [n, n], and the original labels.
    """

    X: Rows
    y: NDArray[Any]
    distances: Rows | None
    classes: tuple[Label, ...]


@dataclass(frozen=True)
class SVMTrainer(Trainer):
    """What fits the settings of a learner.

    Attributes:
        gammas: of the paths; options: of the solver, with all C.
        scale: how features are scaled; see ``learner.GaussianSVM``.
        class_weight: canonical form of the option.
    """

    gammas: tuple[float, ...]
    options: Options
    scale: str
    class_weight: str

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
        of_two = weights(self.class_weight, shared.classes, y)
        return Block(self.gammas, self.options, shared, train, score, y, scaling, kernel, of_two)

    def _prepare_classes(self, shared: Shared, train: Index, score: Index, scaling: Scaling) -> ClassesBlock:
        of_class = weights_by_class(self.class_weight, shared.classes, shared.y[train])
        rows = shared.X, shared.y.astype(np.int32, copy=False), shared.distances, (train, score)
        return prepare_block(*rows, self.gammas, self.options, scaling, of_class)

    def cost(self, n_train: int) -> float:
        """Return the squared number of training rows."""
        return float(n_train) ** 2

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the bytes of a split's block, solver included."""
        return block_bytes(n_train, n_score, d, len(self.options.C_values))

    def check(self, model: SVMModel | PairwiseSVM, task: Task, train: Index, converged: bool) -> Checked:
        """Check the scaling, the dual variables and the KKT conditions of a model."""
        scaling = fit_scaling(task.X[train], self.scale)
        tolerance = self.options.tolerance
        if isinstance(model, PairwiseSVM):
            of_class = weights_by_class(self.class_weight, task.classes, task.y[train])
            return check_pairs(model, task, train, scaling, tolerance, of_class, converged=converged)
        y = signs(task)[train]
        of_two = weights(self.class_weight, task.classes, y)
        rows = task.X[train], y, train
        return check_model(model, *rows, scaling, tolerance, of_two, converged=converged)

    def load(self) -> None:
        """Load the compiled solver, compiling it first if necessary."""
        machine_code.load()

    def state(self) -> dict[str, str]:
        """Return a digest of what determines the machine code of the solver."""
        return {"machine_code": machine_code.state()}


class Block(NamedTuple):
    """One prepared split: rows to train on and to score, labels, scaling, distances, and class weights."""

    gammas: tuple[float, ...]
    options: Options
    shared: Shared
    train: Index
    score: Index
    y: Rows
    scaling: Scaling
    kernel: Dense | Points
    weights: Weights

    def fit(self, path: int, length: int) -> "PathFits":
        """Fit the first ``length`` costs at one gamma."""
        gamma, options = self.gammas[path], self.options
        solver = options.solver, options.tolerance, options.max_iter, self.weights
        return PathFits(self, gamma, self.kernel.fit(gamma, self.y, options.C_values[:length], *solver))


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
            C=block.options.C_values[step],
            gamma=self.gamma,
            scaling=block.scaling,
            support=support.astype(np.int64),
            vectors=block.shared.X[support],
            dual_coef=b[used],
            offset=float(self.fits.offset[step]),
        )
