"""Judged rows: what is stored of the rows that certify, and that claims follow from it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import blobs
from finished import Finished

from ckcv_ray import Execution, Job, Result, Study, Task, load_run
from ckcv_ray.core.draws import order_held_out
from ckcv_ray.records import judged
from ckcv_ray.records.judged import JUDGED_ROWS
from ckcv_ray.runs.run import run_job
from ckcv_ray.runs.verify import verify

SERIAL = Execution("serial")
HELD = Study.of(C=(1.0,), gamma=(1.0,), k=(3,), n_splits=3, certify="holdout", holdout_share=0.5)


def take(result: Result, name: str) -> dict[str, np.ndarray]:
    """The columns of what one judge says."""
    rows = result.judged.to_pandas()
    return {column: values.to_numpy() for column, values in rows[rows.classifier == name].items()}


@pytest.mark.parametrize(("name", "classifiers"), [("held", ["refit", "vote"]), ("held better", ["refit"])])
def test_every_claimed_rule_judges_the_rows_held_out(name: str, classifiers: Any, finished: Finished) -> None:
    """Rows, and groups of them."""
    result = load_run(finished(name))
    problem, claims = result.problem, result.certificate.claims
    rows, units = problem.held, problem.all_rows.row_units
    drawn = order_held_out(problem.all_rows.n_units, len(np.unique(units[rows])), problem.draws).tolist()
    for classifier in classifiers:
        table = take(result, classifier)
        np.testing.assert_array_equal(table["row"], rows)
        np.testing.assert_array_equal(table["unit"], units[rows])
        assert table["order"].tolist() == [drawn.index(unit) for unit in units[rows]]
        np.testing.assert_array_equal(table["label"], problem.all_rows.y[rows])
        np.testing.assert_array_equal(table["loss"], table["predicted"] != table["label"])
        (claim,) = [c for c in claims if (c.classifier, str(c.quantity)) == (classifier, "error")]
        assert claim.errors == table["loss"].sum()


def test_a_learner_that_is_compared_judges_them_too() -> None:
    task = blobs(60, shift=0.7)
    study = HELD.replace(learner="svm,tree", claim="refit,better:svm,better:tree")
    result = run_job(Job(study, task), SERIAL)
    (compared,) = [c for c in result.certificate.claims if c.quantity.reference and c.rows]
    assert compared.quantity.reference != result.setting["learner"]
    lost = take(result, "refit")["loss"] - take(result, str(compared.quantity))["loss"]
    assert (compared.errors, compared.rows) == (np.sum(lost > 0), np.sum(lost != 0))


def test_scores_are_stored_where_the_learner_has_them(finished: Finished) -> None:
    result = load_run(finished("held"))
    expected = result.models.refit.members[0].model.predict(result.problem.take_held_rows().X).score
    np.testing.assert_array_equal(take(result, "refit")["score"], expected)
    task = blobs(60)
    several = run_job(Job(HELD, Task.of(task.X, np.where(task.X[:, 0] > 0, 2, task.y))), SERIAL)
    assert several.judged["score"].null_count == len(several.judged)


def test_neither_what_the_run_counts_nor_more_rows_than_a_file_may_have_are_stored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, finished: Finished
) -> None:
    assert load_run(finished("paper")).judged is None
    monkeypatch.setattr(judged, "MAX_TABLE_ROWS", 20)
    run_job(Job(HELD, blobs(60), tmp_path / "run"), SERIAL)
    assert not (tmp_path / "run" / JUDGED_ROWS).exists()
    assert verify(tmp_path / "run").ok
