"""Benchmark against GridSearchCV: the same settings, the same splits, the same measure; seconds of a search.

The splits are the training and model selection sets of one k, given to GridSearchCV as ``cv``, with the share
of correct rows as its score and ``refit=False``; ours minimises the plain mean error (``mean_error``). Every
``random_state`` is 0, so that both fit the same models, and every fit has one thread. Timed:

    serial      GridSearchCV with n_jobs=1, and our selection in this process
    loky        GridSearchCV with joblib's processes, one for each worker
    ray_joblib  GridSearchCV with Ray's backend of joblib
    ours        our selection on Ray
    whole       the whole of our run on Ray: selection, refits and bounds

All pools are warm: a small search of the same kind runs first in each. Searches take turns, but for
``ray_joblib``, which comes last, since its actors take a while to end. Medians over the repeats are shown.
``ratio`` is loky / ours, ``serial_ratio`` that of the serial ones. They agree if each evaluation that ours
computed has as many errors as GridSearchCV's fit on that split, and the winner's mean error is
GridSearchCV's smallest.

    python jobs/benchmarks/search.py
    python jobs/benchmarks/search.py --learners boosting,tree --data breast_cancer --repeats 3 --json
    python jobs/benchmarks/search.py --learners xgboost,lightgbm,catboost
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import json
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from statistics import geometric_mean, median
from time import perf_counter
from typing import Annotated, Any, NamedTuple, cast

import joblib
import numpy as np
import typer
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV

if "RAY_ADDRESS" not in os.environ:  # before ray is imported: a local Ray on loopback alone
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")

from ckcv_ray import Execution, Job, Study, read_task
from ckcv_ray.core.process import one_thread
from ckcv_ray.core.schedule import Stage
from ckcv_ray.engine.backend import SERIAL, Session, session, start_backend
from ckcv_ray.engine.evaluate import share
from ckcv_ray.engine.loop import work
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.engine.recorder import Recorder
from ckcv_ray.learners.sklearn.learner import BOOSTING, NAMED, EstimatorLearner
from ckcv_ray.learners.sklearn.spec import complete_names, list_packages, prepare, trust
from ckcv_ray.runs.run import check_job, never, run_work
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.task import Task

LEARNERS = ("boosting", "forest", "neighbors", "tree", "naive_bayes", "linear")
DATA = ("breast_cancer", "made_up")
LAST = "ray_joblib"
LONG = 5.0  # seconds of loky's search from which on ours must not be slower
KNOWN = {learner.name: learner for learner in (*NAMED, *BOOSTING)}


class Search(NamedTuple):
    """One search in both forms.

    Attributes:
        problem: ours.
        grid: that of GridSearchCV, to be cloned for each search.
    """

    problem: Problem
    grid: GridSearchCV


def load(name: str) -> Task:
    """Return a data set of scikit-learn or of any source, or one that is made up.

    That one has two classes, each of some clusters, and a tenth of the labels drawn at random.
    """
    if name == "made_up":
        options = {"n_clusters_per_class": 3, "flip_y": 0.1, "random_state": 0}
        return Task.of(*make_classification(2000, 20, n_informative=8, **options))
    return read_task(name if ":" in name or "." in name else f"sklearn:{name}")[0]


def make_search(learner: EstimatorLearner, task: Task, k: int, splits: int) -> Search:
    """Return a learner's search on the splits of one k."""
    seeded = {"random_state": (0,)} if "random_state" in learner.parameter_names() else {}
    learner = replace(learner, param={**(learner.param or {}), **seeded})
    study = Study.paper(k=k, n_splits=splits, criterion="mean_error").with_learner(learner)
    problem = Problem.of(study, task)
    estimator = learner.build()
    prepare(estimator)  # one thread, and no output
    estimator.set_params(**complete_names(estimator, dict.fromkeys(seeded, 0)))
    params = complete_names(estimator, {name: list(values) for name, values in learner.all_values.items()})
    cv = [problem.rows(Stage.SELECT, 0, i) for i in range(problem.sizes[0].n_splits)]
    grid = GridSearchCV(estimator, params, scoring="accuracy", cv=cv, refit=False, error_score="raise")
    return Search(problem, grid)


def select(search: Search, opened: Session) -> RaceQueue:
    """Run our selection in memory, and return what it found."""
    recorder: Recorder[RaceQueue] = Recorder(search.problem)
    with start_backend(opened.backend, share(search.problem)) as backend:
        work(backend, recorder, None, never)
    return recorder.queue


def grid_search(search: Search, workers: int) -> GridSearchCV:
    """Run GridSearchCV, on the backend of joblib that is active."""
    task, grid = search.problem.task, search.grid.set_params(n_jobs=workers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that did not converge
        return grid.fit(task.X, task.y)


def agree(search: Search, ours: RaceQueue, theirs: GridSearchCV) -> bool:
    """Return whether both counted the same errors wherever ours computed them, and found the same minimum."""
    found, problem = theirs.cv_results_, search.problem
    scores = np.stack([found[f"split{i}_test_score"] for i in range(problem.sizes[0].n_splits)])
    wrong = np.rint((1 - scores) * problem.sizes[0].n_select)
    column = {_key(setting): wrong[:, i] for i, setting in enumerate(found["params"])}
    estimator, fold = theirs.estimator, ours.selection.sizes[0]
    for path, length in enumerate(problem.learner.space.lengths):
        for step in range(length):
            setting = problem.learner.space.setting(path, step)
            values = fold.values[:, path, step]
            counts = np.rint(values * problem.sizes[0].n_select)
            other = column[_key(complete_names(estimator, setting))]
            if np.any((values >= 0) & (counts != other)):
                return False
    leader = ours.selection.winner()
    assert leader is not None
    return bool(np.isclose(leader.l_ms, 1 - found["mean_test_score"].max(), rtol=0, atol=1e-12))


def _key(setting: Any) -> str:
    return json.dumps(dict(setting), sort_keys=True)


@contextmanager
def pools(workers: int) -> Iterator[dict[str, Callable[[Search], Any]]]:
    """Open a session on Ray, and yield the searches on workers by name."""
    from ray.util.joblib import register_ray

    register_ray()
    with session(Execution("ray", workers)) as opened:

        def others(backend: str, search: Search) -> GridSearchCV:
            with joblib.parallel_backend(backend, n_jobs=workers):
                return grid_search(search, workers)

        searches: dict[str, Callable[[Search], Any]] = {
            "loky": partial(others, "loky"),
            "ours": lambda search: select(search, opened),
            "whole": lambda search: run_work(
                check_job(Job(search.problem.study, search.problem.task)), Execution(), opened
            ),
            LAST: partial(others, "ray"),
        }
        yield searches


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call, and what it returns."""
    start = perf_counter()
    found = call()
    return perf_counter() - start, found


def in_turns(searches: dict[str, Callable[[Search], Any]], search: Search, repeats: int) -> dict[str, Any]:
    """Run each search in turn; return the median seconds of each, and what its last one found."""
    few = cast(EstimatorLearner, search.problem.learner.thinned(2))
    small = make_search(few, load("breast_cancer"), 10, 2)
    for one in searches.values():
        one(small)
    rounds = [{name: timed(partial(one, search)) for name, one in searches.items()} for _ in range(repeats)]
    return {name: (median(each[name][0] for each in rounds), rounds[-1][name][1]) for name in searches}


def serial(search: Search, repeats: int) -> dict[str, Any]:
    """Run both in this process, in turn, on one thread."""
    searches = {
        "serial_grid": lambda one: grid_search(one, 1),
        "serial_ours": lambda one: select(one, SERIAL),
    }
    with one_thread():
        return in_turns(searches, search, repeats)


def figures(search: Search, found: dict[str, Any]) -> dict[str, Any]:
    """Return seconds, ratios and whether all agree."""
    row = {name: seconds for name, (seconds, _) in found.items()}
    ours, theirs = found["serial_ours"][1], found["serial_grid"][1]
    row["serial_ratio"] = row["serial_grid"] / row["serial_ours"]
    row["agree"] = agree(search, ours, theirs)
    row["evaluations"] = int(np.sum(ours.selection.sizes[0].values >= 0)) / len(theirs.cv_results_["params"])
    if "ours" in row:
        row["ratio"] = row["loky"] / row["ours"]
        row["agree"] &= agree(search, found["ours"][1], found["loky"][1])
    return row


def summary(rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the geometric mean and the smallest ratio; on workers, the smallest of the long searches."""
    ratios = [row["serial_ratio"] for row in rows.values()]
    means = {"serial": {"geomean": geometric_mean(ratios), "worst": min(ratios)}}
    if parallel := [row for row in rows.values() if "ratio" in row]:
        long = [row["ratio"] for row in parallel if row["loky"] > LONG]
        means["ray"] = {
            "geomean": geometric_mean([row["ratio"] for row in parallel]),
            "worst": min(row["ratio"] for row in parallel),
            "worst_long": min(long, default=float("nan")),
        }
    return means


def line(name: str, row: dict[str, Any]) -> str:
    """Format the figures of one search."""
    text = (
        f"{name:<26} one process {row['serial_grid']:7.2f} s, ours {row['serial_ours']:6.2f} s "
        f"{row['serial_ratio']:6.1f} x"
    )
    if "ratio" in row:
        text += (
            f" | loky {row['loky']:7.2f} s, Ray's joblib {row['ray_joblib']:7.2f} s, ours on Ray "
            f"{row['ours']:6.2f} s {row['ratio']:6.1f} x, whole run {row['whole']:6.2f} s"
        )
    return f"{text} | {'agree' if row['agree'] else 'DIFFER'}"


def main(
    learners: Annotated[str, typer.Option(help="Learners by short name.")] = ",".join(LEARNERS),
    data: Annotated[str, typer.Option(help="made_up, data sets of scikit-learn, or sources.")] = ",".join(
        DATA
    ),
    k: Annotated[int, typer.Option(min=3, help="Number of folds: sets of n/k rows select.")] = 10,
    splits: Annotated[int, typer.Option(min=2, help="Monte Carlo splits.")] = 10,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 2,
    repeats: Annotated[int, typer.Option(min=1, help="Searches of each kind.")] = 1,
    only_serial: Annotated[bool, typer.Option("--serial", help="Compare in one process only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print one line for each search, and geometric means; exit with 1 if a result differs."""
    if unknown := set(learners.split(",")) - set(KNOWN):
        raise typer.BadParameter(f"{min(unknown)} is not one of {', '.join(KNOWN)}")
    for package in list_packages({name: KNOWN[name].spec for name in learners.split(",")}):
        trust(package)
    tasks = {name: load(name) for name in data.split(",")}
    rows: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        on_workers: dict[str, Callable[[Search], Any]] = {}
        if not only_serial:
            on_workers = stack.enter_context(pools(workers))
        for name, task in tasks.items():
            for learner in learners.split(","):
                search = make_search(KNOWN[learner](), task, k, splits)
                found = serial(search, repeats)
                for some in (on_workers.keys() - {LAST}, on_workers.keys() & {LAST}):
                    turns = {each: one for each, one in on_workers.items() if each in some}
                    found |= in_turns(turns, search, repeats)
                row = rows[f"{learner}:{name}"] = figures(search, found)
                if not as_json:
                    print(line(f"{learner}:{name}", row), flush=True)
    means = summary(rows)
    if as_json:
        print(json.dumps({"runs": rows, **means}))
    else:
        for how, mean in means.items():
            print(how, *(f"{name} {value:.2f}" for name, value in mean.items()))
    if not all(row["agree"] for row in rows.values()):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
