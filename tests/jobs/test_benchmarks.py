"""The benchmarks: what they compare with GridSearchCV is the same."""

import json
from typing import Any

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


def test_on_workers_all_of_them_run(ray_session: None, capsys: pytest.CaptureFixture[str]) -> None:
    search.main("tree", "breast_cancer", 6, 2, workers=2, repeats=1, only_serial=False, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    (row,) = shown["rows"].values()
    assert row["agreement"] == "agree"
    assert {"loky", "ray_joblib", "ours", "whole"} <= set(row)
    assert row["ratio"] == row["loky"] / row["ours"]
    assert shown["geomean_ratio"] == pytest.approx(row["ratio"])
