"""Algorithm 1 in one process against the paper's plain loop written with scikit-learn's SVC.

7 C x 7 gamma, k = 3, 4, 5, 10, ten splits: 3 920 fits for the plain loop, which fits every candidate on
TR and again on TR + MS. Ours is ``run_job`` with the serial backend: the same splits, all shortcuts, the
refits, the certificate. The two take small turns (``turns``); medians are printed. ``same``: the winner is
equal, and so is every verdict on a select or estimate row whose decision value lies beyond the reach of both
tolerances.

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
from ckcv_ray.core.resampling import complete_kfold
from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.threads import one_thread
from ckcv_ray.data.schema import Index
from ckcv_ray.learners.svm import SOLVERS
from ckcv_ray.learners.svm.kernels import complement, complement_of, gaussian, squared_distances
from ckcv_ray.learners.svm.learner import GaussianSVM, signs
from ckcv_ray.learners.svm.problem import describe
from ckcv_ray.runs.run import run_job
from ckcv_ray.study import Problem
from jobs.benchmarks.baselines import Found, Winner, plain_loop, reach
from jobs.benchmarks.turns import Clock, take_turns

SETS = ("twonorm", "banana", "heart", "german")


def ours(study: Study, task: Task) -> Iterator[Found]:
    """Algorithm 1 by this package, in one step."""
    result = run_job(Job(study, task), Execution("serial"))
    yield Found((result.setting["C"], result.setting["gamma"], result.k), result.l_ms, result.l_ee)


class Contestant:
    """Algorithm 1 by one of the two, and what it found last."""

    def __init__(self, steps: Callable[[Study, Task], Iterator[Found]], study: Study, task: Task) -> None:
        self.steps, self.study, self.task = steps, study, task

    def __call__(self) -> Iterator[None]:
        """One pass; splits drawn in an earlier one are drawn again."""
        complete_kfold.cache_clear()
        for found in self.steps(self.study, self.task):
            self.found = found
            yield


def differing(problem: Problem, winner: Winner, train: Index, score: Index) -> int:
    """Rows of ``score`` beyond the reach of the tolerances that the two solvers judge differently."""
    task, (winning, gamma, _) = problem.task, winner
    assert isinstance(problem.learner, GaussianSVM)
    X, y = task.X[train], signs(task)[train].astype(np.float64)
    D, D_score = squared_distances(X, X), squared_distances(task.X[score], X)
    K, K_score = gaussian(D, gamma), gaussian(D_score, gamma)
    costs = tuple(cost for cost in problem.learner.C if cost <= winning)
    a = SOLVERS["newton"](complement_of(complement(D, gamma)), y, costs, 1e-3, 10**7).solution(-1)
    machine = SVC(C=winning, gamma=gamma).fit(X, y)
    b = np.zeros(len(y))
    b[machine.support_] = machine.dual_coef_[0]
    their = describe(K @ b, y, b, winning, 0, a.status)
    f, g = K_score @ a.b + a.offset, machine.decision_function(task.X[score])
    near = reach(K, y, a, winning).decision + reach(K, y, their, winning).decision
    return int(np.sum((np.abs(g) > near) & (np.sign(f) != np.sign(g))))


def same(study: Study, task: Task, mine: Found, theirs: Found) -> bool:
    """Whether the answers are equal, but for rows within the reach of the tolerances."""
    if mine.winner != theirs.winner:
        return False
    problem = Problem.of(study, task)
    size = next(j for j, size in enumerate(problem.sizes) if size.k == mine.winner[2])
    splits = range(problem.sizes[size].n_splits)
    pairs = [problem.rows(stage, size, i) for i in splits for stage in (Stage.SELECT, Stage.REFIT)]
    return not sum(differing(problem, mine.winner, train, score) for train, score in pairs)


def bench(name: str, repeats: int, clock: Clock = perf_counter) -> dict[str, Any]:
    """Interleaved rounds on realization 1 of one set, or on a source such as waveform:200:0."""
    task, _ = read_task(name if ":" in name else f"ida:{name}:1")
    study = Study.of(C="log:-2:4:7", gamma="log:-4:1:7", k=(3, 4, 5, 10), n_splits=10, scale="none")
    contestants = Contestant(ours, study, task), Contestant(plain_loop, study, task)
    list(contestants[0]())  # compiles, or reads the cache
    rounds = [take_turns(contestants, clock) for _ in range(repeats)]
    mine, theirs = contestants[0].found, contestants[1].found
    return {
        "seconds": median(own for own, _ in rounds),
        "seconds_plain": median(plain for _, plain in rounds),
        "ratio": median(plain / own for own, plain in rounds),
        "same": same(study, task, mine, theirs),
        "candidate": list(mine.winner),
        "l_ms": [mine.l_ms, theirs.l_ms],
        "l_ee": [mine.l_ee, theirs.l_ee],
    }


def line(name: str, row: dict[str, Any]) -> str:
    """One set's figures, ours before the plain loop's."""
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
    found: dict[str, dict[str, Any]] = {}
    with one_thread():
        for name in sets.split(","):
            row = found[name] = bench(name, repeats)
            if not as_json:
                print(line(name, row))
                sys.stdout.flush()
    mean = geometric_mean([row["ratio"] for row in found.values()])
    print(json.dumps({"sets": found, "geomean_ratio": mean}) if as_json else f"geometric mean {mean:.0f} x")


if __name__ == "__main__":
    typer.run(main)
