"""A verification cannot be fooled without saying what it took on trust, and a refit takes nothing."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import blobs
from forgery import (
    SERIAL,
    SMALL,
    altered,
    fitted,
    of,
    position,
    rewrite_run,
    rows,
    run_small,
    stored,
    with_errors_of,
)

from ckcv_ray import Job, TestRows
from ckcv_ray.errors import InputError
from ckcv_ray.learners.ensemble import Ensemble, Member
from ckcv_ray.learners.svm.problem import EQUAL, find_violation, make_signs
from ckcv_ray.records.record import Records
from ckcv_ray.runs.load import read_results
from ckcv_ray.runs.run import run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.read import from_matrix


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, to be copied."""
    out = tmp_path_factory.mktemp("small") / "run"
    run_small(SMALL, out)
    return out


@pytest.fixture
def out(small: Path, tmp_path: Path) -> Path:
    return shutil.copytree(small, tmp_path / "run")


def test_a_forgers_hand_that_changes_nothing_is_not_seen(out: Path) -> None:
    """So that what the others are caught at is what they forged."""
    rewrite_run(out)
    assert verify(out).differences == []
    assert verify(out, refit=1.0, execution=SERIAL).differences == []


def test_forged_offsets_are_seen(out: Path) -> None:
    problem, ensemble = stored(out)
    moved = [
        min(
            (altered(m, problem, offset=m.model.offset + d) for d in (-0.1, 0.1)), key=lambda x: sum(x.errors)
        )
        for m in ensemble.members
    ]
    forged = Ensemble(tuple(moved))
    rewrite_run(out, with_errors_of(forged, position(out)), forged)
    messages = verify(out).differences
    assert len([sentence for sentence in messages if "by the KKT conditions it is" in sentence]) == 5


def test_models_of_another_cost_are_seen(tmp_path: Path) -> None:
    """As any that are not the machine of their training rows: they break the KKT conditions."""
    out = tmp_path / "run"
    run_small(SMALL.replace(C=(1.0, 100.0)), out)
    problem, ensemble = stored(out)
    leader, C = position(out), ensemble.members[0].model.C
    other = fitted(problem, leader._replace(step=1 - leader.step))
    assert {m.model.C for m in other.members} == {1.0, 100.0} - {C}
    forged = []
    for m in other.members:
        inside = np.clip(m.model.dual_coef, -C, C)
        shift = inside.sum() / np.sum(np.abs(inside))
        forged.append(altered(m, problem, C=C, dual_coef=inside * (1 - shift * np.sign(inside))))
    ensemble = Ensemble(tuple(forged))
    rewrite_run(out, with_errors_of(ensemble, leader), ensemble)
    assert any("it violates the KKT conditions" in sentence for sentence in verify(out).differences)


def test_models_of_another_setting_are_seen(out: Path) -> None:
    """Sound machines of their training rows, but not at the winner's setting."""
    problem, _ = stored(out)
    leader = position(out)
    other = fitted(problem, leader._replace(step=(leader.step + 1) % 3))
    rewrite_run(out, with_errors_of(other, leader), other)
    messages = [sentence for sentence in verify(out).differences if "fitted at C = " in sentence]
    assert len(messages) == 5
    assert all("the winner is C = " in sentence for sentence in messages)


def test_models_of_another_split_are_seen(out: Path) -> None:
    """A support vector of one is a row that the other must not have seen."""
    problem, ensemble = stored(out)
    models = [m.model for m in ensemble.members]
    swapped = [replace(m, model=model) for m, model in zip(ensemble.members, models[::-1], strict=True)]
    forged = Ensemble(tuple(altered(m, problem) for m in swapped))
    rewrite_run(out, with_errors_of(forged, position(out)), forged)
    messages = verify(out).differences
    assert len([sentence for sentence in messages if "not among its training rows" in sentence]) == 4
    assert not any("model of split 2" in sentence for sentence in messages)  # which is its own


def offset_of(member: Member, problem: Problem) -> float:
    """The offset that the KKT conditions name for the coefficients of a member."""
    train, _ = rows(problem, member)
    model, task = member.model, problem.task
    b = np.zeros(len(train))
    b[np.searchsorted(train, model.support)] = model.dual_coef
    Kb = model.decision(task.X[train]) - model.offset
    y = make_signs(task)[train].astype(float)
    return find_violation(Kb, y, b, model.C, EQUAL)[0]


def test_a_log_that_leads_to_another_winner_is_seen(tmp_path: Path) -> None:
    """Its part sealed, and nothing else: candidates, certificate and models are of the winner before."""
    out, other = tmp_path / "run", tmp_path / "other"
    run_small(SMALL.replace(exhaustive=True), out)
    run_small(SMALL.replace(exhaustive=True), other)
    first = position(out)

    def lucky(records: Records) -> None:
        records["totals"][of(records, first) & ~records["estimate"], 0] += 3

    rewrite_run(other, lucky)
    for part in (out / "log").iterdir():
        part.unlink()
    for part in (other / "log").iterdir():
        (out / "log" / part.name).write_bytes(part.read_bytes())
    rewrite_end(out, RunFolder(out).execution())
    messages = verify(out).differences
    assert "candidates.parquet is not what the log gives" in messages
    assert any(
        s.startswith("the log gives the winner ") and "not the certificate's winner" in s for s in messages
    )


def rewrite_end(out: Path, execution: dict) -> None:
    """Write certificate, execution and manifest of a finished run again."""
    folder = RunFolder(out)
    certificate = read_results(folder, folder.problem()).certificate
    folder.acquire()
    folder.write_end(certificate.to_json(), execution)
    folder.release()


def test_models_at_costs_where_rounding_decides_are_fitted_again(tmp_path: Path) -> None:
    run_small(SMALL.replace(C=1e13, gamma=1e-4), tmp_path / "run")
    found = verify(tmp_path / "run")
    assert found.differences == []
    assert any("(5 fitted again, equal in every bit)" in messages for messages in found.recomputed)


def test_models_of_a_study_with_a_wide_tolerance_are_fitted_again(tmp_path: Path) -> None:
    """Else much would pass for optimal, such as a model with half of its coefficients."""
    out = tmp_path / "run"
    run_small(SMALL.replace(tolerance=0.9), out)
    assert any("(5 fitted again, equal in every bit)" in messages for messages in verify(out).recomputed)
    problem, ensemble = stored(out)
    halves = [altered(m, problem, dual_coef=0.5 * m.model.dual_coef) for m in ensemble.members]
    forged = Ensemble(tuple(altered(m, problem, offset=offset_of(m, problem)) for m in halves))
    rewrite_run(out, with_errors_of(forged, position(out)), forged)
    messages = verify(out).differences
    assert any("fitted again, it classifies" in sentence for sentence in messages)


def test_a_forged_test_error_is_trusted_aloud_and_measured_again(tmp_path: Path) -> None:
    out, task = tmp_path / "run", blobs(60, seed=2)
    test = blobs(40, seed=3)
    run_job(Job(SMALL, task, out, TestRows(test.X, test.y)), SERIAL)
    columns = from_matrix(test.X, test.labelled(test.y), list(task.features), task.target)
    assert any("test error in execution.json" in sentence for sentence in verify(out).trusted)
    found = verify(out, test=columns)
    assert found.differences == []
    assert "the test error of F* on 40 rows" in found.recomputed
    execution = json.loads((out / "execution.json").read_text())
    execution["test"]["error"] /= 2
    rewrite_end(out, execution)
    assert verify(out).differences == []
    (messages,) = verify(out, test=columns).differences
    assert "execution.json: test.error is" in messages
    assert verify(out, test=TestRows(test.X, test.y)).differences == [messages]
    for others in (columns.slice(1), TestRows(test.X[1:], test.y[1:])):
        with pytest.raises(InputError, match="not the rows"):
            verify(out, test=others)


def test_test_rows_for_a_run_without_any_are_refused(out: Path) -> None:
    with pytest.raises(InputError, match="not measured on any test rows"):
        verify(out, test=blobs(40, seed=3).columns())
    with pytest.raises(InputError, match="expected a class number below 2"):
        verify(out, test=TestRows(np.zeros((2, 2)), np.array([0, 2])))
