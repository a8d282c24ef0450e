"""Estimators of users that misbehave: refused at the door, or recorded as failures with their reason."""

from pathlib import Path

import numpy as np
import pytest
from learner_contract import same_files

from ckcv_ray import Execution, InputError, RunError, Study, Task, run

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
TASK = Task.of(X, (X[:, 1] > 0).astype(int))
SERIAL = Execution("serial")


def study(name: str) -> Study:
    return Study.paper(learner=f"own_estimators:{name}", param="dummy=0,1", k=(3, 4), n_splits=4)


def test_one_that_behaves_is_run(tmp_path: Path) -> None:
    result = run(study("Constant"), TASK.X, TASK.y, out=tmp_path / "run", execution=SERIAL)
    assert result.execution["failures"] == []


def test_what_is_trusted_here_is_trusted_by_the_processes_of_ray(ray_session: None, tmp_path: Path) -> None:
    """Importing it anywhere else takes the user's word, which was given in this process alone."""
    folders = {name: tmp_path / name for name in ("serial", "ray")}
    for name, out in folders.items():
        run(study("Constant"), TASK.X, TASK.y, out=out, execution=Execution(name))
    assert same_files(folders["serial"], folders["ray"])


WRONG = {
    "PredictsNaN": "it predicts nan, which is not one of the classes 0 to 1",
    "PredictsWords": "it predicts an array of shape",
    "PredictsSeven": "it predicts 7, which is not one of the classes 0 to 1",
    "PredictsTooFew": r"it predicts an array of shape \(1,\)",
    "NeedsThreeClasses": "three classes are needed",
    "FailsInSomeSplits": "no luck",
}


@pytest.mark.parametrize("name", WRONG)
def test_if_no_setting_has_all_its_fits_the_run_ends_with_the_reason(name: str) -> None:
    with pytest.raises(RunError, match=WRONG[name]):
        run(study(name), TASK.X, TASK.y, execution=SERIAL)


def test_one_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(InputError, match="missing 1 required positional argument: 'needed'"):
        Study.paper(learner="own_estimators:NeedsAnArgument")


def test_one_that_cannot_be_stored_is_refused_before_anything_is_fitted(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="models of estimator own_estimators:HoldsAFunction cannot be stored"
    ):
        run(study("HoldsAFunction"), TASK.X, TASK.y, out=tmp_path / "run", execution=SERIAL)
    assert not (tmp_path / "run").exists()


def test_a_fit_that_never_ends_is_recorded_as_failed(ray_session: None) -> None:
    seconds = Execution(fit_timeout=0.5)
    few = study("HangsInSomeSplits").replace(k=(3,), n_splits=2)
    result = run(few, TASK.X, TASK.y, execution=seconds)
    assert result.setting == {"dummy": 0}
    failures = result.execution["failures"]
    assert failures
    assert "a fit may take 0.5 seconds: fit_timeout" in str(failures)


@pytest.mark.parametrize("seconds", [0, -1, 0.01, float("nan"), float("inf"), "soon"])
def test_a_limit_that_is_no_time_is_refused(seconds: object) -> None:
    with pytest.raises(InputError, match="fit_timeout"):
        Execution("ray", fit_timeout=seconds)  # type: ignore[arg-type]


def test_a_limit_needs_processes_that_can_be_killed() -> None:
    with pytest.raises(InputError, match=r"fit_timeout=5\.0 requires the ray backend"):
        Execution("serial", fit_timeout=5)
