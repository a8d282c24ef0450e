"""Command export: one model as a file that predicts what the model predicts."""

from pathlib import Path

import numpy as np
import pytest
import skops.io
from conftest import Command
from finished import Finished
from sklearn.dummy import DummyClassifier

from ckcv_ray import RunError, load_run
from ckcv_ray.cli import report
from ckcv_ray.runs.finished import load

STUDY = ("--target", "outcome", "--k", "3", "--n-splits", "3")
SVM = ("--C", "1,10", "--gamma", "1")
FEW = {"svm": SVM, "linear": (), "forest": ("--param", "n_estimators=3,9", "--param", "max_features=1")}


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two classes that overlap, on columns of very different scales, and a column of numbers."""
    monkeypatch.chdir(tmp_path)
    drawn = np.random.default_rng(0)
    age, dose = drawn.normal(50, 20, 120), drawn.normal(0.01, 0.005, 120)
    names = np.where(age / 20 + dose * 200 + drawn.normal(size=120) > 4.5, "well", "ill")
    rows = "".join(f"{a:.3f},{b:.6f},{name}\n" for a, b, name in zip(age, dose, names, strict=True))
    (tmp_path / "cases.csv").write_text(f"age,dose,outcome\n{rows}")
    return tmp_path


@pytest.mark.parametrize("learner", ["svm", "linear", "forest"])
def test_a_file_of_skops_predicts_what_the_model_predicts(ckcv: Command, cases: Path, learner: str) -> None:
    given = ("--learner", learner, *FEW[learner], "--certify", "holdout", "--out", "held")
    assert ckcv("run", "cases.csv", *STUDY, *given)[0] == 0
    result, X = load("held"), np.random.default_rng(1).normal([50, 0.01], [20, 0.005], (500, 2))
    rules = {"auto": (), "full": ("--full",), "member:1": ("--member", "1"), "refit": ("--refit",)}
    for by, words in rules.items():
        file = cases / f"{by.replace(':', '')}.skops"
        code, shown, messages = ckcv("export", "held", "--out", file, *words)
        assert (code, shown) == (0, "")
        assert "agrees with the model on 100.00 % of 10,000 rows" in messages
        assert "columns, in this order: age, dose\nclasses: 0 = ill, 1 = well\n" in messages
        estimator = skops.io.load(file, trusted=skops.io.get_untrusted_types(file=file))
        expected = result.rule(by).predict(result.models, X).label  # of rows that neither has seen
        np.testing.assert_array_equal(estimator.predict(X), expected)
        assert len({*expected}) == 2


def test_without_scaling_and_with_decision_values_an_svm_is_the_same_function(
    ckcv: Command, cases: Path
) -> None:
    given = ("--scale", "none", "--C", "1", "--gamma", "0.01", "--certify", "holdout", "--out", "held")
    assert ckcv("run", "cases.csv", *STUDY, *given)[0] == 0
    result = load_run("held")
    (member,) = result.models.refit.members
    X, model = result.task.X, member.model
    exported = report.convert_model(model).decision_function(X)
    np.testing.assert_allclose(exported, model.predict(X).score, atol=1e-12)


def test_a_file_that_predicts_otherwise_is_not_written(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = DummyClassifier(strategy="constant", constant=2).fit(np.zeros((1, 2)), [2])
    monkeypatch.setattr(report, "convert_model", lambda model: wrong)
    with pytest.raises(RunError, match=r"not written: the file agrees with the model on only 0.00 %"):
        report.write_model(load(finished("held")), tmp_path / "x")
    assert not (tmp_path / "x").exists()
