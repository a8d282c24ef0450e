"""How numbers are scaled for an estimator of one's own is the study's, and no empty cell changes it."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import unwrap
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from ckcv_ray import Execution, Job, Procedure, Study, Task, load_run, verify
from ckcv_ray.runs.run import assess, run_job
from ckcv_ray.study.problem import Problem

SERIAL = Execution("serial")
N, D = 60, 3
OWN = "sklearn.linear_model:LogisticRegression"
X = np.random.default_rng(np.random.SeedSequence(4)).lognormal(3, 2, (N, D))
Y = (X[:, 0] > np.median(X[:, 0])).astype(int)


def make_task(gap: tuple[int, int] | None = None) -> Task:
    values = X.copy()
    if gap is not None:
        values[gap] = np.nan
    return Task.of(pa.table({f"c{i}": pa.array(x, from_pandas=True) for i, x in enumerate(values.T)}), Y)


PLAIN, HOLED = make_task(), make_task((7, 1))


def make_study(learner: object = OWN, **options: object) -> Study:
    return Study.paper(learner=learner, k=(3,), n_splits=3, param={"C": (1.0,)}, **options)


def encode(task: Task, train: np.ndarray, **options: object) -> np.ndarray:
    """Return the numbers that the estimator is given."""
    (prepared,) = Problem.of(make_study(**options), task).prepared.values()
    return task.X if prepared.encoding is None else prepared.encoding.fit(task, train).transform(task.X)


@pytest.mark.parametrize(("row", "column"), [(0, 0), (7, 1), (N - 1, D - 1)])
@pytest.mark.parametrize("options", [{}, {"scale": "none"}, {"scale": "standard"}])
def test_one_empty_cell_changes_no_other_column(row: int, column: int, options: dict[str, str]) -> None:
    train = np.arange(0, N, 2)
    without, holed = encode(PLAIN, train, **options), encode(make_task((row, column)), train, **options)
    said = row % 2 == 0  # of a gap in a training row a column of its own says where it is
    kept = [i for i in range(D) if i != column]
    places = [i + (said and i > column) for i in kept]
    assert holed[:, places].tobytes() == without[:, kept].tobytes()
    if not said:  # then the column is that of the other rows, and the gap is filled
        others = np.arange(N) != row
        assert holed[others, column].tobytes() == without[others, column].tobytes()


def test_numbers_are_scaled_as_the_study_says() -> None:
    train = np.arange(0, N, 2)
    assert encode(HOLED, train)[:, 0].tolist() == X[:, 0].tolist()
    scaled = StandardScaler().fit(X[train]).transform(X)
    for task in (PLAIN, HOLED):
        assert encode(task, train, scale="standard")[:, 0].tolist() == scaled[:, 0].tolist()


@pytest.mark.parametrize("task", [PLAIN, HOLED], ids=["plain", "holed"])
@pytest.mark.parametrize("scale", ["none", "standard"])
def test_a_run_is_stored_verified_and_says_it(scale: str, task: Task, tmp_path: Path) -> None:
    logistic = LogisticRegression(max_iter=10_000)
    # one learner's numbers are scaled, and those of the other as it scales them
    learner, option = (
        ([logistic, "linear"], "LogisticRegression.scale") if task is PLAIN else (logistic, "scale")
    )
    study = make_study(learner, **{option: scale})
    result = run_job(Job(study, task, tmp_path / "run"), SERIAL)
    assert verify(tmp_path / "run").ok
    loaded = load_run(tmp_path / "run")
    columns = task.columns()
    assert loaded.predict(columns, by="vote").tolist() == result.predict(columns, by="vote").tolist()
    said = "are standardised in each split for" if scale == "standard" else "as they are; --scale standard"
    assert loaded.summary(details=True).count("scaling         numbers ") == 1
    assert said in loaded.summary(details=True)


def test_scores_say_it_too() -> None:
    def said(**options: str) -> str:
        study = Procedure.of(resampling="kfold:3", **options)
        return unwrap(assess(study, HOLED, None, SERIAL).summary())

    assert "scaling numbers are given to" in said(learner=OWN)
    assert "numbers are standardised" in said(learner=OWN, scale="standard")
    assert "scaling" not in said(learner="linear")
