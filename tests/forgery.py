"""Damaged or forged run folders: how they are made, for tests of whoever should notice.

First files: changed, with a manifest that agrees (``reseal``). Then whole runs: written again with another
log or other models, consistent in themselves (``rewrite_run``), and with models that fit the rows that
certify (``forge``).
"""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import blobs
from pyarrow import parquet

from ckcv_ray.claims.certify import certify
from ckcv_ray.claims.quantity import HeldOutPredictions
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.core.selection import Leader
from ckcv_ray.engine import recorder
from ckcv_ray.engine.evaluate import evaluate, fit_references, one_model, share
from ckcv_ray.errors import StoreError
from ckcv_ray.learners.ensemble import Ensemble, Member, Models, count_classes, judge
from ckcv_ray.records.record import Failure, Records
from ckcv_ray.runs.finished import load, make_scores, read_result, replay, tabulate_judged
from ckcv_ray.runs.result import Result, Scored
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.files import to_json
from ckcv_ray.storage.folder import RunFolder, hash_results, make_results
from ckcv_ray.storage.log import Log, name_part
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Execution, Procedure, Study
from ckcv_ray.tables.task import TestRows

SERIAL = Execution("serial")
STUDY = Study.paper(C=(0.1, 1.0), gamma=(0.1, 1.0), k=(3, 4), n_splits=3)
TASK = blobs(24)
PROBLEM = Problem.of(STUDY, TASK)
DATA, MODELS, CANDIDATES = "data.parquet", "ensemble/models.parquet", "candidates.parquet"
CERTIFICATE, ACCOUNT = "certificate.json", "execution.json"
LOG = "the log"  # stands for the name of its part; see ``find``
RESULTS = ("study.json", DATA, CANDIDATES, CERTIFICATE, MODELS)
NAMES = (*RESULTS, "ensemble/model-00000.pkl", LOG, ACCOUNT, "manifest.json")

Change = Callable[[Any], Any]
Forger = Callable[[Records], None]


def run_in(out: Path) -> Result:
    """Run the study of these tests in a folder, or resume it."""
    return run_job(Job(STUDY, TASK, out), SERIAL)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with one part of a log, to be copied but not changed."""
    out = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "FLUSH_SECONDS", inf)
        run_in(out)
    return out


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy of the finished run, which may be changed."""
    return shutil.copytree(whole, tmp_path / "run")


def find(run: Path, name: str) -> Path:
    """The file of a run by its name, or the only part of its log."""
    return next((run / "log").iterdir()) if name == LOG else run / name


def reseal(run: Path) -> None:
    """Make the manifest, and names of parts of the log, agree with the files, as a careful forger would."""
    folder = RunFolder(run)
    for part in folder.files.list("log/part-"):
        (run / part).rename(run / name_part(folder.sha256(part)))
    digests = {name: folder.sha256(name) for name in folder.names()}
    (run / "manifest.json").write_text(json.dumps(digests, indent=2) + "\n")


def rewrite(run: Path, name: str, change: Change) -> None:
    """Change a table of a run, and reseal it."""
    file = find(run, name)
    table = parquet.read_table(file)
    parquet.write_table(change(table).replace_schema_metadata(table.schema.metadata), file)
    reseal(run)


def rewrite_json(run: Path, name: str, change: Change) -> None:
    """Change a JSON file of a run, and reseal it."""
    (run / name).write_text(json.dumps(change(json.loads((run / name).read_text()))))
    reseal(run)


def column(name: str, values: Change) -> Change:
    """Change the values of a column."""

    def change(table: pa.Table) -> pa.Table:
        position = table.schema.get_field_index(name)
        kind = table.schema.field(name).type
        return table.set_column(position, name, pa.array(values(table[name].to_pylist()), kind))

    return change


def first(name: str, value: object) -> Change:
    """Change a column's first value."""
    return column(name, lambda values: [value, *values[1:]])


def put(**values: object) -> Change:
    """Change fields of a JSON object; a name with __ leads to one inside."""

    def change(content: dict[str, Any]) -> dict[str, Any]:
        for name, value in values.items():
            *way, last = name.split("__")
            inner = content
            for step in way:
                inner = inner[step]
            inner[last] = value
        return content

    return change


def check_refused(run: Path, file: str, change: Change, messages: str) -> None:
    """Check that the file's reader and verify notice a change, though the manifest agrees."""
    (rewrite_json if file.endswith(".json") else rewrite)(run, file, change)
    with pytest.raises(StoreError, match=rf"{find(run, file).name} is damaged: .*{re.escape(messages)}"):
        replay(run) if file == LOG else load(run)
    derived = find(run, file).name in ("certificate.json", "judged.parquet")  # made again, and compared
    assert ("recomputed it " if derived else messages) in " ".join(verify(run).differences)


DAMAGE: dict[str, Callable[[bytes, int], bytes | None]] = {
    "flipped": lambda content, at: content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :],
    "cut short": lambda content, at: content[:at],
    "longer": lambda content, at: content + b" ",
    "blank for blank": lambda content, at: content.replace(b" ", b"\t", 1),
    "deleted": lambda content, at: None,
}


def damage(file: Path, how: str, at: int) -> bool:
    """Damage a file; return False if there is nothing to change in this way."""
    content = file.read_bytes()
    changed = DAMAGE[how](content, at % len(content))
    if changed is None:
        file.unlink()
    elif changed != content:
        file.write_bytes(changed)
    return changed != content


def rewrite_run(
    out: Path,
    edit_log: Forger = lambda records: None,
    ensemble: Ensemble | None = None,
    keep: Callable[[Records], Records] = lambda records: records,
    models: Models | None = None,
    failures: list[Failure] | None = None,
    environment: str = "",
) -> None:
    """Write a finished run again, consistent in itself: log, candidates, models, certificate, digests.

    For a procedure, its log and scores.

    The models are ``models``, or else ``ensemble`` and what an honest run has with it. ``environment``
    names a processor that the run then claims to come from.
    """
    folder = RunFolder(out)
    problem, execution = folder.problem(), folder.execution()
    log = Log(folder.files, problem)
    folder.reopen()
    folder.acquire()
    records = keep(np.concatenate([found for found, _ in log.read()]))
    edit_log(records)
    for part in (out / "log").iterdir():
        part.unlink()
    log.append(records, failures or [])
    if environment:
        execution["environment"]["processor"] = environment
    if isinstance(problem.asked, Procedure):
        queue = replay(out)
        folder.write_end(
            execution, make_scores(Scored(queue.problem, execution, Models(), queue.scores()), None)
        )
    else:
        seal(folder, problem, execution, models, ensemble)
    folder.release()


def seal(
    folder: RunFolder,
    problem: Problem,
    execution: dict[str, Any],
    models: Models | None = None,
    ensemble: Ensemble | None = None,
) -> None:
    """Write what follows from the log of a run and from models: candidates, certificate, digests."""
    queue = replay(str(folder))
    leader = queue.selection.winner
    assert leader is not None
    if models is None:
        one, others = one_model(problem, leader), fit_references(problem, leader, queue.candidates())
        models = Models(ensemble or fitted(problem, leader), *one, others)
    judged = tabulate_judged(HeldOutPredictions(problem, models))
    table = queue.candidates()
    results = make_results(problem, table, models, judged)
    certificate = certify(HeldOutPredictions(problem, models), table, hash_results(results))
    folder.write_end(execution, results | {CERTIFICATE: to_json(certificate.to_json())})


def forge(out: Path, environment: str = "") -> None:
    """Replace models of a finished run by ones from other rows, with a log and files that agree with them.

    F*'s models have seen the rows that judge them; the refit's has seen every other row.
    """
    problem, leader = RunFolder(out).problem(), position(out)
    models = read_result(RunFolder(out), problem).models
    every = np.arange(problem.task.n)
    seen, half = (fit_on(problem, leader, train) for train in (every, every[::2]))
    scored = [problem.task.take_test_rows(rows(problem, member)[1]) for member in models.best.members]
    pairs = zip(models.best.members, scored, strict=True)
    best = Ensemble(tuple(with_model(member, seen, problem, by) for member, by in pairs))
    refit, held = models.refit, problem.take_held_rows()
    if refit is not None and held is not None:
        refit = Ensemble((with_model(refit.members[0], half, problem, held),))
    forged = replace(models, best=best, refit=refit)
    rewrite_run(out, with_errors_of(best, leader), models=forged, environment=environment)


def fit_on(problem: Problem, leader: Leader, train: np.ndarray) -> Any:
    """The model of a leader fitted to other rows."""
    trainer = problem.learner.trainer
    trainer.load()
    block = trainer.prepare(trainer.share(problem.task), train, train[:1])
    return block.fit(leader.path, leader.step + 1).model(leader.step)


def with_model(member: Member, model: Any, problem: Problem, scored: TestRows) -> Member:
    """The member with another model, and its predictions for the rows that judge it."""
    n_classes = problem.task.n_classes
    totals = judge(model, scored.X, scored.y, problem.measure(scored.row_units), n_classes)
    return Member(member.k, member.split, model, totals, count_classes(scored.y, n_classes))


def fitted(problem: Problem, leader: Leader) -> Ensemble:
    """The ensemble of a leader."""
    splits = range(problem.sizes[leader.size].n_splits)
    units = [Unit(Stage.REFIT, leader.size, i, ((leader.path, leader.step + 1),)) for i in splits]
    return Ensemble(evaluate(share(problem), units).members)


def stored(out: Path) -> tuple[Problem, Ensemble]:
    """What a finished run is about, and its ensemble."""
    folder = RunFolder(out)
    problem = folder.problem()
    return problem, read_result(folder, problem).models.best


def position(out: Path) -> Leader:
    """The winner of a finished run."""
    leader = replay(out).selection.winner
    assert leader is not None
    return leader


def rows(problem: Problem, member: Member) -> tuple[np.ndarray, np.ndarray]:
    """Rows that train, and rows that are scored."""
    (size,) = (j for j, size in enumerate(problem.sizes) if size.holds(member.k))
    return problem.rows(Stage.REFIT, size, member.split)


def altered(member: Member, problem: Problem, **changes: object) -> Member:
    """The member with another model, and that model's errors on its estimate set."""
    model, (_, score) = replace(member.model, **changes), rows(problem, member)
    task, measure = problem.task, problem.criterion.measure
    errors = judge(model, task.X[score], task.y[score], measure, task.n_classes)
    return replace(member, model=model, totals=errors)


def of(records: Records, leader: Leader) -> np.ndarray:
    """Which records are of a leader's candidate."""
    places = [records[name] == getattr(leader, name) for name in ("size", "path", "step")]
    return np.logical_and.reduce(places)


def with_errors_of(ensemble: Ensemble, leader: Leader) -> Forger:
    """Make the log say about the leader's refits what its members say."""
    totals = {m.split: m.totals for m in ensemble.members}

    def edit(records: Records) -> None:
        for i in np.flatnonzero(of(records, leader) & records["estimate"]):
            records["totals"][i] = totals[int(records["split"][i])]

    return edit
