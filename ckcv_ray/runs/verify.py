"""Check a finished run: from its files alone, or by computing again what it rests on.

From the files (nothing is unpickled): digests; sums, bounds, drops and winner from the log; splits drawn
again; each model's errors, and what its learner can say of it, from the data; the certificate. What that
takes on trust, the counts of errors on the select sets above all, is named, and computed again where that is
asked for (``recount``).
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from math import isclose
from os import PathLike
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ckcv_ray.claims.certificate import certify
from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.selection import Leader
from ckcv_ray.data.task import TestRows, fitting, rows_to_test
from ckcv_ray.engine.aggregator import Aggregator
from ckcv_ray.engine.backend import Backend, choose_backend, session
from ckcv_ray.engine.evaluate import share
from ckcv_ray.engine.loop import Stop, work
from ckcv_ray.engine.nested import Position, inner_problems, nested_ensemble
from ckcv_ray.engine.progress import Listener
from ckcv_ray.errors import CKCVError, InputError, StoreError, cut, plain
from ckcv_ray.learners.base import Setting
from ckcv_ray.learners.ensemble import Ensemble, Member, class_sizes, judge, to_pickles
from ckcv_ray.runs.load import environment_changes, replay
from ckcv_ray.runs.recount import Recount, drawn, rests_on
from ckcv_ray.runs.settle import measure
from ckcv_ray.storage import candidates, models
from ckcv_ray.storage.folder import MANIFEST, Finished, RunFolder
from ckcv_ray.storage.pages import REPORT, report_whole
from ckcv_ray.study import Candidate, Execution, Problem
from ckcv_ray.validation import number

SUM_TOLERANCE = 1e-9
MOST_SHOWN = 240
MOST_LISTED = 100

Test: TypeAlias = pa.Table | TestRows | None


@dataclass
class Verification:
    """What a verification found.

    Attributes:
        differences: everything that is not as it should be, a sentence each; empty if all is well.
        recomputed: what was computed again, from the data or from the log.
        trusted: what was taken on trust.
    """

    differences: list[str] = field(default_factory=list)
    recomputed: list[str] = field(default_factory=list)
    trusted: list[str] = field(default_factory=list)

    def within(self, inner: "list[Verification]") -> None:
        """Take in what was found of the runs inside this one, one for each outer split."""
        self.differences += [
            f"outer split {i}: {what}" for i, one in enumerate(inner) for what in one.differences
        ]
        self.recomputed += _of_splits([one.recomputed for one in inner])
        self.trusted += _of_splits([one.trusted for one in inner])


@dataclass(frozen=True)
class Refit:
    """How much of what a run rests on is computed again, and by what.

    Attributes:
        share: of the evaluations, in [0, 1]; below 1 a random sample of them.
        backend: makes a backend for each run; None where nothing is computed.
        listen, stop: as for ``run_job``.
    """

    share: float = 0.0
    backend: Callable[[], Backend] | None = None
    listen: Listener | None = None
    stop: Stop = lambda: False


def verify(
    out: str | PathLike[str],
    refit: float = 0.0,
    test: Test = None,
    execution: Execution | None = None,
    listen: Listener | None = None,
    stop: Stop = lambda: False,
) -> Verification:
    """Check a finished run.

    Args:
        out: its folder.
        refit: share of the evaluations that the result rests on to compute again, 0 to 1; below 1 others
            are drawn at each call.
        test: the rows on which the run measured its ensemble, as columns or as ``read_task`` gives them, to
            measure it on again.
        execution: backend, workers, cluster address for what is computed again.
        listen, stop: as for ``run_job``.

    Raises:
        StoreError: there is no finished run in the folder.
        InputError: refit is outside 0..1, or the test rows do not go with the run.
        KeyboardInterrupt: it was stopped.
    """
    share = number("refit", refit)
    if not 0 <= share <= 1:
        raise InputError(f"refit={share:g} is outside 0..1: it is the share to compute again, 1 for all")
    folder = RunFolder(out)
    if not folder.finished:
        folder.identity()
        raise StoreError(f"{str(out)!r} holds no finished run: there is nothing to verify yet")
    if not share:
        return _verify(folder, Refit(), test)
    execution = execution or Execution()
    seconds = 0.0
    with suppress(StoreError):
        seconds = share * folder.execution()["worker_seconds"]
    execution = replace(execution, backend=choose_backend(execution, seconds))
    with session(execution) as opened:
        return _verify(folder, Refit(share, opened.backend, listen, stop), test)


def _verify(folder: RunFolder, refit: Refit, test: Test = None) -> Verification:
    """Verify one folder."""
    found = Verification()
    try:
        found.differences.extend(map(plain, _digests(folder)))
        found.recomputed.append(f"the SHA-256 of {len(folder.names())} files")
        found.differences.extend(map(plain, _content(folder, folder.problem(), found, refit, test)))
    except InputError:
        raise
    except CKCVError as error:
        found.differences.append(str(error))
    return found


def _of_splits(found: list[list[str]]) -> list[str]:
    """Sentences on several outer splits, each once, with the splits it is true of."""
    places: dict[str, list[int]] = {}
    for i, sentences in enumerate(found):
        for sentence in sentences:
            places.setdefault(sentence, []).append(i)
    return [
        f"outer split{'s' * (len(at) > 1)} {', '.join(map(str, at))}: {sentence}"
        for sentence, at in places.items()
    ]


def _digests(folder: RunFolder) -> Iterator[str]:
    if not folder.manifest_whole():
        yield f"{MANIFEST} is not as it was written"
    manifest, names = folder.manifest(), folder.names()
    for name in sorted(set(manifest) | set(names)):
        if name not in names:
            yield f"{name} is missing"
        elif name not in manifest:
            yield f"{name} is not in the manifest"
        elif folder.sha256(name) != manifest[name]:
            yield f"{name} is not the file the manifest names: its SHA-256 differs"
    if not report_whole(folder.files):
        yield f"{REPORT} is not as ckcv report wrote it: its last line does not name its SHA-256"


def _content(
    folder: RunFolder, problem: Problem, found: Verification, refit: Refit, test: Test
) -> Iterator[str]:
    """Differences in what the files say; what was computed again and what not is noted in ``found``."""
    finished, execution = folder.results(problem), folder.execution()
    aggregator = replay(str(folder), problem)
    if not aggregator.candidates().equals(finished.candidates):
        yield "candidates.parquet is not what the log gives"
    leader = aggregator.selection.winner()
    if leader is None:
        yield "the log has no complete candidate"
        return
    winner, certificate = problem.candidate(leader), finished.certificate
    if Candidate(certificate.setting, certificate.k) != winner:
        yield f"the log leads to {winner}, which is not the certificate's winner"
        return
    yield from _pickles(folder, finished.ensemble, problem)
    before, count = len(found.trusted), len(finished.ensemble.members)
    yield from _models(finished.ensemble, aggregator, leader, found)
    sound = count - (len(found.trusted) - before)
    found.recomputed += [
        "splits, sums, bounds, drops, the winner and the certificate, from the log",
        f"errors of {count} models, and that {sound} are those of their training rows, from the data",
    ]
    if finished.nested is not None:
        yield from _nested(folder, finished.nested, problem, found, refit)
    yield from _certificate(folder, finished, problem, winner, leader.l_ms)
    yield from _recount(folder, aggregator, finished, found, refit)
    yield from _tested(execution["test"], finished.ensemble, problem, found, test)
    if folder.files.exists(REPORT):
        found.trusted.append(f"{REPORT} (ckcv report makes it again)")
    found.trusted.append("what execution.json says of seconds, evaluations, failures, source and environment")


def _pickles(folder: RunFolder, ensemble: Ensemble, problem: Problem) -> Iterator[str]:
    """Pickles that are not those of the models in Parquet."""
    made = to_pickles(ensemble, problem.learner, problem.task)
    pickles = {f"{models.FOLDER}{name}": content for name, content in made.items()}
    there = models.pickles_in(folder.files)
    yield from (
        f"{file} is the pickle of no model in models.parquet" for file in there if file not in pickles
    )
    for file, content in pickles.items():
        if file in there and hashlib.sha256(content).hexdigest() != folder.sha256(file):
            yield f"{file} is not the pickle of the model in models.parquet"


def _models(ensemble: Ensemble, aggregator: Aggregator, leader: Leader, found: Verification) -> Iterator[str]:
    problem, ledger = aggregator.problem, aggregator.ledger
    setting = problem.learner.setting(leader.path, leader.step)
    for member in ensemble.members:
        at = leader.size, member.split, leader.path, leader.step
        name = f"model of split {member.split}"
        yield from _model(
            name, member, problem, leader.size, setting, not ledger.is_not_converged(*at), found
        )
        if member.errors != ledger.totals(True, *at):
            yield f"{name}: its errors are not those in the log"


def _model(
    name: str,
    member: Member,
    problem: Problem,
    size: int,
    setting: Setting,
    converged: bool,
    found: Verification,
) -> Iterator[str]:
    """What a model says of itself, against the split it belongs to; what cannot be said goes to ``found``."""
    learner, task = problem.learner, problem.task
    if (own := learner.setting_of(member.model)) != setting:
        yield f"{name}: fitted at {Candidate(own, member.k)}, the winner is {Candidate(setting, member.k)}"
    train, score = problem.rows(Stage.REFIT, size, member.split)
    checked = learner.check(member.model, task, train, converged)
    yield from (f"{name}: {what}" for what in checked.differences)
    found.trusted += [f"{name}: {what}" for what in checked.trusted]
    y, measure = task.y[score], problem.study.criterion.measure
    errors = judge(member.model, task.X[score], y, measure, task.n_classes)
    if errors != member.errors:
        yield f"{name}: makes {errors} errors on its estimate set, not those recorded"
    if member.n_estimate != class_sizes(y, task.n_classes):
        yield f"{name}: the sizes of the classes in its estimate set differ"


def _nested(
    folder: RunFolder, nested: Ensemble, problem: Problem, found: Verification, refit: Refit
) -> Iterator[str]:
    """Each inner run, verified as any run is; its data, its winner, and the model made of it."""
    try:
        inner_of = inner_problems(problem)
    except InputError as error:  # of the folder's own rows, which are not the user's
        yield str(error)
        return
    inside, winners = list[Verification](), list[Position]()
    for i, (member, inner) in enumerate(zip(nested.members, inner_of, strict=True)):
        place = folder.inner(i)
        inside.append(Verification())
        if place.require().run_id != inner.run_id:
            yield f"outer split {i}: its run is not the selection on the rows of that split"
            continue
        if not place.finished:
            yield f"outer split {i}: its run is not finished"
            continue
        inside[-1] = _verify(place, refit)
        if inside[-1].differences:
            continue
        table, _ = candidates.read(place.files, inner)
        winners.append(Position(*candidates.winning_position(table)))
        setting = problem.learner.setting(*winners[-1])
        name, converged = f"nested model of outer split {i}", False  # no log has its status
        yield from _model(name, member, problem.outer, 0, setting, converged, found)
    found.within(inside)
    if refit.share and len(winners) == len(nested.members):
        yield from _nested_again(folder, nested, problem, winners)
        found.recomputed.append(f"{len(winners)} nested models, fitted again")


def _nested_again(
    folder: RunFolder, nested: Ensemble, problem: Problem, winners: list[Position]
) -> Iterator[str]:
    made, exact = nested_ensemble(problem, winners), not environment_changes(str(folder))
    for i, (stored, again) in enumerate(zip(nested.members, made.members, strict=True)):
        if exact and not problem.learner.same(stored.model, again.model):
            yield f"nested model of outer split {i}: fitted again, it is another one"


def _recount(
    folder: RunFolder, aggregator: Aggregator, finished: Finished, found: Verification, refit: Refit
) -> Iterator[str]:
    """What is computed again does not agree with the log or with the models."""
    every = rests_on(aggregator, finished.candidates)
    total = sum(unit.evaluations for unit in every)
    failed = pc.sum(pc.equal(finished.candidates["state"], "failed")).as_py()
    if failed and refit.share < 1:
        found.trusted.append(f"that {failed:,} candidates failed (--refit tries them again)")
    if refit.backend is None:
        found.trusted.append(
            f"the counts of errors in the log: {total:,} evaluations (--refit computes them again)"
        )
        return
    exact = not environment_changes(str(folder))
    again = Recount(aggregator, finished.ensemble, drawn(every, refit.share), exact)
    backend = refit.backend()
    try:
        backend.start(share(aggregator.problem))
        work(backend, again, refit.listen, refit.stop)
    finally:
        backend.close()
    found.recomputed.append(f"{again.done:,} of {total:,} evaluations that the result rests on, fitted again")
    if again.failed:
        found.recomputed.append(f"{again.failed:,} evaluations, tried again, which failed")
    if (left := total - again.done - again.failed) > 0:
        found.trusted.append(f"the other {left:,} evaluations")
    if not exact:
        found.trusted.append("the last bits of the models: the run says it was made in another environment")
    yield from again.differences[:MOST_LISTED]
    if (more := len(again.differences) - MOST_LISTED) > 0:
        yield f"{more:,} other evaluations differ"


def _tested(
    told: dict[str, Any] | None,
    ensemble: Ensemble,
    problem: Problem,
    found: Verification,
    test: Test,
) -> Iterator[str]:
    """The error on test rows, which the run measured and no certificate covers."""
    take = fitting if isinstance(test, TestRows) else rows_to_test
    rows = take(test, problem.task)
    if told is None or rows is None:
        if told is not None:
            found.trusted.append("the test error in execution.json (--test with its rows measures it again)")
        elif rows is not None:
            raise InputError("the run was not measured on any rows: there is no test error to verify")
        return
    if rows.digest != told["digest"]:
        raise InputError("these are not the rows that the run was measured on: their digest differs")
    found.recomputed.append(f"the test error of F* on {len(rows.y):,} rows")
    made = measure(ensemble, rows, {})
    assert made is not None
    for name in ("rows", "error", "vote_error"):
        if not isclose(made[name], told[name], rel_tol=SUM_TOLERANCE):
            yield f"execution.json: test.{name} is {told[name]!r}, measured again it is {made[name]!r}"
    if told["reported"]:
        found.trusted.append("the test errors of the best candidates of reported k in execution.json")


def _certificate(
    folder: RunFolder, finished: Finished, problem: Problem, winner: Candidate, l_ms: float
) -> Iterator[str]:
    provisional = "failed" in finished.candidates["state"].to_pylist()
    digests = {"data": problem.all_rows.digest, **folder.result_digests()}
    ensembles = finished.ensemble, finished.nested
    expected = certify(problem, winner, l_ms, *ensembles, provisional, digests)
    theirs = finished.certificate.to_json()
    for name, value in expected.to_json().items():
        for where, was, again in islice(_apart(name, theirs[name], value), 1):
            shown, made = (cut(repr(found), MOST_SHOWN) for found in (was, again))
            yield f"certificate.json: {where} is {shown}, computed again it is {made}"


def _apart(name: str, a: Any, b: Any) -> Iterator[tuple[str, Any, Any]]:
    """Where two JSON values differ, by dotted name, with what is there in each; numbers to within rounding:
    other processors round otherwise.
    """
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        for key in a:
            yield from _apart(f"{name}.{key}", a[key], b[key])
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple) and len(a) == len(b):
        for i, pair in enumerate(zip(a, b, strict=True)):
            yield from _apart(f"{name}.{i}", *pair)
    elif a != b and not (
        isinstance(a, float) and isinstance(b, float) and isclose(a, b, rel_tol=SUM_TOLERANCE)
    ):
        yield name, a, b
