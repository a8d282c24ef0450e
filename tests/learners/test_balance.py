"""Balanced training rows: counts, draws, and fits that equal scikit-learn's to the same rows."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from blocks import read_blocks
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, chisquare
from sklearn.metrics import balanced_accuracy_score
from sklearn.naive_bayes import GaussianNB

from ckcv_ray import Execution, Study, Task, evaluate, verify
from ckcv_ray.core.schedule import Stage
from ckcv_ray.learners.sklearn import spec
from ckcv_ray.learners.steps import Balance, draw_balanced
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study.problem import OUTER
from ckcv_ray.tables.roles import Roles

SERIAL = Execution("serial")
RNG = np.random.default_rng(3)
X = RNG.normal(size=(150, 3))
LABELS = np.where(X[:, 0] + RNG.normal(size=150) > 1.3, "ill", "well")
TASK = Task.of(X, LABELS)


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=60),
    st.integers(0, 2**32),
    st.sampled_from([Balance.UP, Balance.DOWN]),
)
def test_classes_are_equal_and_rows_are_training_rows(classes, seed, how):
    y = np.array(classes)
    train = np.random.default_rng(seed).choice(len(y), 1 + len(y) // 2)  # with repeats, as a bootstrap's
    drawn = draw_balanced(y, train, how)
    before = np.unique(y[train], return_counts=True)[1]
    after = np.unique(y[drawn], return_counts=True)[1]
    assert set(after) == {before.max() if how is Balance.UP else before.min()}
    assert set(y[drawn]) == set(y[train])
    given, kept = np.bincount(train, minlength=len(y)), np.bincount(drawn, minlength=len(y))
    if how is Balance.UP:
        assert np.all(kept >= given)
        largest = np.isin(y, np.unique(y[train])[before == before.max()])
        assert np.array_equal(kept[largest], given[largest])
    else:
        assert np.all(kept <= given)
    assert np.array_equal(drawn, np.sort(drawn))
    assert np.array_equal(drawn, draw_balanced(y, train, how))


@pytest.mark.parametrize("how", [Balance.UP, Balance.DOWN])
def test_rows_of_a_class_are_drawn_as_likely(how):
    train, rng, draws = np.arange(0, 150, 2), np.random.default_rng(0), 400
    # one draw for each order of the training rows
    drawn = [draw_balanced(TASK.y, rng.permutation(train), how) for _ in range(draws)]
    y, times = TASK.y[train], np.bincount(np.concatenate(drawn), minlength=TASK.n)[train]
    counts = np.bincount(y)
    rare, common = times[y == counts.argmin()], times[y == counts.argmax()]
    if how is Balance.UP:
        assert np.all(common == draws)
        assert chisquare(rare - draws).pvalue > 1e-3
    else:  # without replacement counts vary less than the multinomial's, by 1 - counts.min() / counts.max()
        assert np.all(rare == draws)
        expected, spread = draws * counts.min() / counts.max(), 1 - counts.min() / counts.max()
        statistic = np.sum((common - expected) ** 2) / expected / spread
        assert chi2.sf(statistic, counts.max() - 1) > 1e-3


@pytest.mark.parametrize("how", [Balance.UP, Balance.DOWN])
@pytest.mark.parametrize("resampling", ["kfold:5", "bootstrap:4"])
def test_scores_are_those_of_scikit_learn_fitted_to_these_rows(how, resampling):
    """Scored rows are as they are."""
    options = {"resampling": resampling, "measure": "balanced_accuracy", "execution": SERIAL}
    result = evaluate(X, LABELS, learner="naive_bayes", balance=how, **options)
    (entry,), (score,) = result.entries, result.scores
    expected = []
    for number in range(result.computed.n_splits):
        train, scored = result.problem.rows(Stage.SELECT, OUTER, number)
        rows = draw_balanced(TASK.y, train, how)
        model = GaussianNB().fit(X[rows], TASK.y[rows])
        expected.append(balanced_accuracy_score(TASK.y[scored], model.predict(X[scored])))
    np.testing.assert_array_equal(result.of_splits(entry, score), expected)


def test_a_certified_run_is_verified(tmp_path):
    """Members, refitted models and an encoder with them, fitted again from the data."""
    columns = dict(zip("pqr", X.T, strict=True)) | {"word": ["a", "b", "c"] * 50, "outcome": LABELS}
    task = Task.from_table(pa.table(columns), Roles("outcome"))
    study = Study.of(learner="tree,linear", balance="up", k=3, n_splits=2, certify="holdout")
    run_job(Job(study, task, tmp_path / "run"), SERIAL)
    found = verify(tmp_path / "run", rerun=True, execution=SERIAL)
    assert not found.differences
    assert not found.unverified


def test_a_pipeline_with_smote_is_scored_as_the_guide_shows(tmp_path, monkeypatch, ckcv):
    pytest.importorskip("imblearn")
    blocks = read_blocks(Path(__file__).parents[2] / "docs" / "guides" / "scikit_learn.md")
    (recipe,) = (block.text for block in blocks if "SMOTE()" in block.text)
    monkeypatch.chdir(tmp_path)
    exec(recipe, scored := {})
    assert scored["result"].complete
    monkeypatch.setattr(spec, "_trusted", {spec.LIBRARY})  # as another process, which made no object of it
    assert "importing imblearn runs its code" in ckcv("report", "runs/smote")[2]
    assert ckcv("--trust", "imblearn", "report", "runs/smote")[0] == 0
