"""Benchmark of ``svm_nystroem``: a path of costs at one gamma on a large split, and LinearSVC.

Processor time on one thread: features of the training rows and all fits; LinearSVC is given the features of
scikit-learn's Nystroem with as many landmarks, which count as its own time, and one cost.

    python -m jobs.benchmarks.landmarks --rows 20000
    python -m jobs.benchmarks.landmarks --rows 133000
"""

import resource
from time import process_time
from typing import Annotated

import numpy as np
import typer
from sklearn.kernel_approximation import Nystroem
from sklearn.svm import LinearSVC

from ckcv_ray import read_task
from ckcv_ray.core.process import one_thread
from ckcv_ray.extend import NystroemSVM

GAMMA, SCORED = 0.01, 1000


def main(
    rows: Annotated[int, typer.Option(help="Training rows of the split.")] = 20_000,
    landmarks: Annotated[int, typer.Option(help="Landmarks.")] = 500,
    C: Annotated[float, typer.Option("--C", help="Cost of LinearSVC.")] = 1.0,
) -> None:
    """Time one path of costs, and one fit of LinearSVC."""
    task = read_task(f"twonorm:{rows + SCORED}:0")[0]
    train, score = np.arange(rows), np.arange(rows, rows + SCORED)
    learner = NystroemSVM(gamma=(GAMMA,), landmarks=landmarks)
    with one_thread():
        began = process_time()
        block = learner.trainer.prepare(learner.trainer.share(task), train, score)
        block.fit(0, len(learner.C))
        ours = process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        began = process_time()
        X = Nystroem(gamma=GAMMA, n_components=landmarks, random_state=0).fit_transform(task.X[train])
        features = process_time() - began
        LinearSVC(C=C, dual=False, tol=1e-4).fit(X, task.y[train])
        theirs = process_time() - began - features
    print(
        f"{rows:,} rows, {landmarks} landmarks: {len(learner.C)} costs in {ours:.1f} s, peak {peak:,} MiB; "
        f"LinearSVC at C = {C:g} in {theirs:.1f} s after {features:.1f} s for its features"
    )


if __name__ == "__main__":
    typer.run(main)
