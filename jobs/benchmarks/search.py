"""Benchmark against GridSearchCV: the same settings, the same splits, the same measure; seconds of a search.

The splits are the training and model selection sets of one k, given to GridSearchCV as ``cv``, with the share
of correct rows as its score and ``refit=False``; ours minimises the plain mean error (``mean_error``). Every
``random_state`` is 0, so that both fit the same models, and every fit has one thread. Timed:

    serial      GridSearchCV with n_jobs=1, and our selection in this process
    loky        GridSearchCV with joblib's processes, one for each worker
    ray_joblib  GridSearchCV with Ray's backend of joblib
    ours        our selection on Ray
    whole       the whole of our run on Ray: selection, refits and bounds

All pools are warm: a small search of the same kind runs first in each. Searches take turns, except
``ray_joblib``, which comes last, since its actors take a while to end. Medians over the repeats are shown.
``ratio`` is loky / ours, ``serial_ratio`` that of the serial ones. They agree if each evaluation that ours
computed has as many errors as GridSearchCV's fit on that split, and the winner's mean error is
GridSearchCV's smallest.

    python -m jobs.benchmarks.search
    python -m jobs.benchmarks.search --learners boosting,tree --data breast_cancer --repeats 3 --json
    python -m jobs.benchmarks.search --learners xgboost,lightgbm,catboost
"""

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Annotated, Any, NamedTuple, cast

import joblib
import numpy as np
import typer
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV

from ckcv_ray import Execution, Job, Study, read_task
from ckcv_ray.core.process import one_thread
from ckcv_ray.core.schedule import Stage
from ckcv_ray.engine.backend import SERIAL, Session, session, start_backend
from ckcv_ray.engine.evaluate import share
from ckcv_ray.engine.loop import work
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.engine.recorder import Recorder
from ckcv_ray.learners.sklearn.learner import BOOSTING, NAMED
from ckcv_ray.learners.sklearn.paths import EstimatorLearner
from ckcv_ray.learners.sklearn.spec import complete_names, list_packages, prepare, trust
from ckcv_ray.runs.run import check_job, never, run_work
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.task import Task
from jobs.frame import AsJson, Repeats, Row, name_agreement, show, time_rounds

LEARNERS = "boosting,forest,neighbors,tree,naive_bayes,linear"
DATA = "breast_cancer,made_up"
LAST = "ray_joblib"
KNOWN = {learner.name: learner for learner in (*NAMED, *BOOSTING)}
IN_ONE = "{name:<26} one process {serial_grid:7.2f} s, ours {serial_ours:6.2f} s {serial_ratio:6.1f} x | "
ON_WORKERS = (
    "loky {loky:7.2f} s, Ray's joblib {ray_joblib:7.2f} s, ours on Ray {ours:6.2f} s {ratio:6.1f} x, "
    "whole run {whole:6.2f} s | "
)


class Search(NamedTuple):
    """One search in both forms; GridSearchCV's is cloned for each."""

    problem: Problem
    grid: GridSearchCV


def load(name: str) -> Task:
    """Return a data set of scikit-learn or of any source, or a made-up one.

    The made-up one has two classes of several clusters each, and a tenth of the labels drawn at random.
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
    """Run GridSearchCV, on joblib's active backend."""
    task, grid = search.problem.task, search.grid.set_params(n_jobs=workers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that do not converge
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
    leader = ours.selection.winner
    assert leader is not None
    return bool(np.isclose(leader.l_ms, 1 - found["mean_test_score"].max(), rtol=0, atol=1e-12))


def _key(setting: Any) -> str:
    return json.dumps(dict(setting), sort_keys=True)


@contextmanager
def pools(workers: int) -> Iterator[dict[str, Callable[[Search], Any]]]:
    """Open a session on Ray, and yield the searches on workers by name."""
    with session(Execution("ray", workers)) as opened:
        from ray.util.joblib import register_ray

        register_ray()

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


def in_turns(searches: dict[str, Callable[[Search], Any]], search: Search, repeats: int) -> dict[str, Any]:
    """Run each search in turn; return the median seconds of each, and what its last run found."""
    few = cast(EstimatorLearner, search.problem.learner.thinned(2))
    small = make_search(few, load("breast_cancer"), 10, 2)
    for one in searches.values():
        one(small)
    return time_rounds({name: partial(one, search) for name, one in searches.items()}, repeats)


def compare(search: Search, on_workers: dict[str, Callable[[Search], Any]], repeats: int) -> Row:
    """Run all searches; return seconds, ratios and whether all agree."""
    here = {"serial_grid": lambda one: grid_search(one, 1), "serial_ours": lambda one: select(one, SERIAL)}
    with one_thread():
        found = in_turns(here, search, repeats)
    for some in (on_workers.keys() - {LAST}, on_workers.keys() & {LAST}):
        found |= in_turns({name: one for name, one in on_workers.items() if name in some}, search, repeats)
    row: Row = {name: seconds for name, (seconds, _) in found.items()}
    ours, theirs = found["serial_ours"][1], found["serial_grid"][1]
    row["serial_ratio"] = row["serial_grid"] / row["serial_ours"]
    same = [agree(search, ours, theirs)]
    row["evaluations"] = int(np.sum(ours.selection.sizes[0].values >= 0)) / len(theirs.cv_results_["params"])
    if on_workers:
        row["ratio"] = row["loky"] / row["ours"]
        same.append(agree(search, found["ours"][1], found["loky"][1]))
    return row | {"agreement": name_agreement(same)}


def main(
    learners: Annotated[str, typer.Option(help="Learners by short name.")] = LEARNERS,
    data: Annotated[str, typer.Option(help="made_up, data sets of scikit-learn, or sources.")] = DATA,
    k: Annotated[int, typer.Option(min=3, help="Number of folds: sets of n/k rows select.")] = 10,
    splits: Annotated[int, typer.Option(min=2, help="Monte Carlo splits.")] = 10,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 2,
    repeats: Repeats = 1,
    only_serial: Annotated[bool, typer.Option("--serial", help="Compare in one process only.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print one line for each search, and geometric means; exit with 1 if a result differs."""
    if unknown := set(learners.split(",")) - set(KNOWN):
        raise typer.BadParameter(f"{min(unknown)} is not one of {', '.join(KNOWN)}")
    for package in list_packages({name: KNOWN[name].spec for name in learners.split(",")}):
        trust(package)
    tasks = {name: load(name) for name in data.split(",")}
    with ExitStack() as stack:
        on_workers = {} if only_serial else stack.enter_context(pools(workers))
        pairs = product(tasks.items(), learners.split(","))
        rows = (
            (f"{name}:{of}", compare(make_search(KNOWN[name](), task, k, splits), on_workers, repeats))
            for (of, task), name in pairs
        )
        shown = IN_ONE + ON_WORKERS * (not only_serial) + "{agreement}"
        found = show(rows, shown, ["serial_ratio", "ratio"][: 2 - only_serial], as_json)
    if any(row["agreement"] != name_agreement([]) for row in found.values()):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
