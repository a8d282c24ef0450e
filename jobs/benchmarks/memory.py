"""Benchmark of one path whose kernel does not fit into memory: three C at gamma 1/d on twonorm.

20 000 rows would need 8 GB for the kernel in two precisions and its distances. Prints seconds, the peak
memory of this process and the worst KKT violation, computed again from the rows; fails above the limit.
``--baseline`` adds LIBSVM, which caches 200 MB of its kernel.

    python jobs/benchmarks/memory.py --rows 20000 --limit 2048
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import json
import resource
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer

from ckcv_ray import read_task
from ckcv_ray.core.threads import one_thread
from ckcv_ray.learners.svm.kernels import complement_product
from ckcv_ray.learners.svm.memory import Matrix
from ckcv_ray.learners.svm.problem import Solutions, describe, make_signs
from ckcv_ray.learners.svm.solvers import ON_POINTS, PathSolverOnPoints
from jobs.benchmarks import libsvm

C_VALUES = (0.1, 1.0, 10.0)


def worst_violation(X: Matrix, y: Matrix, gamma: float, fits: Solutions) -> float:
    """Compute the largest KKT violation of the fits, from the rows and b alone."""
    worst = 0.0
    for C, s in zip(C_VALUES, fits.solutions(), strict=True):
        used = np.flatnonzero(s.b)
        Kb = s.b.sum() - complement_product(X, X[used], gamma, s.b[used])
        worst = max(worst, describe(Kb, y, s.b, C, s.n_iter, s.status).violation)
    return worst


def bench(path: PathSolverOnPoints, X: Matrix, y: Matrix) -> dict[str, Any]:
    """Time one path once; the peak memory is that of the process so far."""
    gamma = 1.0 / X.shape[1]
    start = perf_counter()
    fits = path(X, gamma, y, C_VALUES, 1e-3, 10**7)
    return {
        "seconds": perf_counter() - start,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "support": [int(np.count_nonzero(b)) for b in fits.b],
        "worst_kkt": worst_violation(X, y, gamma, fits),
        "worst_gap": float(fits.gap.max()),
        "value": fits.value.tolist(),
    }


def main(
    rows: Annotated[int, typer.Option(min=10, help="Rows of twonorm.")] = 20_000,
    limit: Annotated[int, typer.Option(help="Peak memory allowed, MiB.")] = 2048,
    baseline: Annotated[bool, typer.Option("--baseline", help="Measure LIBSVM too, after ours.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print one line for each solver; exit with 1 if ours needed more than the limit."""
    task, _ = read_task(f"twonorm:{rows}:0")
    y = make_signs(task).astype(np.float64)
    solvers = ON_POINTS | ({"libsvm": libsvm.path_on_points} if baseline else {})
    with one_thread():
        ON_POINTS["newton"](task.X[:50], 0.05, y[:50], C_VALUES, 1e-3, 10**7)  # compiles, or reads the cache
        results = {name: bench(path, task.X, y) for name, path in solvers.items()}
    if as_json:
        print(json.dumps(results))
    else:
        for name, row in results.items():
            print(
                f"{name:<8}{row['seconds']:7.1f} s  peak {row['peak_mib']:5.0f} MiB  "
                f"support {row['support']}  worst KKT {row['worst_kkt']:.1e}  gap {row['worst_gap']:.1e}"
            )
    raise typer.Exit(int(results["newton"]["peak_mib"] > limit))


if __name__ == "__main__":
    typer.run(main)
