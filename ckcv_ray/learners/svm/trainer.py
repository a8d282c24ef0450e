"""Fits of the Gaussian SVM on splits of a task: shared data, prepared splits, paths, and tables of models.

This is what imports numba. ``learner`` imports it when something is to be fitted or read.

The table of fitted SVMs: a row for each model, whose support vectors are row numbers of the learning set.

Two classes are one pair, of which a cell holds the numbers themselves; of more there is a list of the pairs.

More than two classes: one SVM for each pair of them, on the rows of these two. For each gamma, every pair has
a path over all C on the split's training rows of its classes, and votes on all scored rows (``Ballot``).
Scaling, distances and class weights are those of all training rows. What classes without training rows would
add is what ``SVC`` makes of the others: a pair with one of them is constant and votes for the other class,
which gives every class that is present the same number of votes (Knerr, Personnaz, Dreyfus, "Single-layer
learning revisited", Neurocomputing, 1990).

Last, the compiled functions with their argument types, in order; ``compile`` says why the order matters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numba import boolean, float32, float64, int8, int32, int64, typeof, types
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Classes, Index
from ckcv_ray.core.measures import UNDECIDED, ZERO_ONE, Measure
from ckcv_ray.learners.base import Cells, RowCodec, Setting, Trainer
from ckcv_ray.learners.steps import compute_weights
from ckcv_ray.learners.svm import compile as compiler
from ckcv_ray.learners.svm import kernels, newton
from ckcv_ray.learners.svm import model as models
from ckcv_ray.learners.svm import path as paths
from ckcv_ray.learners.svm.blocks import Dense, DenseClasses, Points, block_bytes, prepare
from ckcv_ray.learners.svm.compile import Signatures
from ckcv_ray.learners.svm.kernels import compute_distances
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.learners.svm.model import Ballot, SVMModel, add_votes, classify, count_errors, list_pairs
from ckcv_ray.learners.svm.problem import (
    EQUAL,
    Options,
    Scaling,
    Signs,
    Solutions,
    Vector,
    Weights,
    check_numbers,
    empty_fits,
    fit_constant,
    fit_scaling,
    make_signs,
)
from ckcv_ray.tables.columns import Rows
from ckcv_ray.tables.task import Task

SHARED_BYTES = 1 << 29
SHARED_WIDE_BYTES = 1 << 30  # where computing distances takes longer than gathering them
WIDE = 50
CLASS_OF_SIGN = np.array([0, UNDECIDED, 1], np.int32)  # -1, 0 and 1
MAX_VOTES = 1 << 22  # numbers of votes that are held at once


@dataclass(frozen=True)
class SVMTrainer(Trainer):
    """What fits the settings of a learner."""

    learner: GaussianSVM

    def share(self, task: Task) -> tuple[Task, Rows | None]:
        """Return the task, and the squared distances [n, n] of its rows if these are few and not scaled."""
        n, d = task.X.shape
        if self.learner.scale != "none" or 8 * n**2 > (SHARED_WIDE_BYTES if d >= WIDE else SHARED_BYTES):
            return task, None
        return task, np.ascontiguousarray(compute_distances(task.X, task.X))

    def prepare(self, shared: tuple[Task, Rows | None], train: Index, score: Index) -> "Block":
        """Prepare the distances of a split; training rows of more than two classes lie class by class."""
        task, distances = shared
        scaling = fit_scaling(task.X[train], self.learner.scale)
        weights = compute_weights(str(self.learner.class_weight), task.classes, task.y[train])
        ranges = list[slice]()
        if task.n_classes > 2:
            train = train[np.argsort(task.y[train], kind="stable")]
            ends = np.searchsorted(task.y[train], np.arange(task.n_classes + 1)).tolist()
            ranges = [slice(*ends_of_class) for ends_of_class in pairwise(ends)]
        kernel = prepare(task.X, distances, scaling, train, score, ranges)
        signs = make_signs(task)
        y = signs[train].astype(np.float64)
        return Block(self.learner, task, train, score, scaling, kernel, weights, y, signs[score], ranges)

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
    train: Index  # row numbers of the training rows, of more than two classes class by class
    score: Index  # row numbers of the scored rows
    scaling: Scaling
    kernel: Dense | DenseClasses | Points
    weights: Vector  # of the classes
    y: Vector  # signs of the training rows, of two classes
    y_score: Signs  # of the scored rows, likewise
    ranges: Sequence[slice]  # the training rows of each of more than two classes; none of two

    def fit(self, path: int, length: int) -> "PathFits":
        """Fit the first ``length`` costs at one gamma."""
        learner, gamma = self.learner, self.learner.gamma[path]
        options = Options(learner.C[:length], learner.tolerance, learner.max_iter)
        pairs = [self._fit(gamma, pair, options) for pair in list_pairs(len(self.weights))]
        return PathFits(self, gamma, options.C_values, pairs)

    def _fit(self, gamma: float, pair: tuple[int, int], options: Options) -> Solutions:
        """Fit the path of one pair of classes, the second of which is +1."""
        weights = Weights(*(float(self.weights[number]) for number in pair))
        if not self.ranges:
            return self.kernel.fit(gamma, pair, self.y, weights, options)
        n_first, n_second = (part.stop - part.start for part in map(self.ranges.__getitem__, pair))
        y = np.repeat([-1.0, 1.0], [n_first, n_second])
        if not n_first * n_second:
            return fit_constant(y, len(options.C_values))
        return self.kernel.fit(gamma, pair, y, weights, options)

    def find_support(self, pair: tuple[int, int], b: Vector) -> tuple[NDArray[np.int64], Vector]:
        """Return the row numbers of a pair's support vectors, ascending, and their coefficients."""
        rows = self.train
        if self.ranges:
            rows = np.concatenate([rows[self.ranges[number]] for number in pair])
        used = np.flatnonzero(b)
        used = used[np.argsort(rows[used], kind="stable")]
        return rows[used].astype(np.int64), b[used]


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
        """Return the totals of each fit; wrong rows, or votes, are counted in compiled code."""
        block = self.block
        if measure is ZERO_ONE and not block.ranges:
            errors = np.zeros((len(self.C_values), 2), np.int64)
            for rows, M in block.kernel.strips(self.gamma):
                errors += count_errors(M, self.pairs[0], block.y_score[rows])
            return errors
        return measure.totals(block.task.y[block.score], self.predict(), block.task.n_classes)

    def predict(self) -> Classes:
        """Return the class of each scored row, or -1 if undecided, (steps, rows)."""
        block, kernel, ranges, n_C = self.block, self.block.kernel, self.block.ranges, len(self.C_values)
        n_classes, labels = len(block.weights), np.empty((n_C, len(block.score)), np.int32)
        if not ranges:
            for rows, M in kernel.strips(self.gamma):
                labels[:, rows] = CLASS_OF_SIGN[classify(M, self.pairs[0]) + 1]
            return labels
        step = max(1, MAX_VOTES // (n_C * n_classes))
        for scored, M in kernel.strips(self.gamma):
            for start in range(scored.start, scored.stop, step):
                stop = min(start + step, scored.stop)
                ballot = Ballot((n_C, stop - start), n_classes)
                for pair, fits in zip(list_pairs(n_classes), self.pairs, strict=True):
                    of_pair = ranges[pair[0]], ranges[pair[1]]
                    add_votes(ballot, pair, M, start - scored.start, of_pair, fits)
                labels[:, start:stop] = ballot.winners()
        return labels

    def model(self, step: int) -> SVMModel:
        """Return the model at one cost."""
        block, found = self.block, zip(list_pairs(len(self.block.weights)), self.pairs, strict=True)
        pairs = [block.find_support(pair, fits.b[step]) for pair, fits in found]
        setting, offset = (self.C_values[step], self.gamma), np.array([f.offset[step] for f in self.pairs])
        return SVMModel.from_pairs(setting, block.scaling, block.task.n_classes, pairs, offset, block.task.X)


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
        cells: list[Any] = [[model.support[used] for used in model.used], model.dual_coef, model.offset]
        pairs = {
            name: c[0] if model.n_classes == 2 else c for name, c in zip(PAIR_COLUMNS, cells, strict=True)
        }
        return {**self.setting(model), **pairs, **model.scaling._asdict()}

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
        setting = row["C"], row["gamma"]
        for rows, coefficients in pairs:
            if coefficients.shape != rows.shape or np.any(np.diff(rows, prepend=-1) <= 0):
                raise ValueError("its support vectors must be in ascending order, with one coefficient each")
        offsets = np.array(offset, dtype=np.float64)
        check_numbers(*setting, scaling, task.X.shape[1], [offsets, *(numbers for _, numbers in pairs)])
        return SVMModel.from_pairs(setting, scaling, task.n_classes, pairs, offsets, task.X)

    def setting(self, model: SVMModel) -> Setting:
        """Return C and gamma of a model."""
        return {"C": model.C, "gamma": model.gamma}


V, M, S, SM = float64[::1], float64[:, ::1], float32[::1], float32[:, ::1]
P = float64[:, :, ::1]
N, NM, B, BM, T = int64[::1], int64[:, ::1], int8[::1], int8[:, ::1], int32[:, :, ::1]


def signatures() -> Signatures:
    """List every function with the types of its arguments, callees first."""
    complement, fits = typeof(kernels.scratch_complement(1)), typeof(empty_fits(1, 1))
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
        (models._decide_sign, (float64,)),
        (models._classify, (M, M, V, BM)),
        (models._count_errors, (M, M, V, B, NM)),
        (kernels._fill_pair, (M, M, float64, M, M, SM, int64)),
        (models._decide, (M, int64, int64, int64, int64, V, float64, V, NM)),
        (models._add_votes, (M, int64, int64, int64, int64, M, V, int64, int64, V, NM, T, T)),
    ]
