"""The solver against scikit-learn's SVC, on X and precomputed: milliseconds per fit, all costs included.

13 C x 11 gamma on training sets of n - n/4 rows, three splits for each gamma, one thread, each round of ours
between rounds of the rivals; medians over the repeats. Ours is ``worker.evaluate`` as a run calls it:
distances, kernel, gather, fits, scores. Decisions are compared with LIBSVM at a tolerance of 1e-6, where
|f| exceeds sqrt(2 gap) + KKT violation of both solutions together (the reach of the tolerances).

    python jobs/bench_solver.py --sets banana,german --repeats 5
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean, median
from time import perf_counter
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ckcv_ray import data, worker
from ckcv_ray.core.kernels import complement, complement_of, gaussian, squared_distances
from ckcv_ray.core.scaling import standard
from ckcv_ray.core.splits import Split, complete_kfold
from ckcv_ray.core.svm import SOLVERS, Solution
from ckcv_ray.core.threads import one_thread
from ckcv_ray.study import Stage, Study, Task

SETS = ("twonorm", "ringnorm", "banana", "german", "diabetis", "image", "splice")
STANDARDISED = ("splice",)
K_FOLDS = 8  # select and estimate sets of n/8 rows leave n - n/4 to train on
SPLITS = 3
Matrix = NDArray[np.float64]


class Case(NamedTuple):
    """One set made ready: the study, its table, and its splits."""

    study: Study
    X: Matrix
    y: NDArray[np.int8]
    splits: list[Split]


class Reach(NamedTuple):
    """How far a solution may be from the optimum: duality gap and KKT violation, from K alone."""

    gap: float
    violation: float

    @property
    def decision(self) -> float:
        """Bound on the error of a decision value."""
        return float(np.sqrt(2 * max(0.0, self.gap)) + max(0.0, self.violation))


def load(name: str, scaling: str) -> Case:
    """A set of the IDA archive, or twonorm with 4000 rows."""
    columns = data.read("twonorm:4000:0" if name == "twonorm4000" else f"ida:{name}:1")
    table = data.learning_table(columns.learn)
    X = standard(table.X).apply(table.X) if name in STANDARDISED else table.X
    study = Study(scaling=scaling, n_splits=SPLITS, k=(K_FOLDS,))
    splits = [complete_kfold(table.n, K_FOLDS, i, SPLITS, study.seed) for i in range(SPLITS)]
    return Case(study, np.ascontiguousarray(X), table.y, splits)


def ours(case: Case) -> None:
    """Every fit, as a run does it."""
    shared = worker.share(case.X, case.y, case.study)
    paths = tuple((g, len(case.study.C)) for g in range(len(case.study.gamma)))
    tasks = [Task(Stage.SELECT, K_FOLDS, i, paths) for i in range(SPLITS)]
    if worker.evaluate(tasks, case.study, shared).failures:
        raise RuntimeError("a path failed")


def svc(case: Case) -> None:
    """SVC on X."""
    for train, select, _ in case.splits:
        for gamma in case.study.gamma:
            for C in case.study.C:
                machine = SVC(C=C, gamma=gamma).fit(case.X[train], case.y[train])
                machine.decision_function(case.X[select])


def precomputed(case: Case) -> None:
    """SVC on a kernel matrix that the splits and C share."""
    distances = squared_distances(case.X, case.X)
    for gamma in case.study.gamma:
        K = gaussian(distances, gamma)
        for train, select, _ in case.splits:
            block, score = K[np.ix_(train, train)], K[np.ix_(select, train)]
            for C in case.study.C:
                SVC(C=C, kernel="precomputed").fit(block, case.y[train]).decision_function(score)


def seconds(call: Callable[[Case], None], case: Case) -> float:
    """Time one round."""
    start = perf_counter()
    call(case)
    return perf_counter() - start


def reach(K: Matrix, y: Matrix, s: Solution, C: float) -> Reach:
    """Duality gap and violation computed here, from the definitions."""
    Kb = K @ s.b
    slope = y - Kb
    primal = s.b @ Kb / 2 + C * np.maximum(0.0, 1.0 - y * (Kb + s.offset)).sum()
    rises, falls = s.b < np.maximum(0.0, C * y), s.b > np.minimum(0.0, C * y)
    return Reach(primal - (y @ s.b - s.b @ Kb / 2), slope[rises].max() - slope[falls].min())


def audit(case: Case) -> tuple[float, int, float]:
    """Worst KKT violation, decisions that differ beyond the reach, slowest fit in ms, on one split."""
    train, select, _ = case.splits[0]
    y = case.y[train].astype(float)
    distances = squared_distances(case.X[train], case.X[train])
    scored = squared_distances(case.X[select], case.X[train])
    worst, differing, slowest = 0.0, 0, 0.0
    for gamma in case.study.gamma:
        M, K, K_score = complement(distances, gamma), gaussian(distances, gamma), gaussian(scored, gamma)
        fits = SOLVERS["newton"](complement_of(M), y, case.study.C, 1e-3, 10**7).solutions()
        exact = SOLVERS["libsvm"](complement_of(M), y, case.study.C, 1e-6, 10**7).solutions()
        for C, a, b in zip(case.study.C, fits, exact, strict=True):
            reach_a, reach_b = reach(K, y, a, C), reach(K, y, b, C)
            worst = max(worst, reach_a.violation)
            f, g = K_score @ a.b + a.offset, K_score @ b.b + b.offset
            clear = np.abs(g) > reach_a.decision + reach_b.decision
            differing += int(np.sum(clear & (np.sign(f) != np.sign(g))))
        slowest = max(slowest, slowest_fit(M, y, case.study.C))
    return worst, differing, 1e3 * slowest


def slowest_fit(M: Matrix, y: Matrix, C_values: tuple[float, ...]) -> float:
    """The longest any one C of a path takes: differences of the times of its beginnings, least of three."""
    kernel = complement_of(M)

    def time(n_C: int) -> float:
        start = perf_counter()
        SOLVERS["newton"](kernel, y, C_values[:n_C], 1e-3, 10**7)
        return perf_counter() - start

    times = [min(time(n_C) for _ in range(3)) for n_C in range(1, len(C_values) + 1)]
    return max(b - a for a, b in zip([0.0, *times], times, strict=False))


def bench(name: str, scaling: str, repeats: int) -> dict[str, Any]:
    """Interleaved rounds of ours and the rivals on one set."""
    case = load(name, scaling)
    ours(case)  # compiles, or reads the cache
    rounds = [[seconds(call, case) for call in (ours, svc, precomputed)] for _ in range(repeats)]
    mine, on_X, on_K = (median(column) for column in zip(*rounds, strict=True))
    worst, differing, slowest = audit(case)
    return {
        "ms_per_fit": 1e3 * mine / (SPLITS * len(case.study.C) * len(case.study.gamma)),
        "ratio_svc": on_X / mine,
        "ratio_precomputed": on_K / mine,
        "max_ms": slowest,
        "worst_kkt": worst,
        "differing": differing,
    }


def main(
    sets: Annotated[str, typer.Option(help="Some of the sets, or twonorm4000: a,b,c.")] = ",".join(SETS),
    repeats: Annotated[int, typer.Option(min=1, help="Rounds; medians are printed.")] = 5,
    scaling: Annotated[str, typer.Option(help="none or standard.")] = "none",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print one line for each set, and the geometric means of the ratios."""
    start = perf_counter()
    tiny = np.array([[0.0, 0.5], [0.5, 0.0]])
    SOLVERS["newton"](complement_of(tiny), np.array([-1.0, 1.0]), (1.0,), 1e-3, 100)
    print(
        f"first call of the solver: {perf_counter() - start:.1f} s (compiled, or from cache)", file=sys.stderr
    )
    found: dict[str, dict[str, Any]] = {}
    with one_thread():
        for name in sets.split(","):
            found[name] = bench(name, scaling, repeats)
            if not as_json:
                print(f"{name:<12}" + "  ".join(f"{key} {value:.4g}" for key, value in found[name].items()))
                sys.stdout.flush()
    means = {
        f"geomean_{key}": geometric_mean([row[key] for row in found.values()])
        for key in ("ratio_svc", "ratio_precomputed")
    }
    print(
        json.dumps({"sets": found, **means})
        if as_json
        else "  ".join(f"{k} {v:.1f}" for k, v in means.items())
    )


if __name__ == "__main__":
    typer.run(main)
