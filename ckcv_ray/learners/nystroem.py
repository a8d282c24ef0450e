"""The Gaussian support vector machine on Nyström features as a learner, for up to a million rows.

A model is a sum of kernels at a few landmark rows.

With the landmarks l_1 ... l_m, their kernel matrix K and k(x) = (exp(-gamma |x - l_j|^2))_j, the features
of a row are z(x) = K^(-1/2) k(x): of all functions of k(x), the products z(x)'z(x') are closest to the
kernel (Williams, Seeger, NIPS 13, 2000). A linear function of them is a sum of kernels, w'z(x) + b = a'k(x)
+ b, which is what a model holds and evaluates.

Kernels are computed by matrix products of one shape, on one thread, so that no bit of a row's values depends
on other rows.

The linear SVM with the squared hinge loss, in the primal: a path over its cost C by Newton's method.

For rows z_i of Z [n, r], signs y_i, weights s_i > 0 and a cost C, minimise over w and b

    P(w, b) = |w|^2 / (2 C) + sum_i s_i max(0, 1 - y_i f_i)^2,    f_i = w'z_i + b,

the usual form divided by C. P is convex, piecewise quadratic and continuously differentiable: with A the rows
where y_i f_i < 1, and S their weights, its generalised Hessian in w is I / C + 2 Z_A' S Z_A. Newton steps,
halved until P falls enough (Armijo), reach the exact minimum after finitely many, as the last one leaves A as
it was (Mangasarian, Optimization Methods and Software 17, 2002; Keerthi, DeCoste, JMLR 6, 2005). A step costs
two passes over Z, and products of the rows that entered or left A: the Gram matrix Z_A' S Z_A is kept along
the path.

The last column of Z holds ones: its coefficient is b, which is not part of |w|^2. All sums are float64.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.draws import make_seed_sequence
from ckcv_ray.core.measures import Kind, Measure, Output
from ckcv_ray.core.options import option
from ckcv_ray.core.process import one_thread
from ckcv_ray.errors import Index, InputError, Label, Mask, Rows, Values, integer
from ckcv_ray.learners.base import CONVERGED, NOT_CONVERGED, Cells, Codec, FitsOf, Model, Predicted, Trainer
from ckcv_ray.learners.steps import CLASS_WEIGHT, EQUALLY, choose_classes, compute_weights
from ckcv_ray.learners.svm.learner import KernelMachine
from ckcv_ray.learners.svm.problem import KERNEL, Scaling, fit_scaling, read_scaling
from ckcv_ray.tables.task import Task

MAX_LANDMARKS = 10_000  # their kernel matrix takes 800 MB
BATCH = 512  # rows of every matrix product: some BLAS kernels round the last rows of others differently
RANK = 1e-10  # of K's largest eigenvalue: directions of smaller eigenvalues are within rounding, and left out
TOLERANCE = 1e-10  # share of P by which the quadratic at a converged solution may still fall
MAX_STEPS = 200
ARMIJO = 1e-4
MIN_STEP = 1e-12
BLOCK = 4096  # rows whose products are added at a time
SOLVE_ROWS = 8  # rows per landmark whose products take as long as what does not depend on rows
SCALING_COPIES = 3  # copies of the training rows: themselves, and what their deviation is computed from
COLUMNS = 8  # numbers per row of a fit: signs, weights, decision values, slack
NUMBERS = pa.list_(pa.float64())


class Landmarks(NamedTuple):
    """Rows by which the kernel is approximated."""

    rows: Index  # their numbers in the learning set, ascending, (m,)
    vectors: Rows  # these rows, unscaled, [m, d]
    scaling: Scaling  # centre and scale of all inputs, fitted on the training rows

    def compute_kernel(self, X: Rows, rows: Index, gamma: float) -> Iterator[tuple[slice, Values]]:
        """Yield k(x) for some rows of X [n, d], batch by batch: their place in ``rows``, and k [batch, m].

        Squared distances are |x|^2 + |l|^2 - 2 x'l, around the landmarks' mean, which keeps their digits.
        """
        scaled = self.scaling.apply(self.vectors)
        centre = scaled.mean(axis=0)
        vectors = scaled - centre
        columns, squares = np.ascontiguousarray(vectors.T), np.vecdot(vectors, vectors)
        for start in range(0, len(rows), BATCH):
            part = rows[start : start + BATCH]
            padded = np.concatenate([part, np.repeat(part[-1:], BATCH - len(part))])
            inputs = self.scaling.apply(X[padded]) - centre
            K = inputs @ columns
            K *= -2.0
            K += squares
            K += np.vecdot(inputs, inputs)[:, None]
            np.maximum(K, 0.0, out=K)
            K *= -gamma
            np.exp(K, out=K)
            yield slice(start, start + len(part)), K[: len(part)]

    def evaluate(self, X: Rows, rows: Index, gamma: float, dual_coef: Values, offset: Values) -> Values:
        """Return a'k(x) + b for some rows of X [n, d], all a of ``dual_coef`` [q, m], b of ``offset`` (q,).

        Its shape is [rows, q]; the value for one row and one a does not depend on the others.
        """
        values = np.empty((len(rows), len(offset)))
        with one_thread():
            for place, K in self.compute_kernel(X, rows, gamma):
                for column, (coefficients, constant) in enumerate(zip(dual_coef, offset, strict=True)):
                    values[place, column] = np.vecdot(K, coefficients) + constant
        return values


@dataclass(frozen=True)
class NystroemModel(Model):
    """A fitted SVM, f(x) = sum_j dual_coef_j exp(-gamma |x - l_j|^2) + offset; for many classes, one each."""

    C: float
    gamma: float
    landmarks: Landmarks  # the rows l_j
    dual_coef: Values  # for two classes [1, m], for K classes [K, m]
    offset: Values  # (1,) or (K,)

    def predict(self, X: Rows) -> Predicted:
        """Classify every row: with two classes by the sign of f, with more by the largest, first if tied."""
        every = np.arange(len(X))
        return classify(self.landmarks.evaluate(X, every, self.gamma, self.dual_coef, self.offset))


def classify(values: Values) -> Predicted:
    """Return what decision values predict, [rows, 1] for two classes or [rows, K] for more."""
    if values.shape[1] == 1:
        return Predicted((values[:, 0] > 0.0).astype(np.int32), values[:, 0])
    return Predicted(values.argmax(axis=1).astype(np.int32), np.full(len(values), np.nan))


class Solution(NamedTuple):
    """The minimum at one cost: (w, b) as one vector [r], Newton steps, and whether these converged."""

    coefficients: Values
    n_iter: int
    converged: bool


class Point(NamedTuple):
    """Coefficients [r], and the decision values f (n,) of the rows at these."""

    coefficients: Values
    f: Values


class Primal(NamedTuple):
    """What is fitted: features Z [n, r], the last of them 1, signs y (n,) of -1 and 1, and weights (n,)."""

    Z: Values
    y: Values
    weights: Values

    def evaluate(self, point: Point, C: float) -> float:
        """Return P at a point."""
        w, slack = point.coefficients[:-1], np.maximum(0.0, 1.0 - self.y * point.f)
        return float(w @ w / (2.0 * C) + (self.weights * slack) @ slack)


class Gram:
    """Z_A' S Z_A [r, r] for a set A of rows that changes little from one step to the next."""

    def __init__(self, problem: Primal) -> None:
        self.problem, r = problem, problem.Z.shape[1]
        self.matrix = np.zeros((r, r))
        self.inside = np.zeros(len(problem.y), np.bool_)

    def move_to(self, inside: Mask) -> None:
        """Make A the rows of ``inside`` (n,): by what changed, or from scratch where that is less work."""
        changed = inside != self.inside
        if np.count_nonzero(changed) >= np.count_nonzero(inside):
            self.matrix[:] = 0.0
            changed = inside
        for sign, moved in ((1.0, changed & inside), (-1.0, changed & ~inside)):
            numbers = np.flatnonzero(moved)
            for start in range(0, len(numbers), BLOCK):
                block = numbers[start : start + BLOCK]
                scaled = self.problem.Z[block] * np.sqrt(self.problem.weights[block])[:, None]
                self.matrix += sign * (scaled.T @ scaled)
        self.inside = inside


def solve_path(problem: Primal, costs: Sequence[float]) -> Iterator[Solution]:
    """Yield the solution at each cost, ascending; each starts from the one before, the first from 0.

    Raises:
        FloatingPointError: the numbers are too large for float64.
    """
    n, r = problem.Z.shape
    if (problem.y == problem.y[0]).all():  # w = 0 and b = y are a minimum at every cost
        constant = np.append(np.zeros(r - 1), problem.y[0])
        yield from (Solution(constant, 0, True) for _ in costs)
        return
    gram, point = Gram(problem), Point(np.zeros(r), np.zeros(n))
    for C in costs:
        steps, converged = 0, False
        while not converged and steps < MAX_STEPS:
            direction, fall = find_direction(gram, point, C)
            point, value = search_line(problem, point, direction, C, fall)
            if not np.isfinite(value):
                raise FloatingPointError(f"the SVM at C = {C:g} exceeds what float64 can hold")
            converged, steps = fall <= TOLERANCE * value, steps + 1
        yield Solution(point.coefficients, steps, converged)


def find_direction(gram: Gram, point: Point, C: float) -> tuple[Point, float]:
    """Return the Newton step at a point, and by how much the quadratic at this point falls along it.

    The Gram matrix is moved to the rows whose loss is not 0.
    """
    problem = gram.problem
    slack = np.maximum(0.0, 1.0 - problem.y * point.f)
    gram.move_to(slack > 0.0)
    gradient = -2.0 * (problem.Z.T @ (problem.weights * problem.y * slack))
    gradient[:-1] += point.coefficients[:-1] / C
    hessian = 2.0 * gram.matrix
    diagonal = np.einsum("ii->i", hessian)
    diagonal[:-1] += 1.0 / C
    if not gram.inside.any():  # nothing depends on b, and its gradient is 0
        diagonal[-1] = 1.0
    step = np.asarray(-np.linalg.solve(hessian, gradient))
    return Point(step, problem.Z @ step), float(-(gradient @ step) / 2.0)


def search_line(
    problem: Primal, start: Point, direction: Point, C: float, fall: float
) -> tuple[Point, float]:
    """Return the point at the largest of 1, 1/2, 1/4, ... of a direction where P falls enough, and P there.

    Enough is a share of what the slope at the start promises: ``ARMIJO`` times 2 ``fall`` times the length.
    """
    length, value = 1.0, problem.evaluate(start, C)
    while True:
        moved = (x + length * change for x, change in zip(start, direction, strict=True))
        point = Point(*moved)
        reached = problem.evaluate(point, C)
        if reached <= value - 2.0 * ARMIJO * length * fall or length < MIN_STEP:
            return point, reached
        length /= 2.0


class NystroemCodec(Codec[NystroemModel]):
    """A row for each model, whose landmarks are row numbers.

    Args:
        n_landmarks: number of landmarks of each model.
    """

    schema = pa.schema(
        [
            ("C", pa.float64()),
            ("gamma", pa.float64()),
            ("centre", NUMBERS),
            ("scale", NUMBERS),
            ("rows", pa.list_(pa.int64())),
            ("dual_coef", pa.list_(NUMBERS)),
            ("offset", NUMBERS),
        ]
    )
    hyperparameters = KERNEL

    def __init__(self, n_landmarks: int) -> None:
        self.n_landmarks = n_landmarks

    def write(self, model: NystroemModel) -> Cells:
        """Return the numbers of a model, except the features of its landmarks, which are in the data."""
        own = {"rows": model.landmarks.rows, "offset": model.offset, "dual_coef": model.dual_coef}
        return {**self.setting(model), **own, **model.landmarks.scaling._asdict()}

    def read(self, row: Cells, task: Task) -> NystroemModel:
        """Return the model in a row of the table.

        Raises:
            ValueError: its numbers cannot be those of a model that was fitted to the task.
            IndexError: a row number does not exist in the task.
        """
        rows, n_outputs = np.array(row["rows"], np.intp), len(choose_classes(task.n_classes))
        if len(rows) != self.n_landmarks or np.any(np.diff(rows, prepend=-1) <= 0):
            raise ValueError(f"expected {self.n_landmarks} landmarks, in ascending order")
        lengths = [len(row["offset"]), *map(len, row["dual_coef"])]
        if lengths != [n_outputs, *[self.n_landmarks] * n_outputs]:
            raise ValueError(f"expected {n_outputs} offsets, and as many lists of {len(rows)} coefficients")
        coefficients, offset = np.array(row["dual_coef"]), np.array(row["offset"])
        scaling = read_scaling(row, task.X.shape[1], [coefficients, offset])
        vectors = task.X[rows].astype(np.float64)  # one dtype object: the same pickle wherever X came from
        return NystroemModel(row["C"], row["gamma"], Landmarks(rows, vectors, scaling), coefficients, offset)


@dataclass(frozen=True)
class NystroemSVM(KernelMachine):
    """A linear SVM on Nyström features of the Gaussian kernel, with offset and squared hinge loss.

    The kernel is approximated by its values at ``landmarks`` rows, drawn at random from the training rows of
    each split. The linear problem is solved exactly, to the tenth digit of what it minimises. Time grows with
    the number of rows, not with its square. With more than two classes, each is separated from all others.

    Attributes:
        C: costs, positive; sorted, made unique, rounded to 12 significant digits.
        gamma: kernel widths, like ``C``.
        scale: "standard" (fitted only on the training rows of each split) or "none".
        landmarks: number of landmarks: more are closer to the kernel, and time grows with their square.
        class_weight: factors of C by class: "balanced" (n / (K n_c), from the n training rows of each split,
            n_c of them of class c, one of K), or by label as a mapping or as text such as "sick=10,well=1",
            where a class that is not named weighs 1; "equal" or None for equal weights.

    Raises:
        InputError: a field of the wrong type or outside its range.
    """

    name: ClassVar[str] = "svm_nystroem"
    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.BINARY, Kind.MULTICLASS})
    outputs: ClassVar[frozenset[Output]] = frozenset({Output.RANK})
    weighs_rows: ClassVar[bool] = True

    landmarks: int = option(
        500,
        partial(integer, least=1, most=MAX_LANDMARKS),
        "Rows by which svm_nystroem approximates.",
        int,
        inside="param",
    )
    class_weight: str | Mapping[Label, float] | None = option(EQUALLY, CLASS_WEIGHT)

    @cached_property
    def trainer(self) -> "NystroemTrainer":
        """The trainer, which fits and checks."""
        return NystroemTrainer(self)

    @cached_property
    def codec(self) -> "NystroemCodec":
        """The codec, which stores landmarks by their row numbers."""
        return NystroemCodec(self.landmarks)

    def check_rows(self, n_train: int) -> None:
        """Check that there are as many training rows as landmarks; see ``base.Learner``."""
        if self.landmarks > n_train:
            raise InputError(
                f"param landmarks={self.landmarks}: they are drawn from the training rows of a "
                f"split, which may be only {n_train}: give at most {n_train}, or choose learner svm, which "
                "is exact"
            )


@dataclass(frozen=True)
class NystroemTrainer(Trainer):
    """Fits the settings of a learner."""

    learner: NystroemSVM
    convergence_advice: ClassVar[str] = "leave out the largest values of C"

    def prepare(self, shared: Task, train: Index, score: Index) -> "NystroemBlock":
        """Draw the landmarks of a split, at random by the numbers of its rows alone, and fit its scaling.

        Raises:
            ValueError: there are fewer training rows than landmarks.
        """
        different, m = np.unique(train), self.learner.landmarks
        if len(different) < m:
            raise ValueError(f"{m} landmarks cannot be drawn from {len(different)} training rows")
        draws = np.random.default_rng(make_seed_sequence(train))
        rows = np.sort(draws.choice(different, m, replace=False))
        landmarks = Landmarks(rows, shared.X[rows], fit_scaling(shared.X[train], self.learner.scale))
        return NystroemBlock(self, shared, train, score, landmarks)

    def cost(self, n_train: int) -> float:
        """Return the number of training rows, and a constant."""
        return float(n_train + SOLVE_ROWS * self.learner.landmarks)

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the bytes of the training rows' features, of the landmarks' matrices, and of the rows."""
        m = self.learner.landmarks
        features = n_train * (m + 1 + COLUMNS)
        matrices = m * (8 * m + 3 * BLOCK)
        scored = n_score * 3 * len(self.learner.C)
        return 8 * (features + matrices + SCALING_COPIES * n_train * d + scored)


class NystroemBlock(NamedTuple):
    """One split: its rows to train on and to score, and its landmarks."""

    trainer: NystroemTrainer
    task: Task
    train: Index
    score: Index
    landmarks: Landmarks

    def fit(self, path: int, length: int) -> FitsOf:
        """Fit the first ``length`` costs at one gamma."""
        learner = self.trainer.learner
        costs, gamma = learner.C[:length], learner.gamma[path]
        normalisation, problems = self.make_problems(gamma)
        outputs = [list(solve_path(problem, costs)) for problem in problems]
        models = []
        for C, *solutions in zip(costs, *outputs, strict=True):
            coefficients = np.array([solution.coefficients for solution in solutions])
            dual_coef, offset = coefficients[:, :-1] @ normalisation.T, coefficients[:, -1].copy()
            models.append(NystroemModel(C, gamma, self.landmarks, dual_coef, offset))
        converged = np.all([[solution.converged for solution in path] for path in outputs], axis=0)
        return FitsOf(
            np.where(converged, CONVERGED, NOT_CONVERGED).astype(np.int8),
            np.sum([[solution.n_iter for solution in path] for path in outputs], axis=0),
            partial(self.compute_totals, models),
            models.__getitem__,
        )

    def compute_totals(self, models: Sequence[NystroemModel], measure: Measure) -> NDArray[np.int64]:
        """Return the totals of models at one gamma on the scored rows, whose kernel they all share."""
        y, first = self.task.y[self.score], models[0]
        coefficients = np.concatenate([model.dual_coef for model in models])
        offsets = np.concatenate([model.offset for model in models])
        values = first.landmarks.evaluate(self.task.X, self.score, first.gamma, coefficients, offsets)
        labels = (classify(part).label for part in np.split(values, len(models), axis=1))
        return np.array([measure.totals(y, label, self.task.n_classes) for label in labels])

    def make_problems(self, gamma: float) -> tuple[Values, list[Primal]]:
        """Return N [m, r] with z(x) = N'k(x), and what is minimised at a gamma for each output.

        N is made of the r eigenvectors of K that are not within rounding.
        """
        task, y, landmarks = self.task, self.task.y[self.train], self.landmarks
        every = np.arange(len(landmarks.rows))
        K = np.concatenate([part for _, part in landmarks.compute_kernel(landmarks.vectors, every, gamma)])
        eigenvalues, eigenvectors = np.linalg.eigh((K + K.T) / 2.0)
        used = eigenvalues > RANK * eigenvalues[-1]
        normalisation = np.asarray(eigenvectors[:, used] / np.sqrt(eigenvalues[used]))
        Z = np.ones((len(y), normalisation.shape[1] + 1))
        for place, part in landmarks.compute_kernel(task.X, self.train, gamma):
            Z[place, :-1] = part @ normalisation
        weights = compute_weights(str(self.trainer.learner.class_weight), task.classes, y)[y]
        if (of_rows := task.weighting.take(self.train)) is not None:
            weights = weights * of_rows
        positive = choose_classes(task.n_classes)
        return normalisation, [Primal(Z, np.where(y == c, 1.0, -1.0), weights) for c in positive]
