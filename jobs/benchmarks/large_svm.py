"""Benchmark of cross validation of the SVM on large tables: 50 values of C at one gamma, by ``evaluate``.

The setting is that of table 2 of Zhang, Jia, Ding, Wang, "TorchKM: A GPU-Oriented Library for Kernel
Learning and Model Selection" (arXiv 2606.06742, 2026), with ten folds: two classes of five Gaussian clusters
each, with a standard deviation of 3 around means drawn from N(0, 1), half of whose coordinates are moved by 2
for either class; the columns are standardised. gamma is the sum of 1 / q10 and 1 / q90, the quantiles of the
squared distances of pairs of rows. The grid of C is theirs as well: 1 / (2 n lambda) for 50 values of lambda
from 10^-3 to 10^3 ("lambda"), or 50 values of C from 10^-3 to 10^3 as in their appendix B.1 ("C").

Published for 10,000 rows and 1,000 columns: TorchKM on an L40S GPU 37.7 s, ThunderSVM 279 s, scikit-learn
14,323 s. ``--workers 0`` computes in this process, and its processor time, unlike the time on the clock,
hardly depends on what else the machine does.

    python jobs/benchmarks/large_svm.py --columns 10,1000 --workers 2 --json
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import json
import os
import resource
from time import perf_counter, process_time
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

if "RAY_ADDRESS" not in os.environ:  # before ray is imported: a local Ray on loopback alone
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")

from ckcv_ray import Execution
from ckcv_ray.core.threads import one_thread
from ckcv_ray.engine.backend import Session, session
from ckcv_ray.runs.run import Work, run_work
from ckcv_ray.study import Problem, Study
from ckcv_ray.tables.task import Task

CLUSTERS, SHIFT, SPREAD = 5, 2.0, 3.0
N_COSTS = 50
GRIDS = ("lambda", "C")
Matrix = NDArray[np.float64]


def draw(rows: int, columns: int, seed: int = 0) -> tuple[Matrix, NDArray[np.int64]]:
    """Draw standardised inputs [rows, columns] and labels -1 and 1 (rows,)."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(rows, columns)))
    means = rng.normal(size=(2, CLUSTERS, columns))
    means[0, :, : columns // 2] += SHIFT
    means[1, :, columns // 2 :] += SHIFT
    labels, clusters = rng.integers(0, 2, rows), rng.integers(0, CLUSTERS, rows)
    X = SPREAD * rng.normal(size=(rows, columns)) + means[labels, clusters]
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1), 2 * labels - 1


def choose_gamma(X: Matrix, seed: int = 0) -> float:
    """Return 1 / q10 + 1 / q90 of the squared distances of n / 2 pairs of rows."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=X.shape))
    first, second = rng.integers(0, len(X), (2, len(X) // 2))
    distances = np.square(X[first] - X[second]).sum(axis=1)
    return float(np.sum(1.0 / np.quantile(distances[distances > 0], (0.1, 0.9))))


def make_problem(rows: int, columns: int, grid: str, scale: str, resampling: str, n_costs: int) -> Problem:
    """Return the study of one table: every C on every split, scored by accuracy."""
    X, y = draw(rows, columns)
    values = np.logspace(-3, 3, n_costs)  # its reciprocals are the same values
    C = values / (2 * rows) if grid == "lambda" else values
    study = Study.without_certification(
        resampling, "accuracy", learner="svm", C=tuple(C.tolist()), gamma=(choose_gamma(X),), scale=scale
    )
    return Problem.of(study, Task.of(X, y))


def bench(problem: Problem, opened: Session) -> dict[str, Any]:
    """Time one study once; processor time and peak memory are those of this process."""
    start, processor = perf_counter(), process_time()
    result = run_work(Work(problem), opened=opened)
    seconds, processor = perf_counter() - start, process_time() - processor
    accuracy = [float(result.of_splits(entry, result.scores[0]).mean()) for entry in result.entries]
    best = int(np.argmax(accuracy))
    return {
        "seconds": seconds,
        "processor_seconds": processor,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "C": problem.learner.space.setting(0, best)["C"],
        "gamma": problem.learner.space.setting(0, best)["gamma"],
        "accuracy": accuracy[best],
    }


def line(name: str, row: dict[str, Any]) -> str:
    """Format the figures of one table."""
    return (
        f"{name:<16}{row['seconds']:7.1f} s  processor {row['processor_seconds']:6.1f} s  peak "
        f"{row['peak_mib']:5.0f} MiB  best C {row['C']:.3g}  gamma {row['gamma']:.3g}  "
        f"accuracy {row['accuracy']:.4f}"
    )


def main(
    rows: Annotated[int, typer.Option(min=20, help="Rows of each table.")] = 10_000,
    columns: Annotated[str, typer.Option(help="Columns of the tables: p,q.")] = "10,100,1000",
    grid: Annotated[str, typer.Option(help="Grid of C: lambda or C.")] = "lambda",
    scale: Annotated[str, typer.Option(help="Scaling in each split: standard or none.")] = "standard",
    resampling: Annotated[str, typer.Option(help="How rows are divided.")] = "kfold:10",
    costs: Annotated[int, typer.Option(min=2, help="Values of C.")] = 50,
    workers: Annotated[int, typer.Option(min=0, help="Workers of Ray; 0 for this process alone.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print one line for each table."""
    if grid not in GRIDS:
        raise typer.BadParameter(f"--grid {grid}: choose lambda or C")
    execution = Execution("ray", workers) if workers else Execution("serial")
    results: dict[str, dict[str, Any]] = {}
    with one_thread(), session(execution) as opened:
        bench(make_problem(60, 10, grid, scale, "kfold:3", 2), opened)  # compiles, or reads the cache
        for p in map(int, columns.split(",")):
            name = f"{rows} x {p}"
            results[name] = bench(make_problem(rows, p, grid, scale, resampling, costs), opened)
            if not as_json:
                print(line(name, results[name]), flush=True)
    if as_json:
        print(json.dumps({"grid": grid, "scale": scale, "workers": workers, "tables": results}))


if __name__ == "__main__":
    typer.run(main)
