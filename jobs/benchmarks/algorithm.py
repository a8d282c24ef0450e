"""Algorithm 1 in one process against the paper's plain loop written with scikit-learn's SVC.

7 C x 7 gamma, k = 3, 4, 5, 10, ten splits: 3 920 fits for the plain loop, which fits every cell on TR and
again on TR + MS. Ours is ``run_table`` with the serial backend: the same splits, all shortcuts, the refits,
the certificate. The two take small turns (``turns``); medians are printed. ``same``: the triple is equal, and
so is every verdict on a select or estimate row whose decision value lies beyond the reach of both tolerances.

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

from ckcv_ray.core.resampling import Index, complete_kfold
from ckcv_ray.core.threads import one_thread
from ckcv_ray.data import task as data
from ckcv_ray.data.task import Table
from ckcv_ray.engine.evaluate import roles
from ckcv_ray.learners.svm import SOLVERS
from ckcv_ray.learners.svm.kernels import complement, complement_of, gaussian, squared_distances
from ckcv_ray.learners.svm.problem import describe
from ckcv_ray.runs.run import run_table
from ckcv_ray.study import Execution, Stage, Study, Triple, parse_grid
from jobs.benchmarks.rivals import Found, plain_loop, reach
from jobs.benchmarks.turns import Clock, take_turns

SETS = ("twonorm", "banana", "heart", "german")


def ours(study: Study, table: Table) -> Iterator[Found]:
    """Algorithm 1 by this package, in one step."""
    result = run_table(study, table, execution=Execution("serial"))
    yield Found(Triple(result.C, result.gamma, result.k), result.l_ms, result.l_ee)


class Contestant:
    """Algorithm 1 by one of the two, and what it found last."""

    def __init__(self, steps: Callable[[Study, Table], Iterator[Found]], study: Study, table: Table) -> None:
        self.steps, self.study, self.table = steps, study, table

    def __call__(self) -> Iterator[None]:
        """One pass; splits drawn in an earlier one are drawn again."""
        complete_kfold.cache_clear()
        for found in self.steps(self.study, self.table):
            self.found = found
            yield


def differing(study: Study, table: Table, triple: Triple, train: Index, score: Index) -> int:
    """Rows of ``score`` beyond the reach of the tolerances that the two solvers judge differently."""
    X, y = table.X[train], table.y[train].astype(np.float64)
    D, D_score = squared_distances(X, X), squared_distances(table.X[score], X)
    K, K_score = gaussian(D, triple.gamma), gaussian(D_score, triple.gamma)
    C_values = tuple(C for C in study.C if C <= triple.C)
    a = SOLVERS["newton"](complement_of(complement(D, triple.gamma)), y, C_values, 1e-3, 10**7).solution(-1)
    machine = SVC(C=triple.C, gamma=triple.gamma).fit(X, y)
    b = np.zeros(len(y))
    b[machine.support_] = machine.dual_coef_[0]
    their = describe(K @ b, y, b, triple.C, 0, a.status)
    f, g = K_score @ a.b + a.offset, machine.decision_function(table.X[score])
    near = reach(K, y, a, triple.C).decision + reach(K, y, their, triple.C).decision
    return int(np.sum((np.abs(g) > near) & (np.sign(f) != np.sign(g))))


def same(study: Study, table: Table, mine: Found, theirs: Found) -> bool:
    """Whether the answers are equal, but for rows within the reach of the tolerances."""
    if mine.triple != theirs.triple:
        return False
    k = mine.triple.k
    splits = [complete_kfold(table.n, k, i, study.n_splits, study.seed) for i in range(study.n_splits)]
    pairs = [roles(stage, split) for split in splits for stage in (Stage.SELECT, Stage.REFIT)]
    return not sum(differing(study, table, mine.triple, train, score) for train, score in pairs)


def bench(name: str, repeats: int, clock: Clock = perf_counter) -> dict[str, Any]:
    """Interleaved rounds on realization 1 of one set, or on a source such as waveform:200:0."""
    table = data.learning_table(data.read(name if ":" in name else f"ida:{name}:1").learn)
    study = Study(
        C=parse_grid("log:-2:4:7", "C"),
        gamma=parse_grid("log:-4:1:7", "gamma"),
        k=(3, 4, 5, 10),
        n_splits=10,
        scaling="none",
    )
    contestants = Contestant(ours, study, table), Contestant(plain_loop, study, table)
    list(contestants[0]())  # compiles, or reads the cache
    rounds = [take_turns(contestants, clock) for _ in range(repeats)]
    mine, theirs = contestants[0].found, contestants[1].found
    return {
        "seconds": median(own for own, _ in rounds),
        "seconds_plain": median(plain for _, plain in rounds),
        "ratio": median(plain / own for own, plain in rounds),
        "same": same(study, table, mine, theirs),
        "triple": list(mine.triple),
        "l_ms": [mine.l_ms, theirs.l_ms],
        "l_ee": [mine.l_ee, theirs.l_ee],
    }


def line(name: str, row: dict[str, Any]) -> str:
    """One set's figures, ours before the plain loop's."""
    C, gamma, k = row["triple"]
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
