"""Estimators whose class is of a script or a notebook, which no other process can import."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from ckcv_ray import Execution, InputError, Job, Study, Task, load_run, run, run_many, verify
from ckcv_ray.engine.backend import warn_once

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = X[:, 0] + 0.3 * RNG.normal(size=60) > 0


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Study:
    own = type("Own", (LogisticRegression,), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "Own", own, raising=False)
    warn_once.cache_clear()
    return Study.of(learner=own(), param={"C": (0.1, 1.0)}, k=3, n_splits=2)


def test_it_is_fitted_in_this_process_which_is_said_once(study: Study, tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="__main__: all is fitted here"):
        result = run(study, X, Y, out=tmp_path / "run")
    same = run(
        Study.of(learner="sklearn.linear_model:LogisticRegression", param={"C": (0.1, 1.0)}, k=3, n_splits=2),
        X,
        Y,
    )
    assert (result.setting, result.proven) == (same.setting, same.proven)
    assert (load_run(tmp_path / "run").predict(X) == same.predict(X)).all()
    assert verify(tmp_path / "run").differences == []
    assert run(study, X, Y).proven == result.proven


@pytest.mark.parametrize("asked", [{"backend": "ray"}, {"workers": 2}, {"fit_timeout": 5.0}])
def test_other_processes_are_refused(study: Study, asked: dict[str, object]) -> None:
    with pytest.raises(InputError, match="define it in a module"):
        run(study, X, Y, execution=Execution(**asked))


def test_several_runs_are_made_here_if_they_are_asked_for_in_one_process(study: Study) -> None:
    with pytest.warns(RuntimeWarning, match="all is fitted here"):
        (result,) = run_many([Job(study, Task.of(X, Y))], Execution("serial"))
    assert result.setting == {"C": 1.0}
