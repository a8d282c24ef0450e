"""The linear SVM with the squared hinge loss, in the primal: a path over its cost C by Newton's method.

For rows z_i of Z [n, r], signs y_i, weights s_i > 0 and a cost C, minimise over w and b

    P(w, b) = |w|^2 / (2 C) + sum_i s_i max(0, 1 - y_i f_i)^2,    f_i = w'z_i + b,

the usual form divided by C. P is convex, piecewise quadratic and continuously differentiable: with the rows
A of y_i f_i < 1 and their weights S, its generalised Hessian in w is I / C + 2 Z_A' S Z_A. Newton steps
that are halved until P falls enough (Armijo) end at the exact minimum after finitely many, as the last one
leaves A as it was (Mangasarian, Optimization Methods and Software 17, 2002; Keerthi, DeCoste, JMLR 6,
2005). A step costs two passes over Z, and products of the rows that entered or left A: the Gram matrix Z_A'
S Z_A is kept along the path.

The last column of Z is of ones: its coefficient is b, and has no part in |w|^2. All sums are float64.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ckcv_ray.core.arrays import Index, Mask, Values

TOLERANCE = 1e-10  # of P, by which the quadratic at a converged solution may still fall
MOST_STEPS = 200
ARMIJO = 1e-4
LEAST_STEP = 1e-12
BLOCK = 4096  # rows whose products are added at once


class Solution(NamedTuple):
    """The minimum at one cost: (w, b) as one vector [r], Newton steps, and whether these converged."""

    coefficients: Values
    n_iter: int
    converged: bool


class Point(NamedTuple):
    """Coefficients [r], and the decision values f (n,) of the rows at these."""

    coefficients: Values
    f: Values

    def move(self, direction: "Point", length: float) -> "Point":
        """Return the point at some length of a direction."""
        return Point(self.coefficients + length * direction.coefficients, self.f + length * direction.f)


class Primal(NamedTuple):
    """What is fitted: features Z [n, r], the last of them 1, signs y (n,) of -1 and 1, and weights (n,)."""

    Z: Values
    y: Values
    weights: Values

    @property
    def constant(self) -> Values | None:
        """Where all signs are equal the coefficients w = 0 and b = y, a minimum at every cost; else None."""
        return np.append(np.zeros(self.Z.shape[1] - 1), self.y[0]) if (self.y == self.y[0]).all() else None

    def find_slack(self, f: Values) -> Values:
        """Return max(0, 1 - y f) of each row, given f (n,)."""
        return np.maximum(0.0, 1.0 - self.y * f)

    def evaluate(self, point: Point, C: float) -> float:
        """Return P at a point."""
        w, slack = point.coefficients[:-1], self.find_slack(point.f)
        return float(w @ w / (2.0 * C) + (self.weights * slack) @ slack)

    def find_gradient(self, point: Point, C: float) -> Values:
        """Return the gradient of P at a point, [r]."""
        gradient = -2.0 * (self.Z.T @ (self.weights * self.y * self.find_slack(point.f)))
        gradient[:-1] += point.coefficients[:-1] / C
        return gradient


class Gram:
    """Z_A' S Z_A [r, r] for a set A of rows that changes little from one step to the next."""

    def __init__(self, problem: Primal) -> None:
        self.problem, r = problem, problem.Z.shape[1]
        self.matrix = np.zeros((r, r))
        self.inside = np.zeros(len(problem.y), np.bool_)

    def move_to(self, inside: Mask) -> None:
        """Make A the rows of ``inside`` (n,): by what changed, or from nothing where that is less."""
        changed = inside != self.inside
        if np.count_nonzero(changed) >= np.count_nonzero(inside):
            self.matrix[:] = 0.0
            changed = inside
        self._add(np.flatnonzero(changed & inside), 1.0)
        self._add(np.flatnonzero(changed & ~inside), -1.0)
        self.inside = inside

    def _add(self, numbers: Index, sign: float) -> None:
        for start in range(0, len(numbers), BLOCK):
            block = numbers[start : start + BLOCK]
            scaled = self.problem.Z[block] * np.sqrt(self.problem.weights[block])[:, None]
            self.matrix += sign * (scaled.T @ scaled)

    def find_step(self, gradient: Values, C: float) -> Values:
        """Return the Newton step [r] at a gradient [r]."""
        hessian = 2.0 * self.matrix
        diagonal = np.einsum("ii->i", hessian)
        diagonal[:-1] += 1.0 / C
        if not self.inside.any():  # nothing depends on b, and its gradient is 0
            diagonal[-1] = 1.0
        return np.asarray(-np.linalg.solve(hessian, gradient))


def solve_path(problem: Primal, costs: Sequence[float]) -> Iterator[Solution]:
    """Yield the solution at each cost, ascending; each starts from the one before, the first from 0.

    Raises:
        FloatingPointError: the numbers are too large for float64.
    """
    n, r = problem.Z.shape
    if (constant := problem.constant) is not None:
        yield from (Solution(constant, 0, True) for _ in costs)
        return
    gram, point = Gram(problem), Point(np.zeros(r), np.zeros(n))
    for C in costs:
        steps, converged = 0, False
        while not converged and steps < MOST_STEPS:
            direction, fall = find_direction(gram, point, C)
            point, value = search_line(problem, point, direction, C, fall)
            if not np.isfinite(value):
                raise FloatingPointError(f"the SVM at C = {C:g} exceeds what float64 can hold")
            converged, steps = fall <= TOLERANCE * value, steps + 1
        yield Solution(point.coefficients, steps, converged)


def find_direction(gram: Gram, point: Point, C: float) -> tuple[Point, float]:
    """Return the Newton step at a point, and by how much the quadratic there falls along it.

    The Gram matrix is moved to the rows whose loss is not 0.
    """
    problem = gram.problem
    gram.move_to(problem.find_slack(point.f) > 0.0)
    gradient = problem.find_gradient(point, C)
    step = gram.find_step(gradient, C)
    return Point(step, problem.Z @ step), float(-(gradient @ step) / 2.0)


def search_line(
    problem: Primal, start: Point, direction: Point, C: float, fall: float
) -> tuple[Point, float]:
    """Return the point at the largest of 1, 1/2, 1/4, ... of a direction where P falls enough, and P there.

    Enough is a share of what the slope at the start promises: ``ARMIJO`` of 2 ``fall`` and the length.
    """
    length, value = 1.0, problem.evaluate(start, C)
    while True:
        point = start.move(direction, length)
        reached = problem.evaluate(point, C)
        if reached <= value - 2.0 * ARMIJO * length * fall or length < LEAST_STEP:
            return point, reached
        length /= 2.0
