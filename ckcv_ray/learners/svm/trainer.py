"""Fits of the Gaussian SVM on splits of a task: shared data, prepared splits, paths, and tables of models.

This module imports numba. ``learner`` imports it when something is to be fitted or read.

The table of fitted SVMs has a row for each model, with support vectors as row numbers of the learning set.

Two classes are one pair, and a cell holds its numbers directly; with more classes, it holds a list by pair.

More than two classes: one SVM for each pair of them, on the rows of these two. For each gamma, every pair has
a path over all C on the split's training rows of its classes, and votes on all scored rows (``elect``).
Scaling, distances and class weights are those of all training rows. If classes have no training rows, the
result is what ``SVC`` makes of the others: a pair with one of them is constant and votes for the other class,
which gives every class that is present the same number of votes (Knerr, Personnaz, Dreyfus, "Single-layer
learning revisited", Neurocomputing, 1990).

Last come the compiled functions with their argument types, in order; ``compile`` says why the order matters.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from threading import get_ident
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numba import boolean, float32, float64, int64, typeof, types
from numpy.typing import NDArray

from ckcv_ray.core.measures import Measure
from ckcv_ray.errors import Classes, Index, Rows
from ckcv_ray.learners.base import Cells, Codec, Trainer
from ckcv_ray.learners.steps import compute_weights
from ckcv_ray.learners.svm import compile as compiler
from ckcv_ray.learners.svm import kernels, newton, problem
from ckcv_ray.learners.svm import model as models
from ckcv_ray.learners.svm import path as paths
from ckcv_ray.learners.svm.blocks import Dense, Points, block_bytes, prepare
from ckcv_ray.learners.svm.compile import Signatures
from ckcv_ray.learners.svm.kernels import RowIndex, compute_distances
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.learners.svm.model import SVMModel, elect, list_pairs
from ckcv_ray.tables.task import Task

SHARED_BYTES = 1 << 29
SHARED_WIDE_BYTES = 1 << 30  # the limit where computing distances takes longer than gathering them
WIDE = 50
MAX_VALUES = 1 << 22  # decision values held at once
PAIR_COLUMNS = {"support": pa.list_(pa.int64()), "dual_coef": pa.list_(pa.float64()), "offset": pa.float64()}
COMMON = [(name, pa.float64()) for name in problem.KERNEL]
COMMON += [(name, pa.list_(pa.float64())) for name in ("centre", "scale")]
TWO_CLASSES = pa.schema([*COMMON, *PAIR_COLUMNS.items()])
MORE_CLASSES = pa.schema([*COMMON, *((name, pa.list_(kind)) for name, kind in PAIR_COLUMNS.items())])


@dataclass(frozen=True)
class SVMTrainer(Trainer):
    """Fits the settings of a learner."""

    learner: GaussianSVM
    convergence_advice: ClassVar[str] = "raise max_iter or narrow the grid"

    def share(self, task: Task) -> tuple[Task, Rows | None]:
        """Return the task, and the squared distances [n, n] of its rows if they are few and not scaled."""
        n, d = task.X.shape
        if self.learner.scale != "none" or 8 * n**2 > (SHARED_WIDE_BYTES if d >= WIDE else SHARED_BYTES):
            return task, None
        return task, np.ascontiguousarray(compute_distances(task.X, task.X))

    def prepare(self, shared: tuple[Task, Rows | None], train: Index, score: Index) -> "Block":
        """Prepare the distances of a split; training rows of more than two classes are ordered by class."""
        task, distances = shared
        scaling = problem.fit_scaling(task.X[train], self.learner.scale)
        weights = compute_weights(str(self.learner.class_weight), task.classes, task.y[train])
        if task.n_classes > 2:
            train = train[np.argsort(task.y[train], kind="stable")]
        y = task.y[train]
        places = [np.flatnonzero((y == a) | (y == b)) for a, b in list_pairs(task.n_classes)]
        kernel = prepare(task.X, distances, scaling, train, score)
        return Block(self.learner, task, train, score, scaling, kernel, weights, places)

    def cost(self, n_train: int) -> float:
        """Return the squared number of training rows."""
        return float(n_train) ** 2

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the bytes of a split's block, solver included."""
        return block_bytes(n_train, n_score, d, len(self.learner.C))

    def load(self) -> None:
        """Load the compiled solver, compiling it first if necessary."""
        compiler.load_code()

    def state(self) -> dict[str, str]:
        """Return a digest of what determines the machine code of the solver."""
        return {"machine_code": compiler.state()}


class Block(NamedTuple):
    """One prepared split."""

    learner: GaussianSVM
    task: Task
    train: Index  # row numbers of the training rows; with more than two classes, ordered by class
    score: Index  # row numbers of the scored rows
    scaling: problem.Scaling
    kernel: Dense | Points
    weights: problem.Vector  # weights of the classes
    places: Sequence[RowIndex]  # positions in ``train`` of the rows of each pair of classes

    def fit(self, path: int, length: int) -> "_PathFits":
        """Fit the first ``length`` costs at one gamma."""
        learner, gamma, pairs = self.learner, self.learner.gamma[path], list[problem.Solutions]()
        options = problem.Options(learner.C[:length], learner.tolerance, learner.max_iter)
        y = self.task.y[self.train]
        for (first, second), places in zip(list_pairs(len(self.weights)), self.places, strict=True):
            signs = np.where(y[places] == second, 1.0, -1.0)
            weights = problem.Weights(float(self.weights[first]), float(self.weights[second]))
            pairs.append(self.kernel.fit(gamma, places, signs, weights, options))
        converged = reduce(np.logical_and, [fits.converged for fits in pairs])  # a fit is if every pair is
        status = np.logical_not(converged).view(np.int8)
        n_iter = reduce(np.add, [fits.n_iter for fits in pairs])
        return _PathFits(self, gamma, pairs, status, n_iter)


class _PathFits(NamedTuple):
    """The fits of one gamma at its first costs, for every pair of classes."""

    block: Block
    gamma: float
    pairs: list[problem.Solutions]
    status: NDArray[np.int8]  # position of each fit's status
    n_iter: NDArray[np.int64]  # iterations of each fit, over all pairs

    def totals(self, measure: Measure) -> NDArray[np.number]:
        """Return the totals of each fit."""
        task = self.block.task
        return measure.totals(task.y[self.block.score], self.predict(), task.n_classes)

    def predict(self) -> Classes:
        """Return the class of each scored row, or -1 if undecided, (steps, rows)."""
        compiler.load_code()
        block, shape = self.block, (len(self.pairs), len(self.status))
        labels = np.empty((len(self.status), len(block.score)), np.int32)
        step = max(1, MAX_VALUES // math.prod(shape))
        for scored, M in block.kernel.strips(self.gamma):
            for start in range(scored.start, scored.stop, step):
                stop = min(start + step, scored.stop)
                f = np.empty((*shape, stop - start))
                for places, fits, of_pair in zip(block.places, self.pairs, f, strict=True):
                    b, offset = problem.writable(fits.b), problem.writable(fits.offset)
                    models._decide(M, start - scored.start, places, b, offset, of_pair)
                labels[:, start:stop] = elect(block.task.n_classes, f)
        return labels

    def model(self, step: int) -> SVMModel:
        """Return the model at one cost, with support vectors in the order of the table."""
        block, pairs = self.block, list[tuple[NDArray[np.int64], problem.Vector]]()
        for places, fits in zip(block.places, self.pairs, strict=True):
            rows, b = block.train[places], fits.b[step]
            used = np.flatnonzero(b)
            used = used[np.argsort(rows[used], kind="stable")]
            pairs.append((rows[used].astype(np.int64), b[used]))
        setting, offset = (block.learner.C[step], self.gamma), np.array([f.offset[step] for f in self.pairs])
        return SVMModel.from_pairs(setting, block.scaling, block.task.n_classes, pairs, offset, block.task.X)


class SVMCodec(Codec[SVMModel]):
    """The models of ``learner.GaussianSVM``."""

    hyperparameters = problem.KERNEL
    stores_repeats: ClassVar[bool] = False  # each dual variable belongs to a row of the table

    def columns(self, task: Task) -> pa.Schema:
        """Return the columns: for more than two classes, lists for each pair."""
        return TWO_CLASSES if task.n_classes == 2 else MORE_CLASSES

    def write(self, model: SVMModel) -> Cells:
        """Return the numbers of a model, except its support vectors' features, which are in the data."""
        cells: list[Any] = [[model.support[used] for used in model.used], model.dual_coef, model.offset]
        cells = [of_pairs[0] for of_pairs in cells] if model.n_classes == 2 else cells
        pairs = dict(zip(PAIR_COLUMNS, cells, strict=True))
        return {**self.setting(model), **pairs, **model.scaling._asdict()}

    def read(self, row: Cells, task: Task) -> SVMModel:
        """Return the model in a row; see ``base.Codec``."""
        two, n_pairs = task.n_classes == 2, len(list_pairs(task.n_classes))
        support, dual_coef, offset = ([row[name]] if two else row[name] for name in PAIR_COLUMNS)
        if not len(support) == len(dual_coef) == len(offset) == n_pairs:
            raise ValueError(f"expected support vectors and an offset for each of {n_pairs} pairs of classes")
        pairs = [
            (np.array(rows, dtype=np.int64), np.array(numbers, dtype=np.float64))
            for rows, numbers in zip(support, dual_coef, strict=True)
        ]
        for rows, coefficients in pairs:
            if coefficients.shape != rows.shape or np.any(np.diff(rows, prepend=-1) <= 0):
                raise ValueError("its support vectors must be in ascending order, with one coefficient each")
        offsets = np.array(offset, dtype=np.float64)
        scaling = problem.read_scaling(row, task.X.shape[1], [offsets, *(numbers for _, numbers in pairs)])
        return SVMModel.from_pairs((row["C"], row["gamma"]), scaling, task.n_classes, pairs, offsets, task.X)


V, M, S, SM = float64[::1], float64[:, ::1], float32[::1], float32[:, ::1]
P = float64[:, :, ::1]
N = int64[::1]


def signatures() -> Signatures:
    """List every function with the types of its arguments, callees first."""
    complement, fits = typeof(kernels.scratch_complement(1)), typeof(problem.empty_fits(1, 1))
    space, weights = typeof(paths.workspace(1, get_ident())), typeof(problem.EQUAL)
    return [
        (kernels._fill_panel, (M, int64, M)),
        (kernels._mirror, (M, int64, int64, int64)),
        (kernels._sum_squares, (M, M, P, boolean, M)),
        (kernels.gather, (M, N, N, M)),
        (kernels.gather, (types.Array(M.dtype, M.ndim, M.layout, readonly=True), N, N, M)),  # Ray's store
        (kernels._fill, (M, float64, M, SM)),
        (newton._sound, (M, M, int64)),
        (newton.factorise, (M, M, int64)),
        (newton.solve, (M, V, V, int64)),
        (newton.remove, (M, V, int64, int64)),
        (paths._lowest_place, (S,)),
        (paths.iterate, (SM, S, S, V, V, V, float64, int64, int64)),
        (paths.iterate_exactly, (M, V, V, V, V, float64, int64)),
        (newton._compress, (V, V, V, V, V, N, N, int64)),
        (newton._downdate, (M, V, V, V, V, int64)),
        (newton._elect, (V, V, V, V, N, int64)),
        (newton._walk, (M, N, V, V, V, V, V, V, int64)),
        (newton._assemble, (M, N, N, M, int64)),
        (newton._free_variables, (V, V, V, N, int64)),
        (newton.newton, (M, V, V, V, V, M, M, N, N, M)),
        (paths.describe_fit, (V, V, V, V, V, int64, fits)),
        (paths._refresh, (M, V, V, V, N)),
        (paths._fill_rows, (V, V, V, V, S, S)),
        (paths._copy, (V, V, int64)),
        (paths._violation, (V, V, V, V)),
        (paths._newton_budget, (V, V, V, int64)),
        (paths.optimise, (complement, V, V, V, V, float64, int64, int64, space)),
        (paths.rescale, (V, V, V, V, V, float64, float64)),
        (paths._whole, (float64,)),
        (paths._begin, (M, V, V, V, float64, float64, space)),
        (paths._solve_path, (complement, V, V, float64, int64, int64, weights, space, fits)),
        (models._decide, (M, int64, N, M, V, M)),
    ]
