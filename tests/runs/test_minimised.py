"""Runs that minimise something other than the bound on the error: balanced, cost, mean_error."""

from itertools import product
from math import fsum
from pathlib import Path

import numpy as np
import pytest
from alike import same
from doubles import Unruly, run_with
from scipy.stats import beta
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ckcv_ray import Execution, Job, Study, Task, verify
from ckcv_ray.core.draws import Draws
from ckcv_ray.core.resampling.complete import split_complete
from ckcv_ray.core.schedule import Stage
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.runs.load import load_run
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.run import run_job
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.log import Log
from ckcv_ray.study import Problem

SERIAL = Execution("serial")
COST = "cost:sick=10,healthy=1"
CRITERIA = ("error", "balanced", COST, "mean_error")
SMALL = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=5)


def clinic(n: int = 60, seed: int = 0, sick: float = 0.3) -> Task:
    """Two overlapping clouds of different sizes."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(n,)))
    y = np.arange(n) < sick * n
    return Task.of(rng.normal(size=(n, 2)) + 1.2 * y[:, None], np.where(y, "sick", "healthy"))


def run(study: Study, task: Task, out: Path | None = None) -> Result:
    return run_job(Job(study, task, out), SERIAL)


# An independent implementation


def upper(errors: float, m: int) -> float:
    return 1.0 if errors == m else float(beta.ppf(0.95, errors + 1, m - errors))


def one_value(criterion: str, wrong: list[int], rows: list[int]) -> float:
    """The value of a split; classes are healthy and sick."""
    if criterion == "error":
        return upper(sum(wrong), sum(rows))
    if criterion == "mean_error":
        return sum(wrong) / sum(rows)
    if criterion == "balanced":
        return float(np.mean([upper(x, m) if m else 1.0 for x, m in zip(wrong, rows, strict=True)]))
    return upper(0.1 * wrong[0] + wrong[1], sum(rows))


def fitted(study: Study, task: Task, C: float, gamma: float, fit: np.ndarray, score: np.ndarray) -> list[int]:
    """Wrong rows by class of LIBSVM."""
    scaler = StandardScaler().fit(task.X[fit])
    y = task.y[score]
    if len(set(task.y[fit])) == 1:
        wrong = y != task.y[fit][0]
    else:
        machine = SVC(C=C, gamma=gamma, tol=study.learner.tolerance).fit(
            scaler.transform(task.X[fit]), task.y[fit]
        )
        wrong = (2 * y - 1) * machine.decision_function(scaler.transform(task.X[score])) <= 1e-9
    return [int(np.sum(wrong & (y == c))) for c in (0, 1)]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_plain_loop_with_scikit_learn_finds_the_same_winner_and_l_ms(criterion: str) -> None:
    study = Study.paper(
        C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4), n_splits=4, tolerance=1e-6, criterion=criterion
    )
    task = clinic(48)
    found = []
    for k, gamma, C in product((3, 4), study.learner.gamma, study.learner.C):
        values = []
        for i in range(4):
            split = split_complete(task.n, k, i, 4, Draws(study.seed, task.salt))
            rows = np.bincount(task.y[split.select], minlength=2).tolist()
            values.append(
                one_value(criterion, fitted(study, task, C, gamma, split.train, split.select), rows)
            )
        found.append((float(np.mean(values)), C, gamma, k))
    l_ms, *winner = min(found, key=lambda one: (round(one[0], 10), *one[1:]))
    result = run(study, task)
    assert result.l_ms == pytest.approx(l_ms, rel=1e-9)
    assert [result.setting["C"], result.setting["gamma"], result.k] == winner
    estimates = [
        one_value(criterion, list(member.errors), list(member.n_estimate))
        for member in result.ensemble.members
    ]
    assert result.l_ee == pytest.approx(fsum(estimates) / len(estimates), rel=1e-8)


# The same answer


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("certify", ["paper", "holdout"])
def test_a_stop_changes_nothing_and_the_run_is_verified(criterion: str, certify: str, tmp_path: Path) -> None:
    study, task = SMALL.replace(criterion=criterion, certify=certify, report_k=(5,)), clinic(90)
    result = run(study, task)
    stops = iter([False] * 4)
    with pytest.raises(KeyboardInterrupt):
        run_job(Job(study, task, tmp_path / "run"), SERIAL, stop=lambda: next(stops, None) is None)
    resumed = run(study, task, tmp_path / "run")
    assert same(result, resumed)
    assert load_run(tmp_path / "run").certificate.claims == result.certificate.claims
    assert verify(tmp_path / "run", refit=1.0, execution=SERIAL).differences == []


@pytest.mark.parametrize("criterion", CRITERIA[1:])
@pytest.mark.parametrize("seed", range(3))
def test_neither_the_order_of_batches_nor_their_length_changes_anything(criterion: str, seed: int) -> None:
    study, task = SMALL.replace(criterion=criterion, seed=seed, report_k=(5,)), clinic(50, seed)
    result, unruly = run(study, task), run_with(Unruly(seed, 1 + 2 * seed), study, task)
    assert same(result, unruly)
    assert result.certificate.winner.l_ee == unruly.certificate.winner.l_ee


@pytest.mark.parametrize("criterion", CRITERIA[1:])
def test_rotations_minimise_it_too(criterion: str) -> None:
    study = Study.paper(C=(0.1, 10.0), gamma=(0.1, 1.0), k=(3, 5), resampling="rotation", criterion=criterion)
    result, other = run(study, clinic()), run(study.replace(exhaustive=True), clinic())
    assert (result.l_ms, result.l_ee, result.setting) == (other.l_ms, other.l_ee, other.setting)


# Identity


def test_the_spelling_and_the_order_of_labels_do_not_matter() -> None:
    X = clinic().X
    y = np.where(clinic().y == 0, 1, 2)
    spellings = ["cost:1=10,2=1", "cost:2=1,1=10", "cost:2.0=1.0,1=1e1"]
    problems = [Problem.of(SMALL.replace(criterion=one), Task.of(X, y)) for one in spellings]
    problems.append(Problem.of(SMALL.replace(criterion="cost", costs={2: 1, 1: 10}), Task.of(X, y)))
    assert len({one.run_id for one in problems}) == 1
    assert {str(one.study.to_json()["criterion"]) for one in problems} == {
        "{'name': 'cost', 'costs': '1=10,2=1', 'delta': 0.05}"
    }
    other = Problem.of(SMALL.replace(criterion="cost:1=1,2=10"), Task.of(X, y))
    assert other.run_id != problems[0].run_id


@pytest.mark.parametrize(
    ("criterion", "messages"),
    [
        (
            "cost:sick=10,ill=1",
            "costs names 'ill', which is no label of the target: the labels are 'healthy', 'sick'",
        ),
        ("cost:sick=10", "no cost is given for 'healthy'"),
        ("cost", "no cost is given for 'healthy', 'sick'"),
    ],
)
def test_costs_must_name_the_classes_of_the_task(criterion: str, messages: str) -> None:
    with pytest.raises(InputError, match=messages):
        Problem.of(SMALL.replace(criterion=criterion), clinic())


# What is said


# Damage


def test_more_errors_on_a_class_than_rows_of_it_are_refused(tmp_path: Path) -> None:
    study, task = SMALL.replace(criterion="balanced"), clinic()
    run(study, task, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    problem = folder.problem()
    log = Log(folder.files, problem)
    ((records, _),) = list(log.read())
    records = records[~records["estimate"]][:1].copy()
    rows = problem.units(Stage.SELECT, int(records["size"][0]))[records["split"][0]]
    assert rows[1] < rows.sum()
    records["totals"][0] = [0, rows[1] + 1]
    log.append(records, [])
    with pytest.raises(StoreError, match="more errors on a class than rows of it"):
        list(log.read())
