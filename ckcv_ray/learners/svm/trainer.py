"""Fits of the Gaussian SVM on splits of a task: shared data, prepared splits, paths, and tables of models.

This is what imports numba. ``learner`` imports it when something is to be fitted or read.

One SVM is fitted for each pair of classes, on the rows of these two. For each gamma, every pair has a path
over all C on the split's training rows of its classes, and votes on all scored rows (``Ballot``).
Scaling, distances and class weights are those of all training rows. What classes without training rows would
add is what ``SVC`` makes of the others: a pair with one of them is constant and votes for the other class,
which gives every class that is present the same number of votes (Knerr, Personnaz, Dreyfus, "Single-layer
learning revisited", Neurocomputing, 1990).

The table of fitted SVMs: a row for each model, whose support vectors are row numbers of the learning set.
Two classes are one pair, of which a cell holds the numbers themselves; of more there is a list of the pairs.

Last, the compiled functions with their argument types, in order; ``compile`` says why the order matters.
"""

from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numba import boolean, float32, float64, int32, int64, typeof, types
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Classes, Index
from ckcv_ray.core.measures import Measure
from ckcv_ray.learners.base import Cells, RowCodec, Setting, Trainer
from ckcv_ray.learners.steps import compute_weights
from ckcv_ray.learners.svm import compile as compiler
from ckcv_ray.learners.svm import kernels, newton
from ckcv_ray.learners.svm import model as models
from ckcv_ray.learners.svm import path as paths
from ckcv_ray.learners.svm.blocks import Dense, Points, block_bytes, prepare
from ckcv_ray.learners.svm.compile import Signatures
from ckcv_ray.learners.svm.kernels import compute_distances
from ckcv_ray.learners.svm.model import Ballot, SVMModel, decide, list_pairs
from ckcv_ray.learners.svm.problem import (
    EQUAL,
    Options,
    Scaling,
    Solutions,
    Vector,
    Weights,
    check_numbers,
    empty_fits,
    fit_constant,
    fit_scaling,
)
from ckcv_ray.tables.columns import Rows
from ckcv_ray.tables.task import Task

SHARED_BYTES = 1 << 29
SHARED_WIDE_BYTES = 1 << 30  # where computing distances takes longer than gathering them
WIDE = 50
MAX_VOTES = 1 << 22  # numbers of votes that are held at once
NO_GRADIENT = np.empty((0, 0))


class Shared(NamedTuple):
    """What all workers share: the task, and the squared distances of its rows [n, n] if nothing is scaled and
    they are not too large (``may_share``).
    """

    task: Task
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
        return Shared(task, np.ascontiguousarray(compute_distances(task.X, task.X)) if shared else None)

    def prepare(self, shared: Shared, train: Index, score: Index) -> "Block":
        """Prepare the distances of a split; training rows of more than two classes lie class by class."""
        task, distances = shared
        scaling = fit_scaling(task.X[train], self.scale)
        weights = compute_weights(self.class_weight, task.classes, task.y[train])
        ends = [0, len(train), len(train)]
        if task.n_classes > 2:
            train = train[np.argsort(task.y[train], kind="stable")]
            ends = np.searchsorted(task.y[train], np.arange(task.n_classes + 1)).tolist()
        ranges = [slice(*ends_of_class) for ends_of_class in pairwise(ends)]
        kernel, pairs = prepare(task.X, distances, scaling, train, score, ranges), list[Pair]()
        for first, second in list_pairs(task.n_classes):
            rows = np.concatenate([train[ranges[first]], train[ranges[second]]])
            y = np.where(task.y[rows] == second, 1.0, -1.0)
            pairs.append(Pair(first, second, rows, y, Weights(float(weights[first]), float(weights[second]))))
        return Block(self, task, score, scaling, kernel, pairs)

    def cost(self, n_train: int) -> float:
        """Return the squared number of training rows."""
        return float(n_train) ** 2

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the bytes of a split's block, solver included."""
        return block_bytes(n_train, n_score, d, len(self.options.C_values))

    def load(self) -> None:
        """Load the compiled solver, compiling it first if necessary."""
        compiler.load_code()

    def state(self) -> dict[str, str]:
        """Return a digest of what determines the machine code of the solver."""
        return {"machine_code": compiler.state()}


class Pair(NamedTuple):
    """Two classes of a split."""

    first: int
    second: int
    rows: Index  # row numbers of the training rows, of more than two classes class by class
    y: Vector  # their signs: +1 for the second class
    weights: Weights


class Block(NamedTuple):
    """One prepared split."""

    trainer: SVMTrainer
    task: Task
    score: Index  # row numbers of the scored rows
    scaling: Scaling
    kernel: Dense | Points
    pairs: list[Pair]

    def fit(self, path: int, length: int) -> "PathFits":
        """Fit the first ``length`` costs at one gamma."""
        gamma, options, fitted = self.trainer.gammas[path], self.trainer.options, list[Solutions]()
        options = options._replace(C_values=options.C_values[:length])
        for first, second, _, y, weights in self.pairs:
            fits = (
                self.kernel.fit(gamma, (first, second), y, weights, options)
                if len(y)
                else fit_constant(y, length)
            )
            fitted.append(fits._replace(gradient=NO_GRADIENT))
        return PathFits(self, gamma, options.C_values, fitted)


class PathFits(NamedTuple):
    """The fits of one gamma at its first costs, of every pair of classes."""

    block: Block
    gamma: float
    C_values: tuple[float, ...]
    pairs: list[Solutions]

    @property
    def status(self) -> NDArray[np.int8]:
        """Position of each fit's status: converged if every pair is."""
        converged = reduce(np.logical_and, [fits.converged for fits in self.pairs])
        return np.logical_not(converged).view(np.int8)

    @property
    def n_iter(self) -> NDArray[np.int64]:
        """Iterations of each fit, over all pairs."""
        return reduce(np.add, [fits.n_iter for fits in self.pairs])

    def totals(self, measure: Measure) -> NDArray[Any]:
        """Return the totals of each fit."""
        task = self.block.task
        return measure.totals(task.y[self.block.score], self.predict(), task.n_classes)

    def predict(self) -> Classes:
        """Return the class of each scored row, or -1 if undecided, (steps, rows)."""
        block, n_C, n_classes = self.block, len(self.C_values), self.block.task.n_classes
        labels, ranges = np.empty((n_C, len(block.score)), np.int32), block.kernel.ranges
        step = max(1, MAX_VOTES // (n_C * n_classes))
        for scored, M in block.kernel.strips(self.gamma):
            for start in range(scored.start, scored.stop, step):
                rows = slice(start, min(start + step, scored.stop))
                ballot = Ballot(n_C, n_classes, rows.stop - start)
                for (first, second, *_), fits in zip(block.pairs, self.pairs, strict=True):
                    f = decide(M, start - scored.start, (ranges[first], ranges[second]), fits, ballot.rows)
                    ballot.add(first, second, f)
                labels[:, rows] = ballot.winners()
        return labels

    def model(self, step: int) -> SVMModel:
        """Return the model at one cost."""
        block, found = self.block, list[tuple[NDArray[np.int64], Vector]]()
        for pair, fits in zip(block.pairs, self.pairs, strict=True):
            used = np.flatnonzero(fits.b[step])
            used = used[np.argsort(pair.rows[used], kind="stable")]
            found.append((pair.rows[used].astype(np.int64), fits.b[step, used]))
        setting = self.C_values[step], self.gamma
        offset = np.array([fits.offset[step] for fits in self.pairs])
        return SVMModel.from_pairs(setting, block.scaling, block.task.n_classes, found, offset, block.task.X)


PAIR_COLUMNS = {"support": pa.list_(pa.int64()), "dual_coef": pa.list_(pa.float64()), "offset": pa.float64()}
COMMON = [(name, pa.float64()) for name in ("C", "gamma")]
COMMON += [(name, pa.list_(pa.float64())) for name in ("centre", "scale")]
TWO_CLASSES = pa.schema([*COMMON, *PAIR_COLUMNS.items()])
MORE_CLASSES = pa.schema([*COMMON, *((name, pa.list_(kind)) for name, kind in PAIR_COLUMNS.items())])


class SVMCodec(RowCodec):
    """The models of ``learner.GaussianSVM``."""

    def columns(self, task: Task) -> pa.Schema:
        """Return the columns: for more than two classes, lists for each pair."""
        return TWO_CLASSES if task.n_classes == 2 else MORE_CLASSES

    def write(self, model: SVMModel) -> Cells:
        """Return the numbers of a model, but for the features of its support vectors, which the table has."""
        pairs = model.pairs()
        row: Cells = {
            "support": [model.support[used] for used, _ in pairs],
            "dual_coef": [coefficients for _, coefficients in pairs],
            "offset": model.offset.tolist(),
        }
        if model.n_classes == 2:
            row = {name: of_pair for name, (of_pair,) in row.items()}
        return {"C": model.C, "gamma": model.gamma, **row, **model.scaling._asdict()}

    def read(self, row: Cells, task: Task) -> SVMModel:
        """Return the model in a row; see ``base.Codec``."""
        two, n_pairs = task.n_classes == 2, len(list_pairs(task.n_classes))
        support, dual_coef, offset = ([row[name]] if two else row[name] for name in PAIR_COLUMNS)
        if not len(support) == len(dual_coef) == len(offset) == n_pairs:
            raise ValueError(f"expected support vectors and an offset for each of {n_pairs} pairs of classes")
        scaling = Scaling(np.array(row["centre"]), np.array(row["scale"]))
        pairs = [
            (np.array(rows, dtype=np.int64), np.array(numbers, dtype=np.float64))
            for rows, numbers in zip(support, dual_coef, strict=True)
        ]
        for rows, numbers in pairs:
            if numbers.shape != rows.shape or np.any(np.diff(rows, prepend=-1) <= 0):
                raise ValueError("its support vectors must be in ascending order, with one coefficient each")
        setting, offsets = (row["C"], row["gamma"]), np.array(offset, np.float64)
        model = SVMModel.from_pairs(setting, scaling, task.n_classes, pairs, offsets, task.X)
        check_numbers(*setting, scaling, task.X.shape[1], [offsets, model.dual_coef])
        return model

    def setting(self, model: SVMModel) -> Setting:
        """Return C and gamma of a model."""
        return {"C": model.C, "gamma": model.gamma}


V, M, S, SM = float64[::1], float64[:, ::1], float32[::1], float32[:, ::1]
P = float64[:, :, ::1]
N, NM, W, T = int64[::1], int64[:, ::1], int32[:, ::1], int32[:, :, ::1]


def signatures() -> Signatures:
    """List every function with the types of its arguments, callees first."""
    complement, fits = typeof(kernels.make_complement(np.zeros((1, 1)))), typeof(empty_fits(1, 1))
    space, weights = typeof(paths.workspace(1, get_ident())), typeof(EQUAL)
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
        (paths.describe_fit, (V, V, V, V, V, float64, weights, int64, fits)),
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
        (models._decide, (M, int64, int64, int64, int64, V, float64, V, NM)),
        (models._decide_each, (M, int64, int64, int64, int64, M, V, M, NM)),
        (models._vote, (M, int64, int64, T, T)),
        (models._find_winners, (T, T, W)),
    ]
