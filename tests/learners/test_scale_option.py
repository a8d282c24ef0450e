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
OWN = "sklearn.linear_model:LogisticRegression"
X = np.random.default_rng(np.random.SeedSequence(4)).lognormal(3, 2, (60, 3))
Y = (X[:, 0] > np.median(X[:, 0])).astype(int)
SPOILT = X.copy()
SPOILT[7, 1] = np.nan
PLAIN, HOLED = (
    Task.of(pa.table({f"c{i}": pa.array(x, from_pandas=True) for i, x in enumerate(values.T)}), Y)
    for values in (X, SPOILT)
)


def make_study(learner: object = OWN, **options: object) -> Study:
    return Study.paper(learner=learner, k=(3,), n_splits=3, param={"C": (1.0,)}, **options)


def encode(task: Task, train: np.ndarray, **options: object) -> np.ndarray:
    """Return the numbers that the estimator is given."""
    (prepared,) = Problem.of(make_study(**options), task).prepared.values()
    return task.X if prepared.encoding is None else prepared.encoding.fit(task, train).transform(task.X)


def test_numbers_are_scaled_as_the_study_says() -> None:
    for train in (np.arange(0, 60, 2), np.arange(1, 60, 2)):  # without the empty cell, and with it
        scaled = StandardScaler().fit(X[train]).transform(X)
        for options, expected in (({}, X), ({"scale": "none"}, X), ({"scale": "standard"}, scaled)):
            plain, holed = (encode(task, train, **options)[:, [0, -1]] for task in (PLAIN, HOLED))
            assert holed.tobytes() == plain.tobytes()
            assert holed[:, 0].tolist() == expected[:, 0].tolist()


@pytest.mark.parametrize(("scale", "task"), [("none", PLAIN), ("standard", HOLED)])
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
    scored = assess(Procedure.of(learner=OWN, resampling="kfold:3"), HOLED, None, SERIAL)
    assert "scaling numbers are given to" in unwrap(scored.summary())
