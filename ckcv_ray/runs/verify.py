"""Verification of a finished run: what it derived is recomputed by the functions that wrote it, and compared.

All other files follow from the problem, the log and the models: candidates, judged rows and certificate, or
scores, predictions and summary. The models themselves are fitted again, those that the claims are about
first. Values are the same if they are equal up to rounding. Another model is a difference where versions and
processor are those of the run; elsewhere these may be the reason, and the run is not verified here. The log,
that is the search, is taken on trust, unless the study is run again into a temporary folder (``rerun``).

Nothing is unpickled. What a folder says about environment, failures or convergence relaxes no check.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from ckcv_ray import errors
from ckcv_ray.claims.certify import certify
from ckcv_ray.claims.quantity import HeldOutPredictions
from ckcv_ray.core.schedule import Unit, refits
from ckcv_ray.core.selection import Leader
from ckcv_ray.engine.evaluate import evaluate_apart, fit_on_all_rows, fit_references, one_model, share
from ckcv_ray.engine.loop import Stop
from ckcv_ray.engine.queue import Listener
from ckcv_ray.errors import InputError, RunError, StoreError, cut, cut_list, duration, plain, pluralize
from ckcv_ray.learners.ensemble import Ensemble, Member, Models
from ckcv_ray.learners.sklearn.spec import list_foreign
from ckcv_ray.records.judged import HELD_OUT, HeldOut
from ckcv_ray.records.record import KEY
from ckcv_ray.runs.finished import make_scores, measure, predict_held_out, replay, tabulate_judged
from ckcv_ray.runs.result import Scored, add_row_values, find_kept
from ckcv_ray.runs.run import Work, run_work
from ckcv_ray.storage import folder as folders
from ckcv_ray.storage.execution import find_changes, read_environment
from ckcv_ray.storage.files import MAX_FILE_BYTES, STUDY, read_json, read_table, to_json
from ckcv_ray.storage.folder import CERTIFICATE, DATA, ENSEMBLE, EXECUTION, MANIFEST, RunFolder
from ckcv_ray.storage.log import LOG, name_part
from ckcv_ray.storage.pages import REPORT, report_intact
from ckcv_ray.storage.pieces import STREAM, read_stream
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Execution
from ckcv_ray.tables.named import read
from ckcv_ray.tables.task import TestRows, make_test_rows

SECONDS = 3600.0  # that a verification may take: somebody else's folder may ask for any fits
BEST, REFIT, FULL, REFERENCES = Models.__annotations__  # the names of the ensembles
Named: TypeAlias = tuple[str, Ensemble | None]
# a phrase that names models, their ensembles' names, and what fits these ensembles; of F*, some members
_Refit: TypeAlias = tuple[str, tuple[str, ...], Callable[[], tuple[Ensemble | None, ...]]]
MORE = "other values differ"
MAX_SHOWN = 240  # characters of a value, or of a reason
NOT_DERIVED = (STUDY, DATA, EXECUTION, LOG, ENSEMBLE)  # nor are models, which are compared separately

Test: TypeAlias = pa.Table | TestRows | None


@dataclass
class Verification:
    """What a verification found.

    Attributes:
        differences: everything that is not as it should be, a sentence each; empty if the run is verified.
        recomputed: what was computed again, from the data or from the log.
        trusted: what was taken on trust, or not looked at.
        unverified: what a claim rests on that could not be computed here, or comes out differently here under
            other versions, a sentence each. A run with any is not verified, whatever else agrees.
        assumed: what figures rest on that was taken on trust, a phrase each.
    """

    differences: list[str] = field(default_factory=list)
    recomputed: list[str] = field(default_factory=list)
    trusted: list[str] = field(default_factory=list)
    unverified: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing differs, and nothing that a claim rests on was left out."""
        return not self.differences and not self.unverified

    @property
    def verdict(self) -> str:
        """What the verification says of the figures, as a clause, if nothing differs."""
        if not self.assumed:
            return "every figure follows from the data"
        return f"nothing contradicts the files; taken on trust: {', '.join(self.assumed)}"

    def note_other(self, sentences: Iterable[str], elsewhere: bool) -> None:
        """Note what comes out differently from the run; ``elsewhere``: other versions may be why."""
        if elsewhere:
            why = "not verified here, where versions or processor are not those of the run"
            self.unverified.extend(f"{sentence}; {why}" for sentence in sentences)
        else:
            self.differences.extend(sentences)

    @contextmanager
    def note_errors(self, *passed: type[errors.CKCVError]) -> Iterator[None]:
        """Note errors as differences, or as what could not be verified; those of ``passed`` are raised."""
        try:
            yield
        except passed:
            raise
        except errors.LackingError as error:
            self.unverified.append(str(error))
        except errors.CKCVError as error:
            self.differences.append(str(error))
        except Exception as error:  # models and learners of strangers may raise anything
            self.unverified.append(cut(f"the verification ended with {type(error).__name__}: {error}"))


def verify(
    out: str | PathLike[str],
    rerun: bool = False,
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
        rerun: also run its study again, into a temporary folder, and compare the files.
        test: the rows on which the run measured its ensemble, as columns or as ``read_task`` returns them, to
            measure it again.
        execution: backend, workers, cluster address for the rerun.
        listen, stop: for the rerun, as for ``run_job``.
        limit: seconds that it may take, checked between fits; what is left is not looked at.
        say: called with a sentence about the cost before anything is fitted.
        table: the file or named set that the run read, to make the salt of all draws again;
            it is read as the run read it.

    Raises:
        StoreError: there is no finished run in the folder.
        InputError: the test rows do not match the run, or the table cannot be read.
        KeyboardInterrupt: the verification was stopped.
    """
    seconds, began, folder = errors.number("limit", limit), monotonic(), RunFolder(out)
    if not folder.finished:
        folder.identity()
        raise StoreError(f"{str(out)!r} holds no finished run to verify{folder.suggest_folder()}")
    result = Verification()
    passed = () if test is None and table is None else (InputError,)  # it is then about what was given
    with result.note_errors(*passed):
        problem = _check_files(folder, table, result)
        foreign = list_foreign(problem.asked.learner.by_label.values())
        result.trusted.extend(f"{name}, whose code fits and reads models (--trust)" for name in foreign)
        remake = _Remake(folder, problem, result, seconds, began, say)
        if rerun and not (problem.scores and problem.procedure.functions):
            remake.announce("to run again", remake.execution["fits"])
        (remake.compare_scores if problem.scores else remake.compare_run)(test)
        if rerun:
            remake.compare_rerun(Work(problem, listen=listen, stop=stop), execution)
        else:
            remake.trust_log()
        if folder.files.exists(REPORT):
            result.trusted.append(f"{REPORT} (ckcv report writes it again)")
        rest = "seconds, evaluations, failures, source, environment and earlier runs in execution.json"
        result.trusted.append(rest)
    return result


def _check_files(folder: RunFolder, table: str | PathLike[str] | None, result: Verification) -> Problem:
    """Note what is not as the run wrote it, the stream of live rows, on which no figure rests, and the salt.

    Return the study on the rows in the folder.
    """
    differences = result.differences
    if not folder.manifest_intact():
        differences.append(f"{MANIFEST} is not as the run wrote it")
    manifest, digests = folder.manifest(), folder.hash_files(folder.names())
    for name in sorted(set(manifest) | set(digests)):
        if name not in digests:
            differences.append(plain(f"{name} is missing"))
        elif name not in manifest and name != name_part(digests[name]):
            differences.append(plain(f"{name} is not in the manifest"))
        elif manifest.get(name, digests[name]) != digests[name]:
            differences.append(plain(f"{name} does not match the manifest: its SHA-256 differs"))
    if not report_intact(folder.files):
        says = f"{REPORT} is not as ckcv report wrote it: its last line does not give its SHA-256"
        differences.append(says)
    result.recomputed.append(f"the SHA-256 of {pluralize(len(folder.names()), 'file')}")
    with result.note_errors():
        if (stream := read_stream(folder.files, STREAM)) is not None:
            if stream.header.run_id != folder.require().run_id:
                differences.append(f"{STREAM} is the stream of run {plain(stream.header.run_id)}")
            if stream.header.certificate != folder.sha256(CERTIFICATE):
                result.trusted.append(f"{STREAM}, which watches another certificate than this one")
            rows = pluralize(len(stream.rows), "row")
            result.recomputed.append(f"the chain of digests of {STREAM}: {rows}, head {stream.head[:12]}")
            result.trusted.append(f"that {STREAM} has all rows that arrived, with their true labels")
    problem = folder.problem()
    if table is None:
        result.trusted.append("the salt, a digest of the table that the run read (--table recomputes it)")
        return problem
    task, named = problem.all_rows, plain(repr(str(table)))
    reading = task.provenance.reading.adapt(str(table))
    if task.make_salt(read(str(table), reading, result.trusted.append).learn) == task.salt:
        result.recomputed.append(f"the salt, from {named}")
    else:
        says = f"data.parquet: the salt is not that of {named}, so that its draws are not those of this table"
        differences.append(f"{says}: a cell or a name differs, or rows are more or fewer")
    return problem


@dataclass(frozen=True)
class _Remake:
    """What a finished folder holds, recomputed; differences are noted in ``result``."""

    folder: RunFolder
    problem: Problem
    result: Verification
    seconds: float  # that it may take, checked between fits
    began: float  # on the clock of ``monotonic``
    say: Callable[[str], object] | None  # as for ``verify``

    @cached_property
    def execution(self) -> dict[str, Any]:
        return self.folder.execution()

    @cached_property
    def queue(self) -> Any:
        return replay(str(self.folder), self.problem)

    @cached_property
    def elsewhere(self) -> bool:
        return bool(find_changes(self.execution["environment"], read_environment(self.problem.learner)))

    @property
    def over(self) -> bool:
        return monotonic() - self.began > self.seconds

    def announce(self, purpose: str, fits: int) -> None:
        """Say how many fits are repeated at most, and how long that many took in the run."""
        expected = fits * self.execution["worker_seconds"] / max(1, self.execution["fits"])
        rows, columns = self.problem.every_row.X.shape
        if self.say is not None:
            self.say(
                f"{purpose}: {pluralize(fits, 'fit')} on up to {rows:,} rows and "
                f"{pluralize(columns, 'column')}, about {duration(max(1.0, expected))} by what the run took; "
                f"limit {self.seconds:,g} s (--limit)"
            )

    def compare_run(self, test: Test) -> None:
        problem, result, (_, winner) = self.problem, self.result, self.folder.candidates(self.problem)
        fitted = folders.read_models(self.folder.files, problem, winner.k)
        leader, table = self.queue.selection.winner, self.queue.candidates()
        if leader is None or problem.candidate(leader) != winner:
            result.differences.append("the log gives another winner than the certificate's")
            return
        predictions = HeldOutPredictions(problem, fitted)
        try:
            files = folders.make_results(problem, table, fitted, tabulate_judged(predictions))
            there = self.folder.hash_files(name for name in files if not name.endswith(".pkl"))
            made = certify(predictions, table, there)
            files[CERTIFICATE] = to_json(made.to_json())
        except Exception as error:  # a stranger's model may raise anything
            says = f"judged rows and certificate cannot be recomputed: {type(error).__name__}: {error}"
            result.differences.append(cut(says, MAX_SHOWN))
        else:
            self.compare_files(files)
            result.recomputed.append("candidates, judged rows and certificate, from the log and the models")
        fits = list(_list_fits(problem, leader, table))
        rules = [predictions.find_rule(claim).name for claim in problem.certification.claim] or [BEST]
        claimed = {REFERENCES, *(REFIT if name == REFIT else BEST for name in rules)}
        if changed := self.compare_models(vars(fitted).items(), fits, claimed):
            others = {
                kind: Ensemble(tuple(changed.get((kind, one.split), one) for one in ensemble.members))
                for kind, ensemble in vars(fitted).items()
                if ensemble is not None
            }
            predictions = HeldOutPredictions(problem, replace(fitted, **others))
            again = to_json(certify(predictions, table, {}).to_json())
            found = _compare_file(self.folder, CERTIFICATE, again, left_out="digests")
            result.note_other((f"by the models fitted again, {one}" for one in found), self.elsewhere)
        totals = self.queue.ledger.totals(leader.size, True)[:, leader.path, leader.step].tolist()
        for member in fitted.best.members:
            if list(member.totals) != totals[member.split]:
                name = _name_model(BEST, member.split)
                result.differences.append(f"{name}: its errors are not those in the log")
        recorded = self.execution["test"]  # which no certificate covers
        rows = problem.recode(make_test_rows(test, problem.all_rows))
        if rows is None:
            if recorded is not None:
                says = "the test error in execution.json (--test with its rows measures it again)"
                result.trusted.append(says)
                result.assumed.append("the test error (--test)")
            return
        if recorded is None:
            raise InputError("the run was not measured on any test rows: there is no test error to verify")
        if rows.digest != recorded["digest"]:
            raise InputError("these are not the rows that the run was measured on: their digest differs")
        result.recomputed.append(f"the test error of F* on {len(rows.y):,} rows")
        measured = measure(fitted.best, rows, {})
        for where, was, is_now in _find_differences("test", recorded | {"reported": {}}, measured):
            result.differences.append(f"{EXECUTION}: {where} is {was!r}, measured again it is {is_now!r}")
        if recorded["reported"]:
            result.trusted.append("the test errors of the best candidates of reported k in execution.json")
            result.assumed.append("the test errors of the best candidates of reported k")

    def compare_scores(self, test: Test) -> None:
        problem, result = self.problem, self.result
        if test is not None:
            raise InputError("test is for ckcv run: the scores of a procedure have no other rows")
        if not self.queue.complete():
            says = "the log lacks evaluations: it says neither what they gave nor that they failed"
            result.differences.append(says)
            return
        scores = Scored(problem, self.execution, Models(), self.queue.scores())
        if (kept := find_kept(scores)) is not None:
            full = folders.read_full(self.folder.files, problem, scores.setting)
            make = partial(fit_on_all_rows, problem, *kept.positions[0].tolist())
            fit = "model on all rows", (FULL,), lambda: (make(),)
            self.compare_models([(FULL, full)], [fit], (FULL,))
            scores = replace(scores, models=Models(full=full))

        def compute(units: list[Unit]) -> Iterator[HeldOut]:
            self.announce("to verify", len(units))
            inputs = share(problem)
            for unit in units:
                if not self.over:
                    for outcome in evaluate_apart([unit], inputs):
                        yield from outcome.held_out

        held_out = predict_held_out(scores, compute)
        if held_out is not None and self._is_left_out(HELD_OUT, True):  # the stored ones, if time is up
            held_out = read_table(self.folder.files, HELD_OUT, problem.run_id, held_out.schema)
        scores = add_row_values(scores, held_out)
        files = make_scores(scores, held_out)
        self.compare_files(files)
        result.recomputed.append(f"{', '.join(files)}, from the log, the table and the models")

    def compare_files(self, files: Mapping[str, bytes]) -> None:
        found = list[str]()
        for name, made in files.items():
            with self.result.note_errors():
                found += _compare_file(self.folder, name, made)
        there = self.folder.files.list(ENSEMBLE)
        strays = [name for name in there if name.endswith(".pkl") and name not in files]
        found += [f"{name} is not the pickle of any model in models.parquet" for name in strays]
        self.result.differences += cut_list(found, MORE)

    def compare_models(
        self, models: Iterable[Named], fits: Sequence[_Refit], claimed: Collection[str]
    ) -> dict[tuple[str, int], Member]:
        """Compare stored models with those that new fits give; return those that differ, as computed here.

        ``claimed`` are the names of the ensembles that the claims speak of.
        """
        problem, result, changed = self.problem, self.result, dict[tuple[str, int], Member]()
        stored, compared, exact = _number_members(models), 0, 0
        self.announce("to verify", max(len(stored), len(fits)))
        for name, kinds, make in fits:
            if self._is_left_out(name, not set(claimed).isdisjoint(kinds)):
                continue
            known = {at: member for at, member in stored.items() if at[0] in kinds}
            try:
                made = _number_members(zip(kinds, make(), strict=True))
            except RunError as error:
                result.unverified.append(f"the {name} could not be fitted again here: {_show_last(error)}")
                continue
            if kinds != (BEST,) and made.keys() != known.keys():
                result.differences.append(f"there are {len(known)} {name}, and the log gives {len(made)}")
                continue
            for at, member in made.items():
                compared += 1
                exact += problem.learner.codec.same(known[at].model, member.model)
                if says := _compare_member(problem, known[at], member):
                    result.note_other([f"{_name_model(*at)}: {says}"], self.elsewhere)
                    changed[at] = member
        bits = "equal in every bit" if exact == compared else f"{compared - exact:,} not equal in every bit"
        result.recomputed.append(f"{pluralize(compared, 'model')}, fitted again: {bits}")
        return changed

    def trust_log(self) -> None:
        result, evaluations = self.result, pluralize(self.queue.progress().computed, "evaluation")
        result.trusted.append(f"the error counts in the log: {evaluations} (--rerun computes them again)")
        result.assumed.append(f"the results of {evaluations} (--rerun)")
        failed = pluralize(len(self.queue.failures()), "fit")
        if not self.problem.scores:
            failed = pluralize(self.queue.candidates()["state"].to_pylist().count("failed"), "candidate")
        if not failed.startswith("0 "):
            result.trusted.append(f"that {failed} failed (--rerun tries again)")
            result.assumed.append(f"that {failed} failed")
        if self.problem.held is not None:
            rest = "what is proven of these rests on that alone, and on no count of the search"
            result.trusted.append(f"that nobody used the held-out rows to choose: {rest}")

    def compare_rerun(self, work: Work, execution: Execution | None) -> None:
        result, scored = self.result, self.problem.scores
        if scored and (functions := self.problem.procedure.functions):
            says = f"the scores by {', '.join(functions)}: the folder does not keep functions"
            result.unverified.append(says)
            return
        with TemporaryDirectory(prefix="ckcv-verify-") as place:
            again = RunFolder(Path(place) / "run")
            limited = work._replace(folder=str(again), stop=lambda: work.stop() or self.over)
            try:
                run_work(limited, execution)
            except KeyboardInterrupt:
                if not self._is_left_out("the run again", True):
                    raise
                return
            except RunError as error:
                result.unverified.append(f"the study could not be run again here: {_show_last(error)}")
                return
            found = list[str]()
            for name in again.names():
                if name.endswith((".parquet", ".json")) and not name.startswith(NOT_DERIVED):
                    content = again.files.read(name, MAX_FILE_BYTES)
                    with result.note_errors():
                        found += _compare_file(self.folder, name, content, left_out="digests")
            logged, made = self.queue.ledger.records(), replay(str(again), self.problem).ledger.records()
            keys = list(KEY)
            _, at, there = np.intersect1d(logged[keys], made[keys], assume_unique=True, return_indices=True)
            before, after = logged["totals"][at], made["totals"][there]
            if not errors.agree(before, after, errors.ROUNDING):
                differing = int((before != after).any(axis=1).sum())
                evaluations = pluralize(len(after), "evaluation")
                found.append(f"the log: {differing:,} of {evaluations} give other results")
            failed = len(again.execution()["failures"]) > len(self.execution["failures"])
        if failed:
            result.unverified.append("fits failed here, when the study was run again, that the run had")
        result.note_other((f"run again, {one}" for one in cut_list(found, MORE)), self.elsewhere or failed)
        result.recomputed.append("the whole study, run again into another folder: its files were compared")

    def _is_left_out(self, what: str, claimed: bool) -> bool:
        """Return whether time is up; if so, note what is not looked at, as a claim may rest on it."""
        if self.over:
            says = f"not looked at within {self.seconds:,g} s (--limit): {what}"
            (self.result.unverified if claimed else self.result.trusted).append(says)
        return self.over


def _list_fits(problem: Problem, leader: Leader, table: pa.Table) -> Iterator[_Refit]:
    """Yield the fits of the models of a run, those of F* last; ``table`` holds its candidates."""
    if problem.held is not None:
        yield "models refit and full", (REFIT, FULL), partial(one_model, problem, leader)
    if problem.references:
        make = partial(fit_references, problem, leader, table)
        yield "models to compare with", (REFERENCES,), lambda: (make(),)
    inputs = share(problem)

    def fit(unit: Unit) -> tuple[Ensemble]:
        (outcome,) = evaluate_apart([unit], inputs)
        for failure in outcome.failures:
            raise RunError(failure.traceback)
        return (Ensemble(outcome.members),)

    for unit in refits(leader, problem.sizes[leader.size].n_splits):
        yield _name_model(BEST, unit.split), (BEST,), partial(fit, unit)


def _name_model(kind: str, split: int) -> str:
    names = {BEST: f"model of split {split}", REFERENCES: f"model {split} to compare with"}
    return names.get(kind, f"model {kind}")


def _number_members(ensembles: Iterable[Named]) -> dict[tuple[str, int], Member]:
    """Return the members of ensembles by the ensemble's name and the split."""
    known = ((kind, ensemble.members) for kind, ensemble in ensembles if ensemble is not None)
    return {(kind, member.split): member for kind, members in known for member in members}


def _show_last(error: Exception) -> str:
    return cut((str(error).strip().splitlines() or [""])[-1], MAX_SHOWN)


def _compare_file(folder: RunFolder, name: str, made: bytes, left_out: str = "") -> Iterator[str]:
    """Yield a sentence on each part of a file, but one, whose values differ from those recomputed.

    What is neither JSON nor Parquet has to be equal in every bit.
    """
    if not name.endswith((".json", ".parquet")):
        if folder.sha256(name) != hashlib.sha256(made).hexdigest():
            yield f"{name} is not what the models in it give"
        return
    if name.endswith(".json"):
        stored, again = read_json(folder.files, name), json.loads(bytes(made))
    else:
        again = parquet.ParquetFile(pa.BufferReader(made)).read(use_threads=False)
        stored = read_table(folder.files, name, folder.require().run_id, again.schema)
        if len(stored) != len(again):
            yield f"{name} has {len(stored):,} rows, recomputed it has {len(again):,}"
            return
        stored, again = ({key: table[key] for key in again.column_names} for table in (stored, again))
    for key in dict.fromkeys((*again, *stored)):
        if key != left_out:
            for where, *values in _find_differences(key, stored.get(key), again.get(key)):
                was, is_now = (cut(repr(value), MAX_SHOWN) for value in values)
                yield plain(f"{name}: {where} is {was}, recomputed it is {is_now}")
                break


def _find_differences(where: str, a: Any, b: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield where two values differ by more than rounding, as a dotted name, with the two values there."""
    if isinstance(a, pa.ChunkedArray) and isinstance(b, pa.ChunkedArray):
        a, b = ([], []) if a.equals(b) else (a.to_pylist(), b.to_pylist())
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        a, b = dict(enumerate(a)), dict(enumerate(b))
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        for key in a:
            yield from _find_differences(f"{where}.{key}", a[key], b[key])
    elif not errors.agree(a, b, errors.ROUNDING):
        yield where, a, b


def _compare_member(problem: Problem, stored: Member, computed: Member) -> str:
    """Return how a stored model differs from the one fitted again, as a clause; "" if by rounding alone.

    Equal predictions are not enough: a forged model is right for these rows, and wrong elsewhere.
    """
    X, wrong = problem.every_row.X, f"makes {sum(computed.errors):,} errors (stored: {sum(stored.errors):,})"
    if problem.learner.codec.same(stored.model, computed.model, errors.ROUNDING):
        known, again = ((member.k, member.totals, member.n_estimate) for member in (stored, computed))
        return "" if known == again else f"its k or its counts are not those of the log: it {wrong}"
    try:
        before, after = (Ensemble((member,)).alone(X).label for member in (stored, computed))
    except Exception as error:  # a stranger's model may raise anything
        says = f"it cannot predict the rows of the table: {type(error).__name__}: {error}"
        return cut(says, MAX_SHOWN)
    if problem.task.classes:
        says = f"it predicts {int((before != after).sum()):,} of {len(X):,} rows otherwise, and {wrong}"
    else:
        says = f"predictions differ by up to {abs(before - after).max():.2g}"
    return f"fitted again, its content differs: {says}"
