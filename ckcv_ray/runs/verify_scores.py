"""Verification of scores: digests, summaries from the log, and on request every score."""

import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from math import nan
from typing import Any

import numpy as np

from ckcv_ray.claims.percent import nearest
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.backend import start
from ckcv_ray.engine.evaluate import share
from ckcv_ray.engine.full import FullQueue
from ckcv_ray.engine.loop import work
from ckcv_ray.errors import StoreError, counted, cut_list
from ckcv_ray.records.ledger import ABSENT
from ckcv_ray.records.record import Outcome
from ckcv_ray.runs.assessed import Assessed
from ckcv_ray.runs.load import load_scores, replay_scores
from ckcv_ray.runs.recheck import RecheckQueue
from ckcv_ray.runs.verification import Refit, Verification, note_errors
from ckcv_ray.storage import formats
from ckcv_ray.storage.folder import MANIFEST, SCORES, SUMMARY, RunFolder
from ckcv_ray.study import Problem, listed
from ckcv_ray.study.problem import OUTER

ROUNDING = 1e-9  # relative: other processors round differently


def verify_scores(folder: RunFolder, refit: Refit) -> Verification:
    """Check the folder of a finished study without a certification.

    Below a share of 1, what is computed again are whole splits drawn at random.
    """
    result, differing = Verification(), folder.differing()
    result.differences.extend(f"{name} does not match the manifest, or is missing" for name in differing)
    if differing == [MANIFEST]:
        return result
    result.recomputed.append(f"the SHA-256 of {counted(len(folder.manifest()), 'file')}")
    with note_errors(result):
        queue = replay_scores(folder.files.root)
        if not queue.complete():
            result.differences.append(
                "the log lacks evaluations: it says neither what they gave nor that they failed"
            )
            return result
        if not differing:
            result.differences.extend(_summaries(folder))
            result.recomputed.append("every figure of the summary, from the log")
        _recheck_scores(queue, folder, result, refit, intact=not differing)
    return result


def _recheck_scores(
    queue: FullQueue, folder: RunFolder, result: Verification, refit: Refit, intact: bool
) -> None:
    """Compute scores again, and compare them with the log."""
    problem = queue.problem
    every = [unit for size in range(len(problem.sizes)) for unit in _units(queue, size)]
    total = sum(unit.evaluations for unit in every)
    failed = sum(one.stop - one.first for one in queue.failures())
    if refit.backend is None:
        result.trusted.append(f"the scores of every split: {total:,} evaluations in the log (see --refit)")
        if failed:
            result.trusted.append(f"that {failed:,} of them failed (--refit tries them again)")
            result.assumed.append(f"that {failed:,} of them failed")
        result.unchecked = total
        return
    refit.limit.announce(round(refit.share * total), problem.task, folder.execution())
    units, functions = _sampled(every, refit.share), _columns_of_functions(problem)
    again = ScoreRecheckQueue(problem, queue.ledger, units, ROUNDING, functions)
    with start(refit.backend, share(_without_functions(problem))) as opened:
        work(opened, again, refit.listen, refit.is_stopped)
    result.differences.extend(cut_list(again.differences, "other evaluations differ"))
    if again.differences and intact:
        result.differences.extend(_figures(again, queue, folder))
    others = "other evaluations could not be computed again here"
    result.unverified.extend(cut_list(again.unverified, others))
    of_some = f"the scores of {nearest(refit.share)} of the splits"
    result.recomputed.append("every score, from the data" if refit.share == 1 else of_some)
    if again.failed:
        result.recomputed.append(f"{again.failed:,} evaluations, tried again, which failed")
    if again.last_bits:
        result.notes.append(f"the last bits of the scores of {again.last_bits:,} evaluations differ")
    if functions:
        named = ", ".join(one.name for one in problem.study.functions)
        result.unverified.append(f"the scores by {named}: the folder does not keep functions")
    if refit.share < 1:
        result.trusted.append("the scores of the other splits")
    result.unchecked = total - again.planned


def _summaries(folder: RunFolder) -> list[str]:
    """Return which of the two files with results are not what follows from the log."""
    result = load_scores(folder.files.root)
    table = formats.read_table(folder.files, SCORES, result.problem.run_id, None)
    content = formats.read_json(folder.files, SUMMARY)
    lost = [] if table.equals(result.table()) else [SCORES]
    follows = [json.loads(json.dumps(one)) for one in (result.summary_json(), result.to_json())]
    lost += [] if content in follows else [SUMMARY]  # earlier versions wrote the cost in it as well
    return [f"{name} does not follow from the log" for name in lost]


class ScoreRecheckQueue(RecheckQueue):
    """Scores to compute again, and their comparison with the log."""

    def describe(self, record: Any, computed: Any, logged: Any) -> str:
        """Return a sentence about an evaluation that differs: its first score that does, or its status."""
        setting = self.problem.learner.space.setting(int(record["path"]), int(record["step"]))
        at = f"{self.describe_split(False, int(record['size']), int(record['split']))}, {listed(setting)}"
        if logged[-1] == ABSENT:
            return f"{at}: the log has no scores; computed again there are some"
        start = 0
        for score, width in zip(self.problem.scores, self.problem.widths, strict=True):
            part = slice(start, start + width)
            if not np.allclose(computed[part], logged[part], ROUNDING, 0.0, equal_nan=True):
                return (
                    f"{at}: {score.name}, computed again, is {computed[start]:g}; the log has "
                    f"{logged[start]:g}"
                )
            start += width
        return f"{at}: its status, computed again, is {computed[-1]:g}; the log has {logged[-1]:g}"

    def describe_split(self, estimate: bool, size: int, split: int) -> str:
        """Return a phrase that names a split."""
        return f"{'split' if size == OUTER else 'inner split'} {split}"


def _columns_of_functions(problem: Problem) -> list[int]:
    """Return the positions of the totals that functions of the user gave."""
    names = {one.name for one in problem.study.functions}
    starts = np.cumsum([0, *problem.widths]).tolist()
    return [start for start, score in zip(starts, problem.scores, strict=False) if score.name in names]


def _without_functions(problem: Problem) -> Problem:
    """Return the problem with functions that the folder does not keep giving no value."""
    names = {one.name for one in problem.study.functions}
    scores = (replace(one, of=_unknown) if one.name in names else one for one in problem.scores)
    return replace(problem, scores=tuple(scores))


def _unknown(y: Any, answers: Any) -> float:
    return nan


def _units(queue: FullQueue, size: int) -> list[Unit]:
    """Return a unit for each split: every path that has scores or failed, as far as it goes in the log."""
    ends = (~np.isnan(queue.statuses(size))).sum(axis=2)  # records are of the first steps of a path
    for failure in queue.failures():
        if failure.size == size:
            at = failure.split, failure.path
            ends[at] = max(ends[at], failure.stop)
    return [
        Unit(Stage.SELECT, size, split, tuple((path, length) for path, length in enumerate(row) if length))
        for split, row in enumerate(ends.tolist())
        if any(row)
    ]


def _sampled(units: Sequence[Unit], part: float) -> list[Unit]:
    """Return a random sample of the units of each size, at least one, which differs at each call."""
    if not units:
        raise StoreError("there are no scores to compute again")
    rng, chosen = np.random.default_rng(secrets.randbits(64)), list[Unit]()
    for _, group in groupby(units, lambda unit: unit.size):
        of_size = list(group)
        count = max(1, round(part * len(of_size)))
        chosen += [of_size[i] for i in np.sort(rng.choice(len(of_size), count, replace=False))]
    return chosen


def _figures(again: RecheckQueue, log: FullQueue, folder: RunFolder) -> Iterator[str]:
    """Yield the means and bounds that follow from what was computed again, where the folder has others."""
    records = np.concatenate(again.records)
    queue = FullQueue(log.problem)
    queue.add(Outcome(records, tuple(log.failures()), ()))
    others = log.ledger.records()
    absent = queue.ledger.held(others)[:, -1] == ABSENT
    queue.add(Outcome(others[absent], (), ()))
    if not queue.complete():
        yield "with what was computed again, other settings are selected: the scores of these are not known"
        return
    stored, computed = load_scores(folder.files.root), Assessed.of(queue.problem, queue.scores(), {})
    for before, after in zip(stored.entries, computed.entries, strict=True):
        for said, score in zip(stored.scores, computed.scores, strict=True):
            old, new = stored.figures(before, said).mean, computed.figures(after, score).mean
            if not np.isclose(old, new, ROUNDING, 0.0, equal_nan=True):
                named = f"the mean {score.name} of {after.name}"
                yield f"computed again, {named} is {new:g}; {SUMMARY} says {old:g}"
            bounds, again_bounds = stored.bounds(before, said), computed.bounds(after, score)
            for i in np.flatnonzero(~np.isclose(bounds, again_bounds, ROUNDING, 0.0, equal_nan=True))[:1]:
                yield (
                    f"computed again, the bound on the {score.name} of {after.name} in split {i} is "
                    f"{again_bounds[i]:g}; {SUMMARY} says {bounds[i]:g}"
                )
