"""What a run rests on, computed again: for every kind of run, in part or whole, by any backend."""

from pathlib import Path

import numpy as np
import pytest
from alike import breaking
from forgery import SERIAL, SMALL, run_small, stored

from ckcv_ray import Execution, Job, Progress, Study, Task
from ckcv_ray.core.schedule import Stage
from ckcv_ray.engine import evaluate
from ckcv_ray.errors import InputError
from ckcv_ray.runs.load import replay
from ckcv_ray.runs.recheck import list_required, sample
from ckcv_ray.runs.run import run_job
from ckcv_ray.runs.verify import verify

STUDIES = {
    "plain": SMALL,
    "none scaled": SMALL.replace(scale="none"),
    "reported": SMALL.replace(report_k=(4, 5)),
    "exhaustive": SMALL.replace(exhaustive=True, n_splits=2),
    "rotation": Study.paper(C=(0.1, 1.0), gamma=(0.1, 1.0), k=(3, 5), resampling="rotation"),
    "holdout": SMALL.replace(certify="holdout", claim="vote"),
    "not converged": SMALL.replace(max_iter=2),
    "every k": SMALL.replace(k=None, n_splits=3),
    "large costs": SMALL.replace(C=(1e4, 1e6), gamma=(1e-3, 10.0)),
}


@pytest.mark.parametrize("study", [pytest.param(study, id=name) for name, study in STUDIES.items()])
def test_every_kind_of_run_is_verified_and_fitted_again(study: Study, tmp_path: Path) -> None:
    run_small(study, tmp_path / "run")
    plain = verify(tmp_path / "run")
    assert plain.differences == []
    moments: list[Progress] = []
    found = verify(tmp_path / "run", refit=1.0, execution=SERIAL, listen=moments.append)
    assert found.differences == []
    trusted = [sentence for sentence in found.trusted if "in execution.json" not in sentence]
    assert not any("evaluations" in sentence or "--refit" in sentence for sentence in trusted)
    assert plain.ok
    assert plain.verdict.startswith("nothing contradicts the files; taken on trust: the results of ")
    assert found.ok
    assert found.verdict == "every figure follows from the data"
    last = moments[-1]
    assert last.computed == last.planned > 0
    assert last.left == 0


def test_what_failed_is_tried_again_and_agrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        breaking(patch, lambda unit: (unit.size, unit.split) == (1, 1))
        run_small(SMALL, tmp_path / "run")
        found = verify(tmp_path / "run", refit=1.0, execution=SERIAL)
    assert found.differences == []
    assert any("tried again, which failed" in messages for messages in found.recomputed)
    again = verify(tmp_path / "run", refit=1.0, execution=SERIAL)
    assert any("the log has none" in messages for messages in again.differences)


def test_training_sets_of_one_class_are_verified(tmp_path: Path) -> None:
    X = np.arange(12.0)[:, None]
    y = np.array([1, 1, *[-1] * 10])
    run_job(Job(SMALL.replace(n_splits=20, k=3), Task.of(X, y), tmp_path / "run"), SERIAL)
    found = verify(tmp_path / "run", refit=1.0, execution=SERIAL)
    assert found.differences == []
    assert any(not len(m.model.support) for m in stored(tmp_path / "run")[1].members)


def test_ray_finds_what_one_process_finds(tmp_path: Path, ray_session: None) -> None:
    run_small(SMALL, tmp_path / "run")
    one = verify(tmp_path / "run", refit=1.0, execution=SERIAL)
    assert verify(tmp_path / "run", refit=1.0, execution=Execution("ray")) == one


def test_a_share_is_drawn_afresh_and_the_rest_is_named(tmp_path: Path) -> None:
    run_small(SMALL, tmp_path / "run")
    queue = replay(tmp_path / "run")
    units = list_required(queue, queue.candidates())
    draws = [tuple(sample(units, 0.2)) for _ in range(20)]
    assert {len(draw) for draw in draws} == {round(0.2 * len(units))}
    assert len(set(draws)) > 1
    assert {unit for draw in draws for unit in draw} > set(draws[0])
    assert sample(units, 1e-9)
    found = verify(tmp_path / "run", refit=0.2, execution=SERIAL)
    assert found.differences == []
    assert any(sentence.startswith("the other ") for sentence in found.trusted)


def test_what_a_run_rests_on_is_enough_for_its_candidates(tmp_path: Path) -> None:
    """The units alone, computed by a stranger, give the table of candidates and every model again."""
    run_small(SMALL.replace(report_k=4, seed=6), tmp_path / "run")
    before = replay(tmp_path / "run")
    units = list_required(before, before.candidates())
    stranger = type(before)(before.problem)
    stranger.add(evaluate.evaluate(units, evaluate.share(before.problem)))
    assert stranger.candidates().equals(before.candidates())
    assert all(stranger.holds_refits(leader) for leader in before.leaders())
    assert {unit.stage for unit in units} == {Stage.SELECT, Stage.REFIT}
    assert sum(unit.evaluations for unit in units) < before.problem.n_evaluations


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), "all", True])
def test_a_share_that_is_none_is_refused(share: object, tmp_path: Path) -> None:
    run_small(SMALL, tmp_path / "run")
    with pytest.raises(InputError, match="refit="):
        verify(tmp_path / "run", refit=share)  # type: ignore[arg-type]


def test_a_verification_stops_when_asked(tmp_path: Path) -> None:
    run_small(SMALL, tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        verify(tmp_path / "run", refit=1.0, execution=SERIAL, stop=lambda: True)
