"""Judged rows: what is stored of the rows that certify, that claims follow from it, and forged cells."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import blobs
from forgery import check_refused, first, rewrite

from ckcv_ray import Execution, Job, Result, Study, Task, load_run
from ckcv_ray.core.draws import order_held_out
from ckcv_ray.errors import StoreError
from ckcv_ray.records import judged
from ckcv_ray.records.judged import JUDGED_ROWS
from ckcv_ray.runs.run import run_job
from ckcv_ray.runs.verify import verify

SERIAL = Execution("serial")
TASK = blobs(60, shift=0.7)
GROUPS = np.repeat(np.arange(20), 3)
SMALL = Study.paper(learner="svm,tree", C=(1.0,), gamma=(1.0,), k=(3,), n_splits=3)
HELD = SMALL.replace(certify="holdout", holdout_share=0.5, claim="refit,vote,better:svm,better:tree")
Made = Callable[[str], Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Make a run once."""
    root, studies = tmp_path_factory.mktemp("judged"), {"held": HELD, "paper": SMALL}

    def make(name: str) -> Path:
        out = root / name
        if not out.exists():
            groups = GROUPS if name == "groups" else None
            task = Task.of(TASK.X, TASK.labelled(TASK.y), groups=groups)
            run_job(Job(studies.get(name, HELD), task, out), SERIAL)
        return out

    return make


@pytest.fixture
def held(made: Made, tmp_path: Path) -> Path:
    """A copy of the run with rows held out, which may be changed."""
    return shutil.copytree(made("held"), tmp_path / "run")


def take(result: Result, name: str) -> dict[str, np.ndarray]:
    """The columns of what one judge says."""
    rows = result.judged.to_pandas()
    return {column: values.to_numpy() for column, values in rows[rows.classifier == name].items()}


@pytest.mark.parametrize("name", ["held", "groups"])
def test_every_claimed_rule_judges_the_rows_held_out(name: str, made: Made) -> None:
    result = load_run(made(name))
    problem, claims = result.problem, result.certificate.claims
    rows, groups = problem.held, problem.all_rows.row_units
    drawn = order_held_out(problem.all_rows.n_units, len(np.unique(groups[rows])), problem.draws).tolist()
    for classifier in ("refit", "vote"):
        table = take(result, classifier)
        np.testing.assert_array_equal(table["row"], rows)
        np.testing.assert_array_equal(table["unit"], groups[rows])
        assert table["order"].tolist() == [drawn.index(unit) for unit in groups[rows]]
        np.testing.assert_array_equal(table["label"], problem.all_rows.y[rows])
        np.testing.assert_array_equal(table["loss"], table["predicted"] != table["label"])
        (claim,) = [c for c in claims if (c.classifier, str(c.quantity)) == (classifier, "error")]
        assert claim.errors == table["loss"].sum()
    winner = result.setting["learner"]
    (compared,) = [c for c in claims if c.quantity.reference and c.rows]
    assert compared.quantity.reference != winner
    lost = take(result, "refit")["loss"] - take(result, str(compared.quantity))["loss"]
    assert (compared.errors, compared.rows) == (np.sum(lost > 0), np.sum(lost != 0))


def test_judged_rows_are_there_whatever_the_models_are_read_from(made: Made) -> None:
    plain, pickled = load_run(made("held")), load_run(made("held"), allow_pickle=True)
    assert pickled.judged.equals(plain.judged)


def test_scores_are_stored_where_the_learner_has_them(made: Made) -> None:
    result = load_run(made("held"))
    held = result.problem.take_held_rows()
    expected = result.models.refit.members[0].model.predict(held.X).score
    np.testing.assert_array_equal(take(result, "refit")["score"], expected)
    y = np.where(TASK.X[:, 0] > 0, 2, TASK.y)
    several = run_job(Job(HELD.replace(claim="refit"), Task.of(TASK.X, y)), SERIAL)
    assert several.judged["score"].null_count == len(several.judged)


def test_what_the_run_counts_judges_nothing(made: Made) -> None:
    assert load_run(made("paper")).judged is None


def test_more_rows_than_a_file_may_have_are_not_stored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(judged, "MAX_TABLE_ROWS", 50)
    run_job(Job(HELD, TASK, tmp_path / "run"), SERIAL)
    assert not (tmp_path / "run" / JUDGED_ROWS).exists()
    assert verify(tmp_path / "run").ok


# Forgeries


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        (first("loss", 0.5), "loss has values other than 0 and 1"),
        (first("label", 7), "label has values outside 0..1"),
        (first("predicted", -2), "predicted has values outside -1..1"),
        (first("row", 60), "row has values outside 0..59"),
        (first("unit", None), "unit has empty cells"),
    ],
)
def test_impossible_values_are_damage(change: Callable[..., object], messages: str, held: Path) -> None:
    check_refused(held, JUDGED_ROWS, change, messages)


def test_more_rows_than_the_study_can_have_are_not_read(held: Path) -> None:
    rewrite(held, JUDGED_ROWS, lambda table: pa.concat_tables([table] * 5))
    with pytest.raises(StoreError, match="at most 120 rows"):
        load_run(held)
