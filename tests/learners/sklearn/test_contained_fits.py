"""Fits that raise what ends a program, change what belongs to the process, write into rows, or fork."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learner_contract import same_files
from sklearn.linear_model import LogisticRegression

from ckcv_ray import Execution, InputError, RunError, Study, Task, evaluate, load_run, run, run_many, verify
from ckcv_ray.engine.backend import warn_once
from ckcv_ray.errors import LackingError
from ckcv_ray.runs.run import Job, run_job

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
TASK = Task.of(X, (X[:, 1] > 0).astype(int))
SERIAL = Execution("serial")


def study(name: str, **more: Any) -> Study:
    return Study.paper(learner=f"own_estimators:{name}", param="dummy=0,1", k=(3,), n_splits=3, **more)


@pytest.mark.parametrize("name", ["ExitsInFit", "ExitsInPredict"])
def test_a_fit_that_exits_is_a_recorded_failure(name: str) -> None:
    result = run(study(name).replace(n_splits=1), TASK.X, TASK.y, execution=SERIAL)
    assert result.setting == {"dummy": 0}
    reasons = [reason for *_, reason in result.execution["failures"]]
    assert {reason.strip().splitlines()[-1] for reason in reasons} == {"SystemExit: 0"}


def test_global_random_numbers_follow_from_the_training_rows(ray_session: None) -> None:
    found = []
    for execution in (SERIAL, Execution("ray", 2)):
        np.random.seed(len(found))  # noqa: NPY002
        result = run(study("TouchesEverything"), TASK.X, TASK.y, execution=execution)
        found.append([member.model.estimator.drawn_ for member in result.ensemble.members])
    assert found[0] == found[1]
    assert len({tuple(one) for one in found[0]}) == 3


def test_rows_and_labels_are_those_of_the_task_whatever_is_written_into_them() -> None:
    digest = TASK.digest
    options = {"param": "dummy=0,1,2", "resampling": "kfold:4", "execution": SERIAL}
    scored = evaluate(TASK.X, TASK.y, learner="own_estimators:Overwrites", measure="accuracy,auc", **options)
    assert scored.execution["failures"] == []
    assert np.ptp(scored.computed.totals, axis=1).max() == 0.0
    result = run(study("Overwrites"), TASK.X, TASK.y, execution=SERIAL)
    assert TASK.digest == digest == Task.of(TASK.X, TASK.y).digest
    shares = [member.model.estimator.share_ for member in result.ensemble.members]
    for member, fitted in zip(result.ensemble.members, shares, strict=True):
        train, _ = result.problem.rows("refit", 0, member.split)  # type: ignore[arg-type]
        assert fitted == float(np.mean(result.problem.task.y[train]))
        predicted = member.model.predict(TASK.X[:5])
        assert predicted.score.tolist() == np.where(predicted.label == 1, 1.0, -1.0).tolist()


@pytest.mark.parametrize("name", ["Forks", "ForksInPredict", "ForksAndExits"])
def test_a_child_that_forks_ends_where_it_would_go_on_with_our_code(name: str, tmp_path: Path) -> None:
    out, ours = tmp_path / "run", os.getpid()
    result = run_job(Job(study(name), TASK, out), SERIAL, stop=lambda: _note_process(tmp_path, ours))
    assert result.execution["failures"] == []
    assert os.getpid() == ours
    assert not (tmp_path / "child").exists()
    assert not (out / ".lock").exists()


def _note_process(folder: Path, ours: int) -> bool:
    if os.getpid() != ours:
        (folder / "child").touch()
    return False


@pytest.mark.parametrize("param", ["kind=plain,odd", "flag=false,true", "dummy=0,1,2,9"])
def test_a_model_that_cannot_be_stored_is_found_at_each_kind_of_setting(param: str, tmp_path: Path) -> None:
    own = Study.paper(learner="own_estimators:HoldsAFunctionAtTimes", param=param, k=(3,), n_splits=3)
    with pytest.raises(InputError, match=r"AtTimes cannot be stored at (kind = odd|flag|dummy = 9)"):
        run(own, TASK.X, TASK.y, out=tmp_path / "run", execution=SERIAL)
    assert not (tmp_path / "run").exists()


def test_what_is_trusted_here_is_trusted_by_the_processes_of_ray(ray_session: None, tmp_path: Path) -> None:
    """Importing it anywhere else takes the user's word, which was given in this process alone."""
    folders = {name: tmp_path / name for name in ("serial", "ray")}
    for name, out in folders.items():
        run(study("Constant"), TASK.X, TASK.y, out=out, execution=Execution(name))
    assert same_files(folders["serial"], folders["ray"])


WRONG = {
    "PredictsSeven": "it predicts 7, which is not one of the classes 0 to 1",
    "PredictsTooFew": r"it predicts an array of shape \(1,\)",
    "FailsInSomeSplits": "no luck",
}


@pytest.mark.parametrize("name", WRONG)
def test_if_no_setting_has_all_its_fits_the_run_ends_with_the_reason(name: str) -> None:
    with pytest.raises(RunError, match=WRONG[name]):
        run(study(name), TASK.X, TASK.y, execution=SERIAL)


def test_probabilities_that_do_not_add_up_to_1_fail_the_fit() -> None:
    options = {"learner": "own_estimators:TooSure", "measure": "log_loss", "resampling": "kfold:4"}
    scored = evaluate(TASK.X, TASK.y, execution=SERIAL, **options)
    assert "its probabilities add up to 1.8, not to 1" in scored.execution["failures"][0][-1]


# A class of a script or a notebook, which no other process can import


@pytest.fixture
def own_study(monkeypatch: pytest.MonkeyPatch) -> Study:
    own = type("Own", (LogisticRegression,), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "Own", own, raising=False)
    warn_once.cache_clear()
    return Study.of(learner=own(), param={"C": (0.1, 1.0)}, k=3, n_splits=2)


def test_it_is_fitted_in_this_process_which_is_said_once(
    own_study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.warns(RuntimeWarning, match="__main__: all is fitted here"):
        result = run(own_study, TASK.X, TASK.y, out=tmp_path / "run")
    same = run(own_study.replace(learner="sklearn.linear_model:LogisticRegression"), TASK.X, TASK.y)
    assert (result.setting, result.proven) == (same.setting, same.proven)
    assert (load_run(tmp_path / "run").predict(X) == same.predict(X)).all()
    assert verify(tmp_path / "run").differences == []
    (again,) = run_many([Job(own_study, TASK)], SERIAL)
    assert again.proven == result.proven
    monkeypatch.delattr(sys.modules["__main__"], "Own")  # as in another process
    with pytest.raises(LackingError, match=r"call trust\('__main__'\) and load_run in the script"):
        load_run(tmp_path / "run")


@pytest.mark.parametrize("asked", [{"backend": "ray"}, {"workers": 2}, {"fit_timeout": 5.0}])
def test_other_processes_are_refused(own_study: Study, asked: dict[str, object]) -> None:
    with pytest.raises(InputError, match="define it in a module"):
        run(own_study, TASK.X, TASK.y, execution=Execution(**asked))  # type: ignore[arg-type]
