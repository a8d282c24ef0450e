"""Fits of the Gaussian SVM on splits of a task: shared data, prepared splits, paths, and checks of models.

This is what imports numba. ``learner`` imports it when something is to be fitted or checked.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Classes, Index
from ckcv_ray.core.measures import UNDECIDED, ZERO_ONE, Measure
from ckcv_ray.learners.base import Checked, Trainer
from ckcv_ray.learners.class_weight import compute_weights
from ckcv_ray.learners.svm import machine_code
from ckcv_ray.learners.svm.blocks import Dense, Points, block_bytes, prepare
from ckcv_ray.learners.svm.kernels import compute_distances
from ckcv_ray.learners.svm.model import SVMModel
from ckcv_ray.learners.svm.one_against_one import ClassesBlock, prepare_block
from ckcv_ray.learners.svm.optimality import check_model, check_pairs
from ckcv_ray.learners.svm.pairwise import PairwiseSVM
from ckcv_ray.learners.svm.problem import Options, Signs, Solutions, Weights, make_signs
from ckcv_ray.learners.svm.scaling import Scaling, fit_scaling
from ckcv_ray.tables.target import Rows
from ckcv_ray.tables.task import Task

SHARED_BYTES = 1 << 29
SHARED_WIDE_BYTES = 1 << 30  # where computing distances takes longer than gathering them
WIDE = 50
CLASS_OF_SIGN = np.array([0, UNDECIDED, 1], np.int32)  # -1, 0 and 1


class Shared(NamedTuple):
    """What all workers share: the task, the signs of its labels (n,) where there are two classes, and the
    squared distances of its rows [n, n] if nothing is scaled and they are not too large (``may_share``).
    """

    task: Task
    signs: Signs
    distances: Rows | None


def may_share(n: int, d: int) -> bool:
    """Return whether the distances of n rows with d columns are small enough to be shared by all splits."""
    return 8 * n**2 <= (SHARED_WIDE_BYTES if d >= WIDE else SHARED_BYTES)


@dataclass(frozen=True)
class SVMTrainer(Trainer):
    """What fits the settings of a learner."""

    gammas: tuple[float, ...]  # of the paths
    options: Options  # of the solver, with all C
    scale: str  # how features are scaled; see ``learner.GaussianSVM``
    class_weight: str  # canonical form of the option

    def share(self, task: Task) -> Shared:
        """Compute what all workers share."""
        shared = self.scale == "none" and may_share(*task.X.shape)
        distances = np.ascontiguousarray(compute_distances(task.X, task.X)) if shared else None
        return Shared(task, make_signs(task), distances)

    def prepare(self, shared: Shared, train: Index, score: Index) -> "Block | ClassesBlock":
        """Prepare the distances of a split."""
        task, signs, distances = shared
        scaling = fit_scaling(task.X[train], self.scale)
        weights = compute_weights(self.class_weight, task.classes, task.y[train])
        if task.n_classes > 2:
            rows = task.X, task.y.astype(np.int32, copy=False), distances, (train, score)
            return prepare_block(*rows, self.gammas, self.options, scaling, weights)
        y = signs[train].astype(np.float64)
        split = (
            task,
            train,
            score,
            y,
            signs[score],
            scaling,
            prepare(task.X, distances, scaling, train, score),
        )
        return Block(self.gammas, self.options, *split, Weights(*weights.tolist()))

    def cost(self, n_train: int) -> float:
        """Return the squared number of training rows."""
        return float(n_train) ** 2

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the bytes of a split's block, solver included."""
        return block_bytes(n_train, n_score, d, len(self.options.C_values))

    def check(self, model: SVMModel | PairwiseSVM, task: Task, train: Index, converged: bool) -> Checked:
        """Check the scaling, the dual variables and the KKT conditions of a model."""
        scaling = fit_scaling(task.X[train], self.scale)
        weights = compute_weights(self.class_weight, task.classes, task.y[train])
        known = scaling, self.options.tolerance
        if isinstance(model, PairwiseSVM):
            return check_pairs(model, task, train, *known, weights, converged=converged)
        rows = task.X[train], make_signs(task)[train], train
        return check_model(model, *rows, *known, Weights(*weights.tolist()), converged=converged)

    def load(self) -> None:
        """Load the compiled solver, compiling it first if necessary."""
        machine_code.load_code()

    def state(self) -> dict[str, str]:
        """Return a digest of what determines the machine code of the solver."""
        return {"machine_code": machine_code.state()}


class Block(NamedTuple):
    """One prepared split: rows to train on and to score, labels, scaling, distances, and class weights."""

    gammas: tuple[float, ...]
    options: Options
    task: Task
    train: Index
    score: Index
    y: Rows
    score_signs: Signs
    scaling: Scaling
    kernel: Dense | Points
    weights: Weights

    def fit(self, path: int, length: int) -> "PathFits":
        """Fit the first ``length`` costs at one gamma."""
        gamma, options = self.gammas[path], self.options._replace(C_values=self.options.C_values[:length])
        return PathFits(self, gamma, self.kernel.fit(gamma, self.y, self.weights, options))


class PathFits(NamedTuple):
    """The fits of one gamma at its first costs."""

    block: Block
    gamma: float
    fits: Solutions

    @property
    def status(self) -> NDArray[np.int8]:
        """Position of each fit's status."""
        return self.fits.status

    @property
    def n_iter(self) -> NDArray[np.int64]:
        """Iterations of each fit."""
        return self.fits.n_iter

    def totals(self, measure: Measure) -> NDArray[Any]:
        """Return the totals of each fit; wrong rows by class are counted in compiled code."""
        block = self.block
        if measure is ZERO_ONE:
            return block.kernel.errors(self.gamma, self.fits, block.score_signs)
        return measure.totals(block.task.y[block.score], self.predict(), 2)

    def predict(self) -> Classes:
        """Return the class of each scored row, or -1 if undecided, (steps, rows)."""
        return CLASS_OF_SIGN[self.block.kernel.classify(self.gamma, self.fits) + 1]

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
            vectors=block.task.X[support],
            dual_coef=b[used],
            offset=float(self.fits.offset[step]),
        )
