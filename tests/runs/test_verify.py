"""A verification cannot be fooled without saying what it took on trust, and a refit takes nothing."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import blobs

from ckcv_ray.claims.certificate import certify
from ckcv_ray.data.files import from_matrix
from ckcv_ray.data.task import TestRows, table_from_arrays
from ckcv_ray.engine import evaluate as worker
from ckcv_ray.engine.aggregator import Progress
from ckcv_ray.engine.evaluate import roles
from ckcv_ray.errors import InputError
from ckcv_ray.learners.ensemble import Ensemble, mistakes
from ckcv_ray.learners.svm import Status
from ckcv_ray.learners.svm.problem import describe
from ckcv_ray.runs.load import replay
from ckcv_ray.runs.refit import drawn, rests_on
from ckcv_ray.runs.run import run_table
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage import log
from ckcv_ray.storage.candidates import triple_of
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study import Execution, Stage, Study, Task

SERIAL = Execution("serial")
SMALL = Study(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=5, seed=1)
Forger = Callable[[np.ndarray], None]


def run(study: Study, out: Path, n: int = 60) -> None:
    run_table(study, blobs(n, seed=2), out, SERIAL)


def reseal(
    out: Path,
    edit_log: Forger = lambda records: None,
    ensemble: Ensemble | None = None,
    keep: Callable[[np.ndarray], np.ndarray] = lambda records: records,
    provisional: bool = False,
) -> None:
    """Write a finished run again, consistent in itself: log, triples, models, certificate, digests."""
    folder = RunFolder(out)
    identity, execution = folder.require(), folder.execution()
    table = folder.table(identity)
    finished = folder.results(identity, table)
    folder.reopen()
    folder.acquire()
    records = np.concatenate([found for found, _ in folder.cells(identity, identity.study.sizes(table.n))])
    records = keep(records)
    edit_log(records)
    for part in (out / "cells").iterdir():
        part.unlink()
    folder.append(records, [], identity.study, identity.run_id)
    aggregator = replay(out)
    leader = aggregator.selection.winner()
    assert leader is not None
    winner = triple_of(identity.study, aggregator.sizes, leader)
    if ensemble is None:
        ensemble = fitted(identity.study, table, aggregator, leader)
    triples, nested = aggregator.triples(), finished.nested
    digests = {"data": table.digest}
    digests |= folder.write_results(triples, ensemble, nested, table, identity.run_id)
    certificate = certify(
        identity.study, table, identity.run_id, winner, leader.l_ms, ensemble, nested, provisional, digests
    )
    folder.write_end(certificate, execution)
    folder.release()


def fitted(study, table, aggregator, leader) -> Ensemble:
    size = aggregator.sizes[leader.size]
    tasks = [Task(Stage.REFIT, size.k, i, ((leader.gamma, leader.C + 1),)) for i in range(size.n_splits)]
    return Ensemble(worker.evaluate(tasks, study, worker.share(table.X, table.y, study)).members)


def stored(out: Path) -> tuple[Study, object, Ensemble]:
    folder = RunFolder(out)
    identity = folder.require()
    table = folder.table(identity)
    return identity.study, table, folder.results(identity, table).ensemble


def judged(member, study, table):
    """The member with the errors that it makes on its estimate set."""
    _, score = roles(Stage.REFIT, study.split(table.n, member.k, member.mc_index))
    return replace(member, errors=mistakes(member.decision(table.X[score]), table.y[score]))


def with_errors_of(ensemble: Ensemble) -> Forger:
    errors = {m.mc_index: m.errors for m in ensemble.members}
    first = ensemble.members[0]

    def edit(records: np.ndarray) -> None:
        key = (first.C, first.gamma, first.k)
        for record in records:
            if record["estimate"] and (record["C"], record["gamma"], record["k"]) == key:
                record["errors_negative"], record["errors_positive"] = errors[int(record["mc_index"])]

    return edit


def test_a_forgers_hand_that_changes_nothing_is_not_seen(tmp_path: Path) -> None:
    """So that what the others are caught at is what they forged."""
    run(SMALL, tmp_path / "run")
    reseal(tmp_path / "run")
    assert verify(tmp_path / "run").differences == []
    assert verify(tmp_path / "run", refit=1.0, execution=SERIAL).differences == []


def test_forged_offsets_are_seen(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(SMALL, out)
    study, table, ensemble = stored(out)
    moved = [
        min(
            (judged(replace(m, offset=m.offset + d), study, table) for d in (-0.1, 0.1)),
            key=lambda x: sum(x.errors),
        )
        for m in ensemble.members
    ]
    forged = Ensemble(tuple(moved))
    reseal(out, with_errors_of(forged), forged)
    told = verify(out).differences
    assert len([sentence for sentence in told if "by the KKT conditions it is" in sentence]) == 5


def test_models_of_another_cost_are_seen(tmp_path: Path) -> None:
    """As any that are not the machine of their training rows: they break the KKT conditions."""
    out = tmp_path / "run"
    run(replace(SMALL, C=(1.0, 100.0)), out)
    study, table, ensemble = stored(out)
    C = ensemble.members[0].C
    other = study.C[1 - study.C.index(C)]
    shared = worker.share(table.X, table.y, study)
    forged = []
    for m in ensemble.members:
        length = study.C.index(other) + 1
        task = Task(Stage.REFIT, m.k, m.mc_index, ((study.gamma.index(m.gamma), length),))
        (found,) = worker.evaluate([task], study, shared).members
        inside = np.clip(found.dual_coef, -C, C)
        shift = inside.sum() / np.sum(np.abs(inside))
        forged.append(
            judged(replace(found, C=C, dual_coef=inside * (1 - shift * np.sign(inside))), study, table)
        )
    ensemble = Ensemble(tuple(forged))
    reseal(out, with_errors_of(ensemble), ensemble)
    assert any("it violates the KKT conditions" in sentence for sentence in verify(out).differences)


def test_a_forged_selection_is_named_as_trusted_and_seen_by_a_refit(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(replace(SMALL, exhaustive=True), out)  # so that the log has estimates for whatever is selected
    first = stored(out)[2].members[0]

    def lucky(records: np.ndarray) -> None:
        """The winner made worse on its select sets, and so another one selected."""
        same = (records["C"] == first.C) & (records["gamma"] == first.gamma) & (records["k"] == first.k)
        records["errors_negative"][same & ~records["estimate"]] += 3

    reseal(out, lucky)
    forged = stored(out)[2].members[0]
    assert (forged.C, forged.gamma, forged.k) != (first.C, first.gamma, first.k)
    plain = verify(out)
    assert plain.differences == []
    assert any("the counts of errors in the log of cells" in sentence for sentence in plain.trusted)
    again = verify(out, refit=1.0, execution=SERIAL)
    assert any("on the select set: computed again" in sentence for sentence in again.differences)


def test_models_called_capped_are_named_as_trusted_and_seen_by_a_refit(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(SMALL, out)
    study, table, ensemble = stored(out)
    moved = [judged(replace(m, dual_coef=0.5 * m.dual_coef), study, table) for m in ensemble.members]
    forged = Ensemble(tuple(moved))
    first = forged.members[0]

    def capped(records: np.ndarray) -> None:
        with_errors_of(forged)(records)
        same = (records["C"] == first.C) & (records["gamma"] == first.gamma) & (records["k"] == first.k)
        records["status"][same & records["estimate"]] = log.STATUSES.index(Status.CAPPED)

    fixed = Ensemble(tuple(replace(m, offset=offset_of(m, study, table)) for m in forged.members))
    fixed = Ensemble(tuple(judged(m, study, table) for m in fixed.members))
    forged = fixed
    reseal(out, capped, forged)
    plain = verify(out)
    assert plain.differences == []
    assert len([told for told in plain.trusted if "stopped at the iteration cap" in told]) == 5
    assert any("the KKT conditions of 0" in told for told in plain.recomputed)
    again = verify(out, refit=1.0, execution=SERIAL).differences
    assert any("errors by class and status" in told for told in again)


def offset_of(member, study, table) -> float:
    """The offset that the KKT conditions name for the coefficients of a member."""
    train, _ = roles(Stage.REFIT, study.split(table.n, member.k, member.mc_index))
    b = np.zeros(len(train))
    b[np.searchsorted(train, member.support)] = member.dual_coef
    Kb = member.decision(table.X[train]) - member.offset
    return describe(Kb, table.y[train].astype(float), b, member.C, 0, Status.CONVERGED).offset


def test_a_log_without_the_better_candidates_is_named_and_seen_by_a_refit(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(replace(SMALL, exhaustive=True, n_splits=2), out)
    first = stored(out)[2].members[0]

    def without(records: np.ndarray) -> np.ndarray:
        same = (records["C"] == first.C) & (records["gamma"] == first.gamma) & (records["k"] == first.k)
        return records[~same | records["estimate"]]

    reseal(out, lambda records: None, keep=without, provisional=True)
    plain = verify(out)
    assert plain.differences == []
    assert any("candidates failed (--refit tries them again)" in told for told in plain.trusted)
    assert any("the log has none" in told for told in verify(out, refit=1.0, execution=SERIAL).differences)


def test_an_environment_that_is_said_to_be_another_is_named(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(SMALL, out)
    folder = RunFolder(out)
    execution = folder.execution()
    execution["environment"]["processor"] = "another"
    certificate = folder.results(folder.require(), folder.table(folder.require())).certificate
    folder.acquire()
    folder.write_end(certificate, execution)
    folder.release()
    told = verify(out, refit=1.0, execution=SERIAL).trusted
    assert any("last bits of the models" in sentence for sentence in told)


def test_costs_at_which_rounding_decides_are_named(tmp_path: Path) -> None:
    run(replace(SMALL, C=(1e13,), gamma=(1e-4,)), tmp_path / "run")
    found = verify(tmp_path / "run")
    assert found.differences == []
    assert any("rounding decides" in told for told in found.trusted)


def test_what_failed_is_tried_again_and_agrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = worker._prepare

    def broken(task, study, data):
        if (task.k, task.mc_index) == (4, 1):
            raise MemoryError("no room")
        return real(task, study, data)

    monkeypatch.setattr(worker, "_prepare", broken)
    run(SMALL, tmp_path / "run")
    found = verify(tmp_path / "run", refit=1.0, execution=SERIAL)
    assert found.differences == []
    assert any("tried again, which failed" in told for told in found.recomputed)
    monkeypatch.setattr(worker, "_prepare", real)
    again = verify(tmp_path / "run", refit=1.0, execution=SERIAL)
    assert any("the log has none" in told for told in again.differences)


def test_a_forged_test_error_is_trusted_aloud_and_measured_again(tmp_path: Path) -> None:
    out, table = tmp_path / "run", blobs(60, seed=2)
    rows = blobs(40, seed=3)
    run_table(SMALL, table, out, SERIAL, test=TestRows(rows.X, rows.y))
    columns = from_matrix(rows.X, rows.y.astype(int), list(table.features), table.target)
    assert any("test error in execution.json" in sentence for sentence in verify(out).trusted)
    found = verify(out, test=columns)
    assert found.differences == []
    assert "the test error of F* on 40 rows" in found.recomputed
    execution = json.loads((out / "execution.json").read_text())
    execution["test"]["error"] /= 2
    folder = RunFolder(out)
    certificate = folder.results(folder.require(), folder.table(folder.require())).certificate
    folder.acquire()
    folder.write_end(certificate, execution)
    folder.release()
    assert verify(out).differences == []
    (told,) = verify(out, test=columns).differences
    assert "execution.json: test.error is" in told
    with pytest.raises(InputError, match="not the rows"):
        verify(out, test=columns.slice(1))


def test_test_rows_for_a_run_without_any_are_refused(tmp_path: Path) -> None:
    run(SMALL, tmp_path / "run")
    rows = blobs(40, seed=3)
    columns = from_matrix(rows.X, rows.y.astype(int), list(rows.features), rows.target)
    with pytest.raises(InputError, match="not measured on any rows"):
        verify(tmp_path / "run", test=columns)


STUDIES = {
    "plain": SMALL,
    "none scaled": replace(SMALL, scaling="none"),
    "reported": replace(SMALL, report_k=(4, 5)),
    "exhaustive": replace(SMALL, exhaustive=True, n_splits=2),
    "rotation": Study(C=(0.1, 1.0), gamma=(0.1, 1.0), k=(3, 5), resampling="rotation"),
    "holdout": replace(SMALL, protocol="holdout", claims=("random", "vote")),
    "nested": replace(SMALL, protocol="nested", outer_splits=2),
    "capped": replace(SMALL, max_iter=2),
    "nested and capped": replace(SMALL, protocol="nested", outer_splits=2, max_iter=2),
    "libsvm": replace(SMALL, solver="libsvm", n_splits=3),
    "every k": replace(SMALL, k=None, n_splits=3),
    "large costs": replace(SMALL, C=(1e4, 1e6), gamma=(1e-3, 10.0)),
}


@pytest.mark.parametrize("study", [pytest.param(study, id=name) for name, study in STUDIES.items()])
def test_every_kind_of_run_is_verified_and_fitted_again(study: Study, tmp_path: Path) -> None:
    run(study, tmp_path / "run")
    plain = verify(tmp_path / "run")
    assert plain.differences == []
    moments: list[Progress] = []
    found = verify(tmp_path / "run", refit=1.0, execution=SERIAL, listen=moments.append)
    assert found.differences == []
    assert not any("evaluations" in sentence or "--refit" in sentence for sentence in found.trusted)
    last = moments[-1]
    assert last.computed == last.planned > 0
    assert last.left == 0


def test_training_sets_of_one_class_are_verified(tmp_path: Path) -> None:
    X = np.arange(12.0)[:, None]
    y = np.array([1, 1, *[-1] * 10])
    run_table(replace(SMALL, n_splits=20, k=(3,)), table_from_arrays(X, y), tmp_path / "run", SERIAL)
    found = verify(tmp_path / "run", refit=1.0, execution=SERIAL)
    assert found.differences == []
    assert any(not len(m.support) for m in stored(tmp_path / "run")[2].members)


def test_ray_finds_what_one_process_finds(tmp_path: Path, ray_session: None) -> None:
    run(SMALL, tmp_path / "run")
    one = verify(tmp_path / "run", refit=1.0, execution=SERIAL)
    assert verify(tmp_path / "run", refit=1.0, execution=Execution("ray")) == one


def test_a_share_is_drawn_afresh_and_the_rest_is_named(tmp_path: Path) -> None:
    run(SMALL, tmp_path / "run")
    aggregator = replay(tmp_path / "run")
    units = rests_on(aggregator, aggregator.triples())
    draws = [tuple(drawn(units, 0.2)) for _ in range(20)]
    assert {len(draw) for draw in draws} == {round(0.2 * len(units))}
    assert len(set(draws)) > 1
    assert {unit for draw in draws for unit in draw} > set(draws[0])
    assert drawn(units, 1e-9)
    found = verify(tmp_path / "run", refit=0.2, execution=SERIAL)
    assert found.differences == []
    assert any(sentence.startswith("the other ") for sentence in found.trusted)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), "all", True])
def test_a_share_that_is_none_is_refused(share: object, tmp_path: Path) -> None:
    run(SMALL, tmp_path / "run")
    with pytest.raises(InputError, match="refit="):
        verify(tmp_path / "run", refit=share)  # type: ignore[arg-type]


def test_a_verification_stops_when_asked(tmp_path: Path) -> None:
    run(SMALL, tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        verify(tmp_path / "run", refit=1.0, execution=SERIAL, stop=lambda: True)
