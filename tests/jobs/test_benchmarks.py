"""The benchmarks: what they compare with GridSearchCV is the same, their simulation, and taking turns."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import blobs
from sklearn.model_selection import GridSearchCV

from ckcv_ray import Study
from ckcv_ray.engine.backend import SERIAL
from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.study.problem import Problem
from jobs.benchmarks import search
from jobs.benchmarks.simulate import Costs, MadeUp, measure, simulate
from jobs.frame import in_one_step, take_turns


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
    leader = ours.selection.winner
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


@pytest.mark.parametrize("name", Costs._fields)
def test_each_cost_is_paid(made_up: MadeUp, name: str) -> None:
    """A minute each, beside which what the queue takes is nothing."""
    found = simulate(made_up, 3, NOTHING._replace(**{name: 60.0}))
    assert found.seconds > 60.0
    if name == "transfer":
        assert found.driver < 60.0
    else:
        assert found.driver >= 60.0
    if name in ("submit", "fetch"):
        assert found.driver >= 60.0 * found.batches


# Turns


class Machine:
    """A simulated computer that changes its speed every tenth of a second: its clock, and work on it."""

    def __init__(self) -> None:
        self.now = 0.0

    def work(self, seconds: float) -> None:
        self.now += seconds * (2.0 if int(self.now / 0.1) % 2 else 1.0)

    def steps(self, count: int, seconds: float) -> Iterator[None]:
        for _ in range(count):
            self.work(seconds)
            yield


def test_speeds_are_compared_at_the_same_machine_speed() -> None:
    machine = Machine()
    ours = in_one_step(lambda: machine.work(0.002))
    mine, theirs = take_turns((ours, lambda: machine.steps(400, 0.001)), lambda: machine.now)
    assert theirs / mine == pytest.approx(200, rel=0.05)


def test_every_pass_started_is_finished() -> None:
    machine, passes = Machine(), [0, 0]

    def long() -> Iterator[None]:
        yield from machine.steps(3, 1.0)
        passes[0] += 1

    def short() -> Iterator[None]:
        yield from machine.steps(2, 0.01)
        passes[1] += 1

    take_turns((long, short), lambda: machine.now)
    assert passes[0] == 1
    assert passes[1] > 50, "the short one runs as long"
