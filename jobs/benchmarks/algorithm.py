"""Benchmark of Algorithm 1 in one process against the paper's plain loop with scikit-learn's SVC.

7 C x 7 gamma, k = 3, 4, 5, 10, ten splits: 3 920 fits for the plain loop, which fits every candidate on
TR and again on TR + MS. Ours is ``run_job`` with the serial backend: the same splits, all shortcuts, the
refits, the certificate. The two are timed in small alternating steps (``turns``); medians are printed.
``same``: the winners are equal, and so is the predicted class of every select or estimate row whose decision
value is further from 0 than the tolerances of both solvers together allow it to be wrong.

    python jobs/benchmarks/algorithm.py --sets banana,heart --repeats 5
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import json
from collections.abc import Callable, Iterator
from statistics import geometric_mean, median
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.svm import SVC

from ckcv_ray import Execution, Job, Study, Task, read_task
from ckcv_ray.core.arrays import Index
from ckcv_ray.core.process import one_thread
from ckcv_ray.core.resampling.complete import split_complete
from ckcv_ray.core.schedule import Stage
from ckcv_ray.learners.svm.kernels import complement, compute_distances, gaussian, make_complement
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.learners.svm.path import path
from ckcv_ray.learners.svm.problem import make_signs
from ckcv_ray.runs.run import run_job
from ckcv_ray.study.problem import Problem
from jobs.benchmarks.baselines import Answer, Winner, plain_loop, reach
from jobs.benchmarks.libsvm import describe, list_solutions
from jobs.benchmarks.turns import Clock, take_turns

SETS = ("twonorm", "banana", "heart", "german")


def ours(study: Study, task: Task) -> Iterator[Answer]:
    """Run Algorithm 1 with this package, in one step."""
    result = run_job(Job(study, task), Execution("serial"))
    yield Answer((result.setting["C"], result.setting["gamma"], result.k), result.l_ms, result.l_ee)


class Implementation:
    """Algorithm 1 by one of the two, and its latest answer."""

    def __init__(self, steps: Callable[[Study, Task], Iterator[Answer]], study: Study, task: Task) -> None:
        self.steps, self.study, self.task = steps, study, task

    def __call__(self) -> Iterator[None]:
        """Run one pass; the splits are drawn again in each."""
        split_complete.cache_clear()
        for answer in self.steps(self.study, self.task):
            self.answer = answer
            yield


def differing(problem: Problem, winner: Winner, train: Index, score: Index) -> int:
    """Count the rows of ``score`` that the solvers classify differently, beyond their tolerances."""
    task, (winning, gamma, _) = problem.task, winner
    assert isinstance(problem.learner, GaussianSVM)
    X, y = task.X[train], make_signs(task)[train].astype(np.float64)
    D, D_score = compute_distances(X, X), compute_distances(task.X[score], X)
    K, K_score = gaussian(D, gamma), gaussian(D_score, gamma)
    costs = tuple(cost for cost in problem.learner.C if cost <= winning)
    a = list_solutions(path(make_complement(complement(D, gamma)), y, costs, 1e-3, 10**7))[-1]
    model = SVC(C=winning, gamma=gamma).fit(X, y)
    b = np.zeros(len(y))
    b[model.support_] = model.dual_coef_[0]
    their = describe(K @ b, y, b, winning, 0, a.status)
    f, g = K_score @ a.b + a.offset, model.decision_function(task.X[score])
    near = reach(K, y, a, winning).decision + reach(K, y, their, winning).decision
    return int(np.sum((np.abs(g) > near) & (np.sign(f) != np.sign(g))))


def same(study: Study, task: Task, mine: Answer, theirs: Answer) -> bool:
    """Check that the answers are equal, except on rows within the tolerances."""
    if mine.winner != theirs.winner:
        return False
    problem = Problem.of(study, task)
    size = next(j for j, size in enumerate(problem.sizes) if size.k == mine.winner[2])
    splits = range(problem.sizes[size].n_splits)
    pairs = [problem.rows(stage, size, i) for i in splits for stage in (Stage.SELECT, Stage.REFIT)]
    return not sum(differing(problem, mine.winner, train, score) for train, score in pairs)


def bench(name: str, repeats: int, clock: Clock = perf_counter) -> dict[str, Any]:
    """Time interleaved rounds on realization 1 of one set, or on a source such as waveform:200:0."""
    task, _ = read_task(name if ":" in name else f"ida:{name}:1")
    study = Study.paper(C="log:-2:4:7", gamma="log:-4:1:7", k=(3, 4, 5, 10), n_splits=10, scale="none")
    package, plain = Implementation(ours, study, task), Implementation(plain_loop, study, task)
    list(package())  # compiles, or reads the cache
    rounds = [take_turns((package, plain), clock) for _ in range(repeats)]
    mine, theirs = package.answer, plain.answer
    return {
        "seconds": median(by_us for by_us, _ in rounds),
        "seconds_plain": median(by_loop for _, by_loop in rounds),
        "ratio": median(by_loop / by_us for by_us, by_loop in rounds),
        "same": same(study, task, mine, theirs),
        "candidate": list(mine.winner),
        "l_ms": [mine.l_ms, theirs.l_ms],
        "l_ee": [mine.l_ee, theirs.l_ee],
    }


def line(name: str, row: dict[str, Any]) -> str:
    """Format the figures of one set, ours before the plain loop's."""
    C, gamma, k = row["candidate"]
    bounds = "  ".join(f"{key.upper()} {row[key][0]:.4f} / {row[key][1]:.4f}" for key in ("l_ms", "l_ee"))
    return (
        f"{name:<10}{row['seconds']:8.3f} s  plain {row['seconds_plain']:7.2f} s  {row['ratio']:5.0f} x  "
        f"same {row['same']}  C {C:g}, gamma {gamma:g}, k {k}  {bounds}"
    )


def main(
    sets: Annotated[str, typer.Option(help="Sets or sources: a,b,waveform:200:0.")] = ",".join(SETS),
    repeats: Annotated[int, typer.Option(min=1, help="Rounds; medians are printed.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print one line for each set, and the geometric mean of the ratios."""
    results: dict[str, dict[str, Any]] = {}
    with one_thread():
        for name in sets.split(","):
            row = results[name] = bench(name, repeats)
            if not as_json:
                print(line(name, row))
                sys.stdout.flush()
    mean = geometric_mean([row["ratio"] for row in results.values()])
    print(json.dumps({"sets": results, "geomean_ratio": mean}) if as_json else f"geometric mean {mean:.0f} x")


if __name__ == "__main__":
    typer.run(main)
