"""Verification of a study without a certification: its files from the log, and on request every score."""

import json
from collections.abc import Iterator

import numpy as np

from ckcv_ray.core.percent import format_percent
from ckcv_ray.core.resampling.base import Splits
from ckcv_ray.core.schedule import Stage
from ckcv_ray.engine.evaluate import fit_on_all_rows
from ckcv_ray.engine.full import FullQueue
from ckcv_ray.errors import RunError, cut, cut_list, pluralize
from ckcv_ray.records.judged import (
    HELD_OUT,
    HeldOut,
    can_score,
    list_held_out_columns,
    read_outputs,
    tabulate_held_out,
)
from ckcv_ray.records.record import NO_RECORD, Outcome
from ckcv_ray.runs.load import read_row_values, replay
from ckcv_ray.runs.recheck import ROUNDING, RecheckQueue, Refit, list_computed, recheck
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.settings import SETTING_COLUMNS, tabulate_settings
from ckcv_ray.runs.verification import LONGEST_REASON, Verification, describe_difference, note_other
from ckcv_ray.storage import formats, splits
from ckcv_ray.storage.execution import find_changes, read_environment
from ckcv_ray.storage.folder import SCORES, SETTINGS, SUMMARY, RunFolder
from ckcv_ray.storage.models import read_full
from ckcv_ray.study.problem import OUTER, Problem


def check_scores(folder: RunFolder, problem: Problem, result: Verification, refit: Refit) -> Iterator[str]:
    """Yield what the files say otherwise than the log, or the log otherwise than what is computed again.

    Below a share of 1, what is computed again are whole splits drawn at random.
    """
    queue: FullQueue = replay(str(folder), problem)
    if not queue.complete():
        yield "the log lacks evaluations: it says neither what they gave nor that they failed"
        return
    stored = read_row_values(folder, Result(problem, folder.execution(), computed=queue.scores()))
    intact = not result.differences
    if intact:
        yield from _compare_files(folder, stored)
        result.recomputed.append("every figure of the summary, from the log")
    if problem.study.save_predictions:
        yield from _check_held_out(folder, stored, result)
    if stored.kept is not None:
        yield from _check_full(folder, stored, result, refit)
    units = list_computed(queue)
    total = sum(unit.evaluations for unit in units)
    if refit.backend is None:
        result.trusted.append(f"the scores of every split: {total:,} evaluations in the log (see --refit)")
        if failed := sum(failure.stop - failure.first for failure in queue.failures()):
            result.trusted.append(f"that {failed:,} of them failed (--refit tries them again)")
            result.assumed.append(f"that {failed:,} of them failed")
        result.unchecked = total
        return
    refit.limit.announce(round(refit.share * total), problem.task, stored.execution)
    again = recheck(problem, queue.ledger, units, refit, result)
    yield from cut_list(again.differences, "other evaluations differ")
    if again.differences and intact:
        yield from _compare_figures(again, queue, stored)
    _note_rechecked(again, result, refit.share)
    result.unchecked = total - again.planned


def _check_held_out(folder: RunFolder, stored: Result, result: Verification) -> Iterator[str]:
    """Yield where held-out predictions are of other rows, or give another score than the log has."""
    problem, y = stored.problem, stored.task.y
    table = formats.read_table(folder.files, HELD_OUT, problem.run_id, list_held_out_columns(problem))
    known = [score for score in stored.scores if score.name not in stored.study.functions]
    first = checked = 0
    for entry in stored.predicted:
        for split in np.flatnonzero(entry.known).tolist():
            _, scored = problem.rows(Stage.SELECT, OUTER, split)
            part, first = table.slice(first, len(scored)), first + len(scored)
            if part["row"].to_pylist() != scored.tolist() or set(part["split"].to_pylist()) != {split}:
                yield f"{HELD_OUT}: its rows are not those that split {split} scores for {entry.name}"
                return
            outputs = read_outputs(part)
            path, step = entry.positions[split].tolist()
            expected = tabulate_held_out([HeldOut(path, step, split, outputs)], problem)
            for name in ("learner", "setting", "truth"):
                if not part[name].equals(expected[name]):
                    yield f"{HELD_OUT}: {name} in split {split} is not what the study or the table has there"
            for score in known:
                if not can_score(score.needs, outputs):
                    continue
                found, logged = score.of(y[scored], outputs), stored.of_splits(entry, score)[split]
                if not np.isclose(found, logged, ROUNDING, ROUNDING, equal_nan=True):
                    where = f"{score.name} of {entry.name} in split {split}"
                    yield f"{HELD_OUT}: {where} is {found:g}; the log says {logged:g}"
                checked += 1
    if first != len(table):
        yield f"{HELD_OUT} has {len(table) - first:,} rows that no split scores"
    result.recomputed.append(f"{pluralize(checked, 'score')} from the predictions in {HELD_OUT}")
    drawn = [problem.rows(Stage.SELECT, OUTER, i) for i in range(problem.sizes[OUTER].n_splits)]
    splits.read_splits(folder.files, Splits.of(drawn, problem.task.n), problem.run_id, problem.task.n)


def _check_full(folder: RunFolder, stored: Result, result: Verification, refit: Refit) -> Iterator[str]:
    """Yield what the model fitted on all rows does otherwise than one that is fitted again."""
    problem, kept = stored.problem, stored.kept
    assert kept is not None
    setting, (path, step) = kept.settings[0] or {}, kept.positions[0].tolist()
    model = read_full(folder.files, problem, setting).members[0].model
    refit.limit.check()
    try:
        again = fit_on_all_rows(problem, path, step).members[0].model
    except RunError as error:
        last = (str(error).strip().splitlines() or [""])[-1]
        result.unverified.append(
            f"the model on all rows could not be fitted again here: {cut(last, LONGEST_REASON)}"
        )
        return
    result.recomputed.append("the model on all rows: chosen by the scores, and fitted again")
    if problem.learner.codec.same(model, again):
        return
    try:
        difference = describe_difference(problem, model, again, problem.task.X)
    except Exception as error:  # of a stranger's model, of any kind
        yield cut(f"the model on all rows: it cannot predict the rows of the table: {error}", LONGEST_REASON)
        return
    if difference:
        elsewhere = bool(find_changes(stored.execution["environment"], read_environment(problem.learner)))
        sentence = f"the model on all rows: fitted again, {difference}"
        note_other(sentence, elsewhere, result.differences, result.unverified)
    else:
        result.notes.append("the last bits of the model on all rows differ")


def _note_rechecked(again: RecheckQueue, result: Verification, part: float) -> None:
    some = f"the scores of {format_percent(part)} of the splits"
    result.recomputed.append("every score, from the data" if part == 1 else some)
    if again.failed:
        result.recomputed.append(f"{again.failed:,} evaluations, tried again, which failed")
    if again.last_bits:
        result.notes.append(f"the last bits of the scores of {again.last_bits:,} evaluations differ")
    if functions := again.problem.study.functions:
        result.unverified.append(f"the scores by {', '.join(functions)}: the folder does not keep functions")
    if part < 1:
        result.trusted.append("the scores of the other splits")


def _compare_files(folder: RunFolder, result: Result) -> Iterator[str]:
    if not formats.read_table(folder.files, SCORES, result.run_id, None).equals(result.table()):
        yield f"{SCORES} does not follow from the log"
    table = formats.read_table(folder.files, SETTINGS, result.run_id, SETTING_COLUMNS)
    if not table.equals(tabulate_settings(result.settings)):
        yield f"{SETTINGS} does not follow from the log"
    if formats.read_json(folder.files, SUMMARY) != json.loads(json.dumps(result.summary_json())):
        yield f"{SUMMARY} does not follow from the log"


def _compare_figures(again: RecheckQueue, log: FullQueue, stored: Result) -> Iterator[str]:
    """Yield the means and bounds that follow from what was computed again, where the folder has others."""
    queue = FullQueue(log.problem)
    queue.add(Outcome(np.concatenate(again.records), tuple(log.failures()), ()))
    logged = log.ledger.records()
    absent = queue.ledger.look_up(logged)[:, -1] == NO_RECORD
    queue.add(Outcome(logged[absent], (), ()))
    if not queue.complete():
        yield "with what was computed again, other settings are selected: the scores of these are not known"
        return
    computed = Result(stored.problem, {}, computed=queue.scores())
    for before, after in zip(stored.entries, computed.entries, strict=True):
        for score in stored.scores:
            old, new = stored.figures(before, score).mean, computed.figures(after, score).mean
            if not np.isclose(old, new, ROUNDING, 0.0, equal_nan=True):
                name = f"the mean {score.name} of {after.name}"
                yield f"computed again, {name} is {new:g}; {SUMMARY} says {old:g}"
            bounds, again_bounds = stored.bounds(before, score), computed.bounds(after, score)
            for i in np.flatnonzero(~np.isclose(bounds, again_bounds, ROUNDING, 0.0, equal_nan=True))[:1]:
                yield (
                    f"computed again, the bound on the {score.name} of {after.name} in split {i} is "
                    f"{again_bounds[i]:g}; {SUMMARY} says {bounds[i]:g}"
                )
