"""Check a finished run: from its files alone, or by computing again what it rests on.

From the files (nothing is unpickled): digests; sums, bounds, drops and winner from the log; splits drawn
again; each model's errors and KKT conditions, which pin it down to the tolerance, from the data; the
certificate. What that takes on trust, the counts of errors on the select sets above all, is named, and
computed again where that is asked for (``refit``).
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckcv_ray.claims.certificate import certify
from ckcv_ray.data.task import Table, fit_scaling, rows_to_test
from ckcv_ray.engine.aggregator import Aggregator, Listener
from ckcv_ray.engine.backend import Backend, choose_backend, session
from ckcv_ray.engine.evaluate import roles
from ckcv_ray.engine.nested import inner_folder, inner_tables, members
from ckcv_ray.errors import CKCVError, InputError, StoreError, cut, plain
from ckcv_ray.learners.ensemble import PICKLES, Ensemble, Member, mistakes, to_pickles
from ckcv_ray.learners.svm import Status
from ckcv_ray.learners.svm.problem import describe
from ckcv_ray.runs.load import environment_changes, replay
from ckcv_ray.runs.refit import Recount, drawn, rests_on, same_model
from ckcv_ray.runs.run import Stop, measure, work
from ckcv_ray.storage.candidates import triple_of
from ckcv_ray.storage.folder import MANIFEST, REPORT, Finished, RunFolder
from ckcv_ray.study import OUTER_K, Execution, Stage, Study, Triple, run_id
from ckcv_ray.validation import number

SUM_TOLERANCE = 1e-9
KKT_ROUNDING = {
    "newton": 1e-12,
    "libsvm": 1e-6,
}  # of a decision value, by its sum; LIBSVM: float32
MOST_ROUNDING = 0.1  # of a decision value, whose margin is 1
MOST_SHOWN = 240
MOST_LISTED = 100


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
        listen, stop: as for ``run_table``.
    """

    share: float = 0.0
    backend: Callable[[], Backend] | None = None
    listen: Listener | None = None
    stop: Stop = lambda: False


def verify(
    out: str | Path,
    refit: float = 0.0,
    test: pa.Table | None = None,
    execution: Execution | None = None,
    listen: Listener | None = None,
    stop: Stop = lambda: False,
) -> Verification:
    """Check a finished run.

    Args:
        out: its folder.
        refit: share of the evaluations that the result rests on to compute again, 0 to 1; below 1 they are
            drawn afresh at each call.
        test: the rows on which the run measured its ensemble, as columns, to measure it on again.
        execution: backend, workers, cluster address for what is computed again.
        listen, stop: as for ``run_table``.

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
    with session(execution) as (new_backend, _):
        return _verify(folder, Refit(share, new_backend, listen, stop), test)


def _verify(folder: RunFolder, refit: Refit, test: pa.Table | None = None) -> Verification:
    found = Verification()
    try:
        found.differences.extend(map(plain, _digests(folder)))
        found.recomputed.append(f"the SHA-256 of {len(folder.files())} files")
        found.differences.extend(map(plain, _content(folder, found, refit, test)))
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
    manifest, files = folder.manifest(), folder.files()
    for name in sorted(set(manifest) | set(files)):
        if name not in files:
            yield f"{name} is missing"
        elif name not in manifest:
            yield f"{name} is not in the manifest"
        elif folder.sha256(name) != manifest[name]:
            yield f"{name} is not the file the manifest names: its SHA-256 differs"
    if not folder.report_whole():
        yield f"{REPORT} is not as ckcv report wrote it: its last line does not name its SHA-256"


def _content(folder: RunFolder, found: Verification, refit: Refit, test: pa.Table | None) -> Iterator[str]:
    """Differences in what the files say; what was computed again and what not is noted in ``found``."""
    identity = folder.require()
    study, table = identity.study, folder.table(identity)
    finished = folder.results(identity, table)
    execution, aggregator = folder.execution(), replay(folder.path)
    if not aggregator.triples().equals(finished.triples):
        yield "triples.parquet is not what the log of cells gives"
    leader = aggregator.selection.winner()
    if leader is None:
        yield "the log of cells has no complete triple"
        return
    winner, certificate = triple_of(study, aggregator.sizes, leader), finished.certificate
    if (certificate.C, certificate.gamma, certificate.k) != winner:
        yield f"the log of cells leads to {winner}, which is not the certificate's winner"
        return
    yield from _pickles(folder, finished.ensemble, table)
    before, models = len(found.trusted), len(finished.ensemble.members)
    yield from _models(finished.ensemble, study, table, winner, aggregator, found)
    sound = models - (len(found.trusted) - before)
    found.recomputed += [
        "splits, sums, bounds, drops, the winner and the certificate, from the log of cells",
        f"errors of {models} models, and the KKT conditions of {sound}, from the data",
    ]
    if finished.nested is not None:
        yield from _nested(folder.path, finished.nested, study, table, found, refit)
    yield from _certificate(folder, finished, study, table, winner, leader.l_ms)
    yield from _recount(folder, aggregator, finished, found, refit)
    yield from _tested(execution["test"], finished.ensemble, table, found, test)
    if (folder.path / REPORT).exists():
        found.trusted.append(f"{REPORT} (ckcv report makes it again)")
    found.trusted.append("what execution.json says of seconds, cells, failures, source and environment")


def _pickles(folder: RunFolder, ensemble: Ensemble, table: Table) -> Iterator[str]:
    """Pickles that are not those of the models in Parquet."""
    there = folder.files()
    pickles = {f"ensemble/{name}": content for name, content in to_pickles(ensemble, table.X).items()}
    for file in there:
        if Path(file).parent == Path("ensemble") and Path(file).match(PICKLES) and file not in pickles:
            yield f"{file} is the pickle of no model in models.parquet"
    for file, content in pickles.items():
        if file in there and hashlib.sha256(content).hexdigest() != folder.sha256(file):
            yield f"{file} is not the pickle of the model in models.parquet"


def _models(
    ensemble: Ensemble,
    study: Study,
    table: Table,
    winner: Triple,
    aggregator: Aggregator,
    found: Verification,
) -> Iterator[str]:
    for member in ensemble.members:
        name = f"model of split {member.mc_index}"
        capped = aggregator.ledger.is_capped(winner, member.mc_index)
        yield from (f"{name}: {what}" for what in _machine(member, study, table, winner))
        yield from _optimality(name, member, study, table, capped, found)
        if member.errors != aggregator.ledger.errors_by_class(winner, member.mc_index):
            yield f"{name}: its errors are not those in the log"


def _machine(member: Member, study: Study, table: Table, winner: Triple) -> Iterator[str]:
    """What a machine says of itself, against the split it belongs to."""
    if (member.C, member.gamma, member.k) != winner:
        yield f"fitted at {Triple(member.C, member.gamma, member.k)}, the winner is {winner}"
    split = study.split(table.n, winner.k, member.mc_index)
    train, score = roles(Stage.REFIT, split)
    if not np.isin(member.support, train).all():
        yield "a support vector is not among its training rows"
    scaling = fit_scaling(table.X[train], study.scaling)
    if not all(np.allclose(a, b, SUM_TOLERANCE, 0) for a, b in zip(scaling, member.scaling, strict=True)):
        yield "its scaling is not that of its training rows"
    if np.any(member.dual_coef * table.y[member.support] <= 0):
        yield "a dual variable does not have the sign of its label"
    size = np.abs(member.dual_coef)
    if (
        np.any(size > member.C * (1 + SUM_TOLERANCE))
        or abs(member.dual_coef.sum()) > SUM_TOLERANCE * size.sum()
    ):
        yield "its dual variables are outside the box or do not sum to zero"
    y = table.y[score]
    errors = mistakes(member.decision(table.X[score]), y)
    if errors != member.errors:
        yield f"makes {errors} errors on its estimate set, not those recorded"
    if member.n_estimate != (int(np.sum(y < 0)), int(np.sum(y > 0))):
        yield "the sizes of the classes in its estimate set differ"


def _optimality(
    name: str, member: Member, study: Study, table: Table, capped: bool, found: Verification
) -> Iterator[str]:
    """Where a model is not the machine of its training rows: the KKT conditions pin it down.

    Where they do not, since a fit was stopped before it met them or its cost is so large that rounding
    decides them, that is noted in ``found`` as taken on trust.
    """
    train, _ = roles(Stage.REFIT, study.split(table.n, member.k, member.mc_index))
    y = table.y[train].astype(np.float64)
    if not np.isin(member.support, train).all():
        return
    if (y == y[0]).all():
        if len(member.support) or member.offset != y[0]:
            yield f"{name}: its training rows are of one class, and it is not that class everywhere"
        return
    b = np.zeros(len(train))
    b[np.searchsorted(train, member.support)] = member.dual_coef
    Kb = member.decision(table.X[train]) - member.offset
    optimum = describe(Kb, y, b, member.C, 0, Status.CONVERGED)
    rounding = KKT_ROUNDING[study.solver] * (1 + float(np.abs(b).sum()))
    violated = optimum.violation > study.tolerance + rounding
    if rounding > MOST_ROUNDING:
        found.trusted.append(f"{name}: at C = {member.C:g} rounding decides its KKT conditions")
    elif violated and capped:
        found.trusted.append(f"{name}: that it was stopped at the iteration cap, since it is not optimal")
    if abs(optimum.offset - member.offset) > rounding:
        yield f"{name}: its offset is {member.offset!r}; by the KKT conditions it is {optimum.offset!r}"
    if violated and not capped:
        yield (
            f"{name}: it violates the KKT conditions of its training rows by {optimum.violation:.3g}, at "
            f"most {study.tolerance:g} is allowed: it is not the machine fitted to them"
        )


def _nested(
    out: Path, nested: Ensemble, study: Study, table: Table, found: Verification, refit: Refit
) -> Iterator[str]:
    """Each inner run, verified as any run is; its data, its winner, and the machine made of it."""
    try:
        tables, outer = inner_tables(study, table), study.outer()
    except InputError as error:  # of the folder's own rows, which are not the user's
        yield str(error)
        return
    inside, winners = list[Verification](), list[Triple]()
    for i, (member, inner) in enumerate(zip(nested.members, tables, strict=True)):
        folder = RunFolder(inner_folder(out, i))
        inside.append(Verification())
        identity = folder.require()
        if identity.run_id != run_id(study.inner().for_rows(inner.n), inner.digest):
            yield f"outer split {i}: its run is not the selection on the rows of that split"
            continue
        if not folder.finished:
            yield f"outer split {i}: its run is not finished"
            continue
        inside[-1] = _verify(folder, refit)
        if inside[-1].differences:
            continue
        certificate = folder.results(identity, inner).certificate
        winners.append(Triple(certificate.C, certificate.gamma, OUTER_K))
        name = f"nested model of outer split {i}"
        yield from (f"{name}: {what}" for what in _machine(member, outer, table, winners[-1]))
        capped = True  # it may have been: no log has its status
        yield from _optimality(name, member, outer, table, capped, found)
    found.within(inside)
    if refit.share and len(winners) == len(nested.members):
        made, exact = members(study, table, winners), not environment_changes(out)
        for i, pair in enumerate(zip(nested.members, made.members, strict=True)):
            if exact and not same_model(*pair):
                yield f"nested model of outer split {i}: fitted again, it is another one"
        found.recomputed.append(f"{len(winners)} nested models, fitted again")


def _recount(
    folder: RunFolder, aggregator: Aggregator, finished: Finished, found: Verification, refit: Refit
) -> Iterator[str]:
    """What is computed again does not agree with the log or with the models."""
    every = rests_on(aggregator, finished.triples)
    total = sum(unit.evaluations for unit in every)
    failed = pc.sum(pc.equal(finished.triples["state"], "failed")).as_py()
    if failed and refit.share < 1:
        found.trusted.append(f"that {failed:,} candidates failed (--refit tries them again)")
    if refit.backend is None:
        found.trusted.append(
            f"the counts of errors in the log of cells: {total:,} evaluations (--refit computes them again)"
        )
        return
    exact = not environment_changes(folder.path)
    again = Recount(aggregator, finished.ensemble, drawn(every, refit.share), exact)
    backend = refit.backend()
    try:
        backend.start(aggregator.study, aggregator.table, None)
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
    table: Table,
    found: Verification,
    test: pa.Table | None,
) -> Iterator[str]:
    """The error on test rows, which the run measured and no certificate covers."""
    rows = rows_to_test(test, table)
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
        found.trusted.append("the test errors of the best triples of reported k in execution.json")


def _certificate(
    folder: RunFolder, finished: Finished, study: Study, table: Table, winner: Triple, l_ms: float
) -> Iterator[str]:
    provisional = "failed" in finished.triples["state"].to_pylist()
    digests = {"data": table.digest}
    digests |= folder.result_digests()
    name = run_id(study, table.digest)
    ensembles = finished.ensemble, finished.nested
    expected = certify(study, table, name, winner, l_ms, *ensembles, provisional, digests)
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
