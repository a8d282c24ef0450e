"""Benchmark of the solver against scikit-learn's SVC, on X and precomputed: milliseconds per fit.

13 C x 11 gamma on training sets of n - n/4 rows, three splits per gamma, one thread, ours and the baselines
in small alternating steps; medians over the repeats, all costs included. Ours is ``evaluate`` as a run calls
it: distances, kernel, gather, fits, scores. Decisions are compared with LIBSVM at a tolerance of
1e-6, where |f| exceeds sqrt(2 gap) + KKT violation of both solutions together (what the tolerances allow).

    python -m jobs.benchmarks.solver --sets banana,german --repeats 5
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.svm import SVC

from ckcv_ray import Study, read_task
from ckcv_ray.core.process import one_thread
from ckcv_ray.core.resampling.base import Split
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.evaluate import evaluate, share
from ckcv_ray.errors import Classes
from ckcv_ray.learners.svm.kernels import Complement, compute_complement, compute_distances, gaussian
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.learners.svm.path import path
from ckcv_ray.learners.svm.problem import Options, fit_scaling
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
LINE = (
    "{name:<12}{ms_per_fit:8.4f} ms/fit {ratio_svc:6.1f} x SVC {ratio_precomputed:6.1f} x precomputed  "
    "max {max_ms:5.2f} ms  {n_iter:5.0f} iter  KKT {worst_kkt:.2e}  deficit {worst_deficit:.1e}  "
    "differing {differing} (+{near} near)"
)
K_FOLDS = 8  # select and estimate sets of n/8 rows leave n - n/4 to train on
SPLITS = 3
Matrix = NDArray[np.float64]


class Case(NamedTuple):
    """A prepared set: the problem, its learner, its labels as signs, and its splits."""

    problem: Problem
    learner: GaussianSVM
    y: Classes
    splits: list[Split]

    @property
    def X(self) -> Matrix:
        """Inputs."""
        return self.problem.task.X


def load(name: str) -> Case:
    """Load a set of the IDA archive, or any source such as waveform:200:0, without scaling in splits."""
    task, _ = read_task(name_source(name))
    if choose_scale(name) == "standard":
        task = replace(task, X=np.ascontiguousarray(fit_scaling(task.X).apply(task.X)))
    learner = GaussianSVM(scale="none")
    problem = Problem.of(Study.paper(n_splits=SPLITS, k=K_FOLDS).with_learner(learner), task)
    return Case(problem, learner, 2 * task.y - 1, [problem.split(0, i) for i in range(SPLITS)])


def ours(case: Case) -> None:
    """Fit every setting on every split, as a run does."""
    paths = tuple(enumerate(case.learner.space.lengths))
    units = [Unit(Stage.SELECT, 0, i, paths) for i in range(SPLITS)]
    if evaluate(share(case.problem), units).failures:
        raise RuntimeError("a path failed")


def svc(case: Case) -> Iterator[None]:
    """Fit SVC on X, one gamma of one split in each step."""
    for split in case.splits:
        X, y, new = case.X[split.train], case.y[split.train], case.X[split.select]
        for gamma in case.learner.gamma:
            for C in case.learner.C:
                SVC(C=C, gamma=gamma).fit(X, y).decision_function(new)
            yield


def precomputed(case: Case) -> Iterator[None]:
    """Fit SVC on a kernel gathered from one for all C and splits, one gamma of one split in each step."""
    distances = compute_distances(case.X, case.X)
    for gamma in case.learner.gamma:
        K = gaussian(distances, gamma)
        for split in case.splits:
            train, new = K[np.ix_(split.train, split.train)], K[np.ix_(split.select, split.train)]
            for C in case.learner.C:
                SVC(C=C, kernel="precomputed").fit(train, case.y[split.train]).decision_function(new)
            yield


class Audit(NamedTuple):
    """One split's fits against LIBSVM at a tolerance of 1e-6."""

    worst_kkt: float  # largest KKT violation, in float64 from K alone
    worst_deficit: float  # largest (dual objective of LIBSVM's - ours) / max(1, |LIBSVM's|)
    n_iter: float  # mean iterations of a fit, a linear system counting as one
    differing: int  # decisions that differ by more than the tolerances allow
    near: int  # decisions that differ, but within the tolerances
    max_ms: float  # the slowest fit


def audit(case: Case) -> Audit:
    """Check every fit of one split."""
    X, new = case.X[case.splits[0].train], case.X[case.splits[0].select]
    y = case.y[case.splits[0].train].astype(float)
    distances, scored = compute_distances(X, X), compute_distances(new, X)
    worst, deficit, differing, near, slowest = 0.0, 0.0, 0, 0, 0.0
    iterations: list[int] = []
    for gamma in case.learner.gamma:
        M, K, K_score = compute_complement(X, gamma), gaussian(distances, gamma), gaussian(scored, gamma)
        fits = libsvm.list_solutions(path(M, y, Options(case.learner.C, 1e-3, 10**7)))
        exact = libsvm.list_solutions(libsvm.path(M, y, Options(case.learner.C, 1e-6, 10**7)))
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


def slowest_fit(M: Complement, y: Matrix, C_values: tuple[float, ...]) -> float:
    """Time the slowest C of a path: differences of the times of its prefixes, each the least of three."""

    def time(n_C: int) -> float:
        start = perf_counter()
        path(M, y, Options(C_values[:n_C], 1e-3, 10**7))
        return perf_counter() - start

    times = [min(time(n_C) for _ in range(3)) for n_C in range(1, len(C_values) + 1)]
    return max(b - a for a, b in zip([0.0, *times], times, strict=False))


def bench(name: str, repeats: int, clock: Clock = perf_counter) -> Row:
    """Time interleaved rounds of ours and the baselines on one set."""
    case = load(name)
    ours(case)  # compile, or read the cache
    works = (in_one_step(partial(ours, case)), partial(svc, case), partial(precomputed, case))
    rounds = [take_turns(works, clock) for _ in range(repeats)]
    seconds = median(by_us for by_us, _, _ in rounds)
    return {
        "ms_per_fit": 1e3 * seconds / (SPLITS * len(case.learner.C) * len(case.learner.gamma)),
        "ratio_svc": median(on_X / by_us for by_us, on_X, _ in rounds),
        "ratio_precomputed": median(on_K / by_us for by_us, _, on_K in rounds),
        **audit(case)._asdict(),
    }


def main(sets: Sets = SETS, repeats: Repeats = 5, as_json: AsJson = False) -> None:
    """Print one line for each set, and the geometric means of the ratios."""
    with one_thread():
        show(((name, bench(name, repeats)) for name in sets.split(",")), LINE, RATIOS, as_json)


if __name__ == "__main__":
    typer.run(main)
