"""What the tests of verification share: runs of a small study, and a forger's hand."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from conftest import blobs

from ckcv_ray import Execution, Job, Study
from ckcv_ray.claims.certificate import certify
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.core.selection import Leader
from ckcv_ray.engine.evaluate import evaluate, share
from ckcv_ray.engine.refit import one_model
from ckcv_ray.learners.ensemble import Ensemble, Member, Models, Records, judge
from ckcv_ray.runs.load import replay
from ckcv_ray.runs.run import run_job
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.log import Log
from ckcv_ray.study import Problem

SERIAL = Execution("serial")
SMALL = Study.of(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=5, seed=1)
Forger = Callable[[Records], None]


def run(study: Study, out: Path, n: int = 60) -> None:
    run_job(Job(study, blobs(n, seed=2), out), SERIAL)


def reseal(
    out: Path,
    edit_log: Forger = lambda records: None,
    ensemble: Ensemble | None = None,
    keep: Callable[[Records], Records] = lambda records: records,
    provisional: bool = False,
) -> None:
    """Write a finished run again, consistent in itself: log, candidates, models, certificate, digests."""
    folder = RunFolder(out)
    problem, execution = folder.problem(), folder.execution()
    before, log = folder.results(problem).models, Log(folder.files, problem)
    folder.reopen()
    folder.acquire()
    records = keep(np.concatenate([found for found, _ in log.read()]))
    edit_log(records)
    for part in (out / "log").iterdir():
        part.unlink()
    log.append(records, [])
    aggregator = replay(out)
    leader = aggregator.selection.winner()
    assert leader is not None
    nested, refit = before.nested, one_model(problem, leader)
    models = Models(ensemble or fitted(problem, leader), nested, *refit)
    digests = {"data": problem.all_rows.digest}
    digests |= folder.write_results(problem, aggregator.candidates(), models)
    winner = problem.candidate(leader)
    certificate = certify(problem, winner, leader.l_ms, models, provisional, digests)
    folder.write_end(certificate, execution)
    folder.release()


def fitted(problem: Problem, leader: Leader) -> Ensemble:
    """The ensemble of a leader."""
    splits = range(problem.sizes[leader.size].n_splits)
    units = [Unit(Stage.REFIT, leader.size, i, ((leader.path, leader.step + 1),)) for i in splits]
    return Ensemble(evaluate(units, share(problem)).members)


def stored(out: Path) -> tuple[Problem, Ensemble]:
    """What a finished run is about, and its ensemble."""
    folder = RunFolder(out)
    problem = folder.problem()
    return problem, folder.results(problem).models.best


def position(out: Path) -> Leader:
    """The winner of a finished run."""
    leader = replay(out).selection.winner()
    assert leader is not None
    return leader


def rows(problem: Problem, member: Member) -> tuple[np.ndarray, np.ndarray]:
    """Rows that train, and rows that are scored."""
    (size,) = (j for j, size in enumerate(problem.sizes) if size.holds(member.k))
    return problem.rows(Stage.REFIT, size, member.split)


def altered(member: Member, problem: Problem, **changes: object) -> Member:
    """The member with another model, and the errors that this makes on its estimate set."""
    model, (_, score) = replace(member.model, **changes), rows(problem, member)
    task, measure = problem.task, problem.criterion.measure
    errors = judge(model, task.X[score], task.y[score], measure, task.n_classes)
    return replace(member, model=model, errors=errors)


def of(records: Records, leader: Leader) -> np.ndarray:
    """Which records are of a leader's candidate."""
    places = [records[name] == getattr(leader, name) for name in ("size", "path", "step")]
    return np.logical_and.reduce(places)


def with_errors_of(ensemble: Ensemble, leader: Leader) -> Forger:
    """Have the log say of the leader's refits what its members say."""
    errors = {m.split: m.errors for m in ensemble.members}

    def edit(records: Records) -> None:
        for i in np.flatnonzero(of(records, leader) & records["estimate"]):
            records["totals"][i] = errors[int(records["split"][i])]

    return edit
