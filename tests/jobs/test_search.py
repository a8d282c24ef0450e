"""The benchmark against GridSearchCV: what it compares is the same, and a difference is found."""

import json
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from ckcv_ray.engine.backend import SERIAL
from ckcv_ray.learners.base import LEARNERS
from jobs.benchmarks import search


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


def test_one_error_more_is_a_difference(pair: tuple[Any, Any, GridSearchCV]) -> None:
    made, ours, theirs = pair
    leader = ours.selection.winner()
    setting = made.problem.learner.space.setting(leader.path, leader.step)
    changed = {name: np.array(values) for name, values in theirs.cv_results_.items()}
    changed["split0_test_score"][theirs.cv_results_["params"].index(setting)] -= (
        1 / made.problem.sizes[0].n_select
    )
    other = GridSearchCV(theirs.estimator, {})
    other.cv_results_ = changed
    assert not search.agree(made, ours, other)


def test_the_figures_are_those_of_the_two_searches(capsys: pytest.CaptureFixture[str]) -> None:
    search.main("naive_bayes,tree", "breast_cancer", 10, 2, only_serial=True, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert set(shown["rows"]) == {"naive_bayes:breast_cancer", "tree:breast_cancer"}
    for row in shown["rows"].values():
        assert row["agreement"] == "agree"
        assert row["serial_ratio"] == row["serial_grid"] / row["serial_ours"] > 0
    ratios = [row["serial_ratio"] for row in shown["rows"].values()]
    assert min(ratios) <= shown["geomean_serial_ratio"] <= max(ratios)


def test_on_workers_all_of_them_run(ray_session: None, capsys: pytest.CaptureFixture[str]) -> None:
    search.main("tree", "breast_cancer", 6, 2, workers=2, repeats=1, only_serial=False, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    (row,) = shown["rows"].values()
    assert row["agreement"] == "agree"
    assert {"loky", "ray_joblib", "ours", "whole"} <= set(row)
    assert row["ratio"] == row["loky"] / row["ours"]
    assert shown["geomean_ratio"] == pytest.approx(row["ratio"])
