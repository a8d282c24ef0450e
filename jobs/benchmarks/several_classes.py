"""The SVM of several classes against scikit-learn's SVC: seconds for one split, 13 C x 11 gamma, one thread.

Ours is ``evaluate`` as a run calls it: scaling, distances, a path for each pair of classes and gamma, votes,
totals. The baseline fits an ``SVC`` at every setting to the scaled training rows and predicts the scored
rows. Both alternate in small steps (``turns``), and ratios are medians over the repeats.
"""

from collections.abc import Iterator
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.svm import SVC

from ckcv_ray import Study, read_task
from ckcv_ray.core.resampling.base import Split
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.evaluate import Inputs, evaluate, share
from ckcv_ray.errors import InputError
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.learners.svm.one_against_one import ClassesBlock
from ckcv_ray.learners.svm.scaling import fit_scaling
from ckcv_ray.study import Problem
from jobs.benchmarks.turns import Clock, in_one_step, take_turns

K_FOLDS = (3, 10)


class Case(NamedTuple):
    """A data set at one k: the problem, the workers' inputs, its learner and its only split."""

    problem: Problem
    inputs: Inputs
    learner: GaussianSVM
    split: Split


def load(name: str, k: int) -> Case:
    """Load a data set of scikit-learn, such as digits, or of any source, such as a file."""
    task, _ = read_task(name if ":" in name or "." in name else f"sklearn:{name}")
    if task.n_classes == 2:
        raise InputError(f"{name} has two classes: use --sets instead of --data")
    learner = GaussianSVM()
    problem = Problem.of(Study.paper(n_splits=1, k=k).with_learner(learner), task)
    return Case(problem, share(problem), learner, problem.split(0, 0))


def ours(case: Case) -> None:
    """Fit every setting on the split, as a run does it."""
    unit = Unit(Stage.SELECT, 0, 0, tuple(enumerate(case.learner.space.lengths)))
    if evaluate([unit], case.inputs).failures:
        raise RuntimeError("a path failed")


def svc(case: Case, tolerance: float = 1e-3) -> Iterator[Any]:
    """Fit SVC at every setting, one in each step; yield its labels of the scored rows."""
    X, y = case.problem.task.X, case.problem.task.y
    scaling = fit_scaling(X[case.split.train], case.learner.scale)
    train, scored = scaling.apply(X[case.split.train]), scaling.apply(X[case.split.select])
    for gamma in case.learner.gamma:
        for C in case.learner.C:
            yield SVC(C=C, gamma=gamma, tol=tolerance).fit(train, y[case.split.train]).predict(scored)


def differing(case: Case) -> int:
    """Count the labels that differ from those of SVC, over all settings: tolerances allow a few."""
    block = case.learner.trainer.prepare(case.inputs.shared, case.split.train, case.split.select)
    assert isinstance(block, ClassesBlock)
    labels = [block.fit(path, length).predict() for path, length in enumerate(case.learner.space.lengths)]
    pairs = zip(np.concatenate(labels), svc(case), strict=True)
    return int(sum(np.sum(one != other) for one, other in pairs))


def bench(name: str, k: int, repeats: int, clock: Clock = perf_counter) -> dict[str, Any]:
    """Time interleaved rounds of ours and SVC on one split at k folds."""
    case = load(name, k)
    ours(case)  # compiles, or reads the cache
    works = in_one_step(partial(ours, case)), partial(svc, case)
    rounds = [take_turns(works, clock) for _ in range(repeats)]
    return {
        "classes": case.problem.task.n_classes,
        "n_train": len(case.split.train),
        "seconds": median(by_us for by_us, _ in rounds),
        "ratio_svc": median(by_svc / by_us for by_us, by_svc in rounds),
        "differing": differing(case),
        "labels": len(case.split.select) * sum(case.learner.space.lengths),
    }


def line(name: str, row: dict[str, Any]) -> str:
    """Format the figures of one set and k."""
    return (
        f"{name:<16}{row['classes']:3d} classes {row['n_train']:5d} rows {row['seconds']:8.3f} s a split "
        f"{row['ratio_svc']:6.1f} x SVC  differing {row['differing']} of {row['labels']:,} labels"
    )
