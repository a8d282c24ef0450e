"""Benchmark of ``evaluate`` against scikit-learn's ``cross_validate``: the same splits, fits and scores.

Every ``random_state`` is 0, so that both fit the same models, and every fit has one thread. Timed in turn,
with warm pools:

    serial      cross_validate with n_jobs=1, and ours in this process
    loky        cross_validate with joblib's processes, one for each worker
    ours        ours on Ray

``ratio`` is loky / ours, ``serial_ratio`` that of the serial ones. They agree if every score of every split
is the same.

    python -m jobs.benchmarks.procedures
    python -m jobs.benchmarks.procedures --learners forest --resamplings kfold:10 --repeats 5 --json
"""

import warnings
from collections.abc import Callable
from itertools import product
from typing import Annotated, Any, cast

import numpy as np
import typer
from sklearn.model_selection import cross_validate

from ckcv_ray import Execution, read_task
from ckcv_ray.core.process import one_thread
from ckcv_ray.core.schedule import Stage
from ckcv_ray.engine.backend import SERIAL, Session, session
from ckcv_ray.runs.result import Scored
from ckcv_ray.runs.run import Work, run_work
from ckcv_ray.study.problem import OUTER, Problem
from ckcv_ray.study.study import Procedure
from ckcv_ray.tables.task import Task
from jobs.benchmarks.search import KNOWN, LEARNERS
from jobs.frame import AsJson, Repeats, Row, name_agreement, show, time_rounds

RESAMPLINGS = "kfold:10,repeated_kfold:10x5,subsampling:50:0.25"
LINE = (
    "{name:<34}{fit_milliseconds:8.1f} ms a fit | one process {theirs_serial:7.3f} s, ours {serial:7.3f} s "
    "{serial_ratio:5.2f} x | loky {loky:7.3f} s, ours on Ray {ours:7.3f} s {ratio:5.2f} x | {agreement}"
)


def compare(learner: str, resampling: str, task: Task, workers: int, repeats: int, opened: Session) -> Row:
    """Time an estimator with its defaults in all four ways: seconds, ratios, whether scores agree."""
    seeded = "random_state" in KNOWN[learner]().parameter_names()
    options: dict[str, Any] = {"param": {"random_state": (0,)}} if seeded else {}
    study = Procedure.of(resampling=resampling, measure="accuracy", learner=learner, **options)
    problem = Problem.of(study, task)
    made: Any = problem.learner
    estimator = made.template(made.space.setting(0, 0)).estimator
    splits = [problem.rows(Stage.SELECT, OUTER, i) for i in range(problem.sizes[OUTER].n_splits)]

    def theirs(workers: int) -> Any:
        options = {"cv": splits, "n_jobs": workers, "scoring": "accuracy"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return cross_validate(estimator, task.X, task.y, **options)["test_score"]

    def ours(opened: Session) -> Any:
        result = cast(Scored, run_work(Work(problem), opened=opened))
        return result.of_splits(result.entries[0], result.scores[0])

    calls: dict[str, Callable[[], Any]] = {
        "theirs_serial": lambda: theirs(1),
        "serial": lambda: ours(SERIAL),
        "loky": lambda: theirs(workers),
        "ours": lambda: ours(opened),
    }
    for call in calls.values():  # warm up the pools
        call()
    timed = time_rounds(calls, repeats)
    seconds, (_, first) = {name: each for name, (each, _) in timed.items()}, timed["theirs_serial"]
    return {
        **seconds,
        "fit_milliseconds": 1000 * seconds["theirs_serial"] / len(splits),
        "serial_ratio": seconds["theirs_serial"] / seconds["serial"],
        "ratio": seconds["loky"] / seconds["ours"],
        "agreement": name_agreement(np.array_equal(first, scores) for _, scores in timed.values()),
    }


def main(
    learners: Annotated[str, typer.Option(help="Learners: a,b.")] = LEARNERS,
    resamplings: Annotated[str, typer.Option(help="Resamplings: a,b.")] = RESAMPLINGS,
    data: Annotated[str, typer.Option(help="Table or named set.")] = "sklearn:breast_cancer",
    repeats: Repeats = 3,
    workers: Annotated[int, typer.Option(min=1, help="Processes of loky, and workers of Ray.")] = 2,
    as_json: AsJson = False,
) -> None:
    """Print a line for each procedure, and the geometric means of the ratios."""
    task, _ = read_task(data)
    pairs = product(learners.split(","), resamplings.split(","))
    with one_thread(), session(Execution("ray", workers)) as opened:
        rows = ((" ".join(pair), compare(*pair, task, workers, repeats, opened)) for pair in pairs)
        show(rows, LINE, ["serial_ratio", "ratio"], as_json)


if __name__ == "__main__":
    typer.run(main)
