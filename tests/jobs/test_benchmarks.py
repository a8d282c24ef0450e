"""The benchmarks: what they compare with GridSearchCV is the same, their simulation, and taking turns."""

import json
from typing import Any

import pytest
from conftest import blobs
from sklearn.model_selection import GridSearchCV

from ckcv_ray import Study
from ckcv_ray.engine.backend import SERIAL
from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.study.problem import Problem
from jobs.benchmarks import search
from jobs.benchmarks.simulate import Costs, MadeUp, measure, simulate


@pytest.fixture(scope="module")
def pair() -> tuple[search.Search, Any, GridSearchCV]:
    made = search.make_search(
        LEARNERS["tree"](param={"ccp_alpha": (0.0, 0.02)}), search.load("breast_cancer"), 6, 4
    )
    return made, search.select(made, SERIAL), search.grid_search(made, 1)


def test_both_count_the_same_errors_and_find_the_same_minimum(pair: tuple[Any, Any, GridSearchCV]) -> None:
    made, ours, theirs = pair
    assert search.agree(made, ours, theirs)
    computed = ours.selection.sizes[0].values >= 0
    assert computed.any()
    assert len(theirs.cv_results_["params"]) == computed[0].size


def test_on_workers_all_of_them_run(ray_session: None, capsys: pytest.CaptureFixture[str]) -> None:
    search.main("tree", "breast_cancer", 6, 2, workers=2, repeats=1, only_serial=False, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    (row,) = shown["rows"].values()
    assert row["agreement"] == "agree"
    assert {"loky", "ray_joblib", "ours", "whole"} <= set(row)
    assert row["ratio"] == row["loky"] / row["ours"]
    assert shown["geomean_ratio"] == pytest.approx(row["ratio"])


# The simulation of many workers


NOTHING = Costs(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@pytest.fixture(scope="module")
def made_up() -> MadeUp:
    study = Study.of(C=(0.1, 1.0), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=40, scale="none", exhaustive=True)
    return measure(Problem.of(study, blobs(24)))


@pytest.mark.parametrize("workers", [1, 7, 100])
def test_every_fit_is_made_once_and_no_worker_works_more_than_there_is_time(
    made_up: MadeUp, workers: int
) -> None:
    found = simulate(made_up, workers, NOTHING)
    assert found.fits == made_up.problem.n_evaluations
    assert 0 < found.work <= workers * found.seconds


# Turns
