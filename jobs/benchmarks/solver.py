"""Benchmark of the solver against scikit-learn's SVC, on X and precomputed: milliseconds per fit.

13 C x 11 gamma on training sets of n - n/4 rows, three splits per gamma, one thread, ours and the baselines
in small alternating steps; medians over the repeats, all costs included. Ours is ``evaluate`` as
a run calls it: distances, kernel, gather, fits, scores. Decisions are compared with LIBSVM at a tolerance of
1e-6, where |f| exceeds sqrt(2 gap) + KKT violation of both solutions together (what the tolerances allow).

    python -m jobs.benchmarks.solver --sets banana,german --repeats 5
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.svm import SVC

from ckcv_ray import Study, read_task
from ckcv_ray.core.process import one_thread
from ckcv_ray.core.resampling.base import Split
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.evaluate import evaluate, share
from ckcv_ray.learners.svm.kernels import complement, compute_distances, gaussian, make_complement
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.learners.svm.path import path
from ckcv_ray.learners.svm.problem import Signs, fit_scaling, make_signs
from ckcv_ray.study.problem import Problem
from jobs.benchmarks import libsvm
from jobs.benchmarks.baselines import reach
from jobs.frame import (
    AsJson,
    Clock,
    Repeats,
    Row,
    Sets,
    choose_scale,
    in_one_step,
    name_source,
    show,
    take_turns,
)

SETS = "twonorm,ringnorm,banana,german,diabetis,image,splice"
RATIOS = ("ratio_svc", "ratio_precomputed")
K_FOLDS = 8  # select and estimate sets of n/8 rows leave n - n/4 to train on
SPLITS = 3
ROOT = Path(__file__).resolve().parents[2]
FIRST_CALL = """
from time import perf_counter
from ckcv_ray import Study, read_task
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.evaluate import evaluate, share
from ckcv_ray.study.problem import Problem
problem = Problem.of(Study.paper(k=3, scale="none"), read_task("twonorm:60:0")[0])
start = perf_counter()
evaluate([Unit(Stage.SELECT, 0, 0, ((5, 13),))], share(problem))
print(perf_counter() - start)
"""
Matrix = NDArray[np.float64]


class Case(NamedTuple):
    """A prepared set: the problem, its learner, its labels as signs, and its splits."""

    problem: Problem
    learner: GaussianSVM
    y: Signs
    splits: list[Split]

    @property
    def X(self) -> Matrix:
        """Inputs."""
        return self.problem.task.X


def load(name: str, scale: str) -> Case:
    """Load a set of the IDA archive, or any source such as waveform:200:0."""
    task, _ = read_task(name_source(name))
    if choose_scale(name) == "standard":
        task = replace(task, X=np.ascontiguousarray(fit_scaling(task.X).apply(task.X)))
    learner = GaussianSVM(scale=scale)
    problem = Problem.of(Study.paper(n_splits=SPLITS, k=K_FOLDS).with_learner(learner), task)
    return Case(problem, learner, make_signs(task), [problem.split(0, i) for i in range(SPLITS)])


def ours(case: Case) -> None:
    """Fit every setting on every split, as a run does it."""
    paths = tuple(enumerate(case.learner.space.lengths))
    units = [Unit(Stage.SELECT, 0, i, paths) for i in range(SPLITS)]
    if evaluate(units, share(case.problem)).failures:
        raise RuntimeError("a path failed")


def scaled(case: Case, split: Split) -> tuple[Matrix, Matrix]:
    """Scale the training rows and the rows to score, as the learner does."""
    scaling = fit_scaling(case.X[split.train], case.learner.scale)
    return scaling.apply(case.X[split.train]), scaling.apply(case.X[split.select])


def svc(case: Case) -> Iterator[None]:
    """Fit SVC on X, one gamma of one split in each step."""
    for split in case.splits:
        X, new = scaled(case, split)
        for gamma in case.learner.gamma:
            for C in case.learner.C:
                SVC(C=C, gamma=gamma).fit(X, case.y[split.train]).decision_function(new)
            yield


def kernel_blocks(case: Case) -> Iterator[tuple[Split, Matrix, Matrix]]:
    """Yield the kernels of every gamma and split; without scaling, gathered from one for all splits."""
    if case.learner.scale == "none":
        distances = compute_distances(case.X, case.X)
        for gamma in case.learner.gamma:
            K = gaussian(distances, gamma)
            for split in case.splits:
                yield split, K[np.ix_(split.train, split.train)], K[np.ix_(split.select, split.train)]
        return
    for split in case.splits:
        X, new = scaled(case, split)
        distances, scored = compute_distances(X, X), compute_distances(new, X)
        for gamma in case.learner.gamma:
            yield split, gaussian(distances, gamma), gaussian(scored, gamma)


def precomputed(case: Case) -> Iterator[None]:
    """Fit SVC on a kernel matrix shared by all C, one gamma of one split in each step."""
    for split, K, K_score in kernel_blocks(case):
        for C in case.learner.C:
            SVC(C=C, kernel="precomputed").fit(K, case.y[split.train]).decision_function(K_score)
        yield


class Audit(NamedTuple):
    """One split's fits against LIBSVM at a tolerance of 1e-6.

    Attributes:
        worst_kkt: largest KKT violation, in float64 from K alone.
        worst_deficit: largest (dual objective of LIBSVM's - ours) / max(1, |LIBSVM's|).
        n_iter: mean iterations of a fit, a linear system counting as one.
        differing: decisions that differ by more than the tolerances allow.
        near: decisions that differ, but within the tolerances.
        max_ms: the slowest fit.
    """

    worst_kkt: float
    worst_deficit: float
    n_iter: float
    differing: int
    near: int
    max_ms: float


def audit(case: Case) -> Audit:
    """Check every fit of one split."""
    X, new = scaled(case, case.splits[0])
    y = case.y[case.splits[0].train].astype(float)
    distances, scored = compute_distances(X, X), compute_distances(new, X)
    worst, deficit, differing, near, slowest = 0.0, 0.0, 0, 0, 0.0
    iterations: list[int] = []
    for gamma in case.learner.gamma:
        M, K, K_score = complement(distances, gamma), gaussian(distances, gamma), gaussian(scored, gamma)
        fits = libsvm.list_solutions(path(make_complement(M), y, case.learner.C, 1e-3, 10**7))
        exact = libsvm.list_solutions(libsvm.path(make_complement(M), y, case.learner.C, 1e-6, 10**7))
        for C, a, b in zip(case.learner.C, fits, exact, strict=True):
            reach_a, reach_b = reach(K, y, a, C), reach(K, y, b, C)
            worst = max(worst, reach_a.violation)
            deficit = max(deficit, (a.value - b.value) / max(1.0, abs(b.value)))
            iterations.append(a.n_iter)
            f, g = K_score @ a.b + a.offset, K_score @ b.b + b.offset
            clear = np.abs(g) > reach_a.decision + reach_b.decision
            apart = np.sign(f) != np.sign(g)
            differing, near = differing + int(np.sum(clear & apart)), near + int(np.sum(~clear & apart))
        slowest = max(slowest, slowest_fit(M, y, case.learner.C))
    return Audit(worst, deficit, float(np.mean(iterations)), differing, near, 1e3 * slowest)


def slowest_fit(M: Matrix, y: Matrix, C_values: tuple[float, ...]) -> float:
    """Time the slowest C of a path: differences of the times of its prefixes, each the least of three."""
    kernel = make_complement(M)

    def time(n_C: int) -> float:
        start = perf_counter()
        path(kernel, y, C_values[:n_C], 1e-3, 10**7)
        return perf_counter() - start

    times = [min(time(n_C) for _ in range(3)) for n_C in range(1, len(C_values) + 1)]
    return max(b - a for a, b in zip([0.0, *times], times, strict=False))


def first_call(fresh: bool) -> float:
    """Time the first split in a new process, without imports: compiled, or from the cache."""
    with TemporaryDirectory() as empty:
        environment = os.environ | ({"NUMBA_CACHE_DIR": empty} if fresh else {})
        command = [sys.executable, "-c", FIRST_CALL]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, check=True, text=True)
    return float(done.stdout)


def bench(name: str, scale: str, repeats: int, clock: Clock = perf_counter) -> Row:
    """Time interleaved rounds of ours and the baselines on one set."""
    case = load(name, scale)
    ours(case)  # compiles, or reads the cache
    works = (in_one_step(partial(ours, case)), partial(svc, case), partial(precomputed, case))
    rounds = [take_turns(works, clock) for _ in range(repeats)]
    seconds = median(by_us for by_us, _, _ in rounds)
    return {
        "scaling": scale,
        "ms_per_fit": 1e3 * seconds / (SPLITS * len(case.learner.C) * len(case.learner.gamma)),
        "ratio_svc": median(on_X / by_us for by_us, on_X, _ in rounds),
        "ratio_precomputed": median(on_K / by_us for by_us, _, on_K in rounds),
        **audit(case)._asdict(),
    }


def line(name: str, row: Row) -> str:
    """Format the figures of one set."""
    return (
        f"{name:<12}{row['ms_per_fit']:8.4f} ms/fit {row['ratio_svc']:6.1f} x SVC "
        f"{row['ratio_precomputed']:6.1f} x precomputed  max {row['max_ms']:5.2f} ms  "
        f"{row['n_iter']:5.0f} iter  "
        f"KKT {row['worst_kkt']:.2e}  deficit {row['worst_deficit']:.1e}  "
        f"differing {row['differing']} (+{row['near']} near)"
    )


def main(
    sets: Sets = SETS,
    repeats: Repeats = 5,
    scaling: Annotated[str, typer.Option(help="none or standard.")] = "none",
    first: Annotated[
        bool, typer.Option("--first/--no-first", help="Time the first call too, which compiles the solver.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Print one line for each set, and the geometric means of the ratios."""
    if first:
        cold, _, warm = first_call(fresh=True), first_call(fresh=False), first_call(fresh=False)
        print(
            f"first call of the solver: {cold:.1f} s compiled, {warm:.2f} s from the cache", file=sys.stderr
        )
    with one_thread():
        show(((name, bench(name, scaling, repeats)) for name in sets.split(",")), line, RATIOS, as_json)


if __name__ == "__main__":
    typer.run(main)
