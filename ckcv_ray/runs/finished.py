"""Finished runs: refits and claims of what was selected, the files of both, and how they are opened again.

This module also tells whether a folder holds a study's result, and replays its log.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from typing import Any, cast

import numpy as np
import pyarrow as pa

from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.certify import certify, check_certificate
from ckcv_ray.claims.quantity import HeldOutPredictions
from ckcv_ray.core.intervals import BBC
from ckcv_ray.core.measures import Output
from ckcv_ray.core.resampling.base import Splits
from ckcv_ray.core.schedule import Stage, Unit, refits
from ckcv_ray.core.selection import Leader
from ckcv_ray.engine.evaluate import fit_on_all_rows, fit_references, one_model
from ckcv_ray.engine.loop import Backend, Stop, work
from ckcv_ray.engine.queue import FullQueue, Listener, Progress, Queue
from ckcv_ray.engine.race import RaceQueue, describe_failures
from ckcv_ray.engine.recorder import Conclusion, Recorder, make_queue
from ckcv_ray.errors import CKCVError, RunError, StoreError, pluralize
from ckcv_ray.learners.ensemble import Ensemble, Models, find_majority
from ckcv_ray.records import judged as judged_rows
from ckcv_ray.records.judged import HELD_OUT, HeldOut
from ckcv_ray.records.record import Failure, Outcome
from ckcv_ray.runs import result as results
from ckcv_ray.runs.result import Certified, Result, Scored, format_setting, write_values
from ckcv_ray.storage import folder as folders
from ckcv_ray.storage.execution import Before, MeasuredRates, Tested
from ckcv_ray.storage.files import LOCK, guard_reading, make_table, read_json, read_table, to_json
from ckcv_ray.storage.folder import FolderPath, RunFolder
from ckcv_ray.storage.log import Log
from ckcv_ray.study.problem import OUTER, Problem
from ckcv_ray.study.study import Procedure, Study
from ckcv_ray.tables.task import TestRows
from ckcv_ray.version import VERSION

SETTING_COLUMNS = pa.schema([
    ("learner", pa.string()), ("setting", pa.string()), ("path", pa.int32()), ("step", pa.int32()),
    ("inner", pa.bool_()), ("measure", pa.string()),
    ("mean", pa.float64()), ("deviation", pa.float64()), ("rank", pa.int32()),
])  # fmt: skip
MAX_EVALUATIONS = 1 << 28  # each takes about 28 bytes of memory


class RefitQueue(Queue):
    """Models to fit again, and what comes back; a search's records also go to the recorder."""

    def __init__(self, problem: Problem, units: list[Unit], recorder: Recorder[Any], stage: str) -> None:
        super().__init__(problem, units)
        self.recorder, self.stage, self.outcomes = recorder, stage, list[Outcome]()

    def follow(self, outcome: Outcome, lost: Sequence[Failure]) -> None:
        """Keep a batch, and pass its records to the recorder, which already has those of scores."""
        if not self.problem.scores:
            self.recorder.add(outcome._replace(members=()))
        self.outcomes.append(outcome)

    def progress(self) -> Progress:
        """Return the progress of the run."""
        return self.recorder.progress()._replace(stage=self.stage, left=self.expect_left())


def finish(
    problem: Problem,
    backend: Backend,
    recorder: Recorder[Any],
    test: TestRows | None,
    listen: Listener | None,
    stop: Stop,
    before: Before | None,
) -> Result:
    """Refit and certify what was selected, or take the scores; write everything, and return the result.

    If a recorder dies, what it received but had not written is computed again.

    Args:
        problem: the problem; only refits are left to compute.
        backend: computes the refits.
        recorder: holds the records, and writes the files.
        test: rows to measure the ensemble on.
        listen, stop: as for ``run_job``.
        before: which earlier runs have rows that this one judges; None if none were looked for.

    Raises:
        RunError: no candidate could be completed, the winner could not be refitted, or scores are missing.
        KeyboardInterrupt: the run was stopped.
    """
    while problem.scores:
        if (scored := _write_scores(problem, backend, recorder, listen, stop)) is not None:
            return scored
    while True:
        winner, ensembles, concluded = _refit_leaders(problem, backend, recorder, listen, stop)
        if listen is not None:
            listen(recorder.progress()._replace(stage="judging", left=inf))
        table, ensemble = concluded.candidates, ensembles[winner]
        asked = ((k, leader) for k in problem.study.search.report_k for leader in ensembles)
        reported = {k: ensembles[leader] for k, leader in asked if problem.sizes[leader.size].holds(k)}
        about = {**_describe_execution(problem, backend), "test": measure(ensemble, test, reported)}
        found = {} if before is None else {"before": before}
        execution = {**about, **found, **concluded.metadata}  # a repaired run keeps its first
        references = fit_references(problem, winner, table, backend.fit_timeout)
        fitted = Models(ensemble, *one_model(problem, winner, backend.fit_timeout), references)
        predictions = HeldOutPredictions(problem, fitted)
        judged = tabulate_judged(predictions)
        files = folders.make_results(problem, table, fitted, judged) if concluded.writes else {}
        certificate = certify(predictions, table, folders.hash_results(files))
        if recorder.write_end(execution, {**files, folders.CERTIFICATE: to_json(certificate.to_json())}):
            return Certified(problem, execution, fitted, table, certificate, judged)


def _write_scores(
    problem: Problem, backend: Backend, recorder: Recorder[FullQueue], listen: Listener | None, stop: Stop
) -> Scored | None:
    """Write the scores, which finishes the run, and return them, or None if a recorder died meanwhile."""
    while (found := recorder.scores()) is None:
        if not work(backend, recorder, listen, stop):
            raise RunError("scores are missing, but nothing is left to compute: please report this")
    scores, metadata = found
    execution = {**_describe_execution(problem, backend), "test": None, **metadata}
    result = Scored(problem, execution, Models(), scores)
    if (kept := results.find_kept(result)) is not None:
        path, step = kept.positions[0].tolist()
        full = fit_on_all_rows(problem, path, step, backend.fit_timeout)
        result = replace(result, models=Models(full=full))

    def compute(units: list[Unit]) -> Iterable[HeldOut]:
        queue = RefitQueue(problem, units, recorder, "predicting")
        work(backend, queue, listen, stop)
        return [held for outcome in queue.outcomes for held in outcome.held_out]

    held_out = predict_held_out(result, compute)
    result = results.add_row_values(result, held_out)
    return result if recorder.write_end(execution, make_scores(result, held_out)) else None


def make_scores(result: Scored, held_out: pa.Table | None) -> dict[str, bytes]:
    """Return the files of scores besides the log, by name; ``held_out`` comes from ``predict_held_out``."""
    problem = result.problem
    settings = [  # a row for each setting and score; what is not known is empty
        {**row._asdict(), "setting": format_setting(row.setting), "measure": name, **write_values(place)}
        for row in result.settings
        for name, place in row.places.items()
    ]
    files: dict[str, bytes] = {
        folders.SCORES: make_table(result.table(), problem.run_id),
        folders.SETTINGS: make_table(pa.Table.from_pylist(settings, SETTING_COLUMNS), problem.run_id),
        folders.SUMMARY: to_json(results.summarize_scores(result)),
    }
    if result.models.full is not None:
        files[folders.FULL] = folders.make_model_table(problem, result.models.full)
    if held_out is not None:
        names = {"labels": json.dumps(problem.task.classes)}
        files[HELD_OUT] = make_table(held_out, problem.run_id, names)
        if not isinstance(problem.asked.resampling, Splits):
            sets = [problem.rows(Stage.SELECT, OUTER, split) for split in range(result.computed.n_splits)]
            files[folders.SPLITS] = folders.make_splits(sets, problem.run_id)
    return files


def predict_held_out(result: Scored, compute: Callable[[list[Unit]], Iterable[HeldOut]]) -> pa.Table | None:
    """Return the predictions for the rows that each split scores, if the study asks for them.

    They are those of the chosen setting, or else of every entry, as where an interval needs them. Rows,
    splits and classes are numbered from 0; a prediction is empty where the model is undecided, and
    probabilities are empty where the learner has none.

    Args:
        result: the scores.
        compute: fits units again, and returns what their models predict, in any order; some may fail.
    """
    if not result.study.save_predictions:
        return None
    kept, problem = None if result.study.interval == BBC else results.find_kept(result), result.problem
    positions = [
        (int(path), int(step), split)
        for entry in (result.entries if kept is None else (kept,))
        for split, (path, step) in enumerate(entry.positions)
        if entry.known[split]
    ]
    units = [Unit(Stage.REFIT, OUTER, split, ((path, step + 1),)) for path, step, split in positions]
    found = {(held.path, held.step, held.split): held for held in compute(units)}
    schema, names, y = judged_rows.list_held_out_columns(problem), list(problem.learners), problem.task.y
    parts = [schema.empty_table()]
    for path, step, split in (place for place in positions if place in found):
        _, scored = problem.rows(Stage.SELECT, OUTER, split)
        label, _, shares, value = found[path, step, split].outputs
        undecided = None if label is None else np.asarray(label) < 0
        columns = {
            "learner": np.repeat(names[int(problem.learner_of_paths[path])], len(scored)),
            "setting": np.repeat(format_setting(problem.learner.space.setting(path, step)), len(scored)),
            "split": np.full(len(scored), split),
            "row": scored,
            "truth": y[scored],
            "prediction": pa.array(value if label is None else label, mask=undecided),
        }
        if "probability" in schema.names:
            columns["probability"] = pa.nulls(len(scored)) if shares is None else pa.array(shares.tolist())
        arrays = [pa.array(columns[field.name]).cast(field.type) for field in schema]
        parts.append(pa.table(arrays, schema=schema))
    return pa.concat_tables(parts).combine_chunks()


def _refit_leaders(
    problem: Problem, backend: Backend, recorder: Recorder[RaceQueue], listen: Listener | None, stop: Stop
) -> tuple[Leader, dict[Leader, Ensemble], Conclusion]:
    """Return the winner, the models of each leader that has one on every split, and what the records say."""
    codec = problem.learner.codec
    while True:
        while (decision := recorder.decision()) is None:
            if not work(backend, recorder, listen, stop):
                raise RunError("the study is undecided, but nothing is left to compute: please report this")
        lost, reason = decision
        if not lost:
            raise RunError(f"no candidate could be completed: {reason}")
        winner, ensembles = lost[0], dict[Leader, Ensemble]()
        for _ in range(2):  # lost ones once more, before rows are judged
            if lost:
                units = [unit for one in lost for unit in refits(one, problem.sizes[one.size].n_splits)]
                queue = RefitQueue(problem, units, recorder, f"refitting {pluralize(len(units), 'model')}")
                work(backend, queue, listen, stop)
                made = [member for outcome in queue.outcomes for member in outcome.members]
                for leader in lost:
                    k, setting = problem.sizes[leader.size].k, problem.candidate(leader).setting
                    of_leader = (one for one in made if one.k == k and codec.setting(one.model) == setting)
                    by_split = {member.split: member for member in of_leader}
                    if len(by_split) == problem.sizes[leader.size].n_splits:
                        ensembles[leader] = Ensemble(tuple(by_split[i] for i in range(len(by_split))))
                lost = [leader for leader in lost if leader not in ensembles]
        if winner not in ensembles:
            failures = [failure for outcome in queue.outcomes for failure in outcome.failures]
            reason = describe_failures(failures, problem)
            raise RunError(f"the winner could not be refitted on every split: {reason}")
        if (concluded := recorder.conclude(list(ensembles), lost)) is not None:
            return winner, ensembles, concluded
        work(backend, recorder, listen, stop)


def _describe_execution(problem: Problem, backend: Backend) -> dict[str, Any]:
    return {
        "finished": datetime.now(UTC).date().isoformat(),
        "package": VERSION,
        "backend": backend.name,
        "workers": backend.workers,
        "source": problem.task.source,
    }


def measure(ensemble: Ensemble, test: TestRows | None, reported: dict[int, Ensemble]) -> Tested | None:
    """Return the error rates of F* on test rows, and of the best candidate of each reported k."""
    if test is None:
        return None

    def rate(one: Ensemble) -> MeasuredRates:
        labels, _ = one.predict(test.X)
        votes, _ = find_majority(labels)
        return {"error": float(np.mean(labels != test.y)), "vote_error": float(np.mean(votes != test.y))}

    of_reported = {str(k): rate(reported[k]) for k in sorted(reported)}
    return {"rows": len(test.y), "digest": test.digest, **rate(ensemble), "reported": of_reported}


def tabulate_judged(held: HeldOutPredictions) -> pa.Table | None:
    """Return the held-out rows as judged by each rule that is claimed, and by each model compared with.

    None if none are judged, or too many for a file.
    """
    problem = held.problem
    if problem.held is None or not judged_rows.count_judged(problem):
        return None
    certification, rows, tables = problem.certification, held.rows, list[pa.Table]()
    rules = dict.fromkeys(map(held.find_rule, certification.claim))
    judges = [(rule.name, held.predict(rule), rule.ensemble(held.models)) for rule in rules]
    for name, quantity in certification.quantities.items():
        if quantity.reference and (found := held.find_reference(quantity.reference)) is not None:
            judges.append((name, *found[1:]))
    unit = problem.all_rows.row_units[problem.held]
    order = held.order.argsort()[np.unique(unit, return_inverse=True)[1]]
    shared: dict[str, Any] = {"row": problem.held, "unit": unit, "order": order, "label": rows.y}
    shared["weight"] = problem.all_rows.weighting.take(problem.held)  # a column only if rows are weighted
    schema = judged_rows.make_judged_schema(problem)
    for name, predicted, ensemble in judges:
        setting = problem.learner.codec.setting(ensemble.members[0].model)
        ranks = problem.task.n_classes == 2 and Output.RANK in problem.find_learner(setting)[1].outputs
        columns = shared | {
            "classifier": np.full(len(unit), name),
            "predicted": predicted.label,
            "loss": held.measure_loss(predicted.label),
            "score": predicted.score if ranks else [None] * len(unit),
        }
        arrays = [pa.array(columns[field.name]).cast(field.type) for field in schema]
        tables.append(pa.table(arrays, schema=schema))
    return pa.concat_tables(tables).combine_chunks()


def is_finished(problem: Problem, folder: RunFolder) -> bool:
    """Return whether a folder holds the finished run of a problem; if not, check that it can be written.

    Raises:
        StoreError: the folder holds another study, or something else.
        InputError: it cannot be written.
    """
    there, lacking = folder.holds(problem), folder.falls_short(problem)
    if there and folder.finished and not lacking and not folder.list_differing():
        # a process killed at the end leaves a lock, and temporary files: they go, but nothing depends on it
        if folder.files.exists(LOCK) and not folder.files.lock.busy:
            with suppress(CKCVError):
                folder.acquire()
                folder.release()
        return True
    folder.files.check_writable()
    folder.check_room(problem)
    return False


def reopen(problem: Problem, out: FolderPath) -> None:
    """Reopen the finished run in ``out`` if some of its evaluations failed; leave an unfinished run alone.

    Raises:
        StoreError: the folder holds another study, or something else.
        InputError: the run has judged its rows.
    """
    folder = RunFolder(out)
    if is_finished(problem, folder) and folder.execution()["failures"]:
        folder.refuse_selection(problem)
        folder.reopen()


def replay(out: FolderPath, problem: Problem | None = None) -> Any:
    """Return a queue with all the records of a folder, which is not changed.

    It is a ``RaceQueue`` with a certification, and a ``FullQueue`` without.

    Raises:
        StoreError: there is no run, or it is damaged, or has too many records to be read.
        RunError: two of its records contradict each other.
    """
    folder = RunFolder(out)
    problem = problem or folder.problem()
    if (count := problem.n_evaluations) > MAX_EVALUATIONS:
        many = f"its study has {count:,} evaluations"
        raise StoreError(f"{str(folder)!r}: {many}: at most {MAX_EVALUATIONS:,} can be read")
    queue = make_queue(problem)
    for records, failures in Log(folder.files, problem).read():
        queue.add(Outcome(records, tuple(failures), ()))
    return queue


def load_run(out: FolderPath, allow_pickle: bool = False) -> Certified:
    """Return the result of a finished run, from its folder.

    Args:
        out: the run folder.
        allow_pickle: read the models of F* from pickles instead of Parquet. Opening a pickle executes
            code in it: allow this only for your own runs.

    Raises:
        StoreError: there is no finished run, or a file of it is damaged or does not match the manifest.
    """
    result = cast(Certified, load(out, Study.kind))
    if not allow_pickle:
        return result
    folder = RunFolder(out)
    opened = folders.read_pickles(folder.files, result.problem, result.ensemble, folder.manifest())
    return replace(result, models=replace(result.models, best=opened))


def load_scores(out: FolderPath) -> Scored:
    """Return the scores in a finished folder of ``evaluate``.

    Raises:
        StoreError: there are none, or a file is damaged or does not match the manifest.
    """
    return cast(Scored, load(out, Procedure.kind))


def load(out: FolderPath, kind: str = "") -> Result:
    """Return the result in a finished folder, of a study with a certification or without.

    Args:
        out: the run folder.
        kind: the kind that the study has to be of; "" for any.

    Raises:
        StoreError: as for ``load_run`` and ``load_scores``.
    """
    folder = RunFolder(out)
    identity = folder.require(kind)
    command = f"ckcv {identity.study.command} command again"
    if not folder.finished:
        raise StoreError(f"the run in {str(out)!r} is not finished: run its {command}")
    damaged = folder.list_differing()
    repair = f": running its {command} repairs it" if damaged else ""
    try:
        result = read_result(folder, folder.problem(identity))
    except StoreError as error:
        raise StoreError(f"{error}{repair}") from None
    if damaged:
        file = folder.files.path(damaged[0])
        raise StoreError(f"{file} is missing or does not match the manifest{repair}")
    return result


def read_result(folder: RunFolder, problem: Problem) -> Result:
    """Return the result of a finished run, from Parquet and JSON alone, if each file is valid in itself.

    Raises:
        StoreError: a file is damaged, or belongs to another winner or other splits.
    """
    files, execution = folder.files, folder.execution() | {"folder": str(folder)}
    if not problem.scores:
        table, winner = folder.candidates(problem)
        fitted, content = folders.read_models(files, problem, winner.k), read_json(files, folders.CERTIFICATE)
        with guard_reading(files, folders.CERTIFICATE):
            certificate = Certificate.from_json(content)
            check_certificate(certificate, problem, table, fitted)
        return Certified(problem, execution, fitted, table, certificate, folder.judged(problem))
    result = Scored(problem, execution, Models(), replay(str(folder), problem).scores())
    if result.study.interval == BBC:  # it needs the values of rows
        held_out = read_table(files, HELD_OUT, result.run_id, judged_rows.list_held_out_columns(problem))
        with guard_reading(files, HELD_OUT):
            result = results.add_row_values(result, held_out)
    if results.find_kept(result) is None:
        return result
    return replace(result, models=Models(full=folders.read_full(files, problem, result.setting)))
