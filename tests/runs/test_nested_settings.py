"""What is selected inside outer splits is what is fitted there: compared with a loop of scikit-learn."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import blobs
from scipy.stats import beta
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ckcv_ray import Execution, Job, Result, Study
from ckcv_ray.core.draws import Draws
from ckcv_ray.core.resampling.complete import split_complete
from ckcv_ray.core.schedule import Stage
from ckcv_ray.errors import RunError
from ckcv_ray.learners.sklearn.named import Neighbors
from ckcv_ray.runs.load import load_run
from ckcv_ray.runs.run import run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study import Problem
from ckcv_ray.study.canonical import on_part

K, N_SPLITS, DELTA = 3, 4, 0.05
NUMBERS = (1, 3, 5, 7, 9, 11, 15)
STUDIES: dict[str, dict[str, Any]] = {
    "sample": {"learner": "neighbors", "sample": 4},
    "one_setting": {"learner": "neighbors", "sample": 1},
    "every_setting": {"learner": "neighbors"},
    "several": {"learner": "neighbors,linear", "sample": 3},
}


def run(options: dict[str, Any], n: int, out: Path | None = None) -> Result:
    study = Study.paper(**options, k=(K,), n_splits=N_SPLITS, certify="nested", outer_splits=2)
    return run_job(Job(study, blobs(n, shift=1.5), out), Execution("serial"))


def bound(wrong: int, m: int) -> float:
    """Clopper-Pearson's bound, by scipy."""
    return 1.0 if wrong == m else float(beta.ppf(1 - DELTA, wrong + 1, m - wrong))


def fitted(setting: Any, X: Any, y: Any) -> Any:
    """The nearest neighbours at a setting, by scikit-learn."""
    return make_pipeline(StandardScaler(), KNeighborsClassifier(**setting)).fit(X, y)


def mean_bounds(settings: list[Any], X: Any, y: Any, draws: Draws) -> list[float]:
    """The mean bound of each setting on the select sets."""
    splits = [split_complete(len(y), K, i, N_SPLITS, draws) for i in range(N_SPLITS)]

    def wrong(setting: Any, split: Any) -> int:
        model = fitted(setting, X[split.train], y[split.train])
        return int(np.sum(model.predict(X[split.select]) != y[split.select]))

    return [
        float(np.mean([bound(wrong(setting, split), len(split.select)) for split in splits]))
        for setting in settings
    ]


@pytest.mark.parametrize(("name", "n"), [*product(STUDIES, (36, 100))])
def test_each_member_is_fitted_at_the_setting_that_its_inner_run_selected(
    name: str, n: int, tmp_path: Path
) -> None:
    result = run(STUDIES[name], n, tmp_path / "run")
    problem = result.problem
    assert result.nested is not None
    for i, member in enumerate(result.nested.members):
        inner = load_run(RunFolder(tmp_path / "run").inner(i).files.root)
        assert problem.learner.codec.setting(member.model) == inner.setting
        assert inner.problem.learner.space.settings().keys() == problem.learner.space.settings().keys()
        ours, theirs = ([dict(s) for s in settings(one)] for one in (inner.problem, problem))
        assert ours == theirs
    assert verify(tmp_path / "run").differences == []
    assert load_run(tmp_path / "run").certificate == result.certificate


def settings(problem: Problem) -> list[Any]:
    """The settings that a problem selects among."""
    learner = problem.learner
    return [
        learner.space.setting(p, s) for p, length in enumerate(learner.space.lengths) for s in range(length)
    ]


@pytest.mark.parametrize(("name", "n"), [*product(("sample", "every_setting"), (36, 100))])
def test_inner_selections_are_those_of_a_plain_loop(name: str, n: int) -> None:
    result = run(STUDIES[name], n)
    problem, task = result.problem, result.task
    assert result.nested is not None
    for i, member in enumerate(result.nested.members):
        train, score = problem.outer.rows(Stage.REFIT, 0, i)
        values = mean_bounds(settings(problem), task.X[train], task.y[train], problem.draws)
        selected = problem.learner.codec.setting(member.model)
        assert values[settings(problem).index(selected)] == pytest.approx(min(values), rel=1e-12)
        plain = fitted(selected, task.X[train], task.y[train])
        wrong = plain.predict(task.X[score]) != task.y[score]
        assert member.errors == tuple(int(np.sum(wrong[task.y[score] == c])) for c in (0, 1))


def test_the_numbers_of_neighbours_are_those_of_the_whole_table_at_every_size() -> None:
    for n in (36, 90, 100, 134, 135, 300):
        problem = Problem.of(Study.paper(learner="neighbors", k=(K,), certify="nested"), blobs(n))
        allowed = tuple(number for number in NUMBERS if number <= n // 6)
        for one in (problem, problem.inner(0), problem.inner(1)):
            assert {setting["n_neighbors"] for setting in settings(one)} == set(allowed)


def test_runs_that_were_right_keep_their_names() -> None:
    """On many rows the default is not made explicit: neither for the run, nor for those inside it."""
    for n, written in ((300, False), (100, True)):
        study = Study.paper(learner="neighbors", k=(K,), certify="nested")
        problem = Problem.of(study, blobs(n))
        assert problem.study.learner.param is None
        inner = problem.inner(0)
        assert (inner.study.learner.param is not None) == written
        again = Problem.of(Study.from_json(inner.study.to_json()), inner.task)
        assert (again.run_id, again.study) == (inner.run_id, inner.study)


def test_what_was_selected_elsewhere_is_found_by_its_setting_alone() -> None:
    problem = Problem.of(Study.paper(learner="neighbors", sample=4, k=(K,)), blobs(100))
    for path, length in enumerate(problem.learner.space.lengths):
        for step in range(length):
            assert problem.position(problem.learner.space.setting(path, step)) == (path, step)
    with pytest.raises(RunError, match="is no setting of learner neighbors on all of them"):
        problem.position({"n_neighbors": 2, "weights": "uniform"})
    part = problem.task.take_part(np.arange(40))
    assert settings(Problem.of(on_part(problem.study, part), part)) == settings(problem)
    assert (
        Neighbors(sample=4).canonical(part).space.paths != problem.learner.space.paths
    )  # a study of these rows alone
