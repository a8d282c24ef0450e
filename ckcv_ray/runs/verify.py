"""Verification of a finished run: from its files alone, or by computing again what it rests on.

From the files (nothing is unpickled): digests; sums, bounds, drops and winner from the log; splits drawn
again; each model's errors, and what its learner can check in it, from the data, and by a fit what it cannot;
the certificate. What this takes on trust, above all the error counts on the select sets, is listed, and
computed again on request (``recheck``). What a folder says of the environment, of failures or of convergence
is used for words alone: no line of it lowers a check. Judged rows are compared cell by cell with what the
models make of the table.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from math import isclose
from operator import attrgetter
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckcv_ray.claims.certificate import Finished
from ckcv_ray.claims.certify import certify
from ckcv_ray.claims.judged import HeldOutPredictions, tabulate_judged
from ckcv_ray.core.selection import Leader
from ckcv_ray.engine.backend import session
from ckcv_ray.engine.loop import Stop
from ckcv_ray.engine.queue import Listener
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.errors import InputError, StoreError, cut, cut_list, plain, pluralize
from ckcv_ray.learners.ensemble import Ensemble, to_pickles
from ckcv_ray.learners.sklearn.spec import list_foreign
from ckcv_ray.records.candidates import summarize_search
from ckcv_ray.records.judged import JUDGED_ROWS
from ckcv_ray.runs.finish import measure
from ckcv_ray.runs.load import read_results, replay
from ckcv_ray.runs.recheck import SECONDS, Refit, list_required, recheck
from ckcv_ray.runs.verification import LONGEST_REASON, Limit, Verification, note_errors
from ckcv_ray.runs.verify_models import BEST, ModelChecks
from ckcv_ray.runs.verify_scores import check_scores
from ckcv_ray.storage import models
from ckcv_ray.storage.execution import find_changes, read_environment
from ckcv_ray.storage.folder import CERTIFICATE, MANIFEST, RunFolder
from ckcv_ray.storage.pages import REPORT, report_intact
from ckcv_ray.storage.stream import STREAM, read_stream
from ckcv_ray.study.problem import Candidate, Problem
from ckcv_ray.study.study import Execution
from ckcv_ray.tables.named import read
from ckcv_ray.tables.task import Task, TestRows, check_test_rows, make_test_rows
from ckcv_ray.validation import number

ROUNDED = ("predicted", "score", "loss")  # of numbers and scores: processors round differently
VALUE_ROUNDING = 1e-9  # relative to the largest


def check_judged_rows(
    finished: Finished, predictions: HeldOutPredictions, result: Verification
) -> Iterator[str]:
    """Yield where judged rows are not what the models make of the table; note that they were judged again.

    A file is missing only where the run has none to write, whatever digests the certificate lists.
    """
    stored = finished.judged
    try:
        computed = tabulate_judged(predictions)
    except Exception as error:  # of a stranger's model, of any kind
        yield cut(f"{JUDGED_ROWS}: it cannot be made again: {type(error).__name__}: {error}", LONGEST_REASON)
        return
    if stored is None or computed is None or len(stored) != len(computed):
        has, made = (0 if table is None else len(table) for table in (stored, computed))
        if has or made:
            yield f"{JUDGED_ROWS} has {has:,} judged rows, computed again there are {made:,}"
        return
    differences = []
    for name in computed.column_names:
        was, again = (table[name].to_numpy() for table in (stored, computed))
        equal = was == again
        if name in ROUNDED:
            scale = VALUE_ROUNDING * max(1.0, float(np.max(np.abs(again[~np.isnan(again)]), initial=0.0)))
            equal = np.isclose(was, again, VALUE_ROUNDING, scale, equal_nan=True)
        differences += [
            f"{JUDGED_ROWS}: {name} of judged row {at} is {was[at]}, computed again it is {again[at]}"
            for at in np.flatnonzero(~equal).tolist()
        ]
    yield from cut_list(differences, f"other values of {JUDGED_ROWS} differ")
    result.recomputed.append(f"{pluralize(len(computed), 'judged row')}, from the models")


SUM_TOLERANCE = 1e-9
MAX_SHOWN = 240

Test: TypeAlias = pa.Table | TestRows | None


def verify(
    out: str | PathLike[str],
    refit: float = 0.0,
    test: Test = None,
    execution: Execution | None = None,
    listen: Listener | None = None,
    stop: Stop = lambda: False,
    limit: float = SECONDS,
    say: Callable[[str], object] | None = None,
    table: str | PathLike[str] | None = None,
) -> Verification:
    """Check a finished run.

    Args:
        out: its folder.
        refit: share, 0 to 1, of the evaluations that the result rests on to compute again; below 1 a
            different random sample at each call.
        test: the rows on which the run measured its ensemble, as columns or as ``read_task`` returns them, to
            measure it again.
        execution: backend, workers, cluster address for what is computed again.
        listen, stop: as for ``run_job``.
        limit: seconds that it may take, looked at between fits; what is left is then not verified.
        say: called with a sentence about the cost before anything is fitted.
        table: the file or named set that the run read, to make the salt again, with which all draws are made;
            it is read as the run read it.

    Raises:
        StoreError: there is no finished run in the folder.
        InputError: refit is outside 0..1, the test rows do not match the run, or the table cannot be read.
        KeyboardInterrupt: the verification was stopped.
    """
    share = number("refit", refit)
    if not 0 <= share <= 1:
        raise InputError(f"refit={share:g} is outside 0..1: it is the share to compute again, 1 means all")
    allowed = Limit(number("limit", limit), say)
    folder = RunFolder(out)
    if not folder.finished:
        folder.identity()
        raise StoreError(
            f"{str(out)!r} holds no finished run: there is nothing to verify yet{folder.suggest_folder()}"
        )
    if not share:
        return _verify(folder, Refit(limit=allowed), test, table)
    seconds = 0.0
    with suppress(StoreError):
        seconds = share * folder.execution()["worker_seconds"]
    with session(execution or Execution(), seconds) as opened:
        return _verify(folder, Refit(share, opened.backend, listen, stop, allowed), test, table)


def _verify(folder: RunFolder, refit: Refit, test: Test, table: str | PathLike[str] | None) -> Verification:
    result = Verification()
    given = test is not None or table is not None
    with note_errors(result, *([InputError] if given else [])):  # which is about what was given
        result.differences.extend(map(plain, _check_digests(folder)))
        result.recomputed.append(f"the SHA-256 of {pluralize(len(folder.names()), 'file')}")
        _note_stream(folder, result)
        problem = folder.problem()
        result.differences.extend(_check_salt(problem.all_rows, table, result))
        result.trusted.extend(
            f"{name}, whose code fits and reads models (--trust)"
            for name in list_foreign(problem.study.learner)
        )
        if not problem.scores:
            found = _check_run(folder, problem, result, refit, test)
        elif test is None:
            found = check_scores(folder, problem, result, refit)
        else:
            raise InputError("test is for ckcv run: the scores of a procedure have no other rows")
        result.differences.extend(map(plain, found))
    return result


def _check_salt(task: Task, table: str | PathLike[str] | None, result: Verification) -> Iterator[str]:
    if table is None:
        result.trusted.append("the salt, a digest of the table that the run read (--table makes it again)")
        return
    named = plain(repr(str(table)))
    reading = task.provenance.reading.adapt(str(table))
    if task.make_salt(read(str(table), reading, result.notes.append).learn) == task.salt:
        result.recomputed.append(f"the salt, from {named}")
        return
    yield (
        f"data.parquet: the salt is not that of {named}, so that its draws are not those of this table: "
        "a cell or a name differs, or rows are more or fewer"
    )


def _note_stream(folder: RunFolder, result: Verification) -> None:
    """Note whether the stream of live rows is intact, and this run's; no figure of the run rests on it."""
    try:
        stream = read_stream(folder.files, STREAM)
        folder.check_stream(stream)
        listed = folder.listed_stream()
    except StoreError as error:
        result.differences.append(plain(str(error)))
        return
    if stream is None:
        return
    if listed is None:
        result.differences.append(f"{STREAM} is not in the manifest: the next ckcv watch lists it")
    if stream.header.run_id != folder.require().run_id:
        result.differences.append(f"{STREAM} is the stream of run {plain(stream.header.run_id)}")
    if stream.header.certificate != folder.sha256(CERTIFICATE):
        result.notes.append(f"{STREAM} watches another certificate than this one")
    result.recomputed.append(
        f"the chain of digests of {STREAM}: {pluralize(len(stream.rows), 'row')}, head {stream.head[:12]}"
    )
    result.trusted.append(f"that {STREAM} has all rows that arrived, with their true labels")


def _check_digests(folder: RunFolder) -> Iterator[str]:
    if not folder.manifest_intact():
        yield f"{MANIFEST} is not as the run wrote it"
    manifest, names = folder.manifest(), folder.names()
    for name in sorted(set(manifest) | set(names)):
        if name not in names:
            yield f"{name} is missing"
        elif name not in manifest:
            yield f"{name} is not in the manifest"
        elif folder.sha256(name) != manifest[name]:
            yield f"{name} does not match the manifest: its SHA-256 differs"
    if not report_intact(folder.files):
        yield f"{REPORT} is not as ckcv report wrote it: its last line does not give its SHA-256"


def _check_run(
    folder: RunFolder, problem: Problem, result: Verification, refit: Refit, test: Test
) -> Iterator[str]:
    """Yield the differences in what the files say; record in ``result`` what was and was not recomputed."""
    finished, execution = read_results(folder, problem), folder.execution()
    queue: RaceQueue = replay(str(folder), problem)
    if not queue.candidates().equals(finished.candidates):
        yield "candidates.parquet is not what the log gives"
    leader = queue.selection.winner()
    if leader is None:
        yield "the log has no complete candidate"
        return
    winner, certificate = problem.candidate(leader), finished.certificate
    if Candidate(certificate.winner.setting, certificate.winner.k) != winner:
        yield f"the log gives the winner {winner}, which is not the certificate's winner"
        return
    best = finished.models.best
    yield from _check_pickles(folder, best, problem)
    splits, references = max(size.n_splits for size in problem.sizes), len(problem.references)
    fits = splits + references + 2 * (problem.held is not None) + round(refit.share * execution["fits"])
    refit.limit.announce(fits, problem.task, execution)
    elsewhere = bool(find_changes(execution["environment"], read_environment(problem.learner)))
    checks = ModelChecks(problem, finished.models, refit.limit, elsewhere)
    left = checks.check_ensemble(queue, leader)
    if refit.share < 1:  # else they are computed again with the rest
        checks.fit_ensemble(leader, left)
    checks.check_one_model(leader)
    if problem.references:
        checks.check_references(leader, queue.candidates())
    yield from (found := list(checks.differences))
    predictions = HeldOutPredictions(problem, finished.models)  # one for both: it asks each rule once
    yield from _check_certificate(folder, finished, predictions, winner, leader.l_ms)
    yield from check_judged_rows(finished, predictions, result)
    yield from _check_evaluations(queue, leader, checks, result, refit)
    result.recomputed += _list_recomputed(checks, len(best.members))
    for sentence in checks.compare_bounds(winner, leader.l_ms, certificate):
        checks.note(sentence)
    yield from checks.differences[len(found) :]
    result.unverified += checks.unverified
    if checks.last_bits:
        result.notes.append(f"the last bits of {pluralize(checks.last_bits, 'model')} differ")
    yield from _check_test_error(execution["test"], best, problem, result, test)
    if folder.files.exists(REPORT):
        result.trusted.append(f"{REPORT} (ckcv report writes it again)")
        result.notes.append(f"{REPORT} was not compared")
    result.trusted.append(
        "seconds, evaluations, failures, source, environment and earlier runs in execution.json"
    )


def _check_pickles(folder: RunFolder, ensemble: Ensemble, problem: Problem) -> Iterator[str]:
    contents = to_pickles(ensemble, problem.learner, problem.task)
    pickles = {f"{models.ENSEMBLE}{name}": content for name, content in contents.items()}
    stored = models.pickles_in(folder.files)
    yield from (
        f"{file} is not the pickle of any model in models.parquet" for file in stored if file not in pickles
    )
    for file, content in pickles.items():
        if file in stored and hashlib.sha256(content).hexdigest() != folder.sha256(file):
            yield f"{file} is not the pickle of the model in models.parquet"


def _list_recomputed(checks: ModelChecks, count: int) -> Iterator[str]:
    yield "splits, sums, bounds, drops, the winner and the certificate, from the log"
    ones = ("refit", "full", "references")
    names = [name for name in ones if getattr(checks.models, name) is not None]
    also = f", and of {' and '.join(names)}" if names else ""
    bits = f"{checks.last_bits:,} not equal in every bit" if checks.last_bits else "equal in every bit"
    how = f" ({len(checks.compared):,} fitted again, {bits})" if checks.compared else ""
    yield f"errors of {count} models{also}, and that each is that of its training rows, from the data{how}"


def _check_evaluations(
    queue: RaceQueue, leader: Leader, checks: ModelChecks, result: Verification, refit: Refit
) -> Iterator[str]:
    """Yield what, computed again, does not agree with the log; compare the models of F* that are fitted."""
    table = queue.candidates()
    units = list_required(queue, table)
    total = sum(unit.evaluations for unit in units)
    failed = pc.sum(pc.equal(table["state"], "failed")).as_py()
    if failed and refit.share < 1:
        result.trusted.append(f"that {failed:,} candidates failed (--refit tries them again)")
        result.assumed.append(f"that {failed:,} candidates failed")
    if refit.backend is None:
        result.unchecked += total
        result.trusted.append(
            f"the error counts in the log: {total:,} evaluations (--refit computes them again)"
        )
        return
    again = recheck(queue.problem, queue.ledger, units, refit, result)
    result.recomputed.append(
        f"{again.done:,} of {total:,} evaluations that the result rests on, fitted again"
    )
    if again.failed:
        result.recomputed.append(f"{again.failed:,} evaluations, tried again, which failed")
    if (remaining := total - again.done - again.failed) > 0:
        result.unchecked += remaining
        result.trusted.append(f"the other {remaining:,} evaluations")
    winner, codec = queue.problem.candidate(leader), queue.problem.learner.codec
    for member in sorted(again.members, key=attrgetter("split")):
        if (codec.setting(member.model), member.k) == winner:
            checks.compare(BEST, member)
    yield from cut_list(again.differences, "other evaluations differ")


def _check_test_error(
    recorded: dict[str, Any] | None, ensemble: Ensemble, problem: Problem, result: Verification, test: Test
) -> Iterator[str]:
    """Yield differences in the error on test rows, which the run measured and no certificate covers."""
    take = check_test_rows if isinstance(test, TestRows) else make_test_rows
    rows = problem.recode(take(test, problem.all_rows))
    if recorded is None or rows is None:
        if recorded is not None:
            result.trusted.append("the test error in execution.json (--test with its rows measures it again)")
            result.assumed.append("the test error (--test)")
        elif rows is not None:
            raise InputError("the run was not measured on any test rows: there is no test error to verify")
        return
    if rows.digest != recorded["digest"]:
        raise InputError("these are not the rows that the run was measured on: their digest differs")
    result.recomputed.append(f"the test error of F* on {len(rows.y):,} rows")
    measured = measure(ensemble, rows, {})
    assert measured is not None
    for name in ("rows", "error", "vote_error"):
        was, again = recorded[name], measured[name]
        if not isclose(again, was, rel_tol=SUM_TOLERANCE):
            yield f"execution.json: test.{name} is {was!r}, measured again it is {again!r}"
    if recorded["reported"]:
        result.trusted.append("the test errors of the best candidates of reported k in execution.json")
        result.assumed.append("the test errors of the best candidates of reported k")


def _check_certificate(
    folder: RunFolder, finished: Finished, predictions: HeldOutPredictions, winner: Candidate, l_ms: float
) -> Iterator[str]:
    problem, provisional = predictions.problem, "failed" in finished.candidates["state"].to_pylist()
    digests = {"data": problem.data_digest, **folder.result_digests()}
    try:
        search = summarize_search(finished.candidates, problem)
        expected = certify(predictions, winner, l_ms, provisional, digests, search)
    except Exception as error:  # of a stranger's model, of any kind
        yield cut(
            f"certificate.json: it cannot be made again, a model raises {type(error).__name__}: {error}"
        )
        return
    computed, stored = expected.to_json(), finished.certificate.to_json()
    for name in dict.fromkeys((*computed, *stored)):
        for where, old, new in islice(_json_differences(name, stored.get(name), computed.get(name)), 1):
            was, again = (cut(repr(value), MAX_SHOWN) for value in (old, new))
            yield f"certificate.json: {where} is {was}, computed again it is {again}"


def _json_differences(name: str, a: Any, b: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield where two JSON values differ, as a dotted name, with the two values there.

    Numbers are compared to within rounding, since other processors round differently.
    """
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        for key in a:
            yield from _json_differences(f"{name}.{key}", a[key], b[key])
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple) and len(a) == len(b):
        for i, pair in enumerate(zip(a, b, strict=True)):
            yield from _json_differences(f"{name}.{i}", *pair)
    elif a != b and not (
        isinstance(a, float) and isinstance(b, float) and isclose(a, b, rel_tol=SUM_TOLERANCE)
    ):
        yield name, a, b
